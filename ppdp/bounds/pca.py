"""Projection on the leading eigenvectors: ``docs/theory/pca.md``; a soft one: ``docs/theory/soft-pca.md``.

P is the projector on the top k eigenvectors of the second moment ``C = (1/n) Σ w x xᵀ``, or of the covariance
``C - mu muᵀ`` over the same n rows, under the condition that the eigengap ``λ_k - λ_{k+1}`` is at least β. A row x
becomes ``P x``, ``mu + P (x - mu)`` or, in public columns, ``Gᵀ P x``, ``Aᵀ x`` and so on. The soft projection is
``x -> F x`` with ``F = C (C + λI)⁻¹`` and a public λ; it needs no condition.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import UNIT, column_sum_error, eigen_error, inflate, product_error, projection_error

_exact = partial(formula, kind="stability", page="pca", way="exact", used_by=("PCA",), row_by_row=True)
_noisy = partial(
    formula,
    kind="stability",
    page="pca",
    way="noisy",
    used_by=("PCA",),
    releases=("moment", "matrix"),
    affine=lambda **_: True,
    row_by_row=True,
)


def spread_factor(a: float) -> float:
    """``max_u 2u (√(1 - u²) + a)``: 1 at a = 0, 3√3/2 at a = 1."""
    v = (-a + math.sqrt(a * a + 8)) / 4
    return 2 * math.sqrt(1 - v * v) * (v + a)


def moment_spread(domain: Domain, distance: Distance, centre: float = 0.0) -> float:
    """Half the spread of the eigenvalues of ``C - C'``, where both means have norm at most ``centre``.

    A replaced row costs ``R² q(m/R)``, a toggled one ``R² (1/2 + m/R)``, a move by w at most ``(R + m) w``.
    """
    a = centre / float(domain.require("row_norm"))
    return _spread(domain, distance, spread_factor(a), 0.5 + a, 1 + a)


def _spread(domain: Domain, distance: Distance, replaced: float, toggled: float, moved: float) -> float:
    """Cost of all rows over n, in units of R² for one that is replaced or toggled and of R for a move."""
    norm = float(domain.require("row_norm"))
    paired, single = distance.unmatched
    moves = min(norm * moved * distance.total, norm**2 * replaced * distance.moved)
    return (norm**2 * (replaced * paired + toggled * single) + moves) / domain.n


def _spread_over_rows(domain: Domain, distance: Distance, centre: float) -> float:
    """``max_a √(1 - a²) moment_spread(a R)`` over ``a <= m/R``: where the mean is long, rows are close to it."""
    most = centre / float(domain.require("row_norm"))

    def largest(cost: Callable[[float], float], peak: float) -> float:
        a = min(most, peak)
        return math.sqrt(1 - a * a) * cost(a)

    return _spread(
        domain,
        distance,
        largest(spread_factor, 1 / math.sqrt(3)),
        largest(lambda a: 0.5 + a, (math.sqrt(33) - 1) / 8),
        largest(lambda a: 1 + a, 0.5),
    )


def moment_error(domain: Domain, *, center: bool = False) -> float:
    """Rounding of the computed matrix (Frobenius) and of its eigenvectors, on each side."""
    n, norm = domain.n, float(domain.require("row_norm"))
    error = product_error(n, norm) / n + eigen_error(domain.d, norm)
    if not center:
        return error
    mean = column_sum_error(n, domain.d, norm, Distance(replaced=n)) / n
    return error + (2 * norm + mean) * mean + 4 * UNIT * norm**2


def projector_shift(
    domain: Domain, distance: Distance, min_gap: float, *, center: bool = False, n_components: int = 1
) -> float:
    """Bound on ``‖P - P'‖``: the spread over the gap (Theorem 1 of the page), never above 1."""
    error = moment_error(domain, center=center)
    room = min_gap - 2 * error
    centre = _centre(domain, min_gap, n_components) if center else 0.0
    return min(1.0, inflate(moment_spread(domain, distance, centre) + 2 * error) / room) if room > 0 else 1.0


def _centre(domain: Domain, min_gap: float, n_components: int) -> float:
    """Norm of the mean, ``m = √(R² - kβ)``: k eigenvalues of the covariance are at least β."""
    spread = n_components * min_gap if n_components < domain.d else 0.0
    return math.sqrt(max(0.0, float(domain.require("row_norm")) ** 2 - spread))


def frame_shift(turn: float, n_components: int, columns: int, min_alignment: float) -> float:
    """Bound on ``‖A - A'‖`` for polar factors of ``P G`` and ``P' G`` with ``‖P - P'‖ <= turn`` (Theorem 2)."""
    if turn >= 1:
        return 2.0
    chord = 2 * math.sin(math.asin(turn) / 2)
    if n_components == 1:  # one direction: only its sign can flip, and not if it is far from orthogonal to G
        steady = columns == 1 and 2 * min_alignment > chord
        return chord if steady else min(2.0, chord / min_alignment)
    return min(2.0, (1 if columns == n_components else math.sqrt(2)) * turn / min_alignment)


