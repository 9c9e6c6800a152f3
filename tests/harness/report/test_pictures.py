"""The pictures of a run in its page: that they are there, say what they show, and stay small."""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import orjson
import pytest

from tests.harness.report.browser import DRAWN, PROGRAM, UNPACKED, Browser, browser
from wrackline.harness.report import write_report
from wrackline.harness.report.draw.page_data import Tables
from wrackline.harness.report.read.columns import Ints
from wrackline.history.store.files import read_info
from wrackline.proving.model.knobs import Knobs
from wrackline.proving.model.made import make

needs_chromium = pytest.mark.skipif(
    PROGRAM is None, reason="no Chromium here (Debian: apt-get install chromium)"
)
TIP = (
    "(() => { const box = document.querySelector('.tooltip'); return box.hidden ? '' : box.textContent; })()"
)

COUNT_COLOURS = """(() => {
  const canvas = document.querySelector("canvas.lanes");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return ["ok", "fail", "info", "power"].map((name) => {
    const hex = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
    const wanted = [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
    let count = 0;
    for (let at = 0; at < data.length; at += 4) {
      const apart = wanted.map((one, channel) => Math.abs(one - data[at + channel]));
      if (data[at + 3] > 150 && apart[0] + apart[1] + apart[2] < 60) count += 1;
    }
    return count;
  });
})()"""
"""How many pixels of the timeline have the colour of each outcome, and of a fault."""


def section(page: str, name: str) -> str:
    found = re.search(rf'<section id="{name}">.*?</section>', page, re.DOTALL)
    assert found is not None, name
    return found[0]


def drawings(part: str) -> dict[str, ElementTree.Element]:
    """The SVG drawings of a part of the page, by label; not those for a phone."""
    made = [ElementTree.fromstring(one) for one in re.findall(r"<svg .*?</svg>", part, re.DOTALL)]
    return {
        one.attrib.get("aria-label", ""): one for one in made if "phone" not in one.attrib.get("class", "")
    }


def tables(page: str) -> dict[str, dict[str, Ints]]:
    """The page's tables, by name, as their description in draw/packed.py has it."""
    found = re.search(r'id="operations">([^<]*)</script>', page)
    assert found is not None
    plain = zlib.decompress(base64.b64decode(found[1]))
    at = 4 + int.from_bytes(plain[:4], "little")
    made: dict[str, dict[str, Ints]] = {}
    for name, told in orjson.loads(plain[4:at])["tables"].items():
        made[name] = {}
        for column, kind, base in told["columns"]:
            first, width = 0, int(kind[-1])
            if kind[0] == "d":
                first, at = int.from_bytes(plain[at : at + 8], "little", signed=True), at + 8
            planes = np.frombuffer(plain, np.uint8, width * told["rows"], at).reshape(width, -1)
            at += width * told["rows"]
            values = planes.T.copy().view(f"<{kind[-2:]}").reshape(-1).astype(np.int64) + base
            made[name][column] = first + np.cumsum(values) if kind[0] == "d" else values
    return made


@pytest.fixture(scope="module")
def html(whole_run: Path) -> str:
    return (whole_run / "report.html").read_text()


def test_each_picture_is_there_and_describes_itself(html: str) -> None:
    wanted = {
        "availability": ("Latency of each operation", "Quantiles of latency", "by node and by partition"),
        "delivery": ("not yet given to any consumer", "lag in records", "lag in seconds"),
        "order": ("along the offsets of each partition", "of log-1 from offset 1,1"),
        "processes": ("What every process did",),
    }
    for name, labels in wanted.items():
        drawn = drawings(section(html, name))
        for label in labels:
            [found] = [svg for known, svg in drawn.items() if label in known]
            desc = found.find("desc")
            assert desc is not None
            assert len(desc.text or "") > 60


