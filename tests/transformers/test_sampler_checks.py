"""imbalanced-learn's own checks of samplers, on every stage that shortens data outside a pipeline."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from ppdp.transformers import ClusterDeduplicator, Deduplicator, GridDeduplicator, LSHDeduplicator

checks = pytest.importorskip("imblearn.utils.estimator_checks")

SAMPLERS = [Deduplicator(), GridDeduplicator(), ClusterDeduplicator(), LSHDeduplicator()]
ALL = sorted({name for name in dir(checks) if name.startswith("check_sampler")} | {"check_target_type"})

NOT_MEANT = {
    "check_samplers_fit": "asks for sampling_strategy_: it balances no classes",
    "check_samplers_multiclass_ova": "asks for labels as columns of 0 and 1: a column of labels is compared",
    "check_samplers_one_label": "refuses data of one class: duplicates have nothing to do with classes",
    "check_samplers_pandas_sparse": "rows are compared as dense ones",
    "check_samplers_sample_indices": "asks for tags that imbalanced-learn's own base has; which rows stay is private",
    "check_samplers_sparse": "rows are compared as dense ones",
    "check_target_type": "refuses numbers as labels: targets of a regression are compared as well",
}
WORDS_HAVE_NO_DISTANCE = {GridDeduplicator, ClusterDeduplicator, LSHDeduplicator}


def run(name, sampler):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        getattr(checks, name)(type(sampler).__name__, clone(sampler))


@pytest.mark.parametrize("sampler", SAMPLERS, ids=lambda sampler: type(sampler).__name__)
@pytest.mark.parametrize("name", [name for name in ALL if name not in NOT_MEANT])
def test_checks(name, sampler):
    if name == "check_samplers_string" and type(sampler) in WORDS_HAVE_NO_DISTANCE:
        with pytest.raises(ValueError, match="float"):
            run(name, sampler)
    else:
        run(name, sampler)


def test_what_is_left_out_is_still_a_check():
    assert set(NOT_MEANT) <= set(ALL)


class TestWords:
    FRAME = pd.DataFrame({"ward": ["b", "a", "b", None, None], "age": [1.0, 2.0, 1.0, 3.0, 3.0]})

    def test_equal_words_are_equal(self):
        short, y = Deduplicator().fit_resample(self.FRAME, np.array([0, 0, 0, 1, 1]))
        pd.testing.assert_frame_equal(short, self.FRAME.iloc[[0, 1, 3]])
        assert y.tolist() == [0, 0, 1]

    def test_of_one_key_the_smallest_record_stays(self):
        X = np.array([["a", "z"], ["a", "c"], ["b", "d"]], dtype=object)
        assert Deduplicator(key=[0]).fit_resample(X)[0].tolist() == [["a", "c"], ["b", "d"]]

    def test_a_word_is_not_the_number_that_it_spells(self):
        X = np.array([["x", 1], ["x", "1"]], dtype=object)
        assert len(Deduplicator().fit_resample(np.vstack([X, [["x", "y"]]]))[0]) == 3

    def test_what_is_no_word_is_refused(self):
        with pytest.raises(TypeError):
            Deduplicator().fit_resample(np.array([[{}], ["a"]], dtype=object))
