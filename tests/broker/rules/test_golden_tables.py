"""Every rule decides as its golden table says, and a bug that replaces a rule fails a row of its table."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.broker.rules.decisions import SWITCHES, TABLES, decided
from tests.broker.rules.golden_tables import FOLDER, Row, read, rows, shown
from wrackline.broker.defects import REGISTRY, UnknownDefect, apply
from wrackline.broker.rules.profile import Rules, profile

ROOT = Path(__file__).parents[3]
OF_ZOOKEEPER = ROOT / "zookeeper" / "rules.py"
FILES = sorted([*(ROOT / "broker" / "rules").rglob("[a-z]*.py"), OF_ZOOKEEPER])
ROWS = rows()
CHANGES = (ROOT / "tests" / "broker" / "defects" / "decisions.txt").read_text(encoding="utf-8")
ELSEWHERE = {
    "isr.has_committed": "isr.may_join",
    "isr.has_former_terms": "isr.may_join",
    "isr.is_recent": "isr.may_join",
    "isr.from_the_future": "isr.verdict",
    "isr.is_outdated": "isr.verdict",
    "isr.is_malformed": "isr.verdict",
    "isr.ineligible": "isr.verdict",
    "isr.is_active": "isr.verdict",
    "isr.has_epoch": "isr.verdict",
    "election.elect": "election.change",
    "election.elect_uncleanly": "election.change",
    "earlier_profiles.elect": "earlier_profiles.change",
    "eligible.after_min_isr_change": "eligible.min_isr_changed",
    "eligible.record_of": "eligible.min_isr_changed",
    "eligible.if_new": "eligible.min_isr_changed",
    "truncation.diverges": "truncation.on_fetch",
    "truncation.on_divergence": "truncation.on_fetch",
    "reassign.has_min_isr": "reassign.completes",
    "rebalance.preferred": "rebalance.may_prefer",
    "topics.cluster_config_error": "topics.config_error",
    "earlier_profiles.cluster_config_error": "earlier_profiles.config_error",
    "raft.up_to_date": "raft.grants",
    "raft.grants_vote": "raft.grants",
    "raft.forgotten": "raft.grants",
    "profile.at": SWITCHES,
    "profile.kip966": SWITCHES,
    "profile.kraft35": SWITCHES,
    "profile.kip101": SWITCHES,
    "zookeeper.zk08": SWITCHES,
    "zookeeper.zk08_kip101": SWITCHES,
    "profile.profile": SWITCHES,
}
"""Part of a decision -> the table of the whole decision."""


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_rule_decides_as_the_table_says(row: Row) -> None:
    assert shown(decided(row, profile)) == row.right, row.comment


# --- every rule has a table ------------------------------------------------------------------------------


def name_tables(file: Path) -> str:
    """Returns the name of the golden file of a file of rules."""
    return "zookeeper" if file == OF_ZOOKEEPER else file.stem


def decisions(file: Path) -> Iterator[str]:
    """Public functions, and public methods of the classes of rules. Values that rules are asked with decide
    nothing: their properties are not here."""
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        match node:
            case ast.FunctionDef(name=name) if not name.startswith("_"):
                yield f"{name_tables(file)}.{name}"
            case ast.ClassDef(name=kind, body=body) if kind.endswith("Rules") or file.stem in OTHER_CLASSES:
                for part in body:
                    if isinstance(part, ast.FunctionDef) and not part.name.startswith("_"):
                        yield f"{name_tables(file)}.{part.name}"


OTHER_CLASSES = ("earlier_profiles",)
"""Files whose classes of rules are not called so."""
DECIDED = sorted({name for file in FILES for name in decisions(file)})


@pytest.mark.parametrize("file", FILES, ids=name_tables)
def test_every_file_of_rules_has_its_tables(file: Path) -> None:
    assert (FOLDER / f"{name_tables(file)}.txt").exists()


def test_every_decision_has_a_table() -> None:
    tables = {row.name for row in ROWS}
    assert [name for name in DECIDED if ELSEWHERE.get(name, name) not in tables] == []
    assert [name for name in ELSEWHERE if name not in DECIDED] == []


def test_there_is_no_table_that_nobody_runs_and_none_without_rows() -> None:
    assert {row.name for row in ROWS} == {*TABLES, SWITCHES}


def test_every_switch_is_in_the_table_of_profiles() -> None:
    told = [row.facts["switch"] for row in ROWS if row.name == SWITCHES]
    assert told == list(profile("kip966").switches.__dataclass_fields__)


# --- the tables can fail -----------------------------------------------------------------------------------


def with_defect(name: str) -> Callable[[str], Rules]:
    """The rules of a profile with the defect in them, where it concerns the profile."""

    def rules(of: str) -> Rules:
        try:
            return apply(profile(of), [name])
        except UnknownDefect:
            return profile(of)

    return rules


def replaced(defect: type) -> set[str]:
    """The files of the rules that a defect overrides; that of the switches when it overrides none."""
    ours = [base for base in defect.__mro__ if base.__module__.startswith("wrackline.broker.defects")]
    overridden = {name for base in ours for name, member in vars(base).items() if callable(member)}
    files = {
        name_tables(file)
        for base in defect.__mro__
        if overridden & vars(base).keys() and (file := Path(inspect.getfile(base)).resolve()) in FILES
    }
    return files or {SWITCHES.partition(".")[0]}


@pytest.mark.parametrize("name", REGISTRY)
def test_a_bug_fails_the_row_that_is_there_for_it(name: str) -> None:
    """Of the tables of the rule that it replaces, a row whose comment names it by its code."""
    defect = REGISTRY[name]
    text = " ".join((defect.__doc__ or "").split())
    codes = re.findall(r"\bB\d\d\b", text) or re.findall(r"protocol\.md \d\.\d+|\bH\d\d\b", text)
    assert codes
    rules = with_defect(name)
    mine = [row for row in ROWS if row.file in replaced(defect)]
    wrong = [row for row in mine if shown(decided(row, rules)) != row.right]
    assert wrong, f"no row of {replaced(defect)} notices it"
    assert [row for row in wrong if any(code in row.comment for code in codes)], [str(row) for row in wrong]


@pytest.mark.parametrize("name", REGISTRY)
def test_a_bug_decides_as_it_is_written_down_and_changes_no_other_row(name: str) -> None:
    rules = with_defect(name)
    decisions = ((row, shown(decided(row, rules))) for row in ROWS)
    assert [line for line in CHANGES.splitlines() if line.startswith(f"{name} ")] == [
        "  ".join((name, row.name, *row.facts.values(), "->", *decision))
        for row, decision in decisions
        if decision != row.right
    ]


# --- the reader --------------------------------------------------------------------------------------------


def test_a_row_that_does_not_fit_its_columns_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_text("== t\na  b  ->  c\n1  2  ->  3  # why\n1  ->  3\n")
    with pytest.raises(ValueError, match=r"x\.txt:4: \['1', '->', '3'\] do not fit"):
        list(read(file))
    file.write_text("# head\n\n== t\na  b  ->  c\n1  2  ->  3  # why\n")
    assert list(read(file)) == [Row("x", "t", 5, {"a": "1", "b": "2"}, ("3",), "why")]
