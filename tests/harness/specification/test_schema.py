"""The JSON schema of a specification: every example fits it, and what it refuses the parser refuses too."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from wrackline.harness.specification.schema import schema
from wrackline.harness.specification.spec import SpecError, load, validated

ROOT = Path(__file__).parents[3]
SUITES = sorted((ROOT / "suites").rglob("*.yaml"))
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
SCHEMA = schema()
VALIDATOR = jsonschema_rs.Draft202012Validator(SCHEMA)
OLDER = {**SCHEMA, "$schema": "http://json-schema.org/draft-07/schema#"}
OF_EDITORS = jsonschema_rs.Draft7Validator(OLDER)


def refused_by_schema(raw: Any) -> list[str]:
    return [f"{'.'.join(map(str, one.instance_path))}: {one.message}" for one in VALIDATOR.iter_errors(raw)]


def refused_by_parser(raw: Any) -> list[str]:
    try:
        validated(raw, "x")
    except SpecError as wrong:
        return list(wrong.mistakes)
    return []


def documented() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every indented block of a document that is a specification, or parts of one."""
    tops = set(SCHEMA["properties"])
    for document in DOCUMENTS:
        for block in re.findall(r"(?:^    .*\n)+", document.read_text(), re.M):
            try:
                raw = yaml.safe_load(block)
            except yaml.YAMLError:
                continue
            if isinstance(raw, dict) and raw.keys() <= tops:
                yield f"{document.name}: {', '.join(raw)}", {"name": "documented", **raw}


DOCUMENTED = list(documented())


def test_the_schema_is_valid_in_its_own_draft_and_in_the_draft_of_editors() -> None:
    jsonschema_rs.meta.validate(SCHEMA)
    jsonschema_rs.meta.validate(OLDER)
    assert SCHEMA["$schema"] == "https://json-schema.org/draft/2020-12/schema"


@pytest.mark.parametrize("path", SUITES, ids=lambda path: path.stem)
def test_every_suite_fits_as_it_is_written_and_as_it_is_saved(path: Path) -> None:
    written, saved = yaml.safe_load(path.read_text()), yaml.safe_load(load(path).to_yaml())
    assert refused_by_schema(written) == []
    assert refused_by_schema(saved) == []
    assert not list(OF_EDITORS.iter_errors(written))


@pytest.mark.parametrize(("where", "raw"), DOCUMENTED, ids=[where for where, _ in DOCUMENTED])
def test_every_example_of_the_documents_fits_and_can_be_run(where: str, raw: dict[str, Any]) -> None:
    del where
    assert refused_by_schema(raw) == []
    assert refused_by_parser(raw) == []


def test_the_documents_have_examples() -> None:
    found = {where for where, _ in DOCUMENTED}
    assert {"README.md: name, system, fleet, topic, workload, nemesis", "specification.md: nemesis"} <= found


def test_every_key_is_explained_to_who_edits() -> None:
    silent = [
        f"{name}.{key}"
        for name, one in {"Spec": SCHEMA, **SCHEMA["$defs"]}.items()
        for key, value in one.get("properties", {}).items()
        if "description" not in value
    ]
    assert silent == []


def test_every_key_in_seconds_or_milliseconds_takes_a_duration() -> None:
    """Also one that is new tomorrow."""

    def takes(value: Any) -> bool:
        whole = jsonschema_rs.Draft202012Validator({**value, "$defs": SCHEMA["$defs"]})
        return any(map(whole.is_valid, ("3m", ["2m", "1h30m"])))

    def keys(part: Any) -> Iterator[tuple[str, Any]]:
        if isinstance(part, dict):
            yield from part.get("properties", {}).items()
        for below in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
            yield from keys(below)

    of_time = [
        (key, value)
        for key, value in keys(SCHEMA)
        if re.search("_m?s$", key) and not key.endswith("per_s") and "$ref" not in value
    ]
    assert [key for key, value in of_time if not takes(value)] == []
    assert {"at_s", "deadline_s", "every_s", "duration_s", "recovery_s", "poll_ms"} <= {
        key for key, _ in of_time
    }


