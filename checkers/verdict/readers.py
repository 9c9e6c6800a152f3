"""Readers against each other: where one lacked what others have, it was asked again by another way.

Where the second reading found what the first lacks, the reader slipped and not the system: in that partition
what rests on the first reading is no evidence. Where it did not, the first is confirmed.
"""

from __future__ import annotations

from collections.abc import Iterator

from wrackline.checkers.inputs.final_reads import SecondReading
from wrackline.checkers.inputs.runs import Place, Run
from wrackline.checkers.verdict.anomaly import Anomaly, Promise
from wrackline.checkers.verdict.wording import listed, partition_name
from wrackline.history.offsets import spelt

SLIPPED = "a reader slipped here: another one found what it lacks"


def slips(run: Run) -> list[str]:
    """A sentence for each, with both facts."""
    return [_slip(place, one) for place, one in _each(run) if one.found]


def has_slipped(run: Run, anomaly: Anomaly, place: Place | None) -> bool:
    """Tells whether findings of this anomaly in a partition (None: in any) rest on a reader that slipped.
    Without the final read nobody knows which offsets are empty, so no order of the log can be judged."""
    by_final = anomaly.rests_on_final_read or anomaly.breaks is Promise.LINEARIZABLE_READS
    return any(
        one.found and place in (None, at) and (anomaly.rests_on_replicas if one.host else by_final)
        for at, one in _each(run)
    )


def unserved(run: Run) -> list[str]:
    """A sentence for each partition whose leader gave to neither reader what replicas hold."""
    return [
        f"{partition_name(place)}: {listed(holders)} hold {spelt(one.lacked)}, and the leader gave neither "
        "of two readers a record there"
        for place, one in _each(run)
        if not (one.host or one.problem or one.found)
        and (holders := [who for who in one.witnesses if who in run.nodes.values()])
    ]


def _each(run: Run) -> Iterator[tuple[Place, SecondReading]]:
    for place, readings in sorted(run.second.items()):
        for one in readings:
            yield place, one


def _slip(place: Place, one: SecondReading) -> str:
    name = partition_name(place)
    offsets, witnesses = spelt(one.found), listed(one.witnesses)
    if one.host:
        return (
            f"the first reader of the log of {name} on {one.host} lacks {offsets}, and a second reader found "
            f"records there in the same files; {witnesses} had told of them"
        )
    return (
        f"the final read of {name} lacks {offsets}, and its leader gave a second reader records there; "
        f"{witnesses} had told of them"
    )
