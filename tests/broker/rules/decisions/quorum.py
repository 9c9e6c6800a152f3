"""Tables of the controller quorum: votes, what is committed, snapshots."""

from __future__ import annotations

from uuid import UUID

from tests.broker.rules.golden_tables import Decide, Facts, bar, end, epochs_of, ids, yes
from wrackline.broker.model.types import QuorumState, SnapshotId
from wrackline.broker.rules.leadership.raft import Ballot, LogEnd, RaftRole, Voter
from wrackline.broker.rules.placement.snapshots import Growth
from wrackline.broker.rules.profile import Rules

DIRECTORY = UUID(int=5)


def majority_end(rules: Rules, facts: Facts) -> object:
    return bar(rules.raft.majority_end([end(cell) for cell in facts.values() if cell != "-"]))


def is_majority(rules: Rules, facts: Facts) -> object:
    return rules.raft.is_majority(int(facts["votes"]), int(facts["voters"]))


def may_commit(rules: Rules, facts: Facts) -> object:
    return rules.raft.may_commit(end(facts["majority has"]), end(facts["epoch starts at"]))


def _end(log: str) -> LogEnd:
    return LogEnd(epochs_of(log).latest, end(log))


def grants(rules: Rules, facts: Facts) -> object:
    """The voter is in epoch 5."""
    candidate, voted = int(facts["candidate"]), int(facts["voted for"])
    state = QuorumState(5, int(facts["leader"]), voted, DIRECTORY)
    ballot = Ballot(candidate, DIRECTORY, int(facts["its epoch"]), _end(facts["its log"]))
    return rules.raft.grants(ballot, Voter(RaftRole.UNATTACHED, state, _end(facts["own log"])))


def grants_pre_vote(rules: Rules, facts: Facts) -> object:
    """The logs are equal, and so are the epochs."""
    role, log = RaftRole(facts["role"]), _end("0011|")
    ballot = Ballot(2, DIRECTORY, 5, log, pre_vote=True)
    return rules.raft.grants(ballot, Voter(role, QuorumState(5), log, yes(facts["has fetched"])))


def role_at_start(rules: Rules, facts: Facts) -> object:
    return rules.raft.role_at_start(QuorumState(5, int(facts["leader known"])), node_id=1)


def held(rules: Rules, facts: Facts) -> object:
    return bar(rules.raft.held(end(facts["log"]), end(facts["on disk"])))


def lost_quorum(rules: Rules, facts: Facts) -> object:
    return rules.raft.lost_quorum([float(ms) for ms in ids(facts["silences"])], window_ms=3000.0)


# --- snapshots -----------------------------------------------------------------------------------------


def _snapshots(cell: str) -> list[SnapshotId]:
    return [] if cell == "-" else [SnapshotId(end(drawn), 3) for drawn in cell.split(",")]


def log_start(rules: Rules, facts: Facts) -> object:
    there = _snapshots(facts["snapshots end at"])
    return bar(rules.snapshots.log_start(there, end(facts["high watermark"])))


def keeps(rules: Rules, facts: Facts) -> object:
    kept = rules.snapshots.keeps(_snapshots(facts["snapshots end at"]))
    return tuple(bar(snapshot.end_offset) for snapshot in kept)


def is_due(rules: Rules, facts: Facts) -> object:
    since = Growth(int(facts["records"]), int(facts["bytes"]), float(facts["age ms"]))
    return rules.snapshots.is_due(since, Growth(10, 1000, 60_000.0))


def must_load(rules: Rules, facts: Facts) -> object:
    start = SnapshotId(end(facts["log starts at"]), 3)
    return rules.snapshots.must_load(end(facts["asker's log"]), int(facts["its epoch"]), start)


TABLES: dict[str, Decide] = {
    "raft.majority_end": majority_end,
    "raft.is_majority": is_majority,
    "raft.may_commit": may_commit,
    "raft.grants": grants,
    "raft.grants_pre_vote": grants_pre_vote,
    "raft.role_at_start": role_at_start,
    "raft.held": held,
    "raft.lost_quorum": lost_quorum,
    "snapshots.log_start": log_start,
    "snapshots.keeps": keeps,
    "snapshots.is_due": is_due,
    "snapshots.must_load": must_load,
}
