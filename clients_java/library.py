"""The library ``java``: what makes its clients."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from wrackline.clients_java import configs
from wrackline.clients_java.admin import JavaAdmin
from wrackline.clients_java.consumers import JavaConsumer, consumer
from wrackline.clients_java.jvm import Kafka, look
from wrackline.clients_java.members import JavaMember
from wrackline.clients_java.producers import JavaProducer, JavaTransactionalProducer
from wrackline.clients_java.sharing import JavaShareGroups, JavaShareMember
from wrackline.workloads.clients.base import ClientError, GroupSettings, RefusedSetting, Settings, Unavailable
from wrackline.workloads.clients.settings import ClientSettings
from wrackline.workloads.clients.store import ClientStore
from wrackline.workloads.clients.versions import (
    KAFKA_CLIENTS,
    NEWEST,
    WITH_CLOSE_OPTIONS,
    WITH_DURATION,
    WITH_SHARE_GROUPS,
)

PROBE_TXN_MS = 10_000
BY_DURATION = "by_duration"
_COORDINATOR = "org.apache.kafka.common.requests.FindCoordinatorRequest$CoordinatorType"
_loaded: dict[str, Kafka] = {}
_loading = threading.Lock()


def library(client: ClientSettings) -> Java:
    """Makes the library in the version that the settings say; the entry point of the clients ``java``."""
    return Java(client.version or NEWEST)


class Java:
    name = "java"

    def __init__(self, version: str) -> None:
        self._version = version

    @property
    def version(self) -> str:
        return self._version

    def locate(self) -> str:
        return look()

    def check(self, settings: Settings) -> None:
        """Starts no JVM: whether there is one, and what the settings would be."""
        look()
        configs.producer("", settings)
        configs.consumer("", settings, isolation=None, group="", reset=settings.reset)
        line = KAFKA_CLIENTS.line_of(self._version)
        if settings.reset.startswith(BY_DURATION) and line < WITH_DURATION:
            raise RefusedSetting(f"auto_offset_reset {settings.reset} needs kafka-clients 4.0.0 or newer")
        if settings.sharing and line < WITH_SHARE_GROUPS:
            raise RefusedSetting(f"share groups need kafka-clients 4.2.0 or newer, not {self._version}")
        if settings.membership is not None:
            newer = line >= WITH_CLOSE_OPTIONS
            configs.member("", settings, settings.membership, close_options=newer)

    def prepare(self, say: Callable[[str], None]) -> None:
        ClientStore().install(self._version, say=say).verify()
        self._kafka()  # from the main thread, and in no fleet's network

    def _kafka(self) -> Kafka:
        """Raises Unavailable."""
        with _loading:
            if self._version not in _loaded:
                result = ClientStore().find(self._version)
                if result is None:
                    raise Unavailable(
                        f"kafka-clients {self._version} is not installed on this machine: "
                        f"`wrackline get kafka --client {self._version}` does it"
                    )
                _loaded[self._version] = Kafka(self._version, result.files)
            return _loaded[self._version]

    def producer(self, bootstrap: str, settings: Settings) -> JavaProducer:
        return JavaProducer(self._kafka(), bootstrap, settings)

    def transactional(
        self, bootstrap: str, settings: Settings, transactional_id: str, timeout_ms: int
    ) -> JavaTransactionalProducer:
        return JavaTransactionalProducer(self._kafka(), bootstrap, settings, transactional_id, timeout_ms)

    def consumer(
        self,
        bootstrap: str,
        settings: Settings,
        *,
        tell_end: bool = False,
        isolation: str | None = None,
        group: str = "",
        reset: str = "",
    ) -> JavaConsumer:
        kafka = self._kafka()
        return consumer(
            kafka, bootstrap, settings, tell_end=tell_end, isolation=isolation, group=group, reset=reset
        )

    def admin(self, bootstrap: str, settings: Settings) -> JavaAdmin:
        return JavaAdmin(self._kafka(), settings, configs.admin(bootstrap, settings))

    def member(self, bootstrap: str, settings: Settings, group: GroupSettings) -> JavaMember:
        return JavaMember(self._kafka(), bootstrap, settings, group)

    def share_member(
        self, bootstrap: str, settings: Settings, group: str, *, explicit: bool
    ) -> JavaShareMember:
        return JavaShareMember(self._kafka(), bootstrap, settings, group, explicit=explicit)

    def share_groups(self, bootstrap: str, settings: Settings) -> JavaShareGroups:
        return JavaShareGroups(self._kafka(), bootstrap, settings)

    def end_txn_version(self, bootstrap: str, settings: Settings, topic: str, name: str) -> int | None:  # noqa: ARG002
        """Returns the version of EndTxn by the library's own reckoning, as it does it for each request:
        what its EndTxn may be while the cluster's finalised ``transaction.version`` is what it is, and
        what the coordinator's answer to ApiVersions allows."""
        kafka = self._kafka()
        producer = JavaTransactionalProducer(kafka, bootstrap, settings, name, PROBE_TXN_MS)
        try:
            producer.init_transactions(PROBE_TXN_MS / 1e3)
            producer.begin_transaction()
            result = _agreed(kafka, producer.handle)
            with suppress(ClientError):
                producer.abort_transaction(PROBE_TXN_MS / 1e3)
        except ClientError:
            return None
        finally:
            producer.close()
        return result


def _agreed(kafka: Kafka, handle: Any) -> int | None:
    """Returns the version of EndTxn that was agreed on; None where the client has no connection to its
    coordinator any more."""
    manager = kafka.field(handle, "transactionManager")
    transaction = kafka.named(_COORDINATOR).TRANSACTION
    node = kafka.ask(manager, "coordinator", transaction)
    answered = kafka.field(handle, "apiVersions").get(node.idString()) if node is not None else None
    if answered is None:
        return None
    builder = kafka.named("org.apache.kafka.common.requests.EndTxnRequest$Builder")
    data = kafka.named("org.apache.kafka.common.message.EndTxnRequestData")()
    if kafka.has_method(manager, "isTransactionV2Enabled"):  # of 4.0 and later
        request = builder(data, kafka.ask(manager, "isTransactionV2Enabled"))
    else:
        request = builder(data)
    end_txn = kafka.named("org.apache.kafka.common.protocol.ApiKeys").END_TXN
    oldest, latest = request.oldestAllowedVersion(), request.latestAllowedVersion()
    return int(answered.latestUsableVersion(end_txn, oldest, latest))
