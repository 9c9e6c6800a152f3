"""What went wrong in the nodes: every mechanism with evidence that supports it, that refutes it, and that is
silent. What a mechanism takes for one of the three is a change of one thing in the same incident."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from wrackline.checkers.verdict.incidents.sentences import in_full
from wrackline.harness.run.clocks import Clocks
from wrackline.harness.run.incidents.incident_logs import add_lines
from wrackline.harness.run.incidents.loss import how_of
from wrackline.harness.run.incidents.mechanisms import MECHANISMS, Evidence, Mechanism, told_of
from wrackline.harness.run.incidents.node_lines import Line, Tells

SECOND = 1_000_000_000


class Answer(Enum):
    """What the evidence says of a mechanism."""

    SUPPORTED = "supported"
    REFUTED = "refuted"
    SILENT = "silent"


S, R, N = Answer.SUPPORTED, Answer.REFUTED, Answer.SILENT


def line(host: str, at_s: float, tells: Tells, end: int | None = None, text: str = "", **more: Any) -> Line:
    """``number`` is the tenth of a second in which the line was written."""
    at_ns, number = int(at_s * SECOND), int(at_s * 10)
    place = {"host": host, "file": f"nodes/{host}/broker.log", "number": number, "label": "log-0"}
    return Line(tells, text, at_ns, end, is_exact=True, **place, **more)


def cut(host: str, at_s: float, end: int = 886, was: int = 1_852, text: str = "") -> Line:
    return line(host, at_s, Tells.CUT, end, text, was=was)


def leads(host: str, at_s: float, epoch: int, end: int | None = 886) -> Line:
    return line(host, at_s, Tells.LEADS, end, leader_epoch=epoch)


def follows(host: str, at_s: float, epoch: int, end: int | None = 1_852) -> Line:
    return line(host, at_s, Tells.FOLLOWS, end, leader_epoch=epoch)


def led(leader: str, epoch: int, isr: Sequence[str] = (), *, unclean: bool | None = None) -> dict[str, Any]:
    return {"leader": leader, "leader_epoch": epoch, "isr": list(isr), "elr": [], "unclean": unclean}


def fault(name: str, at_s: float, **more: Any) -> dict[str, Any]:
    ns = int(at_s * SECOND)
    found = {"id": "f1", "fault": name, "active_ns": ns, "lossy": [], "unsure": [], "damaged": {}}
    return found | more


WHAT = "966 acknowledged records of log-0 (offsets 886 to 1,851) are gone"


def incident(**changes: Any) -> dict[str, Any]:
    """Offsets 886 to 1,851 are lost; n3 became leader at 10.1 s, and n2 had been that."""
    found = {
        "id": "i-1",
        "meaning": "violation",
        "sentence": f"{WHAT} since n3 became leader at 10.1 s",
        "gone": {"what": WHAT, "also": ""},
        "mechanism": [],
        "topic": "log",
        "partition": 0,
        "first_offset": 886,
        "last_offset": 1_851,
        "first_ns": 9 * SECOND,
        "last_ns": 12 * SECOND,
        "lost_ns": 12 * SECOND,
        "at_ns": int(10.1 * SECOND),
        "faults": ["f1"],
        "anomalies": [{"anomaly": "lost-write", "meaning": "violation", "count": 966}],
        "leader_before": led("n2", 4, ("n1", "n2")),
        "leader_after": led("n3", 5),
    }
    return found | changes


@dataclass(frozen=True)
class Shown:
    """Evidence: the nodes' lines, the incident and the faults."""

    lines: Sequence[Line] = ()
    of: dict[str, Any] = field(default_factory=dict)
    faults: Sequence[dict[str, Any]] = ()

    @property
    def evidence(self) -> Evidence:
        of, lines = incident(**self.of), list(self.lines)
        wanted = of["leader_after"] or {}
        takeover = [
            one
            for one in lines
            if one.tells is Tells.LEADS and (one.host, one.leader_epoch) == (wanted.get("leader"), 5)
        ]
        cuts = [one for one in lines if one.tells is Tells.CUT]
        return Evidence(of, lines, cuts, takeover[0] if takeover else None, self.faults)


