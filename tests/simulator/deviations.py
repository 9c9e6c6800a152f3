"""One wrong line of the broker, named by a part of its source, and who notices it."""

from __future__ import annotations

from wrackline.simulator.mutants.command import Outcome, all_mutations, outcome_of


def outcome_of_line(file: str, source: str, change: str, drill: str, runs: int, *, place: int = 0) -> Outcome:
    """Does the drill on ``runs`` seeds. ``place``: which of the lines with this source and change."""
    places = [one for one in all_mutations(file) if source in one.source and one.change == change]
    return outcome_of(places[place], {"drills": drill, "runs": runs, "cpu_s": 60})
