"""A cluster for a guided schedule: one partition, control over every message and process, and oracles.

The schedule says what happens in words of the catalogue (commit, fence, hold, power, ...). Beside the
invariants of ``wrackline.simulator.invariants.catalogue`` the stage has oracles for what only a whole run can
show: acknowledged records that are gone (``lost-write``), replicas that differ below their high watermarks
(``divergence``), a record twice (``duplicate``), an end offset that goes back (``end-offset``), a wait that
does not end (``liveness``, ``stall``), an ISR that does not come to rest (``flapping``).
"""

from __future__ import annotations

from collections.abc import Callable

from kio.schema.errors import ErrorCode

from wrackline.broker.core.replication.replica import Replica
from wrackline.broker.model.batches import batch
from wrackline.broker.model.messages.requests import (
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    ProduceResult,
)
from wrackline.broker.model.types import NO_LEADER, NodeId
from wrackline.simulator.clients.batches import encode
from wrackline.simulator.guided.cluster import Cluster
from wrackline.simulator.guided.setting import CONTROLLER, LONG_MS, QUIET, Finding, Setting, T
from wrackline.simulator.invariants.checker import checker_of
from wrackline.simulator.world.errors import SimulationError
from wrackline.simulator.world.network import Hold
from wrackline.simulator.world.nodes import ZOOKEEPER
from wrackline.simulator.world.world import Call, World, WorldOptions


