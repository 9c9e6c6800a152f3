"""ZooKeeper's transaction log: everything that was ever written to nodes, in order, with its time.

Each server has one (``version-2/log.*``); the layouts are those of zookeeper.jute and FileTxnLog. Unlike a
watch, which tells once that a node is another one now, the log has every state of a node.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import orjson

from wrackline.fleets.base import Fleet, FleetError
from wrackline.fleets.folders import data_dir
from wrackline.systems.base import DeployError, Node, PartitionState
from wrackline.systems.metadata_changes import Change

SOURCE = "ZooKeeper's transaction log"
TRANSACTIONS = "transactions.jsonl"
"""What is kept of the logs of a run's servers, in the folder of the first of them."""
_MAGIC = b"ZKLG"
_FILE_HEADER, _ENTRY_HEADER = 16, struct.Struct(">qi")
_TXN_HEADER = struct.Struct(">qiqqi")
_CREATE, _DELETE, _SET, _MULTI, _CLOSE_SESSION = (1, 15, 19, 21), (2, 20), 5, 14, -11


@dataclass(frozen=True, slots=True)
class Written:
    """A node, as it is from ``at_ms`` on."""

    zxid: int
    at_ms: int
    """Milliseconds since 1970, by the clock of the server that led."""
    path: str
    data: bytes | None
    """None: there is no such node any more."""
    version: int
    """How often its data was set; 0 when it was created."""
    session: int = 0
    """Who asked for it. 0: nobody, the node has gone with its session."""
    ephemeral: bool = False
    """It was created here, and goes with the session."""


@dataclass(frozen=True, slots=True)
class _Txn:
    session: int
    zxid: int
    at_ms: int
    kind: int
    body: bytes


def fetch(fleet: Fleet, servers: Sequence[Node]) -> list[Written]:
    """All that was written, from the logs of all servers together: one that was away is brought up to date
    by a snapshot and lacks what was written meanwhile. Raises DeployError."""
    txns: dict[int, _Txn] = {}
    for server in servers:
        with tempfile.TemporaryDirectory(prefix="wrackline-zookeeper-log-") as scratch:
            try:
                folder = f"{data_dir(server.host)}/version-2"
                files = fleet.remote(server.host).get_tree(folder, Path(scratch), patterns=("log.*",))
            except FleetError as error:
                raise DeployError(f"{server.host.name}: its transaction log: {error}") from error
            for file in files:
                for txn in _txns(file.read_bytes()):
                    txns.setdefault(txn.zxid, txn)
    return list(written(txns[zxid] for zxid in sorted(txns)))


def of_log(data: bytes) -> list[Written]:
    """All that one file of a log tells."""
    return list(written(_txns(data)))


def _txns(data: bytes) -> Iterator[_Txn]:
    """Yields the transactions up to where the file ends, is cut short, or is laid out for what has not
    been written."""
    at = _FILE_HEADER if data[:4] == _MAGIC else len(data)
    while at + _ENTRY_HEADER.size <= len(data):
        _, size = _ENTRY_HEADER.unpack_from(data, at)
        at += _ENTRY_HEADER.size
        if size < _TXN_HEADER.size or at + size + 1 > len(data):
            return
        session, _, zxid, at_ms, kind = _TXN_HEADER.unpack_from(data, at)
        yield _Txn(session, zxid, at_ms, kind, data[at + _TXN_HEADER.size : at + size])
        at += size + 1  # each ends with a "B"


def written(txns: Iterable[_Txn]) -> Iterator[Written]:
    """Yields what the transactions did to nodes, that with the ends of sessions among it: their ephemeral
    nodes go."""
    owned: dict[int, dict[str, None]] = {}
    versions: dict[str, int] = {}
    for txn in txns:
        for kind, body in _parts(txn.kind, txn.body):
            if kind == _CLOSE_SESSION:
                for path in owned.pop(txn.session, {}):
                    yield Written(txn.zxid, txn.at_ms, path, None, versions.pop(path, 0))
            elif kind in _CREATE:
                path, data, ephemeral = _created(body, kind)
                versions[path] = 0
                if ephemeral:
                    owned.setdefault(txn.session, {})[path] = None
                yield Written(txn.zxid, txn.at_ms, path, data, 0, txn.session, ephemeral)
            elif kind in _DELETE:
                path, _ = _text(body, 0)
                for nodes in owned.values():
                    nodes.pop(path, None)
                yield Written(txn.zxid, txn.at_ms, path, None, versions.pop(path, 0), txn.session)
            elif kind == _SET:
                path, at = _text(body, 0)
                data, at = _buffer(body, at)
                [versions[path]] = struct.unpack_from(">i", body, at)
                yield Written(txn.zxid, txn.at_ms, path, data, versions[path], txn.session)


