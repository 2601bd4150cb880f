"""Bad steps, budgets and parameters: a typed error that names stage and fix, before anything is drawn or charged."""

import math
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import refusals
from refusals import DOMAIN, NAME, N, classifier, frame, labels, mean, quotes, rows
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectFdr
from sklearn.manifold import Isomap

from ppdp import Domain, Ledger, Pipeline, make_pipeline
from ppdp.exceptions import (
    DomainMismatch,
    ImpossibleBudget,
    InvalidInput,
    InvalidParameter,
    MissingBound,
    MissingBudget,
    NoRoute,
    PpdpError,
    UnknownStage,
    UnsupportedOrder,
)
from ppdp.mechanisms import GaussianMechanism, LinearRegression, LinearSVC, LogisticRegression, Ridge
from ppdp.transformers import PCA, Deduplicator, MeanImputer, MinMaxScaler, NormClipper, RowMap, StandardScaler

# pytest finds a fixture by its name in the test's own module
drawn, refused = refusals.drawn, refusals.refused


FOREIGN = [
    (SelectFdr(), "public knowledge"),
    (Isomap(), "PCA(k)"),
    ("passthrough", "leave this step out"),
    (None, "leave this step out"),
    (NormClipper, "instance"),
    (("scale", NormClipper()), "column_map"),
    (BaseEstimator(), "FunctionTransformer"),
]


class TestSteps:
    @pytest.mark.parametrize(("step", "instead"), FOREIGN)
    def test_somebody_elses_stage(self, refused, step, instead):
        pipe = Pipeline([("clip", NormClipper()), ("other", step), ("mean", GaussianMechanism())])
        error = refused(UnknownStage, pipe, rows(), says="stage 'other'")
        assert error.stage == "other"
        assert instead in error.fix

    def test_a_mechanism_must_be_last(self, refused):
        pipe = Pipeline([("mean", GaussianMechanism()), ("clip", NormClipper())])
        error = refused(UnknownStage, pipe, rows(), says="last")
        assert (error.stage, bool(error.fix)) == ("mean", True)

    @pytest.mark.parametrize(
        "names", [("a", "a"), ("a__b", "c"), ("a.b", "c"), ("", "c"), (1, "c"), ("epsilon", "c"), ("steps", "c")]
    )
    def test_names(self, refused, names):
        pipe = Pipeline(list(zip(names, [NormClipper(), GaussianMechanism()], strict=True)), delta=1e-4)
        refused(InvalidParameter, pipe, rows(), says="name")

    @pytest.mark.parametrize("steps", [None, [], {}, 5, NAME, [NormClipper()], [("a",)], [None]])
    def test_form(self, refused, steps):
        refused(InvalidParameter, Pipeline(steps), rows(), says="steps")

    @pytest.mark.parametrize("stage", [PCA(1), StandardScaler()])
    def test_gaps_where_none_are_allowed(self, refused, stage):
        error = refused(UnsupportedOrder, mean(NormClipper(), stage, MeanImputer()), rows(), says="missing values")
        assert error.stage == type(stage).__name__
        assert "imputer" in error.fix

    @pytest.mark.parametrize("stages", [(), (Deduplicator(),), (MeanImputer(),), (PCA(1),), (StandardScaler(),)])
    def test_no_bound(self, refused, stages):
        error = refused(MissingBound, mean(*stages), rows(), says="row_norm")
        assert error.stage
        assert "NormClipper" in error.fix

    @pytest.mark.parametrize("mechanism", [GaussianMechanism(), LogisticRegression()])
    def test_no_noise_scale(self, drawn, mechanism):
        with pytest.raises(MissingBudget, match=r"noise_scale.*Pipeline") as caught:
            mechanism.fit(rows(), labels())
        assert not quotes(caught.value)
        assert not drawn


class TestBudget:
    @pytest.mark.parametrize("value", [0, -1, 501.0, math.nan, math.inf, "1", None, True, [1.0]])
    @pytest.mark.parametrize("name", ["epsilon", "delta"])
    def test_impossible(self, refused, name, value):
        error = refused(ImpossibleBudget, classifier(**{name: value}), rows(), labels(), says=name)
        assert error.fix

    @pytest.mark.parametrize("delta", [1 / N, 0.5, 1])
    def test_delta_of_one_row_and_more(self, refused, delta):
        refused(ImpossibleBudget, classifier(delta=delta), rows(), labels(), says="1/n")

    @pytest.mark.parametrize("budget", [{"epsilon": 1e-12}, {"delta": 1e-25}])
    def test_too_little_for_any_route(self, refused, budget):
        error = refused(NoRoute, classifier(**budget), rows(), labels(), says="no route")
        assert error.fix

    def test_too_few_rows(self, refused):
        refused(NoRoute, classifier(epsilon=0.01), rows()[:5], labels()[:5])


PARAMETERS = {
    "gate": ["always", True, 0],
    "on_invalid": ["ignore", None],
    "ledger": ["file.sqlite", {}],
    "domain": [{"n_rows": N}, N],
    "dataset": [5, object()],
    "random_state": [-1, 1.5, "0"],
}

INTERCEPTS = [1, 0, "no", None]  # nothing that merely counts as True or False

