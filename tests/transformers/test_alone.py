"""A stage fitted outside a pipeline claims only what is true of the map that it became."""

from __future__ import annotations

import math
import pickle
import traceback

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from ppdp import Adjacency, Distance, Domain
from ppdp.exceptions import DomainMismatch, InvalidValue, MissingBound
from ppdp.testing import REGISTRY
from ppdp.transformers import (
    GridQuantizer,
    MeanImputer,
    MinMaxScaler,
    NormClipper,
    RowMap,
    SoftPCA,
    StandardScaler,
)
from ppdp.transformers.base import Transformer

ONE = Adjacency.replace().distance
N = 4000
DOMAIN = Domain(n_rows=N, n_features=2, row_norm=1.0, entry_bound=1.0, max_missing=0)
READ = [StandardScaler(), SoftPCA(), GridQuantizer()]
ALL = [kind for kind in REGISTRY.values() if issubclass(kind, Transformer)]


def neighbours() -> tuple[np.ndarray, np.ndarray]:
    """Small rows; in the second dataset the first of them is as long as the domain allows."""
    X = np.random.default_rng(0).uniform(-0.05, 0.05, (N, 2))
    other = X.copy()
    other[0] = 1.0, 0.0
    return X, other


def moves(stage, **parameters) -> np.ndarray:
    """How far every row but the replaced one moves."""
    left, right = (clone(stage).fit_transform(X, **parameters) for X in neighbours())
    return np.linalg.norm(left - right, axis=1)[1:]


@pytest.mark.parametrize("stage", READ, ids=repr)
def test_what_a_pipeline_proves_is_false_of_a_stage_that_reads_its_norm_off_the_rows(stage):
    """Many times the radius for the scaler and soft PCA, and thousands of rows that the quantizer moves by itself."""
    claimed = clone(stage).stability_map(DOMAIN, ONE)[1]
    moved = moves(stage)
    assert moved.max() > 5 * claimed.radius
    assert (moved > 1e-9).sum() > max(claimed.moved / 2, 1000)


@pytest.mark.parametrize("ask", ["stability_map", "conditions", "sensitivity"])
@pytest.mark.parametrize("stage", READ, ids=repr)
def test_it_does_not_claim_it(stage, ask):
    fitted = clone(stage).fit(neighbours()[0])
    question = (DOMAIN,) if ask == "sensitivity" else (DOMAIN, ONE)
    for copy in (fitted, pickle.loads(pickle.dumps(fitted))):
        with pytest.raises(MissingBound, match="read off the rows") as caught:
            getattr(copy, ask)(*question)
        assert "fit(X, domain=" in str(caught.value)
    getattr(clone(fitted), ask)(*question)  # an unfitted one speaks of a pipeline


@pytest.mark.parametrize(
    "stage",
    [*READ, StandardScaler(min_std=0.5, clip=None), SoftPCA(regularization=1.0), GridQuantizer(mode="staircase")],
    ids=repr,
)
def test_with_a_declared_domain_everything_holds(stage):
    facts = DOMAIN
    fitted = clone(stage).fit(neighbours()[0], domain=facts)
    out, claimed = fitted.stability_map(facts, ONE)
    assert fitted.conditions(facts, ONE) == ()
    moved = moves(stage, domain=facts)
    assert (moved > 1e-12).sum() <= claimed.moved
    assert moved.max() <= claimed.radius * (1 + 1e-9)
    assert moved.sum() <= claimed.total * (1 + 1e-9)
    assert np.linalg.norm(fitted.transform(neighbours()[0]), axis=1).max() <= out.row_norm * (1 + 1e-9)
    assert fitted.sensitivity(facts).l2 == claimed.radius


def test_an_imputer_keeps_the_declared_norm_for_rows_to_come():
    X = np.array([[0.3, np.nan], [0.1, 0.2], [0.2, 0.1], [0.0, 0.9]])
    domain = Domain(row_norm=1.0)
    fitted = MeanImputer().fit(X, domain=domain)
    assert fitted.norm_ == 1.0
    assert fitted.stability_map(domain.but(n_rows=4, n_features=2), ONE)[1].moved == 3
    assert MeanImputer().fit(X).norm_ is None


@pytest.mark.parametrize(
    "stage",
    [NormClipper(1.0), MinMaxScaler(ranges=(0, 1)), RowMap(np.tanh, out_ranges=(-1, 1), lipschitz=1.0)],
    ids=repr,
)
def test_a_public_map_reads_nothing_so_its_claims_are_true_without_a_domain(stage):
    moved = Distance(moved=3, radius=0.1)
    assert clone(stage).fit(neighbours()[0]).stability_map(DOMAIN, moved) == stage.stability_map(DOMAIN, moved)


