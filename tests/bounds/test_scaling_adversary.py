"""Standard scaling against an adversary: each row's move and all moves together stay within what is certified."""

import math
from itertools import combinations

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from neighbours import ROUNDING, Chain, Pair
from worst_cases import CLIPPED, FLOORED, TOTALS, four_values, poles

from ppdp.bounds import lookup
from ppdp.bounds.scaling import _Geometry, _largest_std, _variance_shift
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.exceptions import CertificateError, UnsupportedOrder
from ppdp.transformers import StandardScaler

ONE = Adjacency.replace().distance

FORMS = pytest.mark.parametrize(
    "form",
    [{"clip": None}, {"clip": 1.0}, {"clip": None, "with_mean": False}, {"clip": 1.0, "with_mean": False}],
    ids=["centred", "centred, clip", "scaled", "scaled, clip"],
)


@FORMS
@pytest.mark.parametrize("domain", [*domains(9, 1, max_missing=0)[:1], *domains(9, 3, max_missing=0)], ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("domain", "form")
def test_conditional_form_holds_at_the_smallest_deviation(domain, distance, form):
    world = World(domain, distance, deleted=True)

    def ratio(pair):
        deviations = [(rows.X * rows.weight[:, None]).std(axis=0).min() for rows in (pair.left, pair.right)]
        least = min(deviations) / domain.row_norm * (1 - 1e-12)
        if least < 1e-3:
            return np.nan
        stage = StandardScaler(float(least), use_floor=False, **form)
        return Chain.of([stage], domain, distance).use(pair, world.free)

    reached, _ = attack(world, ratio, draws=25, steps=40)
    assert reached <= ROUNDING


@pytest.mark.parametrize("domain", domains(20, 1, 3, max_missing=0), ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("domain")
def test_variances_change_by_what_the_total_assumes(domain, distance):
    """The two ingredients of the bounds: how far the vector of variances moves, and how far one deviation grows."""
    world = World(domain, distance, deleted=True)

    def variances(pair):
        return [(rows.X * rows.weight[:, None]).var(axis=0) for rows in (pair.left, pair.right)]

    def vector(pair):
        left, right = variances(pair)
        s = math.sqrt(min(left.min(), right.min())) * (1 - 1e-9)
        geometry = _Geometry.of(domain, distance, s, conditional=True)
        return np.linalg.norm(left - right) / _variance_shift(domain, distance, geometry)

    def growth(pair):
        left, right = variances(pair)
        s = math.sqrt(min(left.min(), right.min())) * (1 - 1e-9)
        if s < 1e-2 * domain.row_norm:
            return np.nan
        largest = _largest_std(domain, distance, s, _Geometry.of(domain, distance, s, conditional=True))
        larger = np.sqrt(np.maximum(left, right))[np.minimum(left, right) <= (s * (1 + 1e-8)) ** 2]
        return larger.max() / largest

    for ratio in (vector, growth):
        reached, _ = attack(world, ratio, draws=40, steps=40)
        assert 0.2 <= reached <= ROUNDING


@pytest.mark.parametrize(
    ("n", "least"), [(10, (0.86, 0.86, 0.86)), (50, (0.96, 0.96, 0.95)), (200, (0.99, 0.98, 0.98))]
)
def test_few_rows_at_the_other_pole_reach_the_conditional_bound(n, least):
    for s, at_least in zip((0.2, 0.35, 0.6), least):
        case = poles(n, s)
        assert at_least <= case.reached.radius / case.certified.radius <= ROUNDING


@pytest.mark.parametrize(("setting", "least"), list(zip(CLIPPED, (0.56, 0.78, 0.79, 0.85))), ids=str)
def test_the_clipped_floor_form_is_reached(setting, least):
    case = four_values(setting[0], *CLIPPED[setting], s=setting[1], clip=1.0, floor=True)
    assert least <= case.reached.radius / case.certified.radius <= ROUNDING


@pytest.mark.parametrize(("setting", "least"), list(zip(FLOORED, (0.89, 0.90))), ids=str)
def test_the_floor_form_is_reached(setting, least):
    case = four_values(setting[0], *FLOORED[setting], s=setting[1], clip=None, floor=True)
    assert least <= case.reached.radius / case.certified.radius <= ROUNDING


@pytest.mark.parametrize(("setting", "least"), list(zip(TOTALS, (0.37, 0.48, 0.58, 0.62, 0.62, 0.59))), ids=str)
def test_the_total_is_reached_up_to_a_small_factor(setting, least):
    case = four_values(setting[0], *TOTALS[setting], s=None, clip=None, floor=False)
    assert least <= case.reached.total / case.certified.total <= ROUNDING
    assert case.certified.total < 0.5 * (setting[0] - 1) * case.certified.radius


def test_without_centring_the_conditional_bound_is_reached():
    """Only the scale changes: the row at the pole is at distance R from the centre."""
    case = poles(200, 0.35)
    stage = StandardScaler(case.stage.min_std, use_floor=False, clip=None, with_mean=False)
    chain = Chain.of([stage], case.domain, ONE)
    assert 0.95 <= chain.use(case.pair, [0]) <= ROUNDING


def test_a_box_makes_the_bound_smaller_and_it_still_holds():
    """Several columns at once: without the entries' bound the reach of a row would be twice its norm."""
    n, d = 60, 4
    ball = Domain(n_rows=n, n_features=d, row_norm=math.sqrt(d), max_missing=0)
    box = ball.but(entry_bound=1.0)
    case = poles(n, 0.3)
    pair = case.pair.mapped(lambda rows: type(rows)(np.repeat(rows.X, d, axis=1), None, rows.weight))
    stage = StandardScaler(case.stage.min_std / math.sqrt(d), use_floor=False, clip=None)
    tight, loose = (Chain.of([stage], domain, ONE) for domain in (box, ball))
    assert tight.distance.radius < 0.5 * loose.distance.radius
    assert 0.9 <= tight.use(pair, [0]) <= ROUNDING


def scaled(column, s, clip):
    column = np.array(column)
    z = (column - column.mean()) / s
    return np.clip(z, -clip, clip) if clip else z


@pytest.mark.parametrize(
    ("left", "right", "replaced", "clip", "of"),
    [
        ([1.0, -1.0, -1.0, 1.0], [-1.0, 1.0, -1.0, 1.0], 1, None, "radius"),
        ([1.0, 1.0, -1.0], [-1.0, -1.0, 1.0], 2, None, "total"),
        ([0.9733, 0.7527, 0.5752, 0.15], [-1.0, 0.8113, -0.7538, 0.9321], 2, 1.0, "radius"),
    ],
)
def test_few_rows_that_also_move_reach_the_conditional_bound(left, right, replaced, clip, of):
    """Found by climbing over small datasets under general distances; frozen here."""
    moves = np.abs(np.subtract(left, right))[replaced:]
    domain = Domain(n_rows=len(left), n_features=1, row_norm=1.0, max_missing=0)
    distance = Distance(replaced=replaced, moved=len(moves), radius=moves.max(), total=moves.sum())
    deviations = np.std(left), np.std(right)
    least = min(deviations) * (1 - 1e-12)
    conditional = clip is None
    parameters = {"min_std": least, "conditional": conditional, "clip": clip}
    _, certified = lookup("scaling.standard", "stability")(domain, distance, **parameters)
    images = (scaled(column, max(s, least), clip) for column, s in zip((left, right), deviations))
    after = np.abs(np.subtract(*images))[replaced:]
    reached = after.max() if of == "radius" else after.sum()
    assert 0.9999 <= reached / getattr(certified, of) <= ROUNDING


POOLED = pytest.mark.parametrize(
    "form",
    [{"clip": None}, {"clip": 1.0}, {"clip": None, "with_mean": False}],
    ids=["centred", "centred, clip", "scaled"],
)
SHAPES = pytest.mark.parametrize(
    "domain", [*domains(9, 1, max_missing=0)[:1], *domains(9, 3, max_missing=0)[::2]], ids=named
)


def deviation(rows):
    """The root of the sum of all columns' variances, deleted rows as zeros."""
    return math.sqrt((rows.X * rows.weight[:, None]).var(axis=0).sum())


@POOLED
@SHAPES
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("domain", "form")
def test_one_scale_for_all_columns_holds_at_the_smallest_deviation(domain, distance, form):
    world = World(domain, distance, deleted=True)

    def ratio(pair):
        least = min(deviation(pair.left), deviation(pair.right)) / domain.row_norm * (1 - 1e-12)
        if not 1e-3 < least <= 1:
            return np.nan
        stage = StandardScaler(least, use_floor=False, per_column=False, **form)
        return Chain.of([stage], domain, distance).use(pair, world.free)

    reached, _ = attack(world, ratio, draws=15, steps=15)
    assert 0.1 < reached <= ROUNDING


@pytest.mark.parametrize("n", [10, 50, 200])
@pytest.mark.parametrize("s", [0.2, 0.35, 0.6])
def test_one_scale_is_reached_in_one_dimension_with_and_without_the_condition(n, s):
    """The floor costs nothing here: only a dataset whose deviation is above s can have another scale."""
    case = poles(n, s)
    for floor in (False, True):
        stage = StandardScaler(case.stage.min_std, use_floor=floor, clip=None, per_column=False)
        chain = Chain.of([stage], case.domain, ONE)
        assert chain.distance.radius == pytest.approx(case.certified.radius, rel=1e-6)
        assert {10: 0.86, 50: 0.95, 200: 0.98}[n] <= chain.use(case.pair, [0]) <= ROUNDING


@pytest.mark.parametrize("n", [2, 3, 5, 9])
@pytest.mark.parametrize("s", [0.5, 0.9, 0.97, 0.999])
@pytest.mark.repeated("s", keep=2)
def test_the_reach_of_the_condition_is_enough_for_the_floor_form_however_few_rows(n, s):
    """A deviation far below the floor, a mean as long as a row: rows at one pole, of which one goes to the other."""
    domain = Domain(n_rows=n, n_features=1, row_norm=1.0, max_missing=0)
    chain = Chain.of([StandardScaler(s, clip=None, per_column=False)], domain, ONE)
    for others in range(n):
        X = np.ones((n, 1))
        X[:others] = -1.0
        Z = X.copy()
        Z[-1] = -1.0
        assert chain.use(Pair.of(X[::-1], Z[::-1]), [0]) <= ROUNDING


def pooled_margin(domain, distance, s):
    stage = StandardScaler(s, use_floor=False, per_column=False)
    ways = {way.name: way for way in stage.fit_modes(domain, distance)}
    (found,) = ways["exact"].conditions
    return found


def fewest_steps(rows, s):
    """Fewest rows whose replacement brings the root of the sum of variances below s: they go to the others' mean."""
    X, n = rows.X * rows.weight[:, None], rows.n
    for steps in range(n):
        for others in combinations(range(n), n - steps):
            if math.sqrt(X[list(others)].var(axis=0).sum() * (n - steps) / n) < s:
                return steps
    return n


@pytest.mark.parametrize("d", [1, 2, 3])
def test_the_margin_of_one_scale_is_never_more_than_the_distance_to_failure(d):
    domain = Domain(n_rows=8, n_features=d, row_norm=1.0, max_missing=0)
    world = World(domain, deleted=True)
    rng = np.random.default_rng(3)
    found = []
    for _ in range(60):
        rows, s = world.draw(rng).left, float(rng.uniform(0.02, 0.6))
        margin, exact = pooled_margin(domain, ONE, s).margin(rows), fewest_steps(rows, s)
        assert margin <= exact
        assert (margin == 0) == (exact == 0)  # zero where the condition fails, and nowhere else
        found.append((margin, exact))
    assert len(set(found)) >= 5
    assert sum(margin for margin, _ in found) >= {1: 1.0, 2: 0.8, 3: 0.75}[d] * sum(exact for _, exact in found)


def test_weights_between_0_and_1_leave_no_exact_way_with_a_condition():
    domain = Domain(n_rows=50, n_features=2, row_norm=1.0, max_missing=0)
    distance = Distance(replaced=1, reweighted=2, mass=3, one_sided=1.5)
    assert {way.name for way in StandardScaler().fit_modes(domain, distance)} == {"noisy", "exact"}
    for statistics in ("auto", "noisy"):
        stage = StandardScaler(use_floor=False, fit_mode=statistics)
        assert [way.name for way in stage.fit_modes(domain, distance)] == ["noisy"]
    with pytest.raises(UnsupportedOrder, match="weights"):
        StandardScaler(use_floor=False, fit_mode="exact").fit_modes(domain, distance)
    parameters = {"min_std": 0.1, "conditional": True, "clip": None}
    with pytest.raises(CertificateError):
        lookup("scaling.standard", "stability")(domain, distance, **parameters)
