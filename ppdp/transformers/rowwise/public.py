"""Transformers fitted on public data, and what is known of scikit-learn's: ``docs/theory/row-wise.md``."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.validation import check_is_fitted

from ppdp.bounds.projection import operator_norm
from ppdp.core.checks import length, number, positive, shown
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.rounding import apply_error, inflate
from ppdp.data.exact_matmul import product
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import clip_norms
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import DomainMismatch, InvalidParameter, MissingBound
from ppdp.transformers.base import RowWiseTransformer, Statistics
from ppdp.transformers.fit_mode import FitMode
from ppdp.transformers.rowwise.probe import call_surely, check_row_by_row, clipped_to_ball, made_up_rows, output_width

SUBTRACTS = {"StandardScaler": "mean_", "RobustScaler": "center_", "MaxAbsScaler": None}
PROJECTS = {"PCA", "IncrementalPCA", "TruncatedSVD", "GaussianRandomProjection", "SparseRandomProjection"}


@dataclass(eq=False, repr=False)
class Public(RowWiseTransformer):
    """Apply a transformer that was fitted on public data, then clip its output to a public norm.

    Parameters
    ----------
    transformer : transformer
        Fitted on data that everybody may know, never on the private rows. It stays as it is: ``clone`` keeps it, like
        :class:`sklearn.frozen.FrozenEstimator`, and its parameters cannot be set from here.
    lipschitz : float, optional
        Lipschitz constant (L2) of its ``transform``; ``math.inf`` if it has none: a row that an earlier stage moved
        then counts as replaced. Default: computed, for scikit-learn's ``StandardScaler``, ``MinMaxScaler``,
        ``MaxAbsScaler``, ``RobustScaler``, ``SimpleImputer``, ``PCA``, ``IncrementalPCA``, ``TruncatedSVD`` and random
        projections.
    row_norm : float, optional
        Public norm to which every output row is clipped. Default: where the Lipschitz constant is computed, the largest
        that can occur.
    rounding : float, optional
        How far (L2, as a share of ``row_norm``) a row's result may be off because of the rows around it: matrix
        products need about 1e-12. Every row then counts as moved by twice as much. Default: not by one bit.

    Attributes
    ----------
    norm_, width_ : float, int
        Public norm and number of columns of what comes out.
    fills_ : bool
        Whether gaps are filled.

    Notes
    -----
    **Guarantee** (``docs/theory/row-wise.md``): row-wise, moves nothing unless ``rounding`` is given. What the user
    declares (public data, rows one by one, Lipschitz constant) is in the certificate, and tested on made-up rows like a
    :class:`~ppdp.transformers.RowMap`. A transformer that leaves no gap in them fills gaps here as well; where it gives
    NaN or fails in spite of that, 0 stands.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> published = StandardScaler().fit(np.array([[0.0], [10.0]]))
    >>> Public(published, row_norm=2.0).fit_transform(np.array([[10.0], [90.0]])).round(6)
    array([[1.],
           [2.]])
    """

    transformer: Any = None
    lipschitz: float | None = None
    row_norm: float | None = None
    rounding: float | None = None

    statistic_names = ("norm", "width", "fills")
    _example: ClassVar = {
        "transformer": FunctionTransformer(np.tanh, feature_names_out="one-to-one"),
        "lipschitz": 1.0,
        "row_norm": 1.0,
    }

    def __sklearn_clone__(self) -> Any:
        twin = super().__sklearn_clone__()
        twin.transformer = self.transformer  # fitted, as it is
        return twin

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters; those of the fitted transformer are not among them."""
        return dict(super().get_params(deep=False))

    @property
    def bounds_rows(self) -> bool:  # type: ignore[override]
        """Whether the output has a bound even where the input has none."""
        return self.row_norm is not None

    @property
    def fills_gaps(self) -> bool:  # type: ignore[override]
        """Whether no gap is left in made-up rows."""
        try:
            inner = self._inner()
            return self._fills(inner, getattr(inner, "n_features_in_", 2))
        except Exception:
            return False  # ``ways`` says what is wrong

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        inner = self._inner()
        _check_columns(inner, domain)
        known, function, gaps = known_map(inner), function_of(inner), domain.missing_rows > 0
        width = output_width(function, domain.d, "Public")
        lipschitz, norm = self._lipschitz(known), self._norm(known, domain)
        share = None if self.rounding is None else number("rounding", self.rounding, self, least=0, most=1)
        check_row_by_row(
            lambda X: clip_norms(function(X), norm),
            domain.d,
            width,
            "Public",
            gaps=gaps,
            norm=domain.row_norm,
            tolerance=None if share is None else 2 * share * norm,
        )
        rounding = apply_error(width, norm) + (0.0 if share is None else share * norm)
        if known is not None and distance.moved:
            rounding += known.rounding(float(domain.require("row_norm", "Public")), domain.d, width)
        names = names_out(inner, domain.feature_names)
        way = FitMode.by(
            "row-wise.public",
            domain,
            distance,
            n_features=width,
            row_norm=norm,
            lipschitz=None if lipschitz == math.inf else lipschitz,
            rounding=rounding,
            same_bits=share is None,
            fills_gaps=gaps and self._fills(inner, domain.d),
            feature_names=names if names is not None and len(names) == width else None,
        )
        return (way,)

    def _inner(self) -> Any:
        """The fitted transformer."""
        inner = self.transformer.estimator if isinstance(self.transformer, FrozenEstimator) else self.transformer
        state = "no transformer"
        if not isinstance(inner, type) and callable(getattr(inner, "transform", None)):
            try:
                check_is_fitted(inner)
                return inner
            except NotFittedError:
                state = "not fitted"
            except TypeError:  # it has no ``fit``
                pass
        what = f"transformer is {state}: {type(inner).__name__}."
        fix = "pass a transformer that was fitted on public data, never on the private rows."
        raise InvalidParameter(what, stage="Public", fix=fix, parameter="transformer")

    def _lipschitz(self, known: Known | None) -> float:
        if self.lipschitz is not None:
            return math.inf if self.lipschitz == math.inf else positive("lipschitz", self.lipschitz, self)
        if known is not None:
            return known.lipschitz
        what = f"the Lipschitz constant of {type(self._inner()).__name__} is not declared."
        fix = "lipschitz=..., or lipschitz=math.inf if it has none: a row that moved then counts as replaced."
        raise MissingBound(what, stage="Public", fix=fix)

    def _norm(self, known: Known | None, domain: Domain) -> float:
        """Public norm of the output: the declared one, or the Lipschitz constant beyond the images of 0 and gaps."""
        if self.row_norm is not None:
            return length("row_norm", self.row_norm, self)
        if known is None or domain.row_norm is None:
            what = "the norm of its rows is not declared."
            raise MissingBound(what, stage="Public", fix="row_norm=...; longer rows are clipped.")
        ends = np.repeat([[0.0], [np.nan]], domain.d, axis=1)
        reach = np.linalg.norm(np.nan_to_num(_mapped(self._inner(), ends)), axis=1).max()
        return inflate(known.lipschitz * domain.row_norm + float(reach))

    @staticmethod
    def _fills(inner: Any, d: int) -> bool:
        rows = made_up_rows(d, gaps=True)
        return not np.isnan(_mapped(inner, rows[np.isnan(rows).any(axis=1)])).any()

    def declarations(self) -> tuple[str, ...]:
        inner = self.transformer.estimator if isinstance(self.transformer, FrozenEstimator) else self.transformer
        words = [
            f"{type(inner).__name__} was fitted on public data and treats rows one by one (tested on made-up rows)"
        ]
        if self.lipschitz is not None:
            words.append(f"its Lipschitz constant is {shown(self.lipschitz)}")
        if self.rounding is not None:
            words.append(f"rows around a row change its result by at most {self.rounding} of row_norm")
        return tuple(words)

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        chosen = way.parameters
        return {"norm": chosen["row_norm"], "width": chosen["n_features"], "fills": chosen["fills_gaps"]}

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        out = call_surely(function_of(self._inner()), X, statistics["width"])
        return clipped_to_ball(X, out, statistics["norm"], fills=statistics["fills"])

    def units(self, columns: Columns) -> Columns | None:
        inner = self._inner()
        if _own_name(inner) not in (*SUBTRACTS, "MinMaxScaler"):
            return None
        zero, one = (inner.inverse_transform(np.full((1, len(columns.names)), end))[0] for end in (0.0, 1.0))
        if getattr(inner, "clip", False):
            columns = columns.clipped(inner.data_min_, inner.data_max_)
        return columns.scaled(one - zero, zero).noted(f"scaled rows clipped to norm {self.norm_:.6g}")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names that the transformer gives, else ``public0``, ``public1`` and so on."""
        given = super().get_feature_names_out(input_features)
        names = names_out(self._inner(), list(given))
        if names is None or len(names) != self.width_:
            names = [f"public{i}" for i in range(self.width_)]
        return np.asarray(names, dtype=object)


def _mapped(inner: Any, rows: Array) -> Array:
    """Images of public rows."""
    function = function_of(inner)
    return call_surely(function, rows, output_width(function, rows.shape[1], "Public"))


def _check_columns(inner: Any, domain: Domain) -> None:
    """The transformer was fitted on as many columns, of the same names if both have names."""
    expected = getattr(inner, "n_features_in_", domain.d)
    names = getattr(inner, "feature_names_in_", None)
    same = names is None or domain.feature_names is None or list(names) == list(domain.feature_names)
    if expected != domain.d or not same:
        what = f"{type(inner).__name__} was fitted on other columns: {expected} of them, {domain.d} come in."
        fix = "fit it on public data with the columns that stand here, in this order."
        raise DomainMismatch(what, stage="Public", fix=fix)


@dataclass(frozen=True, slots=True)
class Known:
    """A Lipschitz constant that follows from fitted attributes, and the norm of what is subtracted from a row first."""

    lipschitz: float
    centre: float = 0.0

    def rounding(self, norm: float, d: int, width: int) -> float:
        """L2 error of one row of norm at most ``norm``."""
        return apply_error(d, math.sqrt(min(d, width)) * self.lipschitz * (norm + self.centre))


def known_map(transformer: Any) -> Known | None:
    """What is known of a transformer of exactly one of scikit-learn's classes named here; None of any other."""
    name = _own_name(transformer)
    if name in SUBTRACTS:
        scale = getattr(transformer, "scale_", None)
        slope = 1.0 if scale is None else float((1 / np.abs(_precise(scale))).max())
        return Known(inflate(slope), _norm(getattr(transformer, SUBTRACTS[name] or "", None)))
    if name == "MinMaxScaler":
        scale = np.abs(_precise(transformer.scale_))
        return Known(inflate(float(scale.max())), _norm(_precise(transformer.min_) / scale))
    if name == "SimpleImputer" and isinstance(transformer.missing_values, float):
        return Known(1.0) if math.isnan(transformer.missing_values) else None
    if name in PROJECTS:
        matrix, centre = _projection(transformer)
        return Known(operator_norm(matrix), _norm(centre))
    return None


