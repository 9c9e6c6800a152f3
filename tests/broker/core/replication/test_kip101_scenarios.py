"""Golden: the two scenarios of KIP-101 that high-watermark truncation gets wrong
(docs/protocol.md H16, H17; B01, B02).

Each is played with real brokers whose controller is the test, in the profile that asks before it fetches
(KIP-101, KIP-279) and in the one whose fetch carries the epoch (KIP-595), and with the historic rule put
back.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.broker.core.solo import Solo, T, change, log_of
from wrackline.broker.model.types import EpochEntry

PROFILES = ["kip966", "kip101"]
MENDED: tuple[str, ...] = ()
HISTORIC = ("trunc_hw", "no_divergence_check")


def data_loss(profile: str, defects: tuple[str, ...]) -> Solo:
    """H16. A has m1 and m2 and has not heard that m2 is committed; A follows anew, B dies at once, A
    leads."""
    a = Solo(
        1,
        leader=2,
        isr=(1, 2),
        replicas=(1, 2),
        log=log_of([0, 0], value="m"),
        high_watermark=1,
        min_isr=1,
        profile=profile,
        defects=defects,
    )
    a.metadata(change(leader=1, isr=(1,)))
    return a


@pytest.mark.parametrize("profile", PROFILES)
def test_h16_a_committed_message_survives_and_a_new_epoch_begins_behind_it(profile: str) -> None:
    a = data_loss(profile, MENDED)
    assert a.disk.logs[T].values() == [b"m0e0", b"m1e0"]
    assert a.disk.logs[T].epochs == (EpochEntry(0, 0), EpochEntry(1, 2)), "the entry [1 -> 2]"
    assert a.replica.high_watermark == 2
    a.produce(b"m3")
    assert a.disk.logs[T].epochs_of_offsets() == [0, 0, 1], "every record carries its leader's epoch (K12)"


def test_h16_with_high_watermark_truncation_it_is_lost() -> None:
    assert data_loss("kip101", HISTORIC).disk.logs[T].values() == [b"m0e0"]


def divergence(profile: str, defects: tuple[str, ...]) -> tuple[Solo, Solo]:
    """H17. Both lost power: A kept m1 and m2 and a high watermark over both, B only m1. B leads and takes
    m3."""
    settings: dict[str, Any] = {
        "replicas": (1, 2),
        "min_isr": 1,
        "profile": profile,
        "defects": defects,
        "leader": 2,
        "leader_epoch": 1,
    }
    b = Solo(2, isr=(2,), log=log_of([0], value="m"), high_watermark=1, **settings)
    assert b.result(b.produce(b"m3")).base_offset == 1
    a = Solo(1, isr=(2,), log=log_of([0, 0], value="m"), high_watermark=2, **settings)
    if a.has_sent("fetcher-epochs"):
        a.ask_epoch_end(b)
    for _ in range(3):
        a.fetch_from(b)
    return a, b


@pytest.mark.parametrize("profile", PROFILES)
def test_h17_a_foreign_message_is_cut_and_the_logs_are_one(profile: str) -> None:
    a, b = divergence(profile, MENDED)
    assert a.disk.logs[T].values() == b.disk.logs[T].values() == [b"m0e0", b"m3"]
    assert a.disk.logs[T].epochs_of_offsets() == [0, 1]
    assert a.disk.logs[T].epochs == b.disk.logs[T].epochs == (EpochEntry(0, 0), EpochEntry(1, 1))


def test_h17_with_high_watermark_truncation_they_differ_for_good() -> None:
    a, b = divergence("kip966", HISTORIC)
    assert a.disk.logs[T].values() == [b"m0e0", b"m1e0"]
    assert b.disk.logs[T].values() == [b"m0e0", b"m3"]
