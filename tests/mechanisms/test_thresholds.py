"""Thresholds of classifiers: public, or by released counts."""

import json
import math
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import norm
from sklearn.metrics import balanced_accuracy_score, f1_score, log_loss
from sklearn.utils import get_tags
from zoo import sealed

import ppdp
from ppdp import Adjacency, Certificate, Domain, Pipeline
from ppdp.bounds.selection import SCORE_EDGES, THRESHOLD
from ppdp.exceptions import DiagnosticWarning, ExportError, InvalidParameter
from ppdp.mechanisms import GradientBoostingClassifier, LinearSVC, LogisticRegression
from ppdp.mechanisms.thresholds import best_threshold, calibrated
from ppdp.transformers import MinMaxScaler

N = 20_000


def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(N, 2)).clip(-4, 4), columns=["a", "b"])
    return X, (rng.random(N) < expit(1.5 * X["a"] - 3.5)).astype(int).to_numpy()


def pipeline(model=LogisticRegression, threshold="f1", rest=None, **parameters):
    steps = [("range", MinMaxScaler((-4, 4))), ("model", model(classes=(0, 1), threshold=threshold, **(rest or {})))]
    return Pipeline(steps, **{"epsilon": 2.0, "delta": 1e-6, **parameters})


@pytest.mark.parametrize("model", [LogisticRegression, GradientBoostingClassifier])
def test_the_threshold_is_nearly_the_best_one(model):
    X, y = table()
    pipe = pipeline(model).fit(X, y)
    odds = pipe.predict_proba(X)[:, 1]
    best = max(f1_score(y, odds >= t) for t in np.linspace(0.05, 0.6, 12))
    assert f1_score(y, pipe.predict(X)) > best - 0.03 > f1_score(y, odds > 0.5)
    assert pipe.certificate_.verify()
    assert pipe.certificate_.status == "UNCONDITIONAL"
    assert "best for f1, by released counts" in pipe.certificate_.to_html()
    assert pipe.release_.arrays["model.counts"].size == 2 * (len(SCORE_EDGES) + 1)
    np.testing.assert_array_equal(pipe.release_.to_sklearn().predict(X), pipe.predict(X))


@pytest.mark.parametrize("adjacency", [Adjacency.add_remove(), Adjacency.user_level(2)], ids=str)
def test_other_adjacencies_pay_their_own(adjacency):
    X, y = table()
    groups = np.arange(N) // 2 if adjacency.bounds_contributions else None
    domain = Domain(n_rows=N + 500) if adjacency.unbounded else None
    for rest in ({"solver": "newton"}, {"solver": "dpgd", "max_iter": 10}):
        pipe = pipeline(rest=rest, adjacency=adjacency, domain=domain, epsilon=4.0).fit(X, y, groups)
        assert pipe.certificate_.verify()


def test_onnx_knows_that_of_trees_and_refuses_others():
    runtime = pytest.importorskip("onnxruntime")
    X, y = table()
    pipe = pipeline(GradientBoostingClassifier, threshold=0.2).fit(X, y)
    session = runtime.InferenceSession(pipe.release_.to_onnx().SerializeToString())
    labels, shares = session.run(None, {session.get_inputs()[0].name: X.to_numpy()})
    clear = np.abs(shares[:, 1] - 0.2) > 1e-6
    np.testing.assert_array_equal(labels[clear], pipe.predict(X)[clear])
    with pytest.raises(ExportError, match="no threshold but a half"):
        pipeline(threshold=0.2).fit(X, y).release_.to_onnx()


def test_a_public_threshold_costs_nothing():
    X, y = table()
    pipe = pipeline(threshold=0.2).fit(X, y)
    assert pipe.certificate_.record.mechanism.formula == "learning.newton"
    np.testing.assert_array_equal(pipe.predict(X) == 1, pipe.predict_proba(X)[:, 1] >= 0.2)
    np.testing.assert_array_equal(pipe.release_.to_sklearn().predict(X), pipe.predict(X))
    assert balanced_accuracy_score(y, pipe.predict(X)) > balanced_accuracy_score(y, pipe.predict_proba(X)[:, 1] > 0.5)


