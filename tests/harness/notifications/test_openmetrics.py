"""The file of metrics, read by Prometheus' own parsers: of OpenMetrics, and of the older format, which
node_exporter's textfile collector reads."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as openmetrics
from prometheus_client.parser import text_string_to_metric_families as older

from tests.harness.notifications.summaries import NIGHT, violation
from wrackline.harness.notifications.openmetrics import Ended, text, write
from wrackline.harness.records import METRICS

ENDED = Ended("nightly", 1_764_000_000.25, 3600.5, 14_400.0)
RAN = {"night": "nightly", "case": "canary", "system": "apache-kafka", "version": "4.0.0", "profile": ""}
Parser = Callable[[str], Iterable[Any]]


@pytest.fixture(params=[openmetrics, older], ids=["openmetrics", "prometheus"])
def parser(request: pytest.FixtureRequest) -> Parser:
    found: Parser = request.param
    return found


def samples(parser: Parser, content: bytes) -> dict[tuple[str, str], list[tuple[dict[str, str], float]]]:
    """By type and name."""
    found: dict[tuple[str, str], list[tuple[dict[str, str], float]]] = {}
    for family in parser(content.decode()):
        for one in family.samples:
            assert one.timestamp is None, "the textfile collector refuses times"
            found.setdefault((family.type, one.name), []).append((one.labels, one.value))
    return found


def test_a_night_is_read_back_by_both_parsers(parser: Parser) -> None:
    found = samples(parser, text(ENDED, NIGHT))
    assert {kind for kind, _ in found} == {"gauge"}
    assert found["gauge", "wrackline_night_end_timestamp_seconds"] == [({"night": "nightly"}, 1764000000.25)]
    assert found["gauge", "wrackline_night_new_violations"] == [({"night": "nightly"}, 1.0)]
    runs = {labels["verdict"]: value for labels, value in found["gauge", "wrackline_night_runs"]}
    assert runs == {
        "pass": 1.0,
        "violation": 1.0,
        "inconclusive": 1.0,
        "infrastructure": 1.0,
        "reproduced": 0.0,
        "not reproduced": 0.0,
        "not made": 1.0,
    }
    assert found["gauge", "wrackline_run_acknowledged_per_second"] == [(RAN, 99.5)]
    assert found["gauge", "wrackline_run_send_p99_seconds"] == [(RAN, 0.012)]
    assert found["gauge", "wrackline_run_judged_in_seconds"] == [(RAN, 3.5)]
    assert (RAN | {"verdict": "violation"}, 1.0) in found["gauge", "wrackline_run_verdict"]


def test_whatever_stands_in_a_name_is_read_back(parser: Parser) -> None:
    odd = 'a"b\\c\nd'
    found = samples(parser, text(ENDED, [violation(odd)]))
    assert found["gauge", "wrackline_run_acknowledged"] == [(RAN | {"case": odd}, 1814.0)]


def test_every_metric_of_a_run_says_what_it_is(parser: Parser) -> None:
    families = {family.name: family for family in parser(text(ENDED, NIGHT).decode())}
    told = [family.documentation for name, family in families.items() if name.startswith("wrackline_run_")]
    assert len(told) == len(METRICS) + 1
    assert all(told)
    assert not [text for text in told if ", ms" in text]
    assert not [name for name in families if name.endswith(("_ms", "_s"))]


def test_the_file_is_replaced_whole_and_others_may_read_it(tmp_path: Path) -> None:
    path = tmp_path / "wrackline.prom"
    path.write_text("old")
    with path.open() as reader:
        write(path, ENDED, NIGHT)
        assert reader.read() == "old"
    assert path.read_bytes() == text(ENDED, NIGHT)
    assert path.read_text().endswith("# EOF\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [each.name for each in tmp_path.iterdir()] == ["wrackline.prom"]
