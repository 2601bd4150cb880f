"""Random projections against an adversary that knows the matrix: moved rows, norms, entries and bits."""

import math

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from neighbours import ROUNDING, Chain, Pair, by_position, outgrown, shares
from scipy.sparse import csc_array, csr_array, issparse
from scipy.stats import uniform

from ppdp import Adjacency
from ppdp.bounds import lookup
from ppdp.bounds.projection import Matrix, operator_norm
from ppdp.bounds.random_matrix import BINS, FAMILIES, at_once, draw, row_bits, whole
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.exact_matmul import product, project
from ppdp.data.rows import Rows
from ppdp.transformers import RandomProjection

VARIANTS = [
    *({"family": family} for family in FAMILIES),
    {"family": "sparse", "s": 3.0},  # crowded, if there are many components
    {"family": "oporp", "bins": "fixed"},
    {"family": "oporp", "bins": "variable"},
]
each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: "-".join(map(str, variant.values())))
BALL = Domain(n_rows=8, n_features=6, row_norm=1.0, max_missing=0)
MOVED = Distance(moved=3, radius=0.02, total=0.05)


def matrix(variant, k, d, seed=0, **how):
    return dense(draw(n_components=k, n_features=d, seed=seed, **variant, **how))


def dense(A):
    return A.toarray() if issparse(A) else A


def norms(variant, k, d, seed=0):
    return Matrix(n_components=k, n_features=d, seed=seed, **variant).norms


def top(A):
    """The direction that A stretches most."""
    return np.linalg.svd(A)[2][0]


# ---------------------------------------------------------------- the bound


@each_variant
@pytest.mark.parametrize("domain", domains(8, 1, 4, max_missing=0), ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("domain", "distance", keep=3)
def test_no_pair_exceeds_the_map(variant, domain, distance):
    world = World(domain, distance, labels=True, deleted=True)
    chain = Chain.of([RandomProjection(3, seed=1, **variant)], domain, distance)
    reached, _ = attack(world, lambda pair: chain.use(pair, world.free), draws=10, steps=8 if distance.moved else 3)
    assert reached <= ROUNDING
    if distance.moved == 0:
        assert chain.distance == distance


@each_variant
@pytest.mark.parametrize("k", [1, 4, 9])
@pytest.mark.repeated("k")
def test_moved_rows_reach_the_operator_norm_of_the_drawn_matrix(variant, k):
    chain = Chain.of([RandomProjection(k, seed=3, **variant)], BALL, MOVED)
    X = 0.5 * np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))[0][:, :6]
    step = 0.9999999 * MOVED.radius * top(matrix(variant, k, 6, 3))
    Z = X.copy()
    Z[:3] += np.outer([1.0, 1.0, 0.5], step)
    used = shares(by_position(Pair.of(X, Z).mapped(chain.run)), chain.distance)
    assert 0.999 < used["radius"] <= ROUNDING
    assert 0.999 < used["total"] <= ROUNDING


@each_variant
def test_norm_and_entries_are_reached(variant):
    """The longest image is that of the direction stretched most; the largest entry that of a row of the matrix."""
    A = matrix(variant, 4, 6, 5)
    chain = Chain.of([RandomProjection(4, seed=5, **variant)], BALL, MOVED)
    largest = A[np.argmax(np.linalg.norm(A, axis=1))]
    rows = np.zeros((8, 6))
    rows[0], rows[1] = top(A), largest / np.linalg.norm(largest)
    out = Pair.of(rows, rows).mapped(chain.run)
    assert 1 - 1e-8 < np.linalg.norm(out.left.X[0]) / chain.domain.row_norm <= ROUNDING
    assert 1 - 1e-8 < np.abs(out.left.X[1]).max() / chain.domain.entry_bound <= ROUNDING
    assert outgrown(out, chain.domain) <= ROUNDING


