"""Certificates are believed, belong to their hosts, and can change; nodes are given what clients need."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography import x509

from wrackline.systems.kafka.security import certificates
from wrackline.systems.kafka.security.settings import CLIENTS, OWNER, ClusterSecurity


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "cache_folder", lambda: tmp_path)


def test_authorities_are_made_once_and_sign_for_a_host() -> None:
    first, second = certificates.authorities()
    assert [one.certificate for one in certificates.authorities()] == [first.certificate, second.certificate]
    issued = first.issue("n1", "198.18.0.11")
    [own, signer] = x509.load_pem_x509_certificates(issued.keystore)
    own.verify_directly_issued_by(first.certificate)
    assert signer == first.certificate
    assert certificates.serial_of(issued.keystore.decode()) == f"{issued.serial:x}"
    names = own.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert [str(one.value) for one in names] == ["n1", "198.18.0.11"]
    other = second.issue("n1", "198.18.0.11")
    [rotated, _] = x509.load_pem_x509_certificates(other.keystore)
    assert rotated.subject == own.subject  # else no broker would take it at run time
    believed = x509.load_pem_x509_certificates(certificates.believed().read_bytes())
    assert believed == [first.certificate, second.certificate]


def test_keys_are_read_by_their_owner_alone(tmp_path: Path) -> None:
    certificates.authorities()
    assert {file.stat().st_mode & 0o777 for file in (tmp_path / "tls").glob("authority-*")} == {0o600}


def test_plain_text_needs_nothing() -> None:
    plain = ClusterSecurity()
    assert plain.properties("/etc", broker=True) == {}
    assert (plain.listener, plain.scram, plain.of(CLIENTS).librdkafka()) == ("PLAINTEXT", None, {})


def test_the_owner_is_let_in_before_there_are_other_users() -> None:
    """By PLAIN, whose passwords are in the nodes' files; clients by the mechanism that they are to use."""
    secured = ClusterSecurity("SASL_SSL", "SCRAM-SHA-512", acls=True)
    assert (secured.of(OWNER).mechanism, secured.of(CLIENTS).mechanism) == ("PLAIN", "SCRAM-SHA-512")
    made = secured.properties("/etc", broker=True)
    assert made["listener.name.secured.sasl.enabled.mechanisms"] == "PLAIN,SCRAM-SHA-512"
    assert made["listener.name.secured.ssl.keystore.location"] == "/etc/keystore.pem"
    assert made["super.users"] == "User:owner;User:ANONYMOUS"
    assert "user_clients" not in made["listener.name.secured.plain.sasl.jaas.config"]
    assert set(secured.properties("/etc", broker=False)) == {"authorizer.class.name", "super.users"}
    plain = ClusterSecurity("SASL_PLAINTEXT", "PLAIN")
    assert (
        "user_clients" in plain.properties("/", broker=True)["listener.name.secured.plain.sasl.jaas.config"]
    )
