"""The elections, from one replica's view: leaderElection, becomeFollower and the way to becomeLeader
(docs/protocol.md Z29 to Z32, Z45, Z47 to Z49, Z57)."""

from __future__ import annotations

from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.fetching.fetcher import Fetchers
from wrackline.broker.model.coordination import Answer, Create, Delete, Get, Outcome
from wrackline.broker.model.types import NO_LEADER, TopicPartition
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.coordination import Coordination
from wrackline.zookeeper.core.level import ClusterLevel
from wrackline.zookeeper.core.replicas.assigned import Assigned
from wrackline.zookeeper.core.replicas.epochs import Epochs
from wrackline.zookeeper.core.replicas.leading import Leading
from wrackline.zookeeper.core.replicas.local import NOT_READ, Local, Phase, Terms
from wrackline.zookeeper.core.view import Registered, View
from wrackline.zookeeper.rules import RACE, RaceFacts

_RETRY_MS = 200.0


class Elections:
    def __init__(
        self,
        ctx: Context,
        coordination: Coordination,
        view: View,
        assigned: Assigned,
        fetchers: Fetchers,
        leading: Leading,
        level: ClusterLevel,
    ) -> None:
        self._ctx = ctx
        self._coordination = coordination
        self._terms = Terms(ctx, coordination)
        self._view = view
        self._assigned = assigned
        self._fetchers = fetchers
        self._leading = leading
        self._level = level
        self._epochs = Epochs(ctx, coordination, view, level)

    # --- what is heard -------------------------------------------------------------------------------------

    def look(self, tp: TopicPartition) -> None:
        """The leader-change listener (Z41, Z57): act on what ZooKeeper has of the partition now."""
        local, known = self._assigned.locals.get(tp), self._view.of(tp)
        image = self._ctx.image.partition(tp)
        if local is None or known is None or image is None or local.replica.failed:
            return
        stat = known.leader_stat
        if not self._coordination.session:
            return
        if stat is None:
            if local.phase is not Phase.RUNNING:
                self._no_leader(local)
        elif known.leader != self._ctx.config.node_id:
            if local.phase is not Phase.FOLLOWING or local.followed != stat.created:
                # Without an answer it is looked at again as soon as there is a connection.
                self._level.read(lambda: self._follow(tp, stat.created), otherwise=lambda: None)
        elif stat.created == local.resigned:
            return
        elif stat.owner == self._coordination.session:
            if not local.leads or local.followed != stat.created:
                self._won(local, stat.created)
        elif local.phase is not Phase.IDLE:
            # The node of a former life or session of this broker: it goes when that session ends.
            self._retire(local, "a former session's node")

    def _follow(self, tp: TopicPartition, created: int) -> None:
        """Another leader, at the level that the cluster has had at the earliest when that one was elected.
        Where leaders have epochs its epoch is waited for: without it nobody knows what to cut."""
        local, known = self._assigned.locals.get(tp), self._view.of(tp)
        if local is None or known is None or known.leader_stat is None or not self._coordination.session:
            return
        if known.leader_stat.created != created or known.leader == self._ctx.config.node_id:
            return  # looked at again meanwhile
        if local.phase is Phase.FOLLOWING and local.followed == created:
            return
        if not self._level.has_epochs or known.has_epoch:
            self.become_follower(local, known)
        elif local.phase is not Phase.IDLE:
            self._retire(local, "the leader has no epoch yet")

    def level_rose(self) -> None:
        """Leaders have epochs from here on: who leads without one gives the leadership up, and is elected
        anew."""
        for local in list(self._assigned.locals.values()):
            if local.leads and not local.has_epoch:
                self.resign(local, "leaders have epochs from now on")

    def fence(self, local: Local, why: str) -> None:
        """The session is over, or may be: whatever rests on it is given up (Z35)."""
        if local.phase is not Phase.FOLLOWING:
            self._retire(local, why)

    def resign(self, local: Local, why: str, then: Delete | None = None) -> None:
        """Give the leadership away, if this replica has it: its node is deleted, which starts an election
        (Z53). ``then`` is deleted after it."""
        created = local.followed
        self._retire(local, why)
        local.resigned = created
        self._delete_node(local, created, then)

    def _delete_node(self, local: Local, created: int, then: Delete | None) -> None:
        """Deletes the leader's node only if it is the created one: after an answer that was lost the node
        may be another leader's already, so it is looked at first. A node of our own session goes by our
        own doing or with the session."""
        path = znodes.leader(local.replica.tp)

        def seen(answer: Answer) -> None:
            if answer.stat is not None and answer.stat.created == created:
                self._coordination.ask(Delete(path), deleted)
            elif answer.outcome is Outcome.CONNECTION_LOSS:
                again()
            elif then is not None and answer.outcome is not Outcome.SESSION_EXPIRED:
                self._coordination.ask(then, lambda _: None)

        def deleted(answer: Answer) -> None:
            if answer.outcome is Outcome.CONNECTION_LOSS:
                again()
            elif answer.ok and then is not None:
                self._coordination.ask(then, lambda _: None)

        def again() -> None:
            self._terms.wait(local, "resign", _RETRY_MS, lambda: self._delete_node(local, created, then))

        self._coordination.ask(Get(path), seen)

    def _retire(self, local: Local, why: str) -> None:
        """Takes every role from the replica: nothing is served and nothing fetched."""
        replica = local.replica
        if local.leads:
            self._leading.stop(local)
        self._fetchers.remove(replica.tp)
        self._terms.cancel(local, "run")
        local.phase, local.followed, local.term = Phase.IDLE, -1, local.term + 1
        replica.leader, replica.leader_id = None, NO_LEADER
        self._ctx.trace("role", tp=str(replica.tp), role="none", why=why)
        replica.touch()

    # --- following -----------------------------------------------------------------------------------------

    def become_follower(self, local: Local, known: Registered) -> None:
        """Z30, Z47. The fetcher stops, the log is cut to the high watermark, a fetcher starts at its end."""
        image, stat = self._ctx.image.partition(known.tp), known.leader_stat
        if image is None or stat is None:
            return
        self._retire(local, "there is a leader")
        local.phase, local.followed = Phase.FOLLOWING, stat.created
        replica = local.replica
        replica.adopt(image)
        rules = self._ctx.rules.truncation
        cut = rules.on_become_follower(replica.log.leo, replica.high_watermark)
        if cut < replica.log.leo:
            replica.truncate(cut, "became follower")
        self._fetchers.add(replica)
        self._trace(local, "follower")
        replica.touch()

    # --- elections -----------------------------------------------------------------------------------------

    def _no_leader(self, local: Local) -> None:
        """replicaStateChange (Z45) and the leader change event (Z57) come to this: run."""
        self._retire(local, "there is no leader")
        self._run(local)

    def _run(self, local: Local) -> None:
        """leaderElection(r) (Z49): read ISR and AR anew, and see whether this replica may run."""
        tp = local.replica.tp
        local.phase = Phase.RUNNING
        local.term += 1
        term, once_more = local.term, self._terms.within(local, lambda: self._run(local))

        def again() -> None:
            self._terms.wait(local, "run", _RETRY_MS, once_more)

        def assigned(replicas: Answer) -> None:
            if replicas.ok:
                self._coordination.ask(
                    Get(znodes.isr(tp)), lambda isr: self._read(local, term, replicas, isr)
                )
            else:
                again()

        # Whoever is elected after the level has risen knows of it.
        self._level.read(
            lambda: self._coordination.ask(Get(znodes.replicas(tp)), assigned),
            otherwise=again,
        )

    def _read(self, local: Local, term: int, replicas: Answer, isr: Answer) -> None:
        if local.term != term:
            return
        if isr.outcome not in (Outcome.OK, Outcome.NO_NODE):
            self._again(local)
            return
        tp = local.replica.tp
        unclean = self._ctx.image.setting(tp.topic, "unclean.leader.election.enable") == "true"
        members, config = znodes.to_ids(isr.data), self._ctx.config
        facts = RaceFacts(config.node_id, znodes.to_ids(replicas.data), members, self._view.live, unclean)
        if not RACE.may_run(facts):
            # Some other replica will lead; who lives may change that where unclean elections are allowed.
            self._again(local)
            return
        wait_ms = RACE.head_start_ms(facts, config.preferred_replica_ms)
        if wait_ms > 0:
            self._terms.later(local, "run", wait_ms, lambda: self._race(local))
        else:
            self._race(local)

    def _race(self, local: Local) -> None:
        me = str(self._ctx.config.node_id).encode()
        create = Create(znodes.leader(local.replica.tp), me, ephemeral=True)
        self._terms.ask(local, create, lambda answer: self._raced(local, answer))

    def _raced(self, local: Local, answer: Answer) -> None:
        """Handles the answer of a race: whatever it is, the watch on the node tells who leads; the replica
        runs again only when nobody does."""
        if answer.ok and answer.stat is not None and answer.stat.owner == self._coordination.session:
            self._won(local, answer.stat.created)
        else:
            self._again(local)

    def _again(self, local: Local) -> None:
        """Unless the role has changed meanwhile: a watch may have told of a leader."""
        self._terms.later(local, "run", _RETRY_MS, lambda: self._run(local))

    def _won(self, local: Local, created: int) -> None:
        image = self._ctx.image.partition(local.replica.tp)
        if image is None:
            return
        self._retire(local, "won")
        local.phase, local.followed = Phase.OPENING, created
        local.replica.adopt(image)
        local.has_epoch = self._level.has_epochs
        if local.has_epoch:
            local.isr_version, local.assigned = NOT_READ, image.replicas
            self._epochs.take(local, lambda: self._lead(local))
        else:
            self._lead(local)

    def _lead(self, local: Local) -> None:
        self._leading.begin(local)
        self._trace(local, "leader")

    def _trace(self, local: Local, role: str) -> None:
        replica = local.replica
        self._ctx.trace(
            "role",
            tp=str(replica.tp),
            role=role,
            leader=replica.leader_id,
            leader_epoch=replica.leader_epoch,
            has_epoch=local.leads and local.has_epoch,
            created=local.followed,
            leo=replica.log.leo,
            hwm=replica.high_watermark,
        )
