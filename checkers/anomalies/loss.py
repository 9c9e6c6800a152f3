"""Loss (docs/anomalies.md section 1): what was acknowledged or read, and is not in the final read.

A final read that did not reach its partition's end offset is never evidence of loss: all conditions here ask
for ``complete``.
"""

from __future__ import annotations

from dataclasses import dataclass

from pyspark.sql import Column
from pyspark.sql import functions as F

from wrackline.checkers.anomalies.evidence import (
    LEADER,
    Details,
    Window,
    details_of,
    findings,
    having,
    place,
    process_label,
    say,
    seconds,
    value_label,
)
from wrackline.checkers.anomalies.explained_by import ExplainedBy, FurtherRows
from wrackline.checkers.anomalies.keys import lasting
from wrackline.checkers.anomalies.registry import Evidence, Findings, check, mark
from wrackline.checkers.engine.candidates import (
    Candidate,
    SendOutcome,
    Step,
    is_astray,
    is_beyond_reading,
    is_place,
)
from wrackline.checkers.engine.frames import packed, unpacked
from wrackline.checkers.engine.marks import Alone, Unfilled
from wrackline.checkers.engine.tables import CandidateOfRun, Partition
from wrackline.checkers.inputs.arrays import NONE, Bools, Ints, bools
from wrackline.checkers.inputs.table import Table
from wrackline.checkers.verdict.anomaly import Family, Promise


def _by_whom(details: Details) -> Column:
    """ " by n2", where the client knows who answered; else who led according to metadata."""
    return F.coalesce(F.concat(F.lit(" by "), details.node), F.lit(LEADER))


def _final_there(c: CandidateOfRun) -> Column:
    """What the final read has at an offset where it should have something else."""
    there, value = c.stored.offset == c.offset, c.stored.value
    return (
        F.when(c.offset >= c.log_end, say("; the final read of %s ends at offset %,d", place(c), c.log_end))
        .when(
            c.offset < c.log_start, say("; the final read of %s begins at offset %,d", place(c), c.log_start)
        )
        .when(there & (value >= 0), say("; the final read has value %s there", value_label(value)))
        .when(there, F.lit("; the final read has a record there that nobody sent in this run"))
        .otherwise(F.lit("; the final read has nothing there"))
    )


def _there(c: CandidateOfRun) -> Column:
    """The event of the final read that shows what is there instead."""
    return F.when(c.stored.offset == c.offset, c.stored.index)


def _maybe_lost(rows: Candidate[Ints]) -> Bools:
    """An ack named this place, and the final read does not have it here."""
    return bools((rows.step == Step.GIVEN) & (rows.acked == 1) & (rows.complete == 1))


def _lost(rows: Candidate[Ints], _: Unfilled) -> Bools:
    place = is_place(rows) & ~is_beyond_reading(rows)
    told_where = place & (rows.acked == 1)
    told_nothing = (rows.sent_offset == NONE) & (rows.first == 1) & (place | (rows.step == Step.NOWHERE))
    absent = (rows.outcome == SendOutcome.ACKED) & (rows.complete == 1) & (rows.in_final == 0)
    return bools(absent & (told_where | told_nothing))


def _maybe_vanished(rows: Candidate[Ints]) -> Bools:
    return bools(
        (rows.step == Step.GIVEN) & (rows.poll_index != NONE) & (rows.complete == 1) & (rows.value >= 0)
    )


def _vanished(rows: Candidate[Ints], _: Unfilled) -> Bools:
    """This place was given to somebody, and is gone; where its log has the value elsewhere, the poll named a
    wrong offset."""
    return bools(_maybe_vanished(rows) & ~is_astray(rows))


def _missing(rows: Candidate[Ints]) -> Bools:
    """``owed``: a bit for each replica that must have it (wrackline.checkers.engine.offset_ranges)."""
    return bools((rows.step == Step.IN_FINAL) & (rows.value >= 0) & (rows.held & rows.owed != rows.owed))


@dataclass(frozen=True, slots=True)
class _Shown(Table[Column]):
    """An answer that shows the end of the log at ``end``."""

    offset: Column
    end: Column
    process: Column
    invoke_index: Column
    complete_index: Column
    complete_ns: Column
    log_end: Column


LOST = mark("lost", _maybe_lost, _lost)
VANISHED = mark("vanished", _maybe_vanished, _vanished)
MISSING = mark("missing", _missing, Alone(_missing))
BEYOND = mark("beyond")


