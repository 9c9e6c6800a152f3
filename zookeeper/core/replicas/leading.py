"""The tasks of a leader of profile zk08: becomeLeader, the committer, and the writes of ISR and CUR
(docs/protocol.md Z31, Z39, Z40, Z48, Z52).

The document's committer writes the ISR and waits. Here the write is asynchronous, and until it is answered
the high watermark waits for old and new members alike, as in the later profiles (``LeaderState.maximal``):
nobody acts on a set that is not in ZooKeeper (Z14).
"""

from __future__ import annotations

from collections.abc import Callable

from wrackline.broker.core.replication import leader
from wrackline.broker.core.replication.context import Context
from wrackline.broker.core.replication.replica import LeaderState
from wrackline.broker.model.coordination import ANY_VERSION, Answer, Create, Get, Outcome, Set
from wrackline.broker.model.types import NodeId
from wrackline.zookeeper.core import znodes
from wrackline.zookeeper.core.coordination import Coordination
from wrackline.zookeeper.core.level import ClusterLevel
from wrackline.zookeeper.core.replicas.local import NOT_READ, UNKNOWN, Commits, Local, Phase, Terms
from wrackline.zookeeper.core.view import View
from wrackline.zookeeper.core.znodes import StateRequest
from wrackline.zookeeper.rules import RACE

_AGAIN_MS = 100.0


