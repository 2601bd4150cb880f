"""What a search released: its summary, its certificate, and that of the fit at its end."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from ppdp.certificate.document import Certificate
from ppdp.certificate.record import Issued, PartOf, Search, Total, read_as, written
from ppdp.certificate.replay.rules import ADJACENCY, Exclusion, not_covered
from ppdp.core.adjacency import Adjacency
from ppdp.pipeline.search.plan import PlannedFit, SearchPlan, Selection
from ppdp.privacy.loss import PrivacyLoss


@dataclass(frozen=True, slots=True)
class SearchSummary:
    """What a search released and what all of it costs: public numbers and words only.

    Attributes
    ----------
    plan : SearchPlan
        What was run.
    status : {"UNCONDITIONAL", "CONDITIONAL", "SEEDED"}
        As on a certificate; the least of all fits.
    reasons : tuple of str
        Why it is not unconditional.
    parameters : tuple of mapping
        Of the candidates.
    outcomes : tuple of str
        "released" or "refused" for each.
    best_index : int
        The chosen one.
    dataset : str or None
        Public name of the data.
    invalid : {"error", "repair"}
        What happened to invalid values; "error" if it did in any fit.
    """

    plan: SearchPlan
    status: str
    reasons: tuple[str, ...]
    parameters: tuple[Mapping[str, Any], ...]
    outcomes: tuple[str, ...]
    best_index: int
    dataset: str | None = None
    invalid: str = "error"

    @property
    def not_covered(self) -> tuple[str, ...]:
        """What is not promised, in words; as on a certificate."""
        return tuple(not_covered(self.invalid, Adjacency.replace()))

    @property
    def epsilon(self) -> float:
        """The guaranteed epsilon for the fits, the choice, the score and the refit together."""
        return self.plan.epsilon

    @property
    def delta(self) -> float:
        """The guaranteed delta."""
        return self.plan.delta

    @property
    def loss(self) -> PrivacyLoss:
        """Privacy loss of everything that was released."""
        return self.plan.loss

    @property
    def mu(self) -> float:
        """Gaussian parameter of everything that was released."""
        return self.plan.loss.mu

    def verify(self) -> bool:
        """Compose again from the recorded numbers; True if they are within (epsilon, delta), and the status is theirs.

        Taken on trust: that each fit costs what is recorded of it (its sensitivities are derived in its own plan, and
        of all fits only the last keeps a certificate), that ``reasons`` are all reasons, and that what ran is what was
        planned.
        """
        data = json.loads(json.dumps(self.to_dict()))
        fits, refits = (tuple(PlannedFit.from_dict(fit) for fit in data[name]) for name in ("fits", "refits"))
        selection = Selection(**data["selection"])
        numbers = {name: data[name] for name in ("epsilon", "delta", "n_rows", "rows_per_unit")}
        again = SearchPlan(**numbers, fits=fits, refits=refits, selection=selection)
        recorded = PrivacyLoss(data["total"]["mu"], data["total"]["failure"])
        same = all(
            math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-300)
            for one, other in [(recorded.mu, again.loss.mu), (recorded.failure, again.loss.failure)]
        )
        return same and again.kept and (self.status == "UNCONDITIONAL") == (not self.reasons)

    def to_dict(self) -> dict[str, Any]:
        """JSON form; parameters as they print."""
        plan = self.plan
        return {
            "status": self.status,
            "reasons": list(self.reasons),
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            "adjacency": ADJACENCY,
            "n_rows": plan.n_rows,
            "rows_per_unit": plan.rows_per_unit,
            "dataset": self.dataset,
            "invalid": self.invalid,
            "not_covered": list(self.not_covered),
            "parameters": [{name: repr(value) for name, value in sorted(p.items())} for p in self.parameters],
            "outcomes": list(self.outcomes),
            "best_index": self.best_index,
            "fits": [fit.to_dict() for fit in plan.fits],
            "refits": [fit.to_dict() for fit in plan.refits],
            "selection": asdict(plan.selection),
            "total": {"mu": self.mu, "failure": plan.loss.failure, "allowance": plan.allowance},
        }

    def __repr__(self) -> str:
        _, guarantee, *lines = repr(self.plan).splitlines()
        chosen = f"  chosen: candidate {self.best_index} of {len(self.outcomes)}"
        return "\n".join([f"SEARCH: {self.status}", guarantee, *lines, chosen, *(f"  {why}" for why in self.reasons)])


def whole_search(last: Certificate, summary: SearchSummary, issued: Mapping[str, Any]) -> Certificate:
    """The certificate of everything that a search released, from that of the fit at its end."""
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
        not_covered=(*summary.not_covered, Exclusion.OTHER_FITS.value),
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
