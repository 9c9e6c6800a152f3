"""Do the parts of a specification fit each other? Whatever one part says of another is looked up here.

A fault that can hit nobody, or a plan that has no room in the run, would otherwise show after the hosts
were made: as a fault that was not proved, or as a run without any.
"""

from __future__ import annotations

from collections.abc import Iterator

from wrackline.fleets.abilities import Ability
from wrackline.harness.specification.errors import Misfits
from wrackline.harness.specification.sections import Sections, TopicSpec
from wrackline.harness.specification.virtual_time import refusals
from wrackline.nemesis.faults.cluster.admin import ElectPreferred
from wrackline.nemesis.faults.cluster.features import UpdateFeatureSpec
from wrackline.nemesis.faults.processes.restarts import RollingUpgradeSpec
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.guided.catalogue import NEEDS
from wrackline.nemesis.schedule import plan
from wrackline.nemesis.spec import ONCE, FollowSpec, NemesisSpec, RandomSpec, SpecError
from wrackline.nemesis.targets.words import OF_STATE, SPARES, Cast, CastTopic, never, plain
from wrackline.plugins.capabilities import Capability

COORDINATED = {
    "group": {Capability.GROUPS, Capability.TRANSACTIONS, Capability.SHARE_GROUPS},
    "transaction": {Capability.TRANSACTIONS},
    "share": {Capability.SHARE_GROUPS},
}
"""What a coordinator may be of -> what a workload needs of the system that has such a thing."""
MIN_ISR = "min.insync.replicas"
OF_THE_RUN = ("unclean.leader.election.enable", "unclean.recovery.strategy", "flush.messages")
"""Settings of a topic that the judge knows of the run as a whole (harness.run.live.setup)."""
MOST_PARTITIONS_HERE = 200
LONGEST_HERE_S = 86_400
"""On hosts that are made here."""
LONGEST_TOPIC = 249
"""Characters that a topic's name may have in Kafka."""
LONGEST_TEST_ID = 64


def check(spec: Sections) -> None:
    """Raises Misfits with a line for each mistake: the key, what is wrong, what would do."""
    mistakes = [
        *refusals(spec),
        *_topics(spec),
        *_fleet(spec),
        *_small_enough(spec),
        *_workload(spec),
        *_replicas(spec),
        *_room_to_move(spec),
        *_possible(spec),
        *_targets(spec),
        *_guided(spec),
        *_plan(spec),
    ]
    if mistakes:
        raise Misfits(*mistakes)


def _sections(spec: Sections) -> Iterator[tuple[str, TopicSpec]]:
    """Yields each topic with the name of its section."""
    for number, topic in enumerate(spec.every_topic):
        yield f"topics[{number}]" if spec.topics else "topic", topic


def _topics(spec: Sections) -> Iterator[str]:
    """Yields whether several topics can be told apart, and are promised the same."""
    if spec.topics and not spec.workload.takes_topics:
        yield f"topics: the workload {spec.workload.name} uses one topic: give it as topic"
    first, *others = spec.every_topic
    names: set[str] = set()
    metrics: dict[str, str] = {}
    for where, topic in _sections(spec):
        other = metrics.setdefault(topic.name.replace(".", "_"), topic.name)
        if topic.name in names:
            yield f"{where}.name: there is a topic {topic.name!r} already: give each one of its own"
        elif other != topic.name and spec.system.broker_names() is None:
            yield (
                f"{where}.name: no broker takes {topic.name!r} beside {other!r}: '.' and '_' are one in the "
                "names of metrics"
            )
        names.add(topic.name)
    for number, topic in enumerate(others, 1):
        for name in OF_THE_RUN:
            if topic.configs.get(name) != first.configs.get(name):
                yield (
                    f"topics[{number}].configs.{name}: it must be the same for all topics, since the run's "
                    "one contract is taken from it"
                )


