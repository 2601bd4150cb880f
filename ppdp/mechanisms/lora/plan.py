"""What private training of an adapter costs, and its certificate: settled before an example is looked at."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds import lookup
from ppdp.certificate.document import Certificate
from ppdp.certificate.issuance import issue_alone
from ppdp.certificate.record import MechanismRecord
from ppdp.core.adjacency import Adjacency
from ppdp.core.boundary import outside
from ppdp.core.checks import check_budget, integer, length
from ppdp.core.domain import Domain
from ppdp.core.formula import draws_that_count
from ppdp.exceptions import ImpossibleBudget, NoiseWarning
from ppdp.mechanisms.base import QuerySpec
from ppdp.mechanisms.lora.layers import STAGE, Layer
from ppdp.privacy.ledger.fit_charging import FitCost
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise.sampler import TOTAL_VARIATION_PER_DRAW, certifiable_epsilon, lattice_exponent, lowered

FORMULAS = {"fa": "lora.frozen-a", "m2": "lora.fresh-projection"}
NAME = "lora"


@dataclass(frozen=True, slots=True)
class LoRAPlan:
    """Everything public."""

    domain: Domain  # of the examples
    question: QuerySpec  # what is asked of them
    noise_scale: float  # standard deviation of the noise on a sum of clipped gradients
    cost: FitCost  # of all steps

    @property
    def rate(self) -> float:
        """Probability with which an example comes into a batch."""
        return float(self.question.parameters["batch_size"]) / self.domain.n

    @property
    def exponent(self) -> int:
        """The noise is ``2^exponent`` steps of its lattice."""
        return lattice_exponent(self.question.bound, self.noise_scale)

    def certificate(
        self,
        released: Mapping[str, NDArray[np.float64]],
        *,
        seeded: bool,
        inference: str,
        issued: Mapping[str, Any],
        dataset: str | None,
        sources: Any,
    ) -> Certificate:
        """The certificate of the adapter that was released."""
        question, domain = self.question, self.domain
        found = lookup(question.formula, "privacy")
        mechanism = MechanismRecord(
            name=NAME,
            class_=STAGE,
            formula=question.formula,
            parameters=question.parameters,
            page=found.page,
            sensitivity=None,
            steps=question.steps,
            size=question.size,
            bound=question.bound,
            noise_scale=self.noise_scale,
            mu=None,
        )
        return issue_alone(
            self.cost,
            domain,
            mechanism=mechanism,
            released={f"{NAME}.{name}": array for name, array in released.items()},
            facts=(
                ("n_rows", str(domain.n), "declared"),
                ("n_features", str(domain.d), "fields of the made-up examples"),
                ("adjacency", domain.adjacency.words, "declared"),
            ),
            reasons=(f"{NAME}: {found.assumed(question.parameters)}",),
            seeded=seeded,
            inference=inference,
            issued=issued,
            invalid="repair" if question.parameters["isolation"] else "error",
            packages=("torch", "peft"),
            dataset=dataset,
            sources=sources,
        )


def make_plan(
    layers: Sequence[Layer],
    fields: Sequence[str],
    *,
    method: str,
    rank: int,
    terms: int,
    adapter_rank: int,
    microbatch: int,
    isolation: str | None,
    epsilon: float,
    delta: float,
    n_rows: int,
    batch_size: int,
    steps: int,
    max_grad_norm: float,
) -> LoRAPlan:
    """Solve for the least noise within (epsilon, delta).

    :class:`InvalidParameter` if a parameter is impossible, or the budget cannot be met.
    """
    domain = Domain(
        n_rows=integer("n_rows", n_rows, STAGE),
        n_features=len(fields),
        feature_names=tuple(fields),
        max_missing=0,
        adjacency=Adjacency.add_remove(),
    )
    epsilon, delta = check_budget(epsilon, delta, domain.n)
    parameters: dict[str, Any] = {
        "clip": length("max_grad_norm", max_grad_norm, STAGE),
        "batch_size": integer("batch_size", batch_size, STAGE, most=domain.n),
        "steps": integer("steps", steps, STAGE),
        "rank": rank,
        "microbatch": microbatch,
        "isolation": isolation,
        **({"rows": "examples"} if microbatch > 1 else {}),  # each layer's, which certificates of before do not say
        "layers": [layer.name for layer in layers],
        "outputs": [layer.outputs for layer in layers],
        "inputs": [layer.inputs if method == "m2" else int(layer.module.in_features) for layer in layers],
    }
    if method == "m2":
        parameters |= {"terms": terms, "adapter_rank": adapter_rank}
    start = parameters["clip"] * max(1.0, 3 * math.sqrt(steps) * batch_size / domain.n)
    asked = QuerySpec.asked(FORMULAS[method], "privacy", domain, parameters, steps, start=start)
    far = domain.neighbours
    draws = draws_that_count(asked.formula, domain, far, steps=asked.steps, size=asked.size)
    kept = certifiable_epsilon(epsilon, delta, draws)
    if kept <= 0:
        what = "delta is below what the noise sampler can certify."
        raise ImpossibleBudget(what, stage=STAGE, fix="a larger delta.", parameter="delta")
    if kept < epsilon:
        warnings.warn(lowered(epsilon, delta, kept), NoiseWarning, stacklevel=outside())
        epsilon = kept
    allowance = (1 + math.exp(epsilon)) * draws * TOTAL_VARIATION_PER_DRAW
    noise_scale = asked.calibrated(domain, far, 0.0, PrivacyLoss(), (epsilon, delta - allowance))
    loss = asked.privacy_map(domain, far, noise_scale)
    cost = FitCost(epsilon, delta, loss, 0.0, allowance, domain.adjacency)
    return LoRAPlan(domain, asked, noise_scale, cost)
