"""Clients are let in by SCRAM as the RFC's own exchange shows it; secrets are found and never shown."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from wrackline.kafka_client.scram import Scram, ScramError
from wrackline.kafka_client.security import Security
from wrackline.systems.base import DeployError
from wrackline.systems.external.spec import SecuritySpec

NONCE = "rOprNGfwEbeRWgbNEkqO"
FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def test_scram_is_that_of_rfc_7677() -> None:
    exchange = Scram("SCRAM-SHA-256", "user", "pencil", NONCE)
    assert exchange.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert exchange.final(FIRST) == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    exchange.verify(FINAL)


def test_a_broker_that_does_not_know_the_password_is_found_out() -> None:
    exchange = Scram("SCRAM-SHA-256", "user", "pencil", NONCE)
    exchange.final(FIRST)
    for answer in (b"v=" + base64.b64encode(bytes(32)), b"", b"e=other-error"):
        with pytest.raises(ScramError):
            exchange.verify(answer)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (FIRST.replace(b"rOpr", b"rXpr"), "another nonce"),
        (b"r=" + NONCE.encode() + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "another nonce"),
        (FIRST.replace(b"i=4096", b"i=1"), "asks for 1 iterations"),
        (FIRST.replace(b"i=4096", b"i=99999999"), "asks for 99999999 iterations"),
        (b"\xff\0", "no SCRAM message"),
    ],
)
def test_a_broker_that_answers_otherwise_is_refused(answer: bytes, why: str) -> None:
    with pytest.raises(ScramError, match=why):
        Scram("SCRAM-SHA-512", "user", "pencil", NONCE).final(answer)


def test_names_are_escaped() -> None:
    assert Scram("SCRAM-SHA-256", "a=b,c", "", NONCE).first().startswith(b"n,,n=a=3Db=2Cc,")


def security(folder: Path, password: str = "hunter2") -> SecuritySpec:
    (folder / "password").write_text(f"{password}\n")
    return SecuritySpec.model_validate(
        {
            "protocol": "SASL_SSL",
            "sasl": {
                "mechanism": "SCRAM-SHA-512",
                "username": {"env": "THEIR_USER"},
                "password": {"file": str(folder / "password")},
            },
            "ssl": {"verify_hostname": False},
        }
    )


def test_secrets_come_from_where_they_are_and_are_shown_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THEIR_USER", "anna")
    made = security(tmp_path).resolve()
    assert made.librdkafka() == {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "anna",
        "sasl.password": "hunter2",
        "ssl.endpoint.identification.algorithm": "none",
    }
    assert "hunter2" not in f"{made!r}{security(tmp_path)!r}{security(tmp_path).model_dump_json()}"
    assert made.hide("bad password hunter2") == "bad password [secret]"
    assert Security().hide("nothing to hide") == "nothing to hide"


def test_a_secret_that_is_not_there_is_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("THEIR_USER", raising=False)
    spec = security(tmp_path)
    with pytest.raises(DeployError, match=r"security\.sasl\.username: the environment variable THEIR_USER"):
        spec.resolve()
    monkeypatch.setenv("THEIR_USER", "anna")
    (tmp_path / "password").unlink()
    with pytest.raises(DeployError, match=r"sasl\.password: .*/password cannot be read: No such file"):
        spec.resolve()


def test_files_that_are_no_certificates_are_a_line(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    spec = SecuritySpec.model_validate({"protocol": "SSL", "ssl": {"ca_location": str(tmp_path / "ca.pem")}})
    with pytest.raises(DeployError, match=r"system\.security\.ssl: the files are no PEM"):
        spec.resolve()
