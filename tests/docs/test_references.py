"""What prose names is there: codes, sections, files, links. What the code has is in the documents."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.docs.pages import Page, prose_of_python
from tests.docs.references import HOMES, problems
from wrackline.checkers.verdict.conditions.conditions import CONDITIONS
from wrackline.simulator.invariants.catalogue import INVARIANTS
from wrackline.simulator.trace_check.quorum_logs import OF_QUORUM

ROOT = Path(__file__).parents[2]


def test_everything_that_the_documents_name_exists() -> None:
    found = problems(ROOT)
    assert not found, "\n".join(map(str, found))


# --- the checker itself, on a small repository that is made up ---------------------------------

PROTOCOL = """# Protocol

## 2. Algorithms

### 2.8 One change

1. The first step.
2. The second step, as in section 2.9.

### 2.9 Recovery

| code | what |
|---|---|
| <a id="k39"></a>K39 | a rule |
| <a id="k40"></a>K40 | another |
| <a id="c7"></a>C7 | a conflict |
"""
GOOD = {
    "docs/protocol.md": PROTOCOL,
    "docs/invariants.md": '| <a id="i05"></a>I05 | Q is not there |\n',
    "broker/rules.py": (
        '"""Rules (docs/protocol.md 2.8.2, K39-K40, C7; I05)."""\n\n'
        "class Rules:\n"
        "    def may_join(self) -> bool:\n"
        '        """By docs/protocol.md 2.8 to\n        2.9, and KAFKA-13091 (3.1)."""\n'
        "        return 'K99' != 'docs'\n"
    ),
    "README.md": "[A rule](docs/protocol.md#k40), `broker/rules.py::Rules.may_join`, `broker.rules.Rules`.\n",
}


def mistakes() -> Iterator[pytest.ParameterSet]:
    """Of each block of the table: the file, what is in it, and what is said of that."""
    for block in (ROOT / "tests/docs/mistakes.txt").read_text(encoding="utf-8").strip().split("\n\n"):
        what, file, *lines, problem = block.splitlines()
        text = "\n".join(lines) + "\n"
        yield pytest.param(file.removeprefix("@ "), text, problem.removeprefix("=> "), id=what)


def make(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


def test_a_good_repository_has_no_problems(tmp_path: Path) -> None:
    assert problems(make(tmp_path, GOOD)) == []


@pytest.mark.parametrize(("file", "text", "problem"), list(mistakes()))
def test_what_is_not_there_is_noticed(tmp_path: Path, file: str, text: str, problem: str) -> None:
    found = problems(make(tmp_path, {**GOOD, file: text}))
    assert problem in [one.text for one in found]
    assert {one.file for one in found} == {file}


def test_a_problem_is_told_with_its_line(tmp_path: Path) -> None:
    found = problems(make(tmp_path, {**GOOD, "broker/x.py": "a = 1\n\n# one\n# two: K77\n"}))
    assert [str(one) for one in found] == ["broker/x.py:4: K77 is no row of docs/protocol.md"]


def test_outputs_of_runs_are_not_read(tmp_path: Path) -> None:
    assert problems(make(tmp_path, {**GOOD, "results/run/notes.md": "K99, [x](y.md)\n"})) == []


def test_a_home_that_is_gone_is_noticed(tmp_path: Path) -> None:
    make(tmp_path, GOOD)
    (tmp_path / "docs/invariants.md").unlink()
    assert "the home of codes is not there" in [one.text for one in problems(tmp_path)]


def test_only_prose_of_python_is_read() -> None:
    source = '"""Doc."""\nx = "K99"\ny: int = 1\n"""Of y."""\nz = f(\n    "docs/a.md"  # why\n)\n'
    prose = prose_of_python(source)
    assert len(prose) == len(source)
    assert prose.split() == ['"""Doc."""', '"""Of', 'y."""', '"docs/a.md"', "why"]


def test_anchors_are_those_that_github_makes() -> None:
    page = Page("# A `b` & c_d\n## 2.1 On (x)\n## 2.1 On (x)\n```\n# no heading\n```\n")
    assert page.anchors == {"a-b--c_d", "21-on-x", "21-on-x-1"}
    assert page.sections == {"2.1"}


# --- the documents against the code ------------------------------------------------------------


def rows(page: str) -> Iterator[list[str]]:
    for line in (ROOT / page).read_text(encoding="utf-8").splitlines():
        if line.startswith("|"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


def registered() -> set[str]:
    """What ``check`` and ``found_by`` register: read, not imported."""
    found = set()
    for module in (ROOT / "checkers" / "anomalies").rglob("*.py"):
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(func=ast.Name(id="check"), args=[ast.Constant(value=str(name)), *_]):
                    found.add(name)
                case ast.Call(func=ast.Name(id="found_by"), args=[_, _, ast.Dict(keys=names)]):
                    found |= {ast.literal_eval(name) for name in names if name is not None}
                case _:
                    pass
    return found


def test_every_anomaly_that_is_looked_for_is_a_row_and_no_other_is() -> None:
    anomalies = {
        found[1] for row in rows("docs/anomalies.md") if (found := re.search(r'<a id="([a-z-]+)">', row[0]))
    }
    assert len(anomalies) > 20
    assert anomalies == registered()


def test_every_promise_is_a_row_with_anomalies_that_break_it() -> None:
    from wrackline.checkers.checks.registry import anomalies  # late: it imports all checks
    from wrackline.checkers.verdict.anomaly import Promise

    said = {row[0].strip("`"): row[1:] for row in rows("docs/anomalies.md") if len(row) == 3}
    assert {promise.name: said[promise.name][1] for promise in Promise} == {
        promise.name: promise.value for promise in Promise
    }
    for promise in Promise:
        named = re.findall(r"`([a-z-]+)`", said[promise.name][0])
        assert named
        assert {name: anomalies()[name].breaks for name in named} == dict.fromkeys(named, promise)


def test_what_findings_rest_on_is_what_the_page_says() -> None:
    from wrackline.checkers.checks.registry import checks  # late: as above

    page = " ".join((ROOT / "docs/anomalies.md").read_text(encoding="utf-8").split())

    def named(sentence: str) -> set[str]:
        (found,) = re.findall(sentence, page)
        return set(re.findall(r"`([a-z-]+)`", found))

    by_final_read = named(r"rest on the final read alone \(([^)]*)\) are no evidence")
    assert by_final_read == {one.name for one in checks() if one.rests_on_final_read}
    by_replicas = named(r"no replica was, and (\S+, \S+ and \S+) are `n/a`")
    assert by_replicas == {one.name for one in checks() if one.rests_on_replicas}


def test_every_contract_and_every_condition_of_a_pass_is_a_row() -> None:
    named = {row[0].strip("`") for row in rows("docs/anomalies.md")}
    tree = ast.parse((ROOT / "checkers/verdict/contracts.py").read_text(encoding="utf-8"))
    contracts = set()
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Terms"), args=[ast.Constant(value=str(name)), *_]):
                contracts.add(name)
            case _:
                pass
    assert len(contracts) >= 5
    assert contracts <= named
    files = sorted((ROOT / "checkers/verdict/conditions").glob("*.py"))
    source = "\n".join(file.read_text(encoding="utf-8") for file in files)
    conditions = {*CONDITIONS, *re.findall(r'\bname = "([^"]+)"', source)}
    assert len(conditions) >= 15
    assert conditions <= named


def codes(page: str, letters: str) -> set[str]:
    ids = Page((ROOT / page).read_text(encoding="utf-8")).ids
    return {id.upper() for id in ids if id[0].upper() in letters}


def test_every_mechanism_has_its_row_of_coverage() -> None:
    covered = {row[0] for row in rows("docs/protocol-coverage.md") if re.fullmatch(r"[ZRKH]\d\d", row[0])}
    assert codes("docs/protocol.md", "ZRKH") == covered


def test_of_every_bug_it_is_said_what_shows_it_or_why_nothing_does() -> None:
    page = (ROOT / "docs/known-bugs.md").read_text(encoding="utf-8")
    stories = page.index("\n## Every story, and where it is told\n")
    shown = " ".join(
        re.findall(r"^\| ([^|]*) \|", page[:stories] + page[page.index("\n## ", stories + 1) :], re.M)
    )
    said = set(re.findall(r"\bB\d\d\b", shown))
    assert codes("docs/protocol.md", "B") == said


def test_every_invariant_is_in_the_catalogue_and_has_a_row() -> None:
    of_zookeeper_alone = {"I21", "I22"}
    known = {one.id for one in INVARIANTS} | of_zookeeper_alone | set(OF_QUORUM)
    assert codes("docs/invariants.md", "IQ") == known


def test_every_import_contract_is_told_in_the_architecture() -> None:
    told = " ".join((ROOT / "docs/architecture.md").read_text(encoding="utf-8").split())
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    names = [contract["name"] for contract in settings["tool"]["importlinter"]["contracts"]]
    assert names
    assert [name for name in names if f"**{name}**" not in told] == []


def test_every_page_is_named_on_the_first_page() -> None:
    first = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    named = {page for page in pages if f"({page})" in first}
    assert {
        page for page in pages - named - {"index.md"} if not page.startswith(("decisions/", "examples/"))
    } == set()


def test_every_how_to_leads_to_the_tutorial() -> None:
    how_to = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\n  - How to:\n")[2]
    pages = re.findall(r"([\w/-]+\.md)$", how_to.partition("\n  - Reference:\n")[0], re.M)
    written = [page for page in pages if (ROOT / "docs" / page).is_file()]
    assert len(written) > 20
    assert [page for page in written if "tutorial.md" not in (ROOT / "docs" / page).read_text("utf-8")] == []


def test_codes_are_numbered_without_gaps() -> None:
    for letter, home in HOMES.items():
        numbers = [
            int(id[1:])
            for id in Page((ROOT / home).read_text(encoding="utf-8")).ids
            if id[0] == letter.lower()
        ]
        assert sorted(numbers) == list(range(1, len(numbers) + 1)), f"{letter} in {home}"
