"""A deployment runs these commands on a host, word for word; the remote of the test only listens."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from tests.systems.listening import Listening, Said, collected, in_trouble, starts_and_stops
from wrackline.fleets.netns.spec import NetnsSpec
from wrackline.systems.base import ClusterState, DeployError, PartitionState
from wrackline.systems.cluster_client import freshest
from wrackline.systems.wrackline import bundle
from wrackline.systems.wrackline.bundle import Archive, Bundle
from wrackline.systems.wrackline.spec import WracklineSpec
from wrackline.systems.wrackline.system import WracklineSystem
from wrackline.zookeeper.systems.wrackline.system import WracklineOnZooKeeper


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Listening:
    archives = tuple(Archive(name, f"{name}hash", tmp_path / f"{name}.tar.gz") for name in ("deps", "broker"))
    monkeypatch.setattr(bundle, "build", lambda *_: Bundle("3.11", archives))
    return Listening()


def system_on(fleet: Listening, tmp_path: Path, **options: object) -> WracklineSystem:
    usual = {"brokers": ("n1", "n2"), "controllers": ("c1",), "cluster_id": "abc"}
    return WracklineSystem(fleet, bundle_cache=tmp_path, **{**usual, **options})  # type: ignore[arg-type]


def test_install_asks_once_uploads_and_unpacks(fleet: Listening, tmp_path: Path) -> None:
    system_on(fleet, tmp_path).install()
    assert fleet.told("n1") == [
        "/usr/bin/python3 -c 'import sys; print('\"'\"'%d.%d'\"'\"' % sys.version_info[:2])' || echo none; "
        "ls -d /opt/wrackline/deps-depshash /opt/wrackline/broker-brokerhash 2>/dev/null; "
        "[ -x /opt/wrackline/node.sh ] && /opt/wrackline/node.sh pid | sed 's/^/pid /'; true",
        "cd /opt/wrackline && tar -xzf deps.tar.gz && rm deps.tar.gz && touch /opt/wrackline/deps-depshash "
        "&& "
        "tar -xzf broker.tar.gz && rm broker.tar.gz && touch /opt/wrackline/broker-brokerhash && "
        "mkdir -p /var/log/wrackline /run/wrackline /data/broker",
    ]
    assert {path for host, path in fleet.files if host == "n1"} == {
        "/opt/wrackline/deps.tar.gz",
        "/opt/wrackline/broker.tar.gz",
        "/opt/wrackline/node.sh",
        "/opt/wrackline/program",
        "/etc/wrackline/broker.toml",
        "/etc/wrackline/secret",
    }


def test_each_cluster_has_a_secret_of_its_own(fleet: Listening, tmp_path: Path) -> None:
    found = []
    for _ in range(2):
        system_on(fleet, tmp_path).install()
        found.append({fleet.files[host, "/etc/wrackline/secret"] for host in ("n1", "n2", "c1")})
    assert [len(secrets) for secrets in found] == [1, 1]
    assert not found[0] & found[1]


@pytest.mark.parametrize(("defects", "allow"), [((), ""), (("trunc_hw",), " --allow-defects")])
def test_what_the_script_starts(
    fleet: Listening, tmp_path: Path, defects: tuple[str, ...], allow: str
) -> None:
    system_on(fleet, tmp_path, defects=defects).install()
    assert (
        fleet.files["n1", "/opt/wrackline/program"]
        == (
            "exec env PYTHONPATH=/opt/wrackline/lib PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 "
            f"/usr/bin/python3 -m wrackline.broker --config /etc/wrackline/broker.toml{allow}\n"
        ).encode()
    )


def test_an_archive_that_the_host_has_is_not_sent_again(fleet: Listening, tmp_path: Path) -> None:
    fleet.answers["version_info"] = (0, "3.11\n/opt/wrackline/deps-depshash\n", "")
    system_on(fleet, tmp_path).install()
    assert ("n1", "/opt/wrackline/deps.tar.gz") not in fleet.files
    assert ("n1", "/opt/wrackline/broker.tar.gz") in fleet.files


@pytest.mark.parametrize("sees", [True, False])
def test_a_host_that_sees_what_is_unpacked_here_is_sent_no_archive(
    fleet: Listening, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sees: bool
) -> None:
    """A mount of the machine that is none of the host's may hide it."""
    fleet.hosts = tuple(replace(host, reads_here=host.name == "n1") for host in fleet.hosts)
    here = (f"{tmp_path}/the deps/lib", f"{tmp_path}/broker/lib")
    monkeypatch.setattr(bundle, "unpacked", lambda _bundle, _into: here)
    fleet.answers["version_info"] = (0, "\n".join(("3.11", *(here if sees else here[:1]), "")), "")
    system = system_on(fleet, tmp_path)
    system.install()
    assert (f"'{here[0]}' {here[1]}" in fleet.told("n1")[0]) is True
    sent = {host for host, path in fleet.files if path.endswith(".tar.gz")}
    assert sent == ({"n2", "c1"} if sees else {"n1", "n2", "c1"})
    lib = f"'{':'.join(here)}'" if sees else "/opt/wrackline/lib"
    for host, where in (("n1", lib), ("n2", "/opt/wrackline/lib")):
        program = fleet.files[host, "/opt/wrackline/program"]
        assert isinstance(program, bytes)
        assert f" PYTHONPATH={where} ".encode() in program
    system.effective_config(system.brokers[0])
    assert f"PYTHONPATH={lib} " in fleet.told("n1")[-1]


