"""Carries out single steps of faults, on hosts and on the cluster. Power is the stage's own
(`wrackline.nemesis.stage`), since what a host owes us is done when its power is back."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from wrackline.fleets.base import (
    CLIENTS,
    ClientsSide,
    Fleet,
    Host,
    Hypervisor,
    PageCache,
    Remote,
    SwappedDisk,
    Throttle,
)
from wrackline.nemesis.faults import by_command, programs
from wrackline.nemesis.faults.clocks import clocks
from wrackline.nemesis.faults.cluster.admin_executor import AdminExecutor
from wrackline.nemesis.faults.cluster.reassignments import ReassignmentExecutor
from wrackline.nemesis.faults.host_steps import (
    CopyDisk,
    DropPageCache,
    HoldDisk,
    InstallTools,
    OwnKernel,
    PlugHost,
    ReadClock,
    StopHost,
    SwapDisk,
)
from wrackline.nemesis.faults.network import tcp_probe
from wrackline.nemesis.faults.node_state import process_state
from wrackline.nemesis.faults.processes.rolling import Roller
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
    PowerOff,
    PowerOn,
    Roll,
    Shell,
    StartNode,
    Step,
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
        host, power = self._hosts[step.host], self._fleet.power
        match step:
            case Shell(command=command, timeout_s=timeout_s):
                with self.shells[step.host]:
                    return StepResult(step, self._remote(host).run(command, timeout_s=timeout_s).stdout)
            case TcpProbe(address=address, port=port, wait_s=wait_s):
                with self._fleet.entered():
                    return StepResult(step, tcp_probe.knock(address, port, wait_s))
            case TcpProbeFrom():  # not alone: it waits, and changes nothing
                return StepResult(step, self._remote(host).run(tcp_probe.command(step, host.python)).stdout)
            case StartNode(node_id=node_id):
                self._system.start(self._nodes[node_id])
                return StepResult(step, str(self._system.pid(self._nodes[node_id])))
            case DescribeNode(node_id=node_id):
                return StepResult(step, self._describe_node(self._nodes[node_id]))
            case KillNode(node_id=node_id):
                node = self._nodes[node_id]
                before = self._system.pid(node)
                self._system.kill(node)
                return StepResult(step, f"{before} {self._system.pid(node)}")
            case Roll(node_ids=node_ids):
                return StepResult(step, self._roller.roll(step, [self._nodes[one] for one in node_ids]))
            case StopNode(node_id=node_id, timeout_s=timeout_s):
                self._system.stop(self._nodes[node_id], timeout_s=timeout_s)
                return StepResult(step)
            case Join(node_id=node_id):
                return StepResult(step, self._reassignments.join(step, self._nodes[node_id]))
            case AssignReplicas(by_node=by_node):
                return StepResult(step, self._reassignments.assign_replicas(step, self._nodes[by_node]))
            case Evacuate():
                return StepResult(step, self._reassignments.evacuate(step))
            case AwaitReassignment():
                return StepResult(step, self._reassignments.await_reassignment(step))
            case Carry() | Ask():
                return by_command.carried(self._system, self._nodes[step.node_id], step)
            case DropPageCache():
                if not isinstance(power, PageCache):
                    raise self._lacking("drop a page cache")
                return StepResult(step, cut=power.drop_page_cache(host))
            case CopyDisk():
                if not isinstance(power, SwappedDisk):
                    raise self._lacking("copy a disk")
                power.copy_disk(host)
                return StepResult(step)
            case SwapDisk(disk=disk):
                if not isinstance(power, SwappedDisk):
                    raise self._lacking("exchange a disk")
                power.swap_disk(host, disk)
                return StepResult(step)
            case OwnKernel():
                return StepResult(step, clocks.own_kernel(self._fleet.remote(host)))
            case ReadClock():
                return StepResult(step, clocks.read(self._fleet.remote(host), step))
            case HoldDisk(bytes_per_s=bytes_per_s):
                if not isinstance(power, Throttle):
                    raise self._lacking("hold a disk back")
                power.throttle(host, bytes_per_s)
                return StepResult(step)
            case PlugHost(up=up):
                if not isinstance(power, Hypervisor):
                    raise self._lacking("pull a network cable")
                power.link(host, up=up)
                return StepResult(step)
            case StopHost(stopped=stopped):
                if not isinstance(power, Hypervisor):
                    raise self._lacking("stop a machine")
                (power.pause if stopped else power.resume)(host)
                return StepResult(step)
            case InstallTools(node_id=node_id):
                if isinstance(self._system, Furnished):
                    self._system.furnish(self._nodes[node_id])
                return StepResult(step)
            case PowerOff() | PowerOn():
                raise AssertionError(f"{step}: power is switched by the stage")
            case _:
                return StepResult(step, self._admin.carry_out(step, host))

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

    def _lacking(self, what: str) -> FaultError:
        return FaultError(f"the power switch of the fleet {self._fleet.name} cannot {what}")
