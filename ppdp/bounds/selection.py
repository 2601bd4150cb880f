"""Choosing among fitted models by scores on other private rows: ``docs/theory/search.md``."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

from scipy.special import log_ndtr, ndtri

from ppdp.bounds import boosting, learning, newton  # noqa: F401  (their formulas are looked up)
from ppdp.bounds.queries import histograms_apart
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import MechanismSensitivity, formula, lookup, sane, whole
from ppdp.core.rounding import UNIT, column_sum_error, inflate
from ppdp.exceptions import ImpossibleBudget
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.noise.laplace import score_allowance
from ppdp.privacy.noise.sampler import TOTAL_VARIATION_PER_DRAW, gaussian_scale, lattice_allowance

_SAFE = 1 + 1e-9
_WORST_SCORES = 2.0**-22  # no less than ``score_allowance``, whatever the noise


def range_mu(loss_range: float) -> float:
    """Gaussian parameter of any choice whose privacy loss has at most this range: ``2 Φ⁻¹(1/(1 + exp(-range/2)))``.

    >>> round(range_mu(1.0), 4)
    0.6239
    """
    if loss_range > 1000:
        return math.inf
    return -2 * float(ndtri(1 / (1 + math.exp(loss_range / 2)))) * _SAFE + 1e-15


def range_of(mu: float) -> float:
    """The largest range of a privacy loss that costs no more than ``mu``: the inverse of :func:`range_mu`."""
    return 2 * float(log_ndtr(mu / 2) - log_ndtr(-mu / 2)) / _SAFE**2


def _width(rows: int, distance: Distance) -> float:
    """Most that the changes of two candidates' sums of scores in [0, 1] differ by: 2 for one replaced row."""
    return distance.shift(1.0) + 2 * column_sum_error(rows, 1, 1.0, distance)


def choice_mu(rows: int, distance: Distance, scale: float) -> float:
    """Gaussian parameter of one choice with probabilities ``~ exp(sum of scores / scale)``, of so many scored rows."""
    return range_mu(inflate(_width(rows, distance) / scale + score_allowance(float(rows), scale)))


def choice_scale(rows: int, distance: Distance, mu: float) -> float:
    """The least temperature of a choice that costs at most ``mu``, if the lattice of the noise has one."""
    room = range_of(mu) / _SAFE - _WORST_SCORES
    if room <= 0:
        raise ImpossibleBudget("the budget is too small for the noise lattice.", fix="ask for a larger epsilon.")
    return _width(rows, distance) / room * _SAFE


def _score_shift(rows: int, distance: Distance, count: int) -> float:
    """Most that ``count`` mean scores in [0, 1] change (L2): √count/rows for one replaced row."""
    one = distance.shift(0.5) + column_sum_error(rows, 1, 1.0, distance)
    return inflate(math.sqrt(count) * one / rows)


def score_mu(rows: int, distance: Distance, count: int, noise_scale: float) -> float:
    """Gaussian parameter of ``count`` mean scores with Gaussian noise."""
    return _score_shift(rows, distance, count) / noise_scale + lattice_allowance(1.0, noise_scale, count)


def score_noise(rows: int, distance: Distance, count: int, mu: float) -> float:
    """The least noise on ``count`` mean scores that costs at most ``mu``, if the lattice of the noise has one."""
    return gaussian_scale(_score_shift(rows, distance, count), mu, 1.0, count)


def search_loss(
    fits: Sequence[PrivacyLoss], selection: PrivacyLoss, refits: Sequence[PrivacyLoss], *, apart: bool
) -> PrivacyLoss:
    """Everything that a search releases, all losses Gaussian.

    Every candidate is fitted on the training rows; ``selection`` is of choice and score on the validation rows; of the
    ``refits`` on all rows, if there are any, one is run. ``apart``: neighbours differ on one side only.
    """
    trained = functools.reduce(operator.add, fits, PrivacyLoss())
    searched = _worst([trained, selection]) if apart else trained + selection
    return searched + _worst(refits)


def _worst(losses: Sequence[PrivacyLoss]) -> PrivacyLoss:
    """What dominates any one of them."""
    lost = [loss.failure + (1 - loss.failure) * loss.gate for loss in losses]
    return PrivacyLoss(max((loss.mu for loss in losses), default=0.0), max(lost, default=0.0))


