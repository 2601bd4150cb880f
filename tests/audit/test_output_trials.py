"""Slices of an audit: whole or not there, resumed, and of one target only."""

import dataclasses
import json

import numpy as np
import pytest

from ppdp.audit import FunctionTarget, attack_output
from ppdp.audit.trials import make_trials
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.loss import PrivacyLoss


def release(side, noise):
    return noise.release(float(side), 1.0, 1.0)


TARGET = FunctionTarget("a number", release, PrivacyLoss(1.0))
SMALL = {"slice_runs": 20, "random_state": 0}


class Dies(FunctionTarget):
    """A target during which the process dies, in the third slice."""

    done = 0

    def outcomes(self, side, runs, noise):
        type(self).done += 1
        if type(self).done > 4:
            raise KeyboardInterrupt
        return super().outcomes(side, runs, noise)


def same(one, other):
    return all(
        np.array_equal(a.left, b.left) and np.array_equal(a.right, b.right)
        for a, b in zip(one.slices, other.slices, strict=True)
    )


def test_an_interrupted_audit_goes_on(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        make_trials(Dies("a number", release, PrivacyLoss(1.0)), 5, folder=tmp_path, **SMALL)
    assert sorted(path.name for path in tmp_path.glob("slice-*")) == ["slice-000000.npz", "slice-000001.npz"]
    before = (tmp_path / "slice-000000.npz").stat().st_mtime_ns
    resumed = make_trials(TARGET, 5, folder=tmp_path, **SMALL)
    assert (tmp_path / "slice-000000.npz").stat().st_mtime_ns == before
    assert same(resumed, make_trials(TARGET, 5, **SMALL))


def test_what_was_half_written_is_not_read(tmp_path):
    make_trials(TARGET, 2, folder=tmp_path, **SMALL)
    (tmp_path / ".slice-000002.npz.abc").write_bytes(b"half")
    assert len(make_trials(TARGET, 3, folder=tmp_path, **SMALL).slices) == 3


def test_a_folder_gives_the_finding_again(tmp_path):
    first = attack_output(TARGET, runs=2000, folder=tmp_path / "new", random_state=0)
    assert attack_output(TARGET, runs=2000, folder=tmp_path / "new", random_state=0) == first


class TestVerdict:
    """A folder is judged with one number of runs: whoever adds runs until a verdict pleases has no confidence."""

    def test_more_runs_are_refused_once_it_was_judged(self, tmp_path):
        first = attack_output(TARGET, runs=2000, folder=tmp_path, random_state=0)
        for runs in (3000, 10_000):
            with pytest.raises(InvalidParameter, match=f"judged with 2000 runs, not {runs}"):
                attack_output(TARGET, runs=runs, folder=tmp_path, random_state=0)
        assert len(list(tmp_path.glob("slice-*"))) == 2
        assert attack_output(TARGET, runs=2000, folder=tmp_path, random_state=0) == first

    def test_a_verdict_that_is_lost_is_not_given_again(self, tmp_path):
        attack_output(TARGET, runs=2000, folder=tmp_path, random_state=0)
        (tmp_path / "verdict.json").write_text("[]", encoding="utf-8")
        with pytest.raises(InvalidParameter, match="a number that is lost"):
            attack_output(TARGET, runs=2000, folder=tmp_path, random_state=0)

    def test_runs_that_nobody_judged_go_on(self, tmp_path):
        """As they are made by an audit that was interrupted, or that judges by itself."""
        make_trials(TARGET, 1, folder=tmp_path, random_state=0)
        assert not (tmp_path / "verdict.json").exists()
        assert attack_output(TARGET, runs=3000, folder=tmp_path, random_state=0).runs == 3000


def test_a_folder_belongs_to_one_target(tmp_path):
    make_trials(TARGET, 2, folder=tmp_path, **SMALL)
    others = [
        (dataclasses.replace(TARGET, loss=PrivacyLoss(2.0)), SMALL),
        (dataclasses.replace(TARGET, name="another number"), SMALL),
        (TARGET, {**SMALL, "slice_runs": 21}),
        (TARGET, {**SMALL, "random_state": None}),
    ]
    for target, settings in others:
        with pytest.raises(InvalidParameter, match="another target"):
            make_trials(target, 2, folder=tmp_path, **settings)


@pytest.mark.parametrize("header", ["", "{", json.dumps({"form": 0})])
def test_a_header_that_is_not_ours_is_refused(tmp_path, header):
    make_trials(TARGET, 2, folder=tmp_path, **SMALL)
    (tmp_path / "target.json").write_text(header, encoding="utf-8")
    with pytest.raises(InvalidParameter, match="another target"):
        make_trials(TARGET, 2, folder=tmp_path, **SMALL)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "thesis.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(InvalidParameter, match="not of an audit"):
        make_trials(TARGET, 2, folder=tmp_path, **SMALL)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_a_damaged_slice_is_named(tmp_path):
    make_trials(TARGET, 2, folder=tmp_path, **SMALL)
    place = tmp_path / "slice-000001.npz"
    place.write_bytes(place.read_bytes()[:-100])
    with pytest.raises(InvalidParameter, match=r"slice-000001\.npz is damaged"):
        make_trials(TARGET, 2, folder=tmp_path, **SMALL)


def test_time_that_is_up_leaves_what_is_there(tmp_path):
    made = make_trials(TARGET, 2, folder=tmp_path, **SMALL)
    assert same(make_trials(TARGET, 9, folder=tmp_path, seconds=0.0, **SMALL), made)


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