class Stage(Cluster):
    def __init__(self, setting: Setting, defects: tuple[str, ...] = (), seed: int | str = 0) -> None:
        self.setting = setting
        self._found: list[Finding] = []
        self._calls: list[tuple[Call, tuple[bytes, ...], int]] = []
        self._cuts: list[tuple[NodeId, NodeId]] = []
        super().__init__(_world_of(setting, defects, seed), T.topic, (T.partition,))
        zookeeper = self.world.zookeeper is not None
        self.coordinator: NodeId = ZOOKEEPER if zookeeper else CONTROLLER
        """Who ends the session of a broker that is cut off from it."""
        self.checker = checker_of(self.world)
        self.world.observers.append(self.checker)
        self.world.create_topic(T.topic, 1, setting.replicas, setting.topic)
        self.until(
            lambda: self.leader is not None and self.isr == self.replicas, "a leader, and all in the ISR"
        )

    # --- what there is -------------------------------------------------------------------------------------

    @property
    def leader(self) -> NodeId | None:
        """The elected leader, once it knows that it leads in this epoch; None before."""
        node = self.elected
        if node == NO_LEADER:
            return None
        replica = self.replica(node)
        partition = self.world.image.partition(T)
        knows = replica is not None and replica.leader is not None and partition is not None
        knows = knows and replica.leading.open  # type: ignore[union-attr]
        return node if knows and replica.leader_epoch == partition.leader_epoch else None  # type: ignore[union-attr]

    def replica(self, node: NodeId) -> Replica | None:
        core = self.world.brokers[node].core
        return None if core is None else core.replica(T)

    def leo(self, node: NodeId) -> int:
        log = self.world.brokers[node].disk.logs.get(T)
        return 0 if log is None else log.leo

    def high_watermark(self, node: NodeId) -> int:
        replica = self.replica(node)
        return -1 if replica is None else replica.high_watermark

    def values(self, node: NodeId) -> list[bytes]:
        log = self.world.brokers[node].disk.logs.get(T)
        return [] if log is None else [row.value for row in log.rows()]

    def must(
        self, condition: Callable[[], bool], what: str, within_ms: float = 10_000, oracle: str = "liveness"
    ) -> bool:
        """Run until the condition holds. It is a finding of this oracle when it does not in time."""
        try:
            self.until(condition, what, within_ms)
        except SimulationError as late:
            self.find(oracle, str(late))
            return False
        return True

    def find(self, oracle: str, text: str) -> None:
        self._found.append(Finding(oracle, text, self.world.now_ms))

    @property
    def stuck(self) -> bool:
        """Tells whether a state that had to come did not come: then no end of the run can be judged."""
        return any(finding.oracle == "liveness" for finding in self._found)

    def findings(self) -> tuple[Finding, ...]:
        invariants = [Finding(v.id, str(v), v.at_ms) for v in self.checker.violations]
        return tuple(sorted([*invariants, *self._found], key=lambda finding: finding.at_ms))

    # --- clients -------------------------------------------------------------------------------------------

    def produce(
        self,
        node: NodeId,
        *values: bytes,
        acks: int = -1,
        timeout_ms: int = 60_000,
        sequence: int | None = None,
    ) -> Call:
        """A produce request on its way; ``sequence`` makes it an idempotent producer's (id 1)."""
        self.say(f"produce {values!r} at {node}, acks={acks}")
        if sequence is None:
            records = batch.build(values, 0, -1, int(self.world.now_ms))
        else:
            numbers = [int.from_bytes(value, "big") for value in values]
            records = encode(numbers, 0, (1, 0, sequence))
        request = ProduceRequest(acks, timeout_ms, (ProducePartition(T, records),))
        call = self.world.ask(node, request, timeout_ms + 5_000)
        self._calls.append((call, values, acks))
        return call

    def result(self, call: Call) -> ProduceResult | None:
        return call.response.partitions[0] if isinstance(call.response, ProduceResponse) else None

    def is_acked(self, call: Call) -> bool:
        result = self.result(call)
        return result is not None and result.error is ErrorCode.none

    def write(self, node: NodeId, *values: bytes) -> None:
        """Append with acks=1: the records are on this node's log, and perhaps nowhere else."""
        call = self.produce(node, *values, acks=1)
        self.until(lambda: call.done, f"{values!r} on {node}")
        if not self.is_acked(call):
            raise SimulationError(f"{node} did not take {values!r}: {self.result(call) or call.failed}")

    def acked(self, node: NodeId, *values: bytes) -> None:
        """Have records acknowledged with acks=all. The followers need not know that they are committed."""
        call = self.produce(node, *values)
        self.until(lambda: call.done, f"{values!r} acknowledged by {node}")
        if not self.is_acked(call):
            raise SimulationError(
                f"{node} did not acknowledge {values!r}: {self.result(call) or call.failed}"
            )

    def commit(self, *values: bytes) -> None:
        """Have records acknowledged, and wait until every live ISR member knows that they are committed."""
        leader = self.ready()
        self.acked(leader, *values)
        end = self.leo(leader)
        members = [node for node in self.isr if self.up(node)]
        self.until(lambda: all(self.high_watermark(n) >= end for n in members), f"{values!r} known to all")

    def ready(self) -> NodeId:
        self.until(lambda: self.leader is not None, "a leader that knows it")
        leader = self.leader
        assert leader is not None
        return leader

    # --- faults --------------------------------------------------------------------------------------------

    def cut(self, a: NodeId, *others: NodeId) -> None:
        for other in others:
            if (a, other) not in self._cuts and (other, a) not in self._cuts:
                self._cuts.append((a, other))
                self.world.cut(a, other)
        self.say(f"cut {a} from {', '.join(map(str, others))}")

    def mend(self, a: NodeId, *others: NodeId) -> None:
        for other in others:
            for pair in ((a, other), (other, a)):
                if pair in self._cuts:
                    self._cuts.remove(pair)
                    self.world.mend(a, other)
        self.say(f"mend {a} to {', '.join(map(str, others))}")

    def split(self) -> None:
        """Cut all links between brokers; each still reaches the controller."""
        nodes = sorted(self.world.brokers)
        for at, node in enumerate(nodes):
            self.cut(node, *nodes[at + 1 :])

    def fence(self, node: NodeId) -> None:
        """Cut a broker off from the controller, or from ZooKeeper, until its session has expired."""
        if self.up(node):
            self.cut(node, self.coordinator)
        self.until(lambda: self.fenced(node), f"{node} fenced")
        self.say(f"{node} fenced: leader {self.elected}, ISR {sorted(self.isr)}, ELR {sorted(self.elr)}")

    def unfence(self, node: NodeId) -> None:
        if not self.up(node):
            self.world.start(node)
        self.mend(node, self.coordinator)
        self.until(lambda: not self.fenced(node), f"{node} unfenced")
        self.say(f"{node} unfenced: leader {self.elected}, ISR {sorted(self.isr)}, ELR {sorted(self.elr)}")

    def isolate(self, node: NodeId) -> None:
        """Cut a broker off from all others, and have it fenced."""
        self.cut(node, *(other for other in self.world.brokers if other != node))
        self.fence(node)

    def rejoin(self, node: NodeId) -> None:
        """Unfence a broker, let all others learn of that, then mend its links. Does not wait until it is in
        the ISR."""
        self.unfence(node)
        self.run(100)
        self.mend(node, *(other for other in self.world.brokers if other != node))

    def power(self, node: NodeId, keep: int) -> None:
        """Cut a broker's power; of the partition's log the offsets below ``keep`` survive."""
        disk = self.world.brokers[node].disk
        whole = {tp: log.leo for tp, log in disk.logs.items()}
        self.world.power(node, {**whole, T: keep})
        self.say(f"power cut at {node}: its log ends at {self.leo(node)}")

    def start(self, node: NodeId) -> None:
        self.world.start(node)
        self.say(f"start {node}")

    def release(self, hold: Hold) -> None:
        self.say(f"release {hold.label}")
        self.world.release(hold)

    def drop(self, hold: Hold) -> None:
        self.say(f"lose {hold.label}")
        self.world.release(hold, drop=True)

    # --- the end -------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Heal everything; then every acknowledged record must be there, once, and the same on all
        replicas."""
        self.say("everything heals")
        self._cuts.clear()
        self.world.heal()
        for server in self.world.servers():
            if server.core is None:
                self.world.start(server.id)
            elif server.paused:
                self.world.resume(server.id)
        healed = self.must(self._is_whole, "everyone in the ISR again", LONG_MS)
        leader = self.leader
        if leader is None:
            return
        if healed:
            self._ends_agree(leader)
        values = self.values(leader)
        self._nothing_lost(values)
        self._nothing_twice(values)

    def _is_whole(self) -> bool:
        """Tells whether there is a leader that knows it, the ISR is full, of brokers that are there, and
        no reassignment is under way."""
        there = not any(map(self.fenced, self.replicas))
        return self.leader is not None and self.at_rest() and self.isr == self.replicas and there

    def _ends_agree(self, leader: NodeId) -> None:
        replicas = sorted(self.replicas)
        if not self.must(lambda: len({self.leo(n) for n in replicas}) == 1, "logs of one length", 5_000):
            return
        for node in replicas:
            if self.values(node) != self.values(leader):
                self.find(
                    "divergence", f"{node} has {self.values(node)}, leader {leader} {self.values(leader)}"
                )

    def _nothing_lost(self, values: list[bytes]) -> None:
        if self.setting.losing:
            return
        for call, expected, acks in self._calls:
            promised = acks == -1 or acks == self.setting.acks
            if promised and (acks == 0 or self.is_acked(call)):
                gone = [value for value in expected if value not in values]
                if gone:
                    self.find("lost-write", f"{gone!r} acknowledged, the log has {values!r}")

    def _nothing_twice(self, values: list[bytes]) -> None:
        if self.setting.idempotent:
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                self.find("duplicate", f"{twice!r} more than once in {values!r}")


def _world_of(setting: Setting, defects: tuple[str, ...], seed: int | str) -> World:
    return World(
        seed,
        WorldOptions(
            brokers=setting.brokers,
            controllers=setting.controllers,
            profile=setting.profile,
            upgrade_to=setting.upgrade_to,
            level=setting.level,
            defects=defects,
            broker={
                "replica_lag_time_max_ms": setting.lag_ms,
                "request_timeout_ms": setting.request_timeout_ms,
                **setting.broker,
            },
            controller={"min_insync_replicas": setting.min_isr, **setting.controller},
            network=QUIET,
        ),
    )
