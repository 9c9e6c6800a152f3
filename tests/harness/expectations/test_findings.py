"""Each suite of findings is a pair with a known outcome, and one of them runs against Apache Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.harness.expectations.playing import LOST, judged, made_on_hosts, made_on_paper
from wrackline.checkers.findings import Verdict
from wrackline.harness.cli.runs.known import findings_command
from wrackline.harness.expectations import runs as known
from wrackline.harness.expectations import tables
from wrackline.harness.expectations.cases import FIRST, Case, catalogue, eras, findings
from wrackline.harness.run.judge import Judged
from wrackline.harness.specification.spec import load
from wrackline.harness.specification.suites import suites_dir
from wrackline.systems.kafka.spec import KafkaSpec

FINDINGS = catalogue()["findings"]
SUITES = Path(__file__).parents[3] / "suites" / "findings"


@pytest.fixture(scope="module")
def all_of_them() -> list[Case]:
    return findings()


def test_every_suite_is_a_finding_and_has_its_control() -> None:
    pairs = {name for one in FINDINGS for name in (one, f"{one}-control")}
    assert {path.stem for path in SUITES.glob("*.yaml")} == pairs


def test_a_control_differs_in_one_thing_and_says_whose_it_is(all_of_them: list[Case]) -> None:
    for each in all_of_them:
        assert len(each.changed) == 1, each.changed
        assert each.control is not None
        assert each.main.spec.name == f"finding-{each.name}"
        assert each.control.spec.name == f"{each.main.spec.name}-control"
        opening = (SUITES / f"{each.name}-control.yaml").read_text()
        assert opening.startswith(f"# The control of {each.name}: ")


def test_every_finding_is_of_apache_kafka_and_is_judged_like_any_other_run(
    all_of_them: list[Case],
) -> None:
    for each in all_of_them:
        for arm in each.arms:
            assert isinstance(arm.spec.system, KafkaSpec)
            assert arm.spec.contract.expected == ()
        assert each.main.expectation.verdict in (Verdict.VIOLATION, Verdict.PASS)
        assert each.main.expectation.shows


def test_the_list_says_what_there_is_and_how_long_it_takes() -> None:
    told = CliRunner().invoke(findings_command, ["--list"], standalone_mode=False)
    rows = told.output.splitlines()
    assert [row.split()[0] for row in rows[1:]] == list(FINDINGS)
    assert "topic.configs.flush.messages: unset -> 1" in next(row for row in rows if row.startswith("b59"))
    assert all(f"{each['run_s']} s" in row for each, row in zip(FINDINGS.values(), rows[1:], strict=True))


def test_versions_are_prepared_first_and_the_table_has_the_nodes_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def judge(run: Path) -> Judged:
        if run.name.endswith("-control"):
            return judged(run, "pass")
        line = {"file": "nodes/c1/broker.log", "number": 600, "text": "UNCLEAN"}
        return judged(run, "violation", LOST, incidents=[{"lines": [line]}])

    prepared: list[str] = []
    monkeypatch.setattr(KafkaSpec, "prepare", lambda spec, _: prepared.append(spec.version))
    made = made_on_paper(monkeypatch, judge)
    [case] = findings(["b10"])
    known.play([case], tmp_path, runs=2)
    assert prepared == ["3.9.2", "4.4.0"]
    assert [spec.name for spec in made] == ["finding-b10", "finding-b10-control"] * 2
    tables.show_cases([case])
    told = capsys.readouterr().out
    assert "b10   3.9.2   violation  2 of 2  2 of 2" in told
    assert "640 lost-write of 900; 640 lost-write of 900" in told
    assert "3-finding-b10/nodes/c1/broker.log:600: UNCLEAN" in told
    assert tables.case_row(case)["control_differs_in"] == ["system.version: 3.9.2 -> 4.4.0"]


@pytest.mark.fleet
@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.nightly
def test_the_last_known_leader_loses_what_was_acknowledged_and_a_synced_log_does_not(tmp_path: Path) -> None:
    [row] = made_on_hosts(tmp_path, "findings", "b59")
    assert (row["shown"], row["runs"], row["clean"], row["controls"]) == (1, 1, 1, 1)
    [made, _] = row["made"]
    [unclean] = [words for words in made["node_words"] if "UNCLEAN partition change for log-0" in words]
    assert "lastKnownElr" in unclean


@pytest.mark.parametrize("folder", ["findings", "stories", "eras"])
def test_what_must_be_a_violation_says_so_in_its_specification(folder: str) -> None:
    """Whoever looks at many runs goes by that alone."""
    known = catalogue()[folder]
    said = {name: load(suites_dir() / folder / f"{name}.yaml").contract.verdict for name in known}
    assert said == {
        name: "violation" if one["verdict"] == Verdict.VIOLATION else None for name, one in known.items()
    }
    for control in (suites_dir() / folder).glob("*-control.yaml"):
        assert load(control).contract.verdict is None
    assert load(suites_dir() / "demo-canary.yaml").contract.verdict == "violation"


def test_an_era_that_must_pass_expects_no_violation() -> None:
    for case in eras(checked=False):
        must = case.version == FIRST and case.main.expectation.verdict is Verdict.VIOLATION
        assert case.main.spec.contract.verdict == ("violation" if must else None)
