"""``wrackline list anomalies``: what is listed is what is looked for."""

from __future__ import annotations

import orjson
from click.testing import CliRunner

from wrackline.checkers.checks.registry import names
from wrackline.harness.cli.parts.anomalies import METRICS, anomalies_command


def listed(*arguments: str) -> str:
    result = CliRunner().invoke(anomalies_command, arguments, standalone_mode=False)
    assert result.exception is None
    return result.output


def test_everything_that_is_looked_for_is_listed_with_its_contract() -> None:
    rows = orjson.loads(listed("--json"))
    assert [row["name"] for row in rows] == [*names(), *(metric[0] for metric in METRICS)]
    assert all(row["meaning"] and row["jepsen"] and row["contract"] for row in rows)
    silent = [row["name"] for row in rows if row["contract"] == "no contract speaks of it"]
    assert silent == ["archived-unrefused"], "it is reported"


def test_the_list_for_people() -> None:
    text = listed()
    assert "lost-write  (Jepsen: lost-write / unseen)" in text
    assert "forbidden with +idempotence" in text
    assert max(map(len, text.splitlines())) <= 100
