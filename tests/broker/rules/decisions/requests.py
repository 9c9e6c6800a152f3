"""Tables of what clients and followers ask: produce, read, fetch sessions, topics."""

from __future__ import annotations

from tests.broker.rules.golden_tables import Decide, Facts, bar, end
from wrackline.broker.model.types import ProducerBatch, ProducerSnapshot
from wrackline.broker.rules.leadership.sessions import SessionFacts
from wrackline.broker.rules.profile import Rules


def refusal(rules: Rules, facts: Facts) -> object:
    return rules.produce.refusal(int(facts["acks"]), int(facts["ISR"]), min_isr=2)


def sequence(rules: Rules, facts: Facts) -> object:
    batches = (ProducerBatch(0, 4, 0, 4), ProducerBatch(5, 9, 5, 9))
    known = None if facts["known"] == "-" else ProducerSnapshot(7, 3, batches)
    first, last = facts["sequences"].split("-")
    return rules.produce.sequence(known, int(facts["epoch"]), int(first), int(last)).sequence


def on_commit(rules: Rules, facts: Facts) -> object:
    return rules.produce.on_commit(int(facts["maximal ISR"]), min_isr=2)


def fails_at_once(rules: Rules, facts: Facts) -> object:
    return rules.produce.fails_at_once(int(facts["ISR"]), 2, facts["pending_on_shrink"])


def epoch_check(rules: Rules, facts: Facts) -> object:
    return rules.reads.epoch_check(int(facts["named"]), own=4)


def follower_check(rules: Rules, facts: Facts) -> object:
    follower, epoch, broker_epoch = (int(facts[name]) for name in ("follower", "epoch", "broker epoch"))
    return rules.reads.follower_check(follower, (2, 3), epoch, broker_epoch, registered=12)


def readable_end(rules: Rules, facts: Facts) -> object:
    is_follower = facts["reader"] == "follower"
    return bar(rules.reads.readable_end(is_follower, end(facts["high watermark"]), end(facts["log"])))


def range_check(rules: Rules, facts: Facts) -> object:
    return rules.reads.range_check(int(facts["offset"]), int(facts["log start"]), end(facts["log"]))


def next_epoch(rules: Rules, facts: Facts) -> object:
    return rules.sessions.next_epoch(int(facts["epoch"]))


def may_evict(rules: Rules, facts: Facts) -> object:
    there = SessionFacts(
        facts["there"] == "follower",
        int(facts["partitions"]),
        float(facts["age ms"]),
        float(facts["idle ms"]),
    )
    newcomer = SessionFacts(facts["newcomer"] == "follower", int(facts["its partitions"]), 0.0, 0.0)
    return rules.sessions.may_evict(there, newcomer, spared_ms=120_000.0)


def name_error(rules: Rules, facts: Facts) -> object:
    return rules.topics.name_error(facts["name"], existing=("my.topic",)) is not None


def config_error(rules: Rules, facts: Facts) -> object:
    asked = {facts["setting"]: facts["value"]}
    topics = rules.topics
    check = topics.config_error if facts["kind"] == "topic" else topics.cluster_config_error
    return check(asked) is not None


TABLES: dict[str, Decide] = {
    "produce.refusal": refusal,
    "produce.sequence": sequence,
    "produce.on_commit": on_commit,
    "produce.fails_at_once": fails_at_once,
    "reads.epoch_check": epoch_check,
    "reads.follower_check": follower_check,
    "reads.readable_end": readable_end,
    "reads.range_check": range_check,
    "sessions.next_epoch": next_epoch,
    "sessions.may_evict": may_evict,
    "topics.name_error": name_error,
    "topics.config_error": config_error,
    "earlier_profiles.config_error": config_error,
}
