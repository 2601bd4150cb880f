"""PCA is centred as scikit-learn's is, unless a scaler in front has centred every column."""

import numpy as np
import pytest
import sklearn.decomposition as theirs
from sklearn.pipeline import make_pipeline as plain_pipeline

from ppdp import Adjacency, Domain, Pipeline, make_pipeline
from ppdp.data.public_facts import merged
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import PCA, Deduplicator, MinMaxScaler, NormClipper, StandardScaler

FACTS = Domain(n_rows=5000, n_features=3)
ADDED = Domain(n_rows=5000, n_features=3, adjacency=Adjacency.add_remove())
X = np.random.default_rng(0).normal([5.0, 0.0, 0.0], [0.1, 1.0, 0.2], (500, 3))


def planned(*stages, facts=FACTS):
    """The last stage as it is planned behind the others, and what is released for it."""
    plan = make_pipeline(MinMaxScaler(ranges=(-60, 60)), *stages, GaussianMechanism(), delta=1e-6).plan(facts)
    return plan.steps[-1], plan


def centred(*stages, facts=FACTS):
    """Whether its condition and what is released for it are of the covariance: both, or neither."""
    way = planned(*stages, facts=facts)[0].way
    found = {"centred" in condition.formula for condition in way.conditions}
    found |= {way.request.statistic == "matrix"} if way.request is not None else set()
    (answer,) = found
    return answer


@pytest.mark.parametrize("statistics", ["noisy", "exact"])
@pytest.mark.parametrize("output", ["rank", "projected", "aligned"])
def test_a_plan_centres_unless_the_scaler_in_front_did(output, statistics):
    stage = PCA(1, output=output, fit_mode=statistics)
    assert centred(stage)
    assert centred(NormClipper(0.5), stage)
    assert not centred(StandardScaler(), stage)


@pytest.mark.parametrize(
    "ahead",
    [
        [StandardScaler(with_mean=False)],
        [StandardScaler(columns=[0, 1])],
        [StandardScaler(), NormClipper(0.5)],
        [StandardScaler(), MinMaxScaler(ranges=(-1, 1))],
        [Deduplicator(), StandardScaler()],
    ],
    ids=repr,
)
def test_a_scaler_that_leaves_a_mean_does_not_count(ahead):
    assert centred(*ahead, PCA(1, fit_mode="noisy"))


def test_where_rows_may_be_absent_nothing_is_known_to_be_centred():
    assert centred(StandardScaler(), PCA(1, fit_mode="noisy"), facts=ADDED)


@pytest.mark.parametrize(
    "scaler",
    [StandardScaler(fit_mode=way, clip=clip) for way in ("exact", "noisy") for clip in (None, "auto")],
    ids=repr,
)
def test_every_way_of_the_scaler_counts(scaler):
    assert not centred(scaler, PCA(1, fit_mode="noisy"))


@pytest.mark.parametrize("center", [True, False])
def test_what_is_said_holds_everywhere(center):
    stage = PCA(1, with_mean=center, fit_mode="noisy")
    assert centred(stage) == centred(StandardScaler(), stage) == center


@pytest.mark.parametrize("center", [None, 1, "no", np.array(["auto", "auto"])], ids=repr)
def test_nothing_else_is_taken(center):
    with pytest.raises(InvalidParameter):
        planned(PCA(1, with_mean=center))


def test_behind_a_scaler_the_release_is_worth_half_of_the_noise():
    sensitivity = {}
    for center in ("auto", True):
        stages = StandardScaler(fit_mode="noisy"), PCA(1, with_mean=center, fit_mode="noisy")
        sensitivity[center] = planned(*stages)[1].releases[-1].sensitivity
    assert sensitivity["auto"] <= 0.51 * sensitivity[True]


@pytest.mark.parametrize("statistics", ["exact", "noisy"])
@pytest.mark.parametrize("scaler", [[], [StandardScaler(clip=None, fit_mode="noisy")]], ids=["rows", "scaled"])
def test_what_is_planned_is_run_and_certified(scaler, statistics):
    rows = np.random.default_rng(1).normal([0.9, 0.1, 0.0], [0.02, 0.3, 0.02], (50_000, 3)).clip(-1, 1)
    steps = MinMaxScaler(ranges=(-1, 1)), *scaler, PCA(1, 0.002, output="projected", fit_mode=statistics)
    pipe = make_pipeline(*steps, GaussianMechanism(), epsilon=50.0, delta=1e-6, random_state=0).fit(rows)
    assert pipe.certificate_.verify()
    assert pipe.certificate_["steps"][-1]["parameters"]["center"] is (not scaler)


def test_released_directions_are_those_of_scikit_learn():
    rows = np.random.default_rng(1).normal([0.9, 0.1, 0.0], [0.02, 0.3, 0.05], (20_000, 3)).clip(-1, 1)
    expected, found = theirs.PCA(1).fit(rows).components_[0], {}
    for center in ("auto", False):
        steps = MinMaxScaler(ranges=(-1, 1)), PCA(1, with_mean=center, fit_mode="noisy"), GaussianMechanism()
        found[center] = make_pipeline(*steps, epsilon=50.0, delta=1e-6, random_state=0).fit(rows)["pca"].components_[0]
    assert abs(found["auto"] @ expected) > 0.99 > 0.5 > abs(found[False] @ expected)


def test_alone_directions_are_those_of_scikit_learn():
    ours, other = PCA(1).fit(X), theirs.PCA(1).fit(X)
    assert abs(ours.components_[0] @ other.components_[0]) > 1 - 1e-6
    np.testing.assert_allclose(ours.mean_, other.mean_)
    assert abs(PCA(1, with_mean=False).fit(X).components_[0, 0]) > 0.95 > 0.2 > abs(other.components_[0, 0])


def test_whatever_changes_a_domain_forgets_that_it_is_centred():
    told = FACTS.as_scaled(centred=True, usual_norm=None)
    assert told.centred
    assert not FACTS.centred
    assert not told.but(row_norm=1.0).centred
    assert told == FACTS
    assert told.to_dict() == FACTS.to_dict()
    assert not merged(FACTS, told).centred


@pytest.mark.parametrize(("kind", "center"), [(theirs.PCA, True), (theirs.TruncatedSVD, False)])
def test_conversions_say_which(kind, center):
    pipe = Pipeline.from_sklearn(plain_pipeline(kind(1)), ranges=(0, 1))
    assert pipe.steps[-1][1].with_mean is center
