"""The Gaussian mechanism's queries: what is asked, what is read from the answer, what it costs."""

import math

import numpy as np
import pandas as pd
import pytest

from ppdp import Domain, make_pipeline
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism
from ppdp.transformers import MinMaxScaler

QUERIES = ["mean", "sum", "count", "covariance", "histogram"]
BOX = Domain(n_rows=400, n_features=2, row_norm=math.sqrt(2), entry_bound=1.0)


def table(n=400):
    rng = np.random.default_rng(0)
    return rng.uniform(-1, 1, (n, 2)) * [1.0, 0.3]


class Silent:
    """Noise that adds nothing, to see what is read from an exact answer."""

    def release(self, value, noise_scale, bound):
        assert np.abs(value).max() <= bound * (1 + 1e-12)
        return np.asarray(value, dtype=float)


def exact(mechanism, rows, domain):
    question = mechanism.query_spec(domain)
    mechanism.read(mechanism.release(rows, question, Silent(), 1.0), domain, question)
    return mechanism


class TestAnswers:
    def test_without_noise_they_are_exact(self):
        X = table()
        rows = Rows.of(X)
        assert np.allclose(exact(GaussianMechanism(), rows, BOX).mean_, X.mean(axis=0))
        assert np.allclose(exact(GaussianMechanism("sum"), rows, BOX).sum_, X.sum(axis=0))
        assert exact(GaussianMechanism("count"), rows, BOX).count_ == 400
        found = exact(GaussianMechanism("covariance"), rows, BOX)
        assert np.allclose(found.covariance_, np.cov(X.T, bias=True))
        assert np.allclose(found.mean_, X.mean(axis=0))
        found = exact(GaussianMechanism("histogram", bins=4), rows, BOX)
        for column in range(2):
            counts, edges = np.histogram(X[:, column], bins=4, range=(-1, 1))
            np.testing.assert_array_equal(found.histogram_[column], counts)
            np.testing.assert_allclose(found.edges_[column], edges)

    def test_of_rows_that_are_present(self):
        X = table()
        weight = np.where(np.arange(400) % 4 == 0, 0.0, 1.0)
        kept, rows = X[weight > 0], Rows(X, None, weight).settled()
        assert np.allclose(exact(GaussianMechanism(), rows, BOX).mean_, kept.mean(axis=0))
        found = exact(GaussianMechanism("covariance"), rows, BOX)
        assert np.allclose(found.covariance_, np.cov(kept.T, bias=True))
        assert found.present_ == pytest.approx(0.75)
        assert exact(GaussianMechanism("count"), rows, BOX).count_ == 300
        histogram = exact(GaussianMechanism("histogram", bins={0: 3}), rows, BOX).histogram_
        np.testing.assert_array_equal(histogram[0], np.histogram(kept[:, 0], 3, (-1, 1))[0])

    def test_of_rows_of_part_weight(self):
        weight = np.full(400, 0.25)
        rows = Rows(table(), None, weight)
        assert exact(GaussianMechanism("count"), rows, BOX).count_ == pytest.approx(100, abs=1e-9)
        cells = exact(GaussianMechanism("histogram", bins={1: 2}), rows, BOX).histogram_[0]
        assert cells.sum() == pytest.approx(100, abs=1e-9)

    def test_cells_hold_their_lower_edge_and_the_outer_ones_what_lies_beyond(self):
        domain = BOX.but(n_rows=6, n_features=1)
        rows = Rows.of(np.array([[-0.9], [0.0], [0.1], [0.5], [0.5], [0.9]]))
        found = exact(GaussianMechanism("histogram", bins=[0.0, 0.1, 0.5, 0.6]), rows, domain)
        np.testing.assert_array_equal(found.histogram_[0], [2, 1, 3])

    @pytest.mark.parametrize("query", QUERIES)
    def test_they_are_the_nearest_that_rows_could_have(self, query):
        """However much noise there is."""
        for seed in range(5):
            found = GaussianMechanism(query, 1e4, random_state=seed).fit(table())
            if query in ("mean", "covariance"):
                assert np.linalg.norm(found.mean_) <= math.sqrt(2) * (1 + 1e-9)
            if query == "covariance":
                values = np.linalg.eigvalsh(found.covariance_)
                assert values.min() >= -1e-9
                assert values.max() <= 2 + 1e-9
            if query == "sum":
                assert np.linalg.norm(found.sum_) <= 400 * math.sqrt(2) * (1 + 1e-9)
            if query == "count":
                assert 0 <= found.count_ <= 400
            if query == "histogram":
                assert all(cells.min() >= 0 and cells.max() <= 400 for cells in found.histogram_)


