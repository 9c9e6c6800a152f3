"""Names of the directories of logs: Kafka's names."""

from __future__ import annotations

import re
from uuid import uuid4

from wrackline.broker.model.types import TopicPartition

DOOMED = "-delete"
"""How the name of a log ends that is being removed."""
_LOG = re.compile(r"^(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>\d{1,9})$")
_NAME_MAX = 255
"""Bytes a file name may have, on every file system we know."""


def log_of(name: str) -> TopicPartition | None:
    """Returns whose log is in a directory of this name; None: it is that of no log."""
    match = _LOG.match(name)
    return None if match is None else TopicPartition(match["topic"], int(match["partition"]))


def unused(tp: TopicPartition, ending: str) -> str:
    """Returns a name for a directory that is no log any more: the log's name, the topic shortened to what
    fits."""
    suffix = f"-{tp.partition}.{uuid4().hex}{ending}"
    return tp.topic[: _NAME_MAX - len(suffix)] + suffix
