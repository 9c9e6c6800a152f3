"""A made-up run directory that looks like a real one: a few thousand operations, three faults, records lost
in a power cut, and replicas that diverge. Everything is derived from a seed."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from wrackline.checkers.findings import FINDINGS
from wrackline.history.model import (
    CONTROL,
    NEMESIS,
    REPLICA,
    UNKNOWN,
    Event,
    Record,
    RunInfo,
    TopicInfo,
    Type,
    value_of,
)
from wrackline.history.schema import METADATA_KEY, SCHEMA

S = 1_000_000_000
MS = 1_000_000
TEST_ID = "20260311T101502Z-power-cut-5f0a"
NODES = {"1": "n1", "2": "n2", "3": "n3"}
LEADERS = {0: "n1", 1: "n2", 2: "n3"}
CUT_AT = 36 * S
LOST = 42
"""Records of log-1 that the power cut takes."""

INFO = RunInfo(
    test_id=TEST_ID,
    name="acks all, power cut of the leader",
    seed=8_675_309,
    started_at="2026-03-11T10:15:02Z",
    system="wrackline",
    workload="log",
    acks="all",
    idempotence=False,
    topics=(TopicInfo("log", 3, 3, 2),),
    profile="kip966",
    defects=("truncate_to_hw",),
    rate=100.0,
    concurrency=13,
    nodes=NODES,
    harness_version="0.1.0",
)

FAULTS: list[dict[str, Any]] = [
    {
        "id": "f1", "fault": "partition-isolate", "targets": ["n1"], "role": "leader(log-0)",
        "begin_ns": 12 * S, "active_ns": 12 * S + 140 * MS, "undo_ns": 18 * S, "ended_ns": 18 * S + 210 * MS,
        "proved": True, "lossy": [], "lost": {},
        "proof": "chain WRACK-f1 on n1 dropped 1,932 packets; 10 of 10 pings from n2 and n3 were lost",
    },
    {
        "id": "f2", "fault": "kill", "targets": ["n3"], "role": "isr-last",
        "begin_ns": 24 * S, "active_ns": 24 * S + 60 * MS, "undo_ns": 27 * S, "ended_ns": 29 * S + 300 * MS,
        "proved": False, "lossy": [], "lost": {},
        "proof": "pid 4121 was still running 2 s after SIGKILL",
    },
    {
        "id": "f3", "fault": "power-cut", "targets": ["n2"], "role": "leader(log-1)",
        "begin_ns": CUT_AT, "active_ns": CUT_AT + 22 * MS, "undo_ns": 41 * S, "ended_ns": 44 * S + 500 * MS,
        "proved": True, "lossy": ["n2"],
        "lost": {"n2": {"log-1/00000000000000000000.log": 45_056, "log-1/00000000000000000000.index": 96,
                        "log-0/00000000000000000000.log": 12_288}},
        "proof": "n2 lost 57,440 bytes that were never synced; link down, processes gone, disk shut down in "
            "22 ms",
    },
]  # fmt: skip


@dataclass
class Draft:
    """A run being made up: events with their times, findable by tag once they have an index."""

    events: list[Event] = field(default_factory=list)
    logs: dict[int, list[Record]] = field(default_factory=lambda: {0: [], 1: [], 2: []})
    acks: dict[int, Event] = field(default_factory=dict)
    """Value -> the completion that acknowledged it."""
    reads: list[Event] = field(default_factory=list)

    def add(self, time_ns: int, process: int, type_: Type, f: str, **fields: Any) -> Event:
        event = Event(process=process, type=type_, f=f, time_ns=time_ns, **fields)
        self.events.append(event)
        return event


def write_run(run_dir: Path, *, seed: int = 7, rate: int = 100) -> Path:
    """A run that ends in ``violation``: 42 records of log-1 lost, one offset of log-2 diverging."""
    run_dir.mkdir(parents=True, exist_ok=True)
    dice = random.Random(seed)
    draft = Draft()
    _control(draft)
    _sends(draft, dice, rate)
    lost = [record for record in draft.logs[1] if _acked_before_cut(draft, record)][-LOST:]
    first_lost = lost[0].offset
    final = _final_logs(draft, first_lost)
    _polls(draft, dice)
    _ends(draft, dice)
    _drain_and_replicas(draft, final)
    events = [
        replace(event, index=index)
        for index, event in enumerate(sorted(draft.events, key=lambda e: e.time_ns))
    ]
    write_history(run_dir, events)
    findings = _findings(events, lost, final)
    write_findings(run_dir, findings)
    (run_dir / "verdict.json").write_text(json.dumps(_verdict(events, findings, final)))
    (run_dir / "metrics.json").write_text(json.dumps(_metrics(events)))
    (run_dir / "run.json").write_bytes(INFO.to_json())
    _texts(run_dir)
    return run_dir


def write_history(run_dir: Path, events: list[Event]) -> None:
    rows = []
    for event in events:
        row = asdict(event) | {"test_id": TEST_ID, "type": event.type.value}
        row["records"] = [record._asdict() for record in event.records]
        row["extra"] = None if event.extra is None else json.dumps(event.extra)
        rows.append(row)
    schema = SCHEMA.with_metadata({METADATA_KEY: INFO.to_json()})
    pq.write_table(
        pa.Table.from_pylist(rows, schema=schema), run_dir / "history.parquet", row_group_size=2_000
    )


def write_findings(run_dir: Path, findings: list[dict[str, Any]]) -> None:
    pq.write_table(pa.Table.from_pylist(findings, schema=FINDINGS), run_dir / "findings.parquet")


def _acked_before_cut(draft: Draft, record: Record) -> bool:
    ack = draft.acks.get(record.value)
    return ack is not None and ack.time_ns < CUT_AT


# what the clients did ---------------------------------------------------------------------------------------


def _control(draft: Draft) -> None:
    phases = {"setup": 0, "warm": 1, "main": 5, "heal": 48, "drain": 54, "collect": 58}
    for name, second in phases.items():
        draft.add(second * S, CONTROL, Type.INFO, "phase", extra={"phase": name})
    draft.add(S, CONTROL, Type.INFO, "assignment", topic="log",
              extra={"assignment": {"0": [1, 2, 3], "1": [2, 3, 1], "2": [3, 1, 2]}, "nodes": NODES})  # fmt: skip
    states = [
        (1.0, {0: (1, 1, [1, 2, 3]), 1: (2, 1, [2, 3, 1]), 2: (3, 1, [3, 1, 2])}),
        (12.9, {0: (-1, 1, [1, 2, 3]), 1: (2, 1, [2, 3]), 2: (3, 1, [3, 2])}),
        (14.2, {0: (2, 2, [2, 3]), 1: (2, 1, [2, 3]), 2: (3, 1, [3, 2])}),
        (20.0, {0: (2, 2, [1, 2, 3]), 1: (2, 1, [1, 2, 3]), 2: (3, 1, [1, 2, 3])}),
        (24.6, {0: (2, 2, [1, 2]), 1: (2, 1, [1, 2]), 2: (1, 2, [1, 2])}),
        (31.0, {0: (2, 2, [1, 2, 3]), 1: (2, 1, [1, 2, 3]), 2: (1, 2, [1, 2, 3])}),
        (36.4, {0: (3, 3, [1, 3]), 1: (3, 2, [3, 1]), 2: (1, 2, [1, 3])}),
        (46.0, {0: (3, 3, [1, 2, 3]), 1: (3, 2, [1, 2, 3]), 2: (1, 2, [1, 2, 3])}),
    ]
    for second in sorted({float(s) for s in range(1, 58)} | {at for at, _ in states}):
        if 12 < second < 12.9 or 49 < second < 55:
            continue  # nobody answers
        state = next(told for at, told in reversed(states) if at <= second)
        partitions = [
            {"topic": "log", "partition": p, "leader": leader, "leader_epoch": epoch, "isr": isr, "elr": [],
             "replicas": [1, 2, 3]}
            for p, (leader, epoch, isr) in state.items()
        ]  # fmt: skip
        draft.add(int(second * S), CONTROL, Type.INFO, "cluster", extra={"partitions": partitions})
    for fault in FAULTS:
        for phase in ("begin", "active", "undo", "ended"):
            told = {key: fault[key] for key in ("id", "targets", "role")} | {"phase": phase}
            if phase == "ended":
                told |= {key: fault[key] for key in ("proved", "proof", "lost", "lossy")}
            draft.add(fault[f"{phase}_ns"], NEMESIS, Type.INFO, fault["fault"], extra=told)


def _leader(partition: int, time_ns: int) -> tuple[str | None, int]:
    """(leader, epoch); None while there is none that answers."""
    if partition == 0:
        return ("n1", 1) if time_ns < 12 * S else (None, 1) if time_ns < 14.2 * S else ("n2", 2) if time_ns < CUT_AT \
            else (None, 2) if time_ns < 36.4 * S else ("n3", 3)  # fmt: skip
    if partition == 1:
        return ("n2", 1) if time_ns < CUT_AT else (None, 1) if time_ns < 36.4 * S else ("n3", 2)
    return ("n3", 1) if time_ns < 24 * S else (None, 1) if time_ns < 24.6 * S else ("n1", 2)


def _sends(draft: Draft, dice: random.Random, rate: int) -> None:
    processes = list(range(10))
    counters: dict[int, int] = {}
    queue = [(int((1 + n / rate) * S), n % 10) for n in range(48 * rate)]
    pending: list[tuple[int, int, Event, int, int]] = []
    free_at = dict.fromkeys(processes, 0)
    for due, slot in queue:
        process = processes[slot]
        begin = max(due, free_at.get(process, 0)) + dice.randrange(0, 2 * MS)
        if begin > 49 * S:
            continue
        partition = dice.randrange(3)
        counters[process] = counters.get(process, 0) + 1
        value = value_of(process, counters[process])
        leader, _ = _leader(partition, begin)
        latency = int(dice.lognormvariate(1.5, 0.5) * MS)
        in_fault = any(f["begin_ns"] < begin < f["ended_ns"] for f in FAULTS)
        latency *= 3 if in_fault else 1
        draft.add(begin, process, Type.INVOKE, "send", topic="log", partition=partition,
                  records=(Record(partition, UNKNOWN, value),))  # fmt: skip
        if leader is None and dice.random() < 0.3:
            end = begin + 2 * S + dice.randrange(300 * MS)
            draft.add(end, process, Type.INFO, "send", topic="log", partition=partition, latency_ns=end - begin,
                      records=(Record(partition, UNKNOWN, value),), error="request timed out "
                          "(7)")  # fmt: skip
            processes[slot] = process + 100
            free_at[processes[slot]] = end
            continue
        if leader is None:
            latency = int(1.2 * S) + dice.randrange(900 * MS)
        if in_fault and dice.random() < 0.01:
            draft.add(begin + latency, process, Type.FAIL, "send", topic="log", partition=partition,
                      latency_ns=latency, records=(Record(partition, -2, value),), error="not enough "
                          "replicas (19)")  # fmt: skip
            free_at[process] = begin + latency
            continue
        pending.append((begin + latency, process, draft.events[-1], partition, value))
        free_at[process] = begin + latency
    for end, process, invoke, partition, value in sorted(pending, key=lambda item: item[0]):
        node, epoch = _leader(partition, end)
        log = draft.logs[partition]
        record = Record(partition, len(log), value, epoch, 1_773_224_102_000 + end // MS)
        log.append(record)
        ack = draft.add(end, process, Type.OK, "send", topic="log", partition=partition, node=node or "n1",
                        latency_ns=end - invoke.time_ns, records=(record,))  # fmt: skip
        draft.acks[value] = ack


def _final_logs(draft: Draft, first_lost: int) -> dict[int, list[Record]]:
    """What survives: log-1 loses LOST records and later ones move down into their place."""
    final = {partition: list(log) for partition, log in draft.logs.items()}
    kept = final[1][:first_lost] + final[1][first_lost + LOST :]
    final[1] = [record._replace(offset=offset) for offset, record in enumerate(kept)]
    moved = {record.value: record for record in final[1]}
    # records appended after the cut were acked where they now lie
    for value, ack in draft.acks.items():
        if ack.time_ns >= CUT_AT and value in moved:
            draft.acks[value] = replace(ack, records=(moved[value],))
    draft.events = [
        draft.acks[event.records[0].value] if event.type is Type.OK and event.f == "send" else event
        for event in draft.events
    ]
    return final


def _polls(draft: Draft, dice: random.Random) -> None:
    for process in (10, 11):
        positions = {0: 0, 1: 0, 2: 0}
        time = S + 300 * MS
        while time < 49 * S:
            took = dice.randrange(2, 60) * MS
            given: list[Record] = []
            for partition, log in draft.logs.items():
                if partition == 1 and time > CUT_AT - S:
                    continue
                visible = [
                    r for r in log[positions[partition] :] if draft.acks[r.value].time_ns < time - 50 * MS
                ]
                given += visible[:200]
                positions[partition] += len(visible[:200])
            draft.add(time, process, Type.INVOKE, "poll", topic="log")
            draft.add(time + took, process, Type.OK, "poll", topic="log", latency_ns=took, records=tuple(given),
                      extra={"positions": {str(p): at for p, at in positions.items()}})  # fmt: skip
            time += took + 250 * MS


def _ends(draft: Draft, dice: random.Random) -> None:
    time = S
    while time < 49 * S:
        partition = dice.randrange(3)
        took = dice.randrange(1, 9) * MS
        known = sum(1 for r in draft.logs[partition] if draft.acks[r.value].time_ns < time)
        draft.add(time, 12, Type.INVOKE, "end", topic="log", partition=partition)
        draft.add(time + took, 12, Type.OK, "end", topic="log", partition=partition, high_watermark=known,
                  latency_ns=took)  # fmt: skip
        time += took + 120 * MS


def _drain_and_replicas(draft: Draft, final: dict[int, list[Record]]) -> None:
    time = 54 * S
    for partition, log in final.items():
        draft.add(time, 900 + partition, Type.INVOKE, "drain", topic="log", partition=partition)
        time += 300 * MS
        draft.add(time, 900 + partition, Type.OK, "drain", topic="log", partition=partition, offset=0,
                  high_watermark=len(log), records=tuple(log), latency_ns=300 * MS, extra={"complete": True})  # fmt: skip
        for node in NODES.values():
            time += 100 * MS
            own = list(log)
            if partition == 2 and node == "n3":
                own[700] = own[700]._replace(value=value_of(4, 99_999), leader_epoch=1)
            draft.add(time, REPLICA, Type.OK, "replica", topic="log", partition=partition, node=node, offset=0,
                      high_watermark=len(own), records=tuple(own),
                      extra={"in_isr": True, "complete": True, "hw": len(own)})  # fmt: skip


# what the judge would say -----------------------------------------------------------------------------------


def _findings(
    events: list[Event], lost: list[Record], final: dict[int, list[Record]]
) -> list[dict[str, Any]]:
    acked = {e.records[0].value: e for e in events if e.f == "send" and e.type is Type.OK}
    drained = {e.partition: e for e in events if e.f == "drain" and e.type is Type.OK}
    findings = []
    for record in lost:
        ack = acked[record.value]
        findings.append(
            _finding(
                "lost-write", 1, record.offset, record.value, [ack.index, drained[1].index], "middle",
                f"value {record.value} was acked at offset {record.offset} of log-1 at "
                f"{ack.time_ns / 1e9:.3f} s by n2 "
                "(leader epoch 1); the final read of log-1 holds another value there. Faults since: power "
                "cut of n2 "
                f"at 36.000 s.",
            )
        )  # fmt: skip
    for record in lost[:3]:
        ack = acked[record.value]
        poll = next((e for e in events if e.f == "poll" and e.type is Type.OK and record in e.records), None)
        if poll is not None:
            findings.append(
                _finding(
                    "vanished-read", 1, record.offset, record.value, [ack.index, poll.index, drained[1].index], None,
                    f"value {record.value} was given to process {poll.process} at offset {record.offset} of "
                    "log-1 and "
                    f"is not in the final read.",
                )
            )  # fmt: skip
    by_offset = {e.records[0].offset: e for e in acked.values() if e.partition == 1 and e.time_ns >= CUT_AT}
    for record in lost:
        later = by_offset.get(record.offset)
        if later is not None:
            findings.append(
                _finding(
                    "inconsistent-offset", 1, record.offset, record.value, [acked[record.value].index, later.index],
                    None, f"offset {record.offset} of log-1 was acked for value {record.value} and for value "
                    f"{later.records[0].value}.",
                )
            )  # fmt: skip
    replicas = [e.index for e in events if e.f == "replica" and e.partition == 2]
    diverging = final[2][700]
    findings.append(
        _finding(
            "replica-divergence", 2, 700, diverging.value, [acked[diverging.value].index, *replicas], None,
            f"offset 700 of log-2: n1 and n2 hold value {diverging.value} (leader epoch 2), n3 holds value "
            f"{value_of(4, 99_999)} (leader epoch 1), below every high watermark.",
        )
    )  # fmt: skip
    return findings


def _finding(
    anomaly: str, partition: int, offset: int, value: int, operations: list[int], where: str | None, text: str
) -> dict[str, Any]:
    return {
        "test_id": TEST_ID, "anomaly": anomaly, "topic": "log", "partition": partition, "offset": offset,
        "value": value, "operations": sorted(operations)[:8], "where": where, "explanation": text,
    }  # fmt: skip


CHECKERS = (
    "lost-write", "vanished-read", "lost-on-replica", "inconsistent-offset", "replica-divergence", "duplicate",
    "aborted-read", "phantom", "misrouted", "corrupt", "epoch-order", "append-order", "session-order", "poll-skip",
    "poll-rewind", "stale-read", "future-read", "watermark-regression", "not-linearizable",
)  # fmt: skip


def _verdict(
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
        "engine": {"spark": "4.0.1", "seconds": 11.4},
    }


def _metrics(events: list[Event]) -> dict[str, Any]:
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
            {"fault_id": fault["id"], "topic": "log", "partition": p, "last_ack_ns": fault["begin_ns"] + 4 * MS,
             "first_ack_ns": fault["begin_ns"] + gap * MS, "gap_ms": gap - 4,
             "full_isr_ns": fault["ended_ns"] + 1_800 * MS}
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
                ("setup", 0, 1), ("warm", 1, 5), ("main", 5, 48), ("heal", 48, 54), ("drain", 54, 58), ("collect", 58, 60),
            )
        ],
    }  # fmt: skip


def _texts(run_dir: Path) -> None:
    (run_dir / "spec.yaml").write_text(
        "name: acks all, power cut of the leader\nworkload: {log: {topics: 1, partitions: 3, rate: 100}}\n"
        "nemesis:\n  - {fault: partition-isolate, target: leader(log-0), at: 12s, for: 6s}\n"
        "  - {fault: kill, target: isr-last, at: 24s, for: 3s}\n  - {fault: power-cut, target: "
        "leader(log-1), at: 36s}\n"
    )
    (run_dir / "plan.json").write_text(json.dumps({"seed": INFO.seed, "faults": FAULTS}, indent=1))
    for node_id, host in NODES.items():
        folder = run_dir / "nodes" / host
        folder.mkdir(parents=True, exist_ok=True)
        config = f'node_id = {node_id}\nrole = "broker"\nhost = "198.18.0.1{node_id}"\nport = 9092\nprofile = "kip966"\n'
        (folder / "effective-config.toml").write_text(config)
