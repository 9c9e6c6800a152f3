"""The broker's process survives mistakes of persons, strangers on the network, and a broken disk."""

from __future__ import annotations

import resource
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tomllib
from datetime import timedelta
from pathlib import Path

import pytest

from tests.broker.clients.logs import consume, end_offset, produce
from tests.broker.clients.loopback import Cluster, Node, free_ports, wait_for
from tests.broker.wire.entities import make
from wrackline.broker.__main__ import main
from wrackline.broker.model.config import BrokerConfig, ControllerConfig
from wrackline.broker.model.types import RecoveryStrategy
from wrackline.broker.server.config import ConfigError, load, parse
from wrackline.broker.wire.schema import request_schema

pytestmark = pytest.mark.real

EXIT_USAGE = 2
EXIT_DISK_FAILED = 3
EXIT_KILLED = 130


# --- strangers on the network ------------------------------------------------------------------------------


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def header(key: int, version: int, *, tags: bytes = b"") -> bytes:
    return struct.pack(">hhih", key, version, 7, 4) + b"test" + tags


def tls_hello() -> bytes:
    """As Python's own client sends it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(incoming, outgoing, server_hostname="n1")
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    return outgoing.read()


BAD = {
    "a frame too big": (struct.pack(">i", 500_000_000), "frame of 500000000 bytes, the limit is 104857600"),
    "a negative size": (struct.pack(">i", -5), "frame of -5 bytes"),
    "an unknown API": (frame(header(999, 0)), "API key 999 is not served on the listener CLIENT"),
    "an unknown version": (frame(header(0, 77)), "Produce version 77 is not spoken here"),
    "an API between nodes": (
        frame(header(63, 1, tags=b"\0")),
        "BrokerHeartbeat (API key 63) is not served on the listener CLIENT",
    ),
    "a truncated body": (frame(header(3, 1) + b"\x00\x00\x00\x05"), "MetadataRequest v1"),
    "nothing known": (b"\x7f\xff\xff\xffnone", "frame of 2147483647 bytes, the limit is 104857600 (socket"),
    "a TLS hello": (
        tls_hello(),
        "what came is a TLS hello, and this port speaks no TLS: set security.protocol",
    ),
    "HTTP": (b"GET /m HTTP/1.1\r\nHost: x\r\n\r\n", "what came is an HTTP message ('GET /m HTTP/1.1'), and"),
    "a command of ZooKeeper": (
        b"ruok",
        "what came is the ZooKeeper command 'ruok', and this is no ZooKeeper",
    ),
    "SSH": (b"SSH-2.0-OpenSSH_9.2\r\n", "what came is an SSH greeting ('SSH-2.0-OpenSSH_9.2'), and"),
    "an empty frame": (frame(b""), "shorter than its header"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_frame_costs_only_its_own_connection(cluster: Cluster, what: str) -> None:
    data, line = BAD[what]
    node = cluster.brokers[1]
    before = len(node.log.read_text())
    with (
        socket.create_connection(("127.0.0.1", node.port), 5) as healthy,
        socket.create_connection(("127.0.0.1", node.port), 5) as bad,
    ):
        bad.sendall(data)
        bad.settimeout(5)
        assert bad.recv(100) == b"", "closed"
        wait_for("the line in the log", lambda: line in node.log.read_text()[before:])
        said = node.log.read_text()[before:]
        assert "Traceback" not in said
        (told,) = [text for text in said.splitlines() if "closing the connection" in text]
        assert f"127.0.0.1:{bad.getsockname()[1]}: " in told
        schema = request_schema(3, 1)
        asked = schema.write(make(schema, "MetadataRequest", topics=()))
        healthy.sendall(frame(header(3, 1) + asked))
        healthy.settimeout(5)
        size, correlation = struct.unpack(">ii", healthy.recv(8, socket.MSG_WAITALL))
        assert correlation == 7
        assert size > 10


def test_a_connection_that_ends_inside_a_frame_is_reported(cluster: Cluster) -> None:
    node = cluster.brokers[1]
    with socket.create_connection(("127.0.0.1", node.port), 5) as bad:
        bad.sendall(struct.pack(">i", 1_000) + b"half")
    wait_for("the line in the log", lambda: "gone in the middle of a frame" in node.log.read_text())


def test_an_unknown_version_of_api_versions_is_told_what_there_is(cluster: Cluster) -> None:
    with socket.create_connection(("127.0.0.1", cluster.brokers[1].port), 5) as sock:
        sock.sendall(frame(header(18, 99)))
        sock.settimeout(5)
        size, correlation, error, count = struct.unpack(">iihi", sock.recv(14, socket.MSG_WAITALL))
    assert (correlation, error) == (7, 35)
    assert size == 4 + 2 + 4 + 6 * count
    assert count > 8


def test_pipelined_requests_are_answered_in_their_order(cluster: Cluster) -> None:
    """A fetch that waits holds up the answers behind it on its own connection, as Kafka's does."""
    cluster.create_topic("pipeline")
    leader = cluster.brokers[cluster.leader("pipeline")]
    fetch = request_schema(1, 4)
    part = make(fetch, "FetchPartition", partition=0, fetch_offset=0, partition_max_bytes=1_000)
    waiting = make(
        fetch,
        "FetchRequest",
        replica_id=-1,
        max_wait=timedelta(milliseconds=400),
        min_bytes=1,
        max_bytes=1_000,
        isolation_level=0,
        topics=(make(fetch, "FetchTopic", topic="pipeline", partitions=(part,)),),
    )
    with socket.create_connection(("127.0.0.1", leader.port), 5) as sock:
        sock.settimeout(5)
        sock.sendall(
            frame(struct.pack(">hhih", 1, 4, 1, -1) + fetch.write(waiting))
            + frame(struct.pack(">hhih", 18, 0, 2, -1))
            + frame(struct.pack(">hhih", 18, 0, 3, -1))
        )
        order = []
        for _ in range(3):
            size, correlation = struct.unpack(">ii", sock.recv(8, socket.MSG_WAITALL))
            sock.recv(size - 4, socket.MSG_WAITALL)
            order.append(correlation)
    assert order == [1, 2, 3]


