"""The settings of the system ``external`` in a specification: a cluster that runs already."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    field_validator,
    model_validator,
)
from pydantic_core import CoreSchema

from wrackline.fleets.base import Fleet
from wrackline.fleets.none.fleet import NoFleet
from wrackline.kafka_client.security import Security
from wrackline.plugins.capabilities import EVERYTHING, Capability
from wrackline.plugins.fields import SECONDS, JsonSchema, Like, Strict
from wrackline.systems.base import DeployError, System
from wrackline.systems.external.commands.operations import (
    FAULTS,
    PLACEHOLDERS,
    SAFE,
    UNDOES,
    BrokerCommand,
    Command,
    placeholders,
)
from wrackline.systems.external.commands.runner import Known
from wrackline.systems.external.system import ExternalSystem
from wrackline.systems.spec import Configured, Layout, Seconds, SystemSpec, Waits

NOT_OURS = "its hosts are not ours"
_ADDRESS = re.compile(r"(?:\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
_SECRET = "must be {env: VARIABLE} or {file: PATH}: a specification is saved with every run of it"
SafeText = Annotated[str, Like(f"^{SAFE.pattern}$", "use letters, digits and _@%+=:,./- without spaces")]
HostName = Annotated[
    str,
    Like(r"^[a-z][a-z0-9-]*[0-9]+$", "use a-z, 0-9 and -, a letter first and a digit last, such as kafka-1"),
]
SomeSeconds = Annotated[float, Field(gt=0, le=600), SECONDS]


def _address(given: str) -> str:
    match = _ADDRESS.fullmatch(given)
    if match is None or not 0 < int(match[1]) < 65_536:
        raise ValueError(f"{given!r} is no address: give it as host:port")
    return given


class SecretSpec(Strict):
    """The place where a secret is found when a run begins."""

    model_config = ConfigDict(hide_input_in_errors=True)

    env: str | None = None
    """An environment variable."""
    file: str | None = None
    """A file whose first line it is."""

    @model_validator(mode="before")
    @classmethod
    def _not_itself(cls, given: Any) -> Any:
        if not isinstance(given, dict | SecretSpec):
            raise ValueError(_SECRET)
        return given

    @model_validator(mode="after")
    def _one_place(self) -> Self:
        if (self.env is None) == (self.file is None):
            raise ValueError(_SECRET)
        return self

    def read(self, key: str) -> str:
        """Raises DeployError, which names the key."""
        if self.env is not None:
            if not (result := os.environ.get(self.env)):
                raise DeployError(f"system.security.{key}: the environment variable {self.env} is not set")
            return result
        assert self.file is not None
        try:
            lines = Path(self.file).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise DeployError(f"system.security.{key}: {_unreadable(self.file, error)}") from error
        if not lines or not lines[0]:
            raise DeployError(f"system.security.{key}: {self.file} has nothing in its first line")
        return lines[0]


class SaslSpec(Strict):
    """Kafka's settings `sasl.*`."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
    """How clients prove who they are."""
    username: SecretSpec
    """Who they are."""
    password: SecretSpec
    """What only they know."""


class SslSpec(Strict):
    """librdkafka's settings `ssl.*`. Files are PEM."""

    ca_location: str | None = None
    """Certificates of who signed the brokers'; those that this machine believes by default."""
    certificate_location: str | None = None
    """The clients' own certificate, where brokers ask for one."""
    key_location: str | None = None
    """Its key."""
    key_password: SecretSpec | None = None
    """What the key is encrypted with."""
    verify_hostname: bool = True
    """Whether a broker's certificate must name the host that it was reached by."""

    @model_validator(mode="after")
    def _key_and_certificate(self) -> Self:
        if (self.certificate_location is None) != (self.key_location is None):
            raise ValueError("certificate_location and key_location need each other")
        return self


