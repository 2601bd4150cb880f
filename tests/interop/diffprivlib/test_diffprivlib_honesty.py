"""The auditor on diffprivlib itself: it finds what is known to be wrong, and nothing where its noise is as it says."""

import numpy as np
import pytest

models = pytest.importorskip("diffprivlib.models")

from adapters import diffprivlib_target  # noqa: E402

from ppdp.audit import attack_output  # noqa: E402

# The scikit-learn that diffprivlib needs does not know the newest SciPy.
pytestmark = pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")
RUNS = 2000


def audited(model, left, right, **settings):
    return attack_output(diffprivlib_target("audited", model, left, right, **settings), runs=RUNS, random_state=0)


def test_a_scaler_with_public_bounds_hides_a_row():
    model = models.StandardScaler(bounds=(0, 1), with_std=False)
    X = np.zeros((3, 1))
    finding = audited(model, (X,), (np.vstack([X[1:], [[1.0]]]),), learned=["mean_"])
    assert not finding.violated
    assert finding.epsilon_low > 0.2


def test_a_sum_of_squares_without_noise_is_found():
    """Bounds (0, 1): noise is drawn for the square of the lower bound alone."""
    model = models.LinearRegression(bounds_X=(0, 1), bounds_y=(0, 1), fit_intercept=False)
    X, y = np.full((3, 1), 1e-3), np.array([0.0, 1.0, 0.0])
    finding = audited(model, (X, y), (np.vstack([X[1:], [[1.0]]]), y))
    assert finding.violated
    assert finding.epsilon_low > 2
