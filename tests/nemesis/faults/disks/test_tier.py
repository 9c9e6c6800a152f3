"""Faults of the remote tier are proved by its order and its journal, both as a host shows them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from tests.nemesis.doubles import context
from wrackline.fleets.netns.spec import NetnsSpec
from wrackline.nemesis.faults.disks.tier import NOTHING, TierSpec
from wrackline.nemesis.faults.steps import FaultError, ProbeLog, Proof, StepResult
from wrackline.systems.kafka.spec import KafkaSpec
from wrackline.systems.kafka.tier import Tier

BARE = context("n1", "n2")
SCENE = replace(BARE, targets=tuple(replace(one, shared="/shared") for one in BARE.targets))
LOST = "1764 f1 lost copy log-0 120 239 5000\n1765 f1 slow fetch log-0 0 119 4000\n"


def proof(
    mode: str, *, active: str, final: str, journal: Sequence[str], control: str = NOTHING, **settings: Any
) -> tuple[Proof, str]:
    """The proof and the residue when both hosts show the same order."""
    fault = TierSpec(fault="tier", mode=mode, **settings).build()  # type: ignore[arg-type]
    steps = fault.commands(SCENE)

    def said(part: Sequence[Any], *texts: str) -> list[StepResult]:
        return [StepResult(step, text) for step, text in zip(part, texts, strict=True)]

    log = ProbeLog(
        active=said(steps.probe, active, active),
        final=said(steps.probe, final, final),
        undo=said(steps.undo, *journal),
        control=said(steps.control, control, control),
    )
    return fault.prove(SCENE, log), fault.residue(SCENE, log)


def test_what_the_tier_has_lost_is_damage_of_every_broker_and_the_proof_names_the_tier() -> None:
    result, left = proof("lost", active="lost 1 copy", final="lost 1 copy", journal=["", LOST])
    assert result.proved
    assert not left
    assert "the tier, not Kafka, has lost log-0 120 to 239" in result.text
    file = {"tier/log-0/00000000000000000120.log": 5000}
    assert result.damaged == {"n1": file, "n2": file, "n3": file}, "the controller's host has no log"


@pytest.mark.parametrize(
    ("active", "final", "journal"),
    [
        (NOTHING, NOTHING, LOST),
        ("lost 1 copy", NOTHING, LOST),
        ("lost 1 copy", "lost 1 copy", ""),
        ("lost 1 copy", "lost 1 copy", LOST.replace(" lost ", " stored ")),
    ],
    ids=["no order", "ended before its end", "no call met it", "other calls alone"],
)
def test_an_order_that_was_not_there_or_that_nobody_met_proves_nothing(
    active: str, final: str, journal: str
) -> None:
    result, _ = proof("lost", active=active, final=final, journal=["", journal])
    assert not result.proved
    assert not result.damaged or "by its journal" not in result.text


def test_an_order_that_is_still_there_is_what_is_left_of_the_fault() -> None:
    slow = "slow 2000 copy,fetch,delete"
    result, left = proof(
        "slow", active=slow, final=slow, journal=[LOST.replace("lost", "slow"), ""], control=slow
    )
    assert result.proved
    assert "1 copy, 1 fetch calls met it" in result.text
    assert left == "the tier still has an order for n1, n2"


def test_settings_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValidationError, match="fetch cannot be lost; what can: copy"):
        TierSpec(fault="tier", mode="lost", calls=("fetch",))  # type: ignore[arg-type]
    fault = TierSpec(fault="tier")
    assert fault.refusal(NetnsSpec(), KafkaSpec(tier=Tier())) is None
    assert fault.refusal(NetnsSpec(), KafkaSpec()) == (
        "tier needs a remote tier of ours: say system.tier, of Apache Kafka from 3.9 on"
    )
    with pytest.raises(FaultError, match="n1 has no folder that hosts share"):
        fault.build().commands(BARE)
