"""Sparse rows through a pipeline: what leaves is what leaves of the same rows made dense, to the last bit."""

import numpy as np
import pytest
from scipy.sparse import coo_array, csc_array, csr_array, random_array

from ppdp import Domain, Ledger, Pipeline, PrivateSearchCV
from ppdp.data.statistics import clip_norms
from ppdp.exceptions import InvalidInput, InvalidValue
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import Deduplicator, MinMaxScaler, NormClipper, RandomProjection, StandardScaler

S = random_array((200, 300), density=0.02, rng=np.random.default_rng(0), format="csr")
S.data *= 3
Y = (np.asarray(S.sum(axis=1)).ravel() > 9) * 1
RANGE = ("range", MinMaxScaler(ranges=(0.0, 2.0), feature_range=(0, 1)))
FIRST = {"range": [RANGE], "clip": [("clip", NormClipper(2.0))], "declared": []}


def pipeline(first, last=None, family="oporp", **facts):
    steps = [*first, ("project", RandomProjection(8, family, seed=7)), ("last", last or GaussianMechanism("rows"))]
    domain = None if first else Domain(row_norm=2.0, entry_bound=1.5)
    return Pipeline(steps, **{"domain": domain, "random_state": 0, "epsilon": 5.0, **facts})


@pytest.mark.parametrize("family", ["oporp", "gaussian", "sparse"])
@pytest.mark.parametrize("first", FIRST)
def test_it_does_not_matter_whether_rows_are_sparse(first, family):
    sparse, dense = (pipeline(FIRST[first], family=family).fit(X) for X in (S, S.toarray()))
    assert sparse.certificate_.verify()
    assert sparse.certificate_.to_dict()["released"] == dense.certificate_.to_dict()["released"]


def test_a_model_predicts_of_sparse_rows_what_it_predicts_of_dense_ones():
    model = pipeline(FIRST["range"], LogisticRegression(classes=(0, 1))).fit(S, Y)
    np.testing.assert_array_equal(model.predict_proba(S), model.predict_proba(S.toarray()))


@pytest.mark.parametrize("kind", [csc_array, coo_array])
def test_any_form_of_sparse_rows(kind):
    found, other = (pipeline(FIRST["range"]).fit(X).certificate_.to_dict()["released"] for X in (kind(S), S))
    assert found == other


def test_entries_that_are_held_twice_are_added():
    twice = coo_array((np.r_[S.data / 2, S.data / 2], (np.tile(S.tocoo().row, 2), np.tile(S.tocoo().col, 2))), S.shape)
    assert (
        pipeline(FIRST["range"]).fit(twice).certificate_.to_dict()["released"]["sha256"]
        == (pipeline(FIRST["range"]).fit(S).certificate_.to_dict()["released"]["sha256"])
    )


@pytest.mark.parametrize("bound", [1e-3, 2.0, 5.0, 1e3])
def test_clipped_sparse_rows_have_the_bits_of_dense_ones(bound):
    rows = csr_array(S * np.logspace(-200, 120, 200)[:, None])
    np.testing.assert_array_equal(clip_norms(rows, bound).toarray(), clip_norms(rows.toarray(), bound))


def test_a_sparse_row_is_clipped_that_needs_a_power_of_two_and_nothing_else():
    """Its norm in units of its largest entry is the bound to the last bit, so that only the unit is divided out."""
    inner = 2 * (1 - 8 * 2.0**-53)
    least = np.sqrt(inner**2 - 3) + np.arange(-64, 64) * 2.0**-53
    rows = np.column_stack([np.ones((128, 3)), least])
    (row,) = rows[np.sqrt(np.add.accumulate(rows**2, axis=1)[:, -1]) == inner][:1]
    far = np.stack([row / 8, 2.0**40 * row])
    assert np.linalg.norm(clip_norms(csr_array(far), 2.0).toarray(), axis=1).max() <= 2.0
    np.testing.assert_array_equal(clip_norms(csr_array(far), 2.0).toarray(), clip_norms(far, 2.0))


REFUSED = {
    "nothing projects": ([RANGE, ("last", GaussianMechanism())], "no step projects it"),
    "zeros become something": (
        [("range", MinMaxScaler(ranges=(-1.0, 2.0))), ("project", RandomProjection(8)), ("last", GaussianMechanism())],
        "makes zeros something else",
    ),
    "a fitted stage first": (
        [("scale", StandardScaler()), ("project", RandomProjection(8)), ("last", GaussianMechanism())],
        "'scale' takes no sparse rows",
    ),
    "rows as they came in": (
        [RANGE, ("project", RandomProjection(8)), ("once", Deduplicator(compare="raw")), ("last", GaussianMechanism())],
        "compares rows as they came in",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_would_have_to_be_made_dense_is_refused_before_the_spend(case):
    steps, why = REFUSED[case]
    domain = Domain(row_norm=2.0) if case == "a fitted stage first" else None
    with pytest.raises(InvalidInput, match=why):
        Pipeline(steps, domain=domain).fit(S)


def test_values_that_are_none():
    broken = S.copy()
    broken.data[3] = np.nan
    with pytest.raises(InvalidValue):
        pipeline(FIRST["range"]).fit(broken)
    assert pipeline(FIRST["range"], on_invalid="repair").fit(broken).certificate_.verify()
    with pytest.raises(InvalidInput, match="Complex"):
        pipeline(FIRST["range"]).fit(S.astype(complex))


def test_a_search_takes_sparse_rows_and_refuses_others_before_it_is_paid_for():
    grid, model = {"project__n_components": [4, 8]}, LogisticRegression(classes=(0, 1), max_iter=3)
    found, other = (
        PrivateSearchCV(pipeline(FIRST["range"], model, random_state=None), grid, epsilon=2.0, random_state=0).fit(X, Y)
        for X in (S, S.toarray())
    )
    assert found.certificate_.verify()
    assert found.certificate_.to_dict()["released"] == other.certificate_.to_dict()["released"]
    ledger, bare = Ledger(), Pipeline([("range", MinMaxScaler(ranges=(0.0, 2.0))), ("last", model)])
    with pytest.raises(InvalidInput, match="zeros something else"):
        PrivateSearchCV(bare, {"last__max_grad_norm": [0.5, 1.0]}, epsilon=2.0, ledger=ledger).fit(S, Y)
    assert len(ledger) == 0
