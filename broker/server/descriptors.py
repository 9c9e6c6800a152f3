"""The open files of the process, shared out between the files of logs and the connections of clients
(RLIMIT_NOFILE)."""

from __future__ import annotations

import resource
from dataclasses import dataclass

_FEWEST = 128
_MOST = 1 << 20
"""More than this nobody needs; without a limit, the number is the size of an int."""
_SPARE = 64
"""For all else: listeners, links to other nodes, files that are open for a moment."""


class TooFew(Exception):
    """One line: how many there are, how many are needed."""


@dataclass(frozen=True, slots=True)
class Share:
    files: int
    """Of logs, that may be open at once."""
    connections: int


def share_out() -> Share:
    """The soft limit is raised to the hard one first, as Java does for Kafka. Raises TooFew."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    expected = _MOST if hard == resource.RLIM_INFINITY else min(hard, _MOST)
    if soft != resource.RLIM_INFINITY and soft < expected:
        resource.setrlimit(resource.RLIMIT_NOFILE, (expected, hard))
        soft = expected
    if expected < _FEWEST:
        raise TooFew(f"the process may open {expected} files, a node needs {_FEWEST}; raise ulimit -n")
    files = (expected - _SPARE) // 2
    return Share(files, expected - _SPARE - files)
