"""Exact deduplication: which rows stay, in which form, and where the stage may stand."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp.data.rows import Rows
from ppdp.exceptions import DomainMismatch, InvalidParameter, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler, NormClipper, StandardScaler
from ppdp.transformers.deduplicate import records
from ppdp.transformers.deduplicate.records import grouped, smallest

X = np.array([[3.0, 1.0], [1.0, 2.0], [3.0, 1.0], [1.0, 2.0], [1.0, 0.0]])
Y = np.array(["b", "a", "b", "b", "a"])


def naive(X, y, columns, labels):
    """The rules, record by record."""
    groups = {}
    for i, row in enumerate(X):
        entries = row if columns is None else row[columns]
        key = tuple(np.where(np.isnan(entries), np.inf, entries)) + ((y[i],) if labels == "record" else ())
        groups.setdefault(key, []).append(i)
    kept = set()
    for members in groups.values():
        ranked = sorted(members, key=lambda i: (*np.where(np.isnan(X[i]), np.inf, X[i]), y[i], i))
        if labels != "unanimous" or len({y[i] for i in members}) == 1:
            kept.add(ranked[0])
    return sorted(kept)


@pytest.mark.parametrize("labels", ["record", "unanimous", "first"])
@pytest.mark.parametrize("columns", [None, [0], [2, 0]])
@pytest.mark.repeated("columns")
def test_the_rules_record_by_record(columns, labels):
    rng = np.random.default_rng(0)
    for _ in range(50):
        rows = rng.choice([0.0, -0.0, 1.0, -2.0, np.nan], size=(rng.integers(1, 30), 3))
        y = rng.integers(2, size=len(rows)).astype(float)
        weight = Deduplicator(columns, labels=labels).weights(rows, y)
        assert np.flatnonzero(weight).tolist() == naive(rows, y, columns, labels)


class TestOutsideAPipeline:
    def test_every_kind_of_data_stays_what_it_is(self):
        pl = pytest.importorskip("polars")
        frame = pd.DataFrame(X, columns=["u", "v"], index=list("pqrst"))
        short, labels = Deduplicator().fit_resample(frame, pd.Series(Y, index=frame.index))
        assert short.equals(frame.iloc[[0, 1, 3, 4]])
        assert labels.index.tolist() == ["p", "q", "s", "t"]
        short, labels = Deduplicator().fit_resample(pl.DataFrame(X, schema=["u", "v"]), pl.Series(Y))
        assert isinstance(short, pl.DataFrame)
        assert short.rows() == [tuple(X[i]) for i in (0, 1, 3, 4)]
        assert labels.to_list() == ["b", "a", "b", "a"]
        table = pa.table({"u": X[:, 0], "v": X[:, 1]})
        short, labels = Deduplicator().fit_resample(table, pa.array(Y))
        assert short.equals(table.take([0, 1, 3, 4]))
        assert labels.to_pylist() == ["b", "a", "b", "a"]
        short, labels = Deduplicator().fit_resample(X.tolist(), Y.tolist())
        assert short == X[[0, 1, 3, 4]].tolist()
        assert labels == ["b", "a", "b", "a"]
        assert Deduplicator().fit_resample(X)[1] is None

    def test_types_of_columns_stay(self):
        frame = pd.DataFrame({"n": [1, 1, 2], "flag": [True, True, False]})
        assert Deduplicator().fit_resample(frame)[0].dtypes.equals(frame.dtypes)

    @pytest.mark.parametrize("y", [Y, [1.5, np.nan, 1.5, 2.0, np.nan], [None, "a", None, "b", "a"], [True] * 5])
    def test_labels_of_any_kind(self, y):
        y = np.array(y, dtype=object if None in y else None)
        codes = pd.factorize(y, use_na_sentinel=False)[0]
        kept = Deduplicator().weights(X, y)
        assert np.flatnonzero(kept).tolist() == naive(X, codes, None, "record")

    def test_nothing_tells_which_rows_were_kept(self):
        stage = Deduplicator()
        stage.fit_resample(X, Y)
        assert {name for name in vars(stage) if name.endswith("_")} == {"n_features_in_"}
        assert vars(stage) == vars(Deduplicator().fit(X))
        assert not hasattr(stage, "transform")

    def test_columns_by_name(self):
        frame = pd.DataFrame(X, columns=["u", "v"])
        assert Deduplicator(["u"]).fit_resample(frame)[0].to_numpy().tolist() == [[3, 1], [1, 0]]
        with pytest.raises(DomainMismatch, match="'w'"):
            Deduplicator(["w"]).fit(frame)

    def test_as_a_step_of_imbalanced_learn(self):
        pipelines = pytest.importorskip("imblearn.pipeline")
        from sklearn.tree import DecisionTreeClassifier

        pipe = pipelines.make_pipeline(Deduplicator(), DecisionTreeClassifier()).fit(X, Y)
        assert pipe.predict(X).shape == (5,)
        assert pipe[-1].tree_.n_node_samples[0] == 4


class TestParameters:
    @pytest.mark.parametrize(
        ("parameters", "says"),
        [
            ({"labels": "majority"}, "labels"),
            ({"labels": None}, "labels"),
            ({"keys": "old"}, "keys"),
            ({"key": [0], "keys": "raw"}, "whole rows"),
        ],
    )
    def test_impossible(self, parameters, says):
        with pytest.raises(InvalidParameter, match=says):
            Deduplicator(**parameters).fit(X)


class TestOrder:
    domain = Domain(n_rows=100, n_features=2, row_norm=1.0, min_present=100)

    def test_many_moved_rows_are_refused_unless_keys_are_raw(self):
        moved = Distance(replaced=1, moved=99, radius=0.01)
        with pytest.raises(UnsupportedOrder, match="99 of 100"):
            Deduplicator().ways(self.domain, moved)
        _, out = Deduplicator(keys="raw").stability_map(self.domain, moved)
        assert (out.replaced, out.toggled, out.moved, out.total, out.mass, out.one_sided) == (1, 2, 99, 0.99, 4, 2)

    def test_raw_keys_do_not_bring_deleted_rows_back(self):
        with pytest.raises(UnsupportedOrder, match="deleted"):
            Deduplicator(keys="raw").ways(*Deduplicator().stability_map(self.domain, Adjacency.replace().distance))

    def test_weighted_rows_are_refused(self):
        with pytest.raises(UnsupportedOrder, match="weights"):
            Deduplicator().ways(self.domain, Distance(replaced=1, reweighted=3))

    def test_raw_keys_in_a_pipeline_look_at_what_the_scaler_got(self, monkeypatch):
        """Two rows that imputing made equal are two rows; the copies that came are one."""
        rng = np.random.default_rng(0)
        rows = rng.uniform(-1, 1, size=(400, 2))
        rows[200:] = rows[:200]
        seen = []
        release = GaussianMechanism.release

        def spy(self, rows, *args):
            seen.append(rows.weight.sum())
            return release(self, rows, *args)

        monkeypatch.setattr(GaussianMechanism, "release", spy)
        stages = MinMaxScaler(ranges=(-1, 1)), MeanImputer(), StandardScaler(floor=True), Deduplicator(keys="raw")
        pipe = make_pipeline(*stages, GaussianMechanism(), epsilon=20.0, delta=1e-4).fit(rows)
        assert pipe.certificate_.verify()
        assert seen == [200]


@pytest.mark.parametrize("labels", ["record", "unanimous", "first"])
def test_certified_pipelines_predict_on_every_row(labels):
    rng = np.random.default_rng(0)
    rows = rng.choice([-1.0, 0.0, 1.0], size=(600, 3))
    y = (rows[:, 0] > 0).astype(int)
    stages = NormClipper(2.0), Deduplicator(labels=labels), LogisticRegression(classes=(0, 1), max_iter=5)
    pipe = make_pipeline(*stages, epsilon=20.0, delta=1e-4, random_state=0).fit(rows, y)
    assert pipe.certificate_.verify()
    assert pipe.predict(rows[:7]).shape == (7,)


class TestRecords:
    def test_records_that_share_a_hash_are_told_apart(self, monkeypatch):
        """Every hash is made equal, and nothing changes but the order of groups."""
        rng = np.random.default_rng(0)
        table = rng.choice([0.0, -0.0, 1.0, np.nan], size=(60, 3))
        plain = {tuple(sorted(group)) for group in members(grouped(table))}
        monkeypatch.setattr(records, "hashed", lambda words, hashes: None)
        collided = grouped(table)
        assert {tuple(sorted(group)) for group in members(collided)} == plain
        assert all(list(group) == sorted(group) for group in members(collided))

    def test_order_does_not_depend_on_where_records_stand(self):
        rng = np.random.default_rng(1)
        table = rng.normal(size=(50, 2))
        order = rng.permutation(50)
        assert (table[grouped(table).order] == table[order][grouped(table[order]).order]).all()

    def test_nothing_is_grouped_if_nobody_is_present(self):
        rows = Rows(np.zeros((3, 2)), np.zeros(3), np.zeros(3))
        for labels in ("record", "unanimous", "first"):
            stage = Deduplicator(labels=labels)
            assert not stage.apply(rows, {"columns": None}).weight.any()

    def test_smallest_has_gaps_last(self):
        table = np.array([[np.nan, 0.0], [1.0, np.nan], [1.0, 5.0], [1.0, 5.0]])
        assert smallest(table, grouped(np.zeros((4, 1)))).tolist() == [2]


def members(groups):
    return np.split(groups.order, groups.starts[1:])