@pytest.mark.parametrize(("threshold", "single"), [(None, "0"), (0.5, "0"), (0.03, None), (1e-6, "1")])
@pytest.mark.parametrize("kind", [LogisticRegression, GradientBoostingClassifier])
def test_a_model_of_one_class_predicts_it_at_its_threshold(kind, threshold, single):
    X, _ = table()
    y = (np.random.default_rng(1).random(N) < expit(0.3 * X["a"] - 3.5)).astype(int)
    pipe = pipeline(kind, threshold=threshold).fit(X, y)
    assert pipe.certificate_.record.released.single_class == single
    assert len({*pipe.predict(X)}) == 1 + (single is None)


@pytest.mark.parametrize(
    ("threshold", "rest", "words"),
    [
        (1.5, {}, "threshold must be a finite number"),
        ("recall", {}, r"threshold must be one of.*Fix: \('recall', 0.9\)"),
        (("f1", 0.9), {}, r"threshold\[0\] must be one of.*threshold=0\.3"),
        (("recall", 90), {}, r"threshold\[1\] must be a finite number"),
        (["recall"], {}, "threshold must be a finite number"),
        ("f1", {"class_weight": "balanced"}, "one of the two"),
        ("f1", {"solver": "poisson"}, "solver='newton' or 'dpgd'"),
        (0.3, {"solver": "poisson", "calibration": "sigmoid"}, "or no calibration"),
        (None, {"calibration": "isotonic"}, "calibration must be one of None, 'sigmoid'"),
        (None, {"calibration": "sigmoid", "classes": (0, 1, 2)}, "leave calibration out"),
        (0.3, {"classes": (0, 1, 2)}, "leave threshold out"),
    ],
)
def test_what_means_nothing_is_refused_before_anything_is_spent(threshold, rest, words):
    facts = Domain(n_rows=100, n_features=2)
    model = LogisticRegression(**{"classes": (0, 1), "threshold": threshold, **rest})
    with pytest.raises(InvalidParameter, match=words):
        Pipeline([("range", MinMaxScaler((-1, 1))), ("model", model)], epsilon=1.0).plan(facts)


@pytest.mark.parametrize("threshold", [("precision", 0.99), ("precision", 0.45), ("recall", 1.0)])
@pytest.mark.parametrize("kind", [LogisticRegression, GradientBoostingClassifier])
def test_a_precision_that_no_threshold_holds_is_said(kind, threshold):
    X, _ = table()
    y = (np.random.default_rng(1).random(N) < expit(0.4 * X["a"] - 0.5)).astype(int)
    pipe = pipeline(kind, threshold=threshold, random_state=0)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DiagnosticWarning)
        pipe.fit(X, y)
    said = [str(one.message) for one in caught if "shows in them. Ask for less" in str(one.message)]
    most = pipe.certificate_.record.released.unheld
    assert len(said) == (most is not None) == (threshold[1] == 0.99)
    assert most is None or 0.5 < most < 0.99
    assert pipe.certificate_.verify()


@pytest.mark.parametrize("threshold", [("recall", 0.9), ("precision", 0.8), "f1", "balanced_accuracy"])
def test_a_threshold_is_a_half_where_noise_hides_all_counts(threshold):
    X, y = table()
    for seed in range(8):  # until no count exceeds its noise by chance
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", DiagnosticWarning)
            pipe = pipeline(threshold=threshold, epsilon=0.1, random_state=seed).fit(X[:500], y[:500])
        if pipe.certificate_.record.released.unheld == 0:
            break
    assert any("noise hides all rows in them, and it is 0.5" in str(one.message) for one in caught)
    assert pipe[-1].threshold_ == 0.5
    assert pipe.certificate_.verify()


