"""Carries out the steps of faults on the fleet and the system that they happen to.

Every step runs in a thread (SSH and the power switch are synchronous); steps of different hosts run at the
same time. What cannot be undone because a host has no power is kept and done by whoever powers it on.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, Protocol, TypeVar

from wrackline.fleets.base import CLIENTS, Fleet, FleetError, Host, PowerCut
from wrackline.fleets.canary import CanaryLoss
from wrackline.history.model import NEMESIS, Event, Type
from wrackline.nemesis.executor import StepExecutor, clients_of, hosts_of
from wrackline.nemesis.faults.admin_steps import AdminStep, JoinQuorum
from wrackline.nemesis.faults.host_steps import (
    CopyDisk,
    CutDisk,
    DropPageCache,
    HoldDisk,
    InstallTools,
    OwnKernel,
    ReadClock,
    RestoreDisk,
    SwapDisk,
)
from wrackline.nemesis.faults.step import Step
from wrackline.nemesis.faults.steps import (
    AssignReplicas,
    AwaitReassignment,
    DescribeNode,
    FaultContext,
    FaultError,
    Join,
    PowerOff,
    PowerOn,
    Shell,
    StepResult,
    Target,
    TcpProbe,
    TcpProbeFrom,
)
from wrackline.nemesis.restoration import Restorer
from wrackline.systems.base import DeployError, Node, System
from wrackline.systems.external.external_cluster import ExternalCluster

UNDO_TRIES = 4
UNDO_PAUSE_S = 0.5
BARRIER_S = 30.0
NEEDS_NO_POWER = (PowerOn, SwapDisk, HoldDisk, AwaitReassignment, AdminStep)
"""Undone whether the host is there or not: a switch, and what is asked of the cluster."""
NEEDS_SHELL = (
    Shell,
    TcpProbeFrom,
    DescribeNode,
    DropPageCache,
    CutDisk,
    RestoreDisk,
    CopyDisk,
    InstallTools,
    OwnKernel,
    ReadClock,
)
"""Left out on a host without power: there is nothing to ask, and nothing to do it to."""

T = TypeVar("T")


class Barriers:
    """Barriers for the threads of several hosts, whose steps of one fault begin at the same moment. Safe to
    use from several threads."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._by_fault: dict[str, threading.Barrier] = {}

    def wait(self, fault_id: str, among: int) -> None:
        """Returns when so many have come, to all of them at once; also when one of them has not come in time,
        for what a fault does to the others is still done."""
        if among < 2:
            return
        with self._mutex:
            barrier = self._by_fault.setdefault(fault_id, threading.Barrier(among))
        with contextlib.suppress(threading.BrokenBarrierError):
            barrier.wait(BARRIER_S)


class Recording(Protocol):
    """The part of `wrackline.history`'s recorder that the stage needs."""

    def record(self, event: Event) -> Event: ...


class Canaries(Protocol):
    """The part of `wrackline.fleets.canary` that the stage needs."""

    def start(self, host: Host, disk: int = 1) -> None: ...

    def wait_witness(self, host: Host, *, disk: int | None = None) -> None: ...

    def after(self, host: Host, decided_ns: int | None = None, *, disk: int | None = None) -> CanaryLoss: ...


class Hold(NamedTuple):
    """The holds of faults on a host's node."""

    taken: int = 0
    """How often one has taken it so far."""
    by: str | None = None
    """The one that has it now."""


