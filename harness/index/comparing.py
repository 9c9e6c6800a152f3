"""Two runs, or two sets of runs, side by side: what only one of them shows, and which figures moved further
than they do by themselves.

Like is held against like: each suite with the same settings by itself. The noise is that of the side before:
its own runs where there are five or more of them, else the runs of its series up to it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from statistics import median

from wrackline.checkers.findings import Verdict
from wrackline.harness.index.baseline import FEWEST, PAST, Band, Share, expected, label, share
from wrackline.harness.index.runs import Run, group_runs
from wrackline.harness.index.trends import HIGHER_IS_BETTER, series_of, settings
from wrackline.harness.records import METRICS


class Unlike(Exception):
    """The two cannot be compared, or one of them is nothing. One line."""


class Outcome(Enum):
    """The outcome of a comparison; the value is the command's exit code."""

    NO_WORSE = 0
    WORSE = 1
    NOT_KNOWN = 3
    """A side has no run that says anything about the system."""


@dataclass(frozen=True, slots=True)
class Side:
    """``name`` as the user said it, and the runs that it means."""

    name: str
    runs: tuple[Run, ...]

    @property
    def telling(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if run.good is not None)

    @property
    def failures_first(self) -> tuple[Run, ...]:
        """The latest of them, and of the others, above."""
        latest = self.runs[::-1]
        failed = [run for run in latest if run.good is False]
        return (*failed, *(run for run in latest if run.good is not False))

    @property
    def verdicts(self) -> str:
        """``pass``; of several runs ``11 pass, 1 violation``."""
        counts = Counter(run.word for run in self.runs)
        if len(self.runs) == 1:
            return self.runs[0].word
        return ", ".join(f"{count} {word}" for word, count in counts.most_common())

    @property
    def failed(self) -> Share:
        return share(sum(run.good is False for run in self.telling), len(self.telling))

    def values(self, metric: str) -> list[float]:
        return [run.record.metrics[metric] for run in self.runs if metric in run.record.metrics]

    def showing(self, anomaly: str) -> int:
        """Returns how many runs show the anomaly against their contract."""
        return sum(anomaly in run.record.violations for run in self.runs)


@dataclass(frozen=True, slots=True)
class Anomaly:
    name: str
    before: int
    """Runs that show it."""
    after: int

    @property
    def new(self) -> bool:
        return self.after > 0 and self.before == 0


@dataclass(frozen=True, slots=True)
class Moved:
    """A figure on both sides: of several runs the median. None where it was not measured."""

    suite: str
    metric: str
    before: float | None
    after: float | None
    noise: Band | None
    """Where the side after was expected; None: too few runs to know."""

    @property
    def label(self) -> str:
        return label(self.metric)

    @property
    def outside(self) -> bool:
        return self.noise is not None and self.after is not None and self.noise.outside(self.after)

    @property
    def worse(self) -> bool:
        if not self.outside or self.after is None or self.noise is None:
            return False
        return (self.after > self.noise.middle) is not (self.metric in HIGHER_IS_BETTER)


@dataclass(frozen=True, slots=True)
class Comparison:
    before: Side
    after: Side
    apart: tuple[tuple[str, str, str], ...]
    """What else than the versions is different: (what, before, after)."""
    anomalies: tuple[Anomaly, ...]
    moved: tuple[Moved, ...]
    """Every figure, in the order of ``METRICS``."""
    by_suite: tuple[Moved, ...]
    """Where there are several suites: the figures of each that are outside of their noise."""
    judged: int
    """So many figures were held against their noise."""

    @property
    def outcome(self) -> Outcome:
        if not self.before.telling or not self.after.telling:
            return Outcome.NOT_KNOWN
        fails = any(one.new for one in self.anomalies) or self._fails_anew or self._fails_more
        return Outcome.WORSE if fails or self.worse else Outcome.NO_WORSE

    @property
    def worse(self) -> tuple[Moved, ...]:
        return tuple(one for one in (*self.moved, *self.by_suite) if one.worse)

    @property
    def _fails_more(self) -> bool:
        """The intervals of what fails on the two sides do not meet."""
        return self.after.failed.low > self.before.failed.high

    @property
    def _fails_anew(self) -> bool:
        """A defect that was found before and is not any more names no anomaly."""
        missed = Verdict.NOT_REPRODUCED
        before, after = (
            any(run.record.verdict is missed for run in side.runs) for side in (self.before, self.after)
        )
        return after and not before

    @property
    def sentence(self) -> str:
        if self.outcome is Outcome.NOT_KNOWN:
            side = self.after if self.before.telling else self.before
            return f"nothing can be said: {side.name} has {side.verdicts} and no run that was judged"
        new = [one.name for one in self.anomalies if one.new]
        worse = [f"{one.label} ({one.suite})" for one in self.worse]
        parts = []
        if new:
            parts.append(f"{self.after.name} shows {', '.join(new)}, and {self.before.name} does not")
        if self._fails_anew:
            parts.append(f"{self.after.name} does not show what it had to, and {self.before.name} does")
        if self._fails_more:
            was, is_ = (f"{side.failed.count} of {side.failed.of}" for side in (self.before, self.after))
            parts.append(f"{is_} runs fail, and {was} did")
        if worse:
            parts.append(f"worse than the noise explains: {', '.join(worse)}")
        if parts:
            return "; ".join(parts)
        known = f"{self.judged} figures are within their noise"
        told = f"; {known}" if self.judged else "; there are too few runs to know the noise of a figure"
        return f"{self.after.name} shows no violation that {self.before.name} does not{told}"


