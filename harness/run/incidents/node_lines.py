"""Lines of the nodes' files that tell what became of a partition's replica: of Apache Kafka's logs, in the
words of its versions from 0.8 to 4.4, and of our broker's traces."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path
from typing import Any, Final

import orjson

from wrackline.harness.run.clocks import Clocks
from wrackline.history.store import packed

MOST_BYTES: Final = 512 << 20
"""Of one file: a longer one is read so far."""
WIDTH: Final = 480
_OF_EVERY_LINE: Final = ("time_ns", "mono_ns", "step", "node", "incarnation", "seq")
"""Of a trace (docs/invariants.md): the same in every line, or a number of the line."""
_FILES: Final = ("nodes/*/*.log", "nodes/*/trace.jsonl")
_STAMP: Final = re.compile(rb"\[?(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)[.,](\d{3})")
_PARTITION: Final = re.compile(rb"(?:partition=|\btp\":\"|[\s\[/\"(])([\w.-]+)(?:-|,)(\d+)(?![\w-])")
"""The name as far as it goes: log-1-0 is partition 0 of log-1, and tells nothing of log-1."""


class Tells(Enum):
    """The kind of event that a line reports."""

    CUT = "a replica cut its log, or found that its end was gone when it started"
    LEADS = "a replica begins to lead, and where its log ends"
    ELECTED = "the controller has elected a leader"
    LOADED = "a replica has loaded its log as it started, and where that ends"
    BELOW = "a replica is about to cut off what it knew to be committed"
    CUTS = "a follower is about to cut its log, and why"
    FOLLOWS = "a replica begins to follow, and where its log ends"
    COORDINATES = "a coordinator has loaded the groups of a partition"
    RESIGNED = "a coordinator has unloaded the groups of a partition"
    UNCLEAN = "the controller takes a broker's shutdown for unclean: its replicas leave every ISR and ELR"
    REGISTERS = "a broker registers again, and in which broker epoch"
    FENCED = "the controller fences a broker"


_WATERMARK: Final = rb"(?:(?:,| and) high watermark (?P<watermark>\d+))?"
_FROM: Final = (
    rb"(?: from offset (?P<end>\d+)(?: with partition epoch (?P<partition>\d+)" + _WATERMARK + rb")?)?"
)
_PARTITION_EPOCHS: Final = rb"(?:.*\bpartitionEpoch: (?P<partition_was>\d+) -> (?P<partition>\d+))?"
_WORDS: Final = (
    (Tells.CUT, re.compile(rb"runcat(?:ing (?:log \S+ )?to|e and start at) offset (?P<end>\d+)")),
    (Tells.FOLLOWS, re.compile(rb"\bFollower \S+ starts at leader epoch (?P<epoch>\d+)" + _FROM)),
    (Tells.LEADS, re.compile(rb"starts at [Ll]eader [Ee]poch (?P<epoch>\d+)(?= from)" + _FROM)),
    (Tells.ELECTED, re.compile(rb"(?:UNCLEAN partition change|[Nn]ew leader and ISR)" + _PARTITION_EPOCHS)),
    (Tells.LOADED, re.compile(rb"Completed load of [Ll]og.* log[- ]end[- ]offset (?P<end>\d+)")),
    (Tells.BELOW, re.compile(rb"runcating \S+ to offset (?P<end>\d+) below high watermark")),
    (Tells.COORDINATES, re.compile(rb"\bFinished loading (?:of metadata|offsets and group metadata) from ")),
    (Tells.RESIGNED, re.compile(rb"\bFinished unloading (?:metadata for )?__consumer_offsets")),
    (Tells.CUTS, re.compile(rb"runcating \S.*?(?:to offset |offset=)(?P<end>\d+)")),
)
"""The first that fits. What is no line of these says nothing, such as that cutting a log "has no effect"."""
_ROLES: Final = {"leader": Tells.LEADS, "follower": Tells.FOLLOWS}
_TELLING: Final = re.compile(
    rb"runcat|UNCLEAN|ew leader and ISR|starts at |Completed load of|Finished (?:un)?loading|"
    rb"\"role\":\"(?:leader|follower)\""
)
"""Any of them, and few others."""
_OF_BROKERS: Final = (
    (Tells.UNCLEAN, re.compile(rb"\bhandleBrokerUncleanShutdown: changing [1-9]")),
    (
        Tells.REGISTERS,
        re.compile(
            rb"\b[Rr]egistering a new incarnation of broker (?P<broker>\d+)\b"
            rb"(?:.*\b[Bb]roker epoch (?:will become|is) (?P<epoch>\d+))?"
        ),
    ),
    (
        Tells.REGISTERS,
        re.compile(rb"\bnew incarnation of broker (?P<broker>\d+): .*\bbrokerEpoch=(?P<epoch>\d+)"),
    ),
    (Tells.FENCED, re.compile(rb"\bFencing broker (?P<broker>\d+) at epoch (?P<epoch>\d+)")),
)
"""In a controller's log. The first line names no broker: it is that of the registration which follows."""
_TELLING_OF_BROKERS: Final = re.compile(
    rb"handleBrokerUncleanShutdown|new incarnation of broker|Fencing broker"
)


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a node's file about one partition."""

    tells: Tells
    text: str
    """As it is in a log. Of a trace, whose lines are JSON, what it says of the partition, as ``kind truncate,
    to 7``: when and by whom it was written stands in other fields."""
    at_ns: int | None
    """On the run's clock; None: it has no time."""
    end: int | None = None
    """The offset that the log's next record gets then."""
    was: int | None = None
    """The same before the log was cut, if the line says so."""
    leader_epoch: int | None = None
    partition_epoch: int | None = None
    partition_epoch_was: int | None = None
    watermark: int | None = None
    """The high watermark that the replica knows then."""
    broker: int | None = None
    broker_epoch: int | None = None
    host: str = ""
    file: str = ""
    """Below the run's directory, as it is called there: ``.../broker.log.zst`` where it is packed."""
    number: int = 0
    """The first line is 1."""
    label: str = ""
    """The partition; empty where the line is about a broker."""
    is_exact: bool = False
    """False: the hosts' clocks are not on record, and the time is right to a second or two."""

    @property
    def known_ns(self) -> int | None:
        return self.at_ns if self.is_exact else None

    def to_json(self) -> dict[str, Any]:
        return {
            "file": self.file,
            "number": self.number,
            "at_ns": self.known_ns,
            "text": self.text[:WIDTH],
            "words": self.words,
        }

    @property
    def words(self) -> str:
        """Describes the event in one sentence without a full stop."""
        epoch = "" if self.leader_epoch is None else f" in leader epoch {self.leader_epoch}"
        ends = "" if self.end is None else f"; its log ends at {self.end:,}"
        to = "" if self.end is None else f" to {self.end:,}"
        again = "" if self.broker_epoch is None else f" in broker epoch {self.broker_epoch}"
        match self.tells:
            case Tells.CUT:
                since = "" if self.was is None else f" from {self.was:,}"
                return f"{self.host} cut {self.label}{since}{to}"
            case Tells.LEADS:
                watermark = "" if self.watermark is None else f", its high watermark is {self.watermark:,}"
                return f"{self.host} leads {self.label}{epoch}{ends}{watermark}"
            case Tells.COORDINATES:
                return f"{self.host} has loaded the groups of {self.label}, and coordinates them"
            case Tells.RESIGNED:
                return f"{self.host} has unloaded the groups of {self.label}"
            case Tells.FOLLOWS:
                return f"{self.host} follows the leader of {self.label}{epoch}{ends}"
            case Tells.LOADED:
                return f"{self.host} has loaded {self.label}{ends}"
            case Tells.BELOW:
                return f"{self.host} is about to cut {self.label}{to}, below its high watermark"
            case Tells.CUTS:
                return f"{self.host} is about to cut {self.label}{to}"
            case Tells.ELECTED:
                return f"the controller on {self.host} has elected a leader of {self.label}"
            case Tells.UNCLEAN:
                return f"the controller on {self.host} takes the shutdown of broker {self.broker} for unclean"
            case Tells.REGISTERS:
                return f"broker {self.broker} registers again{again}"
            case Tells.FENCED:
                return f"the controller on {self.host} fences broker {self.broker}{again}"


