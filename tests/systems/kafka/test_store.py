"""The folder of installed versions has each one whole or not at all, serves one process at a time, and keeps
checksums."""

from __future__ import annotations

import hashlib
import io
import tarfile
import threading
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner

from wrackline.harness.cli.machine.kafka import kafka_command
from wrackline.systems.base import About, DeployError, Refusal
from wrackline.systems.jvm.store import VARIABLE, Release, Store
from wrackline.systems.kafka.install import install, version_of
from wrackline.systems.kafka.settings import refused

UNREACHABLE = (
    "[ERROR] Failed to execute goal: Could not resolve dependencies: Failed to collect dependencies at "
    "org.apache.kafka:kafka_2.13:jar:4.4.0: Could not transfer artifact "
    "org.apache.kafka:kafka_2.13:pom:4.4.0 from/to central (https://repo.maven.apache.org/maven2): "
    "Unknown host repo.maven.apache.org -> [Help 1]"
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Below pytest's own folder, which hosts would not see: nobody here has any."""
    monkeypatch.setattr("wrackline.systems.jvm.store._INVISIBLE", ())
    monkeypatch.setenv(VARIABLE, str(tmp_path / "kafka"))
    return Store()


def installed(store: Store, version: str = "4.4.0") -> Release:
    """A version with two jars that nobody could run."""
    given = {}
    store.root.mkdir(parents=True, exist_ok=True)
    for name in ("b.jar", "a.jar"):
        given[name] = store.root.parent / name
        given[name].write_text(name)
    release = store.unfinished(store.begin(version, given), version, "a test", "java 17")
    known = {
        "broker": {"num.io.threads": "int", "delete.topic.enable": "boolean"},
        "topic": {"flush.ms": "long"},
    }
    (release.folder / "settings.json").write_bytes(orjson.dumps(known))
    store.finish(release)
    return release


def test_a_version_is_found_when_it_is_whole(store: Store) -> None:
    release = installed(store, "3.9.2")
    installed(store, "4.10.0")
    assert store.find("3.9.2") == release
    assert [one.version for one in store.releases()] == ["3.9.2", "4.10.0"]
    assert [jar.name for jar in release.jars] == ["a.jar", "b.jar"], "the class path has an order"
    (release.folder / "release.json").unlink()
    assert store.find("3.9.2") is None
    assert install(store, "4.10.0").version == "4.10.0", "nothing is fetched for what is there"


def test_a_jar_that_was_changed_is_noticed(store: Store) -> None:
    release = installed(store)
    release.verify()
    (release.folder / "libs" / "b.jar").write_text("something else")
    with pytest.raises(
        DeployError, match=r"libs/b.jar is not what was installed: `wrackline get kafka --remove 4.4.0`"
    ):
        release.verify()


def test_two_installations_of_one_version_wait_for_each_other(store: Store) -> None:
    """The second finds what the first has made, and makes nothing."""
    entered, found = threading.Event(), []

    def second() -> None:
        entered.set()
        found.append(install(store, "4.4.0"))

    with store.locked("4.4.0"):
        thread = threading.Thread(target=second)
        thread.start()
        assert entered.wait(10)
        made = installed(store)
    thread.join(20)
    assert found == [made]


def maven(folder: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A Maven that does what the script says."""
    program = folder / "bin" / "mvn"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    monkeypatch.setattr("wrackline.systems.kafka.install.java_version", lambda: "java 17")


def test_without_a_repository_there_is_one_line_and_nothing_half_made(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    maven(tmp_path, f"echo '{UNREACHABLE}'; exit 1", monkeypatch)
    with pytest.raises(DeployError) as wrong:
        install(store, "4.4.0")
    assert str(wrong.value).startswith(
        "Kafka 4.4.0 cannot be installed: Maven could not get org.apache.kafka:kafka_2.13:pom:4.4.0 from "
        "central (https://repo.maven.apache.org/maven2): Unknown host repo.maven.apache.org; check the "
        "network, name a mirror (--repository), or give the release itself: wrackline get kafka "
        "kafka_2.13-4.4.0.tgz (log: "
    )
    assert "\n" not in str(wrong.value)
    assert store.releases() == ()
    log = str(wrong.value).rpartition("(log: ")[2].rstrip(")")
    assert "Unknown host" in Path(log).read_text()


@pytest.mark.parametrize("root", ["/tmp/kafka", "/var/tmp", "/home/me/kafka", "/root"])
def test_a_folder_that_hosts_do_not_see_is_refused(root: str) -> None:
    with (
        pytest.raises(DeployError, match=rf"{VARIABLE}={root}: hosts do not see"),
        Store(Path(root)).locked("4.4.0"),
    ):
        pass


def release_file(path: Path, *names: str) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for name in names:
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    return path


def test_the_version_of_a_release_is_read_from_it(tmp_path: Path) -> None:
    assert version_of(release_file(tmp_path / "a.tgz", "k/bin/x", "k/libs/kafka_2.13-4.1.2.jar")) == "4.1.2"
    with pytest.raises(DeployError, match=r"b.tgz: no server in it \(libs/kafka_2.13-VERSION.jar\)"):
        version_of(release_file(tmp_path / "b.tgz", "k/libs/kafka-clients-4.1.2.jar"))
    (tmp_path / "c.tgz").write_text("nothing of the kind")
    with pytest.raises(DeployError, match=r"c.tgz: cannot be read as a release of Kafka"):
        version_of(tmp_path / "c.tgz")


def test_a_release_is_held_against_the_checksum_beside_it(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wrackline.systems.kafka.install.java_version", lambda: "java 17")
    file = release_file(tmp_path / "kafka_2.13-4.4.0.tgz", "k/libs/kafka_2.13-4.4.0.jar")
    beside = tmp_path / "kafka_2.13-4.4.0.tgz.sha512"
    beside.write_text(f"{file.name}: {'0' * 64}\n {'1' * 64}\n")
    with pytest.raises(DeployError, match=r"is not what kafka_2.13-4.4.0.tgz.sha512 says .*: fetch it again"):
        install(store, "4.4.0", tarball=file)
    right = hashlib.sha512(file.read_bytes()).hexdigest().upper()
    grouped = " ".join(right[at : at + 8] for at in range(0, 128, 8))
    beside.write_text(f"{file.name}: {grouped[:80]}\n  {grouped[80:]}\n")
    with pytest.raises(DeployError, match=r"control node: Kafka 4.4.0: kafka.server.KafkaConfig: "):
        install(store, "4.4.0", tarball=file)  # the jar is empty: it gets as far as the server
    assert store.releases() == ()


def test_what_a_version_does_not_know_is_refused(store: Store) -> None:
    release = installed(store)
    config = {
        "num.io.thread": 8,
        "num.io.threads": "many",
        "delete.topic.enable": "yes",
        "my.plugin.setting": 1,
        "internal.x": 1,
    }
    assert list(refused(release, config, {"flush.ms": "1", "flush.mss": "1", "other": "1"})) == [
        Refusal(
            About.CONFIG,
            "num.io.thread",
            "Kafka 4.4.0 has no such setting; did you mean num.io.threads?",
        ),
        Refusal(About.CONFIG, "num.io.threads", "Kafka 4.4.0 takes a whole number, not 'many'"),
        Refusal(About.CONFIG, "delete.topic.enable", "Kafka 4.4.0 takes true or false, not 'yes'"),
        Refusal(About.TOPIC_CONFIG, "flush.mss", "Kafka 4.4.0 has no such setting; did you mean flush.ms?"),
        Refusal(About.TOPIC_CONFIG, "other", "Kafka 4.4.0 has no such setting of topics"),
    ]


def test_the_commands(store: Store) -> None:
    def said(*arguments: str, code: int = 0) -> str:
        done = CliRunner().invoke(kafka_command, arguments, standalone_mode=True)
        assert done.exit_code == code, done.output
        return done.output

    assert "none in" in said("--list")
    installed(store)
    assert "4.4.0" in said("4.4.0")
    assert "from a test; java 17" in said("--list", "--verify")
    assert said("--remove", "4.4.0") == "Kafka 4.4.0 is removed\n"
    assert "Kafka 4.4.0 is not installed" in said("--remove", "4.4.0", code=2)
    assert "'4.4' is no version of Apache Kafka" in said("4.4", code=2)
    assert "'nexus' is neither a URL" in said("--repository", "nexus", code=2)
    assert "kafka_2.13-4.4.0.tgz" in said("--help")
    for wrong in (["--remove"], ["--list", "4.4.0"], ["--verify"], ["--list", "--remove"]):
        said(*wrong, code=2)
