"""The plan of an analysis: which tasks there are, and what goes from one to the next (docs/checkers.md).

The executor cuts, brings together and sorts, in this process or in Spark
(wrackline.checkers.engine.executor); what the facts say is decided by numpy in the tasks
(wrackline.checkers.engine.tasks, wrackline.checkers.checks.tasks). Only what is small comes back to the
driver: what runner, nemesis and final reads wrote down, one short row per range of a log, and counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from wrackline.checkers.checks import tasks as finding
from wrackline.checkers.checks.about import about
from wrackline.checkers.checks.keys import KINDS_WITH_OFFSETS
from wrackline.checkers.checks.places import Words
from wrackline.checkers.checks.registry import checks, marks, walks
from wrackline.checkers.checks.walks import Figure, Walk
from wrackline.checkers.engine import tasks as stages
from wrackline.checkers.engine.context import Context, context_of, places_of, topics_of
from wrackline.checkers.engine.executor import Executor, Rows, Task
from wrackline.checkers.engine.fact_codec import SCHEMA, Packed, read
from wrackline.checkers.engine.facts import Kind, Summary
from wrackline.checkers.engine.logs.range_bounds import below_of, bounds, row_of
from wrackline.checkers.engine.objects.times import DECIDED, SUMMARIES, outside_of
from wrackline.checkers.inputs.row_groups import Split
from wrackline.checkers.inputs.runs import AnalysisError, Place, Run, scanned, scanned_split
from wrackline.checkers.inputs.scan import Partners, SplitSummary
from wrackline.checkers.verdict.measures.metrics import (
    Figures,
    TransactionEnds,
    take_counts,
    take_gaps,
    take_written,
)

FACTS_PER_TASK = 1_500_000
"""So many records make a task of the shuffles: some 100 MiB."""
FACTS_PER_SPLIT = 1_000_000
"""... and so many a task that reads."""
MOST_WORDS = 200_000
"""Events of a run whose words sentences use, at most: the first ones."""


@dataclass
class Judged:
    """What the plan leaves."""

    figures: list[Figures]
    unproven: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Run -> sends of unknown outcome that were read, and that never were."""
    problems: dict[int, str] = field(default_factory=dict)
    """Run -> why it could not be read to its end."""
    counts: dict[str, int] = field(default_factory=dict)
    """Mark -> how many rows have it."""
    again: int = 0
    """How many ranges of offsets were judged twice."""
    transactional: set[int] = field(default_factory=set)
    """Runs with transactions."""
    source: Rows | None = None
    """The splits of all runs."""
    rows: Rows | None = None
    """Those among which the candidates with marks are, and the contradictions of objects."""


def scan_all(executor: Executor | None, runs: Sequence[Run]) -> Iterator[tuple[Run, AnalysisError | None]]:
    """Completes runs that were opened; each with what is wrong with it, if something is. ``executor``: None
    to read them here."""
    splits = [replace(split, run=number) for number, run in enumerate(runs) for split in run.splits]
    found: dict[int, list[SplitSummary]] = {number: [] for number in range(len(runs))}
    if executor is None:
        local: Iterable[SplitSummary] = map(scanned_split, splits)
    else:
        table = _table_of_splits(executor, splits, {}, sum(run.facts for run in runs))
        rows = table.mapped(stages.scans, SCHEMA)
        local = (SplitSummary.from_json(packed.data) for packed in _collected(rows))
    for one in local:
        found[one.run].append(one)
    for number, run in enumerate(runs):
        try:
            yield scanned(run, found[number]), None
        except AnalysisError as wrong:
            yield run, wrong


