"""The settings of a deployed cluster's security in a specification."""

from __future__ import annotations

from typing import Self

from pydantic import model_validator

from wrackline.plugins.fields import Strict
from wrackline.systems.kafka.security.settings import ClusterSecurity, Mechanism, Protocol


class KafkaSecuritySpec(Strict):
    """The way that clients and brokers let each other in. Users, passwords and certificates are the run's."""

    protocol: Protocol = "PLAINTEXT"
    """Kafka's `security.protocol`, of the listener of clients and brokers."""
    mechanism: Mechanism | None = None
    """How clients and brokers prove who they are, where the protocol has SASL."""
    acls: bool = False
    """Whether clients may do only what their workload needs."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        sasl = self.protocol.startswith("SASL")
        if sasl != (self.mechanism is not None):
            raise ValueError(f"protocol {self.protocol} {'needs a' if sasl else 'has no'} mechanism")
        if self.acls and not sasl:
            raise ValueError("acls need to know who a client is: protocol SASL_SSL or SASL_PLAINTEXT")
        return self

    def build(self) -> ClusterSecurity:
        return ClusterSecurity(self.protocol, self.mechanism, self.acls)
