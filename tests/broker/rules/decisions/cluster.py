"""Tables of the life of brokers: registration, sessions, heartbeats."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from tests.broker.rules.golden_tables import Decide, Facts, yes
from wrackline.broker.model.metadata.image import BrokerImage
from wrackline.broker.rules.leadership.registration import BrokerState, Heartbeat
from wrackline.broker.rules.profile import Rules


def broker(epoch: int = 11, incarnation: int = 7, state: str = "unfenced") -> BrokerImage:
    return BrokerImage(
        1, epoch, UUID(int=incarnation), "h", 1, None, state == "fenced", state == "stopping", epoch
    )


def is_clean(rules: Rules, facts: Facts) -> object:
    return rules.registration.is_clean(int(facts["file's epoch"]), int(facts["registered epoch"]))


def same_uptime(rules: Rules, facts: Facts) -> object:
    known = broker(incarnation=int(facts["registered"]))
    return rules.registration.same_uptime(known, UUID(int=int(facts["incarnation"])))


def stays_in_isr(rules: Rules, facts: Facts) -> object:
    known = replace(broker(), from_zookeeper=facts["existing"] == "from ZooKeeper")
    return rules.registration.stays_in_isr(known, clean=yes(facts["clean"]))


def may_replace(rules: Rules, facts: Facts) -> object:
    return rules.registration.may_replace(broker(state=facts["former life"]), facts["session"] == "valid")


def has_right_epoch(rules: Rules, facts: Facts) -> object:
    known = None if facts["registered"] == "-" else broker(int(facts["registered"]))
    return rules.registration.has_right_epoch(known, int(facts["epoch"]))


def expired(rules: Rules, facts: Facts) -> object:
    seen, now, timeout = (int(facts[name]) for name in ("last contact", "now", "timeout"))
    return rules.registration.expired(float(seen), float(now), timeout)


def contact_at_takeover(rules: Rules, facts: Facts) -> object:
    heard = None if facts["leader heard"] == "-" else float(facts["leader heard"])
    return rules.registration.contact_at_takeover(float(facts["now"]), heard, int(facts["timeout"]))


def to_fence(rules: Rules, facts: Facts) -> object:
    drawn = facts["last contact by broker"]
    pairs = [] if drawn == "-" else [silent.split("@") for silent in drawn.split(",")]
    return rules.registration.to_fence((float(seen), int(node)) for seen, node in pairs)


def next_state(rules: Rules, facts: Facts) -> object:
    wants = facts["wants"].split(",")
    return rules.registration.next_state(
        Heartbeat(
            state=BrokerState[facts["state"].upper()],
            want_fence="fence" in wants,
            want_shut_down="shut_down" in wants,
            caught_up=yes(facts["caught up"]),
            leads=yes(facts["leads"]),
            shutdown_offset=50,
            lowest_active_offset=None if facts["known"] == "-" else int(facts["known"]),
        )
    )


TABLES: dict[str, Decide] = {
    "registration.is_clean": is_clean,
    "registration.same_uptime": same_uptime,
    "registration.may_replace": may_replace,
    "registration.stays_in_isr": stays_in_isr,
    "registration.has_right_epoch": has_right_epoch,
    "registration.expired": expired,
    "registration.contact_at_takeover": contact_at_takeover,
    "registration.to_fence": to_fence,
    "registration.next_state": next_state,
}
