"""The settings of an anomaly that the explanation of its findings needs. A check says it where it is
registered, and ``wrackline.checkers.explain`` goes by it: no anomaly is named there."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Cycle(StrEnum):
    """Cycles of transactions, by Elle's names."""

    G0 = "G0"
    """Of the order of their records."""
    G1C = "G1c"
    """... with at least one read of what another one sent."""


class By(StrEnum):
    """The kind of contradiction between the operations of a finding."""

    ORDER = "order"
    """By a cycle of edges: no order of them is possible. Where no cycle is found, by what each of them
    shows."""
    FACTS = "facts"
    """They are wrong in any order: by what each of them shows."""
    REGISTER = "register"
    """By a cycle of edges of a register, which holds one value at a time."""
    QUEUE = "queue"
    """By a cycle of edges of a queue, which gives out first what was put in first."""


class FurtherRows(StrEnum):
    """Rows of final reads and of replicas' logs that prove a finding and that it does not cite."""

    NONE = "none"
    FINAL_READ = "final read"
    """The row of the final read that should hold the record: the first to come to its offset or past it."""
    NAMED_LOGS = "named logs"
    """The same of the log of each replica that the finding's ``where`` names, joined by `` and ``."""
    HOLDERS = "holders"
    """Of the replicas' logs one for each record that they hold at the offset."""


class Spelt(StrEnum):
    """The records of an operation that are spelt out where there is no cycle."""

    RECORD = "record"
    """Those of the finding's value, and those at its offset."""
    ALL_SENT = "all sent"
    """Also every other record that a send sent."""
    AS_GIVEN = "as given"
    """What a poll was given around the offset, in the order in which it was given."""
    SMALLER_EPOCHS = "smaller epochs"
    """Also records behind the offset with a smaller leader epoch."""
    WHOLE = "whole"
    """The operation itself, as a row of the history shows it."""


@dataclass(frozen=True, slots=True)
class ExplainedBy:
    """The settings for explaining an anomaly's findings; without arguments: by the order of the operations
    that the finding cites."""

    by: By = By.ORDER
    in_any_order: frozenset[str] = frozenset()
    """Values of ``where`` whose findings are wrong in any order, whatever ``by`` says."""
    further_rows: FurtherRows = FurtherRows.NONE
    spelt: Spelt = Spelt.RECORD
    sends: bool = True
    """False: what it cites of sends is no part of the contradiction, where it cites anything else."""
    ends: bool = False
    """The end offset that a poll or final read returned matters as that of a request for it does."""
    transactions: bool = False
    """It is about transactions: records of all partitions matter, and a transaction takes effect as one, so a
    path of edges may leave it by any of its records."""
    cycle: Cycle | None = None
    """Where the findings are cycles of transactions: which ones."""
    until_fault: bool = False
    """What happened may lie between the operations and the fault after them: both are shown."""


IN_ANY_ORDER = ExplainedBy(By.FACTS)
BY_ORDER = ExplainedBy()
