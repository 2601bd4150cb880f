"""Gradient boosting from noisy histograms: ``docs/theory/boosting.md``."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ppdp.bounds import newton
from ppdp.bounds.queries import counting_step
from ppdp.bounds.release import TAIL_CELLS
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import inflate

GROUPS = 8  # of the values of a column in a table of two columns; missing values are one more
MOST_PAIRED = 8  # columns of which tables of two are made, at most
MOST_HALVED = 12  # how often a tree halves the rows
TARGET_CELLS = 512  # equal ones of the range of the targets
# Between bins of the distance of targets from predicted quantiles, in units of scores.
WINDOWS = (*(-(2.0**-i) for i in range(7)), 0.0, *(2.0**-i for i in range(6, -1, -1)))
WINDOW = 0.5  # what a row counts in one of them
POWERS = {"poisson": 1.0, "gamma": 2.0}  # of the mean that the variance of targets is proportional to
# Of a score, and of the linear model of the shapes.
LOSSES = {"logistic": "logistic", "squared": "squared", "quantile": "squared", **dict.fromkeys(POWERS, "glm")}


def widths(categories: Sequence[int], cells: int) -> list[int]:
    """Cells of every column, that of missing values last."""
    return [(count or cells) + 1 for count in categories]


def nodes(categories: Sequence[int], cells: int) -> list[int]:
    """Numbers that a column has in a histogram: all levels of halved ranges, or the cells of categories."""
    return [(count or 2 * cells - 2) + 1 for count in categories]


def n_pairs(n_columns: int) -> int:
    """Tables of two columns that a model has at most."""
    columns = min(n_columns, MOST_PAIRED)
    return columns * (columns - 1) // 2


def derived(domain: Domain, norm: float, terms: Sequence[int] = ()) -> Domain:
    """The rows of which a linear model is made: a shape of every column, and ``terms`` beside it."""
    return Domain(n_rows=domain.n, n_features=domain.d + sum(terms), row_norm=norm)


@dataclass(frozen=True, slots=True)
class AnswerFactors:
    """Public factors on the answers, each of which is a mean of vectors of norm 1 at most."""

    histogram: float
    linear: float  # beside those of the Newton steps
    targets: float
    edges: float  # of the histogram of values
    round: float
    tree: float  # of those of the rounds that are trees

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> AnswerFactors:
        """So that histogram, linear model and, if there are three, the histogram of the targets cost these shares of
        ``mu²`` where a row is replaced, that of values and trees theirs, and rounds beside them the rest; all together
        cost as many answers as there are of vectors that differ by 2.
        """
        of_histogram, of_linear, *of_targets = parameters["shares"]
        of_edges, of_trees = parameters.get("share_of_edges", 0.0), parameters.get("share_of_trees", 0.0)
        steps, count = newton.answers(**linear_of(parameters)), answers(parameters)
        scores, (trees, _) = n_scores(parameters.get("n_classes", 2)), parameters.get("trees") or (0, 0)
        rest = 1 - math.fsum([*parameters["shares"], of_edges, of_trees])
        return cls(
            math.sqrt(2 * count * of_histogram),
            math.sqrt(count * of_linear / (scores * steps)),
            math.sqrt(2 * count * math.fsum(of_targets)),
            math.sqrt(2 * count * of_edges),
            2 * math.sqrt(count * rest / (scores * (parameters["rounds"] - trees))),
            2 * math.sqrt(count * of_trees / (scores * max(trees, 1))),
        )


LINEAR = "linear_"  # what parameters of the Newton steps begin with, among all


def linear_of(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of the Newton steps of the linear model."""
    return {name.removeprefix(LINEAR): value for name, value in parameters.items() if name.startswith(LINEAR)}


def answers(parameters: Mapping[str, Any]) -> int:
    """How often rows are asked for: histograms, and for every score a linear model and rounds."""
    histograms = len(parameters["shares"]) - 1 + ("share_of_edges" in parameters)
    of_score = newton.answers(**linear_of(parameters)) + parameters["rounds"]
    return histograms + n_scores(parameters.get("n_classes", 2)) * of_score


def n_scores(n_classes: int) -> int:
    """Scores of a row: one for every class, if there are more than two."""
    return n_classes if n_classes > 2 else 1


