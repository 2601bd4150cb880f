"""The membership attack finds planted bugs, bounds what guesses prove exactly, and never exceeds what is certified.

Noise is seeded where nothing else is said, so a test passes or fails for good.
"""

import dataclasses
import json
import math

import numpy as np
import pytest
from effort import rounds
from scipy.special import expit, ndtri
from sklearn.metrics import roc_auc_score

from ppdp import Adjacency, Domain, Ledger, Pipeline, PrivacyLoss
from ppdp.audit import attack_membership, membership
from ppdp.audit.membership import _rates
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import GaussianMechanism, LinearRegression, LinearSVC, LogisticRegression
from ppdp.mechanisms.learn.descent import ClippedGradient
from ppdp.transformers import PCA, NormClipper

FEW = Domain(n_rows=12, n_features=1, max_missing=0)
LABELS = np.array(["no", "yes"])


@pytest.fixture(autouse=True)
def few_pairs(monkeypatch):
    """How far apart the two datasets are that are looked for does not matter: bugs are planted beside chosen rows."""
    monkeypatch.setattr(membership, "PAIRS", rounds(30))


def pipeline(model=None, epsilon=5.0, **parameters):
    model = model or LogisticRegression((0, 1), max_iter=3, fit_intercept=False, max_grad_norm=0.25, max_coef_norm=1e3)
    return Pipeline([("clip", NormClipper(1.0)), ("model", model)], epsilon=epsilon, **parameters)


def halved(plan):
    return dataclasses.replace(
        plan, mechanism=dataclasses.replace(plan.mechanism, noise_scale=plan.mechanism.noise_scale / 2)
    )


def rows(n, d, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, d))
    return X / np.linalg.norm(X, axis=1, keepdims=True), LABELS[np.arange(n) % 2]


def signed(X, y):
    return X * np.where(y == "yes", 1.0, -1.0)[:, None]


def noisy_mean(mu):
    """Trains the mean of signed unit rows with Gaussian noise, so that one replaced row costs mu."""

    def train(X, y):
        noise = np.random.default_rng().standard_normal(X.shape[1]) * 2 / (mu * len(X))
        w = signed(X, y).mean(axis=0) + noise
        return lambda X, y: signed(X, y) @ w

    return train


class TestPlantedBugs:
    def test_half_of_the_noise(self, monkeypatch):
        """The canary is opposite to the row in whose place it stands, and the others have no gradient."""
        X = np.zeros((12, 1))
        X[0] = 1.0
        model = LogisticRegression((0, 1), max_iter=2, fit_intercept=False, max_grad_norm=0.25, max_coef_norm=1e3)

        def attack():
            given = {"canary": (-X[0], 1), "models": 500, "private": False, "random_state": 0}
            return attack_membership(pipeline(model, 8.0), X, np.ones(12, dtype=int), **given)

        report, honest = attack(), membership.prepare_rows
        assert 0.2 < report.epsilon_low < report.epsilon
        monkeypatch.setattr(membership, "prepare_rows", lambda *given: (halved((found := honest(*given))[0]), found[1]))
        report = attack()
        assert report.violated
        assert "MEMBERSHIP AUDIT: REFUTED" in repr(report)
        assert report.auc > 0.95

    def test_a_clip_that_is_forgotten(self, monkeypatch):
        X, y = rows(20, 2)
        steps = [("clip", NormClipper(8.0)), ("model", LogisticRegression((0, 1), max_iter=1, max_grad_norm=0.25))]

        def report():
            pipe = Pipeline(steps, epsilon=4.0)
            return attack_membership(pipe, 8 * X, (y == "yes").astype(int), models=200, private=False, random_state=0)

        assert not report().violated
        honest = ClippedGradient.of
        monkeypatch.setattr(
            ClippedGradient, "of", lambda rows, residuals, clip, *rest: honest(rows, residuals, 1e6, *rest)
        )
        assert report().violated

    def test_a_function_with_a_quarter_of_the_noise(self):
        X, y = rows(20, 3)
        given = {"canary": (-X[0], y[0]), "claimed": PrivacyLoss(1.0), "models": 600, "private": False}
        honest, broken = (attack_membership(noisy_mean(mu), X, y, **given) for mu in (1.0, 4.0))
        assert not honest.violated  # but for a probability of 1e-4
        assert broken.violated

    def test_a_function_that_hides_nothing(self):
        def train(X, y):
            return lambda X_, y_: np.array([float((row == X).all(axis=1).any()) for row in X_])

        report = attack_membership(train, *rows(20, 3), claimed=(1.0, 1e-5), models=200, private=False)
        assert report.auc == report.balanced == 1
        assert report.violated
        assert report.epsilon_low > 1


