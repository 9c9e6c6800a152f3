"""The page of `wrackline check --report`."""

from __future__ import annotations

import re
from pathlib import Path

from click.testing import CliRunner

from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.transactions.answers import Edge
from wrackline.harness.check.elle import sentence
from wrackline.harness.check.page import page
from wrackline.harness.check.results import (
    ELLE,
    Anomaly,
    Example,
    Judged,
    Link,
    Operation,
    Verdict,
)
from wrackline.harness.cli.verdicts.check import check_command

STALE = """
{:process 0 :type :invoke :f :write :value 1}
{:process 0 :type :ok :f :write :value 1}
{:process 1 :type :invoke :f :write :value 2}
{:process 1 :type :ok :f :write :value 2}
{:process 2 :type :invoke :f :read :value nil}
{:process 2 :type :ok :f :read :value 1}
{:process 0 :type :invoke :f :write :value "<script>alert(1)</script>"}
"""


def test_the_page_draws_what_has_no_place_and_loads_nothing(tmp_path: Path) -> None:
    history, report = tmp_path / "history.edn", tmp_path / "why.html"
    history.write_text(STALE)
    arguments = ["-m", "register", "--by", "search", str(history), "--report", str(report)]
    found = CliRunner().invoke(check_command, arguments, standalone_mode=False)
    assert found.return_value == 1
    text = report.read_text()
    assert "There is no place for <code>process 2 :read 1 (operation 5 to 6)</code>" in text
    bars = re.findall(r'<rect [^>]*class="op o-(\w+)( culprit)?"', text)
    assert bars == [("ok", ""), ("ok", ""), ("ok", " culprit")], "what began after it is not drawn"
    assert 'class="cross"' in text
    assert 'class="order-line"' in text
    assert not re.search(r'(src|href)="(?!#)', text)
    assert "<script>alert" not in text


def test_elles_cycle_is_drawn_with_its_type() -> None:
    txns = tuple(
        Operation(at, at + 1, process, "txn", None, [["append", "x", process]], "ok")
        for process, at in ((0, 1), (1, 3))
    )
    names = {-1: "x"}
    edge = Edge("rw", 0, 1, -1, None, 1)
    said = sentence(edge, "list-append", "T1", "T2", lambda number: names.get(number or 0, number))
    assert said == "T1 read nil of key x, and T2 appended 1 to it"
    links = (Link("rw", 1, 2, said, "x", None, 1), Link("realtime", 2, 1, "T2 had completed before", None))
    anomaly = Anomaly("G-single-item-realtime", 1, (Example(txns, links, "", {}, "", {}),))
    verdict = Verdict(None, Answer.INVALID, ELLE, 2, anomalies=(anomaly,), refuted=("strict-serializable",))
    text = page([Judged("h.edn", [verdict])])
    assert "<h3>G-single-item-realtime" in text
    assert text.count('class="version"') == 2
    assert 'class="edge edge-head"' in text
    assert 'class="edge e-time edge-head"' in text
    assert "T1 &lt; T2 (rw): T1 read nil of key x, and T2 appended 1 to it." in text
