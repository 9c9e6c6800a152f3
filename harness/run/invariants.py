"""The traces of a run's brokers, judged by the invariants of simulated ones (simulator/trace_check)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc
import pyarrow.parquet as pq

from wrackline.checkers.findings import EXIT_CODES, Meaning, Verdict
from wrackline.checkers.verdict.verdict import NOTHING
from wrackline.harness.run.clocks import Clocks
from wrackline.harness.run.runner_events import MISSING
from wrackline.history import HistoryError, history_files
from wrackline.history.model import CHRONICLE, RunInfo
from wrackline.history.store import packed
from wrackline.history.store.tally import tally_in

if TYPE_CHECKING:
    from wrackline.simulator.trace_check.verdicts import Judged

# The simulator takes half a second to import, which only a run with traces should wait for.

TRACES = "nodes/*/trace.jsonl"
TRANSACTIONS = "nodes/*/transactions.jsonl"
"""Of ZooKeeper, in profile zk08: lines like those of a trace."""
MOST_LINES = 600_000
"""Of all traces of a run, the first of them in time; a gigabyte of memory, and half a minute."""
_TIME = re.compile(rb'\{"time_ns":(\d+),')
_WITHOUT_ZOOKEEPER = (
    "the invariants of profile zk08 ask which sessions ZooKeeper has, and its transactions were not collected"
)
_SHOWN = 3
_BINDS = "the contract has the invariants of the brokers' state (contract.invariants)"


def import_simulator() -> None:
    """Imports what `invariants_of` needs for a run with traces."""
    import wrackline.simulator.trace_check.lines
    import wrackline.simulator.trace_check.verdicts  # noqa: F401


def invariants_of(run_dir: Path, info: RunInfo) -> dict[str, Any] | None:
    """The verdict's section ``invariants``; None where no node has written a trace, and the system has not
    written down its changes either. Raises OSError."""
    files = packed.found(run_dir, TRACES)
    if not files:
        return _of_history(run_dir, info)
    from wrackline.simulator.trace_check.lines import Trace
    from wrackline.simulator.trace_check.verdicts import ON_ZOOKEEPER, judge

    if info.profile.startswith(ON_ZOOKEEPER):
        transactions = packed.found(run_dir, TRANSACTIONS)
        if not transactions:
            return {"checked": [], "why": _WITHOUT_ZOOKEEPER}
        files += transactions
    try:
        clocks = Clocks.read(run_dir)
    except (OSError, ValueError) as error:
        return {"checked": [], "why": f"nobody has read the hosts' clocks: {error}"}
    until_ns = _until_ns(files)
    traces = [
        Trace(
            file.relative_to(run_dir).as_posix(),
            _lines(file, until_ns),
            clocks.ahead_ns.get(file.parent.name, 0) + clocks.start_ns,
        )
        for file in files
    ]
    try:
        result = judge(
            traces,
            profile=info.profile,
            flush_mode=info.flush_mode,
            recovery_strategy=info.recovery_strategy,
            missing=_missing(run_dir, info.nodes, {file.parent.name for file in files}),
        )
    except (KeyError, ValueError, TypeError) as error:
        return {"checked": [], "why": f"the traces make no sense ({type(error).__name__}: {error})"}
    if not result.steps:
        return {"checked": [], "why": f"no step could be read of {len(files)} traces: another version's?"}
    bounds = [] if until_ns is None else [until_ns - clocks.start_ns]
    bounds += [] if result.until_ns is None else [result.until_ns]
    return _section(result, info.nodes, min(bounds, default=None))


def _of_history(run_dir: Path, info: RunInfo) -> dict[str, Any] | None:
    try:
        if not _has_chronicle(run_dir):
            return None
        from wrackline.harness.run.stored_state import judged_of_history

        result = judged_of_history(run_dir, info)
    except HistoryError:
        return None
    except (KeyError, ValueError, TypeError) as error:
        return {"checked": [], "why": f"the history makes no sense ({type(error).__name__}: {error})"}
    return None if result is None else _section(result, info.nodes, None)


def _has_chronicle(run_dir: Path) -> bool:
    """Raises HistoryError. That every page is whole the judge has seen."""
    for file in history_files(run_dir, check=False):
        with pq.ParquetFile(file, read_dictionary=["f"]) as opened:
            if (rows := tally_in(opened)) is not None:
                return any(kind.split()[0] == CHRONICLE for kind in rows)
            for batch in opened.iter_batches(columns=["f"]):
                if pc.any(pc.equal(batch["f"], CHRONICLE)).as_py():
                    return True
    return False


def _missing(run_dir: Path, nodes: Mapping[str, str], traced: Collection[str]) -> dict[int, str]:
    """Nodes whose trace is not here, or not whole, as far as the collector has noted it, and why."""
    result = {}
    for node, host in nodes.items():
        try:
            noted = (run_dir / "nodes" / host / MISSING).read_text(errors="replace").splitlines()
        except OSError:
            continue
        why = [line for line in noted if host not in traced or "trace" in line]
        if why and node.isdecimal():
            result[int(node)] = f"its trace is not whole: {why[0]}"
    return result


def _name_of(node: str, place: str, nodes: Mapping[str, str]) -> str:
    """The host of a node. A node that is no broker is a controller, or ZooKeeper; its host is in the path of
    the trace where the broken step stands."""
    if host := nodes.get(node):
        return host
    parts = place.split("/")
    return f"{parts[1]} (node {node})" if parts[0] == "nodes" and len(parts) > 2 else node


def _section(found: Judged, nodes: Mapping[str, str], until_ns: int | None) -> dict[str, Any]:
    broken = [
        {**asdict(one), "node": _name_of(str(one.node), one.place, nodes)}
        for one in sorted(found.broken, key=lambda one: one.at_ns)
    ]
    return {
        "checked": list(found.checked),
        "steps": found.steps,
        "lines": found.lines,
        "until_ns": until_ns,
        "broken": broken,
        "partly": dict(found.partly),
        "undecided": dict(found.undecided),
        "unordered": found.unordered,
        "unread": found.unread,
        "blind": list(found.blind),
        "source": found.source,
    }


def bound(verdict: Mapping[str, Any], section: Mapping[str, Any]) -> dict[str, Any]:
    """Returns what changes in a verdict whose contract has the invariants: each that was broken is an
    anomaly, by its id, and a run that showed nothing else is a violation, also where its hosts failed. A run
    that has to show something keeps its verdict."""
    counts = Counter(str(one["id"]) for one in section["broken"])
    rows = [
        {"anomaly": id_, "meaning": Meaning.VIOLATION.value, "count": count, "why": _BINDS}
        for id_, count in sorted(counts.items())
    ]
    result: dict[str, Any] = {"anomalies": [*verdict["anomalies"], *rows]}
    if verdict["verdict"] in (Verdict.PASS, Verdict.INCONCLUSIVE, Verdict.INFRASTRUCTURE):
        result |= {
            "verdict": Verdict.VIOLATION.value,
            "exit_code": EXIT_CODES[Verdict.VIOLATION],
            "headline": reasons(section)[0],
            "reasons": [one for one in verdict["reasons"] if one != NOTHING],
        }
    return result


def reasons(section: Mapping[str, Any]) -> list[str]:
    """Returns the first invariants that were broken, a line each, for the verdict; empty where none was."""
    broken = section.get("broken", ())
    lines = [
        f"invariant {one['id']} ({one['name']}) was broken at {one['at_ns'] / 1e9:,.3f} s"
        f"{' in ' + one['tp'] if one['tp'] else ''}: {one['message']} ({one['place']})"
        for one in broken[:_SHOWN]
    ]
    more = len(broken) - _SHOWN
    return [*lines, f"and {more} more broken invariants"] if more > 0 else lines


def _until_ns(files: Sequence[Path]) -> int | None:
    """Returns up to when traces can be judged, where more was traced than can be held in memory."""
    times = sorted(
        int(found[1]) for file in files for line in _lines(file, None) if (found := _TIME.match(line))
    )
    return times[MOST_LINES] if len(times) > MOST_LINES else None


def _lines(file: Path, until_ns: int | None) -> Iterator[bytes]:
    with packed.opened(file) as lines:
        for line in lines:
            if until_ns is not None and (result := _TIME.match(line)) and int(result[1]) >= until_ns:
                return
            yield line
