"""The page of ``wrackline check --report``: one file that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from markupsafe import Markup

from wrackline.checkers.exact.judgement import Answer
from wrackline.harness.check.drawings import elle_cycle, object_states
from wrackline.harness.check.formatting import answer, figures, headline
from wrackline.harness.check.results import Judged, Verdict, exit_code
from wrackline.harness.report.read.files import replace_file
from wrackline.history.wording import plural
from wrackline.pages.template import Templates

_MOST_IN_ORDER: Final = 200
_MOST_DRAWN: Final = 50
_WORDS: Final = {0: ("in order", "pass"), 1: ("violation", "violation")}
_CLASSES: Final = {Answer.VALID: "expected", Answer.INVALID: "violation", Answer.UNKNOWN: "allowed"}


def write_page(path: Path, files: Sequence[Judged]) -> Path:
    """Raises OSError."""
    return replace_file(path, page(files).encode("utf-8", "replace"))


def page(files: Sequence[Judged]) -> str:
    word, cls = _WORDS.get(exit_code(files), ("undecided", "inconclusive"))
    every = [(file.file, verdict) for file in files for verdict in file.verdicts]
    in_order = [f"{file}: {headline(one)}" for file, one in every if one.answer is Answer.VALID]
    return _TEMPLATES.render(
        "check.html.j2",
        word=word,
        cls=cls,
        what=files[0].file if len(files) == 1 else f"{len(files)} files",
        headline=_headline([verdict.answer for _, verdict in every]),
        wrong=[file.wrong for file in files if file.wrong],
        objects=[each for each in every if each[1].answer is not Answer.VALID][:_MOST_DRAWN],
        classes=_CLASSES,
        in_order=in_order[:_MOST_IN_ORDER],
        more_in_order=max(0, len(in_order) - _MOST_IN_ORDER),
    )


def _headline(answers: Sequence[Answer]) -> str:
    bad, unknown = answers.count(Answer.INVALID), answers.count(Answer.UNKNOWN)
    undecided = [f"{unknown} undecided"] if unknown else []
    return ", ".join([f"{bad} of {plural(len(answers), 'object')} not in order", *undecided])


def _decided(verdict: Verdict) -> str:
    """Who decided, and about how many operations."""
    return headline(verdict).rpartition("(")[2].removesuffix(")")


def _bars(verdict: Verdict) -> Markup | None:
    if not verdict.around:
        return None
    culprits = {one.at for problem in verdict.problems[:1] for one in problem.operations}
    if (stuck := verdict.stuck) is None:
        return object_states(verdict.around, culprits)
    at = stuck.operation.at
    return object_states(verdict.around, {*culprits, at}, stuck.order, at)


_TEMPLATES: Final = Templates(
    "wrackline.harness.check",
    "wrackline.harness.report",
    answer=answer,
    bars=_bars,
    cycle=lambda example, kind: elle_cycle(kind, example.transactions, example.links),
    decided=_decided,
    figures=figures,
)
