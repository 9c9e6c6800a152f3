"""The HTML file says what happened, loads nothing, escapes everything and stays bounded."""

from __future__ import annotations

import base64
import functools
import hashlib
import html as html_of_text
import json
import re
import shlex
import subprocess
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.harness.report import synthetic_run
from tests.harness.report.synthetic_incidents import ALLOWED, DIVERGENCE, INCIDENT, LOSS
from tests.harness.report.synthetic_run import edited
from wrackline.checkers.explain.model import PER_PARTITION
from wrackline.checkers.explain.step import explain
from wrackline.harness.report import ReportError, write_report
from wrackline.harness.report.summary import replay_of
from wrackline.history.model import value_of

VOID = {"meta", "br", "link", "img", "input", "hr"}
MIB = 1 << 20


class Page(HTMLParser):
    """Checks that elements nest, and gathers what tests ask about."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.problems: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.feed(html)
        self.close()
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        self.tags.append((tag, named))
        if named.get("id"):
            self.ids.append(str(named["id"]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1] != tag:
            self.problems.append(f"</{tag}> at {self.getpos()} while {self.open[-3:]} are open")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "script"):
            self.words.append(data)


def page(run_dir: Path) -> Page:
    return Page((run_dir / "report.html").read_text(encoding="utf-8"))


def test_is_well_formed_with_unique_ids_and_links_that_lead_somewhere(whole_run: Path) -> None:
    read = page(whole_run)
    assert read.problems == []
    assert read.open == []
    assert len(read.ids) == len(set(read.ids))
    anchors = [named["href"] for tag, named in read.tags if tag == "a"]
    assert anchors
    assert {str(href).removeprefix("#") for href in anchors} <= set(read.ids)


def test_loads_nothing_from_anywhere(whole_run: Path) -> None:
    html = (whole_run / "report.html").read_text()
    assert "http://" not in html
    assert "https://" not in html
    assert "@import" not in html
    loading = [
        (tag, named)
        for tag, named in page(whole_run).tags
        if tag in ("link", "img", "iframe") or "src" in named
    ]
    assert loading == []
    # the one url() is the hatching, in the page itself
    assert set(re.findall(r"url\(([^)]*)\)", html)) == {"#hatching"}


def test_the_security_policy_allows_only_the_styles_and_scripts_of_the_page(whole_run: Path) -> None:
    """The policy comes first, and allows by their hashes the two styles and the two scripts that the
    page has."""
    html = (whole_run / "report.html").read_text()
    first, policy = [(tag, named) for tag, named in page(whole_run).tags if tag == "meta"][:2]
    assert first[1] == {"charset": "utf-8"}
    assert policy[1]["http-equiv"] == "Content-Security-Policy"
    rules = dict(rule.split(" ", 1) for rule in str(policy[1]["content"]).split("; "))
    for kind, how_many in (("style", 2), ("script", 2)):
        contents = re.findall(rf"<{kind}>(.*?)</{kind}>", html, re.DOTALL)
        assert len(contents) == how_many
        digests = (base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in contents)
        assert sorted(rules.pop(f"{kind}-src").split()) == sorted(f"'sha256-{digest}'" for digest in digests)
    assert rules == dict.fromkeys(("default-src", "base-uri", "form-action"), "'none'")
    named = {name for _, attributes in page(whole_run).tags for name in attributes}
    assert "style" not in named
    assert not [name for name in named if name.startswith("on")]


def command_of(run_dir: Path) -> tuple[str, str]:
    """(the sentence before the command, the command) as the reader sees them."""
    found = re.search(
        r"<p>(In .*?)</p>\n<pre class=\"command\">(.*?)</pre>", (run_dir / "report.html").read_text()
    )
    assert found is not None
    return html_of_text.unescape(found[1]), html_of_text.unescape(found[2])


@pytest.mark.parametrize("place", ["inside/results", "elsewhere and away"])
def test_the_command_can_be_pasted_where_the_page_says(
    own_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    checkout = tmp_path / "inside"
    (tmp_path / place).mkdir(parents=True)
    checkout.mkdir(exist_ok=True)
    launcher = checkout / "wrack"
    launcher.write_text('#!/bin/sh\necho "$1 $(cat "$2") $3 $4 $#"\n')
    launcher.chmod(0o755)
    run_dir = own_run.rename(tmp_path / place / own_run.name)
    (run_dir / "spec.yaml").write_text("name: mine")
    monkeypatch.setattr(
        "wrackline.harness.report.model.replay_of", functools.partial(replay_of, checkout=checkout)
    )
    write_report(run_dir)
    where, command = command_of(run_dir)
    assert where.startswith("In the folder of Wrackline, where its launcher is, as root")
    said = subprocess.run(["bash", "-c", command], cwd=checkout, capture_output=True, text=True, check=True)
    assert said.stdout == f"run name: mine --seed {synthetic_run.INFO.seed} 4\n"
    assert command.startswith("./wrack run results/" if place.startswith("inside") else "./wrack run '/")


def test_an_installed_wrackline_needs_no_folder(own_run: Path, tmp_path: Path) -> None:
    replay = replay_of(own_run, 7, checkout=tmp_path / "site-packages")
    assert replay is not None
    assert replay.where == "any folder"
    assert shlex.split(replay.command) == ["wrackline", "run", str(own_run / "spec.yaml"), "--seed", "7"]


def test_without_the_specification_nothing_can_be_pasted(own_run: Path) -> None:
    (own_run / "spec.yaml").unlink()
    write_report(own_run)
    assert "The run cannot be made again from here" in page(own_run).text


def test_an_isr_that_stayed_full_is_told_from_one_that_did_not_come_back_or_was_not_seen(
    own_run: Path,
) -> None:
    with edited(own_run, "metrics.json") as metrics:
        rows = metrics["availability"]
        rows += [rows[0] | {"partition": at, "isr_shrank": None} for at in (3, 4)]
        for row in rows:
            fault, partition = row["fault_id"], row["partition"]
            if partition < 3:
                row["isr_shrank"] = fault == "f3" or (fault == "f2" and partition == 0)
            if fault == "f1" or partition == 1:
                row["full_isr_ns"] = None
    write_report(own_run)
    html = (own_run / "report.html").read_text()
    assert re.findall(r'data-is="full ISR after">([^<]*)<', html) == [
        "not measured",
        "7 s",
        "not by the end",
    ]
    assert re.findall(r'data-is="full ISR">([^<]*)<', html)[:5] == ["stayed full"] * 3 + ["not measured"] * 2


def test_says_what_happened_and_why(whole_run: Path) -> None:
    text = page(whole_run).text
    verdict = json.loads((whole_run / "verdict.json").read_text())
    assert verdict["headline"] in text
    assert verdict["contract"]["row"] in text
    assert verdict["contract"]["promise"] in text
    for reason in (*verdict["reasons"], *verdict["contract"]["because"]):
        assert reason in text
    for condition in verdict["conditions"]:
        assert condition["name"] in text
        assert condition["detail"] in text
    assert "Defect loaded on purpose: truncate_to_hw" in text
    assert "/spec.yaml --seed 8675309" in text


def test_shows_every_fault_with_its_proof_and_the_bytes_lost(whole_run: Path) -> None:
    text = page(whole_run).text
    for fault in synthetic_run.FAULTS:
        assert fault["proof"] in text
        assert fault["role"] in text
    assert "not proved. pid 4121" in text
    assert "log-1/00000000000000000000.log" in text
    assert "45,056 B" in text


def test_shows_the_evidence_of_a_finding(whole_run: Path) -> None:
    read = page(whole_run)
    assert "was acknowledged at offset" in read.text
    assert "the final read has value" in read.text
    assert f"p4·99999{'e1'}" in read.text.replace(" ", "")
    assert any(named.get("title") == str(value_of(4, 99_999)) for _, named in read.tags)
    assert "culprit" in {name for _, named in read.tags for name in str(named.get("class", "")).split()}
    # 42 findings of log-1: twenty shown, the rest counted
    assert f"and {synthetic_run.LOST - PER_PARTITION} more in findings.parquet" in read.text


def section(run_dir: Path, name: str) -> str:
    [found] = re.findall(
        rf'<section id="{name}">.*?\n</section>', (run_dir / "report.html").read_text(), re.S
    )
    return str(found)


def test_incidents_come_first_with_all_that_belongs_to_them(own_incidents: Path) -> None:
    file = own_incidents / "nodes" / "n3" / "broker.log"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("Truncating to 0")
    write_report(own_incidents)
    read = page(own_incidents)
    assert read.ids.index("timeline") < read.ids.index("why") < read.ids.index("incidents")
    assert read.ids.index("incidents") < read.ids.index("faults")
    assert "n3 cut its log back to offset 0." in read.text
    assert "nodes/n3/broker.log:7" in read.text
    assert "and 19 more incidents" in read.text
    story = read.text.partition("What happened")[2].partition("Incidents")[0]
    cut, leader = "13.1 s: n3 cut log-1 from 10,000 to 0.", "16.5 s: n3 leads log-1."
    assert re.search(rf"12\.0 s: .*{re.escape(cut)} {re.escape(leader)}.*24\.0 s: ", story), (
        "in the order of time"
    )
    assert "The judge found 21 incidents (violation), 1 incident (allowed) (below)." in story
    assert INCIDENT["sentence"] not in story, "it stands in its incident"
    assert "nodes/n3/broker.log" in [named.get("href") for tag, named in read.tags if tag == "a"]


def test_incidents_of_one_change_of_leaders_link_to_each_other(own_incidents: Path) -> None:
    with edited(own_incidents) as verdict:
        verdict["incidents"][0]["same_change"] = [DIVERGENCE, "i-of-one-that-is-not-told"]
    write_report(own_incidents)
    html = section(own_incidents, "incidents")
    assert f'The same change of leaders: <a href="#{DIVERGENCE}">log-2</a></p>' in html
    assert html.count("The same change of leaders") == 1
    assert DIVERGENCE in page(own_incidents).ids


def test_a_finding_has_one_place_inside_its_incident(with_incidents: Path) -> None:
    found = {
        name: section(with_incidents, name) for name in ("incidents", "unforbidden", "findings", "anomalies")
    }
    shown = {
        name: re.findall(r'<details class="finding" id="f-(.*?)-[0-9a-f]+"', html)
        for name, html in found.items()
    }
    assert Counter(shown["incidents"]) == {
        "lost-write": PER_PARTITION, "vanished-read": 3, "inconsistent-offset": PER_PARTITION,
        "stale-read": 1, "replica-divergence": 1,
    }  # fmt: skip
    assert shown["unforbidden"] == ["stale-read"] * 2, "what is allowed by itself has a section of its own"
    assert Counter(shown["findings"]) == {
        "lost-write": 2, "lost-committed": 1, "lost-on-replica": 1, "phantom": 1, "not-linearizable": 1,
    }, "so has what belongs to an incident that is not told"  # fmt: skip
    read = page(with_incidents)
    assert len(read.ids) == len(set(read.ids))
    assert read.text.count("Found, and not forbidden by the contract") == 1
    assert "(allowed by itself)" in found["incidents"]
    assert "(allowed by itself)" not in found["unforbidden"]


def test_the_overview_of_anomalies_links_to_their_findings(with_incidents: Path) -> None:
    rows = re.findall(r"<tr.*?</tr>", section(with_incidents, "anomalies"), re.S)
    [lost] = [row for row in rows if "<code>lost-write</code>" in row]
    [stale] = [row for row in rows if "<code>stale-read</code>" in row]
    assert re.findall(r'href="#([^"]*)">([^<]*)</a> \((\d+)\)', lost) == [
        (f"{LOSS}-lost-write", "incident 1", "40"), ("further-lost-write", "further findings", "2"),
    ]  # fmt: skip
    assert re.findall(r'href="#([^"]*)">([^<]*)</a> \((\d+)\)', stale) == [
        (f"{LOSS}-stale-read", "incident 1", "1"), (f"{ALLOWED}-stale-read", "incident 3", "2"),
    ]  # fmt: skip
    assert "1 finding is evidence of incidents that break the contract" in stale
    anchors = set(page(with_incidents).ids)
    assert {f"{LOSS}-lost-write", "further-lost-write", f"{ALLOWED}-stale-read"} <= anchors


def test_an_anomaly_that_is_nothing_but_evidence_is_called_so(own_incidents: Path) -> None:
    with edited(own_incidents) as verdict:
        for row in verdict["anomalies"]:
            if row["anomaly"] == "stale-read":
                row |= {"count": 1}
    write_report(own_incidents)
    assert re.search(
        r"1 incident 1 .{0,40}evidence All of this is evidence of incidents", page(own_incidents).text
    )


def test_a_run_without_a_violation_has_what_is_allowed_in_a_section_that_says_so(own_incidents: Path) -> None:
    with edited(own_incidents) as verdict:
        verdict |= {"incidents": verdict["incidents"][2:], "incident_counts": {"allowed": 1}}
    write_report(own_incidents)
    ids = page(own_incidents).ids
    assert "incidents" not in ids
    assert "unforbidden" in ids
    assert "The judge found 1 incident (allowed) (below)." in page(own_incidents).text


def test_a_run_that_was_judged_before_there_were_incidents_has_no_section_of_them(whole_run: Path) -> None:
    assert "incidents" not in {named.get("id") for _, named in page(whole_run).tags}


def test_checkers_that_found_nothing_are_listed(whole_run: Path) -> None:
    text = page(whole_run).text
    for row in json.loads((whole_run / "verdict.json").read_text())["anomalies"]:
        assert row["anomaly"] in text
    assert "66 checkers ran and found nothing" in text


def test_names_the_verdicts_under_other_contracts(own_run: Path) -> None:
    (own_run / "verdict.acks-1.json").write_text('{"verdict": "pass", "headline": "Losses are allowed."}')
    write_report(own_run)
    assert "The same run under other contracts acks-1 pass : Losses are allowed." in page(own_run).text


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\x00\x1b]]>&\"'"


def test_escapes_hostile_text_wherever_it_comes_from(own_run: Path) -> None:
    with edited(own_run) as verdict:
        verdict["headline"] = verdict["verdict"] = HOSTILE
        verdict["reasons"] = [HOSTILE]
        verdict["contract"] = {"name": HOSTILE, "row": HOSTILE, "promise": HOSTILE, "because": [HOSTILE]}
        verdict["anomalies"].append({"anomaly": HOSTILE, "meaning": HOSTILE, "count": 3, "why": HOSTILE})
        verdict["conditions"].append({"name": HOSTILE, "ok": False, "detail": HOSTILE})
        verdict["counts"]["sends_by_error"][HOSTILE] = 9
        verdict["incidents"] = [
            INCIDENT
            | {
                "id": HOSTILE,
                "meaning": HOSTILE,
                "sentence": HOSTILE,
                "mechanism": [HOSTILE],
                "anomalies": [{"anomaly": HOSTILE, "meaning": HOSTILE, "count": 3}],
                "lines": [{"file": f"../{HOSTILE}", "number": 1, "at_ns": None, "text": HOSTILE}],
            }
        ]
        verdict["incident_counts"] = {"violation": 1}
        verdict["faults"].append(
            {"id": HOSTILE, "fault": HOSTILE, "targets": [HOSTILE], "role": HOSTILE, "begin_ns": 10**9,
             "active_ns": None, "undo_ns": None, "ended_ns": None, "proved": False, "proof": HOSTILE,
             "lossy": [HOSTILE],
             "lost": {HOSTILE: {HOSTILE: 5}}}
        )  # fmt: skip
    (own_run / "spec.yaml").write_text(HOSTILE)
    finding = {"test_id": "x", "anomaly": HOSTILE, "topic": HOSTILE, "partition": 0, "offset": 3, "value": -7,
               "operations": [1, 2, 10**9], "where": HOSTILE, "explanation": HOSTILE}  # fmt: skip
    synthetic_run.write_findings(own_run, [finding])
    explain(own_run)
    write_report(own_run)
    read = page(own_run)
    assert read.problems == []
    assert [named.get("type") for tag, named in read.tags if tag == "script"] == [
        None, "application/octet-stream", None,
    ]  # fmt: skip
    assert not any(tag == "img" or any(name.startswith("on") for name in named) for tag, named in read.tags)
    html = (own_run / "report.html").read_text()
    assert "\x00" not in html
    assert "\x1b" not in html


def test_a_hundred_thousand_findings_make_a_bounded_page(own_run: Path) -> None:
    findings = [
        {"test_id": "x", "anomaly": "lost-write", "topic": "log", "partition": n % 50, "offset": 100_000 - n,
         "value": value_of(n % 9, n), "operations": [n % 11_000, 11_088], "where": "tail",
         "explanation": f"number {n}"}
        for n in range(100_000)
    ]  # fmt: skip
    synthetic_run.write_findings(own_run, findings)
    explain(own_run)
    report = write_report(own_run)
    assert report.stat().st_size < 6 * MIB
    read = page(own_run)
    assert "counts 42 lost-write, but findings.parquet holds 100,000" in read.text
    assert read.text.count("log-7 : 2,000 findings, offsets") == 1
    assert f"and {2_000 - PER_PARTITION:,} more in findings.parquet" in read.text
    # partition 7: the smallest of its offsets come first
    assert "number 99957" in read.text
    assert "number 57 " not in read.text


def test_a_folder_that_is_no_run_is_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="no such run directory") as missing:
        write_report(tmp_path / "nowhere")
    with pytest.raises(ReportError, match="holds no file of a run") as empty:
        write_report(tmp_path)
    assert all("\n" not in str(error.value) for error in (missing, empty))
    assert list(tmp_path.iterdir()) == []
