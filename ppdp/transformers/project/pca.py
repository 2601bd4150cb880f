"""Projection on the leading eigenvectors, and the margins of its conditions: ``docs/theory/pca.md``."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils.validation import check_is_fitted

from ppdp.bounds.coarse_pca import coarse_suffices
from ppdp.bounds.pca import map_error, moment_error
from ppdp.core.checks import choice, flag, integer, number, positive, shown
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.rounding import inflate
from ppdp.data.exact_matmul import steadily
from ppdp.data.parallel import threads_for
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import Moments, gram, multiplied, top_eigenvectors
from ppdp.data.summary import CoarseMoment, ColumnSums, SecondMoment
from ppdp.data.together import together
from ppdp.exceptions import InvalidParameter
from ppdp.transformers.base import Statistics, Transformer, chosen
from ppdp.transformers.fit_mode import FitMode, Measure, StatisticRequest


@dataclass(eq=False, repr=False)
class PCA(Transformer):
    """Project rows on the top eigenvectors of their second moment or covariance.

    Between neighbouring datasets eigenvectors may flip or rotate within the leading block; the projector P on the
    block may not. So no output is made of eigenvectors as they come: with C the second moment over the public number
    of rows, P of rank k = ``n_components`` and G a public matrix with orthonormal columns,

    ============= ============================ ========================== ==================================
    ``output``    ``with_mean=False``          ``with_mean=True``         assumes (exact)
    ============= ============================ ========================== ==================================
    "rank"        ``P x``                      ``mu + P (x - mu)``        eigengap
    "projected"   ``Gᵀ P x``                   ``Gᵀ P (x - mu)``          eigengap
    "aligned"     ``Aᵀ x``                     ``Aᵀ (x - mu)``            eigengap, singular values of P G
    ============= ============================ ========================== ==================================

    where A, the polar factor of P G, has orthonormal columns if there are k of them.

    Parameters
    ----------
    n_components : int or float, optional
        Rank of P, or, between 0 and 1, the share of the variance that P shall keep at least: its rank then follows from
        the released second moment, and there is no exact mode. Default: all.
    min_gap : float, optional
        The exact mode assumes that the eigengap ``λ_k - λ_{k+1}`` is at least this, in units of ``row_norm²``, or of
        the square of ``2√d`` behind a scaler whose clip is further out. Default: ``0.1 / k``.
    with_mean : bool or "auto", default="auto"
        Whether to use the covariance and to subtract the mean, as scikit-learn's PCA does. "auto" does, unless the
        step in front is a :class:`StandardScaler` that has centred all columns: then nothing is left to subtract, and
        the release has half of the sensitivity. Of rows that are not centred False finds nearly the mean's direction.
    output : {"rank", "projected", "aligned"}, default="rank"
        "rank" keeps the columns. The others map to public columns, "projected" at the price of "rank"; "aligned" keeps
        the lengths of "rank", at the price of the worst alignment.
    n_columns : int, optional
        How many columns G has. Default: 2k (at most all): k random columns are nearly orthogonal to some direction of
        the block, so that it would be lost; 2k to 4k are not.
    public_basis : int or array of shape (n_features, n_columns), default=0
        G: the seed of a random one, or public columns (of a reference dataset, or of the identity), which are made
        orthonormal. Never read it off the private rows.
    min_alignment : float, optional
        With "aligned" the exact mode assumes that the singular values of P G are at least this. Default: half of what
        is typical of a random G, and 0.5 for given columns.
    fit_mode : {"auto", "exact", "noisy"}, default="auto"
        Fit without noise, or from a released second moment. Outside a pipeline, "auto" is exact.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features) or None
        Leading eigenvectors: private if fitted alone, released if taken from a fitted pipeline. None in
        a pipeline that ran the exact mode with output "rank": its model then works on the rows as they are.
    mean_ : ndarray of shape (n_features,) or None
        What is subtracted.
    projection_ : ndarray of shape (n_features, n_columns) or None
        What rows are multiplied by, unless ``output`` is "rank" and it was not fitted from a released moment.

    Notes
    -----
    **Guarantee** (``docs/theory/pca.md``, Theorem 1). One replaced row moves P by at most ``R²/(n β)``.

    **Precision.** Where a bound is claimed of 2¹⁵ rows or more, of which few differ, the exact mode rounds entries to
    2⁻³⁰ of their bound and leaves out 2⁻³² of its square: directions are then good to some 1e-10. Elsewhere to 1e-15.

    **Linear models behind it** go to what scikit-learn finds as rows grow, if it is fitted from a released moment: that
    moves no row. Behind the exact mode, which moves all, they are trained by gradient descent, whose clip stays.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    >>> PCA(n_components=1).fit_transform(X)
    array([[ 2.,  0.],
           [-2.,  0.],
           [ 0.,  0.],
           [ 0.,  0.]])
    >>> PCA(n_components=1, output="projected", public_basis=[[1.0], [0.0]]).fit_transform(X)
    array([[ 2.],
           [-2.],
           [ 0.],
           [ 0.]])
    """

    n_components: float | None = None
    min_gap: float | None = None
    with_mean: bool | str = "auto"
    output: str = "rank"
    n_columns: int | None = None
    public_basis: int | ArrayLike = 0
    min_alignment: float | None = None
    fit_mode: str = "auto"

    adds_up = True
    leakage = "low", "means and directions of most variance"
    multiplies_columns = True
    statistic_names = ("components", "mean", "projection")
    _example: ClassVar = {"n_components": 1}

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        """Exact (assumes an eigengap, moves all rows) and noisy (moves nothing)."""
        self._norm_of_complete_rows(domain)
        k, columns, share = self._rank(domain.d), self._columns(domain.d), self._share()
        if columns is None and k == domain.d and share is None:
            return (FitMode.by("row-wise.identity", domain, distance),)
        center = self._centers(domain)
        facts: dict[str, Any] = {"center": center, "columns": columns.number if columns else None}
        noisy = FitMode.by("pca.row-wise", domain, distance, request=_request(center), **facts)
        exact = {} if share is not None else {"exact": self._exact(domain, distance, k, columns, center)}
        return chosen({"noisy": noisy, **exact}, self.fit_mode, self)

    def _exact(
        self, domain: Domain, distance: Distance, k: int, columns: PublicColumns | None, center: bool
    ) -> FitMode:
        share = 0.1 / k if self.min_gap is None else positive("min_gap", self.min_gap, self, most=1)
        min_gap = share * min(domain.usual_norm or np.inf, float(domain.require("row_norm"))) ** 2
        frames = columns is not None and self._frames(domain.d, columns)
        coarse = k < domain.d and not frames and coarse_suffices(domain, distance, min_gap)
        facts: dict[str, Any] = {"min_gap": min_gap}
        name, request, centred = "rank", None, "centred-" if center else ""
        measures: dict[str, Measure] = {
            f"pca.{centred}gap": partial(_gap_margin, domain, k, min_gap, center=center, coarse=coarse)
        }
        if columns is not None:
            name, request = "projected", _request(center)
            facts |= {"n_components": k, "columns": columns.number, "center": center}
            if frames:
                least = columns.usual_alignment(k)
                if self.min_alignment is not None:
                    least = number("min_alignment", self.min_alignment, self, least=1e-6, most=1)
                name, facts["min_alignment"] = "aligned", least
                measures[f"pca.{centred}alignment"] = partial(
                    _alignment_margin, domain, k, min_gap, center=center, least=least, basis=columns.matrix
                )
        elif center:
            name, facts["n_components"] = "centred-rank", k
        name = f"pca.coarse-{name}" if coarse else f"pca.{name}"
        return FitMode.by(name, domain, distance, measures=measures, request=request, **facts)

    def _centers(self, domain: Domain) -> bool:
        """Whether a mean is subtracted of these rows."""
        automatic = isinstance(self.with_mean, str) and self.with_mean == "auto"
        return not domain.centred if automatic else flag("with_mean", self.with_mean, self)

    def _rank(self, d: int) -> int:
        """The largest that P can have."""
        if self.n_components is None or self._share() is not None:
            return d
        return integer("n_components", self.n_components, self, most=d)

    def _share(self) -> float | None:
        """Of the variance, where that tells the rank: from what was released, as exact rows would tell of a row."""
        share = self.n_components
        if not isinstance(share, Real) or isinstance(share, Integral) or not 0 < share < 1:
            return None
        if self.output != "rank":
            what = f"output={shown(self.output)} has a public number of columns, and n_components is a share."
            fix = "output='rank', or a number of components."
            raise InvalidParameter(what, stage=type(self).__name__, fix=fix, parameter="n_components")
        return float(share)

    def _columns(self, d: int) -> PublicColumns | None:
        """G, unless the output keeps its columns."""
        output, k = choice("output", self.output, ("rank", "projected", "aligned"), self), self._rank(d)
        if output == "rank":
            return None
        least = k if output == "aligned" else 1
        return PublicColumns.of(self.public_basis, self.n_columns, d, usual=2 * k, least=least, stage=self)

    def _frames(self, d: int, columns: PublicColumns) -> bool:
        """Whether the polar factor of P G is asked for, and is something else than P G."""
        return bool(self.output == "aligned" and columns.number < d and self._rank(d) < d)

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        if way.name == "public":
            return self.without_release(way)
        k, coarse = self._rank(domain.d), way.formula.startswith("pca.coarse")
        return self._fitted(Spectrum.of_rows(rows, domain, k, center=_centers(way), coarse=coarse), domain.d)

    def _sums(self, rows: Rows, domain: Domain) -> Array:
        return np.vstack([rows.X.sum(axis=0), gram(rows.X)])

    def _of_sums(self, sums: Array, way: FitMode, domain: Domain) -> Statistics:
        return self.read(Moments.of_matrix(sums[0] / domain.n, sums[1:] / domain.n), way, domain)

    def read(self, values: Moments, way: FitMode, domain: Domain) -> Statistics:
        assert values.matrix is not None
        norm, mean, center = float(domain.require("row_norm")), values.mean, _centers(way)
        if center:
            mean = mean * min(1.0, norm / max(float(np.linalg.norm(mean)), norm))
        rank = self._share() or self._rank(domain.d)
        fitted = self._fitted(Spectrum.of(mean, values.matrix, rank, center=center), domain.d)
        if way.name == "noisy" and fitted["projection"] is None:
            fitted |= {"projection": fitted["components"].T @ fitted["components"]}
        return fitted

    def _fitted(self, spectrum: Spectrum, d: int) -> dict[str, Any]:
        """Everything that mapping a row needs."""
        components, columns = spectrum.components, self._columns(d)
        projection = None
        if columns is not None:
            inner = components @ columns.matrix
            if self._frames(d, columns):
                left, _, right = np.linalg.svd(inner, full_matrices=False)
                inner = left @ right
            projection = components.T @ inner
        return {"components": components, "mean": spectrum.mean, "projection": projection}

    def carry(self, values: Moments, statistics: Statistics) -> Moments:
        offset = self.map_rows(np.zeros((1, values.mean.size)), statistics)[0]
        slope = self.map_rows(np.eye(values.mean.size), statistics) - offset
        return values.affine(slope.T, offset)

    def without_release(self, way: FitMode) -> Statistics:
        return {} if self.output != "rank" else dict.fromkeys(self.statistic_names)

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        return self._mapped(X, statistics)

    def _mapped(self, X: Array, statistics: Statistics, out: Array | None = None) -> Array:
        components, mean, projection = (statistics[name] for name in self.statistic_names)
        if components is None:
            return X
        if projection is not None:
            mapped = steadily(X, projection.T, out=out if self.output == "rank" else None)
            if mean is not None:
                mapped += (mean if self.output == "rank" else 0.0) - mean @ projection
            return mapped
        mapped = multiplied(X, components.T, components, out=out)
        if mean is not None:
            mapped += mean - (mean @ components.T) @ components
        return mapped

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the output columns: those of the input for output "rank", otherwise pca0, pca1, ..."""
        check_is_fitted(self)
        if self.output == "rank":
            return np.asarray(super().get_feature_names_out(input_features))
        return np.asarray(ClassNamePrefixFeaturesOutMixin.get_feature_names_out(self, input_features))

    @property
    def _n_features_out(self) -> int:
        return int(self.projection_.shape[1])


