"""ClusterDeduplicator and ClusterQuantizer: clusters that stand apart, alone and in a pipeline."""

import numpy as np
import pytest

from ppdp import Adjacency, Domain, PrivacyRefusal, make_pipeline
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import (
    ClusterDeduplicator,
    ClusterQuantizer,
    Deduplicator,
    MinMaxScaler,
    RandomProjection,
)

ONE = Adjacency.replace().distance

CLUSTERS = [ClusterDeduplicator, ClusterQuantizer]
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
        kept = ClusterDeduplicator(eta=1.0).fit_resample(self.X)[0]
        assert kept.ravel().tolist() == [0.0, 10.0, 20.0, 21.1, 30.0, 31.0, 32.5]

    def test_rows_move_to_the_one_that_is_kept(self):
        moved = ClusterQuantizer(eta=1.0).fit_resample(self.X)[0]
        assert moved.ravel().tolist() == [0, 0, 0, 10, 10, 20, 21.1, 30, 31, 32.5]

    def test_copies_of_a_row_are_a_cluster(self):
        X = np.repeat([[1.0, -0.0], [1.0, 5.0]], 40, axis=0)
        X[::2, 1] += 0.0
        assert len(ClusterDeduplicator(eta=0.1).fit_resample(X)[0]) == 2
        assert (ClusterQuantizer(eta=0.1).fit_resample(X)[0] == X).all()

    def test_rows_of_other_labels_are_far_away(self):
        X, y = np.array([[0.0], [0.1], [0.2]]), np.array(["b", "a", "b"])
        kept, labels = ClusterDeduplicator(eta=1.0).fit_resample(X, y)
        assert (kept.ravel().tolist(), labels.tolist()) == ([0.0, 0.1], ["b", "a"])
        assert ClusterQuantizer(eta=1.0).fit_resample(X, y)[0].ravel().tolist() == [0.0, 0.1, 0.0]

    @every_class
    def test_rows_with_gaps_stay(self, kind):
        X = np.array([[0.0, 1.0], [np.nan, 1.0], [np.nan, 1.0], [0.0, 1.0]])
        out = kind(eta=1.0).fit_resample(X)[0]
        assert np.isnan(out[:, 0]).sum() == 2


class TestInPipeline:
    def pipe(self, *stages, **parameters):
        return make_pipeline(MinMaxScaler(ranges=(-1, 1)), *stages, **{"epsilon": 3.0, "delta": 1e-5, **parameters})

    def test_near_copies_do_not_count_twice(self):
        X, _ = copied(20000, 9000, 2)
        pipe = self.pipe(ClusterDeduplicator(eta=2e-4, max_cluster=200), GaussianMechanism(), epsilon=8.0)
        mechanism = pipe.fit(X)["gaussianmechanism"]
        assert pipe.certificate_.verify()
        kept = len(ClusterDeduplicator(eta=2e-4).fit_resample(X)[0])
        assert kept < 11500
        assert mechanism.present_ == pytest.approx(kept / 20000, abs=0.1)

    @every_class
    def test_crowded_rows_are_refused(self, kind):
        X = np.zeros((1000, 2))
        with pytest.raises(PrivacyRefusal):
            self.pipe(kind(eta=0.001, max_cluster=200), GaussianMechanism(), epsilon=8.0).fit(X)
        certificate = self.pipe(kind(eta=0.001), GaussianMechanism(), gate=None).fit(X).certificate_
        assert certificate.status == "CONDITIONAL"


DOMAIN = Domain(n_rows=1000, n_features=5, row_norm=1.0, min_present=1000)


class TestPlanning:
    def test_sensitivity_of_one_record(self):
        stage = ClusterQuantizer(eta=0.01, max_cluster=4)
        assert stage.sensitivity(DOMAIN).linf == 6
        assert stage.sensitivity(DOMAIN).l2 == pytest.approx(0.02)
        out = ClusterDeduplicator(eta=0.01, max_cluster=4).stability_map(DOMAIN, ONE)[1]
        assert (out.toggled, out.mass, out.moved) == (6, 8, 0)

    def test_few_columns(self):
        for d, kissing in ((1, 2), (2, 6), (3, 12)):
            stage = ClusterDeduplicator(max_cluster=4, low_dimension=True)
            assert stage.stability_map(DOMAIN.but(n_features=d), ONE)[1].toggled == 2 * kissing * 3
        with pytest.raises(InvalidParameter, match="at most 3 columns"):
            stage.ways(DOMAIN, ONE)

    @every_class
    def test_where_no_two_rows_are_near_nothing_happens(self, kind):
        assert kind(max_cluster=1).stability_map(DOMAIN, ONE)[1] == ONE

    def test_behind_exact_deduplication_nothing_is_added(self):
        domain, distance = Deduplicator().stability_map(DOMAIN, ONE)
        out = ClusterDeduplicator(max_cluster=4).stability_map(domain, distance)[1]
        assert (out.toggled, out.mass) == (6, 8)

    def test_raw_keys_need_not_know_the_columns_of_now(self):
        narrow = RandomProjection(n_components=2).stability_map(DOMAIN.but(max_missing=0), ONE)
        with pytest.raises(InvalidParameter, match="compared as they are"):
            ClusterDeduplicator(keys="raw", low_dimension=True).ways(*narrow)
