"""Scenes of the ZooKeeper era in virtual time, and how often random runs tell one by chance."""
