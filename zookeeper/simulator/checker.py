"""The invariants of profile zk08 (docs/invariants.md): those of the catalogue that can be stated without
controllers and epochs, and I21 and I22, which are this profile's own.

They hold while failures come one by one (``FaultOptions.one_by_one``): the next one when every member of the
ISR has what is committed. The checker knows what no node knows: what was committed and acknowledged, and
whose session ZooKeeper has.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator

from wrackline.broker.model.effects import Append, CreateLog, DeleteLog, Reply, ResetLog, Truncate
from wrackline.broker.model.events import RequestReceived
from wrackline.broker.model.messages.requests import ProduceRequest, ProduceResponse
from wrackline.broker.model.metadata.image import PartitionImage
from wrackline.broker.model.types import METADATA, NodeId, TopicPartition
from wrackline.broker.model.values import NO_ERROR
from wrackline.simulator.invariants.invariant import Violation
from wrackline.simulator.invariants.observed.partition import Mark, ObservedPartition
from wrackline.simulator.world.errors import SimulationError
from wrackline.simulator.world.world import StepRecord, World
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.broker import ZookeeperBroker
from wrackline.zookeeper.core.replicas.local import Local, Phase
from wrackline.zookeeper.simulator.ensemble import ensemble_of
from wrackline.zookeeper.simulator.image import adds_up

NAMES = {
    "I01": "leader completeness",
    "I03": "log matching",
    "I07": "no committed record lost globally",
    "I10": "watermark bounds",
    "I13": "one leader in each epoch",
    "I16": "one fetcher",
    "I17": "acknowledgements",
    "I19": "append-only",
    "I21": "AR = ISR + CUR",
    "I22": "one leader, and HW <= the least end of the ISR",
}
BROKEN = {
    "I02": "a member of the ISR that starts again cuts its log to its own high watermark and stays a member",
    "I05": "there is no controller whose ISR and the leader's could differ",
    "I06": "there is no metadata log",
    "I08": "an unclean restart takes nobody out of the ISR",
    "I09": "there is no LastKnownELR",
    "I11": "there are no broker epochs",
    "I12": "there are neither leader nor partition epochs",
    "I13": "at the levels without epochs nothing tells one leader's record at an offset from another's",
    "I14": "a broker that is gone stays in the ISR until a write has waited for it",
    "I15": "records name no epoch",
    "I18": "the document has no MinISR",
    "I20": "a reassignment writes other sets in another order (Z54)",
}
"""What the catalogue asks of later profiles and this one does not give, or does not have."""
_SILENT = frozenset({"receive", "closed", "refused"})
_LOG = Append | Truncate | ResetLog | CreateLog | DeleteLog


class ZookeeperChecker:
    """Attach with ``world.observers.append(checker)``. Violations are kept."""

    def __init__(self, world: World) -> None:
        self.violations: list[Violation] = []
        self._world = world
        self.partitions: dict[TopicPartition, ObservedPartition] = {}
        """What is known of each."""
        self._produces: dict[tuple[NodeId, int], ProduceRequest] = {}
        self._terms: dict[tuple[NodeId, TopicPartition], tuple[int, int, int]] = {}
        """(life, the leader's node, its high watermark) of whoever led after the last step on its node."""
        self._lossy: set[NodeId] = set()
        """Lost power since they had all that was committed."""
        self._first_cuts: dict[tuple[NodeId, TopicPartition], tuple[int, int]] = {}
        """(life, offset) of the first cut of a log in the present life of its node."""
        self._told: set[tuple[str, TopicPartition]] = set()
        self._step = StepRecord(0, 0.0, "fault", 0)

    @property
    def found(self) -> bool:
        return bool(self.violations)

    def leave_out(self, *ids: str) -> None:
        """Leaves these invariants out of the report from now on."""
        self._told |= {(name, tp) for name in ids for tp in self.partitions}

    def __call__(self, world: World, step: StepRecord) -> None:
        if step.kind in _SILENT or step.node not in world.brokers:
            return
        self._step = step
        if isinstance(step.event, RequestReceived) and isinstance(step.event.request, ProduceRequest):
            self._produces[step.node, step.event.request_id] = step.event.request
        if step.kind == "down" and step.note.startswith("power"):
            self._lossy.add(step.node)
        for image in world.image.partitions():
            known = self.partitions.get(image.tp)
            if known is None or known.topic_id != image.topic_id:
                known = self.partitions[image.tp] = ObservedPartition(image.tp, image.topic_id)
            self._look(image, known, step)

    def _look(self, image: PartitionImage, known: ObservedPartition, step: StepRecord) -> None:
        node, tp = step.node, image.tp
        log = self._world.brokers[node].disk.logs.get(tp)
        if step.kind in ("boot", "down") or step.cut:
            known.match[node] = 0
        for effect in step.effects:
            if isinstance(effect, _LOG) and effect.tp == tp and effect.tp != METADATA:
                known.match[node] = min(known.match.get(node, 0), _kept(effect))
                self._append_only(tp, effect)
                self._note_cut(tp, effect)
        if log is not None:
            known.extend(node, log)
        local = self._local(node, tp)
        leads = local is not None and local.phase is Phase.LEADING
        if local is not None and leads and local.has_epoch:
            epoch = local.replica.leader_epoch
            if (first := known.leaders.setdefault(epoch, node)) != node:
                self._find("I13", tp, f"node {node} leads in epoch {epoch}, in which node {first} has led")
        if (
            local is not None
            and leads
            and log is not None
            and known.commit(log, local.replica.high_watermark)
        ):
            for other, server in self._world.brokers.items():
                theirs = server.disk.logs.get(tp)
                if theirs is not None:
                    known.extend(other, theirs)
            self._committed(image, local)
        self._acknowledged(image, known)
        self._complete(image, known)
        if local is not None:
            self._replica(known, node, local)
        self._remember(node, tp, local)

    def _note_cut(self, tp: TopicPartition, effect: _LOG) -> None:
        node = self._step.node
        life = self._world.brokers[node].incarnation
        if isinstance(effect, Truncate) and self._first_cuts.get((node, tp), (-1, 0))[0] != life:
            self._first_cuts[node, tp] = life, effect.to_offset

    def _remember(self, node: NodeId, tp: TopicPartition, local: Local | None) -> None:
        life = self._world.brokers[node].incarnation
        if local is not None and local.phase is Phase.LEADING:
            self._terms[node, tp] = life, local.followed, local.replica.high_watermark
        else:
            self._terms.pop((node, tp), None)

    def _find(self, name: str, tp: TopicPartition, text: str) -> None:
        if (name, tp) not in self._told:
            self._told.add((name, tp))
            step = self._step
            self.violations.append(Violation(name, NAMES[name], step.number, step.at_ms, step.node, tp, text))

    def _local(self, node: NodeId, tp: TopicPartition) -> Local | None:
        """Returns the node's replica; None also where the disk has refused: the core has yet to hear that
        its last appends are not there, and will end."""
        server = self._world.brokers[node]
        well = isinstance(server.acting, ZookeeperBroker) and not server.disk.offline
        return server.acting.local(tp) if well else None  # type: ignore[union-attr]

    def _fetched(self, node: NodeId, tp: TopicPartition) -> tuple[NodeId, ...]:
        """Returns the nodes from which the node fetches the partition."""
        core = self._world.brokers[node].core
        return () if core is None else core.fetching(tp)

    def _with_session(self) -> set[NodeId]:
        zookeeper = ensemble_of(self._world)
        return set() if zookeeper is None else {one.client.node for one in zookeeper.sessions.values()}

    def _answers(self) -> Iterator[tuple[TopicPartition, int]]:
        """(partition, base offset) of each acks=all that the step has answered without an error."""
        for effect in self._step.effects:
            if not isinstance(effect, Reply) or not isinstance(effect.response, ProduceResponse):
                continue
            request = self._produces.get((self._step.node, effect.request_id))
            if request is None or request.acks != -1:
                continue
            for result in effect.response.partitions:
                if result.error is NO_ERROR:
                    yield result.tp, result.base_offset

    def _open(self, tp: TopicPartition) -> Iterator[tuple[NodeId, Local]]:
        """Yields the nodes that serve clients, rightly or not."""
        for node in self._world.brokers:
            local = self._local(node, tp)
            if local is not None and local.phase is Phase.LEADING:
                yield node, local

    # --- the invariants ------------------------------------------------------------------------------------

    def _complete(self, image: PartitionImage, known: ObservedPartition) -> None:
        """I01, and the half of I22 that there is one leader; I07."""
        tp, zookeeper = image.tp, ensemble_of(self._world)
        if zookeeper is None:
            raise SimulationError("there is no ZooKeeper in this profile")
        node = zookeeper.tree.nodes.get(znodes.leader(tp))
        alive = self._with_session()
        owners = []
        for leader, local in self._open(tp):
            if leader not in alive or self._world.brokers[leader].paused:
                continue  # it does not know yet that its session is over
            owners.append(leader)
            if node is None or local.followed != node.created:
                continue
            log = self._world.brokers[leader].disk.logs.get(tp)
            if log is None or log.leo < known.true_hwm or known.match.get(leader, 0) < known.committed_end:
                text = f"leader {leader} agrees up to {known.match.get(leader, 0):,} with what was committed"
                self._find("I01", tp, f"{text}, which ends at {known.true_hwm:,}")
        if len(owners) > 1:
            self._find("I22", tp, f"{owners} serve clients, and each has its session")
        for mark in known.acked[-3:]:
            logs = [server.disk.logs.get(tp) for server in self._world.brokers.values()]
            if not any(log is not None and mark.is_in(log) for log in logs):
                self._find("I07", tp, f"the record acknowledged at {mark.base:,} is on no disk")

    def _committed(self, image: PartitionImage, local: Local) -> None:
        """I22, as a leader's high watermark moves."""
        replica, state = local.replica, local.replica.leading
        for member in state.isr:
            follower = state.followers.get(member)
            if follower is not None and follower.leo < replica.high_watermark:
                # A question that was overtaken lowers what the leader knows of a log, and not the log.
                log = self._world.brokers[member].disk.logs.get(image.tp)
                if log is not None and log.leo >= replica.high_watermark:
                    continue
                ends = f"node {member}, in the ISR, has log end offset {follower.leo:,}"
                self._find("I22", image.tp, f"high watermark {replica.high_watermark:,}, and {ends}")
        if not state.isr <= set(local.assigned):
            self._find("I21", image.tp, f"ISR {sorted(state.isr)} of AR {list(local.assigned)}")

    def _replica(self, known: ObservedPartition, node: NodeId, local: Local) -> None:
        """I03, I10, I16 of one replica."""
        replica, tp = local.replica, known.tp
        log = replica.log
        if not log.log_start <= replica.high_watermark <= log.leo:
            self._find("I10", tp, f"{node}: {log.log_start:,} <= {replica.high_watermark:,} <= {log.leo:,}")
        life, term, was = self._terms.get((node, tp), (-1, -1, -1))
        same = life == self._world.brokers[node].incarnation and term == local.followed
        if same and local.phase is Phase.LEADING and replica.high_watermark < was:
            self._find("I10", tp, f"leader {node}'s high watermark fell from {was:,}")
        fetched = self._fetched(node, tp)
        if len(fetched) > 1 or (local.leads and fetched):
            self._find("I16", tp, f"{node} fetches from {list(fetched)}")
        bound = min(replica.high_watermark, log.leo, known.committed_end)
        match = known.match.get(node, 0)
        if match < bound and any(match < end <= bound for end in known.ends[-64:]):
            self._find("I03", tp, f"node {node} differs from the committed log at {match:,}, below {bound:,}")

    def _append_only(self, tp: TopicPartition, effect: _LOG) -> None:
        """I19: a leader that goes on leading cuts nothing that is committed."""
        life, term, was = self._terms.get((self._step.node, tp), (-1, -1, -1))
        local = self._local(self._step.node, tp)
        goes_on = local is not None and local.followed == term and local.leads
        if isinstance(effect, Truncate) and goes_on and effect.to_offset < was and life >= 0:
            self._find("I19", tp, f"the leader cut its log to {effect.to_offset:,}, below {was:,}")

    def _acknowledged(self, image: PartitionImage, known: ObservedPartition) -> None:
        """I17, at each reply to acks=all."""
        log = self._world.brokers[self._step.node].disk.logs.get(image.tp)
        if log is None:
            return
        for tp, base_offset in self._answers():
            at = log.index_of(base_offset)
            if tp == image.tp and at < len(log.batches):
                mark = Mark.of(log.batches[at])
                insort(known.acked, mark)
                self._on_members(image, mark)

    def _on_members(self, image: PartitionImage, mark: Mark) -> None:
        for member in image.isr:
            server = self._world.brokers[member]
            log = server.disk.logs.get(image.tp)
            if member in self._lossy or not server.up:
                continue
            life, cut = self._first_cuts.get((member, image.tp), (-1, 0))
            if life == server.incarnation and cut <= mark.base:
                continue  # it had the record when the leader counted it, started again, and cut it (B01)
            if log is None or not mark.is_in(log):
                self._find(
                    "I17", image.tp, f"acks=all at {mark.base:,}, and node {member}, in the ISR, lacks it"
                )

    def at_rest(self) -> list[Violation]:
        """I21 at the end of a run, when nothing is under way: what ZooKeeper says of the sets."""
        zookeeper = ensemble_of(self._world)
        for image in self._world.image.partitions():
            tree = None if zookeeper is None else zookeeper.tree
            if tree is None:
                continue
            if not adds_up(tree, image):
                cur = znodes.to_ids(tree.data(znodes.cur(image.tp)) or b"")
                text = f"ISR {list(image.isr)} and CUR {list(cur)} of AR {list(image.replicas)}"
                self._find("I21", image.tp, text)
            if tree.data(znodes.reassigned(image.tp)) is not None:
                self._find("I21", image.tp, "the path of the reassigned replicas is there still")
        return self.violations


def _kept(effect: _LOG) -> int:
    """Returns the offset up to which a log is as before."""
    match effect:
        case Append():
            return effect.base_offset
        case Truncate():
            return effect.to_offset
        case _:
            return 0
