"""One node of Apache Kafka as a process of this machine, which lets clients in by TLS and SASL alone."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from tests.broker.clients.loopback import free_ports, wait_for
from tests.systems.kafka.conftest import installed
from wrackline.fleets.none.fleet import NoFleet
from wrackline.harness.specification.access import Access
from wrackline.plugins.acls import Resource
from wrackline.systems.external.spec import SecuritySpec
from wrackline.systems.external.system import ExternalSystem
from wrackline.systems.jvm.java import QUICK, java
from wrackline.systems.jvm.logging import logging_options, write_logging

USER, PASSWORD = "anna", "not-to-be-told"
STRANGER = "berta"
"""A user with the same password and no rights."""
LONGEST_S = 1800
_ALLOW = AclPermissionType.ALLOW
_OPERATIONS = {"".join(word.capitalize() for word in one.name.split("_")): one for one in AclOperation}
_KINDS = {
    Resource.TOPIC: ResourceType.TOPIC,
    Resource.GROUP: ResourceType.GROUP,
    Resource.TRANSACTIONAL_ID: ResourceType.TRANSACTIONAL_ID,
    Resource.CLUSTER: ResourceType.BROKER,
}
_START = """#!/bin/sh
# start.sh: starts the node, unless it runs; pid has its process id.
cd {folder} || exit 1
grep -qs '^State:.[^ZX]' "/proc/$(cat pid 2>/dev/null)/status" && exit 0
setsid timeout -s KILL {longest} {java} -Xmx256m {options} -cp '{classpath}' kafka.Kafka server.properties \\
    >>server.log 2>&1 </dev/null &
