"""Sketches that mechanisms release against an adversary: neighbouring rows, floats, the floor under eigenvalues."""

import math

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, named
from effort import found, rounds
from neighbours import ROUNDING
from scipy import linalg

from ppdp import Adjacency, Distance, Domain
from ppdp.bounds.sketch import sketch_bound, sketch_error, sketch_loss
from ppdp.core.formula import lookup
from ppdp.data.rows import Rows
from ppdp.exceptions import CertificateError
from ppdp.mechanisms import Ridge
from ppdp.mechanisms.learn.moments import _clipped
from ppdp.mechanisms.query.random_matrices import sketched
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers.floor import EigenvalueFloor

N, D, SIGMA = 6, 2, 1.5
DOMAIN = Domain(n_rows=N, n_features=D, row_norm=1.0, max_missing=0)
ONE = Distance(replaced=1)
ORDERS = 1 + np.array([0.05, 0.5, 1.0, 2.0, 3.0, 9.0])
TARGETS = np.array([-1.0, 1.0])


def moment(X, weight):
    return (X * weight[:, None]).T @ X


def divergences(one, other):
    """Exact Rényi divergences of one row of two sketches at all orders, by generalised eigenvalues, both ways round."""
    s = linalg.eigh(one, other, eigvals_only=True)
    for scales in (s, 1 / s):
        rest = 1 - (ORDERS[:, None] - 1) * (scales - 1)
        finite = rest.min(axis=1) > 0
        log = np.log(np.where(rest > 0, rest, 1.0))
        told = np.sum(-np.log(scales) / 2 - log / (2 * (ORDERS[:, None] - 1)), axis=1)
        yield np.where(finite, told, np.inf)


def _closest(told, bound):
    return float(np.max(told[np.isfinite(bound)] / bound[np.isfinite(bound)]))


def use(loss, moments, *, least=0.0):
    """How close a pair comes to what is certified; pairs below the floor do not count."""
    (part,) = loss.parts
    bound = np.array([part.renyi(order) for order in ORDERS]) / part.rank

    def ratio(pair):
        one, other = (moments(rows) for rows in (pair.left, pair.right))
        if min(np.linalg.eigvalsh(one)[0], np.linalg.eigvalsh(other)[0]) < least:
            return 0.0
        noise = SIGMA**2 * np.eye(len(one))
        return max(_closest(told, bound) for told in divergences(one + noise, other + noise))

    return ratio


@pytest.mark.parametrize("distance", DISTANCES, ids=named)
def test_no_pair_exceeds_the_loss(distance):
    """With more directions than a row has, and with a floor."""
    world = World(DOMAIN, distance, deleted=True)
    for floor in (0.0, 0.4):
        loss = sketch_loss(N, D, 1.0, distance, noise_scale=SIGMA, rank=3, floor=floor)
        ratio = use(loss, lambda rows: moment(rows.X, rows.weight), least=floor)
        assert attack(world, ratio, draws=12, steps=12)[0] <= ROUNDING


@pytest.mark.parametrize(("distance", "floor"), [(ONE, 0.0), (ONE, 0.5), (Distance(toggled=1), 0.0)])
def test_rows_at_right_angles_attain_it(distance, floor):
    X, Z = (np.vstack([row, math.sqrt(floor) * np.eye(D), np.zeros((3, D))]) for row in np.eye(D))
    weight = np.r_[0.0, np.ones(N - 1)] if distance.toggled else np.ones(N)
    pair = moment(X, np.ones(N)), moment(Z, weight)
    loss = sketch_loss(N, D, 1.0, distance, noise_scale=SIGMA, rank=5, floor=floor)
    bound = np.array([loss.parts[0].renyi(order) / 5 for order in ORDERS])
    noisy = [one + SIGMA**2 * np.eye(D) for one in pair]
    assert 0.9998 < found(max(_closest(told, bound) for told in divergences(*noisy))) <= ROUNDING


def test_no_pair_of_rows_with_targets_exceeds_that_of_ridge():
    model = Ridge(y_range=(-1, 1), solver="sketch", rank=9)
    question = model.question(DOMAIN, 1.0)
    loss = question.privacy_map(DOMAIN, ONE, SIGMA)

    def moments(rows):
        labelled = Rows(rows.X, TARGETS[rows.y.astype(int)], rows.weight)
        return moment(_clipped(labelled, question.parameters), rows.weight)

    reached, _ = attack(World(DOMAIN, ONE, labels=True, deleted=True), use(loss, moments), draws=12, steps=12)
    assert 0.5 < reached <= ROUNDING