TOOK_OVER = leads("n3", 10.1, 5)
IN_ISR = {"leader_before": led("n2", 4, ("n2", "n3"))}
NOT_PINNED = {"leader_before": None, "leader_after": None, "at_ns": None}
DIFFERENT = {"anomalies": [{"anomaly": "replica-divergence", "meaning": "violation", "count": 1}]}
OURS, KAFKAS = "kind truncate, why became follower", "Truncating due to local high watermark 886"
EPOCHS = "kind truncate, why diverging at epoch 4"
CASES: dict[str, list[tuple[str, Answer, Shown]]] = {
    "log that was not cut": [
        ("it was longer, and stayed so", S, Shown([TOOK_OVER, follows("n1", 10.5, 5)], DIFFERENT)),
        ("it was no longer", N, Shown([TOOK_OVER, follows("n1", 10.5, 5, 886)], DIFFERENT)),
        ("its end is not known", N, Shown([TOOK_OVER, follows("n1", 10.5, 5, None)], DIFFERENT)),
        ("it was cut", R, Shown([TOOK_OVER, follows("n1", 10.5, 5), cut("n1", 10.6)], DIFFERENT)),
        ("replicas do not differ", R, Shown([TOOK_OVER, follows("n1", 10.5, 5)])),
    ],
    "truncation to the high watermark": [
        ("our broker's words", S, Shown([cut("n3", 9.8, text=OURS), TOOK_OVER])),
        ("Kafka's", S, Shown([line("n3", 9.7, Tells.CUTS, 886, KAFKAS), cut("n3", 9.8), TOOK_OVER])),
        ("nobody says why it cut", N, Shown([cut("n3", 9.8), TOOK_OVER])),
        ("another replica did", N, Shown([cut("n1", 9.8, text=OURS), TOOK_OVER])),
        ("no lines", N, Shown()),
        ("its leader told it to", R, Shown([cut("n3", 9.8, text=EPOCHS), TOOK_OVER])),
        ("it had them all", R, Shown([leads("n3", 10.1, 5, 1_852)])),
        ("it did when it led no more", N, Shown([TOOK_OVER, cut("n3", 12, text=OURS)])),
    ],
    "deposed leader": [
        ("it learns late", S, Shown([TOOK_OVER, follows("n2", 12.3, 5), cut("n2", 12.3)])),
        ("it does not say when", N, Shown([TOOK_OVER, cut("n2", 12.3)])),
        ("it cut nothing", N, Shown([TOOK_OVER, follows("n2", 12.3, 5)])),
        ("no lines", N, Shown()),
        (
            "all was seen before",
            R,
            Shown([TOOK_OVER, follows("n2", 12.3, 5), cut("n2", 12.3)], {"lost_ns": 9 * SECOND}),
        ),
        ("it knew at once", R, Shown([TOOK_OVER, follows("n2", 10.1, 5), cut("n2", 12.3)])),
        (
            "it had been killed",
            R,
            Shown(
                [TOOK_OVER, follows("n2", 12.3, 5), cut("n2", 12.3)],
                faults=[fault("kill", 9, targets=["n2"], undo_ns=11 * SECOND)],
            ),
        ),
        (
            "it had been killed, and was back before",
            S,
            Shown(
                [TOOK_OVER, follows("n2", 12.3, 5), cut("n2", 12.3)],
                faults=[fault("kill", 8, targets=["n2"], undo_ns=9 * SECOND)],
            ),
        ),
        ("it knew before the last of them", R, Shown([TOOK_OVER, follows("n2", 11.8, 5), cut("n2", 12.3)])),
        (
            "the last was seen with the change",
            N,
            Shown([TOOK_OVER, follows("n2", 12.3, 5), cut("n2", 12.3)], {"lost_ns": int(10.15 * SECOND)}),
        ),
    ],
    "lost bytes": [
        ("a power cut before", S, Shown([TOOK_OVER], faults=[fault("power-cut", 9, lossy=["n3"])])),
        ("nobody could look", S, Shown([TOOK_OVER], faults=[fault("power-cut", 9, unsure=["n3"])])),
        ("its end is not known", N, Shown(faults=[fault("power-cut", 9, lossy=["n3"])])),
        ("another host", R, Shown([TOOK_OVER], faults=[fault("power-cut", 9, lossy=["n1"])])),
        ("later", R, Shown([TOOK_OVER], faults=[fault("power-cut", 11, lossy=["n3"])])),
        (
            "it had them all",
            R,
            Shown([leads("n3", 10.1, 5, 1_852)], faults=[fault("power-cut", 9, lossy=["n3"])]),
        ),
    ],
    "unclean election": [
        ("the leader says so", S, Shown(of={"leader_after": led("n3", 5, unclean=True)})),
        (
            "the controller says so",
            S,
            Shown([line("c1", 10.1, Tells.ELECTED, text="UNCLEAN partition change")]),
        ),
        ("not of this time", N, Shown([line("c1", 30, Tells.ELECTED, text="UNCLEAN partition change")])),
        ("nobody says so", N, Shown()),
        ("the system elected it cleanly", R, Shown(of={"leader_after": led("n3", 5, unclean=False)})),
    ],
    "leader behind": [
        ("it was in the ISR", S, Shown([TOOK_OVER], IN_ISR)),
        ("its end is not known", N, Shown(of=IN_ISR)),
        ("it was not in the ISR", N, Shown([TOOK_OVER])),
        (
            "it was in no set any more",
            R,
            Shown([TOOK_OVER], IN_ISR | {"leader_after": led("n3", 5, unclean=True)}),
        ),
        ("it had cut its log", R, Shown([cut("n3", 9.8), TOOK_OVER], IN_ISR)),
        ("it lost bytes", R, Shown([TOOK_OVER], IN_ISR, [fault("power-cut", 9, lossy=["n3"])])),
        ("it had them all", R, Shown([leads("n3", 10.1, 5, 1_852)], IN_ISR)),
    ],
    "leader that cut its log": [
        ("its last word was that it leads", S, Shown([leads("n2", 9, 4), cut("n2", 11)], NOT_PINNED)),
        (
            "it had started since",
            N,
            Shown([leads("n2", 9, 4), line("n2", 10, Tells.LOADED), cut("n2", 11)], NOT_PINNED),
        ),
        ("it said nothing before", N, Shown([cut("n2", 11)], NOT_PINNED)),
        ("it led only after that", N, Shown([cut("n2", 9), leads("n2", 11, 4)], NOT_PINNED)),
        (
            "it became a follower with it, and of another nobody knows",
            N,
            Shown([leads("n2", 9, 4), cut("n2", 11, text=OURS), cut("n1", 12)], NOT_PINNED),
        ),
        ("nobody cut", N, Shown([leads("n2", 9, 4)], NOT_PINNED)),
        ("it followed", R, Shown([leads("n2", 9, 4), follows("n2", 10, 5), cut("n2", 11)], NOT_PINNED)),
        ("it became a follower with it", R, Shown([leads("n2", 9, 4), cut("n2", 11, text=OURS)], NOT_PINNED)),
    ],
    "changed files": [
        (
            "a fault of the incident",
            S,
            Shown(faults=[fault("bit-flip", 9, damaged={"n3": {"log-0/0.log": 1}})]),
        ),
        (
            "a fault of another time",
            N,
            Shown(of={"faults": []}, faults=[fault("bit-flip", 9, damaged={"n3": {}})]),
        ),
        ("no fault did", R, Shown(faults=[fault("kill", 9)])),
    ],
}
EACH = [
    pytest.param(name, answer, shown, id=f"{name}: {why}")
    for name, cases in CASES.items()
    for why, answer, shown in cases
]


