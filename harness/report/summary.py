"""The parts of the report that come from the verdict and the metrics: contract, conditions, anomalies and
figures."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wrackline.checkers.findings import WORST_FIRST, Meaning, Verdict
from wrackline.checkers.verdict import system_words
from wrackline.harness.report.glossary import Entry, explain, rank
from wrackline.harness.report.read.faults import Fault
from wrackline.harness.report.read.files import Gap, RunFiles, mapping, numeric, rows, texts, whole
from wrackline.history.wording import duration, milliseconds, number, partition_label, plural, size

_OF_TRANSACTIONS: Final = ("ends_asked", "committed", "aborted", "unknown")


@dataclass(frozen=True, slots=True)
class Contract:
    name: str
    row: str
    promise: str
    because: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Other:
    """The same run, judged by another contract."""

    contract: str
    verdict: str
    headline: str


@dataclass(frozen=True, slots=True)
class Condition:
    name: str
    ok: bool
    detail: str


@dataclass(frozen=True, slots=True)
class Anomaly:
    name: str
    meaning: str
    count: int
    why: str
    entry: Entry
    in_violations: int = 0
    """So many of the findings belong to incidents that break the contract."""

    @property
    def is_evidence(self) -> bool:
        """Tells whether all findings belong to incidents that break the contract, and are allowed by
        themselves."""
        return self.meaning != Meaning.VIOLATION and 0 < self.count <= self.in_violations


@dataclass(frozen=True, slots=True)
class Tile:
    label: str
    figure: str
    note: str = ""
    bad: bool = False


@dataclass(frozen=True, slots=True)
class Gone:
    """The time without acks of one partition during one fault; times count from the fault's injection."""

    where: str
    gap_ms: float | None
    last_ack_ns: float | None
    first_ack_ns: float | None
    full_isr_ns: float | None
    isr_shrank: bool | None = None
    """None: before the next fault metadata showed nothing."""

    @property
    def full_isr(self) -> str:
        """Returns how long it took until the ISR was full again, or why that is not known."""
        if self.full_isr_ns is not None:
            return duration(self.full_isr_ns)
        return {True: "not by the end", False: "stayed full", None: "not measured"}[self.isr_shrank]


@dataclass(frozen=True, slots=True)
class FaultRow:
    fault: Fault
    gone: tuple[Gone, ...]

    @property
    def worst_gap_ms(self) -> float | None:
        return max((g.gap_ms for g in self.gone if g.gap_ms is not None), default=None)

    @property
    def full_isr(self) -> str:
        """Returns the time until the ISR was full again of the partition that took longest; one that was not
        full again by the end took longest of all."""
        worst = max(
            self.gone,
            key=lambda gone: (
                gone.isr_shrank is True and gone.full_isr_ns is None,
                gone.full_isr_ns or -1,
                gone.isr_shrank is None,
            ),
            default=None,
        )
        return "–" if worst is None else worst.full_isr


# the verdict ------------------------------------------------------------------------------------------------


def run_id(files: RunFiles) -> str:
    return (
        files.info.test_id
        if files.info
        else str((files.verdict or {}).get("test_id") or files.directory.name)
    )


def run_name(files: RunFiles) -> str:
    return files.info.name if files.info else str((files.verdict or {}).get("name") or files.directory.name)


def headline_of(files: RunFiles) -> str:
    if files.verdict is None:
        command = f"wrackline analyze {files.directory.name}"
        return f"This run has no verdict yet. To judge what it left behind: {command}"
    headline = files.verdict.get("headline")
    return str(headline) if headline else "The judge gave no headline."


def contract_of(verdict: Mapping[str, Any] | None) -> Contract | None:
    row = mapping(verdict, "contract")
    if not row:
        return None
    return Contract(
        str(row.get("name", "?")),
        str(row.get("row") or ""),
        str(row.get("promise") or ""),
        texts(row, "because"),
    )


def notes_of(files: RunFiles) -> tuple[str, ...]:
    trouble = (f"failed on our side: {files.trouble}",) if files.trouble else ()
    return (*trouble, *(files.info.notes if files.info else ()))


def others_of(files: RunFiles) -> tuple[Other, ...]:
    return tuple(
        Other(name, str(verdict.get("verdict", "?")), str(verdict.get("headline") or ""))
        for name, verdict in files.others.items()
    )


def conditions_of(verdict: Mapping[str, Any] | None) -> tuple[Condition, ...]:
    return tuple(
        Condition(str(row.get("name", "?")), row.get("ok") is True, str(row.get("detail") or ""))
        for row in rows(verdict, "conditions")
    )


