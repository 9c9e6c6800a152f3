"""Large packets vanish and small ones pass: the proof, and the program that asks for echoes, on loopback."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.nemesis.doubles import context
from wrackline.nemesis.faults.network import iptables
from wrackline.nemesis.faults.network.mtu_black_hole import LARGE, SMALL, BlackHole
from wrackline.nemesis.faults.network.ping_program import __file__ as PROGRAM
from wrackline.nemesis.faults.shapes import Direction, Shape
from wrackline.nemesis.faults.steps import FaultContext, FaultError, ProbeLog, Proof, Shell, StepResult
from wrackline.nemesis.spec import FAULT

RULES = f"""-- boot a 1
-P INPUT ACCEPT
-A INPUT -j {iptables.chain("f1")}
-P OUTPUT ACCEPT
-A OUTPUT -j {iptables.chain("f1")}
Chain WRACK-f1 (2 references)
    pkts      bytes target     prot opt in     out     source               destination
"""
LINK = BlackHole(Shape.LINK, Direction.IN, 600)


def listing(packets: int) -> str:
    return RULES + f"{packets} 9000 DROP all -- * * 198.18.0.11 0.0.0.0/0 length 600:65535 /* n1>n3 */\n"


def told(aimed: FaultContext, echo: str, packets: int) -> list[StepResult]:
    """What the probe's steps printed."""
    steps = [step for step in LINK.commands(aimed).probe if isinstance(step, Shell)]
    said = []
    for step in steps:
        if "Asks hosts" in step.command:
            said.append(StepResult(step, f"n1>n3 {echo}\n"))
        else:
            head = "--- after knocking\n" if "after knocking" in step.command else ""
            said.append(StepResult(step, head + listing(packets)))
    return said


def proved(echo: str, *, after: str = "echo echo", packets: int = 4) -> Proof:
    aimed = context("n3", "n1")
    control = [StepResult(step, f"n1>n3 {after}\n") for step in LINK.commands(aimed).control]
    probe = told(aimed, echo, packets)
    undone = [StepResult(step) for step in LINK.commands(aimed).undo]
    return LINK.prove(aimed, ProbeLog(active=probe, final=probe, undo=undone, control=control))


def test_small_packets_are_answered_and_large_ones_are_not() -> None:
    proof = proved("echo silence")
    assert proof.proved, proof.text
    assert f"on n1>n3 packets of {SMALL} bytes were answered, and none of {LARGE}" in proof.text
    assert proof.text.endswith("after the undo all were")


def test_its_beginning_is_proved_before_its_end_was_seen() -> None:
    aimed = context("n3", "n1")
    proof = LINK.prove(aimed, ProbeLog(active=told(aimed, "echo silence", 4)))
    assert proof.proved, proof.text


@pytest.mark.parametrize(
    ("echo", "after", "packets", "why"),
    [
        ("echo echo", "echo echo", 4, "a packet of 1400 bytes was answered on n1>n3"),
        ("silence silence", "echo echo", 4, "a packet of 64 bytes was not answered on n1>n3, either"),
        ("echo silence", "echo silence", 4, "after the undo none on n1>n3 either"),
        ("echo silence", "echo echo", 0, "no packet was dropped"),
    ],
)
def test_what_is_no_black_hole(echo: str, after: str, packets: int, why: str) -> None:
    proof = proved(echo, after=after, packets=packets)
    assert not proof.proved
    assert why in proof.text


def test_nobody_on_the_other_side_and_odd_shapes_are_refused() -> None:
    with pytest.raises(FaultError, match="nobody is left"):
        BlackHole().commands(context("n1", "n2", "n3", "c1"))
    with pytest.raises(ValueError, match="has the shapes isolate, halves, link, not bridge"):
        FAULT.validate_python({"fault": "mtu-black-hole", "target": "n1", "shape": "bridge"})


@pytest.mark.skipif(os.geteuid() != 0, reason="raw sockets are root's")
def test_the_program_tells_who_answers() -> None:
    command = [sys.executable, "-I", "-S", PROGRAM, "0.3", "64", "1400"]
    said = subprocess.run(
        [*command, "here", "127.0.0.1", "nowhere", "127.255.255.255"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout
    assert said.splitlines() == ["here echo echo", "nowhere silence silence"]
