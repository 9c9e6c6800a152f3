"""The page of all stories: what it says where rules part happens there, and it loads and runs nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from wrackline.simulator.cli import simulate
from wrackline.simulator.eras.catalogue import STORIES
from wrackline.simulator.eras.explanations import CODES, EXPLANATIONS
from wrackline.simulator.eras.page import OnHosts, Row, hosts_of, page, row_of
from wrackline.simulator.eras.story import ERAS

HOSTS = {
    ("split", "zk08"): OnHosts("violation", "runs/split & co/report.html"),
    ("split", "kip966"): OnHosts("<b>pass</b>", ""),
}


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return [row_of(story, HOSTS) for story in STORIES]


def test_of_every_story_and_profile_it_is_said_where_the_rules_part_and_why() -> None:
    assert set(EXPLANATIONS) == {(story.name, era) for story in STORIES for era in ERAS}


def test_what_is_said_to_happen_where_rules_part_does_happen_once(rows: list[Row]) -> None:
    for row in rows:
        for cell in row.cells:
            name = row.story.name, cell.era.profile
            assert [line.parts for line in cell.transcript.lines].count(True) == 1, name
            assert re.search(cell.explanation.where, f"{cell.parting.who} {cell.parting.text}"), name
            assert {replica.node for replica in cell.parting.replicas} == set(row.story.setting.replicas)


def test_lines_are_in_the_order_of_time_and_a_command_before_what_comes_of_it(rows: list[Row]) -> None:
    for row in rows:
        for cell in row.cells:
            times = [round(line.at_ms, 1) for line in cell.transcript.lines]
            assert times == sorted(times)
    first = [line.text for line in rows[0].cells[0].transcript.lines]
    assert first.index("kill 2") < first.index("start 2") < first.index("starts with m1 m2")


def test_the_logs_at_the_end_show_what_is_lost_and_what_differs(rows: list[Row]) -> None:
    ends = {
        (row.story.name, cell.era.profile): [replica.values for replica in cell.transcript.end]
        for row in rows
        for cell in row.cells
    }
    assert ends["restart-then-failover", "zk08"] == [("m1",), ("m1",)]
    assert ends["restart-then-failover", "kip101"] == [("m1", "m2"), ("m1", "m2")]
    assert ends["double-power-loss", "zk08"] == [("m1", "m2"), ("m1", "m3")]
    assert ends["double-power-loss", "kip966"] == [("m1", "m3"), ("m1", "m3")]


def test_the_page_has_every_cell_and_loads_and_runs_nothing(rows: list[Row]) -> None:
    made = page(rows)
    assert made.startswith("<!doctype html>")
    for story in STORIES:
        for era in ERAS:
            anchor = f"{story.name}-{era}"
            assert made.count(f'id="{anchor}"') == made.count(f'href="#{anchor}"') == 1
    assert made.count("<details>") == len(STORIES) * len(ERAS)
    assert made.count(" parts") >= len(STORIES) * len(ERAS)
    assert "default-src 'none'" in made
    assert "script-src 'none'" in made
    assert not re.search(r"<script|<link|<img|@import|url\(|https?://", made)


def test_each_code_of_a_story_is_a_link_to_what_the_protocol_says_of_it(rows: list[Row]) -> None:
    made = page(rows)
    codes = {one for row in rows for one in row.told if not one.startswith(("KIP-", "KAFKA-"))}
    assert codes == set(CODES)
    protocol = (Path(__file__).parents[3] / "docs/protocol.md").read_text(encoding="utf-8").replace("**", "")
    for code, words in CODES.items():
        assert made.count(f'<div id="{code}">') == 1
        assert made.count(f'href="#{code}"') == 2 * sum(code in row.told for row in rows)
        [line] = [one for one in protocol.splitlines() if f'<a id="{code.lower()}"></a>' in one]
        name, text = line.split(" | ")[1:3]
        wanted = f"{name.rstrip('.')}." if code.startswith("B") else f"{name.capitalize()}. {text}"
        assert words.casefold() == wanted.casefold().removesuffix(" |"), code


def test_what_runs_on_hosts_came_to_is_shown_and_escaped(rows: list[Row]) -> None:
    made = page(rows)
    assert "on hosts: violation" in made
    assert 'href="runs/split &amp; co/report.html"' in made
    assert "&lt;b&gt;pass&lt;/b&gt;" in made
    assert "On hosts: not run." in made
    assert "n hosts:" not in page([row_of(STORIES[0], {})])


def test_the_command_writes_the_page(tmp_path: Path) -> None:
    file, hosts = tmp_path / "eras.html", tmp_path / "hosts.json"
    hosts.write_text(json.dumps({"split": {"zk08": {"verdict": "violation", "report": "a/b.html"}}}))
    asked = ["eras", "--seeds", "1", "--story", "split", "--html", str(file), "--hosts-json", str(hosts)]
    done = CliRunner().invoke(simulate, asked)
    assert done.exit_code == 0, done.output
    assert "on hosts: violation" in file.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "JSON"),
        ("7", "an object is due"),
        ('[{"story": "split"}]', "no table of `wrackline eras --json`"),
        ('{"splitt": {}}', "no story 'splitt'"),
        ('{"split": {"zk09": {}}}', "no such profile"),
        ('{"split": {"zk08": "pass"}}', "an object is due"),
        ('{"split": {"zk08": {"report": "a"}}}', "verdict"),
        ('{"split": {"zk08": {"verdict": "pass", "report": "javascript:alert(1)"}}}', "is no path"),
    ],
)
def test_a_file_of_hosts_that_is_wrong_is_one_line(tmp_path: Path, content: str, said: str) -> None:
    hosts = tmp_path / "hosts.json"
    hosts.write_text(content)
    asked = ["eras", "--story", "split", "--html", str(tmp_path / "x.html"), "--hosts-json", str(hosts)]
    done = CliRunner().invoke(simulate, asked)
    assert done.exit_code == 2
    assert said in done.output
    assert not (tmp_path / "x.html").exists()


def test_the_table_of_wrackline_eras_is_a_file_of_hosts(tmp_path: Path) -> None:
    hosts = tmp_path / "table.json"
    run = {"run": "r1", "verdict": "pass", "shown": {"stale-read": 1}, "report": "/results/r1/report.html"}
    older = {**run, "verdict": "violation"}
    arms = [
        {"story": "zombie-leader", "profile": "zk08", "made": [older, run]},
        {"story": "zombie-leader", "profile": "kip966", "made": []},
    ]
    hosts.write_text(json.dumps(arms))
    told = OnHosts("pass, 1 stale-read", "/results/r1/report.html")
    assert hosts_of(hosts, STORIES) == {("zombie-leader", "zk08"): told}


def test_runs_on_hosts_need_a_page() -> None:
    done = CliRunner().invoke(simulate, ["eras", "--hosts-json", __file__])
    assert done.exit_code == 2
    assert "--html" in done.output
