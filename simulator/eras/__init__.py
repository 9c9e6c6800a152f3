"""Kafka's own stories, each played under every profile: which rule loses or forks a log, and which does not.

A guided schedule (``simulator/guided``) puts one historic bug into today's rules. A story is told as it was,
under the rules of its time and of later ones: docs/known-bugs.md is the table of how each ends.
"""
