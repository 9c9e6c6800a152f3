"""The pictures of a run that show every operation, or a fair choice of them: what ``read/pictures.py``
gathers, drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from markupsafe import Markup

from wrackline.checkers.explain.model import Finding, Group
from wrackline.checkers.inputs.cluster_history import LeaderSpan
from wrackline.harness.report.draw.delivery_charts import lag_charts, unseen_chart
from wrackline.harness.report.draw.latency_charts import latency_by_place, latency_quantiles, latency_raw
from wrackline.harness.report.draw.order_charts import order_around, order_chart
from wrackline.harness.report.draw.over_time import Chart, PictureData
from wrackline.harness.report.draw.page_data import Tables
from wrackline.harness.report.draw.process_lanes import processes_chart
from wrackline.harness.report.read.columns import OUTCOMES, Operations
from wrackline.harness.report.read.faults import Fault
from wrackline.harness.report.read.log_order import Stretch, stretches
from wrackline.harness.report.read.moments import Moment
from wrackline.harness.report.read.pictures import Gathered, Gatherer
from wrackline.history.labels import IMPORTED
from wrackline.history.wording import number, partition_label
from wrackline.pages.frame import for_both

_FINDINGS: Final = 200
"""Findings that the timeline can go to."""
_CITED: Final = 40


@dataclass(frozen=True, slots=True)
class Pictures:
    """Charts are None where there is nothing to draw."""

    of: Gathered
    """What they are drawn from."""
    unseen: Chart | None
    lag: Chart | None
    lag_s: Markup | None
    raw: Markup | None
    quantiles: Markup | None
    places: Markup | None
    order: Chart | None
    around: tuple[tuple[Stretch, Markup], ...]
    """Offsets that findings are about, drawn."""
    processes: Chart | None
    packed: str
    """The tables of draw/page_data.py."""


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
    result = [one.finding for group in groups for one in group.explanations][:_FINDINGS]
    cited = {index for finding in result for index in finding.operations}
    gatherer = Gatherer(operations, end_ns, leaders, stretches(groups), cited)
    for batch in operations.batches():
        gatherer.add(batch)
    of = gatherer.gathered()
    words = {
        "fs": of.fs,
        "outcomes": OUTCOMES,
        "places": of.places,
        "errors": of.errors,
        "hosts": of.hosts,
        "imported": system == IMPORTED,
        "end": of.end_ns // 1_000,
        "findings": [_finding(finding) for finding in result if finding.operations],
    }
    data = PictureData(of, faults, moments, Tables(words, of.led_by))
    unseen = unseen_chart(data)
    lag, lag_s = lag_charts(data) or (None, None)
    return Pictures(
        of=of,
        unseen=unseen,
        lag=lag,
        lag_s=lag_s,
        order=order_chart(data),
        processes=processes_chart(data),
        raw=latency_raw(data),
        quantiles=latency_quantiles(data),
        places=latency_by_place({"node": of.latency.nodes, "partition": of.latency.partitions}),
        around=tuple(
            (stretch, for_both(partial(order_around, data, at))) for at, (stretch, _) in enumerate(of.around)
        ),
        packed=data.tables.packed(),
    )


def _finding(finding: Finding) -> dict[str, Any]:
    where = partition_label(finding.topic, finding.partition) if finding.topic else ""
    label = " ".join(
        [finding.anomaly, where, f"offset {number(finding.offset)}" if finding.offset is not None else ""]
    )
    return {"label": label.strip(), "cites": finding.operations[:_CITED], "anchor": finding.anchor}
