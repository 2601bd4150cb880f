"""A classifier, and behind it how many rows of each class have which score: ``docs/theory/thresholds.md``.

The answers are those of the classifier, whose formula is looked up, and one more: the mean over the public n of unit
vectors, each row's at its score and class, times a public factor.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from ppdp.bounds import boosting, learning, newton  # noqa: F401  (their formulas are looked up)
from ppdp.bounds.queries import histograms_apart
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import MechanismSensitivity, formula, lookup, sane, whole
from ppdp.core.rounding import UNIT, inflate

SCORE_EDGES = tuple(i / 4 for i in range(-24, 25))  # log-odds between the cells of scores
SCORE_CELLS = len(SCORE_EDGES) + 1
COUNTED = "-threshold"  # behind the id of a classifier's formula


def counts_apart(domain: Domain, distance: Distance) -> float:
    """How far apart the shares of the rows by score and class are: √2/n for one replaced row."""
    return histograms_apart(domain, distance, 1) / domain.n + 4 * UNIT


def _checked(of_model: MechanismSensitivity, domain: Domain, p: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the classifier, of two classes."""
    own = {name: value for name, value in p.items() if name not in ("answers", "count_factor")}
    sane(whole(p["answers"]) and p["answers"] >= 1 and 0 < p["count_factor"] < math.inf)
    sane(of_model.steps is None or of_model.steps(domain, **own) == p["answers"])
    sane(own.get("loss", "logistic") == "logistic" and own.get("n_classes", 2) == 2)
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
    "learning.logistic-gradient": ("LogisticRegression",),
    "learning.newton": ("LogisticRegression",),
}
"""Classes that may ask for counts, by the formula of their training."""

for _name in CLASSIFIERS:
    _register(_name)
