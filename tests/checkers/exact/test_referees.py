"""Our search says what Knossos and Porcupine say: of the golden histories, of the histories that they keep in
their own repositories, and, where Knossos is installed, of many more that are drawn."""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import orjson
import pytest

from tests.checkers.exact.recorded import of_knossos, recorded
from tests.checkers.exact.referees import OF_OBJECTS, answer
from tests.checkers.goldens import LINEARIZABLE, Golden, calls, load, make
from wrackline.checkers.exact.search.search import Answer, search
from wrackline.checkers.jvm.bridge import Bridge
from wrackline.checkers.jvm.calls import Model
from wrackline.checkers.models import load as load_model

PORCUPINE = os.environ.get("WRACKLINE_PORCUPINE_DATA")
KNOSSOS = os.environ.get("WRACKLINE_KNOSSOS_DATA")
VERDICTS = Path(__file__).parents[1] / "golden/porcupine.json"
DECIDED = ("valid", "invalid")


@pytest.mark.parametrize("model", OF_OBJECTS)
def test_the_search_says_what_knossos_and_porcupine_said(model: str) -> None:
    golden = [one for one in load(LINEARIZABLE) if one["model"] == model]
    for referee in ("knossos", "porcupine"):
        asked = [one for one in golden if one[referee] in DECIDED]
        if asked:
            assert min(Counter(one[referee] for one in asked).values()) >= 5
        assert [one for one in asked if answer(one) != one[referee]] == []


@pytest.mark.skipif(PORCUPINE is None, reason="WRACKLINE_PORCUPINE_DATA names no test_data of Porcupine")
def test_the_search_says_what_porcupine_says_of_all_that_it_recorded() -> None:
    verdicts = orjson.loads(VERDICTS.read_bytes())
    found = {
        one.name: str(search(one.operations, load_model(one.model, **one.settings)).answer)
        for one in recorded(Path(PORCUPINE or ""))
    }
    assert found == verdicts


@pytest.mark.skipif(KNOSSOS is None, reason="WRACKLINE_KNOSSOS_DATA names no data of Knossos")
def test_the_search_says_what_knossos_says_of_all_that_it_keeps() -> None:
    kept = list(of_knossos(Path(KNOSSOS or "")))
    assert len(kept) > 100
    for one, verdict in kept:
        assert search(one.operations, load_model(one.model, **one.settings)).answer == verdict, one.name


@pytest.mark.nightly
@pytest.mark.timeout(1_800)
@pytest.mark.parametrize("model", OF_OBJECTS)
def test_the_search_says_what_knossos_says_of_thousands(model: str, bridge: Bridge) -> None:
    said: Counter[str] = Counter()
    for number in range(2_000):
        rng = random.Random(f"{model} {number}")
        # Of more operations of a queue, Knossos runs into its deadline again and again.
        golden = make(Model(model), rng, rng.randint(4, 10 if model == Model.FIFO_QUEUE else 16))
        if model == Model.UNORDERED_QUEUE:  # Knossos cannot tell what a dequeue of unknown outcome took
            golden["ops"] = [op for op in golden["ops"] if op[0] == "enqueue" or op[3] is not None]
        if model == Model.LOG:
            repeat_values(golden)
        theirs = bridge.linearizable(calls(golden), deadline_s=20).answer
        ours = answer(golden)
        said[theirs if ours is not Answer.UNKNOWN else "undecided by us"] += 1
        assert Answer.UNKNOWN in (theirs, ours) or theirs == ours, golden
    assert min(said[word] for word in DECIDED) >= 100, said
    assert said["undecided by us"] <= 20, said


def repeat_values(log: Golden) -> None:
    """Three values instead of a new one for each append. Those that were made are from 100 on."""
    for f, value, _, _ in log["ops"]:
        if f == "append":
            value[0] %= 3
        elif f == "read":
            for record in value["records"]:
                record[1] = record[1] % 3 if record[1] >= 100 else record[1]
