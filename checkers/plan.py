"""The plan of an analysis: a list of stages, each with what it takes and what it gives (docs/checkers.md).

The executor cuts, brings together and sorts, in this process or in Spark
(wrackline.checkers.engine.executor); what the facts say is decided by numpy in the tasks
(wrackline.checkers.engine.tasks, wrackline.checkers.checks.tasks). Only what is small comes back to the
driver: what runner, nemesis and final reads wrote down, one short row per range of a log, and counts.

``JUDGE`` goes from the splits of the histories to rows with marks, ``FIND`` from these to findings. What
stages hand on is a ``Work``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from wrackline.checkers.checks import tasks as finding
from wrackline.checkers.checks.about import about
from wrackline.checkers.checks.keys import KINDS_WITH_OFFSETS
from wrackline.checkers.checks.places import Words
from wrackline.checkers.checks.registry import checks, marks, walks
from wrackline.checkers.checks.walks import Walk
from wrackline.checkers.engine import tasks
from wrackline.checkers.engine.context import Context, context_of, places_of, topics_of
from wrackline.checkers.engine.executor import Executor, Rows, Task
from wrackline.checkers.engine.fact_codec import SCHEMA, Packed, read
from wrackline.checkers.engine.facts import Kind, Summary
from wrackline.checkers.engine.logs.range_bounds import below_of, bounds, row_of
from wrackline.checkers.engine.objects.times import DECIDED, SUMMARIES, outside_of
from wrackline.checkers.inputs.row_groups import Split
from wrackline.checkers.inputs.runs import AnalysisError, Run, scanned, scanned_split
from wrackline.checkers.inputs.scan import Partners, SplitSummary
from wrackline.checkers.verdict.measures.metrics import (
    Figures,
    TransactionEnds,
    take_counts,
    take_gaps,
    take_written,
)
from wrackline.history.model import LIVENESS

FACTS_PER_TASK = 1_500_000
"""So many records make a task of the shuffles: some 100 MiB."""
FACTS_PER_SPLIT = 1_000_000
"""... and so many a task that reads."""
MOST_WORDS = 200_000
"""Events of a run whose words sentences use, at most: the first ones."""
NOBODY: Partners = {"invoked": [], "completed": []}


@dataclass
class Work:
    """Holds what stages hand on. Rows are an executor's; the rest is small, and the driver's."""

    executor: Executor
    runs: Sequence[Run]
    context: Context
    parts: int
    """Into how many parts the shuffles are cut."""
    source: Rows
    """The splits of all runs."""
    figures: list[Figures]
    """Of each run."""
    facts: Rows = field(init=False)
    """What the splits say of each place, judged once."""
    summaries: list[Summary[int]] = field(default_factory=list)
    """Of ranges of offsets."""
    late: set[tuple[int, int]] = field(default_factory=set)
    """(log, number) of ranges with reads or sends that follow on ones in an earlier split."""
    intervals: list[Packed] = field(default_factory=list)
    """Summaries of intervals of objects' time."""
    by_value: int = 0
    """How many rows are to be looked at by value."""
    unproven: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Run -> sends of unknown outcome that were read, and that never were."""
    problems: dict[int, str] = field(default_factory=dict)
    """Run -> why it could not be read to its end."""
    counts: dict[str, int] = field(default_factory=dict)
    """Mark -> how many rows have it."""
    transactional: set[int] = field(default_factory=set)
    """Runs with transactions."""
    values: Rows | None = None
    """Rows to be looked at by value, of ranges that were judged again too."""
    unplaced: Rows | None = None
    """Records in the final read whose sends were told no offset, and those next to them."""
    rows: Rows | None = None
    """Those among which the candidates with marks are, and the contradictions of objects."""
    check_context: finding.CheckContext = field(init=False)
    """What the tasks that find know."""
    by_log: Rows | None = None
    """``rows`` where all of their log are."""
    found: list[Rows] = field(default_factory=list)
    """Findings, as rows of ``wrackline.checkers.checks.tasks.FOUND``."""

    @property
    def again(self) -> int:
        """Counts the ranges of offsets that were judged twice."""
        return len(self.context.again)

    def ingested(self, what: str, runs: Iterable[int] | None = None) -> Rows:
        """Gives the facts of the splits (of all runs, or some): everything, or a part of it
        (``wrackline.checkers.engine.tasks.ingested``)."""
        source = self.source if runs is None else self.source.having("run", sorted(runs))
        return source.mapped(tasks.ingested(self.executor.given(self.context), what), SCHEMA)

    def judged(self, facts: Rows) -> Rows:
        """Makes candidates, summaries and counts of facts."""
        return self.sorted(facts, "owner", "part").mapped(self.task(tasks.judged), SCHEMA)

    def sorted(self, rows: Rows, *by: str) -> Rows:
        """Each task gets whole places, one after another, and within one kind after kind."""
        return rows.placed(self.parts, by, (*by, "kind"))

    def task(self, make: Callable[[tasks.GivesContext], Task]) -> Task:
        return make(self.executor.given(self.context))

    def add(self, rows: Rows) -> None:
        self.rows = rows if self.rows is None else self.rows.union(rows)

    def count(self, marks: Mapping[str, int]) -> None:
        for mark, count in marks.items():
            self.counts[mark] = self.counts.get(mark, 0) + count


@dataclass(frozen=True, slots=True)
class Stage:
    """One step of the plan. ``inputs`` and ``outputs`` are fields of ``Work``."""

    run: Callable[[Work], None]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def judge(executor: Executor, runs: Sequence[Run], **cuts: int) -> Work:
    """Looks at everything once, and at what must be looked at again. ``cuts``: ``width`` and ``span`` of the
    context."""
    parts = max(1, min(4_000, round(sum(run.facts for run in runs) / FACTS_PER_TASK)))
    context = context_of(runs, marks(), buckets=parts, **cuts)
    partners = {number: run.partners for number, run in enumerate(runs)}
    work = Work(executor, runs, context, parts, _splits(executor, runs, partners), [Figures() for _ in runs])
    for stage in JUDGE:
        stage.run(work)
    return work


def find(work: Work) -> Rows | None:
    """Gives what checks and walks find, as rows of ``wrackline.checkers.checks.tasks.FOUND``; None: nothing
    had to be looked at. Figures go to their runs."""
    for stage in FIND:
        stage.run(work)
    return reduce(lambda one, other: one.union(other), work.found) if work.found else None


# --- from splits to rows with marks


def _read(work: Work) -> None:
    """Turns each split into facts, and judges each place by those."""
    work.facts = work.judged(work.ingested(tasks.EVERYTHING)).kept()


def _collect(work: Work) -> None:
    """Brings what is small to the driver; counts go to their runs."""
    few = (Kind.NOTE, Kind.SUMMARY, Kind.JUMP, Kind.SESSION, *SUMMARIES)
    topics = topics_of(work.runs)
    places = [
        {topics[number, place[0]] + place[1]: place for place in places_of(run)}
        for number, run in enumerate(work.runs)
    ]
    for packed in _collected(work.facts.having("kind", few)):
        match packed.kind:
            case Kind.SUMMARY:
                work.summaries.append(row_of(packed.rows_of(Summary)))
            case Kind.NOTE:
                note = packed.note()
                work.by_value += note.get("by_value", 0)
                work.count(note.get("contradictions", {}))
                if (run := note.get("run")) is not None:
                    figures = work.figures[run]
                    take_counts(figures, note)
                    take_written(figures, note.get("written", ()), places[run])
                    take_gaps(work.runs[run], figures, note.get("gaps", ()), places[run])
                    work.problems |= {run: note["problem"]} if "problem" in note else {}
                    work.transactional |= {run} if note.get("transactional") else set()
            case Kind.JUMP | Kind.SESSION:
                work.late.add((packed.owner, packed.part))
            case _:
                work.intervals.append(packed)
    for figures in work.figures:
        figures.seconds.sort(key=lambda second: (second["t"], second["f"]))


def _judge_objects(work: Work) -> None:
    """Judges registers and queues: intervals of their time, each with what it must know of the others."""
    if work.context.objects:
        context = work.executor.given(replace(work.context, outside=outside_of(work.intervals)))
        decided = work.sorted(work.facts.having("kind", DECIDED), "owner", "part")
        second = decided.mapped(tasks.intervals(context), SCHEMA).kept()
        for note in _notes(second):
            work.count(note["contradictions"])
        work.add(work.facts.union(second).having("kind", (Kind.CONTRADICTION,)))


def _bound(work: Work) -> None:
    """Finds out what ranges must know of each other, and which are judged again with it."""
    above, again, gaps = bounds(work.summaries, work.context)
    work.context = replace(
        work.context,
        above=above,
        below=below_of(work.summaries),
        again=frozenset(again | work.late),
        unfilled=frozenset(gaps),
    )


def _judge_again(work: Work) -> None:
    """Judges the ranges that others concern again, from the splits of their runs."""
    if not (work.again or work.by_value):
        return
    values = work.facts.having("kind", (Kind.CANDIDATE, Kind.UNPLACED))
    if work.again:
        facts = work.ingested(tasks.RANGES, {log >> 32 for log, _ in work.context.again})
        late = work.facts.having("kind", (Kind.JUMP, Kind.SESSION))
        second = work.judged(facts.union(late) if work.late else facts)
        values = values.union(second.having("kind", (Kind.CANDIDATE,))).kept()
    work.values = values


def _judge_values(work: Work) -> None:
    """Judges values with all their places. Where some place's value was sent with another place acked, all
    sends are looked at, which few histories need."""
    if work.values is None:
        return
    expected = work.sorted(work.values, "part").mapped(work.task(tasks.by_value), SCHEMA).kept()
    notes = _notes(expected)
    if sum(one["unmatched"] for one in notes):
        both = work.values.union(work.ingested(tasks.SENDS))
        expected = work.sorted(both, "part").mapped(work.task(tasks.by_value), SCHEMA).kept()
        notes = _notes(expected)
    for one in notes:
        for run, seen, unseen in one["unproven"]:
            before = work.unproven.get(run, (0, 0))
            work.unproven[run] = (before[0] + seen, before[1] + unseen)
        work.count(one["marks"])
    work.add(expected.having("kind", (Kind.CANDIDATE,)))
    if any(one["unplaced"] for one in notes):
        in_final = (Kind.IN_FINAL,)
        work.unplaced = expected.having("kind", in_final).union(work.facts.having("kind", in_final))
        if any(one["acked_without_offset"] for one in notes):
            work.unplaced = work.unplaced.union(work.ingested(tasks.ENDS))


def _judge_order(work: Work) -> None:
    """Judges the order of records whose sends were told no offset, by senders and by logs."""
    if work.unplaced is not None:
        by_owner = work.unplaced.placed(work.parts, ("owner",), ("owner", "part"))
        order = by_owner.mapped(work.task(tasks.in_order), SCHEMA).kept()
        for note in _notes(order):
            work.count(note["marks"])
        work.add(order.having("kind", (Kind.CANDIDATE,)))


_COLLECTED = ("summaries", "late", "intervals", "by_value")
JUDGE = (
    Stage(_read, ("source",), ("facts",)),
    Stage(_collect, ("facts",), ("figures", "problems", "transactional", *_COLLECTED)),
    Stage(_judge_objects, ("facts", "intervals"), ("rows",)),
    Stage(_bound, ("summaries", "late"), ("context",)),
    Stage(_judge_again, ("source", "facts", "context", "late", "by_value"), ("values",)),
    Stage(_judge_values, ("source", "facts", "values", "context"), ("rows", "unplaced", "unproven")),
    Stage(_judge_order, ("unplaced", "context"), ("rows",)),
)


# --- from rows with marks to findings


def _ask(work: Work) -> None:
    """Says what checks know of the runs, and which checks have rows to look at."""
    topics = topics_of(work.runs)
    work.check_context = finding.CheckContext(
        runs=[about(number, run, topics) for number, run in enumerate(work.runs)],
        marks=marks(),
        checks=[one for one in checks() if one.applies(work.counts)],
        ranks={one.name: rank for rank, one in enumerate(checks())},
    )


def _walk(work: Work) -> None:
    """Goes through the events of groups and transactions in their order. Figures go to their runs."""
    for walk in walks():
        runs = [number for number, run in enumerate(work.runs) if _is_walked(walk, run, number, work)]
        if not runs:
            continue
        given = work.executor.given(work.check_context)
        events = _events(work, runs, finding.events_for(given, walk.reads, walk.parts))
        result = events.mapped(finding.walked(given, walk), finding.FOUND).kept()
        for batch in result.having("rank", (finding.FIGURE,)).batches():
            for row in batch.select(["run", "explanation"]).to_pylist():
                figure, figures = finding.figure_in(row["explanation"]), work.figures[row["run"]]
                if figure.kind == "group":
                    count, different = figure.counts
                    figures.groups[figure.name] = (count, different)
                else:
                    figures.transactions[figure.name] = TransactionEnds(*figure.counts)
        work.found.append(result.having("rank", work.check_context.ranks.values()))


def _is_walked(walk: Walk, run: Run, number: int, work: Work) -> bool:
    if walk.when is not None and not walk.when(run):
        return False
    there = run.kinds | ({LIVENESS} if run.stalls else frozenset())
    replicas = (one for of_place in run.replicas.values() for one in of_place.values())
    there |= {"replica"} if any(one.log_dirs for one in replicas) else frozenset()
    return bool(walk.needs & there) and (number in work.transactional or not walk.transactional)


def _bring_by_log(work: Work) -> None:
    if work.check_context.checks and work.rows is not None:
        by_log = work.rows.mapped(finding.by_log, SCHEMA)
        work.by_log = by_log.placed(work.parts, ("owner",), ("owner", "kind"))


def _read_words(work: Work) -> None:
    """Reads what checks want besides their rows: words of events, and the last offsets of keys."""
    compacted = any(log.compacted for run in work.check_context.runs for log in run.logs.values())
    if work.by_log is None or not (compacted or any(one.words_of for one in work.check_context.checks)):
        return
    given = work.executor.given
    indexes: dict[int, set[int]] = {}
    values: dict[int, list[int]] = {}
    for packed in _collected(work.by_log.mapped(finding.words_wanted(given(work.check_context)), SCHEMA)):
        note = packed.note()
        indexes.setdefault(packed.owner >> 32, set()).update(note["index"])
        if note["values"]:
            values[packed.owner] = note["values"]
    expected = {run: np.array(sorted(some)[:MOST_WORDS]) for run, some in indexes.items() if some}
    words: dict[int, dict[int, Words]] = {}
    if expected:
        some = work.source.having("run", expected.keys())
        for packed in _collected(some.mapped(finding.words_of(given(expected)), SCHEMA)):
            row = packed.note()
            of_run = words.setdefault(-1 - packed.owner, {})
            of_run[row["index"]] = Words(row["node"], row["error"], row["extra"])
    last: dict[int, dict[int, int]] = {}
    if values:
        context = given(work.check_context)
        events = _events(work, {log >> 32 for log in values}, finding.events_for(context, KINDS_WITH_OFFSETS))
        keys = events.mapped(finding.last_of_keys(context, given(values)), SCHEMA)
        last = {packed.owner: dict(packed.note()["last"]) for packed in _collected(keys)}
    work.check_context = replace(work.check_context, words=words, last_of_keys=last)


def _check(work: Work) -> None:
    """Turns the rows of each log into findings."""
    if work.by_log is not None:
        task = finding.found_at_places(work.executor.given(work.check_context))
        work.found.append(work.by_log.mapped(task, finding.FOUND))


FIND = (
    Stage(_ask, ("rows",), ("check_context",)),
    Stage(_walk, ("source", "transactional", "check_context"), ("found", "figures")),
    Stage(_bring_by_log, ("rows", "check_context"), ("by_log",)),
    Stage(_read_words, ("source", "by_log", "check_context"), ("check_context",)),
    Stage(_check, ("by_log", "check_context"), ("found",)),
)


# --- rows


def _events(work: Work, runs: Iterable[int], task: Task) -> Rows:
    events = work.source.having("run", sorted(runs)).mapped(task, SCHEMA)
    return events.placed(work.parts, ("owner", "part"), ("owner", "part", "size"))


def _collected(rows: Rows) -> Iterable[Packed]:
    return read(rows.batches())


def _notes(rows: Rows) -> list[dict[str, Any]]:
    """Decodes the notes among these rows."""
    return [packed.note() for packed in _collected(rows.having("kind", (Kind.NOTE,)))]


def _splits_of(runs: Sequence[Run]) -> list[Split]:
    return [replace(split, run=number) for number, run in enumerate(runs) for split in run.splits]


def _splits(executor: Executor, runs: Sequence[Run], partners: Mapping[int, Mapping[int, Partners]]) -> Rows:
    """Makes one row per split, in as many tasks as keep all cores busy to the end; small ones share a
    task."""
    splits, facts = _splits_of(runs), sum(run.facts for run in runs)
    names = ("run", "number", "path", "first", "last")
    columns: dict[str, list[Any]] = {name: [getattr(split, name) for split in splits] for name in names}
    columns["partners"] = [orjson.dumps(partners.get(s.run, {}).get(s.number, NOBODY)) for s in splits]
    parallel = max(1, min(len(splits), max(executor.parallel, facts // FACTS_PER_SPLIT)))
    return executor.table(pa.table(columns, schema=tasks.SPLITS), parallel)


def scan_all(executor: Executor | None, runs: Sequence[Run]) -> Iterator[tuple[Run, AnalysisError | None]]:
    """Completes runs that were opened; each with what is wrong with it, if something is. ``executor``: None
    to read them here."""
    result: dict[int, list[SplitSummary]] = {number: [] for number in range(len(runs))}
    if executor is None:
        local: Iterable[SplitSummary] = map(scanned_split, _splits_of(runs))
    else:
        rows = _splits(executor, runs, {}).mapped(tasks.scans, SCHEMA)
        local = (SplitSummary.from_json(packed.data) for packed in _collected(rows))
    for one in local:
        result[one.run].append(one)
    for number, run in enumerate(runs):
        try:
            yield scanned(run, result[number]), None
        except AnalysisError as error:
            yield run, error
