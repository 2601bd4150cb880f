"""What a small change of one row can do to its image, against every change that is extreme, for all families."""

import math
from itertools import combinations, permutations
from itertools import product as tuples

import numpy as np
import pytest
from scipy.sparse import issparse

from ppdp.bounds.projection import Matrix
from ppdp.exceptions import CertificateError

VARIANTS = [
    *({"family": family} for family in ("gaussian", "uniform", "rademacher", "sparse")),
    {"family": "sparse", "s": 1.5},
    *({"family": "oporp", "bins": bins} for bins in ("balanced", "fixed", "variable")),
]
each_variant = pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: "-".join(map(str, variant.values())))
K, D = 4, 7
LIMITS = (0.5, 2.0, 0.0, 1.0, 1.0, 0.125, 3.0)
SAFE = 1 + 2e-8


def drawn(variant, k=K, d=D, seed=2):
    matrix = Matrix(n_components=k, n_features=d, seed=seed, **variant)
    A = matrix.entries
    return matrix, A.toarray() if issparse(A) else A


def used(changes, A, found):
    """Shares of the bounds that a set of changes reaches."""
    images = changes @ A.T
    reached = {
        "l1": np.abs(images).sum(axis=1).max() / found.l1,
        "l2": np.linalg.norm(images, axis=1).max() / found.l2,
        "components": (np.abs(images).max(axis=0) / np.maximum(found.components, 1e-300)),
        "touched": (images != 0).sum(axis=1).max() / found.touched,
    }
    assert all(np.max(share) <= 1 for share in reached.values())
    return reached


def signed_subsets(count, limits=(1.0,) * D):
    """All extreme changes of up to so many entries."""
    for columns in combinations(range(len(limits)), count):
        for signs in tuples((-1.0, 1.0), repeat=count):
            change = np.zeros(len(limits))
            change[list(columns)] = signs
            yield change * limits


@each_variant
@pytest.mark.parametrize("count", [1, 2, 3, D])
@pytest.mark.repeated("count", keep=2)
def test_changes_of_some_entries(variant, count):
    matrix, A = drawn(variant)
    reached = used(0.25 * np.array(list(signed_subsets(count))), A, matrix.change(coordinate=0.25, count=count))
    attained = np.abs(A).max(axis=1) > 0
    assert (reached["components"][attained] > 1 / SAFE).all()
    assert min(reached["l1"], reached["l2"]) > (1 / SAFE if count == 1 else 0.75)
    assert reached["touched"] >= (1 if count == 1 else 0.66)


@each_variant
@pytest.mark.parametrize("count", [1, 3])
def test_changes_whose_limits_differ_by_column(variant, count):
    matrix, A = drawn(variant)
    changes = np.array(list(signed_subsets(count, np.array(LIMITS))))
    reached = used(changes, A, matrix.change(coordinate=LIMITS, count=count))
    assert (reached["components"][np.abs(A * LIMITS).max(axis=1) > 0] > 1 / SAFE).all()
    assert min(reached["l1"], reached["l2"]) > (1 / SAFE if count == 1 else 0.75)


@each_variant
def test_changes_that_are_bounded_in_all_columns_together(variant):
    matrix, A = drawn(variant)
    found = matrix.change(l1=0.5)
    rng = np.random.default_rng(0)
    random = rng.laplace(size=(500, D))
    random *= 0.5 / np.abs(random).sum(axis=1, keepdims=True)
    reached = used(np.vstack([0.5 * np.eye(D), 0.499999 * random]), A, found)
    attained = np.abs(A).max(axis=1) > 0
    assert min(reached["l1"], reached["l2"], reached["components"][attained].min()) > 1 / SAFE
    assert found.touched == attained.sum()


@each_variant
@pytest.mark.parametrize("most", [0.75, 2.5])
def test_changes_that_are_bounded_in_all_columns_together_and_in_each(variant, most):
    """Extreme are changes that use up the limits of some columns, one after the other, and what is left in the last."""
    matrix, A = drawn(variant)
    orders = np.array(list(permutations(range(D), 3)))
    limits = np.array(LIMITS)[orders]
    sizes = np.diff(np.minimum(np.cumsum(limits, axis=1), most), axis=1, prepend=0.0)
    signs = np.array(list(tuples((-1.0, 1.0), repeat=3)))
    changes = np.zeros((len(orders), len(signs), D))
    np.put_along_axis(changes, orders[:, None, :], sizes[:, None, :] * signs, axis=2)
    reached = used(changes.reshape(-1, D), A, matrix.change(coordinate=LIMITS, l1=most))
    touched = np.abs(A * LIMITS).max(axis=1) > 0
    assert min(reached["l1"], reached["l2"], reached["components"][touched].min()) > 0.7


@each_variant
def test_changes_of_bounded_length(variant):
    """A row can be moved along A'σ for any signs σ, along rows of A, and along its first singular vector."""
    matrix, A = drawn(variant)
    found = matrix.change(l2=0.5)
    along = np.vstack([np.array(list(tuples((-1.0, 1.0), repeat=K))) @ A, A, np.linalg.svd(A)[2][:1]])
    along = along[np.linalg.norm(along, axis=1) > 0]
    along *= 0.5 / np.linalg.norm(along, axis=1, keepdims=True)
    reached = used(along, A, found)
    assert min(reached["l2"], reached["components"][np.abs(A).max(axis=1) > 0].min()) > 1 / SAFE
    assert reached["l1"] > (1 / SAFE if variant["family"] == "oporp" else 0.8)
    assert found.touched == (np.abs(A).max(axis=1) > 0).sum()


