"""From what a probe printed to what it proves: pure parsers, fed with what hosts really said."""

from __future__ import annotations

import pytest
from nem_doubles import scene

from harness.fleet.base import FileLoss
from harness.fleet.base import PowerCut as Cut
from nemesis.chains import Counter, Rule, chain, install, parse_chains, parse_counters
from nemesis.network import Partition, Shape
from nemesis.power import PowerCut
from nemesis.processes import Kill, Pause, Restart, process_state
from nemesis.steps import Done, Knock, PowerOff, PowerOn, Proof, Shell, StartNode, StopNode, Trail

HEAD = """Chain WRACK-f1 (2 references)
    pkts      bytes target     prot opt in     out     source               destination
"""


def listing(*rules: tuple[int, str]) -> str:
    return HEAD + "".join(
        f"{packets:8} {packets * 60:8} DROP       0    --  *      *       198.18.0.12          0.0.0.0/0   "
        f"         /* {comment} */\n"
        for packets, comment in rules
    )


def test_counters_are_read_from_iptables_own_words() -> None:
    said = HEAD + (
        "       3      180 DROP       0    --  *      *       198.18.0.12          0.0.0.0/0            /* n2>n1 */\n"
        "      12     3020 DROP       6    --  *      *       0.0.0.0/0            198.18.0.11          "
        "/* clients>n1 */ tcp dpt:9092\n"
        "       0        0 RETURN     0    --  lo     *       0.0.0.0/0            0.0.0.0/0            /* inside */\n"
        "       9      540 DROP       0    --  *      *       10.0.0.1             0.0.0.0/0           \n"
    )
    assert parse_counters(said) == [
        Counter(3, 180, "DROP", "n2>n1"),
        Counter(12, 3020, "DROP", "clients>n1"),
        Counter(0, 0, "RETURN", "inside"),
    ]


def test_chains_of_ours_are_told_from_others() -> None:
    assert parse_chains("WRACK-f1\nWRACK-g2\n") == ["f1", "g2"]
    assert parse_chains("") == []


@pytest.mark.parametrize("bad", ["", "f 1", "f1;reboot", "f" * 21, "$(x)", "f1\n"])
def test_a_fault_id_that_is_no_plain_word_never_reaches_a_shell(bad: str) -> None:
    with pytest.raises(ValueError, match="fault id"):
        install(bad, [Rule("-s 1.2.3.4/32", "a>b")])
    assert len(chain("f" * 20)) <= 28


@pytest.mark.parametrize(
    ("stat", "state"),
    [
        ("41 (python3) S 1 41 41 0", "S"),
        ("41 (a) b (c) T 1 41", "T"),
        ("41 (python3) Z 1 41 41 0", None),
        ("gone\n", None),
        ("", None),
    ],
)
def test_process_states(stat: str, state: str | None) -> None:
    assert process_state(stat) == state


def probe(host: str, before: str, after: str) -> Done:
    return Done(Shell(host, "probe"), f"{before}--- after knocking\n{after}")


def cut_link(active: list[Done], final: list[Done]) -> Proof:
    return Partition(Shape.LINK).prove(scene("n1", "n2"), Trail(active=active, final=final))


QUIET = [
    probe("n1", listing((0, "n2>n1"), (0, "n1>n2")), listing((0, "n2>n1"), (1, "n1>n2"))),
    probe("n2", listing((0, "n1>n2"), (0, "n2>n1")), listing((0, "n1>n2"), (1, "n2>n1"))),
]


def busy(n1_to_n2: int, n2_to_n1: int) -> list[Done]:
    return [
        probe(
            "n1", listing((0, "n2>n1"), (n1_to_n2, "n1>n2")), listing((0, "n2>n1"), (n1_to_n2 + 1, "n1>n2"))
        ),
        probe(
            "n2", listing((0, "n1>n2"), (n2_to_n1, "n2>n1")), listing((0, "n1>n2"), (n2_to_n1 + 1, "n2>n1"))
        ),
    ]


def test_a_cut_that_dropped_traffic_on_every_way_is_proved() -> None:
    proof = cut_link(QUIET, busy(8, 3))
    assert proof.proved
    assert proof.text == "9 packets dropped, and a probe on each of 2 ways (n1>n2 8, n2>n1 3)"


def test_a_cut_that_met_no_traffic_says_so() -> None:
    """What was dropped before the last probe is the probe of the beginning, and nothing else."""
    proof = cut_link(QUIET, busy(1, 1))
    assert proof == Proof(True, "probe packets were dropped on 2 ways; no other traffic met the cut")


def test_a_cut_that_lets_a_knock_through_is_not_proved() -> None:
    leaky = [
        probe("n1", listing((5, "n1>n2")), listing((5, "n1>n2"))),
        probe("n2", listing(), listing((0, "n2>n1"))),
    ]
    proof = cut_link(QUIET, leaky)
    assert not proof.proved
    assert proof.text == "no packet was dropped on the way n2>n1"


