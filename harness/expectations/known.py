"""What is known beforehand of a run's verdict, and how a verdict differs from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wrackline.checkers.findings import Meaning, Verdict
from wrackline.harness.run.judge import Judged

_SHOWN_REASONS = 4


@dataclass(frozen=True, slots=True)
class Known:
    """What must come out of a run. Its control, where it has one, must pass and show nothing of it."""

    what: str
    """One line for the list."""
    verdict: Verdict
    """``violation``; or ``pass``, where the contract allows what is shown."""
    shows: tuple[str, ...] = ("lost-write",)
    """Anomalies of which one at least must be found; none: no acknowledged record may be lost."""
    run_s: int = 90
    """How long one of its runs takes, roughly, without the judging."""

    @property
    def must_be(self) -> str:
        """The verdict, and whether what is shown is allowed."""
        allowed = self.verdict is Verdict.PASS and self.shows
        return f"{self.verdict.value}, allowed" if allowed else self.verdict.value

    def wrong_with(self, verdict: Mapping[str, Any]) -> list[str]:
        """How the verdict of such a run differs from what is known; empty when it does not."""
        wrong = [] if verdict["verdict"] == self.verdict else [_unexpected(verdict, self.verdict)]
        if not self.shows:
            return [*wrong, *self._counted(verdict)]
        meaning = Meaning.VIOLATION if self.verdict is Verdict.VIOLATION else Meaning.ALLOWED
        if not any(count_of(verdict, name, meaning) for name in self.shows):
            wrong.append(f"no {' or '.join(self.shows)} that is {meaning.value}")
        return wrong

    def wrong_with_control(self, verdict: Mapping[str, Any]) -> list[str]:
        wrong = [] if verdict["verdict"] == Verdict.PASS else [_unexpected(verdict, Verdict.PASS)]
        return wrong + self._counted(verdict)

    def shown(self, verdict: Mapping[str, Any]) -> dict[str, int]:
        return {name: count_of(verdict, name) for name in self.shows or ("lost-write",)}

    def _counted(self, verdict: Mapping[str, Any]) -> list[str]:
        return [f"{count} {name}" for name, count in self.shown(verdict).items() if count]

    def row(self, judged: Judged, wrong: list[str]) -> dict[str, Any]:
        """Of a table: the run's folder, its verdict, the counts, the nodes' own words."""
        verdict = judged.verdict
        return {
            "run": judged.run_dir.name,
            "verdict": verdict["verdict"],
            "acknowledged": verdict["counts"]["acked_records"],
            "shown": self.shown(verdict),
            "node_words": _node_words(verdict),
            "wrong": wrong,
            "reasons": list(verdict.get("reasons", ()))[:_SHOWN_REASONS] if wrong else [],
            "report": str(judged.report) if judged.report else None,
        }


def _node_words(verdict: Mapping[str, Any]) -> list[str]:
    """The lines of the nodes' files that tell of the first incident, with their places."""
    lines = [line for one in verdict.get("incidents", ())[:1] for line in one.get("lines", ())]
    return [f"{line['file']}:{line['number']}: {line['text']}" for line in lines]


def account(row: Mapping[str, Any]) -> str:
    """``640 lost-write of 900``."""
    counts = ", ".join(f"{count:,} {name}" for name, count in row["shown"].items())
    return f"{counts} of {row['acknowledged']:,}"


def complaints(row: Mapping[str, Any]) -> list[str]:
    reasons = "; ".join(row["reasons"])
    return [f"NOT AS IT MUST BE: {row['run']}: {wrong} ({reasons})" for wrong in row["wrong"]]


def count_of(verdict: Mapping[str, Any], name: str, meaning: Meaning | None = None) -> int:
    """How often the verdict names the anomaly, with that meaning or with any."""
    return sum(
        each["count"]
        for each in verdict["anomalies"]
        if each["anomaly"] == name and meaning in (None, each["meaning"])
    )


def _unexpected(verdict: Mapping[str, Any], must_be: Verdict) -> str:
    return f"{verdict['verdict']}, not {must_be.value}"