def lines_of(run_dir: Path, wanted: set[str], started_at: str) -> Iterator[Line]:
    """Lines about these partitions, and about brokers that left and came back, file by file. ``started_at``:
    when the run began, by our time of day, for a run that has not put down the hosts' clocks. Raises
    OSError."""
    is_exact, clocks = True, None
    try:
        clocks = Clocks.read(run_dir)
    except (OSError, ValueError):
        is_exact = False
        with suppress(ValueError):
            clocks = Clocks(int(datetime.fromisoformat(started_at).timestamp()) * 1_000_000_000, {})
    for pattern in _FILES:
        for file in packed.found(run_dir, pattern):
            name = file.relative_to(run_dir)
            host = name.parts[1]
            for line in _told(file, wanted):
                at_ns = None if line.at_ns is None or clocks is None else clocks.of_run(line.at_ns, host)
                yield replace(line, host=host, file=name.as_posix(), at_ns=at_ns, is_exact=is_exact)


def _told(file: Path, wanted: set[str]) -> Iterator[Line]:
    """Yields the lines that tell something, with the time by the clock of their host."""
    read, of_line = 0, _of_trace if packed.plain_name(file).suffix == ".jsonl" else _of_log
    unclean: Line | None = None
    with packed.opened(file) as lines:
        for number, text in enumerate(lines, 1):
            read += len(text)
            if read > MOST_BYTES:
                return
            if _TELLING_OF_BROKERS.search(text) and (line := _of_broker(text)) is not None:
                line = replace(line, number=number)
                if line.broker is None:
                    unclean = line
                    continue
                if unclean is not None and line.tells is Tells.REGISTERS:
                    yield replace(unclean, broker=line.broker)
                    unclean = None
                yield line
            elif _TELLING.search(text) and (line := of_line(text)) is not None:
                for label in sorted(_labels(text) & wanted):
                    yield replace(line, number=number, label=label)