def compared(before: Side, after: Side, all_runs: Sequence[Run], *, across: bool = False) -> Comparison:
    """Raises Unlike: for runs of different systems, unless ``across``."""
    systems = [sorted({run.record.system or "unknown" for run in side.runs}) for side in (before, after)]
    if systems[0] != systems[1] and not across:
        first, second = ("+".join(one) for one in systems)
        raise Unlike(
            f"{before.name} is of {first} and {after.name} of {second}: their figures measure other things; "
            "--across compares them all the same"
        )
    names = {name for side in (before, after) for run in side.runs for name in run.record.violations}
    shown = [Anomaly(name, before.showing(name), after.showing(name)) for name in sorted(names)]
    parts = _common(before, after)
    comparisons = len(parts) * len(METRICS)
    figures = [
        _moved(suite, metric, one, other, all_runs, comparisons)
        for suite, one, other in parts
        for metric in METRICS
        if one.values(metric) and other.values(metric)
    ]
    alone = len(parts) == 1
    return Comparison(
        before,
        after,
        _apart(before, after),
        tuple(shown),
        tuple(figures) if alone else tuple(_together(before, after)),
        () if alone else tuple(one for one in figures if one.outside),
        sum(one.noise is not None for one in figures),
    )


def _common(before: Side, after: Side) -> list[tuple[str, Side, Side]]:
    """The parts of both sides that measure the same: of one suite, with the same settings."""
    own, others = (group_runs(side.runs, series_of) for side in (before, after))
    return [
        (key[0], Side(before.name, tuple(runs)), Side(after.name, tuple(others[key])))
        for key, runs in own.items()
        if key in others
    ]


def _moved(
    suite: str, metric: str, before: Side, after: Side, runs: Sequence[Run], comparisons: int
) -> Moved:
    was, is_ = before.values(metric), after.values(metric)
    past = was if len(was) >= FEWEST else _past(metric, before, after, runs)
    return Moved(suite, metric, median(was), median(is_), expected(past, is_, comparisons))


def _past(metric: str, before: Side, after: Side, runs: Sequence[Run]) -> list[float]:
    """Returns the metric's values in the series of the former side, up to that side's last run: that side
    has too few values itself."""
    until = max(run.record.started_at for run in before.runs)
    others = {run.slug for run in after.runs}
    return [
        run.record.metrics[metric]
        for run in runs
        if series_of(run) == series_of(before.runs[0])
        and metric in run.record.metrics
        and run.record.started_at <= until
        and run.slug not in others
    ][-PAST:]


def _together(before: Side, after: Side) -> Iterator[Moved]:
    """Yields the figures of all suites at once: to be read, and no measure of anything."""
    for metric in METRICS:
        was, is_ = before.values(metric), after.values(metric)
        if was or is_:
            yield Moved("", metric, median(was) if was else None, median(is_) if is_ else None, None)


def _apart(before: Side, after: Side) -> tuple[tuple[str, str, str], ...]:
    said: dict[str, Callable[[Run], str]] = {
        "suite": lambda run: run.record.name,
        "settings": settings,
        "version": lambda run: run.record.version,
        "seed": lambda run: str(run.record.seed),
        "defects": lambda run: "+".join(run.record.defects) or "none",
    }
    rows = []
    for what, of in said.items():
        was, is_ = (_few(sorted({of(run) for run in side.runs})) for side in (before, after))
        if was != is_:
            rows.append((what, was, is_))
    return tuple(rows)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:4]) + (f" and {len(names) - 4} more" if len(names) > 4 else "")


def side(name: str, runs: Sequence[Run]) -> Side:
    """Returns the runs that a user means by a name: a night, a version or profile, a run's id, its
    beginning, or its folder; a suite means its newest run. Raises Unlike."""
    plain = name.rstrip("/")
    own = [run for run in runs if not run.record.follow_up]
    for means in (
        [run for run in runs if plain in (run.record.run, run.slug, str(run.record.folder))],
        [run for run in own if plain == run.record.night],
        [run for run in own if plain in (run.record.version, run.system, run.record.profile)],
    ):
        if means:
            return Side(name, tuple(means))
    of_suite = [run for run in own if plain in (run.record.name, run.record.case)]
    if of_suite:
        return Side(of_suite[-1].record.run, (of_suite[-1],))
    beginning = [run for run in runs if run.record.run.startswith(plain)]
    if len(beginning) == 1:
        return Side(beginning[0].record.run, (beginning[0],))
    if beginning:
        few = _few([run.record.run for run in beginning])
        raise Unlike(f"{name}: {len(beginning)} runs begin so ({few}); say more of it")
    versions = _few(sorted({run.record.version for run in runs if run.record.version}))
    raise Unlike(
        f"{name}: no run, suite, night or version of that name in {len(runs)} runs; "
        f"versions: {versions or 'none'}"
    )
