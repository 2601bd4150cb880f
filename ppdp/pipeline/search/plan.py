"""What a search decides before it sees any data: ``docs/theory/search.md``."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from ppdp.bounds.selection import choice_scale, score_noise, search_allowance, search_loss, selection_loss
from ppdp.certificate.document import Certificate
from ppdp.certificate.issue_record import Issued, PartOf
from ppdp.certificate.record import SearchRecord, Total, read_as, written
from ppdp.certificate.replay.rules import ADJACENCY, Exclusion, not_covered
from ppdp.core.adjacency import Adjacency
from ppdp.exceptions import InvalidParameter, NoRoute
from ppdp.pipeline.planning.plan import Plan
from ppdp.privacy.gaussian import gaussian_epsilon, gaussian_mu
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise.sampler import TOTAL_VARIATION_PER_DRAW, certifiable_epsilon

SCORE_SHARE = 0.2  # of what the selection may cost, for the score of the chosen candidate
ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class PlannedFit:
    """One fit by the (epsilon, delta) it is given, and what its plan costs; ``variation`` is that of its noise."""

    epsilon: float
    delta: float
    loss: PrivacyLoss
    variation: float

    @classmethod
    def of(cls, plan: Plan) -> PlannedFit:
        """The cost of a plan; refused if it is not Gaussian (kinds would mix) or predictions depend on other rows."""
        mixing = next((step.name for step in plan.steps if step.way.parameters.get("same_bits") is False), None)
        if mixing is not None:
            what = "rows around a row may change its result, so one row could change the scores of all."
            raise InvalidParameter(what, stage=mixing, fix="leave rounding out, or search without this step.")
        if plan.loss.parts:
            what = "a search composes Gaussian losses only."
            raise InvalidParameter(what, fix="use a solver and a gate with Gaussian noise.")
        if plan.unpassable_gates:
            what = f"no data could pass the gate of {', '.join(plan.unpassable_gates)}."
            raise NoRoute(what, fix="another candidate.")
        return cls(plan.epsilon, plan.delta, plan.loss, plan.allowance / (1 + math.exp(plan.epsilon)))

    def to_dict(self) -> dict[str, float]:
        """JSON form."""
        lost = self.loss.failure + (1 - self.loss.failure) * self.loss.gate
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "mu": self.loss.mu,
            "failure": lost,
            "variation": self.variation,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, float]) -> PlannedFit:
        """Inverse of :meth:`to_dict`."""
        loss = PrivacyLoss(data["mu"], data["failure"])
        return cls(data["epsilon"], data["delta"], loss, data["variation"])


@dataclass(frozen=True, slots=True)
class Selection:
    """How candidates are chosen by their sums of scores in [0, 1]."""

    rows: int  # public number of validation rows
    rows_per_unit: int  # how many of them one person may own
    candidates: int
    temperature: float | None  # of a choice with probabilities ~ exp(sum / temperature); None: by the noisy scores
    scored: int  # how many mean scores are released
    noise_scale: float | None  # standard deviation of the noise on each of them

    @classmethod
    def of_budget(cls, rows: int, adjacency: Adjacency, candidates: int, scores: str | None, mu: float) -> Selection:
        """The selection of least noise that costs ``mu``."""
        distance, units = adjacency.distance.among(rows), adjacency.rows
        if scores == "all":
            return cls(rows, units, candidates, None, candidates, score_noise(rows, distance, candidates, mu))
        share = SCORE_SHARE if scores == "best" else 0.0
        temperature = choice_scale(rows, distance, math.sqrt(1 - share) * mu)
        noise = score_noise(rows, distance, 1, math.sqrt(share) * mu) if share else None
        return cls(rows, units, candidates, temperature, int(share > 0), noise)

    @property
    def loss(self) -> PrivacyLoss:
        """What choice and scores cost together."""
        return selection_loss(self.rows, self.rows_per_unit, self.temperature, self.scored, self.noise_scale)


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """A search before any data."""

    epsilon: float  # the guarantee for everything that leaves; less than asked for where noise is too coarse for it
    delta: float
    n_rows: int  # public
    rows_per_unit: int  # public
    fits: tuple[PlannedFit, ...]  # of every candidate on the training rows
    refits: tuple[PlannedFit, ...]  # and on all rows
    selection: Selection  # of one of them, on the validation rows

    @property
    def loss(self) -> PrivacyLoss:
        """Everything composed: fits or selection, whichever costs more, and then one refit."""
        fits, refits = ([fit.loss for fit in side] for side in (self.fits, self.refits))
        return search_loss(fits, self.selection.loss, refits, apart=Adjacency.replace(self.rows_per_unit).one_row)

    @property
    def allowance(self) -> float:
        """Part of delta for imperfect noise, of all numbers that are drawn."""
        fits, refits = ([fit.variation for fit in side] for side in (self.fits, self.refits))
        return search_allowance(self.epsilon, self.selection.scored, fits, refits)

    @property
    def kept(self) -> bool:
        """Whether everything together is within (epsilon, delta)."""
        room = self.delta - self.allowance
        return room > 0 and self.loss.epsilon(room) <= self.epsilon

    def __repr__(self) -> str:
        s = self.selection
        chosen = "by the noisy scores" if s.temperature is None else f"with temperature {s.temperature:.3g} rows"
        scored = "" if s.noise_scale is None else f"; {s.scored} mean score(s) with noise {s.noise_scale:.3g}"
        lines = [
            "PLAN of a search: nothing has been certified",
            f"  (epsilon, delta) = ({self.epsilon:g}, {self.delta:g}), {self.n_rows} rows, mu {self.loss.mu:.4g}",
            f"  {len(self.fits)} fits on {self.n_rows - s.rows} rows, mu {self.fits[0].loss.mu:.3g} each",
            f"  a choice {chosen} on the other {s.rows}, mu {s.loss.mu:.3g}{scored}",
        ]
        if self.refits:
            lines.append(f"  one fit on all rows, mu {max(fit.loss.mu for fit in self.refits):.3g}")
        return "\n".join(lines)


def plan_search(
    planners: Sequence[Any],
    *,
    epsilon: float,
    delta: float,
    n_rows: int,
    n_validation: int,
    adjacency: Adjacency,
    share: float,
    scores: str | None,
) -> SearchPlan:
    """Split a budget over a search; ``planners`` give the plan of every candidate for n, epsilon and delta.

    ``share`` of mu² is for fits and selection, 1 if nothing is fitted again; ``scores`` as in
    :class:`~ppdp.PrivateSearchCV`.
    """
    count, n_training = len(planners), n_rows - n_validation
    each = delta / (count + 1)
    room = delta
    for _ in range(ATTEMPTS):
        mu = gaussian_mu(epsilon, room * (1 - 1e-9)) * (1 - 1e-9)
        # Neighbours differ in training or in validation rows, so both may spend the same; if in both, half each.
        searching = math.sqrt(share if adjacency.one_row else share / 2) * mu
        fit = gaussian_epsilon(searching / math.sqrt(count), each)
        plan = SearchPlan(
            epsilon,
            delta,
            n_rows,
            adjacency.rows,
            tuple(PlannedFit.of(planner(n_training, fit, each)) for planner in planners),
            (),
            Selection.of_budget(n_validation, adjacency, count, scores, searching),
        )
        if share < 1:
            refit = gaussian_epsilon(math.sqrt(1 - share) * mu, each)
            refits = tuple(PlannedFit.of(planner(n_rows, refit, each)) for planner in planners)
            plan = replace(plan, refits=refits)
        if plan.kept:
            return plan
        lost = plan.loss.failure
        draws = replace(plan, epsilon=0.0).allowance / (2 * TOTAL_VARIATION_PER_DRAW)
        epsilon = certifiable_epsilon(epsilon, delta, draws)
        plan = replace(plan, epsilon=epsilon)
        room = min(room, (delta - plan.allowance - lost) / (1 - lost)) * (1 - 1e-6)
        if room <= 0:
            break
    raise NoRoute("no split keeps the budget of the search.", fix="fewer candidates, a larger epsilon or delta.")


@dataclass(frozen=True, slots=True)
class SearchSummary:
    """What a search released and what all of it costs: public numbers and words only."""

    plan: SearchPlan  # what was run
    status: str  # as on a certificate; the least of all fits
    reasons: tuple[str, ...]  # why it is not unconditional
    parameters: tuple[Mapping[str, Any], ...]  # of the candidates
    outcomes: tuple[str, ...]  # "released" or "refused" for each
    best_index: int  # the chosen one
    dataset: str | None = None  # public name of the data
    invalid: str = "error"  # what happened to invalid values; "error" if it did in any fit

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

        Taken on trust: each fit's recorded cost, that ``reasons`` are all, and that what ran is what was planned.
        """
        data = json.loads(json.dumps(self.to_dict()))
        fits, refits = (tuple(PlannedFit.from_dict(fit) for fit in data[name]) for name in ("fits", "refits"))
        selection = Selection(**data["selection"])
        numbers = {name: data[name] for name in ("epsilon", "delta", "n_rows", "rows_per_unit")}
        again = SearchPlan(**numbers, fits=fits, refits=refits, selection=selection)
        recorded = PrivacyLoss(data["total"]["mu"], data["total"]["failure"])
        same = all(
            math.isclose(one, composed, rel_tol=1e-9, abs_tol=1e-300)
            for one, composed in [(recorded.mu, again.loss.mu), (recorded.failure, again.loss.failure)]
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
        search=read_as(SearchRecord, summary.to_dict()),
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
