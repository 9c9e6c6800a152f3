"""The check of a specification's settings by an installed version of Kafka, before there is any host.

A node passes over a setting that it does not know, so a name that is nearly one of its own is refused here: a
run would go on with other settings than it was asked for. Others may be a plug-in's. Of a topic the cluster
itself refuses what it does not know.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping

import orjson

from wrackline.systems.base import About, Refusal
from wrackline.systems.jvm.store import Release

_UNLISTED = ("internal.", "unstable.", "listener.name.")
"""Beginnings of settings that the server's own list leaves out."""
_WHOLE = ("int", "long", "short")


def refused(
    release: Release, config: Mapping[str, str | int | float | bool], topic: Mapping[str, str]
) -> Iterator[Refusal]:
    """Names and values of nodes' and of the topic's settings that this version would not take."""
    known = orjson.loads((release.folder / "settings.json").read_bytes())
    server = f"Kafka {release.version}"
    for about, given, types in (
        (About.CONFIG, config, known["broker"]),
        (About.TOPIC_CONFIG, topic, known["topic"]),
    ):
        for key, value in given.items():
            if key.startswith(_UNLISTED) or not types:
                continue
            if key in types:
                if error := _wrong(types[key], str(value).lower()):
                    yield Refusal(about, key, f"{server} takes {error}, not {value!r}")
            elif near := difflib.get_close_matches(key, types, 1, cutoff=0.85):
                yield Refusal(about, key, f"{server} has no such setting; did you mean {near[0]}?")
            elif about is About.TOPIC_CONFIG:
                yield Refusal(about, key, f"{server} has no such setting of topics")


def _wrong(kind: str, value: str) -> str:
    """Returns what would be right, where the value is not."""
    if kind in _WHOLE and not value.removeprefix("-").isdigit():
        return "a whole number"
    if kind == "boolean" and value not in ("true", "false"):
        return "true or false"
    return ""
