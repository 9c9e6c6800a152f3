"""A YAML file is not code: every property of the librdkafka that is installed is allowed or refused, for a
reason."""

from __future__ import annotations

import ctypes
import re
from pathlib import Path

import confluent_kafka
import pytest
from pydantic import ValidationError

from wrackline.workloads.clients.properties import ALLOWED, refusal
from wrackline.workloads.clients.settings import ClientSettings

TELLING = re.compile(
    r"\b(paths?|files?|directory|command|executed|libraries|dlopen|URLs?|URI|endpoint|keytab|PEM|callback)\b",
    re.I,
)
"""Words by which librdkafka's own description gives away that a property reaches beyond the client."""
HARMLESS_ALL_THE_SAME = {"statistics.interval.ms", "log_level"}
"""The first only makes a callback be called, which nobody has set."""


@pytest.fixture(scope="module")
def properties(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Name -> description of every property, as the very library that the clients use prints them."""
    mapped = Path("/proc/self/maps").read_text()
    found = re.search(r"\S*librdkafka\S*", mapped)
    assert found, f"no librdkafka in this process, with confluent-kafka {confluent_kafka.version()}"
    library, libc = ctypes.CDLL(found[0]), ctypes.CDLL(None)
    libc.fopen.restype = ctypes.c_void_p
    listing = tmp_path_factory.mktemp("librdkafka") / "properties.md"
    stream = ctypes.c_void_p(libc.fopen(str(listing).encode(), b"w"))
    library.rd_kafka_conf_properties_show(stream)
    libc.fclose(stream)
    rows = [line.split("|") for line in listing.read_text().splitlines() if line.count("|") >= 5]
    documented = {row[0].strip(): row[-1].strip() for row in rows}
    return {name: text for name, text in documented.items() if re.fullmatch(r"[a-z0-9._]+", name)}


def test_the_properties_come_from_the_installed_librdkafka(properties: dict[str, str]) -> None:
    assert len(properties) > 150
    assert {"plugin.library.paths", "bootstrap.servers", "linger.ms"} <= set(properties)


def test_every_property_of_the_library_has_been_looked_at(properties: dict[str, str]) -> None:
    """One that a new version brings is refused, and this says that somebody has to decide."""
    unknown = [name for name in properties if "not among the properties" in (refusal(name) or "")]
    assert unknown == []
    assert set(properties) >= ALLOWED


def test_what_reaches_files_commands_or_other_machines_is_refused(properties: dict[str, str]) -> None:
    reaching = {
        name for name, text in properties.items() if TELLING.search(name.replace(".", " ") + " " + text)
    }
    assert {
        "plugin.library.paths",
        "ssl.ca.location",
        "sasl.kerberos.kinit.cmd",
        "ssl.engine.location",
    } <= reaching
    assert {"sasl.oauthbearer.token.endpoint.url", "sasl.oauthbearer.assertion.file"} <= reaching
    assert {"https.ca.location", "offset.store.path", "ssl.keystore.location"} <= reaching
    assert sorted(reaching & ALLOWED - HARMLESS_ALL_THE_SAME) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("plugin.library.paths", "load libraries or open files"),
        ("ssl.ca.location", "read files of this machine"),
        ("ssl.engine.location", "read files of this machine"),
        ("sasl.kerberos.kinit.cmd", "run commands"),
        ("sasl.kerberos.keytab", "run commands"),
        ("sasl.oauthbearer.token.endpoint.url", "fetch URLs"),
        ("https.ca.location", "read files"),
        ("security.protocol", "plain text"),
        ("offset.store.path", "open files"),
        ("bootstrap.servers", "the harness gives it itself"),
        ("enable.auto.commit", "the harness gives it itself"),
        ("acks", "give it as workload.acks"),
        ("delivery.timeout.ms", "give it as workload.client.message_timeout_ms"),
        ("error_cb", "it is a function"),
        ("group.id", "no consumer group"),
        ("batch.sizes", "did you mean 'batch.size'"),
        ("key.serializer", "not among the properties known to do no harm"),
    ],
)
def test_a_specification_that_sets_it_is_refused_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(ValidationError, match=re.escape(why)):
        ClientSettings(librdkafka={name: "x"})


def test_what_is_allowed_reaches_the_client() -> None:
    assert ClientSettings(librdkafka={"batch.size": 100, "debug": "broker"}).librdkafka["batch.size"] == 100
