"""A public map never makes a gap in a row that has none, whatever the row holds: one NaN would drown every sum."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import FunctionTransformer, PolynomialFeatures
from sklearn.preprocessing import MinMaxScaler as OwnRange
from sklearn.preprocessing import StandardScaler as OwnScaler

from ppdp import Adjacency, Domain
from ppdp import transformers as S
from ppdp.data.rows import Rows
from ppdp.interop.sklearn import ColumnGroup, ColumnMap
from ppdp.testing import REGISTRY
from ppdp.transformers.base import RowWiseTransformer
from ppdp.transformers.columns.categories import OneHot
from ppdp.transformers.columns.features import FourierFeatures, Landmarks, PolynomialTerms, Splines
from ppdp.transformers.columns.maps import (
    Binarized,
    Binned,
    ColumnFacts,
    FillConstant,
    FunctionMap,
    GapIndicators,
    Normalised,
    PublicMap,
    RangeScale,
)

D = 3
LARGEST = np.finfo(np.float64).max
EXTREMES = [0.0, -0.0, 5e-324, -1e-300, 1.0, -3.0, 1e90, -1e155, LARGEST, -LARGEST]
BOX = (-1e99, 1e99)
SMALL = OwnScaler().fit(np.array([[0.0], [1e-150]]).repeat(D, axis=1))


def overflows(X):
    """Infinity less infinity, zero times infinity."""
    return (X * X * X - X * X) * 1e300 * (X - X)


@dataclass(frozen=True)
class Wild(PublicMap):
    """A map that does not keep its word."""

    def facts(self, given):
        return ColumnFacts.within(given.names, np.tile([-2.0, 2.0], (len(given.names), 1)))

    def apply(self, X, given):
        return overflows(X)


@dataclass(frozen=True)
class WildFilled(Wild):
    fills = True


def columns(*maps, ranges=BOX, max_norm=None):
    return ColumnMap((ColumnGroup(None, maps),), ranges, max_norm)


STAGES = {
    "ranges": S.MinMaxScaler(ranges=BOX),
    "all ranges": S.MinMaxScaler(ranges=(-8e307, 8e307)),
    "large target": S.MinMaxScaler(ranges=(0, 1e-9), feature_range=(-1e99, 1e99)),
    "clip": S.NormClipper(1e100),
    "short clip": S.NormClipper(1e-100),
    "grid": S.GridQuantizer(cell_width=1e97),
    "staircase": S.GridQuantizer(cell_width=1e97, mode="staircase", soft_edge=1e-6),
    "dither": S.GridQuantizer(cell_width=1e97, mode="dither"),
    **{family: S.RandomProjection(2, family) for family in ("gaussian", "sparse", "rademacher", "oporp")},
    "function in a box": S.RowMap(overflows, out_ranges=(9e98, 9.5e98)),
    "function in a ball": S.RowMap(overflows, out_norm=1e98),
    "quotient": S.RowMap(lambda X: X / X, out_ranges=(0, 1)),
    "identity": S.RowMap(out_norm=1.0),
    "categories": S.CategoryEncoder([0, 1, 5e-324], add_indicator=True),
    "positions": S.CategoryEncoder([0, 1, 1e308], encoding="ordinal"),
    "dates": S.DateEncoder((-9, 9)),
    "units": S.DateEncoder((-9, 9), "years", feature_range=None),
    "public scaler": S.Public(SMALL, row_norm=1e98),
    "public range": S.Public(OwnRange().fit(np.array([[0.0] * D, [5e-324] * D])), lipschitz=np.inf, row_norm=2.0),
    "public imputer": S.Public(
        SimpleImputer(strategy="constant", fill_value=1e308).fit(np.zeros((1, D))), row_norm=1e98
    ),
    "public components": S.Public(PCA(2).fit(np.eye(D)), row_norm=1e98),
    "public powers": S.Public(PolynomialFeatures(5).fit(np.zeros((1, D))), lipschitz=np.inf, row_norm=1.0),
    "public function": S.Public(FunctionTransformer(overflows), lipschitz=np.inf, row_norm=1.0),
    "wild": columns(Wild()),
    "wild filled": columns(WildFilled()),
    "wild, without ranges": columns(Wild(), ranges=None, max_norm=1.0),
    "wild, one block": ColumnMap((ColumnGroup([0], (Wild(),)), ColumnGroup(None, (RangeScale(),), rest=True)), BOX),
    "no ranges": columns(ranges=None, max_norm=1e98),
    "constant": columns(FillConstant(1e308), ranges=None, max_norm=1e98),
    "scaled": columns(FillConstant(-5e98), RangeScale((-1e99, 1e99))),
    "by the largest": columns(FillConstant(None), RangeScale(None)),
    "function": columns(FunctionMap(overflows, out_ranges=(9e98, 9.5e98), step="f")),
    "unit": columns(Normalised("l2"), ranges=None),
    "sums": columns(Normalised("l1"), ranges=None),
    "maxima": columns(Normalised("max"), ranges=None),
    "threshold": columns(Binarized(0.5), ranges=None),
    "powers": columns(PolynomialTerms(3), max_norm=1.0),
    "waves": columns(FourierFeatures(None, 4), ranges=None),
    "landmarks": columns(Landmarks(n_components=4), ranges=None),
    "similar powers": columns(Landmarks("poly", 1.0, 2, 1.0, 4), ranges=(-1e40, 1e40)),
    "splines": columns(Splines()),
    "gaps": columns(GapIndicators(), ranges=None),
    "bins": columns(Binned(4, hot=False)),
    "hot bins": columns(Binned(4, hot=True), ranges=(-8e307, 8e307)),
    "labels": columns(OneHot(((0, 1), (0.0, 1e308), (5e-324,))), ranges=None),
}


NAMED = {type(stage) for stage in STAGES.values()}
STAGES |= {
    name: kind.example()
    for name, kind in REGISTRY.items()
    if issubclass(kind, RowWiseTransformer) and kind not in NAMED
}


def extreme_rows(gaps):
    rng = np.random.default_rng(0)
    X = rng.choice(EXTREMES, (200, D))
    X[: len(EXTREMES)] = np.array(EXTREMES)[:, None]
    return np.where(rng.random(X.shape) < 0.2, np.nan, X) if gaps else X


CASES = [
    (name, known, gaps)
    for name, stage in STAGES.items()
    for known in (False, True)
    for gaps in (False, True)
    if (known or stage.bounds_rows) and not (gaps and isinstance(stage, S.RandomProjection))
    if not (known and name == "all ranges")  # refused: so wide that the rows would all become the same
]


@pytest.mark.parametrize(("name", "known", "gaps"), CASES)
@pytest.mark.repeated("known", "gaps", keep=2)
def test_rows_without_gaps_stay_without_and_within_their_bounds(name, known, gaps):
    stage, X = STAGES[name], extreme_rows(gaps)
    domain = Domain(n_rows=200, n_features=D, row_norm=1e98 if known else None, max_missing=None if gaps else 0)
    with np.errstate(all="ignore"):  # as in a pipeline
        (way,) = stage.fit_modes(domain, Adjacency.replace().distance)
        statistics = stage.prepare(Rows.of(np.empty((0, D))), way, domain)
        entered = S.NormClipper(1e98).fit_transform(X) if known else X
        out = stage.apply(Rows.of(entered), statistics).X
    complete = ~np.isnan(X).any(axis=1)
    assert np.isfinite(out[complete]).all()
    assert not np.isinf(out).any()
    if way.domain.max_missing == 0:
        assert np.isfinite(out).all()
    assert np.linalg.norm(np.nan_to_num(out), axis=1).max() <= way.domain.row_norm * (1 + 1e-9)


@pytest.mark.parametrize("made", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_becomes_the_centre_or_the_rim(made):
    @dataclass(frozen=True)
    class Fixed(WildFilled):
        def apply(self, X, given):
            return np.where(X > 0, made, 0.5)

    out = columns(Fixed(), ranges=(-1, 1)).fit_transform(np.array([[1.0, -1.0, -1.0], [np.nan, -1.0, -1.0]]))
    end = 0.0 if np.isnan(made) else 2.0 * np.sign(made)
    assert out == pytest.approx(np.array([[end, 0.5, 0.5], [0.5, 0.5, 0.5]]))
