"""Mutations: each puts one anomaly into a correct history."""
