"""Progress of Spark while an analysis goes on, for a person who waits for it: the step, and how far it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOOK_S = 1.0


@contextmanager
def followed(spark: SparkSession, status: Callable[[str], None]) -> Iterator[Callable[[str], None]]:
    """Opens a context in which ``status`` is called once a second with what was last named, for how long
    it has gone on, and how many parts of it Spark has done. What is yielded names what comes next."""
    over = threading.Event()
    now = ("", time.monotonic())

    def at(words: str) -> None:
        nonlocal now
        now = (words, time.monotonic())
        status(words)

    def tell() -> None:
        while not over.wait(LOOK_S):
            words, since = now
            status(f"{words}, {time.monotonic() - since:.0f} s{_parts(spark)}")

    thread = threading.Thread(target=tell, name="analysis-status", daemon=True)
    thread.start()
    try:
        yield at
    finally:
        over.set()
        thread.join(LOOK_S)


def _parts(spark: SparkSession) -> str:
    """Says how many tasks of the stages under way are done. Empty between two, and where Spark does not
    say."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(one) for one in tracker.getActiveStageIds()]
    expected, done = (
        sum(getattr(stage, count) for stage in stages if stage is not None)
        for count in ("numTasks", "numCompletedTasks")
    )
    return f", {done} of {expected} parts done" if expected else ""