NO_NUMBERS = [0, -1, 2.5, "ten", None, True, [], [1], [1, 1], [2, 1], [0, math.inf], [0, math.nan], [[0, 1], [0, 1]]]
NO_COLUMNS = [{}, {2: 3}, {-1: 3}, {"a": 3}, {True: 3}, {0.0: 3}, {0: 0}, {0: [1]}]
NO_GRIDS = [*NO_NUMBERS, *NO_COLUMNS]


class TestGrids:
    @pytest.mark.parametrize(("low", "high", "step"), [(0, 120, 1), (0.1, 30, 0.1), (-7, 11, 0.3)])
    def test_a_raw_value_that_is_an_edge_is_in_the_cell_above_it(self, low, high, step):
        """However value and edge are rounded where they are scaled."""
        edges = np.arange(low, high, step)[1:60]
        X = np.repeat(edges, 100)[:, None]
        grid = GaussianMechanism("histogram", bins=[low, *edges, high])
        pipe = make_pipeline(MinMaxScaler(ranges=(low, high)), grid, epsilon=200.0, delta=1e-6, diagnostics=None).fit(X)
        np.testing.assert_allclose(pipe[-1].histogram_[0], [0] + [100] * len(edges), atol=20)

    def test_columns_by_name_and_by_position(self):
        frame = pd.DataFrame(table(), columns=["a", "b"])
        for bins in ({"b": [-1, 0, 1]}, {1: [-1, 0, 1]}, {1: 2}):
            pipe = make_pipeline(
                MinMaxScaler(ranges=(-1, 1), feature_range=(-1, 1)), GaussianMechanism("histogram", bins=bins)
            )
            found = pipe.set_params(epsilon=20.0, delta=1e-4).fit(frame).named_steps["gaussianmechanism"]
            assert [len(cells) for cells in found.histogram_] == [2]
            np.testing.assert_allclose(found.edges_[0], [-1, 0, 1], atol=1e-6)

    def test_several_columns_are_in_order(self):
        question = GaussianMechanism("histogram", bins={1: 2, 0: [0.0, 0.5, 1.0, 2.0]}).query_spec(BOX)
        assert dict(question.parameters) == {
            "columns": [0, 1],
            "sizes": [4, 3],
            "edges": [0.0, 0.5, 1.0, 2.0, -1.0, 0.0, 1.0],
        }
        assert question.size == 5

    @pytest.mark.parametrize("bins", NO_GRIDS, ids=repr)
    @pytest.mark.parametrize("kind", [GaussianMechanism, LaplaceMechanism])
    @pytest.mark.repeated("kind")
    def test_impossible_ones_cost_nothing(self, kind, bins):
        with pytest.raises(InvalidParameter, match="bins") as caught:
            kind("histogram", bins=bins).query_spec(BOX)
        assert caught.value.stage == kind.__name__

    def test_a_number_of_cells_needs_a_bound(self):
        with pytest.raises(MissingBound, match="bins"):
            GaussianMechanism("histogram").query_spec(Domain(n_rows=5, n_features=1))
        assert GaussianMechanism("histogram", bins=[0, 1]).query_spec(Domain(n_rows=5, n_features=1)).size == 1
