"""Jepsen's own unit histories of its Kafka checker: what it finds is found here, or the documents say why
not."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.history.jepsen.drawn import Drawn, histories
from tests.history.jepsen.words import assign, imported
from wrackline.history.jepsen.exports import Keys, kafka, rows
from wrackline.history.jepsen.imports import ImportFailed, Settings, import_history
from wrackline.history.jepsen.text import write

pytestmark = pytest.mark.timeout(1_800)

DRAWN = histories()
DOCUMENT = Path(__file__).parents[3] / "docs" / "jepsen-histories.md"
HERE = {
    "lost-write": {"lost-write"},
    "unseen": {"unseen", "lost-write"},
    "G1a": {"aborted-read"},
    "inconsistent-offsets": {"inconsistent-offset"},
    "duplicate": {"duplicate", "wrong-offset"},
    "poll-skip": {"poll-skip"},
    "int-poll-skip": {"poll-skip"},
    "nonmonotonic-poll": {"poll-rewind"},
    "int-nonmonotonic-poll": {"poll-rewind"},
    "nonmonotonic-send": {"session-order"},
    "int-nonmonotonic-send": {"batch-order"},
    "precommitted-read": {"precommitted-read"},
    "G0": {"write-cycle"},
    "G1c": {"read-cycle", "write-read-cycle"},
}
"""Jepsen's anomaly -> ours, one of which must be found. It tells of ``int-send-skip`` and never minds."""
CONSEQUENCES = {"not-linearizable", "append-order", "write-cycle"}
"""Found beside the anomalies that Jepsen has a name for; it draws no edges between writes unless it is asked
to."""


def agrees(one: Drawn) -> bool:
    named = [HERE[name] for name in one.jepsen if name != "int-send-skip"]
    found = set(one.ours)
    return all(names & found for names in named) and found <= CONSEQUENCES.union(*named)


@pytest.mark.parametrize("one", DRAWN, ids=lambda one: one.name)
def test_our_verdict_differs_from_jepsens_only_where_a_reason_is_given(one: Drawn) -> None:
    assert agrees(one) == (not one.why)


def test_the_document_has_every_history() -> None:
    def row(one: Drawn) -> str:
        ours = ", ".join(f"{count} {name}" for name, count in one.ours.items())
        return f"| {one.name} | {', '.join(one.jepsen) or '–'} | {ours or '–'} | {one.why} |"

    text = DOCUMENT.read_text()
    table = text[text.index("| history | Jepsen | here | why they differ |") :].split("\n\n")[0]
    assert table.splitlines()[2:] == [row(one) for one in DRAWN]


def test_a_history_without_a_send_or_a_poll_is_not_judged(tmp_path: Path) -> None:
    """Jepsen calls it invalid."""
    with pytest.raises(ImportFailed, match="no :send, :poll or :txn in it"):
        imported(tmp_path, assign(0, "x"))


def said(verdict: dict[str, Any]) -> dict[str, int]:
    """Findings by anomaly, and ``unseen``: acknowledged records past all that was polled, by the condition's
    own words."""
    found = Counter(
        {
            one["anomaly"]: one["count"]
            for one in verdict["anomalies"]
            if one["count"] and one["anomaly"] != "unproven-write"
        }
    )
    [final] = [one["detail"] for one in verdict["conditions"] if one["name"] == "final read complete"]
    unseen = sum(int(number) for number in re.findall(r"(\d+) records acknowledged", final))
    return dict(found + Counter({"unseen": unseen}))


def write_runs(folder: Path) -> list[Path]:
    """Each history, and the same exported and imported once more."""
    runs: list[Path] = []
    for number, one in enumerate(DRAWN):
        first = imported(folder / str(number), one.ops)
        text = folder / f"{number}.edn"
        write(kafka(rows(first), Keys()), text, "edn")
        runs += [first, import_history(text, folder / "again", Settings(str(number)))]
    return runs


def test_what_jepsen_finds_in_its_own_histories(
    judged_runs: Mapping[Path, dict[str, Any]],
) -> None:
    """And the same again when each is exported and imported once more."""
    verdicts = list(judged_runs.values())
    expected = {one.name: dict(one.ours) for one in DRAWN}
    for some in (verdicts[::2], verdicts[1::2]):
        assert {one.name: said(verdict) for one, verdict in zip(DRAWN, some, strict=True)} == expected
    assert not any(verdict["verdict"] == "pass" for verdict in verdicts)
    runs = list(judged_runs)
    ends = {one.name: transaction_ends(run) for one, run in zip(DRAWN, runs[::2], strict=True)}
    nobodys = {"transactions": 2, "ends_asked": 0, "committed": 2, "aborted": 0, "unknown": 0}
    assert ends["G1c: by reads"] == {"": nobodys}, "Jepsen does not tell whose they are"
    assert {} in ends.values(), "not all of them have transactions"


def transaction_ends(run_dir: Path) -> dict[str, dict[str, int]]:
    """What was counted of them, by transactional id."""
    found: dict[str, dict[str, int]] = orjson.loads((run_dir / "metrics.json").read_bytes())[
        "transaction_ends"
    ]
    return found