# --- configuration and start -------------------------------------------------------------------------------


def valid(tmp_path: Path, **changes: object) -> Path:
    node = Node(
        1, "broker", free_ports(1)[0], tmp_path / "n1", {"controllers": ["101@127.0.0.1:9093"], **changes}
    )
    return node.config


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        (
            {"heartbeat_intervall_ms": 5},
            "unknown key 'heartbeat_intervall_ms', did you mean 'heartbeat_interval_ms'?",
        ),
        ({"session_timeout_ms": 5}, "unknown key 'session_timeout_ms'"),
        ({"port": 70_000}, "port = 70000; it must be from 1 to 65535"),
        ({"heartbeat_interval_ms": "often"}, "heartbeat_interval_ms = 'often'; it must be of type integer"),
        ({"auto_create_topics": 1}, "auto_create_topics = 1; it must be of type boolean"),
        ({"flush_mode": "never"}, "flush_mode = 'never'; it must be one of: every-write"),
        (
            {"pending_on_shrink": "later"},
            "pending_on_shrink = 'later'; it must be one of: fail_fast, timeout",
        ),
        ({"controllers": ["127.0.0.1:9093"]}, "is not like '101@198.18.0.21:9093'"),
        ({"controllers": []}, "name at least one"),
        ({"role": "king"}, "role = 'king'; it must be one of: broker, combined, controller"),
        ({"profile": "kip1"}, "no profile 'kip1'"),
        ({"profile": "zk08"}, "profile 'zk08' needs a ZooKeeper"),
        (
            {"zookeeper_connect": "127.0.0.1:2181", "profile": "zk08"},
            "zookeeper_connect and controllers are both given: profile 'zk08' has none",
        ),
        ({"zookeeper_connect": "127.0.0.1:2181"}, "a cluster comes from ZooKeeper with profile kip101"),
        (
            {"zookeeper_connect": "127.0.0.1:2181", "profile": "kip101", "controllers": []},
            "controllers = []; name those that take over from ZooKeeper",
        ),
        ({"zookeeper_connect": "127.0.0.1", "controllers": []}, "'127.0.0.1' is not like '198.18.0.21:2181'"),
        (
            {"zookeeper_connect": "127.0.0.1:2181", "controllers": []},
            "profile 'kip966' has controllers and asks no ZooKeeper: leave zookeeper_connect out",
        ),
        ({"defects": ["trunc_hw"]}, "they load only with --allow-defects"),
        ({"log_level": "LOUD"}, "log_level = 'LOUD'"),
        ({"replica_lag_time_max_ms": 0}, "must be from 1"),
        ({"data_dir": "/proc/nowhere"}, "data_dir /proc/nowhere"),
        ({"host": "no.such.host.invalid"}, "cannot listen on no.such.host.invalid"),
        ({"trace_file": "/proc/nowhere/trace"}, "/proc/nowhere"),
    ],
)
def test_a_mistake_is_one_clear_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], changes: dict[str, object], says: str
) -> None:
    assert main(["--config", str(valid(tmp_path, **changes))]) == EXIT_USAGE
    said = capsys.readouterr().err.strip()
    assert says in said
    lines = [line for line in said.splitlines() if line.startswith("wrackline-broker: ")]
    assert len(lines) == 1
    assert "Traceback" not in said


