"""Nineteen mistakes that an implementer of these theorems makes: the index of their tests, and those without a home.

The list is a table in ``docs/theory/accounting.md``.
"""

from __future__ import annotations

import ast
import math
import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import log_ndtr

from ppdp import Distance, Domain, Pipeline, make_pipeline
from ppdp.bounds import FORMULAS
from ppdp.core.rounding import UNIT
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, LinearSVC, LogisticRegression, WishartMechanism
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import PCA, MinMaxScaler, NormClipper, StandardScaler

ROOT = Path(__file__).parents[2]


def table() -> dict[int, list[str]]:
    """Number of each mistake, and the tests that are named beside it."""
    page = (ROOT / "docs" / "theory" / "accounting.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| (\d+) \|.*\| ([^|]*) \|$", page.split("## What an implementer gets wrong")[1], flags=re.M)
    return {int(number): re.findall(r"`([\w/]+\.py(?:::\w+)+)`", tests) for number, tests in found}


def test_every_mistake_has_its_tests():
    assert sorted(table()) == list(range(1, 20))
    assert all(table().values())


@pytest.mark.parametrize("name", sorted({name for names in table().values() for name in names}))
def test_the_tests_that_are_named_exist(name):
    path, *inside = name.split("::")
    scope = ast.parse((ROOT / "tests" / path).read_text(encoding="utf-8")).body
    for step in inside:
        (found,) = [node for node in scope if getattr(node, "name", None) == step]
        scope = found.body
    assert inside[-1].startswith("test_")


def test_a_gate_whose_condition_an_earlier_release_has_shaped_adds_its_delta():
    """1. On the certificate: at 0.3, 0.3 and 1e-6 the truth is 1.778e-6 where the larger delta would be 1e-6.

    The release is N(mu₀, 1) against N(0, 1); by its outcome the pair is outside the class (told apart with the gate's
    delta) or inside (what stands behind costs mu₁).
    """

    def truth(before, behind, dt, epsilon):
        v = np.linspace(-12, 12 + before, 200_001)
        left = epsilon - (before * v - before**2 / 2)
        inside = np.exp(log_ndtr(behind / 2 - left / behind)) - np.exp(left + log_ndtr(-behind / 2 - left / behind))
        outside = dt + np.maximum(0.0, 1 - dt - np.exp(left))
        density = np.exp(-((v - before) ** 2) / 2) / math.sqrt(2 * math.pi)
        return float((density * np.maximum(inside, outside)).sum() * (v[1] - v[0]))

    assert truth(0.3, 0.3, 1e-6, 1.9) == pytest.approx(1.778e-6, rel=1e-3)
    X = np.random.default_rng(0).choice([-1.0, 1.0], (20_000, 1)) * [0.9, 0.2, 0.1]
    stages = NormClipper(), StandardScaler(fit_mode="noisy"), PCA(1, fit_mode="exact")
    certificate = make_pipeline(*stages, GaussianMechanism(), epsilon=1.0, delta=1e-6).fit(X).certificate_
    gate = certificate["gate"]
    before = math.sqrt(sum(release["mu"] ** 2 for release in certificate["releases"]))
    behind = math.sqrt(certificate.loss.mu**2 - before**2)
    for epsilon in (0.8, 1.0, 1.2):
        assert certificate.loss.delta(epsilon) >= truth(before, behind, gate["delta"], epsilon)
    assert certificate.loss.failure == gate["delta"] > 0 == certificate.loss.gate
    assert certificate.loss.delta(1.0) <= 1e-6


