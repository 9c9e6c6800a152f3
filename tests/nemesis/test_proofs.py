"""Pure parsers turn what a probe printed into what it proves; they are fed with what hosts really said."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.nemesis.doubles import context, node_look
from wrackline.fleets.base import FileLoss
from wrackline.fleets.base import PowerCut as Cut
from wrackline.fleets.canary import FOLDER, CanaryLoss
from wrackline.nemesis.faults.disks.power import PowerCut
from wrackline.nemesis.faults.network.iptables import (
    Counter,
    Rule,
    chain,
    install,
    parse_chains,
    parse_counters,
)
from wrackline.nemesis.faults.network.partitions import Partition
from wrackline.nemesis.faults.network.tcp_probe import command, probe_results
from wrackline.nemesis.faults.node_state import process_state
from wrackline.nemesis.faults.processes.processes import Kill, Pause, Restart
from wrackline.nemesis.faults.shapes import Shape
from wrackline.nemesis.faults.steps import (
    Look,
    PowerOff,
    PowerOn,
    ProbeLog,
    Proof,
    Shell,
    StartNode,
    StepResult,
    StopNode,
    TcpProbe,
    TcpProbeFrom,
    Way,
)

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
        "       3      180 DROP       0    --  *      *       198.18.0.12          0.0.0.0/0            /* "
        "n2>n1 */\n"
        "      12     3020 DROP       6    --  *      *       0.0.0.0/0            198.18.0.11          "
        "/* clients>n1 */ tcp dpt:9092\n"
        "       0        0 RETURN     0    --  lo     *       0.0.0.0/0            0.0.0.0/0            /* "
        "inside */\n"
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


def look(
    host: str, *rules: tuple[int, str], boot: str = "b1", ahead: str = "", again: bool = False
) -> StepResult:
    """What a host says when it is looked at; ``ahead``: a rule of OUTPUT that packets meet first."""
    jumps = "-P INPUT ACCEPT\n-A INPUT -j WRACK-f9\n-A INPUT -j WRACK-f1\n-P OUTPUT ACCEPT\n"
    jumps += (f"{ahead}\n" if ahead else "") + "-A OUTPUT -j WRACK-f1\n"
    marker = "--- after knocking\n" if again else ""
    return StepResult(Shell(host, "look"), f"{marker}-- boot {boot} 17\n{jumps}{listing(*rules)}")


def tcp_probes(host: str, **said: str) -> StepResult:
    """``n2="silence"``: what came of a knock at n2's broker."""
    ways = tuple(Way(f"{host}>{peer}:9092", f"198.18.0.1{peer[1:]}", 9092) for peer in said)
    lines = [f"{way.name} {each}\n" for way, each in zip(ways, said.values(), strict=True)]
    return StepResult(TcpProbeFrom(host, ways), "".join(lines))


def ends(
    n1_to_n2: int, n2_to_n1: int, *, n1: str = "silence", n2: str = "silence", ahead: str = ""
) -> list[StepResult]:
    """A probe of both ends of a link: packets dropped until it, then a knock each, at n1 and at n2."""
    return [
        look("n1", (0, "n2>n1"), (n1_to_n2, "n1>n2")),
        tcp_probes("n1", n2=n2),
        look("n1", (0, "n2>n1"), (n1_to_n2 + 1, "n1>n2"), ahead=ahead, again=True),
        look("n2", (0, "n1>n2"), (n2_to_n1, "n2>n1")),
        tcp_probes("n2", n1=n1),
        look("n2", (0, "n1>n2"), (n2_to_n1 + 1, "n2>n1"), again=True),
    ]


QUIET = ends(0, 0)


def controls(n1: str = "connected", n2: str = "refused") -> list[StepResult]:
    return [tcp_probes("n1", n2=n2), tcp_probes("n2", n1=n1)]


def cut_link(active: list[StepResult], final: list[StepResult], control: Sequence[StepResult] = ()) -> Proof:
    probe_log = ProbeLog(active=active, final=final, control=control)
    return Partition(Shape.LINK).prove(context("n1", "n2"), probe_log)


def test_a_cut_that_dropped_traffic_on_every_way_is_proved() -> None:
    proof = cut_link(QUIET, ends(8, 3), controls())
    assert proof.proved
    assert proof.text == (
        "9 packets dropped, and a probe on each of 2 ways (n1>n2 8, n2>n1 3); "
        "no TCP knock on 2 ports was answered, each was after the undo"
    )


