"""Gates, the exact law of what passes them, and pipelines that have one."""

from __future__ import annotations

import dataclasses
import math

import mpmath as mp
import numpy as np
from scipy.stats import norm
from sklearn.base import clone

from ppdp import Domain, Pipeline
from ppdp.data.rows import Rows
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.pipeline.execute import execute
from ppdp.pipeline.planning.plan import Plan
from ppdp.privacy.gate import GATE_KINDS, Gate
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.privacy.noise.laplace import value_lattice, whole_lattice
from ppdp.privacy.noise.sampler import Noise, lattice_exponent
from ppdp.transformers import PCA, MeanImputer, MinMaxScaler, NormClipper, StandardScaler

BUDGETS = [(1.0, 1e-6, 10_000), (0.1, 1e-9, 500_000), (5.0, 1e-4, 1000), (20.0, 1e-3, 300)]
KINDS = tuple(GATE_KINDS)


def gate_of(kind: str, epsilon: float, delta: float, n: int, share: float = 0.05) -> Gate:
    """The gate of a budget: a share of mu² for Gaussian noise, and the same needed margin for others."""
    mu = math.sqrt(share) * gaussian_mu(epsilon, delta)
    gate = Gate.of_budget(mu, delta, adding=False, n_rows=n)
    if kind == "gaussian":
        return gate
    return Gate.of_margin(kind, gate.needed_margin(), delta, adding=False, n_rows=n)


def gates() -> list[Gate]:
    return [gate_of(kind, *budget) for kind in KINDS for budget in BUDGETS]


def passing(gate: Gate, margin: float) -> mp.mpf:
    """Exact probability with which a margin passes, the lattice included."""
    threshold = gate.threshold
    if gate.kind == "gaussian":
        return _gaussian_passing(gate, margin, threshold)
    lattice = (whole_lattice if gate.kind == "discrete-laplace" else value_lattice)(
        float(gate.n_rows), gate.noise_scale
    )
    margin = math.ceil(margin) if gate.kind == "discrete-laplace" else margin
    first = math.floor(threshold / lattice.step)
    while not first * lattice.step > threshold:
        first += 1
    with mp.workdps(40):
        decay = mp.mpf(2) ** lattice.shift / lattice.scale
        k, ratio = first - round(margin / lattice.step), mp.exp(-decay)
        return +(ratio**k / (1 + ratio) if k >= 1 else 1 - ratio ** (1 - k) / (1 + ratio))


def _gaussian_passing(gate: Gate, margin: float, threshold: float) -> mp.mpf:
    """The release is ``(2 (r + floor(2^M Z)) + 1) step / 2`` with r the rounded margin."""
    exponent = lattice_exponent(float(gate.n_rows), gate.noise_scale)
    step = math.ldexp(gate.noise_scale, -exponent)
    first = math.floor(threshold / step - 0.5)
    while not (2 * first + 1) * (0.5 * step) > threshold:
        first += 1
    with mp.workdps(40):
        return +(mp.erfc(mp.ldexp(first - round(margin / step), -exponent) / mp.sqrt(2)) / 2)


def hockey_stick(mu: float, log_ratio: float) -> float:
    if mu == 0:
        return max(0.0, 1 - math.exp(log_ratio))
    return float(norm.cdf(mu / 2 - log_ratio / mu) - math.exp(log_ratio) * norm.cdf(-mu / 2 - log_ratio / mu))


def gated_delta(gate: Gate, mu: float, here: float, there: float, epsilon: float) -> float:
    """delta(epsilon) of "gate, and behind it a mu-release" on two datasets with these margins, by enumeration."""
    p, q = float(passing(gate, here)), float(passing(gate, there))
    refused = max(0.0, (1 - p) - math.exp(epsilon) * (1 - q))
    if p == 0:
        return refused
    return refused + (p if q == 0 else p * hockey_stick(mu, epsilon + math.log(q / p)))


def plan(*stages, mechanism=None, n=5000, d=3, domain=None, **parameters) -> Plan:
    steps = [(f"s{i}", stage) for i, stage in enumerate(stages)] + [("m", mechanism or GaussianMechanism())]
    return Pipeline(steps, **parameters).plan(domain or Domain(n_rows=n, n_features=d))


def classifier() -> LogisticRegression:
    return LogisticRegression(classes=(0, 1), max_iter=5)


class Witness(Noise):
    """Noise that remembers how many numbers left, in which order."""

    def __init__(self) -> None:
        super().__init__(0)
        self.sizes: list[int] = []

    def release(self, value, noise_scale, bound):
        self.sizes.append(np.size(value))
        return super().release(value, noise_scale, bound)


def tight(n: int = 5000, d: int = 3) -> Rows:
    """Rows with every condition fulfilled by a wide margin."""
    rng = np.random.default_rng(0)
    X = rng.choice([-1.0, 1.0], (n, 1)) * np.array([0.9] + [0.25] * (d - 1)) + rng.normal(scale=0.01, size=(n, d))
    return Rows.of(X, rng.integers(2, size=n))


def before_the_gate(plan_: Plan, rows: Rows) -> tuple[list[float], list[float]]:
    """The mu of what left before and behind the gate, from an execution."""
    witness = Witness()
    execute(plan_, rows, witness)
    from ppdp.data.noisy_statistics import STATISTICS

    forms = [(STATISTICS[r.statistic].form.sizes(plan_.steps[r.at].domain, r.parameters), r.mu) for r in plan_.releases]
    began = {sizes[0]: mu for sizes, mu in forms}  # the first part of each, by its size
    assert len(began) == len(plan_.releases)
    assert 1 not in began
    at = witness.sizes.index(1)
    assert set(witness.sizes[:at]) <= {size for sizes, _ in forms for size in sizes}
    return tuple([began[s] for s in sizes if s in began] for sizes in (witness.sizes[:at], witness.sizes[at + 1 :]))


CLIP, RANGE, TURN = NormClipper(), MinMaxScaler((-1, 1)), PCA(1, with_mean=False, fit_mode="exact")
NOISY = StandardScaler(fit_mode="noisy")


def scaled(least: float, **how) -> StandardScaler:
    return StandardScaler(min_std=least, fit_mode="exact", **how)


def filled(gaps: float) -> MeanImputer:
    return MeanImputer(max_missing=gaps, fit_mode="exact")


GATED = {  # stages, what learns from them, and how the gate's delta is added
    "PCA on clipped rows": ((CLIP, TURN), None, "max"),
    "PCA behind a noisy scaler": ((CLIP, NOISY, TURN), None, "sum"),
    "noisy scaler behind PCA": ((CLIP, TURN, NOISY), None, "max"),
    "two conditions": ((CLIP, TURN, scaled(0.01, use_floor=False)), None, "max"),
    "prediction release at the condition": ((RANGE, filled(0.2)), classifier, None),
    "prediction release before the condition": ((CLIP, scaled(0.5), TURN), classifier, None),
    "prediction release between conditions": (
        (RANGE, filled(500), scaled(0.1, use_floor=False), TURN),
        classifier,
        None,
    ),
}


def gated(name: str, **parameters) -> Plan:
    stages, mechanism, _ = GATED[name]
    return plan(*map(clone, stages), mechanism=mechanism and mechanism(), **parameters)


def open_gate(gate: Gate) -> Gate:
    """A gate that always passes, to see what happens behind it."""
    return dataclasses.replace(gate, threshold=-math.inf)
