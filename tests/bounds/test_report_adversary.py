"""Reports against an adversary: whole answers of neighbours, and what is read of them beside what NumPy computes."""

import math
from itertools import pairwise

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, named
from neighbours import ROUNDING

from ppdp import Distance, Domain, Ledger, make_pipeline
from ppdp.data.rows import Rows
from ppdp.data.unit_conversion import Columns
from ppdp.mechanisms import Report
from ppdp.testing.answers import RecordingNoise
from ppdp.transformers import MinMaxScaler

ALL = ["mean", "quantile", "histogram", "covariance"]
N = 8
DOMAIN = Domain(n_rows=N, n_features=2, row_norm=math.sqrt(2), entry_bound=1.0)
ONE = Distance(replaced=1)
REWEIGHTED = Distance(replaced=1, reweighted=2, mass=2.6, one_sided=1.4)
BINS = [-1.0, -0.2, 0.3, 1.0]


def answered(report, question, rows):
    told = RecordingNoise(silent=True)
    report.release(rows, question, told, 1.0)
    (asked,) = told.asked
    assert asked.value.size == question.size
    assert np.abs(asked.value).max() <= question.bound * ROUNDING
    return asked.value


def used(distance, domain=DOMAIN, **parameters):
    report = Report(ALL, bins=BINS, **parameters)
    question = report.query_spec_at(domain, distance)
    assert question.formula == "query.report"
    bound = question.sensitivity(domain, distance)

    def share(pair):
        left, right = (answered(report, question, rows) for rows in (pair.left, pair.right))
        return float(np.linalg.norm(left - right)) / bound

    return share


@pytest.mark.parametrize("distance", [*DISTANCES, REWEIGHTED], ids=named)
@pytest.mark.repeated("distance", keep=3)
def test_no_pair_exceeds_the_sensitivity(distance):
    """Also where values are missing, rows are deleted, and stand in other places."""
    world = World(DOMAIN, distance, deleted=True, gaps=2)
    reached, _ = attack(world, used(distance, shares={"mean": 3, "covariance": 0.5}), draws=6, steps=8)
    assert reached <= ROUNDING


@pytest.mark.parametrize(
    ("distance", "known"),
    [
        (Distance(replaced=1), {}),
        (Distance(replaced=1), {"max_missing": 0, "min_present": N}),
        (Distance(toggled=1), {}),
    ],
    ids=["replaced", "replaced, all known", "toggled"],
)
def test_opposite_ends_attain_it(distance, known):
    domain = DOMAIN.but(**known)
    report = Report(ALL, bins=BINS)
    question = report.query_spec_at(domain, distance)
    X, there = np.zeros((N, 2)), np.ones(N)
    X[0] = 1.0
    other, absent = X.copy(), there.copy()
    other[0] = -1.0
    if distance.toggled:
        other[0], absent[0] = 0.0, 0.0
    left, right = (answered(report, question, Rows(rows, None, w)) for rows, w in ((X, there), (other, absent)))
    assert 0.99 < np.linalg.norm(left - right) / question.sensitivity(domain, distance) <= ROUNDING
    assert distance.toggled or question.sensitivity(domain, distance) == pytest.approx(1.0, rel=1e-6)


def test_without_noise_it_says_what_numpy_says():
    rng = np.random.default_rng(0)
    X = rng.beta(2, 5, (4000, 3)) * 2 - 1
    X[rng.random((4000, 3)) < 0.1] = np.nan
    report = Report(ALL, bins=20, ranges=(-1, 1), noise_scale=1e-9, random_state=0).fit(X)
    domain = Domain(n_rows=4000, n_features=3, entry_bound=1.0, row_norm=2.0, min_present=4000)
    told = report.answers(Columns.raw(("a", "b", "c")), domain, report.query_spec(domain))
    found = {}
    for one in told:
        found.setdefault(one.statistic, []).append(one.raw)
    complete = X[~np.isnan(X).any(axis=1)]
    np.testing.assert_allclose(found["mean"][0], np.nanmean(X, axis=0), atol=1e-6)
    np.testing.assert_allclose(found["standard deviation"][0], np.nanstd(X, axis=0), atol=1e-6)
    for q in (0.25, 0.5, 0.75):
        np.testing.assert_allclose(found[f"quantile {q}"][0], np.nanquantile(X, q, axis=0), atol=2 / 1024)
    assert [rows.sum() for rows in found["rows"]] == pytest.approx((~np.isnan(X)).sum(axis=0), abs=1e-3)
    np.testing.assert_allclose(found["missing"][0], np.isnan(X).sum(axis=0), atol=1e-3)
    np.testing.assert_allclose(found["covariance"][0], np.cov(complete.T, bias=True)[np.triu_indices(3)], atol=1e-6)
    np.testing.assert_allclose(found["complete rows"][0], len(complete), atol=1e-3)


def test_intervals_cover_what_would_be_released_without_noise():
    rng = np.random.default_rng(1)
    X = np.exp(rng.normal(-3, 1, (500, 1))).clip(0, 1)
    domain = Domain(n_rows=500, n_features=1, entry_bound=1.0, row_norm=1.0, min_present=500, max_missing=0)
    true = {
        "mean": X.mean(),
        "standard deviation": X.std(),
        **{f"quantile {q:g}": np.quantile(X, q) for q in (0.1, 0.5, 0.9)},
        "covariance": X.var(),
    }
    missed = dict.fromkeys(true, 0)
    runs = 60
    for seed in range(runs):
        report = Report(ALL, q=(0.1, 0.5, 0.9), ranges=(0, 1), bins=4, noise_scale=0.5, random_state=seed).fit(X)
        for one in report.answers(Columns.raw(("a",)), domain, report.query_spec(domain)):
            if one.statistic in true:
                ends = one.interval(0.1, raw=True)
                missed[one.statistic] += not ends["lower"][0] - 1e-9 <= true[one.statistic] <= ends["upper"][0] + 1e-9
    assert max(missed.values()) <= 15, missed  # 6 are expected of each


def test_quantiles_rise_with_q():
    report = Report({"quantile": None}, q=np.linspace(0, 1, 21), noise_scale=0.2, random_state=0)
    X = np.random.default_rng(0).normal(size=(300, 1))
    report.fit(X)
    domain = Domain(n_rows=300, n_features=1, entry_bound=4.0, row_norm=4.0, min_present=300, max_missing=0)
    values = [one.raw[0] for one in report.answers(Columns.raw(("a",)), domain, report.query_spec(domain))]
    assert all(low <= high for low, high in pairwise(values))


def test_expected_errors_are_those_of_values_that_are_spread_evenly():
    pipe = make_pipeline(MinMaxScaler(ranges=(0, 10)), Report(ALL), epsilon=1.0, delta=1e-6, diagnostics=None)
    told = pipe.expected_errors(Domain(n_rows=2000, n_features=2)).set_index(["statistic", "column"])["raw_half_width"]
    X = np.random.default_rng(0).uniform(0, 10, (2000, 2))
    exact = {"mean": X.mean(axis=0), "standard deviation": X.std(axis=0), "quantile 0.5": np.median(X, axis=0)}
    with Ledger():
        tables = [pipe.fit(X).release_.to_pandas().set_index(["statistic", "column"])["raw_value"] for _ in range(30)]
    for name, values in exact.items():
        errors = np.abs([table[name].to_numpy() - values for table in tables])
        assert 0.8 <= np.mean(errors <= told[name].to_numpy()) <= 1.0
        assert errors.max() > told[name].min() / 4
