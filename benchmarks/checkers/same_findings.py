"""Whether a change of the judge changes what it finds: the same histories are judged by the code before and
by the code after, and findings and verdicts are compared.

    python benchmarks/checkers/same_histories.py /var/tmp/all
    OLD/.venv/bin/python benchmarks/checkers/same_findings.py judge /var/tmp/all /var/tmp/before
    NEW/.venv/bin/python benchmarks/checkers/same_findings.py judge /var/tmp/all /var/tmp/after
    python benchmarks/checkers/same_findings.py compare /var/tmp/before /var/tmp/after --without explanation

``judge`` imports only what an old checkout has too; the interpreter says which checkout judges. A group of
runs has one file of results. Groups that have their file are left out, so an interrupted judge goes on.
``compare`` prints the differences by kind, each with a few runs that show it. Its exit code is 1 when there
are any.
"""

from __future__ import annotations

import argparse
import gzip
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import orjson
import pyarrow.parquet as pq

HISTORY = "history.parquet"
AT_ONCE = 1_600
"""Runs in one Spark job, at most, unless a group has more."""
NAMED_BY = ("anomaly", "topic", "partition", "offset", "value", "where")
"""A finding of one side and one of the other are the same finding when these columns agree, even where other
columns differ."""


def judge(histories: Path, out: Path) -> None:
    from wrackline.checkers import analysis

    histories, out = histories.resolve(), out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    os.chdir(out)  # Spark's workers import from the working directory first: that may be another checkout
    groups = sorted(one for one in histories.iterdir() if one.is_dir() and not _results(out, one).exists())
    with analysis.session():
        for some in _together(groups):
            with tempfile.TemporaryDirectory(prefix="wrackline-same-", dir=out) as scratch:
                _judge(analysis, some, out, Path(scratch))


def _results(out: Path, group: Path) -> Path:
    return out / f"{group.name}.jsonl.gz"


def _together(groups: Sequence[Path]) -> Iterator[list[Path]]:
    """Groups for one Spark job: what a job costs is its plan, more than the runs."""
    some: list[Path] = []
    runs = 0
    for group in groups:
        size = len(list(group.iterdir()))
        if some and runs + size > AT_ONCE:
            yield some
            some, runs = [], 0
        some.append(group)
        runs += size
    if some:
        yield some


def _judge(analysis: ModuleType, groups: Sequence[Path], out: Path, scratch: Path) -> None:
    copies = {run: scratch / group.name / run.name for group in groups for run in sorted(group.iterdir())}
    for run, copy in copies.items():
        copy.mkdir(parents=True)
        os.link(run / HISTORY, copy / HISTORY)
    try:
        analysis.analyze(list(copies.values()))
    except analysis.AnalysisError as problem:
        if not problem.judged:
            raise
        print(f"  {problem}", flush=True)
    for group in groups:
        lines = [_line(copy) for run, copy in copies.items() if run.parent == group]
        part = scratch / "part"
        part.write_bytes(gzip.compress(b"".join(orjson.dumps(line) + b"\n" for line in lines)))
        part.replace(_results(out, group))
        found = sum(len(line["findings"]) for line in lines)
        print(f"{group.name}: {len(lines)} runs, {found} findings", flush=True)


def _line(run: Path) -> dict[str, Any]:
    if not (run / "verdict.json").exists():
        return {"run": run.name, "verdict": {"verdict": "cannot be judged"}, "findings": []}
    verdict = orjson.loads((run / "verdict.json").read_bytes())
    findings = pq.ParquetFile(run / "findings.parquet").read().to_pylist()
    return {
        "run": run.name,
        "verdict": {name: verdict[name] for name in ("verdict", "reasons", "anomalies")},
        "findings": sorted(findings, key=_text),
    }


