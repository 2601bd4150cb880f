"""Estimates from sketches are without bias, and their standard errors are what they vary by."""

import itertools
import math

import numpy as np
import pytest
from effort import rounds

from ppdp.bounds.projection import Matrix
from ppdp.mechanisms import SignMechanism
from ppdp.pipeline.release.estimates import (
    Lengths,
    NoiseMoments,
    Spread,
    agreement_angle,
    arc,
    cosine_of,
    flipped_angle,
    root,
)

U, V = np.array([0.9, -0.3, 0.5, 0.2]), np.array([0.4, 0.6, -0.1, 0.8])
NONE = NoiseMoments(0.0, 0.0)


def rademacher(d, k):
    for signs in itertools.product((-1.0, 1.0), repeat=d * k):
        yield np.reshape(signs, (k, d)) / math.sqrt(k)


def oporp(components, k):
    """Every choice of signs for every assignment of columns to components."""
    for component in components:
        for signs in itertools.product((-1.0, 1.0), repeat=len(component)):
            P = np.zeros((k, len(component)))
            P[component, np.arange(len(component))] = signs
            yield P


def dealt(d, k, bins):
    if bins == "variable":
        return [np.array(found) for found in itertools.product(range(k), repeat=d)]
    size = -(-d // k)
    places = d if bins == "balanced" else size * k
    orders = (np.array(order[:d]) for order in itertools.permutations(range(places)))
    return [order % k if bins == "balanced" else order // size for order in orders]


ALL = {
    "rademacher": rademacher,
    **{bins: lambda d, k, bins=bins: oporp(dealt(d, k, bins), k) for bins in ("balanced", "fixed", "variable")},
}


@pytest.mark.parametrize("family", ALL)
@pytest.mark.parametrize(("d", "k"), [(3, 2), (4, 2), (4, 3), (2, 3)])
@pytest.mark.repeated("d", "k", keep=2)
def test_all_matrices_together_have_the_mean_and_variance_that_are_said(family, d, k):
    u, v = U[:d], V[:d]
    found = np.array([(P @ u) @ (P @ v) for P in ALL[family](d, k)])
    matrix = Matrix("rademacher", k, d, 0) if family == "rademacher" else Matrix("oporp", k, d, 0, bins=family)
    share = Spread.of(matrix, 1.0).share
    expected = share * (u @ u * (v @ v) + (u @ v) ** 2 - 2 * (u * v) @ (u * v))
    assert found.mean() == pytest.approx(u @ v, abs=1e-12)
    assert found.var() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("bins", ["balanced", "fixed", "variable"])
def test_matrices_that_are_drawn_bring_two_columns_together_as_often(bins):
    d, k, seeds = 7, 3, rounds(1500)
    together = []
    for seed in range(seeds):
        at = np.abs(Matrix("oporp", k, d, seed, bins=bins).entries.toarray()).argmax(axis=0)
        together.append(np.mean([at[a] == at[b] for a, b in itertools.combinations(range(d), 2)]))
    assert np.mean(together) == pytest.approx(
        Spread.of(Matrix("oporp", k, d, 0, bins=bins), 1.0).share, abs=4 * max(np.std(together), 1e-12) / seeds**0.5
    )


def noise(rng, law, size):
    drawn = rng.laplace(0, 0.1, size) if law == "laplace" else rng.normal(0, 0.14, size)
    return drawn, NoiseMoments(0.02, 5 * 0.02**2) if law == "laplace" else NoiseMoments(0.0196, 2 * 0.0196**2)


ENTRIES = {
    "gaussian": lambda rng, size: rng.standard_normal(size),
    "sparse": lambda rng, size: rng.choice([-1, 0, 1], size, p=[1 / 20, 0.9, 1 / 20]) * math.sqrt(10),
    "rademacher": lambda rng, size: rng.choice([-1.0, 1.0], size),
}


def drawn_lengths(law, family, times, d=40, k=64, near=0.3):
    """Estimates for one pair of rows by many matrices and much noise, and what they are of."""
    rng = np.random.default_rng(3)
    u = rng.uniform(0, 1, d)
    v = (1 - near) * u + near * rng.uniform(0, 1, d)
    P = ENTRIES[family](rng, (times, k, d)) / math.sqrt(k)
    a, law = noise(rng, law, (times, k))
    spread = Spread.of(Matrix(family, k, d, 0, s=10.0 if family == "sparse" else None), 1.0)
    pairs = zip(P @ u + a, P @ v, strict=True)
    return u, v, [Lengths.of(x[None], y[None], law, spread) for x, y in pairs]


TRUE = {
    "inner_product": lambda u, v: u @ v,
    "squared_distance": lambda u, v: (u - v) @ (u - v),
    "cosine": lambda u, v: u @ v / np.sqrt(u @ u * (v @ v)),
}


@pytest.mark.parametrize("what", TRUE)
@pytest.mark.parametrize("family", ENTRIES)
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
@pytest.mark.repeated("family")
def test_estimates_vary_as_they_say(what, family, law):
    u, v, lengths = drawn_lengths(law, family, rounds(1000))
    found = np.array([getattr(one, what)() for one in lengths]).reshape(-1, 2)
    off = found[:, 0].mean() - TRUE[what](u, v)
    spread = found[:, 0].std()
    assert abs(off) < (4 if what != "cosine" else 10) * spread / math.sqrt(len(found))
    said = math.sqrt((found[:, 1] ** 2).mean()) / spread
    most = 1.6 if family == "sparse" else 1.25  # there a public bound stands for what sketches do not tell
    assert 0.92 < said < most


@pytest.mark.parametrize("near", [0.3, 0.0])
def test_roots_and_angles_stay_within_their_errors(near):
    u, v, lengths = drawn_lengths("laplace", "gaussian", rounds(500), near=near)
    for found, true in (
        ([root(one.squared_distance()) for one in lengths], np.linalg.norm(u - v)),
        ([arc(one.cosine()) for one in lengths], math.acos(min(TRUE["cosine"](u, v), 1.0))),
    ):
        value, error = np.array(found).reshape(-1, 2).T
        assert np.isfinite(error).all()
        assert (np.abs(value - true) < 3 * error).mean() > 0.93


def test_nothing_is_known_of_a_row_of_which_noise_leaves_nothing():
    lengths = Lengths.of(np.full((1, 4), 0.01), np.ones((1, 4)), NoiseMoments(1.0, 2.0), Spread())
    assert lengths.cosine() == (0.0, math.inf)
    assert arc(lengths.cosine()).standard_error == 2.0


def signs(flips, times, angle, k=128, norm=2.0):
    """Hamming distances of flipped and clean signs of Gaussian projections of two vectors."""
    rng = np.random.default_rng(5)
    x, z = rng.standard_normal((2, times, k)) / math.sqrt(k)
    y = math.cos(angle) * x + math.sin(angle) * z
    flipped = rng.uniform(size=x.shape) < flips(norm * x)
    return ((x >= 0) ^ flipped ^ (y >= 0)).sum(axis=1)


@pytest.mark.parametrize("angle", [0.4, 1.2, 2.4])
def test_angles_of_signs_that_flip_equally_often(angle):
    found = agreement_angle(signs(lambda x: np.full(x.shape, 0.2), rounds(3000), angle), 128, 0.2)
    assert found.value.mean() == pytest.approx(angle, abs=4 * found.value.std() / math.sqrt(len(found.value)))
    assert found.standard_error.mean() == pytest.approx(found.value.std(), rel=0.06)


@pytest.mark.parametrize("flips", ["staircase", "smooth", "laplace", "gaussian"])
@pytest.mark.parametrize("angle", [0.8, 1.7])
@pytest.mark.repeated("angle")
def test_angles_of_signs_whose_flips_depend_on_values(flips, angle):
    unit = 0.15 if flips in ("staircase", "smooth") else None
    chance = SignMechanism(flips, 2.0 if unit else 0.2, unit=unit).flip_probability
    found = flipped_angle(signs(chance, rounds(3000), angle), 128, chance, 2.0 / math.sqrt(128))
    spread = found.value.std()
    bent = 0.32 * spread**2  # an angle is no straight line in the share of equal bits: a bias of second order
    assert found.value.mean() == pytest.approx(angle, abs=bent + 4 * spread / math.sqrt(len(found.value)))
    assert 0.9 < found.standard_error.mean() / found.value.std() < 1.25


def test_constant_flips_are_a_special_case():
    distances = np.arange(30, 100)
    plain = agreement_angle(distances, 128, 0.2)
    looked_up = flipped_angle(distances, 128, lambda x: np.full(x.shape, 0.2), 1.0)
    np.testing.assert_allclose(looked_up.value, plain.value, atol=2e-3)
    inside = (plain.value > 0.6) & (plain.value < 2.5)
    np.testing.assert_allclose(looked_up.standard_error[inside], plain.standard_error[inside], rtol=0.01)


def test_a_lookup_that_leaves_the_curve_still_has_an_error():
    found = flipped_angle(np.array([0, 128]), 128, lambda x: np.full(x.shape, 0.49), 1.0)
    np.testing.assert_allclose(found.value, [0.0, math.pi])
    assert (found.standard_error > 1).all()


@pytest.mark.parametrize("size", [1, 8, 64, 256])
@pytest.mark.parametrize("flip", [0.0, 0.02, 0.2])
def test_errors_of_cosines_of_signs_hold_at_the_ends_too(size, flip):
    rng = np.random.default_rng(7)
    for angle in (0.0, 0.05, 0.25, 0.8, 1.57, 3.0, math.pi):
        share = (1 - (1 - 2 * flip) * (1 - 2 * angle / math.pi)) / 2
        found = agreement_angle(rng.binomial(size, share, 4000), size, flip)
        for said, true in ((found, angle), (cosine_of(found), math.cos(angle))):
            assert said.standard_error.min() > 0
            assert (np.abs(said.value - true) <= 1.96 * said.standard_error + 1e-12).mean() > 0.86
    assert size > 1 or found.standard_error.min() > 1.5


@pytest.mark.parametrize("flip", [1e-12, 0.3])
def test_errors_of_angles_that_are_looked_up_do_not_vanish(flip):
    found = flipped_angle(np.array([0, 1, 63, 64]), 64, lambda x: np.full(x.shape, flip), 1.0)
    plain = agreement_angle(np.array([0, 1, 63, 64]), 64, flip)
    assert (found.standard_error > 0.4 * plain.standard_error).all()
    assert (cosine_of(found).standard_error > 0.001).all()


@pytest.mark.parametrize("variance", [0.01, 0.0005])
def test_errors_near_distance_zero_hold(variance):
    rng, u = np.random.default_rng(3), np.eye(40)[:1]
    for angle in (0.0, 0.05, 0.2):
        v = math.cos(angle) * u + math.sin(angle) * np.eye(40)[1:2]
        rows = u + math.sqrt(variance) * rng.standard_normal((2000, 40))
        lengths = Lengths.of(rows, v, NoiseMoments(variance, 2 * variance**2), Spread())
        for said, true in (
            (lengths.cosine(), math.cos(angle)),
            (root(lengths.squared_distance()), 2 * math.sin(angle / 2)),
        ):
            assert (np.abs(said.value - true) <= 1.96 * said.standard_error).mean() > 0.93
