"""Exact deduplication: which rows stay, in which form, and where the stage may stand."""

import numpy as np
import pandas as pd
import pytest

from ppdp import make_pipeline
from ppdp.data.rows import Rows
from ppdp.exceptions import DomainMismatch
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler, StandardScaler
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
    @pytest.mark.parametrize("y", [Y, [1.5, np.nan, 1.5, 2.0, np.nan], [None, "a", None, "b", "a"], [True] * 5])
    def test_labels_of_any_kind(self, y):
        y = np.array(y, dtype=object if None in y else None)
        codes = pd.factorize(y, use_na_sentinel=False)[0]
        kept = Deduplicator().weights(X, y)
        assert np.flatnonzero(kept).tolist() == naive(X, codes, None, "record")

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


class TestOrder:
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