def test_the_schema_offers_existing_names_to_editors() -> None:
    """Each list comes from the definition that the parser looks into."""
    defs = SCHEMA["$defs"]
    assert "b01-truncate-to-hw" in defs["GuidedSpec"]["anyOf"][0]["enum"]
    assert "lost-write" in defs["ContractSpec"]["properties"]["expected"]["items"]["enum"]
    assert (
        "socket.timeout.ms" not in defs["ClientSettings"]["properties"]["librdkafka"]["propertyNames"]["enum"]
    )
    assert "add-broker" not in defs["RandomSpec"]["properties"]["faults"]["items"]["anyOf"][0]["enum"]


# --- the schema and the parser agree ----------------------------------------------------------------------

WHOLE: dict[str, Any] = {
    "name": "whole",
    "seed": 7,
    "fleet": {
        "brokers": 4,
        "controllers": 3,
        "spares": 1,
        "disk_mb": 128,
        "filesystem": "xfs",
        "subnet": "198.18.4.0/24",
    },
    "system": {
        "profile": "kip966",
        "defects": ["trunc_hw"],
        "config": {"flush_mode": "on-roll", "flush_ms": "3s"},
    },
    "topic": {"name": "log", "partitions": 3, "configs": {"retention.ms": "1h", "flush.messages": 5}},
    "workload": {
        "duration_s": "10m",
        "rate": 100.5,
        "spacing": "poisson",
        "acks": 1,
        "idempotence": False,
        "mix": {"send": 1, "end": 0.5},
        "senders": 3,
        "in_flight": 4,
        "client": {"linger_ms": "5ms", "poll_ms": 50, "librdkafka": {"debug": "broker", "batch.size": 5_000}},
    },
    "nemesis": {
        "schedule": [
            {"at_s": 5, "duration_s": "6s", "fault": "partition", "shape": "halves", "direction": "in"},
            {"at_s": "1m", "duration_s": 4, "inject": {"fault": "kill", "target": "leader(log-0)"}},
        ],
        "random": {
            "faults": ["kill", {"fault": "pause", "target": "n1,n2"}],
            "every_s": [4, "8s"],
            "duration_s": [2, 5.5],
            "overlap": True,
            "start_s": "90s",
        },
        "guided": {"name": "power-cut-lossy", "at_s": 3, "topic": "log", "deadline_s": "30s"},
    },
    "contract": {
        "expected": ["lost-write"],
        "thresholds": {"latency_ms": {"healthy": {"p99": "200ms"}}, "longest_gap_s": "1m", "left_out": 0.5},
    },
}
REGISTER: dict[str, Any] = {
    "name": "r",
    "workload": {"name": "register", "readers": 2, "read_by": "end", "acks": "all"},
}
QUEUE: dict[str, Any] = {"name": "q", "workload": {"name": "queue", "mix": {"dequeue": 1}, "duration_s": 90}}

ODD: list[Any] = [
    *(
        None,
        True,
        False,
        -1,
        0,
        1,
        3,
        0.5,
        1e9,
        10**19,
        "",
        "1",
        "3m",
        "0s",
        "3 m",
        "kill",
        "log",
        "all",
        "n1",
        "true",
    ),
    *(
        [],
        ["kill"],
        [1],
        [1, 2],
        ["1s", "2s", "3s"],
        [[]],
        {},
        {"fault": "kill"},
        {"name": "log"},
        {"nosuch": 1},
    ),
    {"at_s": 1, "duration_s": 1, "fault": "pause"},
]
"""What is put where it may not belong."""