class SecuritySpec(Strict):
    """The way that clients, and the harness itself, reach the brokers."""

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = "PLAINTEXT"
    """Kafka's `security.protocol`."""
    sasl: SaslSpec | None = None
    """Who the clients are."""
    ssl: SslSpec = SslSpec()
    """Whom they believe."""

    @model_validator(mode="after")
    def _of_the_protocol(self) -> Self:
        if self.protocol.startswith("SASL") != (self.sasl is not None):
            raise ValueError(f"protocol {self.protocol} {'has no' if self.sasl else 'needs'} sasl")
        if not self.protocol.endswith("SSL") and self.ssl != SslSpec():
            raise ValueError(f"protocol {self.protocol} has no ssl")
        return self

    def resolve(self) -> Security:
        """Returns the security with the secrets, and files that can be read. Raises DeployError."""
        sasl, ssl = self.sasl, self.ssl
        for key, location in _locations(ssl):
            try:
                Path(location).read_bytes()
            except OSError as error:
                raise DeployError(f"system.security.ssl.{key}: {_unreadable(location, error)}") from error
        made = Security(
            protocol=self.protocol,
            mechanism=sasl.mechanism if sasl else "",
            username=sasl.username.read("sasl.username") if sasl else "",
            password=sasl.password.read("sasl.password") if sasl else "",
            ca=ssl.ca_location,
            certificate=ssl.certificate_location,
            key=ssl.key_location,
            key_password=ssl.key_password.read("ssl.key_password") if ssl.key_password else "",
            verify_hostname=ssl.verify_hostname,
        )
        try:
            _ = made.context
        except OSError as error:
            raise DeployError(
                f"system.security.ssl: the files are no PEM certificates and key that fit: {error}"
            ) from error
        return made


def _locations(ssl: SslSpec) -> Iterator[tuple[str, str]]:
    for key in ("ca_location", "certificate_location", "key_location"):
        if (location := getattr(ssl, key)) is not None:
            yield key, location


def _unreadable(path: str, wrong: Exception) -> str:
    why = wrong.strerror if isinstance(wrong, OSError) else "it is no text"
    return f"{path} cannot be read: {why}"


class HostSpec(Strict):
    """One broker of the cluster."""

    node: Annotated[int, Field(ge=0)]
    """Its id."""
    address: SafeText | None = None
    """Stands for {address} in commands; by default what the cluster advertises."""
    values: dict[str, SafeText] = Field(default_factory=dict)
    """Placeholders of your own, such as `instance: i-0abc`. Letters, digits and `_@%+=:,./-`."""

    @field_validator("values")
    @classmethod
    def _with_names_of_their_own(cls, given: dict[str, str]) -> dict[str, str]:
        for name in given:
            if name in PLACEHOLDERS or not re.fullmatch("[a-z][a-z0-9_]*", name):
                raise ValueError(f"{name!r} is no name for a placeholder of your own")
        return given


