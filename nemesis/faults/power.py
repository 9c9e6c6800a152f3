"""The power cut: whatever a host has not synced is gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from wrackline.fleets.abilities import Ability
from wrackline.fleets.base import PowerCut as Cut
from wrackline.fleets.canary import FOLDER
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.steps import Commands, Done, PowerOff, PowerOn, Proof, Scene, StartNode, Trail


@dataclass(frozen=True, slots=True)
class PowerCut:
    """Power off; on undo power on, and the nodes start.

    Proved when the canary of every host lost what it should; lossy only where bytes of other files were gone
    too.
    """

    @property
    def name(self) -> str:
        return "power-cut"

    @property
    def holds_node(self) -> bool:
        return True

    def commands(self, scene: Scene) -> Commands:
        return Commands(
            do=tuple(PowerOff(target.host) for target in scene.targets),
            undo=tuple(
                step
                for target in scene.targets
                for step in (PowerOn(target.host), StartNode(target.host, target.node_id))
            ),
        )

    def prove(self, scene: Scene, trail: Trail) -> Proof:
        off = {done.step.host: done for done in trail.do if done.cut}
        uncut = [target.host for target in scene.targets if target.host not in off]
        if uncut:
            return Proof(False, f"the power of {', '.join(uncut)} was not cut")
        on = {done.step.host: done for done in trail.undo if done.cut}
        if not trail.undo:
            return Proof(
                False, "; ".join(f"{_gone(host, off[host])}; what it lost shows at power-on" for host in off)
            )
        proved = all(_took_what_it_should(on.get(host)) for host in off)
        texts = [f"{_gone(host, off[host])}, {_text(on.get(host))}" for host in sorted(off)]
        return Proof(proved, "; ".join(texts), _lost_by_host(off, on))


def _took_what_it_should(on: Done | None) -> bool:
    return on is not None and on.canary is not None and on.canary.proved


def _lost_by_host(off: Mapping[str, Done], on: Mapping[str, Done]) -> dict[str, dict[str, int]]:
    """Hosts that lost something. One without files lost nobody knows what: nobody could look."""
    lost: dict[str, dict[str, int]] = {}
    for host in off:
        cut = on[host].cut if host in on else None
        if cut is None or not cut.counted:
            lost[host] = {}
        elif files := _lost(cut):
            lost[host] = files
    return lost


def _lost(cut: Cut) -> dict[str, int]:
    """Bytes by file, without those of the canary: they are no loss of the system's."""
    return {
        name: loss.lost_bytes
        for name, loss in sorted(cut.files.items())
        if loss.lost_bytes and not name.startswith(f"{FOLDER}/")
    }


def _gone(host: str, off: Done) -> str:
    assert off.cut is not None
    took = (off.cut.lost_ns - off.cut.decided_ns) / 1e6
    return f"{host}: power gone {took:.1f} ms after the decision"


def _text(on: Done | None) -> str:
    if on is None or on.cut is None:
        return "and it did not come back: what it lost is not known"
    files = _lost(on.cut)
    counted = (
        f"{sum(files.values())} bytes in {len(files)} files lost" if on.cut.counted else "files not counted"
    )
    return f"{counted}, {on.canary or 'no canary watched it'}"


class PowerCutSpec(FaultSpec):
    """Settings of the fault ``power-cut``."""

    needs: ClassVar[tuple[Ability, ...]] = (Ability.POWER, Ability.DISK)

    fault: Literal["power-cut"]
    """The host loses its power and all unsynced bytes."""

    def build(self) -> PowerCut:
        return PowerCut()
