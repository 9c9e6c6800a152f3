"""The power of hosts that are machines of somebody's: commands of this machine (IPMI, a cloud, a hypervisor),
or sysrq on the host itself."""

from __future__ import annotations

import re
import shlex
import string
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Protocol, Self

from pydantic import Field, field_validator, model_validator

from wrackline.fleets.base import FleetError, Host, PowerCut
from wrackline.plugins.fields import SECONDS, Strict

TRY_EVERY_S = 0.5


def fields(template: str) -> set[str]:
    """The names in braces. Raises ValueError for what is no template."""
    words = shlex.split(template)
    if not words:
        raise ValueError("an empty command")
    result = set()
    for word in words:
        for _, name, form, conversion in string.Formatter().parse(word):
            if name is not None and (not name.isidentifier() or form or conversion):
                raise ValueError(f"{{{name}}}: a field is the plain name of a variable")
            if name:
                result.add(name)
    return result


def words(template: str, variables: Mapping[str, Any]) -> list[str]:
    """The program and its arguments. The text is taken apart first and filled in then, and no shell sees it:
    whatever a variable holds stays within its word. Raises KeyError."""
    return [word.format_map(variables) for word in shlex.split(template)]


class PowerSpec(Strict):
    """Three commands of this machine, or ``sysrq``. In a command the host's variables of the inventory are
    fields: `{bmc}`. `{host}` is its name there, `{address}` where its SSH answers."""

    off: str | None = None
    """Takes the power away at once: no orderly shutdown."""
    on: str | None = None
    """Gives it back."""
    state: str | None = None
    """Prints whether there is power."""
    on_when: str = r"(?i)\b(on|running)\b"
    """A regular expression that what ``state`` prints matches while there is power."""
    command_s: Annotated[float, Field(gt=0), SECONDS] = 60.0
    """How long a command may take."""
    sysrq: bool = False
    """Your word that these hosts may reset themselves, at once and without a sync. They come back by
    themselves."""
    boot_s: Annotated[float, Field(gt=0), SECONDS] = 300.0
    """How long a host may take until its SSH answers again."""

    @field_validator("off", "on", "state")
    @classmethod
    def _a_template(cls, given: str | None) -> str | None:
        if given is not None:
            fields(given)
        return given

    @field_validator("on_when")
    @classmethod
    def _a_pattern(cls, given: str) -> str:
        try:
            re.compile(given)
        except re.error as wrong:
            raise ValueError(f"{given!r} is no regular expression: {wrong}") from wrong
        return given

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.sysrq == any(self.commands) or (not self.sysrq and not all(self.commands)):
            raise ValueError("give off, on and state, or sysrq: true alone")
        return self

    @property
    def commands(self) -> tuple[str, ...]:
        return tuple(command or "" for command in (self.off, self.on, self.state))

    def missing(self, variables: Mapping[str, Any]) -> list[str]:
        """Fields that a host does not have."""
        return sorted(set().union(*(fields(one) for one in self.commands if one)) - set(variables))


class Way(Protocol):
    """A way to cut and restore the power of a host."""

    boot_s: float

    def off(self, host: Host) -> None:
        """Returns when it has no power. Raises FleetError."""

    def on(self, host: Host) -> None:
        """Begins to give it back. Raises FleetError."""