def mechanism(name: str) -> Mechanism:
    return next(one for one in MECHANISMS if one.name == name)


def test_every_mechanism_is_supported_refuted_and_silent_somewhere() -> None:
    assert list(CASES) == [one.name for one in MECHANISMS]
    assert all({answer for _, answer, _ in cases} == set(Answer) for cases in CASES.values())


@pytest.mark.parametrize(("name", "answer", "shown"), EACH)
def test_what_the_evidence_says_of_a_mechanism(name: str, answer: Answer, shown: Shown) -> None:
    of, evidence = mechanism(name), shown.evidence
    if answer is R:
        assert of.refuted(evidence)
    else:
        assert not of.refuted(evidence)
        assert (of.supported(evidence) is not None) is (answer is S)


@pytest.mark.parametrize(("name", "answer", "shown"), EACH)
def test_what_is_refuted_or_silent_is_not_told(name: str, answer: Answer, shown: Shown) -> None:
    told = mechanism(name).supported(shown.evidence)
    assert (told is not None and told_of(shown.evidence).get(name) == told) is (answer is S)


def test_a_deposed_leader_is_told_with_its_epoch_and_what_it_cut() -> None:
    _, _, shown = CASES["deposed leader"][0]
    told = told_of(shown.evidence)["deposed leader"]
    assert told.mistake == "n2 acknowledged as leader until 12.3 s"
    assert told.sentence == (
        "n2 acknowledged as leader of epoch 4 while n3 led epoch 5. It then cut its log back from offset "
        "1,852 to 886 at 12.3 s."
    )


