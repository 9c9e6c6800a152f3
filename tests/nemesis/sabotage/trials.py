"""Every fault, and how it is sabotaged: docs/nemesis.md shows the table of it.

A fault that is installed and has no trial here fails `test_table`.
"""

from __future__ import annotations

from collections.abc import Mapping

from tests.nemesis.sabotage.sabotages import OF_UNDO, Sabotage, Trial

ONE_HOST = {Sabotage.HALF: "one host"}
CLUSTER = {Sabotage.HALF: "the cluster is meant", Sabotage.OTHER: "the cluster is meant"}
STAYS = {
    Sabotage.AT_ONCE: "what it does stays",
    Sabotage.UNDO_OFF: "nothing is undone",
    Sabotage.UNDO_RAISES: "nothing is undone",
}
MOVES = {Sabotage.AT_ONCE: "its undo waits for the moves"}
PAIR = ("n1", "n3")

ON_HOSTS: Mapping[str, Trial] = {
    "bit-flip": Trial({"fault": "bit-flip"}, PAIR),
    "cpu-pressure": Trial(
        {"fault": "cpu-pressure", "workers": 1, "percent": 30, "nice": -15}, PAIR, hold_s=2.0
    ),
    "crash-loop": Trial({"fault": "crash-loop", "times": 2, "up_s": 0.1}, PAIR),
    "disk-errors": Trial({"fault": "disk-errors"}, PAIR),
    "disk-errors of a disk": Trial({"fault": "disk-errors", "on_disk": 2}, PAIR),
    "disk-full": Trial({"fault": "disk-full"}, PAIR),
    "disk-full of a disk": Trial({"fault": "disk-full", "on_disk": 2}, PAIR),
    "drop-page-cache": Trial({"fault": "drop-page-cache"}, PAIR),
    "evict-cache": Trial({"fault": "evict-cache", "every_s": 0.2}, PAIR),
    "kill": Trial({"fault": "kill"}, PAIR),
    "memory-pressure": Trial({"fault": "memory-pressure", "size_mb": 16}, PAIR),
    "mtu-black-hole": Trial({"fault": "mtu-black-hole"}),
    "oom-kill": Trial({"fault": "oom-kill"}, PAIR),
    "packets": Trial({"fault": "packets", "delay_s": 0.05}),
    "packets of clients": Trial(
        {"fault": "packets", "target": "clients", "delay_s": 0.05}, leaves_out=ONE_HOST
    ),
    "partition": Trial({"fault": "partition"}),
    "partition from clients": Trial({"fault": "partition", "shape": "clients"}, PAIR),
    "partition of clients": Trial({"fault": "partition", "target": "clients"}, leaves_out=ONE_HOST),
    "pause": Trial({"fault": "pause"}, PAIR),
    "power-cut": Trial({"fault": "power-cut"}, PAIR),
    "power-cut of a disk": Trial({"fault": "power-cut", "on_disk": 2}, PAIR),
    "read-only": Trial({"fault": "read-only"}, PAIR),
    "read-only of a disk": Trial({"fault": "read-only", "on_disk": 2}, PAIR),
    "restart": Trial({"fault": "restart"}, PAIR),
    "roll-back": Trial({"fault": "roll-back", "age_s": 0.3}, PAIR),
    "slow-disk": Trial({"fault": "slow-disk"}, PAIR),
    "slow-fsync": Trial({"fault": "slow-fsync", "delay_s": 0.05}, PAIR),
    "stall-connections": Trial({"fault": "stall-connections"}, PAIR),
    "truncate": Trial({"fault": "truncate"}, PAIR),
}
"""On hosts of the fleet netns with two data disks, whose nodes are no brokers. What stays of changed bytes is
what they are; the node must run again."""

ON_CLUSTER: Mapping[str, Trial] = {
    "change-config": Trial(
        {"fault": "change-config", "configs": {"min.insync.replicas": 1}}, leaves_out=CLUSTER
    ),
    "controller-failover": Trial(
        {"fault": "controller-failover"},
        leaves_out=ONE_HOST
        | {
            Sabotage.AT_ONCE: "it is over when it is done",
            Sabotage.UNDO_OFF: "its step wakes the node itself",
            Sabotage.UNDO_RAISES: "its step wakes the node itself",
        },
    ),
    "elect-preferred": Trial({"fault": "elect-preferred"}, leaves_out=CLUSTER | STAYS),
    "messages": Trial(
        {"fault": "messages", "apis": ["Fetch"], "what": "answer", "delay_s": 0.05, "peers": ["broker"]},
        leaves_out=ONE_HOST,
        hold_s=2.0,
    ),
    "recreate-topic": Trial({"fault": "recreate-topic"}, leaves_out=CLUSTER),
    "rolling-restart": Trial({"fault": "rolling-restart"}, leaves_out=ONE_HOST | STAYS),
    "transfer-leadership": Trial({"fault": "transfer-leadership"}, leaves_out=ONE_HOST),
}
"""On three nodes of our broker, each a controller too."""

ON_GROWTH: Mapping[str, Trial] = {
    "add-broker": Trial(
        {"fault": "add-broker"},
        ("n4",),
        leaves_out=ONE_HOST | MOVES | {Sabotage.OTHER: "every other broker runs already"},
        moves=True,
    ),
    "reassign": Trial({"fault": "reassign"}, leaves_out=ONE_HOST | MOVES, moves=True),
    "remove-broker": Trial({"fault": "remove-broker"}, leaves_out=ONE_HOST),
    "replace-broker": Trial({"fault": "replace-broker"}, leaves_out=ONE_HOST),
}
"""On three brokers of ours, a controller, and a spare broker."""

