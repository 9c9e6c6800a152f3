"""The same specification on several kinds of fleets, side by side: from nothing to a ready cluster, what was
written, how long a write took, what each fault did and how soon, the verdict.

    python benchmarks/nemesis/side_by_side.py [suites/qemu-broker.yaml] [--fleets netns,qemu]

Faults that one of the fleets is refused are left out on all, and named. Needs root.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import orjson
import yaml
from every_fault import measured

from wrackline.harness.extend.faults import known_faults
from wrackline.harness.run.judge import judge
from wrackline.harness.run.live.outcome import Options
from wrackline.harness.run.runner import run
from wrackline.harness.specification.check import load_checked

SUITES = Path(__file__).parents[2] / "suites"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("spec", type=Path, nargs="?", default=SUITES / "qemu-broker.yaml")
    parser.add_argument("--fleets", default="netns,qemu", help="kinds, separated by commas")
    arguments = parser.parse_args()
    kinds = arguments.fleets.split(",")
    raw = yaml.safe_load(arguments.spec.read_text())
    refused = {known.name: set(known.refused) & set(kinds) for known in known_faults()}
    schedule = raw["nemesis"]["schedule"]
    left_out = [one["fault"] for one in schedule if refused[one["fault"]]]
    raw["nemesis"]["schedule"] = [one for one in schedule if not refused[one["fault"]]]
    with tempfile.TemporaryDirectory(prefix="wrackline-side-") as folder:
        made: list[Path] = []
        for kind in kinds:
            file = Path(folder) / f"on-{kind}.yaml"
            raw["fleet"]["kind"] = kind
            file.write_text(yaml.safe_dump(raw, sort_keys=False))
            outcome = run(load_checked(file), Options(Path(folder) / "results"))
            for trouble in outcome.troubles:
                print(f"{kind}: trouble: {trouble}")
            made.append(outcome.run_dir)
        for each in judge(made):
            print(each.line)
        print(f"\n{'':<34}" + "".join(f"{kind:>16}" for kind in kinds))
        columns = [facts(run_dir) for run_dir in made]
        for name in columns[0]:
            print(f"{name:<34}" + "".join(f"{column.get(name, '-'):>16}" for column in columns))
        for fault in left_out:
            print(f"left out, since {', '.join(sorted(refused[fault]))} cannot: {fault}")


def facts(run_dir: Path) -> dict[str, str]:
    """What is printed of a run -> its value."""
    verdict = orjson.loads((run_dir / "verdict.json").read_bytes())
    metrics = orjson.loads((run_dir / "metrics.json").read_bytes())
    begin_ns = {one["phase"]: one["begin_ns"] for one in metrics["phases"]}
    found = {
        "verdict": verdict["verdict"],
        "ready after": f"{begin_ns['warm'] / 1e9:.1f} s",
        "acknowledged records": f"{verdict['counts']['acked_records']:,}",
        "longest gap": f"{(metrics['longest_gap_ms'] or 0) / 1000:.1f} s",
    }
    for when in ("healthy", "faults"):
        times = metrics["latency"][when]
        found[f"send, {when}: p50, p99"] = f"{times['p50_ms']:.0f}, {times['p99_ms']:.0f} ms"
    for fault, proved, effect, undone, _ in measured(run_dir):
        found[f"{fault}: in force, undone"] = f"{effect:.2f}, {undone:.2f} s" if proved else "not proved"
    return found


if __name__ == "__main__":
    main()