class CommandSpec(Strict):
    """A command for the shell of this machine. {host}, {node}, {address}, {port}, {others}, {test} and the
    host's own values stand for themselves; {{word}} is for braces that the shell shall see."""

    run: Annotated[str, Field(min_length=1)]
    """What is done."""
    probe: Annotated[str, Field(min_length=1)] | None = None
    """Proves it: exits with 0 as long as it is in force, and with another code before and afterwards."""
    timeout_s: SomeSeconds = 30
    """How long each may take; then it is ended, and has failed."""

    @model_validator(mode="before")
    @classmethod
    def _by_text(cls, given: Any) -> Any:
        """``start: TEXT`` for ``start: {run: TEXT}``."""
        return {"run": given} if isinstance(given, str) else given

    @classmethod
    def __get_pydantic_json_schema__(cls, core: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchema:
        return {"anyOf": [{"type": "string", "minLength": 1}, handler(core)]}


def _known_orders(given: dict[str, CommandSpec]) -> dict[str, CommandSpec]:
    """Raises ValueError for the first that does not fit."""
    for name, command in given.items():
        if name not in set(BrokerCommand):
            raise ValueError(
                f"{name}: nothing is done by such a command; known here: {', '.join(BrokerCommand)}"
            )
        mends = UNDOES.get(BrokerCommand(name))
        if mends is not None and mends not in given:
            raise ValueError(f"{name}: it needs the command {mends}, which undoes it")
        if mends is not None and command.probe is None:
            raise ValueError(
                f"{name}: it needs a probe, a command that exits with 0 only while it is in force: "
                f"{name}: {{run: ..., probe: ...}}"
            )
        if mends is None and command.probe is not None:
            raise ValueError(f"{name}: it has no probe, since that of what it undoes tells; leave it out")
    return given


_ORDERS = {"propertyNames": {"enum": [str(order) for order in BrokerCommand]}}


class ExternalWaits(Waits):
    """Waits for brokers of which nobody knows how long they take."""

    start_s: Seconds = 60.0
    """After a command has brought a broker back, it answers after this time at most."""


class ExternalSpec(SystemSpec):
    """Settings of the system ``external``."""

    usual_fleet: ClassVar[str] = "none"

    kind: Literal["external"] = "external"
    """A cluster that runs already: nothing is deployed, and nothing but topics of our own is made in it."""
    bootstrap: Annotated[
        tuple[Annotated[str, AfterValidator(_address)], ...], Field(min_length=1, strict=False)
    ]
    """Brokers to begin with, as host:port."""
    hosts: dict[HostName, HostSpec] = Field(default_factory=dict)
    """Every broker by a name that ends in a digit. Nobody listed: they are called n and their id."""
    commands: Annotated[
        dict[str, CommandSpec], AfterValidator(_known_orders), Field(json_schema_extra=_ORDERS)
    ] = Field(default_factory=dict)
    """What faults are done by; without commands there are none."""
    security: SecuritySpec = SecuritySpec()
    """How the brokers are reached."""
    keep_topics: bool = False
    """Whether the run's topic stays in the cluster."""
    waits: ExternalWaits = ExternalWaits()
    """How long a run waits for the system."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        ids = [one.node for one in self.hosts.values()]
        if len(set(ids)) < len(ids):
            raise ValueError(f"hosts: two have the same node: {', '.join(map(str, ids))}")
        for name, command in self.commands.items():
            for word in placeholders(f"{command.run}\n{command.probe or ''}"):
                lacking = [host for host, one in self.hosts.items() if word not in one.values]
                if word not in PLACEHOLDERS and (lacking or not self.hosts):
                    raise ValueError(
                        f"commands.{name}: {{{word}}} has no value for "
                        f"{lacking[0] if lacking else 'any host'}; known are {', '.join(PLACEHOLDERS)} and "
                        f"hosts.HOST.values; for braces that the shell shall see write {{{{{word}}}}}"
                    )
        return self

    def reach(self) -> None:
        system = self._system(NoFleet("none"), "")
        system.install()
        system.close()

    def build(self, fleet: Fleet, layout: Layout) -> System:
        return self._system(fleet, layout.test_id)

    def _system(self, fleet: Fleet, test_id: str) -> ExternalSystem:
        return ExternalSystem(
            fleet,
            bootstrap=self.bootstrap,
            hosts=[Known(name, one.node, one.address, one.values) for name, one in self.hosts.items()],
            commands={BrokerCommand(name): _command(one) for name, one in self.commands.items()},
            security=self.security.resolve,
            keep_topics=self.keep_topics,
            start_s=self.waits.start_s,
            test=test_id,
        )

    def configured(self) -> Configured:
        unread = {"replicas": NOT_OURS, "processes": NOT_OURS}
        if BrokerCommand.LOGS not in self.commands:
            unread["logs"] = f"{NOT_OURS}, and there is no command `logs`"
        return Configured(flush_mode="not known", recovery_strategy="not known", unread=unread)

    # --- what is different where nothing is deployed ------------------------------------------------------

    @property
    def offers(self) -> frozenset[Capability]:
        """Nobody knows beforehand what it lacks: the warm phase shows it. An application of Kafka Streams
        would leave topics of its own behind."""
        return EVERYTHING - {Capability.STREAMS}

    def broker_names(self) -> tuple[str, ...]:
        return tuple(self.hosts)

    def cannot(self, fault: str) -> str | None:
        order = FAULTS.get(fault)  # None: no command could do it, or none is needed
        if order is not None and order not in self.commands:
            return f"{fault} needs system.commands.{order} (and {UNDOES[order]}), and there is none"
        return None

    @property
    def secured(self) -> bool:
        return self.security.protocol != Security().protocol

    def topic_of(self, test_id: str, topic: str) -> str:
        return f"wrackline-{test_id}-{topic}"

    def client_settings(self) -> Mapping[str, str]:
        return self.security.resolve().librdkafka()


def _command(spec: CommandSpec) -> Command:
    return Command(spec.run, spec.probe, spec.timeout_s)
