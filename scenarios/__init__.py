"""Scenes: each way to lose, fork or stall a log is told once, and played in virtual time and on hosts.

`docs/known-bugs.md` has the table. Every scene is harmless to a right broker. Cuts are between brokers:
the controllers and the clients are reached all the time, unless a scene says otherwise."""

from __future__ import annotations

from wrackline.scenarios import elections, isr, logs, operators, watermark

SCENES = {
    scene.name: scene for family in (logs, elections, watermark, isr, operators) for scene in family.SCENES
}
