"""What a certificate says of its issue: when, as which fit, on whose account, and the issuer's own statements."""

from __future__ import annotations

from dataclasses import dataclass, fields

# Of an entry of a ledger, not in earlier versions: its link, how many released, what all come to if they are Gaussian.
OF_A_CHAIN = ("head", "released", "composed")


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOf:
    """What the whole costs of which this is a part."""

    what: str
    candidates: int
    epsilon: float
    delta: float
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An epsilon at a delta."""

    epsilon: float
    delta: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ComposedSpends:
    """Everything in a ledger together, where all of it is Gaussian, with what no Gaussian parameter covers."""

    mu: float
    failure: float
    total_variation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """Where a spend stands in its ledger, and what all of them come to."""

    account: str
    dataset: str
    position: int
    epsilon: float | None
    delta: float
    limit: Pair | None
    head: str | None = None
    released: int | None = None
    composed: ComposedSpends | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that belongs to a certificate, and lies beside it."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """When, as which fit, and on whose account, with words of the issuer: what is known beside the claim."""

    date: str
    fit: int | None
    together: Pair | None
    travels: int
    inside: str | None
    ledger: LedgerEntry | None
    purpose: str | None = None
    responsible: str | None = None
    contact: str | None = None
    run_by: str | None = None
    prediction: str | None = None
    accuracy: str | None = None
    justification: str | None = None
    own_values: str | None = None
    other_releases: str | None = None
    legal_basis: str | None = None
    consent: str | None = None
    ethics_approval: str | None = None
    retention: str | None = None
    remarks: str | None = None
    attachments_hold: str | None = None
    signed_by: str | None = None
    software: str | None = None
    limit_set_by: str | None = None
    review_by: str | None = None
    supersedes: str | None = None
    status_list: str | None = None
    attachments: tuple[Attachment, ...] | None = None


# Statements of the issuer, which are absent where nobody made them.
OF_THE_ISSUER = tuple(field.name for field in fields(Issued) if field.default is None)
