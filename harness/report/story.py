"""The events of a run, in a few sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wrackline.checkers.findings import Meaning
from wrackline.harness.report.read.faults import Fault
from wrackline.harness.report.read.files import RunFiles, mapping, whole
from wrackline.harness.report.read.moments import Moment
from wrackline.harness.report.summary import Anomaly
from wrackline.history.wording import duration, number, plural, size


def story_of(
    files: RunFiles, faults: Sequence[Fault], moments: Sequence[Moment], anomalies: Sequence[Anomaly]
) -> tuple[str, ...]:
    """Returns what happened, in the order of time. Of incidents only how many there are: they stand below."""
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
    events = [(fault.begin_ns or 0, _fault_sentence(fault)) for fault in faults[:8]]
    events += [(moment.at_ns, f"{moment.at_ns / 1e9:,.1f} s: {moment.words}.") for moment in moments]
    story += [sentence for _, sentence in sorted(events, key=lambda one: one[0])]
    if len(faults) > 8:
        story.append(f"… and {plural(len(faults) - 8, 'more fault')} (table below).")
    result = [a for a in anomalies if a.count]
    incidents = ", ".join(_counted(files))
    if incidents:
        story.append(f"The judge found {incidents} (below).")
    elif result:
        counted = ", ".join(f"{number(a.count)} {a.name} ({a.meaning})" for a in result[:6])
        story.append(f"The checkers found {counted}.")
    elif anomalies:
        story.append(f"{plural(len(anomalies), 'checker')} ran and found nothing.")
    return tuple(story)


def _counted(files: RunFiles) -> Iterator[str]:
    """Incidents by what the contract says of them."""
    counts = mapping(files.verdict, "incident_counts")
    for meaning in Meaning:
        if count := whole(counts, meaning):
            yield f"{plural(count, 'incident')} ({meaning})"


def _fault_sentence(fault: Fault) -> str:
    begin = "?" if fault.begin_ns is None else f"{fault.begin_ns / 1e9:,.1f} s"
    role = f", {fault.role}" if fault.role and fault.role not in fault.targets else ""
    length = f" for {duration(fault.duration_ns)}" if fault.duration_ns is not None else ", never ended"
    lost = f"; {size(fault.lost_bytes)} gone" if fault.lost_bytes else ""
    if not fault.asked_for:
        return f"{begin}: {', '.join(fault.targets) or '?'} died, and no fault had stopped it{length}."
    return f"{begin}: {fault.name} of {', '.join(fault.targets) or '?'}{role}{length}{lost} ({fault.told})."
