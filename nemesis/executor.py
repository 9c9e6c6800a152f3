"""Carries out single steps of faults, on hosts and on the cluster. Power is the stage's own
(`wrackline.nemesis.stage`), since what a host owes us is done when its power is back."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from wrackline.fleets.base import (
    CLIENTS,
    ClientsSide,
    DiskPower,
    Fleet,
    Host,
    Hypervisor,
    PageCache,
    Remote,
    SwappedDisk,
    Throttle,
)
from wrackline.nemesis.faults import by_command, programs
from wrackline.nemesis.faults.admin_steps import AdminStep
from wrackline.nemesis.faults.clocks import clocks
from wrackline.nemesis.faults.cluster.admin_executor import AdminExecutor
from wrackline.nemesis.faults.cluster.reassignments import ReassignmentExecutor
from wrackline.nemesis.faults.host_steps import (
    CopyDisk,
    CutDisk,
    DropPageCache,
    HoldDisk,
    InstallTools,
    OwnKernel,
    PlugHost,
    ReadClock,
    RestoreDisk,
    StopHost,
    SwapDisk,
)
from wrackline.nemesis.faults.network import tcp_probe
from wrackline.nemesis.faults.node_state import process_state
from wrackline.nemesis.faults.processes.rolling import Roller
from wrackline.nemesis.faults.step import NodeStep, Step
from wrackline.nemesis.faults.steps import (
    Ask,
    AssignReplicas,
    AwaitReassignment,
    Carry,
    DescribeNode,
    Evacuate,
    FaultError,
    Join,
    KillNode,
    Roll,
    Shell,
    StartNode,
    StepResult,
    StopNode,
    Target,
    TcpProbe,
    TcpProbeFrom,
)
from wrackline.systems.base import Furnished, Node, System


def hosts_of(fleet: Fleet, system: System) -> dict[str, Host]:
    """Returns the hosts where steps can be carried out, by name: those of the system, and the clients'
    machine."""
    hosts = {node.host.name: node.host for node in system.nodes}
    return hosts | ({CLIENTS: fleet.clients.host} if isinstance(fleet, ClientsSide) else {})


def clients_of(fleet: Fleet) -> Target | None:
    """The machine that the clients are on; None where no fault can have its network. The fleet's bridge is
    there, so it hands on what hosts send to each other."""
    if not isinstance(fleet, ClientsSide):
        return None
    host = fleet.clients.host
    return Target(
        host=CLIENTS,
        address=host.address,
        node_id=0,
        port=0,
        data_dir="",
        is_broker=False,
        python=host.python,
        programs=programs.below(host.root),
        hands_on=True,
    )


class StepExecutor:
    """Safe to use from several threads."""

    def __init__(self, fleet: Fleet, system: System, topics: Sequence[str]) -> None:
        self._fleet = fleet
        self._system = system
        self._reassignments = ReassignmentExecutor(system, topics)
        self._admin = AdminExecutor(fleet, system, topics)
        self._roller = Roller(system, topics)
        self._hosts = hosts_of(fleet, system)
        self._nodes: dict[int, Node] = {node.node_id: node for node in system.nodes}
        self.shells = {host: threading.Lock() for host in self._hosts}
        """One command of ours at a time: iptables fails to list chains while another changes them."""

    def carry_out(self, step: Step) -> StepResult:
        """Raises FleetError, DeployError, FaultError or OSError when it cannot be done."""
        match step:
            case Carry() | Ask():
                return by_command.carried(self._system, self._nodes[step.node_id], step)
            case DropPageCache(host=host):
                if not isinstance(switch := self._fleet.power, PageCache):
                    raise self._lacking("drop a page cache")
                return StepResult(step, cut=switch.drop_page_cache(self._hosts[host]))
            case CutDisk(host=host, number=number):
                return StepResult(step, cut=self._disk_power.cut_disk(self._hosts[host], number))
            case RestoreDisk(host=host, number=number):
                return StepResult(step, cut=self._disk_power.restore_disk(self._hosts[host], number))
            case NodeStep() if not isinstance(step, AdminStep):
                return StepResult(step, self._on_node(step, self._nodes[step.node_id]))
        return StepResult(step, self._on_host(step, self._hosts[step.host]))

    def _on_host(self, step: Step, host: Host) -> str:
        """Carries out a step that is about a host, or about the cluster, and returns its output."""
        power = self._fleet.power
        match step:
            case AdminStep():
                return self._admin.carry_out(step, host)
            case Shell(command=command, timeout_s=timeout_s):
                with self.shells[step.host]:
                    return self._remote(host).run(command, timeout_s=timeout_s).stdout
            case TcpProbe(address=address, port=port, wait_s=wait_s):
                with self._fleet.entered():
                    return tcp_probe.probe_tcp(address, port, wait_s, tcp_probe.RTT_AT)
            case TcpProbeFrom():  # not alone: it waits, and changes nothing
                return self._remote(host).run(tcp_probe.command(step, host.python)).stdout
            case Roll(node_ids=node_ids):
                return self._roller.roll(step, [self._nodes[one] for one in node_ids])
            case AwaitReassignment():
                return self._reassignments.await_reassignment(step)
            case OwnKernel():
                return clocks.own_kernel(self._fleet.remote(host))
            case ReadClock():
                return clocks.read(self._fleet.remote(host), step)
            case CopyDisk():
                if not isinstance(power, SwappedDisk):
                    raise self._lacking("copy a disk")
                power.copy_disk(host)
            case SwapDisk(disk=disk):
                if not isinstance(power, SwappedDisk):
                    raise self._lacking("exchange a disk")
                power.swap_disk(host, disk)
            case HoldDisk(bytes_per_s=bytes_per_s):
                if not isinstance(power, Throttle):
                    raise self._lacking("hold a disk back")
                power.throttle(host, bytes_per_s)
            case PlugHost(up=up):
                if not isinstance(power, Hypervisor):
                    raise self._lacking("pull a network cable")
                power.link(host, up=up)
            case StopHost(stopped=stopped):
                if not isinstance(power, Hypervisor):
                    raise self._lacking("stop a machine")
                (power.pause if stopped else power.resume)(host)
            case _:
                raise AssertionError(f"{step}: power is switched by the stage")
        return ""

    def _on_node(self, step: NodeStep, node: Node) -> str:
        """Carries out a step that is about a node, and returns its output."""
        system = self._system
        match step:
            case StartNode():
                system.start(node)
                return str(system.pid(node))
            case DescribeNode():
                return self._describe_node(node)
            case KillNode():
                before = system.pid(node)
                system.kill(node)
                return f"{before} {system.pid(node)}"
            case StopNode(timeout_s=timeout_s):
                system.stop(node, timeout_s=timeout_s)
            case Join():
                return self._reassignments.join(step, node)
            case AssignReplicas(by_node=by_node):
                return self._reassignments.assign_replicas(step, self._nodes[by_node])
            case Evacuate():
                return self._reassignments.evacuate(step)
            case InstallTools() if isinstance(system, Furnished):
                system.furnish(node)
        return ""

    def _describe_node(self, node: Node) -> str:
        pid = self._system.pid(node)
        if pid is None:
            return "None"
        stat = self._remote(node.host).run(f"cat /proc/{pid}/stat 2>/dev/null || true").stdout
        state = process_state(stat)
        return "None" if state is None else f"{pid} {state}"

    def _remote(self, host: Host) -> Remote:
        if host.name == CLIENTS and isinstance(self._fleet, ClientsSide):
            return self._fleet.clients
        return self._fleet.remote(host)

    @property
    def _disk_power(self) -> DiskPower:
        """Raises FaultError where no disk can be taken."""
        if not isinstance(power := self._fleet.power, DiskPower):
            raise self._lacking("take a disk from a host that stays on")
        return power

    def _lacking(self, what: str) -> FaultError:
        return FaultError(f"the power switch of the fleet {self._fleet.name} cannot {what}")
