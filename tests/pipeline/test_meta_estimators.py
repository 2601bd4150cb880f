"""scikit-learn's estimators around a pipeline: what fits it is said on its certificate, bagging is refused."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.tree import DecisionTreeClassifier

from ppdp import Ledger, Pipeline, PrivateSearchCV, make_pipeline
from ppdp.exceptions import (
    InvalidInput,
    InvalidParameter,
    InvalidValue,
    UnknownParameter,
    UnknownStage,
    UnsupportedOrder,
)
from ppdp.mechanisms import LogisticRegression, Ridge
from ppdp.transformers import MinMaxScaler

X = np.random.default_rng(0).uniform(size=(300, 2))
Y = (X[:, 0] > 0.5).astype(int)


def classifier(classes=(0, 1), **more):
    return make_pipeline(MinMaxScaler(ranges=(0, 1)), LogisticRegression(classes=classes), delta=1e-5, **more)


REGRESSOR = make_pipeline(MinMaxScaler(ranges=(0, 1)), Ridge(y_range=(0, 1)), delta=1e-5)
SEARCH = PrivateSearchCV(classifier(), {"logisticregression__alpha": [1.0]}, delta=1e-5)


@pytest.mark.parametrize("bootstrap", [True, False])
@pytest.mark.parametrize(
    "bagged", [BaggingClassifier(classifier()), BaggingRegressor(REGRESSOR), BaggingClassifier(SEARCH)]
)
def test_bagging_is_refused_before_a_spend_by_its_name(bagged, bootstrap):
    with Ledger(epsilon=3.0, delta=1e-3) as ledger, pytest.raises(UnsupportedOrder, match="bagging draws") as refused:
        bagged.set_params(n_estimators=2, bootstrap=bootstrap).fit(X, Y)
    assert "fit this pipeline alone" in refused.value.fix
    assert not len(ledger)


def test_boosting_around_it_is_refused_by_its_name():
    with pytest.raises(UnsupportedOrder, match="boosting draws"):
        AdaBoostRegressor(REGRESSOR, n_estimators=2).fit(X, X[:, 0])


@pytest.mark.parametrize(
    "around", [VotingClassifier([("a", classifier())]), CalibratedClassifierCV(classifier(), cv=2)], ids=repr
)
def test_what_fits_it_is_named_on_the_certificate(around):
    with Ledger(epsilon=9.0, delta=1e-3):
        around.fit(X, Y)
    inner = around.estimators_[0] if hasattr(around, "estimators_") else around.calibrated_classifiers_[0].estimator
    assert f"FITTED INSIDE {type(around).__name__}" in str(inner.certificate_).splitlines()[0]


AROUND = {
    "voting": VotingClassifier([("a", classifier())]),
    "voting, regression": VotingRegressor([("a", REGRESSOR)]),
    "stacking": StackingClassifier([("a", classifier())], final_estimator=DecisionTreeClassifier(max_depth=1), cv=2),
    "one against the rest": OneVsRestClassifier(classifier()),
    "calibrated": CalibratedClassifierCV(classifier(), cv=2),
    "tuned threshold": TunedThresholdClassifierCV(classifier(), cv=2),
    "fixed threshold": FixedThresholdClassifier(classifier(), threshold=0.3),
    "targets by a function": TransformedTargetRegressor(
        make_pipeline(MinMaxScaler(ranges=(0, 1)), Ridge(y_range=(0, np.log1p(1))), delta=1e-5),
        func=np.log1p,
        inverse_func=np.expm1,
        check_inverse=False,
    ),
}
FITS = {"stacking": 3, "calibrated": 2, "tuned threshold": 3}


@pytest.mark.parametrize("name", AROUND)
def test_every_fit_inside_of_it_is_charged(name):
    """What else it reads off rows (thresholds, the last model of a stack) is its own: no certificate covers it."""
    with Ledger(epsilon=9.0, delta=1e-3) as ledger:
        made = clone(AROUND[name]).fit(X, Y)
    assert len(ledger) == FITS.get(name, 1)
    assert len(made.predict(X[:5])) == 5


@pytest.mark.parametrize("kind", [VotingClassifier, StackingClassifier, OneVsRestClassifier])
def test_labels_that_are_handed_on_as_codes(kind):
    inner = classifier(("no", "yes"))
    around = kind(inner) if kind is OneVsRestClassifier else kind([("a", inner)])
    with Ledger(epsilon=9.0, delta=1e-3) as ledger, pytest.raises(InvalidInput, match="classes do") as refused:
        around.fit(X, np.where(Y == 1, "yes", "no"))
    assert len(ledger) == 0  # by its type
    assert kind.__name__ in refused.value.fix
    assert "classes=(0, 1)" in refused.value.fix


@pytest.mark.parametrize("kind", [OneVsRestClassifier, OneVsOneClassifier])
def test_more_classes_than_the_two_that_are_handed_on(kind):
    with Ledger(epsilon=9.0, delta=1e-3) as ledger, pytest.raises(InvalidInput, match="3 are declared") as refused:
        kind(classifier((0, 1, 2))).fit(X, np.digitize(X[:, 0], [0.3, 0.6]))
    assert len(ledger) == 0
    assert "this pipeline alone" in refused.value.fix


def test_a_grid_in_words_of_scikit_learn():
    with pytest.raises(UnknownParameter, match="Invalid parameter 'C'") as refused:
        GridSearchCV(classifier(), {"logisticregression__C": [1.0]}, cv=2, error_score="raise").fit(X, Y)
    assert "1/C" in refused.value.fix


@pytest.mark.parametrize(
    ("around", "fix"),
    [
        (GridSearchCV(classifier(), {}), "alpha, which is 1/C"),
        (AdaBoostClassifier(LogisticRegression()), "without the AdaBoostClassifier"),
        (StackingClassifier([("a", LogisticRegression())]), "one model alone"),
    ],
)
def test_conversions_of_them_say_what_to_write(around, fix):
    with pytest.raises((UnknownStage, InvalidParameter)) as refused:
        Pipeline.from_sklearn(around, ranges=(0, 1), classes=(0, 1))
    assert fix in refused.value.fix


def test_an_error_of_a_search_after_the_spend_says_that_the_ledger_counts_it():
    rows = np.where(X[0, 0] == X, np.nan, X)
    search = PrivateSearchCV(classifier(), {"logisticregression__alpha": [1.0, 2.0]}, delta=1e-5)
    with Ledger(epsilon=9.0, delta=1e-3) as ledger, pytest.raises(InvalidValue, match="counts this fit") as late:
        search.fit(rows, Y)
    assert str(late.value).count("counts this fit") == 1
    assert ledger.epsilon(1e-3) > 0
    with pytest.raises(InvalidValue) as uncharged:
        search.fit(rows, Y)
    assert "ledger" not in str(uncharged.value)