def _parts(kind: int, body: bytes) -> Iterator[tuple[int, bytes]]:
    if kind != _MULTI:
        yield kind, body
        return
    [count], at = struct.unpack_from(">i", body, 0), 4
    for _ in range(count):
        [part] = struct.unpack_from(">i", body, at)
        data, at = _buffer(body, at + 4)
        yield part, data


def _created(body: bytes, kind: int) -> tuple[str, bytes, bool]:
    """(path, data, whether it goes with its session)."""
    path, at = _text(body, 0)
    data, at = _buffer(body, at)
    [rules], at = struct.unpack_from(">i", body, at), at + 4
    for _ in range(rules):
        _, at = _text(body, at + 4)  # the scheme, after the permissions
        _, at = _text(body, at)
    return path, data, kind in (1, 15) and bool(body[at])


def _buffer(body: bytes, at: int) -> tuple[bytes, int]:
    [size] = struct.unpack_from(">i", body, at)
    at += 4
    return body[at : at + max(size, 0)], at + max(size, 0)


def _text(body: bytes, at: int) -> tuple[str, int]:
    data, at = _buffer(body, at)
    return data.decode(), at


def save(all_written: Iterable[Written], server: Node, file: Path) -> None:
    """Writes the transactions as a trace is written, a line for each: what ``load`` and those who judge
    traces read."""
    with file.open("wb") as opened:
        for number, one in enumerate(all_written, 1):
            line = {
                "time_ns": one.at_ms * 1_000_000,
                "step": one.zxid,
                "node": server.node_id,
                "incarnation": "zookeeper",
                "seq": number,
                "kind": "zk_write",
                "zxid": one.zxid,
                "path": one.path,
                "data": None if one.data is None else one.data.decode(errors="replace"),
                "version": one.version,
                "session": one.session,
                "ephemeral": one.ephemeral,
            }
            opened.write(orjson.dumps(line, option=orjson.OPT_APPEND_NEWLINE))


def load(file: Path) -> list[Written]:
    """Raises OSError; ValueError or KeyError for what ``save`` has not written."""
    with file.open("rb") as opened:
        result = [orjson.loads(line) for line in opened]
    return [
        Written(
            one["zxid"],
            one["time_ns"] // 1_000_000,
            one["path"],
            None if one["data"] is None else one["data"].encode(),
            one["version"],
            one["session"],
            one["ephemeral"],
        )
        for one in result
    ]


def gaps(all_written: Iterable[Written], above: str) -> Iterator[str]:
    """Yields what the logs do not have of the node ``above`` and those below it, a line each."""
    nodes: dict[str, Written] = {}
    for one in _below(all_written, above):
        before = nodes.get(one.path)
        expected = 0 if before is None or before.data is None else before.version + 1
        if one.data is not None and one.version > expected:
            yield f"{one.path}: its versions {expected} to {one.version - 1}"
        nodes[one.path] = one


def _below(all_written: Iterable[Written], above: str) -> Iterator[Written]:
    return (one for one in all_written if one.path == above or one.path.startswith(f"{above}/"))


def states(all_written: Iterable[Written], above: str) -> Iterator[tuple[Written, Mapping[str, Written]]]:
    """Each change of the node ``above`` and of those below it, with all of them as they are then, by
    path."""
    nodes: dict[str, Written] = {}
    for one in _below(all_written, above):
        if one.data is None:
            nodes.pop(one.path, None)
        else:
            nodes[one.path] = one
        yield one, nodes


def change(written: Written, host: str, state: PartitionState, partition_epoch: int) -> Change:
    """Returns the state that a partition had when this was written. ``host``: of the server whose clock it
    is."""
    return Change(
        at_ns=written.at_ms * 1_000_000,
        host=host,
        place=f"zxid {written.zxid:#x}",
        topic=state.topic,
        partition=state.partition,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=partition_epoch,
        replicas=state.replicas,
        isr=state.isr,
    )
