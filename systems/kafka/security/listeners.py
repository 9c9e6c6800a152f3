"""The certificates that the listeners of a running cluster serve, and their change at run time (KIP-226)."""

from __future__ import annotations

import socket
import ssl
import time

from cryptography.x509 import load_der_x509_certificate

from wrackline.fleets.base import Fleet, FleetError
from wrackline.fleets.folders import folders_of
from wrackline.kafka_client.connection import Connection
from wrackline.kafka_client.model import ResourceType
from wrackline.kafka_client.transport import ProtocolError
from wrackline.systems.base import DeployError, Node
from wrackline.systems.kafka.security.certificates import authorities, believed, serial_of
from wrackline.systems.kafka.security.settings import KEYSTORE, TRUSTSTORE

ROTATED = "keystore-rotated.pem"
LOOK_S = 0.2
LOOKS = 8
"""In a row: each network thread of a broker takes another certificate by itself, and clients in turn."""


class Listeners:
    """Every error of a running cluster is a DeployError."""

    def __init__(self, fleet: Fleet, listener: str) -> None:
        self._fleet = fleet
        self._setting = f"listener.name.{listener.lower()}.ssl.keystore.location"

    def bring(self, node: Node) -> None:
        """Lays a node's first certificate, and what it believes, into the folder of its settings. Raises
        FleetError."""
        remote, configs = self._fleet.remote(node.host), folders_of(node.host).configs
        remote.put(believed().read_bytes(), f"{configs}/{TRUSTSTORE}")
        keystore = authorities()[0].issue(node.host.name, node.host.address).keystore
        remote.put(keystore, f"{configs}/{KEYSTORE}", mode=0o600)

    def served(self, node: Node, timeout_s: float) -> str:
        """Returns the serial number of the certificate that a new client is shown, which it believes."""
        context = ssl.create_default_context(cafile=str(believed()))
        try:
            with self._fleet.entered():
                plain = socket.create_connection((node.host.address, node.port), timeout=timeout_s)
            with plain, context.wrap_socket(plain, server_hostname=node.host.address) as secured:
                certificate = secured.getpeercert(binary_form=True)
        except (OSError, FleetError) as error:
            raise DeployError(f"{node.host.name} shows no certificate: {error}") from error
        assert certificate is not None
        return f"{load_der_x509_certificate(certificate).serial_number:x}"

    def rotate(self, connection: Connection, node: Node, timeout_s: float) -> str:
        """The broker that is asked serves a certificate of the other authority; returns its serial number."""
        issued = authorities()[1].issue(node.host.name, node.host.address)
        file = f"{folders_of(node.host).configs}/{ROTATED}"
        try:
            self._fleet.remote(node.host).put(issued.keystore, file, mode=0o600)
        except FleetError as error:
            raise DeployError(f"{node.host.name} takes no keystore: {error}") from error
        self._set(connection, node, file)
        self._await(node, f"{issued.serial:x}", timeout_s)
        return f"{issued.serial:x}"

    def restore(self, connection: Connection, node: Node, timeout_s: float) -> None:
        """The broker that is asked serves the certificate of its own file again."""
        self._set(connection, node, None)
        file = f"{folders_of(node.host).configs}/{KEYSTORE}"
        try:
            keystore = self._fleet.remote(node.host).run(f"cat {file}").stdout
        except FleetError as error:
            raise DeployError(f"{node.host.name}: {error}") from error
        self._await(node, serial_of(keystore), timeout_s)

    def _set(self, connection: Connection, node: Node, file: str | None) -> None:
        try:
            connection.alter_configs(ResourceType.BROKER, str(node.node_id), {self._setting: file})
        except ProtocolError as error:
            raise DeployError(f"{node.host.name} takes no other keystore: {error}") from error

    def _await(self, node: Node, serial: str, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        looks = 0
        while looks < LOOKS:
            serving = self.served(node, timeout_s)
            looks = looks + 1 if serving == serial else 0
            if not looks and time.monotonic() > deadline:
                raise DeployError(
                    f"{node.host.name} shows certificate {serving} after {timeout_s:g} s, not {serial}"
                )
            if not looks:
                time.sleep(LOOK_S)
