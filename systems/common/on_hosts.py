"""Commands on the hosts of nodes, on many at once; an error names the host, the node and the command."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

from wrackline.fleets.base import Fleet, FleetError, Result
from wrackline.systems.base import DeployError, Node
from wrackline.systems.common.node_log import way_out_of

T = TypeVar("T")


def run_on(fleet: Fleet, node: Node, command: str, *, timeout_s: float = 30.0, check: bool = True) -> Result:
    """Run one command on the node's host. Raises DeployError when the host cannot be reached and, with
    ``check``, on an exit code other than 0."""
    try:
        result = fleet.remote(node.host).run(command, timeout_s=timeout_s, check=False)
    except FleetError as error:
        raise deploy_error(node, command, str(error), "see that the host is up and reachable") from error
    if check and not result.ok:
        output = (result.stderr or result.stdout).strip()
        raise deploy_error(
            node, command, f"exit code {result.exit_code}: {output}", way_out_of(output, node.host)
        )
    return result


def on_each(nodes: Sequence[Node], action: Callable[[Node], T]) -> list[T]:
    """Does ``action`` on all nodes at once. Raises DeployError with every host's trouble when there is
    any."""
    if not nodes:
        return []
    with ThreadPoolExecutor(max_workers=len(nodes), thread_name_prefix="deploy") as pool:
        futures = [pool.submit(action, node) for node in nodes]
    troubles = [trouble for future in futures if (trouble := future.exception())]
    for trouble in troubles:
        if not isinstance(trouble, DeployError):
            raise trouble
    if troubles:
        raise DeployError("\n".join(map(str, troubles))) from troubles[0]
    return [future.result() for future in futures]


@contextmanager
def bringing(node: Node, what: str = "upload") -> Iterator[None]:
    """Raises DeployError where the host does not take what it is sent."""
    try:
        yield
    except FleetError as error:
        raise deploy_error(node, what, str(error), "see that the host's disk has room") from error


def deploy_error(node: Node, command: str, what: str, way_out: str) -> DeployError:
    return DeployError(f"{node.host.name} (node {node.node_id}): {command}: {what}; {way_out}")
