"""What the judge would say of the made-up run: findings, verdict and metrics."""

from __future__ import annotations

from typing import Any

from tests.harness.report.synthetic_setting import CUT_AT, FAULTS, INFO, MS, TEST_ID, S
from wrackline.history.labels import value_label
from wrackline.history.model import Event, Record, Type, value_of

CHECKERS = (
    "lost-write", "vanished-read", "lost-on-replica", "inconsistent-offset", "replica-divergence",
    "duplicate", "aborted-read", "phantom", "misrouted", "corrupt", "epoch-order", "append-order",
    "session-order", "poll-skip", "poll-rewind", "stale-read", "future-read", "watermark-regression",
    "not-linearizable",
)  # fmt: skip


def findings(events: list[Event], lost: list[Record], final: dict[int, list[Record]]) -> list[dict[str, Any]]:
    acked = {e.records[0].value: e for e in events if e.f == "send" and e.type is Type.OK}
    drained = {e.partition: e for e in events if e.f == "drain" and e.type is Type.OK}
    found = []
    for record in lost:
        ack = acked[record.value]
        found.append(
            _finding(
                "lost-write", 1, record.offset, record.value, [ack.index, drained[1].index], "middle",
                f"Value {value_label(record.value)} was acknowledged at offset {record.offset:,} of log-1 at "
                f"{ack.time_ns / 1e9:.3f} s by n2; the final read of log-1 holds another value there. These "
                "faults were in force at that time or later: power cut of n2 at 36.000 s.",
            )
        )  # fmt: skip
    for record in lost[:3]:
        ack = acked[record.value]
        poll = next((e for e in events if e.f == "poll" and e.type is Type.OK and record in e.records), None)
        if poll is not None:
            found.append(
                _finding(
                    "vanished-read", 1, record.offset, record.value,
                    [ack.index, poll.index, drained[1].index], None,
                    f"Value {value_label(record.value)} was given to process {poll.process} at offset "
                    f"{record.offset:,} of log-1 and is not in the final read.",
                )
            )  # fmt: skip
    by_offset = {e.records[0].offset: e for e in acked.values() if e.partition == 1 and e.time_ns >= CUT_AT}
    for record in lost:
        later = by_offset.get(record.offset)
        if later is not None:
            found.append(
                _finding(
                    "inconsistent-offset", 1, record.offset, record.value,
                    [acked[record.value].index, later.index], None,
                    f"Offset {record.offset:,} of log-1 was acknowledged for value "
                    f"{value_label(record.value)} and for value {value_label(later.records[0].value)}.",
                )
            )  # fmt: skip
    replicas = [e.index for e in events if e.f == "replica" and e.partition == 2]
    diverging = final[2][700]
    found.append(
        _finding(
            "replica-divergence", 2, 700, diverging.value, [acked[diverging.value].index, *replicas], None,
            f"At offset 700 of log-2 n1 and n2 hold value {value_label(diverging.value)} (leader epoch 2), "
            f"n3 holds value {value_label(value_of(4, 99_999))} (leader epoch 1), below all high watermarks.",
        )
    )  # fmt: skip
    return found


def _finding(
    anomaly: str, partition: int, offset: int, value: int, operations: list[int], where: str | None, text: str
) -> dict[str, Any]:
    return {
        "test_id": TEST_ID, "anomaly": anomaly, "topic": "log", "partition": partition, "offset": offset,
        "value": value, "operations": sorted(operations)[:8], "where": where, "explanation": text,
    }  # fmt: skip


