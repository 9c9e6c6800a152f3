"""`wrackline check` with checkers: every case by hand as a file, in EDN and in JSON."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from tests.checkers.jepsen.cases import CASES, UNDECIDED, Case
from tests.checkers.jepsen.events import done
from wrackline.harness.cli.verdicts.check import check_command

LOST = [
    (0, "invoke", "add", 1),
    (0, "ok", "add", 1),
    (0, "invoke", "add", 2),
    (0, "ok", "add", 2),
    (1, "invoke", "read", None),
    (1, "ok", "read", [2]),
]


def edn(value: Any) -> str:
    match value:
        case None:
            return "nil"
        case str():
            return f":{value}"
        case list():
            return "[" + " ".join(map(edn, value)) + "]"
        case Mapping():
            return "{" + ", ".join(f"{edn(key)} {edn(one)}" for key, one in value.items()) + "}"
    return "##NaN" if value != value else str(value)


def maps(events: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    return [
        {
            "process": process,
            "type": kind,
            "f": f,
            "value": value,
            "time": at * 5_000_000,
            **(more[0] if more else {}),
        }
        for at, (process, kind, f, value, *more) in enumerate(events)
    ]


def written(folder: Path, events: list[tuple[Any, ...]], ending: str) -> Path:
    file = folder / f"history.{ending}"
    every = maps(events)
    lines = map(edn, every) if ending == "edn" else (orjson.dumps(one).decode() for one in every)
    file.write_text("\n".join(lines))
    return file


def check(file: Path, *arguments: str) -> Result:
    return CliRunner().invoke(check_command, [*arguments, str(file)], standalone_mode=False)


@pytest.mark.parametrize("ending", ["edn", "jsonl"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.checker}: {case.name}")
def test_each_case_has_its_exit_code(tmp_path: Path, case: Case, ending: str) -> None:
    settings = [f"--set={name}={orjson.dumps(value).decode()}" for name, value in case.settings.items()]
    found = check(written(tmp_path, case.events, ending), "--model", case.checker, *settings)
    assert found.exception is None
    assert found.return_value == (3 if case.rules == UNDECIDED else 1 if case.rules else 0)
    for rule in case.rules:
        assert f"  {rule}: " in found.output or rule == UNDECIDED[0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.checker}: {case.name}")
def test_each_case_is_one_of_several_keys(tmp_path: Path, case: Case) -> None:
    settings = [f"--set={name}={orjson.dumps(value).decode()}" for name, value in case.settings.items()]
    keyed = [
        (process + 100 * (key == 8), kind, f, [key, value], *more)
        for process, kind, f, value, *more in case.events
        for key in (7, 8)
    ]
    found = check(written(tmp_path, keyed, "edn"), "--model", case.checker, "--independent", *settings)
    assert found.exception is None
    assert found.return_value == (3 if case.rules == UNDECIDED else 1 if case.rules else 0)
    assert "key 7: " in found.output
    assert "key 8: " in found.output


def test_what_is_wrong_is_told_with_its_operations(tmp_path: Path) -> None:
    found = check(written(tmp_path, LOST, "edn"), "--model", "final-set")
    assert found.output.splitlines() == [
        "history: not complete (checker, 3 operations)",
        "  lost: 1, which process 0 had added, is not in the last read",
        "    process 0 :add 1 (operation 1 to 2)",
        "    process 1 :read [2] (operation 5 to 6)",
        "  added 2, acknowledged 2, in the last read 1, recovered 0",
    ]


def test_figures_and_problems_are_data(tmp_path: Path) -> None:
    file = written(tmp_path, [*LOST, (1, "invoke", "read", None), (1, "ok", "read", [2, 1])], "edn")
    [verdict] = orjson.loads(check(file, "--model", "set-full", "--json").output)["files"][0]["verdicts"]
    assert verdict["answer"] == "valid"
    assert verdict["figures"] == {
        "added": 2,
        "stable": 2,
        "lost": 0,
        "never read": 0,
        "stale": 1,
        "stable after (ms)": {"0": 0, "0.5": 15, "0.95": 15, "0.99": 15, "1": 15},
    }


def test_many_problems_of_a_rule_are_counted(tmp_path: Path) -> None:
    adds = [(0, kind, "add", value) for value in range(20) for kind in ("invoke", "ok")]
    found = check(
        written(tmp_path, [*adds, (1, "invoke", "read", None), (1, "ok", "read", [])], "edn"),
        "-m",
        "final-set",
    )
    assert found.output.count("  lost: ") == 5
    assert "15 more: lost" in found.output


def test_keys_are_objects_of_their_own(tmp_path: Path) -> None:
    events = [
        (process, kind, f, [key, value])
        for process, (f, key, asked, got) in enumerate(
            [("write", 1, 1, 1), ("write", 2, 5, 5), ("read", 1, None, 1), ("read", 2, None, 4)]
        )
        for kind, value in (("invoke", asked), ("ok", got))
    ]
    found = check(written(tmp_path, events, "edn"), "-m", "causal", "--independent")
    assert found.return_value == 1
    assert "key 1: causal" in found.output
    assert "key 2: not causal" in found.output


def test_total_is_what_all_accounts_have(tmp_path: Path) -> None:
    file = written(tmp_path, [(0, "invoke", "read", None), (0, "ok", "read", {"a": 50, "b": 30})], "edn")
    assert check(file, "-m", "bank-totals", "--total", "80").return_value == 0
    assert check(file, "-m", "bank-totals", "--total", "81").return_value == 1


@pytest.mark.parametrize(("out", "code"), [("empty", 0), ("other", 1)])
def test_a_text_of_json_that_is_put_in_is_no_word_for_empty(tmp_path: Path, out: str, code: int) -> None:
    events = [*done(0, "enqueue", "empty"), *done(0, "dequeue", None, out), *done(0, "drain", None, [])]
    assert check(written(tmp_path, events, "jsonl"), "-m", "total-queue").return_value == code


def test_what_the_server_adds_to_a_value_is_not_known_of_an_unknown_add(tmp_path: Path) -> None:
    known, got = (
        [*done(0, "add", 1, [1, "v1"]), (2, "invoke", "add", 2), (2, "info", "add", 2)],
        [[1, "v1"], [2, "v2"]],
    )
    file = written(tmp_path, [*known, *done(1, "read", None, got)], "edn")
    found = check(file, "-m", "final-set")
    assert found.return_value == 3
    assert "nobody knows what operation 3 put there" in found.output


def test_a_checker_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "small.py").write_text(
        "from wrackline.api import Checker\n\n\n"
        "class Small(Checker):\n"
        '    """No value is above ten."""\n\n'
        '    operations = {"add": "add n"}\n'
        '    promise = "small"\n\n'
        "    def judge(self, operations, found):\n"
        "        for place, one in enumerate(operations):\n"
        "            if one.argument > 10:\n"
        '                found.add("large", f"{one.argument} is above ten", place)\n'
    )
    file = written(tmp_path, [(0, "invoke", "add", 11), (0, "ok", "add", 11)], "edn")
    found = check(file, "-m", f"{tmp_path}/small.py:Small")
    assert found.return_value == 1
    assert "history: not small (checker, 1 operation)" in found.output
    assert "large: 11 is above ten" in found.output


def test_the_page_draws_what_a_checker_found(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert check(written(tmp_path, LOST, "edn"), "-m", "final-set", "--report", str(page)).return_value == 1
    text = page.read_text()
    assert "lost: 1, which process 0 had added, is not in the last read" in text
    assert "<svg" in text
    assert "acknowledged 2" in text


def test_the_list_says_what_each_means() -> None:
    found = CliRunner().invoke(check_command, ["--list"])
    assert found.exit_code == 0
    assert (
        "total-queue (jepsen.checker/total-queue)\n      Each value that was acknowledged comes out"
        in found.output
    )
    assert "--set exactly_once=false" in found.output
    assert "mutex (knossos.model/mutex)" in found.output
    assert "list-append (jepsen.tests.cycle.append/checker)" in found.output
