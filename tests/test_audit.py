"""An attacker who runs one plan again and again learns no more than is certified, and would notice half of the noise.

The audit is the benchmark's, with fewer runs: enough to be sure of both conclusions at confidence 1 - 1e-6.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm

from ppdp.privacy.noise import Noise

PLACE = Path(__file__).parents[1] / "benchmarks" / "audit.py"
RUNS = 4000


@pytest.fixture(scope="module")
def benchmark():
    spec = importlib.util.spec_from_file_location("audit_benchmark", PLACE)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    yield module
    del sys.modules[spec.name]


@pytest.fixture(params=["deduplication", "imputation", "learning"])
def target(benchmark, request):
    return getattr(benchmark, request.param)()


def test_the_pairs_are_neighbours(target):
    left, right = np.nan_to_num(target.left.X, nan=9.0), np.nan_to_num(target.right.X, nan=9.0)
    assert (left != right).any(axis=1).sum() == 1


def test_stays_below_what_is_certified_and_finds_half_of_the_noise(benchmark, target):
    certified = target.plan.loss.mu
    assert 0.9 < certified < 1.2  # informative: neither hopeless nor certain
    assert 0.6 * certified < benchmark.audit(target, RUNS, Noise(1)) < certified
    assert benchmark.audit(target.halved, RUNS, Noise(2)) > certified


def test_the_bounds_are_those_of_clopper_and_pearson(benchmark):
    from scipy.stats import binomtest

    for successes, runs in ((0, 10), (3, 10), (690, 1000), (1000, 1000)):
        exact = binomtest(successes, runs).proportion_ci(1 - benchmark.DOUBT, method="exact").low
        assert benchmark._at_least(successes, runs) == pytest.approx(exact, abs=1e-12)


def test_an_attacker_who_guesses_learns_nothing(benchmark, target):
    """The same dataset twice: nothing to tell apart."""
    same = benchmark.Target(target.name, target.plan, target.left, target.left)
    assert benchmark.audit(same, 2000, Noise(3)) < 0


def test_enough_runs_find_what_is_there(benchmark):
    """With exact Gaussians of a known mu the bound approaches it from below."""
    mu, runs = 1.0, 10_000
    hits, alarms = (int(runs * norm.sf(mu / 2 - shift)) for shift in (mu, 0.0))
    lower = norm.ppf(benchmark._at_least(hits, runs)) - norm.ppf(1 - benchmark._at_least(runs - alarms, runs))
    assert 0.85 * mu < lower < mu
