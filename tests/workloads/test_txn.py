"""The workload ``txn``: what a transaction will do, what is known of its end, and what it writes down; its
clients against librdkafka's own mock cluster, which knows transactions but hides nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest
from confluent_kafka import KafkaError, KafkaException
from pydantic import ValidationError

from tests.workloads.driving import Row, driven, recorded
from wrackline.harness.specification.spec import SpecError, parse
from wrackline.history.model import CRASHED_ON_PURPOSE, FAILED, UNKNOWN, Type
from wrackline.plugins.capabilities import Capability
from wrackline.workloads.clients.base import ClientError
from wrackline.workloads.clients.librdkafka.producers import RdkafkaProducer
from wrackline.workloads.pace import Slot
from wrackline.workloads.txn import TxnSpec
from wrackline.workloads.txn.drawing import End, draw
from wrackline.workloads.txn.ending import Ended, end
from wrackline.workloads.txn.spec import TxnClientSettings

pytestmark = pytest.mark.real

PARTITIONS = 4
EVERY = {"log": PARTITIONS}
TIMED_OUT = ClientError("_TIMED_OUT", again=True)
INVALID_STATE = ClientError("INVALID_TXN_STATE", fatal=True)


def slots(count: int) -> list[Slot]:
    return [Slot("send", number, 0.0, number * 0x9E3779B97F4A7C15 + 7) for number in range(count)]


def test_transactions_are_drawn_by_the_shares_that_were_asked_for() -> None:
    spec = TxnSpec(aborts=0.25, offsets=0.75, crashes=0.1, partitions_per_txn=3, hold_ms=40, end_hold_ms=10)
    drawn = [draw(slot, spec, EVERY) for slot in slots(2_000)]
    assert drawn == [draw(slot, spec, EVERY) for slot in slots(2_000)]
    assert sum(one.end is End.ABORT for one in drawn) == pytest.approx(500, rel=0.15)
    assert sum(one.sends_offsets for one in drawn) == pytest.approx(1_500, rel=0.1)
    assert sum(one.crashes for one in drawn) == pytest.approx(200, rel=0.25)
    assert not any(draw(slot, TxnSpec(), EVERY).crashes for slot in slots(2_000))
    assert {one.number for one in drawn} == set(range(2_000))
    for one in drawn:
        assert len(set(one.partitions)) == 3
        assert set(one.partitions) <= set(range(PARTITIONS))
        assert len(one.holds_s) == 4
        assert max(one.holds_s[:3]) <= 0.04
        assert one.holds_s[3] <= 0.01
    assert {one.partitions[0] for one in drawn} == set(range(PARTITIONS))


@dataclass
class Scripted:
    """A producer whose calls end as they were written down; what is asked of it is kept. It stands for a
    cluster that answers so, which no real one does when a test wants it to."""

    commits: list[ClientError | None] = field(default_factory=list)
    aborts: list[ClientError | None] = field(default_factory=list)
    broken: bool = False
    asked: list[str] = field(default_factory=list)

    def commit_transaction(self, timeout_s: float) -> None:
        del timeout_s
        self._next("commit", self.commits)

    def abort_transaction(self, timeout_s: float) -> None:
        del timeout_s
        self._next("abort", self.aborts)

    def _next(self, name: str, script: list[ClientError | None]) -> None:
        self.asked.append(name)
        wrong = script.pop(0)
        if wrong is not None:
            raise wrong


@pytest.mark.parametrize(
    ("meant", "gave_up", "script", "wanted", "asked"),
    [
        (End.COMMIT, None, Scripted([None]), Ended(Type.OK, End.COMMIT, 7, None), ["commit"]),
        (End.COMMIT, None, Scripted([TIMED_OUT, None]), Ended(Type.OK, End.COMMIT, 7, None), ["commit"] * 2),
        (
            End.COMMIT,
            None,
            Scripted([INVALID_STATE]),
            Ended(Type.INFO, End.COMMIT, 7, "INVALID_TXN_STATE"),
            ["commit"],
        ),
        (
            # The commit may have been carried out all the same: to abort now would prove nothing.
            End.COMMIT,
            None,
            Scripted([ClientError("NOT_ENOUGH_REPLICAS", must_abort=True)]),
            Ended(Type.INFO, End.COMMIT, 7, "NOT_ENOUGH_REPLICAS"),
            ["commit"],
        ),
        (
            End.COMMIT,
            "_MSG_TIMED_OUT",
            Scripted(aborts=[None]),
            Ended(Type.FAIL, End.ABORT, 7, "_MSG_TIMED_OUT"),
            ["abort"],
        ),
        (End.ABORT, None, Scripted(aborts=[None]), Ended(Type.FAIL, End.ABORT, 7, "aborted"), ["abort"]),
        (
            # KAFKA-17754, A1: the call fails, and the records may be there.
            End.ABORT,
            None,
            Scripted(aborts=[INVALID_STATE]),
            Ended(Type.INFO, End.ABORT, 7, "INVALID_TXN_STATE"),
            ["abort"],
        ),
        (End.ABORT, "_FATAL", Scripted(broken=True), Ended(Type.INFO, None, None, "_FATAL"), []),
    ],
)
def test_what_is_known_of_a_transaction_that_was_ended(
    meant: End, gave_up: str | None, script: Scripted, wanted: Ended, asked: list[str]
) -> None:
    assert end(script, meant, gave_up, now_ns=lambda: 7, timeout_s=5) == wanted
    assert script.asked == asked


def test_a_commit_that_never_comes_back_is_given_up_at_the_deadline() -> None:
    script = Scripted([TIMED_OUT] * 100_000)
    ended = end(script, End.COMMIT, None, now_ns=lambda: 7, timeout_s=0.05)
    assert (ended.kind, ended.error) == (Type.INFO, "_TIMED_OUT")


def txn_spec(**settings: Any) -> TxnSpec:
    """Its clients do not look at checksums, which the mock cluster's commit and abort markers lack. No
    specification could say so."""
    spec = TxnSpec(pollers=1, **settings)
    client = spec.client.model_copy(update={"librdkafka": {"check.crcs": False}})
    return spec.model_copy(update={"client": client})


def extra_of(row: Row) -> dict[str, Any]:
    return orjson.loads(row["extra"] or "{}")  # type: ignore[no-any-return]


def test_rows_of_a_transaction_belong_together(mock_cluster: str, tmp_path: Path) -> None:
    spec = txn_spec(rate=120, workers=3, hold_ms=2, end_hold_ms=1, aborts=0.3)
    with driven(
        *(mock_cluster, tmp_path / "run", spec, PARTITIONS, 50),
        tries=600,
        stop_s=30,
        until=lambda counts: counts.ok.get("send", 0) > 30 and counts.ok.get("commit", 0) > 3,
    ) as workload:
        assert len(workload.groups) == 3
    rows = recorded(tmp_path / "run")
    transactions: dict[int, dict[tuple[str, str], Row]] = {}
    for row in rows:
        if (number := extra_of(row).get("txn")) is not None:
            which = "invoke" if row["type"] == "invoke" else "end"
            assert (row["f"], which) not in transactions.setdefault(number, {})
            transactions[number][row["f"], which] = row
    assert len(transactions) > 30
    ends = set()
    for rows_of in transactions.values():
        begun, ended = rows_of["send", "invoke"], rows_of["send", "end"]
        ends.add(ended["type"])
        assert len({record["partition"] for record in begun["records"]}) == 2
        assert all(record["offset"] == UNKNOWN for record in begun["records"])
        values = [record["value"] for record in begun["records"]]
        assert [record["value"] for record in ended["records"]] == values
        offsets = [record["offset"] for record in ended["records"]]
        said = extra_of(ended)
        assert begun["time_ns"] < said["end_ns"] < ended["time_ns"]
        if ended["type"] == "ok":
            assert said["asked"] == "commit"
            assert min(offsets) >= 0
        else:
            assert (ended["type"], said["asked"], ended["error"]) == ("fail", "abort", "aborted")
            assert offsets == [FAILED] * 2
        polled = rows_of["poll", "end"]
        assert polled["type"] == "ok"
        assert extra_of(polled).get("aborted") == (None if ended["type"] == "ok" else "fail")
        if ("commit", "invoke") in rows_of:
            committed = rows_of["commit", "end"]
            assert committed["type"] == ended["type"]
            assert set(extra_of(committed)) == {"offsets", "group", "member", "txn", "asked", "end_ns"}
        processes = {row["process"] for row in rows_of.values()}
        assert len(processes) == len({f for f, _ in rows_of})  # one each
    assert ends == {"ok", "fail"}
    assert any(("commit", "end") in rows_of for rows_of in transactions.values())


def test_after_an_abort_the_consumer_goes_back(mock_cluster: str, tmp_path: Path) -> None:
    spec = txn_spec(rate=100, workers=1, hold_ms=0, end_hold_ms=0, aborts=0.5)
    with driven(
        *(mock_cluster, tmp_path / "run", spec, PARTITIONS, 50),
        tries=600,
        stop_s=30,
        # Offsets are sent by transactions that have read something, which a slow machine's do late.
        until=lambda counts: counts.ok.get("commit", 0) > 10,
    ):
        pass
    rows = recorded(tmp_path / "run")
    [consumer] = {row["process"] for row in rows if row["f"] == "poll" and extra_of(row).get("txn")}
    mine = [row for row in rows if row["process"] == consumer and row["type"] == "ok"]
    went_back = 0
    stands: dict[str, int] = {}
    for row in mine:
        said = extra_of(row)
        if row["f"] == "assign":
            assert {"group", "member"} <= said.keys()
            went_back += bool(stands)
            stands = said["positions"]
        elif row["f"] == "poll":
            for record in row["records"]:
                at = str(record["partition"])
                assert record["offset"] >= stands[at]  # markers lie between
                stands = {**stands, at: record["offset"] + 1}
            assert said["positions"] == stands
    assert went_back > 1


def test_a_crashed_producer_asks_for_no_end_and_the_next_one_fences_it(
    mock_cluster: str, tmp_path: Path
) -> None:
    spec = txn_spec(rate=60, workers=1, hold_ms=0, end_hold_ms=0, aborts=0.0, crashes=0.3)
    with driven(
        *(mock_cluster, tmp_path / "run", spec, PARTITIONS, 30),
        tries=600,
        stop_s=30,
        until=lambda counts: counts.info > 12 and counts.ok.get("send", 0) > 3,  # not each is a crash's
    ):
        pass
    sends = [row for row in recorded(tmp_path / "run") if row["f"] == "send"]
    crashed = [row for row in sends if row["error"] == CRASHED_ON_PURPOSE]
    assert len(crashed) > 3
    for row in crashed:
        assert row["type"] == "info"
        assert extra_of(row).keys() == {"txn"}  # nothing was asked for
        assert all(record["offset"] == UNKNOWN for record in row["records"])
    begun = [extra_of(row)["transactional_id"] for row in sends if row["type"] == "invoke"]
    assert len(set(begun)) == 1
    assert {row["process"] for row in crashed}.isdisjoint(
        row["process"] for row in sends if row["type"] == "invoke" and row["index"] > crashed[-1]["index"]
    )


def test_the_clients_and_the_version_of_end_txn_are_on_record(mock_cluster: str, tmp_path: Path) -> None:
    spec = TxnSpec(rate=50, workers=1, pollers=1, hold_ms=0, end_hold_ms=0)
    with driven(mock_cluster, tmp_path / "run", spec, PARTITIONS, 5, tries=300, stop_s=30) as workload:
        client = workload._context.recorder.info.client
    assert client["library"] == "librdkafka"
    assert client["version"]
    assert client["end_txn_version"] == 1


def test_a_system_without_transactions_refuses_the_workload() -> None:
    with pytest.raises(
        SpecError, match=r"workload\.name txn needs transactions, which system.kind wrackline"
    ):
        parse("name: x\nworkload: {name: txn}", "x.yaml")


def test_what_cannot_be_done_is_refused() -> None:
    assert list(TxnSpec(partitions_per_txn=3).misfits({"log": 3})) == []
    [misfit] = TxnSpec(partitions_per_txn=3).misfits({"log": 3, "log-1": 2})
    assert misfit == "partitions_per_txn 3 needs as many partitions of each topic, log-1 has 2"
    with pytest.raises(ValidationError, match="acks"):
        TxnSpec.model_validate({"acks": 1})
    assert TxnSpec().client.socket_timeout_ms == 1_500
    assert TxnSpec.model_validate({"client": {"poll_ms": 50}}).client.socket_timeout_ms == 1_500


def test_threads_end_when_nobody_listens(tmp_path: Path) -> None:
    """A worker that never gets a producer begins no transaction."""
    spec = TxnSpec(rate=20, workers=1, pollers=1)
    with driven("127.0.0.1:1", tmp_path / "run", spec, PARTITIONS, 1, tries=5, stop_s=40):
        pass
    rows = recorded(tmp_path / "run")
    assert not [row for row in rows if row["f"] == "send"]


@dataclass
class Raising:
    """In the place of confluent-kafka's producer: librdkafka's fatal errors do not come when a test wants
    them to. They are raised by ``poll``, whatever ``error_cb`` there is."""

    fatal: bool

    def poll(self, timeout_s: float) -> int:
        del timeout_s
        raise KafkaException(
            KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, "desynchronized", self.fatal)
        )


def test_a_fatal_error_breaks_the_producer_and_not_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    producer = RdkafkaProducer("127.0.0.1:1", TxnSpec())
    monkeypatch.setattr(producer, "_handle", Raising(fatal=True))
    producer.serve(0)
    assert producer.broken
    monkeypatch.setattr(producer, "_handle", Raising(fatal=False))
    with pytest.raises(KafkaException):
        producer.serve(0)


def test_librdkafka_takes_no_request_longer_than_a_transaction() -> None:
    longest = TxnClientSettings(socket_timeout_ms=3_100)
    TxnSpec(client=longest, transaction_timeout_ms=3_000)
    with pytest.raises(ValidationError, match="socket_timeout_ms 3100 must not be more than transaction_tim"):
        TxnSpec(client=longest, transaction_timeout_ms=2_999)
    TxnSpec(client=longest.model_copy(update={"library": "java"}), transaction_timeout_ms=2_999)


def test_with_keys_the_topic_is_compacted_and_a_transaction_has_one_key(
    mock_cluster: str, tmp_path: Path
) -> None:
    spec = TxnSpec(rate=60, workers=2, pollers=1, hold_ms=0, end_hold_ms=0, keys=3, segment_ms=500)
    assert (spec.compacted, spec.topic_configs["segment.ms"]) == (True, "500")
    assert spec.needs - TxnSpec().needs == {Capability.COMPACTION}
    assert not TxnSpec().topic_configs
    with driven(mock_cluster, tmp_path / "run", spec, PARTITIONS, 60, tries=200, stop_s=40):
        pass
    sends = [row for row in recorded(tmp_path / "run") if row["f"] == "send"]
    assert {row["key"] for row in sends} == {"0", "1", "2"}
    for row in sends:
        for record in row["records"]:
            assert spec.key_of(0, record["value"]).decode() == f"k0-{row['key']}"
