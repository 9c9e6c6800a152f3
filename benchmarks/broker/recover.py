"""How long a start takes after a crash: recovery of a log of a given size, batches of 1 KiB.

python benchmarks/broker/recover.py --mib 256
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from uuid import UUID

from wrackline.broker.model.batches.batch import build
from wrackline.broker.model.types import TopicPartition
from wrackline.broker.storage.logdir import LogDir
from wrackline.broker.storage.logs.log import LogSettings

_TP = TopicPartition("log", 0)
_BATCH_BYTES = 1_024


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mib", type=int, default=256, help="size of the log (default %(default)s)")
    options = parser.parse_args()
    batches = options.mib * 2**20 // _BATCH_BYTES
    settings = LogSettings(segment_bytes=64 << 20)
    with tempfile.TemporaryDirectory(prefix="wrackline-benchmark-") as folder:
        logs = LogDir(Path(folder), settings, node_id=1, cluster_id="benchmark")
        logs.open()
        logs.create(_TP, UUID(int=1), 0)
        for base in range(0, batches, 1_000):
            logs[_TP].append(
                [
                    build([b"x" * (_BATCH_BYTES - 75)], base + i, 0, 1)
                    for i in range(min(1_000, batches - base))
                ]
            )
        logs.close()
        begin = time.perf_counter()
        logs = LogDir(Path(folder), settings, node_id=1, cluster_id="benchmark")
        found = logs.open()
        took_s = time.perf_counter() - begin
        logs.close()
        assert found.logs[_TP].leo == batches
    print(
        f"recovered {options.mib} MiB, {batches:,} batches in {took_s:.2f} s: {options.mib / took_s:,.0f} "
        "MiB/s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