for i in $(seq 100); do pgrep -P $! >pid && exit 0; sleep 0.05; done
exit 1
"""


def _pattern(one: Access, name: str) -> tuple[ResourceType, str, ResourcePatternType]:
    beginning = name.partition("TESTID")[0].removesuffix("*")
    kind = ResourcePatternType.LITERAL if beginning == name else ResourcePatternType.PREFIXED
    return _KINDS[one.resource], beginning, kind


class Secured:
    """The node, and what a specification says to reach it."""

    def __init__(self, folder: Path) -> None:
        release = installed("4.4.0")
        self.folder = folder
        self.port, inside, controller = free_ports(3)
        self._certificates()
        (folder / "server.properties").write_text(self._properties(inside, controller))
        scram = [f"SCRAM-SHA-{bits}=[name={USER},password={PASSWORD}]" for bits in (256, 512)]
        subprocess.run(
            [
                *(java(), "-cp", release.classpath, "kafka.tools.StorageTool", "format", "-t", "A" * 22),
                *("-c", folder / "server.properties"),
                *(word for one in scram for word in ("--add-scram", one)),
            ],
            check=True,
            capture_output=True,
            timeout=240,
        )
        write_logging(folder)
        script = folder / "start.sh"
        script.write_text(
            _START.format(
                folder=folder,
                longest=LONGEST_S,
                java=java(),
                options=" ".join((*QUICK, *logging_options(folder))),
                classpath=release.classpath,
            )
        )
        script.chmod(0o755)

    def _properties(self, inside: int, controller: int) -> str:
        login = "org.apache.kafka.common.security"
        users = " ".join(f'user_{user}="{PASSWORD}"' for user in (USER, STRANGER))
        plain = f"{login}.plain.PlainLoginModule required {users};"
        clients = "listener.name.clients"
        values = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "listeners": f"CLIENTS://127.0.0.1:{self.port},INSIDE://127.0.0.1:{inside},"
            f"CONTROLLER://127.0.0.1:{controller}",
            "listener.security.protocol.map": "CLIENTS:SASL_SSL,INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "inter.broker.listener.name": "INSIDE",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "log.dirs": self.folder / "data",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": f"User:{USER};User:ANONYMOUS",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
            f"{clients}.plain.sasl.jaas.config": plain,
            f"{clients}.scram-sha-256.sasl.jaas.config": f"{login}.scram.ScramLoginModule required;",
            f"{clients}.scram-sha-512.sasl.jaas.config": f"{login}.scram.ScramLoginModule required;",
            f"{clients}.ssl.keystore.type": "PEM",
            f"{clients}.ssl.keystore.location": self.folder / "server.pem",
            "broker.session.timeout.ms": 2000,
            "broker.heartbeat.interval.ms": 300,
            "offsets.topic.num.partitions": 1,
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.num.partitions": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "group.initial.rebalance.delay.ms": 0,
            "log.cleaner.dedupe.buffer.size": 4194304,
        }
        return "".join(f"{name}={value}\n" for name, value in values.items())

    def _certificates(self) -> None:
        """A signer, and the broker's own certificate for 127.0.0.1."""
        steps = """
            set -e
            openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=signer
            openssl req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=broker
            echo subjectAltName=IP:127.0.0.1 >names
            openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 \
                -extfile names -out server.crt
            cat server.key server.crt ca.pem >server.pem
            openssl req -x509 -newkey rsa:2048 -nodes -keyout other.key -out other.pem -days 2 -subj /CN=other
        """
        subprocess.run(
            ["/bin/sh", "-c", steps], cwd=self.folder, check=True, capture_output=True, timeout=120
        )

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def security(
        self, mechanism: str = "SCRAM-SHA-512", *, ca: str = "ca.pem", user: str = USER
    ) -> dict[str, Any]:
        """As a specification says it; the password is in the environment variable THEIR_PASSWORD."""
        (self.folder / "user").write_text(f"{user}\n")
        return {
            "protocol": "SASL_SSL",
            "sasl": {
                "mechanism": mechanism,
                "username": {"file": str(self.folder / "user")},
                "password": {"env": "THEIR_PASSWORD"},
            },
            "ssl": {"ca_location": str(self.folder / ca)},
        }

    def reach(self, mechanism: str = "SCRAM-SHA-512", **keys: str) -> None:
        """Raises DeployError."""
        system = self.system(mechanism, **keys)
        system.install()
        system.close()

    def system(self, mechanism: str = "SCRAM-SHA-512", **keys: str) -> ExternalSystem:
        spec = SecuritySpec.model_validate(self.security(mechanism, **keys))
        return ExternalSystem(NoFleet("none"), bootstrap=[self.address], security=spec.resolve)

    @property
    def owner(self) -> AdminClient:
        """Its owner, who may do everything."""
        return AdminClient(
            {
                "bootstrap.servers": self.address,
                "security.protocol": "SASL_SSL",
                "sasl.mechanism": "PLAIN",
                "sasl.username": USER,
                "sasl.password": PASSWORD,
                "ssl.ca.location": str(self.folder / "ca.pem"),
            }
        )

    def grant(self, needed: Iterable[Access]) -> None:
        """The stranger gets these rights, as `wrackline plan` shows them, and no others."""
        owner = self.owner
        everything = AclBindingFilter(
            ResourceType.ANY,
            None,
            ResourcePatternType.ANY,
            None,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        bindings = [
            AclBinding(*_pattern(one, name), f"User:{STRANGER}", "*", _OPERATIONS[operation], _ALLOW)
            for one in needed
            for name in one.names
            for operation in one.operations
        ]
        for done in (*owner.delete_acls([everything]).values(), *owner.create_acls(bindings).values()):
            done.result(30)

    def left(self) -> tuple[set[str], set[str]]:
        """The topics and groups of runs that the cluster has."""
        owner = self.owner
        groups = owner.list_consumer_groups().result(30)
        assert not groups.errors
        names = {one.group_id for one in groups.valid}
        return {one for one in owner.list_topics(timeout=30).topics if one.startswith("wrackline")}, names

    def commands(self) -> dict[str, Any]:
        pid = f"$(cat {self.folder}/pid)"
        gone = f"! grep -qs '^State:.[^ZX]' /proc/{pid}/status"
        return {
            "kill": {
                "run": f"kill -9 {pid}; for i in $(seq 50); do {gone} && exit; sleep 0.1; done",
                "probe": gone,
            },
            "start": str(self.folder / "start.sh"),
        }


@contextmanager
def secured(folder: Path) -> Iterator[Secured]:
    made = Secured(folder)
    try:
        subprocess.run([folder / "start.sh"], check=True, timeout=60)
        log = folder / "server.log"
        wait_for("Kafka", lambda: "Kafka Server started" in log.read_text(), 180)
        yield made
    finally:
        subprocess.run(["/bin/sh", "-c", "kill -9 $(cat pid)"], cwd=folder, stderr=subprocess.DEVNULL)