class Stage:
    """The fleet and system that faults happen to; carries steps out."""

    def __init__(
        self,
        fleet: Fleet,
        system: System,
        recorder: Recording,
        topics: Sequence[str] = (),
        canaries: Canaries | None = None,
    ) -> None:
        self.fleet = fleet
        self.system = system
        self._canaries = canaries
        self.held: dict[str, str] = {}
        """Host -> id of the fault that has taken its node."""
        self.taken: Counter[str] = Counter()
        """Host -> how often one has."""
        self.spares = [node.host.name for node in system.nodes if node.spare]
        """Hosts that no fault has chosen to join yet."""
        self.idle = set(self.spares)
        """Spare hosts whose node has not joined."""
        self._recorder = recorder
        self._hosts = hosts_of(fleet, system)
        self._threads = ThreadPoolExecutor(max_workers=32, thread_name_prefix="nemesis")
        self._executor = StepExecutor(fleet, system, topics)
        self._barriers = Barriers()
        self._lasting: dict[str, tuple[Shell, ...]] = {}
        """By fault in force: the steps that are done again on a host that comes back."""
        self._switches_begun: Counter[str] = Counter()
        """By host, how often its power has been switched."""
        self._switches_ended: Counter[str] = Counter()
        """As many, but for those under way. A switch ends when what lasting faults did is there again."""
        self._kept_undo: dict[str, list[Shell]] = defaultdict(list)
        """Steps that a host without power owes us."""
        folders = frozenset(name for name, host in self._hosts.items() if host.is_folder)
        self.restorer = Restorer(self.run, folders, looks=not isinstance(system, ExternalCluster))

    def close(self) -> None:
        self._threads.shutdown(wait=True)

    def hold(self, fault_id: str, hosts: Sequence[str]) -> None:
        """The fault takes their nodes: who looks at them by himself must know before anything is done to
        them."""
        self.taken.update(hosts)
        self.held.update(dict.fromkeys(hosts, fault_id))

    def release(self, fault_id: str, hosts: Sequence[str]) -> None:
        """The nodes that the fault took are their own masters again."""
        for host in hosts:
            if self.held.get(host) == fault_id:
                del self.held[host]

    def hold_of(self, host: str) -> Hold:
        return Hold(self.taken[host], self.held.get(host))

    def record(self, fault: str, extra: Mapping[str, Any]) -> None:
        self._recorder.record(Event(process=NEMESIS, type=Type.INFO, f=fault, extra=dict(extra)))

    async def in_thread(self, action: Callable[..., T], *arguments: Any) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, action, *arguments)

    async def context(self, fault_id: str, hosts: Sequence[str]) -> FaultContext:
        """The targets as they are now, with their process ids."""

        def look(node: Node, aimed_at: bool) -> Target:
            pid = self.system.pid(node) if aimed_at and self._powered(node.host.name) else None
            return Target(
                host=node.host.name,
                address=node.host.address,
                node_id=node.node_id,
                port=node.port,
                data_dir=str(node.host.data_dir),
                more_disks=tuple(map(str, node.host.more_disks)),
                shared=str(node.host.shared or ""),
                is_broker=node.is_broker,
                controller_port=node.controller_port,
                replication_port=node.replication_port,
                pid=pid,
                spare=node.host.name in self.spares,
                python=node.host.python,
                is_zookeeper=node.is_zookeeper,
            )

        seen = await asyncio.gather(
            *(self.in_thread(look, node, node.host.name in hosts) for node in self.system.nodes)
        )
        by_name = {target.host: target for target in seen}
        return FaultContext(
            fault_id,
            targets=tuple(by_name[host] for host in hosts),
            others=tuple(target for target in seen if target.host not in hosts),
            clients=clients_of(self.fleet),
        )

    async def run(self, steps: Sequence[Step], *, undoing: bool = False) -> list[StepResult]:
        """All steps; a host's later steps are left out after one of them failed (but not when undoing)."""
        by_host: dict[str, list[Step]] = defaultdict(list)
        for step in steps:
            by_host[step.host].append(step)
        done = await asyncio.gather(
            *(self.in_thread(self._run_on_host, each, undoing) for each in by_host.values())
        )
        return [one for host in done for one in host]

    def _run_on_host(self, steps: Sequence[Step], undoing: bool) -> list[StepResult]:
        done: list[StepResult] = []
        for step in steps:
            if undoing:
                done.append(self._insist(step))
                continue
            done.append(self._attempt(step))
            if done[-1].error:
                break
        return done

    def _insist(self, step: Step) -> StepResult:
        """Undo must succeed if it can: try again, and leave to the next power-on what needs power."""
        last = StepResult(step)
        for attempt in range(UNDO_TRIES):
            if attempt:
                time.sleep(UNDO_PAUSE_S)
            if not isinstance(step, NEEDS_NO_POWER) and not self._powered(step.host):
                if isinstance(step, Shell):
                    self._kept_undo[step.host].append(step)
                return StepResult(step, skipped=True)
            last = self._attempt(step)
            if not last.error:
                return last
        return replace(last, error=f"{last.error} (tried {UNDO_TRIES} times)")

    def _powered(self, host: str) -> bool:
        return host == CLIENTS or self.fleet.power.is_on(self._hosts[host])

    def _attempt(self, step: Step) -> StepResult:
        if isinstance(step, NEEDS_SHELL) and not self._powered(step.host):
            return StepResult(step, skipped=True)  # asking would take the connection's whole deadline
        ended = self._switches_ended[step.host]
        try:
            done = self._carry_out(step)
        except (FleetError, DeployError, FaultError, OSError) as wrong:
            done = StepResult(step, error=str(wrong))
        switched = self._switches_begun[step.host] != ended
        # A host that is back answers until the rules of a cut are there again.
        if isinstance(step, TcpProbe) and switched:
            return StepResult(step, skipped=True)
        if done.error and isinstance(step, NEEDS_SHELL) and (switched or not self._powered(step.host)):
            return StepResult(step, skipped=True)  # it failed for that, also when the power is back already
        return done

    def _carry_out(self, step: Step) -> StepResult:
        host = self._hosts[step.host]
        match step:
            case PowerOff(fault_id=fault_id, among=among):
                self._wait_witness(host)  # each before they meet: the power of all goes at the same moment
                self._barriers.wait(fault_id, among)
                with self._switching(step.host):
                    return StepResult(step, cut=self.fleet.power.cut(host))
            case DropPageCache():
                self._wait_witness(host)
                dropped = self._executor.carry_out(step)
                return replace(dropped, canary=self._canary_after(host, dropped.cut))
            case CutDisk(number=number):
                self._wait_witness(host, number)
                return self._executor.carry_out(step)
            case RestoreDisk(number=number):
                restored = self._executor.carry_out(step)
                # Its canary was killed with the mount, also where nothing was cut.
                return replace(restored, canary=self._canary_after(host, restored.cut, number))
            case PowerOn():
                with self._switching(step.host):
                    cut = self.fleet.power.on(host)
                    problems = self._again(host) if cut is not None else []
                canary = self._canary_after(host, cut)
                owed = self._kept_undo.pop(step.host, [])
                problems += [problem for one in owed if (problem := self._attempt(one).error)]
                return StepResult(step, cut=cut, canary=canary, error="; ".join(problems) or None)
            case Join() | JoinQuorum():
                done = self._executor.carry_out(step)
                self.idle.discard(step.host)
                return done
            case AssignReplicas(by_host=spare):
                if spare not in self.spares:
                    raise FaultError(f"{spare} is no spare any more: another fault has started its broker")
                self.spares.remove(spare)
                done = self._executor.carry_out(step)
                self.idle.discard(spare)
                return done
        return self._executor.carry_out(step)

    def in_force(self, fault_id: str, lasting: tuple[Shell, ...] | None) -> None:
        """``lasting``: what is to be done again at power-on from now on; None, before the undo: nothing any
        more."""
        if lasting is None:
            self._lasting.pop(fault_id, None)
        else:
            self._lasting[fault_id] = lasting

    def _again(self, host: Host) -> list[str]:
        """Repeats on a host that has come back what faults in force had done to it. Returns what failed."""
        problems = []
        for fault_id, steps in list(self._lasting.items()):
            for step in steps:
                with self._executor.shells[
                    host.name
                ]:  # whoever undoes the fault meanwhile waits, and undoes this too
                    if step.host != host.name or fault_id not in self._lasting:
                        continue
                    result = self.fleet.remote(host).run(step.command, timeout_s=step.timeout_s, check=False)
                    if not result.ok:
                        problems.append(f"{fault_id} not in force again: {result.stderr.strip()}")
        return problems

    @contextmanager
    def _switching(self, host: str) -> Iterator[None]:
        self._switches_begun[host] += 1
        try:
            yield
        finally:
            self._switches_ended[host] += 1

    def _wait_witness(self, host: Host, disk: int | None = None) -> None:
        """A cut that follows a power-on at once would have no witness: its canary has just begun."""
        if self._canaries is not None:
            self._canaries.wait_witness(host, disk=disk)

    def _canary_after(self, host: Host, cut: PowerCut | None, disk: int | None = None) -> CanaryLoss | None:
        """Returns the canary's loss before the node is started: with the node's first syncs begins another
        story. ``disk``: that one alone was cut, or mounted anew."""
        if self._canaries is None or (cut is None and disk is None):
            return None
        loss = self._canaries.after(host, cut.decided_ns, disk=disk) if cut is not None else None
        for number in range(1, len(host.disks) + 1) if disk is None else (disk,):
            self._canaries.start(host, number)
        return loss
