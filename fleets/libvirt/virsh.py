"""libvirt by its own program. The Python binding would have to be compiled on every machine, against headers
of its libvirt, and to be in step with it; of it we would use eight calls."""

from __future__ import annotations

import re
import tempfile
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass

from wrackline.fleets.base import FleetError
from wrackline.fleets.local.network.namespaces import run_tool

URI = "qemu:///system"
_HERE = re.compile(r"qemu(\+unix)?:///system(\?.*)?")
TIMEOUT_S = 60.0


def is_here(uri: str) -> bool:
    """Tells whether a URI names a hypervisor of this machine that has root's rights."""
    return _HERE.fullmatch(uri) is not None


@dataclass(frozen=True, slots=True)
class Virsh:
    """The hypervisor behind a URI. Every method raises FleetError with libvirt's own words."""

    uri: str = URI

    def __call__(self, *words: str) -> str:
        """One command; what it printed."""
        return run_tool(["virsh", "--quiet", "--connect", self.uri, *words], timeout_s=TIMEOUT_S)

    def security_models(self) -> tuple[str, ...]:
        """Returns the security models that keep domains from files of others: ``dac``, ``apparmor``,
        ``selinux``."""
        models = ElementTree.fromstring(self("capabilities")).findall("host/secmodel/model")
        return tuple(model.text or "" for model in models if model.text != "none")

    def create_paused(self, domain: str) -> None:
        """Start a domain, given as XML, with its processors stopped. libvirt forgets it with its end."""
        with tempfile.NamedTemporaryFile("w", prefix="wrackline-", suffix=".xml") as file:
            file.write(domain)
            file.flush()
            self("create", file.name, "--paused")

    def domains(self) -> list[str]:
        """Names of those that are on."""
        return self("list", "--name").split()

    def destroy(self, name: str) -> None:
        """Take its power away. Fine when there is none of the name."""
        try:
            self("destroy", name)
        except FleetError:
            if name in self.domains():
                raise
