"""Every fault that a fleet and a system can be given, once each in one run under load: was it proved, how
long from the decision until it was in force, and until it was undone.

    python benchmarks/nemesis/every_fault.py [--fleet netns|qemu] [--system wrackline|apache-kafka]
        [--only kill,pause] [--brokers N] [--spares N] [--rate N] [--lasts S] [--pause S]

A fault that this fleet or system is refused stands in the table with the reason. The times are those of the
run's own history: from the row in which the nemesis decided to the row in which the fault was done and
probed, and from the row of its end to the row in which it was undone and judged. Needs root.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq
import yaml

from wrackline.harness.extend.faults import known_faults
from wrackline.harness.run.live.outcome import Options
from wrackline.harness.run.runner import run
from wrackline.harness.specification.check import load_checked
from wrackline.history.model import NEMESIS
from wrackline.history.store.files import history_files
from wrackline.plugins.registry import Group, load

GIVEN: dict[str, dict[str, Any]] = {
    "add-broker": {},
    "messages": {"apis": ["Fetch"], "what": "answer", "peers": ["broker"], "target": "leader"},
    "packets": {"delay_s": 0.05, "loss": 0.02, "duplicate": 0.02, "corrupt": 0.01, "target": "one"},
    "change-config": {"configs": {"min.insync.replicas": 1}},
    "memory-pressure": {"size_mb": 48},
    "partition": {"target": "leader"},
    "replace-broker": {"target": "leader"},
    "slow-disk": {"bytes_per_s": 200_000},
    "stall-connections": {"target": "leader"},
    "transfer-leadership": {"target": "leader"},
    "bit-flip": {"target": "follower"},
    "truncate": {"target": "follower"},
    "roll-back": {"target": "follower"},
}
"""What a fault must be told, or is better told, than its defaults."""
ELSEWHERE = {
    "lazyfs": "lazyfs needs LazyFS, mounted on its hosts by whoever wants it (docs/nemesis.md)",
    **dict.fromkeys(
        ("add-controller", "remove-controller", "replace-controller"),
        "it needs a quorum that changes, with hosts of its own: suites/kafka-quorum.yaml",
    ),
}
OLDER = {"apache-kafka": {"version": "4.0.0"}}
"""What a rolling upgrade can begin from."""


def specification(arguments: argparse.Namespace) -> tuple[dict[str, Any], dict[str, str]]:
    """The run, and the faults that are refused with the reason."""
    refused: dict[str, str] = {}
    schedule: list[dict[str, Any]] = []
    # A fault that meets another is not proved, and hosts that are emulated take their time over each.
    pause_s = arguments.pause * load(Group.FLEETS, arguments.fleet)(kind=arguments.fleet).slowness
    at_s = 4.0
    for fault in known_faults():
        if arguments.only and fault.name not in arguments.only.split(","):
            continue
        if fault.name in ELSEWHERE:
            refused[fault.name] = ELSEWHERE[fault.name]
            continue
        where = (arguments.fleet, f"{arguments.fleet} {arguments.system}")
        if why := next((fault.refused[one] for one in where if one in fault.refused), None):
            refused[fault.name] = why
            continue
        given = GIVEN.get(fault.name, {})
        schedule.append({"at_s": at_s, "duration_s": arguments.lasts, "fault": fault.name, **given})
        at_s += arguments.lasts + pause_s
    spec = {
        "name": "every-fault",
        "fleet": {
            "kind": arguments.fleet,
            "brokers": arguments.brokers,
            "spares": arguments.spares,
            "controllers": 3,
            "combined": True,
        },
        "system": {"kind": arguments.system, **OLDER.get(arguments.system, {})},
        "topic": {"partitions": 2},
        "workload": {"duration_s": at_s + 2.0, "rate": arguments.rate},
        "nemesis": {"schedule": schedule},
    }
    return spec, refused


def measured(run_dir: Path) -> list[tuple[str, bool, float, float, str]]:
    """(fault, proved, seconds to effect, seconds to undo, proof) in the order of their beginnings."""
    rows = []
    for path in history_files(run_dir):
        table = pq.read_table(path, columns=["f", "time_ns", "extra"], filters=[("process", "==", NEMESIS)])
        rows += [(row["time_ns"], row["f"], orjson.loads(row["extra"])) for row in table.to_pylist()]
    at: dict[str, dict[str, float]] = {}
    found = []
    for time_ns, fault, extra in sorted(rows, key=lambda row: row[0]):
        phases = at.setdefault(extra["id"], {})
        phases[extra["phase"]] = time_ns / 1e9
        if extra["phase"] == "ended":
            begin = phases["begin"]
            effect = phases.get("active", begin) - begin
            undone = phases["ended"] - phases.get("undo", phases["ended"])
            why = extra.get("error") or extra.get("proof", "")
            found.append((fault, bool(extra["proved"]), effect, undone, why))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fleet", default="netns")
    parser.add_argument("--system", default="wrackline")
    parser.add_argument("--brokers", type=int, default=4)
    parser.add_argument("--spares", type=int, default=2)
    parser.add_argument("--only", default="", help="faults by name, separated by commas")
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--lasts", type=float, default=4.0, help="seconds that each fault is in force")
    parser.add_argument(
        "--pause", type=float, default=6.0, help="seconds between two faults, on a fleet's own clock"
    )
    arguments = parser.parse_args()
    spec, refused = specification(arguments)
    with tempfile.TemporaryDirectory(prefix="wrackline-faults-") as folder:
        file = Path(folder) / "every-fault.yaml"
        file.write_text(yaml.safe_dump(spec, sort_keys=False))
        outcome = run(load_checked(file), Options(Path(folder) / "results"))
        for trouble in outcome.troubles:
            print(f"trouble: {trouble}")
        print(f"{'fault':<20} {'proved':<7} {'to effect':>10} {'undone in':>10}  proof")
        for fault, proved, effect, undone, why in measured(outcome.run_dir):
            print(
                f"{fault:<20} {'yes' if proved else 'NO':<7} {effect:>8.2f} s {undone:>8.2f} s  {why[:150]}"
            )
    for fault, why in refused.items():
        print(f"{fault:<20} refused: {why}")


if __name__ == "__main__":
    main()
