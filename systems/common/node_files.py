"""Files of a node's host: a replica's log, and all that is kept of a run."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from wrackline.fleets.base import Fleet, FleetError
from wrackline.fleets.folders import data_dirs, folders_of
from wrackline.systems import segments
from wrackline.systems.base import DeployError, Node, ReplicaLog
from wrackline.systems.common.on_hosts import deploy_error, run_on

MISSING = "missing.txt"


def replica_log(fleet: Fleet, node: Node, topic: str, partition: int) -> ReplicaLog:
    """The node's own segments of one partition. Of several log directories it is the one that has them; of
    two that do, the log that reaches further, and the other is its problem. Raises DeployError when they
    cannot be fetched."""
    name = f"{topic}-{partition}"
    logs = [
        (folder, _log_in(fleet, node, folder, topic, partition)) for folder in folders_with(fleet, node, name)
    ]
    folder, result = max(logs, key=lambda one: one[1].leo)
    if len(logs) == 1:
        return result
    other = ", ".join(one for one, _ in logs if one != folder)
    log_dirs = [one for one, _ in logs]
    return replace(result, problem=f"{name} lies in {folder} and in {other}", log_dirs=log_dirs)


def folders_with(fleet: Fleet, node: Node, name: str) -> list[str]:
    """Returns the log directories of the node that have a partition; where none has it, the first. Raises
    DeployError."""
    folders = data_dirs(node.host)
    if len(folders) == 1:
        return list(folders)
    look = f"for folder in {' '.join(folders)}; do [ ! -d $folder/{name} ] || echo $folder; done"
    return run_on(fleet, node, look).stdout.split() or [folders[0]]


def _log_in(fleet: Fleet, node: Node, folder: str, topic: str, partition: int) -> ReplicaLog:
    """Reads the log of a partition in one log directory. Raises DeployError."""
    name = f"{topic}-{partition}"
    remote = fleet.remote(node.host)
    with tempfile.TemporaryDirectory(prefix="wrackline-log-") as scratch:
        into = Path(scratch)
        try:
            checkpoints = {
                file: segments.parse_checkpoint(remote.get(f"{folder}/{file}").decode(), file=file)
                for file in _present(fleet, node, folder, segments.HIGH_WATERMARKS, segments.LOG_STARTS)
            }
            remote.get_tree(f"{folder}/{name}", into, patterns=("*.log", segments.EPOCHS))
        except (FleetError, segments.SegmentError, UnicodeDecodeError) as error:
            raise deploy_error(
                node, f"read the log of {name}", str(error), "see that the replica is on this host"
            ) from error
        return segments.read_log(
            into,
            node_id=node.node_id,
            topic=topic,
            partition=partition,
            high_watermarks=checkpoints.get(segments.HIGH_WATERMARKS, {}),
            log_starts=checkpoints.get(segments.LOG_STARTS, {}),
        )


def _present(fleet: Fleet, node: Node, folder: str, *names: str) -> list[str]:
    result = run_on(fleet, node, f"cd {folder} && ls {' '.join(names)} 2>/dev/null; true")
    return result.stdout.split()


def collect(
    fleet: Fleet, node: Node, into: Path, config_name: str, effective_config: Callable[[], str]
) -> None:
    """Copies into the folder ``into`` all that the node has logged, listing.txt, and its effective
    configuration as ``config_name``. What the host cannot give is named in ``missing.txt``."""
    into.mkdir(parents=True, exist_ok=True)
    missing: list[str] = []

    def attempt(what: str, action: Callable[[], object]) -> None:
        try:
            action()
        except (FleetError, DeployError) as error:
            missing.append(f"{what}: {error}")

    def listing() -> None:
        command = f"find {' '.join(data_dirs(node.host))} -printf '%10s %TY-%Tm-%TdT%TT %p\\n' | sort -k 3"
        (into / "listing.txt").write_text(run_on(fleet, node, command).stdout)

    def config() -> None:
        (into / config_name).write_text(effective_config())

    attempt("logs", lambda: fleet.remote(node.host).get_tree(folders_of(node.host).logs, into))
    attempt("listing", listing)
    attempt("effective configuration", config)
    if missing:
        (into / MISSING).write_text("\n".join(missing) + "\n")
