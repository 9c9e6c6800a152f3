"""What the nodes' own logs say of records that are gone, so that nobody has to take our word for a loss.

Looked for only where a loss was found, and only in logs of Apache Kafka: ours writes no such lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wrackline.checkers.verdict.system_words import is_kafka
from wrackline.history import packed
from wrackline.history.model import RunInfo

MOST = 2
"""Lines of a kind: every node writes some of them."""
WIDTH = 320
"""Characters of a line that are kept."""
_WORDS = (
    r"UNCLEAN partition change for {topic}-\d+ ",
    r"Truncating {topic}-\d+ to offset \d+ below high watermark",
    r"UnifiedLog partition={topic}-\d+,.*\] Truncating to offset \d+",
    r"Completed load of Log\(dir=\S*/{topic}-\d+,.*logEndOffset=\d+",
)
"""A leader was elected that may lack records; a replica cut its log below what it knew to be committed; a
replica cut its log; where the log ended that a node found when it started."""


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a node's log."""

    file: str
    """Below the run's directory."""
    number: int
    """The first line is 1."""
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.number}: {self.text}"


def words_of_loss(run_dir: Path, info: RunInfo, verdict: Mapping[str, Any]) -> list[Line]:
    """The telling lines about the run's topics, the most telling kind first; empty where nothing was lost.
    Raises OSError."""
    if not is_kafka(info):
        return []
    from wrackline.checkers.anomalies.registry import checks  # imports every check, which takes a second

    of_loss = {one.name for one in checks() if one.is_loss}
    if not any(each["count"] for each in verdict.get("anomalies", ()) if each["anomaly"] in of_loss):
        return []
    topics = "|".join(re.escape(topic.name) for topic in info.topics)
    patterns = [re.compile(words.format(topic=f"(?:{topics})")) for words in _WORDS]
    found: list[list[Line]] = [[] for _ in patterns]
    for line in _lines(run_dir):
        for pattern, kept in zip(patterns, found, strict=True):
            if pattern.search(line.text):
                kept.append(line)
    return [Line(each.file, each.number, each.text[:WIDTH]) for kept in found for each in kept[:MOST]]


def _lines(run_dir: Path) -> Iterator[Line]:
    for file in packed.found(run_dir, "nodes/*/broker.log"):
        name = packed.plain_name(file).relative_to(run_dir).as_posix()
        with packed.opened(file) as lines:
            for number, line in enumerate(lines, 1):
                yield Line(name, number, line.decode(errors="replace").rstrip())
