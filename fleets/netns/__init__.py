"""Hosts in namespaces of this machine: the fleet ``netns``."""