def _workload(spec: Sections) -> Iterator[str]:
    """Yields what the workload needs of the system and of the topics."""
    workload, system = spec.workload, spec.system
    if lacks := sorted(workload.needs - system.offers):
        yield (
            f"workload.name {workload.name} needs {' and '.join(lacks)}, which system.kind {system.kind} "
            "as it is set here lacks; `wrackline list parts` lists other workloads and systems"
        )
    if workload.plaintext_only and system.secured:
        key = f"workload.{workload.plaintext_only}"
        yield f"{key} speak plaintext alone, and system.security asks for more: leave {key} out"
    for misfit in workload.misfits({topic.name: topic.partitions for topic in spec.every_topic}):
        yield f"workload.{misfit}"
    for where, topic in _sections(spec):
        for name in workload.topic_configs.keys() & topic.configs.keys():
            yield f"{where}.configs.{name}: the workload {workload.name} sets it, leave it out"


def _fleet(spec: Sections) -> Iterator[str]:
    """Yields whether there are hosts for what needs some, and none for what runs already."""
    runs_already = spec.system.broker_names() is not None
    if not runs_already and spec.fleet.hosts and (why := spec.system.misfit(spec.fleet.zookeeper)):
        yield why
    if spec.fleet.spare_controllers and (why := spec.system.without_voters()):
        yield f"fleet.spare_controllers is {spec.fleet.spare_controllers}: {why}"
    if spec.fleet.hosts and not spec.fleet.controllers and not spec.fleet.zookeeper:
        yield "fleet.controllers: 0 goes with fleet.zookeeper: give 1, 3 or 5"
    if runs_already and spec.fleet.hosts:
        yield f"system.kind {spec.system.kind} needs no hosts: leave fleet out, or say fleet: {{kind: none}}"
    if not runs_already and not spec.fleet.hosts:
        yield f"system.kind {spec.system.kind} needs hosts, and fleet.kind {spec.fleet.kind} has none"
    if spec.fleet.disks > 1 and not spec.system.has_log_dirs:
        yield (
            f"fleet.disks is {spec.fleet.disks}, and nodes of this system.kind {spec.system.kind} keep their "
            "data on one disk: leave it out, or take Apache Kafka from 3.7 on"
        )
    if refused := spec.system.refusal(spec.fleet):
        yield refused
    for where, topic in _sections(spec):
        longest = len(spec.system.topic_of("0" * LONGEST_TEST_ID, topic.name))
        if longest > LONGEST_TOPIC:
            yield (
                f"{where}.name is {longest - LONGEST_TOPIC} characters too long: in the cluster the run's id "
                "stands before it"
            )


def _small_enough(spec: Sections) -> Iterator[str]:
    """Yields what is too large for hosts that share this machine; others are the reader's to judge."""
    if not (spec.fleet.hosts and spec.fleet.made_here):
        return
    why = (
        f"hosts of fleet.kind {spec.fleet.kind} share one machine; for more name machines of your own, "
        "fleet.kind inventory, or test a cluster that runs already, system.kind external"
    )
    for key, given, most in (
        (
            "topics: partitions" if spec.topics else "topic.partitions",
            sum(topic.partitions for topic in spec.every_topic),
            MOST_PARTITIONS_HERE,
        ),
        ("workload.duration_s", spec.workload.duration_s, LONGEST_HERE_S),
    ):
        if given > most:
            yield f"{key}: {given:,.12g} is more than {most:,}: {why}"


def _brokers(spec: Sections) -> int | None:
    """Returns how many brokers there are; None: nobody knows before the run."""
    names = spec.system.broker_names()
    return spec.fleet.brokers if names is None else len(names) or None


def _replicas(spec: Sections) -> Iterator[str]:
    brokers = _brokers(spec)
    there = "fleet.brokers is" if spec.fleet.hosts else "those in system.hosts are"
    for where, topic in _sections(spec):
        if brokers is not None and topic.replication_factor > brokers:
            yield (
                f"{where}.replication_factor {topic.replication_factor} needs as many brokers, "
                f"{there} {brokers}"
            )
        if topic.min_insync_replicas > topic.replication_factor:
            yield (
                f"{where}.min_insync_replicas {topic.min_insync_replicas} can never be met: "
                f"{where}.replication_factor is {topic.replication_factor}"
            )
        if MIN_ISR in topic.configs:
            yield (
                f"{where}.configs.{MIN_ISR}: give it as {where}.min_insync_replicas, which the contract is "
                "taken from"
            )


