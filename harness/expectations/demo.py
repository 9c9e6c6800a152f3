"""``wrackline demo``: three real runs, each with a verdict that is known beforehand.

It proves the judge as much as the broker: a harness that calls everything good fails at run 2 and run 3, and
one that calls everything bad fails at run 1. On virtual machines (``--fleet qemu``) it is one run, for they
are slow: what was promised is kept there too.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from wrackline.checkers.engine.spark.ahead import SparkAhead
from wrackline.checkers.engine.spark.session import JavaMissing, java_version
from wrackline.checkers.findings import Verdict
from wrackline.harness.run.judge import Judged, judge_outcomes, judge_with_progress, prepare
from wrackline.harness.run.live.outcome import Options, Outcome
from wrackline.harness.run.runner import run
from wrackline.harness.specification.check import load_checked
from wrackline.harness.specification.suites import suites_dir

ACKED_AT_LEAST = 5_000
ACKED_ON_VMS = 500
SPECS = ("demo-acks-all.yaml", "demo-acks-one.yaml", "demo-canary.yaml")
ON_VMS = "qemu-broker.yaml"
STRICTER = "acks-all"


def _nothing() -> None:
    pass


@dataclass
class Checked:
    """A run and how it differs from what must come out."""

    judged: Judged
    wrong: list[str] = field(default_factory=list)

    def expect(self, holds: bool, otherwise: str) -> None:
        if not holds:
            self.wrong.append(otherwise)

    @property
    def line(self) -> str:
        return f"{'as it must be' if not self.wrong else 'NOT AS IT MUST BE'}: {self.judged.line}"


def demo_on_vms(results: Path, *, master: str = "local[*]") -> int:
    """One run on virtual machines. Returns the exit code: 0 when it came out as it must."""
    began = time.monotonic()
    click.echo(f"--- the run: {ON_VMS}")
    with closing(_Judging(master)) as judging:
        options = Options(results, prepare_judge=prepare, recovered=judging.begin)
        outcome = run(load_checked(suites_dir() / ON_VMS), options)
        click.echo("--- judging")
        with judging.session():
            [checked] = judging.judge([outcome])
    checked.wrong += _promise_kept(checked.judged.verdict, acked_at_least=ACKED_ON_VMS, faults_wanted=2)
    click.echo(f"--- the demo, {time.monotonic() - began:.0f} s")
    _show(checked)
    return 1 if checked.wrong else 0


def demo(results: Path, *, master: str = "local[*]") -> int:
    """Returns the exit code: 0 when every run came out as it must."""
    began = time.monotonic()
    outcomes = []
    with (
        closing(_Judging(master)) as judging,
        ThreadPoolExecutor(1, "specification") as pool,
    ):
        # The later ones are checked while the first run goes on.
        specs = [pool.submit(load_checked, suites_dir() / name) for name in SPECS]
        for number, (name, spec) in enumerate(zip(SPECS, specs, strict=True), 1):
            click.echo(f"--- run {number} of {len(SPECS)}: {name}")
            stopped = judging.begin if number == len(SPECS) else _nothing
            options = Options(results, prepare_judge=prepare, recovered=stopped)
            outcomes.append(run(spec.result(), options))
        click.echo("--- judging")
        with judging.session():
            checked = judging.judge(outcomes)
    for each, check in zip(checked, (_promise_kept, _loss_allowed, _canary_caught), strict=True):
        each.wrong += check(each.judged.verdict)
    stricter = _stricter(checked[1])
    click.echo(f"--- the demo, {time.monotonic() - began:.0f} s")
    for each in checked:
        _show(each)
        if each is checked[1]:
            click.echo(f"   the same run under contract {STRICTER}: {stricter}")
    return 0 if not any(each.wrong for each in checked) else 1


class _Judging:
    """Spark judges the runs where it is there, and else this process."""

    def __init__(self, master: str) -> None:
        self._master = master
        self._ahead: SparkAhead | None = None
        self._engine = "spark"
        if not master.startswith("local"):
            return
        if missing := _no_spark():
            click.echo(f"{missing}; until then this process judges")
            self._engine = "local"
        else:
            self._ahead = SparkAhead(master)

    def begin(self) -> None:
        """Start Spark, while the last logs are read and the last hosts removed."""
        if self._ahead is not None:
            self._ahead.begin()

    def session(self) -> AbstractContextManager[object]:
        """Returns the Spark session that must enclose all judging. Raises SparkUnavailable."""
        return nullcontext() if self._ahead is None else self._ahead.session()

    def close(self) -> None:
        """Ends Spark, whatever became of the runs."""
        if self._ahead is not None:
            self._ahead.close()

    def judge(self, outcomes: list[Outcome]) -> list[Checked]:
        """All of them together, in order."""
        return [Checked(each) for each in judge_outcomes(outcomes, engine=self._engine, master=self._master)]


def _no_spark() -> str:
    """Returns why Spark cannot judge on this machine, and how to mend that; empty: it can."""
    if find_spec("pyspark") is None:
        return "PySpark is not installed: pip install 'wrackline[spark]'"
    try:
        java_version()
    except JavaMissing as missing:
        return str(missing)
    return ""


def _show(each: Checked) -> None:
    click.echo(each.line)
    for error in each.wrong:
        click.echo(f"   {error}")
    if each.wrong:
        for reason in each.judged.verdict.get("reasons", ())[:5]:
            click.echo(f"   {reason}")
    click.echo(f"   report: {each.judged.report}")


def _promise_kept(
    verdict: Mapping[str, Any], acked_at_least: int = ACKED_AT_LEAST, faults_wanted: int = 3
) -> list[str]:
    """Run 1: passed, with enough acknowledged, every fault proved, and bytes really lost."""
    error = []
    if verdict["verdict"] != Verdict.PASS:
        error.append(f"the verdict must be pass, it is {verdict['verdict']}")
    acked = verdict["counts"]["acked_records"]
    if acked < acked_at_least:
        error.append(f"at least {acked_at_least:,} records must be acknowledged, {acked:,} were")
    faults = verdict["faults"]
    unproved = [f"{fault['id']} {fault['fault']}" for fault in faults if not fault["proved"]]
    if unproved or len(faults) < faults_wanted:
        error.append(
            f"{faults_wanted} faults must be proved; of {len(faults)} not proved: "
            f"{', '.join(unproved) or 'none'}"
        )
    lost = sum(
        size
        for fault in faults
        for files in (fault.get("lost") or {}).values()
        for path, size in files.items()
        if _holds_records(path)
    )
    if lost <= 0:
        error.append("the power cut must lose records that were not synced, none were lost")
    return error


def _holds_records(path: str) -> bool:
    """Tells whether the file belongs to the topic: the cluster's own metadata is synced before it counts."""
    *folders, name = path.split("/")
    return name.endswith(".log") and not any(folder.startswith("__") for folder in folders)


