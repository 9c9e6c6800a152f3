"""The histories that ``same_findings.py`` lets two checkouts judge.

    python benchmarks/checkers/same_histories.py /var/tmp/all --histories 10000

The cases of the tests, the recorded histories of registers, queues and logs, every mutation of several
histories, and drawn histories: each correct one, and with one mutation, where it has a place for one. Each
folder is a group of runs, which are judged together.
"""

from __future__ import annotations

import argparse
import itertools
import random
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.checkers.cases import all_cases
from tests.checkers.goldens import LINEARIZABLE, load
from tests.checkers.histories import TOPIC, History
from wrackline.checkers.cases.language import parse
from wrackline.history.model import ACKED_WITHOUT_OFFSET, UNKNOWN, Record, TopicInfo, Type
from wrackline.proving.model.knobs import TO_MUTATE, drawn
from wrackline.proving.model.made import make, write_events
from wrackline.proving.model.object_events import make_objects
from wrackline.proving.model.objects import drawn_objects
from wrackline.proving.mutations.catalogue import mutate, mutations
from wrackline.proving.mutations.objects import KNOBS, mutate_objects, object_mutations
from wrackline.proving.pairs import OBJECT_PAIRS, PAIRS

GROUP = 250
"""Drawn histories in one Spark job."""
OPERATIONS = 80
"""Of a drawn history, about."""
OF_OBJECTS = 10
"""Each tenth drawn history is one of registers or queues."""
MUTANTS = 4
"""Histories that each mutation is put into."""
SEED = 20_000
"""Of the first drawn history."""
NO_PLACE = (IndexError, KeyError, StopIteration, ValueError, AssertionError, TypeError)
"""What a mutation may raise in a history that was not made to suit it."""
WORKLOADS = {"register": "register", "fifo-queue": "queue", "log": "log"}
"""Model of a recorded history -> the workload whose checks judge it."""


def write_all(folder: Path, histories: int) -> None:
    _cases(folder / "cases")
    _recorded(folder / "recorded")
    _mutants(folder / "mutants")
    for number, seeds in enumerate(_groups(range(SEED, SEED + histories // 2))):
        _drawn(folder / f"drawn-{number:03}", seeds)


def _groups(seeds: range) -> Iterator[range]:
    each = GROUP // 2
    return (seeds[start : start + each] for start in range(0, len(seeds), each))


def _cases(folder: Path) -> None:
    for number, case in enumerate(all_cases()):
        case.write(folder / f"case-{number:03}")
    for number, (name, texts) in enumerate([*PAIRS.items(), *OBJECT_PAIRS.items()]):
        for kind, text in zip(("bad", "good"), texts, strict=True):
            one = parse(text, f"{kind} {name}")
            write_events(folder / f"pair-{number:03}-{kind}", one.info, one.events)


def _recorded(folder: Path) -> None:
    """The histories of which Knossos and Porcupine said what they are, as runs."""
    for number, golden in enumerate(load(LINEARIZABLE)):
        if workload := WORKLOADS.get(golden["model"]):
            _run_of(golden, workload, f"recorded-{number:03}").write(folder / f"{number:03}")


def _run_of(golden: Mapping[str, Any], workload: str, test_id: str) -> Any:
    reads = {} if workload == "log" else {"reads": "marker"}
    run = History(test_id, workload=workload, topics=(TopicInfo(TOPIC, 1, 3, 2),), **reads)
    moments = [(at, end, row) for row, op in enumerate(golden["ops"]) for end, at in enumerate(op[2:])]
    for _, done, row in sorted(one for one in moments if one[0] is not None):
        f, value, _, _ = golden["ops"][row]
        columns: dict[str, Any] = {"topic": TOPIC, "partition": 0}
        if f in ("append", "write", "enqueue"):
            sent, offset = value if f == "append" else (value, None)
            reported = UNKNOWN if not done else ACKED_WITHOUT_OFFSET if offset is None else offset
            f, columns["records"] = "send", (Record(0, reported, sent << 4),)
        elif f == "read" and workload == "log":
            f, records = "poll", value["records"] if done else ()
            columns["records"] = tuple(Record(0, offset, got << 4) for offset, got in records)
        elif done and f == "end":
            columns["high_watermark"] = value
        elif done:
            columns["records"] = () if value in (-1, "empty") else (Record(0, 0, value << 4),)
        run.event(row, Type.OK if done else Type.INVOKE, f, **columns)
    return run


def _mutants(folder: Path) -> None:
    for one in mutations():
        all_made = (make("t", seed, one.suited(TO_MUTATE)) for seed in range(200))
        mutants = ((made, events) for made in all_made if (events := mutate(one, made)))
        for number, (made, events) in enumerate(itertools.islice(mutants, MUTANTS)):
            name = f"{one.name}-{number}"
            write_events(folder / name, replace(made.info, test_id=name), events)
    for other in object_mutations():
        objects = (make_objects("t", seed, KNOBS[other.workload]) for seed in range(200))
        of_objects = ((made, events) for made in objects if (events := mutate_objects(other, made)))
        for number, (of, events) in enumerate(itertools.islice(of_objects, MUTANTS)):
            name = f"{other.name}-{number}"
            write_events(folder / name, replace(of.info, test_id=name), events)


def _drawn(folder: Path, seeds: range) -> None:
    """Correct histories, and the same ones with the first mutation, in random order, that has a place."""
    for seed in seeds:
        if objects := seed % OF_OBJECTS == 0:
            made: Any = make_objects(f"drawn-{seed}", seed, drawn_objects(seed // OF_OBJECTS, OPERATIONS))
            every: list[Any] = [m for m in object_mutations() if m.workload == made.info.workload]
        else:
            made, every = make(f"drawn-{seed}", seed, drawn(seed, OPERATIONS)), list(mutations())
        made.write(folder / str(seed))
        random.Random(seed).shuffle(every)
        for one in every:
            try:
                events = mutate_objects(one, made) if objects else mutate(one, made)
            except NO_PLACE:
                continue
            if events is not None:
                name = f"drawn-{seed}-{one.name}"
                write_events(folder / f"{seed}-{one.name}", replace(made.info, test_id=name), events)
                break


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="an empty one")
    parser.add_argument("--histories", type=int, default=10_000, help="drawn ones; half of them are mutated")
    options = parser.parse_args()
    write_all(options.folder, options.histories)
    return 0


if __name__ == "__main__":
    sys.exit(main())
