"""What lint cannot read of a workflow counts as the worst."""

import numpy as np
import pytest
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.model_selection import FixedThresholdClassifier
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler

import ppdp
from ppdp import lint
from ppdp.exceptions import InvalidParameter


class Raises:
    def __getattr__(self, name):
        raise RuntimeError("private")


def containing_itself():
    pipe = Pipeline([("a", Normalizer())])
    pipe.steps.append(("self", pipe))
    return pipe


def deep():
    pipe = Normalizer()
    for _ in range(500):
        pipe = Pipeline([("a", pipe)])
    return pipe


class TestUnreadable:
    """Nothing is passed over in silence: what cannot be read may leak everything."""

    @pytest.mark.parametrize(
        ("workflow", "step", "kind"),
        [
            (Pipeline("abc"), "steps", "str"),
            (Pipeline({"s": StandardScaler()}), "steps", "dict"),
            (Pipeline(step for step in [("s", StandardScaler())]), "steps", "generator"),
            (Pipeline(np.array([("s", StandardScaler())], dtype=object)), "steps", "ndarray"),
            (Pipeline(None), "steps", "NoneType"),
            (Pipeline([("s",)]), "0", "tuple"),
            (Pipeline([("s", Normalizer(), 1)]), "0", "tuple"),
            (Pipeline([(1, Normalizer())]), "0", "tuple"),
            (Pipeline([Normalizer()]), "0", "Normalizer"),
            (Pipeline([("s", StandardScaler)]), "s", "type"),
            (Pipeline([("s", "scaler")]), "s", "str"),
            (Pipeline([("s", 3)]), "s", "int"),
            (Pipeline([("s", Raises())]), "s", "Raises"),
            (ppdp.Pipeline([("s", Raises())]), "s", "Raises"),
            (FeatureUnion("abc"), "transformer_list", "str"),
            (FeatureUnion([("s", MinMaxScaler)]), "s", "type"),
            (ColumnTransformer([("a",)]), "0", "tuple"),
            (ColumnTransformer([("a", Normalizer())]), "0", "tuple"),
            (ColumnTransformer([("a", MinMaxScaler, [0])]), "a", "type"),
            (ColumnTransformer([], remainder=MinMaxScaler), "remainder", "type"),
            (FixedThresholdClassifier(MinMaxScaler), "estimator", "type"),
            (FixedThresholdClassifier("model"), "estimator", "str"),
            (containing_itself(), "self", "Pipeline"),
        ],
    )
    def test_it_is_reported_as_the_worst(self, workflow, step, kind):
        found = next(found for found in lint(workflow) if found.step == step)
        assert (found.estimator, found.severity) == (kind, "high")
        assert "cannot be read" in found.leaks
        assert "(name, estimator)" in found.fix

    def test_a_nest_without_end(self):
        assert lint(deep()).severity == "high"

    def test_a_generator_is_not_used_up(self):
        pipe = Pipeline(step for step in [("s", StandardScaler())])
        lint(pipe)
        assert len(list(pipe.steps)) == 1

    def test_parameters_that_are_gone(self):
        scaler = StandardScaler()
        del scaler.with_mean
        pipe = make_pipeline(Normalizer())
        del pipe.steps
        assert lint(scaler).severity == "high"
        assert lint(pipe).severity == "high"

    @pytest.mark.parametrize("columns", [lambda X: X.columns[X.mean() > 0], make_column_selector(dtype_include=float)])
    def test_columns_that_a_function_of_the_data_chooses(self, columns):
        (found, _) = lint(ColumnTransformer([("a", Normalizer(), columns)]))
        assert (found.step, found.severity) == ("a", "high")
        assert "which columns" in found.leaks
        assert "name them" in found.fix

    @pytest.mark.parametrize("passing", [None, "passthrough"])
    def test_what_only_passes_is_no_finding(self, passing):
        assert len(lint(Pipeline([("a", passing)]))) == 0

    def test_something_else_than_an_estimator(self):
        with pytest.raises(InvalidParameter, match="an estimator is needed"):
            lint(Raises())
