"""Many seeds, in several processes, with a file to go on from: ``wrackline simulate --search 10000 --jobs
2``.

Each seed is a run of its own, so nothing is shared but the list of what is done. The file (``--done``) has a
first line that says which seeds, in which set-up, it is about, and one line of JSON for each seed that came
to its end.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import chain, islice
from multiprocessing import get_context
from pathlib import Path
from random import Random
from typing import TextIO

from wrackline.simulator.coverage.probes import Way, recorder
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.faults.swarm import swarm
from wrackline.simulator.run import run
from wrackline.simulator.search.guidance import Guide

_ENDING = (signal.SIGINT, signal.SIGTERM)
_LOOK_EVERY_S = 2.0
_REPORTED: set[Way] = set()
"""Ways that this process has put into a row."""
_CHUNK = 4
"""Seeds a process takes at a time."""


class DoneFileError(Exception):
    """The file of what is done cannot be used, in one line."""


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one seed. ``oracle`` is empty when it was clean."""

    seed: int
    steps: int
    simulated_s: float
    cpu_s: float
    faults: int
    operations: int
    """Of clients, ended in whatever way."""
    acked: int
    read: int
    """Records in the final read."""
    oracle: str = ""
    text: str = ""
    command: str = ""
    graft: tuple[int, ...] = ()
    """Changes of its plan, of a guided search."""
    ways: tuple[Way, ...] = ()
    """In which the rules decided, of a search with coverage: those that its process had not seen before."""
    profile: str = ""
    """``kip966``, or of an upgrade ``kraft35 to kip966``."""


@dataclass(slots=True)
class Totals:
    """Totals of the seeds that are done; ``resumed`` of them before this call."""

    seeds: int = 0
    resumed: int = 0
    steps: int = 0
    simulated_s: float = 0.0
    cpu_s: float = 0.0
    faults: int = 0
    operations: int = 0
    acked: int = 0
    read: int = 0
    violations: list[Row] = field(default_factory=list)
    interrupted: bool = False
    ways: set[Way] = field(default_factory=set)
    profiles: dict[str, Totals] = field(default_factory=dict)
    """Totals of the seeds of each profile or upgrade."""
    kept: int = 0
    """Of the runs, those that came before all seeds."""
    last: int = -1
    """The greatest seed of the series so far."""

    def add(self, row: Row) -> None:
        self._count(row)
        self.profiles.setdefault(row.profile, Totals())._count(row)
        self.ways.update(row.ways)

    def _count(self, row: Row) -> None:
        self.seeds += 1
        for name in ("steps", "simulated_s", "cpu_s", "faults", "operations", "acked", "read"):
            setattr(self, name, getattr(self, name) + getattr(row, name))
        if row.oracle:
            self.violations.append(row)

    def text(self) -> str:
        per = max(self.seeds, 1)
        speed = self.simulated_s / self.cpu_s if self.cpu_s else 0.0
        result = f"{len(self.violations)} violations" if len(self.violations) != 1 else "1 violation"
        return (
            f"{result} in {self.seeds} seeds: {self.cpu_s:.0f} s of CPU, {self.simulated_s:.0f} s simulated "
            f"({speed:.0f} to 1), {self.steps} steps; each seed {self.simulated_s / per:.1f} s, "
            f"{self.faults / per:.1f} faults, {self.operations / per:.0f} operations, "
            f"{self.acked / per:.0f} records acknowledged, {self.read / per:.0f} in the final read"
        )


def varied(setup: Setup) -> Setup:
    """The same with one or two partitions, with or without idempotence, and one in four without TCP's help;
    drawn from the seed."""
    draw = Random(f"{setup.seed}/setup")
    return replace(
        setup, partitions=draw.randint(1, 2), idempotent=draw.random() < 0.5, tcp=draw.random() < 0.75
    )


def drawn_as(vary: str, setup: Setup) -> Setup:
    """Returns what the seed draws beside its faults: ``vary``, ``swarm``, or ``swarm-any`` with its profile;
    empty: nothing."""
    if vary.startswith("swarm"):
        return swarm(setup, any_profile=vary == "swarm-any")
    return varied(setup) if vary else setup


def run_one(setup: Setup, *, covered: bool = False, guide: Guide | None = None) -> Row:
    """Does one run. ``covered``: notes the ways in which rules decided. ``guide``: hears of what it has
    shown."""
    began = time.process_time()
    result = run(setup)
    met = recorder().take() if covered or guide else frozenset[Way]()
    if guide is not None:
        guide.note(setup, met, result.events)
    ways = met - _REPORTED if covered else frozenset[Way]()
    _REPORTED.update(ways)
    ended = [event for event in result.events if event.process >= 0 and event.type.name != "INVOKE"]
    found = result.violation
    return Row(
        setup.seed,
        result.steps,
        round(result.simulated_s, 3),
        round(time.process_time() - began, 3),
        len(result.faults),
        len(ended),
        result.acked,
        sum(len(event.records) for event in ended if event.f == "drain"),
        *(("", "", "") if found is None else (found.oracle, found.text, setup.command())),
        setup.graft,
        tuple(sorted(ways)),
        profile_of(setup),
    )


def profile_of(setup: Setup) -> str:
    return f"{setup.profile} to {setup.upgrade_to}" if setup.upgrade_to else setup.profile


