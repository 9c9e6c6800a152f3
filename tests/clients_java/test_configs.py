"""The settings by which clients are let in, in the words of kafka-clients; no JVM is started."""

from __future__ import annotations

from pathlib import Path

import pytest

from wrackline.clients_java.configs import security
from wrackline.kafka_client.security import Security
from wrackline.workloads.clients.base import RefusedSetting


def test_a_password_is_quoted_as_jaas_wants_it() -> None:
    given = Security("SASL_PLAINTEXT", "SCRAM-SHA-512", "anna", 'a"b\\c').librdkafka()
    assert security(given) == {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required "
        'username="anna" password="a\\"b\\\\c";',
    }
    assert ".plain.PlainLoginModule " in security({**given, "sasl.mechanism": "PLAIN"})["sasl.jaas.config"]


def test_certificates_are_taken_as_the_files_have_them(tmp_path: Path) -> None:
    certificate, key = tmp_path / "client.pem", tmp_path / "client.key"
    certificate.write_text("the chain")
    key.write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    given = Security(
        "SSL",
        ca="ca.pem",
        certificate=str(certificate),
        key=str(key),
        key_password="k",
        verify_hostname=False,
    )
    assert security(given.librdkafka()) == {
        "security.protocol": "SSL",
        "ssl.endpoint.identification.algorithm": "",
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": "the chain",
        "ssl.keystore.key": "-----BEGIN ENCRYPTED PRIVATE KEY-----",
        "ssl.key.password": "k",
    }
    key.write_text("-----BEGIN RSA PRIVATE KEY-----")
    with pytest.raises(RefusedSetting, match=r"ssl\.key_location: Java reads keys in PKCS #8 alone"):
        security(given.librdkafka())


def test_plain_text_needs_nothing_and_other_properties_have_no_counterpart() -> None:
    assert security(Security().librdkafka()) == {}
    with pytest.raises(RefusedSetting, match=r"broker\.version\.fallback: these are properties of libr"):
        security({"broker.version.fallback": "0.9.0"})
