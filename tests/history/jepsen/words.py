"""Operations as Jepsen's Kafka workload writes them, in a few words, and a run of them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import orjson
import pyarrow.parquet as pq

from wrackline.history.jepsen.imports import Settings, import_history
from wrackline.history.jepsen.text import write

Op = dict[str, Any]


def op(process: int | str, kind: str, f: str, value: Any, **more: Any) -> Op:
    return {"process": process, "type": kind, "f": f, "value": value, **more}


def send(process: int, key: Any, value: Any, offset: int | None, kind: str = "ok") -> list[Op]:
    told = [["send", key, [offset, value]]] if kind == "ok" else [["send", key, value]]
    return [op(process, "invoke", "send", [["send", key, value]]), op(process, kind, "send", told)]


def poll(process: int, told: dict[Any, list[list[Any]]], **more: Any) -> list[Op]:
    return [
        op(process, "invoke", "poll", [["poll"]]),
        op(process, "ok", "poll", [["poll", told]], **more),
    ]


def assign(process: int, *keys: Any, begin: bool = False) -> list[Op]:
    more = {"seek-to-beginning?": True} if begin else {}
    return [op(process, kind, "assign", list(keys), **more) for kind in ("invoke", "ok")]


def imported(tmp_path: Path, *parts: list[Op], **settings: Any) -> Path:
    ops = [{**each, "index": n, "time": n * 1000} for n, each in enumerate(itertools.chain(*parts))]
    tmp_path.mkdir(exist_ok=True)
    path = tmp_path / "history.json"
    write(ops, path, "json")
    return import_history(path, tmp_path / "results", Settings("jepsen", **settings))


def events(run_dir: Path, f: str) -> list[dict[str, Any]]:
    return [
        row | {"extra": orjson.loads(row["extra"] or "null")}
        for row in pq.read_table(run_dir / "history.parquet").to_pylist()
        if row["f"] == f
    ]


def polled(process: int, f: str, kind: str, *given: list[int]) -> list[Op]:
    return [op(process, "invoke", f, [["poll"]]), op(process, kind, f, [["poll", {0: list(given)}]])]
