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

from wrackline.checkers.evidence import Window, apart, findings, having, place, say, seconds, shown
from wrackline.checkers.packets import NONE as _NONE
from wrackline.checkers.packets import Bools as _Bools
from wrackline.checkers.packets import Rows, bools
from wrackline.checkers.registry import Check, Evidence, check, mark
from wrackline.checkers.runs import AnalysisError
from wrackline.checkers.session import SparkUnavailable
from wrackline.checkers.suspects import is_place, least, lt
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
from wrackline.fleets.spec import FleetSpec
from wrackline.harness.extend.python import run
from wrackline.harness.extend.rehearsal import RehearsalFailed, anomalies_in, rehearse
from wrackline.harness.run.judge import Judged
from wrackline.harness.run.outcome import CannotRecord, Interrupted
from wrackline.harness.specification.sections import ContractSpec, Thresholds, TopicSpec
from wrackline.harness.specification.spec import Spec, SpecError, load, parse
from wrackline.history.model import Event, Record, Type
from wrackline.nemesis.faults.growth import AddBrokerSpec, ReassignSpec
from wrackline.nemesis.faults.network import Direction, PartitionSpec, Shape
from wrackline.nemesis.faults.power import PowerCutSpec
from wrackline.nemesis.faults.processes import KillSpec, PauseSpec, RestartSpec
from wrackline.nemesis.faults.spec import FaultSpec
from wrackline.nemesis.faults.steps import (
    Commands,
    Done,
    Fault,
    FaultError,
    Knock,
    KnockFrom,
    PowerOff,
    PowerOn,
    Proof,
    Scene,
    Shell,
    StartNode,
    StopNode,
    Target,
    Trail,
    Way,
)
from wrackline.nemesis.spec import GuidedSpec, NemesisSpec, RandomSpec, ScheduledSpec
from wrackline.plugins.fields import MILLISECONDS as _MILLISECONDS
from wrackline.plugins.fields import SECONDS as _SECONDS
from wrackline.plugins.fields import Duration, Strict
from wrackline.plugins.fields import Lax as _Lax
from wrackline.plugins.registry import PluginError
from wrackline.systems.base import (
    About,
    ClusterState,
    DeployError,
    Node,
    PartitionState,
    Refusal,
    ReplicaLog,
    StoredRecord,
    System,
)
from wrackline.systems.base import Place as _Place
from wrackline.systems.base import TopicSpec as WantedTopic
from wrackline.systems.cluster_client import ClusterClient
from wrackline.systems.reassigning import Reassigner
from wrackline.systems.spec import Configured, Layout, SystemSpec
from wrackline.systems.wrackline.spec import WracklineSpec
from wrackline.systems.wrackline.system import WracklineSystem
from wrackline.workloads.log import ClientsSpec, LogSpec, LogWorkload, Workload
from wrackline.workloads.log.processes import Context, Ender, Poller, Process
from wrackline.workloads.log.senders import Sender
from wrackline.workloads.pace import Slot

Bools = _Bools
"""A column of truths: what a mark's test returns, a numpy array of booleans with an element for each row."""
NONE = _NONE
"""What stands in a column of `Rows` where nothing is known. Compare with `lt` and `least`, which know it."""
Place = _Place
"""A partition: (topic, number)."""
Lax = _Lax
"""For a field that is a tuple or an enum: YAML can only write something that becomes one."""
SECONDS = _SECONDS
"""Annotation of a number of seconds: the field takes ``3m`` too."""
MILLISECONDS = _MILLISECONDS
"""Annotation of a number of milliseconds: the field takes ``3s`` too."""

__all__ = [
    "MILLISECONDS",
    "NONE",
    "SECONDS",
    "About",
    "AddBrokerSpec",
    "AnalysisError",
    "Bools",
    "CannotRecord",
    "Check",
    "ClientsSpec",
    "ClusterClient",
    "ClusterState",
    "Commands",
    "Configured",
    "Context",
    "ContractSpec",
    "DeployError",
    "Direction",
    "Done",
    "Duration",
    "Ender",
    "Event",
    "Evidence",
    "Fault",
    "FaultError",
    "FaultSpec",
    "FileLoss",
    "Fleet",
    "FleetError",
    "FleetSpec",
    "GuidedSpec",
    "Host",
    "Interrupted",
    "Judged",
    "KillSpec",
    "Knock",
    "KnockFrom",
    "Lax",
    "Layout",
    "LogSpec",
    "LogWorkload",
    "NemesisSpec",
    "NetnsFleet",
    "NetnsSpec",
    "Node",
    "PartitionSpec",
    "PartitionState",
    "PauseSpec",
    "Place",
    "PluginError",
    "Poller",
    "PowerCut",
    "PowerCutSpec",
    "PowerOff",
    "PowerOn",
    "PowerSwitch",
    "Process",
    "Proof",
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
    "Scene",
    "ScheduledSpec",
    "Sender",
    "Shape",
    "Shell",
    "Slot",
    "SparkUnavailable",
    "Spec",
    "SpecError",
    "StartNode",
    "StopNode",
    "StoredRecord",
    "Stream",
    "Strict",
    "System",
    "SystemSpec",
    "Target",
    "Thresholds",
    "TopicSpec",
    "Trail",
    "Type",
    "WantedTopic",
    "Way",
    "Window",
    "Workload",
    "WracklineSpec",
    "WracklineSystem",
    "anomalies_in",
    "apart",
    "bools",
    "check",
    "findings",
    "having",
    "is_place",
    "least",
    "load",
    "lt",
    "mark",
    "parse",
    "place",
    "rehearse",
    "run",
    "say",
    "seconds",
    "shown",
]
