"""The contract test itself: it accepts stages that keep their promises and names what the others break."""

import math
from dataclasses import replace

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import FORMULAS, Margin, Stability
from ppdp.core.rounding import column_sum_error, inflate
from ppdp.data.rows import Rows
from ppdp.data.summary import column_sums
from ppdp.testing import check_stage
from ppdp.transformers import PCA, NormClipper, RowMap, StandardScaler
from ppdp.transformers.base import RowWiseTransformer, Transformer
from ppdp.transformers.fit_mode import FitMode

N = 10
SMALL = Domain(n_features=2)


class Own(RowWiseTransformer):
    """The identity, with one way of the formula "own.map"."""

    def fit_modes(self, domain, distance):
        return (FitMode.by("own.map", domain, distance, **self.parameters()),)

    def parameters(self):
        return {}

    def map_rows(self, X, statistics):
        return X


class Centred(Own):
    """The mean, over the public n, is subtracted."""

    statistic_names = ("mean",)

    def prepare(self, rows, way, domain):
        return {"mean": column_sums(rows, 2.0) / rows.n}

    def map_rows(self, X, statistics):
        return X - statistics["mean"]


def same(domain, distance, **_):
    return domain, distance


def centring(domain, distance, *, part=1.0, mass="mass"):
    """What subtracting the mean does; right for ``part=1``."""
    norm = domain.row_norm
    shift = (norm * getattr(distance, mass) + distance.total) / domain.n
    shift += column_sum_error(domain.n, domain.d, 2.0, distance) + 1e-12
    out = domain.but(row_norm=2 * norm, entry_bound=None)
    return out, distance.widened(domain.n, domain.n, inflate(part * shift), diameter=4 * norm)


@pytest.fixture
def promise(monkeypatch):
    """Register what "own.map" promises."""

    def register(function, way="public", used_by=(), **facts):
        formula = Stability("own.map", "row-wise", function, used_by, way=way, **facts)
        monkeypatch.setitem(FORMULAS, "own.map", formula)

    return register


# ---------------------------------------------------------------- what is right


def test_a_right_bound_is_accepted_and_its_use_returned(promise):
    promise(centring, way="exact", gaps=True)
    assert 0.6 < check_stage(Centred(), pairs=6, climbs=8) <= 1


@pytest.mark.parametrize(
    "stage", [StandardScaler(min_std=0.05, use_floor=False, fit_mode="exact"), PCA(1, min_gap=1e-3)]
)
def test_conditional_stages_are_checked_where_their_condition_holds(stage):
    assert 0.05 < check_stage(stage, Domain(n_rows=40, n_features=2), pairs=6, climbs=10) <= 1


def test_columns_and_rows_can_be_chosen():
    three = RowMap(_three_columns, out_norm=2.0, lipschitz=1.0)
    assert check_stage(three, Domain(n_rows=5, n_features=3, row_norm=2.0), pairs=6, climbs=8) > 0.9
    with pytest.raises(AssertionError, match="accepts none of the domains, so nothing was checked"):
        check_stage(three, Domain(n_features=2))


@pytest.mark.parametrize("adjacency", [None, Adjacency.change(coordinate={1: 0.2}), Adjacency.change(l1=0.1)], ids=str)
@pytest.mark.parametrize(
    ("part", "wrong"),
    [({}, None), ({"l1": 0.5}, "entries"), ({"linf": 0.1}, "entry"), ({"columns": 0}, "columns")],
    ids=str,
)
def test_what_is_said_of_a_change_is_tried(promise, adjacency, part, wrong):
    """A formula that passes on more than the length of a change must be right in all of it."""

    def told(domain, distance):
        known = distance.moves
        if known is None:
            return domain, distance
        less = {name: float(share) * getattr(known, name) for name, share in part.items() if name != "linf"}
        linf = {"linf": part["linf"] * known.most} if "linf" in part else {}
        return domain, distance.moving(replace(known, **less, **linf))

    promise(told, gaps=True, entrywise=True)
    domain = None if adjacency is None else Domain(n_features=2, adjacency=adjacency)
    if wrong is None:
        assert check_stage(Own(), domain, pairs=6, climbs=6) > 0.99
    else:
        with pytest.raises(AssertionError, match=f"{wrong} is "):
            check_stage(Own(), domain, pairs=6, climbs=6)