def _request(center: bool) -> StatisticRequest:
    """Without a mean the matrix alone, at half of the noise."""
    return StatisticRequest("matrix" if center else "moment")


def _centers(way: FitMode) -> bool:
    """Whether a mean is subtracted this way."""
    return bool(way.parameters.get("center", way.formula.endswith("centred-rank")))


@dataclass(frozen=True, slots=True)
class Spectrum:
    """Eigenvalues in descending order, the leading eigenvectors as rows, and the mean if it was subtracted."""

    values: Array
    components: Array
    mean: Array | None

    @property
    def gap(self) -> float:
        """Between the eigenvalue of the last of these eigenvectors and the next one; 0 if there is none."""
        values = self.values[len(self.components) - 1 : len(self.components) + 1]
        return float(values[0] - values[-1])

    @classmethod
    def of(cls, mean: Array, matrix: Array, k: float, *, center: bool) -> Spectrum:
        """From the mean and second moment of the rows; k below 1 is a share of the variance."""
        rank = len(matrix) if k < 1 else int(k)
        values, components = top_eigenvectors(matrix - np.outer(mean, mean) if center else matrix, rank)
        if k < 1:
            kept = np.cumsum(np.maximum(values, 0.0))
            components = components[: 1 + int(np.argmax(kept >= k * kept[-1]))]
        return cls(values, components, mean if center else None)

    @classmethod
    def of_rows(cls, rows: Rows, domain: Domain, k: int, *, center: bool, coarse: bool = False) -> Spectrum:
        """From the rows, over their public number; ``coarse`` where the formula allows for it."""
        norm = float(domain.require("row_norm"))
        products = (CoarseMoment if coarse else SecondMoment)(rows.d, largest_entry(domain))
        asked = [products, ColumnSums(rows.n, rows.d, [(None, norm)])][: 1 + center]
        matrix, *sums = together(rows, *((None, one) for one in asked))
        return cls.of(sums[0][0] / rows.n if center else np.zeros(rows.d), matrix / rows.n, k, center=center)


