"""What the demo asks of its three runs: each condition can fail it."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from wrackline.harness.expectations import demo
from wrackline.harness.expectations.demo import _canary_caught, _loss_allowed, _promise_kept
from wrackline.harness.run import judge as judging
from wrackline.harness.run.judge import Judged
from wrackline.harness.run.live.outcome import Options, Outcome

Verdict = dict[str, Any]
FAULTS = [
    {"id": "f1", "fault": "partition", "proved": True, "lost": {}},
    {"id": "f2", "fault": "kill", "proved": True},
    {"id": "f3", "fault": "power-cut", "proved": True, "lost": {"n2": {"broker/log-0/0.log": 4096}}},
]
METADATA_ONLY = {"n2": {"broker/controller/__cluster_metadata-0/0.log": 64, "broker/log-0/0.index": 24}}


def verdict(word: str, *, acked: int = 9_000, meaning: str = "violation", lost: int = 0) -> Verdict:
    return {
        "verdict": word,
        "headline": "h",
        "reasons": ["why"],
        "counts": {"acked_records": acked},
        "faults": copy.deepcopy(FAULTS),
        "anomalies": [{"anomaly": "lost-write", "meaning": meaning, "count": lost, "why": ""}],
    }


def changed(found: Verdict, change: Callable[[Verdict], object]) -> Verdict:
    change(found)
    return found


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (verdict("inconclusive"), "must be pass"),
        (verdict("pass", acked=4_999), "at least 5,000"),
        (changed(verdict("pass"), lambda v: v["faults"][1].update(proved=False)), "not proved: f2 kill"),
        (changed(verdict("pass"), lambda v: v["faults"].pop()), "3 faults must be proved"),
        (changed(verdict("pass"), lambda v: v["faults"][2].update(lost={})), "must lose records"),
        (changed(verdict("pass"), lambda v: v["faults"][2].update(lost=METADATA_ONLY)), "must lose records"),
    ],
)
def test_run_1_must_pass_with_everything_proved(found: Verdict, said: str) -> None:
    assert _promise_kept(verdict("pass")) == []
    assert any(said in wrong for wrong in _promise_kept(found))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (verdict("pass", meaning="allowed", lost=0), "none were found"),
        (verdict("violation", meaning="violation", lost=4), "must be pass"),
        (verdict("pass", meaning="expected", lost=4), "must be allowed"),
    ],
)
def test_run_2_must_find_a_loss_that_is_allowed(found: Verdict, said: str) -> None:
    assert _loss_allowed(verdict("pass", meaning="allowed", lost=4)) == []
    assert any(said in wrong for wrong in _loss_allowed(found))


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (verdict("pass"), "must be a violation"),
        (verdict("inconclusive"), "must be a violation"),
        (verdict("violation", lost=0), "no lost-write was found"),
    ],
)
def test_run_3_must_be_caught(found: Verdict, said: str) -> None:
    assert _canary_caught(verdict("violation", lost=1)) == []
    assert any(said in wrong for wrong in _canary_caught(found))


class Spark:
    """Remembers when it was begun, and whether it is there."""

    begun: ClassVar[list[int]] = []
    is_there = False

    def __init__(self, master: str) -> None:
        assert master == "local[*]"
        self.begun.clear()

    def begin(self) -> None:
        self.begun.append(len(self.begun))

    def close(self) -> None:
        self.begun.append(-1)

    @contextmanager
    def session(self) -> Iterator[None]:
        Spark.is_there = True
        yield
        Spark.is_there = False


@pytest.mark.parametrize(
    ("canary", "stricter", "code"),
    [("violation", "violation", 0), ("pass", "violation", 1), ("violation", "pass", 1)],
)
def test_the_demo_fails_when_the_canary_passes_or_the_stricter_contract_does(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    canary: str,
    stricter: str,
    code: int,
) -> None:
    verdicts = {
        "demo-acks-all": verdict("pass"),
        "demo-acks-one": verdict("pass", meaning="allowed", lost=3),
        "demo-canary": verdict(canary, lost=3),
    }

    def judged(run_dirs: list[Path], *, contract: str | None = None, **_: Any) -> list[Judged]:
        if contract is not None:
            assert [run_dir.name for run_dir in run_dirs] == ["demo-acks-one"]
            return [Judged(run_dirs[0], verdict(stricter, lost=3), None)]
        return [Judged(run_dir, verdicts[run_dir.name], run_dir / "report.html") for run_dir in run_dirs]

    monkeypatch.setattr(demo, "run", lambda spec, _options: Outcome(tmp_path / spec.name, (), True))
    monkeypatch.setattr(judging, "judge", judged)
    monkeypatch.setattr(demo, "_no_spark", lambda: "")
    monkeypatch.setattr(demo, "SparkAhead", Spark)
    assert demo.demo(tmp_path) == code
    told = capsys.readouterr().out
    assert told.count("report.html") == 3
    assert f"under contract acks-all: {stricter}" in told
    assert ("NOT AS IT MUST BE" in told) is (code == 1)


@pytest.mark.parametrize(
    ("missing", "engine", "told"),
    [("", "spark", ""), ("no Java found: install it", "local", "no Java found")],
)
def test_spark_judges_where_it_is_there_and_else_this_process_which_is_said(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    missing: str,
    engine: str,
    told: str,
) -> None:
    """Spark starts in the last run, when its faults are over."""
    asked: list[tuple[str, bool, int]] = []
    begun: list[tuple[str, int]] = []

    def made(spec: Any, options: Options) -> Outcome:
        options.prepare_judge()
        options.recovered()
        begun.append((spec.name, len(Spark.begun)))
        return Outcome(tmp_path / spec.name, (), True)

    def judged(run_dirs: list[Path], *, engine: str, **_: Any) -> list[Judged]:
        asked.append((engine, Spark.is_there, len(run_dirs)))
        return [Judged(one, verdict("pass", lost=3), None) for one in run_dirs]

    monkeypatch.setattr(demo, "run", made)
    monkeypatch.setattr(judging, "judge", judged)
    monkeypatch.setattr(demo, "prepare", lambda: None)
    monkeypatch.setattr(demo, "_no_spark", lambda: missing)
    monkeypatch.setattr(demo, "SparkAhead", Spark)
    Spark.begun.clear()
    demo.demo(tmp_path)
    is_spark = engine == "spark"
    assert (Spark.begun[-1:] == [-1]) is is_spark, "closed"
    assert begun == [("demo-acks-all", 0), ("demo-acks-one", 0), ("demo-canary", int(is_spark))]
    assert asked == [(engine, is_spark, 3), ("local", False, 1)]
    assert told in capsys.readouterr().out
