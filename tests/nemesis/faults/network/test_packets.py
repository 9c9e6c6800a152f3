"""What netem and our program are told, what they say, and what that proves."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.nemesis.doubles import combined_scene, context
from wrackline.nemesis.faults.network.packets import Packets
from wrackline.nemesis.faults.network.shaping import Shaping, counted, tcp_counter
from wrackline.nemesis.faults.shapes import Direction, Link
from wrackline.nemesis.faults.steps import (
    FaultContext,
    FaultError,
    ProbeLog,
    Proof,
    Shell,
    StepResult,
    TcpProbeFrom,
    Way,
)
from wrackline.nemesis.spec import FAULT

NETEM = """qdisc prio 57ac: root refcnt 2 bands 4 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1
 Sent 900 bytes 9 pkt (dropped 0, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc netem 57ad: parent 57ac:4 limit 100000 delay 80ms  10ms loss 2%
 Sent 47512 bytes {passed} pkt (dropped {lost}, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
"""
"""As tc of Debian 12 writes it."""
SNMP = """Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens InErrs OutRsts InCsumErrors
Tcp: 1 200 120000 -1 41 7 3 {bad}
TcpExt: SyncookiesSent TCPOFOQueue
TcpExt: 0 12
"""
JUMP = "-P POSTROUTING ACCEPT\n-A POSTROUTING -j WRACK-f1\n"


def test_netem_is_told_in_its_own_words() -> None:
    slow = Shaping(delay_s=0.05, jitter_s=0.01, reorder=0.25)
    assert slow.netem() == "limit 100000 delay 50ms 10ms reorder 25%"
    bad = Shaping(loss=0.2, duplicate=0.015, corrupt=0.01)
    assert bad.netem() == "limit 100000 loss 20% duplicate 1.5% corrupt 1%"
    assert Shaping(rate_kbit=12_000).netem() == "limit 1000 rate 12000kbit"
    assert Shaping(rate_kbit=100).netem() == "limit 50 rate 100kbit"


def test_who_is_hit() -> None:
    def senders(fault: Packets, aimed: FaultContext) -> list[str]:
        return [one.host.host for one in fault.leaving(aimed)]

    slow = Shaping(delay_s=0.1)
    assert senders(Packets(slow), context("n1")) == ["n1", "n2", "n3", "c1"]
    assert senders(Packets(slow, direction=Direction.OUT), context("n1")) == ["n1"]
    assert senders(Packets(slow, direction=Direction.IN), context("n1")) == ["n2", "n3", "c1"]
    every = Packets(slow, direction=Direction.OUT).flows(context("n1", "n2", "n3", "c1"))
    assert len({one.way for one in every}) == 12, "also from target to target"
    controllers = Packets(slow, links=(Link.BROKER_CONTROLLER,))
    assert {one.way for one in controllers.flows(context("n1"))} == {"n1>c1", "c1>n1"}
    assert {one.asked for one in controllers.flows(combined_scene("n1"))} == {(9093,)}
    with pytest.raises(FaultError, match="nothing of client-broker is sent here"):
        Packets(slow, links=(Link.CLIENT_BROKER,)).leaving(context("c1"))


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "does nothing yet"),
        ({"delay_s": 0.1, "jitter_s": 0.2}, "is more than delay_s"),
        ({"reorder": 0.1}, "set delay_s too"),
        ({"loss": 2}, "less than or equal to 1"),
        ({"loss": 0.1, "links": ["client-broker"], "direction": "in"}, "what clients send is not shaped"),
        ({"loss": 0.1, "links": ["broker-broker"], "ports": [1]}, "give one of them"),
    ],
)
def test_settings_that_do_not_fit_together_are_refused(settings: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        FAULT.validate_python({"fault": "packets", **settings})


def test_what_netem_and_the_kernel_count_is_read() -> None:
    count = counted([NETEM.format(passed=1, lost=0), NETEM.format(passed=310, lost=7)])
    assert count is not None
    assert (count.seen, count.lost, count.by_netem) == (317, 7, True)
    assert counted(["nothing"]) is None
    assert tcp_counter(SNMP.format(bad=14), "InCsumErrors") == 14
    assert tcp_counter(SNMP.format(bad=14), "TCPOFOQueue") == 12
    assert tcp_counter("", "TCPOFOQueue") is None


def program(seen: int, running: bool = True, jump: str = JUMP, bad: int = 0, **counts: float) -> StepResult:
    said = dict.fromkeys(
        ("delayed", "delay_s", "lost", "corrupted", "duplicated", "overtook", "overflowed"), 0.0
    )
    line = json.dumps({**said, "seen": seen, "bytes": seen * 100, **counts})
    state = "-- running" if running else "-- ended"
    output = f"-- boot b1 17\n{jump}\n{state}\nready\ncounts {line}\n{SNMP.format(bad=bad)}"
    return StepResult(Shell("n1", "look"), output)


def probed(took_s: float, answer: str = "connected") -> StepResult:
    return StepResult(
        TcpProbeFrom("n1", (Way("n1>n2:9092", "", 9092),)), f"n1>n2:9092 {answer} {took_s:.4f}\n"
    )


def prove(
    shaping: Shaping,
    final: StepResult,
    during_s: float = 0.1,
    after_s: float = 0.001,
    answer: str = "connected",
) -> Proof:
    active = [
        probed(during_s, answer),
        replace(final, output=final.output.partition("counts")[0] + SNMP.format(bad=0)),
    ]
    probe_log = ProbeLog(
        active=active, final=[final], undo=[StepResult(Shell("n1", "undo"))], control=[probed(after_s)]
    )
    return Packets(shaping, direction=Direction.OUT).prove(context("n1"), probe_log)


SLOW = Shaping(delay_s=0.1)


def test_a_delay_is_proved_by_the_program_and_by_knocks_that_took_longer() -> None:
    proof = prove(SLOW, program(60, delayed=60, delay_s=6.03))
    assert proof == Proof(
        True,
        "our program on n1: 60 packets, 60 held back for 100 ms on average; "
        "a knock n1>n2:9092 took 100 ms, and 1.0 ms after the undo",
    )
    quick = prove(SLOW, program(60, delayed=60, delay_s=6.0), during_s=0.004)
    assert quick.text.endswith("it was not held back by 100 ms")
    always = prove(SLOW, program(60, delayed=60, delay_s=6.0), after_s=0.1)
    assert not always.proved, "something else is slow"
    assert prove(SLOW, program(60)).text == "none of 60 packets was held back"
    assert prove(SLOW, program(0)).text == "no packet came its way"


def test_a_delay_that_no_knock_got_through_is_proved_by_the_program_alone() -> None:
    cut_off = prove(SLOW, program(60, delayed=60, delay_s=6.0), answer="silence")
    assert cut_off.proved
    assert cut_off.text.endswith("no knock was answered while it lasted")
    output = f"-- boot b1 17\n\n-- ended\nready netem eth0\n{NETEM.format(passed=50, lost=9)}"
    assert not prove(SLOW, StepResult(Shell("n1", "look"), output), answer="silence").proved


def test_a_program_that_ended_or_that_packets_pass_by_proves_nothing() -> None:
    counts = {"delayed": 60, "delay_s": 6.0}
    ended = prove(SLOW, program(60, running=False, **counts))
    assert ended.text == "n1 at the beginning: its program has ended"
    early = "-P POSTROUTING ACCEPT\n-A POSTROUTING -j ACCEPT\n-A POSTROUTING -j WRACK-f1\n"
    bypassed = prove(SLOW, program(60, jump=early, **counts))
    assert "`-A POSTROUTING -j ACCEPT` stands before its rules" in bypassed.text


def test_each_kind_must_have_happened() -> None:
    lossy = Shaping(loss=0.2)
    assert prove(lossy, program(60, lost=11)).proved
    assert prove(lossy, program(60)).text == "none of 60 packets was lost"
    assert prove(lossy, program(4)).text == "none of 4 packets was lost: they were too few"
    assert prove(Shaping(duplicate=0.5), program(60)).text == "none of 60 packets was duplicated"
    overtaking = Shaping(delay_s=0.1, reorder=0.3)
    assert prove(overtaking, program(60, delayed=40, delay_s=4)).text == "none of 60 packets overtook"


def test_damage_must_have_been_found_by_a_receiver() -> None:
    damaging = Shaping(corrupt=0.1)
    found = prove(damaging, program(60, corrupted=6, bad=5))
    assert found.proved
    assert "the receivers' kernels found 5 wrong checksums of TCP" in found.text
    assert not prove(damaging, program(60, corrupted=6)).proved


def test_netem_is_proof_enough_without_our_rules() -> None:
    output = f"-- boot b1 17\n\n-- ended\nready netem eth0\n{NETEM.format(passed=50, lost=9)}"
    proof = prove(Shaping(delay_s=0.08, loss=0.1), StepResult(Shell("n1", "look"), output))
    assert proof.proved, proof
    assert proof.text.startswith("netem on n1: 59 packets, 9 lost; a knock")
