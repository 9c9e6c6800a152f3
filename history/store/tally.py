"""The number of rows of each kind in a history. A history says it of itself in the footer of its file, so
that rows which were taken out are missed, whatever was done to the indexes of the others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from wrackline.history.store.schema import METADATA_KEY

TALLY_KEY: Final = METADATA_KEY + b".rows"
Tally = dict[str, int]
"""``send ok`` -> how many rows are completions of sends that came back ``ok``."""


def count(into: Tally, f: Sequence[str], kind: Sequence[str], f_code: Any, kind_code: Any) -> None:
    """Adds rows: for each the place of its ``f`` and of its ``type`` among these names."""
    width = len(kind)
    result = np.bincount(np.asarray(f_code, np.int64) * width + np.asarray(kind_code, np.int64))
    for number in np.flatnonzero(result).tolist():
        name = f"{f[number // width]} {kind[number % width]}"
        into[name] = into.get(name, 0) + int(result[number])


def count_table(into: Tally, table: pa.Table) -> None:
    """Adds the rows of a table of the history's schema."""
    names, codes = [], []
    for column in ("f", "type"):
        encoded = table[column].combine_chunks().dictionary_encode()
        names.append(encoded.dictionary.to_pylist())
        codes.append(encoded.indices.to_numpy(zero_copy_only=False))
    count(into, names[0], names[1], codes[0], codes[1])


def tally_in(file: pq.ParquetFile) -> Tally | None:
    """Reads the tally of an open history; None of one that an earlier version wrote. Raises ValueError."""
    said = (file.schema_arrow.metadata or {}).get(TALLY_KEY)
    if said is None:
        return None
    result = orjson.loads(said)
    if not isinstance(result, dict) or not all(isinstance(one, int) for one in result.values()):
        raise ValueError("its footer does not say how many rows there are")
    return result


def difference(said: Tally, there: Tally) -> str:
    """Returns which rows are missing or too many, in half a line; empty: none."""
    error = [
        f"{there.get(name, 0):,} of {said.get(name, 0):,} rows {name}"
        for name in sorted(said.keys() | there.keys())
        if said.get(name, 0) != there.get(name, 0)
    ]
    more = f" and of {len(error) - 5} more kinds" if len(error) > 5 else ""
    return ", ".join(error[:5]) + more