def test_faults_are_shaded_and_named_in_every_picture_over_time(html: str) -> None:
    for name in ("availability", "delivery", "order", "processes"):
        for label, svg in drawings(section(html, name)).items():
            if not any(
                word in label
                for word in (
                    "Latency of each",
                    "Quantiles",
                    "given to",
                    "lag in",
                    "of each partition",
                    "What every",
                )
            ):
                continue
            bands = [one for one in svg.iter("rect") if (one.get("class") or "").startswith("band f-")]
            assert len(bands) == 3, label
            names = {one.text for one in svg.iter("text")}
            assert {"f1 partition-isolate n1", "f2 kill n3 (not proved)", "f3 power-cut n2"} <= names, label


def test_every_operation_of_a_small_run_is_a_point_and_a_bar(html: str) -> None:
    listed = tables(html)
    shown = section(html, "processes")
    count = int(re.search(r"<figcaption>([\d,]+) operations", shown)[1].replace(",", ""))  # type: ignore[index]
    assert listed["bars"]["index"].size == count
    assert listed["raw"]["index"].size > 5_000
    raw = next(
        svg for label, svg in drawings(section(html, "availability")).items() if "each operation" in label
    )
    dots = "".join(one.get("d") or "" for one in raw.iter("path") if "dots" in (one.get("class") or ""))
    assert dots.count("m") == dots.count("h0") == listed["raw"]["index"].size


def test_offsets_of_findings_are_drawn_with_values_as_labels(html: str) -> None:
    [around] = [
        svg for label, svg in drawings(section(html, "order")).items() if "of log-1 from offset 1,1" in label
    ]
    texts = {one.text or "" for one in around.iter("text")}
    assert "final read" in texts
    assert len({one for one in texts if re.fullmatch(r"p\d+·\d+", one)}) > 10
    assert [one for one in around.iter("circle") if one.get("class") == "differs"]
    assert not re.search(r"\d{10,}", "".join(texts))


def test_without_a_history_the_rest_of_the_page_is_there(own_run: Path) -> None:
    (own_run / "history.parquet").unlink()
    write_report(own_run)
    page = (own_run / "report.html").read_text()
    assert 'id="operations"' not in page
    assert 'id="delivery"' not in page
    assert 'id="availability"' in page


def test_the_page_of_a_large_run_stays_small(tmp_path: Path) -> None:
    run_dir = tmp_path / "large"
    make("large", 3, Knobs(operations=90_000, partitions=8)).write(run_dir)
    (run_dir / "run.json").write_bytes(read_info(run_dir).to_json())
    page = write_report(run_dir)
    listed = tables(page.read_text())
    assert listed["bars"]["index"].size == 80_000
    assert 10_000 < listed["raw"]["index"].size <= 20_000
    assert page.stat().st_size < 3_700_000


# in a browser ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def chromium(whole_run: Path) -> Iterator[Browser]:
    with browser() as found:
        found.show(whole_run / "report.html", 1200)
        found.value(UNPACKED)
        yield found


def hover(chromium: Browser, at: str) -> str:
    """Move the pointer to ``at``: an expression for [element, share of its width, share of its height]."""
    where = chromium.value(
        f"(() => {{ const [one, x, y] = {at}; one.scrollIntoView({{block: 'center'}});"
        " const box = one.getBoundingClientRect();"
        " return [box.left + x * box.width, box.top + y * box.height]; })()"
    )
    chromium.ask("Input.dispatchMouseEvent", type="mouseMoved", x=where[0], y=where[1])
    return str(chromium.value(TIP))


@needs_chromium
def test_columns_come_out_of_the_page_as_they_went_in(html: str, chromium: Browser) -> None:
    """The way of the page's script to unpack, of every kind of column."""
    made = Tables({}, lambda rows: np.full(len(rows), -1))
    columns = {
        "small": np.array([3, 250, 7]),
        "negative": np.array([-9, 1 << 20, -1]),
        "rising": np.arange(3) * 70_000 + (1 << 33),
        "far": np.array([0, 1 << 50, 5]),
        "zero": np.zeros(3, np.int64),
    }
    made.add("nothing", {"index": np.zeros(0, np.int64)})
    made.add("one", columns)
    unpack = re.search(r"const unpacked = (async .*?\n  };)\n", html, re.DOTALL)
    assert unpack is not None
    found = chromium.value(
        f"({unpack[1].rstrip(';')})({made.packed()!r})"
        ".then(({ tables }) => Object.fromEntries(Object.entries(tables.one)"
        ".map(([name, held]) => [name, name === 'rows' ? held : [...held]])))"
    )
    assert found == {"rows": 3} | {name: values.tolist() for name, values in columns.items()}


