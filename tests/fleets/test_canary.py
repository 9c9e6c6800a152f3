"""The numbers of a canary that were reported before a cut and are gone after it prove what the cut took."""

from __future__ import annotations

import pytest

from wrackline.fleets.canary import KEPT_FILES, PER_FILE, RECORD_BYTES, Reported, judge, numbers

S = 1_000_000_000
DECIDED = 100 * S


def reported(count: int, *, last_s: float = 0.05, pace_s: float = 0.1) -> list[Reported]:
    """Numbers 1 to ``count``, the last of them ``last_s`` before the cut was decided."""
    last_ns = DECIDED - int(last_s * S)
    return [Reported(n, last_ns - int((count - n) * pace_s * S)) for n in range(1, count + 1)]


def upto(last: int) -> set[int]:
    return set(range(1, last + 1))


def test_a_cut_that_took_everything_is_proved_and_says_how_much() -> None:
    loss = judge("n1", reported(200), DECIDED, set())
    assert loss.proved
    assert (loss.before_bytes, loss.after_bytes) == (KEPT_FILES * PER_FILE * RECORD_BYTES, 0)
    assert (loss.last_reported, loss.last_there) == (200, None)
    assert loss.reach_s == pytest.approx(4.95)
    assert str(loss) == "canary: 800 of 800 bytes lost, last number reported 200, none is there"


def test_numbers_that_the_canary_had_removed_by_itself_are_not_counted_as_lost() -> None:
    """Reported 204: the files of 151 to 160 and of all before may be gone without any cut."""
    assert judge("n1", reported(204), DECIDED, set(range(161, 205))).lost_bytes == 0
    assert not judge("n1", reported(204), DECIDED, set(range(161, 205))).proved
    assert judge("n1", reported(204), DECIDED, set()).before_bytes == 44 * RECORD_BYTES


def test_a_tail_that_reaches_far_enough_back_is_proof() -> None:
    loss = judge("n1", reported(200), DECIDED, upto(185))
    assert loss.proved
    assert str(loss) == "canary: 240 of 800 bytes lost, last number reported 200, last there 185"


@pytest.mark.parametrize("last_there", [200, 203])
def test_a_cut_that_took_nothing_is_not_proved(last_there: int) -> None:
    """A number may be there that had not been reported yet."""
    loss = judge("n1", reported(200), DECIDED, upto(last_there))
    assert not loss.proved
    assert (loss.lost_bytes, loss.last_there) == (0, 200)
    assert "nothing is gone" in str(loss)


@pytest.mark.parametrize(
    ("last_there", "proved"), [(199, False), (195, False), (191, False), (190, False), (189, True)]
)
def test_what_was_appended_behind_a_sync_is_no_proof(last_there: int, proved: bool) -> None:
    """One sync before the cut: only the numbers since then are gone. A second of them is needed: 0.05 s and
    ten times 0.1 s."""
    loss = judge("n1", reported(200), DECIDED, upto(last_there))
    assert loss.proved is proved, loss
    assert loss.lost_bytes == (200 - last_there) * RECORD_BYTES
    if not proved:
        assert "something synced the disk" in str(loss)


def test_numbers_reported_after_the_decision_to_cut_do_not_count() -> None:
    late = [*reported(200), Reported(201, DECIDED + 1), Reported(202, DECIDED + S)]
    assert judge("n1", late, DECIDED, upto(200)).lost_bytes == 0


def test_a_canary_that_had_fallen_silent_proves_nothing_and_says_why() -> None:
    loss = judge("n1", reported(200, last_s=6.0), DECIDED, set(), "No space left on device")
    assert not loss.proved
    assert str(loss).endswith("it had been silent for 6.0 s before the cut (No space left on device)")
    never = judge("n1", [], DECIDED, set(), "no answer")
    assert not never.proved
    assert str(never) == "canary: it had reported nothing before the cut (no answer)"


def test_a_canary_too_young_to_tell_a_cut_from_a_sync_proves_nothing() -> None:
    loss = judge("n1", reported(8), DECIDED, set())
    assert not loss.proved
    assert "it had reported numbers for 0.75 s only" in str(loss)


def test_only_whole_records_are_numbers() -> None:
    listing = "0123456789abcdef\n000000000000041\n000000000000042\n\0\0\0\0\0\0\n0000000000\n00000000000004"
    assert numbers(listing) == {41, 42}
    assert numbers("000000000000007\n" + "\0" * 16) == {7}
