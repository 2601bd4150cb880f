"""A search of scikit-learn becomes one whose candidates are converted, or is refused with what to write."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ppdp import Pipeline, PrivateSearchCV
from ppdp.exceptions import InvalidParameter, PpdpError, UnknownStage

X = np.random.default_rng(0).uniform(size=(300, 3))
FACTS = {"ranges": (0, 1), "classes": (0, 1), "delta": 1e-5}
LINEAR = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression())


def test_candidates_have_the_names_and_values_of_their_counterparts():
    search = GridSearchCV(LINEAR, {"logisticregression__C": [0.1, 10.0]}, cv=5, scoring="roc_auc", n_jobs=2)
    made = PrivateSearchCV.from_sklearn(search, epsilon=20.0, random_state=0, **FACTS)
    assert made.param_grid == [{"logisticregression__alpha": [10.0]}, {"logisticregression__alpha": [0.1]}]
    for words in ("instead of folds", "accuracy, or 1 less", "ignored: n_jobs", "C=0.1 became alpha=10"):
        assert words in str(made.conversion)
    assert str(clone(made).conversion) == str(made.conversion)
    assert made.fit(X, (X[:, 0] > 0.5).astype(int)).certificate_.verify()


def test_other_steps_in_the_same_places_are_candidates():
    search = GridSearchCV(LINEAR, {"simpleimputer__strategy": ["mean", "median"], "logisticregression__tol": [1, 2]})
    made = PrivateSearchCV.from_sklearn(search, **FACTS)
    kinds = [type(one["simpleimputer"][0]).__name__ for one in made.param_grid]
    assert kinds == ["MeanImputer", "TrimmedMeanImputer"]
    assert "4 candidates became 2" in str(made.conversion)
    drawn = RandomizedSearchCV(Ridge(), {"alpha": [1.0, 2.0, 3.0]}, n_iter=2, random_state=3)
    made = PrivateSearchCV.from_sklearn(drawn, ranges=(0, 1), y_range=(0, 1))
    assert len(made.param_grid) == 2
    assert "the public seed 3" in str(made.conversion)


def test_candidates_may_have_other_lists_of_steps():
    search = GridSearchCV(LINEAR, {"standardscaler": ["passthrough", PCA(2)]})
    made = PrivateSearchCV.from_sklearn(search, epsilon=20.0, random_state=0, **FACTS)
    assert [len(one["steps"][0]) for one in made.param_grid] == [3, 4]
    made.fit(X, (X[:, 0] > 0.5).astype(int))
    assert made.certificate_.verify()
    assert clone(made).param_grid[1]["steps"][0][2][0] == "standardscaler"


@pytest.mark.parametrize(
    ("search", "kind", "fix"),
    [
        (LINEAR, UnknownStage, "GridSearchCV"),
        (GridSearchCV(LINEAR, {"logisticregression__tol": [1, 2]}), InvalidParameter, "Pipeline.from_sklearn"),
        (GridSearchCV(LINEAR, {"nobody__C": [1, 2]}), InvalidParameter, "step__parameter"),
        (GridSearchCV(LINEAR, {"logisticregression__C": [-1.0, 1.0]}), InvalidParameter, "C=1.0"),
        (GridSearchCV(LINEAR, {"logisticregression__C": []}), InvalidParameter, "at least"),
    ],
)
def test_what_is_refused(search, kind, fix):
    with pytest.raises(PpdpError) as refused:
        PrivateSearchCV.from_sklearn(search, **FACTS)
    assert isinstance(refused.value, kind)
    assert fix in refused.value.fix or "parameters of the types" in refused.value.fix


def test_a_pipeline_says_who_converts_a_search():
    with pytest.raises(UnknownStage) as refused:
        Pipeline.from_sklearn(GridSearchCV(LINEAR, {}), **FACTS)
    assert "PrivateSearchCV.from_sklearn(search" in refused.value.fix
