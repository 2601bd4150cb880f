"""Privacy of what diffprivlib's models release: ``docs/theory/diffprivlib.md``.

diffprivlib states one epsilon for every model and means different things by it. The formulas here begin at the
noise that its source draws, and prove what that is worth at a :class:`~ppdp.core.distance.Distance`.
``noise_scale`` is one over the epsilon that diffprivlib is given.
"""

from __future__ import annotations

import math
from typing import Any

from ppdp.bounds.learning import augmented_norm
from ppdp.bounds.queries import moving
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import inflate
from ppdp.exceptions import UnsupportedOrder
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Pure

MOST_DEPTH = 15  # trees are complete: 2^15 leaves
VERSION = "0.6.6"  # the one whose source the proofs were read from
RELIES = f"diffprivlib {VERSION} is taken at its word: exact arithmetic, continuous noise, exact minimisers"
ROUNDED = (
    f"{RELIES}; in truth its noise is computed in floating point from random numbers of 53 bits, and of each result 24 "
    "significant bits are released"
)
_SHARED: dict[str, Any] = {
    "kind": "privacy",
    "page": "diffprivlib",
    "law": "drawn by diffprivlib",
    "used_by": ("Diffprivlib",),
    "predicts": True,
    "relies": RELIES,
}


def pure(epsilon: float) -> PrivacyLoss:
    """Loss of a mechanism that is private without delta."""
    return PrivacyLoss(parts=(Pure(epsilon=inflate(epsilon)),) if epsilon else ())


def _counted(domain: Domain, n_classes: int) -> bool:
    """Whether this is the number of the domain's classes, as far as they are known."""
    return whole(n_classes) and n_classes >= 2 and (domain.classes is None or n_classes == len(domain.classes))


def whole_rows(distance: Distance) -> Distance:
    """The distance, refused where rows may count in part: diffprivlib's models know no weights."""
    if distance.reweighted:
        what = "rows may have weights between 0 and 1 here, and this diffprivlib model knows none."
        fix = "a stage before it that keeps or deletes whole rows, or a mechanism of ppdp."
        raise UnsupportedOrder(what, stage="Diffprivlib", fix=fix)
    return distance


def objective_noise(epsilon: float, norm: float, penalty: float) -> tuple[float, float]:
    """What diffprivlib adds to a sum of logistic losses of rows of norm at most ``norm``; ``penalty`` is its ``1 / C``.

    Scale and curvature: the linear term has density ``~ exp(-|b| / scale)``, and the objective is at least so convex.
    """
    rest = epsilon - 2 * math.log1p(norm / (4 * penalty))
    if rest > 0:
        return 2 * norm / rest, penalty
    return 4 * norm / epsilon, norm / (4 * math.expm1(epsilon / 4))


def logistic_shape(domain: Domain, *, penalty: float, fit_intercept: bool, n_classes: int) -> tuple[int, float]:
    """Coefficients, one line for two classes, and the norm of a row's gradient."""
    lines = 1 if n_classes == 2 else n_classes
    return lines * (domain.d + fit_intercept), augmented_norm(float(domain.require("row_norm")), fit_intercept)


@formula("diffprivlib.logistic-regression", shape=logistic_shape, **_SHARED)
def logistic_objective(
    domain: Domain, distance: Distance, *, noise_scale: float, penalty: float, fit_intercept: bool, n_classes: int
) -> PrivacyLoss:
    """Perturbed objective: ``shift / scale`` for the linear term and ``m log(1 + R²/4a)`` for m changed curvatures.

    A moved row shifts the gradient by at most ``R + radius``: the coefficients are unbounded, so no Lipschitz constant
    bounds the change of its probability, only 1 does.
    """
    sane(_counted(domain, n_classes) and penalty > 0)
    lines = 1 if n_classes == 2 else n_classes
    size, norm = logistic_shape(domain, penalty=penalty, fit_intercept=fit_intercept, n_classes=n_classes)
    scale, curvature = objective_noise(1 / noise_scale / lines, norm, penalty)
    distance, moved = whole_rows(distance), moving(distance)
    shift = norm * distance.mass + min(norm * moved + distance.total, 2 * norm * moved)
    rows = math.ceil(distance.one_sided + moved)
    rank = min(rows, size // lines)
    bend = rank * math.log1p(rows * norm**2 / (4 * curvature * rank)) if rows else 0.0
    return pure(lines * (shift / scale + bend))


@formula(
    "diffprivlib.linear-regression",
    shape=lambda domain, *, fit_intercept: (domain.d + fit_intercept, largest_entry(domain)),
    **_SHARED,
)
def functional_regression(
    domain: Domain, distance: Distance, *, noise_scale: float, fit_intercept: bool
) -> PrivacyLoss:
    """Laplace noise on all products of the columns and the target, each with the same share of epsilon."""
    d, bound, width = domain.d, largest_entry(domain), domain.d + fit_intercept
    crosses = width * (width - 1) / 2
    share = 1 / noise_scale / (1 + 2 * width + crosses)
    paired, single = distance.unmatched
    replaced, toggled = 1 + 2 * width + crosses, 1 + 1.5 * width + crosses / 2
    slope = (2.5 + (width - 1) / 2) / bound
    moves = min(slope * math.sqrt(d) * distance.total, replaced * moving(distance))
    return pure(share * (replaced * paired + toggled * single + moves))


@formula(
    "diffprivlib.naive-bayes",  # mean and variance of every column in every class, and the prior
    shape=lambda domain, *, n_classes: (n_classes * (2 * domain.d + 1), largest_entry(domain)),
    **_SHARED,
)
def naive_bayes(domain: Domain, distance: Distance, *, noise_scale: float, n_classes: int) -> PrivacyLoss:
    """Counts, sums and squares of the classes, a third of epsilon each: a replaced row leaves one, enters another."""
    sane(_counted(domain, n_classes))
    paired, single = whole_rows(distance).unmatched
    moves = min(1.5 * distance.total / (largest_entry(domain) * math.sqrt(domain.d)), 2 / 3 * moving(distance))
    return pure((5 / 3 * paired + 7 / 6 * single + moves) / noise_scale)


@formula(
    "diffprivlib.random-forest",  # column and threshold of every inner node, label of every leaf
    shape=lambda domain, *, n_trees, depth, n_classes: (n_trees * (3 * 2**depth - 2), largest_entry(domain)),
    **_SHARED,
)
def random_forest(
    domain: Domain, distance: Distance, *, noise_scale: float, n_trees: int, depth: int, n_classes: int
) -> PrivacyLoss:
    """A label for every leaf of random trees, each of which sees the rows at its own public positions.

    No certificate names it any more, since the noise of a forest comes from a seed that can be found; those that were
    issued are computed again by it.
    """
    sane(_counted(domain, n_classes) and whole(n_trees, depth) and n_trees >= 1 and 1 <= depth <= MOST_DEPTH)
    paired, single = whole_rows(distance).by_position().unmatched
    return pure((2 * paired + single + 2 * moving(distance)) / noise_scale)
