"""Pipelines as people write them convert and fit, or are refused by the line to write: the list holds which."""

import pytest
from corpus import CORPUS, outcome

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


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_refused_says_what_to_write(name):
    case = CORPUS[name]
    with pytest.raises(PpdpError) as refused:
        Pipeline.from_sklearn(case.pipe, **case.declared())
    assert "Fix: " in str(refused.value)
