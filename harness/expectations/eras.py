"""``wrackline eras``: the stories of docs/known-bugs.md on hosts, under the rules of each era.

A story is one specification in ``suites/eras``, written for profile zk08; its other arms are the same but
for the profile, and for whom the brokers ask: ZooKeeper there, a controller later. ``wrackline simulate
eras`` tells the same stories in the simulator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from wrackline.checkers.findings import Verdict
from wrackline.harness.expectations import tables
from wrackline.harness.expectations.driving import drive
from wrackline.harness.expectations.known import Known, account, complaints
from wrackline.harness.run.judge import Judged, judge
from wrackline.harness.run.runner import run
from wrackline.harness.specification.check import ask_clients, ask_system
from wrackline.harness.specification.spec import Spec, SpecError, load
from wrackline.harness.specification.suites import suites_dir
from wrackline.plugins.nearest import instead_of

FIRST = "zk08"
"""The profile that is harmed."""
PROFILES = (FIRST, "kip101", "kraft35", "kip966")
"""In the order of time."""
_WITH_CONTROLLER = ("fleet.zookeeper=0", "fleet.controllers=1")
STORIES: Mapping[str, Known] = {
    "restart-then-failover": Known(
        "A follower restarts, and the leader dies before it has fetched again.", Verdict.VIOLATION, run_s=60
    ),
    "double-power-loss": Known(
        "Both replicas lose power; the one that lost more is back first.",
        Verdict.VIOLATION,
        ("replica-divergence",),
        run_s=60,
    ),
    "failover-twice": Known(
        "A new leader dies while its follower has cut its log and not fetched yet.",
        Verdict.VIOLATION,
        run_s=60,
    ),
    "isolated-then-unclean": Known(
        "A leader alone in its ISR goes on and is lost; another leads uncleanly.",
        Verdict.VIOLATION,
        ("replica-divergence",),
        run_s=60,
    ),
    "split": Known(
        "One replica alone with ZooKeeper, or the controller, leads, acknowledges and loses power.",
        Verdict.VIOLATION,
        run_s=60,
    ),
    "power-back-early": Known(
        "The leader loses power and is back, with less, before its session has ended.",
        Verdict.VIOLATION,
        run_s=60,
    ),
    "zombie-leader": Known(
        "A leader is paused past its session, and answers a client before it hears of its successor.",
        Verdict.PASS,
        ("stale-read",),
        run_s=60,
    ),
}
"""What profile zk08 must show; under the others each must pass and show nothing of it. A stale read is no
violation, since no contract promises fresh reads unless it is asked to."""


@dataclass
class Arm:
    """A story under one profile, and what came of its runs."""

    story: str
    profile: str
    spec: Spec
    runs: int = 0
    right: int = 0
    made: list[dict[str, Any]] = field(default_factory=list)
    """A row for each run, as ``Known.row`` makes it."""

    @property
    def known(self) -> Known:
        return STORIES[self.story]

    @property
    def harmed(self) -> bool:
        return self.profile == FIRST

    @property
    def must_be(self) -> str:
        verdict = self.known.verdict if self.harmed else Verdict.PASS
        shows = " or ".join(self.known.shows)
        return f"{verdict.value}, {'with' if self.harmed else 'no'} {shows}"

    @property
    def as_it_must_be(self) -> bool:
        return 0 < self.runs == self.right

    @property
    def verdicts(self) -> str:
        """``violation``; of several runs ``violation (2), pass``."""
        words = [row["verdict"] for row in self.made]
        counts = {word: words.count(word) for word in words}
        told = ", ".join(word if count == 1 else f"{word} ({count})" for word, count in counts.items())
        return (told or "no run") + ("" if self.as_it_must_be else " (!)")

    def add(self, judged: Judged) -> None:
        check = self.known.wrong_with if self.harmed else self.known.wrong_with_control
        wrong = check(judged.verdict)
        self.runs += 1
        self.right += not wrong
        self.made.append(self.known.row(judged, wrong))

    def to_dict(self) -> dict[str, Any]:
        return {
            "story": self.story,
            "profile": self.profile,
            "must_be": self.must_be,
            "runs": self.runs,
            "right": self.right,
            "made": list(self.made),
        }


def arms(names: Iterable[str] = (), profiles: Iterable[str] = ()) -> list[Arm]:
    """Of the stories that are named, or of all, under these profiles, or all. Raises SpecError for a name
    that is none, and for a file that does not fit."""
    wanted = list(dict.fromkeys(names)) or list(STORIES)
    for name in wanted:
        if name not in STORIES:
            there = instead_of(name, STORIES, "--list shows them", are="there are")
            raise SpecError(f"no story {name!r}{there}")
    chosen = set(profiles) or set(PROFILES)
    return [
        Arm(name, profile, load(suite_of(name), settings=settings(name, profile)))
        for name in wanted
        for profile in PROFILES
        if profile in chosen
    ]


def suite_of(name: str) -> Path:
    return suites_dir() / "eras" / f"{name}.yaml"


def settings(name: str, profile: str) -> tuple[str, ...]:
    """What ``wrackline run --set`` must be given for this arm."""
    if profile == FIRST:
        return ()
    passes = ("contract.verdict=null",) if STORIES[name].verdict is Verdict.VIOLATION else ()
    return (f"name=era-{name}-{profile}", f"system.profile={profile}", *_WITH_CONTROLLER, *passes)


def play(wanted: Sequence[Arm], results: Path, *, runs: int = 1, master: str = "local[*]") -> None:
    """Make all the runs, then judge them in one Spark session; the arms are given what came of them. Raises
    SpecError for what the broker or the client library refuses, DeployError where ZooKeeper cannot be
    installed."""
    for arm in wanted:
        ask_clients(arm.spec, str(suite_of(arm.story)))
        ask_system(arm.spec, str(suite_of(arm.story)))
        arm.spec.system.prepare(click.echo)
    turns = [
        (arm, f"{arm.story} under {arm.profile}, {n} of {runs}") for n in range(1, runs + 1) for arm in wanted
    ]
    asked = [(says, arm.spec) for arm, says in turns]
    judged = drive(asked, results, run=run, judge=judge, master=master)
    for (arm, _), each in zip(turns, judged, strict=False):  # fewer after Ctrl-C
        arm.add(each)


def seconds(wanted: Sequence[Arm], runs: int) -> int:
    """How long the runs of these take, roughly, without the judging."""
    return sum(arm.known.run_s for arm in wanted) * runs


def list_them(wanted: Sequence[Arm]) -> None:
    table = tables.table("story", "under", "must be", "a run", "what happens")
    for arm in wanted:
        first = next(each for each in wanted if each.story == arm.story) is arm
        story, what = (arm.story, arm.known.what) if first else ("", "")
        table.add_row(story, arm.profile, arm.must_be, f"{arm.known.run_s} s", what)
    tables.put(table, width=200)


def show(wanted: Sequence[Arm]) -> None:
    profiles = [profile for profile in PROFILES if any(arm.profile == profile for arm in wanted)]
    table = tables.table("story", *profiles)
    for story in dict.fromkeys(arm.story for arm in wanted):
        cells = {arm.profile: arm.verdicts for arm in wanted if arm.story == story}
        table.add_row(story, *(cells[profile] for profile in profiles))
    tables.put(table, width=200)
    for arm in wanted:
        found = "; ".join(account(row) for row in arm.made)
        click.echo(f"{arm.story} under {arm.profile}: {found or 'no run'}")
        for row in arm.made:
            for line in complaints(row):
                click.echo(line)
