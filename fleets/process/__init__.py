"""Hosts as folders of this machine: the fleet ``process``, which needs no root."""
