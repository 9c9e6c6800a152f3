"""The expected outcome of a run, and the differences of a verdict from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from wrackline.checkers.findings import Meaning, Verdict


@dataclass(frozen=True, slots=True)
class Expectation:
    """The verdict of a run, and the anomalies that it must and must not show."""

    verdict: Verdict
    """``violation``; or ``pass``, where the contract allows what is shown; or ``inconclusive``, where
    conditions must fail."""
    shows: tuple[str, ...] = ()
    """Anomalies of which one at least must be found; of an inconclusive run the conditions that must fail."""
    absent: tuple[str, ...] = ()
    """Anomalies that must not be found, whatever the contract says of them."""

    @property
    def must_be(self) -> str:
        """The verdict, and whether what is shown is allowed."""
        allowed = self.verdict is Verdict.PASS and self.shows
        return f"{self.verdict.value}, allowed" if allowed else self.verdict.value

    @property
    def of_control(self) -> Expectation:
        """Returns the expectation for the control: it passes and shows nothing of this."""
        return replace(self, verdict=Verdict.PASS, shows=(), absent=self.shows or self.absent)

    def found(self, verdict: Mapping[str, Any]) -> set[str]:
        """The anomalies whose meaning goes with the expected verdict, or the conditions that failed."""
        if self.verdict is Verdict.INCONCLUSIVE:
            return {each["name"] for each in verdict.get("conditions", ()) if not each["ok"]}
        return {
            each["anomaly"]
            for each in verdict["anomalies"]
            if each["count"] and each["meaning"] == self._meaning
        }

    def differences(self, verdict: Mapping[str, Any]) -> list[str]:
        """Returns how the verdict differs from the expectation; empty when it does not."""
        error = [] if verdict["verdict"] == self.verdict else [self._unexpected(verdict)]
        if self.shows and not self.found(verdict).intersection(self.shows):
            error.append(f"no {' or '.join(self.shows)} that is {self._meaning.value}")
        counts = self.counts(verdict)
        return error + [f"{counts[name]} {name}" for name in self.absent if counts[name]]

    def counts(self, verdict: Mapping[str, Any]) -> dict[str, int]:
        """Returns how often the verdict names each anomaly that is expected, or expected to be absent."""
        return {
            name: sum(each["count"] for each in verdict["anomalies"] if each["anomaly"] == name)
            for name in self.shows or self.absent
        }

    @property
    def _meaning(self) -> Meaning:
        return Meaning.VIOLATION if self.verdict is Verdict.VIOLATION else Meaning.ALLOWED

    def _unexpected(self, verdict: Mapping[str, Any]) -> str:
        return f"{verdict['verdict']}, not {self.verdict.value}"


@dataclass(frozen=True, slots=True)
class DefectExpectation(Expectation):
    """The expectation for a run with a defect: all of ``shows`` must be found. Its twin may show nothing
    that is allowed."""

    arm: str = "with the defect"

    @property
    def of_control(self) -> Expectation:
        return DefectExpectation(Verdict.PASS, absent=self.shows, arm="the twin")

    def differences(self, verdict: Mapping[str, Any]) -> list[str]:
        result = self.found(verdict)
        missing = ", ".join(name for name in self.shows if name not in result)
        shown = ", ".join(sorted(result.intersection(self.absent)))
        if verdict["verdict"] == self.verdict and not missing and not shown:
            return []
        why = f"without {missing}; " if missing else f"{shown}; " if shown else ""
        return [f"{self.arm}: {why}{self._unexpected(verdict)}"]
