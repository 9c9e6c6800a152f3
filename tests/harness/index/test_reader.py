"""Whole histories, read in a real browser: from a chosen file, and from the server of the page."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from upath import UPath

from tests.harness.report.browser import Browser
from wrackline.harness.index.collect import Kept, gather
from wrackline.harness.index.reader import bundle as reader_bundle
from wrackline.harness.index.reader.bundle import NoReader, reader
from wrackline.harness.index.runs import beside
from wrackline.harness.index.serving import Renewal, Server
from wrackline.harness.index.site import Reader, build

needs_npm = pytest.mark.skipif(
    shutil.which("npm") is None, reason="no npm here (Debian: apt-get install npm)"
)
COUNTED = "document.querySelector('#ask .counted').textContent"
CELLS = "row => [...row.cells].map(cell => cell.textContent)"
ROWS = f"[...document.querySelectorAll('#events tbody tr')].map({CELLS})"


@pytest.fixture(scope="module")
def site(ten_nights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    site = tmp_path_factory.mktemp("read") / "site"
    site.mkdir()
    entries = gather(UPath(ten_nights), Kept())
    build("results", entries, site, Kept(), link=beside(site), reader=Reader(reader()), live=False)
    return site


@pytest.fixture(scope="module")
def history(ten_nights: Path) -> Path:
    [found] = ten_nights.glob("*/history.parquet")
    return found


def choose(page: Browser, history: Path) -> None:
    page.choose_file("#file", history)
    page.until("document.querySelectorAll('#events tbody tr').length")


def pick(page: Browser, **fields: str) -> str:
    """What is counted when these are chosen."""
    for name, value in fields.items():
        page.value(f"document.getElementById('ask').elements[{name!r}].value = {value!r}")
    page.value("document.getElementById('ask').process.dispatchEvent(new Event('change', {bubbles: true}))")
    time.sleep(0.3)
    page.until(f"!{COUNTED}.includes('looking')")
    return str(page.value(COUNTED))


@needs_npm
def test_a_file_that_is_chosen_is_shown_whole(chromium: Browser, site: Path, history: Path) -> None:
    chromium.show(site / "history.html", 1280)
    choose(chromium, history)
    table = pq.read_table(history)
    assert chromium.value(COUNTED) == f"1 to 100 of {len(table):,}"
    rows = chromium.value(ROWS)
    for at in (0, 1, 50, 99):
        assert rows[at][0] == str(table["index"][at])
        assert rows[at][1] == f"{table['time_ns'][at].as_py() / 1e9:.6f} s"
        assert rows[at][3:5] == [table["type"][at].as_py(), table["f"][at].as_py()]
    assert chromium.complaints == []


@needs_npm
def test_every_operation_of_a_process_and_of_a_partition_is_found(
    chromium: Browser, site: Path, history: Path
) -> None:
    """Polls name no partition: what they were given does."""
    table = pq.read_table(history)
    chromium.show(site / "history.html", 1280)
    choose(chromium, history)
    process = pc.mode(table["process"])[0]["mode"].as_py()
    mine = pc.sum(pc.equal(table["process"], process)).as_py()
    assert pick(chromium, process=str(process)).endswith(f"of {mine:,}")
    rows = table.select(["topic", "partition", "records"]).to_pylist()
    of_one = [
        row
        for row in rows
        if row["topic"]
        and (row["partition"] == 1 or any(one["partition"] == 1 for one in row["records"] or ()))
    ]
    polls = [row for row in of_one if row["partition"] is None]
    assert polls, "the history has a poll of the partition"
    assert pick(chromium, process="", place="log-1").endswith(f"of {len(of_one):,}")
    assert "place=log-1" in chromium.value("location.search")
    assert chromium.complaints == []


@needs_npm
def test_later_events_are_pages_further(chromium: Browser, site: Path, history: Path) -> None:
    chromium.show(site / "history.html", 390)
    choose(chromium, history)
    chromium.value("document.getElementById('on').click()")
    chromium.until(f"{COUNTED}.startsWith('101 to 200')")
    assert chromium.value(ROWS)[0][0] == "100"
    assert chromium.value("document.scrollingElement.scrollWidth") == 390


@needs_npm
def test_a_file_that_is_no_history_is_said(chromium: Browser, site: Path, tmp_path: Path) -> None:
    chromium.show(site / "history.html", 1280)
    for name, content in (("other.parquet", None), ("text.parquet", b"no Parquet at all")):
        if content is None:
            import pyarrow as pa

            pq.write_table(pa.table({"x": [1]}), tmp_path / name)
        else:
            (tmp_path / name).write_bytes(content)
        chromium.choose_file("#file", tmp_path / name)
        chromium.until(f"document.getElementById('told').textContent.startsWith('{name} cannot be read: ')")


@needs_npm
def test_a_page_opened_as_a_file_says_which_file_to_choose(chromium: Browser, site: Path) -> None:
    chromium.show(site / "history.html", 1280)
    chromium.ask("Page.navigate", url=f"{(site / 'history.html').as_uri()}?run=../r/history.parquet")
    chromium.until("document.getElementById('told')?.textContent.includes('../r/history.parquet')")
    assert "wrackline site serve" in chromium.value("document.getElementById('told').textContent")


@pytest.fixture
def server(ten_nights: Path, tmp_path: Path) -> Iterator[str]:
    place = UPath(ten_nights)
    Renewal(place, tmp_path, Reader(reader()), print).once()
    served = Server("127.0.0.1", 0, place, tmp_path)
    thread = threading.Thread(target=served.serve_forever, args=(0.05,))
    thread.start()
    yield served.url
    served.shutdown()
    served.server_close()
    thread.join(timeout=30)


@needs_npm
def test_a_served_page_reads_the_history_by_itself(chromium: Browser, server: str, history: Path) -> None:
    chromium.ask("Page.navigate", url=f"{server}run/{history.parent.name}.html")
    chromium.until(
        "document.readyState === 'complete' && !!document.querySelector('a[href*=\"history.html\"]')",
    )
    chromium.ask(
        "Page.navigate", url=chromium.value("document.querySelector('p.bar a[href*=\"history.html\"]').href")
    )
    chromium.until("document.querySelectorAll('#events tbody tr').length === 100")
    assert chromium.value(COUNTED).endswith(f"of {pq.read_metadata(history).num_rows:,}")


def test_without_npm_the_reason_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_bundle, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(reader_bundle.shutil, "which", lambda _name: None)
    with pytest.raises(NoReader, match="no npm found"):
        reader()
    assert list(tmp_path.iterdir()) == []


def test_what_npm_says_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    npm = tmp_path / "npm"
    npm.write_text("#!/bin/sh\necho 'npm error code EINTEGRITY' >&2\nexit 1\n")
    npm.chmod(0o755)
    monkeypatch.setattr(reader_bundle, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.setattr(reader_bundle.shutil, "which", lambda _name: str(npm))
    with pytest.raises(NoReader, match="npm ci failed: npm error code EINTEGRITY"):
        reader()
