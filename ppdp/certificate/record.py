"""What signatures, records and rules of export know of a certificate; the document itself stands above them."""

from __future__ import annotations

from typing import Any, Protocol

__all__ = ["CertificateRecord"]


class CertificateRecord(Protocol):
    """A certificate, as far as it can be read and verified."""

    @property
    def status(self) -> str:
        """UNCONDITIONAL, CONDITIONAL or SEEDED."""

    def __getitem__(self, name: str) -> Any:
        """A copy of one field."""

    def to_dict(self) -> dict[str, Any]:
        """The whole document, as a copy."""

    def verify(self) -> Any:
        """True in a condition if the derivation holds."""
