"""Domains of a libvirt of this machine: the fleet ``libvirt``."""
