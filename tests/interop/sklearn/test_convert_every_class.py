"""Every class of scikit-learn converts, or is refused by an error of ppdp's that names the step and fits its kind."""

import inspect
import re
import zlib

import numpy as np
import pytest
from effort import rounds
from sklearn.compose import ColumnTransformer
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.utils import all_estimators

from ppdp import Domain, Pipeline, lint
from ppdp.exceptions import PpdpError
from ppdp.interop.sklearn.counterparts import COUNTERPARTS

REQUIRED = {
    "estimator": LogisticRegression(),
    "estimators": [("a", LogisticRegression())],
    "transformers": [("a", "passthrough", [0])],
    "transformer_list": [("a", "passthrough")],
    "steps": [("a", "passthrough")],
    "param_grid": {"C": [1]},
    "param_distributions": {"C": [1]},
    "dictionary": np.eye(2),
}
CLASSES = dict(all_estimators())
ANSWERS = ({"classes": (0, 1)}, {"y_range": (0, 1)})
pytestmark = pytest.mark.filterwarnings("ignore:Class PassiveAggressive:FutureWarning")
OF_CLASSES = r"Ridge\b|LinearRegression|PoissonRegressor|y_range"
OF_NUMBERS = r"LogisticRegression|LinearSVC|classes=|predict_proba"


class Unreadable:
    """A value of a parameter that cannot be compared, shown or counted."""

    def __eq__(self, other):
        raise RuntimeError("compared")

    def __repr__(self):
        raise RuntimeError("shown")

    __hash__ = None
    __bool__ = __len__ = __iter__ = __float__ = __repr__


ODD = [
    None,
    True,
    0,
    -1,
    2.5,
    "log_loss",
    np.nan,
    [1, 2],
    {"a": 1},
    np.array([1.0, 2.0]),
    LogisticRegression,
    Unreadable(),
]


def made(name):
    signature = inspect.signature(CLASSES[name]).parameters.values()
    needed = [one.name for one in signature if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    return CLASSES[name](**{parameter: REQUIRED.get(parameter, 1) for parameter in needed})


def today(values, name, parameter):
    """In an attack all values; every day a third of them."""
    step = 1 if rounds(1) > 1 else 3
    return values[zlib.crc32(f"{name} {parameter}".encode()) % step :: step]


def refusal(pipe, **declared):
    """The refusal of a conversion, None if it succeeds; any other error is raised."""
    try:
        assert Pipeline.from_sklearn(pipe, ranges=(0, 1), **declared).conversion is not None
    except PpdpError as error:
        return error
    return None


@pytest.mark.parametrize("name", CLASSES)
class TestEveryClass:
    def test_alone_and_among_others_it_converts_or_is_refused_by_name(self, name):
        last = () if hasattr(CLASSES[name], "predict") else (LogisticRegression(),)
        columns = ColumnTransformer([("part", made(name), ["a", "b"])])
        around = [made(name), make_pipeline(made(name), *last), columns, FeatureUnion([("part", made(name))])]
        for pipe in around:
            for answer in ANSWERS:
                error = refusal(pipe, **answer)
                assert error is None or error.stage or "refused" in str(error) or "declare" in str(error)

    def test_whatever_its_parameters_are(self, name):
        for parameter in made(name).get_params(deep=False):
            for value in today(ODD, name, parameter):
                other = made(name)
                setattr(other, parameter, value)
                refusal(other, **ANSWERS[0])
                lint(other)

    def test_its_advice_is_for_its_kind(self, name):
        error, kind = refusal(made(name)), getattr(made(name), "_estimator_type", None) or tag(name)
        if error is None or not hasattr(CLASSES[name], "predict"):
            return
        wrong = {"classifier": OF_CLASSES, "regressor": OF_NUMBERS}.get(kind)
        assert wrong is None or not re.search(wrong, error.fix)


def tag(name):
    tags = getattr(made(name), "__sklearn_tags__", None)
    try:
        return tags().estimator_type if tags else None
    except Exception:  # of a wrapper around what was made up here
        return None


USUAL = {
    "KBinsDiscretizer": {"strategy": "uniform"},
    "OneHotEncoder": {"categories": [[0, 1]] * 3},
    "OrdinalEncoder": {"categories": [[0, 1]] * 3, "handle_unknown": "use_encoded_value", "unknown_value": -1},
    "SimpleImputer": {"strategy": "constant"},
    "TargetEncoder": {"categories": [[0, 1]] * 3},
    "SVC": {"kernel": "linear"},
}
"""With which their other parameters are read."""
CHOOSING = "RFE RFECV SelectFromModel SelectKBest SelectPercentile SequentialFeatureSelector TargetEncoder"
"""What looks at labels, so that a model stands behind it."""
SIZES = [1e300, 10**9, np.inf, "", True, [], (1, 2, 3), object()]


@pytest.mark.parametrize("name", COUNTERPARTS)
def test_a_plan_takes_whatever_a_conversion_takes(name):
    """Or refuses it: at least one value of the parameters of a class is taken."""
    plans = {}
    domain = Domain(n_rows=1000, n_features=3, classes=(0, 1), y_range=(0.5, 1))
    for parameter in made(name).get_params(deep=False):
        for value in [1, *today([*ODD[:-1], *SIZES], name, parameter)]:
            step = made(name).set_params(**{**USUAL.get(name, {}), parameter: value})
            try:
                whole = make_pipeline(step, LogisticRegression()) if name in CHOOSING.split() else step
                pipe = Pipeline.from_sklearn(whole, ranges=(0, 1), domain=domain)
                if repr(pipe) not in plans:  # many parameters only say how something is computed
                    plans[repr(pipe)] = pipe.plan()
            except PpdpError:
                continue
    assert plans


def test_descent_by_a_loss_of_its_own_has_no_penalty():
    pipe = Pipeline.from_sklearn(SGDClassifier(loss="log_loss"), ranges=(0, 1), classes=(0, 1))
    assert type(pipe.steps[-1][1]).__name__ == "LogisticRegression"
    assert "trained with noise, without a penalty" in str(pipe.conversion)


def test_a_remainder_that_is_no_estimator():
    for odd in (5, "x", LogisticRegression, None, object()):
        error = refusal(ColumnTransformer([("a", "passthrough", ["a"])], remainder=odd))
        assert (error is None) == (odd is None)
