"""Contracts (docs/anomalies.md section 8): what a configuration promises, and so what each anomaly means.

An anomaly says which promise it breaks (wrackline.checkers.verdict.anomaly); a contract makes some of them:

=====================  ======================================================================================
``acks-all``           NO_LOSS and CONSUMERS_GET_ALL while the lossy unclean shutdowns of a partition's
                       replicas between two moments of full ISR are at most MinISR - 1; more than that: loss
                       is allowed
``acks-all-flushed``   (fsync before the high watermark) both under any number of power cuts
``acks-all-unclean``   (unclean election or proactive recovery on) neither
``acks-1``             NO_LOSS until leadership changed; CONSUMERS_GET_ALL as ``acks-all`` does
``acks-0``             nothing is ever acked: NO_LOSS has no meaning; CONSUMERS_GET_ALL as ``acks-all`` does
``+idempotence``       IDEMPOTENCE; without it what breaks it is allowed
``+linearizable``      LINEARIZABLE_READS; without it what breaks them is reported
always                 ALWAYS, NO_ABORTED_READS; INTACT_FILES, but of files that a fault changed
=====================  ======================================================================================

LASTING_OFFSETS, in responses to clients, follow loss: the offset of a record that was lost is used again, and
a record that was lost may have been sent twice. LINEARIZABLE_OBJECTS follow loss too where reads rest on
markers; where they ask the leader for the end (``read_by: end``) they are a matter of linearizable reads.
COMMITTED_READS and WHOLE_TRANSACTIONS are promised where consumers read at ``read_committed`` (the last where
records may not be lost, either), and what breaks them is reported elsewhere. PROCESSED_INPUT is promised, as
CONSUMERS_GET_ALL is, where the application takes its consumers back after an abort, and reported elsewhere.
Nobody promises ISOLATED_WRITES (KIP-98).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from wrackline.checkers.findings import Meaning
from wrackline.checkers.inputs.runs import Place, Run
from wrackline.checkers.verdict.anomaly import Anomaly, Promise
from wrackline.checkers.verdict.deletions import deletions
from wrackline.checkers.verdict.lossy_shutdowns import changed_in_place, leadership_changed, worst_losses
from wrackline.checkers.verdict.system_words import FLUSHED, elections, flushing, row
from wrackline.history.model import RunInfo

OF_TRANSACTIONS: Final = frozenset(
    {
        Promise.ISOLATED_WRITES,
        Promise.COMMITTED_READS,
        Promise.NO_ABORTED_READS,
        Promise.WHOLE_TRANSACTIONS,
        Promise.PROCESSED_INPUT,
    }
)
"""Where a run has transactions, what of it depends on client and system as a pair."""


class UnknownContract(ValueError):
    """There is no contract of that name; the message lists those there are."""


@dataclass(frozen=True, slots=True)
class Terms:
    """One row of the table."""

    name: str
    row: str
    promise: str
    tolerates_power_loss: bool = False
    """Loss is forbidden whatever number of hosts lost unsynced bytes."""
    keeps_acked: bool = True
    """Loss is forbidden at all (within the tolerated number of lossy shutdowns)."""
    knows_acks: bool = True
    keeps_committed: bool = True
    """What consumers were given stays (within the tolerated number of lossy shutdowns)."""
    idempotence: bool = False
    linearizable: bool = False


TERMS: dict[str, Terms] = {
    terms.name: terms
    for terms in (
        Terms(
            "acks-all",
            "acks=all, unclean election and proactive recovery off",
            "no acknowledged or read record is lost while, between two moments of full ISR, at most MinISR "
            "- 1 of a partition's replicas lost unsynced bytes; there may be any number of kills, pauses and "
            "partitions",
        ),
        Terms(
            "acks-all-flushed",
            "acks=all, fsync before the high watermark, unclean election and proactive recovery off",
            "no acknowledged or read record is lost, under any number of power cuts",
            tolerates_power_loss=True,
        ),
        Terms(
            "acks-all-unclean",
            "acks=all, unclean election or proactive recovery on",
            "loss is allowed; replicas never diverge",
            keeps_acked=False,
            keeps_committed=False,
        ),
        Terms(
            "acks-1",
            "acks=1",
            "acknowledged records may be lost when leadership changes; replicas never diverge",
            keeps_acked=False,
        ),
        Terms(
            "acks-0",
            "acks=0",
            "nothing is ever acknowledged; replicas never diverge",
            keeps_acked=False,
            knows_acks=False,
        ),
    )
}
MODIFIERS = {"idempotence": "idempotence", "linearizable-reads": "linearizable"}
"""What may follow the name of a contract after ``+``, and the field it sets."""


@dataclass(frozen=True, slots=True)
class Ruling:
    meaning: Meaning
    why: str


def _forbidden(why: str) -> Ruling:
    return Ruling(Meaning.VIOLATION, why)


def _allowed(why: str) -> Ruling:
    return Ruling(Meaning.ALLOWED, why)


@dataclass(frozen=True, slots=True)
class Contract:
    """Terms applied to a run."""

    terms: Terms
    run: Run
    anomalies: Mapping[str, Anomaly]
    """All that are looked for, by name."""
    forced: bool = False

    @property
    def name(self) -> str:
        return name_of(self.terms)

    @property
    def because(self) -> tuple[str, ...]:
        info = self.run.info
        facts = ["it was asked for with --contract"] if self.forced else []
        facts += [f"acks={info.acks}", f"idempotence {'on' if info.idempotence else 'off'}"]
        facts += [
            f"topic {t.name}: min.insync.replicas={t.min_insync_replicas}, {t.replication_factor} replicas"
            for t in info.topics
        ]
        return (*facts, elections(info), flushing(info), *self._losses())

    def _losses(self) -> list[str]:
        by_text: dict[str, list[Place]] = {}
        for place in self.run.places:
            worst = worst_losses(self.run, place)
            if worst:
                by_text.setdefault(", ".join(map(str, worst)), []).append(place)
        return [
            f"before the ISR of {_listed(places)} was full again, unsynced bytes were lost by {text}"
            for text, places in by_text.items()
        ] or ["no host lost unsynced bytes"]

    def ruling(self, anomaly: str, place: Place | None) -> Ruling:
        """What a finding in one partition means."""
        of = self.anomalies[anomaly]
        match of.breaks:
            case None:
                return Ruling(Meaning.NOT_APPLICABLE, of.rule)
            case Promise.ALWAYS | Promise.NO_ABORTED_READS:
                return _forbidden("no configuration allows it")
            case Promise.INTACT_FILES:
                hosts = changed_in_place(self.run, place)
                return _of_changed_files(hosts) if hosts else _forbidden("no configuration allows it")
            case Promise.NO_LOSS:
                return self._loss(place)
            case Promise.LASTING_OFFSETS:
                return self._reused(place)
            case Promise.IDEMPOTENCE:
                if self.terms.idempotence:
                    return _forbidden("idempotence is on, so every record is stored once and in order")
                return _allowed("idempotence is off, so a retry may be appended again")
            case Promise.CONSUMERS_GET_ALL:
                return self._consumer(place)
            case Promise.ISOLATED_WRITES:
                return _allowed("transactions do not isolate their writes from each other (KIP-98)")
            case Promise.COMMITTED_READS:
                return self._of_committed_reads()
            case Promise.WHOLE_TRANSACTIONS:
                return self._torn(place)
            case Promise.PROCESSED_INPUT:
                return self._unprocessed(place)
            case Promise.LINEARIZABLE_OBJECTS if self._forgets(place):
                return Ruling(
                    Meaning.NOT_APPLICABLE, "an object whose records are deleted forgets what it held"
                )
            case Promise.LINEARIZABLE_OBJECTS if self.run.info.reads != "end":
                return self._object(place)
            case Promise.LINEARIZABLE_READS | Promise.LINEARIZABLE_OBJECTS:
                if self.terms.linearizable:
                    return _forbidden("the contract asks for linearizable reads")
                return _allowed("leaders hold no read lease, so a leader that was replaced may still answer")

    def _loss(self, place: Place | None) -> Ruling:
        if not self.terms.knows_acks:
            return Ruling(Meaning.NOT_APPLICABLE, "with acks=0 nothing is ever acknowledged")
        if self.terms.keeps_acked:
            return self._within_losses(place)
        if self.terms.name == "acks-1":
            if place is not None and not leadership_changed(self.run, place):
                return _forbidden(
                    "the leader did not change and there was no fault, so it has what it acknowledged"
                )
            return _allowed("with acks=1 a record that only the leader had may be lost with it")
        return _allowed(f"records may be lost with {row(self.terms.row, self.run.info)}")

    def _within_losses(self, place: Place | None) -> Ruling:
        if hosts := changed_in_place(self.run, place):
            return _of_changed_files(hosts)
        worst = worst_losses(self.run, place)
        if self.terms.tolerates_power_loss:
            worst = [one for one in worst if one.synced]
            if not worst:
                why = "the high watermark passes synced records only, so no acknowledged record may be lost"
                return _forbidden(why)
        lost, tolerated = len(worst), self._tolerated(place)
        what = "synced" if self.terms.tolerates_power_loss else "unsynced"
        whose = "a partition" if place is None else "the partition"
        lossy = "no replica" if not lost else "1 replica" if lost == 1 else f"{lost} replicas"
        why = (
            f"between two times at which the ISR was full, {lossy} of {whose} lost {what} bytes, and records "
            f"may be lost only if more than {tolerated} (MinISR - 1) did"
        )
        return Ruling(Meaning.ALLOWED if lost > tolerated else Meaning.VIOLATION, why)

    def _tolerated(self, place: Place | None) -> int:
        """MinISR - 1 of the partition's topic."""
        of = [t.min_insync_replicas for t in self.run.info.topics if place is None or t.name == place[0]]
        return min(of, default=1) - 1

    def _forgets(self, place: Place | None) -> bool:
        return any(place in (None, one.place) for one in deletions(self.run))

    def _object(self, place: Place | None) -> Ruling:
        """Reads that rest on an acknowledged marker promise as much as acknowledged writes do."""
        loss = self._loss(place)
        if loss.meaning is Meaning.VIOLATION:
            why = "a read that rests on a marker of its own sees all that was acknowledged before"
            return _forbidden(why)
        return loss

    def _reused(self, place: Place | None) -> Ruling:
        loss = self._loss(place)
        if loss.meaning is Meaning.VIOLATION:
            why = "records may not be lost, so no offset may be given to another record"
            return _forbidden(why)
        return _allowed("records may be lost here, and then their offsets are used again")

    def _torn(self, place: Place | None) -> Ruling:
        """Half of it is not visible, or half of it is gone: the contract decides which it must be."""
        reads = self._of_committed_reads()
        if reads.meaning is not Meaning.VIOLATION:
            return reads
        loss = self._loss(place)
        if loss.meaning is Meaning.VIOLATION:
            return _forbidden("a transaction is visible whole or not at all")
        return loss

    def _unprocessed(self, place: Place | None) -> Ruling:
        if self.run.info.rewinds:
            return self._consumer(place)
        why = (
            "when a transaction aborts, its consumer stays where it is (KAFKA-17582), and nobody "
            "said that this application takes it back"
        )
        return _allowed(why)

    def _of_committed_reads(self) -> Ruling:
        match self.run.info.isolation:
            case "read_committed":
                return _forbidden("consumers at read_committed are given committed records only")
            case "":
                why = "it is not known whether consumers read committed records only"
            case other:
                why = f"at {other} consumers are given records of open transactions"
        return _allowed(why)

    def _consumer(self, place: Place | None) -> Ruling:
        if not self.terms.keeps_committed:
            return _allowed("the log may be truncated below the records that consumers have read")
        within = self._within_losses(place)
        if within.meaning is Meaning.VIOLATION:
            why = (
                "records that consumers were given must stay, and each consumer must get all of them in order"
            )
            return _forbidden(why)
        return within


