"""What the nodes' own files say of incidents: how far replicas cut their logs, and the lines that a person
wants to see, with file and number. They are looked for near the time of each incident, in the nodes' logs and
traces."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import orjson

from wrackline.checkers.verdict.incidents.sentences import in_full
from wrackline.harness.run.clocks import Clocks
from wrackline.history import packed

MOST_LINES: Final = 6
"""Of one incident."""
MOST_BYTES: Final = 512 << 20
"""Of one file: a longer one is read so far."""
WIDTH: Final = 320
BEFORE_NS: Final = 2_000_000_000
AFTER_NS: Final = 5_000_000_000
_OF_EVERY_LINE: Final = ("time_ns", "mono_ns", "step", "node", "incarnation", "seq")
"""Of a trace (docs/invariants.md): the same in every line, or a number of the line."""
_FILES: Final = ("nodes/*/*.log", "nodes/*/trace.jsonl")
_TELLING: Final = re.compile(
    rb"runcat|UNCLEAN|(?:starts at|becoming?|became) .*leader|[Ll]eader.{0,3}[Ee]poch|\"role\":\"leader\""
)
_CUT: Final = re.compile(rb"[Tt]runcating .*?(?:to offset |offset=|to )(\d+)")
_STAMP: Final = re.compile(rb"\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)[.,](\d{3})")
_PARTITION: Final = re.compile(rb"(?:partition=|\btp\":\"|[\s\[/\"])([\w.]+?)(?:-|,)(\d+)\b")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a node's file about one partition."""

    host: str
    file: str
    """Below the run's directory, as it is called when it is not packed."""
    number: int
    """The first line is 1."""
    at_ns: int | None
    """On the run's clock; None: it has no time."""
    is_exact: bool
    """False: the hosts' clocks are not on record, and the time is right to a second or two."""
    text: str
    """As it is in a log. Of a trace, whose lines are JSON, what it says of the partition, as ``kind truncate,
    to 7``: when and by whom it was written stands in other fields."""
    label: str
    """The partition."""
    cut_to: int | None = None
    """A replica cut its log to end here."""
    was: int | None = None
    """Where the log had ended, if the line says so."""

    def to_json(self) -> dict[str, Any]:
        at_ns = self.at_ns if self.is_exact else None
        return {"file": self.file, "number": self.number, "at_ns": at_ns, "text": self.text[:WIDTH]}


def add_lines(run_dir: Path, verdict: dict[str, Any], started_at: str = "") -> bool:
    """Add to each incident of a partition its ``lines`` and ``truncations``, and what they say of its
    mechanism. ``started_at``: when the run began, by our time of day, for a run that has not put down the
    hosts' clocks. Returns whether any were found. Raises OSError."""
    incidents = [one for one in verdict.get("incidents", ()) if one["topic"] is not None]
    if not incidents:
        return False
    wanted = {f"{one['topic']}-{one['partition']}" for one in incidents}
    found = list(_lines(run_dir, wanted, started_at))
    for one in incidents:
        near = [line for line in found if _is_near(line, one)]
        one["lines"] = [line.to_json() for line in _chosen(near, one)]
        cuts = sorted((line for line in near if _cuts(line, one)), key=lambda line: line.at_ns or 0)
        one["truncations"] = [_truncation(line) for line in cuts[:MOST_LINES]]
        _retold(verdict, one)
    return any(one["lines"] for one in incidents)


def _is_near(line: Line, incident: Mapping[str, Any]) -> bool:
    if line.label != f"{incident['topic']}-{incident['partition']}":
        return False
    begin, end = incident["first_ns"], max(incident["last_ns"] or 0, incident["at_ns"] or 0)
    if line.at_ns is None or begin is None:
        return True
    return bool(begin - BEFORE_NS <= line.at_ns <= end + AFTER_NS)


def _cuts(line: Line, incident: Mapping[str, Any]) -> bool:
    """Whether a replica's log was cut to before the last offset of the incident, and not from below the
    first."""
    last = incident["last_offset"]
    if line.cut_to is None or last is None or line.cut_to > last:
        return False
    return line.was is None or line.was > max(incident["first_offset"], line.cut_to)


