"""What every certificate is issued with, and that of a mechanism which stands alone, without a pipeline before it."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ppdp.certificate.record as records
from ppdp.certificate.document import SCHEMA_NAME, Certificate
from ppdp.certificate.facts import with_sources
from ppdp.certificate.issue_record import Issued
from ppdp.certificate.replay.rules import not_covered, stated
from ppdp.core.domain import Domain
from ppdp.core.names import dataset_name
from ppdp.privacy.ledger.fit_charging import FitCost


def content_hash(arrays: Mapping[str, NDArray[np.float64]]) -> str:
    """SHA-256 of named float64 arrays, independent of platform and order."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name], dtype="<f8")
        digest.update(f"{name}:{array.shape};".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def certificate_status(reasons: Sequence[str], *, seeded: bool) -> tuple[str, tuple[str, ...]]:
    """Status of what was released, and every reason why it is not UNCONDITIONAL."""
    if seeded:
        seed = "the noise came from a seed, and anyone who has the seed can take it away; for tests only"
        return "SEEDED", (seed, *(f"without a seed it would be assumed: {reason}" for reason in reasons))
    return "CONDITIONAL" if reasons else "UNCONDITIONAL", tuple(reasons)


def what_left(released: Mapping[str, NDArray[np.float64]], inference: str) -> records.ReleasedRecord:
    """Names, shapes and hash of what was released; ``inference`` is the hash of how it is used."""
    names = {name: np.shape(array) for name, array in sorted(released.items())}
    return records.ReleasedRecord(names=names, sha256=content_hash(released), inference=inference)


def claim(
    cost: Any,
    domain: Domain,
    *,
    facts: Sequence[records.FactRecord],
    reasons: Sequence[str],
    seeded: bool,
    released: Mapping[str, NDArray[np.float64]],
    inference: str,
    invalid: str,
    dataset: str | None,
    packages: tuple[str, ...] = (),
    **blocks: Any,
) -> records.Record:
    """The record of a plan, or of what else has a cost; ``blocks`` are those of its derivation, else empty."""
    status, why = certificate_status(reasons, seeded=seeded)
    parts = tuple(part.to_dict() for part in cost.loss.parts)
    usual: dict[str, Any] = {**dict.fromkeys(("steps", "releases", "alternatives", "warnings"), ()), "gate": None}
    return records.Record(
        schema=SCHEMA_NAME,
        status=status,
        reasons=why,
        epsilon=float(cost.epsilon),
        delta=float(cost.delta),
        adjacency=stated(domain.adjacency),
        rows_per_unit=domain.rows_per_unit,
        dataset=None if dataset is None else dataset_name(dataset),
        facts=tuple(facts),
        entrance=records.EntranceRecord(domain=domain.to_dict(), distance=domain.neighbours.to_dict()),
        total=records.Total(mu=cost.loss.mu, failure=cost.loss.failure, allowance=cost.allowance, parts=parts),
        invalid=invalid,
        not_covered=tuple(not_covered(invalid, domain.adjacency)),
        released=what_left(released, inference),
        versions=versions(packages),
        **{**usual, **blocks},
    )


def issue_alone(
    cost: FitCost, domain: Domain, *, facts: Sequence[tuple[str, str, str]], sources: Any, issued: Any, **given: Any
) -> Certificate:
    """The certificate of a mechanism that reads rows as they are; ``given`` is what :func:`claim` takes further.

    What was ``released`` has names that begin with the mechanism's; ``facts`` are those beside the domain's, as name,
    value and origin; ``reasons`` say what is assumed; ``inference`` is the hash of the description of how what was
    released is used; ``issued`` is the block of that name, empty if nothing is issued yet; ``invalid`` values stop it
    ("error") or do not ("repair"); ``packages`` took part beside ppdp's own; ``sources`` are of declared facts.
    """
    listed = [records.FactRecord(name=name, value=value, origin=origin) for name, value, origin in facts]
    block = records.read_as(Issued, issued) if issued else None
    record = claim(cost, domain, facts=with_sources(listed, sources), issued=block, **given)
    return Certificate.sealed(records.written(record))


@cache
def versions(others: tuple[str, ...] = ()) -> Mapping[str, str]:
    """Versions of what runs; to ask four packages took as long as everything else in a small fit."""
    from importlib.metadata import version

    return {
        "python": platform.python_version(),
        **{name: version(name) for name in ("ppdp", "numpy", "scipy", "scikit-learn", *others)},
    }