def _labels(line: bytes) -> set[str]:
    return {f"{topic.decode()}-{partition.decode()}" for topic, partition in _PARTITION.findall(line)}


def _of_log(line: bytes) -> Line | None:
    for tells, words in _WORDS:
        if (match := words.search(line)) is not None:
            numbers = _numbers(match)
            return Line(
                tells,
                line.decode(errors="replace").rstrip(),
                _stamp_ns(line),
                numbers.get("end"),
                leader_epoch=numbers.get("epoch"),
                partition_epoch=numbers.get("partition"),
                partition_epoch_was=numbers.get("partition_was"),
                watermark=numbers.get("watermark"),
            )
    return None


def _of_broker(line: bytes) -> Line | None:
    for tells, words in _OF_BROKERS:
        if (match := words.search(line)) is not None:
            numbers = _numbers(match)
            text = line.decode(errors="replace").rstrip()
            broker, epoch = numbers.get("broker"), numbers.get("epoch")
            return Line(tells, text, _stamp_ns(line), broker=broker, broker_epoch=epoch)
    return None


def _numbers(found: re.Match[bytes]) -> dict[str, int]:
    return {name: int(one) for name, one in found.groupdict().items() if one is not None}


def _of_trace(line: bytes) -> Line | None:
    try:
        said = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None  # cut short by a crash
    if not isinstance(said, dict):
        return None
    text = ", ".join(f"{name} {value}" for name, value in said.items() if name not in _OF_EVERY_LINE)
    at_ns = said.get("time_ns")
    match said.get("kind"):
        case "truncate":
            return Line(Tells.CUT, text, at_ns, said.get("to"), said.get("was"))
        case "role" if said.get("role") in _ROLES:
            return Line(
                _ROLES[said["role"]],
                text,
                at_ns,
                said.get("leo"),
                leader_epoch=said.get("leader_epoch"),
                partition_epoch=said.get("partition_epoch"),
            )
    return None


def _stamp_ns(line: bytes) -> int | None:
    """The time of day that a log's line begins with; hosts have UTC."""
    match = _STAMP.search(line, 0, 40)
    if match is None:
        return None
    at = datetime.fromisoformat(match[1].decode()).replace(tzinfo=UTC)
    return int(at.timestamp()) * 1_000_000_000 + int(match[2]) * 1_000_000