def _room_to_move(spec: Sections) -> Iterator[str]:
    """Faults that move replicas need brokers to move them to."""
    scheduled = [one.inject.fault for one in spec.nemesis.schedule]
    drawn = [one.fault for _, one in _drawn(spec)]
    for key in dict.fromkeys(ONCE.values()):
        used = [name for name in scheduled if ONCE.get(name) == key]
        spares = getattr(spec.fleet, key)
        if len(used) > spares and spec.fleet.hosts:  # else nobody can add any
            names = " and ".join(dict.fromkeys(used))
            yield f"nemesis: {len(used)} times {names} needs as many spare hosts, fleet.{key} is {spares}"
    factor = max(topic.replication_factor for topic in spec.every_topic)
    added = scheduled.count("add-broker")
    brokers = _brokers(spec)
    for name in ("reassign", "remove-broker"):
        if name in (*scheduled, *drawn) and brokers is not None and brokers + added <= factor:
            there = (
                f"fleet.brokers is {brokers}" if spec.fleet.hosts else f"those in system.hosts are {brokers}"
            )
            yield (
                f"nemesis: {name} needs more brokers than topic.replication_factor ({factor}): "
                f"{there}, and {added} are added"
            )


def _possible(spec: Sections) -> Iterator[str]:
    """Faults that cannot be done to such a system, or on such hosts."""
    became = spec
    in_order = sorted(enumerate(spec.nemesis.schedule), key=lambda one: one[1].at_s)
    for number, one in in_order:
        if (why := became.cannot(one.inject)) is not None:
            yield f"nemesis.schedule[{number}]: {why}"
        elif isinstance(one.inject, RollingUpgradeSpec):
            became = spec.model_copy(update={"system": became.system.became(one.inject.to)})
        elif isinstance(one.inject, UpdateFeatureSpec) and not one.inject.refused:
            system = became.system.with_level(one.inject.feature, one.inject.level)
            became = spec.model_copy(update={"system": system})
    for place, fault in _drawn(spec):
        if (why := spec.cannot(fault)) is not None:
            yield f"{place}: {why}"
    if spec.system.broker_names() is None:
        return
    if spec.nemesis.guided is not None:
        yield (
            f"nemesis.guided {spec.nemesis.guided.name}: guided schedules cut single links and directions, "
            "for which there are no commands; use schedule or random"
        )


def _targets(spec: Sections) -> Iterator[str]:
    names = spec.system.broker_names()
    cast = Cast(
        hosts=spec.fleet.hosts if names is None else names,
        brokers=_brokers(spec),
        spares=spec.fleet.spares,
        spare_controllers=spec.fleet.spare_controllers,
        topics={one.name: CastTopic(one.partitions, one.replication_factor) for one in spec.every_topic},
        controllers=spec.fleet.controllers if names is None else None,
        zookeepers=spec.fleet.zookeeper,
        groups=spec.workload.group_names,
        coordinated=[what for what, any_of in COORDINATED.items() if any_of & spec.workload.needs],
    )
    for place, role in _roles(spec):
        if why := never(role, cast):
            yield f"{place}.target {role}: {why}"


def _roles(spec: Sections) -> Iterator[tuple[str, str]]:
    """Yields (where, target) of every fault, as the reader wrote it."""
    for place, fault in _faults(spec):
        follows = place.startswith("nemesis.follow.") and plain(fault.target) in OF_STATE
        if not follows and (fault.fault not in ONCE or fault.target not in SPARES):
            yield place, fault.target  # _room_to_move counts the spare hosts


def _faults(spec: Sections) -> Iterator[tuple[str, FaultSpec]]:
    """Yields (where, settings) of every fault."""
    for number, one in enumerate(spec.nemesis.schedule):
        yield f"nemesis.schedule[{number}]", one.inject
    yield from _drawn(spec)


def _drawn(spec: Sections) -> Iterator[tuple[str, FaultSpec]]:
    """Yields (where, settings) of every fault that is drawn by chance."""
    for where, drawn in spec.nemesis_here.drawn.items():
        for number, fault in enumerate(drawn.faults):
            yield f"nemesis.{where}.faults[{number}]", fault
    if (follow := spec.nemesis_here.follow) is not None:
        for number, fault in enumerate(follow.faults):
            yield f"nemesis.follow.faults[{number}]", fault
        for key, by_state in (("openers", follow.openers), ("also", follow.also)):
            for state, faults in by_state.items():
                for number, fault in enumerate(faults):
                    yield f"nemesis.follow.{key}.{state}[{number}]", fault


