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

from wrackline.broker.model.types import FlushMode, Placement, RecoveryStrategy
from wrackline.simulator.clients.client import LOADS, Load
from wrackline.simulator.faults.kinds import DEFAULT_KINDS, OF_SWARMS, Kind
from wrackline.simulator.faults.setup import Setup

_NEWER = ("sessions", "times", "wrap")
"""Loads for which there is nothing in profile zk08."""
_EDGES: Load = "edges"
_PROFILES = (
    *(("kip966", ""),) * 11,
    *(("kraft35", "kip966"),) * 3,
    ("kraft35", ""),
    ("kip101", ""),
    ("zk08", ""),
    ("zk08-kip101", ""),
    ("zk08", "zk08-kip101"),
    ("zk08", "kip101"),
)
"""(profile, upgraded to), the newest most often."""
_CODEC = 0.2
"""Share of the seeds whose messages go through the broker's codec."""


def swarm(base: Setup, *, any_profile: bool = False) -> Setup:
    """``base`` in the surroundings its seed draws. What ``base`` says itself (settings of brokers and
    controllers, kinds of faults, loads, more than three brokers or one controller, a length below the one
    drawn) stays; its profile, too, unless ``any_profile``."""
    draw = Random(f"{base.seed}/swarm")
    if any_profile:
        profile, later = Random(f"{base.seed}/swarm/profile").choice(_PROFILES)
        base = replace(base, profile=profile, upgrade_to=later)
    base = _of_logs(_further(base))
    if Random(f"{base.seed}/codec").random() < _CODEC:
        base = replace(base, codec=True)
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
    # A producer that was forgotten may begin anywhere: what it sends again is stored again.
    expires = "producer_id_expiration_ms" in dict(base.broker)
    drawn = replace(
        base,
        seconds=min(base.seconds, 15.0 if calm else draw.choice((6.0, 10.0))),
        brokers=base.brokers if base.brokers != 3 else draw.choice((3, 3, 4, 5)),
        partitions=base.partitions if base.partitions != 1 else draw.choice((1, 1, 1, 2)),
        producers=draw.choice((1, 2)),
        weak=draw.choice((0, 1)),
        produce_every_ms=draw.choice((60.0, 120.0, 120.0, 500.0)),
        ask_every_ms=draw.choice((60.0, 200.0)),
        idempotent=base.idempotent or (draw.random() < 0.5 and not base.on_zookeeper and not expires),
        kinds=_some_of(draw, (*base.kinds, *OF_SWARMS) if base.kinds == DEFAULT_KINDS else base.kinds),
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


def _further(base: Setup) -> Setup:
    """What is drawn of the log, of fetches, of recovery and of the clients' load."""
    draw = Random(f"{base.seed}/swarm/more")
    limit = draw.choice((150, 600, 5_000))
    broker: dict[str, Any] = {}
    if draw.random() < 0.5:
        broker["flush_mode"] = draw.choice(tuple(FlushMode))
        broker |= {"flush_messages": draw.choice((1, 2, 7)), "flush_ms": draw.choice((20, 200, 1_000))}
    if draw.random() < 0.3:
        broker |= {"replica_fetch_max_bytes": limit, "replica_fetch_response_max_bytes": 2 * limit}
    if draw.random() < 0.15:
        broker["fetch_max_bytes"] = limit
    if draw.random() < 0.2:
        broker["num_replica_fetchers"] = 2
    if draw.random() < 0.3:
        broker["max_incremental_fetch_session_cache_slots"] = draw.choice((0, 1, 3))
        broker["min_incremental_fetch_session_eviction_ms"] = draw.choice((0, 500))
    if draw.random() < 0.2:
        broker["high_watermark_checkpoint_interval_ms"] = draw.choice((50, 300, 5_000))
    controller: dict[str, Any] = {}
    if draw.random() < 0.4 and not base.on_zookeeper:
        controller["unclean_recovery_strategy"] = draw.choice(
            (RecoveryStrategy.BALANCED, RecoveryStrategy.MANUAL)
        )
    if draw.random() < 0.2:
        controller["leader_imbalance_check_interval_ms"] = draw.choice((400, 2_000))
    if Random(f"{base.seed}/swarm/placement").random() < 0.3 and not base.on_zookeeper:
        controller["placement"] = Placement.STRIPED
    words = [word for word in LOADS if word != _EDGES and not (base.on_zookeeper and word in _NEWER)]
    load = tuple(word for word in words if draw.random() < 0.25)
    if Random(f"{base.seed}/swarm/edges").random() < 0.4 and not base.on_zookeeper:
        load += (_EDGES,)
    return replace(
        base,
        load=base.load or load,
        drills=True,
        broker=_beside(broker, base.broker),
        controller=_beside(controller, base.controller),
    )


def _of_logs(base: Setup) -> Setup:
    """What is drawn of producers and of snapshots of the metadata: limits that no short run meets else."""
    draw = Random(f"{base.seed}/swarm/logs")
    broker: dict[str, Any] = {}
    controller: dict[str, Any] = {}
    if draw.random() < 0.2:
        controller["producer_id_block"] = 2
    if draw.random() < 0.15:
        controller["metadata_log_max_record_bytes_between_snapshots"] = 600
        broker["metadata_log_max_record_bytes_between_snapshots"] = 600
    if draw.random() < 0.15:
        broker |= {"producer_id_expiration_ms": 1_500, "producer_id_expiration_check_interval_ms": 250}
    if base.on_zookeeper:
        controller.clear()
    return replace(base, broker=_beside(broker, base.broker), controller=_beside(controller, base.controller))


def _some_of(draw: Random, kinds: tuple[Kind, ...]) -> tuple[Kind, ...]:
    """All of them, or about three of four."""
    if draw.random() < 0.4:
        return kinds
    return tuple(kind for kind in kinds if draw.random() < 0.75) or kinds


def _beside(drawn: dict[str, Any], chosen: tuple[tuple[str, Any], ...]) -> tuple[tuple[str, Any], ...]:
    return tuple({**drawn, **dict(chosen)}.items())