def test_each_role_is_given_the_settings_it_knows(fleet: Listening, tmp_path: Path) -> None:
    config = {
        "session_timeout_ms": 1500,
        "heartbeat_interval_ms": 200,
        "segment_bytes": 65536,
        "flush_mode": "on-roll",
        "unclean_leader_election": False,
        "topic_defaults": {"retention.ms": "-1"},
    }
    system = system_on(fleet, tmp_path, config=config, defects=("trunc_hw",))
    broker = tomllib.loads(system.config_for(system.brokers[1]))
    assert broker == {
        "node_id": 2,
        "role": "broker",
        "cluster_id": "abc",
        "host": "198.18.0.12",
        "listen": "198.18.0.12",
        "port": 9092,
        "replication_port": 9094,
        "secret_file": "/etc/wrackline/secret",
        "data_dir": "/data/broker",
        "controllers": ["101@198.18.0.21:9093"],
        "profile": "kip966",
        "defects": ["trunc_hw"],
        "trace_file": "/var/log/wrackline/trace.jsonl",
        "heartbeat_interval_ms": 200,
        "segment_bytes": 65536,
        "flush_mode": "on-roll",
    }
    controller = tomllib.loads(system.config_for(system.controllers[0]))
    assert (controller["role"], controller["node_id"], controller["port"]) == ("controller", 101, 9093)
    assert controller["topic_defaults"] == {"retention.ms": "-1"}
    assert controller["unclean_leader_election"] is False
    assert controller["session_timeout_ms"] == 1500
    assert "heartbeat_interval_ms" not in controller
    assert system.bootstrap() == "198.18.0.11:9092,198.18.0.12:9092"


def test_a_broker_stands_in_the_rack_of_its_host(fleet: Listening, tmp_path: Path) -> None:
    system = system_on(fleet, tmp_path, racks={"n1": "a"})
    first, second = (tomllib.loads(system.config_for(node)) for node in system.brokers)
    assert first["rack"] == "a"
    assert "rack" not in second


def test_a_rack_of_a_host_that_is_not_there_is_refused() -> None:
    fleet = NetnsSpec(brokers=3)
    spec = WracklineSpec(racks={"n1": "a", "n9": "b"})
    assert spec.refusal(fleet) == "system.racks: there is no host n9; there are n1, n2, n3, c1"
    assert WracklineSpec(racks={"n3": "a"}).refusal(fleet) is None


def test_starting_and_stopping_a_node_run_these_commands(fleet: Listening, tmp_path: Path) -> None:
    starts_and_stops(fleet, system_on(fleet, tmp_path, defects=("trunc_hw",)), start_s=10)


LOG = "INFO: starts\nOSError: [Errno 28] No space left on device"


@pytest.mark.parametrize(
    ("part", "said", "act", "message"),
    [
        ("version_info", (0, "none\n", ""), "install", "no such program; install Python 3.11 on the host"),
        (
            "version_info",
            (0, "3.9\n", ""),
            "install",
            "Python 3.9, the bundle is built for 3.11; give the path",
        ),
        (
            "version_info",
            (0, "3.11\npid 77\n", ""),
            "install",
            r"a node runs there \(pid 77\); stop it first",
        ),
        ("tar -xzf", (2, "", "tar: No space left on device"), "install", "exit code 2: .*; the disk is full"),
        ("node.sh start", (4, "", ""), "start", "port 9092 is taken by another process; end it .*ss -ltnp"),
        (
            "node.sh start",
            (3, LOG, ""),
            "start",
            r"the node died: OSError.*; the disk is full(.|\n)*\| INFO: starts",
        ),
        ("node.sh stop", (5, "busy", ""), "stop", "still runs after 30 s: busy; kill it"),
    ],
)
def test_trouble_names_host_command_and_way_out(
    fleet: Listening, tmp_path: Path, part: str, said: Said, act: str, message: str
) -> None:
    fleet.answers[part] = said
    in_trouble(system_on(fleet, tmp_path), act, message)