def _guided(spec: Sections) -> Iterator[str]:
    guided = spec.nemesis.guided
    if guided is None:
        return
    needs, where = NEEDS[guided.name], f"nemesis.guided {guided.name}"
    matched = [one for one in spec.every_topic if guided.topic in (None, one.name)]
    for ability in (Ability.ROOT, Ability.NETWORK, Ability.POWER):
        if (why := spec.fleet.lacks(ability)) and spec.fleet.hosts:
            yield f"{where} needs {ability}: {why}"
    if not matched:
        names = " and ".join(repr(one.name) for one in spec.every_topic)
        yield (
            f"{where}: there is no topic {guided.topic!r}, the run's {'are' if spec.topics else 'is'} {names}"
        )
    topic = (matched or spec.every_topic)[0]
    if guided.partition >= topic.partitions:
        yield (
            f"{where}: {topic.name} has no partition {guided.partition}: "
            f"topic.partitions is {topic.partitions}"
        )
    if topic.replication_factor < needs.replicas:
        yield (
            f"{where} needs {needs.replicas} replicas: topic.replication_factor is {topic.replication_factor}"
        )
    if needs.apart and spec.fleet.combined:
        yield f"{where} needs the controllers on hosts of their own: fleet.combined must be false"
    if needs.apart and spec.system.has_controllers and not spec.fleet.controllers and spec.fleet.hosts:
        yield f"{where} needs the controller on a host of its own: fleet.controllers must be 1"
    if needs.elections and (why := spec.system.cannot(ElectPreferred.name)):
        yield f"{where}: {why}"
    if needs.one_controller and spec.fleet.controllers != 1:
        yield (
            f"{where} cuts a leader from the only controller: fleet.controllers must be 1, "
            f"not {spec.fleet.controllers}"
        )
    if spec.fleet.brokers < needs.brokers and spec.fleet.hosts:
        yield f"{where} needs {needs.brokers} brokers: fleet.brokers is {spec.fleet.brokers}"
    if guided.at_s >= spec.workload.duration_s:
        yield (
            f"{where} begins at {guided.at_s:g} s, but the run lasts {spec.workload.duration_s:g} s: "
            "let it last longer or the schedule begin earlier"
        )


def _plan(spec: Sections) -> Iterator[str]:
    """Faults that do not fit in the run."""
    nemesis = spec.nemesis_here
    if spec.nemesis.preset is not None and nemesis.lanes == spec.nemesis.lanes:
        yield f"nemesis.preset {spec.nemesis.preset.name}: nothing of it is possible here; {spec.left_out[0]}"
    try:
        plan(nemesis, spec.seed, spec.workload.duration_s)
    except SpecError as error:
        yield str(error)
        return
    if (follow := nemesis.follow) is not None:
        yield from _follow(spec, follow)
    for where, drawn in nemesis.drawn.items():
        alone = NemesisSpec(lanes={"alone": drawn}, quiet=nemesis.quiet)
        if not plan(alone, spec.seed, spec.workload.duration_s).faults:
            yield _no_room(spec, where, drawn)


def _follow(spec: Sections, follow: FollowSpec) -> Iterator[str]:
    """Yields whether there is something to follow, and time to."""
    if not follow.faults:
        yield "nemesis.follow: none of the usual faults is possible here: name some in faults"
    if not follow.states:
        yield "nemesis.follow: no fault that is possible here leads to a state: name some in openers"
    if follow.start_s + follow.tail_s + follow.duration_s[1] >= spec.workload.duration_s:
        yield (
            f"nemesis.follow: no fault fits into the run: the first is drawn at {follow.start_s:g} s and "
            f"lasts up to {follow.duration_s[1]:g} s, {follow.tail_s:g} s at the end are quiet, and "
            f"workload.duration_s is {spec.workload.duration_s:g}: let it last longer"
        )


def _no_room(spec: Sections, where: str, drawn: RandomSpec) -> str:
    return (
        f"nemesis.{where}: no fault fits into the run: the first begins at {drawn.start_s:g} s and lasts "
        f"{drawn.duration_s[0]:g} to {drawn.duration_s[1]:g} s, {drawn.tail_s:g} s at the end are quiet, "
        f"and workload.duration_s is {spec.workload.duration_s:g}: let it last longer"
    )