@pytest.mark.parametrize(
    ("threshold", "calibration", "edit", "problem"),
    [
        (("precision", 0.6), None, {"unheld": 0.6}, "released.unheld"),
        ("f1", None, {"unheld": 0.5}, "released.unheld"),
        (0.3, "sigmoid", {"unheld": 0.5}, "released.unheld"),
        ("f1", "sigmoid", {"facts": ()}, "facts: what rows are counted"),
        (None, None, {"facts": ("calibration",)}, "facts: what rows are counted"),
        (0.3, None, {"facts": (THRESHOLD,)}, "facts: what rows are counted"),
    ],
    ids=str,
)
def test_what_is_read_off_counts_follows_from_facts_and_formula(threshold, calibration, edit, problem):
    X, y = table()
    document = pipeline(threshold=threshold, rest={"calibration": calibration}).fit(X, y).certificate_.to_dict()
    said = (THRESHOLD, "calibration")
    if "facts" in edit:
        document["facts"] = [fact for fact in document["facts"] if fact["name"] not in said]
        made = {"value": "best for f1, by released counts", "origin": "declared"}
        document["facts"] += [{"name": name, **made} for name in edit["facts"]]
    else:
        document["released"] |= edit
    assert problem in " ".join(Certificate.from_json(json.dumps(sealed(document))).verify().problems)


def test_a_fact_that_is_there_twice_breaks_no_page():
    X, y = table()
    document = pipeline(threshold=("precision", 0.6)).fit(X, y).certificate_.to_dict()
    document["facts"] += [fact for fact in document["facts"] if fact["name"] == THRESHOLD]
    document["released"]["unheld"] = 0.5
    assert "no more than 50 % shows" in Certificate.from_json(json.dumps(sealed(document))).to_text()


def exact(slope, offset):
    """Counts of a million rows whose log-odds are a line of the scores, which are evenly in all cells."""
    middles = np.append(SCORE_EDGES, SCORE_EDGES[-1] + 0.25) - 0.125
    p = expit(slope * middles + offset)
    return 20_000 * np.column_stack([1 - p, p])


@pytest.mark.parametrize(("slope", "offset"), [(1.0, 0.0), (0.6, -1.0), (1.5, 1.0)])
def test_without_noise_it_is_where_the_class_is_as_likely_as_the_score_asks(slope, offset):
    found = {score: best_threshold(exact(slope, offset), 1.0, score)[0] for score in ("accuracy", "balanced_accuracy")}
    share = exact(slope, offset)[:, 1].sum() / exact(slope, offset).sum()
    for score, odds in (("accuracy", 0.0), ("balanced_accuracy", math.log(share / (1 - share)))):
        assert math.log(found[score] / (1 - found[score])) == pytest.approx((odds - offset) / slope, abs=0.15)


@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_without_noise_what_is_to_be_held_is_held_and_no_more(share):
    counts = exact(0.8, -0.5)
    for name, axis in (("recall", 0), ("precision", 1)):
        odds = math.log(1 / (1 / best_threshold(counts, 1.0, (name, share))[0] - 1))
        # What is predicted from here on, from log-odds of -6.25 in steps of a quarter.
        part = np.interp(odds, np.arange(51) / 4 - 6.25, np.arange(51))
        above = np.clip(np.arange(1, 51) - part, 0, 1) @ counts
        found = above[1] / (counts[:, 1].sum() if axis == 0 else above.sum())
        assert found == pytest.approx(max(share, counts[:, 1].sum() / counts.sum()) if axis else share, abs=0.02)