def _of_changed_files(hosts: Sequence[str]) -> Ruling:
    why = f"a fault changed bytes of its files on {', '.join(hosts)}, and no replica promises to notice that"
    return _allowed(why)


def _listed(places: Sequence[Place]) -> str:
    return ", ".join(f"{topic}-{partition}" for topic, partition in places)


def name_of(terms: Terms) -> str:
    return "+".join([terms.name, *(name for name, field in MODIFIERS.items() if getattr(terms, field))])


def contract_for(run: Run, anomalies: Mapping[str, Anomaly], forced: str | None = None) -> Contract:
    """The contract that a run's configuration makes, or the named one. ``anomalies``: all that are looked
    for, by name. Raises UnknownContract."""
    if forced is None:
        return Contract(terms_of(run.info), run, anomalies)
    terms = named(forced)
    terms = replace(terms, idempotence=terms.idempotence or run.info.idempotence)
    return Contract(terms, run, anomalies, forced=True)


def terms_of(info: RunInfo) -> Terms:
    """What a configuration promises."""
    unclean = info.unclean_election or info.recovery_strategy == "proactive"
    if info.acks in ("0", "1"):
        terms = TERMS[f"acks-{info.acks}"]
    elif unclean:
        terms = TERMS["acks-all-unclean"]
    else:
        terms = TERMS["acks-all-flushed" if info.flush_mode == FLUSHED else "acks-all"]
    if terms.name == "acks-1" and unclean:
        terms = replace(terms, keeps_committed=False)
    return replace(terms, idempotence=info.idempotence)


def named(name: str) -> Terms:
    """``acks-all``, ``acks-all+idempotence`` and so on. Raises UnknownContract."""
    base, *modifiers = name.split("+")
    if base not in TERMS or any(modifier not in MODIFIERS for modifier in modifiers):
        near = difflib.get_close_matches(base, TERMS, n=1) if base not in TERMS else []
        hint = f"did you mean {near[0]!r}? " if near else ""
        raise UnknownContract(
            f"no contract is called {name!r}; {hint}there are {', '.join(TERMS)}, each also with "
            f"{' or '.join('+' + modifier for modifier in MODIFIERS)}"
        )
    return replace(
        TERMS[base], idempotence="idempotence" in modifiers, linearizable="linearizable-reads" in modifiers
    )
