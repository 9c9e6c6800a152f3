"""Tables of profile zk08: who runs for leader, and what its leader does with ISR, CUR and RAR."""

from __future__ import annotations

from tests.broker.rules.decisions import isr, logs, requests
from tests.broker.rules.golden_tables import Decide, Facts, end, ids, some, yes
from wrackline.broker.rules.profile import Rules
from wrackline.zookeeper.rules import RACE, RaceFacts


def _ends(facts: Facts) -> dict[int, int]:
    """What the leader knows of 2 and 3; it knows nothing of who has not fetched yet."""
    cells = {node: facts[f"{node} has"] for node in (2, 3)}
    return {node: -1 if cell == "-" else end(cell) for node, cell in cells.items()}


def may_run(_: Rules, facts: Facts) -> object:
    asked = RaceFacts(
        int(facts["me"]),
        ids(facts["AR"]),
        ids(facts["ISR"]),
        some(facts["registered"]),
        yes(facts["unclean"]),
    )
    return RACE.may_run(asked)


def head_start_ms(_: Rules, facts: Facts) -> object:
    return RACE.head_start_ms(RaceFacts(int(facts["me"]), ids(facts["AR"]), (), frozenset()), 300.0)


def may_open(_: Rules, facts: Facts) -> object:
    return RACE.may_open(end(facts["log"]), some(facts["ISR"]), _ends(facts), some(facts["registered"]))


def at_opening(_: Rules, facts: Facts) -> object:
    return list(RACE.at_opening(1, ids(facts["AR"]), _ends(facts), end(facts["log"])))


def late(_: Rules, facts: Facts) -> object:
    return RACE.late(some(facts["ISR"]), _ends(facts), int(facts["offset"]))


def yields(_: Rules, facts: Facts) -> object:
    return RACE.yields(int(facts["me"]), ids(facts["AR"]), some(facts["ISR"]), some(facts["registered"]))


def is_reassigned(_: Rules, facts: Facts) -> object:
    return RACE.is_reassigned(1, ids(facts["RAR"]), _ends(facts), own_end=3, offset=3)


TABLES: dict[str, Decide] = {
    "zookeeper.may_run": may_run,
    "zookeeper.head_start_ms": head_start_ms,
    "zookeeper.may_open": may_open,
    "zookeeper.at_opening": at_opening,
    "zookeeper.late": late,
    "zookeeper.yields": yields,
    "zookeeper.is_reassigned": is_reassigned,
    "zookeeper.on_become_follower": logs.TABLES["truncation.on_become_follower"],
    "zookeeper.may_join": isr.TABLES["isr.may_join"],
    "zookeeper.follower_check": requests.TABLES["reads.follower_check"],
}
