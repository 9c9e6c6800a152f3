"""A deployment of Kafka runs these commands on a host, word for word; the remote of the test only listens."""

from __future__ import annotations

import tarfile
from io import BytesIO
from pathlib import Path

import orjson
import pytest

from tests.systems.listening import Listening, Said, collected, in_trouble, starts_and_stops
from wrackline.systems.base import About, DeployError, TopicSpec
from wrackline.systems.jvm.store import Store
from wrackline.systems.kafka.releases import NEWEST
from wrackline.systems.kafka.system import KafkaSystem

TOPIC = TopicSpec("log", 1, 1, {})


@pytest.fixture
def fleet() -> Listening:
    return Listening()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """With one version, of one jar that nobody could run and one file on a new disk."""
    store = Store(tmp_path / "kafka")
    jar = tmp_path / "a.jar"
    jar.write_text("a")
    folder = store.begin(NEWEST, {"a.jar": jar})
    (folder / "formatted").mkdir()
    (folder / "formatted" / "default.json").write_bytes(orjson.dumps({"log-0/x.checkpoint": "eA=="}))
    (folder / "settings.json").write_bytes(orjson.dumps({"broker": {}, "topic": {}}))
    store.finish(store.unfinished(folder, NEWEST, "a test", "java 17"))
    return store


def system_on(fleet: Listening, store: Store, **options: object) -> KafkaSystem:
    return KafkaSystem(
        fleet,
        version=NEWEST,
        brokers=("n1", "n2"),
        controllers=("c1",),
        cluster_id="A" * 22,
        store=store,
        **options,  # type: ignore[arg-type]
    )


def seen_by_hosts(fleet: Listening, store: Store) -> None:
    release = (store.root / NEWEST / "release.json").read_text()
    fleet.answers["release.json"] = (0, release, "")


def test_a_host_that_sees_the_release_is_sent_its_configuration_and_a_formatted_disk(
    fleet: Listening, store: Store
) -> None:
    seen_by_hosts(fleet, store)
    system_on(fleet, store).install()
    assert fleet.told("n1") == [
        "[ -x /opt/wrackline/node.sh ] && /opt/wrackline/node.sh pid | sed 's/^/pid /'; true",
        f"cat {store.root}/4.4.0/release.json 2>/dev/null; true",
        "mkdir -p /var/log/wrackline /run/wrackline /data/broker && sync -f /data/broker",
    ]
    assert {path for host, path in fleet.files if host == "n1"} == {
        "/opt/wrackline/node.sh",
        "/opt/wrackline/program",
        "/etc/wrackline/server.properties",
        "/etc/wrackline/log4j2.xml",
        "/etc/wrackline/log4j.properties",
        "/data/broker/log-0/x.checkpoint",
        "/data/broker/meta.properties",
    }
    assert fleet.files["n1", "/data/broker/log-0/x.checkpoint"] == b"x"
    meta = {
        host: content for (host, path), content in fleet.files.items() if path.endswith("meta.properties")
    }
    assert meta["n2"] == (
        b"version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\nnode.id=2\ndirectory.id=d3JhY2tsaW5lLTAwMDAwMg\n"
    )
    assert len(set(meta.values())) == 3, "no two nodes have the same folder"


def test_a_host_that_does_not_see_the_release_is_sent_it(fleet: Listening, store: Store) -> None:
    system_on(fleet, store).install()
    folder = f"{store.root}/4.4.0"
    assert fleet.told("n1")[2] == (
        f"rm -rf {folder} && mkdir -p {folder} && tar -xf {folder}.tar -C {folder} && rm {folder}.tar"
    )
    packed = fleet.files["n1", f"{folder}.tar"]
    assert isinstance(packed, bytes)
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        jar = archive.getmember("./libs/a.jar")
    written = (store.root / NEWEST / "libs" / "a.jar").stat().st_mtime
    assert int(jar.mtime) == int(written), "the archive of classes knows a jar by its time"


def test_what_the_script_starts(fleet: Listening, store: Store) -> None:
    seen_by_hosts(fleet, store)
    system_on(fleet, store, jvm_options=("-Xmx1g", "-Da=b c")).install()
    libs = f"{store.root}/4.4.0"
    assert (
        fleet.files["n1", "/opt/wrackline/program"]
        == (
            f"exec java -Xmx1g '-Da=b c' -XX:SharedArchiveFile={libs}/kafka.jsa -Xshare:auto "
            "-XX:-UsePerfData -Dlog4j2.configurationFile=/etc/wrackline/log4j2.xml "
            f"-Dlog4j.configuration=file:/etc/wrackline/log4j.properties -cp {libs}/libs/a.jar "
            "kafka.Kafka /etc/wrackline/server.properties\n"
        ).encode()
    )


def test_starting_and_stopping_a_node_run_these_commands(fleet: Listening, store: Store) -> None:
    starts_and_stops(fleet, system_on(fleet, store, start_s=25), start_s=25)


@pytest.mark.parametrize(
    ("part", "said", "act", "message"),
    [
        ("node.sh pid", (0, "pid 77\n", ""), "install", r"a node runs there \(pid 77\); stop it first"),
        ("sync -f", (1, "", "sync: No space left on device"), "install", "exit code 1: .*; the disk is full"),
        (
            "node.sh start",
            (3, "org.apache.kafka.common.config.ConfigException: Invalid value x", ""),
            "start",
            r"the node died: .*Invalid value x; mend system.config of the specification",
        ),
    ],
)
def test_trouble_names_host_command_and_way_out(
    fleet: Listening, store: Store, part: str, said: Said, act: str, message: str
) -> None:
    seen_by_hosts(fleet, store)
    fleet.answers[part] = said
    in_trouble(system_on(fleet, store), act, message)


def test_a_version_that_is_not_there_is_one_line(fleet: Listening, tmp_path: Path) -> None:
    with pytest.raises(
        DeployError, match=r"Kafka 4.4.0 is not installed on this machine: `wrackline get kafka 4.4.0`"
    ):
        system_on(fleet, Store(tmp_path)).install()


def test_what_the_harness_gives_is_refused(fleet: Listening, store: Store) -> None:
    config = {"node.id": 7, "log.dirs": "/elsewhere", "num.io.threads": 2}
    refusals = system_on(fleet, store, config=config).refusals(TOPIC)
    assert [(one.about, one.key) for one in refusals] == [
        (About.CONFIG, "node.id"),
        (About.CONFIG, "log.dirs"),
    ]


def test_collecting_goes_on_when_a_host_is_silent(fleet: Listening, store: Store, tmp_path: Path) -> None:
    collected(system_on(fleet, store), tmp_path / "nodes")
    assert len([*tmp_path.glob("nodes/*/effective.properties")]) == 3
