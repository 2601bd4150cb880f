"""Release points: statistics of the rows as they are at one place, released once with noise.

Theory: ``docs/theory/releases.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

import ppdp.data.histograms as histograms
from ppdp.bounds.column_groups import domain_of, entries_of, span_of
from ppdp.bounds.k_means import FIXED_DEPTH
from ppdp.bounds.laplace import GAUSSIAN_SHARE
from ppdp.bounds.release import BOX_WEIGHT, label_parts
from ppdp.bounds.statistics import STATISTIC_FORMS, StatisticForm, form_of_group, n_columns, row_norm
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import OfGroups
from ppdp.data.categories import Tally, released_categories
from ppdp.data.clusters import HalvedCells, first_centers, released_centers, sums_around
from ppdp.data.label_moments import LabelMoments, measured
from ppdp.data.quantiles import column_quantiles, trimmed_means
from ppdp.data.rows import Rows
from ppdp.data.statistics import Moments
from ppdp.data.summary import ColumnSums, SecondMoment, joint_sums, second_moment, symmetric, upper_triangle
from ppdp.data.tails import Parts, tail_shares
from ppdp.data.together import together
from ppdp.privacy.noise.laplace import choose
from ppdp.privacy.noise.sampler import Noise

Array = NDArray[np.float64]
Parameters = Mapping[str, Any]
USUAL_THRESHOLD = 6.0  # in standard deviations of the noise; what it is exactly follows from the delta of a plan


@dataclass(frozen=True, slots=True)
class Statistic:
    """A statistic that can be released: how it is measured, read back, and how precise it is."""

    form: StatisticForm  # its formula, how many numbers it has, and a public bound on each
    measure: Callable[[Rows, Domain, Parameters], Any]  # the exact vector, or its first part
    # What a stage's ``read`` takes: :class:`~ppdp.data.statistics.Moments`, or whatever suits the stages. Of the
    # release it looks at parameters and noise scale.
    read: Callable[[Array, Domain, Any], Any]
    # Largest standard error of what is read, as a share of its public range; and what that means, in words.
    error: Callable[[float, Domain, Parameters], float]
    said: str = "the statistics for {of} err by {share} of a column's range"
    moments: bool = False  # of complete rows: one release, with the mean, serves all stages that affine maps connect
    # The other part, where the answer to the first decides what is asked: of the rows, that answer, the domain and the
    # release.
    further: Callable[[Rows, Array, Domain, Any], Array] | None = None
    sorts: bool = False  # whether all rows are needed in memory
    # Whether each number is chosen among public cells: the rows' scores of them, a line for each number, stand in place
    # of the exact vector.
    chosen: bool = False
    listed: bool = False  # whether texts are released: a :class:`Tally` stands in place of the exact vector
    group: str = ""  # of which group of columns it is; empty where it is of all

    @property
    def formula(self) -> str:
        """Id of its L2 sensitivity."""
        return self.form.formula

    def size(self, domain: Domain, parameters: Parameters) -> int:
        """How many numbers it has."""
        return self.form.size(domain, parameters)

    def bound(self, domain: Domain) -> float:
        """A public bound on each number."""
        return self.form.bound(domain)

    def asked(self, domain: Domain, parameters: Parameters) -> list[tuple[str, int]]:
        """By which law noise is drawn, and how many numbers that takes, one answer after the other."""
        if self.chosen:
            return [("choice", len(self._cells(domain)) - 1)] * self.size(domain, parameters)
        return [("gaussian", size) for size in self.form.sizes(domain, parameters)]

    def apart(self, one: Any, other: Any) -> float:
        """How far apart exact vectors are, in units of the sensitivity."""
        if self.listed:
            return float(one.apart(other))
        if self.chosen:
            return GAUSSIAN_SHARE * float(np.linalg.norm(np.ptp(np.atleast_2d(one - other), axis=1)))
        return float(np.linalg.norm(one - other))

    def answer(self, exact: Any, rows: Any, domain: Domain, release: Any, noise: Noise) -> Array:
        """All of it with the noise of a release, of rows of which the exact vector, or its first part, is known."""
        bound, scale = self.bound(domain), release.noise_scale
        if self.listed:
            most = release.parameters["max_categories"]
            return np.asarray(exact.released(most, scale, release.threshold, bound, noise))
        if self.chosen:
            edges = self._cells(domain)
            picks = np.array([choose(noise, scores, scale, bound) for scores in exact])
            return np.asarray((edges[picks] + edges[picks + 1]) / 2)
        answer = noise.release(exact, scale, bound)
        if self.further is None:
            return answer
        if self.group:
            rows, domain = rows_of_group(rows, domain, self.group), domain_of(domain, self.group)
        return np.append(answer, noise.release(self.further(rows, answer, domain, release), scale, bound))

    def _cells(self, domain: Domain) -> Array:
        return _cells(domain_of(domain, self.group) if self.group else domain)


def _cells(domain: Domain) -> Array:
    """Edges of the cells that quantiles are chosen among."""
    return histograms.quantile_edges(largest_entry(domain), domain.n)


def _halved(domain: Domain) -> HalvedCells:
    """Cells of the box of the rows, in which clusters are looked for."""
    return HalvedCells(domain.d, FIXED_DEPTH, largest_entry(domain))


def of_columns(rows: Rows, columns: Sequence[int] | None) -> Rows:
    """Rows of some of their columns; None are all."""
    return rows if columns is None else rows.with_X(np.ascontiguousarray(rows.X[:, list(columns)]))


def _among(values: Array, d: int, columns: Sequence[int] | None) -> Array:
    """Values of some columns in their places among all, the others not a number."""
    if columns is None:
        return values
    found = np.full(d, np.nan)
    found[list(columns)] = values
    return found


def observed_counts(rows: Rows) -> Array:
    """Weight of the observed entries of every column."""
    return joint_sums(rows, [(_observed, 1.0)])[0]


def observed_means(rows: Rows, domain: Domain, min_observed: int, columns: Sequence[int] | None = None) -> Array:
    """Column means over the observed entries of rows with weight, over ``max(n_j, min_observed)``; 0 elsewhere."""
    return means_of(observed_sums(rows, domain), min_observed, columns)


def observed_sums(rows: Rows, domain: Domain) -> Array:
    """Sums and numbers of the observed entries of every column."""
    return joint_sums(rows, [(None, largest_entry(domain)), (_observed, 1.0)])


def means_of(sums: Array, min_observed: int, columns: Sequence[int] | None = None) -> Array:
    """The means that :func:`observed_means` takes."""
    means = np.asarray(sums[0] / np.maximum(sums[1], min_observed))
    return means if columns is None else only(means, columns)


def only(means: Array, columns: Sequence[int]) -> Array:
    """The means of some columns, 0 for the others."""
    kept = np.zeros_like(means)
    kept[list(columns)] = means[list(columns)]
    return kept


def _observed(X: Array) -> Any:
    return np.equal(X, X)


def _squares_with(weight: Callable[[Domain, Parameters], float]) -> dict[str, Any]:
    """Means and, times a weight, mean squares: of all columns, or of those that the parameters name."""

    def measure(rows: Rows, domain: Domain, parameters: Parameters) -> Array:
        entry, columns = largest_entry(domain), parameters.get("columns")
        sums = joint_sums(rows, [(None, entry), (lambda X: X**2 / entry if entry != 1 else X**2, entry)])
        means, squares = sums if columns is None else sums[:, list(columns)]
        return np.concatenate([means, weight(domain, parameters) * squares]) / rows.n

    def read(answer: Array, domain: Domain, release: Any) -> Moments:
        columns, size = release.parameters.get("columns"), n_columns(domain, release.parameters)
        squares = answer[size:] * largest_entry(domain) / weight(domain, release.parameters)
        return Moments(_among(answer[:size], domain.d, columns), _among(squares, domain.d, columns))

    return {"measure": measure, "read": read, "moments": True}


def _read_parts(answer: Array, domain: Domain, release: Any) -> Moments:
    columns = release.parameters.get("columns")
    found = Parts.of(answer, domain, release).moments(answer, release.noise_scale)
    mean, squares, spread = (_among(of, domain.d, columns) for of in found)
    return Moments(mean, squares, spread=spread)


def _diagonal_weight(domain: Domain, parameters: Parameters) -> float:
    """Of squares over the largest entry, with which they are the diagonal of what "matrix" releases."""
    return largest_entry(domain) / (math.sqrt(2) * row_norm(entries_of(domain, parameters.get("columns"))))


def _measure_moment(rows: Rows, domain: Domain, _: Parameters) -> Array:
    moment = second_moment(rows, largest_entry(domain)) / rows.n
    return upper_triangle(moment) / (math.sqrt(2) * row_norm(domain))


def _read_moment(answer: Array, domain: Domain, _: Any = None) -> Array:
    return symmetric(answer * math.sqrt(2) * row_norm(domain), domain.d)


def _measure_matrix(rows: Rows, domain: Domain, _: Parameters) -> Array:
    entry = largest_entry(domain)
    asked = (None, ColumnSums(rows.n, rows.d, [(None, entry)])), (None, SecondMoment(rows.d, entry))
    (sums,), products = together(rows, *asked)
    return np.concatenate([sums / rows.n, upper_triangle(products / rows.n) / (math.sqrt(2) * row_norm(domain))])


def _read_matrix(answer: Array, domain: Domain, _: Any = None) -> Moments:
    return Moments.of_matrix(answer[: domain.d], _read_moment(answer[domain.d :], domain))


def _share_of_range(sigma: float, domain: Domain, _: Parameters) -> float:
    return sigma / (2 * largest_entry(domain))


STATISTICS: OfGroups[Statistic] = OfGroups()


def _enter(name: str, known: Statistic | None = None, **how: Any) -> Statistic:
    """A statistic of this name and form: what is given, or ``known`` with other parts."""
    made = Statistic(STATISTIC_FORMS[name], **how) if known is None else replace(known, **how)
    return STATISTICS.setdefault(name, made)


def _sorted(name: str, count: int, measure: Callable[[Rows, Domain, Parameters], Array]) -> None:
    """``count`` entries for every column, or for those that the parameters name; read as an array with a line each."""
    _enter(
        name,
        measure=lambda rows, domain, p: measure(of_columns(rows, p.get("columns")), domain, p).ravel(),
        read=lambda answer, _, __: answer.reshape(count, -1),
        error=_share_of_range,
        sorts=True,
    )


_enter(
    "means",
    measure=lambda rows, domain, p: observed_means(rows, domain, int(p["min_observed"]), p.get("columns")),
    error=_share_of_range,
    read=lambda answer, domain, _: Moments(answer, np.full(domain.d, np.nan)),
    said="the means for {of} err by {share} of a column's range",
)
_SQUARES = "the mean squares for {of} err by {share} of the largest square"
_enter(
    "squares",
    error=lambda sigma, domain, _: sigma / (BOX_WEIGHT * largest_entry(domain)),
    said=_SQUARES,
    **_squares_with(lambda domain, _: BOX_WEIGHT),
)
_enter(
    "squares-in-parts",
    measure=lambda rows, domain, p: tail_shares(rows, p.get("columns"), largest_entry(domain)),
    further=lambda rows, answer, domain, release: Parts.of(answer, domain, release).measured(
        rows, release.parameters.get("columns")
    ),
    read=_read_parts,
    error=lambda sigma, _, __: sigma / BOX_WEIGHT,
    said=_SQUARES,
)
_enter(
    "diagonal",
    error=lambda sigma, domain, p: math.sqrt(2) * sigma / row_norm(entries_of(domain, p.get("columns"))),
    said=_SQUARES,
    **_squares_with(_diagonal_weight),
)
_MOMENT = _enter(
    "moment",
    measure=_measure_moment,
    read=lambda answer, domain, _: Moments.of_matrix(np.full(domain.d, np.nan), _read_moment(answer, domain)),
    error=lambda sigma, domain, _: math.sqrt(2) * sigma / row_norm(domain),
    said="the mean products for {of} err by {share} of the largest",
    moments=True,
)
_enter("matrix", _MOMENT, form=STATISTIC_FORMS["matrix"], measure=_measure_matrix, read=_read_matrix)
_enter("complete-matrix", _MOMENT, read=_read_moment, moments=False)
_sorted(
    "trimmed-means",
    1,
    lambda rows, domain, p: trimmed_means(rows, p["min_observed"], p["trimmed"], largest_entry(domain)),
)
_sorted("medians", 1, lambda rows, _, __: column_quantiles(rows, (0.5,)))
_sorted("quantile-pairs", 2, lambda rows, _, p: column_quantiles(rows, (p["lower"], p["upper"])))
_sorted("quantile-triples", 3, lambda rows, _, p: column_quantiles(rows, (p["lower"], 0.5, p["upper"])))
_enter(
    "quantile-choices",
    measure=lambda rows, domain, p: histograms.cell_scores(
        of_columns(rows, p.get("columns")), p["quantiles"], _cells(domain)
    ),
    read=lambda answer, _, release: answer.reshape(len(release.parameters["quantiles"]), -1),
    error=lambda scale, domain, _: 2 * scale / domain.n,  # by how many ranks a choice misses
    said="the quantiles for {of} miss their ranks by {share} of the rows",
    chosen=True,
)
_enter(
    "ranges",
    measure=lambda rows, _, p: histograms.coarse(rows, p["columns"]),
    further=lambda rows, answer, _, release: histograms.fine(
        rows, release.parameters["columns"], histograms.first_ranges(answer, release.noise_scale)
    ),
    read=lambda answer, _, release: histograms.released_ranges(
        answer, len(release.parameters["columns"]), release.noise_scale
    ),
    # Rows that may be left out at an end.
    error=lambda sigma, domain, _: histograms.threshold(domain.d) * sigma / domain.n,
    said="the ranges for {of} may leave out {share} of the rows at either end",
)
_enter(
    "categories",
    measure=lambda rows, _, p: Tally.of(rows, p["columns"]),
    read=lambda answer, _, release: released_categories(
        answer, release.parameters["columns"], release.parameters["max_categories"], release.threshold
    ),
    error=lambda sigma, domain, _: USUAL_THRESHOLD * sigma / domain.n,  # share of rows of the smallest category
    said="for {of} a category is only released if it holds some {share} of the rows",
    listed=True,
)
_enter(
    "modes",
    measure=lambda rows, _, p: histograms.weights_of_values(rows, **p),
    read=lambda answer, _, release: histograms.modes(answer, **release.parameters),
    error=lambda sigma, domain, _: sigma / domain.n,
    said="the weights of categories for {of} err by {share} of the rows",
)
_enter(
    "clusters",
    measure=lambda rows, domain, _: np.concatenate(_halved(domain).weights(rows)),
    further=lambda rows, answer, domain, release: sums_around(
        rows, *first_centers(answer, _halved(domain), release.parameters["n_clusters"], release.noise_scale)
    ).ravel(),
    read=lambda answer, domain, release: released_centers(
        answer, _halved(domain), release.parameters["n_clusters"], release.noise_scale
    ),
    said="the weights of cells for {of} err by {share} of the rows",
    error=lambda sigma, domain, _: sigma / domain.n,
)
_enter(
    "label-means",
    measure=lambda rows, domain, p: histograms.weights_by_label(rows, domain, p["columns"], p["cells"]),
    read=lambda answer, domain, release: (
        answer.reshape(len(release.parameters["columns"]), release.parameters["cells"], label_parts(domain)),
        release.noise_scale,
    ),
    said="the mean labels for {of} err by {share} of the range of labels",
    # of a share among the rows of a category, were there as many of each
    error=lambda sigma, domain, _: sigma * (largest_entry(domain) + 2) / domain.n,
)
for _name in ("label-moments", "light-label-moments"):  # by the weight of squares, if it is another than comes free
    _enter(
        _name,
        measure=lambda rows, domain, p: measured(rows, domain, **p),
        read=lambda answer, domain, release: LabelMoments.of(answer, domain, release.noise_scale, **release.parameters),
        said="the means of classes for {of} err by {share} of a column's range",
        error=lambda sigma, domain, p: label_parts(domain) * _share_of_range(sigma, domain, p),
    )


def rows_of_group(rows: Any, domain: Domain, group: str) -> Any:
    """Rows, or a stream of them, of which only the columns of one group are left."""
    _, start, stop = span_of(domain, group)
    return rows.each(partial(_between, start, stop), stop - start)


def _between(start: int, stop: int, rows: Rows) -> Rows:
    return rows.with_X(np.ascontiguousarray(rows.X[:, start:stop]))


def _statistic_of_group(known: Statistic, group: str) -> Statistic:
    return replace(
        known,
        form=form_of_group(known.form, group),
        group=group,
        measure=lambda rows, domain, p: known.measure(rows_of_group(rows, domain, group), domain_of(domain, group), p),
        read=lambda answer, domain, release: known.read(answer, domain_of(domain, group), release),
        error=lambda sigma, domain, p: known.error(sigma, domain_of(domain, group), p),
    )


STATISTICS.of_group = _statistic_of_group