def compare(before: Path, after: Path, without: Sequence[str]) -> int:
    """Prints the differences of the groups that both sides have judged."""
    kinds: dict[str, list[str]] = defaultdict(list)
    runs = findings = 0
    for file in sorted(before.glob("*.jsonl.gz")):
        if not (after / file.name).exists():
            kinds["the group is judged on one side only"].append(file.name.partition(".")[0])
            continue
        one, other = _read(file), _read(after / file.name)
        for run in sorted(one.keys() | other.keys()):
            runs += 1
            if run not in one or run not in other:
                kinds["the run is judged on one side only"].append(run)
                continue
            findings += len(one[run]["findings"])
            kinds_of = [
                *_of_findings(one[run], other[run], without),
                *_of_verdicts(one[run], other[run], without),
            ]
            for kind in kinds_of:
                kinds[kind].append(f"{file.name.partition('.')[0]}/{run}")
    print(f"{runs:,} runs, {findings:,} findings before")
    for kind, where in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"{len(where):6,} x {kind}; e.g. {', '.join(list(dict.fromkeys(where))[:3])}")
    print("no difference" if not kinds else f"{len(kinds)} kinds of differences")
    return 1 if kinds else 0


def _read(file: Path) -> dict[str, Any]:
    lines = gzip.decompress(file.read_bytes()).splitlines()
    return {line["run"]: line for line in map(orjson.loads, lines)}


def _of_findings(one: Mapping[str, Any], other: Mapping[str, Any], without: Sequence[str]) -> Iterator[str]:
    names = [set(finding) for side in (one, other) for finding in side["findings"][:1]]
    columns = sorted(set.intersection(*names) - set(without)) if names else []
    sides = [Counter(_text(_only(row, columns)) for row in side["findings"]) for side in (one, other)]
    gone, fresh = (sorted((a - b).elements()) for a, b in (sides, sides[::-1]))
    left: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in map(orjson.loads, fresh):
        left[_text(_only(row, NAMED_BY))].append(row)
    for row in map(orjson.loads, gone):
        if same := left[_text(_only(row, NAMED_BY))]:
            now = same.pop()
            yield f"{row['anomaly']}: other {', '.join(n for n in columns if row[n] != now[n])}"
        else:
            yield f"{row['anomaly']}: found before only"
    yield from (f"{row['anomaly']}: found after only" for rows in left.values() for row in rows)


def _of_verdicts(one: Mapping[str, Any], other: Mapping[str, Any], without: Sequence[str]) -> Iterator[str]:
    before, after = one["verdict"], other["verdict"]
    if before["verdict"] != after["verdict"]:
        yield f"verdict: {before['verdict']} before, {after['verdict']} after"
    if before.get("reasons") != after.get("reasons") and "reasons" not in without:
        yield "verdict: other reasons"
    rows = [{row["anomaly"]: row for row in side.get("anomalies", ())} for side in (before, after)]
    for anomaly in sorted(rows[0].keys() | rows[1].keys()):
        was, now = (side.get(anomaly, {}) for side in rows)
        different = [n for n in sorted(was.keys() & now.keys()) if n not in without and was[n] != now[n]]
        if different or not (was and now):
            yield f"verdict of {anomaly}: other {', '.join(different) or 'list of anomalies'}"


def _only(row: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: row.get(name) for name in names}


def _text(row: Mapping[str, Any]) -> str:
    return orjson.dumps(row, option=orjson.OPT_SORT_KEYS).decode()


def main() -> int:
    top = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(dest="command", required=True)
    sub = commands.add_parser("judge", help="judge them with the checkout whose interpreter this is")
    sub.add_argument("folder", type=Path)
    sub.add_argument("out", type=Path)
    sub = commands.add_parser("compare", help="print what is different")
    sub.add_argument("before", type=Path)
    sub.add_argument("after", type=Path)
    sub.add_argument("--without", action="append", default=[], metavar="COLUMN", help="may differ")
    options = top.parse_args()
    if options.command == "compare":
        return compare(options.before, options.after, options.without)
    judge(options.folder, options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
