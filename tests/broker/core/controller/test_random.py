"""Random lives of a cluster keep I12, I14, R32 and I02, and the defects of the rules do not.

The replicas are ghosts: each has a version, and one that is below the committed version has lost something.
Versions move only where the data plane could move them: with the leader, while the ISR is at least MinISR.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from kio.schema.errors import ErrorCode

from tests.broker.core.controller.driver import Driver, T
from wrackline.broker.defects import apply
from wrackline.broker.model.batches import batch
from wrackline.broker.model.messages.controller import (
    AlterPartitionItem,
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from wrackline.broker.model.metadata.image import ClusterImage, PartitionImage
from wrackline.broker.model.metadata.records import decode
from wrackline.broker.model.types import NO_LEADER
from wrackline.broker.rules.leadership.election import RECOVERING
from wrackline.broker.rules.profile import Rules

BROKERS = (1, 2, 3, 4)
MIN_ISR = 2
some_broker = st.sampled_from(BROKERS)


@dataclass
class Held:
    """An AlterPartition on its way, and what its leader knew when it sent it."""

    request: AlterPartitionRequest
    lives: dict[int, int] = field(default_factory=dict)


class Life(RuleBasedStateMachine):
    in_force = Rules()
    seen: ClassVar[Counter[str]] = Counter()

    @initialize()
    def begin(self) -> None:
        self.driver = Driver(rules=self.in_force)
        self.driver.start(*BROKERS)
        self.driver.create(replicas=BROKERS[:3])
        self.version = dict.fromkeys(BROKERS, 0)
        self.lives = dict.fromkeys(BROKERS, 0)
        self.down: dict[int, str] = {}
        self.committed = 0
        self.held: list[Held] = []
        self._write()

    # --- the world ------------------------------------------------------------------------------------------

    @rule(broker=some_broker, how=st.sampled_from(["clean", "kept", "lost"]))
    def stop(self, broker: int, how: str) -> None:
        if broker not in self.down:
            self.down[broker] = how

    @rule(broker=some_broker)
    def come_back(self, broker: int) -> None:
        how = self.down.get(broker)
        if how is None:
            return
        previous = self.driver.epochs[broker] if how == "clean" and self._left(broker) else -1
        response = self.driver.register(broker, previous=previous)
        if response.error is ErrorCode.none:
            self.seen[f"back after {how}"] += 1
            del self.down[broker]
            self.lives[broker] += 1
            if how == "lost":
                self.version[broker] = 0

    def _left(self, broker: int) -> bool:
        """A clean stop is granted by the controller; asked for now, when it matters."""
        beat = self.driver.beat(broker, stop=True)
        return beat.error is ErrorCode.none and beat.should_shut_down

    @rule(broker=some_broker, fence=st.booleans())
    def heartbeat(self, broker: int, fence: bool) -> None:
        if broker not in self.down:
            self.driver.beat(broker, fence=fence)

    @rule(brokers=st.sets(some_broker, min_size=1, max_size=4))
    def silence(self, brokers: set[int]) -> None:
        for broker in BROKERS:
            if broker not in brokers and broker not in self.down:
                self.driver.beat(broker)
        self.driver.run_until(self.driver.now_ms + self.driver.config.session_timeout_ms / 2)

    @rule(brokers=st.sets(some_broker, min_size=1, max_size=4), how=st.sampled_from(["kept", "lost"]))
    def outage(self, brokers: set[int], how: str) -> None:
        """They go together, are fenced one by one, and come back."""
        for broker in sorted(brokers):
            self.stop(broker, how)
        self.silence(brokers)
        self.silence(brokers)
        for broker in sorted(brokers):
            self.come_back(broker)

    @rule(power=st.booleans())
    def restart_the_controller(self, power: bool) -> None:
        self.driver.restart(power=power)

    # --- the leader -----------------------------------------------------------------------------------------

    @precondition(lambda self: self._leads() is not None)
    @rule(keep=st.sets(some_broker), hold=st.booleans())
    def change_isr(self, keep: set[int], hold: bool) -> None:
        p = self.driver.partition()
        broker_epochs = {b: known.epoch for b, known in self.driver.controller.committed.brokers.items()}
        members = [b for b in p.replicas if b == p.leader or (b in keep and b not in self.down)]
        isr = tuple((b, -1 if b in p.isr else broker_epochs[b]) for b in members)
        item = AlterPartitionItem(T, p.topic_id, p.leader_epoch, p.partition_epoch, isr)
        request = AlterPartitionRequest(p.leader, broker_epochs[p.leader], (item,))
        self.held.append(Held(request, dict(self.lives)))
        if not hold:
            self._deliver(len(self.held) - 1)

    @precondition(lambda self: bool(self.held))
    @rule(data=st.data())
    def deliver_late(self, data: st.DataObject) -> None:
        self._deliver(data.draw(st.integers(0, len(self.held) - 1)))

    def _deliver(self, index: int) -> None:
        held = self.held.pop(index)
        response = self.driver.ask(held.request)
        assert isinstance(response, AlterPartitionResponse)
        if response.error is ErrorCode.none and response.partitions[0].error is ErrorCode.none:
            leader = response.partitions[0].leader_id
            self.seen["isr changed"] += 1
            for broker, epoch in held.request.partitions[0].isr:
                if epoch >= 0 and self.lives[broker] == held.lives[broker]:
                    self.version[broker] = max(self.version[broker], self.version[leader])

    def _leads(self) -> PartitionImage | None:
        p = self.driver.partition()
        return p if p.leader != NO_LEADER and p.leader not in self.down else None

    @rule()
    def answer_the_controller(self) -> None:
        """All who are asked for the end of their log; those who are down cannot."""
        before = self.driver.partition()
        for broker in sorted(self.driver.asked):
            if broker in self.down:
                self.driver.no_answer(broker)
            else:
                self.driver.tell_log(broker, 0, self.version[broker])
        after = self.driver.partition()
        if before.leader != NO_LEADER or after.leader == NO_LEADER:
            return
        best = max(self.version[broker] for broker in before.last_known_elr)
        assert self.version[after.leader] == best
        self.seen["recovered"] += 1
        self.seen["recovered with loss"] += best < self.committed
        # Every member of the quorum had lost something: what is left is the new truth.
        self.committed = best
        self.version = {broker: min(version, best) for broker, version in self.version.items()}

    @rule()
    def write(self) -> None:
        self._write()

    def _write(self) -> None:
        p = self._leads()
        if p is not None and len(p.isr) >= MIN_ISR and not any(b in self.down for b in p.isr):
            self.committed += 1
            for broker in p.isr:
                self.version[broker] = self.committed

    # --- what must hold -------------------------------------------------------------------------------------

    @invariant()
    def i02_every_candidate_is_complete(self) -> None:
        p = self.driver.partition()
        for broker in (*p.isr, *p.elr):
            if self.down.get(broker) != "lost":
                assert self.version[broker] == self.committed, f"replica {broker} of {p} lost records"

    @invariant()
    def committed_is_speculative_once_flushed(self) -> None:
        assert self.driver.controller.committed == self.driver.controller.speculative

    def teardown(self) -> None:
        check_history(self.driver)


def check_history(driver: Driver) -> None:
    """I12 from record to record, I14 and R32 from batch to batch; R32 not while the ISR of a recovered
    partition has never been large enough again: its quorum is what recovery left, the winner."""
    image = ClusterImage()
    recovered = False
    for data in driver.disk.batches:
        for header, whole in batch.split(data):
            for offset, value in batch.values_of(header, whole):
                before = image.partition(T)
                image.apply(decode(value), offset)
                after = image.partition(T)
                check_epochs(before, after)
                if after is not None and after != before:
                    recovered = len(after.isr) < MIN_ISR and (
                        recovered or (after.leader_recovery_state == RECOVERING and after.leader != NO_LEADER)
                    )
            check_sanity(image, 1 if recovered else MIN_ISR)


def check_epochs(before: PartitionImage | None, after: PartitionImage | None) -> None:
    if before is None or after is None or before == after:
        return
    assert after.partition_epoch == before.partition_epoch + 1
    assert after.leader_epoch - before.leader_epoch == int(after.leader != before.leader)


def check_sanity(image: ClusterImage, quorum: int) -> None:
    p = image.partition(T)
    if p is None:
        return
    isr, elr, last = set(p.isr), set(p.elr), set(p.last_known_elr)
    assert isr | elr | last <= set(p.replicas)
    assert len(isr) + len(elr) + len(last) == len(isr | elr | last)
    assert len(isr) < MIN_ISR or not elr | last
    assert p.leader in isr or p.leader == NO_LEADER
    assert all(image.brokers[b].active for b in isr)
    assert len(isr | elr | last) >= quorum
    Life.seen["no candidate"] += not isr and not elr
    Life.seen["elr in use"] += bool(elr)


PROFILE: dict[str, Any] = {
    "deadline": None,
    "stateful_step_count": 40,
    "suppress_health_check": list(HealthCheck),
    "derandomize": True,
    "database": None,
}


def test_the_rules_keep_the_invariants() -> None:
    Life.seen.clear()
    run_machine(Life, settings=settings(max_examples=100, **PROFILE))
    often = {"back after clean", "back after lost", "isr changed", "elr in use", "no candidate", "recovered"}
    assert all(Life.seen[what] >= 10 for what in often), f"too little happened: {Life.seen}"


@pytest.mark.parametrize("defect", ["ignore_unclean", "elr_not_cleared", "allow_fenced_isr"])
def test_a_wrong_rule_breaks_them(defect: str) -> None:
    class Wrong(Life):
        in_force = apply(Rules(), [defect])

    found = settings(max_examples=600, phases=[Phase.generate], **PROFILE)
    with pytest.raises(AssertionError):
        run_machine(Wrong, settings=found)
