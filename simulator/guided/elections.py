"""B30, B31, B33, B59: which replicas are eligible, and which one is elected."""

from __future__ import annotations

from wrackline.simulator.guided.schedule import Guided
from wrackline.simulator.guided.setting import Setting
from wrackline.simulator.guided.stage import Stage


def stays_eligible(s: Stage) -> None:
    """B30, case G. Broker 1 is alone in the ISR and broker 2 in the ELR. Broker 3 joins the ISR, both members
    commit m2 and are killed; then broker 2, which lacks m2, comes back."""
    s.commit(b"m1")
    s.isolate(3)
    s.isolate(2)
    s.mend(3, 1)
    s.unfence(3)
    s.until(lambda: s.isr == {1, 3}, "3 back in the ISR")
    s.commit(b"m2")
    s.kill(1, 3)
    s.unfence(2)
    s.run(6_000)


def becomes_eligible(s: Stage) -> None:
    """B31, cases D and F. Of four replicas broker 4 leaves an ISR that stays large enough, and m2 is
    committed without it, once the leader no longer takes it for one that is about to join again."""
    s.commit(b"m1")
    s.isolate(4)
    s.unfence(4)
    s.commit(b"m2")


def last_known_leader(s: Stage) -> None:
    """B59. Broker 1 is alone in the ISR and broker 2 in the ELR. Broker 2 is killed and comes back with its
    log; broker 1 loses its log with its power and comes back."""
    s.isolate(3)
    s.commit(b"m1")
    s.cut(1, 2)
    s.kill(2)
    s.until(lambda: s.isr == {1}, "2 out of the ISR")
    s.unfence(2)
    s.power(1, keep=0)
    s.until(lambda: s.fenced(1), "1 fenced")
    s.unfence(1)
    s.run(3_000)


def dead_leader(s: Stage) -> None:
    """B33. The schedule is that of B59, but broker 1 has only registered, and is still fenced, when broker 3
    comes back and the controller looks at the partition again."""
    s.isolate(3)
    s.commit(b"m1")
    s.cut(1, 2)
    s.kill(2)
    s.until(lambda: s.isr == {1}, "2 out of the ISR")
    s.unfence(2)
    s.power(1, keep=0)
    s.until(lambda: s.fenced(1), "1 fenced")
    silent = s.hold("BrokerHeartbeatRequest", source=1)
    s.start(1)
    s.until(lambda: not s.elr, "1 registered, out of the ELR")
    s.unfence(3)
    s.run(500)
    s.release(silent)
    s.run(2_000)


SCHEDULES = (
    Guided(
        "elr_not_cleared",
        "B30",
        ("elr_not_cleared",),
        stays_eligible,
        frozenset({"I14", "I02", "lost-write"}),
    ),
    Guided(
        "elr_not_cleared:large-isr",
        "B31",
        ("elr_not_cleared",),
        becomes_eligible,
        frozenset({"I14", "I02"}),
        Setting(brokers=4, replicas=(1, 2, 3, 4), lag_ms=5_000),
    ),
    Guided(
        "last_known_leader",
        "B59",
        ("last_known_leader",),
        last_known_leader,
        frozenset({"I01", "I02", "I08", "lost-write"}),
    ),
    Guided("lke_no_liveness", "B33", ("lke_no_liveness",), dead_leader, frozenset({"I14"})),
)
