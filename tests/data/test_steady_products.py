"""Products whose bits know nothing but the row (``docs/theory/rounding.md``, steady products)."""

import numpy as np
import pytest
from effort import rounds

from ppdp.core.rounding import UNIT
from ppdp.data.exact_matmul import on_grid, squares_of, steady

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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "d", "k"), [(300, 1, 1), (300, 7, 3), (300, 40, 41), (40, 4096, 5)])
def test_no_bit_knows_where_a_row_stands(kind, n, d, k):
    rng = np.random.default_rng(d)
    for _ in range(rounds(6)):
        X, A = rows_and_matrix(kind, n, d, k, rng)
        everywhere = steady(X, A)
        which = rng.permutation(n)[: rng.choice([1, 2, 3, n // 3, n])]
        beside = np.vstack([rng.choice([0.0, 1e150, 1e-310], (rng.integers(1, 4), 1)) * np.ones(d), X[which]])
        found = steady(np.array(beside, order=rng.choice(["C", "F"])), A)[:, -len(which) :]
        assert found.tobytes() == everywhere[:, which].tobytes()
        norms = squares_of(np.ascontiguousarray(X.T))
        assert squares_of(np.ascontiguousarray(X[which].T)).tobytes() == norms[which].tobytes()


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "tiny"])
@pytest.mark.parametrize(("n", "d", "k"), [(100, 1, 1), (100, 7, 3), (100, 40, 41), (10, 4096, 5)])
def test_they_err_by_no_more_than_the_page_says(kind, n, d, k):
    rng = np.random.default_rng(d)
    for _ in range(rounds(6)):
        X, A = rows_and_matrix(kind, n, d, k, rng)
        exact = A.astype(np.longdouble) @ X.T.astype(np.longdouble)
        norms, longest = np.linalg.norm(X, axis=1), np.linalg.norm(A)
        error = np.linalg.norm((steady(X, A) - exact).astype(np.float64), axis=0)
        assert (error <= (d * np.linalg.norm(A, 2) + (1.5 * d + 5) * longest) * UNIT * norms).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("n", "d"), [(300, 1), (300, 7), (300, 40), (40, 4096)])
def test_products_of_whole_numbers_are_exact_in_any_order(kind, n, d):
    rng = np.random.default_rng(d)
    X, A = rows_and_matrix(kind, n, d, 3, rng)
    bounds = [float(np.linalg.norm(own, axis=1).max()) for own in (X, A)]
    (rows, unit), (coef, _) = (on_grid(own, bound) for own, bound in zip((X, A), bounds))
    squares = np.einsum("ij,ij->i", rows, rows)
    assert max(squares.max(), np.einsum("ij,ij->i", coef, coef).max()) <= 2.0**52
    for _ in range(rounds(6)):
        order, which = rng.permutation(d), rng.permutation(n)[: rng.choice([1, 2, n // 3])]
        part = np.array(rows[which][:, order], order=rng.choice(["C", "F"]))
        assert ((part @ coef[:, order].T) == (coef @ rows.T).T[which]).all()
        assert (np.einsum("ij,ij->i", part, part) == squares[which]).all()
    assert np.abs(rows * unit - X).max() <= 2.0**-26 * max(bounds[0], 1e-140)


def test_what_is_no_number_stays_none_and_spoils_no_other():
    X, A = np.array([[1.0, 2.0], [np.nan, 1.0], [np.inf, 1.0], [1e200, 1.0]]), np.array([[1.0, 1.0], [0.0, 0.0]])
    with np.errstate(all="ignore"):
        found = steady(X, A)
    assert np.isnan(found[0, 1:]).all()
    assert found[:, 0] == pytest.approx([3.0, 0.0], rel=1e-7)
