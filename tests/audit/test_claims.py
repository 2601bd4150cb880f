"""What a claim measures: rows of two datasets behind a map, slot by slot."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler

from ppdp import Distance, Domain, Sensitivity
from ppdp.audit import Claim
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.rows import Rows

DOMAIN = Domain(n_rows=4, n_features=1, row_norm=1.0)
PAIR = Rows.of([[1.0], [0.0], [0.0], [0.5]]), Rows.of([[-1.0], [0.0], [0.0], [0.5]])
EVERY = dict.fromkeys(("linf", "l2", "slots", "moved", "radius", "total", "mass", "one_sided"), 1.0)


def attained(transform, **settings):
    claim = Claim(transform, DOMAIN, EVERY, **settings)
    return {name: round(value, 9) for name, (value, _) in claim.uses(PAIR).items()}


def test_rows_that_move():
    found = attained(lambda X: X - X.mean())
    assert found == {
        "linf": 3,
        "l2": 0.5,
        "slots": 1,
        "moved": 3,
        "radius": 0.5,
        "total": 1.5,
        "mass": 2,
        "one_sided": 1,
    }


def test_rows_that_are_dropped():
    found = attained(lambda X: (X, X[:, 0] <= X[0, 0]))
    assert (found["linf"], found["l2"], found["slots"]) == (3, 0, 4)
    assert found == attained(lambda X: (X[X[:, 0] <= X[0, 0]], X[:, 0] <= X[0, 0]))


class Halves(BaseEstimator):
    """A sampler that keeps rows no larger than the first, and says which."""

    def fit_resample(self, X, y=None):
        self.sample_indices_ = np.flatnonzero(X[:, 0] <= X[0, 0])
        return X[self.sample_indices_], y


def test_samplers_say_which_rows_they_keep():
    assert attained(Halves()) == attained(lambda X: (X, X[:, 0] <= X[0, 0]))


def test_transformers_of_other_libraries_are_fitted_on_each_dataset():
    scaler = StandardScaler()
    found = attained(scaler)
    z = [(x - x.mean()) / x.std() for x in (rows.X[:, 0] for rows in PAIR)]
    assert found["l2"] == pytest.approx(np.abs(z[0] - z[1])[1:].max())
    assert not hasattr(scaler, "mean_")


def test_rounding_is_no_move():
    def jittered(X):
        return X + 1e-12 * X[0]

    assert attained(jittered)["linf"] == 0
    assert attained(jittered, resolution=0.0)["linf"] == 3


def test_bounds_may_depend_on_the_pair():
    claim = Claim(np.negative, DOMAIN, {"l2": lambda left, right: abs(left - right).max()})
    assert claim.uses(PAIR)["l2"] == (0, 2)
    assert Claim(np.negative, DOMAIN, {"l2": lambda left, right: np.nan}).uses(PAIR) == {}


@pytest.mark.parametrize(
    "claimed",
    [
        Distance(replaced=1, moved=3, radius=0.5),
        lambda domain, distance: (domain, distance.widened(domain.n, 3, 0.5)),
    ],
    ids=["a distance", "a stability map"],
)
def test_a_distance_may_be_claimed(claimed):
    uses = Claim(lambda X: X - X.mean(), DOMAIN, claimed).uses(PAIR)
    assert uses["radius"] == (0.5, 0.5)
    assert uses["slots"] == (1, 1)
    assert uses["total"] == (1.5, 1.5)


def test_a_sensitivity_may_be_claimed():
    assert Claim(np.negative, DOMAIN, Sensitivity(linf=2, l2=0.1)).uses(PAIR) == {"linf": (0, 2), "l2": (0, 0.1)}


def test_nothing_is_claimed_where_it_does_not_hold_or_run():
    def fails(X):
        raise ValueError("not these rows")

    assert Claim(np.negative, DOMAIN, EVERY, holds=lambda X: X[0, 0] > 0).uses(PAIR) is None
    assert Claim(fails, DOMAIN, EVERY).uses(PAIR) is None


def test_lengths_among_the_parameters_are_scales():
    class Near(BaseEstimator):
        def __init__(self, eta=0.1, count=3, name="x"):
            self.eta, self.count, self.name = eta, count, name

        def fit_transform(self, X):
            return X

    assert Claim(Near(), DOMAIN, EVERY).world.scales == (0.1,)
    assert Claim(Near(), DOMAIN, EVERY, scales=(0.2, 0.3)).world.scales == (0.2, 0.3)


def test_impossible_claims():
    with pytest.raises(InvalidParameter, match=r"unknown quantities: \['l3'\]"):
        Claim(np.negative, DOMAIN, {"l3": 1})
    with pytest.raises(MissingBound, match="n_rows"):
        Claim(np.negative, Domain(n_features=1), EVERY)
    with pytest.raises(InvalidParameter, match="gaps"):
        Claim(np.negative, DOMAIN, EVERY, gaps=-1)
