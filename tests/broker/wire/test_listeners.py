"""Which listener serves what, and to whom: every API, every version, every field by which it names a node."""

from __future__ import annotations

import dataclasses
import sys

import pytest
from kio.schema.errors import ErrorCode

from tests.broker.wire.entities import make
from tests.broker.wire.samples import EXPECTED, asked, codec, every_version, request_frame
from wrackline.broker.wire.api import Api, Listener
from wrackline.broker.wire.apis import BY_KEY, advertised
from wrackline.broker.wire.codec import AnswerNow, Caller, Codec, Incoming
from wrackline.broker.wire.proof import AUTHENTICATE, HANDSHAKE, PROOF, ClusterSecret
from wrackline.broker.wire.schema import WireError, request_schema, response_schema

CLIENT, REPLICATION, CONTROLLER = Listener
BY_NODES = {
    "AllocateProducerIds",
    "AlterPartition",
    "BeginQuorumEpoch",
    "BrokerHeartbeat",
    "BrokerRegistration",
    "ControllerRegistration",
    "EndQuorumEpoch",
    "FetchSnapshot",
    "GetReplicaLogInfo",
    "Vote",
}
"""What only nodes ask each other."""
ABOUT_ANOTHER = ("UnregisterBroker", "broker_id")
"""The node of which it is asked, not the one that asks."""
OF_A_NODE = (
    "replica_id",
    "replica_state",
    "broker_id",
    "leader_id",
    "candidate_id",
    "controller_id",
    "node_id",
)
NOBODY = BY_KEY[0].speaks_for


def frame_of(key: int, version: int, **changes: object) -> bytes:
    schema = request_schema(key, version)
    entity = dataclasses.replace(asked(key, schema), **changes)
    return request_frame(key, version, schema.write(entity), flexible=schema.flexible)


def names(key: int, version: int) -> set[str]:
    """Of every field of the request, at any depth."""
    module = sys.modules[request_schema(key, version).root.__module__]
    parts = [one for one in vars(module).values() if dataclasses.is_dataclass(one)]
    return {field.name for part in parts for field in dataclasses.fields(part)}


def test_every_api_says_who_may_ask_it() -> None:
    for api in BY_KEY.values():
        assert api.open_on or api.nodes_on, f"{api.name} is served nowhere"
        assert CLIENT not in api.nodes_on, f"{api.name}: nobody is a node where clients ask"
        assert REPLICATION not in api.open_on, f"{api.name}: clients do not ask where nodes do"
    assert {api.name for api in BY_KEY.values() if not api.open_on} == BY_NODES


@pytest.mark.parametrize("api", BY_KEY.values(), ids=lambda api: api.name)
def test_a_request_that_can_speak_for_a_node_says_by_which_field(api: Api) -> None:
    """The names are Kafka's own, so a new API cannot be added without."""
    named = {name for key, version in every_version() if key == api.key for name in names(key, version)}
    speaking = [name for name in OF_A_NODE if name in named and (api.name, name) != ABOUT_ANOTHER]
    assert (api.speaks_for is not NOBODY) == bool(speaking), speaking


@pytest.mark.parametrize("listener", Listener, ids=lambda one: one.value)
@pytest.mark.parametrize(("key", "version"), every_version())
def test_a_stranger_gets_nothing_that_a_node_gets(key: int, version: int, listener: Listener) -> None:
    api = BY_KEY[key]
    if listener not in api.open_on:
        with pytest.raises(WireError, match=api.name):
            codec().decode_request(frame_of(key, version), Caller(listener))
        return
    answer = codec().decode_request(frame_of(key, version), Caller(listener))
    if isinstance(answer, AnswerNow):
        assert answer.refusal is not None
        assert api.name in answer.refusal
        schema = response_schema(key, version)
        said = repr(schema.read(answer.frame, 9 if schema.flexible else 8))
        assert ErrorCode.cluster_authorization_failed.name in said
    else:
        assert api.speaks_for(answer.request) < 0