def _three_columns(X):
    if X.shape[1] != 3:
        raise ValueError("three columns")
    return X[:, ::-1]


class Mirror(RowWiseTransformer):
    """The stage of docs/guides/own-stage.md."""

    def fit_modes(self, domain, distance):
        return (FitMode.by("own.map", domain, distance),)

    map_rows = staticmethod(lambda X, statistics: -X)


@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose
def test_the_stage_of_three_lines_passes_scikit_learns_checks(promise):
    promise(same, gaps=True, used_by=("Mirror",))
    results = check_estimator(Mirror.example(), on_skip=None, on_fail=None)
    assert not [(r["check_name"], repr(r["exception"])) for r in results if r["status"] == "failed"]


# ---------------------------------------------------------------- what is wrong


class Doubled(Own):
    def map_rows(self, X, statistics):
        return 2 * X


class Torn(Own):
    def map_rows(self, X, statistics):
        return np.floor(20 * X) / 20


class Reversed(Own):
    """Rows change places: no row-wise map."""

    def map_rows(self, X, statistics):
        return X[np.lexsort(X.T)]


class Kept(Own):
    """Deleted rows come back as something else than zeros."""

    def apply(self, rows, statistics):
        return Rows(rows.X + 0.01, rows.y, rows.weight)


class Dropping(Own):
    """Half of the rows get no weight."""

    def apply(self, rows, statistics):
        return Rows(rows.X, rows.y, rows.weight * (np.nan_to_num(rows.X[:, 0]) > 0)).settled()


class Relabelled(Own):
    def apply(self, rows, statistics):
        y = np.full(rows.n, float(np.nan_to_num(rows.X).sum() > 0))
        return Rows(rows.X, y, rows.weight).settled()


class Impure(Own):
    seen = 0

    def parameters(self):
        type(self).seen += 1
        return {"count": self.seen}


class Fickle(Own):
    """Its second transform differs from the first."""

    def map_rows(self, X, statistics):
        self.turns = getattr(self, "turns", 0) + 1
        return X / self.turns


class Forgetful(Own):
    def __init__(self, factor=1.0):
        self.factor = factor

    def __getstate__(self):
        return {"factor": 1.0}


class Untidy(Own):
    def __init__(self, factor=1.0):
        self.factor = factor

    def __sklearn_clone__(self):
        return type(self)()


class Numpy(Own):
    def parameters(self):
        return {"cuts": np.zeros(2)}


class Lying(Own):
    """The way is not what its formula gives."""

    def fit_modes(self, domain, distance):
        right = FitMode.by("own.map", domain, distance)
        return (FitMode("own.map", {}, right.domain, Distance()),)


def doubled_norm(domain, distance, **_):
    return domain.but(row_norm=2 * domain.row_norm, entry_bound=None), distance


def filled(domain, distance):
    return domain.but(max_missing=0), distance


def fewer(domain, distance):
    return domain.but(min_present=0), distance


