"""Directions of rows as they are lie by their mean, those of scikit-learn do not: plans say which are meant."""

import numpy as np
import pytest
import sklearn.decomposition as theirs
from sklearn.pipeline import make_pipeline as plain_pipeline

from ppdp import Domain, Pipeline, make_pipeline
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import PCA, MinMaxScaler, NormClipper, StandardScaler

FACTS = Domain(n_rows=5000, n_features=3)
X = np.random.default_rng(0).normal([5.0, 0.0, 0.0], [0.1, 1.0, 0.2], (500, 3))


def warned(*stages):
    plan = make_pipeline(MinMaxScaler(ranges=(0, 1)), *stages, GaussianMechanism(), delta=1e-6).plan(FACTS)
    return [warning for warning in plan.warnings if "center=True" in warning]


def test_a_plan_names_the_step_whose_rows_nobody_centres():
    (warning,) = warned(PCA(1))
    assert warning.startswith("pca: ")
    assert warned(NormClipper(0.5), PCA(1, statistics="noisy"))


@pytest.mark.parametrize("stages", [(StandardScaler(), PCA(1)), (PCA(1, center=True),), (PCA(1, center=False),)])
def test_what_is_centred_or_meant_is_not_warned_of(stages):
    assert not warned(*stages)


def test_the_warning_is_on_the_certificate():
    pipe = make_pipeline(MinMaxScaler(ranges=(0, 1)), PCA(1), GaussianMechanism(), delta=1e-6, random_state=0)
    assert "center=True" in " ".join(pipe.fit(np.clip(X, 0, 1)).certificate_.to_dict()["warnings"])


def test_centred_directions_are_those_of_scikit_learn():
    one, other = PCA(1, center=True).fit(X).components_[0], theirs.PCA(1).fit(X).components_[0]
    assert abs(one @ other) > 1 - 1e-6
    assert abs(PCA(1).fit(X).components_[0, 0]) > 0.95 > 0.2 > abs(other[0])
    np.testing.assert_array_equal(PCA(1).fit(X).components_, PCA(1, center=False).fit(X).components_)


@pytest.mark.parametrize(("kind", "center"), [(theirs.PCA, True), (theirs.TruncatedSVD, False)])
def test_conversions_say_which(kind, center):
    pipe = Pipeline.from_sklearn(plain_pipeline(kind(1)), ranges=(0, 1))
    assert pipe.steps[-1][1].center is center
