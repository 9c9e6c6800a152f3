"""The pictures of a run that show every operation, or a fair choice of them: what ``read/pictures.py``
gathers, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from markupsafe import Markup

from wrackline.checkers.explain.model import Finding, Group
from wrackline.harness.report.draw.all_processes import add_bars, processes_chart
from wrackline.harness.report.draw.delivery_charts import Legend, lag_charts, unseen_chart
from wrackline.harness.report.draw.latency_charts import latency_by_place, latency_quantiles, latency_raw
from wrackline.harness.report.draw.order_charts import order_around, order_chart
from wrackline.harness.report.draw.page_data import Tables
from wrackline.harness.report.read.cluster import LeaderSpan
from wrackline.harness.report.read.columns import OUTCOMES, Operations, Table
from wrackline.harness.report.read.faults import Fault
from wrackline.harness.report.read.log_order import Stretch, stretches
from wrackline.harness.report.read.moments import Moment, of_partition
from wrackline.harness.report.read.pictures import Gathered, Gatherer
from wrackline.history.labels import IMPORTED
from wrackline.history.wording import number, partition_label
from wrackline.pages.frame import for_both

_FINDINGS: Final = 200
"""Findings that the timeline can go to."""
_CITED: Final = 40


@dataclass(frozen=True, slots=True)
class Around:
    """Offsets that findings are about, drawn."""

    label: str
    first: int
    last: int
    anomalies: tuple[str, ...]
    drawing: Markup


@dataclass(frozen=True, slots=True)
class Pictures:
    """Drawings are None where there is nothing to draw."""

    operations: int
    unseen: Markup | None
    unseen_legend: Legend
    unfollowed: int
    """Acknowledged records that were not followed: too many offsets."""
    lag: Markup | None
    lag_s: Markup | None
    lag_legend: Legend
    lag_hidden: int
    """Partitions without a panel, and so in ``order_hidden``."""
    raw: Markup | None
    raw_shown: int
    raw_seen: int
    quantiles: Markup | None
    places: Markup | None
    order: Markup | None
    order_hidden: int
    order_shown: int
    order_seen: int
    around: tuple[Around, ...]
    processes: Markup | None
    lanes_hidden: int
    bars: int
    packed: str
    """The tables of draw/packed.py."""


def pictures(
    operations: Operations,
    end_ns: int,
    faults: Sequence[Fault],
    leaders: Mapping[str, Sequence[LeaderSpan]],
    groups: Sequence[Group],
    system: str,
    moments: Sequence[Moment],
) -> Pictures:
    """Reads the whole history once. Raises what pyarrow raises when it is broken."""
    found = [one.finding for group in groups for one in group.explanations][:_FINDINGS]
    cited = {index for finding in found for index in finding.operations}
    gatherer = Gatherer(operations, end_ns, leaders, stretches(groups), cited)
    for batch in operations.batches():
        gatherer.add(batch)
    return _drawn(gatherer.gathered(), faults, found, system, moments)


def _drawn(
    of: Gathered,
    faults: Sequence[Fault],
    found: Sequence[Finding],
    system: str,
    moments: Sequence[Moment],
) -> Pictures:
    tables = Tables(
        {
            "fs": of.fs,
            "outcomes": OUTCOMES,
            "places": of.places,
            "errors": of.errors,
            "hosts": of.hosts,
            "imported": system == IMPORTED,
            "end": of.end_ns // 1_000,
            "findings": [_finding(finding) for finding in found if finding.operations],
        },
        of.led_by,
    )
    unseen = unseen_chart(of, faults, tables)
    lag = lag_charts(of, faults, tables)
    order = order_chart(of, faults, moments, tables)
    processes = processes_chart(of, faults)
    if processes is not None:
        add_bars(of, faults, tables)
    return Pictures(
        operations=of.operations,
        unseen=unseen[0] if unseen else None,
        unseen_legend=unseen[1] if unseen else (),
        unfollowed=of.unseen.left_out,
        lag=lag[0] if lag else None,
        lag_s=lag[1] if lag else None,
        lag_legend=lag[2] if lag else (),
        lag_hidden=lag[3] if lag else 0,
        raw=latency_raw(of, faults, tables),
        raw_shown=len(of.raw),
        raw_seen=of.raw_seen,
        quantiles=latency_quantiles(of.quantiles, of.end_ns, faults),
        places=latency_by_place({"node": of.latency.nodes, "partition": of.latency.partitions}),
        order=order[0] if order else None,
        order_hidden=order[1] if order else 0,
        order_shown=len(of.order),
        order_seen=of.order_seen,
        around=tuple(
            _around(of, at, stretch, rows, faults, moments, tables)
            for at, (stretch, rows) in enumerate(of.around)
        ),
        processes=processes[0] if processes else None,
        lanes_hidden=processes[1] if processes else 0,
        bars=len(of.bars),
        packed=tables.packed(),
    )


def _finding(finding: Finding) -> dict[str, Any]:
    where = partition_label(finding.topic, finding.partition) if finding.topic else ""
    label = " ".join(
        [finding.anomaly, where, f"offset {number(finding.offset)}" if finding.offset is not None else ""]
    )
    return {"label": label.strip(), "cites": finding.operations[:_CITED], "anchor": finding.anchor}


def _around(
    of: Gathered,
    at: int,
    stretch: Stretch,
    rows: Table,
    faults: Sequence[Fault],
    moments: Sequence[Moment],
    tables: Tables,
) -> Around:
    label = partition_label(stretch.topic, stretch.partition)
    own = of_partition(moments, label)
    return Around(
        label=label,
        first=stretch.first,
        last=stretch.last,
        anomalies=stretch.anomalies,
        drawing=for_both(partial(order_around, of, at, stretch, rows, faults, own, tables)),
    )
