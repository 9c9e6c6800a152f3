"""Faults over the protocol are carried out on a cluster that runs already: each that `validate` accepts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.nemesis.doubles import Recorded
from tests.nemesis.sabotage.trials import TRIALS
from tests.systems.external.running import Running, running
from wrackline.fleets.none.fleet import NoFleet
from wrackline.harness.specification.spec import Spec
from wrackline.nemesis.runner import Nemesis
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import load
from wrackline.systems.base import TopicSpec
from wrackline.systems.external.system import ExternalSystem

PAGE = Path(__file__).parents[3] / "docs/external.md"
SPEC = Spec.model_validate({"name": "theirs", "system": {"kind": "external", "bootstrap": ["127.0.0.1:1"]}})


def accepted(settings: dict[str, Any]) -> bool:
    """Whether a specification without commands may have this fault."""
    [fault] = load({"schedule": [{"at_s": 0, "duration_s": 1, **settings}]}).schedule
    return SPEC.cannot(fault.inject) is None


ACCEPTED = {trial.fault: dict(trial.settings) for trial in TRIALS.values() if accepted(dict(trial.settings))}


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ExternalSystem]:
    with running(tmp_path_factory.mktemp("theirs")) as made:
        yield from _system(made)


def _system(theirs: Running) -> Iterator[ExternalSystem]:
    system = ExternalSystem(NoFleet("none"), bootstrap=theirs.bootstrap)
    system.install()
    system.create_topic(TopicSpec("log", 3, 2, {"min.insync.replicas": "2"}))
    yield system
    system.remove_topics()
    system.close()


def test_the_page_names_what_is_accepted() -> None:
    [row] = [line for line in PAGE.read_text().splitlines() if "| none: over the protocol |" in line]
    assert set(row.split("|")[1].replace("`", "").replace(",", " ").split()) == set(ACCEPTED)


@pytest.mark.parametrize("fault", sorted(ACCEPTED))
def test_a_fault_over_the_protocol_is_proved(theirs: ExternalSystem, fault: str) -> None:
    scheduled = {"at_s": 0.0, "duration_s": 2.0, "target": "leader(log-0)", **ACCEPTED[fault]}
    if fault in ("change-config", "recreate-topic", "elect-preferred"):
        del scheduled["target"]
    if fault == "elect-preferred":  # something must change by it
        [first] = [one for one in theirs.describe().partitions if one.partition == 0]
        theirs.reassign({("log", 0): (*first.replicas[1:], first.replicas[0])})
    chosen = plan(load({"schedule": [scheduled]}), 1, 20.0)
    recorded = Recorded()
    nemesis = Nemesis(chosen, NoFleet("none"), theirs, recorded, topics=("log",))
    nemesis.start()
    recorded.wait_for(lambda: "ended" in recorded.phases("f1"), timeout_s=60)
    assert nemesis.stop_and_heal() == []
    recorded.assert_proved("f1")