@each_variant
def test_a_box_bounds_entries_by_sums_where_that_is_less(variant):
    domain = BALL.but(row_norm=math.sqrt(6), entry_bound=0.5)
    A = matrix(variant, 4, 6, 5)
    chain = Chain.of([RandomProjection(4, seed=5, **variant)], domain, MOVED)
    corner = 0.5 * np.sign(A[np.argmax(np.abs(A).sum(axis=1))])
    out = Pair.of(np.tile(corner, (8, 1)), np.zeros((8, 6))).mapped(chain.run)
    assert 1 - 1e-8 < np.abs(out.left.X).max() / chain.domain.entry_bound <= ROUNDING
    assert outgrown(out, chain.domain) <= ROUNDING


def test_no_random_projection_shortens_every_row():
    """What holds on average need not hold for a given row: of twelve columns in three, a row of norm 1 grows to 2."""
    for variant in VARIANTS:
        assert norms(variant, 3, 12).operator >= 2 - 1e-9
    assert norms({"family": "oporp"}, 3, 12).operator == pytest.approx(2)


# ---------------------------------------------------------------- the matrix


@each_variant
def test_the_matrix_is_what_it_always_was(variant):
    """Whoever verifies a certificate in ten years draws it again."""
    found = matrix(variant, 2, 4, 7)
    assert found == pytest.approx(np.array(FROZEN["-".join(map(str, variant.values()))]), abs=1e-12)
    assert np.array_equal(found, matrix(variant, 2, 4, 7))
    assert not np.array_equal(matrix(variant, 8, 40, 7), matrix(variant, 8, 40, 8))


def test_the_first_release_drew_gaussian_entries_that_are_not_rounded():
    found = matrix({"family": "gaussian"}, 2, 4, 7, rounded=False)
    frozen = [
        [-0.977110351008072, 0.441302060960653, -0.606495714653501, -0.836703828459307],
        [-0.712995877482956, 0.416369181288098, 2.13040147650681, 0.520439335406767],
    ]
    assert found == pytest.approx(np.array(frozen), abs=1e-12)
    assert matrix({"family": "gaussian"}, 2, 4, 7) == pytest.approx(found, abs=2.0**-11)
    before, after = (lookup(f"projection.{name}", "stability") for name in ("random", "drawn"))
    chosen = {"family": "gaussian", "n_components": 2, "seed": 7}
    (old, _), (new, _) = before(BALL, MOVED, **chosen), after(BALL, MOVED, **chosen)
    assert old.row_norm != new.row_norm
    assert old.row_norm == pytest.approx(new.row_norm, rel=1e-3)


FROZEN = {
    "gaussian": [
        [-0.9775390625, 0.44140625, -0.6064453125, -0.8369140625],
        [-0.712890625, 0.416015625, 2.130859375, 0.5205078125],
    ],
    "uniform": [
        [-0.306640625, -0.97265625, -0.6748046875, 0.5517578125],
        [0.7353515625, -0.9150390625, 0.0126953125, -0.787109375],
    ],
    "rademacher": [
        [-0.707106781186547, -0.707106781186547, -0.707106781186547, 0.707106781186547],
        [0.707106781186547, -0.707106781186547, 0.707106781186547, -0.707106781186547],
    ],
    "sparse": [[-1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 1.0, 0.0]],
    "sparse-3.0": [[-1.224744871391589, 0.0, 0.0, 0.0], [0.0, 0.0, 1.224744871391589, 0.0]],
    "oporp": [[0.0, 0.0, 1.0, -1.0], [1.0, -1.0, 0.0, 0.0]],
    "oporp-fixed": [[1.0, 0.0, 0.0, -1.0], [0.0, -1.0, 1.0, 0.0]],
    "oporp-variable": [[0.0, 0.0, 1.0, -1.0], [1.0, -1.0, 0.0, 0.0]],
}


@each_variant
def test_squared_norms_are_kept_on_average(variant):
    drawn = [matrix(variant, 5, 7, seed) for seed in range(1000)]
    mean = np.mean([A.T @ A for A in drawn], axis=0)
    assert np.abs(mean - np.eye(7)).max() < 0.07
    assert abs(np.mean(drawn)) < 0.01