def test_a_recall_is_held_on_rows_that_nobody_trained_on(tmp_path):
    X, y = table()
    pipe = pipeline(threshold=("recall", 0.8)).fit(X[: N // 2], y[: N // 2])
    fresh = pipe.predict(X[N // 2 :]) == 1
    assert fresh[y[N // 2 :] == 1].mean() == pytest.approx(0.8, abs=0.06)
    assert fresh.mean() < 0.35
    assert "recall of at least 0.8, by released counts" in pipe.certificate_.to_html()
    pipe.export(tmp_path / "model.zip")
    assert ppdp.load(tmp_path / "model.zip")[-1].threshold == ("recall", 0.8)


@pytest.mark.parametrize(
    ("kind", "threshold", "rest"),
    [
        (LinearSVC, "f1", {"calibration": "sigmoid"}),
        (GradientBoostingClassifier, ("recall", 0.8), {"calibration": "sigmoid", "class_weight": "balanced"}),
    ],
    ids=str,
)
def test_rows_in_blocks_give_the_same_model(tmp_path, kind, threshold, rest):
    X, y = table()
    X.assign(y=y).to_parquet(tmp_path / "rows.parquet", row_group_size=3000)
    one, other = (pipeline(kind, threshold, rest, random_state=0) for _ in range(2))
    one.fit(X, y), other.fit(str(tmp_path / "rows.parquet"), "y")
    assert (one[-1].threshold_, one[-1].calibration_) == (other[-1].threshold_, other[-1].calibration_)
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


def test_counts_that_are_all_noise_give_some_threshold():
    noise = np.random.default_rng(0).normal(scale=50.0, size=(50, 2))
    for counts in (noise, np.zeros((50, 2)), -np.abs(noise)):
        wanted = ("accuracy", "balanced_accuracy", "f1", ("recall", 0.9), ("precision", 0.9))
        assert all(0 < best_threshold(counts, 50.0, score)[0] < 1 for score in wanted)


@pytest.mark.parametrize(("slope", "offset"), [(1.0, 0.0), (0.6, -1.0), (1.5, 1.0)])
def test_without_noise_slope_and_offset_are_those_of_the_log_odds(slope, offset):
    np.testing.assert_allclose(calibrated(exact(slope, offset), 1.0)[0], (slope, offset), atol=0.03)
    np.testing.assert_allclose(calibrated(exact(1.0, -5.0), 1.0, (0.3, 5.0))[0], (1.0, -5.0), atol=0.05)


@pytest.mark.parametrize(("at", "spread", "slope", "offset"), [(-1.54, 0.27, 5.6, 5.15), (0.0, 0.2, 1.0, 0.0)])
def test_scores_that_are_few_cells_wide_have_the_same_line(at, spread, slope, offset):
    """Margins of a rare class are: taken to lie evenly in their cells their slope is 5.1, and too few are predicted."""
    scores = at + spread * norm.ppf((np.arange(10**5) + 0.5) / 10**5)
    p, cells = expit(slope * scores + offset), np.searchsorted(SCORE_EDGES, scores, side="right")
    counts = 10 * np.column_stack([np.bincount(cells, weights, 50) for weights in (1 - p, p)])
    found = calibrated(counts, 5.0, (3.0, 5.0))[0]
    assert found.slope == pytest.approx(slope, rel=0.03)
    assert expit(found.slope * scores + found.offset).mean() == pytest.approx(p.mean(), rel=0.01)


def test_margins_that_tell_classes_apart_for_certain_give_some_threshold():
    scores = np.random.default_rng(0).normal(size=3000)
    cells, second = np.searchsorted(SCORE_EDGES, scores, side="right"), scores > 0.3
    counts = np.column_stack([np.bincount(cells, one, 50) for one in (~second, second)])
    odds, own, _ = calibrated(counts, 0.1, (3.0, 5.0))
    assert odds.slope > 5
    assert np.isfinite(own).all()
    assert 0.5 < best_threshold(counts, 0.1, "f1", (3.0, 5.0))[0] < 0.65


@pytest.mark.parametrize(("slope", "offset"), [(1.3, -1.75), (0.5, -1.75), (1.0, -3.5)])
def test_beside_weights_noise_leads_to_no_other_line(slope, offset):
    rng, rows = np.random.default_rng(0), 30_000
    for _ in range(20):
        scores = rng.normal(size=rows)
        labels = rng.random(rows) < expit(slope * scores + offset)
        counts = np.histogram2d(scores, labels, [np.r_[-np.inf, SCORE_EDGES, np.inf], [-1, 0.5, 2]])[0]
        found = calibrated(counts + rng.normal(0.0, 20.0, counts.shape), 20.0, (0.3, 5.0))[0]
        np.testing.assert_allclose(found, (slope, offset), atol=0.35)


def test_counts_that_are_all_noise_turn_no_model_round():
    rng = np.random.default_rng(0)
    for counts in (rng.normal(scale=50.0, size=(50, 2)), np.zeros((50, 2)), exact(-1.0, 0.0)):
        assert calibrated(counts, 50.0)[0].slope > 0


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC, GradientBoostingClassifier])
@pytest.mark.parametrize("weights", ["balanced", {0: 0.1}], ids=str)
def test_probabilities_beside_weights_of_classes_are_those_of_the_rows(kind, weights, tmp_path):
    X, y = table()
    pipe = pipeline(kind, None, {"class_weight": weights, "calibration": "sigmoid"}).fit(X, y)
    p, (slope, offset) = pipe.predict_proba(X)[:, 1], pipe[-1].calibration_
    assert p.mean() == pytest.approx(y.mean(), abs=0.01)
    assert log_loss(y, p) < log_loss(y, expit(1.5 * X["a"] - 3.5)) + 0.01
    assert log_loss(y, expit((logit(p) - offset) / slope)) > 1.5 * log_loss(y, p)
    assert pipe.certificate_.verify()
    assert "sigmoid, by released counts" in pipe.certificate_.to_html()
    pipe.export(tmp_path / "model.zip")
    for other in (pipe.release_.to_sklearn(), ppdp.load(tmp_path / "model.zip")):
        np.testing.assert_allclose(other.predict_proba(X)[:, 1], p, rtol=1e-9)
        np.testing.assert_array_equal(other.predict(X), pipe.predict(X))


@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC, GradientBoostingClassifier])
def test_onnx_has_calibrated_probabilities(kind):
    runtime = pytest.importorskip("onnxruntime")
    X, y = table()
    pipe = pipeline(kind, None, {"class_weight": "balanced", "calibration": "sigmoid"}).fit(X, y)
    session = runtime.InferenceSession(pipe.release_.to_onnx().SerializeToString())
    _, shares = session.run(None, {session.get_inputs()[0].name: X.to_numpy()})
    np.testing.assert_allclose(shares, pipe.predict_proba(X), atol=1e-6)


@pytest.mark.parametrize("kind", [LogisticRegression, GradientBoostingClassifier])
def test_one_answer_serves_threshold_and_calibration(kind):
    facts = Domain(n_rows=N, n_features=2)
    both, one, other = (
        pipeline(kind, threshold, {"calibration": how}).plan(facts).mechanism
        for threshold, how in (("f1", "sigmoid"), ("f1", None), (None, "sigmoid"))
    )
    assert both.question == one.question == other.question
    X, y = table()
    pipe = pipeline(kind, "f1", {"calibration": "sigmoid"}, random_state=0).fit(X, y)
    same = pipeline(kind, "f1", random_state=0).fit(X, y)
    np.testing.assert_array_equal(pipe.predict(X), same.predict(X))
    assert pipe[-1].threshold_ != same[-1].threshold_


def test_models_on_the_way_are_calibrated_alike():
    X, y = table()
    pipe = pipeline(rest={"calibration": "sigmoid", "solver": "dpgd"}).fit(X, y)
    *_, last = pipe[-1].staged_decision_function(pipe[:-1].transform(X))
    np.testing.assert_array_equal(last, pipe.decision_function(X))


def test_coefficients_that_are_calibrated_have_no_interval():
    X, y = table()
    for rest, told in (({}, True), ({"calibration": "sigmoid"}, False)):
        pipe = pipeline(threshold=None, rest=rest, epsilon=8.0).fit(X, y)
        found = pipe.release_.conf_int()
        assert np.isfinite(found[found["statistic"] == "coefficient"]["lower"]).any() == told


@pytest.mark.parametrize("kind", [LogisticRegression, GradientBoostingClassifier])
@pytest.mark.parametrize("given", [{"threshold": 0.3}, {"calibration": "sigmoid"}], ids=str)
def test_scikit_learn_is_told_that_they_are_for_two_classes(kind, given):
    several, two = (get_tags(kind(**one)).classifier_tags.multi_class for one in ({}, given))
    assert several
    assert not two
    with pytest.raises(ValueError, match="Only binary classification is supported"):  # as its checks ask for
        kind(noise_scale=0.1, **given).fit(np.eye(3), [0, 1, 2])


def test_margins_become_probabilities():
    X, y = table()
    pipe = pipeline(LinearSVC, None, {"calibration": "sigmoid"}, epsilon=8.0).fit(X, y)
    assert log_loss(y, pipe.predict_proba(X)) < log_loss(y, expit(1.5 * X["a"] - 3.5)) + 0.01
    assert not hasattr(LinearSVC(), "predict_proba")
    with pytest.raises(InvalidParameter, match="Fix: calibration='sigmoid'"):
        pipeline(LinearSVC, 0.3).plan(Domain(n_rows=100, n_features=2))