def anomalies_of(files: RunFiles) -> tuple[Anomaly, ...]:
    """Every checker that ran, and those that only the findings file names, so that no finding is hidden."""
    judged = [
        Anomaly(
            name,
            str(row.get("meaning", "?")),
            whole(row, "count") or 0,
            str(row.get("why") or ""),
            explain(name),
            whole(row, "in_violations") or 0,
        )
        for row in rows(files.verdict, "anomalies")
        if (name := str(row.get("anomaly", "?")))
    ]
    counted: dict[str, int] = {}
    for group in files.groups:
        counted[group.anomaly] = counted.get(group.anomaly, 0) + group.count
    for name in counted.keys() - {anomaly.name for anomaly in judged}:
        judged.append(
            Anomaly(name, "?", counted[name], "the verdict does not name this checker", explain(name))
        )
    weight = {meaning.value: at for at, meaning in enumerate(WORST_FIRST)}
    return tuple(sorted(judged, key=lambda a: (not a.count, weight.get(a.meaning, 9), rank(a.name), a.name)))


def disagreements(files: RunFiles) -> list[Gap]:
    """Anomalies of which the findings file holds more than the verdict counts: then the verdict was not made
    from this file."""
    counted: dict[str, int] = {}
    for group in files.groups:
        counted[group.anomaly] = counted.get(group.anomaly, 0) + group.count
    judged = {str(row.get("anomaly")): whole(row, "count") or 0 for row in rows(files.verdict, "anomalies")}
    return [
        Gap(
            "verdict.json",
            f"counts {number(judged[name])} {name}, but findings.parquet holds {number(count)}; "
            "judge the run again",
        )
        for name, count in sorted(counted.items())
        if name in judged and count > judged[name]
    ]


def facts_of(files: RunFiles) -> tuple[tuple[str, str], ...]:
    info = files.info
    if info is None:
        return (("run", files.directory.name),)
    topics = ", ".join(
        f"{t.name} ({plural(t.partitions, 'partition')}, RF {t.replication_factor}, MinISR "
        f"{t.min_insync_replicas})"
        for t in info.topics[:6]
    )
    facts = [
        ("run", info.test_id),
        ("started", info.started_at),
        ("seed", str(info.seed)),
        ("system", system_words.version(info)),
        ("features", system_words.features(info)),
    ]
    facts += [("workload", info.workload), ("topics", topics)]
    producer = f"acks={info.acks}, idempotence {'on' if info.idempotence else 'off'}"
    facts += [("clients", system_words.client(info)), ("producers", producer)]
    facts += [("broker", system_words.flushing(info))]
    facts += [("elections", system_words.elections(info))]
    return tuple(fact for fact in facts if fact[1])


_OUTCOMES = {"ok": "ok", "fail": "fail", "info": "info (outcome unknown)"}


def tiles_of(files: RunFiles, faults: Sequence[Fault]) -> tuple[Tile, ...]:
    counts, metrics = mapping(files.verdict, "counts"), files.metrics
    tiles = []
    if "acked_records" in counts:
        read = whole(counts, "read_records")
        note = "" if read is None else f"{number(read)} records read"
        tiles.append(Tile("records acknowledged", number(whole(counts, "acked_records")), note))
    if "operations" in counts:
        rest = ", ".join(
            f"{number(whole(counts, key))} {words}" for key, words in _OUTCOMES.items() if key in counts
        )
        tiles.append(Tile("operations", number(whole(counts, "operations")), rest))
    injected = [fault for fault in faults if fault.asked_for]
    planned = max(whole(files.verdict, "planned_faults") or 0, len(injected))
    if planned:
        proved = sum(fault.proved for fault in injected)
        note = f"{planned} were planned" if planned > len(injected) else ""
        tiles.append(Tile("faults proved", f"{proved} of {len(injected)}", note, bad=proved < planned))
    if len(faults) > len(injected):
        tiles.append(Tile("died unasked", number(len(faults) - len(injected)), bad=True))
    if faults:
        lost = sum(fault.lost_bytes for fault in faults)
        if lost:
            hosts = sorted({loss.host for fault in faults for loss in fault.lost if loss.total})
            tiles.append(Tile("unsynced bytes lost", size(lost), "on " + ", ".join(hosts[:5])))
    by_id = [one for one in mapping(metrics, "transaction_ends").values() if isinstance(one, Mapping)]
    if by_id:
        sums = {name: sum(whole(one, name) or 0 for one in by_id) for name in _OF_TRANSACTIONS}
        rest = ", ".join(f"{number(sums[name])} {name}" for name in _OF_TRANSACTIONS[1:])
        tiles.append(Tile("transactions asked to end", number(sums["ends_asked"]), rest))
    if numeric(metrics, "longest_gap_ms") is not None:
        tiles.append(
            Tile("longest gap in acks", milliseconds(numeric(metrics, "longest_gap_ms")), "in one partition")
        )
    rate = numeric(metrics, "rate_before_first_fault")
    if rate is not None:
        asked = files.info.rate if files.info else 0
        tiles.append(
            Tile(
                "rate before faults",
                number(round(rate)),
                f"per second; asked: {number(asked)}" if asked else "per second",
            )
        )
    during = mapping(mapping(metrics, "load"), "faults")
    begun, left_out = numeric(during, "begun_per_s"), numeric(during, "left_out")
    if begun is not None and left_out is not None:
        expected = number(round(numeric(during, "asked_per_s") or 0))
        note = f"begun per second; asked: {expected}; left out: {left_out:.0%}"
        tiles.append(Tile("rate during faults", number(round(begun)), note))
    return tuple(tiles)


