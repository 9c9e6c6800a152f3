"""Incidents of runs that the simulator exported: traces say what was cut, and rows who led when."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest

from wrackline.harness.run.incidents.incident_logs import add_lines
from wrackline.history import read_info
from wrackline.simulator.faults.setup import Setup
from wrackline.simulator.output.export import write_run
from wrackline.simulator.run import run

pytestmark = pytest.mark.timeout(1_800)

DEFECT = Setup(
    seed=3,
    seconds=8.0,
    defects=("trunc_hw",),
    kinds=("kill", "power", "clean", "lag", "hold-alter-request"),
    invariants=False,
    fault_every_ms=600.0,
)
"""Replicas cut their logs to their high watermarks: one record that was acknowledged is lost."""


def write_runs(folder: Path) -> list[Path]:
    result = run(DEFECT, traced=True)
    assert result.violation is not None
    assert result.violation.oracle == "lost-write"
    write_run(DEFECT, result.events, folder / "r", result.traces)
    return [folder / "r"]


def test_what_was_cut_in_virtual_time_is_told_with_its_lines(
    judged_runs: Mapping[Path, dict[str, Any]],
) -> None:
    [(folder, judged)] = judged_runs.items()
    verdict = orjson.loads(orjson.dumps(judged))
    assert add_lines(folder, verdict, read_info(folder).started_at)
    [one] = verdict["incidents"]
    lost = one["first_offset"]
    assert (one["topic"], one["partition"], one["last_offset"]) == ("t", 0, lost)
    cut = [line for line in truncations(folder) if line["to"] == lost and line["was"] == lost + 1]
    assert len(cut) == 2
    assert one["truncations"] == [
        {"node": f"n{line['node']}", "at_ns": line["time_ns"], "to": lost, "was": lost + 1} for line in cut
    ]
    assert one["mechanism"][1:] == [
        "The records were gone when n1 took over, in leader epoch 4.",
        "n1 led from partition epoch 9 on.",
        f"When leader epoch 4 began, the log end offsets were {lost} on n1, 11 on n2 and {lost} on n3.",
        f"n3 cut its log back to offset {lost}.",
    ]
    assert one["sentence"] == (
        f"1 acknowledged record of t-0 (offset {lost}) is gone: n1 cut it at 10.3 s (truncated to its high "
        "watermark as it became a follower), became leader at 10.3 s, and n2 and n3 followed it; "
        "consumers had read 1 of the lost records"
    )
    told = {(line["file"], line["number"], line["at_ns"]) for line in one["lines"]}
    assert {(line["file"], line["number"], line["time_ns"]) for line in cut} < told
    assert one["faults"], "power cuts and kills were in force"


def truncations(folder: Path) -> list[dict[str, Any]]:
    found = []
    for file in sorted(folder.glob("nodes/n*/trace.jsonl")):
        for number, text in enumerate(file.read_bytes().splitlines(), 1):
            line = orjson.loads(text)
            if line["kind"] == "truncate":
                found.append({**line, "number": number, "file": file.relative_to(folder).as_posix()})
    return sorted(found, key=lambda line: line["time_ns"])