def test_every_hosts_trouble_is_told_at_once(fleet: Listening, tmp_path: Path) -> None:
    fleet.answers["version_info"] = (0, "3.9\n", "")
    with pytest.raises(DeployError) as trouble:
        system_on(fleet, tmp_path).install()
    assert [line.split(" ")[0] for line in str(trouble.value).splitlines()] == ["n1", "n2", "c1"]


def test_a_host_that_the_fleet_does_not_have_is_refused(fleet: Listening, tmp_path: Path) -> None:
    with pytest.raises(DeployError, match="no host n9: it has n1, n2, c1"):
        system_on(fleet, tmp_path, brokers=("n9",))
    with pytest.raises(DeployError, match="once in each list"):
        system_on(fleet, tmp_path, brokers=("n1", "n1"))


def test_a_host_named_twice_runs_a_broker_and_a_controller_in_one_process(
    fleet: Listening, tmp_path: Path
) -> None:
    config = {"min_insync_replicas": 2, "heartbeat_interval_ms": 200}
    system = system_on(fleet, tmp_path, controllers=("n2",), config=config)
    alone, both = (tomllib.loads(system.config_for(node)) for node in system.nodes)
    assert (alone["role"], both["role"]) == ("broker", "combined")
    assert (both["node_id"], both["controller_id"]) == (2, 101)
    assert alone["controllers"] == both["controllers"] == [f"101@{system.nodes[1].host.address}:9093"]
    assert "min_insync_replicas" not in alone
    assert both["min_insync_replicas"] == 2
    assert both["heartbeat_interval_ms"] == 200


def test_a_spare_is_a_broker_that_nobody_waits_for(fleet: Listening, tmp_path: Path) -> None:
    system = system_on(fleet, tmp_path, brokers=("n1",), spares=("n2",))
    [spare] = system.spares
    assert (spare.node_id, spare.host.name, spare.is_broker) == (2, "n2", True)
    assert spare in system.nodes
    assert spare not in system.brokers
    assert system.bootstrap() == f"{system.nodes[0].host.address}:9092"
    assert tomllib.loads(system.config_for(spare))["node_id"] == 2
    with pytest.raises(DeployError, match="once in each list"):
        system_on(fleet, tmp_path, brokers=("n1",), spares=("n1",))


@pytest.mark.parametrize(("start_s", "given"), [(10.0, 30), (40.0, 120)], ids=["namespaces", "machines"])
def test_beside_a_zookeeper_a_node_is_given_thrice_the_time(
    fleet: Listening, tmp_path: Path, start_s: float, given: int
) -> None:
    system = WracklineOnZooKeeper(
        fleet,
        brokers=("n1", "n2"),
        zookeepers=("c1",),
        cluster_id="abc",
        profile="zk08",
        bundle_cache=tmp_path,
        start_s=start_s,
    )
    [server] = system.zookeepers
    system.start(server)
    assert fleet.told("c1")[0].endswith(f"/node.sh start 2181 {given}")


def test_collecting_goes_on_when_a_host_is_silent(fleet: Listening, tmp_path: Path) -> None:
    collected(system_on(fleet, tmp_path), tmp_path / "nodes")


def state(
    leader: int, epoch: int, isr: tuple[int, ...], brokers: tuple[int, ...] = (1, 2, 3)
) -> ClusterState:
    return ClusterState(101, brokers, (PartitionState("log", 0, leader, epoch, (1, 2, 3), isr),))


def test_a_cut_off_broker_does_not_outvote_a_newer_epoch() -> None:
    stale = state(1, 4, (1, 2, 3))
    assert freshest([stale, stale, state(2, 5, (2, 3), (2, 3))]).partitions[0].leader == 2


def test_within_an_epoch_most_brokers_are_right() -> None:
    answers = [state(1, 4, (1, 2, 3)), state(1, 4, (1, 2), (1, 2)), state(1, 4, (1, 2), (1, 2))]
    merged = freshest(answers)
    assert (merged.partitions[0].isr, merged.brokers) == ((1, 2), (1, 2))
