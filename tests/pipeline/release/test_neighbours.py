"""The nearest rows are those that comparing with all rows gives, equal ones in their order, with faiss and without."""

import numpy as np
import pytest

from ppdp.pipeline.release import neighbours

FAISS = neighbours.installed_faiss()


@pytest.fixture(params=["numpy", "faiss"], autouse=True)
def engine(request, monkeypatch):
    if request.param == "faiss" and FAISS is None:
        pytest.skip("faiss is not installed")
    monkeypatch.setattr(neighbours, "installed_faiss", lambda: FAISS if request.param == "faiss" else None)


def first(costs, count):
    """By comparing with all rows."""
    places = np.argsort(costs, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(costs, places, axis=1), places


@pytest.mark.parametrize(
    ("n", "size", "count"), [(50, 8, 50), (5000, 13, 20), (9000, 70, 1), (9000, 256, 10), (1, 1, 1)]
)
def test_signs_by_hamming_distance(n, size, count):
    rng = np.random.default_rng(0)
    rows, queries = rng.integers(2, size=(n, size)).astype(bool), rng.integers(2, size=(19, size)).astype(bool)
    all_of_them = (queries[:, None] != rows).sum(axis=2)
    packed = neighbours.pack(queries), neighbours.pack(rows)
    np.testing.assert_array_equal(neighbours.distances(*packed), all_of_them)
    for found, expected in zip(neighbours.smallest_distances(*packed, count), first(all_of_them, count), strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("kinds", [1, 30, 5000])
@pytest.mark.parametrize(("n", "size", "count"), [(40, 3, 40), (5000, 24, 20), (9000, 70, 1)])
@pytest.mark.repeated("kinds")
def test_numbers_by_inner_product(n, size, count, kinds):
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((kinds, size))[rng.integers(kinds, size=n)]
    queries = rng.standard_normal((19, size))
    products, places = first(-np.stack([(rows * query).sum(axis=1) for query in queries]), count)
    found = neighbours.largest_products(queries, rows, count)
    np.testing.assert_array_equal(found[0], -products)
    np.testing.assert_array_equal(found[1], places)


def test_products_that_single_precision_cannot_tell_apart():
    rows = 1.0 + 1e-12 * np.random.default_rng(0).permutation(500)[:, None]
    found = neighbours.largest_products(np.ones((1, 1)), rows, 5)
    np.testing.assert_array_equal(found[1][0], np.argsort(-rows[:, 0])[:5])


def test_bits_are_counted_by_a_table_where_numpy_cannot(monkeypatch):
    words = np.random.default_rng(0).integers(2**64, size=(3, 5), dtype=np.uint64)
    counted = [[int(word).bit_count() for word in row] for row in words]
    np.testing.assert_array_equal(neighbours.ones_by_table(words), counted)
    np.testing.assert_array_equal(neighbours.ones(words), counted)