def test_entries_follow_their_laws():
    from scipy.stats import kstest

    k, d = 64, 400
    for family, law in (("gaussian", "norm"), ("uniform", uniform(-math.sqrt(3), 2 * math.sqrt(3)).cdf)):
        assert kstest(matrix({"family": family}, k, d).ravel() * math.sqrt(k), law).pvalue > 1e-3
    assert set(np.abs(matrix({"family": "rademacher"}, k, d)).ravel()) == {1 / math.sqrt(k)}
    for variant, s in (({"family": "sparse"}, 20), ({"family": "sparse", "s": 3.0}, 3)):
        sparse = matrix(variant, k, d)
        assert np.unique(np.abs(sparse)) == pytest.approx([0, math.sqrt(s / k)])
        assert abs((sparse != 0).mean() - 1 / s) < 0.5 / s**1.5


def test_oporp_gives_every_column_to_one_component():
    for bins in BINS:
        for k, d in [(1, 5), (3, 7), (4, 8), (9, 4), (5, 300)]:
            A = matrix({"family": "oporp", "bins": bins}, k, d, seed=k)
            assert (np.count_nonzero(A, axis=0) == 1).all()
            assert set(np.unique(np.abs(A))) <= {0.0, 1.0}
            sizes = np.count_nonzero(A, axis=1)
            if bins == "balanced":
                assert sizes.max() - sizes.min() <= 1
            if bins == "fixed":
                assert sizes.max() <= -(-d // k)
            operator = norms({"family": "oporp", "bins": bins}, k, d, k).operator
            assert operator == pytest.approx(math.sqrt(sizes.max()), rel=1e-8)
        drawn = [matrix({"family": "oporp", "bins": bins}, 4, 4, seed) for seed in range(400)]
        assert np.mean([A != 0 for A in drawn], axis=0) == pytest.approx(np.full((4, 4), 0.25), abs=0.08)


@each_variant
@pytest.mark.parametrize(("k", "d"), [(1, 1), (3, 50), (40, 8)])
@pytest.mark.repeated("k", "d")
def test_the_norm_is_not_below_the_truth(variant, k, d):
    for seed in range(5):
        A = matrix(variant, k, d, seed).astype(np.longdouble)
        x = top(A.astype(np.float64)).astype(np.longdouble)
        found = norms(variant, k, d, seed)
        assert np.sqrt(((A @ x) ** 2).sum() / (x @ x)) <= found.operator
        assert np.sqrt((A**2).sum()) <= found.frobenius
        assert found.operator <= found.frobenius * (1 + 1e-8)


def test_the_norm_of_a_flat_matrix_is_exact():
    assert operator_norm(np.ones((30, 40))) == pytest.approx(math.sqrt(1200), rel=2e-9)
    assert operator_norm(np.ones((30, 40))) >= math.sqrt(1200)


@pytest.mark.parametrize("s", [None, 1e6])
def test_a_matrix_of_zeros_has_a_domain(s):
    seed = next(seed for seed in range(200) if not matrix({"family": "sparse", "s": s}, 1, 6, seed).any())
    out, distance = RandomProjection(1, "sparse", seed, s).stability_map(BALL, MOVED)
    assert out.row_norm > 0
    assert distance.radius < 1e-12
    assert not Matrix("sparse", 1, 6, seed, s).change(l2=1.0).l1


# ---------------------------------------------------------------- bits


@each_variant
@pytest.mark.parametrize("d", [57, 1300])
@pytest.mark.repeated("d")
def test_equal_rows_have_equal_bits_wherever_they_stand(variant, d):
    """In any batch, order and layout, dense or sparse."""
    rng = np.random.default_rng(0)
    stage = RandomProjection(13, **variant).fit(rng.standard_normal((2, d)))
    X = rng.standard_normal((301, d)) * 10.0 ** rng.integers(-6, 6, (301, d)) * (rng.random((301, d)) < 0.5)
    X[7], X[8], X[9] = 0.0, -0.0, 1e-200 * X[10]
    images = stage.transform(X)
    assert not np.signbit(images[7:9]).any()
    for size in (1, 2, 3, 17, 300):
        some = rng.permutation(301)[:size]
        assert stage.transform(X[some]).tobytes() == images[some].tobytes()
        assert stage.transform(csr_array(X[some])).tobytes() == images[some].tobytes()
    assert stage.transform(np.asfortranarray(X)).tobytes() == images.tobytes()
    assert stage.transform(csc_array(X)).tobytes() == images.tobytes()
    turned = csr_array((X[:, ::-1][X[:, ::-1] != 0], *_places(X)), X.shape)
    assert not turned.has_sorted_indices
    assert project(turned, stage.components_).tobytes() == images.tobytes()
    assert product(turned, stage.components_).tobytes() == product(X, stage.components_).tobytes()
    many = np.tile(X[11], (3000, 1))
    assert (stage.transform(many) == images[11]).all()
    assert (stage.transform(csr_array(many)) == images[11]).all()


def _places(X):
    """Indices of what is not 0, the last column first."""
    turned = csr_array(X[:, ::-1])
    return X.shape[1] - 1 - turned.indices, turned.indptr


@pytest.mark.parametrize("variant", [v for v in VARIANTS if v["family"] in ("sparse", "oporp")], ids=str)
def test_a_changed_entry_touches_no_component_that_does_not_sum_it(variant):
    """However much larger than its neighbours it is: signs of all others stay."""
    rng = np.random.default_rng(1)
    X = np.tile(rng.standard_normal((1, 90)) * 10.0 ** rng.integers(-9, 9, 90), (90, 1))
    stage = RandomProjection(20, **variant).fit(X)
    before, A = stage.transform(X), stage.components_.toarray()
    X[np.arange(90), np.arange(90)] += 1e12
    for rows in (X, csr_array(X)):
        assert ((stage.transform(rows) != before) == (A.T != 0)).all()


@pytest.mark.parametrize("largest", [1.0, 0.3, 1e-30, 4096.0])
def test_a_crowded_sparse_matrix_is_met_by_one_product_on_a_public_grid(largest):
    """Components that a change does not touch stay, although the largest entry of the row is another one."""
    rng, crowded = np.random.default_rng(6), {"family": "sparse", "s": 3.0}
    A = draw(n_components=40, n_features=90, seed=0, **crowded)
    assert at_once(A)
    assert not any(at_once(draw(f, 40, 90, 0, s)) for f, s in (("sparse", 5.0), ("oporp", None)))
    X = np.tile(largest * 2.0 ** -rng.uniform(1, 20, 90), (90, 1))
    before = project(X, A, largest)
    X[np.arange(90), np.arange(90)] = largest * rng.choice([-1.0, 1.0, 0.5], 90)
    after = project(X, A, largest)
    assert ((after != before) <= (A.toarray().T != 0)).all()
    assert ((after != before) == (A.toarray().T != 0)).mean() > 0.99
    assert (project(X, A, 0.0) != before).sum() > (after != before).sum()  # on grids of their own all may change
    for rows in (X[::-1], csr_array(X[::-1])):
        assert project(rows, A, largest).tobytes() == after[::-1].tobytes()
    exact = X.astype(np.longdouble) @ A.toarray().astype(np.longdouble).T
    error = np.linalg.norm((after - exact).astype(np.float64), axis=1).max()
    assert error <= norms(crowded, 40, 90).error(np.linalg.norm(X, axis=1).max(), largest)


def test_a_pipeline_meets_a_crowded_matrix_on_the_grid_of_its_bounds():
    """So one changed column costs as many signs as it touches, and transforms give what was released."""
    stage, change = RandomProjection(64, "sparse", s=3.0), Adjacency.change(coordinate=0.5)
    box = Domain(n_rows=5, n_features=9, row_norm=3.0, entry_bound=1.0, max_missing=0)
    _, far = stage.stability_map(box, change.entrance_distance(9))
    A = draw("sparse", 64, 9, 0, 3.0).toarray()
    assert far.moves.columns == np.count_nonzero(A, axis=0).max() < 40
    X = np.random.default_rng(0).uniform(-1, 1, (5, 9))
    assert RandomProjection(64, "sparse", s=3.0).fit(X).entry_ == 0.0
    (way,) = stage.fit_modes(box, change.entrance_distance(9))
    statistics = stage.prepare(Rows.of(X), way, box)
    assert statistics["entry"] == 1.0
    images = stage.map_rows(csr_array(X), statistics)
    assert images.tobytes() == project(X, draw("sparse", 64, 9, 0, 3.0), 1.0).tobytes()


@each_variant
@pytest.mark.parametrize("d", [1, 2, 65, 1000])
@pytest.mark.repeated("d", keep=2)
def test_rounding_is_within_its_charge(variant, d):
    rng = np.random.default_rng(1)
    A = draw(n_components=7, n_features=d, seed=0, **variant)
    X = np.vstack([rng.standard_normal((40, d)), 10.0 ** rng.uniform(-9, 9, (40, d)), np.eye(d)[:1]])
    exact = X.astype(np.longdouble) @ dense(A).astype(np.longdouble).T
    length, entry = np.linalg.norm(X, axis=1), np.abs(X).max(axis=1)
    error = np.linalg.norm((project(X, A) - exact).astype(np.float64), axis=1)
    charge = [norms(variant, 7, d).error(*row) for row in zip(length, entry)]
    assert (error <= charge).all()
    accurate = np.linalg.norm((product(X, A) - exact).astype(np.float64), axis=1)
    assert (accurate <= (2 * d + 16) * 2.0**-53 * norms(variant, 7, d).frobenius * length).all()


@pytest.mark.parametrize("family", ["gaussian", "uniform", "rademacher"])
@pytest.mark.parametrize("d", [3, 200, 1500])
def test_one_product_is_exact(family, d):
    """On rows whose sums are as large as they can be, with random last bits; every integer can be computed apart."""
    A, rng = draw(family, 8, d, 0), np.random.default_rng(4)
    S, unit = whole(A)
    bits = row_bits(S)
    X = np.sign(A)[:, None, :] * (1 - rng.integers(1, 2**20, (8, 20, d)) * 2.0**-40)
    X = X.reshape(-1, d)
    X[:, 0] = np.sign(A[0, 0]) * (1 - 2.0**-53)
    integers = np.rint(np.ldexp(X, bits)).astype(np.int64) @ S.T.astype(np.int64)
    assert 2**51 < np.abs(integers).max() <= 2**53
    assert project(X, A).tobytes() == (integers * (unit * 2.0**-bits)).tobytes()


def test_the_charge_for_rounded_rows_is_not_far_from_what_happens():
    rng = np.random.default_rng(3)
    A = draw("rademacher", 3, 512, 0)
    X = np.where(np.sign(A[0]) > 0, 1.0, -1.0) * (1 - rng.integers(1, 2**9, (200, 512)) * 2.0**-53)
    X[:, 0] = np.sign(A[0, 0])
    exact = X.astype(np.longdouble) @ A.astype(np.longdouble).T
    error = np.abs((project(X, A) - exact).astype(np.float64)).max()
    assert error > 0.05 * norms({"family": "rademacher"}, 3, 512).error(math.sqrt(512), 1.0)


def test_products_of_any_two_matrices():
    rng = np.random.default_rng(2)
    for scale in (1e-90, 1.0, 1e90):
        X = scale * rng.standard_normal((50, 9)) * 10.0 ** rng.integers(-3, 3, (50, 9))
        A = rng.standard_normal((4, 9)) * 10.0 ** rng.integers(-8, 8, (4, 1))
        assert product(X, A) == pytest.approx(X @ A.T, rel=1e-12, abs=1e-14 * scale)
        assert product(X[::-2], A).tobytes() == product(X, A)[::-2].tobytes()
        for rows, columns in ((csr_array(X), A), (X, csr_array(A)), (csr_array(X), csr_array(A))):
            assert product(rows, columns).tobytes() == product(X, A).tobytes()


def test_rows_of_any_size_are_projected():
    for variant in VARIANTS:
        stage = RandomProjection(3, **variant).fit(np.ones((1, 5)))
        X = np.outer([1e-300, 5e-324, 1e300, 1e307], [0.5, -0.25, 0.125, 1.0, 0.75])
        assert stage.transform(X) == pytest.approx(X @ dense(stage.components_).T, rel=1e-9, abs=1e-150)