@pytest.mark.parametrize("value", [1.0, 0.2, math.nan, math.inf, -math.inf])
def test_a_million_rows_are_released_whatever_they_are(value):
    """4. |mean|/σ is far above 2¹⁵, and an overflow for rows R and not for rows 0.2 R would tell them apart."""
    n = 10**6
    X = np.ones((n, 1))
    X[: n if math.isfinite(value) else n // 2] = value
    pipe = make_pipeline(NormClipper(), GaussianMechanism(), epsilon=5.0, delta=1e-7, on_invalid="repair")
    fitted = pipe.fit(X)
    assert fitted.certificate_["mechanism"]["noise_scale"] < 2.0**-15
    if math.isfinite(value):
        assert fitted[-1].mean_ == pytest.approx(value, abs=1e-4)
    assert np.isfinite(fitted[-1].mean_).all()


def test_rows_in_single_precision_are_summed_in_double(monkeypatch):
    """5. A million of them in float32 would err by 958 rows, against a sensitivity of 2."""
    monkeypatch.setattr(Noise, "release", lambda self, value, noise_scale, bound: np.asarray(value, dtype=float))
    values = np.random.default_rng(0).uniform(0.5, 1, 10**6).astype(np.float32)
    pipe = make_pipeline(MinMaxScaler((-1, 1), feature_range=(-1, 1)), GaussianMechanism("sum"), delta=1e-7)
    found = pipe.fit(pd.DataFrame({"a": values}))[-1].sum_
    exact = math.fsum(values.astype(float).tolist())
    assert found == pytest.approx(exact, abs=len(values) ** 2 * UNIT)
    assert abs(float(np.cumsum(values)[-1]) - exact) > 1.0  # what it would be


BUDGETS = [(0.1, 1e-9), (1.0, 1e-6), (8.0, 1e-4)]
PIPELINES = {
    "no gate": lambda: (LogisticRegression((0, 1)),),
    "gate in front": lambda: (PCA(1, fit_mode="exact"), LogisticRegression((0, 1))),
    "gate behind a release": lambda: (
        StandardScaler(fit_mode="noisy"),
        PCA(1, fit_mode="exact"),
        LogisticRegression((0, 1)),
    ),
    "samples": lambda: (LogisticRegression((0, 1), solver="poisson", max_iter=50),),
    "batches": lambda: (StandardScaler(fit_mode="noisy"), LinearSVC((0, 1), solver="fixed-size", max_iter=50)),
}


@pytest.mark.parametrize(("epsilon", "delta"), BUDGETS)
@pytest.mark.parametrize("name", PIPELINES)
@pytest.mark.repeated("epsilon", "delta")
def test_all_that_uses_delta_together_leaves_epsilon_finite(name, epsilon, delta):
    """14. Gate, sampler and the slack of transforms together are within delta, and hardly anything is left over."""
    pipe = make_pipeline(NormClipper(), *PIPELINES[name](), epsilon=epsilon, delta=delta)
    plan = pipe.plan(Domain(n_rows=min(2_000_000, int(0.2 / delta)), n_features=3))
    found = plan.loss.epsilon(delta - plan.allowance)
    assert 0.98 * epsilon < found <= epsilon


def test_secret_projections_come_from_the_operating_system_and_are_used_once(monkeypatch):
    """15. The matrix of every release is drawn anew, as much of it as there is, and whatever is seeded says so."""
    mechanisms = [f for f in FORMULAS.values() if f.kind in ("mechanism", "privacy")]
    assert {f.id for f in mechanisms if "projection" in f.page or "wishart" in f.page} == {
        "learning.fresh-projections",
        "learning.projected-gradient",
        "wishart.direction",
    }
    drawn, real = [], os.urandom
    monkeypatch.setattr(os, "urandom", lambda count: drawn.append(count) or real(count))
    mechanism, domain = WishartMechanism(7, 0.9), Domain(n_rows=4, n_features=5, row_norm=1.0)
    question, noise = mechanism.query_spec(domain), Noise()
    rows = Rows.of(np.full((4, 5), 0.3))
    one, other = (mechanism.release(rows, question, noise, 7**-0.5)["answer"] for _ in "ab")
    assert sum(drawn) >= 2 * 5 * 7 * 16
    assert (one != other).all()
    assert not [f.id for f in FORMULAS.values() if f.kind == "release" and "projection" in f.page]


@pytest.mark.parametrize("wrong", [{"random_state": 0}, {"batch_size": 40}])
def test_fresh_projections_refuse_seeds_and_samples_of_replaced_rows(wrong):
    """15. That none is used twice: tests/mechanisms/test_low_rank.py."""
    model = LogisticRegression((0, 1), solver="m2", rank=2, noise_scale=0.1, max_iter=3, **wrong)
    X = np.random.default_rng(0).normal(size=(100, 5))
    with pytest.raises((InvalidParameter, UnsupportedOrder), match=r"seed|added or removed"):
        model.privacy_map(Domain(n_rows=100, n_features=5, row_norm=3.0), Distance(replaced=1))
    if "random_state" in wrong:
        with pytest.raises(InvalidParameter, match="seed"):
            model.fit(X, X[:, 0] > 0)


@pytest.mark.parametrize("solver", ["poisson", "fixed-size", "epochs", "hidden"])
def test_coins_that_are_seeded_are_for_tests_only(solver):
    """16. What draws the batches is what draws the noise, and a seed shows on the certificate."""
    X, y = np.random.default_rng(0).normal(size=(300, 2)), np.arange(300) % 2
    statuses = []
    for random_state in (None, 0):
        steps = [("clip", NormClipper()), ("model", LogisticRegression((0, 1), solver=solver))]
        pipe = Pipeline(steps, epsilon=3.0, delta=1e-4, random_state=random_state)
        statuses.append(pipe.fit(X, y).certificate_.status)
    assert statuses == ["UNCONDITIONAL", "SEEDED"]
