"""All that a run depends on, and the command that repeats it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from wrackline.broker.rules.profile import profile
from wrackline.simulator.clients.client import Load
from wrackline.simulator.faults.graft import graft
from wrackline.simulator.faults.kinds import DEFAULT_KINDS, ZK08_KINDS, Fault, FaultOptions, Kind
from wrackline.simulator.faults.plan import plan

TOPIC = "t"
UPGRADES = (
    ("kraft35", "kip966"),
    ("zk08", "zk08-kip101"),
    ("zk08", "kip101"),
    ("zk08-kip101", "kip101"),
)
"""From which profile to which nodes can go one by one."""


BOUNDS: Mapping[str, tuple[float, float]] = {
    "seconds": (0.1, 604_800),
    "steps": (1, 1_000_000_000),
    "producers": (0, 100),
    "consumers": (0, 100),
    "askers": (0, 100),
    "weak": (0, 100),
    "produce_every_ms": (0.1, 3_600_000),
    "ask_every_ms": (0.1, 3_600_000),
    "fault_every_ms": (1, 86_400_000),
    "pairs": (0, 1),
    "sequences": (0, 1),
    "max_lossy": (0, 9),
    "max_skew": (0, 0.5),
}
"""Field -> the least and the most that it can be."""
_OPTIONS = {"sequences": "chains"}


@dataclass(frozen=True, slots=True)
class Setup:
    """All that a run depends on. The same Setup gives the same run, byte for byte."""

    seed: int = 0
    seconds: float = 20.0
    """Virtual length of the main phase."""
    steps: int | None = None
    """End the main phase after so many steps of the whole run, if that is earlier."""
    brokers: int = 3
    controllers: int = 1
    profile: str = "kip966"
    upgrade_to: str = ""
    """Nodes are restarted with this profile, one after another; empty: they stay what they are."""
    defects: tuple[str, ...] = ()
    topic: str = TOPIC
    partitions: int = 1
    replication_factor: int = 3
    min_isr: int = 2
    producers: int = 2
    consumers: int = 1
    askers: int = 1
    acks: int = -1
    idempotent: bool = False
    load: tuple[Load, ...] = ()
    """What the clients do beside the plain thing."""
    weak: int = 0
    """Further producers with acks=1: nothing is promised of what they write, but who reads it must not see it
    go."""
    produce_every_ms: float = 100.0
    """Mean pause of a producer."""
    ask_every_ms: float = 400.0
    """Mean pause of an asker."""
    combined: bool = False
    """The first brokers and the controllers are one machine each, and die together."""
    kinds: tuple[Kind, ...] = DEFAULT_KINDS
    fault_every_ms: float = 1_500.0
    pairs: float = 0.25
    sequences: float = 0.35
    """Shares of what is planned (``plan``)."""
    overlap: bool = False
    """Profile zk08: a fault may come while the ISR has yet to recover from another one, which is more than
    the profile survives."""
    max_lossy: int | None = None
    """Lossy faults at a time; None: what the profile promises to survive, MinISR - 1 in kip966, none before
    it."""
    unclean: bool = False
    """unclean.leader.election.enable."""
    drills: bool = False
    """After the faults, ask the whole cluster for what is promised within a time."""
    invariants: bool = True
    liveness: bool = True
    broker: tuple[tuple[str, Any], ...] = ()
    """More fields of BrokerConfig."""
    controller: tuple[tuple[str, Any], ...] = ()
    tcp: bool = True
    """False: messages may also be lost, doubled and overtaken within a connection."""
    codec: bool = False
    """Messages go through the broker's codec."""
    max_skew: float = 0.001
    replay: str = ""
    """The directory of a run on real hosts, whose faults these are."""
    graft: tuple[int, ...] = ()
    """Changes of the plan, one after another, by their numbers (``graft``)."""
    given: tuple[Fault, ...] = ()
    """The faults of that run; what kinds there are and how often they come has no meaning then."""
    keep_faults: tuple[int, ...] | None = None
    """Only these faults of the plan; None: all."""
    keep_clients: tuple[int, ...] | None = None
    """Only these clients, by number; None: all."""

    def check(self) -> None:
        """Raises ValueError for a number that is out of bounds, for what profile zk08 has not, and for an
        upgrade that there is not."""
        for name, (least, most) in BOUNDS.items():
            given = getattr(self, name)
            if given is not None and not least <= given <= most:  # nor for what is no number
                option = f"--{_OPTIONS.get(name, name).replace('_', '-')}"
                raise ValueError(f"{option} {given:g}: give a number from {least:g} to {most:,.12g}")
        if self.upgrade_to and (self.profile, self.upgrade_to) not in UPGRADES:
            known = ", ".join(f"{former} to {later}" for former, later in UPGRADES)
            raise ValueError(
                f"--upgrade-to {self.upgrade_to}: from {self.profile} nobody goes there; there is: {known}"
            )
        if not self.on_zookeeper:
            return
        for error, what in (
            (self.idempotent, "--idempotent: profile zk08 has no idempotent producers; leave it out"),
            (self.combined, "--combined: profile zk08 has no controllers; leave it out"),
            (
                self.controllers != 1 and not self.bridges,
                "--controllers: profile zk08 has none; leave it out, or give --upgrade-to kip101",
            ),
            (bool(self.replay), "--replay: no run on real hosts has had profile zk08; leave it out"),
        ):
            if error:
                raise ValueError(what)

    @property
    def bridges(self) -> bool:
        """Tells whether the cluster goes from ZooKeeper to controllers, which are there from the start."""
        later = bool(self.upgrade_to) and profile(self.upgrade_to).switches.has_controller
        return self.on_zookeeper and later

    @property
    def on_zookeeper(self) -> bool:
        return not profile(self.profile).switches.has_controller

    def plan(self) -> list[Fault]:
        options, until_ms = self.fault_options(), self.seconds * 1000
        faults = plan(self.seed, until_ms, self.partitions, options)
        if self.graft:
            faults = graft(
                self.seed, self.graft, faults, lambda seed: plan(seed, until_ms, self.partitions, options)
            )
        if self.replay:
            faults = list(self.given)
        return [fault for fault in faults if self.keep_faults is None or fault.id in self.keep_faults]

    @property
    def survives(self) -> int:
        """Lossy shutdowns at a time without which nothing is lost."""
        return self.min_isr - 1 if self.profile == "kip966" else 0

    def keeps_promise(self) -> bool:
        """Tells whether nothing that was acknowledged may be lost."""
        within = self.max_lossy is None or self.max_lossy <= self.survives
        within = within and not (self.overlap and self.on_zookeeper)
        return within and self.acks == -1 and not self.unclean

    def fault_options(self) -> FaultOptions:
        lossy = self.survives if self.max_lossy is None else self.max_lossy
        kinds, alone = self.kinds, False
        if self.on_zookeeper:
            alone = not self.overlap
            kinds = tuple(
                kind for kind in (ZK08_KINDS if kinds == DEFAULT_KINDS else kinds) if kind in ZK08_KINDS
            )
        return FaultOptions(kinds, self.fault_every_ms, self.pairs, self.sequences, alone, lossy)

    def command(self) -> str:
        """The command that does this run again."""
        options = [f"wrackline simulate --seed {self.seed}"]
        default = type(self)()
        names = {"kinds": "faults", "sequences": "chains"}
        for item in fields(self):
            value = getattr(self, item.name)
            if item.name in ("seed", "topic", "given") or value == getattr(default, item.name):
                continue
            flag = "--" + names.get(item.name, item.name.replace("_", "-"))
            if item.name == "defects":
                options += [f"--defect {name}" for name in value]
            elif item.name in ("broker", "controller"):
                options += [f"--{item.name}-setting {key}={_plain(setting)}" for key, setting in value]
            elif isinstance(value, bool):
                options.append(flag if value else f"--no-{flag[2:]}")
            elif isinstance(value, tuple):
                options.append(f"{flag} {','.join(str(part) for part in value) or 'none'}")
            else:
                options.append(f"{flag} {value:g}" if isinstance(value, float) else f"{flag} {value}")
        return " ".join(options)


def _plain(value: Any) -> str:
    return str(getattr(value, "value", value))
