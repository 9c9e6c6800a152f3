"""Carries the user's commands out for a broker, and asks the user's probes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wrackline.systems.base import DeployError, Node
from wrackline.systems.external.commands.operations import (
    BrokerCommand,
    Command,
    Probed,
    Said,
    carry_out,
    placeholders,
    render,
    shown,
)


@dataclass(frozen=True, slots=True)
class Known:
    """The facts of a specification on one broker."""

    name: str
    node_id: int
    address: str | None
    """None: as the cluster advertises it."""
    values: Mapping[str, str]
    """For placeholders of one's own."""


@dataclass(frozen=True, slots=True)
class Commander:
    """Every error is a DeployError."""

    commands: Mapping[BrokerCommand, Command]
    known: Mapping[int, Known]
    """By the broker's id."""
    test: str
    """Stands for {test}."""
    hide: Callable[[str], str]
    """Takes secrets out of what is said."""

    def do(self, node: Node, others: tuple[Node, ...], order: BrokerCommand) -> str:
        """Runs a command and returns its result. Raises DeployError when it failed."""
        command = self._command(node, order)
        text = self._rendered(node, others, command.run)
        said = carry_out(text, command.timeout_s)
        told = self._told(text, said, command)
        if said.exit_code != 0:
            raise DeployError(f"{node.host.name}: {order}: {told}")
        return f"{order}: {told}"

    def probe(self, node: Node, others: tuple[Node, ...], order: BrokerCommand) -> Probed:
        """Raises DeployError when it did not end in time."""
        command = self._command(node, order)
        if command.probe is None:
            raise DeployError(f"{node.host.name}: system.commands.{order} has no probe")
        text = self._rendered(node, others, command.probe)
        said = carry_out(text, command.timeout_s)
        told = self._told(text, said, command)
        if said.exit_code is None:
            raise DeployError(f"{node.host.name}: the probe of {order}: {told}")
        return Probed(said.exit_code == 0, told)

    def fetch_log(self, node: Node, others: tuple[Node, ...], into: Path) -> str:
        """Fetches a broker's log; returns what is wrong with it, empty when all is well, or nobody said
        how to have it."""
        if BrokerCommand.LOGS not in self.commands:
            return ""
        command = self.commands[BrokerCommand.LOGS]
        text = self._rendered(node, others, command.run)
        said = carry_out(text, command.timeout_s, whole=True)
        into.write_text(self.hide(said.output))
        if said.exit_code == 0:
            return ""
        return self._told(text, Said(said.exit_code, ""), command)

    def _told(self, text: str, said: Said, command: Command) -> str:
        late = f" of {command.timeout_s:g} s" if said.exit_code is None else ""
        return self.hide(f"{shown(text)}: {said}{late}")

    def _command(self, node: Node, order: BrokerCommand) -> Command:
        if order not in self.commands:
            raise DeployError(
                f"{node.host.name}: there is no command for {order}: give system.commands.{order}"
            )
        return self.commands[order]

    def _rendered(self, node: Node, others: tuple[Node, ...], text: str) -> str:
        known = self.known.get(node.node_id)
        values = {
            "host": node.host.name,
            "node": str(node.node_id),
            "address": known.address if known and known.address else node.host.address,
            "port": str(node.port),
            "others": " ".join(one.host.address for one in others),
            "test": self.test,
            **(known.values if known else {}),
        }
        if lacking := [name for name in placeholders(text) if name not in values]:
            raise DeployError(f"{node.host.name}: {{{lacking[0]}}} has no value for it in {shown(text)}")
        return render(text, values)
