"""Detached signatures: who stands for a certificate.

Whoever recomputes a certificate learns that it follows from what it records, not that the run it tells of took place.
A signature (Ed25519, RFC 8032) says who vouches for that. It needs the package ``cryptography``:
``pip install 'ppdp[sign]'``.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ppdp.certificate.canonical import seal, strict_json
from ppdp.certificate.replay.verify import Verification
from ppdp.certificate.share.files import Saved
from ppdp.core.checks import library
from ppdp.exceptions import CertificateError, InvalidParameter, SignatureError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

    PrivateKey = str | os.PathLike[str] | Ed25519PrivateKey
    PublicKey = str | os.PathLike[str] | Ed25519PublicKey

ALGORITHM = "Ed25519"
CONTEXT = "ppdp-certificate-signature/1"
OF_A_LIST = "ppdp-status-list-signature/1"
LENGTH = 64  # bytes
_SHA256 = re.compile("sha256:[0-9a-f]{64}")
_LARGEST = 100_000  # bytes of a key or a signature
_PRIME = 2**255 - 19
_OF_ORDER_EIGHT = 0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD84D3D706A17C7
_SMALL_ORDER = {0, 1, _PRIME - 1, _OF_ORDER_EIGHT, _PRIME - _OF_ORDER_EIGHT}  # y of the 8 points


class Document(Protocol):
    """A certificate or a status list, as far as its signature knows it."""

    def to_dict(self) -> dict[str, Any]:
        """The whole document, as a copy."""


class Sealed(Document, Protocol):
    """A certificate."""

    def verify(self) -> Verification:
        """What holds of it."""


@dataclass(frozen=True, slots=True)
class Signature(Saved):
    """A signature of one certificate, or of a status list, apart from it.

    Attributes
    ----------
    certificate : str
        Seal of the certificate: SHA-256 of all but its digest, so of when and on whose account it was issued as well;
        or of the list.
    key : str
        Fingerprint of the public key: SHA-256 of its standard form (SubjectPublicKeyInfo, DER).
    value : bytes
        64 bytes.
    context : str, default="ppdp-certificate-signature/1"
        What kind of document it is of.

    Notes
    -----
    Signed are the context, a zero byte and the 32 bytes of the SHA-256 of the canonical form, so that a signature of
    anything else with the same key never passes for one of a certificate. ``certificate`` and ``key`` only help to
    say what is wrong; :meth:`check` computes both again.
    """

    certificate: str
    key: str
    value: bytes
    context: str = CONTEXT
    _unread = SignatureError, "the path of a certificate.json.sig.", _LARGEST

    def check(self, certificate: Document, public_key: PublicKey) -> None:
        """Nothing if the owner of the key signed this certificate; its derivation is not looked at.

        Parameters
        ----------
        certificate : Certificate or StatusList
            What was signed.
        public_key : path-like or Ed25519PublicKey
            PEM file, or the key. It must come from somebody you trust, never from where the signature comes from.

        Raises
        ------
        SignatureError
            If it is not this key's signature of this certificate.
        InvalidParameter
            If the key cannot be read or is not of Ed25519.
        """
        key = read_public_key(public_key)
        if self.key != fingerprint(key):
            raise SignatureError(f"it was made with another key ({self.key}).", fix="the public key of the signer.")
        context, sealed = _sealed(certificate)
        if (self.context, self.certificate) != (context, sealed):
            kind = "list" if context == OF_A_LIST else "certificate"
            what = f"it is the signature of another {kind}, or the {kind} was changed."
            raise SignatureError(what, fix="the two files as they were issued together.")
        from cryptography.exceptions import InvalidSignature

        try:
            key.verify(self.value, _message(context, sealed))
        except InvalidSignature:
            raise SignatureError("it was not made with this key.", fix="the signature as it was issued.") from None

    def to_json(self) -> str:
        """The signature as it stands in its file."""
        document = {
            "algorithm": ALGORITHM,
            "context": self.context,
            "certificate": self.certificate,
            "key": self.key,
            "signature": base64.b64encode(self.value).decode(),
        }
        return json.dumps(document, indent=2)

    @classmethod
    def from_json(cls, text: str | bytes) -> Signature:
        """Read a signature; only its form is checked here."""
        document: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            document = strict_json(text)
        fields = {"algorithm", "context", "certificate", "key", "signature"}
        if not isinstance(document, dict) or "context" not in document:
            raise SignatureError("this is not a signature of a certificate.", fix="the file that `ppdp sign` wrote.")
        if document.get("algorithm") != ALGORITHM or document["context"] not in (CONTEXT, OF_A_LIST):
            raise SignatureError("it is of a kind that is not known here.", fix="use the ppdp version that wrote it.")
        value = _bytes(document.get("signature"))
        named = [document.get(name) for name in ("certificate", "key")]
        hashes = all(isinstance(name, str) and _SHA256.fullmatch(name) for name in named)
        if document.keys() != fields or value is None or not hashes:
            raise SignatureError("the signature is malformed.", fix="the file as it was written.")
        return cls(document["certificate"], document["key"], value, document["context"])


def sign(
    certificate: Sealed, private_key: PrivateKey, *, password: bytes | None = None, conditional: bool = False
) -> Signature:
    """Sign a certificate that holds; see :meth:`ppdp.Certificate.sign`."""
    key = read_private_key(private_key, password)
    record = certificate.verify().record
    if record is None:
        raise CertificateError("the certificate does not hold, so it is not signed.", fix="ask `ppdp verify` why.")
    if record.status == "SEEDED":
        what = "the certificate is SEEDED: its noise came from a seed and protects no one, so it is not signed."
        raise CertificateError(what, fix="fit with random_state=None.")
    if record.status == "CONDITIONAL" and not conditional:
        fix = "conditional=True, or `ppdp sign --conditional`, if the recipient shall rely on that."
        raise CertificateError(f"the certificate is CONDITIONAL: {'; '.join(record.reasons)}.", fix=fix)
    return signed(certificate, key)


def signed(what: Document, key: Ed25519PrivateKey) -> Signature:
    """A signature of whatever document it is."""
    context, sealed = _sealed(what)
    return Signature(sealed, fingerprint(key.public_key()), key.sign(_message(context, sealed)), context)


def read_private_key(key: PrivateKey, password: bytes | None = None) -> Ed25519PrivateKey:
    """The private key in a PEM file, or the one that is handed in."""
    fix = "a private key of Ed25519 in PEM: openssl genpkey -algorithm ed25519 -out key.pem"
    loaded: Ed25519PrivateKey = _loaded(key, "private", fix, password)
    return loaded


def checked(
    certificate: Sealed, derivation: Verification, signature: Signature | str | os.PathLike[str], public_key: PublicKey
) -> Verification:
    """What a verification says once a signature was looked at as well."""
    found = signature if isinstance(signature, Signature) else Signature.load(signature)
    try:
        found.check(certificate, public_key)
    except CertificateError as error:
        return Verification((*derivation.problems, f"the signature: {error.message}"))
    return Verification(derivation.problems, found.key if derivation else None, derivation.record)


def fingerprint(key: Ed25519PublicKey) -> str:
    """SHA-256 of a public key (SubjectPublicKeyInfo, DER), as ``openssl pkey -pubin -outform DER | sha256sum``."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    form = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return "sha256:" + hashlib.sha256(form).hexdigest()


