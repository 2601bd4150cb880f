"""Lists of withdrawn certificates, as an issuer publishes them; a certificate says where (``status_list``).

A list is looked up offline. Get the newest from that address, not from the person who hands over the certificate; a
signature beside it (``.sig``) says whose it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from ppdp.certificate.canonical import strict_json
from ppdp.certificate.record import Record
from ppdp.certificate.share.files import Saved
from ppdp.certificate.share.signature import Signature, read_private_key, signed
from ppdp.exceptions import CertificateError

if TYPE_CHECKING:
    from ppdp.certificate.share.signature import PrivateKey

FORM = "ppdp-status-list/1"
_MOST_BYTES = 2**26
_DIGEST = "^sha256:[0-9a-f]{64}$"
_DAY = {"type": "string", "format": "date"}
_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "schema": {"const": FORM},
        "published": _DAY,
        "next": _DAY,
        "withdrawn": {
            "type": "object",
            "propertyNames": {"pattern": _DIGEST},
            "additionalProperties": {
                "type": "object",
                "properties": {
                    "since": _DAY,
                    "reason": {"type": "string", "minLength": 1, "maxLength": 500},
                    "superseded_by": {"type": "string", "pattern": _DIGEST},
                },
                "required": ["since", "reason"],
                "additionalProperties": False,
            },
        },
    },
    "required": ["schema", "published", "next", "withdrawn"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class StatusList(Saved):
    """Certificates that their issuer has withdrawn, as of a day.

    Attributes
    ----------
    published, next : str
        The day of this list, and the day by which the next one appears.
    withdrawn : mapping
        By digest of a certificate: ``since`` (a day), ``reason``, and perhaps ``superseded_by`` (a digest).

    Examples
    --------
    >>> day = {"since": "2026-11-20", "reason": "A range was read off the rows."}
    >>> made = StatusList("2026-11-29", "2026-12-29", {f"sha256:{64 * '0'}": day})
    >>> StatusList.from_json(made.to_json()) == made
    True
    """

    published: str
    next: str
    withdrawn: Mapping[str, Mapping[str, str]]
    _unread = CertificateError, "the list that the issuer publishes.", _MOST_BYTES

    def to_json(self) -> str:
        """The list as it is published."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False)

    def to_dict(self) -> dict[str, Any]:
        """The JSON document, which a signature covers."""
        days = {"published": self.published, "next": self.next}
        return {"schema": FORM, **days, "withdrawn": {digest: {**why} for digest, why in self.withdrawn.items()}}

    def sign(self, private_key: PrivateKey, *, password: bytes | None = None) -> Signature:
        """Sign the list as certificates are signed; ``signature.check(listed, public_key)`` says whether it holds.

        Parameters
        ----------
        private_key : path-like or Ed25519PrivateKey
            PEM file, or the key.
        password : bytes, optional
            Of an encrypted file.
        """
        return signed(self, read_private_key(private_key, password))

    @classmethod
    def from_json(cls, text: str | bytes) -> StatusList:
        """Read a list."""
        from jsonschema import Draft202012Validator

        document: Any = None
        with suppress(ValueError, RecursionError):
            document = strict_json(text)
        checker = Draft202012Validator.FORMAT_CHECKER
        if not Draft202012Validator(_SCHEMA, format_checker=checker).is_valid(document):
            raise CertificateError(f"this is not a list of the form {FORM}.", fix="the list that the issuer publishes.")
        return cls(document["published"], document["next"], document["withdrawn"])

    def problems(self, c: Record, today: date | None = None) -> Iterator[str]:
        """Why a certificate is not to be relied on, by this list; today is for a list that is out of date."""
        day = (today or datetime.now(UTC).date()).isoformat()
        if found := self.withdrawn.get(c.digest):
            by = f", superseded by {found['superseded_by']}" if "superseded_by" in found else ""
            yield f"the issuer withdrew it on {found['since']}{by}: {found['reason']}"
        if self.next < day:
            yield f"the list is of {self.published} and a newer one was due on {self.next}: get that."
        if c.issued is not None and self.published < c.issued.date[:10]:
            yield f"the list is of {self.published}, before the certificate was issued: get a newer one."