def verdict(
    events: list[Event], findings: list[dict[str, Any]], final: dict[int, list[Record]]
) -> dict[str, Any]:
    counted = {name: sum(f["anomaly"] == name for f in findings) for name in CHECKERS}
    meanings = {"duplicate": "n/a", "session-order": "n/a", "stale-read": "allowed"}
    done = [e for e in events if e.process >= 0 and e.type is not Type.INVOKE]
    return {
        "test_id": TEST_ID,
        "name": INFO.name,
        "verdict": "violation",
        "exit_code": 1,
        "headline": f"{counted['lost-write']} acknowledged writes of log-1 were lost and two replicas of "
        "log-2 diverged; "
        "the configuration promises neither with one lossy shutdown.",
        "reasons": [
            f"lost-write: {counted['lost-write']} findings, forbidden: 1 lossy unclean shutdown, MinISR − 1 "
            "= 1",
            "replica-divergence: 1 finding, forbidden always",
            "vanished-read: 3 findings, forbidden with acks=all",
        ],
        "contract": {
            "name": "acks-all",
            "row": "acks=all, MinISR=2, unclean election and proactive recovery off",
            "promise": "No lost-write and no vanished-read while lossy unclean shutdowns of a partition's "
            "replicas stay "
            "at or below 1 between two moments of full ISR; any number of kills, pauses and partitions.",
            "because": [
                "the producers asked for acks=all",
                "topic log has MinISR 2 and RF 3",
                "unclean election was off; 1 lossy shutdown was proved (n2 at 36.000 s)",
            ],
        },
        "anomalies": [
            {
                "anomaly": name,
                "meaning": meanings.get(name, "violation"),
                "count": counted[name],
                "why": "idempotence is off"
                if meanings.get(name) == "n/a"
                else "acks=all, 1 lossy shutdown ≤ MinISR − 1",
            }
            for name in CHECKERS
        ]
        # counted, without findings of its own
        + [
            {
                "anomaly": "unproven-write",
                "meaning": "allowed",
                "count": 10,
                "why": "0 were read, 10 never seen",
            }
        ],
        "conditions": [
            {"name": "every fault proved", "ok": False, "detail": "f2 (kill of n3) was not"},
            {
                "name": "final read complete",
                "ok": True,
                "detail": "3 of 3 partitions read to their end offset",
            },
            {"name": "every kind of operation succeeded in every healthy phase", "ok": True, "detail": ""},
            {
                "name": "asked rate reached before the first fault",
                "ok": True,
                "detail": "100 of 100 per second",
            },
        ],
        "faults": FAULTS,
        "counts": {
            "operations": len(done),
            "ok": sum(e.type is Type.OK for e in done),
            "fail": sum(e.type is Type.FAIL for e in done),
            "info": sum(e.type is Type.INFO for e in done),
            "acked_records": sum(e.f == "send" and e.type is Type.OK for e in done),
            "read_records": sum(len(log) for log in final.values()),
            "sends_by_error": {
                "request timed out (7)": sum(e.type is Type.INFO for e in done),
                "not enough replicas (19)": sum(e.type is Type.FAIL for e in done),
            },
        },
        "engine": {"name": "spark 4.0.1", "seconds": 11.4},
    }


def metrics(events: list[Event]) -> dict[str, Any]:
    seconds: dict[tuple[int, str], dict[str, Any]] = {}
    latencies: dict[tuple[int, str], list[float]] = {}
    for event in events:
        if event.process < 0 or event.type is Type.INVOKE or event.f == "drain":
            continue
        key = (event.time_ns // S, event.f)
        row = seconds.setdefault(key, {"t": key[0], "f": key[1], "ok": 0, "fail": 0, "info": 0})
        row[event.type.value] += 1
        if event.type is Type.OK:
            latencies.setdefault(key, []).append((event.latency_ns or 0) / MS)
    for key, taken in latencies.items():
        taken.sort()
        seconds[key] |= {
            "p50_ms": taken[len(taken) // 2],
            "p99_ms": taken[int(len(taken) * 0.99)],
            "max_ms": taken[-1],
        }
    return {
        "seconds": [seconds[key] for key in sorted(seconds)],
        "availability": [
            {"fault_id": fault["id"], "topic": "log", "partition": p,
             "last_ack_ns": fault["begin_ns"] + 4 * MS, "first_ack_ns": fault["begin_ns"] + gap * MS,
             "gap_ms": gap - 4, "full_isr_ns": fault["ended_ns"] + 1_800 * MS}
            for fault, gaps in zip(FAULTS, ([2_241, 31, 44], [28, 40, 655], [440, 432, 38]), strict=True)
            for p, gap in enumerate(gaps)
        ],
        "latency": {
            "before": {"p50_ms": 4.4, "p99_ms": 14.2},
            "during": {"p50_ms": 13.9, "p99_ms": 1_920.0},
            "after": {"p50_ms": 4.5, "p99_ms": 15.1},
        },
        "longest_gap_ms": 2_237.0,
        "rate_before_first_fault": 100.2,
        "phases": [
            {"phase": name, "begin_ns": begin * S, "end_ns": end * S}
            for name, begin, end in (
                ("setup", 0, 1), ("warm", 1, 5), ("main", 5, 48), ("heal", 48, 54), ("drain", 54, 58),
                ("collect", 58, 60),
            )
        ],
    }  # fmt: skip