def test_a_cut_that_met_no_traffic_says_so() -> None:
    """What was dropped before the last probe is the probe of the beginning, and nothing else."""
    proof = cut_link(QUIET, ends(1, 1), controls())
    assert proof.proved
    assert proof.text.startswith("probe packets were dropped on 2 ways; no other traffic met the cut; ")


def test_a_cut_that_lets_a_knock_through_is_not_proved() -> None:
    leaky = [
        look("n1", (5, "n1>n2")),
        look("n1", (5, "n1>n2"), again=True),
        look("n2"),
        look("n2", (0, "n2>n1"), again=True),
    ]
    proof = cut_link(QUIET, leaky)
    assert not proof.proved
    assert proof.text == "no packet was dropped on the way n2>n1"


@pytest.mark.parametrize("said", ["connected", "refused"])
def test_a_knock_that_is_answered_is_a_leak_whatever_was_dropped(said: str) -> None:
    """What was dropped is not TCP, or was dropped before; a refusal comes from the other end as a connection
    does."""
    proof = cut_link(QUIET, ends(8, 3, n2=said), controls())
    assert proof == Proof(False, f"the cut leaks: n1>n2:9092 answered at the end ({said})")
    early = cut_link(ends(0, 0, n1=said), ends(8, 3), controls())
    assert early == Proof(False, f"the cut leaks: n2>n1:9092 answered at the beginning ({said})")


def test_a_rule_before_those_of_the_cut_makes_it_doubtful() -> None:
    bypassed = ends(8, 3, ahead="-A OUTPUT -p tcp -j ACCEPT")
    expected = "`-A OUTPUT -p tcp -j ACCEPT` stands before its rules"
    assert cut_link(QUIET, bypassed, controls()) == Proof(False, f"n1 at the end: {expected}")
    assert cut_link(bypassed, ends(8, 3), controls()) == Proof(False, f"n1 at the beginning: {expected}")


def without_rules(host: str, *, boot: str) -> StepResult:
    return StepResult(Shell(host, "look"), f"-- boot {boot} 17\n-P INPUT ACCEPT\n-P OUTPUT ACCEPT\n")


def test_rules_that_are_gone_are_only_forgiven_to_a_host_that_was_without_power() -> None:
    def final(boot: str) -> list[StepResult]:
        return [without_rules("n1", boot=boot), tcp_probes("n1", n2="silence"), *ends(0, 6)[3:]]

    assert cut_link(QUIET, final("b2"), controls()).proved
    gone = cut_link(QUIET, final("b1"), controls())
    assert gone == Proof(False, "n1 at the end: nothing leads from INPUT to its rules any more")


def test_silence_that_the_undo_did_not_end_is_no_proof_and_says_so() -> None:
    """The host at the other end may be dead: then the packets that were dropped are all there is."""
    proof = cut_link(QUIET, ends(8, 3), controls(n2="silence"))
    assert proof.proved
    assert proof.text.endswith("none on n1>n2:9092 after the undo either: there the packets alone are proof")
    dumb = cut_link(QUIET, ends(8, 3), [StepResult(TcpProbeFrom("n1", ()), error="down"), controls()[1]])
    assert dumb.proved
    assert "none on n1>n2:9092 after the undo either" in dumb.text


def test_a_cut_whose_end_nobody_saw_is_not_proved() -> None:
    undone = ProbeLog(active=QUIET, undo=[StepResult(Shell("n1", "undo"))])
    assert Partition(Shape.LINK).prove(context("n1", "n2"), undone).text == "nobody looked at its end"
    failed = cut_link(QUIET, [*ends(8, 3)[:4], StepResult(TcpProbeFrom("n2", ()), error="no python")])
    assert failed == Proof(False, "its end could not be looked at: n2: no python")


def test_nothing_probed_is_nothing_proved() -> None:
    assert not cut_link([], []).proved
    assert not cut_link([StepResult(Shell("n1", "probe"), error="no such chain")], []).proved
    assert not cut_link([StepResult(Shell("n1", "probe"), skipped=True)], []).proved


def test_a_host_that_lost_its_power_is_judged_by_the_probe_it_answered() -> None:
    final = [StepResult(Shell("n1", "probe"), skipped=True), *ends(0, 6)[3:]]
    proof = cut_link(QUIET, final)
    assert proof.proved, proof


def probed_from_clients(before: int, after: int, said: str = "silence") -> list[StepResult]:
    return [
        look("n1", (before, "clients>n1")),
        StepResult(TcpProbe("n1", "198.18.0.11", 9092), said),
        look("n1", (after, "clients>n1"), again=True),
    ]