# metrics ----------------------------------------------------------------------------------------------------


def fault_row(fault: Fault, metrics: Mapping[str, Any] | None) -> FaultRow:
    def since(row: Mapping[str, Any], key: str) -> float | None:
        time = numeric(row, key)
        return None if time is None or fault.begin_ns is None else time - fault.begin_ns

    gone = [
        Gone(
            partition_label(row.get("topic"), whole(row, "partition")),
            numeric(row, "gap_ms"),
            since(row, "last_ack_ns"),
            since(row, "first_ack_ns"),
            since(row, "full_isr_ns"),
            isr_shrank=shrank if isinstance(shrank := row.get("isr_shrank"), bool) else None,
        )
        for row in rows(metrics, "availability")
        if row.get("fault_id") == fault.id
    ]
    return FaultRow(fault, tuple(gone[:64]))


def latency_of(metrics: Mapping[str, Any] | None) -> tuple[tuple[str, str, str], ...]:
    spans = mapping(metrics, "latency")
    return tuple(
        (
            name,
            milliseconds(numeric(mapping(spans, name), "p50_ms")),
            milliseconds(numeric(mapping(spans, name), "p99_ms")),
        )
        for name in ("before", "during", "after")
        if name in spans
    )


def errors_of(verdict: Mapping[str, Any] | None) -> tuple[tuple[str, int], ...] | None:
    """Sends by error, the most frequent first; None when the verdict has no such counts."""
    counts = mapping(verdict, "counts")
    if "sends_by_error" not in counts:
        return None
    counted = mapping(counts, "sends_by_error")
    result = [(name or "none", whole(counted, name) or 0) for name in counted]
    return tuple(sorted(result, key=lambda item: -item[1])[:20])


_ENGINES = {"local": "one process, without Spark"}


def versions_of(files: RunFiles) -> tuple[tuple[str, str], ...]:
    engine = mapping(files.verdict, "engine")
    result = [
        ("wrackline", files.info.harness_version if files.info else ""),
        ("judged by", _ENGINES.get(str(engine.get("name")), str(engine.get("name") or ""))),
    ]
    spent = numeric(engine, "seconds")
    result.append(("analysis", f"{spent:,.1f} s" if spent is not None else ""))
    return tuple(item for item in result if item[1])


def verdict_class(verdict: str) -> str:
    """The class of the banner's style: a known verdict, or ``unknown``."""
    return verdict.replace(" ", "-") if verdict in list(Verdict) else "unknown"


CHECKOUT: Final = Path(__file__).resolve().parents[2]
LAUNCHER: Final = "wrack"


@dataclass(frozen=True, slots=True)
class Replay:
    where: str
    """The folder to be in, as words that follow "In"."""
    command: str


def replay_of(run_dir: Path, seed: int, *, checkout: Path = CHECKOUT) -> Replay | None:
    """The command for this run; None without its specification. ``checkout`` is the folder in which this
    package lies; the launcher may be in it or not."""
    spec = run_dir.resolve() / "spec.yaml"
    if not spec.is_file():
        return None
    if (checkout / LAUNCHER).is_file():
        named = spec.relative_to(checkout) if spec.is_relative_to(checkout) else spec
        return Replay(
            "the folder of Wrackline, where its launcher is", _command(f"./{LAUNCHER}", named, seed)
        )
    return Replay("any folder", _command("wrackline", spec, seed))


def _command(program: str, spec: Path, seed: int) -> str:
    return shlex.join([program, "run", str(spec), "--seed", str(seed)])