def _checked(
    domain: Domain,
    *,
    loss: str,
    categories: Sequence[int],
    bound: float,
    cells: int,
    shares: Sequence[float],
    rounds: int,
    norm: float,
    replaces: bool,
    n_classes: int = 2,
    y_range: Sequence[float] | None = None,
    quantile: float | None = None,
    directions: Sequence[int] | None = None,
    terms: Sequence[int] = (),
    trees: Sequence[int] | None = None,
    share_of_trees: float = 0.0,
    share_of_edges: float | None = None,
    **linear: Any,
) -> None:
    sane(all(name.startswith(LINEAR) for name in linear))
    sane(loss in LOSSES and len(categories) == domain.d and whole(*categories, cells, rounds, n_classes))
    sane(all(count == 0 or 1 <= count <= 1024 for count in categories))
    sane(2 <= cells <= 1024 and cells & (cells - 1) == 0 and 1 <= rounds <= 1000 and 2 <= n_classes <= 1000)
    sane(len(shares) == 2 + (y_range is not None) and all(share > 0 for share in shares))
    sane(math.fsum([*shares, share_of_trees, share_of_edges or 0.0]) < 1)
    sane(share_of_trees > 0 if trees else share_of_trees == 0)
    sane(share_of_edges is None or (share_of_edges > 0 and not all(categories)))
    sane(type(replaces) is bool and 0 < norm < math.inf and 0 < bound < math.inf)
    sane((loss == "logistic") == (y_range is None) and (loss == "logistic" or n_classes == 2))
    sane((loss == "quantile") == (quantile is not None) and (quantile is None or 0 < quantile < 1))
    sane(directions is None or (len(directions) == domain.d and n_classes == 2 and {*directions} <= {-1, 0, 1}))
    sane(not terms or (len(terms) == domain.d and whole(*terms) and min(terms) >= 0 and max(terms) <= 1024))
    sane(
        trees is None or (len(trees) == 2 and whole(*trees) and 1 <= trees[0] < rounds and 1 <= trees[1] <= MOST_HALVED)
    )
    sane(linear.get(f"{LINEAR}power") == POWERS.get(loss))
    sane(bound == (min(largest_entry(domain), 1.0) if any(categories) else largest_entry(domain)))
    sane(loss != "logistic" or domain.classes is None or len(domain.classes) == n_classes)
    sane(y_range is None or domain.y_range is None or tuple(domain.y_range) == tuple(y_range))


def _shape(domain: Domain, **parameters: Any) -> tuple[int, float]:
    """Numbers in an answer, the longest of them all, and the bound on each."""
    _checked(domain, **parameters)
    loss, cells, categories = parameters["loss"], parameters["cells"], parameters["categories"]
    linear, count = linear_of(parameters), parameters.get("n_classes", 2)
    steps = newton.shape(derived(domain, parameters["norm"], parameters.get("terms", ())), loss=LOSSES[loss], **linear)
    size = max(
        count * sum(nodes(categories, cells)),
        steps[0],
        sum(widths(categories, cells)) + _windows(loss),
        n_pairs(domain.d) * (GROUPS + 1) ** 2 + _windows(loss),
        2 * _leaves(parameters.get("trees")),
        2 * TARGET_CELLS - 2 if "y_range" in parameters else 0,
        list(categories).count(0) * TAIL_CELLS if "share_of_edges" in parameters else 0,
    )
    factors = AnswerFactors.of(parameters)
    linear_bound = factors.linear * steps[1]
    return size, max(factors.histogram, linear_bound, factors.targets, factors.edges, factors.round, factors.tree)


def _windows(loss: str) -> int:
    """Numbers of a round that say how many targets are near their predicted quantiles."""
    return len(WINDOWS) + 1 if loss == "quantile" else 0


def _leaves(trees: Sequence[int] | None) -> int:
    """Leaves of a tree."""
    return 2 ** trees[1] if trees else 0


