"""The latencies of operations, in bounded memory: histograms of equal ratio, from which quantiles are
read.

Clients do not say which node answered them. Who led a partition is in the history: what the system wrote down
of every change, or else what brokers answered when they were asked (harness/report/read/faults.py). A send
that began while no leader is known counts for its partition alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from wrackline.checkers.inputs.cluster_history import LeaderSpan
from wrackline.harness.report.read.columns import Ints

PRECISION: Final = 0.01
"""A quantile read from a histogram is right within this share of it; the largest is exact."""
_LEAST_NS: Final = 1_000.0
_MOST_NS: Final = 1e13
_STEP: Final = math.log1p(2 * PRECISION)
BINS: Final = math.ceil(math.log(_MOST_NS / _LEAST_NS) / _STEP) + 1


def bins(took_ns: Ints) -> Ints:
    """The bin of the histogram that each latency is counted in."""
    share = np.clip(took_ns, _LEAST_NS, _MOST_NS) / _LEAST_NS
    return np.floor(np.log(share) / _STEP).astype(np.int64)


def quantiles_ms(counts: Ints, most_ns: int, shares: Sequence[float]) -> list[float]:
    """The latencies that these shares of a histogram do not exceed; ``most_ns``: the largest latency."""
    reached = np.cumsum(counts)
    at = np.searchsorted(reached, np.ceil(np.array(shares) * reached[-1]).clip(1))
    middle = _LEAST_NS * np.exp((at + 0.5) * _STEP)
    return [
        float(most_ns if share == 1 else min(value, most_ns)) / 1e6
        for share, value in zip(shares, middle, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Spread:
    """The distribution of the latencies of acknowledged sends, in milliseconds."""

    count: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float


@dataclass(frozen=True, slots=True)
class Latency:
    partitions: Mapping[str, Spread]
    nodes: Mapping[str, Spread]
    """By host; empty where the history has nothing of leaders."""


@dataclass(slots=True)
class Spreads:
    """Histograms by name."""

    counts: dict[str, Ints] = field(default_factory=dict)
    most: dict[str, int] = field(default_factory=dict)

    def add(self, names: Sequence[str], which: Ints, took_ns: Ints) -> None:
        """Counts latencies; ``which``: the number in ``names`` that each latency belongs to; -1: to none."""
        for number in np.unique(which[which >= 0]).tolist():
            own, name = took_ns[which == number], names[number]
            counted = np.bincount(bins(own), minlength=BINS)
            self.counts[name] = self.counts.get(name, 0) + counted
            self.most[name] = max(self.most.get(name, 0), int(own.max()))

    def spreads(self) -> dict[str, Spread]:
        result = {}
        for name in sorted(self.counts, key=natural):
            counts = self.counts[name]
            read = quantiles_ms(counts, self.most[name], (0.5, 0.95, 0.99, 1))
            result[name] = Spread(int(counts.sum()), *(round(value, 3) for value in read))
        return result


class Leaders:
    """The leaders of each partition over time. ``spans``: by label of the partition, in order of time."""

    def __init__(self, spans: Mapping[str, Sequence[LeaderSpan]]) -> None:
        self.hosts: list[str] = []
        self._spans: dict[str, tuple[Ints, Ints, Ints]] = {}
        for label, own in spans.items():
            for span in own:
                if span.leader is not None and span.leader not in self.hosts:
                    self.hosts.append(span.leader)
            leads = [-1 if span.leader is None else self.hosts.index(span.leader) for span in own]
            begins, ends = [span.begin_ns for span in own], [span.end_ns for span in own]
            self._spans[label] = (
                np.array(begins, np.int64), np.array(ends, np.int64), np.array(leads, np.int64),
            )  # fmt: skip

    def at(self, labels: Sequence[str], which: Ints, times: Ints) -> Ints:
        """The number of the host that led the partition ``labels[which]`` at each time; -1: nobody knows."""
        result = np.full(len(which), -1, np.int64)
        for number in np.unique(which[which >= 0]).tolist():
            begins, ends, leads = self._spans.get(labels[number], (np.zeros(0, np.int64),) * 3)
            if len(begins):
                of = np.flatnonzero(which == number)
                at = np.searchsorted(begins, times[of], "right") - 1
                inside = (at >= 0) & (times[of] <= ends[at])
                result[of] = np.where(inside, leads[at], -1)
        return result


def natural(name: str) -> list[tuple[int, str]]:
    """Sorts ``log-2`` before ``log-10``."""
    words = name.replace("-", " ").replace("_", " ").split()
    return [(int(word), "") if word.isdigit() else (-1, word) for word in words]
