"""Events are given in their order, with numbered processes; what has no order is refused in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

from wrackline.history.jepsen.ops import NamedProcess, Op, read_in_order
from wrackline.history.jepsen.text import TextError


def events(tmp_path: Path, text: str, name: str = "h.edn") -> list[Op]:
    path = tmp_path / name
    path.write_text(text)
    return read_in_order(path, list)


def line(index: int | None = None, process: str = "0", kind: str = "invoke", more: str = "") -> str:
    at = "" if index is None else f":index {index} "
    return f"{{{at}:process {process} :type :{kind} :f :read {more}}}\n"


def test_the_order_is_that_of_the_indexes(tmp_path: Path) -> None:
    found = events(tmp_path, "".join(line(index, str(index)) for index in (3, 0, 7, 2)))
    assert [one.index for one in found] == [0, 2, 3, 7]
    assert [one.at for one in found] == [2, 4, 1, 3], "each is named by its place in the file"


def test_without_indexes_it_is_that_of_the_file(tmp_path: Path) -> None:
    assert [one.at for one in events(tmp_path, line() + line(-1, "1") + line(None, "2"))] == [1, 2, 3]


def test_a_clock_that_was_set_back_does_not_matter_where_there_are_indexes(tmp_path: Path) -> None:
    found = events(tmp_path, line(0, more=":time 9") + line(1, "1", more=":time 5.5"))
    assert [one.time_ns for one in found] == [9, 5]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (line(0) + line(0, "1"), "operation 2 has the :index 0 of operation 1"),
        (line(3) + line(2, "1") + line(None, "2"), "operation 3 has no :index"),
        (
            line(more=":time 9") + line(process="1", more=":time 8"),
            "operation 2: :time goes back from 9 to 8",
        ),
        (
            line(more=':time #inst "2026-01-01"'),
            "operation 1: :time is 2026-01-01, not a number of nanoseconds",
        ),
        (line(more=":time ##Inf"), "operation 1: :time is inf"),
        ("{:index :a :process 0 :type :ok}", "operation 1: :index is a, not a number"),
        ("{:type :invoke :f :read :client 3}", "operation 1 has no :process, .* it has :type, :f, :client"),
        ("{:process 0 :type :began}", "operation 1: :type is began, not one of invoke, ok, fail, info"),
        ("{:process 0 :f :read}", "operation 1: :type is nil"),
        ("{:name 1 :history [{:process 0}]}", "inside of :history"),
    ],
)
def test_what_has_no_order_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(TextError, match=said) as wrong:
        events(tmp_path, text)
    assert str(wrong.value).startswith(str(tmp_path / "h.edn"))
    assert "\n" not in str(wrong.value)


def test_every_process_has_a_number(tmp_path: Path) -> None:
    lines = [line(process=name) for name in ("3", "-1", ":a", '"a"', "[1 2]", ":a", "true", "7.0")]
    numbers = [one.process for one in events(tmp_path, "".join(lines))]
    assert numbers[:2] == [3, -1]
    assert numbers[2] == numbers[5]
    assert numbers[7] == 7
    named = numbers[2:5] + numbers[6:7]
    assert len(set(named)) == 4
    assert all(isinstance(one, NamedProcess) for one in named)
    assert f"{numbers[2]} {numbers[6]!s}" == "a true"


def test_jepsens_own_processes_have_none(tmp_path: Path) -> None:
    text = (
        line(process=":nemesis", kind="info")
        + '{:process "nemesis" :f nil}\n{:type :info :f :log}\n'
        + line()
    )
    assert [one.process for one in events(tmp_path, text)] == [None, None, 0]
    json = '{"process": "nemesis", "type": "info"}\n{"process": 1.0, "type": "ok", "index": 4.0}\n'
    found = events(tmp_path, json, "h.json")
    assert [(one.process, one.index) for one in found] == [(None, None), (1, 4)]


def test_words_that_were_printed_with_their_colons(tmp_path: Path) -> None:
    [one] = events(tmp_path, '{"process": 0, "type": ":ok", "f": ":read"}', "h.json")
    assert (one.type, one.f) == ("ok", "read")
