"""Each rule of the model of a share group is needed: without it, one of the cases is answered otherwise."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pytest

from tests.checkers.models.cases import CASES, what_is_said
from wrackline.checkers.models import share
from wrackline.checkers.models.share import Share

RULES = {
    "the limit": ("if self._limit and (count or", "if False and (count or"),
    "a release at the limit archives": ("ARCHIVED if archives and last else AVAILABLE", "AVAILABLE"),
    "who is final is given to nobody": (
        "        if state.status in FINAL.values():\n            return REFUSED\n",
        "",
    ),
    "who is final is not final again": ("(lock.ended or not self._timed) else REFUSED", "True else state"),
    "without faults the lock ends with what is done": (
        "state.locks if self._faults else frozenset()",
        "state.locks",
    ),
    "nobody answers for what it was not given": (
        "        if lock is None:\n            return REFUSED",
        "        if lock is None:\n            return state",
    ),
    "counts rise by one": ("elif held or count not in (None, expected):", "elif held:"),
    "a lock keeps others out": ("elif held or count", "elif count"),
    "a lock keeps others out under faults": ("(held and grown) or", ""),
    "what was released is on record": (" or (count is not None and count <= state.recorded)", ""),
    "an unknown release is not on record": ("if has_it and operation.outcome is Outcome.OK:", "if has_it:"),
    "an end is that of its delivery": ('lock.deliveries != _number(operation, "count") or', ""),
    "a renewed lock lasts longer": (" or lock.renewals > renewals", ""),
    "a confirmation proves nothing after the lock": (
        "self._faults and (lock.ended or",
        "self._faults and (False or",
    ),
    "a delivery that was taken back proves nothing": ("if state.locks and not grown:", "if False:"),
    "without its end a lock may end at any time": ("== ACQUIRED and self._timed", "== ACQUIRED"),
}


def without(rule: str) -> type[Share]:
    old, new = RULES[rule]
    text = Path(share.__file__).read_text(encoding="utf-8")
    assert text.count(old) == 1, f"{rule}: {text.count(old)}"
    module = ModuleType("share_without_a_rule")
    exec(compile(text.replace(old, new), module.__name__, "exec"), vars(module))
    return vars(module)["Share"]  # type: ignore[no-any-return]


@pytest.mark.parametrize("rule", RULES)
def test_without_a_rule_a_case_is_answered_otherwise(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = without(rule)
    for method in ("step", "_acquired", "_expired", "_let_go", "_without"):
        monkeypatch.setattr(Share, method, vars(model)[method])
    assert [case.asked for case in CASES if case.model == "share" and what_is_said(case) != case.said]
