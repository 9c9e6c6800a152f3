"""A run from Python is the run that a file with the same words asks for."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import orjson
import pytest

from tests.harness.doubles import PARTITIONS, Stage, rows
from wrackline import api
from wrackline.harness.run.judge import judge
from wrackline.harness.run.live.outcome import Options
from wrackline.harness.run.runner import run as make
from wrackline.harness.specification.spec import parse

EXAMPLE = Path(__file__).parents[3] / "docs" / "examples" / "from_python.py"
SAME = """
name: from-python
seed: 7
workload: {duration_s: 10, rate: 100}
nemesis: {schedule: [{at_s: 2, duration_s: 3, fault: kill, target: leader(log-0)}]}
"""

TOPIC = api.TopicSpec(partitions=PARTITIONS)


def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("from_python", EXAMPLE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_has_twenty_lines_and_says_what_the_file_says() -> None:
    lines = [line for line in EXAMPLE.read_text().splitlines() if line.strip()]
    assert len(lines) <= 20
    in_code, in_yaml = example().SPEC, parse(SAME, "x.yaml")
    assert in_code == in_yaml
    assert in_code.to_yaml() == in_yaml.to_yaml()


@pytest.mark.slow
def test_it_ends_as_the_run_of_the_file_does(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """On paper: the same plan, the same kinds of operations, the same verdict for the same reasons."""
    monkeypatch.setattr("wrackline.harness.extend.python.ask_system", lambda *_: None)
    short = {"duration_s": 2, "senders": 2, "pollers": 1, "enders": 1}
    in_code = api.Spec(name="same", seed=7, topic=TOPIC, workload=api.LogSpec(**short))
    load = "{duration_s: 2, senders: 2, pollers: 1, enders: 1}"
    text = f"{{name: same, seed: 7, topic: {{partitions: {PARTITIONS}}}, workload: {load}}}"
    in_yaml = parse(text, "x.yaml")
    first = api.run(in_code, stage.results / "python")
    made = make(in_yaml, Options(stage.results / "yaml"))
    at: list[str] = []
    second = judge([made.run_dir], status=at.append)[0]
    name = f"{made.run_dir.name} (1 of 1)"
    assert any(one.startswith(f"judging {made.run_dir.name}, ") and "reading" in one for one in at)
    assert at[-2:] == [
        f"judging {name}: invariants, the nodes' logs, Knossos",
        f"writing the report of {name}",
    ]
    assert first.word is second.word
    for name in ("spec.yaml", "plan.json"):
        assert (first.run_dir / name).read_text() == (made.run_dir / name).read_text()
    assert told(first.verdict) == told(second.verdict)
    kinds = [{(row["f"], row["type"]) for row in rows(one)} for one in (first.run_dir, made.run_dir)]
    assert {("send", "ok"), ("poll", "ok"), ("end", "ok")} <= kinds[0] & kinds[1]


def told(verdict: Any) -> Any:
    return verdict["contract"]["name"], [one["name"] for one in verdict["conditions"] if not one["ok"]]


def test_parts_of_classes_that_no_entry_point_names_are_used(stage: Stage) -> None:
    """A workload and a fault that were made in this file."""

    class OneWriterSpec(api.ClientsSpec):
        name: Literal["one-writer"] = "one-writer"

        @property
        def shares(self) -> dict[str, tuple[int, float]]:
            return {"send": (1, 1)}

    class OneWriter(api.Workload):
        settings = OneWriterSpec

        def processes(self, context: api.Context) -> list[api.Process]:
            return [api.Sender(context, 0)]

    class NoopSpec(api.FaultSpec):
        fault: Literal["noop"] = "noop"

        def build(self) -> api.Fault:
            raise AssertionError("the nemesis is of paper")

    late = api.ScheduledSpec(at_s=0.5, duration_s=0.5, inject=NoopSpec())
    spec = api.Spec(
        name="own",
        topic=TOPIC,
        workload=OneWriterSpec(duration_s=2, rate=50),
        nemesis=api.NemesisSpec(schedule=(late,)),
    )
    made = make(spec, Options(stage.results))
    assert {row["f"] for row in rows(made.run_dir) if row["type"] == "ok"} >= {"send"}
    assert not any(row["f"] == "end" and row["type"] == "ok" for row in rows(made.run_dir))
    plan = orjson.loads((made.run_dir / "plan.json").read_bytes())
    assert plan["plan"]["faults"][0]["inject"]["fault"] == "noop"
    assert "name: one-writer" in (made.run_dir / "spec.yaml").read_text()
