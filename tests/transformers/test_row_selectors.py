"""Stages that compare rows: what they share, outside a pipeline (where imbalanced-learn checks them) and in one."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone

from ppdp import Adjacency, Distance, Domain
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, UnsupportedOrder
from ppdp.transformers import ClusterDeduplicator, ClusterQuantizer, Deduplicator, GridDeduplicator, LSHDeduplicator

ONE = Adjacency.replace().distance
DOMAIN = Domain(n_rows=1000, n_features=2, row_norm=1.0, min_present=1000)
DELETING = [Deduplicator(), GridDeduplicator(0.5, keep="first"), LSHDeduplicator(), ClusterDeduplicator(0.01)]
REWRITING = [GridDeduplicator(0.5), ClusterQuantizer(0.01)]
WEIGHING = [GridDeduplicator(0.5, keep="soft"), LSHDeduplicator(rule="soft")]
EVERY = [*DELETING, *REWRITING, *WEIGHING]

X = np.array([[3.0, 1.0], [1.0, 2.0], [3.0, 1.0], [1.0, 2.0], [1.0, 0.0]])
Y = np.array(["b", "a", "b", "b", "a"])
KEPT = [0, 1, 3, 4]


@pytest.mark.parametrize(
    "stage", [Deduplicator(), GridDeduplicator(0.5, keep="first"), ClusterDeduplicator(0.01)], ids=repr
)
def test_every_kind_of_data_stays_what_it_is(stage):
    frame = pd.DataFrame(X, columns=["u", "v"], index=list("pqrst"))
    short, labels = stage.fit_resample(frame, pd.Series(Y, index=frame.index))
    assert short.equals(frame.iloc[KEPT])
    assert labels.index.tolist() == short.index.tolist()
    short, labels = stage.fit_resample(pl.DataFrame(X, schema=["u", "v"]), pl.Series(Y))
    assert isinstance(short, pl.DataFrame)
    assert (short.rows(), labels.to_list()) == ([tuple(X[i]) for i in KEPT], Y[KEPT].tolist())
    table = pa.table({"u": X[:, 0], "v": X[:, 1]})
    short, labels = stage.fit_resample(table, pa.array(Y))
    assert short.equals(table.take(KEPT))
    assert labels.to_pylist() == Y[KEPT].tolist()
    assert stage.fit_resample(X.tolist(), Y.tolist()) == (X[KEPT].tolist(), Y[KEPT].tolist())
    assert stage.fit_resample(X)[1] is None
    typed = pd.DataFrame({"n": [1, 1, 2], "m": [1, 1, 0]})
    assert stage.fit_resample(typed)[0].dtypes.equals(typed.dtypes)


@pytest.mark.parametrize("stage", REWRITING, ids=repr)
def test_rewritten_rows_come_in_the_container_of_the_input(stage):
    rows = np.array([[0.1, 0.1], [0.1001, 0.1], [3.0, 4.0]])
    expected = clone(stage).fit_resample(rows)[0]
    assert isinstance(expected, np.ndarray)
    frames = pd.DataFrame(rows, columns=["u", "v"], index=["p", "q", "r"]), pl.DataFrame(rows, schema=["u", "v"])
    for frame in (*frames, pa.table({"u": rows[:, 0], "v": rows[:, 1]})):
        short, _ = stage.fit_resample(frame)
        assert type(short) is type(frame)
        np.testing.assert_array_equal(short.to_pandas() if isinstance(short, pa.Table) else short, expected)
        assert list(getattr(short, "column_names", short.columns)) == ["u", "v"]


@pytest.mark.parametrize("stage", EVERY, ids=repr)
def test_nothing_tells_which_rows_were_kept(stage):
    stage = clone(stage)
    stage.weights(X, Y)
    assert vars(stage) == vars(clone(stage).fit(X))
    assert set(vars(stage)) == {*stage.get_params(), "n_features_in_"}
    assert not hasattr(stage, "transform")
    assert not hasattr(stage, "map_rows")


@pytest.mark.parametrize("stage", WEIGHING, ids=repr)
def test_rows_with_weights_cannot_be_shortened(stage):
    with pytest.raises(InvalidParameter, match="weights"):
        stage.fit_resample(X)
    domain, distance = stage.stability_map(DOMAIN, ONE)
    assert distance.reweighted == DOMAIN.n
    for behind in EVERY:
        with pytest.raises(UnsupportedOrder, match="weights between 0 and 1"):
            behind.fit_modes(domain, distance)


@pytest.mark.parametrize("stage", EVERY, ids=repr)
def test_it_may_not_stand_behind_a_stage_that_moved_many_rows(stage):
    moved = Distance(replaced=1, moved=500, radius=0.01)
    with pytest.raises(UnsupportedOrder, match="500 of 1000"):
        stage.fit_modes(DOMAIN, moved)
    if stage in REWRITING:  # which compares no raw rows
        return
    _, out = clone(stage).set_params(compare="raw").stability_map(DOMAIN, moved)
    assert (out.moved, out.radius, out.total) == (500, 0.01, 5.0)


@pytest.mark.parametrize("stage", [*DELETING, *WEIGHING], ids=repr)
def test_raw_keys_do_not_bring_deleted_rows_back(stage):
    domain, distance = Deduplicator().stability_map(DOMAIN, ONE)
    with pytest.raises(UnsupportedOrder, match="would bring them back"):
        clone(stage).set_params(compare="raw").fit_modes(domain, distance)


@pytest.mark.parametrize("stage", DELETING, ids=repr)
def test_raw_rows_decide(stage):
    rows = Rows(np.array([[0.0, 1.0], [5.0, 1.0]]), None, np.ones(2), raw=np.ones((2, 2)))
    for keys, weights in (("raw", [1, 0]), ("current", [1, 1])):
        chosen = clone(stage).set_params(compare=keys)
        (way,) = chosen.fit_modes(DOMAIN, ONE)
        out = chosen.apply(rows, chosen.prepare(rows, way, DOMAIN))
        assert out.weight.tolist() == weights


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
        assert Deduplicator(subset=[0]).fit_resample(X)[0].tolist() == [["a", "c"], ["b", "d"]]

    def test_a_word_is_not_the_number_that_it_spells(self):
        X = np.array([["x", 1], ["x", "1"]], dtype=object)
        assert len(Deduplicator().fit_resample(np.vstack([X, [["x", "y"]]]))[0]) == 3

    def test_what_is_no_word_is_refused(self):
        with pytest.raises(TypeError):
            Deduplicator().fit_resample(np.array([[{}], ["a"]], dtype=object))
