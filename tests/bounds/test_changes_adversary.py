"""A change of one row, followed through ranges and projections to what is released, against an adversary."""

from itertools import combinations, product

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, named

from ppdp import Adjacency, Domain
from ppdp.bounds import lookup
from ppdp.exceptions import CertificateError, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism
from ppdp.mechanisms.base import QuerySpec
from ppdp.transformers import Deduplicator, LSHDeduplicator, MinMaxScaler, RandomProjection

D, K = 10, 4
SIGNS = [np.array(signs) for signs in product((-1.0, 1.0), repeat=3)]
CHANGES = {
    "one column": Adjacency.change(coordinate=0.5),
    "three columns": Adjacency.change(coordinate=0.5, count=3),
    "two of some columns": Adjacency.change(coordinate={0: 0.2, 3: 0.9, 8: 0.6}, count=2),
    "l1": Adjacency.change(l1=0.7),
    "l2": Adjacency.change(l2=0.7),
}
FAMILIES = {
    "gaussian": {},
    "uniform": {},
    "rademacher": {},
    "sparse": {"s": 4.0},
    "oporp": {"bins": "balanced"},
    "oporp, bins of their own": {"bins": "variable"},
}


def drawn(adjacency, rng):
    """Changes of a row: random ones, and those at the corners of what is allowed."""
    if adjacency.kind == "coordinate":
        limits = np.full(D, adjacency.limit) if not isinstance(adjacency.limit, tuple) else np.zeros(D)
        for column, limit in adjacency.limit if isinstance(adjacency.limit, tuple) else ():
            limits[column] = limit
        columns = rng.permutation(np.flatnonzero(limits))[: adjacency.count]
        change = np.zeros(D)
        change[columns] = limits[columns] * rng.choice([-1, 1], len(columns)) * rng.choice([1.0, rng.random()])
        return change
    if rng.random() < 0.5:
        return np.eye(D)[rng.integers(D)] * adjacency.limit * rng.choice([-1, 1])
    direction = rng.normal(size=D) * (rng.random(D) < rng.choice([0.3, 1.0]))
    size = np.abs(direction).sum() if adjacency.kind == "l1" else np.linalg.norm(direction)
    return direction / max(size, 1e-9) * adjacency.limit


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.repeated("change", keep=3)
def test_no_change_reaches_further_than_its_distance_says(change, family):
    adjacency, rng = CHANGES[change], np.random.default_rng(1)
    stages = [
        MinMaxScaler(ranges=(-2.0, 2.0), feature_range=(-1, 1)),
        RandomProjection(K, family=family.partition(",")[0], seed=3, **FAMILIES[family]),
    ]
    domain = Domain(n_rows=8, n_features=D, max_missing=0, adjacency=adjacency)
    distance, row = domain.neighbours, rng.uniform(-0.5, 0.5, D)
    pairs = np.stack([row + drawn(adjacency, rng) for _ in range(1000)] + [row])
    if adjacency.kind == "l2":  # along the longest axis of the projection
        matrix = stages[1].fit(np.zeros((1, D))).components_
        axis = np.linalg.svd(matrix.toarray() if hasattr(matrix, "toarray") else matrix)[2][0]
        pairs[0] = row + axis * adjacency.limit
    for stage in stages:
        (way,) = [way for way in stage.fit_modes(domain, distance) if way.name == "public"]
        pairs = stage.fit(np.zeros((1, domain.d))).transform(pairs)
        domain, distance = way.domain, way.distance
    apart, moves = np.abs(pairs[:-1] - pairs[-1]), distance.moves
    used = {
        "linf": apart.max() / moves.most,
        "l1": apart.sum(axis=1).max() / moves.l1,
        "l2": np.linalg.norm(apart, axis=1).max() / distance.radius,
        "columns": np.count_nonzero(apart, axis=1).max() / moves.columns,
    }
    assert max(used.values()) <= 1
    assert min(used.values()) > 0.6, used
    assert used["l2"] > (0.8 if adjacency.kind == "coordinate" else 0.99)


@pytest.mark.parametrize(
    "adjacency", [Adjacency.change(coordinate=0.5), Adjacency.change(l1=0.5)], ids=["column", "l1"]
)
@pytest.mark.parametrize("bins", ["balanced", "fixed", "variable"])
def test_one_column_reaches_one_component_of_an_oporp(adjacency, bins):
    """So Laplace noise on a sketch costs what it costs on the row, whatever the number of components."""
    domain = Domain(n_rows=5, n_features=D, max_missing=0, adjacency=adjacency)
    distance = domain.neighbours
    for stage in (MinMaxScaler(ranges=(0.0, 1.0), feature_range=(0, 1)), RandomProjection(K, "oporp", bins=bins)):
        (way,) = [way for way in stage.fit_modes(domain, distance) if way.name == "public"]
        domain, distance = way.domain, way.distance
    loss = lookup("laplace.rows", "privacy")(domain, distance, noise_scale=0.1)
    assert loss.epsilon(0.0) == pytest.approx(5.0, rel=1e-7)
    sensitivity = lookup("query.rows", "mechanism")(domain, distance)
    assert sensitivity == pytest.approx(0.5, rel=1e-7)


