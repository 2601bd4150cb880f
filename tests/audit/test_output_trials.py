"""Slices of an audit: each with noise of its own, wherever it is made."""

import numpy as np
import pytest

from ppdp.audit import FunctionTarget
from ppdp.audit.trials import make_trials
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.loss import PrivacyLoss


def release(side, noise):
    return noise.release(float(side), 1.0, 1.0)


TARGET = FunctionTarget("a number", release, PrivacyLoss(1.0))
SMALL = {"slice_runs": 20, "random_state": 0}


def same(one, other):
    return all(
        np.array_equal(a.left, b.left) and np.array_equal(a.right, b.right)
        for a, b in zip(one.slices, other.slices, strict=True)
    )


def test_processes_make_the_same_runs():
    from joblib import parallel_config

    with parallel_config(backend="threading"):  # a slice has a seed of its own, wherever it is made
        made = make_trials(TARGET, 4, n_jobs=2, **SMALL)
    assert same(made, make_trials(TARGET, 4, **SMALL))


def test_noise_is_the_systems_unless_it_is_seeded():
    one, other = (make_trials(TARGET, 1, slice_runs=5) for _ in range(2))
    assert not np.isin(one.slices[0].left[:, 1], other.slices[0].left[:, 1]).any()


def test_slices_have_noise_of_their_own():
    made = make_trials(TARGET, 3, **SMALL)
    drawn = np.concatenate([np.concatenate([one.left, one.right])[:, 1] for one in made.slices])
    assert len(np.unique(drawn)) == drawn.size == 120


def test_the_first_slices_choose_and_the_others_count():
    made = make_trials(TARGET, 5, **SMALL)
    (left, right), (more_left, more_right) = made.parts(0.2)
    assert [len(part) for part in (left, right, more_left, more_right)] == [20, 20, 80, 80]
    assert np.array_equal(left, made.slices[0].left)
    assert np.array_equal(more_right[-20:], made.slices[-1].right)


@pytest.mark.parametrize("wrong", [{"slices": 0}, {"slice_runs": 0}, {"random_state": -1}])
def test_impossible_numbers_are_refused(wrong):
    with pytest.raises(InvalidParameter):
        make_trials(TARGET, **{"slices": 1, **SMALL, **wrong})
