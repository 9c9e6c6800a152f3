"""What a run came to, as all that goes out needs it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wrackline.checkers.findings import Verdict
from wrackline.harness.records import BAD, GOOD, Record


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
        """It came out as it must, however bad that looks: nobody is told."""
        return self.record is not None and self.record.as_expected

    @property
    def good(self) -> bool:
        return self.as_expected or (self.verdict in GOOD and not self.bad)

    @property
    def violates(self) -> bool:
        return self.verdict is Verdict.VIOLATION and not self.as_expected

    @property
    def bad(self) -> bool:
        """It fails its build."""
        if self.as_expected:
            return False
        return self.verdict in BAD or (self.record is not None and self.record.good is False)

    @property
    def said(self) -> str:
        return "; ".join(part for part in (self.headline, self.beside) if part)