def map_error(n_features: int, norm: float) -> float:
    """L2 error of one row times a fitted matrix of at most ``n_features`` columns, and of that matrix."""
    return (4 * n_features**2 + 50 * n_features + 16) * UNIT * norm


def _output(domain: Domain, row_norm: float, columns: int | None) -> Domain:
    """Domain after the map; ``columns=None`` keeps those of the input."""
    out = domain.but(row_norm=row_norm, entry_bound=None)
    return out if columns is None else out.but(n_features=columns, feature_names=None)


def _moved(
    domain: Domain, distance: Distance, out: Domain, turn: float, centre: float | None, error: float
) -> Distance:
    """Every row moves by ``(R + m) turn + ‖mu - mu'‖``, all together by ``n √((R turn)² + ‖mu - mu'‖²)`` or less.

    ``turn`` bounds the change of the matrix; ``centre`` is m, or None if the map does not centre.
    """
    n, norm = domain.n, float(domain.require("row_norm"))
    drift, share = 0.0, 1.0
    if centre is not None:
        change = distance.shift(norm, 1.0) + column_sum_error(n, domain.d, norm, distance)
        drift = min(2 * norm, change / n)
        rounding = 2 * moment_error(domain, center=True)
        if turn < 1:  # then it is a multiple of the spread
            share = _spread_over_rows(domain, distance, centre) + rounding
            share /= moment_spread(domain, distance, centre) + rounding
    shift = inflate((norm + (centre or 0.0)) * turn + drift) + 2 * error
    together = n * (inflate(math.hypot(norm * turn * share, drift)) + 2 * error)
    return distance.widened(n, n, shift, together, diameter=2 * float(out.require("row_norm")) + 2 * error)


@_exact("pca.rank", assumes=lambda domain, **_: {"pca.gap"})
def rank_projection(domain: Domain, distance: Distance, *, min_gap: float) -> tuple[Domain, Distance]:
    """Exact projector: every row moves by at most ``R ‖P - P'‖``."""
    sane(min_gap > 0)
    norm = float(domain.require("row_norm"))
    out = domain.but(entry_bound=None)
    if distance.changed == 0:
        return out, distance
    shift = inflate(norm * projector_shift(domain, distance, min_gap)) + 2 * projection_error(domain.d, norm)
    return out, distance.widened(domain.n, domain.n, shift, diameter=2 * norm)


@_exact("pca.centred-rank", assumes=lambda domain, **_: {"pca.centred-gap"})
def centred_rank(domain: Domain, distance: Distance, *, min_gap: float, n_components: int) -> tuple[Domain, Distance]:
    """Exact mean and projector, ``mu + P (x - mu)``: the parts of x - mu that P drops become those of mu."""
    sane(whole(n_components) and min_gap > 0 and 1 <= n_components < domain.d)
    centre = _centre(domain, min_gap, n_components)
    out = _output(domain, inflate(math.hypot(float(domain.require("row_norm")), centre)), None)
    if distance.changed == 0:
        return out, distance
    turn = projector_shift(domain, distance, min_gap, center=True, n_components=n_components)
    error = map_error(domain.d, float(out.require("row_norm")))
    return out, _moved(domain, distance, out, turn, centre, error)


@_exact(
    "pca.projected",
    assumes=lambda domain, *, center, n_components, **_: (
        {"pca.centred-gap" if center else "pca.gap"} if n_components < domain.d else set()
    ),
    releases=("moment", "matrix"),
)
def projected_map(
    domain: Domain, distance: Distance, *, min_gap: float, n_components: int, columns: int, center: bool
) -> tuple[Domain, Distance]:
    """Exact ``Gᵀ P x`` or ``Gᵀ P (x - mu)``, G public with orthonormal columns: no further than ``P x`` moves."""
    sane(whole(n_components, columns) and min_gap > 0)
    sane(1 <= n_components <= domain.d and 1 <= columns <= domain.d)
    if n_components == domain.d:
        turn = 0.0
    else:
        turn = projector_shift(domain, distance, min_gap, center=center, n_components=n_components)
    return _in_columns(domain, distance, turn, min_gap, n_components, columns, center, 1.0)


