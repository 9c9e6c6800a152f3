"""Histories to try the judge on: ``python -m wrackline.proving make|mutate|case|list``, then
``wrackline analyze DIR``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from wrackline.checkers.cases.language import CaseError, parse
from wrackline.proving.model.knobs import TO_MUTATE, Knobs, drawn
from wrackline.proving.model.made import MadeTable, make, write_events
from wrackline.proving.model.object_events import make_objects, write_objects
from wrackline.proving.model.objects import ObjectKnobs, drawn_objects
from wrackline.proving.mutations.catalogue import mutate, mutations
from wrackline.proving.mutations.mutation import Mutation
from wrackline.proving.mutations.objects import (
    KNOBS,
    ObjectMutation,
    mutate_objects,
    object_mutations,
)
from wrackline.proving.pairs import PAIRS, anomaly_of
from wrackline.proving.splicing import spliced

_TRIES = 200
_EXAMPLES = """examples:
  python -m wrackline.proving make results/big --operations 1000000 --partitions 16
  python -m wrackline.proving make results/odd --seed 4711 --drawn
  python -m wrackline.proving make results/queue --workload queue --operations 1000000
  python -m wrackline.proving mutate poll-skip results/skip
  python -m wrackline.proving mutate queue-swap-dequeues results/swapped
  python -m wrackline.proving case results/mine "p: a@0 | p: b@1 | e: end 1 | final a@0 b@1"
"""


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="python -m wrackline.proving",
        description=__doc__,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("list", help="the mutations: anomaly, what is changed, what else follows")
    sub = commands.add_parser("make", help="write a correct history")
    sub.add_argument("directory", type=Path)
    sub.add_argument("--workload", choices=("log", "register", "queue"), default="log")
    sub.add_argument("--seed", type=int, default=1)
    sub.add_argument("--operations", type=int, default=1_000, help="of clients, about (default 1000)")
    sub.add_argument("--partitions", type=int, default=2)
    sub.add_argument(
        "--drawn", action="store_true", help="all other knobs from the seed too, as in false_alarms.py"
    )
    sub = commands.add_parser("mutate", help="write a correct history with one anomaly put into it")
    sub.add_argument("anomaly", help="an anomaly, or the name of a mutation: see list")
    sub.add_argument("directory", type=Path)
    sub.add_argument("--seed", type=int, default=1, help="of the first history that is tried")
    sub = commands.add_parser("case", help="write a history given in a line (checkers/cases/language.py)")
    sub.add_argument("directory", type=Path)
    sub.add_argument("text")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    try:
        if options.command == "list":
            for one in mutations():
                also = ", ".join(sorted(one.findings - {one.anomaly}))
                print(f"{one.anomaly:27}{one.name:36}{one.what}" + (f"; so also: {also}" if also else ""))
            for other in object_mutations():
                print(f"{other.anomaly:27}{other.name:36}{other.what} ({other.rule})")
            return 0
        print(_written(options))
    except (CaseError, ValueError, OSError) as error:
        print(f"proving: {error}", file=sys.stderr)
        return 2
    return 0


def _written(options: argparse.Namespace) -> str:
    directory: Path = options.directory
    if directory.exists() and any(directory.iterdir()):
        raise FileExistsError(f"{directory} is not empty: each run needs a directory of its own")
    if options.command == "case":
        case = parse(options.text, directory.name)
        write_events(directory, case.info, case.events)
        return f"{directory}: {len(case.events)} events"
    if min(options.seed, getattr(options, "operations", 1) - 1, getattr(options, "partitions", 1) - 1) < 0:
        raise ValueError("operations and partitions must be 1 or more, the seed 0 or more")
    if options.command == "make":
        return _made(options)
    return _mutated(options.anomaly, directory, options.seed)


def _made(options: argparse.Namespace) -> str:
    name, seed, operations = options.directory.name, options.seed, options.operations
    if options.workload == "log":
        knobs = Knobs(operations=operations, partitions=options.partitions)
        made = make(name, seed, drawn(seed, operations) if options.drawn else knobs)
        made.write(options.directory)
        return f"{options.directory}: {len(made.table):,} events, nothing wrong with them"
    if options.drawn:
        any_of_them = drawn_objects(seed, operations)
        by_end = any_of_them.by_end and options.workload == "register"
        of_object = replace(any_of_them, workload=options.workload, by_end=by_end)
    else:
        of_object = ObjectKnobs(options.workload, operations=operations, partitions=options.partitions)
    events = write_objects(options.directory, seed, of_object)
    return f"{options.directory}: {events:,} events, nothing wrong with them"


def _mutated(wanted: str, directory: Path, seed: int) -> str:
    every: list[Mutation | ObjectMutation] = [*mutations(), *object_mutations()]
    chosen = [one for one in every if wanted in (one.name, one.anomaly)]
    pairs = [texts for name, texts in PAIRS.items() if anomaly_of(name) == wanted]
    if not chosen and pairs:
        return _spliced(pairs[0][0], directory, seed)
    if not chosen:
        raise ValueError(
            f"no mutation and no anomaly is called {wanted!r}: see python -m wrackline.proving list"
        )
    one = chosen[0]
    for number in range(seed, seed + _TRIES):
        said = _put_in(one, directory, number)
        if said is not None:
            return f"{directory}: seed {number}, {one.what}: {said} and nothing else"
    raise ValueError(f"none of the seeds {seed} to {seed + _TRIES - 1} has a place for {one.name}")


def _spliced(text: str, directory: Path, seed: int) -> str:
    """Writes the case of an anomaly without a mutation, spliced into a correct history."""
    info, events = spliced(parse(text), make(directory.name, seed, TO_MUTATE), seed)
    write_events(directory, info, events)
    return f"{directory}: seed {seed}, the case {text!r} among others, and nothing else"


def _put_in(one: Mutation | ObjectMutation, directory: Path, seed: int) -> str | None:
    """Writes a history with the anomaly in it. Returns what must be found; None where it has no place."""
    made: MadeTable
    if isinstance(one, ObjectMutation):
        made = make_objects(directory.name, seed, KNOBS[one.workload])
        events, findings = mutate_objects(one, made), f"{one.anomaly} ({one.rule})"
    else:
        made = make(directory.name, seed, one.suited(TO_MUTATE))
        events, findings = mutate(one, made), ", ".join(sorted(one.findings))
    if events is None:
        return None
    write_events(directory, made.info, events)
    return findings


if __name__ == "__main__":
    sys.exit(main())
