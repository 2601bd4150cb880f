"""Pipelines as people write them convert and fit, or are refused by the line to write: the list holds which."""

import pytest
from corpus import CORPUS, outcome
from sklearn.base import clone

from ppdp import Pipeline
from ppdp.exceptions import PpdpError

REFUSED = {
    "nearest neighbours",
    "network",
    "nearest neighbours for amounts",
    "components for neighbours",
    "random search of a forest",
    "voting",
    "stacking",
    "ranks of the targets",
}
# What is worse than scikit-learn's by more than NEAR, and why.
FURTHER = {
    "singular vectors": "largest in scaled columns, where scikit-learn's are those of the widest column",
    "kernel behind everything": "40 features of few rows: gradients end before they have met",
    "words hashed beside numbers for boosting": "scikit-learn's own trees take no sparse rows",
}
NEAR = 0.1
CONVERTED = [name for name in CORPUS if name not in REFUSED]
pytestmark = pytest.mark.filterwarnings("ignore")


def test_most_of_them_convert():
    assert len(CONVERTED) >= 0.9 * len(CORPUS)
    assert set(CORPUS) > REFUSED


@pytest.mark.repeated("name", keep=25)
@pytest.mark.parametrize("name", CONVERTED)
def test_what_converts_fits_and_predicts(name):
    case = CORPUS[name]
    pipe = outcome(case)
    assert not isinstance(pipe, PpdpError), pipe
    assert len(pipe.predict(case.table()[:5])) == 5


@pytest.mark.repeated("name", keep=25)
@pytest.mark.parametrize("name", [name for name in CONVERTED if name not in FURTHER])
def test_with_little_noise_predictions_are_as_good_as_those_of_scikit_learn(name):
    case = CORPUS[name]
    theirs = clone(case.pipe).fit(case.table(), case.targets())
    assert case.score(outcome(case, epsilon=15.0)) > case.score(theirs) - NEAR


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused_says_what_to_write(name):
    case = CORPUS[name]
    with pytest.raises(PpdpError) as refused:
        Pipeline.from_sklearn(case.pipe, **case.declared())
    assert "Fix: " in str(refused.value)