def test_recovery_strategies_have_two_names(tmp_path: Path) -> None:
    def strategy(value: str) -> RecoveryStrategy:
        keys = {"controllers": ["101@127.0.0.1:9093"], "unclean_recovery_strategy": value}
        settings = load(Node(101, "controller", 9093, tmp_path / "c1", keys).config)
        assert isinstance(settings.node, ControllerConfig)
        assert parse(tomllib.loads(settings.to_toml())) == settings
        return settings.node.unclean_recovery_strategy

    assert strategy("balanced") is RecoveryStrategy.BALANCED
    assert strategy("manual") is strategy("none") is RecoveryStrategy.MANUAL
    assert strategy("proactive") is strategy("aggressive") is RecoveryStrategy.PROACTIVE
    with pytest.raises(ConfigError, match="it must be one of: proactive, balanced, manual"):
        strategy("hopeful")


def test_a_preset_stands_for_settings_that_the_file_may_override() -> None:
    """C4: Kafka's lag of 30 s, or the 10 s of the protocol's text."""
    own = {"node_id": 1, "cluster_id": "c", "host": "h", "port": 9, "data_dir": "d", "secret_file": "s"}
    own["controllers"] = ["101@h:9"]
    broker = {**own, "role": "broker", "replication_port": 10}

    def lag(**keys: object) -> int:
        node = parse({**broker, **keys}).node
        assert isinstance(node, BrokerConfig)
        return node.replica_lag_time_max_ms

    assert lag() == lag(preset="kafka") == 30_000
    assert lag(preset="source") == 10_000
    assert lag(preset="source", replica_lag_time_max_ms=7_000) == 7_000
    with pytest.raises(ConfigError, match="preset = 'mine'; it must be one of: kafka, source"):
        lag(preset="mine")
    controller = {**own, "role": "controller", "node_id": 101, "preset": "source"}
    assert parse(controller).is_controller


def test_unreadable_files_and_missing_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--config", str(tmp_path / "none.toml")]) == EXIT_USAGE
    assert "No such file" in capsys.readouterr().err
    broken = tmp_path / "broken.toml"
    broken.write_text("node_id = = 3\n")
    assert main(["--config", str(broken)]) == EXIT_USAGE
    assert "is not TOML" in capsys.readouterr().err
    broken.write_text('role = "broker"\nnode_id = 3\n')
    assert main(["--config", str(broken)]) == EXIT_USAGE
    assert "missing key 'cluster_id'" in capsys.readouterr().err
    for key in ("replication_port", "secret_file"):
        lines = valid(tmp_path).read_text().splitlines()
        broken.write_text("\n".join(line for line in lines if not line.startswith(f"{key} =")))
        assert main(["--config", str(broken)]) == EXIT_USAGE
        assert f"missing key '{key}'" in capsys.readouterr().err


def test_a_node_does_not_start_without_the_clusters_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = valid(tmp_path)
    secret = config.parent / "secret"
    secret.write_text("too short\n")
    assert main(["--config", str(config)]) == EXIT_USAGE
    assert (
        "has 9 characters; it must hold the cluster's secret, 16 characters or more"
        in capsys.readouterr().err
    )
    secret.unlink()
    assert main(["--config", str(config)]) == EXIT_USAGE
    said = capsys.readouterr().err
    assert f"cannot read secret_file {secret}: No such file or directory; it must hold" in said
    assert said.count("\n") == 1


def test_one_port_is_not_for_clients_and_for_nodes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = valid(tmp_path, port=9_092, replication_port=9_092)
    assert main(["--config", str(config)]) == EXIT_USAGE
    assert "replication_port = 9092, as port; clients and nodes are served on" in capsys.readouterr().err


def test_the_effective_configuration_is_a_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--config", str(valid(tmp_path)), "--print-effective-config"]) == 0
    told = capsys.readouterr().out
    values = tomllib.loads(told)
    assert values["flush_mode"] == "on-roll"
    assert values["segment_bytes"] == 1 << 30
    again = tmp_path / "again.toml"
    again.write_text(told)
    assert main(["--config", str(again), "--print-effective-config"]) == 0
    assert capsys.readouterr().out == told