class Leading:
    """``on_ruled_out``: ZooKeeper shows that somebody else writes the ISR. ``on_open``: the partition is
    open. ``on_progress``: something was committed, or a follower has come nearer. ``on_stop``: it leads no
    more."""

    def __init__(
        self,
        ctx: Context,
        coordination: Coordination,
        view: View,
        level: ClusterLevel,
        waits_for_isr: bool = False,
    ) -> None:
        """``waits_for_isr``: see ``Switches.opening_waits_for_isr``."""
        self._ctx = ctx
        self._coordination = coordination
        self._terms = Terms(ctx, coordination)
        self._view = view
        self._level = level
        self._waits_for_isr = waits_for_isr
        self.on_ruled_out: Callable[[Local, str], None] = lambda local, why: None  # noqa: ARG005
        self.on_open: Callable[[Local], None] = lambda local: None  # noqa: ARG005
        self.on_progress: Callable[[Local], None] = lambda local: None  # noqa: ARG005
        self.on_stop: Callable[[Local], None] = lambda local: None  # noqa: ARG005

    # --- becoming leader -----------------------------------------------------------------------------------

    def begin(self, local: Local) -> None:
        """Z48, up to the wait: the high watermark becomes the log's end; the ISR is read once more."""
        replica = local.replica
        replica.leader_id = self._ctx.config.node_id
        local.assigned, local.target, local.yielding = replica.replicas, (), False
        local.isr_version, local.writing = NOT_READ, False
        local.commits = Commits(last=replica.log.leo, head_since_ms=self._ctx.now_ms)
        if not self._waits_for_isr:
            replica.set_high_watermark(replica.log.leo)
        replica.leader = LeaderState(frozenset(), frozenset(), replica.log.leo, open=False)
        leader.assigned(replica, replica.leader)
        self._read_sets(local)

    def _read_sets(self, local: Local) -> None:
        tp = local.replica.tp

        def isr_read(answer: Answer) -> None:
            if answer.outcome in UNKNOWN:
                self._read_sets_later(local)
                return
            local.isr_version = -1 if answer.stat is None else answer.stat.version
            isr = frozenset(znodes.to_ids(answer.data))
            state = local.replica.leading
            state.isr = state.maximal = isr
            self._terms.ask(local, Get(znodes.reassigned(tp)), target_read)

        def target_read(answer: Answer) -> None:
            if answer.outcome in UNKNOWN:
                self._read_sets_later(local)
                return
            self.retarget(local, znodes.to_ids(answer.data))
            wait_ms = self._ctx.config.leader_election_wait_ms
            self._terms.later(local, "open", wait_ms, lambda: self._open(local))
            self.look(local)

        self._terms.ask(local, Get(znodes.isr(tp)), isr_read)

    def _read_sets_later(self, local: Local) -> None:
        self._terms.later(local, "open", _AGAIN_MS, lambda: self._read_sets(local))

    def retarget(self, local: Local, target: tuple[NodeId, ...]) -> None:
        """RAR as ZooKeeper has it: its replicas fetch, as those of AR do (Z38, Z39)."""
        replica = local.replica
        local.target = target
        replica.replicas = (*local.assigned, *(node for node in target if node not in local.assigned))
        self._ctx.trace("assigned", tp=str(replica.tp), replicas=list(local.assigned), target=list(target))
        leader.assigned(replica, replica.leading)
        replica.touch()

    def ends(self, local: Local) -> dict[NodeId, int]:
        return {node: follower.leo for node, follower in local.replica.leading.followers.items()}

    def _open(self, local: Local) -> None:
        """Everybody who lives is in sync, or the wait is over: write ISR and CUR, and open when that is
        written."""
        if local.phase is not Phase.OPENING or local.writing:
            return
        replica = local.replica
        sets = RACE.at_opening(self._ctx.config.node_id, local.assigned, self.ends(local), replica.log.leo)

        def written(answer: Answer) -> None:
            if not answer.ok:
                read_again()
                return
            local.writing = True
            self._level.confirm(self._terms.within(local, opened), self._terms.within(local, read_again))

        def read_again() -> None:
            local.writing = False
            self._read_sets_later(local)

        def opened() -> None:
            local.writing = False
            self._terms.cancel(local, "open")
            local.phase, replica.leading.open = Phase.LEADING, True
            replica.set_high_watermark(replica.log.leo)
            leader.isr_committed(replica, sets.isr)
            self._write_cur(local)
            self._ask_to_follow(local)
            self._ctx.trace("open", tp=str(replica.tp), isr=list(sets.isr), cur=list(sets.cur))
            self.on_open(local)
            self.look(local)

        self._write_isr(local, sets.isr, written)

    def _ask_to_follow(self, local: Local) -> None:
        """Z48's last step: those of the CUR may not have heard of this leader."""
        isr = local.replica.leading.isr
        for node in local.replica.replicas:
            if node not in isr:
                self.request(local, node, StateRequest.BECOME_FOLLOWER)

    def request(self, local: Local, node: NodeId, request: StateRequest) -> None:
        """Writes the request on the replica's state path (Z37), which is made where there is none: so a
        broker learns that it has a replica. What a lost connection may have swallowed is asked again; a
        request that comes twice does no harm."""
        path, term, what = znodes.state(local.replica.tp, node), local.term, f"request-{node}-{request.value}"
        once_more = self._terms.within(local, lambda: self.request(local, node, request))

        def answered(answer: Answer) -> None:
            if answer.outcome is Outcome.NO_NODE and request is not StateRequest.REPLICA_UNASSIGNED:
                self._coordination.ask(Create(znodes.states(local.replica.tp)), lambda _: None)
                self._coordination.ask(Create(path), made)
            elif answer.outcome in UNKNOWN:
                again()

        def made(answer: Answer) -> None:
            if answer.outcome in (Outcome.OK, Outcome.NODE_EXISTS) and local.term == term:
                self.request(local, node, request)
            else:
                again()

        def again() -> None:
            self._terms.wait(local, what, _AGAIN_MS, once_more)

        self._terms.ask(local, Create(f"{path}/request-", request.encode(), sequential=True), answered)

    def stop(self, local: Local) -> None:
        """Ends the leadership: its timers and writes are nobody's."""
        self.on_stop(local)
        for what in ("open", "commit", "isr"):
            self._terms.cancel(local, what)
        local.writing = False
        local.replica.replicas = local.assigned

    # --- the committer -------------------------------------------------------------------------------------

    def look(self, local: Local) -> None:
        """Looks at the replica after each event that has touched it: open, queue, dequeue."""
        if local.phase is Phase.OPENING:
            if local.isr_version == NOT_READ:
                return
            # At the first start the ISR is empty, and there is nobody to wait for (Z32).
            state, end = local.replica.leading, local.replica.log.leo
            if RACE.may_open(end, state.isr, self.ends(local), self._view.live):
                self._open(local)
            return
        if local.phase is not Phase.LEADING:
            return
        replica, commits = local.replica, local.commits
        if replica.log.leo > commits.last:
            if not commits.ends:
                commits.head_since_ms = self._ctx.now_ms
            commits.ends.append(replica.log.leo)
            commits.last = replica.log.leo
        while commits.ends and commits.ends[0] <= replica.high_watermark:
            commits.ends.popleft()
            commits.head_since_ms = self._ctx.now_ms
        if commits.ends:
            wait_ms = self._ctx.config.replica_lag_time_max_ms
            due_ms = commits.head_since_ms + wait_ms
            demote = self._terms.within(local, lambda: self._demote(local))
            self._ctx.set_timer(f"commit:{replica.tp}", due_ms, demote)
        else:
            self._terms.cancel(local, "commit")
        self.write_proposal(local)
        self.on_progress(local)

    def _demote(self, local: Local) -> None:
        """Z52: the oldest request has waited for KeepInSyncTime. Who has not reached it goes to the CUR."""
        replica, commits = local.replica, local.commits
        state = replica.leading
        waited_ms = self._ctx.now_ms - commits.head_since_ms
        if not commits.ends or waited_ms < self._ctx.config.replica_lag_time_max_ms - 1:
            replica.touch()
            return
        late = RACE.late(state.isr, self.ends(local), commits.ends[0])
        if late and state.proposal is None:
            leader.propose(replica, state.isr - late, {})
            self.write_proposal(local)
        self._terms.later(local, "commit", _AGAIN_MS, lambda: self._demote(local))

    # --- writing the sets ----------------------------------------------------------------------------------

    def write_proposal(self, local: Local) -> None:
        """Writes the ISR that promotion or demotion ask for, one write at a time."""
        replica, state = local.replica, local.replica.leading
        item = state.proposal
        replica.changes.proposed.pop(replica.tp, None)
        if item is None or local.writing:
            return
        isr = tuple(node for node in local.assigned if node in {member for member, _ in item.isr})
        if frozenset(isr) == state.isr:
            # A replica that the partition is reassigned to, and not assigned yet: it joins when all have
            # come.
            state.proposal, state.maximal = None, state.isr
            return

        def written(answer: Answer) -> None:
            if answer.ok:
                leader.isr_committed(replica, isr)
                self._write_cur(local)
                self.look(local)
            else:
                self._terms.later(local, "isr", _AGAIN_MS, lambda: self.write_proposal(local))

        self._write_isr(local, isr, written)

    def _write_isr(self, local: Local, isr: tuple[NodeId, ...], on_written: Callable[[Answer], None]) -> None:
        """Writes the ISR by version. Where nobody knows whether it was written, the node is read again
        first; a version that is not ours says that somebody else leads (docs/protocol.md 2.15)."""
        path, data = znodes.isr(local.replica.tp), znodes.of_ids(isr)
        version = local.isr_version
        local.writing = True

        def wrote(answer: Answer) -> None:
            local.writing = False
            if answer.ok and answer.stat is not None:
                local.isr_version = answer.stat.version
                on_written(answer)
            elif answer.outcome in UNKNOWN:
                self._terms.later(local, "isr", _AGAIN_MS, look_again)
            else:
                self.on_ruled_out(local, f"the ISR is not at version {version}: {answer.outcome.value}")

        def look_again() -> None:
            local.writing = True
            self._terms.ask(local, Get(path), found)

        def found(answer: Answer) -> None:
            local.writing = False
            if answer.outcome in UNKNOWN:
                self._terms.later(local, "isr", _AGAIN_MS, look_again)
                return
            now = -1 if answer.stat is None else answer.stat.version
            if now == version + 1 and answer.data == data:
                local.isr_version = now
                on_written(answer)
            elif now == version:
                self._write_isr(local, isr, on_written)
            else:
                self.on_ruled_out(local, f"the ISR is at version {now}, not {version}")

        write = Create(path, data) if version == -1 else Set(path, data, version)
        self._terms.ask(local, write, wrote)

    def _write_cur(self, local: Local) -> None:
        """Writes CUR for those who look: nobody reads it back, since AR = ISR + CUR."""
        isr, tp = local.replica.leading.isr, local.replica.tp
        data = znodes.of_ids(node for node in local.assigned if node not in isr)

        def written(answer: Answer) -> None:
            if answer.outcome is Outcome.NO_NODE:
                self._coordination.ask(Create(znodes.cur(tp), data), lambda _: None)

        self._coordination.ask(Set(znodes.cur(tp), data, ANY_VERSION), written)
