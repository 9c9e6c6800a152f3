"""An observer that leaves alone what is as before misses nothing that one finds which looks at everything."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from wrackline.broker.core.controller.controller import Controller
from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.effects import Effect
from wrackline.broker.model.types import NodeId
from wrackline.simulator.guided.catalogue import SCHEDULES
from wrackline.simulator.guided.schedule import play
from wrackline.simulator.invariants.observed.observer import Observer
from wrackline.simulator.invariants.observed.step import ObservedStep

SCHEDULED = (
    "raft_keep_role",
    "raft_forget_vote",
    "raft_commit_old_epoch",
    "no_broker_epoch",
    "no_maximal_isr",
    "epoch_ckpt_no_fsync",
    "reassign_no_minisr",
)
_touched = Observer._touched


def _any(self: Observer, node: NodeId, effects: Sequence[Effect]) -> bool:  # noqa: ARG001
    return bool(effects)


def _every_voter(self: Observer, node: NodeId) -> Controller | None:
    return self._voter(node)


def _every_replica(self: Observer, seen: ObservedStep, replica: Replica, _: bool) -> None:
    _touched(self, seen, replica, True)


@pytest.mark.parametrize("name", SCHEDULED)
def test_the_same_is_noticed_as_by_a_look_at_everything(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    guided = SCHEDULES[name]
    changes = play(guided, broken=True)
    monkeypatch.setattr(Observer, "_concern", _any)
    monkeypatch.setattr(Observer, "_changed_voter", _every_voter)
    monkeypatch.setattr(Observer, "_touched", _every_replica)
    everything = play(guided, broken=True)
    assert changes.oracles
    assert (changes.oracles, changes.at_ms) == (everything.oracles, everything.at_ms)
