"""``wrackline simulate eras --search N``: how often random runs of profile zk08 tell each story by chance.

A run goes on after its first loss, to its end, so that one seed may tell several stories. What is one is for
``recognition`` to say; the oracles that would end the run are off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from wrackline.progress import progress as say
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.run.session import Run
from wrackline.simulator.world.errors import SimulationError
from wrackline.zookeeper.simulator.scenes.recognition import LAGGED, OTHER, OWN_END, Recognition, Recognizer

SURROUNDINGS = {
    "nobody loses power": Setup(max_lossy=0),
    "at most two without power": Setup(max_lossy=2),
    "unclean elections": Setup(max_lossy=0, unclean=True),
}
"""Faults overlap in all of them."""


@dataclass(slots=True)
class SearchResult:
    """The outcome of one search."""

    seeds: int = 0
    first: dict[str, tuple[int, Recognition]] = field(default_factory=dict)
    """Story -> the first seed that told it, and how."""
    reported: dict[str, int] = field(default_factory=dict)
    """Story -> in how many seeds."""


def setup_of(surroundings: Setup, seed: int) -> Setup:
    """Returns the setup of docs/known-bugs.md: ``--brokers 4 --fault-every-ms 700 --seconds 12
    --overlap``."""
    return replace(
        surroundings,
        seed=seed,
        profile="zk08",
        brokers=4,
        seconds=12.0,
        fault_every_ms=700.0,
        overlap=True,
        invariants=False,
        liveness=False,
    )


def recognitions_of(setup: Setup) -> list[Recognition]:
    """Returns the recognitions of one run to its end, whatever happens in it."""
    session = Run(setup)
    session.client_view.loss_allowed = True
    recognizer = Recognizer(session.world)
    session.world.watchers.append(recognizer)
    try:
        for part in (session.boot, session.main, session.heal):
            part()
        recognizer.at_rest()
    except SimulationError as stuck:
        # Logs differ: what one replica takes for its high watermark is in the middle of another's batch.
        if not recognizer.found:
            recognizer.found.append(Recognition(OTHER, session.world.now_ms, str(stuck)))
    return recognizer.found


def search_report(stories: Sequence[str], seeds: int) -> str:
    """Returns how often seeds 0 to ``seeds`` - 1 tell each story in all surroundings, with an example of
    each."""
    sought = {name: seek(name, surroundings, seeds) for name, surroundings in SURROUNDINGS.items()}
    return "\n".join([table(stories, sought), "", *examples(sought)])


def seek(name: str, surroundings: Setup, seeds: int) -> SearchResult:
    """Runs seeds 0 to ``seeds`` - 1."""
    sought = SearchResult()
    for seed in range(seeds):
        result: dict[str, Recognition] = {}
        for sign in recognitions_of(setup_of(surroundings, seed)):
            result.setdefault(sign.story, sign)
        sought.seeds += 1
        for story, sign in result.items():
            sought.reported[story] = sought.reported.get(story, 0) + 1
            sought.first.setdefault(story, (seed, sign))
        if (seed + 1) % 100 == 0:
            say(f"{name}: {seed + 1} of {seeds} seeds")
    return sought


def table(stories: Sequence[str], sought: dict[str, SearchResult]) -> str:
    """Returns a table in Markdown: how many seeds told each story, and the first of them."""
    lines = [f"| story | {' | '.join(sought)} |", "|---" * (len(sought) + 1) + "|"]
    for story in (*stories, LAGGED, OWN_END, OTHER):
        lines.append(f"| {story} | {' | '.join(_cell(one, story) for one in sought.values())} |")
    return "\n".join(lines)


def _cell(sought: SearchResult, story: str) -> str:
    if story not in sought.reported:
        return f"not in {sought.seeds:,}"
    count = sought.reported[story]
    return f"**{count}** ({count / sought.seeds:.1%}), first {sought.first[story][0]}"


def examples(sought: dict[str, SearchResult]) -> Iterator[str]:
    """One line for each first find."""
    for name, one in sought.items():
        for story, (seed, sign) in one.first.items():
            yield f"{name}, seed {seed}, {sign.at_ms / 1000:.3f} s: {story}: {sign.text}"
