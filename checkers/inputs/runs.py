"""The runs to be judged, as the driver knows them: configuration, faults, phases, final reads.

Only rows that a run has few of are read here (nemesis, runner, edges of splits), never the records: what
grows with the number of operations is the executor's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from wrackline.checkers.inputs.course import Course, Trouble, trouble_of
from wrackline.checkers.inputs.final_reads import FinalRead, ReplicaRead, SecondReading
from wrackline.checkers.inputs.row_groups import Split, count_facts, splits_of
from wrackline.checkers.inputs.scan import (
    LateCompletion,
    Partners,
    SplitSummary,
    latest,
    partners,
    scan_split,
)
from wrackline.checkers.inputs.validity import Incomplete, Senseless, check_footer, check_tally
from wrackline.errors import InputError
from wrackline.history import HistoryError, history_files, read_info
from wrackline.history.model import (
    CONTROL,
    DIED,
    LIVENESS,
    NEMESIS,
    PARTITION,
    REPLICA,
    Event,
    RunInfo,
    Type,
)
from wrackline.history.store.addresses import parquet
from wrackline.history.store.files import info_in
from wrackline.history.store.tally import Tally, tally_in

NO_HISTORY = (
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    AssertionError,
    NotImplementedError,
)
"""What numbers and words that no event has can raise."""
BROKEN = (OSError, *NO_HISTORY)
"""... and bytes that are gone."""


class AnalysisError(InputError):
    """A run cannot be judged. One line: which file, what is wrong, the way out."""

    judged: Mapping[Path, dict[str, Any]] = MappingProxyType({})
    """The verdicts of the other runs, by directory: they were judged nevertheless."""


@dataclass(slots=True)
class Fault:
    """A fault as the nemesis wrote it down; times from the start of the run."""

    id: str
    name: str
    targets: tuple[str, ...] = ()
    role: str = ""
    begin_ns: int | None = None
    active_ns: int | None = None
    undo_ns: int | None = None
    ended_ns: int | None = None
    proved: bool = False
    """By its ``ended`` row alone: the proof before that is preliminary."""
    proof: str = ""
    error: str = ""
    lossy: tuple[str, ...] = ()
    lost: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    damaged: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Host -> file -> bytes that had been synced and are others now, or gone; a host without files has lost
    its whole disk, or got an older one."""
    unsure: tuple[str, ...] = ()
    """Hosts that may have lost what they had not synced: nobody could look."""
    restored: bool | None = None
    """Whether nothing of it was left after its undo, by the last row that says so; None: nobody could tell,
    or an older version did not look."""
    restoration: str = ""
    """What was left, or that nothing was."""

    @property
    def asked_for(self) -> bool:
        """False: a node or host that nobody stopped was gone."""
        return self.name != DIED

    @property
    def title(self) -> str:
        """``power cut of n2``."""
        name = "death" if self.name == DIED else self.name.replace("-", " ").replace("_", " ")
        return f"{name} of {' and '.join(self.targets)}" if self.targets else name

    @property
    def struck_ns(self) -> int:
        """When it took effect, as far as is known."""
        times = (self.active_ns, self.begin_ns, self.undo_ns, self.ended_ns)
        return next((time for time in times if time is not None), 0)


