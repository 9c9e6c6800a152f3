"""Faults of a recorded run come again in virtual time, and a simulated run's on real hosts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from wrackline.harness.run.replay import replay_of
from wrackline.harness.specification.spec import SpecError, parse
from wrackline.history.faults import Happened
from wrackline.simulator.cli import simulate
from wrackline.simulator.faults.replayed import replayed
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.output.export import write_run
from wrackline.simulator.run import run
from wrackline.simulator.world.world import FIRST_CONTROLLER

C1 = FIRST_CONTROLLER


def kinds(*faults: Happened) -> list[tuple[str, tuple[int, ...]]]:
    return [(one.kind, one.on) for one in replayed(faults, brokers=3, controllers=1)[0]]


def partition(*targets: str, **how: object) -> Happened:
    usual = {"shape": "isolate", "controllers": True, "direction": "both"}
    return Happened("f1", "partition", targets, 1.0, 2.0, usual | how)


def test_a_partition_cuts_the_same_ways() -> None:
    assert kinds(partition("n2")) == [("cut", (2, 1, 3, C1))]
    assert kinds(partition("n2", controllers=False)) == [("cut", (2, 1, 3))]
    assert kinds(partition("n1", "n2", shape="halves")) == [("cut", (1, 3, C1)), ("cut", (2, 3, C1))]
    assert kinds(partition("n1", "n3", shape="link", direction="in")) == [("cut-one-way", (3, 1))]


def test_messages_are_held_of_the_one_who_asks() -> None:
    def held(api: str, what: str, peers: list[str]) -> Happened:
        how = {"apis": [api], "what": what, "do": "hold", "peers": peers, "delay_s": 0.0, "times": 0}
        return Happened("f1", "messages", ("n1", "n3"), 1.0, 1.0, how)

    assert kinds(held("Fetch", "answer", ["n2"])) == [("hold-fetch-response", (2,))]
    assert kinds(held("Produce", "answer", ["client"])) == [
        ("hold-produce-response", (1,)),
        ("hold-produce-response", (3,)),
    ]
    assert kinds(held("Fetch", "answer", ["broker"])) == []


def test_what_the_world_lacks_is_left_out_and_said() -> None:
    faults = [partition("n1", shape="clients"), Happened("f2", "kill", ("n1", "n3"), 4.0, 1.0)]
    made, left_out = replayed(faults, brokers=3, controllers=1)
    assert [(one.kind, one.on, one.at_ms, one.for_ms) for one in made] == [
        ("kill", (1,), 4000.0, 1000.0),
        ("kill", (3,), 4000.0, 1000.0),
    ]
    assert left_out == ["f1 partition at 1 s: there is no such fault in virtual time"]


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated")
    setup = Setup(seed=3, seconds=15.0, kinds=("kill", "power", "isolate", "cut-one-way", "clean"), min_isr=2)
    result = run(setup)
    assert result.violation is None
    assert len(result.faults) > 4
    write_run(setup, result.events, folder)
    return folder


def test_the_same_faults_happen_again_in_virtual_time(simulated: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    done = CliRunner().invoke(simulate, ["--replay", str(simulated), "--history", str(again)])
    assert done.exit_code == 0, done.output
    first, second = (_nemesis(folder) for folder in (simulated, again))
    assert {one["targets"][0] for one in first} == {one["targets"][0] for one in second}
    assert json.loads((again / "setup.json").read_text())["replay"] == str(simulated)
    assert f"--replay {simulated}" in Setup(replay=str(simulated)).command()


def _nemesis(folder: Path) -> list[dict[str, list[str]]]:
    from wrackline.history.faults import happened

    return [{"targets": list(one.targets)} for one in happened(folder)]


def test_a_simulated_run_becomes_a_specification_for_real_hosts(simulated: Path) -> None:
    made = replay_of(simulated, stretch=1.5)
    spec = parse(made.text, "replay.yaml")
    assert spec.topic.min_insync_replicas == 2
    assert spec.nemesis.schedule
    assert {one.inject.fault for one in spec.nemesis.schedule} <= {
        "kill",
        "power-cut",
        "partition",
        "restart",
    }
    assert max(one.at_s + one.duration_s for one in spec.nemesis.schedule) < spec.workload.duration_s


def test_what_is_no_run_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="no history here"):
        replay_of(tmp_path)
    done = CliRunner().invoke(simulate, ["--replay", str(tmp_path)])
    assert done.exit_code == 2
    assert "no history here" in done.output