def selection_loss(
    rows: int, rows_per_unit: int, temperature: float | None, scored: int, noise_scale: float | None
) -> PrivacyLoss:
    """What choice and scores on the validation rows cost together; see :class:`ppdp.pipeline.search.plan.Selection`."""
    distance = Adjacency.replace(rows_per_unit).distance.among(rows)
    chosen = 0.0 if temperature is None else choice_mu(rows, distance, temperature)
    released = 0.0 if noise_scale is None else score_mu(rows, distance, scored, noise_scale)
    return PrivacyLoss(math.hypot(chosen, released))


def search_allowance(epsilon: float, scored: int, fits: Sequence[float], refits: Sequence[float]) -> float:
    """Part of delta for imperfect noise: one choice, the scores, all fits and the worst refit, by total variation."""
    drawn = (1 + scored) * TOTAL_VARIATION_PER_DRAW
    return (1 + math.exp(epsilon)) * (drawn + math.fsum(fits) + max(refits, default=0.0))


SCORE_EDGES = tuple(i / 4 for i in range(-24, 25))  # log-odds between the cells of scores
SCORE_CELLS = len(SCORE_EDGES) + 1
THRESHOLD, CALIBRATION = "threshold of the second class", "calibration"  # as certificates name them
BY_COUNTS = ", by released counts"  # behind what a certificate says of either, where it is read off them
COUNTED = "-threshold"  # behind the id of a classifier's formula


def counts_apart(domain: Domain, distance: Distance) -> float:
    """How far apart the shares of the rows by score and class are: √2/n for one replaced row."""
    return histograms_apart(domain, distance, 1) / domain.n + 4 * UNIT


def _checked(of_model: MechanismSensitivity, domain: Domain, p: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the classifier, of two classes."""
    own = {name: value for name, value in p.items() if name not in ("answers", "count_factor")}
    sane(whole(p["answers"]) and p["answers"] >= 1 and 0 < p["count_factor"] < math.inf)
    sane(of_model.steps is None or of_model.steps(domain, **own) == p["answers"])
    sane(own.get("loss", "logistic") in ("hinge", "logistic") and own.get("n_classes", 2) == 2)
    sane(domain.classes is None or len(domain.classes) == 2)
    return own


def _register(name: str) -> None:
    """The formula of a classifier and the counts behind it."""
    of_model: Any = lookup(name, "mechanism")

    def each(domain: Domain, distance: Distance, **p: Any) -> list[float]:
        """Sensitivity of each answer: those of the classifier, and of the counts, whatever it has become."""
        own = _checked(of_model, domain, p)
        alone = of_model.each or (lambda *here, **asked: [of_model(*here, **asked)] * p["answers"])
        return [*alone(domain, distance, **own), p["count_factor"] * counts_apart(domain, distance)]

    def shape(domain: Domain, **p: Any) -> tuple[int, float]:
        """Numbers in the longest answer, and the bound on each."""
        size, bound = of_model.shape(domain, **_checked(of_model, domain, p))
        return max(size, 2 * SCORE_CELLS), max(bound, p["count_factor"])

    def arrays(domain: Domain, steps: int, size: int, **p: Any) -> dict[str, list[int]]:
        """What the classifier releases, and the counts."""
        own = _checked(of_model, domain, p)
        size, _ = of_model.shape(domain, **own)
        return {**of_model.arrays(domain, p["answers"], size, **own), "counts": [2 * SCORE_CELLS]}

    @formula(
        f"{name}{COUNTED}",
        kind="mechanism",
        page="thresholds",
        predicts=True,
        gaps=of_model.gaps,
        used_by=CLASSIFIERS[name],
        shape=shape,
        each=each,
        steps=lambda domain, *, answers, **_: answers + 1,
        arrays=arrays,
    )
    def with_counts(domain: Domain, distance: Distance, **parameters: Any) -> float:
        """Root mean square of the sensitivities of all answers."""
        found = each(domain, distance, **parameters)
        return inflate(math.sqrt(math.fsum(own * own for own in found) / len(found)))


CLASSIFIERS = {
    "learning.boosting": ("GradientBoostingClassifier",),
    "learning.hinge-gradient": ("LinearSVC",),
    "learning.logistic-gradient": ("LogisticRegression",),
    "learning.newton": ("LinearSVC", "LogisticRegression"),
}
"""Classes that may ask for counts, by the formula of their training."""

for _name in CLASSIFIERS:
    _register(_name)
