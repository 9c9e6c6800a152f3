"""The replicated broker under test: Kafka's replication protocol behind Kafka's wire protocol."""

import sys
from importlib import import_module


def _import_kio() -> None:
    """kio's types, without hypothesis. Where hypothesis is installed, kio imports it to draw examples of its
    types. No node draws any, and importing hypothesis would be half of each start of a node."""
    if "hypothesis" in sys.modules:
        return  # the process tests with it
    sys.modules["hypothesis"] = None  # type: ignore[assignment]  # so that importing it fails: a rule of Python
    try:
        import_module("kio.static.primitive")
    finally:
        del sys.modules["hypothesis"]


_import_kio()
