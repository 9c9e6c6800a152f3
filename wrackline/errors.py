"""What an error means for whoever has called a command: its message is one line in each case."""

from __future__ import annotations


class InputError(Exception):
    """Something that the user gave is wrong, or is not there: exit code 2."""


class InfrastructureError(Exception):
    """Hosts, a deployment, a client library or the judge failed, and nothing is proved: exit code 4."""
