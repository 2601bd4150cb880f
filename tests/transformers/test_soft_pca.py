"""SoftPCA as people use it: the map, errors, and inside a pipeline with a certificate that assumes nothing."""

import numpy as np
import pytest

from ppdp import Adjacency, Domain, make_pipeline
from ppdp.data.statistics import Moments
from ppdp.transformers import NormClipper, SoftPCA

DOMAIN = Domain(n_rows=1000, n_features=4, row_norm=2.0, max_missing=0)


def rows(n=300, d=4):
    return np.random.default_rng(0).standard_normal((n, d)) * np.linspace(2, 0.1, d)


def fit_modes(stage, domain=DOMAIN):
    return {way.name: way for way in stage.fit_modes(domain, Adjacency.replace().distance)}


def test_directions_shrink_by_their_eigenvalue_over_itself_plus_the_ridge():
    X = rows()
    fitted = SoftPCA(0.01).fit(X)
    ridge = 0.01 * 4 * np.abs(X).max() ** 2  # alone, a row is at most √d times as long as the largest entry
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    assert fitted.transform(X) @ vectors == pytest.approx(X @ vectors * values / (values + ridge))


def test_it_is_a_gentle_projection():
    """A small ridge leaves the long direction alone and almost removes the short one."""
    X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 0.01], [0.0, -0.01]])
    out = SoftPCA(1e-3).fit_transform(X)
    assert out[0] == pytest.approx([3.0, 0.0], rel=0.01)
    assert abs(out[2, 1]) < 0.005 * 0.01


def test_nothing_is_assumed_and_the_output_is_bounded():
    exact, noisy = fit_modes(SoftPCA(0.25))["exact"], fit_modes(SoftPCA(0.25))["noisy"]
    assert exact.conditions == noisy.conditions == ()
    assert exact.domain == noisy.domain
    assert exact.domain.row_norm == pytest.approx(2.0 / 1.25)
    assert exact.parameters == {"ridge": 1.0}
    assert noisy.distance.one_sided == 1
    assert noisy.distance.radius < 1e-12  # rounding


def test_a_noisy_moment_gives_a_map_within_the_domain():
    wild = np.diag([100.0, -5.0, 0.5, 0.0])
    way = fit_modes(SoftPCA(0.25))["noisy"]
    shrinkage = SoftPCA(0.25).read(Moments.of_matrix(np.zeros(4), wild), way, DOMAIN)["shrinkage"]
    assert np.linalg.eigvalsh(shrinkage) == pytest.approx([0.0, 0.0, 1 / 3, 0.8])


def test_the_default_ridge_is_a_public_function_of_the_domain():
    assert fit_modes(SoftPCA())["exact"].parameters["ridge"] == pytest.approx(0.25 / 4 * 4.0)


def test_at_the_end_the_map_is_released():
    pipe = make_pipeline(NormClipper(1.0), SoftPCA(0.1), epsilon=4.0, random_state=0).fit(rows(20_000))
    assert pipe.certificate_.verify()
    assert pipe.transform(rows()).shape == (300, 4)
