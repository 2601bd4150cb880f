"""Whatever a parameter of a step is, the conversion takes it or refuses it with an error of ours."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import (
    LogisticRegression,
    Ridge,
    TweedieRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from ppdp import Domain, Pipeline
from ppdp.exceptions import (
    InvalidParameter,
    PpdpError,
)

ANSWER = {"classes": (0, 1)}
MODEL = LogisticRegression()
NOT_FINITE = (np.nan, np.inf, -np.inf)
UNKNOWN = {"handle_unknown": "use_encoded_value"}


def convert(steps, **declared):
    pipe = make_pipeline(*steps) if isinstance(steps, (list, tuple)) else steps
    return Pipeline.from_sklearn(pipe, **{"epsilon": 20.0, "delta": 1e-5, "random_state": 0, **declared})


@pytest.mark.parametrize(
    ("step", "words"),
    [
        *((SimpleImputer(strategy="constant", fill_value=f), "fill_value must be a finite") for f in NOT_FINITE),
        *((MinMaxScaler(pair), "feature_range must be") for pair in [(np.nan, 1), (1, 0), (0, 0), (-np.inf, 1)]),
        (MinMaxScaler((-1e308, 1e308)), "feature_range must be"),
        (Normalizer("l7"), "norm must be one of"),
        (Binarizer(threshold="1"), "threshold must be a finite number"),
        (OrdinalEncoder(categories=[[0]], **UNKNOWN, unknown_value=np.inf), "unknown_value must be a finite number"),
    ],
)
@pytest.mark.parametrize("bound", [{"ranges": (0, 1)}, {"max_norm": 1.0}, {"domain": Domain(row_norm=1e90)}])
@pytest.mark.repeated("bound")
def test_parameters_that_would_make_something_else_than_numbers(step, words, bound):
    with pytest.raises(InvalidParameter, match=words) as refused:
        convert([step, MODEL], **bound, **ANSWER)
    assert refused.value.stage == type(step).__name__.lower()


@pytest.mark.parametrize(
    ("steps", "declared"),
    [
        ([PolynomialFeatures(4), MODEL], {"domain": Domain(row_norm=1e90), "max_norm": 1.0}),
        ([SimpleImputer(strategy="constant", fill_value=1e308), MinMaxScaler(), MODEL], {"ranges": (-1e308, 5e307)}),
    ],
)
def test_what_no_float_can_hold_is_found_before_any_data(steps, declared):
    pipe = convert(steps, **declared, **ANSWER)
    with pytest.raises(InvalidParameter, match="no range that a float can hold"):
        pipe.plan(Domain(n_rows=100, n_features=1, row_norm=getattr(declared.get("domain"), "row_norm", None)))


JUNK = [
    -1,
    0,
    1,
    1.5,
    1e300,
    10**9,
    np.nan,
    np.inf,
    "a",
    "",
    None,
    True,
    [],
    [0],
    (1, 2, 3),
    {},
    np.array([1, 2]),
    object(),
]
OPEN = {
    Binarizer: ["threshold"],
    GaussianRandomProjection: ["n_components", "eps", "random_state"],
    SparseRandomProjection: ["n_components", "density"],
    KBinsDiscretizer: ["n_bins", "encode", "strategy"],
    MinMaxScaler: ["feature_range"],
    Normalizer: ["norm"],
    OneHotEncoder: ["categories", "drop", "handle_unknown"],
    OrdinalEncoder: ["categories", "handle_unknown", "unknown_value", "encoded_missing_value"],
    PCA: ["n_components"],
    PolynomialFeatures: ["degree", "interaction_only", "include_bias"],
    RobustScaler: ["quantile_range"],
    SimpleImputer: ["strategy", "fill_value", "missing_values"],
    StandardScaler: ["with_mean", "with_std"],
    LogisticRegression: ["C", "penalty", "fit_intercept"],
    Ridge: ["alpha", "fit_intercept"],
    TweedieRegressor: ["power", "link"],
}
USUAL = {
    KBinsDiscretizer: {"strategy": "uniform"},
    OneHotEncoder: {"categories": [[0, 1]] * 3},
    OrdinalEncoder: {"categories": [[0, 1]] * 3, **UNKNOWN, "unknown_value": -1},
    SimpleImputer: {"strategy": "constant"},
}


@pytest.mark.parametrize("kind", OPEN, ids=lambda kind: kind.__name__)
def test_whatever_a_parameter_is_an_error_is_one_of_ours(kind):
    domain = Domain(n_rows=1000, n_features=3)
    facts = {"ranges": (0, 1), "y_range": (0.5, 1), "domain": domain, **ANSWER}
    for name in OPEN[kind]:
        for value in JUNK:
            try:
                convert([kind(**{**USUAL.get(kind, {}), name: value})], **facts).plan()
            except PpdpError:
                continue