def _loss_allowed(verdict: Mapping[str, Any]) -> list[str]:
    """Run 2: acknowledged writes are lost, are found, and the contract allows it."""
    error = []
    if verdict["verdict"] != Verdict.PASS:
        error.append(f"the verdict must be pass (its contract allows the loss), it is {verdict['verdict']}")
    lost = _anomaly(verdict, "lost-write")
    if not lost.get("count"):
        error.append("acknowledged writes must be lost and found, none were found")
    elif lost.get("meaning") != "allowed":
        error.append(f"lost-write must be allowed by this contract, it is {lost.get('meaning')}")
    return error


def _canary_caught(verdict: Mapping[str, Any]) -> list[str]:
    """Run 3: the defect shows as a loss that the contract forbids."""
    error = []
    if verdict["verdict"] != Verdict.VIOLATION:
        error.append(f"a broker with a known defect must be a violation, the verdict is {verdict['verdict']}")
    elif not _anomaly(verdict, "lost-write").get("count"):
        error.append("the defect loses acknowledged writes, no lost-write was found")
    return error


def _anomaly(verdict: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    return next((each for each in verdict["anomalies"] if each["anomaly"] == name), {})


def _stricter(checked: Checked) -> str:
    """Judge run 2 by the contract it did not have; it is small, so this process does."""
    if not _anomaly(checked.judged.verdict, "lost-write").get("count"):
        return "not judged, nothing was lost"
    [again] = judge_with_progress([checked.judged.run_dir], contract=STRICTER, engine="local")
    checked.expect(
        again.word is Verdict.VIOLATION,
        f"under contract {STRICTER} the same run must be a violation, it is {again.word.value}",
    )
    return again.word.value
