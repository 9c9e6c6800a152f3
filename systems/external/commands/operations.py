"""Orders: what a user's own commands can be made to do to a broker, and what proves that they did.

A command is a text for the shell of this machine. ``{host}``, ``{node}`` and the like in it stand for values
of the broker that it is for; ``{{word}}`` is for braces that the shell shall see. Nothing is put into a
command that a shell could take for more than a word.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum


class BrokerCommand(StrEnum):
    """The purpose of a command, by its name in a specification."""

    KILL = "kill"
    START = "start"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    POWER_OFF = "power-off"
    POWER_ON = "power-on"
    PARTITION = "partition"
    HEAL = "heal"
    LOGS = "logs"
    """Prints the broker's log; it breaks nothing."""


UNDOES: Mapping[BrokerCommand, BrokerCommand] = {
    BrokerCommand.KILL: BrokerCommand.START,
    BrokerCommand.STOP: BrokerCommand.START,
    BrokerCommand.PAUSE: BrokerCommand.RESUME,
    BrokerCommand.POWER_OFF: BrokerCommand.POWER_ON,
    BrokerCommand.PARTITION: BrokerCommand.HEAL,
}
"""What breaks, and what mends it."""
REVIVES = (BrokerCommand.START, BrokerCommand.RESUME, BrokerCommand.POWER_ON)
"""After these a broker answers again, some seconds later."""
FAULTS: Mapping[str, BrokerCommand] = {
    "kill": BrokerCommand.KILL,
    "restart": BrokerCommand.STOP,
    "pause": BrokerCommand.PAUSE,
    "power-cut": BrokerCommand.POWER_OFF,
    "partition": BrokerCommand.PARTITION,
}
"""The order that a fault begins with, by the fault's name."""

PLACEHOLDERS = ("host", "node", "address", "port", "others", "test")
SAFE = re.compile(r"[A-Za-z0-9_@%+=:,./-]+")
"""What a shell takes as one plain word, inside quotes and outside."""
_PLACEHOLDER = re.compile(r"(?<![{$])\{([a-z][a-z0-9_]*)\}(?!\})")
_BRACES = re.compile(r"\{(\{[a-z][a-z0-9_]*\})\}")
SAID_CHARS = 200


@dataclass(frozen=True, slots=True)
class Command:
    """One command of the user's."""

    run: str
    probe: str | None = None
    """Exits with 0 as long as what ``run`` did is in force, and with another code otherwise."""
    timeout_s: float = 30.0


@dataclass(frozen=True, slots=True)
class Said:
    """The result of a command."""

    exit_code: int | None
    """None: it did not end in time and was ended."""
    output: str
    """The last line that it said."""

    def __str__(self) -> str:
        how = "it did not end in time" if self.exit_code is None else f"exit code {self.exit_code}"
        return f"{how}: {self.output}" if self.output else how


@dataclass(frozen=True, slots=True)
class Probed:
    """The answer of a command's probe."""

    in_force: bool
    text: str
    """The command, and what came of it."""


def placeholders(text: str) -> tuple[str, ...]:
    """The names of those in a command."""
    return tuple(dict.fromkeys(_PLACEHOLDER.findall(text)))


def render(text: str, values: Mapping[str, str]) -> str:
    """A command for one broker. Raises KeyError for a placeholder without a value."""
    return _BRACES.sub(r"\1", _PLACEHOLDER.sub(lambda found: values[found[1]], text))


def unsafe(values: Iterable[str]) -> list[str]:
    """Returns the values that a shell would take for more than plain words with spaces between them."""
    return [value for value in values if not all(SAFE.fullmatch(word) for word in value.split(" "))]


def carry_out(command: str, timeout_s: float, *, whole: bool = False) -> Said:
    """Run a command in the shell of this machine. It gets a session of its own, so that Ctrl-C in the
    terminal of the run does not end it half-way; when its time is over all that it has started is ended with
    it. What it leaves in the background is not waited for. ``whole``: all that it said, not the last line
    alone."""
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            exit_code: int | None = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            exit_code = None
        output.seek(0)
        said = output.read()
    return Said(exit_code, said.decode(errors="replace") if whole else last_line(said))


def last_line(said: bytes) -> str:
    """The last that is not empty, shortened."""
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1].strip()[:SAID_CHARS] if lines else ""


def shown(command: str) -> str:
    """A command as a message may show it, whole if it is short."""
    line = " ".join(command.split())
    return f"`{line}`" if len(line) <= SAID_CHARS else f"`{line[:SAID_CHARS]}...`"
