"""Swarm testing (Groce et al., 2012): every seed draws the surroundings of its run too, not only its faults.

One setting for all runs finds what that setting makes likely, and nothing else: with sessions of three
seconds nobody is replaced while a write of two and a half waits. So each seed leaves out some kinds of
faults, and draws its own pace, time-outs, load and number of brokers. The draw depends on the seed alone,
never on the defects.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

from wrackline.simulator.faults.kinds import Kind
from wrackline.simulator.faults.setup import Setup


def swarm(base: Setup) -> Setup:
    """``base`` in the surroundings its seed draws. What ``base`` says itself (settings of brokers and
    controllers, kinds of faults, more than three brokers or one controller, a length below the one drawn)
    stays."""
    draw = Random(f"{base.seed}/swarm")
    session_ms = draw.choice((800, 1_500, 1_500, 3_000))
    broker = {
        "heartbeat_interval_ms": session_ms // 6,
        "replica_lag_time_max_ms": draw.choice((500, 1_000, 2_000, 6_000)),
        "replica_fetch_wait_max_ms": draw.choice((100, 300, 500)),
        "replica_fetch_backoff_ms": draw.choice((50, 200)),
        "request_timeout_ms": draw.choice((1_000, 3_000)),
    }
    calm = draw.random() < 0.6
    """Sequences one after the other; else everything at once."""
    drawn = replace(
        base,
        seconds=min(base.seconds, 15.0 if calm else draw.choice((6.0, 10.0))),
        brokers=base.brokers if base.brokers != 3 else draw.choice((3, 3, 4)),
        partitions=base.partitions if base.partitions != 1 else draw.choice((1, 1, 1, 2)),
        producers=draw.choice((1, 2)),
        weak=draw.choice((0, 1)),
        produce_every_ms=draw.choice((60.0, 120.0, 120.0, 500.0)),
        ask_every_ms=draw.choice((60.0, 200.0)),
        idempotent=base.idempotent or (draw.random() < 0.5 and not base.on_zookeeper),
        kinds=_some_of(draw, base.kinds),
        fault_every_ms=draw.choice((1_500.0, 2_500.0, 4_500.0)) if calm else draw.choice((400.0, 800.0)),
        pairs=0.1 if calm else 0.3,
        sequences=0.8 if calm else 0.4,
        tcp=draw.random() < 0.8,
        broker=_beside(broker, base.broker),
        controller=_beside({"session_timeout_ms": session_ms}, base.controller),
    )
    if drawn.controllers == 1 and not base.on_zookeeper and draw.random() < 0.15:
        drawn = replace(drawn, controllers=3, combined=draw.random() < 0.5)
    return drawn


def _some_of(draw: Random, kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
    """All of them, or about three of four."""
    if draw.random() < 0.4:
        return kinds
    return tuple(kind for kind in kinds if draw.random() < 0.75) or kinds


def _beside(drawn: dict[str, Any], chosen: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    return tuple({**drawn, **dict(chosen)}.items())
