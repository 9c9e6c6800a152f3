"""What Knossos, Porcupine and Elle said of small histories is what we say; where they are installed, they are
asked."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from tests.checkers.goldens import (
    ELLE,
    INITIAL,
    LINEARIZABLE,
    LOGS,
    Golden,
    as_columns,
    calls,
    check_golden_log,
    load,
    transactions,
)
from wrackline.checkers.exact.judgement import Answer
from wrackline.checkers.exact.queue import check_queue
from wrackline.checkers.exact.register import check_register
from wrackline.checkers.jvm.bridge import Bridge
from wrackline.checkers.jvm.calls import Model, calls_of

GOLDENS = load(LINEARIZABLE)
DECIDED = ("valid", "invalid")


def ours(golden: Golden) -> str:
    table = as_columns(golden)
    is_register = golden["model"] == Model.REGISTER
    found: list[Any] = list(check_register(table, initial=INITIAL) if is_register else check_queue(table))
    return "invalid" if found else "valid"


@pytest.mark.parametrize("model", [Model.REGISTER, Model.FIFO_QUEUE])
@pytest.mark.parametrize("referee", ["knossos", "porcupine"])
def test_the_exact_checks_say_what_the_searches_said(model: Model, referee: str) -> None:
    asked = [one for one in GOLDENS if one["model"] == model and one[referee] in DECIDED]
    said = Counter(one[referee] for one in asked)
    assert min(said[word] for word in DECIDED) >= 15, (
        "the golden histories are too one-sided to prove anything"
    )
    assert [one for one in asked if ours(one) != one[referee]] == []


@pytest.mark.parametrize("model", LOGS)
def test_the_rules_of_a_log_say_what_knossos_said(model: Model) -> None:
    """Whole histories, and some operations of one (as a witness is): placed and unplaced appends, those of
    unknown outcome, reads of records and of whole ranges, ends."""
    asked = [one for one in GOLDENS if one["model"] == model]
    said = Counter(one["knossos"] for one in asked)
    assert min(said[word] for word in DECIDED) >= 30
    assert [one for one in asked if check_golden_log(one) != one["knossos"]] == []
    unknown = [op for one in asked for op in one["ops"] if op[0] == "append" and op[3] is None]
    unplaced = [op for one in asked for op in one["ops"] if op[0] == "append" and op[1][1] is None and op[3]]
    assert min(len(unknown), len(unplaced)) > 60


def test_the_searches_agree_with_each_other() -> None:
    both = [one for one in GOLDENS if one["knossos"] in DECIDED and one["porcupine"] in DECIDED]
    assert len(both) > 300
    assert [one for one in both if one["knossos"] != one["porcupine"]] == []


@pytest.mark.slow
def test_knossos_says_it_again(bridge: Bridge) -> None:
    for golden in GOLDENS[::3]:
        if golden["knossos"] in DECIDED:
            assert bridge.linearizable(calls(golden)).answer == golden["knossos"], golden


@pytest.mark.slow
def test_knossos_confirms_every_witness(bridge: Bridge) -> None:
    confirmed = 0
    for golden in GOLDENS:
        if golden["model"] not in (Model.REGISTER, Model.FIFO_QUEUE):
            continue
        table, model = as_columns(golden), Model(golden["model"])
        contradictions: list[Any] = (
            list(check_register(table, initial=INITIAL))
            if model is Model.REGISTER
            else list(check_queue(table))
        )
        for contradiction in contradictions:
            witness = table.rows(np.array(contradiction.rows))
            assert bridge.linearizable(calls_of(witness, model, initial=INITIAL)).answer is Answer.INVALID, (
                contradiction
            )
            confirmed += 1
    assert confirmed > 40


@pytest.mark.slow
def test_elle_says_it_again(bridge: Bridge) -> None:
    for golden in load(ELLE):
        found = bridge.serializable(golden["model"], transactions(golden))
        assert (found.answer, sorted(found.anomalies)) == (golden["elle"], golden["anomalies"]), golden[
            "name"
        ]


@pytest.mark.slow
def test_a_limit_that_is_hit_is_unknown_and_the_bridge_goes_on(bridge: Bridge) -> None:
    # 200 overlapping writes and reads of a value that was overwritten: far beyond any search.
    rows = [(True, n, n, 1000 + n) for n in range(200)] + [(False, 0, 2000, 2001), (False, 1, 2002, 2003)]
    from wrackline.checkers.exact.operations import columns

    hard, easy = columns(rows), columns(rows[:3])
    found = bridge.linearizable(calls_of(hard, Model.REGISTER, initial=INITIAL), deadline_s=1.0)
    assert found.answer is Answer.UNKNOWN
    assert found.why
    assert bridge.linearizable(calls_of(easy, Model.REGISTER, initial=INITIAL)).answer is Answer.VALID
