"""The security of connections: how clients prove who they are, and whom they believe: TLS and SASL, with
the secrets in hand.

A `Security` is made when a run begins and is never written down: its secrets are shown by no ``repr``, and
`Security.hide` takes them out of whatever others said.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from functools import cached_property

HIDDEN = "[secret]"
SHORTEST_HIDDEN = 4
"""A secret with fewer characters is part of many words: taking it out would spoil what is said."""


@dataclass(frozen=True)
class Security:
    """Kafka's names for the same settings are `security.protocol`, `sasl.*` and `ssl.*`."""

    protocol: str = "PLAINTEXT"
    mechanism: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    ca: str | None = None
    """File of the certificates that are believed, PEM; None: those that this machine believes."""
    certificate: str | None = None
    """File of the clients' own certificate, PEM."""
    key: str | None = None
    """File of its key, PEM."""
    key_password: str = field(default="", repr=False)
    verify_hostname: bool = True

    @property
    def tls(self) -> bool:
        return self.protocol.endswith("SSL")

    @property
    def sasl(self) -> bool:
        return self.protocol.startswith("SASL")

    def librdkafka(self) -> dict[str, str]:
        """The same for librdkafka. Holds secrets: for clients, and for nothing that is kept."""
        if self.protocol == "PLAINTEXT":
            return {}
        settings: dict[str, str | None] = {"security.protocol": self.protocol}
        if self.sasl:
            settings |= {
                "sasl.mechanism": self.mechanism,
                "sasl.username": self.username,
                "sasl.password": self.password,
            }
        if self.tls:
            settings |= {
                "ssl.ca.location": self.ca,
                "ssl.certificate.location": self.certificate,
                "ssl.key.location": self.key,
                "ssl.key.password": self.key_password or None,
                "ssl.endpoint.identification.algorithm": "https" if self.verify_hostname else "none",
            }
        return {name: value for name, value in settings.items() if value is not None}

    @cached_property
    def context(self) -> ssl.SSLContext | None:
        """Returns the TLS context for connections of our own; None where they are not encrypted. Raises
        OSError for files that are none."""
        if not self.tls:
            return None
        made = ssl.create_default_context(cafile=self.ca)
        made.check_hostname = self.verify_hostname
        if self.certificate is not None:
            made.load_cert_chain(self.certificate, self.key, self.key_password or None)
        return made

    def hide(self, text: str) -> str:
        """Returns the text without the secrets, whoever said it."""
        for secret in (self.password, self.key_password):
            if len(secret) >= SHORTEST_HIDDEN:
                text = text.replace(secret, HIDDEN)
        return text