def judge(executor: Executor, runs: Sequence[Run], **cuts: int) -> Judged:
    """Looks at everything once, and at what must be looked at again. ``cuts``: ``width`` and ``span`` of the
    context."""
    tasks = tasks_of(runs)
    context = context_of(runs, marks(), buckets=tasks, **cuts)
    splits = [replace(split, run=number) for number, run in enumerate(runs) for split in run.splits]
    source = _table_of_splits(
        executor,
        splits,
        {number: run.partners for number, run in enumerate(runs)},
        sum(run.facts for run in runs),
    )
    first = _judged(
        source.mapped(_ingested(executor, context, stages.EVERYTHING), SCHEMA), executor, context, tasks
    ).kept()
    few = (Kind.NOTE, Kind.SUMMARY, Kind.JUMP, Kind.SESSION, *SUMMARIES)
    found = Judged([Figures() for _ in runs], source=source)
    said = _take(found, _collected(first.having("kind", few)), runs)
    if context.objects:
        _objects(found, first, replace(context, outside=outside_of(said.intervals)), tasks, executor)
    above, again, gaps = bounds(said.summaries, context)
    again |= said.late
    found.again = len(again)
    if not (again or said.by_value):
        return found
    context = replace(
        context,
        above=above,
        below=below_of(said.summaries),
        again=frozenset(again),
        unfilled=frozenset(gaps),
    )
    values = first.having("kind", (Kind.CANDIDATE, Kind.UNPLACED))
    if again:
        affected = sorted({log >> 32 for log, _ in again})
        facts = source.having("run", affected).mapped(_ingested(executor, context, stages.RANGES), SCHEMA)
        late = first.having("kind", (Kind.JUMP, Kind.SESSION))
        second = _judged(facts.union(late) if said.late else facts, executor, context, tasks)
        values = values.union(second.having("kind", (Kind.CANDIDATE,))).kept()
    in_final = first.having("kind", (Kind.IN_FINAL,))
    _by_value(found, values, in_final, context, tasks, executor)
    return found


def _objects(found: Judged, first: Rows, context: Context, tasks: int, executor: Executor) -> None:
    """Registers and queues: intervals of their time, each with what it must know of the others."""
    decided = _sorted(first.having("kind", DECIDED), tasks, "owner", "part")
    second = decided.mapped(stages.intervals(executor.given(context)), SCHEMA).kept()
    for note in _notes(second):
        _count(found, note["contradictions"])
    found.rows = first.union(second).having("kind", (Kind.CONTRADICTION,))


def tasks_of(runs: Sequence[Run]) -> int:
    """Into how many parts the shuffles are cut."""
    return max(1, min(4_000, round(sum(run.facts for run in runs) / FACTS_PER_TASK)))


def _by_value(
    found: Judged, values: Rows, in_final: Rows, context: Context, tasks: int, executor: Executor
) -> None:
    """Values with all their places. Where some place's value was sent with another place acked, all sends are
    looked at, which few histories need."""
    given = executor.given(context)
    wanted = _sorted(values, tasks, "part").mapped(stages.by_value(given), SCHEMA).kept()
    said = _notes(wanted)
    if sum(one["unmatched"] for one in said):
        assert found.source is not None
        sends = found.source.mapped(_ingested(executor, context, stages.SENDS), SCHEMA)
        both = _sorted(values.union(sends), tasks, "part")
        wanted = both.mapped(stages.by_value(given), SCHEMA).kept()
        said = _notes(wanted)
    for one in said:
        for run, seen, unseen in one["unproven"]:
            before = found.unproven.get(run, (0, 0))
            found.unproven[run] = (before[0] + seen, before[1] + unseen)
        _count(found, one["marks"])
    if any(one["unplaced"] for one in said):
        records = wanted.having("kind", (Kind.IN_FINAL,)).union(in_final)
        if any(one["acked_without_offset"] for one in said):
            assert found.source is not None
            records = records.union(found.source.mapped(_ingested(executor, context, stages.ENDS), SCHEMA))
        by_owner = records.placed(tasks, ("owner",), ("owner", "part"))
        order = by_owner.mapped(stages.in_order(given), SCHEMA).kept()
        for note in _notes(order):
            _count(found, note["marks"])
        wanted = wanted.union(order)
    candidates = wanted.having("kind", (Kind.CANDIDATE,))
    found.rows = candidates if found.rows is None else found.rows.union(candidates)