@check(
    "lost-write",
    Family.LOSS,
    "lost-write / unseen",
    "an acknowledged value is absent from the final read",
    breaks=Promise.NO_LOSS,
    rests_on_final_read=True,
    marks=[LOST],
    explained_by=ExplainedBy(further_rows=FurtherRows.FINAL_READ, until_fault=True),
)
def lost_write(evidence: Evidence) -> Findings:
    """``where``: ``tail`` (its offset is at or past the final end), ``middle`` (another value or nothing is
    at its offset), ``unknown offset`` (the acknowledgement had none)."""
    rows = lasting(having(evidence, LOST), evidence)
    joined = details_of(rows, rows.c.run, rows.c.complete_index, evidence.tables)
    c, details = joined.c
    named = c.sent_offset.isNotNull()
    where = F.when(~named, "unknown offset").when(c.offset >= c.log_end, "tail").otherwise("middle")
    value, at = value_label(c.value), seconds(c.complete_ns)
    acked = F.concat(
        say("Value %s was acknowledged at offset %,d of %s at %s", value, c.offset, place(c), at),
        _by_whom(details),
        _final_there(c),
    )
    acked_somewhere = F.concat(
        say("Value %s was acknowledged without an offset in %s at %s", value, place(c), at),
        _by_whom(details),
        say("; the final read of %s, which ends at offset %,d, does not have it", place(c), c.log_end),
    )
    return findings(
        joined,
        "lost-write",
        at=c,
        offset=F.when(named, c.offset),
        value=c.value,
        operations=[c.invoke_index, c.complete_index, c.poll_index, _there(c)],
        where=where,
        sentence=F.when(named, acked).otherwise(acked_somewhere),
        around=Window(c.complete_ns),
        leader_at=c.complete_ns,
    )


@check(
    "vanished-read",
    Family.LOSS,
    "–",
    "a record that a consumer was given is not in the final read",
    breaks=Promise.NO_LOSS,
    rests_on_final_read=True,
    marks=[VANISHED],
    explained_by=ExplainedBy(further_rows=FurtherRows.FINAL_READ, sends=False, until_fault=True),
)
def vanished_read(evidence: Evidence) -> Findings:
    rows = lasting(having(evidence, VANISHED), evidence)
    c = rows.c
    read = say(
        "A consumer read value %s at offset %,d of %s at %s",
        *(value_label(c.value), c.offset, place(c), seconds(c.poll_ns)),
    )
    return findings(
        rows,
        "vanished-read",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.invoke_index, c.complete_index, c.poll_index, _there(c)],
        where=F.when(c.offset >= c.log_end, "tail").otherwise("middle"),
        sentence=F.concat(read, F.lit(LEADER), _final_there(c)),
        around=Window(c.poll_ns),
        leader_at=c.poll_ns,
    )


@check(
    "lost-committed",
    Family.LOSS,
    "–",
    "an end offset or high watermark that a client was shown lies past the end of the final read",
    breaks=Promise.NO_LOSS,
    rests_on_final_read=True,
    marks=[BEYOND],
    explained_by=ExplainedBy(further_rows=FurtherRows.FINAL_READ, ends=True, until_fault=True),
)
def lost_committed(evidence: Evidence) -> Findings:
    """Reported once per partition, with the largest offset: what a client is shown as the log's end is
    committed, whoever sent the records."""
    marked = having(evidence, BEYOND)
    c = marked.c
    about = _Shown(
        offset=c.offset,
        end=c.other_offset,
        process=c.process,
        invoke_index=c.invoke_index,
        complete_index=c.complete_index,
        complete_ns=c.complete_ns,
        log_end=c.log_end,
    )
    largest = F.max_by(packed(about), F.struct(c.other_offset, -c.complete_index))
    rows = marked.grouped(Partition(c.run, c.log, c.topic, c.partition), unpacked(_Shown, largest))
    at, shown = rows.c
    sentence = F.concat(
        say(
            "Process %s got an answer at %s that shows the end of %s at offset %,d",
            *(process_label(shown.process), seconds(shown.complete_ns), place(at), shown.end),
        ),
        F.lit(LEADER),
        say(
            "; the final read of %s ends at offset %,d, so the committed offsets from %,d to %,d are gone",
            *(place(at), shown.log_end, shown.log_end, shown.end - 1),
        ),
    )
    return findings(
        rows,
        "lost-committed",
        at=at,
        offset=shown.offset,
        operations=[shown.invoke_index, shown.complete_index],
        sentence=sentence,
        around=Window(shown.complete_ns),
        leader_at=shown.complete_ns,
    )


@check(
    "lost-on-replica",
    Family.LOSS,
    "– (jepsen.nats: lost-on-node)",
    "after healing, a record that consumers are given, acknowledged or not, is missing from a replica in the "
    "ISR",
    breaks=Promise.INTACT_FILES,
    rests_on_final_read=True,
    rests_on_replicas=True,
    marks=[MISSING],
    explained_by=ExplainedBy(further_rows=FurtherRows.NAMED_LOGS, until_fault=True),
)
def lost_on_replica(evidence: Evidence) -> Findings:
    rows = lasting(having(evidence, MISSING), evidence)
    c = rows.c
    held = F.coalesce(c.held, F.lit(0))
    missing = F.array_join(F.filter(c.replicas, lambda _, bit: F.getbit(held, bit) == 0), " and ")
    acked = F.when(c.outcome == SendOutcome.ACKED, say(" (acknowledged at %s)", seconds(c.complete_ns)))
    return findings(
        rows,
        "lost-on-replica",
        at=c,
        offset=c.offset,
        value=c.value,
        operations=[c.invoke_index, c.complete_index, c.final_index, c.replica_index],
        where=missing,
        sentence=say(
            "Value %s%s is in the final read at offset %,d of %s, but it is missing from the log of %s, "
            "which is in the ISR",
            *(value_label(c.value), F.coalesce(acked, F.lit("")), c.offset, place(c), missing),
        ),
        around=Window(F.coalesce(c.complete_ns, c.invoke_ns, F.lit(0))),
    )
