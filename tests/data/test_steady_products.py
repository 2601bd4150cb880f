"""Products whose bits know nothing but the row (``docs/theory/rounding.md``, steady products)."""

import numpy as np
import pytest
from effort import rounds

from ppdp.core.rounding import UNIT
from ppdp.data.product import squares_of, steady

KINDS = ["normal", "parallel to A", "of one sign", "of one entry", "tiny", "far apart"]


def rows_and_matrix(kind, n, d, k, rng):
    A = rng.standard_normal((k, d)) * 10.0 ** rng.integers(-9, 9, (k, 1))
    X = rng.standard_normal((n, d))
    if kind == "parallel to A":  # partial sums are as long as they can be
        A = np.abs(A)
        X = A[rng.integers(k, size=n)]
    elif kind == "of one sign":
        X = np.abs(X)
    elif kind == "of one entry":
        X = X * (np.arange(d) == rng.integers(d, size=(n, 1)))
    elif kind == "tiny":
        X = X * 10.0 ** rng.integers(-320, -140, (n, 1))
    elif kind == "far apart":
        X = X * 10.0 ** rng.integers(-12, 12, (n, d))
    return X, A


@pytest.mark.parametrize("fine", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "d", "k"), [(300, 1, 1), (300, 7, 3), (300, 40, 41), (40, 4096, 5)])
def test_no_bit_knows_where_a_row_stands(fine, kind, n, d, k):
    rng = np.random.default_rng(d)
    for _ in range(rounds(10)):
        X, A = rows_and_matrix(kind, n, d, k, rng)
        everywhere = steady(X, A, fine=fine)
        which = rng.permutation(n)[: rng.choice([1, 2, 3, n // 3, n])]
        beside = np.vstack([rng.choice([0.0, 1e150, 1e-310], (rng.integers(1, 4), 1)) * np.ones(d), X[which]])
        found = steady(np.array(beside, order=rng.choice(["C", "F"])), A, fine=fine)[:, -len(which) :]
        assert found.tobytes() == everywhere[:, which].tobytes()
        norms = squares_of(np.ascontiguousarray(X.T))
        assert squares_of(np.ascontiguousarray(X[which].T)).tobytes() == norms[which].tobytes()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "tiny"])
@pytest.mark.parametrize(("n", "d", "k"), [(100, 1, 1), (100, 7, 3), (100, 40, 41), (10, 4096, 5)])
def test_they_err_by_no_more_than_the_page_says(kind, n, d, k):
    rng = np.random.default_rng(d)
    for _ in range(rounds(10)):
        X, A = rows_and_matrix(kind, n, d, k, rng)
        exact = A.astype(np.longdouble) @ X.T.astype(np.longdouble)
        norms, longest = np.linalg.norm(X, axis=1), np.linalg.norm(A)
        fine = np.linalg.norm((steady(X, A, fine=True) - exact).astype(np.float64), axis=0)
        assert (fine <= (d * np.linalg.norm(A, 2) + (1.5 * d + 5) * longest) * UNIT * norms).all()
        coarse = np.linalg.norm((steady(X, A) - exact).astype(np.float64), axis=0)
        assert (coarse <= 2 * np.sqrt(d) * 2.0**-26 * longest * norms).all()
        assert coarse.max() > fine.max() or d == 1


def test_what_is_no_number_stays_none_and_spoils_no_other():
    X, A = np.array([[1.0, 2.0], [np.nan, 1.0], [np.inf, 1.0], [1e200, 1.0]]), np.array([[1.0, 1.0], [0.0, 0.0]])
    with np.errstate(all="ignore"):
        found = steady(X, A)
    assert np.isnan(found[0, 1:]).all()
    assert found[:, 0] == pytest.approx([3.0, 0.0], rel=1e-7)
