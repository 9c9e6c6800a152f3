"""The site: a folder of pages that need no server and no network.

A page is written only when it has changed, and a history is read only when it has, so a site that is built
again after one more run is built quickly. What no run stands behind any more is removed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import orjson
from markupsafe import Markup

from wrackline.harness.index.baseline import label
from wrackline.harness.index.collect import Entry, Kept, save
from wrackline.harness.index.incidents import incidents
from wrackline.harness.index.latency import latest, places
from wrackline.harness.index.pages import Site, embedded, page
from wrackline.harness.index.runs import Link, Run, group_runs, shown
from wrackline.harness.index.suites import NightRow, grid, suites
from wrackline.harness.index.trends import (
    HIGHER_IS_BETTER,
    News,
    Point,
    Trend,
    news,
    series,
    settings,
)
from wrackline.harness.records import METRICS, State
from wrackline.history.store.folder import whole_file
from wrackline.history.wording import plural

KEPT: Final = "kept.json"
"""What was made of histories; by this file a folder is known as a site of ours."""
LIVE: Final = "live.json"
NIGHTS_SHOWN: Final = 60
_FRESH: Final = 5
_RELATED: Final = 60
_IN_EVERY_SERIES: Final = (
    "acknowledged",
    "acknowledged_per_s",
    "send_p50_ms",
    "send_p99_ms",
    "faulted_p99_ms",
    "longest_gap_ms",
    "left_out",
    "seconds",
)


class NotASite(Exception):
    """The folder has something else in it. One line."""


@dataclass(frozen=True, slots=True)
class Built:
    runs: int
    written: int
    """Pages that were new or had changed."""
    bytes: int
    """Of the whole site."""


def claim(folder: Path) -> None:
    """Make the folder, or see that it is a site. Raises NotASite, OSError."""
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()) and not (folder / KEPT).exists():
        raise NotASite(f"{folder}: not empty, and no site of ours; name a folder of its own with --out")


@dataclass(frozen=True, slots=True)
class Reader:
    """The script that reads histories; empty, and then ``why``."""

    script: str
    why: str = ""


def build(
    name: str,
    entries: Sequence[Entry],
    folder: Path,
    kept: Kept,
    *,
    link: Link,
    reader: Reader,
    live: bool,
    known: Mapping[str, str] = MappingProxyType({}),
) -> Built:
    """Write the site. ``live``: its pages ask now and then whether there is something new. ``known``: which
    incidents somebody works on (`wrackline.harness.records.known_incidents`). Raises OSError."""
    runs = shown(entries, link)
    site = Site(
        name, runs, suites(runs), series(runs), incidents(runs, known), _stamp(runs, known) if live else ""
    )
    made = dict(_pages(site, reader))
    written = sum(_write(folder / file, content.encode("utf-8", "replace")) for file, content in made.items())
    for below in ("run", "suite"):
        for there in (folder / below).glob("*.html"):
            if f"{below}/{there.name}" not in made:
                there.unlink()
    save(kept)
    if live:  # last: whoever reads it finds the pages that it is of
        _write(folder / LIVE, orjson.dumps({"stamp": site.stamp}))
    else:
        (folder / LIVE).unlink(missing_ok=True)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return Built(len(runs), written, size)


def _stamp(runs: Sequence[Run], known: Mapping[str, str]) -> str:
    said = [(run.slug, run.word, run.headline, run.report, run.record.night) for run in runs]
    return hashlib.sha256(orjson.dumps([said, sorted(known.items())])).hexdigest()[:16]


def _write(path: Path, content: bytes) -> bool:
    if path.exists() and path.read_bytes() == content:
        return False
    path.parent.mkdir(exist_ok=True)
    with whole_file(path) as part:
        part.write_bytes(content)
    return True


def _pages(site: Site, reader: Reader) -> Iterator[tuple[str, str]]:
    result = news(site.series)
    yield _nights(site, result)
    yield page(site, "suites.html", suites=site.suites)
    columns = [(metric, label(metric)) for metric in _IN_EVERY_SERIES]
    yield page(site, "trends.html", news=result, series=site.series, shown=columns)
    yield page(site, "incidents.html", incidents=site.incidents)
    yield page(site, "latency.html", latencies=latest(site.series))
    yield page(site, "runs.html")
    yield page(site, "compare.html", data=embedded(_data(site.runs, result)))
    script = Markup(reader.script)  # ours, and hashed in the page's policy
    yield page(site, "history.html", script=reader.script, reader=script, why=reader.why)
    for suite in site.suites:
        here = f"suite/{site.suite_page[suite.name]}"
        own = [one for one in site.series if one.suite == suite.name]
        seen = [one for one in site.incidents if suite.name in one.suites]
        yield page(site, here, "suite.html.j2", suite=suite, series=own, incidents=seen)
    yield from _run_pages(site)


def _nights(site: Site, found: Sequence[News]) -> tuple[str, str]:
    nights = grid(site.runs)
    rows = nights[:NIGHTS_SHOWN]
    return page(
        site,
        "index.html",
        tiles=_tiles(site, nights, found) if nights else [],
        nights=rows,
        hidden_nights=len(nights) - len(rows),
        columns=sorted({name for night in rows for name in night.cells}),
        fresh=site.incidents[:_FRESH],
        incident_count=len(site.incidents),
        damaged=[
            run for run in site.runs if run.record.trouble and run.record.state is not State.INFRASTRUCTURE
        ],
    )


def _tiles(site: Site, nights: Sequence[NightRow], found: Sequence[News]) -> list[dict[str, Any]]:
    latest_night = nights[0]
    moved = [one for one in found if one.point.run.night == latest_night.name and one.worse]
    alarms = [one for one in site.incidents if one.alarms]
    fresh = sum(one.first.night == latest_night.name for one in alarms)
    expected = sum(one.expected for one in site.incidents)
    besides = {"known": len(site.incidents) - len(alarms) - expected, "expected": expected}
    told = [f"{fresh} new in the latest night", *(f"{n} {what}" for what, n in besides.items() if n)]
    day = latest_night.began[:10]
    going_on = sum(run.record.state is State.RECORDING for run in site.runs)
    tiles = [
        _tile(
            "runs",
            len(site.runs),
            f"in {plural(len(nights), 'night')}, of {plural(len(site.suites), 'suite')}",
            "runs.html",
        ),
        _tile(
            "failed in the latest night",
            latest_night.bad,
            f"of {latest_night.of}: {latest_night.label}" + ("" if day in latest_night.label else f", {day}"),
            f"runs.html?q={latest_night.name}",
            bad=latest_night.bad > 0,
        ),
        _tile("incidents", len(alarms), "; ".join(told), "incidents.html"),
        _tile(
            "flaky suites",
            sum(one.is_flaky for one in site.suites),
            "passed and failed under one version",
            "suites.html",
        ),
        _tile("metrics worse than usual", len(moved), "in the latest night", "trends.html"),
    ]
    if going_on:
        tiles.append(_tile("recording", going_on, "go on, or were killed", "runs.html?verdict=recording"))
    return tiles


def _tile(label: str, figure: int, note: str, href: str, *, bad: bool = False) -> dict[str, Any]:
    return {"label": label, "figure": f"{figure:,}", "note": note, "href": href, "bad": bad}


def _run_pages(site: Site) -> Iterator[tuple[str, str]]:
    of_run = {run.slug: one for one in site.series for run in one.runs}
    points: dict[str, list[tuple[Trend, Point]]] = {}
    for one in site.series:
        for trend in one.trends:
            for point in trend.points:
                points.setdefault(point.run.slug, []).append((trend, point))
    for related in group_runs(site.runs, lambda run: run.record.case).values():
        for at, run in enumerate(related):
            yield page(
                site,
                run.page,
                "run.html.j2",
                run=run,
                facts=_facts(run),
                before=related[at - 1] if at else None,
                measured=points.get(run.slug, []),
                one=places(run, of_run.get(run.slug)),
                related=related[-_RELATED:] if len(related) > 1 else [],
            )


def _facts(run: Run) -> list[tuple[str, str]]:
    one = run.record
    facts = [
        ("run", one.run),
        ("began", f"{run.began} UTC" if run.began else ""),
        ("night", one.night),
        ("system", run.system),
        ("fleet", one.fleet),
        ("workload", one.workload),
        ("acks", one.acks),
        ("seed", "" if one.seed is None else str(one.seed)),
        ("schedule", one.signature[1]),
        ("defects", ", ".join(one.defects)),
        ("contract", one.contract),
        ("trouble", one.trouble if one.headline else ""),
    ]
    return [(name, fact) for name, fact in facts if fact]


def _data(runs: Sequence[Run], found: Sequence[News]) -> bytes:
    """Returns the data of every run for the page that compares."""
    marked: dict[str, list[str]] = {}
    for one in found:
        marked.setdefault(one.point.run.slug, []).append(one.trend.metric)
    rows = [
        {
            "slug": run.slug,
            "label": f"{run.record.task}, {run.began}, {run.word}",
            "suite": run.record.name,
            "kind": run.record.system,
            "system": run.system,
            "settings": settings(run),
            "night": run.night,
            "word": run.word,
            "metrics": run.record.metrics,
            "marked": marked.get(run.slug, []),
            "found": {found.anomaly: [found.count, str(found.meaning)] for found in run.record.found},
            "page": run.page,
        }
        for run in runs
    ]
    said = {
        "runs": rows,
        "metrics": [(metric, label(metric)) for metric in METRICS],
        "higher": sorted(HIGHER_IS_BETTER),
    }
    return orjson.dumps(said)