@dataclass(frozen=True, slots=True)
class Phase:
    name: str
    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The metadata of one partition at one moment."""

    time_ns: int
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    elr: tuple[int, ...] = ()

    @property
    def full_isr(self) -> bool:
        return set(self.isr) == set(self.replicas)


Place = tuple[str, int]
"""(topic, partition)"""


@dataclass(frozen=True, slots=True)
class Stall:
    """Something that did not move at one look at a promise of liveness."""

    time_ns: int
    promise: str
    """The name of its anomaly."""
    look: int
    """The number of the look, among those at this promise."""
    subject: str
    bound_s: float
    excuse: str
    place: Place | None


@dataclass(slots=True)
class Run:
    directory: Path
    info: RunInfo
    files: list[str]
    """Paths, or addresses (wrackline.history.store.addresses)."""
    faults: list[Fault] = field(default_factory=list)
    phases: list[Phase] = field(default_factory=list)
    assignment: dict[Place, tuple[int, ...]] = field(default_factory=dict)
    nodes: dict[int, str] = field(default_factory=dict)
    """Node id -> host name."""
    cluster: dict[Place, list[Sample]] = field(default_factory=dict)
    controllers: list[tuple[int, int]] = field(default_factory=list)
    """What metadata said of the active controller: when (ns), and which node; -1: none."""
    isrs: dict[Place, list[tuple[int, ...]]] = field(default_factory=dict)
    """The ISR after each change that the system itself wrote down, in order; empty where it wrote nothing."""
    changes: list[Event] = field(default_factory=list)
    """The rows of these changes (wrackline.checkers.inputs.cluster_history)."""
    final: dict[Place, FinalRead] = field(default_factory=dict)
    drains: dict[Place, FinalRead] = field(default_factory=dict)
    """The same, and those that gave nothing."""
    replicas: dict[Place, dict[str, ReplicaRead]] = field(default_factory=dict)
    second: dict[Place, list[SecondReading]] = field(default_factory=dict)
    """Of witnesses that were asked again."""
    stalls: list[Stall] = field(default_factory=list)
    """What did not move when promises of liveness were looked at, in order."""
    looks: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Promise -> the number of the last look that is on record, and why nobody could tell then; empty where
    somebody could."""
    deletions: dict[Place, int] = field(default_factory=dict)
    """The largest offset below which clients asked to delete the records of a partition (``delete``)."""
    crashes: list[int] = field(default_factory=list)
    """When members of groups crashed: the others wait until their group has put them out."""
    end_ns: int = 0
    rows: int = 0
    tally: Tally | None = None
    """How many rows of each kind were written; None: the history does not say it."""
    facts: int = 0
    """Records and events, as the footers of its files count them."""
    splits: list[Split] = field(default_factory=list)
    """Parts of the history, to be read in parallel."""
    partners: dict[int, Partners] = field(default_factory=dict)
    """By split: operations that begin or end in another."""
    topics: list[str] = field(default_factory=list)
    """Every topic that an event names."""
    kinds: frozenset[str] = frozenset()
    """Every kind of operation (f) that clients did."""
    trouble: Trouble | None = None
    """What broke down on the harness's side."""
    course: Course = field(default_factory=Course)

    @property
    def places(self) -> list[Place]:
        return [(topic.name, p) for topic in self.info.topics for p in range(topic.partitions)]

    def host(self, node_id: int) -> str:
        return self.nodes.get(node_id, f"node {node_id}")

    def node_id(self, host: str) -> int | None:
        return next((node for node, name in self.nodes.items() if name == host), None)


def deletes(run: Run) -> bool:
    """Tells whether anything deletes records from the beginning of a log in this run."""
    return bool(run.deletions) or any(topic.deletion for topic in run.info.topics)


def compacts(run: Run) -> bool:
    """Tells whether a topic of this run is compacted."""
    return any(topic.compacted for topic in run.info.topics)


def load_run(directory: Path) -> Run:
    """Loads everything of a run but its operations. Raises AnalysisError."""
    run = open_run(directory)
    return scanned(run, [scanned_split(split) for split in run.splits])


def open_run(directory: Path, number: int = 0, history: str = "") -> Run:
    """A run as its files' footers tell it; ``scanned`` adds what its events tell. ``history``: its address,
    where it is not in the directory. Raises AnalysisError."""
    trouble = trouble_of(directory)
    try:
        files = [history] if history else [str(file) for file in history_files(directory, check=False)]
        info = _info_at(history) if history else read_info(directory)
        tallies = [_check_footer(file, info.test_id) for file in files]
        splits = [split for file in files for split in splits_of(number, file)]
        facts = sum(count_facts(file) for file in files)
    except (HistoryError, *BROKEN) as error:
        if trouble is not None:
            return Run(directory, _info_without_history(directory), [], trouble=trouble)
        where = history or str(directory)
        said = str(error) if where in str(error) else unreadable(where, error)
        raise AnalysisError(said) from error
    run = Run(directory, info, files, trouble=trouble, splits=splits, facts=facts, tally=tallies[0])
    run.nodes = {int(node): host for node, host in info.nodes.items() if str(node).isdigit()}
    return run


def _info_at(address: str) -> RunInfo:
    """Raises HistoryError, OSError or ValueError."""
    with parquet(address) as file:
        return info_in(file, address)


