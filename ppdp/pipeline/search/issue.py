"""The certificate of a search, and that of the fit at its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ppdp.certificate.document import Certificate
from ppdp.certificate.record import Issued, PartOf, Search, Total, read_as, written
from ppdp.certificate.replay.rules import RECORDED
from ppdp.pipeline.search.plan import SearchSummary

__all__ = ["part_of_search", "whole_search"]


def whole_search(last: Certificate, summary: SearchSummary, issued: Mapping[str, Any]) -> Certificate:
    """The certificate of everything that a search released.

    Parameters
    ----------
    last : Certificate
        Of the fit at its end.
    summary : SearchSummary
        Of the search.
    issued : mapping
        The block of that name, of the whole search.
    """
    plan = summary.plan
    record = replace(
        last.record,
        status=summary.status,
        reasons=summary.reasons,
        epsilon=plan.epsilon,
        delta=plan.delta,
        dataset=summary.dataset,
        search=read_as(Search, summary.to_dict()),
        total=Total(mu=plan.loss.mu, failure=plan.loss.failure, allowance=plan.allowance, parts=()),
        invalid=summary.invalid,
        not_covered=(*summary.not_covered, RECORDED),
        issued=read_as(Issued, issued),
    )
    return Certificate.sealed(written(record))


def part_of_search(last: Certificate, whole: Certificate, candidates: int) -> Certificate:
    """The certificate of the last fit, which says of what it is a part."""
    part_of = PartOf(
        what="search", candidates=candidates, epsilon=whole.epsilon, delta=whole.delta, digest=whole.digest
    )
    record = replace(last.record, part_of=part_of, dataset=whole.record.dataset, issued=whole.record.issued)
    return Certificate.sealed(written(record))
