"""What trials share."""

from __future__ import annotations

import pytest

from tests.nemesis.sabotage.sabotages import Sabotage
from wrackline.nemesis import restoration, stage


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    """What is not undone stays so: half a second is enough to know it. A fault as it is has all its time."""
    callspec = getattr(request.node, "callspec", None)
    if callspec is not None and callspec.params.get("sabotage", Sabotage.NONE) is not Sabotage.NONE:
        monkeypatch.setattr(restoration, "WAIT_S", 0.5)
        monkeypatch.setattr(stage, "UNDO_PAUSE_S", 0.05)
