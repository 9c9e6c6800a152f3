"""Findings side by side are one part of an incident; there are few parts, however many findings there are.
Between which changes of leader the cause of a part lies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.checkers.good_runs import PLACE, SECOND, good_run
from tests.checkers.incident_parts import part
from wrackline.checkers.checks.registry import anomalies
from wrackline.checkers.findings import FINDINGS, Meaning
from wrackline.checkers.inputs.cited import Cited
from wrackline.checkers.inputs.runs import Place, Sample
from wrackline.checkers.inputs.table import Ints
from wrackline.checkers.verdict.contracts import Rule, Ruling
from wrackline.checkers.verdict.excuses import Excuse, Excuses
from wrackline.checkers.verdict.incidents.causes import limit
from wrackline.checkers.verdict.incidents.joining import joined
from wrackline.checkers.verdict.incidents.parts import MOST_PARTS, Part, cited_indexes, parts_of
from wrackline.checkers.verdict.leadership import Leadership

FORBIDDEN = Rule(Ruling(Meaning.VIOLATION, "no configuration allows it"))


def parts(
    folder: Path,
    offsets: Sequence[int | None],
    batch: int,
    change_ns: int = 0,
    *,
    spans: Sequence[tuple[int | None, int | None]] = (),
    at_end: bool = False,
    rule: Rule = FORBIDDEN,
) -> list[Part]:
    """Of lost writes at these offsets, each citing an event of its own, a second after the one before."""
    number = len(offsets)
    columns = {
        "test_id": ["x"] * number,
        "anomaly": ["lost-write"] * number,
        "topic": ["log"] * number,
        "partition": [0] * number,
        "offset": offsets,
        "value": list(range(number)),
        "operations": [[one] for one in range(number)],
        "where": [None] * number,
        "explanation": [f"finding {one}" for one in range(number)],
        "since_ns": [since for since, _ in spans] or [None] * number,
        "until_ns": [until for _, until in spans] or [None] * number,
    }
    file = folder / "findings.parquet"
    pq.write_table(pa.table(columns, schema=FINDINGS), file, row_group_size=batch)
    indexes = cited_indexes(file)
    assert indexes.tolist() == list(range(number))
    no = np.zeros(number, dtype=bool)

    def changes(_: Place, times: Ints) -> Ints:
        return (times >= change_ns).astype(np.int64) if change_ns else np.zeros_like(times)

    cited = Cited(indexes, (indexes + 1) * 1_000_000_000, no | at_end, no, no, indexes)
    return parts_of(file, cited, anomalies(), lambda *_: rule, changes)


def test_a_hole_parts_them(tmp_path: Path) -> None:
    found = parts(tmp_path, [3, 4, 5, 9, None, None], 100)
    assert [(one.first, one.last, one.count) for one in found] == [
        (3, 5, 3),
        (9, 9, 1),
        (None, None, 1),
        (None, None, 1),
    ]
    assert [one.explanation for one in found] == ["finding 0", "finding 3", "finding 4", "finding 5"]
    assert (found[0].first_ns, found[0].last_ns) == (1_000_000_000, 3_000_000_000)


def test_a_change_of_leader_parts_them(tmp_path: Path) -> None:
    found = parts(tmp_path, [3, 4, 5, 6], 100, change_ns=3_000_000_000)
    assert [(one.first, one.last) for one in found] == [(3, 4), (5, 6)]


def test_too_many_holes_part_nothing_from_there_on(tmp_path: Path) -> None:
    offsets = list(range(0, 6 * MOST_PARTS, 3))
    found = parts(tmp_path, offsets, 500)
    assert len(found) <= MOST_PARTS
    assert sum(one.count for one in found) == len(offsets)
    assert found[-1].last == offsets[-1]


@pytest.mark.parametrize(
    ("names", "after"),
    [
        (("lost-write", "vanished-read", "lost-committed", "lost-tombstone", "excess-deletion"), 2),
        (("inconsistent-offset", "stale-read", "stale-end", "watermark-regression", "not-linearizable"), 1),
    ],
)
def test_the_cause_lies_after_the_last_time_that_all_was_right(names: Sequence[str], after: int) -> None:
    """Two leaders came; the first event is between them, the last behind both."""
    assert {name for name in anomalies() if _cause(name) == (after, 2)} == set(names)


def _cause(name: str) -> tuple[int, int]:
    run = good_run()
    led = ((1, 1), (10, 2), (30, 3))
    run.cluster[PLACE] = [Sample(at * SECOND, node, node, (1, 2, 3), (1, 2, 3)) for at, node in led]
    part = _at_seven(name)
    limit(Leadership(run), part)
    return part.after, part.until


@pytest.mark.parametrize(
    ("one", "other", "incidents"),
    [
        ("lost-write", "inconsistent-offset", 1),
        ("lost-write", "group-skip", 2),
        ("group-skip", "forgotten-commit", 1),
        ("lost-write", "read-cycle", 2),
        ("write-cycle", "read-cycle", 1),
    ],
)
def test_offsets_of_groups_and_of_cycles_say_nothing_of_the_records_there(
    one: str, other: str, incidents: int
) -> None:
    assert len(joined([_at_seven(one), _at_seven(other)], lambda _: None)) == incidents


def test_an_incident_lies_where_the_log_was_cut_whatever_was_found_first() -> None:
    """What transactions show has no partition, or one where nothing was cut, and cites the same sends."""
    torn, other, lost = (_at_seven(name) for name in ("torn-transaction", "write-cycle", "lost-write"))
    torn.place = torn.first = torn.last = None
    other.place, other.first, other.last = ("log", 5), 900, 900
    for number, one in enumerate((torn, other, lost)):
        one.links, one.found_at = frozenset({3}), number
    lost.after, lost.until = 1, 2
    [found] = joined([torn, other, lost], lambda _: None)
    assert [one.anomaly.name for one in found.parts] == ["torn-transaction", "write-cycle", "lost-write"]
    assert (found.place, found.first, found.last) == (PLACE, 7, 7)
    assert (found.after, found.until) == (1, 2)


def _at_seven(name: str) -> Part:
    """A finding at offset 7 that cites events at 22 and 50 s."""
    return part(name, PLACE, 7, 7, 22 * SECOND, 50 * SECOND)


EXCUSED = Rule(
    Ruling(Meaning.VIOLATION, "nothing excuses it"),
    Excuses.of({"it is excused": [Excuse(3 * SECOND, 4 * SECOND, "something happened")]}),
)


@pytest.mark.parametrize(
    ("spans", "at_end", "meanings"),
    [
        pytest.param((), False, "VVAAVV", id="when it cites something, one second after the other"),
        pytest.param([(0, 2)] * 6, False, "VVAAAA", id="from when its check says on"),
        pytest.param([(6, 9)] * 6, False, "AAAAVV", id="until when its check says"),
        pytest.param([(6, None)] * 6, False, "AAAAVV", id="until the end"),
        pytest.param([(0, 1)] * 6, True, "AAAAAA", id="until the end, as a final read shows it"),
        pytest.param((), True, "AAAAAA", id="a final read alone, and nobody knows since when"),
    ],
)
def test_what_a_finding_means_is_decided_by_its_time(
    spans: Sequence[tuple[int, int | None]], at_end: bool, meanings: str, tmp_path: Path
) -> None:
    """Something excuses what was between 3 and 4 s; the findings cite events at 1, 2, ... 6 s."""
    in_ns = [(since * SECOND, None if until is None else until * SECOND) for since, until in spans]
    found = parts(tmp_path, [1, 2, 3, 4, 5, 6], 100, spans=in_ns, at_end=at_end, rule=EXCUSED)
    told = "".join(part.count * ("A" if part.meaning is Meaning.ALLOWED else "V") for part in found)
    assert told == meanings
    assert sum(count for part in found for count in part.rulings.values()) == 6
