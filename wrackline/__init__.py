"""Wrackline: a test harness for replicated brokers that speak Kafka's protocol, and a broker of its own."""

import sys
from importlib import import_module


def import_kio() -> None:
    """Import kio's types without hypothesis. Where hypothesis is installed, kio imports it to draw examples
    of its types. Nobody but a test draws any, and importing hypothesis would be half of each start of a node
    and a fourth of each start of a run, and would leave a folder ``.hypothesis``."""
    if "hypothesis" in sys.modules:
        return  # the process tests with it
    sys.modules["hypothesis"] = None  # type: ignore[assignment]  # so that importing it fails: a rule of Python
    try:
        import_module("kio.static.primitive")
    finally:
        del sys.modules["hypothesis"]
