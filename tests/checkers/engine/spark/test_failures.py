"""What Spark says when it fails."""

from __future__ import annotations

from wrackline.checkers.engine.spark.failures import cause


def test_what_spark_says_when_it_fails_becomes_one_line() -> None:
    trace = "An error occurred while calling o1.x.\n"
    trace += ": org.apache.spark.SparkException: Job aborted\n\tat a.b(C.scala)\n"
    trace += "Caused by: org.apache.spark.memory.SparkOutOfMemoryError: "
    trace += "There is not enough memory to build.\n\t... 1 more"
    said = cause(RuntimeError(trace))
    assert said.startswith("org.apache.spark.memory.SparkOutOfMemoryError: There is not enough memory")
    assert "WRACKLINE_SPARK_MEMORY" in said
    assert "\n" not in said
    assert cause(RuntimeError("no such thing\nmore")) == "no such thing"
    trace = "An exception was thrown from the Python worker:\n"
    trace += "Traceback (most recent call last):\n  File x, line 1\n    y()\n"
    assert (
        cause(RuntimeError(trace + "ValueError: not a number\n\tat a.b(C.scala)"))
        == "ValueError: not a number"
    )
