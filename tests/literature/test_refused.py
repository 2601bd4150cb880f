"""What papers on random matrices promise and nothing proves is refused, with the reason."""

import numpy as np
import pytest

from ppdp import Domain, Pipeline, lint
from ppdp.exceptions import InvalidParameter, UnsupportedOrder
from ppdp.mechanisms import WishartMechanism
from ppdp.privacy import SketchLoss
from ppdp.transformers import NormClipper, RandomProjection


class TestRefused:
    """Where a user would try what these papers promise, the refusal says why."""

    @pytest.mark.parametrize(
        ("query", "reason"),
        [("rows", "products are symmetric for the one dataset"), ("mean", "told apart by its length")],
    )
    def test_more_than_a_direction_under_a_secret_matrix(self, query, reason):
        steps = [("clip", NormClipper()), ("projection", WishartMechanism(20, 0.99, query))]
        with pytest.raises(UnsupportedOrder, match=reason):
            Pipeline(steps, epsilon=1.0, delta=1e-3).plan(Domain(n_rows=500, n_features=8))

    def test_a_sketch_without_noise_or_a_floor(self):
        with pytest.raises(InvalidParameter, match="protects nothing"):
            SketchLoss(rank=4, shift=0.1)

    def test_a_projection_that_is_kept_secret(self):
        with pytest.raises(InvalidParameter, match="secret does not make it private"):
            RandomProjection(4, seed=None).fit(np.ones((5, 8)))

    def test_rows_that_only_a_projection_hides(self):
        """They may be mapped, and nothing covers them."""
        assert "no certificate covers" in Pipeline.fit_transform.__doc__
        assert "images of private rows stay private" in lint(RandomProjection(4)).findings[0].leaks