def run_seeds(
    setup: Setup,
    runs: int,
    *,
    jobs: int = 1,
    vary: str = "",
    keep_going: bool = False,
    covered: bool = False,
    guided: bool = False,
    first: Sequence[Setup] = (),
    done: Path | None = None,
    progress: Callable[[Row, Totals], None] | None = None,
    enough: Callable[[Totals], bool] | None = None,
) -> Totals:
    """Seeds ``setup.seed`` and on, ``runs`` of them, up to the first violation unless ``keep_going``. Ctrl-C
    ends it with what is done. ``covered``: with the ways in which rules decided. ``guided``: in this process,
    and some of the runs change the plan of an earlier one. ``first``: runs before all seeds; of those
    that the file has, none. ``enough``: asked after each run whether it ends here. Raises DoneFileError."""
    totals = Totals()
    known = _resume(done, setup, vary) if done is not None else {}
    expected = range(setup.seed, setup.seed + runs)
    for row in (known[seed] for seed in expected if seed in known):
        totals.add(row)
        totals.last = row.seed
    totals.resumed = totals.seeds
    setups = (drawn_as(vary, replace(setup, seed=seed)) for seed in expected if seed not in known)
    failed_before = {row.command for row in known.values() if row.oracle}
    again = [one for one in first if one.command() not in failed_before]
    totals.kept = len(first) - len(again)
    out = None if done is None else done.open("a", encoding="utf-8")
    others = (
        _guided(Guide(lambda seed: drawn_as(vary, replace(setup, seed=seed)), setup.seed), runs, covered)
        if guided
        else _in_this_process(setups, covered=covered)
        if jobs == 1
        else _in_processes(setups, jobs, covered=covered)
    )
    rows = chain(_in_this_process(again, covered=covered), others)
    try:
        with signals_interrupt():
            for number, row in enumerate(rows):
                totals.add(row)
                if number < len(again):
                    totals.kept += 1
                else:
                    totals.last = max(totals.last, row.seed)
                    if out is not None:
                        _write(out, row)
                if progress is not None:
                    progress(row, totals)
                if (row.oracle and not keep_going) or (enough is not None and enough(totals)):
                    break
    except KeyboardInterrupt:
        totals.interrupted = True
    finally:
        others.close()
        if out is not None:
            out.close()
    totals.violations.sort(key=lambda row: row.seed)
    return totals


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """SIGTERM ends it as Ctrl-C does, and Ctrl-C does so in a background job too, where a shell has it
    ignored."""
    before = {which: signal.signal(which, signal.default_int_handler) for which in _ENDING}
    try:
        yield
    finally:
        for which, handler in before.items():
            signal.signal(which, handler)


def spare_the_collector() -> None:
    """A run makes few cycles and ends with one large one: looking for them rarely saves some percent."""
    gc.freeze()
    gc.set_threshold(50_000, 10, 10)


def _in_this_process(setups: Iterable[Setup], *, covered: bool) -> Generator[Row, None, None]:
    spare_the_collector()
    if covered:
        recorder()
    for setup in setups:
        yield run_one(setup, covered=covered)


def _guided(guide: Guide, runs: int, covered: bool) -> Generator[Row, None, None]:
    spare_the_collector()
    for _ in range(runs):
        yield run_one(guide.choose(), covered=covered, guide=guide)


def _in_processes(setups: Iterator[Setup], jobs: int, *, covered: bool) -> Generator[Row, None, None]:
    """Yields rows in the order they end. Closing the generator lets the processes finish the seeds they are
    at."""
    chunks = iter(lambda: list(islice(setups, _CHUNK)), [])
    pool = ProcessPoolExecutor(
        jobs, mp_context=get_context("spawn"), initializer=_begin_process, initargs=(os.getpid(),)
    )
    try:
        under_way: set[Future[list[Row]]] = set()
        while True:
            while len(under_way) < 2 * jobs and (chunk := next(chunks, None)) is not None:
                under_way.add(pool.submit(_run_all, chunk, covered=covered))
            if not under_way:
                return
            ended, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in ended:
                yield from future.result()
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _begin_process(parent: int) -> None:
    """Ctrl-C goes to the whole group: the parent decides. A parent that was killed can not, so look whether
    it is still there."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)

    def look(_: int, __: object) -> None:
        if os.getppid() != parent:
            os._exit(1)

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, _LOOK_EVERY_S, _LOOK_EVERY_S)
    spare_the_collector()


def _run_all(setups: list[Setup], *, covered: bool) -> list[Row]:
    if covered:
        recorder()
    return [run_one(setup, covered=covered) for setup in setups]


# --- the file ----------------------------------------------------------------------------------------------


def _resume(file: Path, setup: Setup, vary: str) -> dict[int, Row]:
    """Returns the rows that a file says are done; a new file gets its first line. Raises DoneFileError when
    it is of another series."""
    head = json.dumps({"series": replace(setup, seed=0).command(), "vary": vary})
    try:
        if not file.exists() or not file.stat().st_size:
            file.write_text(head + "\n", encoding="utf-8")
            return {}
        first, *lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DoneFileError(f"{file}: {error}; --done names another file") from error
    if first != head:
        raise DoneFileError(f"{file} is of another series ({first[:120]}); --done names another file")
    names = {item.name for item in fields(Row)} - {"graft", "ways", "profile"}
    result: dict[int, Row] = {}
    for number, line in enumerate(lines, 2):
        try:
            values = json.loads(line)
            row = Row(
                **{name: values[name] for name in names},
                ways=tuple(values.get("ways", ())),
                profile=values.get("profile", ""),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise DoneFileError(f"{file}, line {number}: {error}; take the line out") from error
        result[row.seed] = row
    return result


def _write(out: TextIO, row: Row) -> None:
    out.write(json.dumps(asdict(row)) + "\n")
    out.flush()
