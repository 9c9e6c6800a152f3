"""The client libraries, by the name that a specification says."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from wrackline.workloads.clients.base import Library, Settings
from wrackline.workloads.clients.java.library import Java
from wrackline.workloads.clients.librdkafka.library import Librdkafka
from wrackline.workloads.clients.settings import ClientSettings
from wrackline.workloads.clients.versions import NEWEST

LIBRARIES: Mapping[str, Callable[[ClientSettings], Library]] = {
    Librdkafka.name: lambda _settings: Librdkafka(),
    Java.name: lambda settings: Java(settings.version or NEWEST),
}


def library_of(settings: Settings) -> Library:
    """The library that these settings name."""
    return LIBRARIES[settings.client.library](settings.client)


def try_settings(settings: Settings) -> None:
    """Checks settings with the library, without any host. Raises RefusedSetting with what it says of a value
    that is none, Unavailable where the library cannot be used on this machine."""
    library_of(settings).check(settings)
