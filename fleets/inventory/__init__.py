"""Hosts of an Ansible inventory, which are there before and after: the fleet ``inventory``."""
