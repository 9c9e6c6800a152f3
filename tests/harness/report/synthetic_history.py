"""The operations of the made-up run: what the clients did, and what the cluster said of itself."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from typing import Any

from tests.harness.report.synthetic_setting import CUT_AT, FAULTS, LOST, MS, NODES, S
from wrackline.history.model import CONTROL, NEMESIS, REPLICA, UNKNOWN, Event, Record, Type, value_of


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


def record_control(draft: Draft) -> None:
    phases = {"setup": 0, "warm": 1, "main": 5, "heal": 48, "drain": 54, "collect": 58}
    for name, second in phases.items():
        draft.add(second * S, CONTROL, Type.INFO, "phase", extra={"phase": name})
    draft.add(S, CONTROL, Type.INFO, "assignment", topic="log",
              extra={"assignment": {"0": [1, 2, 3], "1": [2, 3, 1], "2": [3, 1, 2]},
                     "nodes": NODES})  # fmt: skip
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
        if time_ns < CUT_AT:
            return ("n1", 1) if time_ns < 12 * S else (None, 1) if time_ns < 14.2 * S else ("n2", 2)
        return (None, 2) if time_ns < 36.4 * S else ("n3", 3)
    if partition == 1:
        return ("n2", 1) if time_ns < CUT_AT else (None, 1) if time_ns < 36.4 * S else ("n3", 2)
    return ("n3", 1) if time_ns < 24 * S else (None, 1) if time_ns < 24.6 * S else ("n1", 2)


def record_sends(draft: Draft, dice: random.Random, rate: int) -> None:
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
            draft.add(end, process, Type.INFO, "send", topic="log", partition=partition,
                      latency_ns=end - begin, records=(Record(partition, UNKNOWN, value),),
                      error="request timed out (7)")  # fmt: skip
            processes[slot] = process + 100
            free_at[processes[slot]] = end
            continue
        if leader is None:
            latency = int(1.2 * S) + dice.randrange(900 * MS)
        if in_fault and dice.random() < 0.01:
            draft.add(begin + latency, process, Type.FAIL, "send", topic="log", partition=partition,
                      latency_ns=latency, records=(Record(partition, -2, value),),
                      error="not enough replicas (19)")  # fmt: skip
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


def final_logs(draft: Draft, first_lost: int) -> dict[int, list[Record]]:
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


def record_polls(draft: Draft, dice: random.Random) -> None:
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
            draft.add(time + took, process, Type.OK, "poll", topic="log", latency_ns=took,
                      records=tuple(given),
                      extra={"positions": {str(p): at for p, at in positions.items()}})  # fmt: skip
            time += took + 250 * MS


def record_ends(draft: Draft, dice: random.Random) -> None:
    time = S
    while time < 49 * S:
        partition = dice.randrange(3)
        took = dice.randrange(1, 9) * MS
        known = sum(1 for r in draft.logs[partition] if draft.acks[r.value].time_ns < time)
        draft.add(time, 12, Type.INVOKE, "end", topic="log", partition=partition)
        draft.add(time + took, 12, Type.OK, "end", topic="log", partition=partition, high_watermark=known,
                  latency_ns=took)  # fmt: skip
        time += took + 120 * MS


def record_final_reads(draft: Draft, final: dict[int, list[Record]]) -> None:
    time = 54 * S
    for partition, log in final.items():
        draft.add(time, 900 + partition, Type.INVOKE, "drain", topic="log", partition=partition)
        time += 300 * MS
        draft.add(time, 900 + partition, Type.OK, "drain", topic="log", partition=partition, offset=0,
                  high_watermark=len(log), records=tuple(log), latency_ns=300 * MS,
                  extra={"complete": True})  # fmt: skip
        for node in NODES.values():
            time += 100 * MS
            own = list(log)
            if partition == 2 and node == "n3":
                own[700] = own[700]._replace(value=value_of(4, 99_999), leader_epoch=1)
            draft.add(time, REPLICA, Type.OK, "replica", topic="log", partition=partition, node=node,
                      offset=0, high_watermark=len(own), records=tuple(own),
                      extra={"in_isr": True, "complete": True, "hw": len(own)})  # fmt: skip
