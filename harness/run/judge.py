"""From a recorded run to its verdict and report; and how the verdict of a run that broke down is put."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import yaml

from checkers.findings import EXIT_CODES, Verdict
from harness.history import read_info

VERDICT_JSON = "verdict.json"
SPEC_YAML = "spec.yaml"
_WORST_FIRST = (
    Verdict.VIOLATION,
    Verdict.NOT_REPRODUCED,
    Verdict.INFRASTRUCTURE,
    Verdict.INCONCLUSIVE,
    Verdict.PASS,
    Verdict.REPRODUCED,
)


@dataclass(frozen=True, slots=True)
class Judged:
    run_dir: Path
    verdict: Mapping[str, Any]
    """Content of verdict.json."""
    report: Path | None

    @property
    def word(self) -> Verdict:
        return Verdict(self.verdict["verdict"])

    @property
    def line(self) -> str:
        """``violation     20260101T...-demo-acks-all-12ab  headline``."""
        return f"{self.word.value:<14} {self.run_dir.name}  {self.verdict.get('headline', '')}"


def judge(
    run_dirs: Sequence[Path],
    *,
    contract: str | None = None,
    master: str = "local[*]",
    troubles: Mapping[Path, Sequence[str]] | None = None,
    progress: Callable[[str], None] = lambda _line: None,
) -> list[Judged]:
    """Analyse runs in one Spark session and write their reports. ``troubles``: what broke down in a run that was
    just made (hosts, SSH, deployment); its verdict is then ``infrastructure`` unless there was a violation.

    Raises HistoryError for a history that cannot be read."""
    # Spark takes a second to import, which `wrackline --help` should not wait for.
    from checkers.analysis import analyze

    verdicts = analyze(
        list(run_dirs), contract=contract or _contract_of(run_dirs), master=master, progress=progress
    )
    judged = []
    for run_dir, verdict in zip(run_dirs, verdicts, strict=True):
        broke = (troubles or {}).get(run_dir, ())
        judged.append(finish(run_dir, with_troubles(verdict, broke) if broke else verdict))
    return judged


def finish(run_dir: Path, verdict: Mapping[str, Any]) -> Judged:
    """Write the verdict and the report."""
    from harness.report import write_report

    (run_dir / VERDICT_JSON).write_bytes(orjson.dumps(verdict, option=orjson.OPT_INDENT_2) + b"\n")
    return Judged(run_dir, verdict, write_report(run_dir))


def with_troubles(verdict: Mapping[str, Any], troubles: Sequence[str]) -> dict[str, Any]:
    """Precedence: violation > infrastructure > inconclusive > pass."""
    changed = dict(verdict)
    changed["reasons"] = [*troubles, *verdict.get("reasons", ())]
    if Verdict(verdict["verdict"]) not in (Verdict.VIOLATION, Verdict.REPRODUCED):
        changed["verdict"] = Verdict.INFRASTRUCTURE.value
        changed["exit_code"] = EXIT_CODES[Verdict.INFRASTRUCTURE]
        changed["headline"] = troubles[0]
    return changed


def broken_down(run_dir: Path, troubles: Sequence[str]) -> Judged:
    """The verdict of a run in which no operation was recorded, so there is nothing to analyse."""
    info = read_info(run_dir)
    verdict = {
        "test_id": info.test_id,
        "name": info.name,
        "verdict": Verdict.INFRASTRUCTURE.value,
        "exit_code": EXIT_CODES[Verdict.INFRASTRUCTURE],
        "headline": troubles[0],
        "reasons": list(troubles),
        "contract": {"name": "none", "row": "", "promise": "nothing was tested", "because": []},
        "anomalies": [],
        "conditions": [],
        "faults": [],
        "counts": {
            "operations": 0,
            "ok": 0,
            "fail": 0,
            "info": 0,
            "acked_records": 0,
            "read_records": 0,
            "sends_by_error": {},
        },
        "engine": {"spark": "", "seconds": 0.0},
    }
    metrics: dict[str, Any] = {
        "seconds": [],
        "availability": [],
        "latency": {},
        "longest_gap_ms": None,
        "phases": [],
    }
    (run_dir / "metrics.json").write_bytes(orjson.dumps(metrics) + b"\n")
    return finish(run_dir, verdict)


def read_verdict(run_dir: Path) -> dict[str, Any] | None:
    """A run's verdict.json, or None when it was not judged yet (or the file cannot be read)."""
    try:
        verdict = orjson.loads((run_dir / VERDICT_JSON).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return verdict if isinstance(verdict, dict) and verdict.get("verdict") in set(Verdict) else None


def exit_code(words: Iterable[Verdict]) -> int:
    """Of several runs: that of the worst."""
    found = set(words)
    return next((EXIT_CODES[word] for word in _WORST_FIRST if word in found), 0)


def _contract_of(run_dirs: Sequence[Path]) -> str | None:
    """The contract that the runs' own specifications name, when they all name the same."""
    named = set()
    for run_dir in run_dirs:
        try:
            spec = yaml.safe_load((run_dir / SPEC_YAML).read_text())
        except (OSError, yaml.YAMLError):
            return None
        contract = spec.get("contract") if isinstance(spec, dict) else None
        named.add(contract.get("name") if isinstance(contract, dict) else None)
    return named.pop() if len(named) == 1 else None
