"""Newton steps on whitened rows: ``docs/theory/newton.md``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ppdp.bounds.learning import Gradient, kept_steps
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane
from ppdp.core.rounding import BLOCK, UNIT, inflate

NORMS, LENGTHS = 16, 24  # bins of the histograms of the norms of rows, and of their gradients
CALIBRATING = 2  # last steps, of slope and intercept alone
DIRECTED = ("logistic", "squared", "glm")  # losses of one score whose curvature says how unsure coefficients are
FORM = {"fit_intercept", "iterations", "shares", "curvature", "last", "diagonal", "calibration", "smoothing"}
LOSSES = {"logistic": 1, "hinge": 1, "squared": 1, "glm": 1, "softmax": 0}  # targets of each; as many as classes


def newton_width(domain: Domain, fit_intercept: bool) -> int:
    """Coefficients of a score."""
    return domain.d + bool(fit_intercept)


def triangle(width: int) -> int:
    """Numbers in the upper triangle of a symmetric matrix."""
    return width * (width + 1) // 2


def answers(iterations: int, calibration: float = 0.0, **_: Any) -> int:
    """How often rows are asked for."""
    return 3 + iterations + CALIBRATING * (calibration > 0)


@dataclass(frozen=True, slots=True)
class Factors:
    """Public factors on the answers, each of which is a mean of vectors of norm 1 at most."""

    norms: float
    moments: float
    lengths: float
    steps: tuple[tuple[float, float], ...]  # on gradient and curvature of each step

    @classmethod
    def of(
        cls, iterations: int, shares: Sequence[float], curvature: float, last: float, calibration: float = 0.0, **_: Any
    ) -> Factors:
        """So that answers cost these shares of ``mu²`` where a row is replaced; all together cost what as many
        gradients clipped at norm 1 do.

        ``shares`` are those of norms, moments and lengths; of the rest the last step has ``last`` times as much as
        any other, and ``curvature`` of every step is the curvature's.
        """
        sane(type(iterations) is int and 1 <= iterations <= 1000 and 0 <= curvature < 1 and 1 <= last <= 1000)
        sane(len(shares) == 3 and all(0 < share < 1 for share in shares) and 0 <= calibration < 1)
        left = 1 - math.fsum([*shares, calibration])
        sane(left > 0)
        unit = math.sqrt(4.0 * answers(iterations, calibration))
        rest = left / (iterations - 1 + last)
        of_steps = [rest] * (iterations - 1) + [rest * last]
        of_steps += [calibration / CALIBRATING] * CALIBRATING * (calibration > 0)
        norms, moments, lengths = (unit * math.sqrt(share / 2) for share in shares)
        each = tuple(
            (unit * math.sqrt(share * (1 - curvature)) / 2, unit * math.sqrt(share * curvature / 2))
            for share in of_steps
        )
        return cls(norms, moments, lengths, each)

    @property
    def alone(self) -> float:
        """The largest of them."""
        return max(self.norms, self.moments, self.lengths, *(max(own) for own in self.steps))

    @property
    def largest(self) -> float:
        """The same with gradients on which that of the curvature is spent as well."""
        return max(self.alone, *(both(*own) for own in self.steps))


def both(gradient: float, curvature: float) -> float:
    """Factor on a gradient alone that costs no more than these two side by side."""
    return math.hypot(gradient, curvature / math.sqrt(2))


def _scores(loss: str, n_classes: int) -> tuple[int, int]:
    """Scores of a row, and targets."""
    return (n_classes, n_classes) if loss == "softmax" else (1, LOSSES[loss])


def shape(
    domain: Domain,
    *,
    loss: str,
    fit_intercept: bool,
    curvature: float,
    n_classes: int = 1,
    diagonal: bool | None = None,
    **others: Any,
) -> tuple[int, float]:
    """Numbers in an answer, the longest of them all, and the bound on each."""
    width, (scores, targets) = newton_width(domain, fit_intercept), _scores(loss, n_classes)
    step = scores * (width + bool(curvature) * (width if diagonal else triangle(width)))
    size = max(NORMS, LENGTHS, triangle(width + targets), step)
    factors = Factors.of(curvature=curvature, **others)
    return size, factors.alone if diagonal is None else factors.largest


def _arrays(
    domain: Domain,
    steps: int,
    size: int,
    *,
    loss: str,
    fit_intercept: bool,
    iterations: int,
    n_classes: int = 1,
    diagonal: bool | None = None,
    **_: Any,
) -> dict[str, list[int]]:
    """The last model, what is known of its errors, and those on the way to it."""
    width = newton_width(domain, fit_intercept)
    numbers = _scores(loss, n_classes)[0] * width
    errors = {"errors": [width + 3, width]} if loss in DIRECTED and diagonal is not None else {}
    path = {} if loss == "glm" else {"path": [len(kept_steps(iterations)), numbers]}
    return {**errors, **path, "theta": [numbers]}


def of_answers(
    domain: Domain,
    distance: Distance,
    *,
    loss: str,
    norm: float,
    alpha: float,
    n_classes: int = 1,
    y_range: Sequence[float] | None = None,
    power: float = 1.0,
    **form: Any,
) -> list[float]:
    """Sensitivity of each answer, whatever earlier ones were.

    Every answer is a mean over the public n of ``w v``, times a public factor: v is a unit vector that says in which
    bin a norm lies, the triangle of a positive semidefinite matrix of norm 1 at most (both differ by at most √2
    between two rows), or a gradient over its clip (2). Equal rows have equal v, wherever they stand; rows that moved
    count as replaced. Documents without ``diagonal`` are of steps of another form: places counted, there were no
    errors, and curvatures had factors of their own in every step.
    """
    sane(form.keys() <= FORM and all(type(form.get(name, False)) is bool for name in ("fit_intercept", "diagonal")))
    sane("diagonal" in form or "calibration" not in form)
    sane(loss in LOSSES and norm == domain.require("row_norm") and alpha >= 0)
    sane((n_classes >= 2 and not form.get("calibration")) if loss == "softmax" else (n_classes == 1))
    sane(domain.classes is None or loss in ("glm", "squared") or len(domain.classes) == max(n_classes, 2))
    sane(loss != "glm" or (1 <= power <= 2 and y_range is not None and y_range[0] >= 0))  # or curvatures are negative
    sane(y_range is None or domain.y_range is None or tuple(domain.y_range) == tuple(y_range))
    far = (distance.by_position() if "diagonal" not in form else distance).moved_as_replaced()
    paired, single = far.unmatched
    size, _bound = shape(domain, loss=loss, n_classes=n_classes, **form)
    rounding = 2 * Gradient(size, 1.0, math.inf, 0.0, block=BLOCK).sum_error(domain.n)
    rounding += 16 * UNIT * min(far.reweighted, domain.n)
    semidefinite = (math.sqrt(2) * paired + single + rounding) / domain.n
    gradient = (far.mass + rounding) / domain.n
    factors = Factors.of(**form)
    each = [factor * semidefinite for factor in (factors.norms, factors.moments, factors.lengths)]
    return each + [math.hypot(own * gradient, other * semidefinite) for own, other in factors.steps]


@formula(
    "learning.newton",
    kind="mechanism",
    page="newton",
    predicts=True,
    used_by=(
        "GammaRegressor",
        "LinearRegression",
        "LinearSVC",
        "LogisticRegression",
        "PoissonRegressor",
        "Ridge",
        "TweedieRegressor",
    ),
    shape=shape,
    each=of_answers,
    steps=lambda domain, **parameters: answers(**parameters),
    arrays=_arrays,
)
def newton(domain: Domain, distance: Distance, **parameters: Any) -> float:
    """Root mean square of the sensitivities of all answers: those of :func:`of_answers`."""
    each = of_answers(domain, distance, **parameters)
    return inflate(math.sqrt(math.fsum(own * own for own in each) / len(each)))