IMPOSSIBLE = {
    RowMap: {
        "function": [5, lambda X: X - X.mean(axis=0), lambda X: X[:, :1], lambda X: np.sort(X, axis=0)],
        "lipschitz": [0, -1, "1", math.nan, math.inf, True],
        "out_ranges": [(1, 0), (0, math.inf), 5, "ab", [(0, 1)], (-1e308, 1e308)],
    },
    NormClipper: {"max_norm": [0, -1, "1", None, math.nan, math.inf, True, [1]]},
    MinMaxScaler: {
        "ranges": [(1, 0), (0, 0), (0, math.nan), 5, "ab", [(0, 1)], {"a": (0, 1)}, [(0, 1)] * 4, (-1e308, 1e308)],
        "feature_range": [(1, 0), (0, 0), (0, math.inf), 5, "ab", (0, 1, 2), ("a", "b"), None],
    },
    Deduplicator: {"subset": [[], "a", 5, ["zz"], [3], [-1], [None], [1.5]]},
    LogisticRegression: {
        "classes": [5, (), (0,), (0, 0), ([0], [1])],
        "solver": ["sgd", None, 5],
        "alpha": [-1, "1", math.nan, math.inf, None],
        "max_iter": [0, -1, 1.5, "many", True, None],
        "max_grad_norm": [0, -1, "1", math.nan, math.inf],
        "max_coef_norm": [0, -1, "1", math.nan, math.inf],
        "learning_rate": [0, -1, "1", math.nan, math.inf],
        "fit_intercept": INTERCEPTS,
    },
    LinearSVC: {
        "classes": [5, (0,), (0, 1, 2)],
        "smoothing": [0, -1, 2, "1", math.nan],
        "solver": ["output", None],
        "fit_intercept": INTERCEPTS,
    },
    LinearRegression: {
        "y_range": [(1, 0), (0, 0), 5, "ab", (0, math.inf)],
        "solver": ["output", None],
        "fit_intercept": INTERCEPTS,
    },
    Ridge: {
        "fit_intercept": INTERCEPTS,
        "alpha": [-1, "1", math.nan, None],
        "solver": ["sgd", None],
        "y_range": [(1, 0), 5],
    },
}

CASES = [
    pytest.param(kind, name, value, id=f"{kind.__name__}-{name}-{i}")
    for kind, parameters in IMPOSSIBLE.items()
    for name, values in parameters.items()
    for i, value in enumerate(values)
]


class TestParameters:
    @pytest.mark.parametrize(("name", "value"), [(name, v) for name, values in PARAMETERS.items() for v in values])
    def test_of_the_pipeline(self, refused, name, value):
        refused(InvalidParameter, classifier(**{name: value}), rows(), labels(), says=name)

    @pytest.mark.parametrize(("kind", "name", "value"), CASES)
    def test_of_a_stage_cost_nothing(self, refused, kind, name, value):
        """Found before the ledger is charged and before any row is looked at, so a plan finds them too."""
        ledger = Ledger()
        pipe = around(kind, {name: value}, ledger)
        error = refused((InvalidParameter, InvalidInput, MissingBound), pipe, rows(), labels())
        assert kind.__name__ in str(error) or name in str(error)
        assert len(ledger) == 0
        with pytest.raises(type(error)):
            pipe.plan(DOMAIN)

    @pytest.mark.parametrize("ranges", [None, {"a": (0, 1)}, {"a": (0, 1), "b": (0, 1), "x": (0, 1)}])
    def test_columns_without_a_range(self, refused, ranges):
        error = refused((MissingBound, DomainMismatch), mean(MinMaxScaler(ranges=ranges)), frame(), says="ranges")
        assert error.stage == "MinMaxScaler"
        assert error.fix

    def test_ranges_by_position_have_any_keys(self):
        ranges = {0: (0, 1), 1: (0, 1), 2: (0, 1)}
        assert mean(MinMaxScaler(ranges=ranges)).fit(pd.DataFrame(rows())).certificate_

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            *(
                (name, v)
                for name in ("n_rows", "n_features", "rows_per_unit")
                for v in (0, -1, 1.5, "1", math.nan, True)
            ),
            *((name, v) for name in ("row_norm", "entry_bound") for v in (0, -1, "1", math.nan, math.inf, [1])),
            *(("max_missing", v) for v in (-1, "1", math.nan, math.inf)),
            *(("min_present", v) for v in (-1, "1", math.nan)),
            *(("classes", v) for v in (5, (0, 0), ([0], [1]))),
            *(("y_range", v) for v in (5, (1, 0), (0, math.inf), (0,))),
            ("feature_names", 5),
        ],
    )
    def test_of_a_domain(self, name, value):
        with pytest.raises(InvalidParameter, match=name):
            Domain(**{name: value})

    def test_names_and_number_of_columns_must_agree(self):
        with pytest.raises(PpdpError, match="feature_names"):
            mean(NormClipper()).plan(Domain(n_rows=N, n_features=2, feature_names=("a",)))

    @pytest.mark.parametrize("domain", [N, {"n_rows": N}, SimpleNamespace(n_rows=N)])
    def test_of_plan(self, domain):
        with pytest.raises(InvalidParameter, match="domain"):
            mean(NormClipper()).plan(domain)


def around(kind, parameters, ledger):
    """A pipeline in which only these parameters are wrong."""
    if kind is RowMap:
        parameters = {"function": np.tanh, "out_ranges": (-1, 1), **parameters}
    settings = {"epsilon": 15.0, "delta": 1e-4, "random_state": 0, "ledger": ledger}
    if kind in (LogisticRegression, LinearSVC, LinearRegression, Ridge):
        answers = {"classes": (0, 1)} if kind in (LogisticRegression, LinearSVC) else {"y_range": (0, 1)}
        model = kind(**{**answers, "max_iter": 5, **parameters})
        return make_pipeline(NormClipper(), model, **settings)
    return make_pipeline(NormClipper(), kind(**parameters), GaussianMechanism(), **settings)