@_exact(
    "pca.aligned",
    assumes=lambda domain, *, center, **_: (
        {"pca.centred-gap", "pca.centred-alignment"} if center else {"pca.gap", "pca.alignment"}
    ),
    releases=("moment", "matrix"),
)
def aligned_map(
    domain: Domain,
    distance: Distance,
    *,
    min_gap: float,
    min_alignment: float,
    n_components: int,
    columns: int,
    center: bool,
) -> tuple[Domain, Distance]:
    """Exact ``Aᵀ x`` or ``Aᵀ (x - mu)``, A the polar factor of ``P G``, whose singular values are at least c."""
    sane(whole(n_components, columns) and min_gap > 0 and 0 < min_alignment <= 1)
    sane(1 <= n_components <= columns < domain.d)
    turn = projector_shift(domain, distance, min_gap, center=center, n_components=n_components)
    frame = frame_shift(turn, n_components, columns, min_alignment)
    return _in_columns(domain, distance, frame, min_gap, n_components, columns, center, min_alignment)


def _in_columns(
    domain: Domain,
    distance: Distance,
    turn: float,
    min_gap: float,
    n_components: int,
    columns: int,
    center: bool,
    least: float,
) -> tuple[Domain, Distance]:
    """What both maps to public columns share; the matrix is computed from one with singular values >= ``least``."""
    norm = float(domain.require("row_norm"))
    centre = _centre(domain, min_gap, n_components) if center else None
    out = _output(domain, inflate(norm + (centre or 0.0)), columns)
    if distance.changed == 0:
        return out, distance
    error = map_error(domain.d, float(out.require("row_norm"))) / least
    return out, _moved(domain, distance, out, turn, centre, error)


@_noisy("pca.public")
def public_projection(domain: Domain, distance: Distance) -> tuple[Domain, Distance]:
    """Projector of a released second moment, in older documents: every row is charged for rounding."""
    norm = float(domain.require("row_norm"))
    out = domain.but(entry_bound=None)
    if distance.changed == 0:
        return out, distance
    error = 2 * projection_error(domain.d, norm)
    return out, distance.widened(domain.n, domain.n, error, diameter=2 * norm + error)


@_noisy("pca.public-map")
def public_map(domain: Domain, distance: Distance, *, center: bool, columns: int | None) -> tuple[Domain, Distance]:
    """The same with a released mean, or in public columns; ``columns=None`` is ``mu + P (x - mu)``."""
    sane(center if columns is None else whole(columns) and 1 <= columns <= domain.d)
    norm = float(domain.require("row_norm"))
    reach = inflate(norm * (math.sqrt(2) if columns is None else 1 + bool(center)))
    out = _output(domain, reach, columns)
    if distance.changed == 0:
        return out, distance
    error = 2 * map_error(domain.d, reach)
    return out, distance.widened(domain.n, domain.n, error, diameter=2 * reach + error)


@_noisy("pca.row-wise")
def released_map(domain: Domain, distance: Distance, *, center: bool, columns: int | None) -> tuple[Domain, Distance]:
    """Any of these maps with a released matrix and mean, by products of which equal rows get equal bits.

    Row-wise and 1-Lipschitz; only rows that moved are charged for rounding.
    """
    sane(type(center) is bool and (columns is None or (whole(columns) and 1 <= columns <= domain.d)))
    longer = (math.sqrt(2) if columns is None else 2.0) if center else 1.0
    reach = inflate(longer * float(domain.require("row_norm")))
    error = map_error(domain.d, reach)
    out = _output(domain, reach + error, columns)
    return out, distance.stretched(1.0, 2 * reach).jittered(error)


def _gap_statement(what: str) -> dict[str, Any]:
    """What both margins of the eigengap say."""
    return {
        "name": "eigengap",
        "statement": lambda domain, *, min_gap, **_: f"the eigengap of the {what} is at least {min_gap:.4g}",
        "largest": lambda domain, unit, *, min_gap, **_: (float(domain.require("row_norm")) ** 2 - min_gap) / unit,
        "level": lambda domain, unit, *, min_gap, **_: min_gap / unit,
        "threshold": ("min_gap",),
    }


def _alignment_statement() -> dict[str, Any]:
    """What both margins of the alignment say."""
    return {
        "name": "alignment",
        "statement": lambda domain, *, min_alignment, n_components, **_: (
            f"every direction in the span of the {n_components} leading eigenvectors has a cosine of at least"
            f" {min_alignment:.4g} with the span of the public columns"
        ),
        "largest": lambda domain, unit, *, min_alignment, min_gap, **_: (1 - min_alignment) * min_gap / unit,
    }


@formula("pca.gap", kind="margin", page="pca", **_gap_statement("second moment"))
def gap_margin(domain: Domain, distance: Distance) -> float:
    """Change of the eigengap along one neighbouring pair: ``2H = (mass R² + 2R total) / n``."""
    return 2 * moment_spread(domain, distance)


