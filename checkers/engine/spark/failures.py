"""Failures of Spark: whose fault each was, and the reason in one line."""

from __future__ import annotations

import re
import sys

from wrackline.checkers.engine.spark.session import MEMORY_VARIABLE

_OUT_OF_ROOM = re.compile("No space left|OutOfMemory|MemoryError|enough memory")
_LACKING = re.compile("ModuleNotFoundError: No module named '([^']+)'")


def failures() -> tuple[type[BaseException], ...]:
    """Returns the exceptions that Spark raises; none where nobody has imported it."""
    if "pyspark" not in sys.modules:
        return ()
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]
    from pyspark.errors import PySparkException

    return PySparkException, Py4JError


def is_of_task(wrong: BaseException) -> bool:
    """Tells whether a task of ours raised the error: data that is none, and neither memory nor disks."""
    return "Traceback (most recent call last)" in str(wrong) and not _OUT_OF_ROOM.search(str(wrong))


def is_of_interrupt(wrong: BaseException | None) -> bool:
    """Tells whether Spark broke while Ctrl-C was already being answered: a query that Ctrl-C cuts short
    leaves a connection on which the next one, of whoever cleans up, fails."""
    while wrong is not None and not isinstance(wrong, KeyboardInterrupt):
        wrong = wrong.__cause__ or wrong.__context__
    return wrong is not None


def module_lacking(wrong: BaseException) -> str:
    """The Python module that a worker does not have; empty: none."""
    match = _LACKING.search(str(wrong))
    return match[1] if match else ""


def cause(wrong: BaseException) -> str:
    """The reason in one line: the last cause in Spark's trace, and what to do about memory."""
    lines = [line.strip() for line in str(wrong).splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    result = (causes or lines or [type(wrong).__name__])[-1 if causes else 0]
    raised = [line for line in lines if re.match(r"[\w.]+(Error|Exception)\b", line)]
    if raised and "Python worker" in lines[0]:
        result = raised[0]  # what a task of ours raised, after its traceback
    result = result[:300]
    if "No space left" in result:
        result += "; make room where the runs are and in the temporary directory"
    elif any(word in result for word in ("OutOfMemory", "MemoryError", "enough memory")):
        result += f"; give it more memory ({MEMORY_VARIABLE}=6g) or room in the temporary directory"
    return result