WIDTHS = np.array([0.5, 1.0, 2.0, 4.0, 8.0, 1.0, 1.0, 2.0, 0.5, 16.0])


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("query", ["sum", "mean"])
def test_sums_behind_ranges_of_different_widths_cost_what_one_row_can_change(change, query):
    """Every column by its own slope; a sum changes by no more than the row, in L1."""
    adjacency, rng = CHANGES[change], np.random.default_rng(2)
    stage = MinMaxScaler(ranges=[(-w, w) for w in WIDTHS], feature_range=(-1, 1))
    domain = Domain(n_rows=50, n_features=D, max_missing=0, adjacency=adjacency, min_present=50)
    (way,) = [way for way in stage.fit_modes(domain, domain.neighbours) if way.name == "public"]
    weighted = {"weighted": False} if query == "mean" else {}
    loss = lookup(f"laplace.{query}", "privacy")(way.domain, way.distance, noise_scale=1.0, **weighted)
    X = rng.uniform(-0.1, 0.1, (50, D)) * WIDTHS
    changes = [drawn(adjacency, rng) for _ in range(50)]
    if adjacency.kind == "l2":  # along the slopes
        changes.append(adjacency.limit / WIDTHS / np.linalg.norm(1 / WIDTHS))
    if adjacency.kind == "coordinate" and not isinstance(adjacency.limit, tuple):
        changes.append(adjacency.limit * (np.sort(WIDTHS)[adjacency.count - 1] >= WIDTHS))
        changes = [change for change in changes if np.count_nonzero(change) <= adjacency.count]
    far = 0.0
    for by in changes:
        sides = [stage.fit_transform(np.vstack([side * by / 2, X[1:]])) for side in (-1, 1)]
        change = np.abs(sides[1].sum(axis=0) - sides[0].sum(axis=0)).sum()
        far = max(far, float(change) / (50 if query == "mean" else 1))
    assert far <= loss.epsilon(0.0) * (1 + 1e-9)
    assert far > (0.99 if adjacency.kind != "l2" else 0.45) * loss.epsilon(0.0)


def test_a_sum_behind_many_columns_costs_one_of_them():
    """784 pixels of which one changes: the L1 shift is that of the pixel, not 28 of them."""
    pixels = Domain(n_rows=100, n_features=784, row_norm=28.0, entry_bound=1.0)
    distance = Adjacency.change(coordinate=1.0).entrance_distance(784)
    assert lookup("laplace.sum", "privacy")(pixels, distance, noise_scale=1.0).epsilon(0.0) == pytest.approx(
        1, rel=1e-3
    )


@pytest.mark.parametrize("family", ["gaussian", "oporp"])
def test_columns_of_different_widths_keep_their_slopes_behind_a_projection(family):
    """Two of ten columns change: what the two steepest do is not charged to all."""
    stage = RandomProjection(K, family=family, seed=3)
    steep, flat = (MinMaxScaler(ranges=[(-w, w) for w in widths]) for widths in (np.full(D, 0.5), WIDTHS))
    reached = []
    for first in (steep, flat):
        domain = Domain(n_rows=8, n_features=D, max_missing=0, adjacency=CHANGES["three columns"])
        distance, slopes = domain.neighbours, 1 / np.array([high - low for low, high in first.ranges])
        for one in (first, stage):
            (way,) = [way for way in one.fit_modes(domain, distance) if way.name == "public"]
            domain, distance = way.domain, way.distance
        A = stage.fit(np.zeros((1, D))).components_
        A = (A.toarray() if hasattr(A, "toarray") else A) * np.minimum(slopes, 2.0)
        images = [A[:, list(some)] @ signs for some in combinations(range(D), 3) for signs in SIGNS]
        far = max(float(np.linalg.norm(image)) for image in images)
        assert far <= distance.radius
        reached.append(far / distance.radius)
    assert min(reached) > 0.8


@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.parametrize("entry_bound", [None, 0.6])
def test_no_neighbours_exceed_the_shift_of_the_rows(distance, entry_bound):
    domain = Domain(n_rows=7, n_features=2, row_norm=1.0, entry_bound=entry_bound)
    question = QuerySpec("laplace.rows", {}, 1, 14, 1.0)
    rows = LaplaceMechanism("rows")
    bound = lookup("laplace.rows", "privacy")(domain, distance, noise_scale=1.0).epsilon(0.0)

    def ratio(pair):
        left, right = (rows.answer(side, question) for side in (pair.left, pair.right))
        return float(np.abs(left - right).sum()) / bound

    used, _ = attack(World(domain, distance), ratio)
    assert used <= 1
    assert used > 0.85


def test_of_both_kinds_of_noise_the_answer_is_the_same():
    rng = np.random.default_rng(0)
    rows = World(Domain(n_rows=5, n_features=3, row_norm=1.0)).draw(rng).left
    question = QuerySpec("laplace.rows", {}, 1, 15, 1.0)
    np.testing.assert_array_equal(
        GaussianMechanism("rows").answer(rows, question), LaplaceMechanism("rows").answer(rows, question)
    )


@pytest.mark.parametrize(
    "stage", [Deduplicator(compare="raw"), LSHDeduplicator(bands=3, mode="simhash", compare="raw")], ids=str
)
def test_nobody_compares_raw_rows_that_may_have_been_changed(stage):
    """A change that every stage in front has bounded would decide, unbounded, which rows are kept."""
    domain = Domain(n_rows=20, n_features=2, row_norm=1.0, min_present=20)
    scaled = lookup("row-wise.norm-clip", "stability")
    for adjacency, fine in ((Adjacency.replace(), True), (Adjacency.change(l2=1e-6), False)):
        facts = domain.but(adjacency=adjacency)
        here = scaled(facts, facts.neighbours, max_norm=1.0)
        if fine:
            assert stage.fit_modes(*here)
            continue
        with pytest.raises(UnsupportedOrder, match="raw keys"):
            stage.fit_modes(*here)
        way = stage.fit_modes(*scaled(domain, domain.neighbours, max_norm=1.0))[0]
        with pytest.raises(CertificateError):
            lookup(way.formula, "stability")(*here, **way.parameters)
