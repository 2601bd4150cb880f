"""Rows released in their places: what leaves, what it is good for, and what it costs."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kstest

from ppdp import Adjacency, Distance, Domain, Pipeline
from ppdp.data.rows import Rows
from ppdp.exceptions import MissingBound
from ppdp.mechanisms import GaussianMechanism
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import Deduplicator, LSHDeduplicator, NormClipper, RandomProjection

ONE = Adjacency.replace().distance

BALL = Domain(n_rows=2000, n_features=3, row_norm=1.0)


def people(n=2000, d=3):
    X = np.random.default_rng(0).normal(size=(n, d))
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))


def released(rows, scale=0.5, seed=0):
    mechanism = GaussianMechanism("rows")
    question = mechanism.query_spec(BALL)
    mechanism.read(mechanism.release(rows, question, Noise(seed), scale), BALL, question)
    return mechanism.rows_


class TestWhatLeaves:
    def test_every_row_in_its_place_with_noise_of_its_own(self):
        X = people()
        noise = (released(Rows.of(X)) - X).ravel() / 0.5
        assert kstest(noise, "norm").pvalue > 1e-3
        assert abs(np.corrcoef(noise[::3], noise[1::3])[0, 1]) < 0.1

    def test_a_deleted_row_is_noise_alone_and_the_shape_never_tells(self):
        X, weight = people(), np.tile([0.0, 0.25, 1.0, 1.0], 500)
        rows = Rows(X, None, weight).settled()
        noisy, full = released(rows), released(Rows.of(X))
        assert noisy.shape == full.shape == (2000, 3)
        np.testing.assert_allclose(noisy - full, (weight[:, None] - 1) * X, atol=1e-9)

    def test_rows_are_not_clipped_so_averages_have_no_bias(self):
        X = people()
        found = np.mean([released(Rows.of(X), 5.0, seed).mean(axis=0) for seed in range(200)], axis=0)
        np.testing.assert_allclose(found, X.mean(axis=0), atol=5 * 5.0 / math.sqrt(200 * 2000))
        assert np.abs(released(Rows.of(X), 5.0)).max() > 10

    def test_alone(self):
        rows = GaussianMechanism("rows", 0.1, random_state=0).fit(people()).rows_
        np.testing.assert_allclose(rows, people(), atol=0.6)
        with pytest.raises(MissingBound):
            GaussianMechanism("rows").privacy_map(Domain(n_rows=10, n_features=2), ONE)


class TestWhatItCosts:
    def test_one_replaced_row_costs_a_diameter_whatever_the_number_of_rows(self):
        for n in (10, 10**6):
            loss = GaussianMechanism("rows", 2.0).privacy_map(BALL.but(n_rows=n), ONE)
            assert loss.mu == pytest.approx(1.0, rel=1e-5)

    def test_rows_that_match_in_another_order_cost_more(self):
        one = GaussianMechanism("rows", 1.0).privacy_map(BALL, ONE)
        other = GaussianMechanism("rows", 1.0).privacy_map(BALL, Distance(replaced=1, reordered=4))
        assert other.mu == pytest.approx(one.mu * math.sqrt(2), rel=1e-6)


class TestInAPipeline:
    @pytest.mark.parametrize("before", [Deduplicator(), LSHDeduplicator(bands=2, mode="simhash")])
    def test_projected_rows_have_a_certificate_and_leave(self, before):
        X = pd.DataFrame(people(d=20))
        steps = [("clip", NormClipper(1.0)), ("dedup", before), ("sketch", RandomProjection(4))]
        pipe = Pipeline([*steps, ("rows", GaussianMechanism("rows"))], epsilon=8.0, delta=1e-5).fit(X)
        assert pipe.certificate_.verify()
        assert pipe[-1].rows_.shape == (2000, 4)

    def test_averages_over_many_rows_come_close(self):
        """Squared distance of the means of two groups of 1000 rows, less what the noise adds to it."""
        X = people(d=8) * 0.3
        X[:1000, 0] += 0.5
        pipe = Pipeline(
            [("clip", NormClipper(1.0)), ("rows", GaussianMechanism("rows"))], epsilon=8.0, delta=1e-5, random_state=0
        ).fit(X)
        rows, noise = pipe[-1].rows_, pipe[-1].noise_scale
        assert noise > 1  # each row alone says nothing
        X = X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
        true = np.linalg.norm(X[:1000].mean(axis=0) - X[1000:].mean(axis=0)) ** 2
        found = np.linalg.norm(rows[:1000].mean(axis=0) - rows[1000:].mean(axis=0)) ** 2 - 8 * 2 * noise**2 / 1000
        assert found == pytest.approx(true, rel=0.3)
