"""Rows mixed by a secret matrix: what leaves, what is certified, what is refused."""

import math

import numpy as np
import pytest

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, MissingBound, NoRoute, PrivacyRefusal
from ppdp.mechanisms import GaussianSketch, Ridge, WishartMechanism
from ppdp.pipeline.steps import guard_of
from ppdp.privacy.noise.sampler import Noise
from ppdp.testing.confidence import Certified
from ppdp.transformers import NormClipper

N, D = 4000, 3
FACTS = Domain(n_rows=N, n_features=D)
X = np.random.default_rng(0).uniform(-0.55, 0.55, (N, D))


def pipeline(mechanism=None, **parameters):
    last = mechanism or GaussianSketch(300)
    return make_pipeline(NormClipper(), last, **{"epsilon": 1.0, "delta": 1e-6, **parameters})


@pytest.fixture(scope="module")
def fitted():
    return pipeline().fit(X)


@pytest.fixture(scope="module")
def floored():
    return pipeline(GaussianSketch(300, min_eigenvalue=0.05)).fit(X)


class TestWhatLeaves:
    def test_rows_whose_second_moment_is_that_of_the_rows_and_the_noise(self, fitted):
        last = fitted[-1]
        assert last.sketch_.shape == (300, D)
        moment = X.T @ X + last.noise_scale**2 * np.eye(D)
        errors = (last.sketch_.T @ last.sketch_ - moment) / math.sqrt(2 / 300) / np.linalg.norm(moment, 2)
        assert np.abs(errors).max() < 6
        released = fitted.release_.arrays["gaussiansketch.answer"]
        np.testing.assert_array_equal(last.sketch_, released.reshape(300, D) / math.sqrt(300))

    @pytest.mark.parametrize("mechanism", [GaussianSketch(5), WishartMechanism(5, 0.9)], ids=str)
    def test_every_release_has_a_matrix_of_its_own(self, mechanism):
        question = mechanism.query_spec(FACTS.but(row_norm=1.0, max_missing=0))
        one, other = (mechanism.release(Rows.of(X), question, Noise(), 0.1)["answer"] for _ in "ab")
        assert (one != other).all()


class TestWhatIsCertified:
    def test_nothing_is_assumed(self, fitted):
        certificate = fitted.certificate_
        assert (certificate.status, certificate.record.gate) == ("UNCONDITIONAL", None)
        assert 0.998 < certificate.loss.epsilon(1e-6) <= 1.0
        assert "Gaussian sketch of 300 rows" in " ".join(certificate.to_text(full=True).split())
        assert any("GaussianMechanism('covariance')" in warning for warning in certificate["warnings"])

    def test_a_floor_is_tested_and_needs_less_noise(self, fitted, floored):
        record = floored.certificate_.record
        assert (record.steps[-1].class_, record.steps[-1].conditions[0].tested) == ("EigenvalueFloor", True)
        assert floored.certificate_.verify()
        assert floored[-1].noise_scale < fitted[-1].noise_scale / 100

    def test_rows_in_one_direction_do_not_pass(self):
        with pytest.raises(PrivacyRefusal, match="GaussianSketch without min_eigenvalue"):
            pipeline(GaussianSketch(300, min_eigenvalue=0.05)).fit(X[:, :1] * np.ones(D))

    def test_half_of_the_noise_is_found(self):
        """Real releases of one row that points here or there; an event is as likely as is certified, and no more."""
        mechanism, sigma, runs = GaussianSketch(6), 1.3, 4000
        domain, one = Domain(n_rows=1, n_features=2, row_norm=1.0, max_missing=0), Distance(replaced=1)
        loss = mechanism.query_spec(domain).privacy_map(domain, one, sigma)
        question, noise, sides = GaussianSketch(6 * runs).query_spec(domain), Noise(0), []
        for row in np.eye(2):
            for scale in (sigma, sigma / 2):
                Y = mechanism.release(Rows.of([row]), question, noise, scale)["answer"].reshape(runs, 6, 2) / scale
                sides.append((Y[..., 0] ** 2 - Y[..., 1] ** 2).sum(axis=1))
        epsilon = 1.0
        cut = epsilon * 2 * (1 + sigma**2)  # where the loss is epsilon: the attack knows the law
        honest, careless = ([(side > cut).sum() for side in pair] for pair in (sides[::2], sides[1::2]))
        certified = Certified(loss, epsilon, loss.delta(epsilon))
        assert honest[0] / runs - math.e * honest[1] / runs == pytest.approx(loss.delta(epsilon), abs=0.05)
        assert not certified.refuted(*certified.bounds(*honest, runs, 1e-6))
        assert certified.refuted(*certified.bounds(*careless, runs, 1e-6))


class TestWhatIsRefused:
    def test_unbounded_rows_and_budgets_that_are_too_small(self):
        with pytest.raises(MissingBound):
            GaussianSketch(20).query_spec(FACTS)
        with pytest.raises(NoRoute, match="no data could pass the gate"):
            pipeline(GaussianSketch(20, min_eigenvalue=1 / 3)).plan(FACTS)

    def test_too_few_rows_for_a_model(self):
        with pytest.raises(InvalidParameter, match="do not determine 4 coefficients"):
            pipeline(Ridge((-1, 1), solver="sketch", rank=4)).plan(FACTS)

    def test_who_assumes_nothing_brings_nothing(self):
        assert guard_of(GaussianSketch()) is None
        assert guard_of(GaussianSketch(min_eigenvalue=0.1)).min_eigenvalue == 0.1


def test_ridge_solves_a_sketch_of_rows_and_targets():
    y = X @ [0.4, -0.3, 0.2] + 0.1
    model = Ridge((-1, 1), solver="sketch", rank=4000)
    fitted = pipeline(model, epsilon=10.0, random_state=0).fit(X, y)
    ridge = fitted[-1]
    assert ridge.coef_ == pytest.approx([0.4, -0.3, 0.2], abs=0.05)
    assert ridge.intercept_ == pytest.approx(0.1, abs=0.05)
    assert (ridge.rank, fitted.certificate_.record.mechanism.formula) == (4000, "learning.squared-sketch")
    assert fitted.certificate_.verify()


def test_rows_whose_number_is_private_cost_less():
    noise = []
    for adjacency in (Adjacency.replace(), Adjacency.add_remove()):
        plan = pipeline(domain=Domain(n_rows=N, n_features=D, adjacency=adjacency)).plan()
        noise.append(plan.mechanism.noise_scale)
    assert noise[1] < noise[0]
