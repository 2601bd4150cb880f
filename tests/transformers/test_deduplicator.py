"""Exact deduplication and clusters: which rows stay, in which form, and where the stages may stand."""

import numpy as np
import pandas as pd
import pytest

from ppdp import Adjacency, Domain, PrivacyRefusal, make_pipeline
from ppdp import transformers as S
from ppdp.data.rows import Rows
from ppdp.exceptions import DomainMismatch, InvalidParameter
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers.deduplicate import records
from ppdp.transformers.deduplicate.records import firsts, grouped, smallest

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
        weight = S.Deduplicator(columns, label_rule=labels).weights(rows, y)
        assert np.flatnonzero(weight).tolist() == naive(rows, y, columns, labels)


class TestOutsideAPipeline:
    @pytest.mark.parametrize("y", [Y, [1.5, np.nan, 1.5, 2.0, np.nan], [None, "a", None, "b", "a"], [True] * 5])
    def test_labels_of_any_kind(self, y):
        y = np.array(y, dtype=object if None in y else None)
        codes = pd.factorize(y, use_na_sentinel=False)[0]
        kept = S.Deduplicator().weights(X, y)
        assert np.flatnonzero(kept).tolist() == naive(X, codes, None, "record")

    def test_columns_by_name(self):
        frame = pd.DataFrame(X, columns=["u", "v"])
        assert S.Deduplicator(["u"]).fit_resample(frame)[0].to_numpy().tolist() == [[3, 1], [1, 0]]
        with pytest.raises(DomainMismatch, match="'w'"):
            S.Deduplicator(["w"]).fit(frame)

    def test_as_a_step_of_imbalanced_learn(self):
        pipelines = pytest.importorskip("imblearn.pipeline")
        from sklearn.tree import DecisionTreeClassifier

        pipe = pipelines.make_pipeline(S.Deduplicator(), DecisionTreeClassifier()).fit(X, Y)
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
        stages = (
            S.MinMaxScaler(ranges=(-1, 1)),
            S.MeanImputer(),
            S.StandardScaler(use_floor=True),
            S.Deduplicator(compare="raw"),
        )
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

    @pytest.mark.parametrize("collided", [False, True])
    @pytest.mark.parametrize("n", [0, 1, 2, 3, 700])
    def test_first_records_are_those_of_groups(self, n, collided, monkeypatch):
        """Also of records that agree in the few columns by which most are told apart, and whose labels differ."""
        rng = np.random.default_rng(n)
        if collided:
            monkeypatch.setattr(records, "hashed", lambda words, hashes: None)
            monkeypatch.setattr(records, "MANY", 2)
        for width in (1, 3, 9):
            table = rng.choice([0.0, -0.0, 1.0, np.nan], size=(n, width))
            table[:, -1] = rng.normal(size=n) * (rng.random(n) < 0.9)
            again = table[rng.integers(max(n, 1), size=n // 3)].copy()
            again[::2, 0] = 7.0
            table, labels = np.vstack([table, again]), rng.integers(2, size=n + n // 3) * 1.0
            for columns in ((table,), (table, labels)):
                assert firsts(*columns).tolist() == sorted(grouped(*columns).first)

    def test_nothing_is_grouped_if_nobody_is_present(self):
        rows = Rows(np.zeros((3, 2)), np.zeros(3), np.zeros(3))
        for labels in ("record", "unanimous", "first"):
            stage = S.Deduplicator(label_rule=labels)
            assert not stage.apply(rows, {"columns": None}).weight.any()

    def test_smallest_has_gaps_last(self):
        table = np.array([[np.nan, 0.0], [1.0, np.nan], [1.0, 5.0], [1.0, 5.0]])
        assert smallest(table, grouped(np.zeros((4, 1)))).tolist() == [2]


def members(groups):
    return np.split(groups.order, groups.starts[1:])


ONE = Adjacency.replace().distance

CLUSTERS = [S.ClusterDeduplicator, S.ClusterQuantizer]
every_class = pytest.mark.parametrize("kind", CLUSTERS)


def copied(n=3000, copies=600, d=4, seed=0):
    """Rows far apart, and near-copies of some of them with the same label."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, d))
    X[-copies:] = X[:copies] + rng.uniform(-1e-4, 1e-4, (copies, d))
    y = (X[:, 0] > 0).astype(int)
    y[-copies:] = y[:copies]
    return X, y


class TestClusters:
    # A cluster of three, a cluster of two, two that are not near enough, two with a third in their way.
    X = np.array([[0.0], [1.0], [0.5], [10.0], [10.9], [20.0], [21.1], [30.0], [31.0], [32.5]])

    def test_one_row_of_each_cluster_is_kept(self):
        kept = S.ClusterDeduplicator(radius=1.0).fit_resample(self.X)[0]
        assert kept.ravel().tolist() == [0.0, 10.0, 20.0, 21.1, 30.0, 31.0, 32.5]

    def test_rows_move_to_the_one_that_is_kept(self):
        moved = S.ClusterQuantizer(radius=1.0).fit_resample(self.X)[0]
        assert moved.ravel().tolist() == [0, 0, 0, 10, 10, 20, 21.1, 30, 31, 32.5]

    def test_copies_of_a_row_are_a_cluster(self):
        X = np.repeat([[1.0, -0.0], [1.0, 5.0]], 40, axis=0)
        X[::2, 1] += 0.0
        assert len(S.ClusterDeduplicator(radius=0.1).fit_resample(X)[0]) == 2
        assert (S.ClusterQuantizer(radius=0.1).fit_resample(X)[0] == X).all()

    def test_rows_of_other_labels_are_far_away(self):
        X, y = np.array([[0.0], [0.1], [0.2]]), np.array(["b", "a", "b"])
        kept, labels = S.ClusterDeduplicator(radius=1.0).fit_resample(X, y)
        assert (kept.ravel().tolist(), labels.tolist()) == ([0.0, 0.1], ["b", "a"])
        assert S.ClusterQuantizer(radius=1.0).fit_resample(X, y)[0].ravel().tolist() == [0.0, 0.1, 0.0]

    @every_class
    def test_rows_with_gaps_stay(self, kind):
        X = np.array([[0.0, 1.0], [np.nan, 1.0], [np.nan, 1.0], [0.0, 1.0]])
        out = kind(radius=1.0).fit_resample(X)[0]
        assert np.isnan(out[:, 0]).sum() == 2


class TestInPipeline:
    def pipe(self, *stages, **parameters):
        return make_pipeline(S.MinMaxScaler(ranges=(-1, 1)), *stages, **{"epsilon": 3.0, "delta": 1e-5, **parameters})

    def test_near_copies_do_not_count_twice(self):
        X, _ = copied(20000, 9000, 2)
        pipe = self.pipe(S.ClusterDeduplicator(radius=2e-4, max_cluster=200), GaussianMechanism(), epsilon=8.0)
        mechanism = pipe.fit(X)["gaussianmechanism"]
        assert pipe.certificate_.verify()
        kept = len(S.ClusterDeduplicator(radius=2e-4).fit_resample(X)[0])
        assert kept < 11500
        assert mechanism.present_ == pytest.approx(kept / 20000, abs=0.1)

    @every_class
    def test_crowded_rows_are_refused(self, kind):
        X = np.zeros((1000, 2))
        with pytest.raises(PrivacyRefusal):
            self.pipe(kind(radius=0.001, max_cluster=200), GaussianMechanism(), epsilon=8.0).fit(X)
        certificate = self.pipe(kind(radius=0.001), GaussianMechanism(), gate=None).fit(X).certificate_
        assert certificate.status == "CONDITIONAL"


DOMAIN = Domain(n_rows=1000, n_features=5, row_norm=1.0, min_present=1000)


class TestPlanning:
    def test_sensitivity_of_one_record(self):
        stage = S.ClusterQuantizer(radius=0.01, max_cluster=4)
        assert stage.sensitivity(DOMAIN).linf == 6
        assert stage.sensitivity(DOMAIN).l2 == pytest.approx(0.02)
        out = S.ClusterDeduplicator(radius=0.01, max_cluster=4).stability_map(DOMAIN, ONE)[1]
        assert (out.toggled, out.mass, out.moved) == (6, 8, 0)

    def test_few_columns(self):
        for d, kissing in ((1, 2), (2, 6), (3, 12)):
            stage = S.ClusterDeduplicator(max_cluster=4, low_dimension=True)
            assert stage.stability_map(DOMAIN.but(n_features=d), ONE)[1].toggled == 2 * kissing * 3
        with pytest.raises(InvalidParameter, match="at most 3 columns"):
            stage.fit_modes(DOMAIN, ONE)

    @every_class
    def test_where_no_two_rows_are_near_nothing_happens(self, kind):
        assert kind(max_cluster=1).stability_map(DOMAIN, ONE)[1] == ONE

    def test_behind_exact_deduplication_nothing_is_added(self):
        domain, distance = S.Deduplicator().stability_map(DOMAIN, ONE)
        out = S.ClusterDeduplicator(max_cluster=4).stability_map(domain, distance)[1]
        assert (out.toggled, out.mass) == (6, 8)

    def test_raw_keys_need_not_know_the_columns_of_now(self):
        narrow = S.RandomProjection(n_components=2).stability_map(DOMAIN.but(max_missing=0), ONE)
        with pytest.raises(InvalidParameter, match="compared as they are"):
            S.ClusterDeduplicator(compare="raw", low_dimension=True).fit_modes(*narrow)