def _gap_margin(domain: Domain, k: int, gap: float, rows: Rows, unit: float, *, center: bool, coarse: bool) -> float:
    """Margin of "the eigengap after the k-th eigenvalue is at least ``gap``"."""
    spectrum = Spectrum.of_rows(rows, domain, k, center=center, coarse=coarse)
    error = moment_error(domain, center=center)
    room = spectrum.gap - gap - 2 * error
    return room / (unit + 4 * error) if room > 0 else 0.0


def _alignment_margin(
    domain: Domain, k: int, gap: float, rows: Rows, unit: float, *, center: bool, least: float, basis: Array
) -> float:
    """Margin of "the singular values of ``P G`` are at least ``least``", where the condition on the gap holds."""
    components = Spectrum.of_rows(rows, domain, k, center=center).components
    cosine = float(np.linalg.svd(components @ basis, compute_uv=False)[k - 1])
    error = moment_error(domain, center=center)
    slack = gap * map_error(domain.d, 1.0)  # of the computed cosine
    room = (gap - 2 * error) * (cosine - least) - slack
    return room / (inflate(unit + 2 * error) + 2 * slack) if room > 0 else 0.0


@dataclass(frozen=True, slots=True)
class PublicColumns:
    """G, the public orthonormal columns that rows are mapped to, for a block of k of d directions."""

    matrix: Array  # of shape (d, number), with orthonormal columns
    drawn: bool  # at random rather than given

    @property
    def number(self) -> int:
        """How many they are."""
        return int(self.matrix.shape[1])

    @classmethod
    def of(cls, basis: Any, n_columns: Any, d: int, *, usual: int, least: int, stage: object) -> PublicColumns:
        """At least ``least`` columns: drawn from a seed (``usual`` ones unless asked otherwise), or as given."""
        asked = None if n_columns is None else integer("n_columns", n_columns, stage, least=least, most=d)
        if basis is None or isinstance(basis, (str, bytes)) or np.isscalar(basis):
            seed = integer("public_basis", basis, stage, least=0)
            wild = np.random.default_rng(seed).standard_normal((d, min(usual, d) if asked is None else asked))
            return cls(_orthonormal(wild), drawn=True)
        given = _columns(basis, d)
        if given is None or given.shape[1] < least or asked not in (None, given.shape[1]):
            raise InvalidParameter(
                f"public_basis must be a seed, or an array of {d} rows with n_columns >= {least} independent columns.",
                stage=type(stage).__name__,
                fix="public_basis=0 draws one.",
                parameter="public_basis",
            )
        return cls(_orthonormal(given), drawn=False)

    def usual_alignment(self, k: int) -> float:
        """Half of the smallest singular value of P G that is typical: the edge of the Jacobi ensemble."""
        if not self.drawn:
            return 0.5
        d = self.matrix.shape[0]
        a, b = self.number / d, k / d
        edge = math.sqrt(a * (1 - b)) - math.sqrt(b * (1 - a))
        return max(edge, 0.5 / math.sqrt(k * d)) / 2


def _columns(basis: Any, d: int) -> Array | None:
    """Independent finite columns, or None."""
    try:
        given = np.asarray(basis, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    if given.ndim != 2 or given.shape[0] != d or not 1 <= given.shape[1] <= d or not np.isfinite(given).all():
        return None
    return given if np.linalg.matrix_rank(given) == given.shape[1] else None


def _orthonormal(columns: Array) -> Array:
    """Gram and Schmidt; columns that are orthonormal already stay."""
    with threads_for(len(columns)):
        unit, triangle = np.linalg.qr(columns)
    return np.asarray(unit * np.where(np.diag(triangle) < 0, -1.0, 1.0))
