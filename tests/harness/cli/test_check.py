"""`wrackline check`: a history of Jepsen's, judged."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from wrackline.checkers.jvm.classpath import JvmUnavailable, available
from wrackline.harness.cli.jvm import check_command
from wrackline.history.jepsen.text import TextError

STALE = """
{:process 0 :type :invoke :f :write :value 1}
{:process :nemesis :type :info :f :kill :value nil}
{:process 0 :type :ok :f :write :value 1}
{:process 1 :type :invoke :f :write :value 2}
{:process 1 :type :ok :f :write :value 2}
{:process 2 :type :invoke :f :read :value nil}
{:process 2 :type :ok :f :read :value %s}
"""


def check(tmp_path: Path, text: str, *arguments: str) -> Result:
    file = tmp_path / "history.edn"
    file.write_text(text)
    return CliRunner().invoke(check_command, [*arguments, str(file)], standalone_mode=False)


def test_a_stale_read_is_told_with_its_operations(tmp_path: Path) -> None:
    found = check(tmp_path, STALE % "1", "--model", "register")
    assert found.return_value == 1
    assert "history: not linearizable (exact, 3 operations)" in found.output
    assert "process 2 :read 1 (operation 6 to 7)" in found.output
    assert check(tmp_path, STALE % "2", "--model", "register").return_value == 0


def test_nil_is_a_value(tmp_path: Path) -> None:
    assert check(tmp_path, STALE % "nil", "--model", "register").return_value == 1
    only_read = "{:process 2 :type :invoke :f :read :value nil}\n{:process 2 :type :ok :f :read :value nil}"
    assert check(tmp_path, only_read, "--model", "register").return_value == 0


def test_independent_keys_are_objects_of_their_own(tmp_path: Path) -> None:
    text = "\n".join(
        f"{{:process {n} :type :{kind} :f :{f} :value [{key} {value}]}}"
        for n, (f, key, value) in enumerate(
            [("enqueue", 1, 7), ("enqueue", 2, 8), ("dequeue", 2, 8), ("dequeue", 1, 9)]
        )
        for kind in ("invoke", "ok")
    )
    found = check(tmp_path, text, "--model", "fifo-queue", "--independent")
    assert "key 2: linearizable" in found.output
    assert "key 1: not linearizable" in found.output
    assert "garbage" in found.output


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "{:process 0 :type :invoke :f :poll :value [[:poll]]}\n{:process 0 :type :ok :f :poll :value "
            "[[:poll {}]]}",
            "operation 1: a register or queue has no :poll, only :write, :enqueue, :read, :dequeue",
        ),
        (
            "{:process 0 :type :ok :f :read :value 1}",
            "operation 1: process 0 completes what it did not invoke",
        ),
        (
            "{:process 0 :type :began :f :read}",
            "operation 1: :type is 'began', not one of invoke, ok, fail, info",
        ),
        (
            "{:process 0 :type :invoke :f :read}\n{:process 0 :type :invoke :f :read}",
            "operation 2: process 0 invokes again before operation 1 completed",
        ),
    ],
)
def test_a_history_that_makes_no_sense_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    found = check(tmp_path, text, "--model", "register")
    assert isinstance(found.exception, TextError)
    assert str(found.exception) == said


def test_a_search_without_knossos_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WRACKLINE_JVM_CLASSPATH", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = check(tmp_path, STALE % "1", "--model", "cas-register")
    assert isinstance(found.exception, JvmUnavailable)


@pytest.mark.slow
def test_the_searches_decide_what_the_exact_checks_do_not(tmp_path: Path) -> None:
    if not available():
        pytest.skip("no classpath with Knossos and Elle (WRACKLINE_JVM_CLASSPATH)")
    twice = (STALE % "1").replace(":value 2", ":value 1")
    found = check(tmp_path, twice, "--model", "register")
    assert (found.return_value, "was put more than once" in found.output) == (0, True)
    lost = """{:process 0 :type :invoke :f :txn :value [[:append :x 1]]}
{:process 0 :type :ok :f :txn :value [[:append :x 1]]}
{:process 1 :type :invoke :f :txn :value [[:r :x nil]]}
{:process 1 :type :ok :f :txn :value [[:r :x []]]}
{:process 1 :type :invoke :f :txn :value [[:r :x nil]]}
{:process 1 :type :ok :f :txn :value [[:r :x [1]]]}"""
    found = check(tmp_path, lost, "--model", "list-append")
    assert (found.return_value, "G-single-item-realtime" in found.output) == (1, True)
    assert "    -1 is 'x'\n" in found.output
    seen_twice = lost.replace("[1]", "[1 1]")
    found = check(tmp_path, seen_twice, "--model", "list-append")
    assert (found.return_value, ":duplicates {1 2}" in found.output) == (1, True)


DEEP = "[" * 150 + "]" * 150


@pytest.mark.parametrize(
    ("model", "content", "said"),
    [
        ("register", b"\xff\xfe\x00", "is no UTF-8"),
        ("register", b"[" * 100_000 + b"]" * 100_000, "nested"),
        ("register", f"{{:process 0 :type :invoke :f :write :value {DEEP}}}".encode(), "nested"),
        (
            "register",
            b"{:process :nemesis :type :info :f :kill :value nil}",
            "there is no operation of a client",
        ),
        ("list-append", b"[]", "empty; a history.edn"),
        ("list-append", b"{:process :nemesis :type :info :f :kill}", "there is no operation of a client"),
        (
            "set",
            b"{:process 0 :type :invoke :f :read}{:process 0 :type :ok :f :read :value 7}",
            "needs a set",
        ),
        (
            "list-append",
            b"{:process 0 :type :invoke :f :txn :value [[:r 1 nil]]}{:process 0 :type :ok :f :txn :value "
            b"[[:r 1 5]]}",
            "a read gives a list, not 5",
        ),
    ],
)
def test_what_is_no_history_is_one_line(tmp_path: Path, model: str, content: bytes, said: str) -> None:
    file = tmp_path / "history.edn"
    file.write_bytes(content)
    found = CliRunner().invoke(check_command, ["--model", model, str(file)], standalone_mode=False)
    assert isinstance(found.exception, TextError), found.exception
    assert said in str(found.exception)
    assert "\n" not in str(found.exception)
