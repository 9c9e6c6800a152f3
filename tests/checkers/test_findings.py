"""What the judge adds to the sentence of a finding is taken away again where the sentence stands alone."""

from __future__ import annotations

import pytest

from wrackline.checkers.findings import FAULTS_IN_FORCE, NO_FAULT_IN_FORCE, sentence_of

SENTENCE = "Value p3·607 was acknowledged at 1.500 s; no fault was in force. It is gone"


@pytest.mark.parametrize(
    "clause",
    [
        FAULTS_IN_FORCE % ("at that time or later", "kill of n1 at 1.2 s, kill of n2 at 2 s", " and 3 more"),
        NO_FAULT_IN_FORCE % "around that time",
        "",
    ],
)
def test_a_sentence_is_found_again_without_what_is_said_of_faults(clause: str) -> None:
    assert sentence_of(f"{SENTENCE}.{clause}") == SENTENCE
