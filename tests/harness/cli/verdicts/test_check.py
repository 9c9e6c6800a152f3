"""`wrackline check`: a history of Jepsen's, judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import orjson
import pytest
from click.testing import CliRunner, Result

from wrackline.checkers.exact import log, queue, register
from wrackline.checkers.jvm.classpath import available
from wrackline.harness.check.files import Judge
from wrackline.harness.check.reasons import of_log, of_object
from wrackline.harness.check.results import Judged, Verdict
from wrackline.harness.cli.verdicts.check import check_command

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


Step = tuple[int, str, str, object]
"""Process, ``:type``, ``:f`` and ``:value``."""


def done(process: int, f: str, value: object, answer: object = None) -> list[Step]:
    return [(process, "invoke", f, value), (process, "ok", f, value if answer is None else answer)]


def failed(process: int, f: str, value: object) -> list[Step]:
    return [(process, "invoke", f, value), (process, "fail", f, value)]


@pytest.mark.parametrize(
    ("model", "steps", "reason"),
    [
        (
            "register",
            [*done(0, "write", 1), *done(1, "read", None, 2)],
            "garbage: 2 was read, and nobody wrote it",
        ),
        (
            "register",
            [*failed(0, "write", 2), *done(1, "read", None, 2)],
            "aborted: 2 was read, and its write had failed",
        ),
        (
            "register",
            [*done(1, "read", None, 2), *done(0, "write", 2)],
            "future: 2 was read before its write began",
        ),
        (
            "register",
            [
                *(*done(0, "write", 1), *done(0, "write", 2)),
                *(*done(1, "read", None, 2), *done(1, "read", None, 1)),
            ],
            "two at once: the register must have held 1 and 2 at one time",
        ),
        (
            "register",
            [*done(0, "write", 1), *done(0, "write", 2), *done(1, "read", None, 1)],
            "inside: 2 came and went while the register must have held 1 all the time",
        ),
        ("fifo-queue", done(1, "dequeue", None, 9), "garbage: 9 was dequeued, and nobody enqueued it"),
        (
            "fifo-queue",
            [*failed(0, "enqueue", 1), *done(1, "dequeue", None, 1)],
            "aborted: 1 was dequeued, and its enqueue had failed",
        ),
        (
            "fifo-queue",
            [*done(0, "enqueue", 1), *done(1, "dequeue", None, 1), *done(1, "dequeue", None, 1)],
            "twice: 1 was dequeued twice",
        ),
        (
            "fifo-queue",
            [*done(1, "dequeue", None, 1), *done(0, "enqueue", 1)],
            "future: 1 was dequeued before its enqueue began",
        ),
        (
            "fifo-queue",
            [
                *(*done(0, "enqueue", 1), *done(0, "enqueue", 2)),
                *(*done(1, "dequeue", None, 2), *done(1, "dequeue", None, 1)),
            ],
            "overtaken: 2 came out before 1, and 1 had gone in earlier",
        ),
        (
            "fifo-queue",
            [*done(0, "enqueue", 1), *done(0, "enqueue", 2), *done(1, "dequeue", None, 2)],
            "lost: 1 never came out, and 2, enqueued later, did",
        ),
        (
            "fifo-queue",
            [*done(0, "enqueue", 1), *done(1, "dequeue", None)],
            "not empty: a dequeue found the queue empty, and at every moment of it some value was inside",
        ),
    ],
)
def test_what_is_wrong_is_a_clause(tmp_path: Path, model: str, steps: list[Step], reason: str) -> None:
    lines = (
        f"{{:process {process} :type :{kind} :f :{f} :value {'nil' if value is None else value}}}"
        for process, kind, f, value in steps
    )
    found = check(tmp_path, "\n".join(lines), "--model", model)
    assert found.return_value == 1
    assert f"  {reason}\n" in found.output


def test_every_rule_has_its_clause() -> None:
    for rule in (*register.Rule, *queue.Rule):
        assert of_object(rule, 1, 2).count("{") == 0
    assert all(of_log(rule, 7) for rule in log.Rule)


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
    assert "garbage: 9 was dequeued, and nobody enqueued it\n" in found.output


def test_a_search_without_knossos_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WRACKLINE_JVM_CLASSPATH", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = check(tmp_path, STALE % "1", "--model", "cas-register", "--by", "knossos")
    assert (found.return_value, "no classpath with Knossos and Elle" in found.stderr) == (2, True)
    assert check(tmp_path, STALE % "1", "--model", "cas-register").return_value == 1, "our own needs none"


def test_a_search_decides_what_the_exact_checks_do_not(tmp_path: Path) -> None:
    twice = (STALE % "1").replace(":value 2", ":value 1")
    found = check(tmp_path, twice, "--model", "register")
    assert (found.return_value, "was put more than once" in found.output) == (0, True)
    found = check(tmp_path, STALE % "1", "--model", "register", "--by", "search")
    assert found.return_value == 1
    assert "there is no place for process 2 :read 1 (operation 6 to 7)" in found.output


def operations(*done: tuple[str, str, str]) -> str:
    """One after another: (f, value of the invocation, value of the completion)."""
    return "\n".join(
        f"{{:process 0 :type :{kind} :f :{f} :value {value}}}"
        for f, asked, told in done
        for kind, value in (("invoke", asked), ("ok", told))
    )


MOVED = ("transfer", "{:from 0 :to 1 :amount 7}", "{:from 0 :to 1 :amount 7}")


@pytest.mark.parametrize(
    ("arguments", "done", "code"),
    [
        (["counter"], [("add", "2", "2"), ("read", "nil", "2")], 0),
        (["counter"], [("add", "2", "2"), ("read", "nil", "3")], 1),
        (["counter", "--initial", "1"], [("add", "2", "2"), ("read", "nil", "3")], 0),
        (["set"], [("add", "2", "2"), ("read", "nil", "#{2}")], 0),
        (["set"], [("add", "2", "2"), ("read", "nil", "#{}")], 1),
        (["bank"], [MOVED, ("read", "nil", "{0 3, 1 17}")], 0),
        (["bank"], [MOVED, ("read", "nil", "{0 10, 1 17}")], 1),
        (["bank", "--initial", "5"], [MOVED], 1),
        (["bank", "--initial", "5", "--set", "negative=true"], [MOVED, ("read", "nil", "{0 -2, 1 12}")], 0),
        (["multi-register"], [("txn", *["[[:w :x 1]]"] * 2), ("txn", "[[:r :x nil]]", "[[:r :x 1]]")], 0),
        (["kv"], [("put", "[:x 1]", "[:x 1]"), ("get", "[:x nil]", "[:x nil]")], 1),
    ],
)
def test_models(tmp_path: Path, arguments: list[str], done: list[tuple[str, str, str]], code: int) -> None:
    assert check(tmp_path, operations(*done), "--model", *arguments).return_value == code


def test_a_model_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from wrackline.checkers.models import REFUSED, Model\n"
        "class Latch(Model):\n"
        "    def initial(self):\n        return False\n"
        "    def step(self, state, operation):\n"
        "        if operation.f == 'set':\n            return True\n"
        "        return state if operation.result == state else REFUSED\n"
    )
    latch = f"{tmp_path}/mine.py:Latch"
    good = operations(("set", "nil", "nil"), ("read", "nil", "true"))
    assert check(tmp_path, good, "--model", latch).return_value == 0
    assert check(tmp_path, good.replace("true", "false"), "--model", latch).return_value == 1


def files(tmp_path: Path, **texts: str) -> list[str]:
    for name, text in texts.items():
        (tmp_path / f"{name}.edn").write_text(text)
    return [str(tmp_path / f"{name}.edn") for name in texts]


def checked(*arguments: str) -> Result:
    return CliRunner().invoke(check_command, ["--model", "register", *arguments], standalone_mode=False)


GOOD, BAD = STALE % "2", STALE % "1"


def test_a_broken_file_leaves_the_others_their_verdicts(tmp_path: Path) -> None:
    good, broken, bad = files(tmp_path, good=GOOD, broken="{:process 0", bad=BAD)
    found = checked(good, broken, bad)
    assert found.return_value == 1, "a violation comes before wrong input"
    assert f"{good}: history: linearizable" in found.stdout
    assert f"{bad}: history: not linearizable" in found.stdout
    assert found.stderr.startswith(f"wrackline: {broken}, line 1: no EDN")
    assert found.stderr.count("\n") == 1
    assert (
        "2 objects in 3 files: 1 linearizable, 1 not linearizable; 1 of the files could not be"
        in found.stdout
    )
    assert checked(good, broken).return_value == 2
    assert checked(good).return_value == 0


def test_a_folder_stands_for_its_histories(tmp_path: Path) -> None:
    run = tmp_path / "store" / "etcd" / "20260101T000000"
    run.mkdir(parents=True)
    (run / "history.edn").write_text(BAD)
    (run / "results.edn").write_text("{:valid? true}")
    (run.parent / "latest").symlink_to(run)
    found = checked(str(tmp_path / "store"), str(run.parent / "latest" / "history.edn"))
    assert (found.return_value, found.output.count("not linearizable")) == (1, 1), "it is judged once"
    flat = tmp_path / "flat"
    flat.mkdir()
    files(flat, a=GOOD, b=BAD)
    assert "2 objects in 2 files" in checked(str(flat)).output


def test_of_many_keys_those_in_order_are_counted(tmp_path: Path) -> None:
    written = [("write", f"[{key} 1]", f"[{key} 1]") for key in range(30)]
    text = operations(*written, ("read", "[7 nil]", "[7 9]"))
    found = check(tmp_path, text, "--model", "register", "--independent")
    assert found.output.count(": linearizable (exact") == 20
    assert "9 more objects: linearizable" in found.output
    assert "key 7: not linearizable" in found.output


def test_machines_get_json(tmp_path: Path) -> None:
    bad, broken = files(tmp_path, bad=BAD, broken="[")
    found = checked("--json", "--by", "search", bad, broken)
    said = orjson.loads(found.stdout)
    assert (said["exit_code"], said["jvms"]) == (1, 0)
    [verdict] = said["files"][0]["verdicts"]
    assert (verdict["answer"], verdict["by"], verdict["stuck"]["operation"]["at"]) == ("invalid", "search", 6)
    assert verdict["stuck"]["states"][0]["waiting"][0]["value"] == 1
    assert "no EDN" in said["files"][1]["wrong"]


def test_what_was_decided_before_ctrl_c_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good, second = files(tmp_path, good=GOOD, second=GOOD)
    judge = Judge.judge

    def stopped(self: Judge, file: Judged, told: Callable[[Verdict], None]) -> None:
        if file.file == second:
            raise KeyboardInterrupt
        judge(self, file, told)

    monkeypatch.setattr(Judge, "judge", stopped)
    found = checked(good, second)
    assert (found.return_value, f"{good}: history: linearizable" in found.stdout) == (130, True)
    assert "stopped; this is what was decided until then" in found.stderr


needs_jvm = pytest.mark.skipif(
    not available(), reason="no classpath with Knossos and Elle (WRACKLINE_JVM_CLASSPATH)"
)


def hard(key: int, writers: int = 26) -> str:
    """So many writes that never return, and a read of what nobody wrote: a search tries all their orders."""
    lines = [
        f"{{:process {100 * key + n} :type :invoke :f :write :value [{key} {n}]}}" for n in range(writers)
    ]
    lines += [
        f"{{:process {100 * key + 99} :type :{kind} :f :cas :value [{key} [{n} {n + 1}]]}}"
        for n in (*range(5), 77)
        for kind in ("invoke", "ok")
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.slow
@needs_jvm
def test_one_jvm_is_asked_about_all_keys_and_another_only_after_one_that_was_ended(tmp_path: Path) -> None:
    text = operations(*[("cas", f"[{key} [nil 1]]", f"[{key} [nil 1]]") for key in (1, 2)])
    asked = ["--model", "cas-register", "--independent", "--by", "knossos", "--json"]
    found = orjson.loads(check(tmp_path, text, *asked).stdout)
    assert (found["jvms"], [one["answer"] for one in found["files"][0]["verdicts"]]) == (1, ["valid"] * 2)
    found = orjson.loads(check(tmp_path, hard(3) + text, *asked, "--deadline", "2").stdout)
    late, *others = found["files"][0]["verdicts"]
    assert (late["answer"], late["why"]) == ("unknown", "no answer within 2 s; that JVM was ended")
    assert (found["jvms"], [one["answer"] for one in others]) == (2, ["valid"] * 2)
    assert found["exit_code"] == 3


@pytest.mark.slow
@needs_jvm
def test_knossos_as_referee(tmp_path: Path) -> None:
    found = check(tmp_path, BAD, "--model", "register", "--by", "both")
    assert (found.return_value, "Knossos says invalid" in found.output) == (1, True)
    found = check(tmp_path, BAD, "--model", "register", "--by", "knossos")
    assert "when the object holds 2, none of these can be next: :read 1 of process 2" in found.output


@pytest.mark.slow
@needs_jvm
def test_knossos_judges_registers_in_transactions(tmp_path: Path) -> None:
    asked = ["--model", "multi-register", "--by", "both"]
    wrote = ("txn", "[[:w :x 1] [:r :y nil]]", "[[:w :x 1] [:r :y nil]]")
    found = check(tmp_path, operations(wrote, ("txn", "[[:r :x nil]]", "[[:r :x 1]]")), *asked)
    assert (found.return_value, "Knossos says valid" in found.output) == (0, True)
    bad = operations(wrote, ("txn", "[[:r :x nil] [:r :y nil]]", "[[:r :x 1] [:r :y 2]]"))
    found = check(tmp_path, bad, *asked)
    assert (found.return_value, "Knossos says invalid" in found.output) == (1, True)
    found = check(tmp_path, bad, *asked[:2], "--by", "knossos")
    assert "when the object holds {x: 1, y: nil}, none of these can be next: :txn" in found.output
    first = operations(("txn", "[[:r :x nil] [:r :y nil]]", "[[:r :x nil] [:r :y 2]]"))
    found = check(tmp_path, first, *asked, "--initial", '{"y": 2}')
    assert (found.return_value, "Knossos says valid" in found.output) == (0, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("by", "reader", "writer"), [((), 2, 1), pytest.param(("--by", "elle"), 1, 2, marks=needs_jvm)]
)
def test_why_each_transaction_comes_before_the_next(
    tmp_path: Path, by: tuple[str, ...], reader: int, writer: int
) -> None:
    asked = ("--model", "list-append", *by)
    lost = """{:process 0 :type :invoke :f :txn :value [[:append :x 1]]}
{:process 0 :type :ok :f :txn :value [[:append :x 1]]}
{:process 1 :type :invoke :f :txn :value [[:r :x nil]]}
{:process 1 :type :ok :f :txn :value [[:r :x []]]}
{:process 1 :type :invoke :f :txn :value [[:r :x nil]]}
{:process 1 :type :ok :f :txn :value [[:r :x [1]]]}"""
    found = check(tmp_path, lost, *asked)
    assert (found.return_value, "1 G-single-item-realtime" in found.output) == (1, True)
    assert f"(rw): T{reader} read nil of key x, and T{writer} appended 1 to it" in found.output
    assert f"(realtime): T{writer} had completed before T{reader} was invoked" in found.output
    said = orjson.loads(check(tmp_path, lost, *asked, "--json").stdout)
    [anomaly] = [one for one in said["files"][0]["verdicts"][0]["anomalies"] if one["examples"]]
    [rw] = [one for one in anomaly["examples"][0]["links"] if one["kind"] == "rw"]
    assert anomaly["type"] == "G-single-item-realtime"
    assert (rw["key"], rw["value"], rw["next_value"]) == ("x", None, 1)
    aborted = lost.replace(":ok :f :txn :value [[:append", ":fail :f :txn :value [[:append")
    found = check(tmp_path, aborted, *asked)
    assert "1 G1a\n    T1 read 1 of key x, which T2 wrote, and T2 failed\n" in found.output
    seen_twice = lost.replace("[1]", "[1 1]")
    found = check(tmp_path, seen_twice, *asked)
    assert (found.return_value, "read an element of key x more than once: [1 1]" in found.output) == (1, True)


ONLY_FAULTS = b"{:process :nemesis :type :info :f :kill :value nil}"


@pytest.mark.parametrize(
    ("model", "content", "said"),
    [
        ("register", b"\xff\xfe\x00", "UTF-16"),
        ("register", b"{:a \xff}", "is no UTF-8"),
        ("register", b"[" * 100_000 + b"]" * 100_000, "nested"),
        ("register", ONLY_FAULTS, "there is no operation of a client"),
        ("list-append", ONLY_FAULTS, "there is no operation of a client"),
    ],
)
def test_what_is_no_history_is_one_line(tmp_path: Path, model: str, content: bytes, said: str) -> None:
    file = tmp_path / "history.edn"
    file.write_bytes(content)
    found = CliRunner().invoke(check_command, ["--model", model, str(file)], standalone_mode=False)
    assert found.return_value == 2, found.output
    assert said in found.stderr
    assert found.stderr.count("\n") == 1
