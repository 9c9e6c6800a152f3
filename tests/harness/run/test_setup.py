"""What the judge is told of a run before it begins."""

from __future__ import annotations

import pytest

from wrackline.harness.run.forecast import forecast
from wrackline.harness.specification.spec import parse

STRATEGY = "configs: {unclean.recovery.strategy: %s}"
MEANWHILE = f"nemesis.schedule=[{{at_s: 1, duration_s: 2, fault: change-config, {STRATEGY}}}]"


@pytest.mark.parametrize(
    ("settings", "contract"),
    [
        ((), "acks-all"),
        (("topic.configs={unclean.recovery.strategy: manual}",), "acks-all"),
        (("topic.configs={unclean.recovery.strategy: Aggressive}",), "acks-all-unclean"),
        (("system.config={unclean_recovery_strategy: aggressive}",), "acks-all-unclean"),
        (
            (
                "system.config={unclean_recovery_strategy: proactive}",
                "topic.configs={unclean.recovery.strategy: none}",
            ),
            "acks-all",
        ),
        ((MEANWHILE % "proactive",), "acks-all-unclean"),
        ((MEANWHILE % "manual",), "acks-all"),
    ],
)
def test_a_recovery_strategy_that_is_ever_proactive_permits_loss(
    settings: tuple[str, ...], contract: str
) -> None:
    assert forecast(parse("{name: x}", "x.yaml", settings=settings)).contract.name == contract
