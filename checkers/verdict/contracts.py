"""Contracts (docs/anomalies.md section 8): what a configuration promises, and so what each anomaly means.

An anomaly says which promise it breaks (wrackline.checkers.verdict.anomaly); a contract makes some of them:

=====================  ======================================================================================
``acks-all``           NO_LOSS and CONSUMERS_GET_ALL while the lossy unclean shutdowns of a partition's
                       replicas between two moments of full ISR are at most MinISR - 1; more than that: loss
                       is allowed
``acks-all-flushed``   (fsync before the high watermark) both under any number of power cuts
``acks-all-unclean``   (unclean election or proactive recovery on) both until a leader was elected uncleanly
``acks-1``             NO_LOSS until leadership changed; CONSUMERS_GET_ALL as ``acks-all`` does
``acks-0``             nothing is ever acked: NO_LOSS has no meaning; CONSUMERS_GET_ALL as ``acks-all`` does
``+idempotence``       IDEMPOTENCE; without it until a client had a reason to send again
``+linearizable``      LINEARIZABLE_READS; without it until the leader changed, or a fault was in force;
                       CURRENT_COORDINATOR; without it never
always                 ALWAYS, NO_ABORTED_READS; INTACT_FILES, but of files that a fault changed; ONE_LOG_DIR,
                       but after a move that a fault interrupted; LIVENESS, but of what needs a node that does
                       not run, or after a fault that was not undone
=====================  ======================================================================================

What is allowed needs its reason in the run's own history, and around the finding
(wrackline.checkers.verdict.excuses): without one it is a violation under every contract.

LASTING_OFFSETS, in responses to clients, follow loss: the offset of a record that was lost is used again, and
a record that was lost may have been sent twice. LINEARIZABLE_OBJECTS follow loss too where reads rest on
markers; where they ask the leader for the end (``read_by: end``) they are a matter of linearizable reads.
COMMITTED_READS and WHOLE_TRANSACTIONS are promised where consumers read at ``read_committed`` (the last where
records may not be lost, either), and what breaks them is reported elsewhere. PROCESSED_INPUT is promised, as
CONSUMERS_GET_ALL is, where the application takes its consumers back after an abort, and reported elsewhere.
Nobody promises ISOLATED_WRITES (KIP-98). LEADERS_MEMORY is promised until the leader changed, or a fault was
in force.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from wrackline.checkers.findings import Meaning
from wrackline.checkers.inputs.runs import Place, Run
from wrackline.checkers.inputs.table import NEVER, NONE, Bools, Ints
from wrackline.checkers.verdict.anomaly import Anomaly, Promise
from wrackline.checkers.verdict.deletions import deletions
from wrackline.checkers.verdict.excuses import NOTHING, Excuse, Excuses, Grounds
from wrackline.checkers.verdict.leadership import EFFECT_NS
from wrackline.checkers.verdict.lossy_shutdowns import replicas_among, worst_losses
from wrackline.checkers.verdict.system_words import FLUSHED, elections, flushing, row
from wrackline.checkers.verdict.wording import partition_name
from wrackline.errors import InputError
from wrackline.history.model import RunInfo
from wrackline.plugins.nearest import nearest

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


class UnknownContract(InputError, ValueError):
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
            "no acknowledged or read record is lost under any number of kills, pauses and partitions, as "
            "long as fewer than MinISR replicas of a partition lose unsynced data before its ISR is full "
            "again",
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
    """``because``: what in this history makes it so; empty where the configuration alone does."""

    meaning: Meaning
    why: str
    because: str = ""

    @property
    def text(self) -> str:
        if not self.because:
            return self.why
        allowed = self.meaning is Meaning.ALLOWED
        return f"{self.why}: {self.because}" if allowed else f"{self.why} ({self.because})"


@dataclass(frozen=True, slots=True)
class Rule:
    """The ruling of a contract on one anomaly in one partition: a finding is allowed where something in
    the history excuses it."""

    ruling: Ruling
    """Where nothing does."""
    excuses: Excuses = NOTHING
    unsure: str = ""
    """Why a finding is allowed that cites a send which was answered late or never; empty: it is no excuse."""

    def rulings(self, since_ns: Ints, until_ns: Ints, unsure: Bools) -> Ints:
        """Returns the number of the ruling of each finding, for findings of these times. ``unsure``:
        whether they cite a send that was answered late or never."""
        result = self.excuses.around(since_ns, until_ns)
        return np.where((result == NONE) & unsure & bool(self.unsure), len(self.excuses.found), result)

    def numbered(self, number: int) -> Ruling:
        if number == len(self.excuses.found):
            return _allowed(self.unsure)
        if number != NONE:
            excuse = self.excuses.found[number]
            return Ruling(Meaning.ALLOWED, excuse.why, excuse.text)
        if not self.excuses:
            return self.ruling
        return replace(self.ruling, because=f"at another time {self.excuses.found[0].text}")

    @property
    def at_any_time(self) -> Ruling:
        """The ruling on a finding whose time is not known."""
        always = np.zeros(1, dtype=np.int64)
        [number] = self.rulings(always, always + NEVER, np.zeros(1, dtype=bool)).tolist()
        return self.numbered(number)


def _forbidden(why: str) -> Ruling:
    return Ruling(Meaning.VIOLATION, why)


def _allowed(why: str) -> Ruling:
    return Ruling(Meaning.ALLOWED, why)


@dataclass(frozen=True)
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
            f"{text} lost unsynced bytes before the ISR of {_listed(places)} was full again"
            for text, places in by_text.items()
        ] or ["no host lost unsynced bytes"]

    def ruling(self, anomaly: str, place: Place | None) -> Ruling:
        """Returns the ruling on a finding in one partition whose time is not known."""
        return self.rule(anomaly, place).at_any_time

    def rule(self, anomaly: str, place: Place | None) -> Rule:
        """Returns the ruling on findings in one partition, and their excuses."""
        key = (anomaly, place)
        if key not in self._rules:
            self._rules[key] = self._rule(self.anomalies[anomaly], place)
        return self._rules[key]

    @cached_property
    def _rules(self) -> dict[tuple[str, Place | None], Rule]:
        return {}

    @cached_property
    def _grounds(self) -> Grounds:
        return Grounds(self.run)

    def _rule(self, of: Anomaly, place: Place | None) -> Rule:
        match of.breaks:
            case None:
                return Rule(Ruling(Meaning.NOT_APPLICABLE, of.rule))
            case Promise.ALWAYS | Promise.NO_ABORTED_READS:
                return Rule(_forbidden("no configuration allows it"))
            case Promise.INTACT_FILES:
                return Rule(_forbidden("no configuration allows it"), Excuses.of(self._changed_files(place)))
            case Promise.ONE_LOG_DIR:
                why = "a move to another log directory that a fault interrupts may leave the log in both"
                moves = {why: self._grounds.interrupted_moves(), **self._changed_files(place)}
                return Rule(_forbidden("no configuration allows it"), Excuses.of(moves))
            case Promise.LIVENESS | Promise.STARTS:
                return self._lively(of, place)
            case Promise.NO_LOSS:
                return self._loss(place)
            case Promise.LASTING_OFFSETS:
                return self._reused(place)
            case Promise.LASTING_DELETIONS:
                return self._deletion(place)
            case Promise.IDEMPOTENCE:
                return self._sent_again(place)
            case Promise.CONSUMERS_GET_ALL:
                return self._consumer(place)
            case Promise.LEADERS_MEMORY:
                return self._memory(place)
            case Promise.ISOLATED_WRITES:
                why = "transactions do not isolate their writes from each other (KIP-98)"
                return Rule(_allowed(why))
            case Promise.COMMITTED_READS:
                return Rule(self._of_committed_reads())
            case Promise.WHOLE_TRANSACTIONS:
                return self._torn(place)
            case Promise.PROCESSED_INPUT:
                return self._unprocessed(place)
            case Promise.CURRENT_COORDINATOR if self.terms.linearizable:
                return Rule(_forbidden("the contract asks for linearizable reads"))
            case Promise.CURRENT_COORDINATOR:
                why = "coordinators hold no lease for reads, so one that was replaced may still answer"
                return Rule(_allowed(why))
            case Promise.LINEARIZABLE_OBJECTS if deleted := self._deleted(place):
                why = "the object's records were deleted, and its state with them"
                return Rule(Ruling(Meaning.NOT_APPLICABLE, why, f"deleted: {deleted}"))
            case Promise.LINEARIZABLE_OBJECTS if self.run.info.reads != "end":
                return self._object(place)
            case Promise.LINEARIZABLE_READS | Promise.LINEARIZABLE_OBJECTS:
                return self._reads(of, place)

    def _lively(self, of: Anomaly, place: Place | None) -> Rule:
        why = "every node that it needs ran, and no fault was left, so nothing was in its way"
        excuses = {
            "the cluster could not help it": self._grounds.excused_stalls(of.name, place),
            "a fault was not undone": self._grounds.lasting_faults(of.breaks is Promise.STARTS),
        }
        if of.breaks is Promise.STARTS:
            excuses |= self._changed_files(None)
        return Rule(_forbidden(why), Excuses.of(excuses))

    def _reads(self, of: Anomaly, place: Place | None) -> Rule:
        if self.terms.linearizable:
            return Rule(_forbidden("the contract asks for linearizable reads"))
        on_acks = of.rests_on_acks or of.breaks is Promise.LINEARIZABLE_OBJECTS
        if on_acks and self.run.info.acks == "1" and self._replicas(place) > 1:
            why = "acks=1 acknowledges a record before followers have it, and before the end offset counts it"
            return Rule(_allowed(why))
        grounds, led = self._grounds, self._led(place)
        lease = "leaders hold no read lease, so a replaced leader may still answer"
        happened = [
            *grounds.changes(place),
            *grounds.faults(),
            *grounds.records_of_several_leaders(place),
        ]
        why = f"{led}, and no fault was in force, so no other node can have answered"
        return Rule(_forbidden(why), Excuses.of({lease: happened, **self._damages(place)}))

    def _memory(self, place: Place | None) -> Rule:
        forgets = "a leader forgets locks, and deliveries that nobody acknowledged"
        grounds = self._grounds
        happened = [
            *grounds.changes(place),
            *grounds.faults(),
            *grounds.records_of_several_leaders(place),
        ]
        why = f"{self._led(place)}, and no fault was in force, so its memory was whole"
        return Rule(_forbidden(why), Excuses.of({forgets: happened, **self._damages(place)}))

    def _replicas(self, place: Place | None) -> int:
        of = [t.replication_factor for t in self.run.info.topics if place is None or t.name == place[0]]
        return max(of, default=1)

    def _led(self, place: Place | None) -> str:
        """``n1 led log-0 all the time``, as far as anybody wrote it down."""
        name = "its partition" if place is None else partition_name(place)
        leaders = self._grounds.leaders(place)
        if place is None or leaders.changes:
            return f"the leader of {name} did not change at that time"
        if leaders.first is None:
            return f"nobody wrote down who led {name}"
        return f"{leaders.first.leader} led {name} all the time"

    def _damages(self, place: Place | None) -> dict[str, list[Excuse]]:
        why = "the remote tier has lost what it said that it had stored, and no replica keeps that"
        return {**self._changed_files(place), why: self._grounds.losses_of_tier(place)}

    def _changed_files(self, place: Place | None) -> dict[str, list[Excuse]]:
        why = "a fault changed bytes of the partition's files, and replicas do not promise to notice"
        return {why: self._grounds.damages(place)}

    def _loss(self, place: Place | None) -> Rule:
        if not self.terms.knows_acks:
            return Rule(Ruling(Meaning.NOT_APPLICABLE, "with acks=0 nothing is ever acknowledged"))
        if self.terms.keeps_acked:
            return self._within_losses(place)
        if self.terms.name == "acks-1":
            return self._of_leader_alone(place)
        return self._unclean(place)

    def _of_leader_alone(self, place: Place | None) -> Rule:
        grounds = self._grounds
        with_it = f"with acks={self.run.info.acks} a leader may take records with it that no follower has yet"
        happened = [
            *grounds.changes(place),
            *grounds.losses_of_leader(place),
            *grounds.faults_without_known_leader(place),
            *grounds.records_of_several_leaders(place),
        ]
        why = f"{self._led(place)}, and the leader lost no bytes, so it must have what it acknowledged"
        return Rule(_forbidden(why), Excuses.of({with_it: happened, **self._damages(place)}))

    def _unclean(self, place: Place | None) -> Rule:
        """Returns the rule where elections may be unclean: a leader elected uncleanly and a replica that
        lost bytes may lose records."""
        grounds, of = self._grounds, row(self.terms.row, self.run.info)
        unclean = f"records may be lost with {of}"
        happened = [
            *grounds.elections_that_may_be_unclean(place),
            *grounds.faults_without_known_leader(place),
            *grounds.records_of_several_leaders(place),
        ]
        why = f"{unclean}, but no leader was elected uncleanly at that time; {self._within(place)}"
        within = self._beyond_losses(place)
        return Rule(_forbidden(why), Excuses.of({unclean: happened, **within, **self._damages(place)}))

    def _within_losses(self, place: Place | None) -> Rule:
        worst = worst_losses(self.run, place)
        if self.terms.tolerates_power_loss and not any(one.synced for one in worst):
            why = "the high watermark passes synced records only, so no acknowledged record may be lost"
        else:
            why = self._within(place)
        beyond = {**self._beyond_losses(place), **self._damages(place)}
        return Rule(_forbidden(why), Excuses.of(beyond))

    def _beyond_losses(self, place: Place | None) -> dict[str, list[Excuse]]:
        synced, tolerated = self.terms.tolerates_power_loss, self._tolerated(place)
        return {self._allows(place, "if"): self._grounds.losses(place, tolerated, synced=synced)}

    def _within(self, place: Place | None) -> str:
        """Returns the number of lossy shutdowns, as a clause, where it is too small to lose records."""
        synced, tolerated = self.terms.tolerates_power_loss, self._tolerated(place)
        lost = replicas_among([one for one in worst_losses(self.run, place) if one.synced or not synced])
        did = "none did" if not lost else f"only {lost} did"
        if lost > tolerated:
            did = f"{f'at most {tolerated}' if tolerated else 'none'} had done so at that time"
        return f"{self._allows(place, 'only if')}, and {did}"

    def _allows(self, place: Place | None, condition: str) -> str:
        """``acks=all with MinISR 2 allows a loss only if 2 or more replicas of a partition lose unsynced data
        before its ISR is full again``."""
        tolerated = self._tolerated(place)
        what = "synced" if self.terms.tolerates_power_loss else "unsynced"
        acks = "acks=all with " if self.terms.keeps_acked else ""
        who = f"{tolerated + 1} or more replicas" if tolerated else "a replica"
        lose = "lose" if tolerated else "loses"
        return (
            f"{acks}MinISR {tolerated + 1} allows a loss {condition} {who} of a partition {lose} {what} data "
            "before its ISR is full again"
        )

    def _tolerated(self, place: Place | None) -> int:
        """MinISR - 1 of the partition's topic."""
        of = [t.min_insync_replicas for t in self.run.info.topics if place is None or t.name == place[0]]
        return min(of, default=1) - 1

    def _deleted(self, place: Place | None) -> str:
        """Names the first deletion; empty: nothing was deleted."""
        return next((str(one) for one in deletions(self.run) if place in (None, one.place)), "")

    def _object(self, place: Place | None) -> Rule:
        """Reads that rest on an acknowledged marker promise as much as acknowledged writes do."""
        why = "a read appends a marker of its own, so it must see all that was acknowledged before"
        return _where_loss_is_forbidden(self._loss(place), why)

    def _reused(self, place: Place | None) -> Rule:
        loss = self._loss(place) if self.terms.knows_acks else self._of_leader_alone(place)
        why = "no record may be lost, so no offset may get another record"
        again = "records may be lost here, and their offsets used again"
        excuses = [replace(one, why=again) for one in loss.excuses.found]
        return Rule(_forbidden(why), Excuses(excuses))

    def _deletion(self, place: Place | None) -> Rule:
        why = "DeleteRecords is answered when every live replica has moved its log start"
        forgot = "log starts are written to disk once a minute, and every replica may have lost it"
        behind = "a replica that is elected uncleanly may have an earlier log start"
        grounds = self._grounds
        elected = [
            *grounds.elections_that_may_be_unclean(place),
            *grounds.faults_without_known_leader(place),
            *grounds.records_of_several_leaders(place),
        ]
        happened = {
            forgot: grounds.kills_of_all(place),
            behind: [] if self.terms.keeps_committed else elected,
        }
        return Rule(_forbidden(why), Excuses.of({**happened, **self._damages(place)}))

    def _sent_again(self, place: Place | None) -> Rule:
        if self.terms.idempotence:
            return Rule(_forbidden("idempotence is on, so every record is stored once and in order"))
        grounds = self._grounds
        again = "idempotence is off, so a retry may be appended again"
        happened = [
            *grounds.changes(place),
            *grounds.faults(),
            *grounds.changes_of_isr(place),
            *grounds.records_of_several_leaders(place),
        ]
        why = (
            f"idempotence is off, but no client had a reason to send again: {self._led(place)}, nobody left "
            "the ISR, no fault was in force, and the send was answered in time"
        )
        unsure = f"{again}: the answer to the send came late or never, and its client may have sent it again"
        return Rule(_forbidden(why), Excuses.of({again: happened}), unsure)

    def _torn(self, place: Place | None) -> Rule:
        """Half of it is not visible, or half of it is gone: the contract decides which it must be."""
        reads = self._of_committed_reads()
        if reads.meaning is not Meaning.VIOLATION:
            return Rule(reads)
        return _where_loss_is_forbidden(self._loss(place), "a transaction is visible whole or not at all")

    def _unprocessed(self, place: Place | None) -> Rule:
        if self.run.info.rewinds:
            return self._consumer(place)
        why = (
            "after an abort the consumer stays at its position (KAFKA-17582), and nothing says that this "
            "application rewinds it"
        )
        return Rule(_allowed(why))

    def _of_committed_reads(self) -> Ruling:
        match self.run.info.isolation:
            case "read_committed":
                return _forbidden("consumers at read_committed read committed records only")
            case "":
                why = "the isolation level of the consumers is not known"
            case other:
                why = f"consumers at {other} read records of open transactions"
        return _allowed(why)

    def _consumer(self, place: Place | None) -> Rule:
        """A consumer goes on from where it was when it finds the leader again."""
        within = self._within_losses(place) if self.terms.keeps_committed else self._unclean(place)
        why = "a record that consumers read must stay, and every consumer must read all records in order"
        return _where_loss_is_forbidden(replace(within, excuses=within.excuses.longer(EFFECT_NS)), why)


def _where_loss_is_forbidden(loss: Rule, why: str) -> Rule:
    """The rule of what follows from loss: ``why`` it is forbidden where no record may be lost."""
    if loss.ruling.meaning is not Meaning.VIOLATION:
        return loss
    return replace(loss, ruling=_forbidden(why))


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
    """Returns the promises of a configuration."""
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
        hint = nearest(base, TERMS) if base not in TERMS else ""
        raise UnknownContract(
            f"no contract is called {name!r}{hint or ';'} there are {', '.join(TERMS)}, each also with "
            f"{' or '.join('+' + modifier for modifier in MODIFIERS)}"
        )
    return replace(
        TERMS[base], idempotence="idempotence" in modifiers, linearizable="linearizable-reads" in modifiers
    )
