"""The controller quorum as its leader described it, and how a step has changed it, written by steps and read
by proofs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from wrackline.nemesis.faults.admin_steps import DescribeQuorum
from wrackline.nemesis.faults.outputs import carried_out, output_of
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import StepResult
from wrackline.systems.base import Quorum, Voter


@dataclass(frozen=True, slots=True)
class Transition:
    """The quorum before a step changed it, and afterwards."""

    before: Quorum
    after: Quorum

    def __str__(self) -> str:
        return f"voters {members(self.before.voters)} before, {members(self.after.voters)} then"


def members(voters: Iterable[Voter]) -> str:
    return ", ".join(map(str, voters)) or "none"


def say_quorum(quorum: Quorum) -> str:
    """The output of a `DescribeQuorum`."""
    return json.dumps(asdict(quorum))


def say_transition(before: Quorum, after: Quorum) -> str:
    """The output of a step that changes the quorum."""
    return json.dumps([asdict(before), asdict(after)])


def read_quorum(dones: Sequence[StepResult]) -> Quorum | None:
    """Returns the last description of the quorum among these steps; None when there was none."""
    texts = [done.output for done in carried_out(dones, DescribeQuorum)]
    return _quorum(json.loads(texts[-1])) if texts and texts[-1] else None


def read_transition(dones: Sequence[StepResult], kind: type[Step]) -> Transition | None:
    """Returns how the first step of this kind changed the quorum; None where none was carried out."""
    text = output_of(dones, kind)
    return Transition(*map(_quorum, json.loads(text))) if text else None


def _quorum(fields: Mapping[str, Any]) -> Quorum:
    def voters(key: str) -> tuple[Voter, ...]:
        return tuple(Voter(*one) for one in fields[key])

    return Quorum(fields["leader"], fields["epoch"], voters("voters"), voters("observers"))