WRONG = {
    "too small a Lipschitz constant": (Doubled(), doubled_norm, {}, "radius is .*, and at most .* is certified"),
    "too small a norm": (Doubled(), same, {}, "exceeds row_norm"),
    "torn rows": (Torn(), doubled_norm, {}, "is certified"),
    "mixed rows": (Reversed(), same, {}, "is certified"),
    "an uncharged fit": (Centred(), doubled_norm, {"way": "exact"}, "moved is .*, and at most 0 is certified"),
    "half the bound": (Centred(), lambda a, b: centring(a, b, part=0.5), {"way": "exact"}, "is certified"),
    "nine tenths of it": (Centred(), lambda a, b: centring(a, b, part=0.9), {"way": "exact"}, "is certified"),
    "one side only": (Centred(), lambda a, b: centring(a, b, mass="one_sided"), {"way": "exact"}, "is certified"),
    "deleted rows": (Kept(), doubled_norm, {}, "a deleted row is not zero"),
    "uncharged weights": (Dropping(), fewer, {}, "slots is|mass is"),
    "too few rows": (Dropping(), same, {}, "fewer rows are left than min_present"),
    "labels": (Relabelled(), same, {}, "slots is"),
    "gaps": (Own(), filled, {}, "more rows have gaps than max_missing"),
    "gaps that are not declared": (Own(), same, {"gaps": False}, "does not say gaps=True"),
    "impure ways": (Impure(), same, {}, "its ways are others the second time"),
    "transform with a memory": (Fickle(), same, {}, "transform gives other rows the second time"),
    "a pickle that forgets": (Forgetful(2.0), same, {}, "a pickled copy has other parameters"),
    "a clone that forgets": (Untidy(2.0), same, {}, "clone changes its parameters"),
    "parameters that no certificate holds": (Numpy(), same, {}, "not plain numbers"),
    "another distance": (Lying(), same, {}, "another distance or domain follows"),
    "no release to be fitted from": (
        Own(),
        same,
        {"way": "noisy"},
        "for releases=.no release., and its mode has request=StatisticRequest",
    ),
    "no release to predict with": (
        Own(),
        same,
        {"releases": ("means",)},
        "for releases=..means.., and its mode has request=StatisticRequest.no release.",
    ),
    "another class": (Own(), same, {"used_by": ("Other",)}, "does not list it in used_by"),
    "an assumption that is not stated": (Own(), same, {"assumes": lambda domain, **_: {"m"}}, "assumes something else"),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_broken_is_found_and_named(promise, wrong):
    stage, function, facts, words = WRONG[wrong]
    promise(function, **{"gaps": True, **facts})
    with pytest.raises(AssertionError, match=words) as caught:
        check_stage(stage)
    assert str(caught.value).startswith(f"{type(stage).__name__}: ")


@pytest.mark.parametrize(("unit", "holds"), [(1.0, True), (0.5, False)])
def test_a_margin_must_change_by_at_most_one(promise, monkeypatch, unit, holds):
    """The margin of "many rows have a positive first entry" counts rows; one unit is one row."""
    margin = Margin("own.margin", "row-wise", lambda domain, distance: unit * distance.changed, name="positive")
    monkeypatch.setitem(FORMULAS, "own.margin", margin)
    promise(same, way="exact", assumes=lambda domain, **_: {"own.margin"}, gaps=True)

    class Conditional(Transformer):
        def fit_modes(self, domain, distance):
            def measure(rows, unit):
                return float((rows.weight * (np.nan_to_num(rows.X[:, 0]) > 0)).sum()) / unit

            return (FitMode.by("own.map", domain, distance, measures={"own.margin": measure}),)

        def map_rows(self, X, statistics):
            return X

    if holds:
        check_stage(Conditional(), SMALL, pairs=6, climbs=10)
    else:
        with pytest.raises(AssertionError, match="the margin of 'positive' changes by 2, more than 1"):
            check_stage(Conditional())


def test_nothing_is_promised_where_a_condition_fails(promise, monkeypatch):
    """A wrong bound under a condition that never holds: no pair shows it, and none is said to use it."""
    margin = Margin("own.margin", "row-wise", lambda domain, distance: 1.0)
    monkeypatch.setitem(FORMULAS, "own.margin", margin)
    promise(same, assumes=lambda domain, **_: {"own.margin"}, gaps=True)

    class Never(Doubled):
        def fit_modes(self, domain, distance):
            measures = {"own.margin": lambda rows, unit: -math.inf}
            return (FitMode.by("own.map", domain, distance, measures=measures),)

    assert check_stage(Never(), SMALL, pairs=6, climbs=10) == 0


def test_a_seed_decides_the_draws():
    one, other, third = (check_stage(NormClipper(0.3), SMALL, pairs=2, climbs=2, seed=seed) for seed in (1, 1, 2))
    assert one == other != third
