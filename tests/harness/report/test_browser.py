"""The page in a real browser: it fits a phone, runs nothing but its own script, and says nothing on the
console."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.harness.report.browser import DRAWN, UNPACKED, Browser, chromium
from tests.harness.report.synthetic_incidents import ALLOWED, INCIDENT, LOSS
from tests.harness.report.synthetic_run import edited
from wrackline.checkers.explain.step import explain
from wrackline.harness.report import write_report
from wrackline.harness.report.bug_report import bug_report
from wrackline.harness.report.read.files import read_run

ROOT = Path(__file__).parents[3]
PHONE = 390
LONG = "a_word_that_goes_on_and_on_" * 12
WIDTH = "document.scrollingElement.scrollWidth"
CUT_BOXES = (
    "[...document.querySelectorAll('.scroll, table, figure, svg.chart')]"
    ".filter(one => one.scrollWidth > one.clientWidth + 1 && one.clientWidth || "
    "one.getBoundingClientRect().right > innerWidth + 1)"
    ".map(one => `${one.tagName} ${one.scrollWidth} of ${one.clientWidth}: "
    "${one.textContent.trim().slice(0, 60)}`)"
)
CUT_WORDS = (
    "[...document.querySelectorAll('svg.chart text')].filter(one => {"
    " const box = one.getBoundingClientRect(), frame = one.ownerSVGElement.getBoundingClientRect();"
    " return box.width && (box.left < frame.left - 1 || box.right > frame.right + 1); })"
    ".map(one => `${one.ownerSVGElement.ariaLabel}: ${one.textContent}`)"
)
VISIBLE = "(chosen => [...document.querySelectorAll(chosen)].filter(one => one.getClientRects().length))"
OPEN_ALL = "document.querySelectorAll('details').forEach(one => { one.open = true; }); 1"
__all__ = ("chromium",)


@pytest.fixture
def long_words(own_run: Path) -> Path:
    """A run whose every text is one word that no line holds."""
    fault = {"proof": LONG, "role": LONG, "targets": [LONG], "lost": {LONG: {LONG: 5}}}
    with edited(own_run) as verdict:
        verdict |= {"headline": LONG, "reasons": [LONG] * 3}
        verdict["contract"] = dict.fromkeys(("name", "row", "promise"), LONG) | {"because": [LONG]}
        verdict["conditions"] = [{"name": LONG, "ok": False, "detail": LONG}]
        verdict["counts"]["sends_by_error"] = {LONG: 4}
        verdict["faults"] = [one | fault | {"fault": f"partition-{LONG}"} for one in verdict["faults"]]
        verdict["anomalies"] = [one | {"why": LONG} for one in verdict["anomalies"]]
    with edited(own_run, "run.json") as info:
        info |= {"notes": [LONG], "defects": [LONG], "system": LONG, "name": LONG}
    (own_run / "plan.json").write_text(LONG)
    (own_run / ("f" * 200)).write_text("x")
    found = pq.read_table(own_run / "findings.parquet")
    for column in ("explanation", "where"):
        at = found.schema.get_field_index(column)
        found = found.set_column(at, found.schema.field(at), pa.array([LONG] * len(found), pa.string()))
    pq.write_table(found, own_run / "findings.parquet")
    explain(own_run)
    write_report(own_run)
    return own_run


@pytest.fixture
def passing(whole_run: Path, tmp_path: Path) -> Path:
    run_dir = Path(shutil.copytree(whole_run, tmp_path / "passing"))
    with edited(run_dir) as verdict:
        verdict |= {"verdict": "pass", "headline": "nothing was lost", "reasons": []}
        verdict["anomalies"] = [one | {"count": 0} for one in verdict["anomalies"]]
    found = pq.read_table(run_dir / "findings.parquet")
    pq.write_table(found.slice(0, 0), run_dir / "findings.parquet")
    explain(run_dir)
    write_report(run_dir)
    return run_dir


@pytest.mark.parametrize("kind", ["whole_run", "with_incidents", "long_words", "passing", "sample"])
def test_a_page_fits_a_phone_and_a_window(
    chromium: Browser, kind: str, request: pytest.FixtureRequest
) -> None:
    """On a phone nothing is cut sideways: neither a table, nor a drawing, nor a word in one. Of two widths of
    a drawing one is shown."""
    run_dir = ROOT / "results/sample" if kind == "sample" else request.getfixturevalue(kind)
    for width, theme in ((PHONE, "light"), (PHONE, "dark"), (1280, "light")):
        shown, hidden = ("phone", "wide") if width == PHONE else ("wide", "phone")
        chromium.show(run_dir / "report.html", width, theme=theme)
        if width == PHONE:
            assert chromium.value(WIDTH) == PHONE
        chromium.value(OPEN_ALL)
        assert chromium.value(f"{VISIBLE}('svg.chart.{shown}:not(.still *)').length") > 5
        assert chromium.value(f"{VISIBLE}('svg.chart.{hidden}').length") == 0
        assert chromium.value(WIDTH) == PHONE if width == PHONE else chromium.value(WIDTH) <= width
        if width == PHONE:
            assert chromium.value(CUT_BOXES) == []
            assert chromium.value(CUT_WORDS) == []
        assert chromium.complaints == []


def test_tables_are_cards_on_a_phone(chromium: Browser, with_incidents: Path) -> None:
    """Every cell but the title of a card says what it is."""
    chromium.show(with_incidents / "report.html", PHONE)
    tables = "[...document.querySelectorAll('table:has(> thead)')].filter(one => !one.closest('.card'))"
    assert chromium.value(f"{tables}.length") > 5
    assert chromium.value(f"{tables}.filter(one => !one.classList.contains('stack')).length") == 0
    unnamed = (
        f"{tables}.flatMap(one => [...one.tBodies[0].rows]).filter(row =>"
        " [...row.cells].slice(1).some(cell => !cell.dataset.is)).map(row => row.innerText)"
    )
    assert chromium.value(unnamed) == []
    chromium.value(OPEN_ALL)
    narrow = "[...document.querySelectorAll('caption')].filter(one => one.clientWidth < 200).length"
    assert chromium.value(narrow) == 0
    assert chromium.value(f"{VISIBLE}('svg.chart.witness, svg.chart.strip').length") == 0, (
        "as a table and words"
    )
    said = "getComputedStyle(document.querySelector('#faults td[data-is=proof]'), '::before').content"
    assert chromium.value(said) == '"proof"'
    chromium.show(with_incidents / "report.html", 1280)
    assert chromium.value(said) == "none"


def test_moments_and_links_can_be_reached_and_have_names_of_their_own(
    chromium: Browser, with_incidents: Path
) -> None:
    chromium.show(with_incidents / "report.html", 1280)
    moment = "document.querySelector('#timeline svg.wide a')"
    chromium.value(f"{moment}.focus()")
    assert chromium.value(f"document.activeElement === {moment}") is True
    chromium.ask(
        "Input.dispatchKeyEvent",
        type="keyDown",
        key="Enter",
        code="Enter",
        windowsVirtualKeyCode=13,
        text="\r",
    )
    chromium.value("new Promise(done => setTimeout(() => done(1), 100))")
    assert chromium.value("location.hash") == f"#{LOSS}"
    names = chromium.value("[...document.querySelectorAll('a.here')].map(one => one.ariaLabel)")
    assert len(names) > 20
    assert all(names)
    assert len(set(names)) == len(names)
    assert chromium.complaints == []


def test_a_tap_on_a_point_tells_of_its_operation_in_both_widths(chromium: Browser, whole_run: Path) -> None:
    for width, cls in ((1280, "wide"), (PHONE, "phone")):
        chromium.show(whole_run / "report.html", width)
        chromium.value(UNPACKED)
        told = chromium.value(
            f"""(() => {{
              const svg = document.querySelector('svg.{cls}[data-points=raw]');
              const box = svg.getBoundingClientRect();
              const dot = svg.querySelector('path.dots').getAttribute('d').match(/m([\\d.]+) ([\\d.]+)/);
              const unit = box.width / svg.viewBox.baseVal.width;
              svg.dispatchEvent(new MouseEvent('mousemove', {{bubbles: true,
                clientX: box.left + dot[1] * unit, clientY: box.top + dot[2] * unit}}));
              const spot = svg.querySelector('.spot');
              return [spot.getAttribute('cx'), dot[1], document.querySelector('.tooltip').textContent];
            }})()"""
        )
        assert abs(float(told[0]) - float(told[1])) < 1
        assert re.match(r"p\d+ ", told[2])


@pytest.mark.parametrize("kind", ["whole_run", "passing"])
def test_styles_and_the_script_work_under_the_policy(
    chromium: Browser, kind: str, request: pytest.FixtureRequest
) -> None:
    chromium.show(request.getfixturevalue(kind) / "report.html", 1200)
    assert chromium.value("getComputedStyle(document.querySelector('.banner')).display") == "flex"
    assert chromium.value("document.querySelectorAll('svg.chart [data-tip]').length") > 10
    shown = """(() => {
      const bar = document.querySelector('svg.chart [data-tip]');
      bar.dispatchEvent(new MouseEvent('mousemove', {bubbles: true, clientX: 50, clientY: 50}));
      const box = document.querySelector('.tooltip');
      return !box.hidden && box.textContent === bar.dataset.tip && box.style.left !== '';
    })()"""
    assert chromium.value(shown) is True
    assert chromium.complaints == []


def test_a_finding_has_a_link_that_opens_it(chromium: Browser, own_run: Path) -> None:
    """The link outlives the page: it is the same when the report is written again."""
    page = own_run / "report.html"
    anchors = re.findall(r'<details class="finding" id="([^"]+)"', page.read_text())
    assert len(anchors) > 5
    assert len(set(anchors)) == len(anchors)
    write_report(own_run)
    assert re.findall(r'<details class="finding" id="([^"]+)"', page.read_text()) == anchors
    chromium.show(page, 1200)
    shut = chromium.value("[...document.querySelectorAll('.finding')].findLast(one => !one.open).id")
    last = f"document.getElementById('{shut}')"
    chromium.value(f"{last}.querySelector('a.here').click()")
    chromium.value(DRAWN)
    assert chromium.value(f"{last}.open") is True
    assert chromium.value(f"Math.abs({last}.getBoundingClientRect().top) < innerHeight") is True
    assert chromium.complaints == []


def test_a_button_copies_the_incident_as_a_bug_report(chromium: Browser, with_incidents: Path) -> None:
    chromium.show(with_incidents / "report.html", PHONE)
    chromium.value("navigator.clipboard.writeText = async (text) => { window.copied = text; }; 1")
    chromium.value(f"document.querySelector('#{LOSS} button[data-copy]').click()")
    text = chromium.value("window.copied")
    assert text == bug_report(read_run(with_incidents), INCIDENT)
    assert chromium.value(f"document.querySelector('#{ALLOWED} button[data-copy]')") is None
    chromium.value(OPEN_ALL)
    assert chromium.value(WIDTH) == PHONE
    assert chromium.complaints == []


def test_the_overview_opens_the_evidence_inside_its_incident(chromium: Browser, with_incidents: Path) -> None:
    chromium.show(with_incidents / "report.html", PHONE)
    group = f"document.getElementById('{LOSS}-stale-read')"
    assert chromium.value(f"{group}.open") is False
    chromium.value("document.querySelector('#a-stale-read a').click()")
    chromium.value(DRAWN)
    assert chromium.value(f"{group}.open && {group}.parentElement.id") == LOSS
    assert chromium.value(f"Math.abs({group}.getBoundingClientRect().top) < innerHeight") is True
    assert chromium.complaints == []


def test_what_gets_into_the_page_is_not_run(chromium: Browser, whole_run: Path, tmp_path: Path) -> None:
    """Escaping has failed, say; the policy is what is left."""
    bad = (
        "<script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"
        "<style>main { display: none }</style><p style='color: red' id='mine'>x</p>"
    )
    page = tmp_path / "bad.html"
    page.write_text((whole_run / "report.html").read_text().replace("<main>", f"<main>{bad}"))
    chromium.show(page, 1200)
    assert chromium.value("document.title") != "owned"
    assert chromium.value("getComputedStyle(document.querySelector('main')).display") == "block"
    assert chromium.value("getComputedStyle(document.querySelector('#mine')).color") != "rgb(255, 0, 0)"
    assert len([said for said in chromium.complaints if "Content Security Policy" in said]) >= 4


def test_the_kill_table_fits_a_phone(chromium: Browser, tmp_path: Path) -> None:
    from wrackline.simulator.guided.catalogue import SCHEDULES
    from wrackline.simulator.search.kill_table import Budget, html, kill_table

    page = tmp_path / "table.html"
    page.write_text(html(kill_table([SCHEDULES["trunc_hw"]], Budget(1), random=False)))
    chromium.show(page, PHONE)
    assert chromium.value(WIDTH) == PHONE
    assert chromium.value("getComputedStyle(document.querySelector('.tiles')).display") == "grid"
    assert chromium.complaints == []
