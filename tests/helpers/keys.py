"""Keys, and a folder of them beside a certificate and its signature."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed448
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from zoo import certificate

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
PASSWORD = b"correct horse"


def pem(key, encryption=None) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())


def public_pem(key) -> bytes:
    return key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A certificate, keys of all kinds, a signature."""
    monkeypatch.chdir(tmp_path)
    one = certificate("gated, sum")
    one.save("certificate.json")
    certificate("gated, max").save("other.json")
    keys = {"key": KEY, "another": OTHER, "curve": ec.generate_private_key(ec.SECP256R1())}
    for name, key in (keys | {"448": ed448.Ed448PrivateKey.generate()}).items():
        Path(f"{name}.pem").write_bytes(pem(key))
        Path(f"{name}.pub").write_bytes(public_pem(key))
    Path("locked.pem").write_bytes(pem(KEY, BestAvailableEncryption(PASSWORD)))
    Path("password").write_bytes(PASSWORD + b"\n")
    Path("wrong").write_bytes(b"battery staple\n")
    Path("empty").write_bytes(b"")
    one.sign(KEY).save("signed.sig")
    return tmp_path
