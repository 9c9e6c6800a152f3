"""A run uses an Apache Kafka that lets clients in by TLS and SASL only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import yaml

from tests.harness.machine_load import run_despite_load
from tests.systems.external.secured import PASSWORD, STRANGER, Secured, secured
from wrackline.fleets.none.fleet import NoFleet
from wrackline.harness.specification.access import access_of
from wrackline.harness.specification.check import load_checked
from wrackline.plugins.registry import Group, names
from wrackline.systems.base import DeployError, TopicSpec
from wrackline.systems.external.system import ExternalSystem

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    with secured(tmp_path_factory.mktemp("secured")) as made:
        yield made


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_the_harness_is_let_in_by_its_password_alone(
    theirs: Secured, mechanism: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_PASSWORD", PASSWORD)
    theirs.reach(mechanism)
    monkeypatch.setenv("THEIR_PASSWORD", "another-one")
    with pytest.raises(DeployError) as refused:
        theirs.reach(mechanism)
    said = str(refused.value)
    assert said.startswith(
        f"the cluster does not let us in: {theirs.address} refused {mechanism} of 'anna': "
    )
    assert "\n" not in said
    assert "another-one" not in said


def test_a_certificate_of_somebody_else_is_not_believed(
    theirs: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_PASSWORD", PASSWORD)
    with pytest.raises(DeployError, match=r"has a certificate that is not believed: .*ssl\.ca_location"):
        theirs.reach(ca="other.pem")


def test_plain_text_at_a_port_with_tls_is_reported_as_such(theirs: Secured) -> None:
    with pytest.raises(DeployError, match=r"speaks TLS, and the security protocol is PLAINTEXT: use SSL"):
        ExternalSystem(NoFleet("none"), bootstrap=[theirs.address]).install()


def test_a_principal_without_rights_is_told_which_it_needs(
    theirs: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing was made, so nothing is left to be removed."""
    monkeypatch.setenv("THEIR_PASSWORD", PASSWORD)
    system = theirs.system("PLAIN", user=STRANGER)
    system.install()
    with pytest.raises(DeployError, match=r"topic_authorization_failed.*give it the ACLs Create, Delete"):
        system.create_topic(TopicSpec("log", 1, 1, {}))
    assert system.remove_topics() == ""
    system.close()


@pytest.mark.parametrize(
    ("workload", "client"),
    [
        *((name, {}) for name in names(Group.WORKLOADS)),
        *((name, {"library": "java"}) for name in ("log", "txn", "group")),
    ],
)
def test_the_rights_that_a_plan_shows_are_enough_and_nothing_is_left(
    theirs: Secured, tmp_path: Path, workload: str, client: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_PASSWORD", PASSWORD)
    file, results = tmp_path / "spec.yaml", tmp_path / "results"
    settings = {
        "name": "rights",
        "system": {
            "kind": "external",
            "bootstrap": [theirs.address],
            "security": theirs.security("PLAIN", user=STRANGER),
            "waits": {"warm_s": 90, "recovered_s": 1},
        },
        "topic": {"replication_factor": 1, "min_insync_replicas": 1},
        "workload": {"name": workload, "duration_s": 6, "rate": 20, "client": client},
        "contract": {"thresholds": {"left_out": 1}},
    }
    file.write_text(yaml.safe_dump(settings))
    theirs.grant(access_of(load_checked(file)))

    ended, made = run_despite_load(file, results)
    verdict = orjson.loads((made / "verdict.json").read_bytes())
    assert (ended, verdict["verdict"]) == (0, "pass"), verdict["reasons"]
    assert theirs.left() == (set(), set())


def test_a_run_passes_and_tells_no_secret(
    theirs: Secured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """The only broker is killed and started again; nothing that the run leaves has the password."""
    monkeypatch.setenv("THEIR_PASSWORD", PASSWORD)
    file, results = tmp_path / "spec.yaml", tmp_path / "results"
    system = {
        "kind": "external",
        "bootstrap": [theirs.address],
        "security": theirs.security(),
        "commands": theirs.commands(),
        "waits": {"start_s": 120, "warm_s": 60, "steady_s": 10},
    }
    kill = {"at_s": 3, "duration_s": 3, "fault": "kill", "target": "leader(log-0)"}
    file.write_text(
        yaml.safe_dump(
            {
                "name": "secured",
                "system": system,
                "topic": {"replication_factor": 1, "min_insync_replicas": 1},
                "workload": {"duration_s": 15, "rate": 20, "senders": 3, "in_flight": 20},
                "nemesis": {"schedule": [kill]},
                "contract": {"thresholds": {"left_out": 1}},
            }
        )
    )

    ended, made = run_despite_load(file, results)
    verdict = orjson.loads((made / "verdict.json").read_bytes())
    assert (ended, verdict["verdict"]) == (0, "pass"), verdict["reasons"]
    assert verdict["faults"][0]["proved"]
    assert "log.dirs" in (made / "nodes" / "n1" / "effective-config.txt").read_text()
    told = capfd.readouterr()
    assert PASSWORD not in told.out + told.err
    holders = [path for path in made.rglob("*") if path.is_file() and PASSWORD.encode() in path.read_bytes()]
    assert holders == []
