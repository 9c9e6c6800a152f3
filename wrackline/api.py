"""The public names of Wrackline: what a plugin, or a run from Python, needs.

Whatever is here stays; whatever is imported from elsewhere in `wrackline` may move. docs/plugins.md says how
a system, a fleet, a fault, a workload and a check are written with these names, and how each is tested.

A run without YAML (needs root, for the hosts)::

    from pathlib import Path
    from wrackline.api import LogSpec, NemesisSpec, PowerCutSpec, ScheduledSpec, Spec, run

    cut = PowerCutSpec(fault="power-cut", target="leader(log-0)")
    spec = Spec(
        name="from-python",
        workload=LogSpec(duration_s=20, rate=100),
        nemesis=NemesisSpec(schedule=(ScheduledSpec(at_s=5, duration_s=4, inject=cut),)),
    )
    print(run(spec, Path("results")).line)
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and mypy; nothing is imported before it is asked for
    from wrackline.checkers.checks.explained_by import By, ExplainedBy, FurtherRows, Spelt
    from wrackline.checkers.checks.finding import Finding, apart, known, seconds
    from wrackline.checkers.checks.places import Places
    from wrackline.checkers.checks.registry import Check, WalkAnomaly, check, found_by, mark
    from wrackline.checkers.checks.walks import Figure, Walk
    from wrackline.checkers.engine.candidates import Candidate, Rows, SendOutcome, Step, is_place, least, lt
    from wrackline.checkers.engine.spark.masters import SparkUnavailable
    from wrackline.checkers.exact.judgement import End, Judgement, Part
    from wrackline.checkers.exact.search.search import search as linearizable
    from wrackline.checkers.inputs.runs import AnalysisError
    from wrackline.checkers.inputs.table import NONE, Bools, Ints, bools
    from wrackline.checkers.models.checker import Checker, Found, OperationError
    from wrackline.checkers.models.loading import load as load_model
    from wrackline.checkers.models.loading import load_decider
    from wrackline.checkers.models.protocol import REFUSED, Model, ModelError, OneOf, Operation, Outcome
    from wrackline.checkers.verdict.anomaly import Promise
    from wrackline.fleets.base import (
        FileLoss,
        Fleet,
        FleetError,
        Host,
        PowerCut,
        PowerSwitch,
        Remote,
        Result,
        Stream,
    )
    from wrackline.fleets.netns.fleet import NetnsFleet
    from wrackline.fleets.netns.spec import NetnsSpec
    from wrackline.fleets.none.spec import NoFleetSpec
    from wrackline.fleets.qemu.fleet import QemuFleet
    from wrackline.fleets.qemu.spec import QemuSpec
    from wrackline.fleets.spec import FleetSpec
    from wrackline.harness.extend.pytest_plugin import Judge
    from wrackline.harness.extend.python import run
    from wrackline.harness.extend.rehearsal import RehearsalFailed, anomalies_in, rehearse
    from wrackline.harness.extend.scenario import Cluster, History, ScenarioFailed
    from wrackline.harness.run.judge import Judged
    from wrackline.harness.run.live.outcome import CannotRecord, Interrupted
    from wrackline.harness.specification.sections import ContractSpec, Thresholds, TopicSpec
    from wrackline.harness.specification.spec import Spec, SpecError, load, parse
    from wrackline.history.model import Event, Record, Type
    from wrackline.nemesis.faults.cluster.growth import AddBrokerSpec, ReassignSpec
    from wrackline.nemesis.faults.disks.power import PowerCutSpec
    from wrackline.nemesis.faults.network.partitions import PartitionSpec
    from wrackline.nemesis.faults.processes.processes import KillSpec, PauseSpec, RestartSpec
    from wrackline.nemesis.faults.shapes import Direction, Link, Shape
    from wrackline.nemesis.faults.spec import FaultSpec
    from wrackline.nemesis.faults.steps import (
        Commands,
        DescribeNode,
        Fault,
        FaultContext,
        FaultError,
        Look,
        PowerOff,
        PowerOn,
        ProbeLog,
        Proof,
        Shell,
        StartNode,
        StepResult,
        StopNode,
        Target,
        TcpProbe,
        TcpProbeFrom,
        Way,
    )
    from wrackline.nemesis.spec import GuidedSpec, NemesisSpec, RandomSpec, ScheduledSpec
    from wrackline.plugins.capabilities import Capability
    from wrackline.plugins.fields import MILLISECONDS, SECONDS, Duration, Lax, Strict
    from wrackline.plugins.registry import PluginError
    from wrackline.systems.administration import Reassigner
    from wrackline.systems.base import (
        About,
        ClusterState,
        DeployError,
        Featured,
        Node,
        PartitionState,
        Place,
        Refusal,
        ReplicaLog,
        StoredRecord,
        System,
    )
    from wrackline.systems.base import TopicSpec as WantedTopic
    from wrackline.systems.cluster_client import ClusterClient
    from wrackline.systems.external.spec import ExternalSpec
    from wrackline.systems.kafka.spec import KafkaSpec
    from wrackline.systems.kafka.system import KafkaSystem
    from wrackline.systems.spec import Configured, Layout, SystemSpec, Waits
    from wrackline.systems.wrackline.spec import WracklineSpec
    from wrackline.systems.wrackline.system import WracklineSystem
    from wrackline.workloads.log import ClientsSpec, LogSpec, LogWorkload, Workload
    from wrackline.workloads.log.processes import Context, Ender, Poller, Process
    from wrackline.workloads.log.senders import Sender
    from wrackline.workloads.pace import Slot

# A name's home is imported when the name is: a fault need not wait for the judge, and the marks of a check
# run in Spark's workers, where there are neither fleets nor systems. `public=private` where the names differ.
_HOMES = {
    "wrackline.checkers.checks.finding": "Finding apart known seconds",
    "wrackline.checkers.checks.places": "Places",
    "wrackline.checkers.checks.walks": "Figure Walk",
    "wrackline.checkers.inputs.table": "Bools Ints NONE bools",
    "wrackline.checkers.checks.explained_by": "By ExplainedBy FurtherRows Spelt",
    "wrackline.checkers.checks.registry": "Check WalkAnomaly check found_by mark",
    "wrackline.checkers.inputs.runs": "AnalysisError",
    "wrackline.checkers.exact.judgement": "End Judgement Part",
    "wrackline.checkers.exact.search.search": "linearizable=search",
    "wrackline.checkers.models.checker": "Checker Found OperationError",
    "wrackline.checkers.models.loading": "load_model=load load_decider",
    "wrackline.checkers.models.protocol": "Model ModelError OneOf Operation Outcome REFUSED",
    "wrackline.checkers.engine.spark.masters": "SparkUnavailable",
    "wrackline.checkers.engine.candidates": "Candidate Rows SendOutcome Step is_place least lt",
    "wrackline.checkers.verdict.anomaly": "Promise",
    "wrackline.fleets.base": "FileLoss Fleet FleetError Host PowerCut PowerSwitch Remote Result Stream",
    "wrackline.fleets.netns.fleet": "NetnsFleet",
    "wrackline.fleets.netns.spec": "NetnsSpec",
    "wrackline.fleets.none.spec": "NoFleetSpec",
    "wrackline.fleets.qemu.fleet": "QemuFleet",
    "wrackline.fleets.qemu.spec": "QemuSpec",
    "wrackline.fleets.spec": "FleetSpec",
    "wrackline.harness.extend.python": "run",
    "wrackline.harness.extend.pytest_plugin": "Judge",
    "wrackline.harness.extend.rehearsal": "RehearsalFailed anomalies_in rehearse",
    "wrackline.harness.extend.scenario": "Cluster History ScenarioFailed",
    "wrackline.harness.run.judge": "Judged",
    "wrackline.harness.run.live.outcome": "CannotRecord Interrupted",
    "wrackline.harness.specification.sections": "ContractSpec Thresholds TopicSpec",
    "wrackline.harness.specification.spec": "Spec SpecError load parse",
    "wrackline.history.model": "Event Record Type",
    "wrackline.nemesis.faults.cluster.growth": "AddBrokerSpec ReassignSpec",
    "wrackline.nemesis.faults.network.partitions": "PartitionSpec",
    "wrackline.nemesis.faults.disks.power": "PowerCutSpec",
    "wrackline.nemesis.faults.processes.processes": "KillSpec PauseSpec RestartSpec",
    "wrackline.nemesis.faults.shapes": "Direction Link Shape",
    "wrackline.nemesis.faults.spec": "FaultSpec",
    "wrackline.nemesis.faults.steps": (
        "Commands DescribeNode Fault FaultContext FaultError Look PowerOff PowerOn ProbeLog "
        "Proof Shell StartNode StepResult StopNode Target TcpProbe TcpProbeFrom Way"
    ),
    "wrackline.nemesis.spec": "GuidedSpec NemesisSpec RandomSpec ScheduledSpec",
    "wrackline.plugins.capabilities": "Capability",
    "wrackline.plugins.fields": "Duration Lax MILLISECONDS SECONDS Strict",
    "wrackline.plugins.registry": "PluginError",
    "wrackline.systems.administration": "Reassigner",
    "wrackline.systems.base": (
        "About ClusterState DeployError Featured Node PartitionState Place Refusal ReplicaLog StoredRecord "
        "System WantedTopic=TopicSpec"
    ),
    "wrackline.systems.cluster_client": "ClusterClient",
    "wrackline.systems.kafka.spec": "KafkaSpec",
    "wrackline.systems.kafka.system": "KafkaSystem",
    "wrackline.systems.spec": "Configured Layout SystemSpec Waits",
    "wrackline.systems.external.spec": "ExternalSpec",
    "wrackline.systems.wrackline.spec": "WracklineSpec",
    "wrackline.systems.wrackline.system": "WracklineSystem",
    "wrackline.workloads.log": "ClientsSpec LogSpec LogWorkload Workload",
    "wrackline.workloads.log.processes": "Context Ender Poller Process",
    "wrackline.workloads.log.senders": "Sender",
    "wrackline.workloads.pace": "Slot",
}
_PLACES = {
    public: (module, private or public)
    for module, names in _HOMES.items()
    for public, _, private in (name.partition("=") for name in names.split())
}
CONSTANTS = {
    "Bools": "A column of truths, which a mark's test returns: a numpy array with an element for each row.",
    "Ints": "A column of integers: a numpy array with an element for each row; NONE where nothing is known.",
    "Lax": "For a field that is a tuple or an enum: YAML can only write something that becomes one.",
    "MILLISECONDS": "Annotation of a number of milliseconds: the field takes ``3s`` too.",
    "NONE": "What stands in a column of a `Candidate` where nothing is known; `lt` and `least` know it.",
    "REFUSED": "The answer of a model's step that the object cannot take.",
    "Place": "A partition: (topic, number).",
    "Rows": "What a mark's test is given: candidates in numpy, the same as `Candidate[Ints]`.",
    "SECONDS": "Annotation of a number of seconds: the field takes ``3m`` too.",
}
"""What is meant by the names that can have no docstring."""


_FORMER = {
    "Done": "StepResult",
    "Knock": "TcpProbe",
    "KnockFrom": "TcpProbeFrom",
    "LookAtNode": "DescribeNode",
    "Scene": "FaultContext",
    "Trail": "ProbeLog",
}
"""Names until 1.0, by which faults of others still import."""


def __getattr__(name: str) -> Any:
    try:
        module, known_as = _PLACES[_FORMER.get(name, name)]
    except KeyError:
        raise AttributeError(f"wrackline.api has no {name!r}; `wrackline.api.__all__` lists all") from None
    return getattr(import_module(module), known_as)


__all__ = [
    "MILLISECONDS",
    "NONE",
    "REFUSED",
    "SECONDS",
    "About",
    "AddBrokerSpec",
    "AnalysisError",
    "Bools",
    "By",
    "Candidate",
    "CannotRecord",
    "Capability",
    "Check",
    "Checker",
    "ClientsSpec",
    "Cluster",
    "ClusterClient",
    "ClusterState",
    "Commands",
    "Configured",
    "Context",
    "ContractSpec",
    "DeployError",
    "DescribeNode",
    "Direction",
    "Duration",
    "End",
    "Ender",
    "Event",
    "ExplainedBy",
    "ExternalSpec",
    "Fault",
    "FaultContext",
    "FaultError",
    "FaultSpec",
    "Featured",
    "Figure",
    "FileLoss",
    "Finding",
    "Fleet",
    "FleetError",
    "FleetSpec",
    "Found",
    "FurtherRows",
    "GuidedSpec",
    "History",
    "Host",
    "Interrupted",
    "Ints",
    "Judge",
    "Judged",
    "Judgement",
    "KafkaSpec",
    "KafkaSystem",
    "KillSpec",
    "Lax",
    "Layout",
    "Link",
    "LogSpec",
    "LogWorkload",
    "Look",
    "Model",
    "ModelError",
    "NemesisSpec",
    "NetnsFleet",
    "NetnsSpec",
    "NoFleetSpec",
    "Node",
    "OneOf",
    "Operation",
    "OperationError",
    "Outcome",
    "Part",
    "PartitionSpec",
    "PartitionState",
    "PauseSpec",
    "Place",
    "Places",
    "PluginError",
    "Poller",
    "PowerCut",
    "PowerCutSpec",
    "PowerOff",
    "PowerOn",
    "PowerSwitch",
    "ProbeLog",
    "Process",
    "Promise",
    "Proof",
    "QemuFleet",
    "QemuSpec",
    "RandomSpec",
    "ReassignSpec",
    "Reassigner",
    "Record",
    "Refusal",
    "RehearsalFailed",
    "Remote",
    "ReplicaLog",
    "RestartSpec",
    "Result",
    "Rows",
    "ScenarioFailed",
    "ScheduledSpec",
    "SendOutcome",
    "Sender",
    "Shape",
    "Shell",
    "Slot",
    "SparkUnavailable",
    "Spec",
    "SpecError",
    "Spelt",
    "StartNode",
    "Step",
    "StepResult",
    "StopNode",
    "StoredRecord",
    "Stream",
    "Strict",
    "System",
    "SystemSpec",
    "Target",
    "TcpProbe",
    "TcpProbeFrom",
    "Thresholds",
    "TopicSpec",
    "Type",
    "Waits",
    "Walk",
    "WalkAnomaly",
    "WantedTopic",
    "Way",
    "Workload",
    "WracklineSpec",
    "WracklineSystem",
    "anomalies_in",
    "apart",
    "bools",
    "check",
    "found_by",
    "is_place",
    "known",
    "least",
    "linearizable",
    "load",
    "load_decider",
    "load_model",
    "lt",
    "mark",
    "parse",
    "rehearse",
    "run",
    "seconds",
]
