"""Cycles between sends are looked for in windows of time. Whatever the whole history's graph has, some window has too,
and each window's cycle is one of the whole."""

from __future__ import annotations

import numpy as np
import pandas as pd

from checkers.circles import circles, graph_of
from checkers.cycles import found_in

SENDS, PARTITIONS = 30, 3


def drawn(seed: int) -> pd.DataFrame:
    """Records of sends that overlap a little, each record taking effect at some moment of its send."""
    random = np.random.default_rng(seed)
    invoke = np.sort(random.choice(np.arange(SENDS * 4), SENDS, replace=False))
    complete = invoke + random.integers(1, 8, SENDS)
    send = np.repeat(np.arange(SENDS), 2)
    # Most of them do both records at one moment: else nearly every history has a cycle near its beginning.
    share = np.where(random.random(SENDS) < 0.9, 0.5, np.nan)[send]
    share = np.where(np.isnan(share), random.random(len(send)), share)
    moment = invoke[send] + share * (complete - invoke)[send]
    partition = random.integers(0, PARTITIONS, len(send))
    rows = pd.DataFrame(
        {
            "run": 0,
            "txn": invoke[send],
            "process": send,
            "cut": 1,
            "width": 1 << 40,
            "invoke_index": invoke[send],
            "complete_index": complete[send],
            "invoke_ns": invoke[send],
            "complete_ns": complete[send],
            "log": partition,
            "moment": moment,
            "value": np.arange(len(send)),
            "sent": True,
        }
    )
    rows = rows.sort_values("moment", kind="stable")
    rows["offset"] = rows.groupby("log").cumcount()
    rows["place"] = "log-" + rows["log"].astype(str)
    return rows


def in_windows(rows: pd.DataFrame) -> list[pd.DataFrame]:
    width = int(2 * (rows["complete_index"] - rows["invoke_index"]).max())
    at = rows["invoke_index"] // width
    both = pd.concat([rows.assign(cut=at, width=width), rows.assign(cut=at + 1, width=width)])
    return [part for _, part in both.groupby("cut")]


def test_windows_lose_no_cycle_and_make_none() -> None:
    with_cycles = 0
    for seed in range(50):
        rows = drawn(seed)
        whole = any(True for _ in circles(graph_of(rows, either_way=False)))
        cut = [found_in(part) for part in in_windows(rows)]
        assert whole == any(len(found) for found in cut), seed
        with_cycles += whole
    assert 5 < with_cycles < 45


def test_a_cycle_is_told_by_one_window() -> None:
    both = []
    for send, (moments, process) in enumerate((((0, 3), 1), ((1, 2), 2))):
        for n, moment in enumerate(moments):
            both.append((send, process, n, moment))
    for shift in range(25):
        invoke = np.array([one[0] + shift for one in both])
        rows = pd.DataFrame(
            {
                "run": 0,
                "txn": invoke,
                "process": [one[1] for one in both],
                "invoke_index": invoke,
                "complete_index": invoke + 5,
                "invoke_ns": invoke,
                "complete_ns": invoke + 5,
                "log": 0,
                "place": "log-0",
                "offset": [one[3] for one in both],
                "value": range(4),
                "sent": True,
            }
        )
        told = [len(found_in(part)) for part in in_windows(rows)]
        assert sum(told) == 1, (shift, told)