def _check_footer(path: str, test_id: str) -> Tally | None:
    """Checks the footer of a history; returns how many rows of each kind the history says it has. Raises
    OSError or ValueError."""
    with parquet(path) as file:
        try:
            check_footer(file, test_id)
            return tally_in(file)
        except Senseless as error:
            raise Senseless(unreadable(path, error)) from error


def scanned_split(split: Split) -> SplitSummary:
    """A split that cannot be read says so in ``problem``: the other runs are still to be judged."""
    try:
        return scan_split(split)
    except BROKEN as error:
        return SplitSummary(split.run, split.number, problem=unreadable(split.path, error))


def unreadable(path: str, error: Exception) -> str:
    """Describes what is wrong with a history, in one line."""
    if isinstance(error, Incomplete):
        return f"{path}: is incomplete ({error}); restore it from a copy or run the test again"
    if isinstance(error, Senseless):
        return f"{path}: makes no sense ({error}); restore it from a copy or run the test again"
    first = (str(error).splitlines() or [type(error).__name__])[0]
    return f"{path}: corrupt or truncated ({first}); restore it from a copy or run the test again"


def scanned(run: Run, scans: Sequence[SplitSummary]) -> Run:
    """Takes up what the splits of a run had to say. Raises AnalysisError."""
    phases: list[tuple[str, int]] = []
    tally: Counter[str] = Counter()
    for one in sorted(scans, key=lambda one: one.number):
        if one.problem:
            raise AnalysisError(one.problem)
        try:
            for row in one.rows:
                if row["test_id"] != run.info.test_id:
                    raise ValueError(
                        f"row {row['index']} is of test {row['test_id']}, not {run.info.test_id}"
                    )
                _take(run, row, phases)
        except BROKEN as error:
            first = (str(error).splitlines() or [type(error).__name__])[0]
            raise AnalysisError(
                f"{run.directory}: rows of nemesis or runner make no sense ({first})"
            ) from error
        run.rows += one.events
        tally.update(one.tally)
        run.end_ns = max(run.end_ns, one.end_ns)
        run.topics += [topic for topic in one.topics if topic not in run.topics]
        run.kinds |= set(one.kinds)
        for topic, partition, offset in one.deletions:
            earlier = run.deletions.get((topic, partition), 0)
            run.deletions[topic, partition] = max(earlier, offset)
    try:
        check_tally(run.tally, tally)
    except Incomplete as error:
        raise AnalysisError(unreadable(run.files[0], error)) from error
    ends = [time for _, time in phases[1:]] + [run.end_ns]
    run.phases = [
        Phase(name, begin, max(begin, end)) for (name, begin), end in zip(phases, ends, strict=False)
    ]
    run.partners = partners(list(scans))
    began = {place: one.began for place, one in run.drains.items() if one.began is not None}
    for place, late_ns in latest(_answers(scans), began).items():
        run.final.setdefault(place, run.drains[place]).late_ns = late_ns
    return run


def _answers(
    scans: Sequence[SplitSummary],
) -> Iterator[tuple[list[LateCompletion], tuple[int, int] | None, bool]]:
    begun = False
    for one in sorted(scans, key=lambda one: one.number):
        yield one.late, one.unplaced, begun
        begun = begun or any(row["f"] == "drain" for row in one.rows)


def _info_without_history(directory: Path) -> RunInfo:
    """A run that failed before its first event may have no history, only ``run.json`` or not even that."""
    try:
        return RunInfo.from_json((directory / "run.json").read_bytes())
    except (OSError, ValueError):
        return RunInfo(directory.name, directory.name, 0, "", "", "", "all", False, ())


def _take(run: Run, row: Mapping[str, Any], phases: list[tuple[str, int]]) -> None:
    match row["process"], row["f"]:
        case int(process), _ if process == NEMESIS:
            _take_fault(run, row)
        case int(process), "phase" if process == CONTROL:
            phases.append((str(row["extra"]["phase"]), row["time_ns"]))
        case int(process), "assignment" if process == CONTROL:
            _take_assignment(run, row)
        case int(process), "cluster" if process == CONTROL:
            _take_cluster(run, row)
        case int(process), f if process == CONTROL and f == PARTITION:
            run.isrs.setdefault(_place(row), []).append(tuple(row["extra"]["isr"]))
            run.changes.append(_change(row))
        case int(process), f if process == CONTROL and f == LIVENESS:
            _take_look(run, row)
        case int(process), str(f) if process == CONTROL:
            run.course.take(f, row["extra"])
        case int(process), "replica" if process == REPLICA:
            _take_replica(run, row)
        case int(process), "reread" if process == REPLICA:
            run.second.setdefault(_place(row), []).append(SecondReading.of(row))
        case _, "drain":
            _take_final(run, row)
        case _, "crash":
            run.crashes.append(row["time_ns"])


