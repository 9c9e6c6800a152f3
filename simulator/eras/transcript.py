"""A story under one profile, line by line: what was done from outside, what brokers and the keeper of the ISR
did of it, what was found, and what every log held at the place where the rules part and at the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

from wrackline.broker.model.effects import Trace
from wrackline.broker.model.types import NO_LEADER, NodeId
from wrackline.simulator.eras.explanations import EXPLANATIONS
from wrackline.simulator.eras.story import Story, play_on
from wrackline.simulator.guided.schedule import Played
from wrackline.simulator.guided.setting import CONTROLLER, T
from wrackline.simulator.guided.stage import Stage
from wrackline.simulator.world.nodes import ZOOKEEPER
from wrackline.simulator.world.world import StepRecord, World

_ORDER = {"told": 0, "found": 2}
"""Of what happens at one time: the rest is between."""
_STATES = re.compile(r"^\d+ ((un)?fenced:|has \[)")
"""Lines of a stage about states that lines of others tell."""
_VALUE = re.compile(r"\bb'(\w+)'")
_STEP = re.compile(r" at step .*? t-0")
_WORDS = (
    (re.compile(r"^produce \((.*?),?\) at (\d+), acks=-1$"), r"a client writes \1 at \2, acks=all"),
    (re.compile(r"^produce \((.*?),?\) at (\d+), acks=(\d)$"), r"a client writes \1 at \2, acks=\3"),
    (re.compile(r"^hold (\w+) from (\w+) to (\w+)$"), r"hold back every \1 from \2 to \3"),
    (re.compile(r"^lose (\w+)$"), r"drop every \1 that was held back"),
    (_VALUE, r"\1"),
    (re.compile(rf"\b{ZOOKEEPER}\b"), "ZooKeeper"),
    (re.compile(rf"\b{CONTROLLER}\b"), "the controller"),
)
"""A stage's line in the words of a page."""

Kind = Literal["told", "process", "log", "watermark", "ack", "keeper", "refused", "found"]


@dataclass(frozen=True, slots=True)
class Replica:
    """The state of one replica at some time."""

    node: NodeId
    values: tuple[str, ...]
    high_watermark: int
    """-1 where no process knows one: it is down, or not started yet."""
    up: bool
    leads: bool
    in_isr: bool


@dataclass(frozen=True, slots=True)
class Line:
    at_ms: float
    who: str
    """A broker's number, ``ZooKeeper`` or ``controller``; empty for what is done from outside."""
    text: str
    kind: Kind
    parts: bool = False
    """Here the rules of this profile part from those of others."""
    replicas: tuple[Replica, ...] = ()
    """Where the rules part."""


@dataclass(frozen=True, slots=True)
class Transcript:
    played: Played
    lines: tuple[Line, ...]
    end: tuple[Replica, ...]


def transcript_of(story: Story, profile: str, seed: int | str = 0) -> Transcript:
    """Play it, and write down what happens. Raises SimulationError when it cannot be gone through."""
    stage = Stage(story.setting.but(profile=profile), (), seed)
    scribe = Scribe(stage, EXPLANATIONS[story.name, profile].where)
    stage.world.watchers.append(scribe)
    played = play_on(stage, story)
    lines = [*scribe.lines, *_found(played)]
    lines.sort(key=lambda line: (round(line.at_ms, 1), _ORDER.get(line.kind, 1)))
    return Transcript(played, tuple(lines), replicas(stage))


def _found(played: Played) -> Iterator[Line]:
    for finding in played.findings:
        text = _STEP.sub("", finding.text)
        text = text if text.startswith(finding.oracle) else f"{finding.oracle}: {text}"
        yield Line(finding.at_ms, "", _VALUE.sub(r"\1", text), "found")


def replicas(stage: Stage) -> tuple[Replica, ...]:
    return tuple(
        Replica(
            node,
            tuple(value.decode() for value in stage.values(node)),
            stage.high_watermark(node),
            stage.up(node),
            stage.elected == node,
            node in stage.isr,
        )
        for node in sorted(stage.replicas)
    )


