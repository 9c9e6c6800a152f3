"""``wrackline explain``: the explanation of a finding as text and as JSON."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.harness.report import synthetic_run
from tests.harness.report.synthetic_incidents import ALLOWED, INCIDENT, LOSS, add_incidents
from wrackline.checkers.explain.model import EXPLANATIONS_FILE
from wrackline.harness.cli.options import WrongInput
from wrackline.harness.cli.verdicts.explain import explain_command


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic_run.write_run(tmp_path_factory.mktemp("runs") / synthetic_run.TEST_ID)


def said(run_dir: Path, *wanted: str) -> str:
    done = CliRunner().invoke(
        explain_command, [str(run_dir), *wanted], standalone_mode=False, catch_exceptions=False
    )
    return str(done.output)


def test_the_first_finding_of_each_anomaly_has_its_operations_and_its_edges(run_dir: Path) -> None:
    text = said(run_dir)
    headings = [line.split(":")[0] for line in text.splitlines() if line and not line.startswith(" ")]
    assert headings == [
        "lost-write", "vanished-read", "lost-committed", "inconsistent-offset", "not-linearizable",
        "lost-on-replica", "replica-divergence", "phantom",
    ]  # fmt: skip
    lost = text.split("\nvanished-read")[0]
    assert "No order of these operations is possible:" in lost
    assert "1. in time: the send (1) had completed at" in lost
    assert "2. not seen: the final read (3) read log-1" in lost
    assert lost.count("3 before 1.") == 1
    assert "Faults near these operations: f3 power-cut" in lost
    assert "What each of them shows:" in text.split("\nreplica-divergence")[1]


def test_one_anomaly_or_one_finding_can_be_asked_for(run_dir: Path) -> None:
    found = json.loads(said(run_dir, "lost-write", "--json"))
    assert len(found) == 20
    assert {one["finding"]["anomaly"] for one in found} == {"lost-write"}
    assert [edge["kind"] for edge in found[0]["edges"]] == ["time", "unseen"]
    assert found[0]["edges"][1]["later"]["value"] == found[0]["finding"]["value"]
    text = said(run_dir, "vanished-read")
    anchor = text.rstrip().splitlines()[-1].strip()
    assert anchor.startswith("f-vanished-read-")
    assert said(run_dir, anchor).splitlines()[0].startswith("vanished-read: log-1, offset")
    assert said(run_dir, anchor).count("f-vanished-read-") == 1


@pytest.fixture(scope="module")
def with_incidents(run_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = Path(shutil.copytree(run_dir, tmp_path_factory.mktemp("incidents") / run_dir.name))
    add_incidents(made)
    return made


def test_findings_stand_below_the_incident_that_they_are_evidence_of(with_incidents: Path) -> None:
    text = said(with_incidents)
    heads = [line for line in text.splitlines() if line and not line.startswith(" ")]
    assert heads[0].startswith(f"violation, incident {LOSS}: {INCIDENT['sentence']}. n2 led log-1")
    assert heads[0].endswith(" and 1 stale-read (allowed).")
    assert heads[2:] == ["Of incidents that the verdict does not tell:"], "each anomaly is explained once"
    own = [line.strip() for line in text.split(heads[1])[0].splitlines()]
    assert [line.split(":")[0] for line in own if ": log-1, offset" in line and "Offset" not in line] == [
        "lost-write", "vanished-read", "inconsistent-offset", "stale-read (allowed by itself)",
    ]  # fmt: skip


def test_the_evidence_of_one_incident_can_be_asked_for(with_incidents: Path) -> None:
    text = said(with_incidents, ALLOWED)
    assert text.startswith(f"allowed, incident {ALLOWED}: ")
    assert text.count("stale-read: log-0, offset") == 2
    assert "lost-write" not in text
    rest = said(with_incidents, "lost-write").split("Of incidents that the verdict does not tell:")
    assert [part.count("  lost-write: log-1") for part in rest] == [20, 2]


SECTIONS = [
    "Versions", "Configuration", "Steps to reproduce", "Expected", "Actual", "What each node said",
    "The smallest set of operations that shows it", "How to repeat it",
]  # fmt: skip


def test_a_bug_report_is_markdown_with_all_that_a_maintainer_asks_for(with_incidents: Path) -> None:
    text = said(with_incidents, "--bug-report")
    assert text.startswith(f"# {INCIDENT['gone']['what']}\n")
    assert f"\n{INCIDENT['sentence']}.\n" in text
    assert [line.removeprefix("## ") for line in text.splitlines() if line.startswith("## ")] == SECTIONS
    parts = dict(part.split("\n", 1) for part in text.split("\n## ")[1:])
    steps = [line for line in parts["Steps to reproduce"].splitlines() if line[:1].isdigit()]
    assert [int(line.split(".")[0]) for line in steps] == list(range(1, len(steps) + 1))
    times = [float(found) for found in re.findall(r"^\d+\. At ([\d.]+) s: ", "\n".join(steps), re.MULTILINE)]
    assert times
    assert times == sorted(times)
    assert parts["What each node said"].count("nodes/") == len(INCIDENT["lines"])
    assert parts[SECTIONS[-2]].count("\n| ") > 2
    assert "- topic `log`: 3 partitions, " in parts["Configuration"]
    again = re.findall(r"```yaml\n(.*)```", parts["How to repeat it"], re.DOTALL)
    assert again == [(with_incidents / "spec.yaml").read_text()]
    assert "wrackline run spec.yaml --seed " in parts["How to repeat it"]
    assert "Not on record." not in text
    with pytest.raises(WrongInput, match="has no incident i-none; it has i-"):
        said(with_incidents, "i-none", "--bug-report")


def test_the_sample_makes_a_bug_report_and_stays_as_it_is() -> None:
    sample = Path(__file__).parents[4] / "results" / "sample"
    before = sorted(sample.iterdir())
    text = said(sample, "--bug-report")
    assert "- wrackline kip966\n" in text
    assert "- with the defects trunc_hw, on purpose\n" in text
    assert "nodes/n3/trace.jsonl.zst:484: " in text
    assert sorted(sample.iterdir()) == before


def test_a_finding_that_is_not_there_is_one_line(run_dir: Path) -> None:
    with pytest.raises(WrongInput, match=r"has no finding corrupt; it has lost-write, vanished-read, "):
        said(run_dir, "corrupt")


def test_a_run_of_an_older_judge_is_explained_first(run_dir: Path) -> None:
    (run_dir / EXPLANATIONS_FILE).unlink()
    assert said(run_dir).startswith("lost-write: log-1, offset")
    assert (run_dir / EXPLANATIONS_FILE).exists()


def test_a_run_that_was_not_judged_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_bytes(synthetic_run.INFO.to_json())
    with pytest.raises(WrongInput, match="was not judged yet"):
        said(tmp_path)
