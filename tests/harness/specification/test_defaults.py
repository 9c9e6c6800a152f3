"""A default that nobody has written refuses nothing that somebody has written: every key of every part alone,
at each of its bounds and with each of its words."""

from __future__ import annotations

import enum
import types
from collections.abc import Iterator
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from annotated_types import Ge, Le
from pydantic import BaseModel, ValidationError

from wrackline.plugins.fields import Most
from wrackline.plugins.registry import Group, entries
from wrackline.workloads.group.spec import GroupSpec
from wrackline.workloads.log.spec import LogSpec
from wrackline.workloads.txn.spec import TxnSpec

TAGS = ("name", "kind", "fault")
CHOICES = {
    # Which promise is given up for it only the writer can say.
    ("queue", "acks", 0): "this workload needs acks: 1 or all",
    ("register", "acks", 0): "this workload needs acks: 1 or all",
    ("queue", "idempotence", False): "acks: all needs idempotence: true here",
    ("register", "idempotence", False): "acks: all needs idempotence: true here",
    ("messages", "do", "repeat"): "an answer is not repeated",
    ("partition", "shape", "link"): "shape link needs two hosts as target",
    ("mtu-black-hole", "shape", "link"): "shape link needs two hosts as target",
    ("share", "client.library", "librdkafka"): "librdkafka has no share groups",
    # Which of the two is meant only the writer can say.
    ("share", "async_commits", 1.0): "together must not be more than 1",
    ("share", "sync_commits", 1.0): "together must not be more than 1",
    ("share", "implicit_members", 50): "must not be more than members",
    ("share", "heartbeat_ms", 60_000): "at most half of session_timeout_ms",
    # Words that are of another fault.
    ("mtu-black-hole", "shape", "clients"): "mtu-black-hole has the shapes",
    ("mtu-black-hole", "shape", "majorities-ring"): "mtu-black-hole has the shapes",
    ("mtu-black-hole", "shape", "bridge"): "mtu-black-hole has the shapes",
    ("change-config", "entity", "clients"): "use the fault quota",
    # By what clients prove who they are only the writer can say.
    **{
        ("apache-kafka", "security.protocol", protocol): "needs a mechanism"
        for protocol in ("SASL_PLAINTEXT", "SASL_SSL")
    },
    **{
        ("apache-kafka", "security.mechanism", mechanism): "PLAINTEXT has no mechanism"
        for mechanism in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
    },
    ("apache-kafka", "security.acls", True): "acls need to know who a client is",
    # There are nine hosts at most.
    **{(fleet, "spares", 8): "are more than the 9" for fleet in ("libvirt", "netns", "process", "qemu")},
}
"""What is refused alone, and what the refusal says: none of it is for a time that nobody has written."""


def values(annotation: Any, metadata: list[Any]) -> list[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        inner, *more = get_args(annotation)
        return values(inner, [*metadata, *more])
    if origin is Literal:
        return list(get_args(annotation))
    if origin in (Union, types.UnionType):
        return [one for each in get_args(annotation) for one in values(each, metadata)]
    if annotation is bool:
        return [True, False]
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return [str(one.value) for one in annotation]
    if annotation not in (int, float):
        return []
    bounds = [inner for one in metadata for inner in getattr(one, "metadata", None) or [one]]
    least = [one.ge for one in bounds if isinstance(one, Ge)]
    most = [one.le for one in bounds if isinstance(one, Le)]
    most += [one.most for one in bounds if isinstance(one, Most)]
    return [annotation(one) for one in (*least, *most)]


def keys(model: type[BaseModel], path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from keys(field.annotation, (*path, name))
        elif name not in TAGS:
            for value in values(field.annotation, list(field.metadata)):
                yield (*path, name), value


def parts() -> Iterator[tuple[str, type[BaseModel], dict[str, Any]]]:
    for group in (Group.WORKLOADS, Group.FLEETS, Group.SYSTEMS, Group.FAULTS):
        for one in entries(group):
            if one.is_ours:
                loaded = one.load()
                model = getattr(loaded, "settings", loaded)
                least = {"fault": one.name, **model.example} if group is Group.FAULTS else {}
                yield one.name, model, least


def test_no_default_refuses_a_key_that_stands_alone() -> None:
    refused: dict[tuple[str, str, Any], str] = {}
    tried = 0
    for part, model, least in parts():
        try:
            model.model_validate(least)
        except ValidationError as needs_more:  # an inventory, a cluster that runs
            if {one["type"] for one in needs_more.errors()} != {"missing"}:
                raise
            continue
        for path, value in keys(model):
            given: dict[str, Any] = dict(least)
            place = given
            for step in path[:-1]:
                place = place.setdefault(step, {})
            place[path[-1]] = value
            tried += 1
            try:
                model.model_validate(given)
            except ValidationError as wrong:
                refused[part, ".".join(path), value] = wrong.errors()[0]["msg"]
    assert tried > 300
    assert {key: CHOICES.get(key, "nothing") in said for key, said in refused.items()} == dict.fromkeys(
        CHOICES, True
    )


@pytest.mark.parametrize(
    ("given", "request_ms", "message_ms"),
    [
        ({"message_timeout_ms": 2_000}, 2_000, 2_000),
        ({"request_timeout_ms": 9_000}, 9_000, 9_000),
        ({"message_timeout_ms": 9_000}, 2_500, 9_000),
        ({"message_timeout_ms": 2_000, "library": "java"}, 2_000, 2_000),
        ({}, 2_500, 3_000),
    ],
)
def test_a_default_follows_what_is_written(given: dict[str, Any], request_ms: int, message_ms: int) -> None:
    client = LogSpec.model_validate({"client": given}).client
    assert (client.request_timeout_ms, client.message_timeout_ms) == (request_ms, message_ms)


def test_what_is_written_is_refused_where_it_contradicts_itself() -> None:
    wrong = {"client": {"message_timeout_ms": 2_000, "request_timeout_ms": 2_500}}
    with pytest.raises(ValidationError, match="request_timeout_ms must not be more"):
        LogSpec.model_validate(wrong)
    with pytest.raises(ValidationError, match="at most half"):
        GroupSpec.model_validate({"heartbeat_ms": 3_000, "session_timeout_ms": 4_000})
    assert GroupSpec.model_validate({"session_timeout_ms": 1_000}).heartbeat_ms == 500
    assert GroupSpec.model_validate({"assignor": "uniform"}).protocol == "consumer"
    short = TxnSpec.model_validate({"transaction_timeout_ms": 1_000})
    assert (short.client.socket_timeout_ms, short.transaction_timeout_ms) == (1_100, 1_000)
    both = {"transaction_timeout_ms": 1_000, "client": {"socket_timeout_ms": 2_000}}
    with pytest.raises(ValidationError, match="must not be more than transaction_timeout_ms"):
        TxnSpec.model_validate(both)
