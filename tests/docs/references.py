"""What prose names and the repository does not have: codes, sections, files, functions, links, anchors.

Prose is every Markdown page, every specification in ``suites/``, of Python comments and docstrings, and of
the golden tables of rules their comments. ``problems(root)`` reads text only: it imports nothing of what it
looks at.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tests.docs.pages import Page, prose_of_python
from wrackline.plugins.registry import Group

HOMES = {
    **dict.fromkeys("ZRKHCB", "docs/protocol.md"),
    **dict.fromkeys("IQ", "docs/invariants.md"),
}
"""Letter of a code -> the page on which each code of that letter is a row with an anchor."""
FOLDERS = (
    *(
        "broker",
        "simulator",
        "harness",
        "nemesis",
        "workloads",
        "checkers",
        "proving",
        "history",
        "fleets",
        "systems",
        "plugins",
        "wrackline",
        "zookeeper",
    ),
    *("ansible", "results", "suites", "tests", "benchmarks", "docs"),
)
"""Where a path that is named in prose begins."""
PACKAGES = FOLDERS[:12]
ENDINGS = (".parquet", ".wal", ".log", ".broken", ".json", ".html", ".yaml")
"""A file of a run, ``history.parquet``, is no module."""
NOT_NAMES = ("broker.address.", "broker.version.", "zookeeper.session.", "zookeeper.yml")
"""Settings of librdkafka and Kafka, and a playbook, that begin as our packages do."""
GROUPS = frozenset(group.value for group in Group)
"""Of entry points: they are no modules."""
NOT_CODES = {"I32", "I64", "B00"}
"""Words that look like codes: two number types, and the code of a bug that a test makes up."""

MADE_UP = Path("tests/docs/test_references.py")
"""Its texts name what is not there, on purpose."""

_CODE = re.compile(r"(?<![\w.])(?<![a-z]-)(?:[A-Z]\d\d(?![\w%])|C\d(?![\w+]))")
_RANGE = re.compile(r"(?<![\w.-])([A-Z])(\d\d)`?\s?(?:-|–|to)\s?`?\1(\d\d)(?!\w)")
_PAGE = re.compile(r"(?<![\w/.])(?:[\w.-]+/)*[\w-]+\.md\b")
_LISTED = re.compile(
    r"(?:conflicts? |sections? )?(?:"
    r"(?P<first>\d+(?:\.\d+)*)(?:(?:-|–| to )(?P<last>\d+(?:\.\d+)*))?(?![\w%])"
    r"|(?P<code>[A-Z]\d\d?)(?:(?:-|–| to )[A-Z]\d\d)?(?!\w)"
    r'|"(?P<heading>[^"]+)")'
)
_SEPARATOR = re.compile(r"(?:#[\w-]+)?[`)]{0,2}(?:,| and|:)?\s+(?:and )?")
_ALONE = re.compile(r"(?<!\w)sections?\s+(?P<number>\d+(?:\.\d+)*)")
_IN_BRACKETS = re.compile(r"\((?P<number>\d\.\d+(?:\.\d+)?)(?=\)|, [a-z])")
_FIXED_IN = re.compile(r"(?:KAFKA-\d+|KIP-\d+|Kafka),? ?$")
_STEP = re.compile(r"(?<![\w.-])(?P<number>2\.\d{1,2}\.\d)(?!\w|\.\d)")
_OF_A_PROGRAM = re.compile(r"(?:(?:[Kk]afka|version:?|clients?|librdkafka) |version=)$")
_PATH = re.compile(
    rf"(?<![\w/.<~-])(?:\./)?(?P<path>(?:{'|'.join(FOLDERS)})/[\w./*-]*[\w/*])(?:::(?P<name>\w+(?:\.\w+)*))?"
)
_FILE = re.compile(r"`(?P<file>[\w-]+\.(?:py|md|yaml))`")
_DOTTED = re.compile(rf"`(?P<dotted>(?:{'|'.join(PACKAGES)})(?:\.\w+)+)(?:\(\))?`")
_LINK = re.compile(r"(?<!!)\[[^\]\n]*(?:\n[^\]\n]*)?\]\((?P<target>[^)\s]+)\)")
_PLACEHOLDER = re.compile(r"(?:^|/)[A-Z][A-Z_]+(?:/|\.|$)|\.\.\.|\*\*")


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is named and is not there."""

    file: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.text}"


