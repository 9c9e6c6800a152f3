"""The documents as a site: it is built without a warning, and has what is made from the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from html import unescape
from pathlib import Path

import pytest

from tests.harness.report.browser import PROGRAM, Browser, browser
from wrackline.checkers.checks.registry import names
from wrackline.harness.cli.main import COMMANDS
from wrackline.harness.extend.faults import known_faults
from wrackline.harness.specification.sections import FLEET, SYSTEM, WORKLOAD
from wrackline.workloads.clients.properties import ALLOWED

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "mkdocs.yml"


def build(config: Path, into: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "mkdocs",
        "build",
        "--strict",
        "-f",
        str(config),
        "-d",
        str(into),
    ]
    return subprocess.run(
        command,
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    into = tmp_path_factory.mktemp("site")
    done = build(CONFIG, into)
    assert done.returncode == 0, done.stderr
    return into


@cache
def text(page: Path) -> str:
    return unescape(page.read_text(encoding="utf-8"))


def test_a_link_or_an_anchor_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """The control: by the same settings, without the pages made from the code."""
    settings = CONFIG.read_text(encoding="utf-8").replace("hooks:\n  - website/hooks.py\n", "")
    (tmp_path / "mkdocs.yml").write_text(settings[: settings.index("\nnav:")] + "\n", encoding="utf-8")
    page = tmp_path / "docs" / "index.md"
    page.parent.mkdir()
    wrong = ("gone.md", "#gone", "../gone.toml")
    page.write_text("# Title\n\n" + " ".join(f"[gone]({one})" for one in wrong) + "\n", encoding="utf-8")
    done = build(tmp_path / "mkdocs.yml", tmp_path / "site")
    assert done.returncode == 1
    assert [one for one in wrong if f"'{one}'" not in done.stderr] == []


def test_what_there_is_is_in_the_reference(site: Path) -> None:
    reference = site / "reference"
    for page, wanted in (
        ("faults", [one.name for one in known_faults()]),
        ("anomalies", names()),
        ("librdkafka", sorted(ALLOWED)),
        ("commands", [f"wrackline {name}" for name in COMMANDS]),
        ("fleets", FLEET.models()),
        ("systems", SYSTEM.models()),
        ("workloads", WORKLOAD.models()),
        ("specification", ["topic.partitions", "nemesis.random", "contract.thresholds.recovery_s", "seed"]),
    ):
        found = text(reference / f"{page}.html")
        assert [one for one in wanted if f">{one}<" not in found and f">{one}" not in found] == [], page
    assert "Spark master to analyse on" in text(reference / "commands.html")
    assert "must be given" in text(reference / "faults.html")


def test_nothing_of_this_machine_and_nothing_from_elsewhere_is_in_it(site: Path) -> None:
    home = str(Path.home())
    for page in site.rglob("*.html"):
        found = text(page)
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"?(https?:[^\"> ]+)", found)
        assert loaded == [], page
        assert str(ROOT) not in found, page
        assert f"{home}/" not in found or home == "/", page


def test_links_out_of_docs_lead_to_pages_of_the_site(site: Path) -> None:
    plugins = text(site / "plugins.html")
    assert 'href="CONTRIBUTING.html"' in plugins
    assert 'href="examples.html#wrackline-example"' in plugins
    assert 'id="wrackline-example"' in text(site / "examples.html")
    assert 'href="specification.html"' in text(site / "pytest.html")
    assert ".md</a>" not in text(site / "running.html"), "a title stands in the place of a file's name"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if PROGRAM is None:
        pytest.skip("no Chromium on this machine")
    with browser() as one:
        yield one


@pytest.mark.parametrize(
    "page", ["index", "tutorial", "specification", "anomalies", "reference/specification"]
)
def test_a_page_is_no_wider_than_a_phone(site: Path, chromium: Browser, page: str) -> None:
    """Tables and blocks of code have bars of their own."""
    chromium.show(site / f"{page}.html", 390)
    assert chromium.value("document.documentElement.scrollWidth") <= 390
    assert chromium.value("document.querySelector('h1').getBoundingClientRect().right") <= 390


def test_lists_are_those_of_the_page(site: Path) -> None:
    """A numbered list goes on after a list inside it."""
    before = text(site / "CONTRIBUTING.html").partition("One room, one job")[0]
    assert before.rindex("</ul>") > before.rindex("<ul>")


FOUND = """
new Promise((done) => {
  const field = document.querySelector(".md-search__input");
  field.focus();
  field.value = "rolling upgrades";
  field.dispatchEvent(new Event("keyup", {bubbles: true}));
  const began = Date.now();
  (function look() {
    const first = document.querySelector(".md-search-result__item a");
    if (first || Date.now() - began > 20000) done(first ? first.href : ""); else setTimeout(look, 50);
  })();
})
"""


def test_the_search_works_in_a_page_that_was_opened_as_a_file(site: Path, chromium: Browser) -> None:
    chromium.show(site / "index.html", 1280)
    assert "rolling-upgrades.html" in chromium.value(FOUND)
    assert chromium.complaints == []
