"""The pages of the site as HTML. No other module of this folder knows HTML, and no template computes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from markupsafe import Markup

from wrackline.harness.index.drawing import spark, trend_chart
from wrackline.harness.index.incidents import Incident
from wrackline.harness.index.runs import Run
from wrackline.harness.index.suites import Suite
from wrackline.harness.index.trends import Series, Trend
from wrackline.harness.index.words import change, figure, interval, percent
from wrackline.pages.template import Templates

PAGES: Final = (
    ("index.html", "Nights"),
    ("suites.html", "Suites"),
    ("trends.html", "Trends"),
    ("incidents.html", "Incidents"),
    ("latency.html", "Latency"),
    ("runs.html", "Runs"),
    ("compare.html", "Compare"),
    ("history.html", "History"),
)
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


def slug(name: str) -> str:
    """A name as a part of an address or of a file's name."""
    return _NO_NAME.sub("-", name).strip("-.") or "none"


def _by_metric(series: Series) -> dict[str, Trend]:
    return {trend.metric: trend for trend in series.trends}


_TEMPLATES: Final = Templates(
    "wrackline.harness.index",
    may_fetch=True,
    by_metric=_by_metric,
    change=change,
    chart=trend_chart,
    figure=lambda value, metric: figure(metric, value),
    interval=interval,
    percent=percent,
    slug=slug,
    spark=spark,
)


@dataclass(frozen=True)
class Site:
    """What every page shows or links to."""

    name: str
    """Where the runs are."""
    runs: Sequence[Run]
    suites: Sequence[Suite]
    series: Sequence[Series]
    incidents: Sequence[Incident]
    stamp: str
    """Another one whenever a run is; empty where the pages do not ask for it."""
    pages: tuple[tuple[str, str], ...] = field(default=PAGES)

    @cached_property
    def suite_page(self) -> dict[str, str]:
        """Suite -> the file of its page, in the folder ``suite``."""
        names = dict.fromkeys(run.record.name for run in self.runs)
        made: dict[str, str] = {}
        for name in names:
            file = slug(name)
            while f"{file}.html" in made.values():
                file += f"-{len(made)}"
            made[name] = f"{file}.html"
        return made

    @cached_property
    def verdicts(self) -> list[str]:
        return sorted({run.word for run in self.runs})

    @cached_property
    def marks(self) -> list[tuple[str, str, str]]:
        """The squares that the site has: class, sign, what it says."""
        return sorted({(run.css, run.mark, run.word) for run in self.runs})

    @staticmethod
    def way(link: str, root: str) -> str:
        """A link from the site's folder, from a page that is so deep in it."""
        return link if "://" in link else root + link


def page(name: str, site: Site, *, here: str, script: str = "", **values: Any) -> str:
    """The page of a template. ``here``: its file, from the site's folder. ``script``: one of ours that it has
    besides, as the content of its element."""
    root = "../" * here.count("/")
    return _TEMPLATES.render(name, script=script, site=site, here=here, root=root, **values)


def embedded(json: bytes) -> Markup:
    """JSON that cannot end the element it is in."""
    return Markup(json.decode().replace("<", "\\u003c"))
