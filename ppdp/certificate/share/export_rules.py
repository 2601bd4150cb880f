"""What must not leave with a certificate, or not as what somebody may take it for."""

from __future__ import annotations

from ppdp.certificate.record import Record
from ppdp.certificate.replay.rules import PRIVATE_ORIGIN
from ppdp.exceptions import ExportError

__all__ = ["refuse_unsafe"]


def refuse_unsafe(certificate: Record, *, conditional: bool) -> None:
    """Refuse what must not leave, or not as what somebody may take it for.

    Parameters
    ----------
    certificate : Record
        Of what is to leave.
    conditional : bool
        Whether it is known to be CONDITIONAL.

    Raises
    ------
    ExportError
        If the noise was seeded, if labels were read from private data, or if the guarantee rests on something that
        nobody said to know.
    """
    if certificate.status == "SEEDED":
        raise ExportError("the noise came from a seed, so it protects nobody.", fix="fit with random_state=None.")
    if any(fact.origin == PRIVATE_ORIGIN for fact in certificate.facts):
        raise ExportError(
            "the classes were read from y, so what leaves would name private labels.", fix="declare classes=(...)."
        )
    if certificate.status == "CONDITIONAL" and not conditional:
        raise ExportError(
            f"the certificate is CONDITIONAL: {'; '.join(certificate.reasons)}.",
            fix="gate='auto', or conditional=True if whoever receives it shall rely on that.",
        )