class _Identity(Noise):
    """Shows the factor."""

    def standard_lattice(self, size):
        return np.eye(*size) * 2.0**37


@pytest.mark.parametrize(("n", "d"), [(1, 3), (3, 3), (1500, 1), (30_000, 4)])
def test_computed_factors_are_as_good_as_is_charged(n, d):
    """Also of columns that nearly agree, and of rows of very different lengths."""
    rng = np.random.default_rng(n)
    charged = sketch_error(n, d, 1.0, d) / (13 * d)
    for trial in range(rounds(2)):
        X = rng.normal(size=(n, d)) * 10.0 ** (-6.0 * trial * rng.random((n, 1)))
        X[:, -1] = X[:, 0] + 10.0 ** (-9 * trial) * X[:, -1]
        X /= np.linalg.norm(X, axis=1).max()
        weight = rng.choice([0.0, 0.3, 1.0], n) if trial else np.ones(n)
        R = sketched(X, weight, d, _Identity(0))
        assert R.shape == (d, d)
        exact = (X.astype(np.longdouble) * weight[:, None]).T @ X.astype(np.longdouble)
        off = np.linalg.norm(np.asarray(R.astype(np.longdouble).T @ R.astype(np.longdouble) - exact, dtype=float))
        assert found(off / (charged * (2 * math.sqrt(n) + charged))) < 1
        assert 13 * np.abs(R).sum(axis=0).max() <= sketch_bound(n, d, 1.0)


def test_what_floats_cost_is_a_gaussian_release_that_noise_hides():
    few = [sketch_loss(10**5, 10, 1.0, ONE, noise_scale=sigma, rank=100).mu for sigma in (10.0, 1.0)]
    assert 0 < few[0] < 1e-3
    assert few[1] == pytest.approx(10 * few[0], rel=0.1)
    assert sketch_loss(10**5, 10, 1.0, ONE, noise_scale=1e-6, rank=100).epsilon(1e-6) > 1e9


@pytest.mark.parametrize("distance", [ONE, Distance(toggled=1), Distance(moved=1, radius=0.4)], ids=named)
def test_margins_of_neighbours_differ_by_no_more_than_one(distance):
    (condition,) = EigenvalueFloor(0.05).ways(DOMAIN, distance)[0].conditions
    reached, _ = attack(
        World(DOMAIN, distance, deleted=True),
        lambda pair: abs(condition.margin(pair.left) - condition.margin(pair.right)),
        draws=12,
        steps=12,
    )
    assert 0.4 < reached <= ROUNDING


def test_so_many_rows_must_change_before_the_floor_fails():
    """Rows along one axis are taken away, one by one; margin and floor fail together."""
    (condition,) = EigenvalueFloor(1 / 6).ways(DOMAIN, ONE)[0].conditions
    for long in (1, 2, 3, 4):
        X = np.repeat(np.eye(D), [N - long, long], axis=0)
        margin = condition.margin(X)
        assert margin == pytest.approx(max(0, min(long, N - long) - 1), abs=1e-6)
        assert (np.linalg.eigvalsh(X.T @ X)[0] / N > 1 / 6 * (1 + 1e-9)) == (margin > 0)


@pytest.mark.parametrize(
    ("formula", "wrong"),
    [
        ("sketch.rows", {"rank": 0}),
        ("sketch.rows", {"rank": 2.5}),
        ("sketch.rows", {"noise_scale": 0.0}),
        ("sketch.floored-rows", {"share": 0.0}),
    ],
)
def test_impossible_parameters_are_refused(formula, wrong):
    own = {"share": 0.1} if "floored" in formula else {}
    with pytest.raises(CertificateError):
        lookup(formula, "privacy")(DOMAIN, ONE, **{"rank": 3, "noise_scale": 1.0, **own, **wrong})


def test_every_adjacency_is_priced():
    """A row that comes or goes costs less than one that is replaced; one that moves a little less still."""
    distances = [Adjacency.replace().distance, Adjacency.add_remove().distance, Adjacency.change(l2=0.05).between(D)]
    costs = [sketch_loss(N, D, 1.0, d, noise_scale=4.0, rank=40).epsilon(1e-6) for d in distances]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] > 0
