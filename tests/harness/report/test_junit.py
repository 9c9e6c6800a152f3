"""The JUnit file has what Jenkins and GitLab need, from every kind of verdict."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.harness.report import synthetic_run
from tests.harness.report.synthetic_incidents import INCIDENT, STALE
from tests.harness.report.synthetic_run import edited
from wrackline.harness.report import write_report
from wrackline.harness.report.junit import MADE, junit


def case(root: ElementTree.Element, name: str) -> ElementTree.Element:
    (found,) = [element for element in root.iter("testcase") if element.get("name") == name]
    return found


@pytest.fixture(scope="module")
def incidents(with_incidents: Path, tmp_path_factory: pytest.TempPathFactory) -> ElementTree.Element:
    """JUnit of the run with incidents."""
    return ElementTree.parse(junit([with_incidents], tmp_path_factory.mktemp("junit") / "a.xml")).getroot()


def test_one_case_a_checker_and_a_condition_with_counts_that_add_up(whole_run: Path) -> None:
    root = ElementTree.parse(whole_run / "junit.xml").getroot()
    assert root.tag == "testsuites"
    (suite,) = root
    assert suite.get("name") == synthetic_run.INFO.name
    assert {one.get("name"): one.get("value") for one in suite.iter("property")}[
        "run"
    ] == synthetic_run.TEST_ID
    assert suite.get("timestamp") == "2026-03-11T10:15:02"
    cases = suite.findall("testcase")
    verdict = json.loads((whole_run / "verdict.json").read_text())
    assert len(cases) == len(verdict["anomalies"]) + len(verdict["conditions"]) + 1
    assert all(c.get("name") and c.get("classname") and c.get("time") is not None for c in cases)
    spent = f"{58 + verdict['engine']['seconds']:.3f}"  # 58 s for the run, the rest for the analysis
    assert case(root, "made and judged").get("time") == root.get("time") == suite.get("time") == spent
    for holder in (root, suite):
        assert {k: holder.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
            "tests": "95", "failures": "15", "errors": "0", "skipped": "2",
        }  # fmt: skip


def named(path: Path) -> list[tuple[str | None, str | None]]:
    return [
        (one.get("classname"), one.get("name")) for one in ElementTree.parse(path).getroot().iter("testcase")
    ]


def test_cases_have_the_same_names_in_every_run_of_a_specification(whole_run: Path, own_run: Path) -> None:
    """A build server compares a run with the one before by them."""
    with edited(own_run, "run.json") as info:
        info |= {"test_id": "20270101T000000Z-power-cut-ffff", "started_at": "2027-01-01T00:00:00Z"}
    later = own_run.rename(own_run.with_name(info["test_id"]))
    first, second = named(junit([whole_run], later / "a.xml")), named(junit([later], later / "b.xml"))
    assert first == second
    assert first
    assert not [name for name in first if "2026" in str(name)]
    both = named(junit([whole_run, later], later / "c.xml"))
    assert len(set(both)) == len(both) == 2 * len(first)


def test_a_violation_fails_with_its_evidence(whole_run: Path) -> None:
    root = ElementTree.parse(whole_run / "junit.xml").getroot()
    failure = case(root, "lost-write").find("failure")
    assert failure is not None
    assert failure.get("type") == "violation"
    assert "was acknowledged at offset" in (failure.text or "")
    assert "37 more in log-1" in (failure.text or "")
    assert case(root, "duplicate").find("skipped") is not None
    assert len(case(root, "corrupt")) == 0
    broken = case(root, "every fault proved").find("failure")
    assert broken is not None
    assert broken.text == "not proved: f2 (kill of n3): pid 4121 was still running 2 s after SIGKILL"


def test_an_incident_is_one_failure_and_its_anomalies_are_its_text(incidents: ElementTree.Element) -> None:
    name = "lost-write, vanished-read, inconsistent-offset in log-1"
    failure = case(incidents, name).find("failure")
    assert failure is not None
    assert failure.get("message") == INCIDENT["sentence"]
    text = failure.text or ""
    assert "n3 cut its log back to offset 0." in text
    assert "fault f1: " in text
    assert "40 × lost-write, violation" in text
    assert text.count("was acknowledged at offset") == 3
    assert f"1 × stale-read, allowed by itself\n  {STALE}" in text
    assert "nodes/n3/broker.log:7: Truncating to 0" in text
    assert case(incidents, "replica-divergence in log-2").find("failure") is not None
    more = case(incidents, "further incidents").find("failure")
    assert more is not None
    assert "19 more" in str(more.get("message"))


def test_incidents_of_a_run_that_must_break_its_contract_are_no_failures(
    with_incidents: Path, tmp_path: Path
) -> None:
    path = junit([with_incidents], tmp_path / "junit.xml", good={with_incidents: True})
    root = ElementTree.parse(path).getroot()
    incidents = [one for one in root.iter("testcase") if str(one.get("classname")).endswith(".incidents")]
    assert len(incidents) == 3
    for one in incidents:
        assert one.find("failure") is None
        assert str(one.findtext("system-out")).startswith("as expected: ")


def test_a_pass_of_a_run_that_must_break_its_contract_is_a_failure(own_run: Path) -> None:
    with edited(own_run) as verdict:
        verdict["verdict"] = "pass"
    for good, fails in ((True, False), (False, True), (None, False)):
        root = ElementTree.parse(junit([own_run], own_run / "junit.xml", good={own_run: good})).getroot()
        assert (case(root, MADE).find("failure") is not None) is fails


def test_evidence_of_an_incident_is_not_told_again_with_its_anomaly(incidents: ElementTree.Element) -> None:
    name = "lost-write, vanished-read, inconsistent-offset in log-1"
    assert case(incidents, "lost-write").find("failure") is None, "the incident is the failure"
    lost = case(incidents, "lost-write").findtext("system-out") or ""
    assert f"40 of them are evidence of the incident {name}" in lost
    assert lost.count("was acknowledged at offset") == 2, "of the incident that is not told"
    stale = case(incidents, "stale-read").findtext("system-out") or ""
    assert f"1 of them is evidence of the incident {name}" in stale
    assert stale.count(STALE) == 2, "of the incident that is allowed"


def test_incidents_that_would_be_called_the_same_have_numbers(own_run: Path) -> None:
    with edited(own_run) as verdict:
        verdict |= {"incidents": [INCIDENT, INCIDENT], "incident_counts": {"violation": 2}}
    root = ElementTree.parse(junit([own_run], own_run / "junit.xml")).getroot()
    assert (
        case(root, "lost-write, vanished-read, inconsistent-offset in log-1 (2)").find("failure") is not None
    )


def test_an_expected_anomaly_passes_when_found_and_fails_when_not(own_run: Path) -> None:
    anomalies = [
        {"anomaly": "lost-write", "meaning": "expected", "count": 42, "why": "defect truncate_to_hw"},
        {"anomaly": "phantom", "meaning": "expected", "count": 0, "why": "defect"},
        {"anomaly": "stale-read", "meaning": "allowed", "count": 0, "why": ""},
    ]
    with edited(own_run) as verdict:
        verdict["anomalies"] = anomalies
    write_report(own_run)
    root = ElementTree.parse(own_run / "junit.xml").getroot()
    assert case(root, "lost-write").find("failure") is None
    assert "was acknowledged at offset" in (case(root, "lost-write").findtext("system-out") or "")
    assert case(root, "phantom").find("failure") is not None
    assert len(case(root, "stale-read")) == 0


def test_a_run_that_was_not_judged_is_an_error(own_run: Path) -> None:
    (own_run / "verdict.json").unlink()
    junit([own_run], own_run / "junit.xml")
    root = ElementTree.parse(own_run / "junit.xml").getroot()
    assert root.get("errors") == "1"
    assert case(root, "made and judged").find("error") is not None


def test_several_runs_go_into_one_valid_file_whatever_their_text(
    own_run: Path, whole_run: Path, tmp_path: Path
) -> None:
    broken = {"verdict": "infrastructure", "headline": "\x00\x1b]]> <&", "reasons": ["\ufffe\x0b"]}
    with edited(own_run) as verdict:
        verdict |= broken | {"anomalies": [], "conditions": []}
    path = junit([whole_run, own_run], tmp_path / "all.xml")
    root = ElementTree.parse(path).getroot()
    assert [suite.get("errors") for suite in root] == ["0", "1"]
    assert root.get("tests") == "96"
