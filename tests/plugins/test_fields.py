"""Wherever a specification takes seconds or milliseconds, it takes `3m` too, and keeps it as a number."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wrackline.harness.specification.spec import Spec, SpecError, parse
from wrackline.plugins.fields import in_milliseconds, milliseconds


def spec_of(*settings: str) -> Spec:
    return parse("name: x", "x.yaml", settings=settings)


def at(spec: Spec, path: str) -> Any:
    place: Any = spec
    for key in path.split("."):
        place = (
            place[int(key) if key.isdigit() else key]
            if isinstance(place, tuple | dict)
            else getattr(place, key)
        )
    return place


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("3m", 180_000),
        ("90s", 90_000),
        ("1h30m", 5_400_000),
        ("500ms", 500),
        ("1.5s", 1_500),
        ("1m30s250ms", 90_250),
        ("0s", 0),
        ("5", None),
        ("", None),
        ("3 m", None),
        ("30m1h", None),
        ("3m3m", None),
        ("-3m", None),
        ("3M", None),
        ("٣m", None),
        ("3m\n", None),
    ],
)
def test_a_duration_is_a_number_of_each_unit_the_greatest_first(text: str, ms: int | None) -> None:
    assert milliseconds(text) == ms


@given(st.integers(0, 99), st.integers(0, 999), st.integers(0, 999), st.integers(0, 9_999))
def test_a_duration_is_the_sum_of_its_parts(hours: int, minutes: int, seconds: int, ms: int) -> None:
    whole = milliseconds(f"{hours}h{minutes}m{seconds}s{ms}ms")
    assert whole == ((hours * 60 + minutes) * 60 + seconds) * 1_000 + ms


@pytest.mark.parametrize(
    ("setting", "number"),
    [
        ("workload.duration_s=3m", 180.0),
        ("workload.client.message_timeout_ms=5s", 5_000),
        ("workload.client.request_timeout_ms=1.5s", 1_500),
        ("workload.client.socket_timeout_ms=1m", 60_000),
        ("workload.client.linger_ms=2s", 2_000.0),
        ("workload.client.poll_ms=1s", 1_000),
        ("workload.client.fetch_wait_max_ms=50ms", 50),
        ("workload.client.end_timeout_ms=4s", 4_000),
        ("contract.thresholds.latency_ms.healthy.p50=20ms", 20.0),
        ("contract.thresholds.latency_ms.faults.p99=1.5s", 1_500.0),
        ("contract.thresholds.longest_gap_s=1m30s", 90.0),
        ("contract.thresholds.recovery_s=750ms", 0.75),
    ],
)
def test_every_key_in_seconds_or_milliseconds_takes_one(setting: str, number: float) -> None:
    path = setting.partition("=")[0]
    found = at(spec_of(setting), path)
    assert (found, type(found)) == (number, type(number))


def test_the_nemesis_takes_them() -> None:
    nemesis = parse(
        """
name: x
workload: {duration_s: 10m}
nemesis:
  schedule: [{at_s: 1m, duration_s: 90s, fault: kill}]
  random: {faults: [pause], every_s: [30s, 1m], duration_s: [500ms, 20], start_s: 2m, tail_s: 0s}
  guided: {name: power-cut-lossy, at_s: 5m, deadline_s: 1m}
""",
        "x.yaml",
    ).nemesis
    assert nemesis.random is not None
    assert nemesis.guided is not None
    assert (nemesis.schedule[0].at_s, nemesis.schedule[0].duration_s) == (60, 90)
    assert (nemesis.random.every_s, nemesis.random.duration_s) == ((30, 60), (0.5, 20))
    assert (nemesis.random.start_s, nemesis.random.tail_s) == (120, 0)
    assert (nemesis.guided.at_s, nemesis.guided.deadline_s) == (300, 60)


def test_settings_of_the_broker_the_topic_and_librdkafka_take_them_where_their_names_end_in_ms() -> None:
    spec = parse(
        """
name: x
system: {config: {replica_lag_time_max_ms: 3s, flush_mode: on-roll, session_timeout_ms: soon}}
topic: {configs: {retention.ms: 1h, cleanup.policy: delete}}
workload: {client: {librdkafka: {metadata.max.age.ms: 1m30s, debug: 3m}}}
""",
        "x.yaml",
    )
    assert spec.system.config == {
        "replica_lag_time_max_ms": 3_000,
        "flush_mode": "on-roll",
        "session_timeout_ms": "soon",
    }
    assert spec.topic.configs == {"retention.ms": 3_600_000, "cleanup.policy": "delete"}
    assert spec.workload.client.librdkafka == {"metadata.max.age.ms": 90_000, "debug": "3m"}
    assert in_milliseconds({"a.ms": "0.5ms", "b_ms": 7, "forms": "1s"}) == {
        "a.ms": "0.5ms",
        "b_ms": 7,
        "forms": "1s",
    }


def test_a_number_may_have_an_exponent() -> None:
    assert spec_of("workload.rate=1e3").workload.rate == 1_000
    assert spec_of("workload.rate=2.5E+2").workload.rate == 250


def test_what_is_saved_has_the_number() -> None:
    saved = spec_of("workload.duration_s=3m").to_yaml()
    assert "duration_s: 180.0\n" in saved
    assert parse(saved, "saved").workload.duration_s == 180


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            "workload.duration_s=3 minutes",
            "'3 minutes' is no duration: give a number of seconds, or 90s, 3m, 1h30m or 500ms",
        ),
        (
            "workload.client.poll_ms=soon",
            "'soon' is no duration: give a number of milliseconds, or 90s, 3m, 1h30m or 500ms",
        ),
        (
            "workload.duration_s=2000h",
            "7,200,000 is more than 4,838,400: a run is judged whole, so make several",
        ),
        ("workload.duration_s=0s", "input should be greater than 0, not 0"),
        ("workload.client.poll_ms=0.5ms", "input should be a valid integer, not 0.5"),
        ("contract.thresholds.recovery_s=0ms", "input should be greater than 0, not 0"),
    ],
)
def test_one_that_does_not_fit_is_refused_by_the_limits_of_the_number(setting: str, said: str) -> None:
    with pytest.raises(SpecError) as wrong:
        spec_of(setting)
    assert str(wrong.value) == f"x.yaml: {setting.partition('=')[0]}: {said}"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("workload: {rate: '5'}", "workload.rate: input should be a valid number, not '5'"),
        ("workload: {rate: true}", "workload.rate: input should be a valid number, not True"),
        ("workload: {rate: .inf}", "workload.rate: input should be a finite number, not inf"),
        ("fleet: {combined: 1}", "fleet.combined: input should be a valid boolean, not 1"),
        (
            "workload: {acks: yes}",
            "workload.acks: a number or a word is wanted here, not true; quote what is a word",
        ),
    ],
)
def test_nothing_else_becomes_a_number(text: str, said: str) -> None:
    """A schema cannot say that `"5"` is one, and `acks: yes` meant 1."""
    with pytest.raises(SpecError) as wrong:
        parse(f"name: x\n{text}", "x.yaml")
    assert str(wrong.value) == f"x.yaml: {said}"
