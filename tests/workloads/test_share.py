"""The workload ``share`` with a library of paper: what members acquire, what they acknowledge and what became
of it is on record. Against Apache Kafka itself: tests/systems/kafka/test_java_clients.py."""

from __future__ import annotations

import contextlib
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import orjson
import pytest
from pydantic import ValidationError

from tests.workloads.driving import Row, recorded
from wrackline.harness.specification.spec import SpecError, parse
from wrackline.history import Recorder
from wrackline.history.model import RunInfo, TopicInfo
from wrackline.plugins.capabilities import Capability
from wrackline.systems.kafka.spec import KafkaSpec
from wrackline.workloads.clients.base import ClientError, Fetched, Library
from wrackline.workloads.clients.sharing import Acknowledged, Acquired, Lag
from wrackline.workloads.log.processes import Context
from wrackline.workloads.pace import Generator, Slot
from wrackline.workloads.share import ShareSpec
from wrackline.workloads.share.member import MemberProcess, ShareGroup
from wrackline.workloads.share.workload import ShareWorkload

STRIDE = 100
ALL = {"crash_every": 0, "leave_every": 0, "hold_every": 0, "transactors": 0}
ACCEPTS = {"accept": 1, "release": 0, "reject": 0, "renew": 0}
RENEWS = {"accept": 0, "release": 0, "reject": 1e-9, "renew": 1}


class Paper:
    """A library, and the one member that it makes. ``polls``: what each gives, as (partition, offset,
    count)."""

    name, version = "java", "4.4.0"

    def __init__(self, *polls: Sequence[tuple[int, int, int]]) -> None:
        self.polls = deque(polls)
        self.broken = False
        self.answers: dict[tuple[int, int], str] = {}
        self.errors: dict[int, str | None] = {}
        self.refuses: str | None = None
        self.ended: list[str] = []
        self.tell: Acknowledged | None = None
        self.asked: list[tuple[str, Mapping[str, str]]] = []
        self.told: deque[Mapping[int, Lag]] = deque()

    def share_member(self, bootstrap: str, settings: Any, group: str, *, explicit: bool) -> Paper:
        del bootstrap, settings, group, explicit
        return self

    def share_groups(self, bootstrap: str, settings: Any) -> Paper:
        del bootstrap, settings
        return self

    def subscribe(self, topic: str, acknowledged: Acknowledged) -> None:
        del topic
        self.tell = acknowledged

    def poll(self, timeout_s: float) -> Acquired:
        del timeout_s
        given = self.polls.popleft() if self.polls else []
        records = [Fetched(p, offset, -1, -1, None, b"") for p, offset, _ in given]
        return Acquired(records, [count for *_, count in given], None, 2.0)

    def acknowledge(self, partition: int, offset: int, kind: str) -> None:
        self.answers[partition, offset] = kind

    def commit(self) -> Mapping[int, str | None]:
        if self.refuses is not None:
            raise ClientError(self.refuses)
        return self.errors

    def commit_later(self) -> None:
        pass

    def close(self) -> None:
        self.ended.append("left")

    def crash(self) -> None:
        self.ended.append("crashed")

    def configure(self, group: str, settings: Mapping[str, str]) -> None:
        if self.refuses is not None:
            raise ClientError(self.refuses, said="it is said")
        self.asked.append((group, settings))

    def delivery_limit(self, group: str) -> int:
        del group
        return 5

    def lags(self, group: str, topic: str) -> Mapping[int, Lag]:
        del group, topic
        return self.told.popleft()


def context_of(recorder: Recorder, spec: ShareSpec, paper: Paper) -> Context:
    return Context(
        bootstrap="",
        library=cast("Library", paper),
        topics={"log": 2},
        spec=spec,
        recorder=recorder,
        generator=cast("Generator", None),
        tag=bytes(8),
        stride=STRIDE,
        enter=contextlib.nullcontext,
        on_failure=pytest.fail,
    )


def rows_of(
    folder: Path, spec: ShareSpec, paper: Paper, *, explicit: bool = True, operations: int = 2
) -> Any:
    info = RunInfo("t1", "t", 1, "", "none", spec.name, "all", False, (TopicInfo("log", 2, 3, 2),))
    with Recorder(folder / "run", info) as recorder:
        context = context_of(recorder, spec, paper)
        member = MemberProcess(context, 0, spec, ShareGroup("g", 5), explicit=explicit)
        for number in range(operations):
            member.operate(Slot("acquire", number, 0.0, number))
        member.drop_client()
    return recorded(folder / "run")


def said(row: Row) -> dict[str, Any]:
    return orjson.loads(row["extra"] or "{}")  # type: ignore[no-any-return]


