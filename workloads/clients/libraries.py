"""The client libraries, by the name that a specification says."""

from __future__ import annotations

from collections.abc import Mapping

from wrackline.workloads.clients.base import Library, Settings
from wrackline.workloads.clients.librdkafka.library import Librdkafka

LIBRARIES: Mapping[str, type[Library]] = {Librdkafka.name: Librdkafka}


def library_of(settings: Settings) -> Library:
    """The library that these settings name."""
    return LIBRARIES[settings.client.library]()


def try_settings(settings: Settings) -> None:
    """Make one client of each kind, which connects nowhere, and end it. Raises RefusedSetting with what the
    library says of a value that is none."""
    library = library_of(settings)
    library.producer("", settings).close()
    library.consumer("", settings).close()
