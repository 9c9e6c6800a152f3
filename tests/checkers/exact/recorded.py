"""The histories that Porcupine and Knossos keep in their repositories, as operations of ours.

Of Porcupine's folder ``test_data``: ``jepsen/etcd_NNN.log`` are logs of Jepsen's test of etcd, a register
with compare-and-set in which a failed one tells that the value was another; ``kv/*.txt`` are histories of a
map of texts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wrackline.checkers.models import Operation, Outcome
from wrackline.harness.jepsen.operations import paired
from wrackline.history.jepsen.edn import forms
from wrackline.history.jepsen.ops import typed

_ETCD = re.compile(r"INFO\s+jepsen\.util\s+-\s+(\d+)\s+:(\w+)\s+:(\w+)\s+(.*)")
_KV = re.compile(r'\{:process (\d+), :type :(\w+), :f :(\w+), :key "(.*)", :value (?:nil|"(.*)")\}')


@dataclass(frozen=True, slots=True)
class Recorded:
    name: str
    """As in tests/checkers/golden/porcupine.json: etcd_000, c10-bad."""
    model: str
    settings: dict[str, Any]
    operations: tuple[Operation, ...]


def recorded(folder: Path) -> Iterator[Recorded]:
    """All of Porcupine's ``test_data``. An empty log (there is one) is left out."""
    for path in sorted(folder.glob("jepsen/*.log")):
        operations = tuple(_paired(_etcd(path)))
        if operations:
            yield Recorded(path.stem, "strict-cas-register", {}, operations)
    for path in sorted(folder.glob("kv/*.txt")):
        yield Recorded(path.stem, "kv", {"initial": ""}, tuple(_paired(_kv(path))))


def of_knossos(folder: Path) -> Iterator[tuple[Recorded, str]]:
    """All of Knossos' ``data``, each with the verdict that its folder tells. Knossos takes a read of nil for
    one whose value is not known, so these are left out."""
    for path in sorted(folder.glob("*/*/*.edn")):
        model, kind = path.parts[-3:-1]
        with path.open() as lines:
            said = [one for form in forms(lines) for one in (form if isinstance(form, tuple) else (form,))]
        operations = tuple(
            one for one in paired(typed(said)).done if one.f != "read" or one.value is not None
        )
        settings = {} if model == "mutex" else {"initial": 0}
        yield Recorded(path.stem, model, settings, operations), "valid" if kind == "good" else "invalid"


def _etcd(path: Path) -> Iterator[tuple[int, str, str, Any]]:
    for line in path.read_text().splitlines():
        if found := _ETCD.fullmatch(line.strip()):
            process, kind, f, value = found.groups()
            numbers = [int(one) for one in re.findall(r"\d+", value)]
            # A read that timed out shows nothing, and its process goes on.
            kind = "info" if kind == "fail" and f == "read" else kind
            yield int(process), kind, f, numbers if f == "cas" else numbers[0] if numbers else None


def _kv(path: Path) -> Iterator[tuple[int, str, str, Any]]:
    for line in path.read_text().splitlines():
        if found := _KV.fullmatch(line.strip()):
            process, kind, f, key, value = found.groups()
            yield int(process), kind, f, [key, value]


def _paired(events: Iterable[tuple[int, str, str, Any]]) -> Iterator[Operation]:
    """In order of completion; what never completed is last."""
    open_of: dict[int, Operation] = {}
    for at, (process, kind, f, value) in enumerate(events):
        if kind == "invoke":
            open_of[process] = Operation(process, f, value, None, at, None, Outcome.INFO)
        elif kind == "ok":
            yield replace(open_of.pop(process), result=value, ret=at, outcome=Outcome.OK)
        elif kind == "fail":
            yield replace(open_of.pop(process), ret=at, outcome=Outcome.FAIL)
        else:
            yield open_of.pop(process)
    yield from open_of.values()