def test_clients_that_are_cut_off_are_proved_by_their_own_packets() -> None:
    fault = Partition(Shape.CLIENTS)
    aimed = context("n1")
    probes = probed_from_clients
    assert fault.prove(aimed, ProbeLog(active=probes(0, 1), final=probes(7, 8))).proved
    assert "no other traffic" in fault.prove(aimed, ProbeLog(active=probes(0, 1), final=probes(1, 2))).text
    assert not fault.prove(aimed, ProbeLog(active=probes(0, 0), final=probes(0, 0))).proved
    leak = fault.prove(aimed, ProbeLog(active=probes(0, 1), final=probes(7, 7, "connected")))
    assert leak == Proof(False, "the cut leaks: clients>n1:9092 answered at the end (connected)")


def test_a_broker_that_lost_its_power_while_clients_were_cut_off_is_judged_by_the_first_probe() -> None:
    final = [
        StepResult(Shell("n1", "list"), skipped=True),
        StepResult(TcpProbe("n1", "198.18.0.11", 9092), "EHOSTUNREACH"),
        StepResult(Shell("n1", "list"), skipped=True),
    ]
    probe_log = ProbeLog(active=probed_from_clients(3, 4), final=final)
    assert Partition(Shape.CLIENTS).prove(context("n1"), probe_log).proved


def test_a_host_says_what_came_of_each_knock() -> None:
    """The program itself, against this machine."""
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as shut:
        port, nobody = server.getsockname()[1], shut.getsockname()[1]
        shut.close()
        ways = (Way("a>b:1", "127.0.0.1", port), Way("a>c:1", "127.0.0.1", nobody))
        step = TcpProbeFrom("a", ways)
        said = subprocess.run(
            ["sh", "-c", command(step, sys.executable)], capture_output=True, text=True, check=True
        )
    found = {
        one.way: (one.answer, one.answered)
        for one in probe_results([StepResult(step, said.stdout)], "clients")
    }
    assert found == {"a>b:1": ("connected", True), "a>c:1": ("refused", True)}


@pytest.mark.parametrize(
    ("active", "middle", "final", "proved"),
    [
        (["None", "None"], ["None", "None"], ["None", "None"], True),
        (["None", "41 S"], ["None", "None"], ["None", "None"], False),
        (["None"], ["None", "None"], ["None", "None"], False),
        (["None", "None"], ["None"], ["None", "None"], True),
        (["None", "None"], ["None", "52 S"], ["None", "None"], False),
        (["None", "None"], ["None", "None"], ["None", "52 S"], False),
        (["None", "None"], ["None", "None"], ["None"], False),
        (["None", "None"], ["None", "None"], [], False),
    ],
)
def test_a_kill_is_proved_when_no_process_of_the_node_was_there_from_beginning_to_end(
    active: list[str], middle: list[str], final: list[str], proved: bool
) -> None:
    """Whoever had started it again meanwhile; a look in the middle that failed says nothing."""
    first, watched, last = (
        [node_look(host, said) for host, said in zip(("n1", "n2"), each, strict=False)]
        for each in (active, middle, final)
    )
    probe_log = ProbeLog(active=first, watched=[Look("2.0 s after its beginning", watched)], final=last)
    probe_log = replace(probe_log, undo=[StepResult(StartNode("n1", 1), "60")])
    proof = Kill().prove(context("n1", "n2"), probe_log)
    assert proof.proved is proved, proof.text
    if not proved:
        assert "n2" in proof.text or proof.text == "nobody looked at its end"


@pytest.mark.parametrize(
    ("active", "middle", "final", "proved"),
    [
        ("41 T", "41 T", "41 T", True),
        ("41 T", "41 T", "41 S", False),
        ("41 S", "41 T", "41 T", False),
        ("41 T", "41 S", "41 T", False),
        ("41 T", "41 T", "None", False),
        ("41 T", "41 T", "52 T", False),
        ("41 T", None, None, True),
    ],
)
def test_a_pause_is_proved_when_it_lasted(
    active: str, middle: str | None, final: str | None, proved: bool
) -> None:
    probe_log = ProbeLog(
        active=[node_look("n1", active)],
        watched=[] if middle is None else [Look("2.0 s after its beginning", [node_look("n1", middle)])],
        final=[] if final is None else [node_look("n1", final)],
    )
    assert Pause().prove(context("n1"), probe_log).proved is proved