def test_no_version_of_what_clients_ask_takes_the_id_of_a_node_from_them() -> None:
    """Fetch names it in two places, by version; ListOffsets and OffsetForLeaderEpoch in one."""
    claims = 0
    for key, version in every_version():
        schema = request_schema(key, version)
        fields = {field.name for field in dataclasses.fields(schema.root)}
        if CLIENT not in BY_KEY[key].open_on or not fields & {"replica_id", "replica_state"}:
            continue
        changes: dict[str, object] = {"replica_id": 2} if "replica_id" in fields else {}
        if "replica_state" in fields:
            changes = {"replica_state": make(schema, "ReplicaState", replica_id=2, replica_epoch=9)}
        answer = codec().decode_request(frame_of(key, version, **changes))
        assert isinstance(answer, AnswerNow), f"{BY_KEY[key].name} v{version}"
        claims += 1
    assert claims == len(range(4, 18)) + len(range(1, 8)) + len(range(3, 5))


@pytest.mark.parametrize("listener", Listener, ids=lambda one: one.value)
def test_a_listener_advertises_only_what_it_serves(listener: Listener) -> None:
    told = {key for key, _, _ in advertised(listener)}
    assert {key for key in BY_KEY if key in told} == {
        key
        for key, api in BY_KEY.items()
        if api.served_on(listener) and (api.clients or listener is not CLIENT)
    }
    assert (HANDSHAKE in told, AUTHENTICATE in told) == (listener is not CLIENT,) * 2


SECRET = ClusterSecret(b"of this cluster", "c")
THERE = Codec(names=lambda _: None, secret=SECRET)
VOTE = frame_of(52, 2)


def proved(greeting: bytes, listener: Listener = CONTROLLER) -> AnswerNow:
    """What is answered to the second frame."""
    first = int.from_bytes(greeting[:4], "big") + 4
    shaken = THERE.decode_request(greeting[4:first], Caller(listener))
    assert isinstance(shaken, AnswerNow)
    assert shaken.refusal is None
    answer = THERE.decode_request(greeting[first + 4 :], Caller(listener))
    assert isinstance(answer, AnswerNow)
    return answer


def test_a_node_that_proves_its_id_speaks_for_itself_alone() -> None:
    candidate = EXPECTED[52][0].candidate_id
    for node in (candidate, candidate + 1):
        known = proved(SECRET.greeting(node)).node
        assert known == node
        answer = THERE.decode_request(VOTE, Caller(CONTROLLER, known))
        if node == candidate:
            assert isinstance(answer, Incoming)
        else:
            assert isinstance(answer, AnswerNow)
            assert answer.refusal == f"node {node} sent Vote in the name of node {candidate}"


@pytest.mark.parametrize(
    "other",
    [ClusterSecret(b"of this cluster", "d"), ClusterSecret(b"of that cluster", "c")],
    ids=["cluster", "secret"],
)
def test_the_proof_of_another_cluster_is_none(other: ClusterSecret) -> None:
    answer = proved(other.greeting(1))
    assert answer.node is None
    assert answer.refusal is not None
    assert "secret_file" in answer.refusal


@pytest.mark.parametrize(
    "token", [b"", b"\0", b"\x001", b"\x001\0", b"\0-1\0x", b"\0" + b"9" * 5_000 + b"\0"]
)
def test_what_is_no_token_is_of_no_node(token: bytes) -> None:
    assert SECRET.node_of(token) is None
    assert SECRET.node_of(SECRET.token(7)) == 7


@pytest.mark.parametrize("key", PROOF)
def test_clients_have_nothing_to_prove(key: int) -> None:
    with pytest.raises(WireError, match=f"API key {key} is not served on the listener CLIENT"):
        THERE.decode_request(request_frame(key, 1, b"", flexible=False))
