"""Each defect changes the decision it is about, and no other."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields

import pytest

from wrackline.broker.defects import REGISTRY, UnknownDefect, apply
from wrackline.broker.model.messages.requests import EpochEndOffset
from wrackline.broker.rules.profile import profile


def test_kip101_v0_takes_the_offset_alone() -> None:
    rules = profile("kip101")
    own, theirs = EpochEndOffset(1, 1), EpochEndOffset(2, 2)
    assert rules.truncation.on_answer(own, theirs, 4) == (1, True)
    assert apply(rules, ["kip101_v0"]).truncation.on_answer(own, theirs, 4) == (2, False)
    with pytest.raises(UnknownDefect, match="kip101_v0"):
        apply(profile("kip966"), ["kip101_v0"])


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_defect_replaces_rules_of_one_kind_and_says_what_and_since_when(name: str) -> None:
    defect = REGISTRY[name]
    text = inspect.getdoc(defect) or ""
    assert f"``{name}``" in text
    assert re.search(r"\b(B\d\d|H\d\d|4\.5|2\.13|2\.15)\b", text), "its place in docs/protocol.md"
    for known in ("kip966", "kraft35", "kip101"):
        rules = profile(known)
        try:
            changed = apply(rules, [name])
        except UnknownDefect:
            continue
        kinds = [s.name for s in fields(rules) if getattr(changed, s.name) != getattr(rules, s.name)]
        assert len(set(kinds) - {"switches", "former"}) <= 1, kinds
        assert kinds
        own = [m for m in vars(defect) if not m.startswith("__")] or ["(inherited)"]
        assert len(own) <= 5, own
        return
    pytest.fail(f"no profile has a rule that {name} replaces")
