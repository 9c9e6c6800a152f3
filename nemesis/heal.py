"""After the last fault: brings fleet and system back to health, whatever happened."""

from __future__ import annotations

from wrackline.fleets.base import Fleet, FleetError
from wrackline.nemesis.faults import chains, programs, shaping
from wrackline.systems.base import DeployError, Node, System
from wrackline.systems.external.standing import StandingSystem


class NemesisError(Exception):
    """Something a fault did could not be undone. The message names the host and what is left."""


class Healer:
    """Power first, then what faults have left on hosts, then the processes: each needs the one before."""

    def __init__(self, fleet: Fleet, system: System) -> None:
        self._fleet = fleet
        self._system = system

    def heal(self) -> list[str]:
        """What had to be repaired; empty when all was well. Raises NemesisError when something cannot be.

        Nothing is repaired on hosts that are not ours: what the faults' own undo left is on record, and whose
        they are decides."""
        if isinstance(self._system, StandingSystem):
            return []
        repairs: list[str] = []
        problems: list[str] = []
        for check in (self._power, self._programs, self._chains, self._bands, self._process):
            for node in self._system.nodes:
                try:
                    repairs += check(node)
                except (FleetError, DeployError) as wrong:
                    problems.append(f"{node.host.name}: {wrong}")
        if problems:
            raise NemesisError("the fleet could not be healed: " + "; ".join(problems))
        return repairs

    def _power(self, node: Node) -> list[str]:
        if self._fleet.power.is_on(node.host):
            return []
        self._fleet.power.on(node.host)
        return [f"{node.host.name}: power on"]

    def _programs(self, node: Node) -> list[str]:
        if node.host.is_folder:  # no fault may start any there, and /run is everybody's
            return []
        remote = self._fleet.remote(node.host)
        left = remote.run(programs.LIST_PROGRAMS).stdout.split()
        for one in left:
            remote.run(programs.end(*one.split("/", 1)))
        return [f"{node.host.name}: program {one} ended" for one in left]

    def _chains(self, node: Node) -> list[str]:
        if node.host.is_folder:  # those of this machine are none of its own
            return []
        remote = self._fleet.remote(node.host)
        left = chains.parse_chains(remote.run(chains.LIST_CHAINS).stdout)
        for fault_id in left:
            remote.run(chains.remove_everywhere(fault_id))
        return [f"{node.host.name}: chain {chains.chain(fault_id)} removed" for fault_id in left]

    def _bands(self, node: Node) -> list[str]:
        remote = self._fleet.remote(node.host)
        left = remote.run(shaping.LIST_BANDS).stdout.split()
        for device in left:
            remote.run(shaping.remove_bands(device))
        return [f"{node.host.name}: shaping of {device} removed" for device in left]

    def _process(self, node: Node) -> list[str]:
        pid = self._system.pid(node)
        if pid is None:
            why = self._system.last_words(node)
            if node.spare and not why:  # it was never started
                return []
            self._system.start(node)
            return [f"{node.host.name}: node {node.node_id} was down{f' ({why})' if why else ''}, started"]
        # Harmless to a process that was not stopped.
        state = (
            self._fleet.remote(node.host).run(f"cut -d ' ' -f 3 /proc/{pid}/stat; kill -CONT {pid}").stdout
        )
        return [f"{node.host.name}: process {pid} woken up"] if state.strip() == "T" else []