def _take_fault(run: Run, row: Mapping[str, Any]) -> None:
    extra, time = row["extra"], row["time_ns"]
    fault = next((fault for fault in run.faults if fault.id == str(extra["id"])), None)
    if fault is None:
        fault = Fault(str(extra["id"]), row["f"])
        run.faults.append(fault)
    fault.targets = tuple(extra.get("targets") or fault.targets)
    fault.role = str(extra.get("role") or fault.role)
    fault.proof = str(extra.get("proof") or fault.proof)
    fault.error = str(extra.get("error") or fault.error)
    fault.restored = extra.get("restored", fault.restored)
    fault.restoration = str(extra.get("restoration") or fault.restoration)
    fault.lossy = tuple(extra.get("lossy") or fault.lossy)
    fault.lost = extra.get("lost") or fault.lost
    fault.damaged = extra.get("damaged") or fault.damaged
    fault.unsure = tuple(extra.get("unsure") or fault.unsure)
    match extra["phase"]:
        case "begin":
            fault.begin_ns = time
        case "active":
            fault.active_ns = time
        case "undo":
            fault.undo_ns = time
        case "ended":
            fault.ended_ns = time
            fault.proved = extra.get("proved") is True


def _take_assignment(run: Run, row: Mapping[str, Any]) -> None:
    for partition, nodes in row["extra"]["assignment"].items():
        run.assignment[row["topic"], int(partition)] = tuple(nodes)
    run.nodes |= {int(node): host for node, host in (row["extra"].get("nodes") or {}).items()}


def _take_cluster(run: Run, row: Mapping[str, Any]) -> None:
    if (controller := row["extra"].get("controller")) is not None:
        run.controllers.append((row["time_ns"], int(controller)))
    for said in row["extra"].get("partitions", ()):
        place = (said["topic"], int(said["partition"]))
        sample = Sample(
            row["time_ns"],
            int(said.get("leader", -1)),
            int(said.get("leader_epoch", -1)),
            tuple(said.get("isr") or ()),
            tuple(said.get("replicas") or run.assignment.get(place, ())),
            tuple(said.get("elr") or ()),
        )
        run.cluster.setdefault(place, []).append(sample)


def _take_look(run: Run, row: Mapping[str, Any]) -> None:
    extra = row["extra"]
    promise, look = str(extra["promise"]), int(extra["look"])
    run.looks[promise] = (look, str(extra.get("error") or ""))
    if extra.get("kept") is False:
        place = None if None in (row["topic"], row["partition"]) else _place(row)
        subject, bound_s, excuse = extra["subject"], extra["bound_s"], extra["excuse"]
        run.stalls.append(Stall(row["time_ns"], promise, look, subject, bound_s, excuse, place))


def _change(row: Mapping[str, Any]) -> Event:
    topic, partition = _place(row)
    return Event(
        CONTROL,
        Type.INFO,
        PARTITION,
        topic=topic,
        partition=partition,
        leader_epoch=row["leader_epoch"],
        extra=row["extra"],
    )


def _place(row: Mapping[str, Any]) -> Place:
    if row["topic"] is None or row["partition"] is None:
        raise ValueError(f"event {row['index']}, a {row['f']}, is of no partition")
    return row["topic"], row["partition"]


def _take_final(run: Run, row: Mapping[str, Any]) -> None:
    place = _place(row)
    final = run.drains.setdefault(place, FinalRead())
    final.take(row)
    if row["type"] == "ok":
        run.final[place] = final


def _take_replica(run: Run, row: Mapping[str, Any]) -> None:
    if row["type"] == "ok":
        of_place = run.replicas.setdefault(_place(row), {})
        of_place.setdefault(str(row["node"]), ReplicaRead()).take(row)