@formula("pca.centred-gap", kind="margin", page="pca", **_gap_statement("covariance"))
def centred_gap_margin(domain: Domain, distance: Distance) -> float:
    """The same for the covariance, whatever the means: m = R."""
    return 2 * moment_spread(domain, distance, float(domain.require("row_norm")))


@formula("pca.alignment", kind="margin", page="pca", **_alignment_statement())
def alignment_unit(domain: Domain, distance: Distance) -> float:
    """Change of β σ_k(P G) along a neighbouring pair that has the gap β: H."""
    return moment_spread(domain, distance)


@formula("pca.centred-alignment", kind="margin", page="pca", **_alignment_statement())
def alignment_unit_centred(domain: Domain, distance: Distance) -> float:
    """The same for eigenvectors of the covariance."""
    return moment_spread(domain, distance, float(domain.require("row_norm")))


_soft = partial(
    formula, kind="stability", page="soft-pca", used_by=("SoftPCA",), releases=("moment", "matrix"), row_by_row=True
)


def moment_distance(domain: Domain, distance: Distance) -> tuple[float, float]:
    """Bounds on ``C - C'``, computed with rounding: operator norm and Frobenius norm."""
    n, norm = domain.n, float(domain.require("row_norm"))
    paired, single = distance.unmatched
    operator = norm**2 * distance.one_sided + min(2 * norm * distance.total, norm**2 * distance.moved)
    frobenius = norm**2 * (math.sqrt(2) * paired + single)
    frobenius += min(2 * norm * distance.total, math.sqrt(2) * norm**2 * distance.moved)
    error = 2 * moment_error(domain)
    return operator / n + error, frobenius / n + error


def shrinkage_shift(domain: Domain, distance: Distance, ridge: float) -> tuple[float, float]:
    """Bounds on ``‖F - F'‖`` and on the root mean square of ``‖(F - F') x‖`` over the rows (Theorem 1 of the page)."""
    operator, frobenius = moment_distance(domain, distance)
    shift = operator / (operator + ridge)
    rounding = math.sqrt(1 + 8 * moment_error(domain) / ridge)  # of the moment, where its root is averaged over rows
    mean_square = frobenius / math.sqrt(8 * ridge) * min(1 + math.sqrt(2) * shift, math.sqrt(2)) * rounding
    return inflate(shift), inflate(min(mean_square, shift * float(domain.require("row_norm"))))


def _shrunk(domain: Domain, ridge: float) -> tuple[Domain, float]:
    """Domain after the map, and its Lipschitz constant ``R² / (R² + λ)``."""
    norm = float(domain.require("row_norm"))
    slope = norm**2 / (norm**2 + ridge)
    return domain.but(row_norm=inflate(slope * norm), entry_bound=None), slope


@_soft("soft-pca.shrinkage", way="exact")
def shrinkage(domain: Domain, distance: Distance, *, ridge: float) -> tuple[Domain, Distance]:
    """Exact second moment: every row moves by at most ``R t / (1 + t)``, ``t = ‖C - C'‖ / λ``; less on average."""
    sane(ridge > 0)
    n, norm = domain.n, float(domain.require("row_norm"))
    out, slope = _shrunk(domain, ridge)
    if distance.changed == 0:
        return out, distance
    shift, mean_square = shrinkage_shift(domain, distance, ridge)
    error, diameter = 2 * map_error(domain.d, norm), 2 * float(out.require("row_norm"))
    stretched = distance.stretched(inflate(slope), diameter)
    return out, stretched.widened(n, n, norm * shift + error, n * (mean_square + error), diameter=diameter + error)


@_soft("soft-pca.row-wise", way="noisy", affine=lambda **_: True)
def released_shrinkage(domain: Domain, distance: Distance, *, ridge: float) -> tuple[Domain, Distance]:
    """Released second moment, by products of which equal rows get equal bits: ``R² / (R² + λ)``-Lipschitz."""
    sane(ridge > 0)
    out, slope = _shrunk(domain, ridge)
    error, diameter = map_error(domain.d, float(domain.require("row_norm"))), 2 * float(out.require("row_norm"))
    return out, distance.stretched(inflate(slope), diameter).jittered(error)


@_soft("soft-pca.public", way="noisy", affine=lambda **_: True)
def public_shrinkage(domain: Domain, distance: Distance, *, ridge: float) -> tuple[Domain, Distance]:
    """Released second moment, in older documents: every row is charged for rounding."""
    sane(ridge > 0)
    out, slope = _shrunk(domain, ridge)
    if distance.changed == 0:
        return out, distance
    error, diameter = 2 * map_error(domain.d, float(domain.require("row_norm"))), 2 * float(out.require("row_norm"))
    stretched = distance.stretched(inflate(slope), diameter)
    return out, stretched.widened(domain.n, domain.n, error, diameter=diameter + error)