@pytest.mark.parametrize("epsilon", [0.1, 8.0])
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression((0, 1, 2), max_iter=2),
        LinearSVC((0, 1), max_iter=2),
        LinearRegression((-1, 1), max_iter=2),
        LogisticRegression((0, 1), solver="output", alpha=2.0, max_iter=5),
    ],
    ids=lambda model: type(model).__name__ + str(getattr(model, "solver", "")),
)
@pytest.mark.repeated("model", "epsilon", keep=2)
def test_the_lower_bound_is_below_the_certificate(model, epsilon):
    report = attack_membership(pipeline(model, epsilon), domain=FEW, models=40, random_state=0)
    assert report.epsilon_low <= report.epsilon == epsilon
    assert not report.violated


class TestOneTraining:
    def test_finds_a_model_that_hides_too_little(self):
        X, y = rows(300, 400)
        report = attack_membership(noisy_mean(40.0), X, y, canaries=300, claimed=(1.0, 1e-6), private=False)
        assert report.violated
        assert report.epsilon_low > 1
        assert (report.models, report.canaries) == (1, 300)
        assert "one model with 300 canaries" in repr(report)

    def test_does_not_refute_what_holds(self):
        for seed in range(5):
            domain = Domain(n_rows=200, n_features=150)
            report = attack_membership(pipeline(), domain=domain, canaries=200, random_state=seed)
            assert report.epsilon_low <= 5
            assert not report.violated

    def test_of_randomized_response_it_finds_most(self):
        def train(X, y):
            kept = np.random.default_rng().random(len(X)) < expit(2.0)
            votes = {row.tobytes(): 1.0 if keep else -1.0 for row, keep in zip(X, kept)}
            return lambda X, y: np.array([votes.get(row.tobytes(), 0.0) for row in X])

        X, y = rows(4000, 2)
        report = attack_membership(train, X, y, canaries=4000, claimed=(2.0, 0.0), private=False)
        assert 1.6 < report.epsilon_low < 2
        assert not report.violated

    def test_a_refusal_tells_nothing(self):
        stages = [("clip", NormClipper(1.0)), ("pca", PCA(1, min_gap=0.6, fit_mode="exact"))]
        pipe = Pipeline([*stages, ("model", LogisticRegression((0, 1)))], epsilon=1.0)
        report = attack_membership(pipe, domain=Domain(n_rows=2000, n_features=5), canaries=20, random_state=0)
        assert (report.refused, report.epsilon_low, report.auc) == (1, 0.0, 0.5)


class TestManyTrainings:
    def test_a_generator_that_starts_anew_tells_nothing(self):
        def train(X, y):
            w = np.random.default_rng(0).standard_normal(X.shape[1])
            return lambda X, y: signed(X, y) @ w + np.random.default_rng(0).random()

        report = attack_membership(train, *rows(20, 2), models=40, private=False)
        assert report.epsilon_low == 0  # always the same number: nothing is told

    def test_processes_make_the_same_models(self):
        from joblib import parallel_config

        with parallel_config(backend="threading"):
            found = [
                attack_membership(pipeline(), domain=FEW, models=60, random_state=0, n_jobs=jobs) for jobs in (None, 2)
            ]
        assert found[0].auc == found[1].auc


class TestPrivateRows:
    def test_nothing_is_charged_and_the_report_says_what_it_saw(self):
        ledger = Ledger(epsilon=1.0, delta=1e-5)
        X, y = rows(20, 2)
        pipe = pipeline(epsilon=1.0, ledger=ledger)
        before = repr(ledger)
        found = attack_membership(pipe, X, (y == "yes").astype(int), models=40, random_state=0)
        assert repr(ledger) == before
        assert not hasattr(pipe, "certificate_")
        assert found.data == "private"
        assert repr(found).startswith("PRIVATE")
        assert "PRIVATE" in found.to_dict()["private"]
        public = attack_membership(pipe, X, (y == "yes").astype(int), models=40, private=False, random_state=0)
        made_up = attack_membership(pipe, domain=FEW, models=40, random_state=0)
        assert [public.data, made_up.data] == ["public", "made-up"]
        assert not any("PRIVATE" in words for r in (public, made_up) for words in (repr(r), json.dumps(r.to_dict())))


def test_rates_are_those_of_ranks_with_ties():
    rng = np.random.default_rng(0)
    told, inside = rng.integers(8, size=200).astype(float), rng.random(200) < 0.4
    found = _rates(told, inside)
    best = max(((told[inside] > t).mean() + (told[~inside] <= t).mean()) / 2 for t in range(-1, 8))
    assert found["auc"] == pytest.approx(roc_auc_score(inside, told))
    assert found["balanced"] == pytest.approx(best)


def test_the_auc_comes_close_to_that_of_two_gaussians():
    report = attack_membership(noisy_mean(2.0), *rows(20, 2), models=1000, private=False)
    assert report.auc < 1
    assert ndtri(report.auc) * math.sqrt(2) < 2.3  # what 2-GDP allows, and what 1000 models may err


