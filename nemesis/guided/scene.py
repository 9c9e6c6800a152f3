"""Plays a scene on hosts: its steps in terms of the cluster that is there.

What the simulator does to single messages a proxy on the host that answers does here, or a link is cut.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wrackline.fleets.base import Disk
from wrackline.nemesis.faults.admin_steps import Entity
from wrackline.nemesis.faults.cluster.admin import ChangeConfig, TransferLeadership
from wrackline.nemesis.faults.cluster.growth import Reassign
from wrackline.nemesis.faults.disks.disk_errors import Intercepted
from wrackline.nemesis.faults.disks.power import PowerCut
from wrackline.nemesis.faults.kafka_apis import Api
from wrackline.nemesis.faults.network.messages import Act, Messages, What
from wrackline.nemesis.faults.network.mtu_black_hole import BlackHole
from wrackline.nemesis.faults.network.packets import Packets
from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.network.shaping import Shaping
from wrackline.nemesis.faults.processes.processes import Kill, Pause, Restart
from wrackline.nemesis.faults.shapes import Direction, Link, Shape
from wrackline.nemesis.faults.steps import Fault
from wrackline.nemesis.guided import steps
from wrackline.nemesis.guided.steps import Aim, GuidedError, GuidedStep, Needs
from wrackline.scenarios import language
from wrackline.scenarios.language import CONTROLLER, F1, F2, FOURTH, NOBODY, Hold, Kept, L, Role, Scene
from wrackline.systems.base import PartitionState

FAULTS: Mapping[language.Fault, Fault] = {
    language.Fault.KILL: Kill(),
    language.Fault.PAUSE: Pause(),
    language.Fault.RESTART: Restart(),
    language.Fault.POWER_CUT: PowerCut(),
    language.Fault.POWER_CUT_WIPED: PowerCut(Disk.WIPED),
    language.Fault.POWER_CUT_STALE: PowerCut(Disk.STALE, age_s=None),
    language.Fault.CUT_FROM_BROKERS: Partition(Shape.ISOLATE, controllers=False),
    language.Fault.ISOLATED: Partition(Shape.ISOLATE),
    language.Fault.EACH_OTHER: Partition(Shape.LINK),
    language.Fault.DEAF: Partition(Shape.ISOLATE, controllers=False, direction=Direction.IN),
    language.Fault.DEAF_TO_IT: Partition(Shape.LINK, direction=Direction.IN),
    language.Fault.NO_CLIENTS: Partition(Shape.CLIENTS),
    language.Fault.SHORT_ANSWERS: BlackHole(Shape.LINK, Direction.IN, 600),
    language.Fault.SLOW_IN: Packets(
        Shaping(rate_kbit=160), direction=Direction.IN, links=(Link.BROKER_BROKER,)
    ),
    # strace counts no further than to that number.
    language.Fault.FAILING_WRITE: Intercepted(
        "disk-errors", ("pwritev", "pwritev2"), "error=EIO", every=65_535
    ),
    language.Fault.MIN_ISR_1: ChangeConfig(Entity.TOPIC, (("min.insync.replicas", "1"),)),
    language.Fault.REASSIGN: Reassign(),
    language.Fault.REASSIGN_QUICKLY: Reassign(settle_s=12.0),
    language.Fault.TRANSFER_LEADERSHIP: TransferLeadership(),
}
KEPT: Mapping[Kept, tuple[Api, What]] = {
    Kept.FETCH_REQUEST: (Api.FETCH, What.REQUEST),
    Kept.FETCH_ANSWER: (Api.FETCH, What.ANSWER),
    Kept.PROPOSAL: (Api.ALTER_PARTITION, What.REQUEST),
    Kept.PROPOSAL_ANSWER: (Api.ALTER_PARTITION, What.ANSWER),
}


def needs(scene: Scene) -> Needs:
    return Needs(scene.replicas, scene.apart, scene.one_controller, scene.brokers)


def on_hosts(scene: Scene, aim: Aim) -> Sequence[GuidedStep]:
    """The steps of the scene in this cluster. Raises GuidedError when it does not fit."""
    return tuple(_Hosts(scene, aim).translated(scene.steps))


class _Hosts:
    def __init__(self, scene: Scene, aim: Aim) -> None:
        self._aim = aim
        chosen = aim.healthy(replicas=scene.replicas)
        self._name = f"{aim.topic}-{aim.partition}"
        if scene.apart:
            refuse_shared(aim)
        followers = [node for node in chosen.replicas if node != chosen.leader][:2]
        self._cast: dict[Role, int] = {
            L: chosen.leader,
            F1: followers[0],
            F2: followers[-1],
            NOBODY: -1,
        }
        if scene.one_controller:
            self._cast[CONTROLLER] = self._only_controller()
        if scene.brokers > scene.replicas:
            self._cast[FOURTH] = self._free_broker()
        self._partitions = aim.like(chosen)
        self._left: list[str] = []

    def translated(self, scene: Sequence[language.Step]) -> Iterator[GuidedStep]:
        for step in scene:
            match step:
                case language.Do():
                    self._left.append(step.id)
                    yield self._inject(step)
                case language.Undo(ids=ids):
                    healed = ids or tuple(sorted(self._left))
                    self._left = [one for one in self._left if one not in healed]
                    yield steps.Heal(healed)
                    if not ids:
                        yield self._await(language.FULL_ISR)
                case language.Wait():
                    yield steps.Sleep(step.seconds, step.why)
                case language.Until():
                    yield self._await(step)
                case language.UntilBroker(role=role, alive=alive):
                    node = self._cast[role]
                    what = "registered again" if alive else "fenced"
                    yield steps.AwaitBroker(f"node {node} {what}", node, alive)
                case language.Flush(role=role):
                    yield steps.Flush((self._host(role),))
                case language.KeepDisk(role=role):
                    yield steps.KeepDisk((self._host(role),))
                case language.ElectUncleanly():
                    yield steps.ElectUncleanly(self._aim.topic, self._partitions)
                case language.WhereController(role=role, steps=inner):
                    if self._aim.nodes[self._cast[role]].is_controller:
                        yield from self.translated(inner)

    def _inject(self, step: language.Do) -> steps.Inject:
        hosts = tuple(map(self._host, step.roles))
        if isinstance(step.fault, Hold):
            api, what = KEPT[step.fault.kept]
            peer = self._host(step.fault.of)
            fault = Messages((api,), what, Act.HOLD, (peer,), step.fault.delay_s)
            return steps.Inject(step.id, fault, hosts, f"{api} {what}s of {peer}")
        return steps.Inject(step.id, FAULTS[step.fault], hosts, self._role(step))

    def _role(self, step: language.Do) -> str:
        """Returns the role of a step's nodes as the history has it."""
        if "{" in step.words:
            return step.words.format(name=self._name)
        replicas = step.words or " and ".join(role for role in step.roles if role is not CONTROLLER)
        controller = [str(CONTROLLER)] if CONTROLLER in step.roles else []
        return ", ".join([f"{replicas} of {self._name}"] * bool(replicas) + controller)

    def _await(self, step: language.Until) -> steps.Await:
        what = f"{step.text(self._cast)} ({self._name})"

        def met(seen: PartitionState) -> bool:
            return step.holds(seen, self._cast)

        return steps.Await(what, self._aim.topic, self._partitions, met, step.patience_s)

    def _host(self, role: Role) -> str:
        return self._aim.host(self._cast[role])

    def _only_controller(self) -> int:
        result = {id_: node.host.name for id_, node in self._aim.nodes.items() if node.is_controller}
        if len(result) != 1:
            raise GuidedError(
                f"this schedule cuts the leader of {self._name} from the controller: it needs exactly one, "
                f"there are {', '.join(result.values()) or 'none'}: fleet.controllers must be 1"
            )
        return next(iter(result))

    def _free_broker(self) -> int:
        mine = self._cast.values()
        for id_, node in self._aim.nodes.items():
            if node.is_broker and not node.spare and id_ not in mine:
                return id_
        raise GuidedError(
            f"this schedule moves a replica of {self._name} to a fourth broker: fleet.brokers is 3"
        )


def refuse_shared(aim: Aim) -> None:
    shared = [node.host.name for node in aim.nodes.values() if node.is_broker and node.is_controller]
    if shared:
        raise GuidedError(
            "this schedule takes two brokers at once and needs the controllers on hosts of their own; "
            f"{', '.join(shared)} are both: fleet.combined must be false"
        )
