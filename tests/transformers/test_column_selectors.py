"""Columns that labels explain most: scikit-learn's choice without noise, names and units behind it, and bad input."""

import numpy as np
import pandas as pd
import pytest
import sklearn.feature_selection as theirs
from streamed import stream_of

from ppdp import Domain, Pipeline
from ppdp.data.label_moments import measured
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, MissingBound, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, LogisticRegression, Ridge
from ppdp.transformers import MinMaxScaler, SelectKBest, SelectPercentile, StandardScaler, VarianceThreshold

RNG = np.random.default_rng(0)
X = RNG.uniform(-1, 1, (4000, 8)) * [1, 0.2, 1, 1, 0.2, 1, 1, 1]
SCORE = X @ [1, 3, 0, 0, 0, 0.4, 0, 0] + 0.3 * RNG.standard_normal(len(X))
LABELS = {"two": SCORE > 0, "three": np.digitize(SCORE, [-0.5, 0.5]), "amount": SCORE}
NAMES = list("abcdefgh")


@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.parametrize("k", [1, 3, 6])
def test_without_noise_it_is_the_choice_of_scikit_learn(labels, k):
    y = LABELS[labels]
    compared = theirs.f_regression if labels == "amount" else theirs.f_classif
    own, other = SelectKBest(k).fit(X, y), theirs.SelectKBest(compared, k=k).fit(X, y)
    assert np.array_equal(np.argsort(own.scores_), np.argsort(other.scores_))
    assert np.array_equal(own.transform(X), other.transform(X))
    share = SelectPercentile(100 * k / 8).fit(X, y), theirs.SelectPercentile(compared, percentile=100 * k / 8).fit(X, y)
    assert np.array_equal(*(one.get_support() for one in share))


def test_a_constant_column_is_never_chosen():
    constant = np.column_stack([np.full(len(X), 0.3), np.zeros(len(X)), X[:, 2]])
    assert VarianceThreshold().fit(constant).get_support().tolist() == [False, False, True]
    assert SelectKBest(1).fit(constant, LABELS["two"]).get_support(indices=True).tolist() == [2]


@pytest.mark.parametrize(("labels", "model"), [("two", LogisticRegression((0, 1))), ("amount", Ridge((-5, 5)))])
def test_a_release_knows_its_columns(labels, model):
    frame = pd.DataFrame(X, columns=NAMES)
    steps = [("range", MinMaxScaler(ranges=(-1, 1))), ("best", SelectKBest(2)), ("model", model)]
    pipe = Pipeline(steps, epsilon=30.0, delta=1e-6).fit(frame, LABELS[labels].astype(float))
    assert pipe["best"].get_feature_names_out().tolist() == ["a", "b"]
    table = pipe.release_.conf_int()
    assert table[table["statistic"] == "coefficient"]["column"].tolist() == ["a", "b"]
    means = table[table["step"] == "best"]
    exact = frame.groupby(LABELS[labels]).mean().to_numpy().ravel() if labels == "two" else frame.mean().to_numpy()
    assert (np.abs(means["value"] - exact) < 5 * means["standard_error"]).all()
    assert np.allclose(pipe.release_.to_sklearn().predict(frame), pipe.predict(frame), atol=1e-12)


def test_columns_that_hardly_vary_are_zero_by_the_release_that_a_scaler_needs_anyhow():
    frame, labels = pd.DataFrame(X, columns=NAMES), LABELS["two"].astype(int)
    own, other = VarianceThreshold(0.1).fit(X), theirs.VarianceThreshold(0.1).fit(X)
    assert np.array_equal(own.get_support(True), other.get_support(True))
    assert np.allclose(own.variances_, other.variances_)
    assert np.array_equal(own.transform(X)[:, own.support_], other.transform(X))
    scaler = StandardScaler(clip=None, fit_mode="noisy")
    steps = [("range", MinMaxScaler(ranges=(-1, 1))), ("vary", VarianceThreshold(0.1)), ("scale", scaler)]
    pipe = Pipeline([*steps, ("model", LogisticRegression((0, 1)))], epsilon=3.0, delta=1e-6).fit(frame, labels)
    assert np.array_equal(pipe["vary"].support_, own.support_)
    assert [release["serves"] for release in pipe.certificate_.to_dict()["releases"]] == [["vary", "scale"]]
    assert np.allclose(pipe.release_.to_sklearn().predict_proba(frame), pipe.predict_proba(frame), atol=1e-12)
    report = Pipeline([*steps[:2], ("mean", GaussianMechanism())], epsilon=3.0, delta=1e-6).fit(frame)
    raw = report.release_.to_pandas().query("step == 'mean'").set_index("column")["raw_value"]
    assert raw.isna().tolist() == (~own.support_).tolist()


@pytest.mark.parametrize("facts", [{"classes": (0, 1, 2)}, {"y_range": (-1, 1)}], ids=str)
def test_blocks_have_the_same_sums(facts):
    rows = Rows.of(X[:500], LABELS["three"][:500] / (1 if "classes" in facts else 2))
    domain = Domain(n_rows=500, n_features=8, row_norm=2.0, entry_bound=1.0, max_missing=0, **facts)
    assert np.array_equal(measured(rows, domain), measured(stream_of(rows)[0], domain))


@pytest.mark.parametrize(
    ("stage", "facts", "kind"),
    [
        (VarianceThreshold(-0.1), {}, InvalidParameter),
        (VarianceThreshold(4.0), {}, InvalidParameter),
        (VarianceThreshold(0.1), {"max_missing": 3}, UnsupportedOrder),
        (VarianceThreshold(0.1), {"row_norm": None}, MissingBound),
        (SelectKBest(0), {}, InvalidParameter),
        (SelectKBest("all"), {}, InvalidParameter),
        (SelectPercentile(0), {}, InvalidParameter),
        (SelectPercentile(101), {}, InvalidParameter),
        (SelectKBest(2), {"classes": None}, MissingBound),
        (SelectKBest(2), {"classes": (1,)}, InvalidParameter),
        (SelectKBest(2), {"max_missing": 3}, UnsupportedOrder),
        (SelectKBest(2), {"row_norm": None}, MissingBound),
    ],
)
def test_what_cannot_be_chosen_is_refused(stage, facts, kind):
    domain = Domain(n_rows=500, n_features=8, row_norm=2.0, max_missing=0, classes=(0, 1)).but(**facts)
    with pytest.raises(kind):
        stage.fit_modes(domain, domain.neighbours)


def test_without_labels_behind_it_there_is_nothing_to_choose_by():
    steps = [("range", MinMaxScaler(ranges=(-1, 1))), ("best", SelectKBest(2)), ("mean", GaussianMechanism())]
    with pytest.raises((MissingBound, UnsupportedOrder)):
        Pipeline(steps, delta=1e-6).fit(X)