@needs_chromium
@pytest.mark.parametrize("points", ["raw", "unseen", "lag", "order", "around-0"])
def test_a_point_tells_the_operation_behind_it(html: str, chromium: Browser, points: str) -> None:
    table = tables(html)[points]
    at = len(table["x"]) // 2
    x, y = table["x"][at] / 10, table["y"][at] / 10
    near = np.hypot(table["x"] / 10 - x, table["y"] / 10 - y) < 3
    view = f"(document.querySelector('svg[data-points={points}]'))"
    tip = hover(
        chromium, f"[{view}, {x} / {view}.viewBox.baseVal.width, {y} / {view}.viewBox.baseVal.height]"
    )
    assert re.match(r"p\d+ (send|poll|end|drain): (ok|fail|info), took ", tip), tip
    told = re.search(r"\nindex ([\d,]+), invoked at index [\d,]+", tip)
    assert told is not None
    assert int(told[1].replace(",", "")) in table["index"][near]
    assert re.search(r"\d+\.\d{3} s to \d+\.\d{3} s", tip)
    if points != "raw":
        assert re.search(r"\np\d+·\d+.* · log-\d offset [\d,]+", tip), tip
    wanted = {"unseen": "unseen records of the partition: ", "lag": "records behind: "}
    assert wanted.get(points, "") in tip


@needs_chromium
def test_the_timeline_can_be_browsed(chromium: Browser) -> None:
    status = "document.querySelector('#lanes [role=status]').textContent"
    whole = chromium.value(status)
    assert whole.startswith("0.000 s to 58.000 s: 5,")
    assert chromium.value("document.querySelector('#lanes .still').hidden") is True
    for press in ("in", "in", "on"):
        chromium.value(f"document.querySelector('#lanes [data-do={press}]').click()")
    chromium.value(DRAWN)
    assert chromium.value(status).startswith("29.000 s to 43.500 s: ")
    chromium.value("document.querySelector('#lanes [data-do=all]').click()")
    chromium.value(DRAWN)
    assert chromium.value(status) == whole


@needs_chromium
def test_the_timeline_goes_to_a_finding_and_tells_its_operations(chromium: Browser) -> None:
    chosen = chromium.value(
        "(() => { const choice = document.querySelector('#lanes select');"
        " const at = [...choice.options].findIndex(one => one.text.startsWith('lost-write'));"
        " choice.selectedIndex = at; choice.dispatchEvent(new Event('change'));"
        " return document.querySelector('#lanes .held-op').textContent; })()"
    )
    assert re.match(r"p\d+ send: ok, took ", chosen)
    assert "log-1" in chosen
    chromium.value("document.querySelector('#lanes [data-do=all]').click()")
    chromium.value(DRAWN)


@needs_chromium
def test_bars_are_drawn_in_the_colours_of_their_outcomes(chromium: Browser) -> None:
    """Of the whole run there are pixels of each outcome, and of the faults' shade."""
    chromium.value("document.querySelector('#lanes [data-do=all]').click()")
    chromium.value(DRAWN)
    seen = chromium.value(COUNT_COLOURS)
    assert all(count > 20 for count in seen), seen


@needs_chromium
def test_an_operation_of_the_timeline_is_told(chromium: Browser) -> None:
    tips = [hover(chromium, f"[document.querySelector('canvas.lanes'), 0.5, {y / 20}]") for y in range(5, 19)]
    assert any(re.match(r"p\d+ (send|poll): ", tip) for tip in tips), tips
    assert chromium.complaints == []
