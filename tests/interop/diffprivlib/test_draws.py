"""The generator that diffprivlib is handed: what it draws, from which bits, and that nobody gets a copy."""

import copy
import pickle
from functools import partial

import numpy as np
import pytest
from scipy import stats
from sklearn.utils import check_random_state

from ppdp.exceptions import PpdpError
from ppdp.interop.diffprivlib.step import Draws
from ppdp.privacy.noise.sampler import Noise


class Tape(Noise):
    """Noise whose bits are chosen here."""

    def __init__(self, byte):
        super().__init__()
        self.byte, self.read = byte, 0

    def random_bytes(self, count):
        self.read += count
        return bytes([self.byte] * count)


LAWS = {
    "uniform": (Draws.random, stats.uniform()),
    "normal": (Draws.standard_normal, stats.norm()),
    **{f"gamma {a}": (partial(Draws.gamma, shape=a, scale=3.0), stats.gamma(a, scale=3)) for a in (0.25, 1.0, 2.75)},
}


@pytest.mark.parametrize("name", LAWS)
def test_its_numbers_have_the_law_that_they_are_asked_for(name):
    draw, law = LAWS[name]
    found = draw(Draws(Noise(0)), size=(2000, 2))
    assert found.shape == (2000, 2)
    assert stats.kstest(found.ravel(), law.cdf).pvalue > 0.01
    assert abs(stats.spearmanr(*found.T).statistic) < 4 / np.sqrt(2000)


def test_the_ends_of_a_gamma_variable_are_not_cut_off():
    """As Python's own sampler does where the shape is above 1."""
    smallest = Draws(Tape(0)).gamma(2.0, 1.0, 1)
    largest = Draws(Tape(255)).gamma(2.0, 1.0, 1)
    assert smallest[0] == 0
    assert largest[0] == pytest.approx(2 * 53 * np.log(2))


@pytest.mark.parametrize("size", [None, 3, (2, 2)])
def test_every_uniform_number_takes_fresh_bits(size):
    tape = Tape(129)
    found = Draws(tape).random(size)
    assert np.shape(found) == np.shape(np.empty(() if size is None else size))
    assert 8 * tape.read >= 53 * np.size(found)


def test_a_seed_repeats_it_and_nothing_else_does():
    np.random.seed(0)  # noqa: NPY002
    one = Draws(Noise()).random(4)
    np.random.seed(0)  # noqa: NPY002
    assert not set(one) & set(Draws(Noise()).random(4))
    np.testing.assert_array_equal(Draws(Noise(7)).random(4), Draws(Noise(7)).random(4))


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_it_cannot_be_copied(way):
    with pytest.raises(PpdpError, match="one process"):
        way(Draws(Noise()))


@pytest.mark.parametrize("name", ["randint", "uniform", "permutation", "laplace", "get_state", "_bit_generator"])
def test_it_draws_nothing_that_is_not_known_to_be_asked_for(name):
    with pytest.raises(AttributeError, match=f"draws by {name}"):
        getattr(Draws(Noise()), name)


def test_scikit_learn_takes_it_for_a_generator():
    draws = Draws(Noise())
    assert check_random_state(draws) is draws
