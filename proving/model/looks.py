"""The model's looks at promises of liveness (docs/anomalies.md section 6): things stand still, and move again
before their bound is over, or for a reason."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from wrackline.history.model import CONTROL, LIVENESS
from wrackline.proving.model.columns import TOPIC, Block, one_event
from wrackline.proving.model.drawing import BEGIN_NS

PROMISES = (
    "crash",
    "failed-start",
    "offline-partition",
    "under-replicated",
    "endless-reassignment",
    "unavailable-coordinator",
    "refused-operation",
    "hanging-transaction",
    "stuck-lso",
    "late-fencing",
    "leader-on-failed-disk",
)
BOUND_LOOKS = 3
"""A thing that is the same from one look to the third after it has broken its promise."""
SUBJECT = f"{TOPIC}-0"


def looks(seed: int, count: int, end_ns: int) -> Iterator[Block]:
    """Rows of the runner, one for each promise at each look."""
    step = (end_ns - BEGIN_NS) // (count + 1)
    for promise in PROMISES:
        random, stands = Random(f"{seed}/{promise}"), 0
        for number in range(1, count + 1):
            # What stands still moves after one more look at the latest.
            stands += number % 2 or random.random() < 0.5
            look: dict[str, object] = {"promise": promise, "look": number}
            if random.random() < 0.4:
                extra = {**look, "kept": True}
            else:
                extra = {**look, **stands_still(f"at {stands}", BOUND_LOOKS * step / 1e9)}
            yield one_event(BEGIN_NS + number * step, CONTROL, "info", LIVENESS, extra, TOPIC, partition=0)


def stands_still(still: str, bound_s: float) -> dict[str, object]:
    """``extra`` of a look that shows that something does not move."""
    return {
        "kept": False,
        "subject": SUBJECT,
        "state": f"it is {still}",
        "still": still,
        "bound_s": bound_s,
        "excuse": "",
    }
