"""SCRAM (RFC 5802, RFC 7677) from the client's side, as Kafka speaks it (KIP-84): a password is proved and
never sent, and the broker proves that it knows it too.

Kafka takes names and passwords as UTF-8, without the normalisation (SASLprep) that the RFC asks for.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from collections.abc import Mapping

HASHES: Mapping[str, str] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Hash function by mechanism."""
FEWEST, MOST = 4_096, 1_000_000
"""Iterations that a broker may ask for: RFC 5802 gives the least, and the most keeps one that is not ours
from making us count for ever."""


class ScramError(Exception):
    """The broker's answer is none, or it could not prove that it knows the password."""


class Scram:
    """One exchange: ``first()``, then ``final(answer)``, then ``verify(answer)``."""

    def __init__(self, mechanism: str, username: str, password: str, nonce: str | None = None) -> None:
        """``nonce``: printable ASCII without commas; drawn where nobody gives one."""
        self._hash = HASHES[mechanism]
        self._password = password.encode()
        self._nonce = nonce or secrets.token_urlsafe(24)
        name = username.replace("=", "=3D").replace(",", "=2C")
        self._bare = f"n={name},r={self._nonce}"
        self._signature = b""

    def first(self) -> bytes:
        """The client's first message."""
        return f"n,,{self._bare}".encode()

    def final(self, answer: bytes) -> bytes:
        """The client's last message, to the broker's first. Raises ScramError."""
        said = _attributes(answer)
        try:
            nonce, salt, rounds = said["r"], base64.b64decode(said["s"], validate=True), int(said["i"])
        except (KeyError, ValueError, binascii.Error) as error:
            raise ScramError("the broker's first answer is no SCRAM message") from error
        if not nonce.startswith(self._nonce) or nonce == self._nonce:
            raise ScramError("the broker answered to another nonce")
        if not FEWEST <= rounds <= MOST:
            raise ScramError(f"the broker asks for {rounds} iterations; {FEWEST} to {MOST} are sensible")
        without_proof = f"c=biws,r={nonce}"
        signed = b",".join((self._bare.encode(), answer, without_proof.encode()))
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, rounds)
        key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self._hash, key).digest(), signed)
        proof = bytes(one ^ other for one, other in zip(key, signature, strict=True))
        self._signature = self._hmac(self._hmac(salted, b"Server Key"), signed)
        return f"{without_proof},p={base64.b64encode(proof).decode()}".encode()

    def verify(self, answer: bytes) -> None:
        """Checks that the broker knew the password too. Raises ScramError."""
        said = _attributes(answer)
        if "e" in said:
            raise ScramError(f"the broker refused the proof: {said['e']}")
        if not hmac.compare_digest(said.get("v", "").encode(), base64.b64encode(self._signature)):
            raise ScramError("the broker could not prove that it knows the password")

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.digest(key, message, self._hash)


def _attributes(message: bytes) -> Mapping[str, str]:
    """``r=...,s=...`` by letter; nothing for what is no such message."""
    text = message.decode(errors="replace")
    return {part[0]: part[2:] for part in text.split(",") if part[1:2] == "="}
