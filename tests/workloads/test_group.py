"""The workload ``group`` against librdkafka's own mock cluster: members are told of partitions, commit, leave
and crash, and all of it is on record."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, cast

import orjson
import pytest
from kio.schema.errors import ErrorCode
from pydantic import ValidationError

from tests.workloads.driving import Row, driven, recorded
from wrackline.harness.specification.spec import SpecError, parse
from wrackline.history import Recorder
from wrackline.history.model import Event, RunInfo, TopicInfo
from wrackline.kafka_client.model import Broker as KnownBroker
from wrackline.kafka_client.transport import Rejected
from wrackline.plugins.capabilities import Capability
from wrackline.workloads.clients.base import Fetched, Library, Listener, Membership, Polled
from wrackline.workloads.group import GroupSpec, watcher
from wrackline.workloads.group.member import GroupMember
from wrackline.workloads.group.spec import OneGroup
from wrackline.workloads.log.processes import Context
from wrackline.workloads.log.tally import Counts
from wrackline.workloads.pace import Generator, Slot

pytestmark = pytest.mark.real

PARTITIONS = 4


def extra_of(row: Row) -> dict[str, Any]:
    return orjson.loads(row["extra"] or "{}")  # type: ignore[no-any-return]


def drive(bootstrap: str, run_dir: Path, spec: GroupSpec, until: Callable[[Counts], bool]) -> list[Row]:
    """The mock keeps the first members of a group waiting for three seconds."""
    with driven(bootstrap, run_dir, spec, PARTITIONS, 50, tries=400, stop_s=40, until=until) as workload:
        workload.drain(deadline_s=20)
    return recorded(run_dir)


@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_what_members_are_told_and_commit_is_on_record(
    mock_cluster: str, tmp_path: Path, assignor: Any
) -> None:
    spec = GroupSpec(
        rate=150,
        members=2,
        senders=1,
        assignor=assignor,
        commit_every=2,
        ask_every=10,
        crash_every=0,
        leave_every=0,
    )
    rows = drive(mock_cluster, tmp_path / "run", spec, lambda counts: counts.ok.get("commit", 0) >= 25)
    held: dict[int, set[int]] = {}
    for row in rows:
        said = extra_of(row)
        if row["f"] == "rebalance":
            assert {"group", "member", "generation"} <= said.keys()
            assert said["protocol"] == ("eager" if assignor == "range" else "cooperative")
            held[row["process"]] = set(said["partitions"])
            assert not held[row["process"]] & set(said.get("revoked", ()))
        elif row["f"] == "poll" and row["type"] == "ok":
            assert {record["partition"] for record in row["records"]} <= held.get(row["process"], set())
        elif row["f"] == "commit" and row["type"] == "ok":
            assert {"offsets", "group", "member", "mode"} <= said.keys()
        if "coordinator" in said:
            assert said["coordinator"] in (1, 2, 3)
            assert said["coordinator_by"] == "client"
    answered = [row for row in rows if row["f"] == "commit" and "coordinator" in extra_of(row)]
    assert answered, "librdkafka's statistics name the coordinator"
    commits = [row for row in rows if row["f"] == "commit" and row["type"] == "ok"]
    assert {extra_of(row)["mode"] for row in commits} == {"sync", "async"}
    last = [row for row in rows if row["f"] == "committed" and row["type"] == "ok"][-1]
    drained = {row["partition"]: row["high_watermark"] for row in rows if row["f"] == "drain"}
    told = extra_of(last)["offsets"]
    assert set(told) == {str(partition) for partition in range(PARTITIONS)}
    assert all(told[str(partition)] <= end for partition, end in drained.items() if end is not None)


def test_a_member_that_crashes_leaves_no_word_and_another_process_follows(
    mock_cluster: str, tmp_path: Path
) -> None:
    spec = GroupSpec(
        rate=150, members=2, senders=1, crash_every=40, leave_every=0, away_ms=10, session_timeout_ms=1_000,
        heartbeat_ms=200,
    )  # fmt: skip
    rows = drive(mock_cluster, tmp_path / "run", spec, lambda counts: counts.ok.get("crash", 0) >= 2)
    crashes = [row for row in rows if row["f"] == "crash"]
    assert crashes
    for crash in crashes:
        after = [row for row in rows if row["index"] > crash["index"] and row["process"] == crash["process"]]
        assert after == []
        assert extra_of(crash)["group"]
    subscribed = [row["process"] for row in rows if row["f"] == "subscribe" and row["type"] == "ok"]
    assert len(subscribed) == len(set(subscribed)) > 2


def test_a_member_that_leaves_commits_what_it_was_given(mock_cluster: str, tmp_path: Path) -> None:
    spec = GroupSpec(
        rate=150, members=1, senders=1, commit_every=0, ask_every=0, crash_every=0, leave_every=0
    )
    rows = drive(mock_cluster, tmp_path / "run", spec, lambda counts: counts.read_records >= 20)
    [commit] = [row for row in rows if row["f"] == "commit" and row["type"] == "ok"]
    [left] = [row for row in rows if row["f"] == "rebalance" and "revoked" in extra_of(row)]
    assert commit["index"] < left["index"]
    assert extra_of(commit)["mode"] == "sync"
    given: dict[str, int] = {}
    for row in rows:
        if row["f"] == "poll" and row["records"]:
            given = extra_of(row)["positions"]
    assert given
    assert {at: offset for at, offset in given.items() if offset} == extra_of(commit)["offsets"]
    final = [row for row in rows if row["f"] == "committed" and row["type"] == "ok"][-1]
    assert extra_of(final)["offsets"].items() >= extra_of(commit)["offsets"].items()
    assert final["index"] > commit["index"]


class Refused:
    """A member whose asynchronous commits are refused, and who is then told to give all up. It stands for a
    coordinator whose group has just begun another generation, which no real one does when a test wants it."""

    broken = False

    def __init__(self) -> None:
        self.committed_now: list[dict[int, int]] = []
        self._polls = 0
        self._later = False

    def subscribe(self, topic: str, listener: Listener) -> None:
        del topic
        self._listener = listener

    def membership(self) -> Membership:
        return Membership("m", 1)

    requires_stable = False

    def coordinator(self) -> int:
        return 2

    def committed(self, topic: str, partitions: Sequence[int]) -> dict[int, int]:
        del topic
        return dict.fromkeys(partitions, -1)

    def poll(self, max_records: int | None = None, timeout_s: float | None = None) -> Polled:
        del max_records, timeout_s
        if not self._polls:
            self._listener.assigned([0])
        if self._later:
            self._listener.committed("ILLEGAL_GENERATION")
            self._listener.revoked([0])
        self._polls += 1
        records = [Fetched(0, 0, -1, 0, None, b"foreign")] if self._polls == 1 else []
        return Polled(records, None, False, {})

    def commit(self, topic: str, offsets: dict[int, int]) -> None:
        del topic
        self.committed_now.append(offsets)

    def commit_later(self, topic: str, offsets: dict[int, int]) -> None:
        del topic, offsets
        self._later = True


def test_what_was_refused_is_committed_when_the_partition_is_taken(tmp_path: Path) -> None:
    spec = GroupSpec(commit_every=1, async_commits=1, ask_every=0, crash_every=0, leave_every=0)
    client = Refused()
    info = RunInfo("t1", "t", 1, "", "none", spec.name, "all", False, (TopicInfo("log", 1, 3, 2),))
    with Recorder(tmp_path / "run", info) as recorder:
        context = Context(
            bootstrap="",
            library=cast("Library", SimpleNamespace(member=lambda *_: client)),
            topics={"log": 1},
            spec=spec,
            recorder=recorder,
            generator=cast("Generator", None),
            tag=bytes(8),
            stride=100,
            enter=contextlib.nullcontext,
            on_failure=pytest.fail,
        )
        member = GroupMember(context, 0, spec, "g", 0, apart=1)
        for number in range(2):
            member.operate(Slot("poll", number, 0.0, number))
    commits = [row for row in recorded(tmp_path / "run") if row["f"] == "commit" and row["type"] != "invoke"]
    assert [(extra_of(row)["mode"], row["type"]) for row in commits] == [("async", "info"), ("sync", "ok")]
    assert client.committed_now == [{0: 1}]


class Broker:
    """In the place of a connection to a broker. It stands for one that is cut off from the others, and tells
    what it knows; no real one is when a test wants it."""

    coordinates = True
    requests: ClassVar[list[tuple[int, str, bool]]] = []

    def __init__(self, host: str, port: int, **_: float) -> None:
        del host
        self._port = port

    def __enter__(self) -> Broker:
        return self

    def __exit__(self, *_: object) -> None: ...

    def close(self) -> None: ...

    def metadata(self, _: Sequence[str]) -> Any:
        return SimpleNamespace(brokers=[KnownBroker(port, "b", port) for port in (1, 2, 3)])

    def committed_offsets(
        self, group: str, topic: str, partitions: Sequence[int], *, require_stable: bool
    ) -> dict[int, int]:
        del topic
        self.requests.append((self._port, group, require_stable))
        if self._port == 3 or not self.coordinates:
            raise Rejected("OffsetFetch", ErrorCode.not_coordinator)
        return dict.fromkeys(partitions, 7)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_watchers_ask_each_broker_and_record_those_that_coordinate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, isolation: Any
) -> None:
    monkeypatch.setattr(watcher, "Connection", Broker)
    monkeypatch.setattr(Broker, "requests", [])
    spec = GroupSpec(watchers=2, watch_every_ms=10, isolation_level=isolation)
    info = RunInfo("t1", "t", 1, "", "none", spec.name, "all", False, (TopicInfo("log", 2, 3, 2),))
    with Recorder(tmp_path / "run", info) as recorder:
        context = cast("Any", SimpleNamespace)(
            bootstrap="b:1", topic="log", partitions=2, spec=spec,
            generator=SimpleNamespace(), record=None,
        )  # fmt: skip
        context.record = lambda process, kind, f, **columns: recorder.record(
            Event(process, kind, f, topic="log", **columns)
        )
        for number in range(spec.watchers):
            passes = iter([False, False, True])
            context.generator = type("G", (), {"ended": property(lambda _, it=passes: next(it))})()
            one = watcher.Watcher(context, 10 + number, spec, ["g"], number)
            one.work()
        Broker.coordinates = False
        one._ask(2, "g")
        Broker.coordinates = True
    stable = isolation == "read_committed"
    assert {port for port, _, _ in Broker.requests} == {1, 2, 3}
    assert {stable_too for *_, stable_too in Broker.requests} == {stable}
    rows = recorded(tmp_path / "run")
    extras = [extra_of(row) for row in rows]
    assert all(one["coordinator_by"] == "connection" and one["group"] == "g" for one in extras)
    assert all(one.get("stable", False) == stable for one in extras)
    assert {(row["process"], one["coordinator"]) for row, one in zip(rows, extras, strict=True)} == {
        (10, 1), (11, 2),
    }  # fmt: skip
    ok = [one for row, one in zip(rows, extras, strict=True) if row["type"] == "ok"]
    assert len(ok) == 4
    assert all(one["offsets"] == {"0": 7, "1": 7} for one in ok)
    assert [(row["type"], row["error"]) for row in rows[-2:]] == [
        ("invoke", None), ("fail", "NOT_COORDINATOR"),
    ]  # fmt: skip


def test_several_groups_read_the_topic_each_with_members_of_its_own(
    mock_cluster: str, tmp_path: Path
) -> None:
    """One name is the beginning of the other."""
    spec = GroupSpec(
        rate=150, senders=1, crash_every=0, leave_every=0, commit_every=2,
        groups={"a": OneGroup(members=1), "a-1": OneGroup(members=2, assignor="range")},
    )  # fmt: skip
    rows = drive(mock_cluster, tmp_path / "run", spec, lambda counts: counts.ok.get("commit", 0) >= 20)
    of: dict[str, set[int]] = {}
    for row in rows:
        if row["f"] in ("commit", "rebalance", "committed"):
            of.setdefault(extra_of(row)["group"], set()).add(row["process"])
    short, long = sorted(of)
    assert long == f"{short}-1"
    committing = {g: {extra_of(r)["group"] for r in rows if r["f"] == "commit"} for g in of}
    assert all(set(of) == groups for groups in committing.values())
    protocols = {(extra_of(r)["group"], extra_of(r)["protocol"]) for r in rows if r["f"] == "rebalance"}
    assert protocols == {(short, "cooperative"), (long, "eager")}
    assert {
        extra_of(r)["group"] for r in rows if r["f"] == "committed" and r["process"] >= spec.concurrency
    } == set(of)


def test_what_a_group_does_not_say_is_as_the_workload_says_it() -> None:
    spec = GroupSpec(
        members=3, assignor="roundrobin",
        groups={"a": OneGroup(), "b": OneGroup(protocol="consumer", members=1, static_members=True)},
    )  # fmt: skip
    one, other = spec.by_group["a"], spec.by_group["b"]
    assert (one.members, one.protocol, one.assignor, one.static_members) == (
        3,
        "classic",
        "roundrobin",
        False,
    )
    assert (other.members, other.protocol, other.assignor) == (1, "consumer", None)
    assert spec.concurrency == spec.senders * spec.in_flight + 3 * 4
    assert Capability.CONSUMER_PROTOCOL in spec.needs
    with pytest.raises(ValidationError, match=r"groups\.b: assignor roundrobin is none of protocol consumer"):
        GroupSpec(groups={"b": OneGroup(protocol="consumer", assignor="roundrobin")})


def test_members_of_a_mixed_group_draw_the_protocol_when_they_join() -> None:
    spec = GroupSpec(protocol="mixed")
    joining = [spec.of_member(lambda several, one=one: one % several) for one in range(2)]
    assert [one.rebalances for one in joining] == ["eager", "consumer"]
    assert {one.taking_part("g", "").assignor for one in joining} == {"range"}
    assert Capability.CONSUMER_PROTOCOL in spec.needs
    with pytest.raises(ValidationError, match="assignor uniform is none of protocol mixed: take range"):
        GroupSpec(protocol="mixed", assignor="uniform")


def test_a_target_names_a_group_that_the_run_has() -> None:
    text = "name: x\nsystem: {{kind: apache-kafka}}\nworkload: {{name: group{groups}}}\n" + (
        "nemesis: {{schedule: [{{at_s: 5, duration_s: 5, fault: kill, target: coordinator(group {name})}}]}}"
    )
    parse(text.format(groups=", groups: {a: {}, a-1: {}}", name="a-1"), "x.yaml")
    with pytest.raises(SpecError, match=r"there is no group 'b'; workload\.groups has a, a-1"):
        parse(text.format(groups=", groups: {a: {}, a-1: {}}", name="b"), "x.yaml")
    with pytest.raises(SpecError, match=r"coordinator\(group\) is that of the only one"):
        parse(text.format(groups="", name="a"), "x.yaml")


def test_watchers_are_refused_where_brokers_ask_who_they_are() -> None:
    text = "name: x\nfleet: {kind: none}\nworkload: {name: group, watchers: 1}\n"
    text += "system: {kind: external, bootstrap: [h:1]%s}"
    parse(text % "", "x.yaml")
    with pytest.raises(SpecError, match=r"workload\.watchers speak plaintext alone"):
        parse(text % ", security: {protocol: SSL}", "x.yaml")


def test_how_members_take_part_follows_from_the_protocol() -> None:
    classic, consumer = GroupSpec(), GroupSpec(protocol="consumer", static_members=True)
    assert classic.taking_part("g", "a").assignor == "cooperative-sticky"
    assert classic.taking_part("g", "a").instance == ""
    assert classic.rebalances == "cooperative"
    assert GroupSpec(assignor="roundrobin").rebalances == "eager"
    assert consumer.rebalances == "consumer"
    assert classic.needs == {Capability.IDEMPOTENCE, Capability.GROUPS}
    assert consumer.taking_part("g", "a").assignor == "uniform"
    assert consumer.taking_part("g", "a").instance == "a"
    assert consumer.needs == classic.needs | {Capability.CONSUMER_PROTOCOL}
    with pytest.raises(ValidationError, match="assignor roundrobin is none of protocol consumer"):
        GroupSpec(protocol="consumer", assignor="roundrobin")
    with pytest.raises(ValidationError, match="at most half of session_timeout_ms"):
        GroupSpec(session_timeout_ms=1_500, heartbeat_ms=1_000)


def test_a_system_without_groups_refuses_the_workload() -> None:
    with pytest.raises(SpecError, match=r"workload\.name group needs groups, which system\.kind wrackline"):
        parse("name: x\nworkload: {name: group}", "x.yaml")