class ByCommand:
    """The power is switched by the user's commands."""

    def __init__(self, spec: PowerSpec, variables: Mapping[str, Mapping[str, Any]]) -> None:
        """``variables``: by host's name in the fleet."""
        self._spec = spec
        self._off, self._on, self._state = spec.commands
        self._variables = variables
        self.boot_s = spec.boot_s

    def off(self, host: Host) -> None:
        self._call("off", self._off, host)
        deadline = time.monotonic() + self._spec.command_s
        while re.search(self._spec.on_when, said := self._call("state", self._state, host)):
            if time.monotonic() > deadline:
                raise FleetError(
                    f"host {host.called}: it still has power {self._spec.command_s:g} s after power.off; "
                    f"power.state says: {said.strip()}"
                )
            time.sleep(0.05)

    def on(self, host: Host) -> None:
        self._call("on", self._on, host)

    def _call(self, what: str, template: str, host: Host) -> str:
        command = words(template, self._variables[host.name])
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=self._spec.command_s,
                check=False,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise FleetError(
                f"host {host.called}: power.{what} (`{shlex.join(command)}`): {error}"
            ) from error
        if done.returncode != 0:
            said = (done.stderr.strip() or done.stdout.strip() or "it printed nothing").splitlines()[-1]
            raise FleetError(
                f"host {host.called}: power.{what} (`{shlex.join(command)}`) ended with exit code "
                f"{done.returncode}: {said}"
            )
        return done.stdout


RESET = "echo 1 >/proc/sys/kernel/sysrq && { (sleep 0.1; echo b >/proc/sysrq-trigger) >/dev/null 2>&1 & }"
"""The shell's answer leaves before the host goes."""


class BySysrq:
    """The host resets itself, which takes what was not synced as a power cut does."""

    def __init__(
        self, boot_s: float, run: Callable[[Host, str], object], answers: Callable[[Host], bool]
    ) -> None:
        """``answers``: whether a host's SSH does."""
        self._run = run
        self._answers = answers
        self.boot_s = boot_s

    def off(self, host: Host) -> None:
        self._run(host, RESET)
        deadline = time.monotonic() + 10
        while self._answers(host):
            if time.monotonic() > deadline:
                raise FleetError(f"host {host.called}: its SSH still answers 10 s after sysrq b")
            time.sleep(0.1)

    def on(self, host: Host) -> None:
        """Does nothing: the host comes back by itself."""


class InventoryPower:
    """The `PowerSwitch` of hosts that have a way. A host is without power from a cut of ours until we give it
    back."""

    def __init__(
        self,
        way: Way | None,
        life: Callable[[Host], str],
        came_back: Callable[[Host], None],
        forget: Callable[[Host], None],
    ) -> None:
        """``life``: what differs between two lives of a host; raises FleetError while it does not answer.
        ``came_back``: what is to be done on a host then. ``forget``: drops the connection to it."""
        self._way = way
        self._life = life
        self._came_back = came_back
        self._forget = forget
        self._off: dict[str, tuple[PowerCut, str]] = {}
        """By host: the cut, and which life it ended."""
        self._mutex = threading.Lock()

    def cut(self, host: Host) -> PowerCut:
        if self._way is None:
            raise FleetError(f"host {host.called}: there is no way to its power; fleet.power says which")
        with self._mutex:
            if host.name in self._off:
                return self._off[host.name][0]
        life = self._life(host)
        decided_ns = time.monotonic_ns()
        self._way.off(host)
        cut = PowerCut(host.name, decided_ns, time.monotonic_ns(), counted=False)
        self._forget(host)
        with self._mutex:
            self._off[host.name] = (cut, life)
        return cut

    def on(self, host: Host) -> PowerCut | None:
        with self._mutex:
            gone = self._off.get(host.name)
        if gone is None or self._way is None:
            return None
        cut, life = gone
        self._way.on(host)
        deadline, last = time.monotonic() + self._way.boot_s, "nothing"
        while True:
            try:
                if self._life(host) != life:
                    break
                last = "it never lost its power: the first process that ran before power.off runs still"
            except FleetError as silent:
                last = str(silent)
                self._forget(host)
            if time.monotonic() > deadline:
                raise FleetError(
                    f"host {host.called}: not back {self._way.boot_s:g} s after power.on: {last}"
                )
            time.sleep(TRY_EVERY_S)
        self._came_back(host)
        with self._mutex:
            self._off.pop(host.name, None)
        return cut

    def is_on(self, host: Host) -> bool:
        with self._mutex:
            return host.name not in self._off