def test_a_running_node_leaves_its_configuration_beside_its_data(cluster: Cluster) -> None:
    for node in cluster.nodes:
        values = tomllib.loads((node.data_dir / "effective-config.toml").read_text())
        assert values["node_id"] == node.node_id
        assert values["data_dir"] == str(node.data_dir)


def test_help_teaches_and_version_is_told() -> None:
    for flag, words in (("--help", "smallest configuration"), ("--version", "wrackline-broker ")):
        done = subprocess.run(
            [sys.executable, "-m", "wrackline.broker", flag], capture_output=True, text=True, timeout=30
        )
        assert done.returncode == 0
        assert words in done.stdout
    done = subprocess.run(
        [sys.executable, "-m", "wrackline.broker", "--frob"], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == EXIT_USAGE


def test_a_port_or_directory_in_use_is_refused_and_the_owner_serves_on(
    cluster: Cluster, tmp_path: Path
) -> None:
    owner = cluster.brokers[1]
    same_port = Node(9, "broker", owner.port, tmp_path / "a", {"controllers": ["101@127.0.0.1:1"]})
    same_port.start()
    assert same_port.wait() == EXIT_USAGE
    assert f"cannot listen on 127.0.0.1:{owner.port}: Address already in use" in same_port.log.read_text()
    same_dir = Node(
        1,
        "broker",
        free_ports(1)[0],
        tmp_path / "b",
        {"controllers": ["101@127.0.0.1:1"], "data_dir": str(owner.data_dir)},
    )
    same_dir.start()
    assert same_dir.wait() == EXIT_USAGE
    assert "in use by another process" in same_dir.log.read_text()
    cluster.create_topic("still-served")
    assert len(produce(cluster.bootstrap, "still-served", [b"x"])) == 1


def test_defects_are_announced(tmp_path: Path) -> None:
    config = {"controllers": ["101@127.0.0.1:1"], "defects": ["trunc_hw"]}
    node = Node(1, "broker", free_ports(1)[0], tmp_path, config)
    node.start("--allow-defects")
    try:
        wait_for("the warning", lambda: "DEFECT LOADED: trunc_hw" in node.log.read_text())
    finally:
        node.kill()


def test_a_second_signal_stops_at_once_and_uncleanly(tmp_path: Path) -> None:
    with Cluster(tmp_path, brokers=1) as cluster:
        node = cluster.brokers[1]
        cluster.controller.kill()
        node.signal(signal.SIGTERM)
        wait_for(
            "the shutdown, which waits for the controller", lambda: "shutting down" in node.log.read_text()
        )
        assert node.running
        node.signal(signal.SIGTERM)
        assert node.wait() == EXIT_KILLED
        assert not (node.data_dir / ".kafka_cleanshutdown").exists()


# --- a disk that fails -------------------------------------------------------------------------------------


def test_a_full_disk_stops_the_broker_and_loses_nothing_acknowledged(tmp_path: Path) -> None:
    with Cluster(tmp_path, broker_keys={"trace_file": "/dev/null"}) as cluster:
        cluster.create_topic("log")
        leader = cluster.brokers[cluster.leader("log")]
        assert leader.process is not None
        limit = 300_000
        resource.prlimit(leader.process.pid, resource.RLIMIT_FSIZE, (limit, limit))
        values = [b"%06d" % i + b"x" * 900 for i in range(1_000)]
        acked = produce(
            cluster.bootstrap, "log", values, linger_ms=1, batch_num_messages=10, retry_backoff_ms=50
        )
        assert leader.wait() == EXIT_DISK_FAILED
        said = leader.log.read_text()
        assert "File too large" in said
        assert "Traceback" not in said
        assert not (leader.data_dir / ".kafka_cleanshutdown").exists()
        assert len(acked) == 1_000, "the others went on"
        count = end_offset(cluster.bootstrap, "log")
        at = dict(consume(cluster.bootstrap, "log", count))
        assert {value: offset for value, offset in acked.items() if at.get(offset) != value} == {}
        # With room again it comes back, cuts what was torn and catches up.
        leader.start()
        cluster.wait_isr("log")


def test_a_node_starts_without_hypothesis() -> None:
    """kio imports it where it is installed: half of each start."""
    code = "import sys, wrackline.broker.check; print('hypothesis' in sys.modules)"
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert said.stdout == "False\n"
