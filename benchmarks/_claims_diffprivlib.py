"""Claims of diffprivlib 0.6.6: its parameter ``epsilon``, delta = 0. It does not say for which neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
from _claims import Claimed, direction_ratio
from adapters import diffprivlib_target
from sklearn.base import clone
from sklearn.preprocessing import MinMaxScaler

from ppdp.audit import ForeignTarget

LIBRARY = "diffprivlib"

ZEROS, ONE = np.zeros((3, 1)), np.array([[0.0], [0.0], [1.0]])
EAST, NORTH = np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [0.0, 1.0]])
HALVES = np.repeat([0.0, 1.0], 10)[:, None]
OUTLIER = np.vstack([HALVES[:-1], [[1000.0]]])
SMALLEST = np.array([0.5, 0.5, 0.5]), np.array([0.5, 0.5, 1.0])
OTHERWISE = "for one row added or removed this pair would allow 2ε"
WARNED = "each call warns of it (PrivacyLeakWarning) and says how to avoid it"


def statistic(name: str, left: Any, right: Any, **settings: Any) -> ForeignTarget:
    """A function of ``diffprivlib.tools`` with epsilon 1."""
    from diffprivlib import BudgetAccountant, tools

    def release(data: Any, noise: object) -> Any:
        return getattr(tools, name)(data, epsilon=1.0, accountant=BudgetAccountant(), **settings)

    return ForeignTarget(f"diffprivlib tools.{name}", release, left, right, 1.0, library=LIBRARY)


def quantile() -> ForeignTarget:
    """The smallest of three: a median is drawn by one law, mirrored, on many pairs that look different."""
    return statistic("quantile", *SMALLEST, quant=0.0, bounds=(0, 1))


def scaler() -> ForeignTarget:
    from diffprivlib.models import StandardScaler

    return diffprivlib_target("diffprivlib StandardScaler", StandardScaler(bounds=(0, 1)), (ZEROS,), (ONE,))


def components(**settings: Any) -> ForeignTarget:
    from diffprivlib.models import PCA

    return diffprivlib_target(f"diffprivlib PCA {sorted(settings)}", PCA(2, **settings), (EAST,), (NORTH,))


def direction() -> ForeignTarget:
    """Matrices of 81 rows of norm 1 along two axes, one of which is replaced."""
    from diffprivlib.mechanisms import Bingham

    sides = [41.0, 40.0, 0.0, 0.0, 0.0, 0.0], [40.0, 41.0, 0.0, 0.0, 0.0, 0.0]
    ratio = direction_ratio(*sides, 2.0)

    def release(matrix: Any, noise: object) -> Any:
        return ratio(Bingham(epsilon=2.0).randomise(matrix))

    return ForeignTarget("diffprivlib Bingham", release, np.diag(sides[0]), np.diag(sides[1]), 2.0, library=LIBRARY)


def principal_outlier() -> ForeignTarget:
    from diffprivlib.models import PCA

    near = np.repeat(NORTH, 4, axis=0)
    far = np.vstack([near[:-1], [[0.0, 1000.0]]])
    return diffprivlib_target("diffprivlib PCA by itself", PCA(1), (near,), (far,))


def least_squares(**settings: Any) -> ForeignTarget:
    """One row with x = 1 and y = 0, or none: the sum of squares is 1 or next to nothing."""
    from diffprivlib.models import LinearRegression

    X, y = np.array([[1e-3], [1e-3], [1e-3]]), np.array([0.0, 1.0, 0.0])
    other = np.array([[1e-3], [1e-3], [1.0]])
    model = LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), **settings)
    return diffprivlib_target(f"diffprivlib LinearRegression {settings}", model, (X, y), (other, y))


def logistic(**settings: Any) -> ForeignTarget:
    from diffprivlib.models import LogisticRegression

    X = np.array([[1.0], [-1.0], [1.0]])
    model = LogisticRegression(data_norm=1.0, **settings)
    name = f"diffprivlib LogisticRegression {settings}"
    return diffprivlib_target(name, model, (X, np.array([1, 0, 1])), (X, np.array([1, 0, 0])))


def intercept() -> ForeignTarget:
    """Seen is whether the curve is steep and rises at 0, where only a row of 0 can hold it; as steep as it can be."""
    from diffprivlib.models import LogisticRegression

    def seen(model: Any) -> Any:
        slope, middle = float(model.coef_[0, 0]), float(model.intercept_[0])
        return float(slope > 8 and abs(middle) < 4)

    X, other, y = np.array([[1.0], [-1.0], [0.0]]), np.array([[1.0], [-1.0], [1.0]]), np.array([1, 0, 1])
    model = LogisticRegression(data_norm=1.0)
    return diffprivlib_target("diffprivlib intercept", model, (X, y), (other, y), seen=seen)


def labels() -> ForeignTarget:
    from diffprivlib.models import GaussianNB

    X = np.array([[0.0], [0.5], [1.0], [0.5]])
    model = GaussianNB(bounds=(0, 1))
    sides = [(X, np.array([0, 0, 1, last])) for last in (1, 2)]
    return diffprivlib_target("diffprivlib labels", model, *sides, learned=["classes_"])


def bayes() -> ForeignTarget:
    """The row that is replaced changes its class, so two counts and two sums move."""
    from diffprivlib.models import GaussianNB

    X = np.array([[0.0], [0.0], [1.0], [1.0], [1.0]])
    other = np.array([[0.0], [0.0], [1.0], [1.0], [0.0]])
    sides = (X, np.array([0, 0, 1, 1, 0])), (other, np.array([0, 0, 1, 1, 1]))
    return diffprivlib_target("diffprivlib GaussianNB", GaussianNB(bounds=(0, 1)), *sides)


def inertia() -> ForeignTarget:
    from diffprivlib.models import KMeans

    model = KMeans(1, bounds=(0, 1))
    return diffprivlib_target("diffprivlib KMeans", model, (ZEROS,), (ONE,), learned=["inertia_"])


def copies() -> ForeignTarget:
    """Fits of five copies and of the model; the claim is what the accountant that was handed in counts afterwards."""
    from diffprivlib import BudgetAccountant
    from diffprivlib.models import StandardScaler

    def fits(data: Any, accountant: Any) -> list[Any]:
        model = StandardScaler(epsilon=0.5, bounds=(0, 1), with_std=False, accountant=accountant)
        return [one.fit(data).mean_ for one in [*(clone(model) for _ in range(5)), model]]

    counted = BudgetAccountant()
    fits(ZEROS, counted)
    epsilon = counted.total()[0]

    def release(data: Any, noise: object) -> Any:
        return fits(data, BudgetAccountant())

    return ForeignTarget("diffprivlib accountant", release, ZEROS, ONE, epsilon, library=LIBRARY)


def scaled_first() -> ForeignTarget:
    from diffprivlib import BudgetAccountant, tools

    def release(data: Any, noise: object) -> Any:
        scaled = MinMaxScaler().fit_transform(data)
        return tools.mean(scaled, epsilon=1.0, bounds=(0, 1), accountant=BudgetAccountant())

    return ForeignTarget("diffprivlib behind a scaler", release, HALVES, OUTLIER, 1.0, library=LIBRARY)


PUBLIC = "IBM/differential-privacy-library"
LAST = "three rows of 0; one of them is 1"
AXES = "two rows along one axis; one of them along the other"
FAR = "ten rows of 0 and ten of 1; one of them is 1000"
CLAIMS = (
    Claimed(
        "tools.mean(bounds=(0, 1))", LAST, lambda: statistic("mean", ZEROS, ONE, bounds=(0, 1)), "expected to hold"
    ),
    Claimed("tools.var(bounds=(0, 1))", LAST, lambda: statistic("var", ZEROS, ONE, bounds=(0, 1)), "expected to hold"),
    Claimed(
        "tools.quantile(0, bounds=(0, 1))", "three rows of 0.5; one of them is 1", quantile, "expected to hold", 20_000
    ),
    Claimed(
        "tools.mean without bounds",
        FAR,
        lambda: statistic("mean", HALVES, OUTLIER),
        f"bounds are read off the rows; {WARNED}",
        kind="disclaimed",
    ),
    Claimed("StandardScaler(bounds=(0, 1))", LAST, scaler, "expected to hold"),
    Claimed(
        "PCA(2, centered=True, data_norm=1)",
        AXES,
        lambda: components(centered=True, data_norm=1.0),
        "its directions are drawn by mechanisms.Bingham, below",
    ),
    Claimed(
        "PCA(2, bounds=(0, 1), data_norm=2)",
        AXES,
        lambda: components(bounds=(0, 1), data_norm=2.0),
        "as above, with a noisy mean",
    ),
    Claimed(
        "mechanisms.Bingham(epsilon=2)",
        "XᵀX of 41 rows e₁ and 40 rows e₂ in six columns; one e₁ is e₂",
        direction,
        "at sensitivity = 1, the default, which covariance_eig uses too; of what, and for which neighbours, the "
        f"docstring does not say: {OTHERWISE}. "
        "The sampler divides by a power of the envelope where the cited paper multiplies; an attempt before, at ε = 3 "
        "with a cruder statistic and 6,000 runs, showed 2.55 of 3, one was broken off before anybody looked",
        30_000,
        before=1,
    ),
    Claimed(
        "PCA(1)",
        "eight rows at distance 1 from 0; one of them at 1000",
        principal_outlier,
        f"mean and norm are bounded by the rows; {WARNED}",
        kind="disclaimed",
    ),
    Claimed(
        "LogisticRegression(data_norm=1, fit_intercept=False)",
        "a label is flipped",
        lambda: logistic(fit_intercept=False),
        "expected to hold",
        40_000,
    ),
    Claimed(
        "LogisticRegression(data_norm=1), its default",
        "rows (1, yes), (-1, no), (0, yes); the last is (1, yes)",
        intercept,
        "the intercept is not penalised; of earlier attempts one with 20,000 runs showed 0.99; of 462 fits on these "
        "data one raised ConvergenceWarning, and such fits count like others",
        40_000,
    ),
    Claimed(
        "LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), fit_intercept=False)",
        "x is 0.001 in three rows; in one of them 1",
        lambda: least_squares(fit_intercept=False),
        f"the noise on the sum of squares is for the lower bound alone ({PUBLIC}#104, #105, pull request #110)",
    ),
    Claimed(
        "LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1)), its default",
        "the same",
        least_squares,
        "as above; with d columns the mean of X costs ε/(d + 1), that of y as much again and the rest dε/(d + 1): "
        f"(d + 2)/(d + 1) ε in all ({PUBLIC}#104)",
    ),
    Claimed(
        "GaussianNB(bounds=(0, 1))",
        "a row changes its value and its class",
        bayes,
        "diffprivlib does not say so, but its noise is for one row added or removed; by our own proof replacing one "
        "costs at most 5/3 of ε (docs/theory/diffprivlib.md)",
    ),
    Claimed(
        "GaussianNB(bounds=(0, 1)).classes_",
        "the label of one row is 1; it is 2, which nobody else has",
        labels,
        "which labels occur is read off the rows; no warning, while RandomForestClassifier warns; "
        "partial_fit(X, y, classes=...) avoids it",
        2000,
    ),
    Claimed(
        "KMeans(1, bounds=(0, 1)).inertia_",
        LAST,
        inertia,
        "documented as an attribute, computed without noise; seen alone",
        2000,
    ),
    Claimed(
        "BudgetAccountant after cloning",
        f"{LAST}; five clones and the model are fitted with ε = 0.5 each",
        copies,
        f"clones count on copies of the accountant, so it says 0.5; {OTHERWISE}",
    ),
    Claimed(
        "MinMaxScaler of scikit-learn, then tools.mean(bounds=(0, 1))",
        FAR,
        scaled_first,
        "claimed for both steps: the ε of the last one",
        kind="naive",
    ),
)