def test_the_label_of_a_canary_is_the_least_likely():
    seen = []

    def train(X, y):
        seen.append((X, y))
        return lambda X, y: np.where(y == "b", -1.0, 1.0)

    X, _ = rows(20, 3)
    attack_membership(train, X, np.array(["a", "b", "c", "c"] * 5), models=40, private=False)
    with_canary = [(X_[0], y[0]) for X_, y in seen if not np.array_equal(X_, X)]
    assert len(with_canary) == 20
    assert {label for _, label in with_canary} == {"b"}
    assert np.linalg.norm(with_canary[0][0]) == pytest.approx(1)


def test_a_report_is_saved_as_json(tmp_path):
    report = attack_membership(noisy_mean(1.0), *rows(20, 2), models=40, private=False)
    report.save(tmp_path / "report.json")
    found = json.loads((tmp_path / "report.json").read_text("utf-8"))
    assert found == json.loads(json.dumps(report.to_dict()))
    assert found["epsilon"] is None
    assert found["curve"][-1] == [1.0, 1.0]


def test_where_rows_are_added_or_removed():
    pipe = pipeline(epsilon=3.0, adjacency=Adjacency.add_remove())
    report = attack_membership(pipe, domain=FEW, models=40, random_state=0)
    assert report.neighbours
    assert not report.violated
    with pytest.raises(InvalidParameter, match="take the place of rows"):
        attack_membership(pipe, domain=FEW, canaries=5)


def test_fresh_projections_are_attacked():
    model = LogisticRegression((0, 1), solver="m2", rank=1, max_iter=2)
    domain = Domain(n_rows=12, n_features=3, max_missing=0)
    assert not attack_membership(pipeline(model), domain=domain, models=40, confidence=1 - 1e-7).violated


def test_a_canary_that_is_given():
    seen = []

    def train(X, y):
        seen.append((X[0].tolist(), y[0]))
        return lambda X, y: np.zeros(len(X))

    X, y = rows(20, 2)
    attack_membership(train, X, y, canary=([3.0, 4.0], "yes"), models=40, private=False)
    assert sum(one == ([3.0, 4.0], "yes") for one in seen) == sum(one == (X[0].tolist(), y[0]) for one in seen) == 20
    assert X[0, 0] != 3.0


X, Y = rows(20, 2)


@pytest.mark.parametrize(
    ("subject", "settings", "words"),
    [
        (pipeline(), {"models": 39, "domain": FEW}, "models"),
        (pipeline(), {"canaries": 0, "domain": FEW}, "canaries"),
        (pipeline(), {"canaries": 13, "domain": FEW}, "need as many rows"),
        (pipeline(), {"confidence": 1.0, "domain": FEW}, "confidence"),
        (pipeline(), {"n_jobs": 0, "domain": FEW}, "n_jobs"),
        (pipeline(GaussianMechanism()), {"domain": FEW}, "ends in no model"),
        (pipeline(adjacency=Adjacency.change(l2=0.1)), {"domain": FEW}, "a change of a row"),
        (pipeline().plan(FEW), {"X": X}, "does not know how to read rows"),
        (noisy_mean(1.0), {}, "a function with rows and labels"),
        (noisy_mean(1.0), {"X": X, "y": Y[:-1]}, "a function with rows and labels"),
        ("train", {"X": X, "y": Y}, "a function with rows and labels"),
        (noisy_mean(1.0), {"X": X, "y": Y, "claimed": 1.0}, "PrivacyLoss"),
        (pipeline(), {"domain": FEW, "canary": ([1.0], 1)}, "one canary among rows"),
        (noisy_mean(1.0), {"X": X, "y": Y, "canary": (X[0], Y[0])}, "the row in whose place it stands"),
        (noisy_mean(1.0), {"X": X, "y": Y, "canary": (X[0], "maybe")}, "that of no row"),
        (lambda X, y: None, {"X": X, "y": Y, "models": 40}, "train returned a NoneType"),
        (lambda X, y: lambda X, y: 1.0, {"X": X, "y": Y, "models": 40}, "have the shape"),
    ],
)
def test_what_is_impossible_is_refused(subject, settings, words):
    with pytest.raises(InvalidParameter, match=words):
        attack_membership(subject, **settings)


def test_conditions_that_are_assumed_are_refused():
    stages = [("clip", NormClipper(1.0)), ("pca", PCA(1, min_gap=0.2, fit_mode="exact"))]
    pipe = Pipeline([*stages, ("model", LogisticRegression((0, 1)))], gate=None)
    with pytest.raises(InvalidParameter, match="conditions are assumed"):
        attack_membership(pipe, domain=Domain(n_rows=2000, n_features=5))
