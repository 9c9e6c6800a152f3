"""Historic bugs (protocol.md section 4): each class replaces one rule by its wrong version.

A defect is a subclass of a class of rules with one method overridden. ``apply`` puts it in front of whatever
the profile has, so defects combine with profiles and with each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any

from broker.defects.replication import (
    IsrNoLeso,
    NoDivergenceCheck,
    NoMaximalIsr,
    ShrinkBeforeCommit,
    TruncateToHighWatermark,
)
from broker.rules.profile import Rules

REGISTRY: dict[str, type] = {
    "trunc_hw": TruncateToHighWatermark,
    "no_divergence_check": NoDivergenceCheck,
    "no_maximal_isr": NoMaximalIsr,
    "shrink_before_commit": ShrinkBeforeCommit,
    "isr_no_leso": IsrNoLeso,
}


class UnknownDefect(ValueError):
    """No defect of this name, or none that concerns the rules at hand."""


def apply(rules: Rules, names: Iterable[str]) -> Rules:
    """The rules with these defects in them. Raises UnknownDefect."""
    wanted = list(dict.fromkeys(names))
    for name in wanted:
        if name not in REGISTRY:
            raise UnknownDefect(f"no defect {name!r}; there are: {', '.join(sorted(REGISTRY))}")
    changed: dict[str, Any] = {}
    used: set[str] = set()
    for slot in fields(rules):
        current = type(getattr(rules, slot.name))
        mine = [name for name in wanted if _concerns(REGISTRY[name], current)]
        if mine:
            bases = (*(REGISTRY[name] for name in mine), current)
            changed[slot.name] = type("+".join(base.__name__ for base in bases), bases, {})()
            used.update(mine)
    if idle := [name for name in wanted if name not in used]:
        raise UnknownDefect(f"these defects replace no rule of this profile: {', '.join(idle)}")
    return replace(rules, **changed)


def _concerns(defect: type, rule: type) -> bool:
    """Does the defect override a method of this rule's family?"""
    return any(base in rule.__mro__ for base in defect.__bases__ if base is not object)