def _chosen(near: Sequence[Line], incident: Mapping[str, Any]) -> list[Line]:
    """Lines of logs that were cut go before others, and lines near the change of leader before those far
    from it; those chosen are in the order of time."""
    at = incident["at_ns"] or incident["last_ns"] or 0
    by_weight = sorted(near, key=lambda line: (not _cuts(line, incident), abs((line.at_ns or at) - at)))
    return sorted(by_weight[:MOST_LINES], key=lambda line: (line.at_ns or at, line.file, line.number))


def _truncation(line: Line) -> dict[str, Any]:
    at_ns = line.at_ns if line.is_exact else None
    return {"node": line.host, "at_ns": at_ns, "to": line.cut_to, "was": line.was}


def _retold(verdict: dict[str, Any], incident: dict[str, Any]) -> None:
    """The replica that led afterwards had cut its log: that is part of how it came about."""
    leader = (incident["leader_after"] or {}).get("leader")
    own = [one for one in incident["truncations"] if one["node"] == leader and one["at_ns"] is not None]
    before = [one for one in own if incident["at_ns"] is None or one["at_ns"] <= incident["at_ns"] + AFTER_NS]
    if not before:
        return
    cut = before[-1]
    ended = "" if cut["was"] is None else f"from offset {cut['was']:,} "
    said = f"{leader} had cut its log {ended}to {cut['to']:,} at {cut['at_ns'] / 1e9:,.3f} s."
    before_that = in_full(incident)
    incident["mechanism"] = [*incident["mechanism"], said]
    now = in_full(incident)
    verdict["reasons"] = [now if reason == before_that else reason for reason in verdict["reasons"]]


def _lines(run_dir: Path, wanted: set[str], started_at: str) -> Iterator[Line]:
    is_exact, clocks = True, None
    try:
        clocks = Clocks.read(run_dir)
    except (OSError, ValueError):
        is_exact = False
        with suppress(ValueError):
            clocks = Clocks(int(datetime.fromisoformat(started_at).timestamp()) * 1_000_000_000, {})
    for pattern in _FILES:
        for file in packed.found(run_dir, pattern):
            name = packed.plain_name(file).relative_to(run_dir)
            read = 0
            with packed.opened(file) as lines:
                for number, line in enumerate(lines, 1):
                    read += len(line)
                    if read > MOST_BYTES:
                        break
                    if _TELLING.search(line):
                        for one in _line(name, number, line, wanted, clocks):
                            yield replace(one, is_exact=is_exact)


def _line(name: Path, number: int, line: bytes, wanted: set[str], clocks: Clocks | None) -> Iterator[Line]:
    labels = {f"{topic.decode()}-{part.decode()}" for topic, part in _PARTITION.findall(line)}
    host = name.parts[1]
    for label in sorted(labels & wanted):
        said: dict[str, Any] = {}
        if name.suffix == ".jsonl":
            try:
                said = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue  # cut short by a crash
            if said.get("kind") not in ("truncate", "role"):
                continue
        cut = None if b"no effect" in line else _CUT.search(line)
        cut_to = said.get("to") if said.get("kind") == "truncate" else int(cut[1]) if cut else None
        at_ns = said.get("time_ns") or _stamp_ns(line)
        yield Line(
            host,
            name.as_posix(),
            number,
            None if at_ns is None or clocks is None else clocks.of_run(at_ns, host),
            True,
            _readable(said) if said else line.decode(errors="replace").rstrip(),
            label,
            cut_to,
            said.get("was"),
        )


def _readable(said: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in said.items() if name not in _OF_EVERY_LINE)


def _stamp_ns(line: bytes) -> int | None:
    """The time of day that a log's line begins with; hosts have UTC."""
    found = _STAMP.search(line, 0, 40)
    if found is None:
        return None
    at = datetime.fromisoformat(found[1].decode()).replace(tzinfo=UTC)
    return int(at.timestamp()) * 1_000_000_000 + int(found[2]) * 1_000_000
