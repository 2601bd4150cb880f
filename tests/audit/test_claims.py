"""What a claim measures: rows of two datasets behind a map, slot by slot, and what that map is handed."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import StandardScaler

from ppdp import Adjacency, Distance, Domain, Sensitivity
from ppdp.audit import Claim, attack_stability
from ppdp.audit.external_transforms import answered, as_declared, label_values, no_output, placed, present
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter

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
    [Distance(replaced=1, moved=3, radius=0.5), lambda domain, distance: (domain, distance.widened(domain.n, 3, 0.5))],
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


def test_gaps_are_those_that_the_domain_declares():
    """Mean imputation moves rows once there are gaps to fill."""
    domain = Domain(n_rows=10, n_features=2, row_norm=1.0)
    for gaps in ({"domain": domain.but(max_missing=3)}, {"domain": domain.but(max_missing=0.3)}, {"gaps": 3}):
        claim = Claim(SimpleImputer(), **{"domain": domain, "claimed": {"moved": 0}, **gaps})
        assert claim.world.gaps == 3
        assert attack_stability(claim, evaluations=100).violated
    with pytest.raises(InvalidParameter, match="gaps is 2, and the domain declares max_missing = 3"):
        Claim(SimpleImputer(), domain.but(max_missing=3), {"moved": 0}, gaps=2)


def test_lengths_among_the_parameters_are_scales():
    class Near(BaseEstimator):
        def __init__(self, eta=0.1, count=3, name="x"):
            self.eta, self.count, self.name = eta, count, name

        def fit_transform(self, X):
            return X

    assert Claim(Near(), DOMAIN, EVERY).world.scales == (0.1,)
    assert Claim(Near(), DOMAIN, EVERY, scales=(0.2, 0.3)).world.scales == (0.2, 0.3)


ROOMY = Domain(n_rows=12, n_features=1, row_norm=1.0)
DELETED = Distance(toggled=1, mass=1, one_sided=1)


def centred(X):
    return X - X.mean(axis=0)


def attack(transform, claimed, domain=ROOMY, **settings):
    claim = Claim(transform, domain, claimed, **settings)
    return attack_stability(claim, evaluations=250, seconds=None, until_violated=True).worst


class Labelled(BaseEstimator):
    """Rows less the mean label, all of them kept."""

    def fit_resample(self, X, y):
        self.sample_indices_ = np.arange(len(X))
        return X - y.mean(), y


class OneAndTwo(BaseEstimator):
    """Keeps the classes 1 and 2; of fewer than 7 such rows none."""

    def fit_resample(self, X, y):
        kept = np.flatnonzero(np.isin(y, (1, 2)))
        self.sample_indices_ = kept if len(kept) >= 7 else kept[:0]
        return X[self.sample_indices_], y[self.sample_indices_]


class TestRowsThatArePresent:
    FULL = ROOMY.but(min_present=11)

    def test_are_no_fewer_than_the_domain_says(self):
        assert not attack(centred, {"l2": 2 / 11}, self.FULL, distance=DELETED).violated
        assert attack(centred, {"l2": 2 / 12}, self.FULL, distance=DELETED).ratio == pytest.approx(1, abs=1e-6)
        assert attack(centred, {"l2": 1.5 / 12}, self.FULL, distance=DELETED).violated

    @pytest.mark.parametrize(
        "distance",
        [DELETED, Distance(toggled=2), Distance(replaced=2, toggled=1, moved=1, radius=0.1), Distance(reweighted=2)],
        ids=["deleted", "two", "all kinds", "reweighted"],
    )
    def test_are_enough_in_all_pairs_that_are_tried(self, distance):
        world, rng = Claim(centred, ROOMY.but(min_present=10), EVERY, distance=distance).world, np.random.default_rng(0)
        drawn = [world.drawn(rng) for _ in range(200)]
        assert all(world.allows(pair) for pair in drawn)
        assert all(world.allows(world.varied(pair, rng, 0.3)) for pair in drawn)

    def test_may_be_few_where_the_domain_says_nothing(self):
        world, rng = Claim(centred, ROOMY, EVERY, distance=DELETED).world, np.random.default_rng(0)
        assert min(np.count_nonzero(world.drawn(rng)[0].weight) for _ in range(200)) < 6

    def test_are_all_where_none_is_deleted(self):
        assert Claim(centred, self.FULL, EVERY).world.domain.min_present == 12

    def test_are_what_is_assumed_of_a_dataset(self):
        found = attack(centred, {"l2": 2 / 11}, distance=DELETED, holds=lambda X: len(X) >= 11)
        assert not found.violated
        assert 0 < found.counted < found.evaluations

    def test_are_what_a_bound_is_a_function_of(self):
        assert not attack(centred, {"l2": lambda X, Z: 2 / max(len(X), len(Z))}, distance=DELETED).violated
        assert attack(centred, {"l2": lambda X, Z: 1.5 / max(len(X), len(Z))}, distance=DELETED).violated

    def test_are_handed_over_alike_whatever_their_weights(self):
        seen = []

        def looks(X, *_):
            seen.append(X.ravel().tolist())
            return X

        left = Rows(np.array([[1.0], [0.0], [0.5], [0.5]]), None, np.array([1.0, 0.0, 0.5, 1.0]))
        claim = Claim(
            looks,
            DOMAIN,
            {"l2": lambda X, Z: len(looks(X))},
            distance=Distance(toggled=1, reweighted=1),
            holds=lambda X: len(looks(X)) > 0,
        )
        claim.uses((left, left))
        assert len(seen) == 5
        assert all(rows == [1.0, 0.5, 0.5] for rows in seen)


class TestLabels:
    def test_are_the_classes_of_the_domain(self):
        assert not attack(OneAndTwo(), {"mass": 2}, ROOMY.but(classes=(1, 2))).violated
        assert attack(OneAndTwo(), {"mass": 2}, ROOMY.but(classes=(0, 1, 2))).violated

    @pytest.mark.parametrize(
        ("facts", "truth"), [({"classes": (0, 1, 2, 3, 4)}, 4 / 12), ({"y_range": (10, 20)}, 10 / 12)], ids=str
    )
    def test_are_as_far_apart_as_the_domain_allows(self, facts, truth):
        assert attack(Labelled(), {"l2": truth}, ROOMY.but(**facts)).ratio == pytest.approx(1)
        assert attack(Labelled(), {"l2": 0.9 * truth}, ROOMY.but(**facts)).violated

    @pytest.mark.parametrize("facts", [{"classes": (1, 2)}, {"y_range": (10, 20)}], ids=str)
    def test_of_rows_that_come_back_are_those_of_the_domain(self, facts):
        world, rng = Claim(centred, ROOMY.but(**facts), EVERY, distance=DELETED).world, np.random.default_rng(0)
        pairs = [world.drawn(rng) for _ in range(100)]
        pairs += [world.varied(pair, rng, 0.3) for pair in pairs for _ in range(5)]
        for rows in (rows for pair in pairs for rows in pair):
            assert np.isin(rows.y[rows.weight > 0], world.labels).all()
            assert not rows.y[rows.weight == 0].any()

    def test_that_are_words_are_handed_over_as_words(self):
        class Says(Labelled):
            def fit_resample(self, X, y):
                return super().fit_resample(X, np.char.equal(y, "yes"))

        claim = {"l2": 0.9 / 12}
        assert attack(Says(), claim, ROOMY.but(classes=("no", "yes"))).violated
        assert not attack(Says(), claim, ROOMY.but(classes=("no", "never"))).violated


def test_as_many_rows_are_replaced_as_one_person_owns():
    owned = ROOMY.but(rows_per_unit=2)
    assert Claim(centred, owned, EVERY).distance == Adjacency.replace(2).distance
    assert Claim(centred, owned, EVERY, distance=Adjacency.replace().distance).distance == Adjacency.replace().distance
    assert attack(centred, {"l2": 2 / 12}, owned).violated
    assert not attack(centred, {"l2": 4 / 12}, owned).violated


@pytest.mark.parametrize("nan", [np.nan, np.array([np.nan]), np.float32("nan")], ids=["float", "array", "float32"])
def test_a_function_may_claim_nothing_of_a_pair(nan):
    assert Claim(np.negative, DOMAIN, {"l2": lambda left, right: nan}).uses(PAIR) == {}


# ---------------- what somebody else's map is handed, and what of its answer counts


ROWS = Rows(np.array([[1.0], [0.0], [3.0]]), np.array([1.0, 0.0, 0.0]), np.array([1.0, 0.0, 0.5]))


class Keeps(BaseEstimator):
    """A sampler that keeps everything and remembers the labels that it was handed."""

    def fit_resample(self, X, y=None):
        self.sample_indices_ = np.arange(len(X))
        return X, y


def test_rows_with_any_weight_are_handed_over_once():
    assert present(ROWS).tolist() == [[1.0], [3.0]]


def test_an_answer_returns_to_the_slots_of_the_rows_that_are_present():
    placed_rows, _ = placed(*answered(Keeps(), present(ROWS), None), ROWS, "it")
    assert placed_rows.X.ravel().tolist() == [1.0, 0.0, 3.0]
    assert placed_rows.weight.tolist() == [1.0, 0.0, 0.5]


@pytest.mark.parametrize(
    ("facts", "values"),
    [
        ({}, (0, 1)),
        ({"classes": ()}, (0, 1)),
        ({"classes": (2, 1)}, (1, 2)),
        ({"classes": (False, True)}, (0, 1)),
        ({"classes": ("a", "b", "c")}, (0, 1, 2)),
        ({"classes": (5, 2**63 - 1)}, (0, 1)),
        ({"y_range": (10, 20)}, (10, 20)),
        ({"classes": (3, 4), "y_range": (10, 20)}, (3, 4)),
    ],
    ids=str,
)
def test_labels_are_those_of_the_domain(facts, values):
    assert label_values(Domain(**facts)) == values


@pytest.mark.parametrize(
    "classes", [(1, 2), (0.5, 2.5), (False, True), ("no", "yes"), (2**53, 2**53 + 1), (5, 2**63 - 1)], ids=str
)
def test_labels_are_handed_over_as_they_are_declared(classes):
    domain = Domain(classes=classes)
    handed = as_declared(np.array(label_values(domain)), domain)
    assert tuple(handed.tolist()) == classes
    assert [type(label) for label in handed.tolist()] == [type(label) for label in classes]


def test_labels_without_classes_are_numbers():
    assert as_declared(np.array([0.0, 1.0]), Domain()).dtype == np.float64


def test_somebody_elses_code_warns_nobody():
    with no_output():
        assert np.isnan(np.empty(0).mean())
        assert np.isinf(np.ones(1) / 0.0).all()
