"""The power cut: whatever a host has not synced is gone."""

from __future__ import annotations

from dataclasses import dataclass

from harness.fleet.base import PowerCut as Cut
from nemesis.steps import Commands, PowerOff, PowerOn, Proof, Scene, StartNode, Trail


@dataclass(frozen=True, slots=True)
class PowerCut:
    """Power off; on undo power on, and the nodes start. Lossy only when bytes were really gone afterwards."""

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
        cuts = {done.step.host: done.cut for done in (*trail.do, *trail.undo) if done.cut}
        uncut = [target.host for target in scene.targets if target.host not in cuts]
        if uncut:
            return Proof(False, f"the power of {', '.join(uncut)} was not cut")
        lost = {host: files for host, cut in cuts.items() if (files := _lost(cut))}
        texts = [_text(host, cut) for host, cut in sorted(cuts.items())]
        return Proof(True, "; ".join(texts), lost)


def _lost(cut: Cut) -> dict[str, int]:
    return {name: loss.lost_bytes for name, loss in sorted(cut.files.items()) if loss.lost_bytes}


def _text(host: str, cut: Cut) -> str:
    took = (cut.lost_ns - cut.decided_ns) / 1e6
    gone = f"{host}: power gone {took:.1f} ms after the decision"
    if not cut.files:
        return f"{gone}; what it lost is counted at power-on"
    files = _lost(cut)
    return f"{gone}, {sum(files.values())} bytes in {len(files)} files lost"
