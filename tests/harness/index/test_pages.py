"""The site in a real browser: it fits a phone, says nothing on the console, and its search and links work."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from upath import UPath

from tests.harness.index.nights import night
from tests.harness.report.browser import Browser
from wrackline.harness.index.collect import Kept, gather
from wrackline.harness.index.pages import PAGES
from wrackline.harness.index.runs import beside
from wrackline.harness.index.site import Reader, build

PHONE = 390
WIDTH = "document.scrollingElement.scrollWidth"
SIDEWAYS = (
    "[...document.querySelectorAll('.scroll')].filter(one => one.scrollWidth > one.clientWidth + 1"
    " && !one.querySelector('.nights')).map(one => one.innerText.slice(0, 80))"
)
LINKS = (
    "[...document.querySelectorAll('a[href]')].map(one => new URL(one.getAttribute('href'), location).href)"
)
LONG = "a_word_that_goes_on_and_on_" * 8


def built(results: Path, site: Path) -> Path:
    site.mkdir(parents=True)
    entries = gather(UPath(results), Kept())
    build("results", entries, site, Kept(), link=beside(site), reader=Reader("", "left out"), live=False)
    return site


@pytest.fixture(scope="module")
def site(ten_nights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(ten_nights, tmp_path_factory.mktemp("site") / "site")


@pytest.fixture(scope="module")
def long_words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site whose every text is one word that no line holds."""
    results = tmp_path_factory.mktemp("long")
    for number in range(7):
        wanted = {"name": LONG[:200], "version": LONG, "guided": LONG, "system": LONG, "anomalies": (LONG,)}
        folder = night(results, number, [{**wanted, "verdict": "violation"}])
        [run] = (folder / "runs").iterdir()
        said = json.loads((run / "verdict.json").read_text())
        faults = [one | {"fault": LONG, "targets": [LONG]} for one in said["faults"]]
        said |= {"headline": LONG, "faults": faults, "contract": {"name": LONG}}
        (run / "verdict.json").write_text(json.dumps(said))
    return built(results, results / "site")


def pages(site: Path) -> list[Path]:
    deeper = [next((site / below).glob("*.html")) for below in ("run", "suite")]
    return [*(site / file for file, _ in PAGES), *deeper]


@pytest.mark.parametrize("kind", ["site", "long_words"])
def test_every_page_is_as_wide_as_a_phone(
    chromium: Browser, kind: str, request: pytest.FixtureRequest
) -> None:
    for page in pages(request.getfixturevalue(kind)):
        chromium.show(page, PHONE)
        assert chromium.value(WIDTH) == PHONE, page
        if kind == "site":  # tables are cards there, but for the grid of nights
            assert chromium.value(SIDEWAYS) == [], page
        chromium.show(page, 1280)
        assert chromium.value(WIDTH) <= 1280, page
        assert chromium.value("getComputedStyle(document.querySelector('nav')).display") == "flex"
        assert chromium.complaints == [], page


def test_every_link_of_the_site_leads_somewhere(chromium: Browser, site: Path) -> None:
    """To a file that is there, and to a place that is in it."""
    for page in (*pages(site), *(site / "run").iterdir()):
        chromium.show(page, 1280)
        for link in chromium.value(LINKS):
            file, _, anchor = link.removeprefix("file://").partition("#")
            there = Path(file.partition("?")[0])
            assert there.is_file(), (page, link)
            if anchor:
                text = there.read_text()
                assert f'id="{anchor}"' in text or f"id='{anchor}'" in text, (page, link)


def test_a_search_hides_the_rest_and_is_in_the_address(chromium: Browser, site: Path) -> None:
    chromium.show(site / "runs.html", 1280)
    shown = "[...document.querySelectorAll('.rows > li')].filter(one => !one.hidden).length"
    everything = chromium.value(shown)
    typed = """((name, words) => {
      const field = document.querySelector(`[name=${name}]`);
      field.value = words;
      field.dispatchEvent(new Event('input', {bubbles: true}));
    })"""
    chromium.value(f"{typed}('q', 'lost-write 4.0.0')")
    assert chromium.value(shown) == 3  # two, and a repeat that showed it
    assert everything == 33
    address = chromium.value("location.href")
    assert "q=lost-write" in address
    chromium.ask("Page.navigate", url=address)
    chromium.value("new Promise(done => setTimeout(done, 300))")
    assert chromium.value(shown) == 3
    chromium.value(f"{typed}('verdict', 'pass')")
    assert chromium.value(shown) == 0
    assert chromium.complaints == []


def test_the_grid_leads_to_a_run_and_that_to_its_report(chromium: Browser, site: Path) -> None:
    chromium.show(site / "index.html", 1280)
    assert chromium.value("document.querySelectorAll('.nights tbody tr').length") == 11
    bad = chromium.value("[...document.querySelectorAll('.nights .square.v-violation')].map(one => one.href)")
    chromium.show(Path(bad[0].removeprefix("file://")), 1280)
    report = chromium.value(
        "[...document.querySelectorAll('a')].find(one => one.textContent === 'report').href"
    )
    assert Path(report.removeprefix("file://")).name == "report.html"
    assert Path(report.removeprefix("file://")).is_file()


def test_a_point_that_is_outside_has_a_ring_and_leads_to_its_run(chromium: Browser, site: Path) -> None:
    chromium.show(site / "suite/acks-all.html", 1280)
    chart = "document.querySelector('figure[id$=send_p99_ms]')"
    assert chromium.value(f"{chart}.querySelectorAll('.ring').length") == 4
    assert chromium.value(f"{chart}.querySelectorAll('path.past').length") == 1
    assert chromium.value(f"{chart}.querySelectorAll('a[href^=\"../run/\"]').length") == 20
    assert "expected" in chromium.value(f"[...{chart}.querySelectorAll('[data-tip]')].pop().dataset.tip")


def test_two_runs_are_compared_in_the_page(chromium: Browser, site: Path) -> None:
    chromium.show(site / "compare.html", 1280)
    choose = """((a, b, suite) => {
      const form = document.getElementById('pick');
      form.suite.value = suite;
      form.dispatchEvent(new Event('change'));
      form.suite.dispatchEvent(new Event('change', {bubbles: true}));
      form.a.value = a; form.b.value = b;
      form.b.dispatchEvent(new Event('change', {bubbles: true}));
      return [...document.querySelectorAll('#compared tbody tr')].map(
        row => [...row.cells].map(cell => cell.textContent));
    })"""
    rows = chromium.value(f"{choose}('v:apache-kafka 4.0.0', 'v:apache-kafka 4.1.0', 'acks-all')")
    by_name = {row[0]: row[1:] for row in rows}
    assert by_name["runs"][:2] == ["16", "4"]
    assert by_name["99th percentile before the first fault"][2].startswith("×2.") or (
        "%" in by_name["99th percentile before the first fault"][2]
    )
    assert "a=v%3Aapache-kafka+4.0.0" in chromium.value("location.href")
    assert chromium.complaints == []


def test_the_policy_keeps_out_what_the_templates_do_not_have(
    chromium: Browser, site: Path, tmp_path: Path
) -> None:
    bad = "<script>document.title = 'owned'</script><img src=x onerror=\"document.title = 'owned'\">"
    page = tmp_path / "bad.html"
    page.write_text((site / "index.html").read_text().replace("<main>", f"<main>{bad}"))
    chromium.show(page, 1280)
    assert chromium.value("document.title") != "owned"
    assert any("Content Security Policy" in said for said in chromium.complaints)