def test_the_sentence_and_the_headline_say_how_it_came_about(tmp_path: Path) -> None:
    Clocks(0, {}).write(tmp_path)
    (tmp_path / "nodes/n3").mkdir(parents=True)
    lines = (
        '{"time_ns":9800000000,"kind":"truncate","tp":"log-0","to":886,"was":1852,"why":"became follower"}',
        '{"time_ns":10100000000,"kind":"role","tp":"log-0","role":"leader","leader_epoch":5,"leo":886}',
    )
    (tmp_path / "nodes/n3/trace.jsonl").write_text("\n".join(lines))
    one = incident()
    sentence = one["sentence"]
    verdict = {
        "incidents": [one],
        "headline": f"{sentence}. acks-all was broken",
        "reasons": [in_full(one)],
    }
    assert add_lines(tmp_path, verdict)
    now = (
        f"{WHAT}: n3 cut them at 9.8 s (truncated to its high watermark as it became a follower), and became "
        "leader at 10.1 s"
    )
    assert one["sentence"] == now
    assert verdict["headline"] == f"{now}. acks-all was broken"
    assert verdict["reasons"] == [in_full(one)]
    assert one["mechanism"] == [], "the sentence says it all"


FOLLOWED = [follows("n1", 10.3, 5), follows("n2", 12.3, 5)]
POWER = [fault("power-cut", 9, lossy=["n3"])]
UNCLEAN = {"leader_after": led("n3", 5, unclean=True)}
AGAIN = {"leader_before": led("n3", 4), "leader_after": led("n3", 5)}
FLIP = [fault("bit-flip", 9, damaged={"n3": {"log-0/0.log": 1}})]
CLAUSES = [
    ("nothing but the change is known", Shown([leads("n3", 10.1, 5, None), *FOLLOWED]), ""),
    ("its log had them all", Shown([leads("n3", 10.1, 5, 1_852)]), ""),
    (
        "a cut, and who followed",
        Shown([cut("n3", 9.8, text=EPOCHS), TOOK_OVER, *FOLLOWED]),
        "n3 cut them at 9.8 s (truncated to where its leader's log differed), became leader at 10.1 s, and "
        "n1 and n2 followed it",
    ),
    (
        "a cut that left some of them",
        Shown([cut("n3", 9.8, 1_000), leads("n3", 10.1, 5, 1_000)]),
        "n3 cut its log back to offset 1,000 at 9.8 s, and became leader at 10.1 s",
    ),
    (
        "a cut of one that did not have all of them",
        Shown([cut("n3", 9.8, 886, 1_000), TOOK_OVER]),
        "n3 cut its log back to offset 886 at 9.8 s, and became leader at 10.1 s",
    ),
    ("an empty log", Shown([leads("n3", 10.1, 5, 0)]), "n3 became leader at 10.1 s with an empty log"),
    ("a shorter log", Shown([TOOK_OVER], AGAIN), "n3 became leader again at 10.1 s with log end offset 886"),
    (
        "lost bytes",
        Shown([TOOK_OVER], faults=POWER),
        "n3 lost unsynced bytes in the power cut at 9.0 s, and became leader at 10.1 s with log end "
        "offset 886",
    ),
    (
        "an unclean election",
        Shown(of=UNCLEAN),
        "n3 became leader in an unclean election at 10.1 s",
    ),
    (
        "a member of the ISR that was behind",
        Shown([TOOK_OVER], IN_ISR),
        "n3 was in the ISR without them, and became leader at 10.1 s",
    ),
    (
        "a member of the ISR that had some",
        Shown([leads("n3", 10.1, 5, 1_000)], IN_ISR),
        "n3 was in the ISR without some of them, and became leader at 10.1 s",
    ),
    (
        "a deposed leader",
        Shown([TOOK_OVER, *FOLLOWED, cut("n2", 12.3)]),
        "n3 became leader at 10.1 s with log end offset 886, n2 acknowledged as leader until 12.3 s, and "
        "n1 and n2 followed n3",
    ),
    (
        "a leader that cut its log",
        Shown([leads("n2", 9, 4), cut("n2", 11)], NOT_PINNED),
        "n2 cut its log back from offset 1,852 to 886 at 11.0 s while it led epoch 4",
    ),
    (
        "changed files",
        Shown(faults=FLIP),
        "a bit flip at 9.0 s changed files on n3, and n3 became leader at 10.1 s",
    ),
]


