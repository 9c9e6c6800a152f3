"""Moments of incidents on the pictures over time, the log of each replica as bars, and both widths of
drawings."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.report.synthetic_incidents import INCIDENT, LOSS
from tests.harness.report.synthetic_run import S, edited
from wrackline.harness.report import write_report
from wrackline.harness.report.draw.events import MOMENTS_DRAWN, Moments
from wrackline.harness.report.draw.replicas_chart import replicas_chart
from wrackline.harness.report.read.moments import DRAWN, Moment, moments_of
from wrackline.harness.report.read.replicas import Cut, replica_logs
from wrackline.pages.frame import PAGE, PHONE, Frame
from wrackline.pages.svg import Scale, Svg, text_width

FRAMES = pytest.mark.parametrize("frame", [PAGE, PHONE], ids=["page", "phone"])
OVER_TIME = ("Throughput and latency", "Sends and reads along", "Leader and in-sync replicas")
"""The pictures that show moments over the whole run, by the beginnings of their labels."""


def parsed(html: str) -> list[ElementTree.Element]:
    return [ElementTree.fromstring(one) for one in re.findall(r"<svg viewBox.*?</svg>", html, re.DOTALL)]


@pytest.fixture(scope="module")
def html(with_incidents: Path) -> str:
    return (with_incidents / "report.html").read_text()


def test_the_moments_of_an_incident_are_links_in_every_picture_over_the_whole_run(html: str) -> None:
    for label in OVER_TIME:
        drawn = [svg for svg in parsed(html) if (svg.get("aria-label") or "").startswith(label)]
        drawn = [svg for svg in drawn if "from offset" not in (svg.get("aria-label") or "")]
        assert [svg.get("class") for svg in drawn] == ["chart wide", "chart phone"], label
        for svg in drawn:
            links = [(link.get("href"), link.get("aria-label")) for link in svg.iter("a")]
            assert links == [
                (f"#{LOSS}", "n3 cut at 13.1 s: n3 cut log-1 from 10,000 to 0"),
                (f"#{LOSS}", "n3 leader at 16.5 s: n3 leads log-1"),
            ], label
            assert svg.get("role") == "group", "what has links is no single image"
            x = [float(one.get("x1", 0)) for one in svg.iter("line") if one.get("class") == "moment"]
            assert x == sorted(x)
            assert len(x) == 2


def test_a_drawing_over_time_is_there_for_a_page_and_for_a_phone(html: str) -> None:
    wide = [svg for svg in parsed(html) if svg.get("class") == "chart wide"]
    phone = [svg for svg in parsed(html) if svg.get("class") == "chart phone"]
    alone = [
        svg.get("aria-label") for svg in wide if "What every process did" in (svg.get("aria-label") or "")
    ]
    assert len(alone) == 1, "the script draws this one to the width there is"
    labels = [svg.get("aria-label") for svg in wide if svg.get("aria-label") not in alone]
    assert labels == [svg.get("aria-label") for svg in phone]
    assert len(labels) > 10
    for svg in phone:
        assert (svg.get("viewBox") or "").startswith(f"0 0 {PHONE.width} ")
        right = max(float(one.get("x", 0)) for one in svg.iter("text"))
        assert right <= PHONE.width, svg.get("aria-label")


def incident(number: int, meaning: str = "violation") -> dict[str, Any]:
    cuts = [{"at_ns": at * S, "node": "n1", "kind": "cut", "words": "cut"} for at in range(10, 0, -1)]
    return {"id": f"i-{number}", "meaning": meaning, "topic": "log", "partition": number, "moments": cuts}


def test_a_picture_shows_the_first_moments_of_the_first_incidents_that_break_the_contract() -> None:
    told = moments_of({"incidents": [incident(0, "allowed"), *(incident(at) for at in range(1, 9))]})
    assert {moment.incident for moment in told} == {"i-1", "i-2", "i-3"}
    assert [moment.at_ns // S for moment in told if moment.incident == "i-1"] == [*range(1, DRAWN + 1)]
    assert [moment.at_ns for moment in told] == sorted(moment.at_ns for moment in told)
    assert moments_of({"incidents": [incident(0, "allowed")]}) == ()
    assert moments_of(None) == ()


@given(st.lists(st.floats(0, 100), max_size=20), st.sampled_from([PAGE, PHONE]))
def test_labels_of_moments_lie_within_the_drawing_and_not_on_one_another(
    times: list[float], frame: Frame
) -> None:
    found = [Moment(int(at * S), "n1", "leader", "n1 leads", "i-1", "log-0") for at in sorted(times)]
    marks = Moments(found, Scale(0, 100, frame.left, frame.right))
    svg = Svg(frame.width, marks.height + 50, "x")
    marks.draw(svg, 0, marks.height + 40)
    taken: dict[float, list[tuple[float, float]]] = {}
    for text in ElementTree.fromstring(svg.markup()).iter("text"):
        at, room = float(text.get("x", 0)), text_width(text.text or "")
        begin = at - room if text.get("text-anchor") == "end" else at
        assert begin >= 0
        assert begin + room <= frame.width
        taken.setdefault(float(text.get("y", 0)), []).append((begin, begin + room))
    assert sum(map(len, taken.values())) == min(len(times), MOMENTS_DRAWN)
    for row in taken.values():
        row.sort()
        assert all(one[1] <= other[0] for one, other in pairwise(row))


CANARY: dict[str, Any] = {
    "topic": "log",
    "partition": 0,
    "first_offset": 515,
    "last_offset": 518,
    "truncations": [
        {"node": "n3", "at_ns": 12 * S, "to": 515, "was": 519},
        {"node": "n1", "at_ns": 14 * S, "to": 302, "was": 597},
        {"node": "n2", "at_ns": 17 * S, "to": 515, "was": 519},
    ],
    "leader_before": {"leader": "n2", "replicas": ["n1", "n2", "n3", "n4"]},
    "leader_after": {"leader": "n3", "since_ns": 16 * S, "replicas": ["n1", "n2", "n3", "n4"]},
}


def test_the_log_of_each_replica_has_what_it_kept_and_what_it_cut() -> None:
    logs = replica_logs(CANARY)
    assert logs is not None
    assert (logs.partition, logs.first, logs.end) == ("log-0", 515, 519)
    assert [(one.node, one.cut and (one.cut.to, one.cut.was)) for one in logs.replicas] == [
        ("n1", (302, 597)), ("n2", (515, 519)), ("n3", (515, 519)), ("n4", None),
    ]  # fmt: skip
    assert [one.node for one in logs.replicas if one.led_until_ns == 16 * S] == ["n2"]
    assert [one.node for one in logs.replicas if one.leads_from_ns == 16 * S] == ["n3"]


@FRAMES
def test_a_bar_ends_where_its_log_was_cut(frame: Frame) -> None:
    logs = replica_logs(CANARY)
    assert logs is not None
    svg = ElementTree.fromstring(replicas_chart(logs, frame))
    boxes: dict[str, list[tuple[float, float]]] = {}
    for one in svg.iter("rect"):
        left = float(one.get("x", 0))
        boxes.setdefault(one.get("class", ""), []).append((left, left + float(one.get("width", 0))))
    n1, n2, n3, n4 = (right for _, right in boxes["kept"])
    assert n1 < n2 == n3 < n4, "n1 has cut more, and n4 nothing"
    [band] = boxes["lost-band"]
    assert boxes["cut-lost"] == [band] * 3
    assert len(boxes["cut-else"]) == 2, "n1 had cut records before and behind the lost ones"
    texts = [one.text for one in svg.iter("text")]
    assert {"lost: 515 to 518", "n1", "n4", "515", "519"} <= set(texts)
    assert "cut from 519 to 515 at 12.0 s; leader at 16.0 s" in texts
    assert "led until 16.0 s; cut from 519 to 515 at 17.0 s" in texts


def test_of_several_cuts_the_one_that_took_lost_records_is_drawn() -> None:
    cuts = [
        {"node": "n3", "at_ns": at * S, "to": to, "was": to + 4}
        for at, to in ((9, 100), (12, 515), (13, 515))
    ]
    logs = replica_logs(CANARY | {"truncations": cuts})
    assert logs is not None
    [n3] = [one for one in logs.replicas if one.node == "n3"]
    assert n3.cut == Cut(12 * S, 515, 519)
    assert n3.more_cuts == 2
    assert "2 more cuts" in replicas_chart(logs, PAGE)


@pytest.mark.parametrize(
    "without",
    [
        {"truncations": []},
        {"truncations": [{"node": "n3", "at_ns": 1, "to": 519, "was": 600}]},
        {"first_offset": None},
    ],
    ids=["no cut", "no cut of what is lost", "no offsets"],
)
def test_nothing_is_drawn_where_nobody_is_known_to_have_cut_what_is_lost(without: dict[str, Any]) -> None:
    assert replica_logs(CANARY | without) is None


def test_the_replicas_of_the_first_incident_stand_below_the_timeline_and_once(html: str) -> None:
    assert html.count(">n2</text>") >= 2
    drawn = [svg for svg in parsed(html) if "on each replica" in (svg.get("aria-label") or "")]
    assert [svg.get("class") for svg in drawn] == ["chart wide", "chart phone"]
    assert (
        html.index('id="timeline"') < html.index("The log of log-1 on each replica") < html.index('id="why"')
    )
    assert "The log on each replica is drawn above." in html


def test_the_replicas_of_an_incident_that_the_contract_allows_stand_in_it(own_incidents: Path) -> None:
    with edited(own_incidents) as verdict:
        verdict["incidents"][0]["meaning"] = "allowed"
    html = write_report(own_incidents).read_text()
    inside = html.partition('id="unforbidden"')[2].partition("</section>")[0]
    assert "The log on each replica is drawn above." not in html
    assert inside.count('<figure class="replicas">') == html.count('<figure class="replicas">') == 1


def test_a_line_of_a_node_has_a_sentence_and_its_own_words_below(html: str) -> None:
    [line] = INCIDENT["lines"]
    assert f"<summary>{line['words']}</summary><code>{line['text']}</code>" in html


def test_conditions_fold_to_one_line_unless_one_fails(own_run: Path) -> None:
    def fold() -> str:
        write_report(own_run)
        [found] = re.findall(
            r'<details class="fold"( open)?>\n<summary>.*?conditions? holds?</strong>',
            (own_run / "report.html").read_text(),
        )
        return str(found)

    assert fold() == " open"
    assert "11 of 19 conditions hold<" in (own_run / "report.html").read_text()
    with edited(own_run) as verdict:
        for condition in verdict["conditions"]:
            condition["ok"] = True
    assert fold() == ""
    assert "19 of 19 conditions hold<" in (own_run / "report.html").read_text()


def test_a_reason_that_only_repeats_an_incident_is_left_out(own_incidents: Path) -> None:
    with edited(own_incidents) as verdict:
        verdict["headline"] = f"{INCIDENT['sentence']}. Two more things."
        verdict["reasons"] = [f"{INCIDENT['sentence']}. It came so.", "an invariant was broken"]
    html = write_report(own_incidents).read_text()
    assert f'<p class="headline">{INCIDENT["sentence"]}</p>' in html
    assert '<p class="subline">Two more things.</p>' in html
    assert "It came so." not in html
    assert "<li>an invariant was broken</li>" in html
