"""What the shell keeps from the event loop: the work of a log directory in proportion to its logs, and the
wait for a vote."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from tests.broker.storage.batches import run_of
from wrackline.broker.model import effects as fx
from wrackline.broker.model import events as ev
from wrackline.broker.model.types import METADATA, EpochEntry, QuorumState, TopicPartition
from wrackline.broker.server.shell import Shell
from wrackline.broker.storage import backlog, checkpoint
from wrackline.broker.storage.logdir import LogDir
from wrackline.broker.storage.logs.log import LogSettings
from wrackline.broker.wire.proof import ClusterSecret

PARTS = [TopicPartition("t", number) for number in range(100)]
TOPIC = UUID(int=7)


class Core:
    """Answers the timer ``n`` with the n-th list of effects, and remembers what it hears."""

    def __init__(self, *steps: Sequence[fx.Effect]) -> None:
        self._steps = steps
        self.heard: list[ev.Event] = []

    def handle(self, event: ev.Event, now_ms: float) -> list[fx.Effect]:
        del now_ms
        self.heard.append(event)
        return list(self._steps[int(event.key)]) if isinstance(event, ev.TimerFired) else []


class Trace:
    def __init__(self) -> None:
        self.kinds: list[str] = []

    def begin(self) -> None: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...

    def write(self, kind: str, fields: object) -> None:
        del fields
        self.kinds.append(kind)


def shell(core: Core, logs: LogDir, trace: Trace) -> Shell:
    settings: Any = SimpleNamespace(
        node=SimpleNamespace(node_id=1, host="n1", port=9092),
        is_controller=False,
        shell=SimpleNamespace(
            max_connections=9,
            connections_max_idle_ms=1_000,
            connect_timeout_ms=1_000,
            socket_request_max_bytes=1_000,
            zookeeper_connect=None,
        ),
    )
    role: Any = SimpleNamespace(core=core, ready=lambda: False, features=lambda: None)
    written: Any = trace
    return Shell(role, settings, logs, ClusterSecret(b"", "c"), UUID(int=1), written, 9)


async def until(met: Callable[[], bool]) -> None:
    deadline = asyncio.get_running_loop().time() + 60
    while not met():
        assert asyncio.get_running_loop().time() < deadline
        await asyncio.sleep(0.002)


@pytest.fixture
def logs(tmp_path: Path) -> LogDir:
    made = LogDir(tmp_path / "data", LogSettings(), node_id=1, cluster_id="c")
    made.open()
    return made


class Syscalls:
    """Of which thread, by name."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.on_loop: list[str] = []
        self.syncs = 0
        for name in ("mkdir", "rename", "replace", "fsync", "fdatasync", "unlink"):
            monkeypatch.setattr(os, name, self._seen(name, getattr(os, name)))
        monkeypatch.setattr(backlog, "sync_filesystem", self._seen("fsync", backlog.sync_filesystem))

    def _seen(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **more: Any) -> Any:
            if threading.current_thread() is threading.main_thread():
                self.on_loop.append(name)
            self.syncs += name in ("fsync", "fdatasync")
            return real(*arguments, **more)

        return call


CREATE = [
    effect
    for tp in PARTS
    for effect in (fx.CreateLog(tp, TOPIC), fx.WriteEpochs(tp, (EpochEntry(0, 0),)), fx.Trace("made", {}))
]
OFFSETS = dict.fromkeys(PARTS, 0)
PLENTY: dict[str, tuple[Sequence[fx.Effect], ...]] = {
    "create": (CREATE,),
    "lead": (CREATE, [fx.WriteEpochs(tp, (EpochEntry(0, 0), EpochEntry(1, 0))) for tp in PARTS]),
    "delete": (CREATE, [fx.DeleteLog(tp) for tp in PARTS]),
    "checkpoint": (CREATE, [fx.WriteCheckpoint(kind, OFFSETS) for kind in fx.Checkpoint]),
    "close": (CREATE, [fx.CloseLogs(1, OFFSETS)]),
}