def ends(rows: Sequence[Row], f: str) -> list[tuple[str, dict[str, Any]]]:
    return [(row["type"], said(row)) for row in rows if row["f"] == f and row["type"] != "invoke"]


def test_what_a_poll_gave_is_on_record_with_counts_and_when_it_was_acquired(tmp_path: Path) -> None:
    paper = Paper([(0, 7, 1), (1, 2, 3)])
    paper.errors = {0: None, 1: None}
    rows = rows_of(tmp_path, ShareSpec(answers=ACCEPTS, sync_commits=1, async_commits=0, **ALL), paper)
    [first, second] = [row for row in rows if row["f"] == "acquire" and row["type"] == "ok"]
    assert [(r["partition"], r["offset"]) for r in first["records"]] == [(0, 7), (1, 2)]
    assert said(first)["counts"] == [1, 3]
    assert said(first)["group"] == "g"
    assert said(first)["since_ns"] < first["time_ns"] - 1_900_000_000
    assert not second["records"]
    [joined] = [said(row)["share"] for row in rows if (row["f"], row["type"]) == ("subscribe", "ok")]
    assert (joined["limit"], joined["lock_ms"], joined["explicit"]) == (5, 3_000, True)
    assert paper.answers == {(0, 7): "accept", (1, 2): "accept"}
    assert ends(rows, "acknowledge") == [
        ("ok", {"group": "g", "member": 0, "mode": "sync", "acks": {"accept": {"0": [7], "1": [2]}}})
    ]


def test_an_acknowledgement_is_certain_only_where_a_broker_confirmed_it(tmp_path: Path) -> None:
    spec = ShareSpec(answers=ACCEPTS, sync_commits=1, async_commits=0, **ALL)
    paper = Paper([(0, 7, 1), (1, 2, 1)], [(0, 8, 1)])
    paper.errors = {0: None, 1: "INVALID_RECORD_STATE"}
    partly, _ = ends(rows_of(tmp_path / "partly", spec, paper), "acknowledge")
    assert partly[0] == "info"
    assert partly[1]["acks"] == {"accept": {"0": [7]}}
    assert partly[1]["errors"] == {"INVALID_RECORD_STATE": {"1": [2]}}
    paper = Paper([(0, 7, 1)])
    paper.refuses = "_TIMED_OUT"
    rows = rows_of(tmp_path / "late", spec, paper)
    [late] = [row for row in rows if (row["f"], row["type"]) == ("acknowledge", "info")]
    assert (late["error"], said(late)["acks"]) == ("_TIMED_OUT", {})


def test_what_became_of_an_asynchronous_one_is_taken_when_it_is_told(tmp_path: Path) -> None:
    spec = ShareSpec(answers=ACCEPTS, sync_commits=0, async_commits=1, **ALL)
    paper = Paper([(0, 7, 1), (0, 8, 1)])
    poll = paper.poll

    def telling(timeout_s: float) -> Acquired:
        if paper.answers and paper.tell is not None:
            paper.tell(0, [7], None)
            paper.tell(0, [8, 9], "NETWORK_EXCEPTION")  # 9 is a marker, which nobody was given
        return poll(timeout_s)

    paper.poll = telling  # type: ignore[method-assign]
    [(kind, told)] = ends(rows_of(tmp_path, spec, paper), "acknowledge")
    assert kind == "info"
    assert told["acks"] == {"accept": {"0": [7]}}
    assert told["errors"] == {"NETWORK_EXCEPTION": {"0": [8]}}


def test_one_that_acknowledges_implicitly_accepts_by_the_next_poll_and_by_leaving(tmp_path: Path) -> None:
    spec = ShareSpec(answers=ACCEPTS, sync_commits=0, async_commits=0, **ALL)
    rows = rows_of(tmp_path, spec, Paper([(0, 7, 1)], [(0, 8, 1)]), explicit=False)
    begun = [said(row) for row in rows if (row["f"], row["type"]) == ("acknowledge", "invoke")]
    assert [(one["mode"], one["acks"]) for one in begun] == [
        ("poll", {"accept": {"0": [7]}}),
        ("close", {"accept": {"0": [8]}}),
    ]
    assert [kind for kind, _ in ends(rows, "acknowledge")] == ["info", "info"], "nobody said anything"


def test_a_record_that_is_given_again_after_its_renewal_is_no_new_delivery(tmp_path: Path) -> None:
    spec = ShareSpec(answers=RENEWS, sync_commits=1, async_commits=0, **ALL)
    paper = Paper([(0, 7, 1)], [(0, 7, 1)], [(0, 7, 2)])
    paper.errors = {0: None}
    given = [told for _, told in ends(rows_of(tmp_path, spec, paper, operations=3), "acquire")]
    assert [one.get("renewed") for one in given] == [None, [[0, 7]], None]