def test_claims_of_another_domain_or_of_other_parameters_are_refused():
    fitted = StandardScaler().fit(neighbours()[0], domain=DOMAIN)
    for other in (DOMAIN.but(row_norm=2.0), DOMAIN.but(n_rows=N - 1), DOMAIN.but(entry_bound=None)):
        with pytest.raises(DomainMismatch):
            fitted.stability_map(other, ONE)
    assert fitted.stability_map(DOMAIN, Distance(moved=3, radius=0.1))[1].radius > 0
    with pytest.raises(DomainMismatch, match="another map"):
        fitted.set_params(min_std=0.9).stability_map(DOMAIN, ONE)


def test_rows_outside_the_declared_domain_are_refused_without_their_values():
    X = neighbours()[0]
    X[7] = 123.456, 0.0
    with pytest.raises(InvalidValue, match="outside the declared") as caught:
        StandardScaler().fit(X, domain=DOMAIN)
    assert "123" not in str(caught.value)
    with pytest.raises(DomainMismatch, match="n_rows"):
        StandardScaler().fit(X[:10], domain=DOMAIN)
    gaps = np.full((4, 2), np.nan)
    with pytest.raises(InvalidValue, match="max_missing"):
        MeanImputer().fit(gaps, domain=Domain(row_norm=1.0, max_missing=3))


def test_columns_of_a_frame_are_among_its_facts():
    X = pd.DataFrame(neighbours()[0], columns=["a", "b"])
    fitted = StandardScaler().fit(X, domain=Domain(row_norm=1.0))
    assert fitted.stability_map(Domain(row_norm=1.0), ONE) == fitted.stability_map(
        Domain(n_rows=N, feature_names=("a", "b"), row_norm=1.0), ONE
    )
    with pytest.raises(DomainMismatch):
        fitted.stability_map(Domain(feature_names=("a", "c"), row_norm=1.0), ONE)


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_stage_that_is_fitted_with_a_domain_claims_what_it_would_in_a_pipeline(kind):
    rng = np.random.default_rng(3)
    X = rng.uniform(-0.5, 0.5, (40, 2))
    domain = Domain(n_rows=40, n_features=2, row_norm=math.sqrt(2), entry_bound=1.0, min_present=40, max_missing=0)
    stage = kind.example()
    if stage.needs_y:  # alone it has exact means, of which nothing is claimed
        domain = domain.but(classes=(0, 1))
        with pytest.raises(MissingBound, match="no noise"):
            clone(stage).fit(X, np.arange(40) % 2, domain=domain).stability_map(domain, ONE)
        return
    fitted = clone(stage).fit(X, domain=domain)
    assert fitted.stability_map(domain, ONE) == stage.stability_map(domain, ONE)


def test_a_fitted_public_map_keeps_nothing_of_the_rows():
    """Not the extremes either, which were looked at to find infinities."""
    X = np.full((3, 2), 0.123456789)
    kept = pickle.dumps(NormClipper(5.0).fit(X), protocol=0)
    assert b"0.123456789" not in kept
    assert repr(0.123456789 * math.sqrt(2)).encode()[:10] not in kept


BAD = {
    "objects": np.array([["Anna777", 1.0], [2.0, 3.0], [1.0, 2.0]], dtype=object),
    "text": np.array([["Anna777", "1"], ["2", "3"], ["1", "2"]]),
    "frame": pd.DataFrame({"a": ["Anna777", "x", "y"], "b": [1.0, 2.0, 3.0]}),
    "categories": pd.DataFrame({"a": pd.Categorical(["Anna777", "x", "y"]), "b": [1.0, 2.0, 3.0]}),
    "a list": [["Anna777", 1], [1, 2], [2, 3]],
    "a column": np.array([777.25, 1.0, 2.0]),
    "complex": np.array([[777.25j, 1], [1, 2], [2, 3]]),
    "far": np.array([[777e200, 1], [1, 2], [2, 3]]),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("name", REGISTRY)
def test_errors_of_a_step_that_is_used_alone_quote_no_cell(name, bad):
    step, X = REGISTRY[name].example(), BAD[bad]
    calls = [lambda: step.fit(X, [0, 1, 0]), lambda: step.fit(X, ["Anna777", "b", "Anna777"])]
    if not hasattr(step, "noise_scale"):
        fitted = REGISTRY[name].example().fit(np.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]]), [0, 1, 0])
        calls += [lambda: getattr(fitted, "transform", fitted.fit)(X)]
    for call in calls:
        error = raised_by(call)
        if error is not None:
            assert "777" not in "".join(traceback.format_exception_only(error))
            assert "777" not in f"{error.__cause__} {error.__context__}"


def raised_by(call):
    """What a call raises, if it does."""
    try:
        call()
    except Exception as error:
        return error
