"""A statistic that is a sum has the same bits for any order and any partition of the rows, however they come."""

import numpy as np
import pyarrow as pa
import pytest

from ppdp.core.rounding import COARSE, FINER, MOST_ROWS, coarse_error, product_error, slice_bits
from ppdp.data.frames import readable
from ppdp.data.parallel import PIECE
from ppdp.data.rows import Rows
from ppdp.data.summary import CARRY, CoarseMoment, ColumnSums, Counts, SecondMoment, extremes, fold, second_moment

WIDTHS = [1, 3, 20, 63, 70]
LARGE = 6.0


def rows_of(n, d, seed=0, gaps=True):
    """Rows of all sizes, some deleted, some of broken weight, some with gaps."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.integers(-12, 1, (n, 1))
    X[rng.random((n, d)) < (0.01 if gaps else 0)] = np.nan
    weight = rng.choice([0.0, 1.0, 0.3, 1 / 3], n, p=[0.1, 0.7, 0.1, 0.1])
    X[weight == 0] = 0.0
    return Rows(np.clip(X, -LARGE, LARGE), None, weight)


def summaries(n, d):
    """Everything that can be folded."""
    seen = (lambda X: (~np.isnan(X)).astype(np.float64), 1.0)
    return {
        "sums": ColumnSums(n, d, [(None, LARGE), (np.square, LARGE**2), seen]),
        "moment": SecondMoment(d, LARGE),
        "coarse moment": CoarseMoment(d, LARGE),
        "counts": Counts(1, lambda block: block.incomplete.sum()),
    }


def parted(rows, rng):
    """The rows in another order, in blocks of any size, also empty ones."""
    order = rng.permutation(rows.n)
    ends = np.sort(rng.integers(0, rows.n + 1, rng.integers(1, 9)))
    return [Rows(rows.X[part], None, rows.weight[part]) for part in np.split(order, ends) if part.size]


@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("name", summaries(1, 1))
@pytest.mark.repeated("d", keep=2)
def test_no_order_and_no_partition_shows_in_a_bit(name, d):
    rng = np.random.default_rng(d)
    for n in (1, 2, 700, 5000):
        rows, summary = rows_of(n, d, seed=n), summaries(n, d)[name]
        whole = np.asarray(fold(summary, rows)).tobytes()
        for _ in range(4):
            assert np.asarray(fold(summary, parted(rows, rng))).tobytes() == whole


@pytest.mark.parametrize("name", summaries(1, 1))
def test_merging_is_associative_commutes_and_has_a_zero(name):
    rows = rows_of(3000, 5)
    summary = summaries(rows.n, 5)[name]

    def total(part):
        return summary.add(summary.zero(), Rows(rows.X[part], None, rows.weight[part]))

    a, b, c = (total(slice(start, start + 1000)) for start in (0, 1000, 2000))
    assert same(summary.merge(summary.merge(a, b), c), summary.merge(a, summary.merge(b, c)))
    assert same(summary.merge(a, b), summary.merge(b, a))
    assert same(summary.merge(a, summary.zero()), a)
    assert same(summary.merge(a, b), total(slice(0, 2000)))


def same(one, other):
    return np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


def test_arrays_and_record_batches_are_one():
    """Also where several threads share an array."""
    rows = rows_of(2 * PIECE + 77, 4)
    rows = Rows(rows.X, None, np.ones(rows.n))
    table = pa.table({str(i): column for i, column in enumerate(rows.X.T)})
    for summary in summaries(rows.n, 4).values():
        batches = (Rows.of(readable(batch)) for batch in table.to_batches(max_chunksize=9999))
        assert np.array_equal(fold(summary, batches), fold(summary, rows), equal_nan=True)


@pytest.mark.parametrize("d", [*WIDTHS, 1000])
@pytest.mark.parametrize("bound", [1e-90, 0.7, 1.0, 1e90])
@pytest.mark.repeated("bound")
def test_a_second_moment_is_as_exact_as_is_charged(d, bound):
    rows = rows_of(300 if d < 1000 else 30, d, gaps=False)
    rows = Rows(rows.X / LARGE * bound, None, rows.weight)
    scaled = (rows.X / bound).astype(np.longdouble)
    exact = np.einsum("i,ij,ik->jk", rows.weight, scaled, scaled, optimize=True)
    found = second_moment(rows, bound) / bound**2
    assert np.linalg.norm((found - exact).astype(float)) <= product_error(rows.n, np.sqrt(d)) / 100
    assert np.array_equal(found, found.T)


@pytest.mark.parametrize("d", [1, 4, 70])
@pytest.mark.parametrize("bound", [2.0**-299, 1.0, 2.0**299])
@pytest.mark.repeated("bound")
def test_coarse_products_are_off_by_what_a_row_is_charged_and_a_row_comes_close(d, bound):
    rows = rows_of(300, d, gaps=False)
    rows = Rows(rows.X / LARGE * bound, None, rows.weight)
    off = (second_moment(rows, bound, coarse=True) - second_moment(rows, bound)) / bound**2
    assert np.linalg.norm(off) <= rows.n * coarse_error(d, np.sqrt(d), 1.0)
    assert np.array_equal(off, off.T)
    step = 2.0 ** (1 - COARSE)  # in units of the bound; as long as can be, for a power of two
    worst = (1 - step) + step * 2.0 ** -(FINER + 2) * 1.01  # off a fine step by half of one, and as large as can be
    row = Rows(np.full((1, d), worst * bound), None, np.ones(1))
    off = second_moment(row, bound, coarse=True) / bound**2 - worst**2
    assert 0.9 < np.linalg.norm(off) / coarse_error(d, np.sqrt(d), 1.0) <= 1
    half = Rows(np.full((1, d), 0.5 * step * bound), None, np.ones(1))  # all of it is left out
    assert not second_moment(half, bound, coarse=True).any()


@pytest.mark.parametrize("coarse", [False, True])
def test_the_largest_rows_do_not_overflow(coarse):
    n = 2**20
    rows = Rows(np.ones((n, 1)), None, np.ones(n))
    assert second_moment(rows, 1.0, coarse=coarse) == n
    assert second_moment(rows, 1 / (1 + 1e-9), coarse=coarse) == n


@pytest.mark.parametrize("name", summaries(1, 1))
def test_totals_of_as_many_rows_as_there_may_be_are_exact(name):
    """A block is merged with its own total until it stands for 2^40 rows; the entries are as large as can be."""
    d = 3
    summary = summaries(MOST_ROWS, d)[name]
    rows = rows_of(PIECE, d, gaps=name == "counts")
    rows.X[:: PIECE // 2] = LARGE
    largest = Rows(np.full((PIECE, d), LARGE), None, np.ones(PIECE))
    for block in (rows, largest):
        once = total = summary.add(summary.zero(), block)
        for _ in range(25):
            total = summary.merge(total, total.copy())
        assert np.array_equal(whole_numbers(name, total), 2**25 * whole_numbers(name, once))
        assert np.abs(total).max() < 2**62
        expected = np.asarray(summary.finish(once), dtype=np.float64) * 2**25
        np.testing.assert_allclose(summary.finish(total), expected, rtol=1e-15, atol=0)


def whole_numbers(name, total):
    """Totals without limit."""
    if "moment" in name:
        return total[0].astype(object) * 2**CARRY + total[1].astype(object)
    return total.astype(object)


def test_extremes_of_several_pieces_tell_of_gaps():
    X = np.zeros((2 * PIECE + 1, 2))
    X[0, 0], X[-1, 1] = -3.0, 5.0
    assert extremes(X) == (-3.0, 5.0)
    X[PIECE, 0] = np.nan
    assert np.isnan(extremes(X)).all()


@pytest.mark.parametrize("coarse", [False, True])
def test_rows_with_gaps_and_deleted_rows_are_zeros(coarse):
    X = np.array([[1.0, 2.0], [np.nan, 5.0], [3.0, 4.0]])
    moment = second_moment(Rows(X, None, np.array([1.0, 1.0, 0.0])), 8.0, coarse=coarse)
    assert moment.tolist() == [[1.0, 2.0], [2.0, 4.0]]


def test_products_of_slices_fit():
    for d in [1, 62, 63, 993, 994, 15906, 10**5]:
        assert np.sqrt(1.03 * d) * 4.0 ** -slice_bits(d) <= 2.0**-41
        assert 4 ** slice_bits(d) * 2 ** (53 - 2 * slice_bits(d)) == 2**53
