"""The score of a row in a search depends on that row alone, to the last bit."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, TransformerMixin

from ppdp import Domain, Ledger, Pipeline, PrivateSearchCV
from ppdp import transformers as S
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import LinearRegression, LogisticRegression

N, D = 3000, 7
BINARY = LogisticRegression(classes=(0, 1), max_iter=5)


class Mixing(TransformerMixin, BaseEstimator):
    """Adds a number too small to see, of a sign that one row decides: what a product of matrices may do."""

    def fit(self, X, y=None):
        self.n_features_in_ = D
        return self

    def transform(self, X):
        return np.asarray(X, dtype=float) + 1e-9 * np.tanh(10 * np.asarray(X)[:, :1].sum())


def rows(seed=0, n=N):
    return np.random.default_rng(seed).normal(size=(n, D))


class TestRowsThatMix:
    """One replaced validation row could turn the scores of all rows that stand on a decision boundary."""

    public = S.Public(Mixing().fit(rows()), lipschitz=2.0, row_norm=1.0, rounding=1e-8)

    def search(self, *stages, grid=None, **parameters):
        pipe = Pipeline([*stages, ("model", BINARY)], domain=Domain(row_norm=1.0))
        return PrivateSearchCV(pipe, grid or {"model__max_grad_norm": [0.5, 1.0]}, epsilon=5.0, **parameters)

    def test_are_refused_before_anything_is_charged(self):
        ledger = Ledger()
        with pytest.raises(InvalidParameter, match="rounding") as caught:
            self.search(("ours", self.public), ledger=ledger).fit(rows(), np.ones(N))
        assert caught.value.stage == "ours"
        assert len(ledger) == 0

    def test_are_refused_in_one_candidate(self):
        quiet = S.Public.example()
        with pytest.raises(InvalidParameter, match="rounding"):
            self.search(("ours", quiet), grid={"ours": [quiet, self.public]}).plan(Domain(n_rows=N, n_features=D))

    def test_rows_that_keep_their_bits_are_not(self):
        assert self.search(("ours", S.Public.example())).plan(Domain(n_rows=N, n_features=D)).kept


STEPS = {
    "products": [S.NormClipper(3.0), S.PCA(3, output="projected", fit_mode="noisy"), S.SoftPCA(fit_mode="noisy")],
    "projected on a subspace": [S.NormClipper(3.0), S.PCA(3, with_mean=True, fit_mode="noisy")],
    "random": [S.NormClipper(3.0), S.RandomProjection(5), S.StandardScaler(fit_mode="noisy")],
    "clipped after a map that turns rows into columns": [S.RowMap(np.asfortranarray, out_norm=3.0), S.NormClipper(2.5)],
    "means": [S.MinMaxScaler(ranges=(-5, 5)), S.MeanImputer(fit_mode="noisy"), S.NormClipper(1.0)],
    "means of columns": [S.RowMap(np.asfortranarray, out_ranges=(-5, 5)), S.MeanImputer(fit_mode="noisy")],
    "regression": [S.RowMap(np.asfortranarray, out_norm=3.0), S.RegressionImputer(fit_mode="noisy"), S.SoftPCA()],
}
MODELS = {
    "two classes": BINARY,
    "three classes": LogisticRegression(classes=(0, 1, 2), max_iter=5),
    "regression": LinearRegression(y_range=(-1, 1), max_iter=5),
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.repeated("model")
def test_a_replaced_row_changes_no_bit_of_another(steps, model):
    named = [(f"step{i}", step) for i, step in enumerate(STEPS[steps])]
    pipe = Pipeline([*named, ("model", MODELS[model])], epsilon=20.0, delta=1e-5, random_state=0)
    X = rows()
    pipe.fit(X, (X[:, 0] > 0).astype(int))
    answer = pipe.decision_function if hasattr(pipe, "decision_function") else pipe.predict
    for m in (1, 2, 63, 1000):
        short = rows(1, m)
        short *= 2.0 / np.linalg.norm(short, axis=1, keepdims=True)
        kept = answer(short)
        others = [50 * short[-1], np.zeros(D), np.full(D, 1e-320)]
        if any(hasattr(step, "fills_gaps") and step.fills_gaps for step in STEPS[steps]):
            others.append(np.where(np.arange(D) < 2, np.nan, short[-1]))
        for other in others:
            replaced = short.copy()
            replaced[-1] = other
            np.testing.assert_array_equal(answer(replaced)[:-1], kept[:-1])