def test_log_starts_are_on_the_disk_before_anybody_is_told_with_one_sync_for_all(
    logs: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DeleteRecords of many partitions, or a leader's retention at its followers."""
    tell = fx.NoReply(1)
    moves = [fx.MoveLogStart(tp, 2) for tp in PARTS]
    core = Core(CREATE, [fx.Append(tp, tuple(run_of(3)), 0, 3) for tp in PARTS], [*moves, tell, tell])
    told: list[dict[TopicPartition, int]] = []
    file = logs.path / checkpoint.CHECKPOINT_FILES[fx.Checkpoint.LOG_START]

    async def driven() -> int:
        one = shell(core, logs, Trace())
        monkeypatch.setattr(one, "_no_reply", lambda _: told.append(checkpoint.read_offsets(file)))
        one._carriers = {**one._carriers, fx.NoReply: one._no_reply}
        for step in "01":
            one.post(ev.TimerFired(step))
            await until(lambda: not one._writes_behind)
        syscalls = Syscalls(monkeypatch)
        one.post(ev.TimerFired("2"))
        synced = syscalls.syncs
        await one.close()
        return synced

    synced = asyncio.run(driven())
    assert told == [dict.fromkeys(PARTS, 2)] * 2
    assert synced <= 2
    logs.close()


@pytest.mark.parametrize("steps", PLENTY.values(), ids=PLENTY)
def test_an_event_of_many_logs_leaves_their_directories_to_a_thread_and_syncs_them_at_once(
    steps: tuple[Sequence[fx.Effect], ...], logs: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    syscalls = Syscalls(monkeypatch)

    async def driven() -> None:
        core, trace = Core(*steps), Trace()
        one = shell(core, logs, trace)
        for number in range(len(steps)):
            one.post(ev.TimerFired(str(number)))
            assert not syscalls.on_loop
            await until(lambda: not one._writes_behind)
        if isinstance(steps[-1][0], fx.CloseLogs):
            await until(lambda: ev.LogsClosed(OFFSETS) in core.heard)
        await one.close()

    asyncio.run(driven())
    assert not syscalls.on_loop
    assert 0 < syscalls.syncs < len(PARTS) / 2
    kept = {path.name for path in logs.path.iterdir() if path.is_dir()}
    assert kept == (set() if isinstance(steps[-1][0], fx.DeleteLog) else {str(tp) for tp in PARTS})
    logs.close()


VOTE = fx.WriteQuorumState(QuorumState(3))


@pytest.mark.parametrize("fails", [False, True], ids=["written", "refused"])
def test_what_follows_a_vote_waits_for_the_disk_and_the_loop_does_not(
    fails: bool, logs: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = threading.Event()

    def write(_: QuorumState) -> None:
        assert opened.wait(20), "the event loop waits for the disk"
        if fails:
            raise OSError("no room")

    monkeypatch.setattr(logs, "write_quorum_state", write)

    async def driven() -> tuple[list[str], list[ev.Event]]:
        core, trace = (
            Core([fx.Trace("before", {}), VOTE, fx.Trace("after", {})], [fx.Trace("next", {})]),
            Trace(),
        )
        one = shell(core, logs, trace)
        one.post(ev.TimerFired("0"))
        one.post(ev.TimerFired("1"))
        await asyncio.sleep(0)
        assert trace.kinds == ["before"]
        assert core.heard == [ev.TimerFired("0")]
        opened.set()
        await until(lambda: "next" in trace.kinds)
        await one.close()
        return trace.kinds, core.heard

    kinds, heard = asyncio.run(driven())
    assert kinds == (["before", "next"] if fails else ["before", "after", "next"])
    failure = [ev.DiskFailed(METADATA, "no room")] if fails else []
    assert heard == [ev.TimerFired("0"), *failure, ev.TimerFired("1")]
    logs.close()


def test_a_disk_that_refuses_what_is_done_behind_ends_the_node(
    logs: LogDir, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Path) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(backlog, "sync_filesystem", refuse)

    async def driven() -> list[ev.Event]:
        core = Core(CREATE)
        one = shell(core, logs, Trace())
        one.post(ev.TimerFired("0"))
        await until(lambda: len(core.heard) > 1)
        await one.close()
        return core.heard

    _, failed = asyncio.run(driven())
    assert isinstance(failed, ev.DiskFailed)
    assert logs.offline is not None
    logs.close()
