"""What the noise does to the results, as pages tell it: figures that agree with what was drawn."""

import math

import numpy as np
import pytest
from documents import record_of
from zoo import document

from ppdp import make_pipeline
from ppdp.certificate.pages.derivation import expected_error, loses_most
from ppdp.certificate.pages.interpretation import rho
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, Report
from ppdp.transformers import MinMaxScaler

ROWS = np.linspace(0, 1, 900)[:, None]


def counted(mechanism):
    pipe = make_pipeline(MinMaxScaler((0, 1)), mechanism, diagnostics=None).fit(ROWS)
    return pipe.certificate_.record, pipe.release_.to_pandas()["standard_error"]


@pytest.mark.parametrize(
    "mechanism",
    [
        GaussianMechanism("histogram", bins=4),
        LaplaceMechanism("histogram", bins=4),
        Report(["histogram", "mean"], bins=4),
    ],
)
def test_the_error_of_a_count_is_that_of_the_release_and_small_groups_follow(mechanism):
    c, errors = counted(mechanism)
    told = float(expected_error(c).split(" errs by ")[1].split()[0])
    error = errors.max() if not isinstance(mechanism, Report) else errors.iloc[-4:].max()
    assert told == pytest.approx(error, rel=0.1)
    group = int(loses_most(c).split("fewer than ")[1].split()[0])
    assert 10 * error <= group <= 1 + 10 * error * 1.03


def test_a_mean_is_told_beside_the_largest_and_numbers_beside_rows():
    c, _ = counted(GaussianMechanism())
    shares = expected_error(c)
    scale = c.mechanism.noise_scale / c.mechanism.bound
    assert float(shares.split("\u00a0%")[0].split()[-1]) == pytest.approx(100 * scale, rel=0.05)
    assert f"; results made of {c.mechanism.size} noisy number" in shares
    assert shares.endswith("900 rows")
    assert "count" not in loses_most(c)


def test_rho_is_exact_where_all_noise_is_gaussian_and_told_nowhere_else():
    gaussian, laplace = record_of(document("unconditional")), record_of(document("a Laplace mean"))
    orders = np.array([1.5, 2.0, 8.0])
    mu = gaussian.total.mu
    divergences = [_renyi(order, mu) for order in orders]
    assert divergences == pytest.approx(orders * rho(gaussian), rel=1e-6)
    assert rho(laplace) is None


def _renyi(order, mu):
    """Of two normal distributions at this distance, integrated."""
    x = np.linspace(-40, 40, 400_001)
    density = np.exp(-order * (x - mu) ** 2 / 2 - (1 - order) * x**2 / 2) / math.sqrt(2 * math.pi)
    return math.log(np.trapezoid(density, x)) / (order - 1)