def test_a_restart_is_proved_by_the_clean_file_and_no_process() -> None:
    clean = StepResult(Shell("n1", "find"), "/data/broker/.kafka_cleanshutdown\n")
    stopped, down = [StepResult(StopNode("n1", 1))], node_look("n1", "None")

    def prove(do: list[StepResult], active: list[StepResult], final: list[StepResult]) -> bool:
        probe_log = ProbeLog(do=do, active=active, final=final, undo=[StepResult(StartNode("n1", 1), "88")])
        return Restart().prove(context("n1"), probe_log).proved

    assert prove(stopped, [clean, down], [clean, down])
    assert not prove(stopped, [clean, node_look("n1", "41 S")], [clean, down]), "the same process as before"
    assert not prove(stopped, [clean, down], [clean, node_look("n1", "52 S")])
    assert not prove(stopped, [StepResult(Shell("n1", "find"), ""), down], [down])
    assert not prove([StepResult(StopNode("n1", 1), error="still runs")], [clean, down], [clean, down])


GONE = CanaryLoss("n1", before_bytes=800, after_bytes=0, last_reported=200, reach_s=4.9)
SYNCED = CanaryLoss(
    "n1",
    before_bytes=800,
    after_bytes=784,
    last_reported=200,
    last_there=199,
    reach_s=0.02,
    problem="it was synced",
)


def powered(
    host: str, files: dict[str, FileLoss], canary: CanaryLoss | None, *, counted: bool = True
) -> tuple[StepResult, StepResult]:
    off = Cut(host, 0, 12_000_000)
    return (
        StepResult(PowerOff(host), cut=off),
        StepResult(PowerOn(host), cut=replace(off, files=files, counted=counted), canary=canary),
    )


def power_cut(*hosts: tuple[StepResult, StepResult]) -> Proof:
    probe_log = ProbeLog(do=[off for off, _ in hosts], undo=[on for _, on in hosts])
    return PowerCut().prove(context(*(off.step.host for off, _ in hosts)), probe_log)


def test_a_power_cut_is_lossy_only_with_bytes_gone() -> None:
    same = {"same": FileLoss(10, 10)}
    proof = power_cut(
        powered("n1", {"log-0/1.log": FileLoss(900, 500), **same}, GONE), powered("n2", same, GONE)
    )
    assert proof.proved
    assert proof.lost == {"n1": {"log-0/1.log": 400}}
    assert (
        "n1: power gone 12.0 ms after the decision, 400 bytes in 1 files lost, "
        "canary: 800 of 800 bytes lost, last number reported 200, none is there" in proof.text
    )
    missed = ProbeLog(do=[StepResult(PowerOff("n1"), error="no such host")])
    assert not PowerCut().prove(context("n1"), missed).proved


def test_a_power_cut_is_proved_by_the_canary_of_every_host() -> None:
    """Bytes lost by the system prove nothing by themselves: those written after a sync of everything are lost
    too."""
    files = {"log-0/1.log": FileLoss(900, 500)}
    assert power_cut(powered("n1", files, GONE)).proved
    synced = power_cut(powered("n1", files, SYNCED))
    assert not synced.proved
    assert synced.text.endswith(
        "400 bytes in 1 files lost, canary: 16 of 800 bytes lost, last number reported 200, last there 199: "
        "it was synced"
    )
    assert not power_cut(powered("n1", files, GONE), powered("n2", files, SYNCED)).proved
    unwatched = power_cut(powered("n1", files, None))
    assert not unwatched.proved
    assert "no canary watched it" in unwatched.text


def test_a_power_cut_proves_nothing_before_the_power_is_back() -> None:
    off, _ = powered("n1", {}, GONE)
    before = PowerCut().prove(context("n1"), ProbeLog(do=[off]))
    assert not before.proved
    assert before.text == "n1: power gone 12.0 ms after the decision; what it lost shows at power-on"
    failed = ProbeLog(do=[off], undo=[StepResult(PowerOn("n1"), error="did not boot")])
    proof = PowerCut().prove(context("n1"), failed)
    assert not proof.proved
    assert "did not come back" in proof.text
    assert proof.lost == {"n1": {}}, "it may have lost anything"


def test_the_canarys_own_bytes_make_no_cut_lossy() -> None:
    own = {f"{FOLDER}/token/7": FileLoss(160, 0)}
    assert power_cut(powered("n1", own, GONE)) == Proof(
        True,
        "n1: power gone 12.0 ms after the decision, 0 bytes in 0 files lost, "
        "canary: 800 of 800 bytes lost, last number reported 200, none is there",
    )


def test_where_nobody_counts_files_any_of_them_may_have_lost_bytes() -> None:
    proof = power_cut(powered("n1", {}, GONE, counted=False))
    assert proof.proved
    assert proof.lost == {"n1": {}}
    assert "files not counted" in proof.text