def _own_name(transformer: Any) -> str:
    """Name of the class if it is scikit-learn's own."""
    kind = type(transformer)
    return kind.__name__ if kind.__module__.partition(".")[0] == "sklearn" else ""


def _norm(row: Any) -> float:
    return 0.0 if row is None else inflate(float(np.linalg.norm(_precise(row))))


def _precise(values: Any) -> Array:
    """A transformer that was fitted on float32 has float32 attributes."""
    return np.asarray(values, dtype=np.float64)


def _projection(transformer: Any) -> tuple[Any, Array | None]:
    """A and c of ``x -> A (x - c)``."""
    matrix, centre = transformer.components_.astype(np.float64), getattr(transformer, "mean_", None)
    if getattr(transformer, "whiten", False):
        variance = transformer.explained_variance_
        matrix /= np.maximum(np.sqrt(_precise(variance)), np.finfo(variance.dtype).eps)[:, None]
    return matrix, None if centre is None else _precise(centre)


def function_of(transformer: Any) -> Callable[[Array], Array]:
    """``transform`` of arrays, quiet and dense; where it is a known projection, with equal bits for equal rows."""
    if _own_name(transformer) in PROJECTS:
        matrix, centre = _projection(transformer)
        shift = 0.0 if centre is None else product(centre[None, :], matrix)
        return lambda X: np.where(np.isnan(X).any(axis=1, keepdims=True), np.nan, product(X, matrix) - shift)

    def function(X: Array) -> Array:
        with warnings.catch_warnings():  # a warning would be an answer about the rows
            warnings.simplefilter("ignore")
            out = transformer.transform(_framed(X, transformer))
        return np.asarray(out.toarray() if issparse(out) else out, dtype=np.float64)

    return function


def _framed(X: Array, transformer: Any) -> Any:
    """The rows in the form in which the transformer saw those that it was fitted on."""
    if not hasattr(transformer, "feature_names_in_"):
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=transformer.feature_names_in_)


def names_out(transformer: Any, names: Sequence[str] | None) -> list[str] | None:
    """Names of the columns that come out, if the transformer knows."""
    if names is None:
        return None
    try:
        return [str(name) for name in transformer.get_feature_names_out(np.asarray(names, dtype=object))]
    except Exception:
        return None