@pytest.mark.parametrize(
    ("shown", "clause"), [pytest.param(shown, clause, id=why) for why, shown, clause in CLAUSES]
)
def test_how_records_were_lost_is_one_clause(shown: Shown, clause: str) -> None:
    evidence = shown.evidence
    assert how_of(evidence, told_of(evidence)).clause == clause


def test_each_mechanism_of_a_loss_is_in_its_clause() -> None:
    """Replicas that differ are another incident, and their mechanism is never the clause of a loss."""
    said = {
        name
        for _, shown, _ in CLAUSES
        for name, told in told_of(shown.evidence).items()
        if told in how_of(shown.evidence, told_of(shown.evidence)).told
    }
    hw = Shown([cut("n3", 9.8, text=OURS), TOOK_OVER]).evidence
    assert how_of(hw, told_of(hw)).told == tuple(told_of(hw).values())
    assert said == {one.name for one in MECHANISMS} - {
        "log that was not cut",
        "truncation to the high watermark",
    }


def test_of_two_longer_logs_the_one_that_was_not_cut_is_told() -> None:
    longer = [follows("n1", 10.5, 5), cut("n1", 10.6), follows("n2", 10.5, 5, 1_900)]
    told = mechanism("log that was not cut").supported(Shown([TOOK_OVER, *longer], DIFFERENT).evidence)
    assert told is not None
    assert told.mistake == "n2 kept what n3 did not have"
    assert told.sentence == (
        "The log end offset of n3 was 886 when it took over. n2 followed it in epoch 5 with log end offset "
        "1,900, and did not cut its log back to that."
    )


def test_without_leader_epochs_the_last_that_led_before_counts() -> None:
    """Profile zk08: all leaders have epoch 0, and the follower leads later itself."""
    lines = [
        leads("n3", 10.1, 0),
        follows("n1", 10.5, 0),
        leads("n1", 20, 0, 5_000),
        follows("n3", 20.1, 0, 900),
    ]
    told = mechanism("log that was not cut").supported(Shown(lines, DIFFERENT).evidence)
    assert told is not None
    assert told.mistake == "n1 kept what n3 did not have"


def test_without_leader_epochs_a_deposed_leader_is_told_without_them() -> None:
    of = {"leader_before": led("n2", 0), "leader_after": led("n3", 0)}
    lines = [follows("n2", 12.3, 0), cut("n2", 12.3)]
    told = mechanism("deposed leader").supported(Shown(lines, of).evidence)
    assert told is not None
    assert told.sentence.startswith("n2 acknowledged as leader while n3 led. It then cut")
