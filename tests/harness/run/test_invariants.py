"""The traces in a run's directory are judged, and the verdict's section says what that rests on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.simulator.trace_check.simulated import Tracing, watched
from wrackline.checkers.verdict.verdict import NOTHING
from wrackline.harness.report.invariants import invariants_of as shown
from wrackline.harness.run import invariants
from wrackline.harness.run.clocks import Clocks
from wrackline.harness.run.invariants import bound, invariants_of, reasons
from wrackline.harness.run.runner_events import MISSING
from wrackline.history.model import RunInfo
from wrackline.simulator.eras.catalogue import STORIES
from wrackline.simulator.eras.story import tell
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.run.session import Run
from wrackline.simulator.world.nodes import ZOOKEEPER

INFO = RunInfo(
    "run", "run", 0, "", "wrackline", "log", "all", False, (), profile="kip966", nodes={"1": "n1", "2": "n2"}
)
START_NS = 5_000_000_000
AHEAD_NS = 3_000_000


@pytest.fixture(scope="module")
def broken() -> Tracing:
    """Of a run with a defect that breaks I14."""
    session, tracing = Run(Setup(seed=0, seconds=8.0, defects=("elr_not_cleared",))), Tracing()
    session.world.watchers.append(tracing)
    session.boot()
    session.main()
    assert session.found
    return tracing


@pytest.fixture
def run_dir(broken: Tracing, tmp_path: Path) -> Path:
    put_down(broken, tmp_path)
    return tmp_path


def put_down(tracing: Tracing, run_dir: Path) -> None:
    for node, lines in tracing.lines.items():
        folder = run_dir / "nodes" / f"n{node}"
        folder.mkdir(parents=True)
        name = "transactions.jsonl" if node == ZOOKEEPER else "trace.jsonl"
        (folder / name).write_bytes(b"".join(lines))
    Clocks(START_NS, {}).write(run_dir)


def test_profile_zk08_is_judged_with_the_transactions_of_its_zookeeper(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [story] = [one for one in STORIES if one.name == "restart-then-failover"]
    with watched(monkeypatch) as made:
        tell(story, "zk08")
    put_down(made.tracing, tmp_path)
    section = invariants_of(tmp_path, replace(INFO, profile="zk08", nodes={"1": "n1", "2": "n2"}))
    assert section is not None
    assert {one["id"] for one in section["broken"]} == {"I01", "I07"}
    assert section["broken"][0]["place"].startswith("nodes/n2/trace.jsonl:")
    assert section["unread"] == 0
    assert section["undecided"]["I02"].startswith("not of this profile: ")
    (tmp_path / "nodes" / f"n{ZOOKEEPER}" / "transactions.jsonl").unlink()
    section = invariants_of(tmp_path, replace(INFO, profile="zk08"))
    assert section is not None
    assert "its transactions were not collected" in section["why"]


def test_what_is_broken_is_told_with_its_place_on_the_runs_clock(run_dir: Path) -> None:
    section = invariants_of(run_dir, INFO)
    assert section is not None
    [first, *_] = section["broken"]
    assert first["id"] == "I14"
    file, _, number = first["place"].rpartition(":")
    line = (run_dir / file).read_text().splitlines()[int(number) - 1]
    assert f'"time_ns":{first["at_ns"] + START_NS},' in line
    assert reasons(section)[0].startswith(
        f"invariant I14 (ISR sanity) was broken at {first['at_ns'] / 1e9:.3f} s in t-0"
    )
    view = shown({"invariants": section})
    assert view is not None
    assert view.sentence.endswith("1 of them broken.")
    assert view.broken[0].place == first["place"]
    assert ("I15", "the traces have no lines for the epoch caches") in view.undecided


def test_a_node_that_is_no_broker_is_named_by_its_host(run_dir: Path) -> None:
    """Controllers and ZooKeeper have ids of their own, which say nothing to a reader."""
    section = invariants_of(run_dir, INFO)
    assert section is not None
    first = section["broken"][0]
    assert "101" not in INFO.nodes
    assert first["place"].startswith("nodes/n101/")
    assert first["node"] == "n101 (node 101)"


def test_a_hosts_clock_is_taken_into_account(run_dir: Path) -> None:
    before = invariants_of(run_dir, INFO)
    hosts = {folder.name: AHEAD_NS for folder in (run_dir / "nodes").iterdir()}
    Clocks(START_NS, hosts).write(run_dir)
    after = invariants_of(run_dir, INFO)
    assert before is not None
    assert after is not None
    assert before["broken"][0]["at_ns"] - after["broken"][0]["at_ns"] == AHEAD_NS


def test_of_too_many_lines_the_first_are_looked_at(run_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = invariants_of(run_dir, INFO)
    assert whole is not None
    monkeypatch.setattr(invariants, "MOST_LINES", 60)
    section = invariants_of(run_dir, INFO)
    assert section is not None
    assert section["lines"] <= 60 < whole["lines"]
    assert section["until_ns"] < whole["broken"][0]["at_ns"]
    assert section["broken"] == []
    view = shown({"invariants": section})
    assert view is not None
    assert "only steps before" in view.limits[0]


def test_without_traces_or_clocks_nothing_is_asked_and_the_reason_is_told(
    run_dir: Path, tmp_path: Path
) -> None:
    assert invariants_of(tmp_path / "nowhere", INFO) is None
    for file in run_dir.glob("nodes/*/trace.jsonl"):
        file.write_bytes(file.read_bytes().replace(b'"batches":', b'"former":').replace(b'"seq":', b'"was":'))
    section = invariants_of(run_dir, INFO)
    assert section is not None
    assert "make no sense" in section["why"]
    for file in run_dir.glob("nodes/*/trace.jsonl"):
        file.write_bytes(b'{"time_ns":1,"kind":"of an older version"}\n')
    section = invariants_of(run_dir, INFO)
    assert section is not None
    assert "another version" in section["why"]
    (run_dir / "clocks.json").unlink()
    section = invariants_of(run_dir, INFO)
    assert section is not None
    assert section["checked"] == []
    view = shown({"invariants": section})
    assert view is not None
    assert view.sentence.startswith("The invariants were not asked: nobody has read the hosts' clocks")
    assert reasons(section) == []
    assert shown({"verdict": "pass"}) is None


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "not noted"])
def test_a_trace_that_could_not_be_fetched_accuses_nobody(tmp_path: Path, noted: bool) -> None:
    """All of a good run's traces but one: I17 would be broken by what nobody can see."""
    session, tracing = Run(Setup(seed=1, seconds=8.0, controllers=3)), Tracing()
    session.world.watchers.append(tracing)
    for part in (session.boot, session.main, session.heal):
        part()
    put_down(tracing, tmp_path)
    (tmp_path / "nodes" / "n3" / "trace.jsonl").unlink()
    if noted:
        (tmp_path / "nodes" / "n3" / MISSING).write_text("the host did not answer\n")
    section = invariants_of(tmp_path, replace(INFO, nodes={"1": "n1", "2": "n2", "3": "n3"}))
    assert section is not None
    assert section["broken"] == []
    assert reasons(section) == []
    [said] = [line for line in section["blind"] if line.startswith("t-0: node 3: ")]
    assert ("the host did not answer" in said) == noted


@pytest.mark.parametrize("word", ["pass", "inconclusive", "infrastructure", "reproduced", "violation"])
def test_a_contract_with_the_invariants_forbids_what_breaks_them(run_dir: Path, word: str) -> None:
    section = invariants_of(run_dir, INFO)
    assert section is not None
    verdict = {"verdict": word, "exit_code": 9, "headline": "", "anomalies": [], "reasons": [NOTHING, "more"]}
    became = {**verdict, **bound(verdict, section)}
    assert {(one["anomaly"], one["meaning"]) for one in became["anomalies"]} == {("I14", "violation")}
    if word in ("pass", "inconclusive", "infrastructure"):
        assert (became["verdict"], became["exit_code"], became["reasons"]) == ("violation", 1, ["more"])
        assert became["headline"].startswith("invariant I14")
    else:
        assert (became["verdict"], became["exit_code"]) == (word, 9)
