"""The check of a specification by the system itself: before a host is made.

`wrackline.harness.specification.spec` checks whatever it can by itself. The system's settings, profile and
defects, and the topic's name and settings, only the program that will be deployed knows; it is asked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wrackline.harness.specification.build import as_run, build_parts, cluster_topic
from wrackline.harness.specification.spec import Spec, SpecError, load
from wrackline.plugins.registry import Group, entries, named
from wrackline.systems.base import About, DeployError, Refusal
from wrackline.workloads.clients.base import RefusedSetting, Unavailable
from wrackline.workloads.clients.libraries import try_settings


def load_checked(path: Path, *, settings: Sequence[str] = (), seed: int | None = None) -> Spec:
    """A specification with which a run can be begun. Raises SpecError; DeployError when the system's
    program cannot be asked; FleetError for hosts that cannot be named; PluginError for a check from elsewhere
    that cannot be used."""
    spec = load(path, settings=settings, seed=seed)
    for check in entries(Group.CHECKS):  # a run that nobody could judge is not begun
        if not check.is_ours:
            named(Group.CHECKS, check.name).load()
    mistakes: list[str] = []
    for ask in (ask_clients, ask_system):
        try:
            ask(spec, str(path))
        except SpecError as error:
            mistakes += error.mistakes
    if mistakes:
        raise SpecError(*mistakes)
    return spec


def ask_clients(spec: Spec, source: str) -> None:
    """Raises SpecError with what the client library says of the clients' settings, and for secrets that are
    not there."""
    try:
        try_settings(as_run(spec, spec.name).workload)
    except DeployError as error:
        raise SpecError(f"{source}: {error}") from error
    except Unavailable as missing:
        raise SpecError(f"{source}: workload.client: {missing}") from missing
    except RefusedSetting as error:
        library = spec.workload.client.library
        raise SpecError(
            f"{source}: workload.client: {library} does not take these settings: {error}"
        ) from error


def ask_system(spec: Spec, source: str) -> None:
    """Raises SpecError with all that the system refuses; DeployError."""
    system = build_parts(spec, spec.name).system
    mistakes: list[str] = []
    for number, topic in enumerate(spec.every_topic):
        section = f"topics[{number}]" if spec.topics else "topic"
        for refusal in system.refusals(cluster_topic(spec, topic)):
            mistakes.append(f"{source}: {_place(refusal, section)}: {refusal.problem}")
    if mistakes:
        raise SpecError(*dict.fromkeys(mistakes))


def _place(refusal: Refusal, topic: str) -> str:
    """Returns the place of the refused setting as the reader wrote it. ``topic``: its section."""
    match refusal.about:
        case About.CONFIG:
            return f"system.config.{refusal.key}"
        case About.PROFILE | About.DEFECTS:
            return f"system.{refusal.about}"
        case About.TOPIC:
            return f"{topic}.name"
        case About.TOPIC_CONFIG:
            return f"{topic}.configs.{refusal.key}"
