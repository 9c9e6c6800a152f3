"""The statements of an ensemble's servers about themselves, by their commands of four letters."""

from __future__ import annotations

import re
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from wrackline.fleets.base import Fleet, FleetError
from wrackline.systems.base import DeployError, Node

_MODE = re.compile(r"^Mode: (\w+)", re.MULTILINE)


def modes(fleet: Fleet, servers: Sequence[Node], timeout_s: float) -> dict[int, str]:
    """Node -> ``leader``, ``follower`` or ``standalone``, of those that answer in time and have a majority.
    Raises DeployError when the fleet's network cannot be entered."""
    if not servers:
        return {}
    with ThreadPoolExecutor(max_workers=len(servers), thread_name_prefix="ensemble") as pool:
        answers = pool.map(lambda one: _asked(fleet, one, "srvr", timeout_s), servers)
        result = {node.node_id: _MODE.search(said) for node, said in zip(servers, answers, strict=True)}
    return {node_id: mode[1] for node_id, mode in result.items() if mode}


def _asked(fleet: Fleet, server: Node, word: str, timeout_s: float) -> str:
    """Returns the server's answer; empty when there is none."""
    try:
        with fleet.entered():
            made = socket.create_connection((server.host.address, server.port), timeout=timeout_s)
    except FleetError as error:
        raise DeployError(f"the fleet's network cannot be entered: {error}") from error
    except OSError:
        return ""
    said = bytearray()
    with made:
        try:
            made.sendall(word.encode())
            while part := made.recv(4096):
                said += part
        except OSError:
            return ""
    return said.decode(errors="replace")
