"""How clients and nodes of a deployed cluster let each other in: settings of nodes, and those of clients.

There are two users. ``owner`` may do everything: the nodes among themselves, and the harness. ``clients`` are
those of the workload; with ACLs they may do what their workload needs. The passwords are no secrets, since
whoever reaches the hosts of a run may do anything to them. Controllers are asked in plain text, as nobody.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from wrackline.kafka_client.security import Security

Protocol = Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
Mechanism = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
OWNER, CLIENTS = "owner", "clients"
PASSWORDS: Mapping[str, str] = {OWNER: "owner-of-the-run", CLIENTS: "clients-of-the-run"}
KEYSTORE, TRUSTSTORE = "keystore.pem", "truststore.pem"
OWNERS = "PLAIN"
"""The mechanism of the owner: its password must be known before there is a cluster."""
OWN_KEYS = (
    "authorizer.class.name",
    "sasl.enabled.mechanisms",
    "sasl.mechanism.inter.broker.protocol",
    "super.users",
)
"""Settings of nodes that are system.security's, where it says something."""
BY_SECURITY = "system.security gives it to each node; leave it out"
_PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
_SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule"
_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@dataclass(frozen=True, slots=True)
class ClusterSecurity:
    """The security of a deployed cluster; as it is by default, plain text and no authorizer."""

    protocol: Protocol = "PLAINTEXT"
    mechanism: Mechanism | None = None
    acls: bool = False

    @property
    def tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def listener(self) -> str:
        """Returns the name of the listener of clients and brokers."""
        return "PLAINTEXT" if self.protocol == "PLAINTEXT" else "SECURED"

    def of(self, user: str) -> Security:
        """Returns what a client is let in by."""
        return Security(
            protocol=self.protocol,
            mechanism="" if self.mechanism is None else self.mechanism if user == CLIENTS else OWNERS,
            username=user if self.mechanism else "",
            password=PASSWORDS[user] if self.mechanism else "",
            ca=_authorities() if self.tls else None,
        )

    @property
    def scram(self) -> str | None:
        """Returns the mechanism of clients, where their passwords are given to the running cluster."""
        return None if self.mechanism == "PLAIN" else self.mechanism

    def properties(self, folder: str, *, broker: bool) -> dict[str, str]:
        """Returns what a node needs beside its listeners. ``folder``: where its stores are."""
        made: dict[str, str] = {}
        own = f"listener.name.{self.listener.lower()}"
        if broker and self.mechanism is not None:
            made |= {
                f"{own}.sasl.enabled.mechanisms": ",".join(dict.fromkeys((OWNERS, self.mechanism))),
                "sasl.mechanism.inter.broker.protocol": OWNERS,
                f"{own}.plain.sasl.jaas.config": self._plain_login(),
            }
            if self.scram is not None:
                made[f"{own}.{self.scram.lower()}.sasl.jaas.config"] = f"{_SCRAM_LOGIN} required;"
        if broker and self.tls:
            made |= {
                f"{own}.ssl.keystore.type": "PEM",
                f"{own}.ssl.keystore.location": f"{folder}/{KEYSTORE}",
                f"{own}.ssl.truststore.type": "PEM",
                f"{own}.ssl.truststore.location": f"{folder}/{TRUSTSTORE}",
            }
        if self.acls:
            made |= {"authorizer.class.name": _AUTHORIZER, "super.users": f"User:{OWNER};User:ANONYMOUS"}
        return made

    def _plain_login(self) -> str:
        """Clients are among those whose passwords are in the nodes' files where they use PLAIN."""
        users = PASSWORDS if self.scram is None else {OWNER: PASSWORDS[OWNER]}
        listed = " ".join(f'user_{user}="{password}"' for user, password in users.items())
        return f'{_PLAIN_LOGIN} required username="{OWNER}" password="{PASSWORDS[OWNER]}" {listed};'


def _authorities() -> str:
    """Imports cryptography where it is needed: most commands have nothing to do with it."""
    from wrackline.systems.kafka.security.certificates import believed

    return str(believed())
