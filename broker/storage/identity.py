"""The owner of a directory: ``meta.properties``, with Kafka's names, and a checksum that Kafka skips."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID, uuid4

from wrackline.broker.storage import checkpoint, names
from wrackline.broker.storage.checkpoint import CheckpointError
from wrackline.broker.storage.uuids import decode_uuid, encode_uuid

_CLUSTER, _NODE, _DIRECTORY = "cluster.id", "node.id", "directory.id"


def check(data_dir: Path, node_id: int, cluster_id: str) -> None:
    """The directory is this node's, or new, and is this node's then. Raises CheckpointError, OSError.

    A node in another's directory would delete the logs of topics that its own cluster does not have, so a
    directory that is in use is never taken on trust.
    """
    path = data_dir / checkpoint.META_FILE
    ours = {_CLUSTER: cluster_id, _NODE: str(node_id)}
    mend = "; if the directory is this node's, write the file with the lines " + " and ".join(
        f"{name}={value}" for name, value in ours.items()
    )
    try:
        known = checkpoint.read_properties(path)
    except CheckpointError as error:
        raise CheckpointError(f"{error}{mend}") from error
    if not ours.keys() <= known.keys() and (known or _is_used(data_dir)):
        raise CheckpointError(f"{path} is missing or does not say whose the data beside it are{mend}")
    for name, value in ours.items():
        if known.get(name, value) != value:
            raise CheckpointError(
                f"{path.name}: {name} is {known[name]}, the configuration says {value}; it belongs to "
                "another node or cluster, choose another data_dir"
            )
    if not known:
        new = encode_uuid(uuid4())
        checkpoint.write_properties(
            path, {"version": 1, _CLUSTER: cluster_id, _NODE: node_id, _DIRECTORY: new}
        )


def directory_id(data_dir: Path) -> UUID:
    """Zero where the file, of an older version, has none. Raises CheckpointError."""
    known = checkpoint.read_properties(data_dir / checkpoint.META_FILE)
    try:
        return decode_uuid(known[_DIRECTORY])
    except (KeyError, ValueError):
        return UUID(int=0)


def _is_used(data_dir: Path) -> bool:
    """Has a node written here, behind its identity?"""
    files = {*checkpoint.CHECKPOINT_FILES.values(), checkpoint.CLEAN_SHUTDOWN_FILE, checkpoint.QUORUM_FILE}
    return any(entry.name in files or names.log_of(entry.name) for entry in data_dir.iterdir())
