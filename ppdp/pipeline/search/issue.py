"""The certificate of a search, and that of the fit at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ppdp.certificate.document import Certificate
from ppdp.certificate.replay.rules import RECORDED

__all__ = ["part_of_search", "whole_search"]

Document = Mapping[str, Any]


def whole_search(last: Certificate, summary: Document, issued: Mapping[str, Any]) -> Certificate:
    """The certificate of everything that a search released.

    Parameters
    ----------
    last : Certificate
        Of the fit at its end.
    summary : mapping
        Of the search: :meth:`ppdp.pipeline.search.plan.SearchSummary.to_dict`.
    issued : mapping
        The block of that name, of the whole search.
    """
    content = last.to_dict()
    own = ("fits", "refits", "selection", "parameters", "outcomes", "best_index")
    same = ("status", "reasons", "epsilon", "delta", "dataset", "invalid", "not_covered")
    content |= {name: summary[name] for name in same}
    content |= {
        "not_covered": [*summary["not_covered"], RECORDED],
        "search": {name: summary[name] for name in own},
        "total": {**summary["total"], "parts": []},
        "issued": dict(issued),
    }
    return Certificate.sealed(content)


def part_of_search(last: Certificate, whole: Certificate) -> Certificate:
    """The certificate of the last fit, which says of what it is a part."""
    content = last.to_dict()
    content["part_of"] = {
        "what": "search",
        "candidates": len(whole["search"]["fits"]),
        "epsilon": whole.epsilon,
        "delta": whole.delta,
        "digest": whole.digest,
    }
    content |= {"dataset": whole["dataset"], "issued": whole["issued"]}
    return Certificate.sealed(content)