def furthest(G, limits, length):
    """Of all changes within limits and a length, those with the largest product with every row of G."""
    low, high = np.full((len(G), 1), 1e-12), np.full((len(G), 1), 1e12)
    for _ in range(60):  # then low and high are neighbouring floats, or nearly
        middle = np.sqrt(low * high)
        changes = np.sign(G) * np.minimum(limits, np.abs(G) / middle)
        long = np.linalg.norm(changes, axis=1, keepdims=True) > length
        low, high = np.where(long, middle, low), np.where(long, high, middle)
    return np.sign(G) * np.minimum(limits, np.abs(G) / high)


@pytest.mark.parametrize("family", ["gaussian", "uniform", "rademacher"])
@pytest.mark.parametrize("length", [0.7, 1.5, 2.5])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.repeated("seed", "length", keep=2)
def test_changes_of_bounded_length_with_limits(family, length, seed):
    """Climbs from many directions, to the longest image and to the one with the largest sum."""
    matrix, A = drawn({"family": family}, seed=seed)
    limits, starts = np.array(LIMITS), np.random.default_rng(0).standard_normal((100, D))
    changes = [furthest(A, limits, length)]
    for gradient in (np.sign, lambda image: image):
        climbers = furthest(starts, limits, length)
        for _ in range(40):
            climbers = furthest(gradient(climbers @ A.T) @ A, limits, length)
        changes.append(climbers)
    found = matrix.change(coordinate=LIMITS, l2=length)
    reached = used(np.vstack(changes), A, found)
    assert reached["components"].min() > 1 - 1e-6
    assert reached["l2"] > 0.95
    assert reached["l1"] > 0.8


@each_variant
def test_several_bounds_at_once(variant):
    """Every change within all of them is within what follows from all, which is no more than what follows from each."""
    matrix, A = drawn(variant)
    every = {"coordinate": 0.5, "count": 3, "l1": 0.9, "l2": 0.7}
    found, rng = matrix.change(**every), np.random.default_rng(0)
    changes = np.array(list(signed_subsets(3))) * rng.random((280, 1))
    changes *= np.minimum(0.5, np.minimum(0.9 / np.abs(changes).sum(axis=1), 0.7 / np.linalg.norm(changes, axis=1)))[
        :, None
    ]
    used(np.clip(changes, -0.5, 0.5), A, found)
    for one in ({"coordinate": 0.5, "count": 3}, {"l1": 0.9}, {"l2": 0.7}):
        alone = matrix.change(**one)
        assert found.l1 <= alone.l1 * SAFE
        assert found.l2 <= alone.l2 * SAFE
        assert (found.components <= alone.components * SAFE).all()
        assert found.touched <= alone.touched


@each_variant
def test_wide_matrices_against_random_search(variant):
    matrix, A = drawn(variant, 16, 120)
    rng = np.random.default_rng(1)
    for count in (1, 2, 5, 40):
        changes = np.zeros((400, 120))
        for change in changes:
            change[rng.choice(120, count, replace=False)] = rng.choice((-1.0, 1.0), count)
        used(changes, A, matrix.change(coordinate=1.0, count=count))
    used(rng.standard_normal((500, 120)) / 16, A, matrix.change(l2=1.0))


def test_what_the_page_says_of_oporp_and_signs():
    matrix, _ = drawn({"family": "oporp"}, 256, 784)
    one, all_l1, length = matrix.change(coordinate=1.0, count=1), matrix.change(l1=1.0), matrix.change(l2=1.0)
    assert (one.l1, one.l2, all_l1.l1, all_l1.l2) == pytest.approx((1, 1, 1, 1), rel=2e-8)
    assert (one.touched, all_l1.touched) == (1, 256)
    assert (length.l1, length.l2) == pytest.approx((28, 2), rel=2e-8)
    six = matrix.change(coordinate=1.0, count=6)  # at most four of them in one component
    assert (six.l1, six.l2, six.touched) == pytest.approx((6, math.sqrt(24), 6), rel=2e-8)
    signs = drawn({"family": "rademacher"}, 256, 784)[0].change(coordinate=1.0, count=1)
    assert (signs.l1, signs.l2, signs.components.max()) == pytest.approx((16, 1, 1 / 16), rel=2e-8)


def test_pairs_of_columns_are_nearly_orthogonal_and_count_as_such():
    """Four columns of a Gaussian matrix: 1.6 times less than the sum of their norms."""
    matrix, A = drawn({"family": "gaussian"}, 256, 784)
    norms = np.sort(np.linalg.norm(A, axis=0))[-4:].sum()
    assert matrix.change(coordinate=1.0, count=4).l2 < norms / 1.5


@pytest.mark.parametrize("bounds", [{}, {"coordinate": -1.0}, {"l1": math.nan}, {"coordinate": 1.0, "count": -1}])
def test_changes_without_a_bound_are_refused(bounds):
    with pytest.raises(CertificateError):
        drawn({"family": "oporp"})[0].change(**bounds)
