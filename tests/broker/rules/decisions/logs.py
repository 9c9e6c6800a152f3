"""Tables that draw logs: truncation, the end of an epoch, the high watermark, what a follower takes."""

from __future__ import annotations

from uuid import UUID

from kio.schema.errors import ErrorCode

from tests.broker.rules.golden_tables import Decide, Facts, bar, end, epochs_of, upto, yes
from wrackline.broker.rules.profile import Rules
from wrackline.broker.rules.replication.epoch_end import end_of_epoch
from wrackline.broker.rules.replication.fetching import AnswerFacts
from wrackline.broker.rules.replication.truncation import LeaderRange
from wrackline.broker.rules.replication.watermark import UNKNOWN_OFFSET


def epoch_end(_rules: Rules, facts: Facts) -> object:
    log = facts["log"]
    found = end_of_epoch(epochs_of(log, facts["leads in"]), int(facts["asked"]), end(log))
    return [None, None] if found is None else [found.epoch, upto(log, found.end_offset)]


# --- truncation ----------------------------------------------------------------------------------------


def on_fetch(rules: Rules, facts: Facts) -> object:
    """Question, answer and cut of one fetch."""
    leader, follower = facts["leader"], facts["follower"]
    cache, leo = epochs_of(follower), end(follower)
    named = rules.truncation.fetched_epoch(cache.latest)
    known = end_of_epoch(epochs_of(leader, facts["leads in"]), named, end(leader))
    assert known is not None, "the follower is ahead of its leader"
    diverging = rules.truncation.diverges(named, leo, known)
    if diverging is None:
        return [None, None, follower]
    cut = rules.truncation.on_divergence(end_of_epoch(cache, diverging.epoch, leo), diverging, leo)
    return [diverging.epoch, upto(leader, diverging.end_offset), upto(follower, cut)]


def on_become_follower(rules: Rules, facts: Facts) -> object:
    return bar(rules.truncation.on_become_follower(end(facts["own log"]), end(facts["high watermark"])))


def fetched_epoch(rules: Rules, facts: Facts) -> object:
    latest = epochs_of(facts["own log"]).latest
    return rules.truncation.fetched_epoch(latest, after_empty=facts["last answer"] == "empty")


def on_answer(rules: Rules, facts: Facts) -> object:
    leader, follower = facts["leader"], facts["follower"]
    cache, leo = epochs_of(follower), end(follower)
    theirs = end_of_epoch(epochs_of(leader, facts["leads in"]), cache.latest, end(leader))
    assert theirs is not None, "the follower is ahead of its leader"
    cut = rules.truncation.on_answer(end_of_epoch(cache, theirs.epoch, leo), theirs, leo)
    return [upto(follower, cut.to_offset), cut.ask_again]


def on_out_of_range(rules: Rules, facts: Facts) -> object:
    leader = LeaderRange(end(facts["leader starts"]), end(facts["leader's log"]))
    return rules.truncation.on_out_of_range(end(facts["follower"]), leader)


# --- high watermark --------------------------------------------------------------------------------------


def _offset(cell: str) -> int:
    return UNKNOWN_OFFSET if cell == "?" else end(cell)


def _log(offset: int) -> str:
    return "?" if offset == UNKNOWN_OFFSET else bar(offset)


def candidate(rules: Rules, facts: Facts) -> object:
    members = [_offset(facts[name]) for name in ("a", "b") if facts[name] != "-"]
    flushed = None if facts["flushed"] == "-" else end(facts["flushed"])
    return _log(rules.high_watermark.candidate(end(facts["leader"]), members, flushed))


def may_advance(rules: Rules, facts: Facts) -> object:
    isr, maximal, min_isr = (int(facts[name]) for name in ("ISR", "maximal", "MinISR"))
    return rules.high_watermark.may_advance(isr, maximal, min_isr)


def waits_for(rules: Rules, facts: Facts) -> object:
    return rules.high_watermark.waits_for(yes(facts["caught up"]), yes(facts["eligible"]))


def at_leader(rules: Rules, facts: Facts) -> object:
    return _log(rules.high_watermark.at_leader(end(facts["now"]), _offset(facts["candidate"])))


def at_follower(rules: Rules, facts: Facts) -> object:
    now, from_leader, leo = (end(facts[name]) for name in ("now", "leader's", "own log"))
    return bar(rules.high_watermark.at_follower(now, from_leader, leo))


def on_divergence(rules: Rules, facts: Facts) -> object:
    now, from_leader, leo = (end(facts[name]) for name in ("now", "leader's", "own log"))
    return bar(rules.high_watermark.on_divergence(now, from_leader, leo))


def at_start(rules: Rules, facts: Facts) -> object:
    checkpoint, start, leo = (end(facts[name]) for name in ("checkpoint", "log start", "own log"))
    return bar(rules.high_watermark.at_start(checkpoint, start, leo))


def may_show_end(rules: Rules, facts: Facts) -> object:
    return rules.high_watermark.may_show_end(end(facts["high watermark"]), end(facts["LESO"]))


# --- what a follower takes -------------------------------------------------------------------------------


def accepts(rules: Rules, facts: Facts) -> object:
    """The follower is at log end 5, in leader epoch 4, in its second stay, and its last record is of epoch
    4."""
    asked, epoch, stay, last = (int(facts[name]) for name in ("asked at", "in epoch", "in stay", "after"))
    return rules.fetch.accepts(
        AnswerFacts(asked, epoch, stay, last, leo=5, leader_epoch=4, reset=2, last_epoch=4)
    )


def may_append(rules: Rules, facts: Facts) -> object:
    return rules.fetch.may_append(int(facts["batch's epoch"]), int(facts["leader epoch"]))


def backoff_ms(rules: Rules, facts: Facts) -> object:
    return int(rules.fetch.backoff_ms(ErrorCode[facts["error"]], 1000.0))


def applies(rules: Rules, facts: Facts) -> object:
    return rules.metadata.applies(int(facts["known"]), int(facts["new"]))


def is_another(rules: Rules, facts: Facts) -> object:
    return rules.metadata.is_another(UUID(int=int(facts["id on disk"])), UUID(int=int(facts["id"])))


TABLES: dict[str, Decide] = {
    "epoch_end.end_of_epoch": epoch_end,
    "truncation.on_fetch": on_fetch,
    "truncation.on_become_follower": on_become_follower,
    "truncation.fetched_epoch": fetched_epoch,
    "truncation.on_answer": on_answer,
    "truncation.on_out_of_range": on_out_of_range,
    "watermark.candidate": candidate,
    "watermark.may_advance": may_advance,
    "watermark.waits_for": waits_for,
    "watermark.at_leader": at_leader,
    "watermark.at_follower": at_follower,
    "watermark.on_divergence": on_divergence,
    "watermark.at_start": at_start,
    "watermark.may_show_end": may_show_end,
    "fetching.accepts": accepts,
    "fetching.may_append": may_append,
    "fetching.backoff_ms": backoff_ms,
    "fetching.applies": applies,
    "fetching.is_another": is_another,
}
