"""A client that waits at a replica is answered when the replica is taken away (docs/protocol.md 2.1.8, 2.2.9,
2.10)."""

from __future__ import annotations

from kio.schema.errors import ErrorCode

from tests.broker.core.solo import TOPIC_ID, Solo, T, change
from wrackline.broker.model.effects import DeleteLog, Reply
from wrackline.broker.model.metadata.records import RemoveTopicRecord


def test_who_waits_at_a_replica_that_was_moved_away_is_refused_at_once() -> None:
    """The replica is found by its name no more, and is looked at all the same."""
    solo = Solo()
    parked, poll = solo.produce(b"a"), solo.fetch(-1, 0, max_wait_ms=500)
    assert parked not in solo.replies
    assert poll not in solo.replies
    solo.metadata(change(leader=2, isr=(2, 3), replicas=(2, 3)))
    assert solo.broker.replica(T) is None
    assert solo.result(parked).error is ErrorCode.not_leader_or_follower
    assert solo.result(poll).error is ErrorCode.not_leader_or_follower


def test_a_removed_log_goes_before_those_who_waited_for_it_are_answered() -> None:
    solo = Solo()
    first, second = solo.produce(b"a"), solo.produce(b"b")
    solo.metadata(RemoveTopicRecord(TOPIC_ID))
    happened = [effect for effect in solo.effects if isinstance(effect, DeleteLog | Reply)]
    assert [getattr(effect, "request_id", "log") for effect in happened] == ["log", first, second]