def test_nothing_probed_is_nothing_proved() -> None:
    assert not cut_link([], []).proved
    assert not cut_link([Done(Shell("n1", "probe"), error="no such chain")], []).proved
    assert not cut_link([Done(Shell("n1", "probe"), skipped=True)], []).proved


def test_a_host_that_lost_its_power_is_judged_by_the_probe_it_answered() -> None:
    final = [Done(Shell("n1", "probe"), skipped=True), busy(0, 6)[1]]
    proof = cut_link(QUIET, final)
    assert proof.proved, proof


def test_clients_that_are_cut_off_are_proved_by_their_own_packets() -> None:
    def probes(before: int, after: int) -> list[Done]:
        return [
            Done(Shell("n1", "list"), listing((before, "clients>n1"))),
            Done(Knock("n1", "198.18.0.11", 9092), "silence"),
            Done(Shell("n1", "list"), "--- after knocking\n" + listing((after, "clients>n1"))),
        ]

    fault = Partition(Shape.CLIENTS)
    aimed = scene("n1")
    assert fault.prove(aimed, Trail(active=probes(0, 1), final=probes(7, 8))).proved
    assert "no other traffic" in fault.prove(aimed, Trail(active=probes(0, 1), final=probes(1, 2))).text
    assert not fault.prove(aimed, Trail(active=probes(0, 0), final=probes(0, 0))).proved


def test_a_broker_that_lost_its_power_while_clients_were_cut_off_is_judged_by_the_first_probe() -> None:
    active = [
        Done(Shell("n1", "list"), listing((3, "clients>n1"))),
        Done(Knock("n1", "198.18.0.11", 9092), "silence"),
        Done(Shell("n1", "list"), "--- after knocking\n" + listing((4, "clients>n1"))),
    ]
    final = [
        Done(Shell("n1", "list"), skipped=True),
        Done(Knock("n1", "198.18.0.11", 9092), "no route to host"),
        Done(Shell("n1", "list"), skipped=True),
    ]
    assert Partition(Shape.CLIENTS).prove(scene("n1"), Trail(active=active, final=final)).proved


def stat(host: str, state: str) -> Done:
    return Done(Shell(host, "cat"), f"41 (python3) {state} 1 41 41 0" if state else "gone")


@pytest.mark.parametrize(
    ("active", "proved"),
    [(["", ""], True), (["", "S"], False), (["", "Z"], True), ([""], False)],
)
def test_a_kill_is_proved_when_every_process_is_gone(active: list[str], proved: bool) -> None:
    dones = [stat(host, state) for host, state in zip(("n1", "n2"), active, strict=False)]
    proof = Kill().prove(scene("n1", "n2"), Trail(active=dones))
    assert proof.proved is proved
    assert ("41 on n1" in proof.text) is proved or "not seen gone" in proof.text


@pytest.mark.parametrize(
    ("active", "final", "proved"),
    [("T", "T", True), ("T", "S", False), ("S", "T", False), ("T", "", False), ("T", None, True)],
)
def test_a_pause_is_proved_when_it_lasted(active: str, final: str | None, proved: bool) -> None:
    trail = Trail(active=[stat("n1", active)], final=[] if final is None else [stat("n1", final)])
    assert Pause().prove(scene("n1"), trail).proved is proved


def test_a_restart_is_proved_by_the_clean_file_and_a_new_process() -> None:
    clean = [Done(Shell("n1", "find"), "/data/broker/.kafka_cleanshutdown\n")]
    stopped = [Done(StopNode("n1", 1))]

    def prove(do: list[Done], active: list[Done], pid: str) -> bool:
        trail = Trail(do=do, active=active, undo=[Done(StartNode("n1", 1), pid)])
        return Restart().prove(scene("n1"), trail).proved

    assert prove(stopped, clean, "88")
    assert not prove(stopped, clean, "41"), "the same process as before"
    assert not prove(stopped, [Done(Shell("n1", "find"), "")], "88")
    assert not prove([Done(StopNode("n1", 1), error="still runs")], clean, "88")


def test_a_power_cut_is_lossy_only_with_bytes_gone() -> None:
    files = {"log-0/1.log": FileLoss(900, 500), "same": FileLoss(10, 10)}
    trail = Trail(
        do=[Done(PowerOff("n1"), cut=Cut("n1", 0, 12_000_000)), Done(PowerOff("n2"), cut=Cut("n2", 0, 9))],
        undo=[
            Done(PowerOn("n1"), cut=Cut("n1", 0, 12_000_000, files)),
            Done(PowerOn("n2"), cut=Cut("n2", 0, 9, {"same": FileLoss(10, 10)})),
        ],
    )
    proof = PowerCut().prove(scene("n1", "n2"), trail)
    assert proof.proved
    assert proof.lost == {"n1": {"log-0/1.log": 400}}
    assert "n1: power gone 12.0 ms after the decision, 400 bytes in 1 files lost" in proof.text
    missed = Trail(do=[Done(PowerOff("n1"), error="no such host")])
    assert not PowerCut().prove(scene("n1"), missed).proved
