"""What the pictures are drawn from, of histories small enough to be counted by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.harness.report.read.histories import END_NS, MS, S, gathered, polled, record, row, sent, written
from wrackline.harness.report.read import delivery
from wrackline.harness.report.read.columns import OK, OPEN, OPERATION
from wrackline.harness.report.read.delivery import COLUMNS
from wrackline.harness.report.read.downsample import Downsampler
from wrackline.harness.report.read.latency import BINS, PRECISION, bins, quantiles_ms
from wrackline.harness.report.read.log_order import Stretch
from wrackline.history.model import value_of


def unseen_at(found: np.ndarray, at_s: float) -> int:
    return int(found[int(at_s * S * COLUMNS / END_NS)])


def test_a_record_is_unseen_from_its_ack_to_the_first_time_it_is_given(tmp_path: Path) -> None:
    path = written(tmp_path, sent(1, 0), sent(2, 1), polled(5, [0]), polled(6, [0, 1]), sent(10, 2))
    series = gathered(path).unseen.series()
    assert list(series) == [0]
    assert [unseen_at(series[0], at) for at in (0.5, 1.5, 3, 5.5, 7, 12, 59)] == [0, 1, 2, 1, 0, 1, 1]


def test_a_record_given_before_its_ack_is_never_unseen(tmp_path: Path) -> None:
    path = written(tmp_path, polled(3, [0]), sent(4, 0, took_s=2), sent(5, 1))
    series = gathered(path).unseen.series()
    assert [unseen_at(series[0], at) for at in (3.5, 4.5, 5.5)] == [0, 0, 1]


def test_a_record_that_is_lost_stays_unseen_when_its_offset_is_used_again(tmp_path: Path) -> None:
    """p1·0 is acknowledged at offset 0, and so is p2·0 later, which is what consumers are given."""
    given = [record(0, value_of(2, 0))]
    reads = [[row(at, 9, "ok", "poll", records=given)] for at in (21, 25, 50)]
    path = written(tmp_path, sent(1, 0, process=1), sent(20, 0, process=2), *reads)
    series = gathered(path).unseen.series()
    assert [unseen_at(series[0], at) for at in (2, 20.5, 22, 59)] == [1, 2, 1, 1]


def test_the_final_read_counts_as_a_consumer_and_unknown_outcomes_do_not_count(tmp_path: Path) -> None:
    path = written(tmp_path, sent(1, 0), sent(2, 1), sent(3, 2, type_="info"), polled(50, [0], f="drain"))
    series = gathered(path).unseen.series()
    assert [unseen_at(series[0], at) for at in (4, 51)] == [2, 1]


def test_the_operation_behind_a_change_of_the_unseen_records_is_known(tmp_path: Path) -> None:
    found = gathered(written(tmp_path, sent(1, 0), polled(5, [0])))
    latest = found.unseen.latest(0)
    behind = latest[latest["end"] > 0]
    assert [(found.fs[row["f"]], row["end"] / S) for row in behind] == [("send", 1.0), ("poll", 5.0)]


def test_lag_is_the_end_that_clients_knew_of_less_the_position(tmp_path: Path) -> None:
    """Offsets 0 to 9 are acknowledged at 1 s to 10 s; the consumer stands at 4 from 4 s on."""
    sends = [sent(1 + offset, offset) for offset in range(10)]
    polls = [polled(4.5, [0, 1, 2, 3], position=4), polled(10.5, [], position=4)]
    ends = [[row(20, 3, "invoke", "end"), row(20.1, 3, "ok", "end", high_watermark=14)]]
    found = gathered(written(tmp_path, *sends, *polls, *ends, polled(21, [], position=4)))
    assert [(row["position"], row["behind"]) for row in found.lags] == [(4, 0), (4, 6), (4, 10)]
    assert found.behind_ns[0] == 0
    assert found.behind_ns[1] == pytest.approx((10.5 - 5) * S, abs=END_NS / 2_000)
    assert found.behind_ns[2] == pytest.approx((21 - 5) * S, abs=END_NS / 2_000)


def test_an_operation_has_the_invocation_before_it_and_its_first_record(tmp_path: Path) -> None:
    """A rebalance in the middle of a poll is no end of that poll; what nobody completed is open."""
    rebalance = [row(4.4, 9, "ok", "rebalance")]
    path = written(
        tmp_path, sent(3, 7), polled(4.5, [7], process=9), rebalance, [row(8, 2, "invoke", "send")]
    )
    found = gathered(path)
    bars = {found.fs[bar["f"]]: bar for bar in found.bars["operation"] if bar["outcome"] == OK}
    assert bars["send"]["begin"] == round(2.99 * S)
    assert (bars["send"]["index"], bars["send"]["begun"]) == (1, 0)
    assert (bars["poll"]["begin"], bars["poll"]["end"]) == (round(4.495 * S), round(4.5 * S))
    assert (bars["poll"]["value"], bars["poll"]["offset"], bars["poll"]["count"]) == (value_of(1, 7), 7, 1)
    open_ = found.bars[found.bars["operation"]["outcome"] == OPEN]["operation"]
    assert [(row["begin"], row["end"]) for row in open_] == [(8 * S, -1)]


def test_too_many_bars_are_merged_and_none_is_lost(tmp_path: Path) -> None:
    """What is cited keeps its own bar; what failed stays apart while that is possible."""
    sends = [sent(1 + at / 10, at, type_="fail" if at == 200 else "ok") for at in range(400)]
    found = gathered(written(tmp_path, *sends), bars=20, cited={301})
    assert len(found.bars) <= 20
    assert found.bars["stands_for"].sum() == 400
    assert found.bars["bad"].sum() == 1
    alone = found.bars[found.bars["operation"]["index"] == 301]
    assert alone["stands_for"].tolist() == [1]
    assert found.bars[found.bars["bad"] == 1]["stands_for"].tolist() == [1]
    assert int(found.bars["until"].max()) == round(40.9 * S)


def test_processes_that_end_give_their_lanes_on(tmp_path: Path) -> None:
    sends = [sent(1, 0, process=1), sent(1, 1, process=2), sent(5, 2, process=11), sent(6, 3, process=2)]
    found = gathered(written(tmp_path, *sends))
    lane = dict(zip(found.bars["operation"]["process"].tolist(), found.lane.tolist(), strict=True))
    assert lane[1] == lane[11] != lane[2]


def test_the_slowest_of_a_cell_is_kept_and_all_while_there_is_room() -> None:
    def rows(count: int) -> np.ndarray:
        made = np.zeros(count, OPERATION)
        made["index"] = np.arange(count)
        made["end"] = (np.arange(count) * 7919) % 1_000 + 1
        return made

    def thinned(count: int) -> np.ndarray | None:
        chosen = Downsampler(100, lambda of, level: of["index"] // (16 << level), lambda of: of["end"])
        for part in np.array_split(rows(count), 7):
            chosen.add(part)
        return chosen.rows()

    few, many = thinned(100), thinned(10_000)
    assert few is not None
    assert many is not None
    assert len(few) == 100
    assert 25 < len(many) <= 100
    assert many["end"].max() == 1_000


@pytest.mark.parametrize("seed", range(3))
def test_quantiles_are_as_exact_as_promised(seed: int) -> None:
    took = (np.random.default_rng(seed).lognormal(2, 1.5, 5_000) * MS).astype(np.int64)
    counts = np.bincount(bins(took), minlength=BINS)
    read = quantiles_ms(counts, int(took.max()), (0.5, 0.95, 0.99, 1))
    exact = np.quantile(took, (0.5, 0.95, 0.99, 1), method="inverted_cdf") / MS
    assert read == pytest.approx(exact.tolist(), rel=PRECISION * 1.01)


def test_every_record_around_the_offsets_of_a_finding_is_there(tmp_path: Path) -> None:
    stretch = Stretch("log", 0, 3, 6, (4,), ("lost-write",))
    sends = [sent(1 + at, at) for at in range(10)]
    path = written(tmp_path, *sends, polled(20, range(8)), polled(50, [3, 5, 6], f="drain"))
    [(_, rows)] = gathered(path, wanted=[stretch]).around
    fs = gathered(path).fs
    seen = sorted((fs[row["f"]], int(row["offset"])) for row in rows)
    assert seen == [("drain", n) for n in (3, 5, 6)] + [
        (f, n) for f in ("poll", "send") for n in (3, 4, 5, 6)
    ]


def test_the_order_of_a_partition_has_what_each_poll_was_given(tmp_path: Path) -> None:
    found = gathered(written(tmp_path, sent(1, 0), sent(2, 1), polled(5, [0, 1])))
    points = sorted((found.fs[row["f"]], row["offset"], row["last"]) for row in found.order)
    assert points == [("poll", 0, 1), ("send", 0, 0), ("send", 1, 1)]


def test_offsets_all_over_the_place_take_bounded_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "_BLOCKS", 3)
    found = gathered(written(tmp_path, *(sent(1 + at, at << 30) for at in range(5)), sent(10, 1)))
    assert (found.unseen.followed, found.unseen.left_out) == (4, 2)
