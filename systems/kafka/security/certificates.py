"""Certificates of the nodes that are deployed here, and the two authorities that sign them.

Both authorities are believed by every node and client from the start, so that certificates can go from one to
the other while everything runs. They are made once on this machine, and kept in the folder of what can be
made again.
"""

from __future__ import annotations

import ipaddress
import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from wrackline.cache import cache_folder

AUTHORITIES = 2
VALID = timedelta(days=365)
_LATER = timedelta(days=60)
"""An authority that ends sooner is replaced: no run lasts longer."""
_AHEAD = timedelta(days=1)
"""Clocks of hosts may be behind, also on purpose."""


@dataclass(frozen=True, slots=True)
class Issued:
    """A node's certificate with its key."""

    keystore: bytes
    """Key and chain, PEM: a keystore as Kafka reads it (KIP-651)."""
    serial: int


@dataclass(frozen=True)
class Authority:
    key: ec.EllipticCurvePrivateKey
    certificate: x509.Certificate

    def issue(self, name: str, address: str) -> Issued:
        """Returns a certificate for a host, which is reached by this address. Name and address are those of
        every certificate of this host, as a keystore that is changed at run time must have them."""
        key = ec.generate_private_key(ec.SECP256R1())
        names = x509.SubjectAlternativeName(
            [x509.DNSName(name), *([_ip] if (_ip := _ip_name(address)) else [x509.DNSName(address)])]
        )
        serial = x509.random_serial_number()
        made = _certificate(name, key, self.certificate.subject, serial).add_extension(names, critical=False)
        certificate = made.sign(self.key, hashes.SHA256())
        chain = certificate.public_bytes(Encoding.PEM) + self.certificate.public_bytes(Encoding.PEM)
        return Issued(_key_text(key) + chain, serial)


def authorities() -> tuple[Authority, ...]:
    """Returns those of this machine, and makes them where there are none."""
    folder = cache_folder() / "tls"
    return tuple(_authority(folder / f"authority-{number}.pem") for number in range(1, AUTHORITIES + 1))


def believed() -> Path:
    """Returns the file with the certificates of all authorities, PEM."""
    text = b"".join(one.certificate.public_bytes(Encoding.PEM) for one in authorities())
    file = cache_folder() / "tls" / "authorities.pem"
    if not file.is_file() or file.read_bytes() != text:
        _write(file, text, 0o644)
    return file


def serial_of(keystore: str) -> str:
    """Returns the serial number of a keystore's own certificate, as it is shown."""
    return f"{x509.load_pem_x509_certificate(keystore.encode()).serial_number:x}"


def _authority(file: Path) -> Authority:
    if file.is_file():
        text = file.read_bytes()
        key, certificate = load_pem_private_key(text, None), x509.load_pem_x509_certificate(text)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        if certificate.not_valid_after_utc > datetime.now(UTC) + _LATER:
            return Authority(key, certificate)
    key = ec.generate_private_key(ec.SECP256R1())
    name = f"wrackline {file.stem}"
    made = _certificate(name, key, _named(name), x509.random_serial_number())
    certificate = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True).sign(
        key, hashes.SHA256()
    )
    _write(file, _key_text(key) + certificate.public_bytes(Encoding.PEM), 0o600)
    return Authority(key, certificate)


def _certificate(
    name: str, key: ec.EllipticCurvePrivateKey, issuer: x509.Name, serial: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        issuer_name=issuer,
        subject_name=_named(name),
        public_key=key.public_key(),
        serial_number=serial,
        not_valid_before=now - _AHEAD,
        not_valid_after=now + VALID,
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _ip_name(address: str) -> x509.IPAddress | None:
    try:
        return x509.IPAddress(ipaddress.ip_address(address))
    except ValueError:
        return None


def _key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(file: Path, text: bytes, mode: int) -> None:
    """Whole or not at all: runs side by side make the same files."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f"{file.name}.{os.getpid()}")
    fresh.write_bytes(text)
    fresh.chmod(mode)
    fresh.replace(file)
