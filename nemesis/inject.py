"""The one place where faults happen: an async context manager whose undo is in ``finally``.

Undo is idempotent and does not depend on the order in which overlapping faults end. Whether it came to
something is looked at afterwards (`wrackline.nemesis.restoration`).
"""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import AsyncIterator, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from wrackline.fleets.base import FleetError
from wrackline.nemesis.faults import by_command
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import Commands, Fault, FaultContext, FaultError, Look, ProbeLog, Proof
from wrackline.nemesis.restoration import Restoration
from wrackline.nemesis.stage import Stage
from wrackline.systems.base import DeployError

WATCH_S = 1.0
"""Between two rounds of a watch."""


@dataclass
class Injection:
    """One fault under way, as its user sees it."""

    id: str
    fault: Fault
    hosts: tuple[str, ...]
    role: str
    probe_log: ProbeLog = field(default_factory=ProbeLog)
    failure: str | None = None
    """Why it is not in force; its body should not wait."""


def missed(fault_id: str, role: str, why: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The rows of a fault that never began, and was not proved therefore: its beginning and its end."""
    begun: dict[str, Any] = {"id": fault_id, "phase": "begin", "targets": [], "role": role, "proved": None}
    proof = {"proved": False, "proof": "it was never in force", "error": why, "lost": {}, "lossy": []}
    return begun, {**begun, "phase": "ended", **proof}


@asynccontextmanager
async def injected(
    stage: Stage, fault: Fault, *, fault_id: str, hosts: tuple[str, ...], role: str
) -> AsyncIterator[Injection]:
    """The fault is in force inside, undone after, whatever happens; both are recorded with their proof.

    A fault that cannot be done does not raise: ``failure`` says why, and it is recorded as not proved.
    """
    injection = Injection(fault_id, fault, hosts, role)
    stage.restorer.live.add(fault_id)
    _record(stage, injection, "begin")
    if fault.holds_node:
        stage.hold(fault_id, hosts)
    commands = Commands((), ())
    context = FaultContext(fault_id, (), ())
    try:
        try:
            fault = injection.fault = by_command.here(stage.system, fault)
            result = await stage.context(fault_id, hosts)
            commands = fault.commands(result)
            context = result  # only of what can be done there may be a proof
        except (FaultError, DeployError, FleetError) as error:
            injection.failure = str(error)
        else:
            stage.in_force(fault_id, commands.lasting)
            injection.probe_log = ProbeLog(do=await stage.run(commands.do))
            injection.probe_log = replace(injection.probe_log, active=await stage.run(commands.probe))
            injection.failure = "; ".join(injection.probe_log.errors()) or None
        _record(
            stage, injection, "active", fault.prove(context, injection.probe_log) if context.targets else None
        )
        async with _watched(stage, injection, () if injection.failure else commands.watch):
            yield injection
        if commands.probe and not injection.failure:
            injection.probe_log = replace(injection.probe_log, final=await stage.run(commands.probe))
    finally:
        await _to_the_end(_undo(stage, injection, context, commands))


async def look_again(stage: Stage) -> None:
    """When no fault is in force any more: at what could not be told of one when it ended, since a host had no
    power or another fault was in force. It is recorded."""
    for fault_id, name, result in await stage.restorer.look_again():
        extra = {"id": fault_id, "phase": "restored", "restored": result.restored is True}
        stage.record(name, {**extra, "restoration": result.text})


@asynccontextmanager
async def _watched(stage: Stage, injection: Injection, steps: Sequence[Step]) -> AsyncIterator[None]:
    """Runs the watch's steps every second, and adds their results to the probe log."""
    began = time.monotonic()

    async def watch() -> None:
        while True:
            await asyncio.sleep(WATCH_S)
            look = Look(f"{time.monotonic() - began:.1f} s after its beginning", await stage.run(steps))
            injection.probe_log = replace(injection.probe_log, watched=(*injection.probe_log.watched, look))

    task = asyncio.ensure_future(watch()) if steps else None
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            await asyncio.wait([task])


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Awaits it even when we are cancelled meanwhile: a run that is called off must not leave a fault
    behind."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as called_off:
            cancelled = called_off
    await task
    if cancelled is not None:
        raise cancelled


async def _undo(stage: Stage, injection: Injection, context: FaultContext, commands: Commands) -> None:
    _record(stage, injection, "undo")
    stage.in_force(injection.id, None)
    done = await stage.run(commands.undo, undoing=True)
    injection.probe_log = replace(injection.probe_log, undo=done)
    result, injection.probe_log = await stage.restorer.look(
        injection.fault, context, commands, injection.probe_log
    )
    stage.restorer.live.discard(injection.id)
    stage.release(injection.id, injection.hosts)
    if injection.failure is not None:
        # Some of its hosts may have lost something nevertheless.
        told = injection.fault.prove(context, injection.probe_log) if context.targets else Proof(False, "")
        lost = {**told.lost, **by_command.doubtful(injection.fault, injection.probe_log)}
        proof = Proof(False, "it was never in force", lost, told.damaged)
    else:
        proof = injection.fault.prove(context, injection.probe_log)
    _record(stage, injection, "ended", proof, result)


def settings_of(fault: Fault) -> dict[str, Any]:
    """Returns what distinguishes this fault from others of its name, so that a history says all of what was
    done."""
    own: tuple[dataclasses.Field[Any], ...] = (
        dataclasses.fields(fault) if dataclasses.is_dataclass(fault) else ()
    )
    names = [one.name for one in own if one.name not in ("name", "holds_node")]
    said: dict[str, Any] = orjson.loads(
        orjson.dumps({name: getattr(fault, name) for name in names}, default=str)
    )
    return said


def _record(
    stage: Stage,
    injection: Injection,
    phase: str,
    proof: Proof | None = None,
    restoration: Restoration | None = None,
) -> None:
    extra: dict[str, Any] = {
        "id": injection.id,
        "phase": phase,
        "targets": list(injection.hosts),
        "role": injection.role,
        "proved": None,
    }
    if phase == "begin":
        extra["how"] = settings_of(injection.fault)
    if proof is not None:
        # Some proofs need the fault to last a while: only the end is a verdict.
        extra["proved"] = proof.proved if phase == "ended" else proof.proved or None
        extra["proof"] = proof.text
    if phase == "ended" and proof is not None:
        extra["lost"] = {host: dict(files) for host, files in proof.lost.items()}
        extra["lossy"] = sorted({*proof.lost, *proof.damaged})
        if proof.damaged:
            extra["damaged"] = {host: dict(files) for host, files in proof.damaged.items()}
    if restoration is not None:
        extra |= {"restored": restoration.restored, "restoration": restoration.text}
    if errors := [*filter(None, [injection.failure]), *injection.probe_log.errors()]:
        extra["error"] = "; ".join(dict.fromkeys(errors))
    stage.record(injection.fault.name, extra)
