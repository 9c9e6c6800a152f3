"""Routing decides where rows go: which bucket of values, and what candidates are put there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wrackline.checkers.engine.candidates import Candidate, Step
from wrackline.checkers.engine.context import Context, run_of
from wrackline.checkers.engine.fact_codec import AGAIN, VALUES, Writer
from wrackline.checkers.inputs.table import NONE, Ints, constant

_MIX = np.uint64(0x9E3779B97F4A7C15)


def bucket_of(run: Ints, value: Ints, buckets: int) -> Ints:
    """Returns the bucket of a value: the part of what is looked at by value that it belongs to."""
    mixed = (value.astype(np.uint64) + run.astype(np.uint64)) * _MIX
    result: Ints = ((mixed >> np.uint64(33)) % np.uint64(buckets)).astype(np.int64)
    return result


def put_candidates(writer: Writer, context: Context, rows: Candidate[Ints], *, again: bool = False) -> None:
    """Sends candidates to where everything of their value is looked at. ``again``: they were found in the
    second round."""
    if not len(rows):
        return
    without_value = np.where(rows.offset == NONE, 0, rows.offset)
    key = np.where(rows.value < 0, without_value, rows.value)
    writer.spread(AGAIN if again else VALUES, bucket_of(run_of(rows.log), key, context.buckets), rows)


def put_found(writer: Writer, context: Context, step: Step, mark: str, rows: Candidate[Ints]) -> None:
    """Candidates that are what the mark says, whatever else is known."""
    size = len(rows)
    if size:
        marks = constant(context.marks.bit(mark), size)
        put_candidates(writer, context, replace(rows, step=constant(step, size), marks=marks))
