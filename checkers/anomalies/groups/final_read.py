"""The records of the final read that somebody may lack, without those that compaction may have taken."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wrackline.checkers.anomalies.about import AboutRun
from wrackline.checkers.anomalies.groups.deliveries import Records, apart, records_of
from wrackline.checkers.anomalies.keys import LastOfKeys
from wrackline.checkers.inputs.arrays import Ints


class FinalRead:
    """Of each partition the records that were kept. ``row`` of these is the index of their event."""

    def __init__(self, about: AboutRun) -> None:
        self._about = about
        self._kept: dict[int, list[Records]] = defaultdict(list)
        compacted = [one for one in about.logs.values() if one.compacted]
        self._keys = {one.number: LastOfKeys(one.topic, one.partition) for one in compacted}

    def take(self, batch: pa.RecordBatch) -> Iterator[tuple[int, Records]]:
        """The records of these events, partition by partition: who wants some says ``keep``."""
        for keys in self._keys.values():
            keys.take(batch)
        is_drain = pc.and_(pc.equal(batch.column("f"), "drain"), pc.equal(batch.column("type"), "ok"))
        drains = batch.filter(is_drain)
        records = records_of(drains, self._about)
        index: Ints = drains.column("index").to_numpy()
        found = Records(index[records.row], records.log, records.offset, records.value)
        found = found.take(found.value >= 0)
        for (log,), rows in apart(found.log):
            yield log, found.take(rows)

    def keep(self, log: int, records: Records) -> None:
        self._kept[log].append(records)

    def of(self, log: int) -> Records:
        """Those that must be there for every reader: a later one of the key follows none of them."""
        found = Records.joined(self._kept[log])
        if log not in self._keys or not len(found):
            return found
        last = self._keys[log].of_values(found.value.tolist())
        followed = [offset < last.get(value, offset) for _, offset, value in found.rows()]
        return found.take(~np.array(followed, np.bool_))