@dataclass
class Repository:
    root: Path
    _pages: dict[Path, Page] = field(default_factory=dict)
    _definitions: dict[Path, frozenset[str]] = field(default_factory=dict)

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """All that is in the repository, relative to its root; no output of runs, nothing hidden."""
        inside = (file for folder in FOLDERS for file in (self.root / folder).rglob("*") if file.is_file())
        at_root = (file for file in self.root.glob("*.md"))
        relative = (file.relative_to(self.root) for file in (*at_root, *inside))
        return tuple(sorted(file for file in relative if not _is_output(file)))

    @cached_property
    def names(self) -> frozenset[str]:
        return frozenset(file.name for file in self.files)

    def page(self, file: Path) -> Page:
        if file not in self._pages:
            self._pages[file] = Page((self.root / file).read_text(encoding="utf-8"))
        return self._pages[file]

    @cached_property
    def codes(self) -> frozenset[str]:
        homes = {Path(home) for home in HOMES.values() if (self.root / home).exists()}
        return frozenset(
            id.upper()
            for home in homes
            for id in self.page(home).ids
            if HOMES.get(id[0].upper()) == str(home)
        )

    def definitions(self, file: Path) -> frozenset[str]:
        """Names that a module defines: ``function``, ``Class``, ``Class.method``, ``CONSTANT``."""
        if file not in self._definitions:
            tree = ast.parse((self.root / file).read_text(encoding="utf-8"))
            self._definitions[file] = frozenset(_defined(tree.body, ""))
        return self._definitions[file]

    def has_dotted(self, dotted: str) -> bool:
        """Whether a package or module has that name, or a module defines what follows its own name."""
        parts = dotted.split(".")
        for length in range(len(parts), 0, -1):
            at = Path(*parts[:length])
            rest = ".".join(parts[length:])
            for module in (at.with_suffix(".py"), at / "__init__.py"):
                if (self.root / module).is_file():
                    return not rest or rest in self.definitions(module)
            if (self.root / at).is_dir():
                return not rest
        return False


def _is_output(file: Path) -> bool:
    made = file.parts[0] == "results" and file.parts[1:2] not in (("README.md",), ("sample",))
    return made or "__pycache__" in file.parts or any(part.startswith(".") for part in file.parts)


