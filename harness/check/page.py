"""The page of ``wrackline check --report``: one file that needs no network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup

from wrackline.checkers.exact.judgement import Answer
from wrackline.harness.check.drawings import Bar, Step, Transaction, elle_cycle, object_states
from wrackline.harness.check.elle import transaction
from wrackline.harness.check.formatting import answer, figures, headline
from wrackline.harness.check.results import Anomaly, Example, Judged, Operation, Verdict, exit_code
from wrackline.harness.report.read.files import replace_file
from wrackline.history.wording import plural
from wrackline.pages.template import Templates

_MOST_IN_ORDER: Final = 200
_MOST_DRAWN: Final = 50
_WORDS: Final = {0: ("in order", "pass"), 1: ("violation", "violation")}
_CLASSES: Final = {Answer.VALID: "expected", Answer.INVALID: "violation", Answer.UNKNOWN: "allowed"}
_TEMPLATES: Final = Templates("wrackline.harness.check", "wrackline.harness.report")


@dataclass(frozen=True, slots=True)
class _Page:
    word: str
    cls: str
    what: str
    headline: str
    wrong: list[str]
    objects: list[dict[str, Any]]
    in_order: list[str]
    more_in_order: int


def write_page(path: Path, files: Sequence[Judged]) -> Path:
    """Raises OSError."""
    return replace_file(path, page(files).encode("utf-8", "replace"))


def page(files: Sequence[Judged]) -> str:
    word, cls = _WORDS.get(exit_code(files), ("undecided", "inconclusive"))
    every = [(file, verdict) for file in files for verdict in file.verdicts]
    wrong = [(file, one) for file, one in every if one.answer is not Answer.VALID]
    in_order = [(file, one) for file, one in every if one.answer is Answer.VALID]
    names = [file.file for file in files]
    content = _Page(
        word,
        cls,
        names[0] if len(names) == 1 else f"{len(names)} files",
        _headline([verdict.answer for _, verdict in every]),
        [file.wrong for file in files if file.wrong],
        [_object(file, one) for file, one in wrong[:_MOST_DRAWN]],
        [f"{file.file}: {headline(one)}" for file, one in in_order[:_MOST_IN_ORDER]],
        max(0, len(in_order) - _MOST_IN_ORDER),
    )
    return _TEMPLATES.render("check.html.j2", page=content)


def _headline(answers: Sequence[Answer]) -> str:
    bad, unknown = answers.count(Answer.INVALID), answers.count(Answer.UNKNOWN)
    undecided = [f"{unknown} undecided"] if unknown else []
    return ", ".join([f"{bad} of {plural(len(answers), 'object')} not in order", *undecided])


def _object(file: Judged, verdict: Verdict) -> dict[str, Any]:
    stuck = verdict.stuck
    return {
        "name": f"{file.file}: {verdict.name}",
        "answer": answer(verdict),
        "cls": _CLASSES[verdict.answer],
        "decided": headline(verdict).rpartition("(")[2].removesuffix(")"),
        "why": verdict.why,
        "note": verdict.note,
        "figures": figures(verdict),
        "stuck": stuck.operation.line if stuck is not None else "",
        "ordered": stuck is not None and bool(stuck.order),
        "bars": _bars(verdict),
        "states": [
            {"holds": one.holds, "placed": _chips(one.placed), "waiting": _chips(one.waiting)}
            for one in (stuck.states if stuck is not None else ())
        ],
        "problems": [
            {
                "rule": f"{one.rule}: {one.about}" if one.about else one.rule,
                "lines": [op.line for op in one.operations],
            }
            for one in verdict.problems
        ],
        "anomalies": [_anomaly(one) for one in verdict.anomalies],
        "refuted": verdict.refuted,
    }


def _chips(operations: Sequence[Operation]) -> list[str]:
    return [f"{one.words} of process {one.process}" for one in operations]


def _bars(verdict: Verdict) -> Markup | None:
    if not verdict.around:
        return None
    stuck, order = verdict.stuck, [] if verdict.stuck is None else verdict.stuck.order
    culprits = {one.at for problem in verdict.problems[:1] for one in problem.operations}
    if stuck is not None:
        culprits.add(stuck.operation.at)
    known = {one.at: one for one in (*verdict.around, *order)}
    bars = [
        Bar(one.at, one.until, one.process, one.words[1:], one.line, one.outcome, one.at in culprits)
        for one in known.values()
    ]
    return object_states(bars, [one.at for one in order], stuck.operation.at if stuck is not None else None)


def _anomaly(anomaly: Anomaly) -> dict[str, Any]:
    return {
        "type": anomaly.type,
        "count": anomaly.count,
        "examples": [_example(anomaly.type, one) for one in anomaly.examples],
    }


def _example(kind: str, example: Example) -> dict[str, Any]:
    named = [(f"T{at}", one) for at, one in enumerate(example.transactions, 1)]
    drawing = None
    if example.links:
        boxes = [Transaction(name, transaction(one), one.line) for name, one in named]
        drawing = elle_cycle(kind, boxes, [Step(one.kind, one.sentence) for one in example.links])
    return {
        "drawing": drawing,
        "steps": [f"T{one.before} < T{one.after} ({one.kind}): {one.sentence}." for one in example.links],
        "words": example.words,
        "sentence": example.sentence,
        "transactions": [f"{name}: {one.line}, {one.outcome}" for name, one in named],
    }
