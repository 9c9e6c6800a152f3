"""The client libraries, by the name that a specification says."""

from __future__ import annotations

from wrackline.plugins.registry import Group, load
from wrackline.workloads.clients.base import Library, Settings
from wrackline.workloads.clients.settings import ClientSettings


def library_of(settings: Settings) -> Library:
    """The library that these settings name. Raises PluginError where its entry point cannot be used."""
    return make_library(settings.client)


def make_library(client: ClientSettings) -> Library:
    """Makes the library by its entry point. Raises PluginError where that cannot be used."""
    made: Library = load(Group.CLIENTS, client.library)(client)
    return made


def try_settings(settings: Settings) -> None:
    """Checks settings with the library, without any host. Raises RefusedSetting with what it says of a value
    that is none, Unavailable where the library cannot be used on this machine."""
    library_of(settings).check(settings)