def _defined(body: list[ast.stmt], prefix: str) -> Iterator[str]:
    for node in body:
        match node:
            case ast.ClassDef(name=name):
                yield prefix + name
                yield from _defined(node.body, f"{prefix}{name}.")
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.Assign(targets=targets):
                yield from (prefix + target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name
            case ast.ImportFrom(names=names) | ast.Import(names=names):
                yield from (prefix + (alias.asname or alias.name) for alias in names)
            case _:
                pass


def problems(root: Path) -> list[Problem]:
    """All that is named in the repository's prose and is not there, by file and line."""
    repository = Repository(root)
    found: list[Problem] = []
    for file in repository.files:
        if file == MADE_UP:
            continue
        if file.suffix == ".md":
            found += _of_text(repository, file, repository.page(file).text)
        elif file.suffix == ".py":
            found += _of_text(repository, file, prose_of_python((root / file).read_text(encoding="utf-8")))
        elif file.suffix == ".txt" and file.parent.name == "golden":
            found += _of_text(repository, file, _comments((root / file).read_text(encoding="utf-8")))
        elif file.parts[0] == "suites":
            found += _of_text(repository, file, (root / file).read_text(encoding="utf-8"))
    found += _homes(repository)
    return sorted(set(found), key=lambda problem: (problem.file, problem.line, problem.text))


def _comments(table: str) -> str:
    """All but the comments is blank, sign for sign."""
    return re.sub(r"^[^#\n]*", lambda found: " " * len(found[0]), table, flags=re.MULTILINE)


def _homes(repository: Repository) -> Iterator[Problem]:
    for home in sorted(set(HOMES.values())):
        if not (repository.root / home).exists():
            yield Problem(home, 1, "the home of codes is not there")
            continue
        ids = repository.page(Path(home)).ids
        for id in sorted({id for id in ids if ids.count(id) > 1}):
            yield Problem(home, 1, f"anchor {id} is there twice")


def _of_text(repository: Repository, file: Path, text: str) -> Iterator[Problem]:
    flat = text.replace("\n", " ")
    for at, problem in (
        *_codes(repository, flat),
        *_sections(repository, file, flat),
        *_paths(repository, flat),
        *(_links(repository, file) if file.suffix == ".md" else ()),
    ):
        yield Problem(str(file), text.count("\n", 0, at) + 1, problem)


Found = Iterator[tuple[int, str]]
"""(where in the text, what is wrong)"""


def _codes(repository: Repository, text: str) -> Found:
    for found in _CODE.finditer(text):
        code = found[0]
        if code in repository.codes or code in NOT_CODES:
            continue
        home = HOMES.get(code[0])
        yield (
            found.start(),
            f"{code} is no row of {home}" if home else f"{code}: no page has codes with {code[0]}",
        )
    for found in _RANGE.finditer(text):
        letter, first, last = found.groups()
        for number in range(int(first) + 1, int(last)):
            if f"{letter}{number:02}" not in repository.codes:
                yield found.start(), f"{found[0]}: {letter}{number:02} is no row of {HOMES.get(letter)}"


def _sections(repository: Repository, file: Path, text: str) -> Found:
    is_page = file.suffix == ".md"
    spoken_for: set[int] = set()
    for named in _PAGE.finditer(text):
        if text.startswith("](", named.end()):
            continue  # the text of a link, whose target says which page it is
        page = _find_page(repository, file, named[0])
        if page is None:
            if not _is_placeholder(named[0]):
                yield named.start(), f"{named[0]}: there is no such page"
            continue
        for at, wanted in _list_after(text, named.end(), spoken_for):
            for problem in _missing(repository.page(page), wanted):
                yield at, f"{page} has no {problem}"
    for alone in _ALONE.finditer(text):
        if alone.start("number") in spoken_for or re.search(r"(KIP-\d+|RFC \d+),? $", text[: alone.start()]):
            continue
        if not is_page:
            yield alone.start(), f"{alone[0]}: of which page?"
        elif alone["number"] not in repository.page(file).sections:
            yield alone.start(), f"{file} has no section {alone['number']}"
    for bare in () if is_page else _STEP.finditer(text):
        if bare.start() not in spoken_for and not _OF_A_PROGRAM.search(text, 0, bare.start()):
            yield bare.start("number"), f"{bare['number']}: of which page?"
    for bracket in () if is_page else _IN_BRACKETS.finditer(text):
        if bracket.start("number") in spoken_for:
            continue
        if not _FIXED_IN.search(text, max(0, bracket.start() - 20), bracket.start()):
            yield bracket.start(), f"({bracket['number']}): of which page?"


def _find_page(repository: Repository, file: Path, named: str) -> Path | None:
    """By its path from the root; a page may name its neighbours by theirs."""
    where = [Path(named)]
    if file.suffix == ".md":
        where.append(Path(str((repository.root / file.parent / named).resolve())))
    for each in where:
        at = each if each.is_absolute() else repository.root / each
        if at.is_file() and at.is_relative_to(repository.root):
            return at.relative_to(repository.root)
    return None


def _list_after(text: str, at: int, spoken_for: set[int]) -> Iterator[tuple[int, re.Match[str]]]:
    """The sections and headings that follow a page's name; codes may stand between them."""
    while (between := _SEPARATOR.match(text, at)) and (wanted := _LISTED.match(text, between.end())):
        if wanted["code"] is None:
            for name in ("first", "last"):
                spoken_for.add(wanted.start(name))
            yield wanted.start(), wanted
        at = wanted.end()


def _missing(page: Page, wanted: re.Match[str]) -> Iterator[str]:
    if heading := wanted["heading"]:
        if not page.has_heading(heading):
            yield f'heading "{heading}"'
        return
    first, last = wanted["first"], wanted["last"]
    if first not in page.sections:
        yield f"section {first}"
    if last is not None:
        whole = last if "." in last else ".".join([*first.split(".")[:-1], last])
        if whole not in page.sections:
            yield f"section {whole}"


def _is_placeholder(path: str) -> bool:
    return _PLACEHOLDER.search(path) is not None and Path(path).name not in ("README.md", "CONTRIBUTING.md")


def _paths(repository: Repository, text: str) -> Found:
    for named in _PATH.finditer(text):
        path, name = named["path"].rstrip("."), named["name"]
        if path.endswith(".md") or _is_placeholder(path) or path.startswith("results/"):
            continue  # pages are looked up by _sections
        if text.endswith("# new file: ", 0, named.start()):
            continue  # an example says where it goes
        if not _is_there(repository, path):
            yield named.start(), f"{path}: there is no such file or folder"
        elif name is not None and name not in repository.definitions(Path(path)):
            yield named.start(), f"{path} defines no {name}"
    for named in _FILE.finditer(text):
        if (
            named["file"] not in repository.names
            and not _is_placeholder(named["file"])
            and named["file"][-3:] == ".py"
        ):
            yield named.start(), f"{named['file']}: no file has that name"
    for named in _DOTTED.finditer(text):
        if named["dotted"].startswith(NOT_NAMES) or named["dotted"].endswith(ENDINGS):
            continue
        if named["dotted"] not in GROUPS and not repository.has_dotted(named["dotted"]):
            yield named.start(), f"{named['dotted']}: there is no such module, or it does not define that"


def _is_there(repository: Repository, path: str) -> bool:
    at = repository.root / path
    if "*" in path:
        return any(repository.root.glob(path))
    if at.exists() or (not at.suffix and at.with_suffix(".py").exists()):
        return True
    return bool(re.fullmatch(r"\d{4}", at.name)) and any(
        at.parent.glob(f"{at.name}-*")
    )  # a decision by its number


def _links(repository: Repository, file: Path) -> Found:
    for link in _LINK.finditer(
        re.sub(r"`[^`\n]*`", lambda code: " " * len(code[0]), repository.page(file).unfenced)
    ):
        target, _, anchor = link["target"].partition("#")
        if re.match(r"[a-z]+:", target):
            continue
        at = (repository.root / file.parent / target).resolve() if target else repository.root / file
        if not at.exists() or not at.is_relative_to(repository.root):
            yield link.start(), f"link to {target}: there is no such file"
            continue
        if not anchor or at.suffix != ".md":
            continue
        if anchor not in repository.page(at.relative_to(repository.root)).anchors:
            yield link.start(), f"link to {link['target']}: there is no such anchor"
