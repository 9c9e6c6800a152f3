"""Mutants: every one compiles, does what it says, and a few are run against the search and the tests."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from click.testing import CliRunner

from wrackline.mutation import REACHED, mutated, mutations_of
from wrackline.simulator.cli import simulate
from wrackline.simulator.mutants.command import all_mutations, equivalents, outcome_of

ROOT = Path(__file__).parents[3]
SOURCE = """
def f(a, b, known):
    if a <= b and known:
        known.clear()
    return g(a, b) + 1
"""


def changes(source: str) -> dict[str, str]:
    """Change -> the changed source, without the calls that tell that the place was reached."""
    result = {}
    for mutation in mutations_of("f.py", source):
        plain = ast.unparse(mutated(source, mutation.number)).replace(f"{REACHED}() or ", "")
        result[f"{mutation.line} {mutation.change}"] = ast.unparse(ast.parse(plain))
    return result


def test_each_change_is_what_it_says() -> None:
    made = changes(SOURCE)
    assert "if a < b and known:" in made["3 <= becomes <"]
    assert "if a > b and known:" in made["3 <= becomes >"]
    assert "if a <= b or known:" in made["3 and becomes or"]
    assert "if known:" in made["3 without 'a <= b'"]
    assert "if False:" in made["3 its branch is never taken"]
    assert "known.clear()" not in made["4 is left out"]
    assert "g(b, a)" in made["5 arguments 1 and 2 in the other order"]
    assert "g(a, b) - 1" in made["5 becomes 'g(a, b) - 1'"]
    assert "g(a, b) + 2" in made["5 1 becomes 2"]
    assert all(text != SOURCE for text in made.values())


@pytest.mark.parametrize(
    ("call", "swaps"), [("min(a, b)", 0), ("max(a, b, c)", 0), ("max(a, b, key=g)", 1), ("g(a, b)", 1)]
)
def test_the_least_of_two_is_the_same_in_either_order(call: str, swaps: int) -> None:
    made = changes(f"x = {call}\n")
    assert len([change for change in made if "in the other order" in change]) == swaps


def test_docstrings_messages_and_annotations_are_left_alone() -> None:
    source = 'def f(a: int = 1) -> str:\n    """Text 1."""\n    raise ValueError(f"{a + 1}")\n'
    assert mutations_of("f.py", source) == []


def test_every_mutation_of_the_broker_compiles() -> None:
    known = all_mutations()
    assert len(known) > 5_000
    for mutation in known[::37]:
        compile(mutated((ROOT / mutation.file).read_text(), mutation.number), mutation.file, "exec")


def test_every_equivalent_mutant_is_one_that_there_is() -> None:
    drawn = {
        (file, mutation.source, mutation.change)
        for file in {file for file, _, _ in equivalents()}
        for mutation in mutations_of(file, (ROOT / file).read_text())
    }
    assert set(equivalents()) <= drawn


@pytest.mark.parametrize(
    ("file", "line", "change", "against"),
    [
        ("broker/rules/replication/watermark.py", "", "< becomes >=", {"cpu_s": 60}),
        (
            "broker/rules/replication/produce.py",
            "",
            "< becomes <=",
            {"cpu_s": 60, "tests": ["tests/broker/rules"]},
        ),
        ("broker/core/dispatcher.py", "replica.log_changed(event)", "is left out", {"cpu_s": 60}),
        (
            "broker/rules/placement/reassign.py",
            "return not set(old.replicas)",
            "or becomes and",
            {"cpu_s": 60},
        ),
    ],
)
def test_a_mutant_is_noticed(file: str, line: str, change: str, against: dict[str, object]) -> None:
    first = next(each for each in all_mutations(file) if each.change == change and line in each.source)
    outcome = outcome_of(first, dict(against))
    assert outcome.oracle, outcome.line
    assert outcome.reached or outcome.oracle == "tests"


def test_the_command_names_survivors_and_writes_a_page(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    arguments = [
        "mutants",
        "--only",
        "rules/replication/isr",
        "--count",
        "2",
        "--against",
        "drills",
        "--cpu",
        "20",
    ]
    result = CliRunner().invoke(simulate, [*arguments, "--html", str(page), "--at-least", "3"])
    assert result.exit_code == 1, result.output
    assert "that is fewer than 3" in result.output
    assert "of 2 mutants were noticed" in result.output
    assert "Mutants that survived" in page.read_text()


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_the_search_notices_a_fifth_of_the_mutants() -> None:
    arguments = ["mutants", "--count", "20", "--cpu", "20", "--at-least", "4"]
    result = CliRunner().invoke(simulate, arguments)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["--mutant", "broker/x.py:1"], "there is no mutant"), (["--only", "xyz"], "no file has")],
)
def test_a_wrong_name_is_refused(arguments: list[str], said: str) -> None:
    result = CliRunner().invoke(simulate, ["mutants", *arguments])
    assert result.exit_code == 2
    assert said in result.output
