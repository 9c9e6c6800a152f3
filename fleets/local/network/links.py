"""The links of hosts at a fleet's bridge, and whether somebody answers there."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

from wrackline.fleets.base import FleetError, Host
from wrackline.fleets.local.network.namespaces import entered_netns, set_link

POLL_S = 0.005


def mac_address(address: str) -> str:
    """Fixed per address, so that the neighbours' ARP entries stay right when a host comes back from a power
    cut."""
    return "02:57:" + ":".join(f"{byte:02x}" for byte in socket.inet_aton(address))


def plug_in(control: str, link: str, *, up: bool) -> None:
    """A link of the bridge up or down, in microseconds. Raises FleetError or OSError."""
    with entered_netns(control):
        inside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with inside:
        set_link(inside, link, up=up)


def wait_banner(
    control: str,
    host: Host,
    timeout_s: float,
    is_on: Callable[[], bool],
    last_words: Callable[[], str],
    patience_s: float = 0.1,
) -> None:
    """Waits until sshd answers with its banner. ``patience_s``: so long the first attempt waits for it.
    Raises FleetError with the last thing seen."""
    deadline = time.monotonic() + timeout_s
    seen = "nothing"
    while time.monotonic() < deadline:
        with entered_netns(control):
            connection = socket.socket()
        with connection:
            connection.settimeout(patience_s)
            try:
                connection.connect((host.address, host.port))
                if connection.recv(4) == b"SSH-":
                    return
                seen = "a connection that closed before its banner"
            except OSError as error:
                seen = str(error)
                # A slow sshd that is asked anew each time never comes to its answer.
                patience_s = min(2 * patience_s, 5.0) if isinstance(error, TimeoutError) else patience_s
        if not is_on():
            raise FleetError(f"host {host.name} died while booting; its last line: {last_words()}")
        time.sleep(POLL_S)
    raise FleetError(
        f"no SSH on host {host.name} ({host.address}) within {timeout_s:g} s; last: "
        f"{seen}; the last line of its sshd: {last_words()}"
    )