def _count(found: Judged, marks: Mapping[str, int]) -> None:
    for mark, count in marks.items():
        found.counts[mark] = found.counts.get(mark, 0) + count


# --- findings


def find(executor: Executor, runs: Sequence[Run], judged: Judged) -> Rows | None:
    """What checks and walks find, as rows of ``wrackline.checkers.checks.tasks.FOUND``; None: nothing had
    to be looked at. Figures go to their runs."""
    topics, tasks = topics_of(runs), tasks_of(runs)
    asked = finding.Asked(
        runs=[about(number, run, topics) for number, run in enumerate(runs)],
        marks=marks(),
        checks=[one for one in checks() if one.applies(judged.counts)],
        ranks={one.name: rank for rank, one in enumerate(checks())},
    )
    parts = [_walked(executor, runs, judged, asked, walk, tasks) for walk in walks()]
    found = [part for part in parts if part is not None]
    if asked.checks and judged.rows is not None:
        by_log = judged.rows.mapped(finding.by_log, SCHEMA).placed(tasks, ("owner",), ("owner", "kind"))
        asked = _with_words(executor, judged, asked, by_log, tasks)
        found.append(by_log.mapped(finding.found_at_places(executor.given(asked)), finding.FOUND))
    if not found:
        return None
    every = found[0]
    for one in found[1:]:
        every = every.union(one)
    return every


def _walked(
    executor: Executor, runs: Sequence[Run], judged: Judged, asked: finding.Asked, walk: Walk, tasks: int
) -> Rows | None:
    """The findings of a walk. Its figures are taken."""
    these = [
        number
        for number, run in enumerate(runs)
        if walk.needs & run.kinds and (number in judged.transactional or not walk.transactional)
    ]
    if not these:
        return None
    assert judged.source is not None
    given = executor.given(asked)
    events = _events(
        judged.source.having("run", these), finding.events_for(given, walk.reads, walk.parts), tasks
    )
    found = events.mapped(finding.walked(given, walk), finding.FOUND).kept()
    for batch in found.having("rank", (finding.FIGURE,)).batches():
        for row in batch.select(["run", "explanation"]).to_pylist():
            _take_figure(judged.figures[row["run"]], finding.figure_in(row["explanation"]))
    return found.having("rank", asked.ranks.values())


def _events(source: Rows, task: Task, tasks: int) -> Rows:
    order = ("owner", "part", "size")
    return source.mapped(task, SCHEMA).placed(tasks, ("owner", "part"), order)


def _with_words(
    executor: Executor, judged: Judged, asked: finding.Asked, by_log: Rows, tasks: int
) -> finding.Asked:
    """... and with what checks want to read besides their rows."""
    compacted = any(log.compacted for run in asked.runs for log in run.logs.values())
    if judged.source is None or not (compacted or any(one.words_of for one in asked.checks)):
        return asked
    indexes: dict[int, set[int]] = {}
    values: dict[int, list[int]] = {}
    for packed in _collected(by_log.mapped(finding.words_wanted(executor.given(asked)), SCHEMA)):
        said = packed.note()
        indexes.setdefault(packed.owner >> 32, set()).update(said["index"])
        if said["values"]:
            values[packed.owner] = said["values"]
    wanted = {run: np.array(sorted(some)[:MOST_WORDS]) for run, some in indexes.items() if some}
    words: dict[int, dict[int, Words]] = {}
    if wanted:
        some = judged.source.having("run", wanted.keys())
        for packed in _collected(some.mapped(finding.words_of(executor.given(wanted)), SCHEMA)):
            row = packed.note()
            of_run = words.setdefault(-1 - packed.owner, {})
            of_run[row["index"]] = Words(row["node"], row["error"], row["extra"])
    last: dict[int, dict[int, int]] = {}
    if values:
        given = executor.given(asked)
        some = judged.source.having("run", {log >> 32 for log in values})
        events = _events(some, finding.events_for(given, KINDS_WITH_OFFSETS), tasks)
        keys = events.mapped(finding.last_of_keys(given, executor.given(values)), SCHEMA)
        last = {packed.owner: dict(packed.note()["last"]) for packed in _collected(keys)}
    return replace(asked, words=words, last_of_keys=last)


