"""`wrackline check --model log`: in the three words of its own, and as Jepsen's Kafka workload has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from wrackline.checkers.jvm.classpath import available
from wrackline.harness.check.results import shown
from wrackline.harness.cli.verdicts.check import check_command
from wrackline.history.jepsen.text import Operation, write
from wrackline.values import Keyword

Words = list[tuple[int, str, str, Any]]
"""(process, type, f, value)."""


def check(tmp_path: Path, words: Words, *arguments: str, fmt: str = "edn") -> Result:
    file = tmp_path / f"history.{fmt}"
    operations: list[Operation] = [
        {"process": process, "type": Keyword(kind), "f": Keyword(f), "value": value}
        for process, kind, f, value in words
    ]
    write(operations, file, fmt)
    return CliRunner().invoke(check_command, ["--model", "log", *arguments, str(file)], standalone_mode=False)


def done(process: int, f: str, told: Any, asked: Any = None) -> Words:
    return [(process, "invoke", f, asked), (process, "ok", f, told)]


GOOD = [
    *done(0, "append", [0, 7], 7),
    (1, "invoke", "append", 8),
    *done(2, "end", 2),
    *done(3, "read", [[0, 7], [1, 8]]),
    *done(0, "append", [None, 9], 9),
    *done(2, "end", 3),
]
"""The append of 8 never completed, that of 9 was acknowledged without an offset."""


def test_a_log_with_unknown_outcomes(tmp_path: Path) -> None:
    found = check(tmp_path, GOOD)
    assert (found.return_value, found.output) == (0, "history: linearizable (exact, 6 operations)\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (done(2, "end", 2), "late: offset 2 was filled after the log was known to have grown past it"),
        (done(3, "read", [[0, 8]]), "two values: offset 0 has two values"),
        (done(3, "read", [[3, 7]]), "two offsets: value 7 is at two offsets"),
        (done(3, "read", [[3, "nobody's"]]), "garbage: value nobody's is in the log, and nobody sent it"),
        (done(2, "end", 4), "unfilled: offset 3 is filled, and no append is left that can have filled it"),
        (
            done(2, "append", [1, 11], 11),
            "late: offset 1 was filled after the log was known to have grown past it",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_operations(tmp_path: Path, words: Words, said: str) -> None:
    found = check(tmp_path, [*GOOD, *words])
    assert found.return_value == 1
    assert said in found.output
    assert (
        f"process {words[0][0]} :{words[0][2]} {shown(words[1][3])} (operation 12 to 13)" in found.output
        or ("unfilled" in said)
    )


def test_offsets_without_records_may_be_allowed(tmp_path: Path) -> None:
    words = [*done(0, "append", [0, 7], 7), *done(0, "append", [5, 8], 8)]
    assert check(tmp_path, words).return_value == 1
    assert check(tmp_path, words, "--holes").return_value == 0


def test_keys_of_kafka_are_logs_of_their_own(tmp_path: Path) -> None:
    words = [
        *done(0, "send", [["send", 1, [0, 7]], ["send", 2, [0, 7]]], [["send", 1, 7], ["send", 2, 7]]),
        *done(1, "assign", [1, 2]),
        *done(1, "poll", [["poll", {1: [[0, 7]], 2: [[0, 9]]}]], [["poll"]]),
    ]
    for fmt in ("edn", "json"):
        found = check(tmp_path, words, fmt=fmt)
        assert found.return_value == 1
        assert "key 1: linearizable" in found.output
        assert "key 2: not linearizable" in found.output
    # A transaction's marker takes an offset.
    txn = done(0, "txn", [["send", 1, [0, 7]], ["poll", {}]], [["send", 1, 7], ["poll"]])
    found = check(tmp_path, [*txn, *done(0, "send", [["send", 1, [2, 8]]], [["send", 1, 8]])])
    assert (found.return_value, "holes allowed" in found.output) == (0, True)


def test_a_record_of_an_ok_send_without_an_offset_of_its_own_is_of_unknown_outcome(tmp_path: Path) -> None:
    sent = done(0, "send", [["send", 1, [0, 7]], ["send", 1, 8]], [["send", 1, 7], ["send", 1, 8]])
    after = done(0, "send", [["send", 1, [1, 9]]], [["send", 1, 9]])
    assert check(tmp_path, [*sent, *after]).return_value == 0


TWICE = [*done(0, "append", [0, 7], 7), *done(0, "append", [1, 7], 7), *done(2, "end", 2)]


def test_a_log_in_which_values_repeat_is_searched(tmp_path: Path) -> None:
    found = check(tmp_path, [*TWICE, *done(3, "read", [[1, 7], [None, 8]])])
    assert (found.return_value, "history: linearizable (search, 4 operations)" in found.output) == (0, True)
    assert "value 7 was put more than once: only a search can decide" in found.output
    # The end was 2, so nothing was at 2 and beyond.
    lost = [(4, "invoke", "append", 8), *TWICE, *done(2, "append", [3, 9], 9), *done(3, "read", [[2, 8]])]
    assert check(tmp_path, lost).return_value == 0
    found = check(tmp_path, [*lost, *done(2, "end", 3)])
    assert found.return_value == 1
    assert (
        "there is no place for process 2 :end 3 (operation 12 to 13)\n"
        "    when the object holds 4 records, none of these can be next: :end 3 of process 2\n"
    ) in found.output
    found = check(tmp_path, [*TWICE, *done(2, "append", [2, 9], 9), *done(3, "read", [[2, 7]])])
    assert "there is no place for process 3 :read [[2 7]]" in found.output
    found = check(tmp_path, [*TWICE, *done(2, "append", [None, 9], 9), *done(3, "read", [[2, 7]])])
    assert (
        "there is no place for process 2 :append [nil 9] (operation 7 to 8)\n"
        "    when the object holds 2 records (7 was seen at 2), none of these can be next: "
        ":append [nil 9] of process 2\n"
    ) in found.output


def test_unique_values_may_be_searched_too(tmp_path: Path) -> None:
    found = check(tmp_path, GOOD, "--by", "search")
    assert (found.return_value, found.output) == (0, "history: linearizable (search, 6 operations)\n")


@pytest.mark.parametrize("by", ["", "search", "knossos", "both"])
def test_with_repeated_values_and_holes_nobody_is_asked(tmp_path: Path, by: str) -> None:
    found = check(tmp_path, TWICE, "--holes", *(["--by", by] if by else []))
    assert (found.return_value, "where offsets may have no record" in found.output) == (3, True)


@pytest.mark.slow
def test_knossos_says_the_same(tmp_path: Path) -> None:
    if not available():
        pytest.skip("no classpath with Knossos and Elle (WRACKLINE_JVM_CLASSPATH)")
    assert "linearizable (Knossos, 6 operations)" in check(tmp_path, GOOD, "--by", "knossos").output
    found = check(tmp_path, [*GOOD, *done(2, "end", 2)], "--by", "knossos")
    assert (found.return_value, "there is no place for process 2 :end 2" in found.output) == (1, True)
    found = check(tmp_path, TWICE, "--by", "both")
    assert (found.return_value, "Knossos says valid" in found.output) == (0, True)
