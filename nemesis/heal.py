"""The healing after the last fault: fleet and system are brought back to health, whatever happened."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from wrackline.fleets.base import ClientsSide, Fleet, FleetError, Remote
from wrackline.nemesis.faults import programs
from wrackline.nemesis.faults.network import iptables, shaping
from wrackline.systems.base import DeployError, Node, NodeDied, System
from wrackline.systems.external.external_cluster import ExternalCluster


class NemesisError(Exception):
    """A fault that could not be undone. The message names the host and what is left."""


class Healer:
    """Power first, then what faults have left on hosts, then the processes: each needs the one before."""

    def __init__(self, fleet: Fleet, system: System) -> None:
        self._fleet = fleet
        self._system = system

    def heal(self) -> list[str]:
        """Heals everything and returns what had to be repaired; empty when all was well. Raises NemesisError
        when something cannot be.

        Nothing is repaired on hosts that are not ours: what the faults' own undo left is on record, and whose
        they are decides."""
        if isinstance(self._system, ExternalCluster):
            return []
        repairs: list[str] = []
        problems: list[str] = []
        with ThreadPoolExecutor(max(1, len(self._system.nodes)), "heal") as pool:
            for check in (self._power, self._left, self._process):
                for node, found in [(node, pool.submit(check, node)) for node in self._system.nodes]:
                    try:
                        repairs += found.result()
                    except (FleetError, DeployError) as error:
                        problems.append(f"{node.host.name}: {error}")
        if isinstance(self._fleet, ClientsSide):
            try:
                repairs += what_is_left(self._fleet.clients)
            except FleetError as error:
                problems.append(str(error))
        if problems:
            raise NemesisError("the fleet could not be healed: " + "; ".join(problems))
        return repairs

    def _power(self, node: Node) -> list[str]:
        if self._fleet.power.is_on(node.host):
            return []
        self._fleet.power.on(node.host)
        return [f"{node.host.name}: power on"]

    def _left(self, node: Node) -> list[str]:
        if node.host.is_folder:  # no fault may leave anything there, and what this machine has is everybody's
            return []
        return what_is_left(self._fleet.remote(node.host))

    def _process(self, node: Node) -> list[str]:
        pid = self._system.pid(node)
        if pid is None:
            why = self._system.last_words(node)
            if node.spare and not why:  # it was never started
                return []
            was = f"{node.host.name}: node {node.node_id} was down{f' ({why})' if why else ''}"
            try:
                self._system.start(node)
            except NodeDied as died:  # its host is well: the system's own matter, which liveness judges
                return [f"{was}, and died when it was started: {died}"]
            return [f"{was}, started"]
        # Harmless to a process that was not stopped.
        state = (
            self._fleet.remote(node.host).run(f"cut -d ' ' -f 3 /proc/{pid}/stat; kill -CONT {pid}").stdout
        )
        return [f"{node.host.name}: process {pid} woken up"] if state.strip() == "T" else []


def what_is_left(remote: Remote) -> list[str]:
    """Ends programs and removes rules and shaping that faults have left where these commands are carried out;
    a line for each. Raises FleetError."""
    where = programs.below(remote.host.root)
    ended = remote.run(programs.left(where)).stdout.split()
    for one in ended:
        remote.run(programs.end(*one.split("/", 1), where=where))
    removed = iptables.parse_chains(remote.run(iptables.LIST_CHAINS).stdout)
    for fault_id in removed:
        remote.run(iptables.remove_everywhere(fault_id))
    bands = remote.run(shaping.LIST_BANDS).stdout.split()
    for device in bands:
        remote.run(shaping.remove_bands(device))
    repairs = [f"program {one} ended" for one in ended]
    repairs += [f"chain {iptables.chain(fault_id)} removed" for fault_id in removed]
    repairs += [f"shaping of {device} removed" for device in bands]
    return [f"{remote.host.name}: {repair}" for repair in repairs]
