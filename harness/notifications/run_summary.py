"""The outcome of a run, in the form that every notification needs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from wrackline.checkers.findings import Verdict
from wrackline.harness.records import BAD, GOOD, Record

NOT_MADE: Final = "not made"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One run: of a night's file, or of the command line."""

    name: str
    """The same every night: ``demo-acks-all.kip101.s2``."""
    verdict: Verdict | None
    """None: it was not made."""
    headline: str
    beside: str = ""
    """What followed from it: ``again in 3 of 3; its twin: pass``."""
    file: str = ""
    """Its specification, relative to the repository where it lies in one."""
    record: Record | None = None
    """None: it did not come so far."""
    report: Path | None = None
    new: bool = False
    """A violation that no night before has shown."""

    @property
    def as_expected(self) -> bool:
        """Tells whether the run came out as it must, however bad that looks: nobody is told."""
        return self.record is not None and self.record.as_expected

    @property
    def word(self) -> str:
        """Returns the verdict, and whether that was expected where the verdict does not say it."""
        if self.record is not None and self.record.verdict is self.verdict:
            return self.record.word or NOT_MADE
        return self.verdict.value if self.verdict else NOT_MADE

    @property
    def counts_as(self) -> Verdict | None:
        """The verdict whose exit code a night ends with: what must be a violation does not fail it."""
        if self.as_expected:
            return Verdict.REPRODUCED
        return Verdict.NOT_REPRODUCED if self.bad and self.verdict in GOOD else self.verdict

    @property
    def good(self) -> bool:
        return self.as_expected or (self.verdict in GOOD and not self.bad)

    @property
    def violates(self) -> bool:
        return self.verdict is Verdict.VIOLATION and not self.as_expected

    @property
    def bad(self) -> bool:
        """Tells whether the run fails its build."""
        if self.as_expected:
            return False
        return self.verdict in BAD or (self.record is not None and self.record.good is False)

    @property
    def said(self) -> str:
        return "; ".join(part for part in (self.headline, self.beside) if part)