def _take_figure(figures: Figures, figure: Figure) -> None:
    if figure.kind == "group":
        given, different = figure.counts
        figures.groups[figure.name] = (given, different)
    else:
        figures.transactions[figure.name] = TransactionEnds(*figure.counts)


# --- rows


def _judged(facts: Rows, executor: Executor, context: Context, tasks: int) -> Rows:
    return _sorted(facts, tasks, "owner", "part").mapped(stages.judged(executor.given(context)), SCHEMA)


def _sorted(rows: Rows, tasks: int, *by: str) -> Rows:
    """Each task gets whole places, one after another, and within one kind after kind."""
    return rows.placed(tasks, by, (*by, "kind"))


def _ingested(executor: Executor, context: Context, what: str) -> Task:
    return stages.ingested(executor.given(context), what)


def _table_of_splits(
    executor: Executor,
    splits: Sequence[Split],
    partners: Mapping[int, Mapping[int, Partners]],
    facts: int,
) -> Rows:
    """One row per split, in as many tasks as keep all cores busy to the end; small ones share a task."""
    columns: dict[str, list[Any]] = {
        name: [getattr(split, name) for split in splits]
        for name in ("run", "number", "path", "first", "last")
    }
    columns["partners"] = [orjson.dumps(partners.get(s.run, {}).get(s.number, NOBODY)) for s in splits]
    parallel = max(1, min(len(splits), max(executor.parallel, facts // FACTS_PER_SPLIT)))
    return executor.table(pa.table(columns, schema=stages.SPLITS), parallel)


NOBODY: Partners = {"invoked": [], "completed": []}


def _collected(rows: Rows) -> Iterable[Packed]:
    return read(rows.batches())


def _notes(rows: Rows) -> list[dict[str, Any]]:
    """What the notes among these rows say."""
    return [packed.note() for packed in _collected(rows.having("kind", (Kind.NOTE,)))]


@dataclass
class _Said:
    """What the first round says to the driver."""

    summaries: list[Summary[int]] = field(default_factory=list)
    """Of ranges."""
    late: set[tuple[int, int]] = field(default_factory=set)
    """(log, number) of ranges with reads or sends that follow on ones in an earlier split."""
    intervals: list[Packed] = field(default_factory=list)
    """Summaries of intervals of objects' time."""
    by_value: int = 0
    """How many rows are to be looked at by value."""


def _take(found: Judged, rows: Iterable[Packed], runs: Sequence[Run]) -> _Said:
    """Counts to their runs; returns what the plan goes on from."""
    topics = topics_of(runs)
    places = [
        {topics[number, place[0]] + place[1]: place for place in places_of(run)}
        for number, run in enumerate(runs)
    ]
    said = _Said()
    for packed in rows:
        match packed.kind:
            case Kind.SUMMARY:
                said.summaries.append(row_of(packed.rows_of(Summary)))
            case Kind.NOTE:
                note = packed.note()
                said.by_value += note.get("by_value", 0)
                _count(found, note.get("contradictions", {}))
                if "run" in note:
                    _take_counts(found, note, runs, places[note["run"]])
            case Kind.JUMP | Kind.SESSION:
                said.late.add((packed.owner, packed.part))
            case _:
                said.intervals.append(packed)
    for figures in found.figures:
        figures.seconds.sort(key=lambda second: (second["t"], second["f"]))
    return said


def _take_counts(
    found: Judged, said: Mapping[str, Any], runs: Sequence[Run], places: Mapping[int, Place]
) -> None:
    run = said["run"]
    if "problem" in said:
        found.problems[run] = said["problem"]
    take_counts(found.figures[run], said)
    if said.get("transactional"):
        found.transactional.add(run)
    take_written(found.figures[run], said.get("written", ()), places)
    take_gaps(runs[run], found.figures[run], said.get("gaps", ()), places)
