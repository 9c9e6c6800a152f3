"""Wrong frames made of real ones: whatever they are, a decoder understands them or refuses them in one line.

`benchmarks/broker/fuzz.py` does the same 100,000 times a kind of frame, in processes of its own, and with
real nodes.
"""

from __future__ import annotations

import time

import pytest

from tests.broker.wire.mutations import Readers, cases, mutated

CASES = cases()
FRAMES = [case.frame for of in CASES.values() for case in of]
CLIENTS = {"aiokafka", "franz-go", "java", "kafka-python", "kcat", "librdkafka", "nodes"}
SEED = 1
EACH = 200
BUDGET_S = 12.0


def test_real_clients_and_nodes_are_what_is_mutated() -> None:
    assert {case.source for of in CASES.values() for case in of} == CLIENTS | {"example"}
    recorded = {api for api, of in CASES.items() if any(case.source != "example" for case in of)}
    assert {api for api in CASES if not api.endswith("-answer")} - recorded <= {
        "ControllerRegistration",
        "FetchSnapshot",
        "Heartbeat",
        "LeaveGroup",
        "SaslAuthenticate",
        "SaslHandshake",
        "SyncGroup",
        "UpdateFeatures",
    }


@pytest.mark.parametrize("api", CASES)
def test_what_is_right_is_understood(api: str) -> None:
    readers = Readers()
    for case in CASES[api]:
        # franz-go asks for ApiVersions 5 first and is told what there is.
        assert readers.understood(case, case.frame), f"{api} of {case.source}: {case.frame.hex()}"


def test_mutations_are_made_again_from_seed_and_number() -> None:
    for of in CASES.values():
        assert mutated(of, FRAMES, SEED, 17) == mutated(of, FRAMES, SEED, 17)
    assert len({mutated(CASES["Fetch"], FRAMES, SEED, number)[1] for number in range(EACH)}) > EACH * 0.9


def test_a_wrong_frame_is_understood_or_refused_and_nothing_else() -> None:
    readers = Readers()
    deadline = time.monotonic() + BUDGET_S
    taken = tried = 0
    for number in range(EACH):
        for api, of in CASES.items():
            case, frame = mutated(of, FRAMES, SEED, number)
            try:
                taken += bool(readers.understood(case, frame))
            except Exception as wrong:
                raise AssertionError(f"{api}, seed {SEED}, number {number}: {frame.hex()}") from wrong
            tried += 1
        if time.monotonic() > deadline:
            break
    # A machine under load gets less far: a fifth at least, or this test has become too slow to mean anything.
    assert tried >= EACH * len(CASES) / 5
    assert 0.05 < taken / tried < 0.8, "mutations that only break, or do not break anything, find nothing"
