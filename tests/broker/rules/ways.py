"""The ways in which the rules decide each row of the golden tables, for ``wrackline simulate --coverage``:
``python -m tests.broker.rules.ways`` writes them down."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter

from tests.broker.rules.decisions import SWITCHES, decided
from tests.broker.rules.golden_tables import rows
from wrackline.broker.rules.profile import profile
from wrackline.simulator.coverage.probes import recorder
from wrackline.simulator.coverage.rows import FILE


def ways_of_rows() -> dict[str, list[str]]:
    """``isr.may_join 3`` -> its ways, of every row but those of switches, which decide nothing."""
    for name in ("kip966", "kraft35", "kip101", "zk08", "zk08-kip101"):
        profile(name)  # what they are made of is made once, and belongs to no row
    ways, numbers = recorder(), Counter[str]()
    result: dict[str, list[str]] = {}
    for row in rows():
        numbers[row.name] += 1
        if row.name != SWITCHES:
            ways.take()
            decided(row, profile)
            result[f"{row.name} {numbers[row.name]}"] = sorted(ways.take())
    return result


def written() -> str:
    """The file's text, made in a process of its own: probes stay where they are put."""
    command = [sys.executable, "-m", "tests.broker.rules.ways", "--print"]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout


def main() -> None:
    found = ways_of_rows()
    ways = sorted({way for some in found.values() for way in some})
    numbers = {way: number for number, way in enumerate(ways)}
    lines = [f"{name} | {' '.join(str(numbers[way]) for way in some)}" for name, some in found.items()]
    text = "\n".join([*ways, "", *lines, ""])
    if "--print" in sys.argv:
        print(text, end="")
    else:
        FILE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
