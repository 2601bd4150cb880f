"""Routes: where statistics are released, what "auto" chooses, and why there may be no route."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from plans import classifier, plan

from ppdp import Distance, Domain
from ppdp.bounds import FORMULAS
from ppdp.exceptions import NoRoute
from ppdp.mechanisms import GaussianMechanism, Ridge
from ppdp.pipeline.planning.plan import Plan
from ppdp.transformers import PCA, Deduplicator, MeanImputer, MinMaxScaler, NormClipper, SoftPCA, StandardScaler
from ppdp.transformers.base import Stage
from ppdp.transformers.fit_mode import FitMode

# ---------------------------------------------------------------- release points


def test_affine_stages_share_one_release():
    p = plan(NormClipper(), StandardScaler(clip=None, fit_mode="noisy"), PCA(1, fit_mode="noisy"), GaussianMechanism())
    (release,) = p.releases
    assert (release.at, release.statistic, release.serves, release.purpose) == (1, "matrix", (1, 2), "fit")


def test_a_clip_between_ends_a_release_point():
    p = plan(NormClipper(), StandardScaler(fit_mode="noisy"), PCA(1, fit_mode="noisy"), GaussianMechanism())
    assert [(r.at, r.serves) for r in p.releases] == [(1, (1,)), (2, (2,))]
    p = plan(
        NormClipper(),
        StandardScaler(clip=None, fit_mode="noisy"),
        NormClipper(2.0),
        PCA(1, fit_mode="noisy"),
        GaussianMechanism(),
    )
    assert [(r.at, r.serves) for r in p.releases] == [(1, (1,)), (3, (3,))]


def test_deduplication_between_ends_a_release_point():
    stages = StandardScaler(clip=None, fit_mode="noisy"), Deduplicator(), PCA(1, fit_mode="noisy")
    assert [r.at for r in plan(NormClipper(), *stages, GaussianMechanism()).releases] == [1, 3]


def test_an_imputer_shares_a_release_with_a_scaler_alone():
    stages = MeanImputer(fit_mode="noisy"), StandardScaler(clip=None, fit_mode="noisy")
    p = plan(MinMaxScaler(ranges=(0, 1)), *stages, GaussianMechanism())
    assert [(r.at, r.statistic) for r in p.releases] == [(1, "squares-in-parts"), (2, "squares")]
    stages = MeanImputer(fit_mode="noisy"), StandardScaler(fit_mode="noisy"), PCA(1, fit_mode="noisy")
    p = plan(MinMaxScaler(ranges=(0, 1)), *stages, GaussianMechanism())  # but a scaler reads what it tells of spreads
    assert [(r.at, r.statistic, r.serves) for r in p.releases] == [(1, "squares-in-parts", (1, 2)), (3, "moment", (3,))]


@pytest.mark.parametrize("n", [10**3, 3 * 10**5])
def test_rows_are_clipped_later_right_in_front_of_what_clips_them_itself(n):
    def clip(*behind):
        return next(
            step.way.parameters["clip"]
            for step in plan(MinMaxScaler(ranges=(0, 1)), StandardScaler(fit_mode="noisy"), *behind, n=n).steps
            if isinstance(step.stage, StandardScaler)
        )

    usual = 2 * math.sqrt(3) * max(1.0, (n / 750) ** 0.25)
    assert clip(GaussianMechanism()) == clip(PCA(1), Ridge(y_range=(0, 1))) == pytest.approx(usual)
    assert clip(classifier()) == clip(Ridge(y_range=(0, 1), solver="hidden")) == pytest.approx(usual)
    assert clip(Ridge(y_range=(0, 1))) == pytest.approx(64 * 2 * math.sqrt(3) if n > 10**5 else usual)


def test_only_a_mechanism_that_predicts_pays_for_prediction():
    stages = NormClipper(), StandardScaler(fit_mode="exact")
    assert plan(*stages, GaussianMechanism()).releases == ()
    (release,) = plan(*stages, classifier()).releases
    assert release.purpose == "predict"
    assert plan(*stages, PCA(1, fit_mode="exact"), classifier()).releases[0].serves == (1,)


def test_a_release_costs_the_sensitivity_of_the_rows_as_they_are_there():
    """2R/n for one replaced row; twice that where a key may switch two further rows on and off."""
    raw = plan(NormClipper(), PCA(1, with_mean=True, fit_mode="noisy"), GaussianMechanism())
    keyed = plan(NormClipper(), Deduplicator(subset=[0]), PCA(1, with_mean=True, fit_mode="noisy"), GaussianMechanism())
    assert raw.releases[0].sensitivity == pytest.approx(2 / 5000, rel=1e-6)
    assert keyed.releases[0].sensitivity == pytest.approx(4 / 5000, rel=1e-6)


@pytest.mark.parametrize("stage", [PCA(1, with_mean=False, fit_mode="noisy"), SoftPCA(fit_mode="noisy")], ids=repr)
def test_a_second_moment_without_the_mean_costs_half(stage):
    """A mean is released only where a stage needs it, or to carry the matrix from one stage to the next."""
    (release,) = plan(NormClipper(), stage, GaussianMechanism()).releases
    assert (release.statistic, release.sensitivity) == ("moment", pytest.approx(1 / 5000, rel=1e-6))
    (shared,) = plan(NormClipper(), stage, PCA(1, fit_mode="noisy"), GaussianMechanism()).releases
    assert (shared.statistic, shared.serves) == ("matrix", (1, 2))


# ---------------------------------------------------------------- the choice of "auto"


@pytest.mark.parametrize("n", [1500, 5000, 100_000])
@pytest.mark.parametrize("mechanism", [GaussianMechanism, classifier])
@pytest.mark.parametrize(
    "stages",
    [
        lambda a, b: (MeanImputer(max_missing=50, fit_mode=a), StandardScaler(fit_mode=b)),
        lambda a, b: (StandardScaler(fit_mode=a, min_std=0.4), PCA(1, fit_mode=b)),
    ],
)
@pytest.mark.repeated("n")
def test_auto_takes_the_least_noise(n, mechanism, stages):
    """Against every combination, planned by itself; too noisy statistics are only taken when asked for."""

    def made(a: str, b: str) -> Plan | None:
        try:
            return plan(MinMaxScaler(ranges=(0, 1)), *stages(a, b), mechanism(), n=n)
        except NoRoute:
            return None

    def noise(p: Plan) -> float:
        return p.mechanism.sensitivity / p.mechanism.loss.mu

    chosen = made("auto", "auto")
    assert chosen is not None
    offered = {a.route for a in chosen.alternatives if a.status != "not offered"}
    compared = 0
    for a, b in itertools.product(["exact", "noisy"], repeat=2):
        other = made(a, b)
        route = next((o for o in offered if f" {a}, " in o and o.endswith(f" {b}")), None)
        if other is not None and route is not None:
            compared += 1
            assert noise(chosen) <= noise(other) * (1 + 1e-8)
    assert compared == len(offered) >= 1


class Choice(Stage):
    """A stage whose ways are all the same, so nothing but their names can decide."""

    def __init__(self, names=("exact", "noisy", "public"), stretch=1.0):
        self.names = names
        self.stretch = stretch

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        return tuple(FitMode.by(f"own.{name}", domain, distance) for name in self.names)


@pytest.mark.parametrize("names", list(itertools.permutations(["public", "noisy", "exact"])))
def test_ties_go_to_public_then_noisy_then_exact(names, monkeypatch):
    for name in names:
        monkeypatch.setitem(FORMULAS, f"own.{name}", replace(FORMULAS["row-wise.identity"], way=name))
    for count in (1, 2, 3):
        p = plan(NormClipper(), Choice(names[:count]), GaussianMechanism())
        assert p.steps[1].way.name == min(names[:count], key=["public", "noisy", "exact"].index)


@pytest.mark.parametrize("following", [StandardScaler, lambda: PCA(1)])
def test_an_imputer_with_nothing_to_fill_lets_the_others_work(following):
    p = plan(NormClipper(), MeanImputer(max_missing=0), following(), GaussianMechanism())
    assert p.steps[1].way.name == "public"


def test_explicit_statistics_are_obeyed():
    for statistics in ("exact", "noisy"):
        for n in (100, 5000):
            p = plan(NormClipper(), StandardScaler(fit_mode=statistics), GaussianMechanism(), n=n)
            assert p.steps[1].way.name == statistics
            assert len(p.alternatives) == 1


def test_the_alternatives_list_every_route_with_its_figure_or_its_reason():
    p = plan(NormClipper(), StandardScaler(), PCA(1), GaussianMechanism())
    assert len(p.alternatives) == 4
    assert [a.status for a in p.alternatives].count("chosen") == 1
    for a in p.alternatives:
        assert (a.noise_scale is None) is (a.status == "not offered")
        assert bool(a.reason) is (a.status == "not offered")
    chosen = next(a for a in p.alternatives if a.status == "chosen")
    assert chosen.noise_scale == p.mechanism.noise_scale


class TestNoRoute:
    def test_a_map_cannot_be_released_without_its_statistics(self):
        with pytest.raises(NoRoute, match="the map itself is released"):
            plan(NormClipper(), StandardScaler(fit_mode="exact"))

    def test_every_reason_is_given(self):
        with pytest.raises(NoRoute) as caught:
            plan(NormClipper(), StandardScaler(), n=20)
        assert "exact: the map itself is released" in str(caught.value)
        assert "noisy: too noisy: the mean squares for 'standardscaler' err by 44 % of the largest square" in str(
            caught.value
        )
        assert caught.value.fix

    def test_a_delta_below_the_sampler(self):
        with pytest.raises(NoRoute, match="sampler"):
            plan(NormClipper(), classifier(), delta=1e-17)
