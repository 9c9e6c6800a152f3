"""Every page of the family in a browser: it fits a phone, its text can be read in both themes, and the
keyboard reaches what the mouse does."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from upath import UPath

from tests.harness.check.test_page import STALE
from tests.harness.index.nights import night
from tests.harness.report import synthetic_run
from tests.harness.report.browser import Browser, chromium
from wrackline.harness.cli.verdicts.check import check_command
from wrackline.harness.index.collect import Kept, gather
from wrackline.harness.index.runs import beside
from wrackline.harness.index.site import Reader, build
from wrackline.harness.report import write_report
from wrackline.simulator.eras.catalogue import STORIES
from wrackline.simulator.eras.page import page as eras_html
from wrackline.simulator.eras.page import row_of
from wrackline.simulator.search.kill_table import Hunt, KillTable, Row, Safe
from wrackline.simulator.search.kill_table import html as kill_table_html

__all__ = ("chromium",)
PAGES = ("report", "index", "check", "kill-table", "eras")
_TEXTS = """(() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const light = (rgb) => rgb.slice(0, 3).map((c) => linear(c / 255))
    .reduce((sum, c, at) => sum + c * [0.2126, 0.7152, 0.0722][at], 0);
  const behind = (of) => {
    for (let one = of; one; one = one.parentElement) {
      const colour = parts(getComputedStyle(one).backgroundColor);
      if (colour.length < 4 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const low = new Map();
  for (const one of document.querySelectorAll("main *, footer *")) {
    const own = [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    const aside = "svg, canvas, noscript, script, select, [aria-hidden=true], .down";
    if (!own || one.closest(aside) || !one.checkVisibility()) continue;
    const [a, b] = [light(parts(getComputedStyle(one).color)), light(behind(one))].sort((x, y) => x - y);
    const found = (b + 0.05) / (a + 0.05);
    if (found < 4.5) low.set(one.tagName + "." + one.className, found.toFixed(2));
  }
  return [...low];
})()"""
_UNREACHED = """[...document.querySelectorAll("a[href], button, summary, select, input, canvas.lanes")]
  .filter((one) => one.checkVisibility() && one.tabIndex < 0).map((one) => one.outerHTML.slice(0, 80))"""


def index_page(folder: Path) -> Path:
    night(folder / "results", 0, [{"verdict": "violation", "anomalies": ("lost-write",)}, {"seed": 8}])
    site = folder / "site"
    site.mkdir()
    entries = gather(UPath(folder / "results"), Kept())
    build("results", entries, site, Kept(), link=beside(site), reader=Reader("", "left out"), live=False)
    return site / "index.html"


def check_page(folder: Path) -> Path:
    history, page = folder / "history.edn", folder / "check.html"
    history.write_text(STALE)
    arguments = ["-m", "register", "--by", "search", str(history), "--report", str(page)]
    CliRunner().invoke(check_command, arguments, standalone_mode=False)
    return page


def kill_table_page(folder: Path) -> Path:
    hunt = Hunt(12, 240.0, 3.5, "I07", "a record is gone", "wrackline simulate --seed 3")
    caught = Row("trunc_hw", "B01", ("trunc_hw",), "kip966", ("I07", "I01"), 3.2, ("I07",), hunt=hunt)
    missed = Row("no_isr_hw", "B16", ("no_isr_hw",), "kip966", (), 0.0, ("I03",), noise=("I02",))
    page = folder / "kill-table.html"
    page.write_text(kill_table_html(KillTable((caught, missed), (Safe("kip966", Hunt(100, 2e3, 20.0)),))))
    return page


def eras_page(folder: Path) -> Path:
    page = folder / "eras.html"
    page.write_text(eras_html([row_of(STORIES[0], {})]))
    return page


@pytest.fixture(scope="module")
def family(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("family")
    return {
        "report": write_report(synthetic_run.write_run(folder / "run")),
        "index": index_page(folder),
        "check": check_page(folder),
        "kill-table": kill_table_page(folder),
        "eras": eras_page(folder),
    }


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", PAGES)
def test_every_text_can_be_told_from_what_is_behind_it(
    chromium: Browser, family: dict[str, Path], name: str, theme: str
) -> None:
    """Contrast of 4.5 (WCAG 2.1 AA), with everything unfolded."""
    chromium.show(family[name], 1280, theme=theme)
    chromium.value("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert chromium.value(_TEXTS) == []


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_shows_the_page_whole_and_a_keyboard_reaches_everything(
    chromium: Browser, family: dict[str, Path], name: str
) -> None:
    for width in (390, 1280):
        chromium.show(family[name], width)
        assert chromium.value("document.documentElement.scrollWidth") <= width
        assert chromium.value(_UNREACHED) == []
        assert chromium.value("document.querySelectorAll('main').length") == 1
        assert chromium.value("document.documentElement.lang") == "en"
        assert chromium.complaints == []
