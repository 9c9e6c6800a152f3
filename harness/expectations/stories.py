"""``wrackline stories``: what our own broker does where no defect is needed: settings that allow loss,
outages, recoveries, operations (docs/known-bugs.md has the table).

Each is a specification in ``suites/stories``. Where a setting allows the loss, the control is the same
specification but for that setting, and must lose nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from wrackline.checkers.findings import Verdict
from wrackline.harness.expectations.findings import Finding, known_in
from wrackline.harness.expectations.known import Known

_RUN_S = 35
_NOTHING: tuple[str, ...] = ()


def _allowed(what: str, *shows: str) -> Known:
    return Known(what, Verdict.PASS, shows or ("lost-write",), run_s=_RUN_S)


def _kept(what: str) -> Known:
    return Known(what, Verdict.PASS, _NOTHING, run_s=_RUN_S)


STORIES: Mapping[str, Known] = {
    "acks-one": _allowed("with acks=1 the leader alone has what it acknowledges (B06)"),
    "min-isr-one": _allowed("with MinISR 1 so does a leader alone in the ISR (B08)"),
    "unclean-on": _allowed("with unclean election on a replica that lacks records leads (B09)"),
    "last-replica-standing": Known(
        "without an ELR who was alone in the ISR leads again, with what its disk kept (B10)",
        Verdict.VIOLATION,
        run_s=_RUN_S,
    ),
    "clean-example": Known(
        "the clean example 5.2.2 without an ELR: the replica that has everything may not lead (R24)",
        Verdict.VIOLATION,
        run_s=_RUN_S,
    ),
    "outage-unclean": _allowed(
        "all replicas lose power, and unclean election takes the first one back (B11; control: R35)"
    ),
    "outage-proactive": _allowed("proactive recovery decides before the best log is back (B35, R27)"),
    "outage-manual": _kept("under strategy manual nobody is elected until a person asks for it (R29)"),
    "flush-on-roll": _allowed("flush mode on-roll, and all hosts lose their power (R04)"),
    "flush-every-n-batches": _allowed("flush mode every-n-batches, the same (R02)"),
    "flush-every-interval": _allowed("flush mode every-interval, the same (R03)"),
    "jepsen-2013": _allowed("the leader goes on alone and dies, and one that lacks its records leads (B52)"),
    "no-idempotence": _allowed("producers send again, and their records are there twice (B39)", "duplicate"),
    "rack-loss": _allowed("a rack loses its power, and both replicas of a partition stood in it (R26)"),
    "rolling-restart": _kept("every node is stopped cleanly and started, one after another (R09)"),
    "slow-disk": _kept("a follower's disk becomes slow while every write is synced (R01, Z13)"),
}


def stories(names: Iterable[str] = ()) -> list[Finding]:
    """Those named, or all. Raises SpecError for a name that is none, and for a file that does not fit."""
    return known_in("stories", STORIES, names, "story")
