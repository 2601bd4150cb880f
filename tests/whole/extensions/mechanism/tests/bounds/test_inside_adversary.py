"""Shares of rows in a window against an adversary, and end to end."""

import numpy as np
import pytest

from ppdp import Distance, Domain, PrivacyLoss, make_pipeline
from ppdp.bounds import lookup
from ppdp.mechanisms import ShareInside
from ppdp.privacy.gaussian import gaussian_epsilon
from ppdp.testing import check_mechanism
from ppdp.transformers import MinMaxScaler

BALL = Domain(n_rows=2000, n_features=2, row_norm=1.0)


def test_neighbours_come_close_to_the_bound_and_not_beyond():
    assert 0.9 < check_mechanism(ShareInside(), pairs=4, climbs=8, runs=400) <= 1 + 1e-9


def test_its_cost_is_that_of_the_share_of_one_row():
    bound, others = lookup("inside.share", "mechanism"), Distance(toggled=3, moved=2, radius=0.1)
    assert 2000 * bound(BALL, Distance(replaced=1)) == pytest.approx(1)
    assert 2000 * bound(BALL, others) == pytest.approx(5)
    scale = ShareInside().calibrate(BALL, Distance(replaced=1), PrivacyLoss(0.3)).noise_scale
    assert gaussian_epsilon(1 / 2000 / scale, 1e-6) == pytest.approx(PrivacyLoss(0.3).epsilon(1e-6), rel=0.01)


def test_a_fit_knows_the_share_and_its_certificate_holds():
    X = np.random.default_rng(0).uniform(0, 10, (2000, 2))
    pipe = make_pipeline(MinMaxScaler(ranges=(0, 10)), ShareInside(), epsilon=1.0, delta=1e-6, diagnostics=None)
    pipe.fit(X)
    assert pipe["shareinside"].share_ == pytest.approx(0.25, abs=0.06)
    assert pipe.certificate_.verify()
    assert "shareinside" in pipe.certificate_.to_text(full=True)