ON_LOG_DIRS: Mapping[str, Trial] = {
    "move-replica": Trial(
        {"fault": "move-replica"},
        leaves_out=ONE_HOST | MOVES | {Sabotage.OTHER: "one broker"},
        moves=True,
    ),
}
"""On a node of Apache Kafka with two log directories (`tests.systems.kafka.test_log_dirs`)."""

ON_TIER: Mapping[str, Trial] = {
    "tier": Trial(
        {"fault": "tier", "mode": "failing", "calls": ["copy"]},
        leaves_out=ONE_HOST | {Sabotage.OTHER: "one broker"},
        hold_s=5.0,
    ),
}
"""On a node of Apache Kafka with a remote tier, nightly (`tests.systems.kafka.test_tier`)."""

ON_SECURED: Mapping[str, Trial] = {
    "quota": Trial({"fault": "quota", "producer_byte_rate": 2000}, PAIR, leaves_out=CLUSTER),
    "rotate-certificates": Trial({"fault": "rotate-certificates"}, PAIR),
    "rotate-credentials": Trial({"fault": "rotate-credentials"}, PAIR, leaves_out=CLUSTER),
}
"""On three brokers of Apache Kafka with TLS and SCRAM, nightly
(`tests.systems.kafka.security.test_clusters`)."""

ON_UPGRADES: Mapping[str, Trial] = {
    "rolling-upgrade": Trial(
        {"fault": "rolling-upgrade", "to": "kip966"},
        PAIR,
        leaves_out={Sabotage.HALF: "its step is one"} | STAYS,
    ),
    "update-feature": Trial(
        {"fault": "update-feature", "feature": "metadata.version", "level": 23}, leaves_out=CLUSTER | STAYS
    ),
}
"""On three nodes of our broker that are of an earlier profile, in this order."""

ON_QUORUM: Mapping[str, Trial] = {
    "remove-controller": Trial({"fault": "remove-controller"}, ("c1",), elsewhere="c2", leaves_out=ONE_HOST),
    "replace-controller": Trial(
        {"fault": "replace-controller"}, ("c1",), elsewhere="c2", leaves_out=ONE_HOST | STAYS
    ),
    "add-controller": Trial(
        {"fault": "add-controller"},
        ("c4",),
        leaves_out=ONE_HOST | STAYS | {Sabotage.OTHER: "every other controller runs already"},
    ),
}
"""On Apache Kafka with three controllers that vote and a spare one, in this order, and nightly."""

ON_PROCESSES: Mapping[str, Trial] = {
    name: ON_HOSTS[name] for name in ("crash-loop", "kill", "pause", "restart")
}
"""On folders of this machine, without root."""

ONE_VM = {Sabotage.HALF: "one machine", Sabotage.OTHER: "one machine"}
ON_VMS: Mapping[str, Trial] = {
    "clock-drift": Trial({"fault": "clock-drift", "percent": 100}, leaves_out=ONE_VM, hold_s=5.0),
    "clock-jump": Trial({"fault": "clock-jump"}, leaves_out=ONE_VM),
    "clock-strobe": Trial({"fault": "clock-strobe"}, leaves_out=ONE_VM),
    "freeze-host": Trial({"fault": "freeze-host"}, leaves_out=ONE_VM),
    "unplug-host": Trial({"fault": "unplug-host"}, leaves_out=ONE_VM),
}
"""On a virtual machine, and nightly."""

WITHOUT: Mapping[str, str] = {
    "expire-session": "needs ZooKeeper; its proof is read in tests/zookeeper/nemesis/test_sessions.py",
    "lazyfs": "needs a mounted LazyFS; tests/nemesis/faults/disks/test_lazyfs.py has one of its own",
}
"""Faults that are not sabotaged here, and why."""

ON_CLUSTERS = {**ON_CLUSTER, **ON_GROWTH, **ON_LOG_DIRS, **ON_TIER, **ON_SECURED, **ON_UPGRADES, **ON_QUORUM}
TRIALS: Mapping[str, Trial] = {**ON_HOSTS, **ON_CLUSTERS, **ON_VMS}
PLACES: Mapping[str, Mapping[str, Trial]] = {
    "`netns`": {**ON_HOSTS, **ON_CLUSTERS},
    "`process`": ON_PROCESSES,
    "`qemu`": ON_VMS,
}
"""Where each is sabotaged, by the fleet."""


def caught(trial: Trial, sabotage: Sabotage) -> str:
    """A cell of the table in docs/nemesis.md."""
    if why := trial.leaves_out.get(sabotage):
        return f"– ({why})"
    return "not restored" if sabotage in OF_UNDO and not trial.moves else "not proved"


def rows() -> list[list[str]]:
    """The table in docs/nemesis.md, with its head."""
    columns = [one for one in Sabotage if one is not Sabotage.NONE]
    found = [["fault", "on", *map(str, columns)]]
    for name, trial in sorted(TRIALS.items()):
        where = ", ".join(place for place, there in PLACES.items() if name in there)
        found.append(
            [
                f"`{trial.fault}`{name.removeprefix(trial.fault)}",
                where,
                *(caught(trial, one) for one in columns),
            ]
        )
    return found