def _arrays(
    domain: Domain, steps: int, size: int, *, categories: Sequence[int], cells: int, n_classes: int = 2, **others: Any
) -> dict[str, list[int]]:
    """Shapes by cell with standard errors and shares of the rows, groups of cells, tables of two columns, and trees.

    Documents without ``terms`` are of tables without standard errors.
    """
    scores, width = n_scores(n_classes), sum(widths(categories, cells))
    by_cell = {name: [scores, width] for name in ("errors", "groups", "shapes", "shares")}
    by_column = {"importances": [scores, domain.d]}
    pairs, table = [scores, n_pairs(domain.d)], (GROUPS + 1) ** 2
    errors = {"pair_errors": [*pairs, table]} if "terms" in others else {}
    edges = {"edges": [scores, list(categories).count(0), cells - 1]} if "share_of_edges" in others else {}
    trees = others.get("trees")
    of_trees = {"halves": [scores, width], "trees": [scores, trees[0], 2 * domain.d + _leaves(trees)]} if trees else {}
    return {**by_cell, **by_column, "baseline": [scores], **errors, "pairs": [*pairs, 2 + table], **edges, **of_trees}


def of_answers(domain: Domain, distance: Distance, **parameters: Any) -> list[float]:
    """Sensitivity of each answer, whatever earlier ones were.

    Every answer is a mean over the public n of ``w v``, times a public factor. Of a histogram v has norm 1 and no
    negative number, so two rows differ by √2. Of a round v is a gradient in the cells of the row, over the public
    diameter of all such vectors for the model that has been released (:func:`diameter`). Rows that moved count as
    replaced.
    """
    _checked(domain, **parameters)
    linear, rounds = linear_of(parameters), parameters["rounds"]
    scores, loss = n_scores(parameters.get("n_classes", 2)), parameters["loss"]
    far = distance.moved_as_replaced()
    paired, single = far.unmatched
    factors, (trees, _) = AnswerFactors.of(parameters), parameters.get("trees") or (0, 0)
    rounding = 8 * counting_step(domain.n) * min(far.changed, domain.n)
    of_histogram = (math.sqrt(2) * paired + single + rounding) / domain.n
    y_range = parameters.get("y_range")
    first = [own * of_histogram for own in (factors.edges, factors.targets) if own]
    steps = newton.of_answers(
        derived(domain, parameters["norm"], parameters.get("terms", ())),
        distance,
        loss=LOSSES[loss],
        **linear,
        norm=parameters["norm"],
        **({} if y_range is None else {"y_range": y_range}),
    )
    of_round = paired + single / math.sqrt(2) if parameters["replaces"] else 2 * paired + single
    of_rounds = (rounds - trees) * [factors.round] + trees * [factors.tree]
    each = [factors.linear * step for step in steps] + [own * (of_round + rounding) / domain.n for own in of_rounds]
    return [*first, factors.histogram * of_histogram, *(scores * each)]


@formula(
    "learning.boosting",
    kind="mechanism",
    page="boosting",
    predicts=True,
    gaps=True,
    used_by=("GradientBoostingClassifier", "GradientBoostingRegressor"),
    shape=_shape,
    each=of_answers,
    steps=lambda domain, **parameters: answers(parameters),
    arrays=_arrays,
)
def boosting(domain: Domain, distance: Distance, **parameters: Any) -> float:
    """Root mean square of the sensitivities of all answers: those of :func:`of_answers`."""
    each = of_answers(domain, distance, **parameters)
    return inflate(math.sqrt(math.fsum(own * own for own in each) / len(each)))


def diameter(terms: int, closeness: Sequence[float], largest: float, *, replaces: bool, window: float = 0.0) -> float:
    """Bound on how far apart the vectors of two rows are in a round, or on the norm of one if none is replaced.

    A row has its gradient g, at most ``largest`` in size, in one cell of each of so many ``terms``, and ``window`` in
    one more cell. Gradients of two rows that share the cells of all terms but m differ by ``s = 1 + closeness[m]`` at
    most. With k terms: ``k s² - 2 m (s - 1)``, ``2 k largest²`` of rows that share no cell (Statement 2), and
    ``2 window²`` more.
    """
    if not replaces:
        return inflate(math.hypot(math.sqrt(terms) * largest, window))
    squares = [
        terms * (1 + close) ** 2 - 2 * shared * close for shared, close in enumerate(closeness) if shared <= terms
    ]
    return inflate(math.sqrt(max(2 * terms * largest**2, *squares) + 2 * window**2))
