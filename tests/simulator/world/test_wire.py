"""The broker's codec in the loop: it changes no run, and one that loses a field is noticed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import get_args

import pytest
from click.testing import CliRunner

from tests.broker.wire.samples import EXPECTED, TOPIC_ID
from wrackline.broker.model.messages import requests as m
from wrackline.broker.wire import fast
from wrackline.broker.wire.api import Api
from wrackline.broker.wire.apis import BY_KEY, BY_REQUEST
from wrackline.broker.wire.codec import Caller, Codec, Incoming
from wrackline.broker.wire.schema import response_schema
from wrackline.broker.wire.translation.declarations import FieldPath
from wrackline.simulator.cli import simulate
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.faults.swarm import swarm
from wrackline.simulator.run import run
from wrackline.simulator.world import wire

SHORT = Setup(seed=3, seconds=3.0, codec=True)


@pytest.mark.parametrize(
    "setup",
    [
        SHORT,
        replace(SHORT, profile="zk08", seconds=6.0),
        replace(SHORT, profile="kip101", load=("batches", "sessions")),
        replace(SHORT, profile="kraft35", upgrade_to="kip966", controllers=3),
        replace(SHORT, tcp=False, idempotent=True, drills=True),
        replace(SHORT, drills=True, weak=1),
    ],
    ids=lambda setup: f"{setup.profile}-{setup.upgrade_to}",
)
def test_a_run_with_the_codec_is_the_run_without_it(setup: Setup, monkeypatch: pytest.MonkeyPatch) -> None:
    carried: Counter[tuple[str, int]] = Counter()
    carry = wire.Wire.carry_request

    def count(self: wire.Wire, source: int, request: m.Request) -> Incoming | None:
        incoming = carry(self, source, request)
        if incoming is not None:
            carried[incoming.api.name, incoming.version] += 1
        return incoming

    monkeypatch.setattr(wire.Wire, "carry_request", count)
    with_codec = run(setup, digest=True)
    assert with_codec.violation is None
    assert with_codec.digest == run(replace(setup, codec=False), digest=True).digest
    assert carried.total() > 150
    assert len({version for name, version in carried if name == "Fetch"}) > 3, "a client's version is drawn"


def test_every_request_has_a_codec_or_a_reason() -> None:
    assert set(get_args(m.Request)) == BY_REQUEST.keys()
    assert wire.WITHOUT.keys() < BY_REQUEST.keys()
    page = Path(__file__).parents[3].joinpath("docs/simulator.md").read_text(encoding="utf-8")
    assert f"{len(BY_REQUEST) - len(wire.WITHOUT)} of the {len(BY_REQUEST)} requests" in page
    for request in wire.WITHOUT:
        assert request.__name__.removesuffix("Request") in page


def _lost(sent: object, decoded: object) -> set[str]:
    return {place for place, _, _ in wire._changes("", type(sent).__name__, sent, decoded, wire._ANY)}


def _round_trip(api: Api, version: int, monkeypatch: pytest.MonkeyPatch) -> tuple[set[str], set[str]]:
    """(fields that a request and its response lose in a version, those that the tables name for it)"""
    request, response = EXPECTED[api.key]
    if isinstance(request, m.FetchRequest) and version > 12:
        parts = tuple(replace(part, topic_id=TOPIC_ID) for part in request.partitions)
        request = replace(request, partitions=parts)
        assert isinstance(response, m.FetchResponse)
        response = replace(
            response, partitions=tuple(replace(part, topic_id=TOPIC_ID) for part in response.partitions)
        )
    named = _named(api, request, version) | _named(api, response, version)
    with monkeypatch.context() as patch:
        patch.setattr(wire, "SINCE", {})
        patch.setattr(wire, "NEVER", {})
        asker = Caller((*api.nodes_on, *api.open_on)[0], max(api.speaks_for(request), 1))
        codec = Codec(names={TOPIC_ID: "t"}.get)
        incoming = codec.decode_request(wire._frame(api, version, request)[4:], asker)
        assert isinstance(incoming, Incoming)
        schema = response_schema(api.key, version)
        entity = schema.read(codec.encode_response(incoming, response), 9 if schema.flexible else 8)
        decoded = api.decode_response(entity, request)
        return _lost(request, incoming.request) | _lost(response, decoded), named


def _named(api: Api, value: object, version: int) -> set[str]:
    """The fields of a message that say something, and of which the tables say that they are not carried."""
    names = set()
    for name, part, default in wire._parts(value):
        never = name in wire.NEVER or f"{api.name} {name}" in wire.NEVER
        if part != default and (never or wire.SINCE.get(name, 0) > version):
            names.add(name)
        else:
            names |= _named(api, part, version)
    return names


def test_the_tables_say_what_each_version_carries(monkeypatch: pytest.MonkeyPatch) -> None:
    """So no field is left out of the comparison that a version carries, and none is missed for nothing."""
    lost: defaultdict[str, set[tuple[int, str]]] = defaultdict(set)
    named: defaultdict[str, set[tuple[int, str]]] = defaultdict(set)
    for api in BY_KEY.values():
        least = wire.SINCE.get(api.request.model.__name__, 0)
        spans = [span for span in (api.clients, api.peers) if span is not None]
        for version in [each for low, high in spans for each in range(max(low, least), high + 1)]:
            if api.request.model not in wire.WITHOUT:
                result, expected = _round_trip(api, version, monkeypatch)
                lost[api.name] |= {(version, name) for name in result}
                named[api.name] |= {(version, name) for name in expected}
    assert lost == named
    assert sum(map(len, lost.values())) > 20


def _without_last_epoch(request: m.FetchRequest) -> bytes:
    parts = tuple(replace(part, last_fetched_epoch=-1) for part in request.partitions)
    return fast.fetch_request(request.with_partitions(parts))


def _lose_in_fast_writer(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(fast.REQUESTS, (1, 17), _without_last_epoch)


def _redeclare(patch: pytest.MonkeyPatch, key: int, change: Callable[[Api], Api]) -> None:
    api = change(BY_KEY[key])
    patch.setitem(BY_KEY, key, api)
    patch.setitem(BY_REQUEST, api.request.model, api)


def _lose_in_declaration(patch: pytest.MonkeyPatch) -> None:
    """The answer to a heartbeat has no place any more for what the broker waits for."""
    answer = BY_KEY[63].response
    places = {**answer.places, "is_caught_up": "no_such_field"}
    _redeclare(patch, 63, lambda api: replace(api, response=replace(answer, places=places)))


def _send_an_old_version(patch: pytest.MonkeyPatch) -> None:
    _redeclare(patch, 1, lambda api: replace(api, sent=14))


def _read_half_of_an_id(patch: pytest.MonkeyPatch) -> None:
    half = FieldPath("producer_id", read=lambda producer_id: producer_id & 0xFF)
    answer = replace(BY_KEY[22].response, places={"producer_id": half})
    _redeclare(patch, 22, lambda api: replace(api, response=answer))


@pytest.mark.parametrize(
    ("deviate", "setup", "says"),
    [
        (_lose_in_fast_writer, SHORT, "Fetch v17: FetchPartition.last_fetched_epoch"),
        (_lose_in_declaration, SHORT, "BrokerHeartbeat v1: BrokerHeartbeatResponse.is_caught_up"),
        (_send_an_old_version, SHORT, "Fetch v14: FetchRequest.broker_epoch"),
        (_read_half_of_an_id, replace(SHORT, idempotent=True), "InitProducerIdResponse.producer_id"),
    ],
)
def test_a_codec_that_loses_a_field_is_noticed(
    deviate: Callable[[pytest.MonkeyPatch], None], setup: Setup, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    deviate(monkeypatch)
    violation = run(setup).violation
    assert violation is not None
    assert violation.oracle == "codec"
    assert says in violation.text
    assert "\n" not in violation.text
    assert run(replace(setup, codec=False)).violation is None


def test_a_swarm_draws_it_for_one_seed_in_five_and_the_command_says_so() -> None:
    drawn = [swarm(Setup(seed=seed)) for seed in range(200)]
    assert 20 < sum(each.codec for each in drawn) < 60
    first = next(each for each in drawn if each.codec)
    assert " --codec" in first.command()
    assert all("--codec" not in each.command() for each in drawn if not each.codec)
    text = CliRunner().invoke(simulate, ["--seed", "3", "--seconds", "3", "--codec", "--digest"]).output
    assert f"digest {run(SHORT, digest=True).digest}" in text
