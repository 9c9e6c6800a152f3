"""The loop's silence is measured from within, and metrics of the parts of a process go onto one page."""

from __future__ import annotations

import asyncio
import time

from wrackline.broker.model.metric import Metric
from wrackline.broker.server.meter import SILENT_MS, LoopMeter
from wrackline.broker.server.metrics import of_all, text


def values(meter: LoopMeter) -> dict[str, int]:
    return {metric.name: metric.samples[""] for metric in meter.metrics()}


def test_a_loop_that_takes_up_nothing_is_noticed() -> None:
    async def blocked() -> tuple[dict[str, int], dict[str, int]]:
        meter = LoopMeter(asyncio.get_running_loop())
        await asyncio.sleep(0)
        before = values(meter)
        time.sleep(1.5 * SILENT_MS / 1_000)
        while values(meter)["loop_silences_count"] == before["loop_silences_count"]:
            await asyncio.sleep(0)
        after = values(meter)
        meter.close()
        return before, after

    before, after = asyncio.run(asyncio.wait_for(blocked(), 30))
    assert after["loop_silences_count"] == before["loop_silences_count"] + 1
    assert after["loop_silence_longest_ms"] >= SILENT_MS
    assert after["loop_silent_ms_count"] >= before["loop_silent_ms_count"] + SILENT_MS


def test_a_metric_of_two_parts_is_told_once() -> None:
    """Prometheus refuses a page that describes a metric twice."""

    def part(name: str) -> list[Metric]:
        return [Metric("asked", "counter", "Asked.", {f'part="{name}"': len(name)})]

    page = text(of_all([lambda: part("broker"), lambda: part("controller")]))
    assert page.splitlines() == [
        "# HELP wrackline_asked Asked.",
        "# TYPE wrackline_asked counter",
        'wrackline_asked{part="broker"} 6',
        'wrackline_asked{part="controller"} 10',
    ]
