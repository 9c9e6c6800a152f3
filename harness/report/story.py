"""What happened in a run, in a few sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from wrackline.checkers.findings import Meaning
from wrackline.checkers.verdict.incidents.sentences import capital
from wrackline.harness.report.incidents import BREAKING
from wrackline.harness.report.read.faults import Fault
from wrackline.harness.report.read.files import RunFiles, mapping, rows, whole
from wrackline.harness.report.summary import Anomaly
from wrackline.harness.report.text import duration, number, plural, size

INCIDENTS_TOLD: Final = 3


def story_of(files: RunFiles, faults: Sequence[Fault], anomalies: Sequence[Anomaly]) -> tuple[str, ...]:
    """What happened, in the order in which it happened."""
    story = []
    info = files.info
    if info is not None:
        most = f", at most {number(info.concurrency)} of them under way at a time" if info.concurrency else ""
        asked = f" at {number(info.rate)} operations per second" if info.rate else ""
        hosts = ", ".join(sorted(set(info.nodes.values())))
        story.append(
            f"Clients drove {info.system}{f' on {hosts}' if hosts else ''} with "
            f"acks={info.acks}{asked}{most}."
        )
    for fault in faults[:8]:
        story.append(_fault_sentence(fault))
    if len(faults) > 8:
        story.append(f"… and {plural(len(faults) - 8, 'more fault')} (table below).")
    found = [a for a in anomalies if a.count]
    if rows(files.verdict, "incidents"):
        story += _of_incidents(files)
    elif found:
        counted = ", ".join(f"{number(a.count)} {a.name} ({a.meaning})" for a in found[:6])
        story.append(f"The checkers found {counted}.")
    elif anomalies:
        story.append(f"{plural(len(anomalies), 'checker')} ran and found nothing.")
    return tuple(story)


def _of_incidents(files: RunFiles) -> Iterator[str]:
    """Those that break the contract; where none does, what it does not forbid."""
    found = rows(files.verdict, "incidents")
    counts = mapping(files.verdict, "incident_counts")
    breaking = [one for one in found if one.get("meaning") in BREAKING]
    told = (breaking or found)[:INCIDENTS_TOLD]
    for one in told:
        aside = "" if breaking else f" ({one.get('meaning')})"
        yield f"{capital(str(one.get('sentence')))}{aside}."
    more = sum(whole(counts, of) or 0 for of in (BREAKING if breaking else Meaning)) - len(told)
    if more > 0:
        yield f"… and {plural(more, 'more incident')} (below)."


def _fault_sentence(fault: Fault) -> str:
    begin = "?" if fault.begin_ns is None else f"{fault.begin_ns / 1e9:,.1f} s"
    role = f", {fault.role}" if fault.role and fault.role not in fault.targets else ""
    length = f" for {duration(fault.duration_ns)}" if fault.duration_ns is not None else ", never ended"
    lost = f"; {size(fault.lost_bytes)} gone" if fault.lost_bytes else ""
    if not fault.asked_for:
        return f"{begin}: {', '.join(fault.targets) or '?'} died, and no fault had stopped it{length}."
    return f"{begin}: {fault.name} of {', '.join(fault.targets) or '?'}{role}{length}{lost} ({fault.told})."