def places(raw: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of everything in a specification, itself left out."""
    if path:
        yield path
    entries = raw.items() if isinstance(raw, dict) else enumerate(raw) if isinstance(raw, list) else ()
    for key, value in entries:
        yield from places(value, (*path, key))


def holder(raw: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        raw = raw[key]
    return raw


def put(raw: dict[str, Any], path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(raw)
    holder(changed, path)[path[-1]] = value
    return changed


def without(raw: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    changed = copy.deepcopy(raw)
    del holder(changed, path)[path[-1]]
    return changed


def beside(raw: dict[str, Any], path: tuple[Any, ...]) -> dict[str, Any]:
    """A key that nobody knows, beside the one at ``path``."""
    changed = copy.deepcopy(raw)
    place = holder(changed, path)
    if isinstance(place, dict):
        place["nosuch"] = 1
    return changed


ONLY_THE_PARSER = (
    *("needs as many", "can never be met", "there is no host", "needs the controllers", "needs more brokers"),
    *(
        "fits into the run",
        "but the run lasts",
        "is nobody",
        "has no partition",
        "there is no topic",
        "has no half",
    ),
    *(
        "no operation is left",
        "idempotence needs acks",
        "needs idempotence",
        "must not be more than",
        "needs acks: 1",
    ),
    *(
        "the smaller number comes first",
        "needs two hosts as target",
        "there is no spare host",
        "means what goes between clients and the brokers' port",
        "nothing is asked for",
    ),
    *(
        "controllers need as many brokers",
        "more than the 9 there can be",
        "has no room for the hosts",
        "has no follower",
        "0 goes with fleet.zookeeper",
        "needs no ZooKeeper",
        "with ZooKeeper: there brokers elect",
    ),
    *("give it as 198.18.0.0/24",),
    *("share one machine; for more",),  # a field has one limit on whatever hosts
    "input should be a valid integer, not",  # 3.0 is an integer for a schema; 0.5ms is a duration
    "input should be a valid string or integer or boolean, not",  # 3.0 again
)
"""What the parser refuses and no schema can: how parts fit each other."""
LIMIT_OF_A_DURATION = re.compile(
    r"(_s|_ms|_s\[\d\]|\.p\d\d): (input should be (less|greater) than|\S+ is more than)"
)
"""The limits of a number hold for a duration that is written as text, too; a pattern cannot say it."""


def agree(raw: dict[str, Any]) -> None:
    by_schema, by_parser = refused_by_schema(raw), refused_by_parser(raw)
    if by_schema:
        assert by_parser, f"the parser takes what the schema refuses: {by_schema[0]}\n{yaml.safe_dump(raw)}"
        return
    unsaid = [
        line
        for line in by_parser
        if not LIMIT_OF_A_DURATION.search(line) and not any(words in line for words in ONLY_THE_PARSER)
    ]
    assert not unsaid, f"the schema takes what the parser refuses: {unsaid}\n{yaml.safe_dump(raw)}"


@pytest.mark.parametrize("raw", [WHOLE, REGISTER, QUEUE], ids=["log", "register", "queue"])
def test_specifications_with_every_part_are_taken_by_both(raw: dict[str, Any]) -> None:
    assert (refused_by_schema(raw), refused_by_parser(raw)) == ([], [])


@pytest.mark.parametrize("raw", [WHOLE, REGISTER, QUEUE], ids=["log", "register", "queue"])
def test_each_key_left_out_and_an_unknown_one_beside_it(raw: dict[str, Any]) -> None:
    for path in places(raw):
        agree(without(raw, path))
        agree(beside(raw, path))


@pytest.mark.parametrize("path", list(places(WHOLE)), ids=lambda path: ".".join(map(str, path)))
def test_each_value_replaced_by_odd_ones(path: tuple[Any, ...]) -> None:
    for odd in ODD:
        agree(put(WHOLE, path, odd))


@given(data=st.data())
def test_schema_and_parser_agree_after_several_random_changes(data: st.DataObject) -> None:
    raw = data.draw(st.sampled_from([WHOLE, REGISTER, QUEUE]))
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(list(places(raw)) or [("name",)]))
        change = data.draw(st.sampled_from(["put", "drop", "beside", "move"]))
        match change:
            case "put":
                raw = put(raw, path, data.draw(st.sampled_from(ODD)))
            case "drop":
                raw = without(raw, path) if len(raw) > 1 or len(path) > 1 else raw
            case "beside":
                raw = beside(raw, path)
            case "move":  # a value of one key for another
                other = data.draw(st.sampled_from(list(places(WHOLE))))
                raw = put(raw, path, holder(WHOLE, other)[other[-1]])
    agree(raw)
