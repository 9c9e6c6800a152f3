"""A run whose main phase somebody else drives, step by step: the fixtures of pytest (docs/pytest.md).

Hosts, deployment, clients, healing, final read, tearing down and verdict are those of `wrackline run`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pydantic import ValidationError

from wrackline.fleets.base import Fleet
from wrackline.harness.run.judge import Judged, broken_down, judge
from wrackline.harness.run.live.live import GUIDED_S, LiveRun
from wrackline.harness.run.live.outcome import Options
from wrackline.harness.run.live.progress import Progress
from wrackline.harness.run.runner import finish, opened
from wrackline.harness.specification.build import aimed
from wrackline.harness.specification.check import ask_clients, ask_system
from wrackline.harness.specification.spec import Spec, SpecError
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.interactive import NemesisByHand
from wrackline.nemesis.spec import FAULT
from wrackline.systems.base import ClusterState, DeployError, Node
from wrackline.workloads.log.tally import Counts

SHOWN_FINDINGS = 3
LOOK_S = 0.1
HEALTHY_S = 3.0
"""The first fault does not begin before clients have worked for so long: a judge wants to see the asked rate
reached without one."""


class ScenarioFailed(Exception):
    """Hosts, cluster or clients did not come about, or not in time. One line: what, and what was seen
    last."""


class Cluster:
    """The cluster of a scenario."""

    def __init__(self, live: LiveRun) -> None:
        self.system = live.parts.system
        """All that can be asked of it, and done to it."""
        self.topic = live.spec.every_topic[0].name
        """What the topic of the clients, the first of several, is called in the cluster."""
        self._fleet = live.parts.fleet

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.system.nodes

    @property
    def bootstrap(self) -> str:
        """``host:port,...``: reachable inside ``network()``."""
        return self.system.bootstrap()

    def network(self) -> AbstractContextManager[None]:
        """Opens the sockets of this thread in the network of the hosts, inside."""
        return self._fleet.entered()

    def state(self) -> ClusterState:
        """Returns what brokers say now. Raises DeployError when none answers."""
        return self.system.describe()

    def leader(self, partition: int = 0, *, within_s: float = 30.0) -> Node:
        """The node that leads the partition. Raises ScenarioFailed when there is none in time."""
        result: list[Node] = []

        def led(state: ClusterState) -> bool:
            seen = state.partition(self.topic, partition)
            result[:] = [node for node in self.nodes if seen is not None and node.node_id == seen.leader]
            return bool(result)

        self.wait_until(led, f"{self.topic}-{partition} had no leader", within_s=within_s)
        return result[0]

    def wait_until(
        self, holds: Callable[[ClusterState], bool], otherwise: str, *, within_s: float = 30.0
    ) -> ClusterState:
        """The first state of which ``holds`` is true. Raises ScenarioFailed, with the words of
        ``otherwise`` and with what was seen last, when there is none in time."""
        deadline, last = time.monotonic() + within_s, "nothing"
        while time.monotonic() < deadline:
            try:
                state = self.system.describe(timeout_s=2.0)
                if holds(state):
                    return state
                last = str(state)
            except DeployError as nobody:
                last = str(nobody)
            time.sleep(LOOK_S)
        raise ScenarioFailed(f"{otherwise} within {within_s:g} s; last seen: {last}")


class History:
    """Clients at work, and the record of all they do."""

    def __init__(self, live: LiveRun, nemesis: NemesisByHand, given: Spec) -> None:
        self.run_dir = live.run_dir
        """The folder of the run."""
        self._live, self._nemesis, self._given = live, nemesis, given
        topics = zip(given.every_topic, live.spec.every_topic, strict=True)
        self._called = {one.name: called.name for one, called in topics}
        self.began_s = time.monotonic()
        """When the main phase began, by the monotonic clock."""

    @property
    def counts(self) -> Counts:
        """Operations by their outcome, and records acknowledged and read, until now."""
        assert self._live.workload is not None
        return self._live.workload.counts()

    def wait(self, acknowledged: int, *, within_s: float = 60.0) -> None:
        """Waits until so many records more are acknowledged than are now. Raises ScenarioFailed when they are
        not in time."""
        before = self.counts.acked_records
        if not self._live.wait(
            within_s, until=lambda: self.counts.acked_records - before >= acknowledged, patient=False
        ):
            got = self.counts.acked_records - before
            raise ScenarioFailed(f"{got} of {acknowledged} records were acknowledged within {within_s:g} s")

    def sleep(self, seconds: float) -> None:
        """Lets the clients work for a while."""
        self._live.wait(seconds, patient=False)

    def to_the_end(self) -> None:
        """Waits until the main phase has lasted as long as the specification says, and its plan is
        through."""
        self.sleep(self.began_s + self._live.spec.workload.duration_s - time.monotonic())
        if self._live.plan.guided is not None:
            self._live.wait(GUIDED_S, until=lambda: self._nemesis.wait(0), patient=False)

    @contextmanager
    def fault(self, fault: str | FaultSpec, **settings: Any) -> Iterator[None]:
        """The fault is in force inside: ``history.fault("kill", target="leader(log-0)")``. Raises SpecError
        for settings that are wrong or a fault that is not possible here, and NemesisError when it could not
        be done."""
        spec = fault if isinstance(fault, FaultSpec) else _fault(fault, settings)
        if why := self._given.cannot(spec):
            raise SpecError(why)
        self.sleep(self.began_s + HEALTHY_S - time.monotonic())
        with self._nemesis.injected(aimed(spec, self._called)):
            yield


def _fault(name: str, settings: dict[str, Any]) -> FaultSpec:
    try:
        return FAULT.validate_python({"fault": name, **settings})
    except ValidationError as error:
        raise SpecError(*(one["msg"].removeprefix("Value error, ") for one in error.errors())) from error


class Scenario:
    """One run, in steps that are taken in order: ``up``, ``deploy``, ``drive``, ``judge``; ``close`` at any
    time."""

    def __init__(self, spec: Spec, results: Path, progress: Progress | None = None) -> None:
        """Raises SpecError, DeployError, FleetError and CannotRecord, before anything is made."""
        ask_clients(spec, spec.name)
        ask_system(spec, spec.name)
        self._given = spec
        self._folder, self._main = ExitStack(), ExitStack()
        options = Options(results, progress=progress or Progress())
        self.live = self._folder.enter_context(opened(spec, options))
        self._folder.enter_context(self.live.interrupts.watching())
        self._history: History | None = None
        self._ended = False
        self._judged: Judged | None = None

    def up(self) -> Fleet:
        """The hosts. Raises ScenarioFailed, as the next two."""
        self._step(self.live.prepare)
        self._step(self.live.bring_up)
        return self.live.parts.fleet

    def deploy(self) -> Cluster:
        self._step(self.live.deploy)
        return Cluster(self.live)

    def drive(self) -> History:
        """Clients, until they are warm; then the plan of the specification begins, if it has one."""
        self._step(self._enter_main)
        if self._history is None:
            raise ScenarioFailed("; ".join(self.live.notes) or "no client came to work")
        return self._history

    def _enter_main(self) -> None:
        nemesis = self._main.enter_context(self.live.driving(NemesisByHand))
        if isinstance(nemesis, NemesisByHand):
            self._history = History(self.live, nemesis, self._given)

    def _step(self, step: Callable[[], None]) -> None:
        if not self.live.attempt("set-up", step):
            raise ScenarioFailed(self.live.account.troubles[-1])

    @property
    def judged(self) -> Judged | None:
        """Returns the verdict; None as long as nobody has asked for it."""
        return self._judged

    def judge(self) -> Judged:
        """Lets the load and the plan of the specification go on to their end, heals, reads everything back,
        removes the hosts, judges. The second time the same again. Raises SparkUnavailable and AnalysisError.
        """
        if self._judged is not None:
            return self._judged
        assert self._history is not None, "nothing was driven"
        self._history.to_the_end()
        live = self.live
        live.attempt("drive", self._main.close)
        finish(live)
        self._end()
        outcome = live.outcome()
        self._judged = (
            judge([outcome.run_dir])[0] if outcome.driven else broken_down(outcome.run_dir, outcome.troubles)
        )
        return self._judged

    def close(self) -> None:
        """End what is under way, without waiting for anything, and remove the hosts. Idempotent."""
        with self.live.interrupts.shielded():
            try:
                self.live.attempt("drive", self._abandon)
            finally:
                self._end()
        self._folder.close()

    def _abandon(self) -> None:
        with suppress(KeyboardInterrupt):  # as a second Ctrl-C in `wrackline run`
            self._main.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self.live.end()


def in_words(judged: Judged) -> str:
    """The verdict, why it is so, the first findings of every anomaly that counts, and where the report is."""
    said = [judged.line, *(f"  {reason}" for reason in judged.verdict.get("reasons", ()))]
    result = [
        one for one in judged.verdict.get("anomalies", ()) if one["meaning"] == "violation" and one["count"]
    ]
    for anomaly in result:
        said.append(f"  {anomaly['anomaly']}, {anomaly['count']} found:")
        said += [f"    {line}" for line in _explanations(judged.run_dir, anomaly["anomaly"])]
    said.append(f"  report: {judged.report or 'could not be written'}")
    return "\n".join(said)


def _explanations(run_dir: Path, anomaly: str) -> list[str]:
    rows = pq.read_table(
        run_dir / "findings.parquet", columns=["explanation"], filters=[("anomaly", "=", anomaly)]
    )
    return [str(one) for one in rows.column("explanation")[:SHOWN_FINDINGS].to_pylist()]
