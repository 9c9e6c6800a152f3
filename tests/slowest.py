"""The slowest tests of the last run, from the record that pytest wrote of it: `./wrack test --slowest`."""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

MANY = 20


def main(record: Path) -> int:
    """Prints them, the slowest first; seconds are set-up and tear-down included. The exit code."""
    if not record.exists():
        print(
            "wrack: there is no record of a run of the tests yet; `./wrack test` writes one", file=sys.stderr
        )
        return 2
    found = [
        (float(case.get("time", 0)), f"{case.get('classname', '').replace('.', '/')}.py::{case.get('name')}")
        for case in ElementTree.parse(record).iter("testcase")
    ]
    found.sort(reverse=True)
    for seconds, name in found[:MANY]:
        print(f"{seconds:7.1f} s  {name}")
    total, shown = (sum(seconds for seconds, _ in some) for some in (found, found[:MANY]))
    print(
        f"{shown:.0f} of the {total:.0f} s that {len(found)} tests took, one worker's seconds added to "
        "another's"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
