"""Drills in which the drill speaks for a voter of the quorum that is silent itself: what its leader takes for
committed, when it goes, and how one voter votes, across a restart."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from kio.schema.errors import ErrorCode

from wrackline.broker.core.quorum.leader import FULL_WINDOW
from wrackline.broker.model.messages.metadata import CreateTopicsRequest, DeleteTopicsRequest, NewTopic
from wrackline.broker.model.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
)
from wrackline.broker.model.messages.requests import FetchPartition, FetchRequest, FetchResult
from wrackline.broker.model.types import METADATA, METADATA_TOPIC_ID, NodeId
from wrackline.broker.rules.leadership.raft import RaftRole
from wrackline.simulator.drills.answers import announced
from wrackline.simulator.drills.ground import ANSWER_MS, SLACK_MS, Drill, Ground, add_to

_BYTES = 1 << 20
_SOON_MS = 100
_STRANGER: NodeId = 999
_TOPIC = "ballots"
QUORUM: list[Drill] = []
"""A run with three controllers does one of them."""
_quorum = add_to(QUORUM)
_none = ErrorCode.none


def _raft(ground: Ground, node: NodeId) -> Any:
    core = ground.world.controllers[node].core
    if core is None:
        ground.fail(f"controller {node} is down")
    assert core is not None
    return core.raft


def _agree(ground: Ground) -> None:
    """Every voter is back, and follows one leader; then everybody else is back."""
    world = ground.world

    def agreed() -> bool:
        rafts = [server.core.raft for server in world.controllers.values() if server.core is not None]
        leads = [raft.leadership for raft in rafts if raft.leadership is not None]
        return (
            len(rafts) == len(world.controllers)
            and len({(raft.leader_id, raft.epoch) for raft in rafts}) == 1
            and len(leads) == 1
            and all(voter.caught_up_ms is not None for voter in leads[0].voters.values())
            and world.active_controller() is not None
        )

    ground.rest(SLACK_MS)  # for those who wake up and ask around
    ground.must("every voter to follow one leader", agreed, 12_000)
    ground.whole(ground.rejoin_ms + 2 * ground.session_ms)


@_quorum
def commitment_of_metadata(ground: Ground) -> None:
    """Both other voters are silent: a record is committed by the right fetch of one of them, and by nothing
    else; and their leader stays as long as one is heard, and no longer."""
    world, active = ground.world, ground.world.active_controller()
    if active is None or len(world.controllers) != 3:
        return
    leader, raft = active.id, _raft(ground, active.id)
    announced(ground, leader, raft.epoch)
    others = [node for node in world.controllers if node != leader]
    broker, epoch = ground.any_broker(), raft.epoch
    hold = world.hold(
        lambda message: (
            message.name == "MetadataFetchRequest"
            and message.source in others
            and message.destination == leader
        )
    )

    before = raft.log.leo
    call = ground.call(leader, CreateTopicsRequest((NewTopic(_TOPIC, 2, 1),), ANSWER_MS))

    def has(node: NodeId) -> bool:
        return bool(before < raft.log.leo <= world.controllers[node].disk.logs[METADATA].synced)

    ground.must("the records of a topic on the disk", lambda: has(leader), SLACK_MS)
    ground.session.go(lambda: any(map(has, others)), world.now_ms + SLACK_MS)
    holders = [node for node in others if has(node)]
    if not holders:  # their polls had just ended, and the next ones are kept back
        world.release(hold)
        return
    voter, end = ground.draw.choice(holders), raft.log.leo
    directory = _raft(ground, voter).state.directory_id

    def fetched(offset: int, who: NodeId = voter, **changes: Any) -> FetchResult:
        part = FetchPartition(
            METADATA,
            offset,
            _BYTES,
            current_leader_epoch=epoch,
            last_fetched_epoch=raft.log.epoch_before(offset) if offset <= raft.log.leo else epoch,
            topic_id=METADATA_TOPIC_ID,
            directory_id=directory,
        )
        request = FetchRequest(0, 1, _BYTES, (replace(part, **changes),), who)
        result: FetchResult = ground.ask(leader, request).partitions[0]
        return result

    other_epoch = epoch - 1 if epoch else epoch + 1  # -1 would be any epoch
    cases: tuple[tuple[str, int, dict[str, Any]], ...] = (
        ("another leader epoch", end, {"current_leader_epoch": other_epoch}),
        ("a leader epoch to come", end, {"current_leader_epoch": epoch + 1}),
        ("no voter", end, {"who": _STRANGER}),
        ("a broker", end, {"who": broker, "directory_id": None}),
        ("another log", end, {"last_fetched_epoch": epoch + 1}),
        ("a log that is longer", end + 7, {}),
        ("a log that ends before", before, {}),
    )
    for what, offset, changes in cases:
        result = fetched(offset, **changes)
        ground.rest(3)
        if raft.log.high_watermark >= end or call.done:
            ground.fail(f"a fetch of {what} has committed {end} records; it was answered {result}")
    observed = fetched(raft.log.high_watermark, who=broker, directory_id=None)
    ground.expect("the records for a broker that has what is committed", observed.records, b"")
    if not fetched(before).records:
        ground.fail("a voter is given no record that is not committed")
    fetched(end)
    ground.must("the topic made when one voter has it", lambda: call.done, SLACK_MS)
    ground.expect("the answer to CreateTopics", call.response.topics[0].error, _none)
    if raft.log.high_watermark < end:
        ground.fail(f"{end} records are on the disks of two voters, {raft.log.high_watermark} are committed")
    window_ms = FULL_WINDOW * ground.controller.get("quorum_fetch_timeout_ms", 2_000)
    stays = ground.draw.random() < 0.3
    for node in others:
        world.pause(node)
    began_ms = world.now_ms
    while raft.leads and world.now_ms < began_ms + 1.4 * window_ms:
        fetched(end, current_leader_epoch=epoch if stays else other_epoch)
        fetched(end, who=_STRANGER)
        ground.rest(window_ms / 8)
    took_ms = world.now_ms - began_ms
    if raft.leads is not stays or (not stays and took_ms < 0.9 * window_ms):
        hears = "hears" if stays else "does not hear"
        ground.fail(f"a leader that {hears} a majority: does it lead after {took_ms:.0f} ms? {raft.leads}")
    world.release(hold)
    for node in others:
        world.resume(node)
    _agree(ground)
    ground.ask(
        broker, DeleteTopicsRequest((_TOPIC,), ANSWER_MS)
    )  # by two controllers, where one has not answered
    ground.must("no topic", lambda: _TOPIC not in world.image.topics_by_name, SLACK_MS)


@_quorum
def ballots(ground: Ground) -> None:
    """One voter, and nobody but the drill to speak with: it votes once in an epoch, for who has all that it
    has, and remembers that; it follows who begins the epoch, and asks around when its leader ends it."""
    world, active = ground.world, ground.world.active_controller()
    if active is None or len(world.controllers) != 3:
        return
    leader = active.id
    announced(ground, leader, _raft(ground, leader).epoch)
    node, other = ground.draw.sample([one for one in world.controllers if one != leader], 2)
    directories = {one: _raft(ground, one).state.directory_id for one in (leader, other)}
    polls = world.hold(lambda message: message.name == "VoteRequest" and message.source == node)
    world.pause(other)
    world.kill(leader)
    fetch_ms = ground.controller.get("quorum_fetch_timeout_ms", 2_000)
    prospective = RaftRole.PROSPECTIVE
    ground.must("a voter to ask around", lambda: _raft(ground, node).role is prospective, fetch_ms + 2_000)
    cluster = world.controllers[node].core.config.cluster_id  # type: ignore[union-attr]
    epoch, last, end = (
        _raft(ground, node).epoch,
        _raft(ground, node).log.last_epoch,
        _raft(ground, node).log.leo,
    )

    def votes(who: NodeId, epoch: int, last: int, end: int, **changes: Any) -> tuple[ErrorCode, bool]:
        request = VoteRequest(cluster, node, epoch, who, directories[who], last, end)
        answer = ground.ask(node, replace(request, **changes))
        error: ErrorCode = answer.error
        return error, answer.granted

    def knows(what: str, epoch: int, voted: NodeId, follows: NodeId = -1) -> None:
        raft, stored = _raft(ground, node), world.controllers[node].disk.quorum_state
        assert stored is not None
        now = (
            raft.epoch,
            raft.state.voted_for,
            raft.leader_id,
            (stored.epoch, stored.voted_for, stored.leader_id),
        )
        ground.expect(
            f"(epoch, vote, leader, the same on disk) after {what}",
            now,
            (epoch, voted, follows, (epoch, voted, follows)),
        )

    yes, no = (_none, True), (_none, False)
    was = _raft(ground, node).state
    for what, log, right in (
        ("a shorter log", (last, end - 1), no),
        ("a longer log of an older epoch", (last - 1, end + 50), no),
        ("an equal log", (last, end), yes),
        ("a log of a later epoch", (last + 1, 1), yes),
    ):
        ground.expect(
            f"the answer to who would stand with {what}", votes(other, epoch, *log, pre_vote=True), right
        )
        ground.expect("the state after a pre-vote", _raft(ground, node).state, was)
    ground.expect("the vote for a shorter log", votes(other, epoch + 1, last, end - 1), no)
    knows("a candidate with a shorter log", epoch + 1, -1)
    ground.expect("the vote for an equal log", votes(other, epoch + 1, last, end), yes)
    knows("a vote", epoch + 1, other)
    for _ in range(2):
        ground.expect("the same vote again", votes(other, epoch + 1, last, end), yes)
        ground.expect("a vote for another one", votes(leader, epoch + 1, last + 1, end + 9), no)
        foreign = votes(other, epoch + 1, last, end, candidate_directory=directories[leader])
        ground.expect("a vote for the same one with another disk", foreign, no)
        old = votes(leader, epoch, last, end)[0]
        ground.expect("the answer to an older candidate", old, ErrorCode.fenced_leader_epoch)
        knows("candidates who came later", epoch + 1, other)
        world.kill(node)
        world.start(node)
        ground.must("a voter that restarts", lambda: world.controllers[node].core is not None, 2_000)
    begin = BeginQuorumEpochRequest(cluster, other, epoch + 1)
    ground.expect("the answer to the epoch's leader", ground.ask(node, begin).error, _none)
    knows("an epoch has begun", epoch + 1, other, other)
    late = ground.ask(node, replace(begin, leader_id=leader)).error
    ground.expect("the answer to a second leader of the epoch", late, ErrorCode.invalid_request)
    ground.expect("a vote when the leader is known", votes(leader, epoch + 1, last + 1, end + 9), no)
    knows("a second leader of the epoch", epoch + 1, other, other)
    before = len(polls.held)
    end_ = EndQuorumEpochRequest(cluster, other, epoch + 1, (node, leader))
    ground.expect("the answer to the end of an epoch", ground.ask(node, end_).error, _none)
    ground.must("its first successor to ask around", lambda: len(polls.held) > before, _SOON_MS)
    ground.expect("a later candidate with less", votes(leader, epoch + 4, last, end - 1), no)
    knows("a later candidate", epoch + 4, -1)
    world.release(polls, drop=True)
    world.resume(other)
    world.start(leader)
    _agree(ground)