def test_members_leave_and_crash_with_what_they_have(tmp_path: Path) -> None:
    for name, often in (("left", {"leave_every": 1}), ("crashed", {"crash_every": 1})):
        paper = Paper([(0, 7, 1)])
        rows = rows_of(tmp_path / name, ShareSpec(**{**ALL, **often, "away_ms": 0}), paper, operations=1)
        [row] = [row for row in rows if row["f"] == "crash"]
        assert said(row) == {"group": "g", "left": name == "left"}
        assert not paper.answers


def test_a_group_is_polled_until_nothing_comes_and_its_lag_is_zero(tmp_path: Path) -> None:
    spec = ShareSpec(lock_ms=1_000, groups=1, members=1, implicit_members=0, **ALL)
    paper = Paper([(0, 7, 1)], [], [(0, 7, 2)])
    paper.errors = {0: None}
    paper.told = deque([{0: Lag(7, 1)}, {0: Lag(8, 0), 1: Lag(0, 0)}])
    info = RunInfo("t1", "t", 1, "", "none", spec.name, "all", False, (TopicInfo("log", 2, 3, 2),))
    with Recorder(tmp_path / "run", info) as recorder:
        workload = ShareWorkload(
            spec,
            bootstrap="",
            topics={"log": 2},
            seed=1,
            recorder=recorder,
            enter=contextlib.nullcontext,
        )
        workload._context = context_of(recorder, spec, paper)
        workload._members = [MemberProcess(workload._context, 0, spec, ShareGroup("g", 5), explicit=False)]
        workload._drain_group("g", float("inf"))
    rows = recorded(tmp_path / "run")
    assert [told["lags"] for _, told in ends(rows, "lag")] == [{"0": 1}, {"0": 0, "1": 0}]
    assert [told["counts"] for _, told in ends(rows, "acquire") if told["counts"]] == [[1], [2]]
    assert paper.ended[0] == "left"
    assert workload.coordinated["share"][0].endswith(":log:0")


def test_the_needs_of_the_workload_are_what_the_system_must_have() -> None:
    assert ShareSpec(transactors=0).needs == {Capability.IDEMPOTENCE, Capability.SHARE_GROUPS}
    assert Capability.TRANSACTIONS in ShareSpec().needs
    assert Capability.DELIVERY_LIMITS in ShareSpec(delivery_limit=3).needs
    lacks = {
        version: {Capability.SHARE_GROUPS, Capability.DELIVERY_LIMITS} - KafkaSpec(version=version).offers
        for version in ("4.1.2", "4.2.1", "4.3.1")
    }
    assert [len(some) for some in lacks.values()] == [2, 1, 0]
    assert Capability.SHARE_GROUPS not in KafkaSpec(features={"share.version": 0}).offers
    settings = ShareSpec(lock_ms=None, heartbeat_ms=None, session_timeout_ms=None).group_settings
    assert set(settings) == {"share.auto.offset.reset", "share.isolation.level"}


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (
            "client: {library: librdkafka}",
            "librdkafka has no share groups: the workload share needs library java",
        ),
        ("client: {version: 4.1.2}", r"share groups need kafka-clients 4\.2\.0 or newer, not 4\.1\.2"),
        ("answers: {accept: 0, reject: 0}", "accept or reject must have a weight"),
        ("members: 2, implicit_members: 3", "implicit_members 3 must not be more than members 2"),
        (
            "sync_commits: 0.8, async_commits: 0.4",
            "sync_commits and async_commits together must not be more than 1",
        ),
        ("heartbeat_ms: 5000", "heartbeat_ms must be at most half of session_timeout_ms"),
        ("partitions_per_txn: 3", r"partitions_per_txn 3 needs as many partitions, topic\.partitions is 2"),
        (
            "delivery_limit: 3}\nsystem: {kind: apache-kafka, version: 4.2.1",
            "needs delivery limits of groups",
        ),
        ("groups: 1}\nsystem: {kind: apache-kafka, version: 4.1.2", "needs share groups, which system.kind"),
    ],
)
def test_what_cannot_work_is_refused_in_one_line(more: str, why: str) -> None:
    system = "" if "system:" in more else "system: {kind: apache-kafka}\n"
    with pytest.raises(SpecError, match=why):
        parse(f"name: x\n{system}topic: {{partitions: 2}}\nworkload: {{name: share, {more}}}", "x.yaml")


def test_shares_of_kinds_are_no_more_than_all() -> None:
    with pytest.raises(ValidationError):
        ShareSpec(sync_commits=2)