class Scribe:
    """A watcher of a stage: it writes down what happens."""

    def __init__(self, stage: Stage, parting: str) -> None:
        """``parting``: a regular expression of the first line in which the rules part."""
        self.lines: list[Line] = []
        self._stage = stage
        self._parting: re.Pattern[str] | None = re.compile(parting)
        """None once it was there."""
        self._said = len(stage.lines)
        self._keeper = "ZooKeeper" if stage.world.zookeeper is not None else "controller"
        self._metadata = stage.world.image.metadata_offset
        self._partition = self._partition_says()
        self._gone = self._without_session()

    def __call__(self, world: World, step: StepRecord) -> None:
        self._stage_says()
        if step.node in world.brokers:
            self._process(step)
        for effect in step.effects:
            if isinstance(effect, Trace) and (fields := dict(effect.fields)).get("tp") == str(T):
                self._traced(step, effect.kind, fields)
        self._keeper_says(step)

    def _add(self, at_ms: float, who: str, text: str, kind: Kind) -> None:
        line = Line(at_ms, who, text, kind)
        if self._parting is not None and self._parting.search(f"{who} {text}"):
            self._parting = None
            line = replace(line, parts=True, replicas=replicas(self._stage))
        self.lines.append(line)

    def _stage_says(self) -> None:
        """A line of the stage begins with the time in ten places."""
        for line in self._stage.lines[self._said :]:
            text = line[12:]
            if not _STATES.search(text):
                for pattern, words in _WORDS:
                    text = pattern.sub(words, text)
                self._add(float(line[:10]), "", text, "told")
        self._said = len(self._stage.lines)

    def _process(self, step: StepRecord) -> None:
        if step.kind == "boot":
            self._add(step.at_ms, str(step.node), f"starts with {self._values(step.node)}", "process")
        elif step.kind == "down" and not step.note.startswith(("kill", "power")):
            self._add(step.at_ms, str(step.node), f"ends: {step.note}", "process")

    def _values(self, node: NodeId, start: int = 0, end: int | None = None) -> str:
        chosen = self._stage.values(node)[start:end]
        return " ".join(value.decode() for value in chosen) or "nothing"

    def _traced(self, step: StepRecord, kind: str, fields: dict[str, object]) -> None:
        node, who = step.node, str(step.node)
        match kind, fields:
            case "append", {"base": int(base), "last": int(last), "leader": leader}:
                does = "appends" if leader else "copies"
                what = self._values(node, base, last + 1)
                self._add(step.at_ms, who, f"{does} {what} at {base}", "log")
            case "truncate", {"was": int(was), "to": int(to), "why": why}:
                self._add(step.at_ms, who, f"cuts its log from {was} to {to}: {why}", "log")
            case "hwm", {"old": old, "new": new}:
                self._add(step.at_ms, who, f"high watermark {old} → {new}", "watermark")
            case "ack", {"offset": int(offset), "error": "none", "acks": -1}:
                what = self._values(node, offset, offset + 1)
                self._add(step.at_ms, who, f"acknowledges {what} at {offset}", "ack")
            case "ack", {"error": str(error), "acks": -1}:
                self._add(step.at_ms, who, f"refuses a write: {error}", "refused")
            case "role", {"role": "follower", "leader": int(leader)} if leader > 0:
                self._add(step.at_ms, who, f"follows {leader}", "process")
            case "role", {"role": "leader"}:
                self._add(step.at_ms, who, "leads", "process")
            case "fetch_rx", {"id": asker, "diverging": (epoch, end)}:
                self._add(step.at_ms, who, f"tells {asker} that epoch {epoch} ends at {end}", "log")
            case "recovery", {"why": why}:
                self._add(step.at_ms, self._keeper, f"recovery: {why}", "keeper")
            case _:
                pass

    # --- what ZooKeeper or the controller has --------------------------------------------------------------

    def _keeper_says(self, step: StepRecord) -> None:
        metadata = self._stage.world.image.metadata_offset
        if metadata == self._metadata:
            return
        self._metadata = metadata
        gone = self._without_session()
        for node in sorted(gone - self._gone):
            self._add(step.at_ms, self._keeper, f"the session of {node} is over", "keeper")
        for node in sorted(self._gone - gone):
            self._add(step.at_ms, self._keeper, f"{node} has a session", "keeper")
        says = self._partition_says()
        if says != self._partition:
            self._add(step.at_ms, self._keeper, says, "keeper")
        self._gone, self._partition = gone, says

    def _without_session(self) -> frozenset[NodeId]:
        return frozenset(node for node in self._stage.world.brokers if self._stage.fenced(node))

    def _partition_says(self) -> str:
        stage = self._stage
        leader = "no leader" if stage.elected == NO_LEADER else f"leader {stage.elected}"
        elr = f", ELR {sorted(stage.elr)}" if stage.elr else ""
        return f"{leader}, ISR {sorted(stage.isr)}{elr}"