def _sealed(what: Document) -> tuple[str, str]:
    """Which kind of document it is, and the seal that follows from the content, whatever is recorded."""
    with contextlib.suppress(AttributeError, TypeError, ValueError, RecursionError):
        content = what.to_dict()
        is_list = str(content.get("schema")).startswith("ppdp-status-list/")
        return OF_A_LIST if is_list else CONTEXT, seal(content)
    raise CertificateError("the certificate has no canonical form.")


def _message(context: str, sealed: str) -> bytes:
    return context.encode() + b"\0" + bytes.fromhex(sealed.removeprefix("sha256:"))


def _bytes(value: Any) -> bytes | None:
    """The bytes of a signature in base64, if it is one; a value is written in one way only."""
    try:
        found = base64.b64decode(value, validate=True)
    except (TypeError, ValueError, binascii.Error):
        return None
    return found if len(found) == LENGTH and base64.b64encode(found).decode() == value else None


def read_public_key(key: PublicKey) -> Ed25519PublicKey:
    """The public key in a PEM file, or the one handed in; refused if a constant passes for a signature under it."""
    fix = "a public key of Ed25519 in PEM: openssl pkey -in key.pem -pubout -out public.pem"
    loaded: Ed25519PublicKey = _loaded(key, "public", fix)
    y = int.from_bytes(loaded.public_bytes_raw(), "little") % 2**255  # -x has the same y, and y + p is read as y
    if y % _PRIME in _SMALL_ORDER:
        what = "public_key is an invalid Ed25519 key (a point of small order): anyone could sign in its name."
        raise InvalidParameter(what, fix=fix)
    return loaded


def _loaded(key: Any, side: str, fix: str, *password: bytes | None) -> Any:
    """What a PEM file holds, or the key that was handed in; no message holds anything of it."""
    library("cryptography", "cryptography", "'ppdp[sign]'")
    from cryptography import exceptions
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    name, reason = f"{side}_key", ""
    if isinstance(key, (str, os.PathLike)):
        data = _read(key, fix)
        try:
            key = getattr(serialization, f"load_pem_{name}")(data, *password)
        except TypeError:  # a password is missing, or there is one for a key that has none
            reason = f"{name} is encrypted and the password is missing, or it is not encrypted and has none."
            fix = "give a password exactly if the key is encrypted."
        except (ValueError, exceptions.UnsupportedAlgorithm):
            reason = f"{name} cannot be read from {os.fspath(key)!r}: no such key in PEM, or another password."
    if not reason and not isinstance(key, getattr(ed25519, f"Ed25519{side.title()}Key")):
        reason = f"{name} is not a {side} key of Ed25519."
    if reason:
        raise InvalidParameter(reason, fix=fix)
    return key


def _read(path: str | os.PathLike[str], fix: str) -> bytes:
    """A key, which may come through a pipe."""
    reason = "it is too large"
    try:
        with Path(path).open("rb") as file:
            data = file.read(_LARGEST + 1)
        if len(data) <= _LARGEST:
            return data
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or "no such path"
    raise InvalidParameter(f"cannot read {os.fspath(path)!r}: {reason}.", fix=fix)
