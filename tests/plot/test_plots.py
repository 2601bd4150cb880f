"""The figures: each returns its axis, shows the numbers of what it is given, and takes no data."""

import dataclasses
import functools
import inspect
import math
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import ndtr, ndtri

import ppdp.plot
from ppdp import Domain, Pipeline, PrivacyLoss, PrivateSearchCV, make_column_map, make_pipeline
from ppdp.audit import MembershipReport
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import GaussianMechanism, GradientBoostingClassifier, LaplaceMechanism, LogisticRegression
from ppdp.privacy.gate import GATE_KINDS, Gate
from ppdp.privacy.losses import Pure
from ppdp.testing.confidence import Certified
from ppdp.transformers import PCA, CategoryEncoder, Deduplicator, MeanImputer, MinMaxScaler, NormClipper, StandardScaler

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb

DOMAIN = Domain(n_rows=6000, n_features=4)
GALLERY = Path(__file__).parents[2] / "docs" / "gallery"
OURS, OTHER, BROKEN = "#3b6690", "#adb5bb", "#d08a4e"


def cleaned(**parameters):
    steps = [
        ("range", MinMaxScaler(ranges=[(0, 1)] * 4)),
        ("dedup", Deduplicator()),
        ("impute", MeanImputer()),
        ("scale", StandardScaler()),
        ("model", LogisticRegression(classes=(0, 1))),
    ]
    return Pipeline(steps, **parameters)


def gated(gate="gaussian", mechanism=None):
    pca = PCA(n_components=1, min_gap=0.1, fit_mode="exact")
    return Pipeline([("clip", NormClipper()), ("pca", pca), ("mean", mechanism or GaussianMechanism())], gate=gate)


def released():
    pipe = make_pipeline(NormClipper(), GaussianMechanism(), random_state=0)
    return pipe.fit(np.linspace(-1, 1, 400)[:, None]).certificate_


@functools.cache
def boosted(paired=False):
    """Of three classes, from a column of numbers and one of categories; or of two, by both columns together."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"age": rng.uniform(0, 90, 900), "ward": rng.choice(["north", "$outh"], 900)})
    frame.loc[::5, "age"] = np.nan
    encoder = CategoryEncoder({"ward": ["north", "$outh"]}, encoding="ordinal")
    front = make_column_map((MinMaxScaler(ranges={"age": (0, 90)}), ["age"]), (encoder, ["ward"]))
    how = {"max_iter": 1, "max_bins": 16, "categorical_features": ["ward"]}
    if not paired:
        model, y = GradientBoostingClassifier((0, 1, 2), **how), rng.integers(0, 3, 900)
    else:
        model = GradientBoostingClassifier((False, True), interaction_cst="pairwise", **how)
        y = (frame["age"] > 45) ^ (frame["ward"] == "north")
    return make_pipeline(front, model, epsilon=9.0).fit(frame, y).release_


def attacked(*curve, **parameters):
    report = MembershipReport(
        epsilon=1.0,
        delta=1e-6,
        steps=("model",),
        n_rows=20,
        seed=0,
        seconds=1.0,
        data="made-up",
        models=40,
        certified=Certified(PrivacyLoss(mu=0.3), 1.0, 1e-6),
        canaries=1,
        refused=0,
        auc=0.55,
        balanced=0.5,
        curve=curve or ((0.0, 0.0), (0.4, 0.5), (1.0, 1.0)),
        epsilon_low=0.0,
        refuted=False,
        confidence=0.99,
    )
    return dataclasses.replace(report, **parameters)


def figures():
    """Every figure with something to show."""
    plan = gated().plan(DOMAIN)
    return {
        "advice": plan,
        "comparison": cleaned().compare(DOMAIN),
        "distance": plan,
        "epsilon_delta": plan.loss,
        "gate": plan,
        "membership": attacked(),
        "privacy_utility": [(0.5, 0.7), (1.0, 0.8)],
        "shape": boosted(),
    }


def widths(ax):
    """Length of every bar by its row."""
    return {round(bar.get_y() + bar.get_height() / 2): bar.get_width() for bar in ax.patches}


def colours(ax):
    """Of every bar, or of the outline of one that is not filled."""
    found = {}
    for bar in ax.patches:
        filled = to_hex(bar.get_facecolor()) != "#ffffff"
        found[round(bar.get_y() + bar.get_height() / 2)] = to_hex(
            bar.get_facecolor() if filled else bar.get_edgecolor()
        )
    return found


def rows(ax):
    return [label.get_text().replace("\n", " ") for label in ax.get_yticklabels()]


def texts(ax):
    return [text.get_text() for text in ax.texts]


class TestAll:
    def test_these_are_all(self):
        assert sorted(figures()) == ppdp.plot.__all__

    def test_the_gallery_shows_each(self):
        scripts = [path.read_text(encoding="utf-8") for path in GALLERY.glob("*/plot_*.py")]
        assert len(scripts) >= 16
        missing = [name for name in ppdp.plot.__all__ if not any(f"plot.{name}(" in text for text in scripts)]
        assert missing == []

    @pytest.mark.parametrize("name", ppdp.plot.__all__)
    def test_returns_a_labelled_axis_on_a_new_figure(self, name):
        ax = getattr(ppdp.plot, name)(figures()[name])
        assert isinstance(ax, Axes)
        assert len(plt.get_fignums()) == 1
        assert ax.get_xlabel()
        assert ax.get_ylabel() or all(rows(ax))
        ax.figure.canvas.draw()  # whatever would warn warns here, and warnings are errors

    @pytest.mark.parametrize("name", ppdp.plot.__all__)
    def test_draws_where_it_is_told(self, name):
        figure, ax = plt.subplots()
        assert getattr(ppdp.plot, name)(figures()[name], ax=ax) is ax
        assert plt.get_fignums() == [figure.number]

    @pytest.mark.parametrize("name", ppdp.plot.__all__)
    def test_without_matplotlib_says_how_to_install_it(self, name, monkeypatch):
        subject = figures()[name]
        monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(InvalidParameter, match="matplotlib is not installed") as caught:
            getattr(ppdp.plot, name)(subject)
        assert caught.value.fix == 'pip install "ppdp[plot]".'

    @pytest.mark.parametrize("name", ppdp.plot.__all__)
    @pytest.mark.parametrize("wrong", [None, [], "plan", 3, np.zeros((5, 4)), {}, pd.DataFrame({"x": [1.0]})])
    @pytest.mark.repeated("wrong")
    def test_anything_else_is_refused_before_a_figure_is_made(self, name, wrong):
        with pytest.raises(InvalidParameter):
            getattr(ppdp.plot, name)(wrong)
        assert plt.get_fignums() == []

    def test_none_takes_data(self):
        parameters = {p for name in ppdp.plot.__all__ for p in inspect.signature(getattr(ppdp.plot, name)).parameters}
        assert not parameters & {"X", "y", "data", "rows"}

    def test_names_are_not_formulas(self):
        steps = [("clip", NormClipper()), (r"$\frac$", Deduplicator()), ("$a$", GaussianMechanism())]
        pipe = Pipeline(steps)
        plan = pipe.plan(DOMAIN)
        for ax in (ppdp.plot.advice(plan), ppdp.plot.distance(plan), pipe.compare(DOMAIN).plot()):
            ax.figure.canvas.draw()

    def test_colours_differ_in_lightness(self):
        """So they can be told apart in grey, and by every kind of colour vision."""
        light = sorted(np.dot((0.2126, 0.7152, 0.0722), to_rgb(colour)) for colour in (OURS, OTHER, BROKEN))
        assert np.diff(light).min() > 0.08


class TestEpsilonDelta:
    def test_a_loss(self):
        loss = PrivacyLoss(mu=0.3)
        ax = ppdp.plot.epsilon_delta(loss)
        assert ax.get_xscale() == "log"
        deltas, epsilons = ax.lines[0].get_data()
        assert list(epsilons) == [loss.epsilon(delta) for delta in deltas]
        assert deltas.min() == pytest.approx(1e-12)

    def test_a_certificate_and_its_own_pair(self):
        certificate = released()
        ax = ppdp.plot.epsilon_delta(certificate)
        deltas, epsilons = ax.lines[0].get_data()
        assert list(epsilons) == [certificate.epsilon_at(delta) for delta in deltas]
        assert certificate.delta in deltas
        assert ax.lines[1].get_xydata().tolist() == [[1e-6, 1.0]]
        assert texts(ax) == ["certified: (1, 10⁻⁶)"]

    def test_nothing_is_drawn_where_nothing_is_promised(self):
        loss = PrivacyLoss(mu=0.3, gate=1e-6)
        ax = ppdp.plot.epsilon_delta(loss)
        deltas, epsilons = ax.lines[0].get_data()
        assert np.isinf(epsilons[deltas < 0.9e-6]).all()
        assert np.isfinite(epsilons[deltas > 1.1e-6]).all()
        assert texts(ax) == ["nothing promised"]
        assert ppdp.plot.epsilon_delta(PrivacyLoss(failure=1.0)) is not None

    def test_losses_that_are_not_gaussian(self):
        loss = make_pipeline(NormClipper(), LaplaceMechanism()).plan(DOMAIN).loss
        assert loss.parts
        deltas, epsilons = ppdp.plot.epsilon_delta(loss).lines[0].get_data()
        for at in (0, len(deltas) // 2, -1):
            assert epsilons[at] == loss.epsilon(deltas[at])

    def test_several(self):
        ax = ppdp.plot.epsilon_delta([("small", PrivacyLoss(0.1)), ("large", PrivacyLoss(0.2))])
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["small", "large"]
        small, large = (line.get_ydata() for line in ax.lines)
        assert (small < large).all()
        assert len({(line.get_color(), line.get_linestyle()) for line in ax.lines}) == 2


class TestGate:
    @pytest.mark.parametrize("kind", GATE_KINDS)
    def test_shows_the_probability_of_passing(self, kind):
        gate = Gate.of_margin(kind, 150.0, 1e-6, adding=False, n_rows=5000)
        ax = ppdp.plot.gate(gate)
        margins, passing = ax.lines[0].get_data()
        assert list(passing) == [1 - gate.refusal_probability(margin) for margin in margins]
        assert ax.lines[1].get_xdata()[0] == gate.needed_margin()
        assert texts(ax) == [f"99 % from {math.ceil(gate.needed_margin())} rows"]
        assert passing[margins <= 1].max() <= 1e-6
        assert passing[margins >= gate.needed_margin()].min() >= 0.99 - 1e-9

    def test_of_a_plan(self):
        plan = gated().plan(DOMAIN)
        of_plan, of_gate = (ppdp.plot.gate(it).lines[0].get_xydata() for it in (plan, plan.gate))
        assert np.array_equal(of_plan, of_gate)

    def test_no_gate(self):
        for plan in (cleaned().plan(DOMAIN), gated(None).plan(DOMAIN)):
            with pytest.raises(InvalidParameter, match="this plan has no gate"):
                ppdp.plot.gate(plan)


class TestMembership:
    def test_the_attack_lies_below_what_is_allowed(self):
        ax = attacked().plot()
        allowed, _, attack = ax.lines
        assert attack.get_xydata().tolist() == [[0.0, 0.0], [0.4, 0.5], [1.0, 1.0]]
        assert [text.get_text() for text in ax.get_legend().get_texts()] == [
            "allowed at (ε, δ) = (1, 10⁻⁶)",
            "attack, AUC 0.550",
        ]
        q, p = allowed.get_data()
        assert (np.diff(p) >= 0).all()
        middle = slice(800, -1)
        assert p[middle] == pytest.approx(ndtr(0.3 + ndtri(q[middle])), abs=1e-3)  # the least of all that is certified
        # whoever looks at the complement sees the same curve
        assert np.interp(1 - p[middle], q, p) == pytest.approx(1 - q[middle], abs=1e-3)

    def test_two_numbers_allow_two_lines(self):
        loss = PrivacyLoss(failure=0.1, parts=(Pure(epsilon=1.0),))
        q, p = attacked(certified=Certified(loss, 1.0, 0.1)).plot().lines[0].get_data()
        assert p == pytest.approx(np.minimum(np.e * q + 0.1, 1 - (0.9 - q) / np.e).clip(max=1), abs=2e-3)

    def test_what_is_refuted_has_another_colour(self):
        assert attacked().plot().lines[2].get_color() == OURS
        assert attacked(refuted=True).plot().lines[2].get_color() == BROKEN

    def test_where_nothing_is_claimed_only_the_attack_is_drawn(self):
        nothing = Certified(PrivacyLoss(failure=1.0), math.inf, 1e-6)
        assert len(attacked(certified=nothing, epsilon=math.inf).plot().lines) == 2


class TestAdvice:
    def test_bars_are_the_alternatives_the_chosen_one_on_top(self):
        plan = cleaned().plan(DOMAIN)
        ax = ppdp.plot.advice(plan)
        noise = {route.route: route.noise_scale for route in plan.alternatives}
        assert {rows(ax)[at]: width for at, width in widths(ax).items()} == noise
        assert rows(ax)[0] == next(route.route for route in plan.alternatives if route.status == "chosen")
        assert list(widths(ax).values()) == sorted(noise.values())
        assert colours(ax) == {0: OURS} | dict.fromkeys(range(1, len(noise)), OTHER)
        assert texts(ax)[0].endswith(", chosen")

    def test_reasons_stand_where_a_bar_is_missing(self):
        plan = cleaned().plan(DOMAIN.but(n_rows=1500, rows_per_unit=3))
        missing = [route for route in plan.alternatives if route.noise_scale is None]
        ax = ppdp.plot.advice(plan)
        assert missing
        assert len(widths(ax)) == len(plan.alternatives) - len(missing)
        told = [text for text in texts(ax) if text.startswith("not offered: ")]
        assert len(told) == len(missing)
        assert all(any(route.reason[:40] in text for text in told) for route in missing)

    def test_a_plan_without_noise_at_the_end(self):
        with pytest.raises(InvalidParameter, match="no last step"):
            ppdp.plot.advice(make_pipeline(NormClipper(), StandardScaler()).plan(DOMAIN))


class TestComparison:
    def test_bars_are_the_noise_of_every_practice(self):
        found = cleaned().compare(DOMAIN)
        ax = found.plot()
        assert rows(ax) == [practice.name for practice in found.practices]
        assert list(widths(ax).values()) == [practice.noise_scale for practice in found.practices]
        assert colours(ax) == {0: BROKEN, 1: OTHER, 2: OTHER, 3: OTHER, 4: OURS}
        assert ax.patches[0].get_hatch(), "also in grey the broken claim is another bar"
        assert ax.get_xscale() == "log"
        assert texts(ax)[0].startswith(f"{found['naive claim'].noise_scale:.3g}: claims ε = 1, proves ε = ")
        assert texts(ax)[-1] == f"{found['ours'].noise_scale:.3g}: proves ε = 1"

    def test_reasons_stand_where_a_bar_is_missing(self):
        found = gated().compare(DOMAIN)
        ax = ppdp.plot.comparison(found)
        assert sorted(widths(ax)) == [0, 1, 2, 4]
        assert texts(ax)[3] == "not offered: no stage is fitted from released statistics"


class TestPrivacyUtility:
    RUNS = ((0.1, 0.6), (0.1, 0.7), (1.0, 0.8), (1.0, 0.82), (3.0, 0.83))

    def test_a_line_through_the_means_and_a_band_of_all_runs(self):
        ax = ppdp.plot.privacy_utility(list(self.RUNS))
        assert ax.lines[0].get_xydata() == pytest.approx(np.array([[0.1, 0.65], [1.0, 0.81], [3.0, 0.83]]))
        band = ax.collections[0].get_paths()[0].vertices
        assert {tuple(point) for point in band.tolist()} == set(self.RUNS)
        assert ax.get_xscale() == "log"
        assert ppdp.plot.privacy_utility(self.RUNS[2:]).get_xscale() == "linear"

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
    def test_frames_and_mappings(self, frame):
        table = [{"label": k, "epsilon": e, "score": s} for k in ("ours", "other") for e, s in self.RUNS]
        of_frame = ppdp.plot.privacy_utility(frame(table))
        of_mapping = ppdp.plot.privacy_utility({"ours": self.RUNS, "other": self.RUNS})
        for ax in (of_frame, of_mapping):
            assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ours", "other"]
            assert len(ax.lines) == 2
        assert np.array_equal(of_frame.lines[1].get_xydata(), of_mapping.lines[1].get_xydata())
        assert len(ppdp.plot.privacy_utility(frame(table)[["epsilon", "score"]]).lines) == 1

    def test_baseline(self):
        ax = ppdp.plot.privacy_utility(self.RUNS, baseline=0.9)
        assert ax.lines[-1].get_ydata()[0] == 0.9
        assert [text.get_text() for text in ax.get_legend().get_texts()] == ["without privacy"]

    @pytest.mark.parametrize("scores", ["best", "all"])
    def test_searches_give_what_they_released(self, scores):
        X = np.linspace(-1, 1, 2000)[:, None]
        steps = [("clip", NormClipper(1.0)), ("model", LogisticRegression(classes=(0, 1), max_iter=2))]
        grid = {"model__alpha": [0.1, 1.0]}
        searches = [
            PrivateSearchCV(Pipeline(steps), grid, epsilon=epsilon, scores=scores, random_state=0, refit=False)
            for epsilon in (1.0, 2.0)
        ]
        for search in searches:
            search.fit(X, (X[:, 0] > 0).astype(int))
        ax = ppdp.plot.privacy_utility(searches)
        released = [[s.best_score_] if scores == "best" else s.cv_results_["noisy_test_score"] for s in searches]
        assert ax.lines[0].get_xydata() == pytest.approx(
            np.array([[1.0, np.mean(released[0])], [2.0, np.mean(released[1])]])
        )
        assert len(ppdp.plot.privacy_utility(searches[0]).lines) == 1

    @pytest.mark.parametrize("wrong", [[(0.0, 0.5)], [(1.0, math.nan)], [(1.0, 0.5, 2)], [("1", 0.5)], {"ours": []}])
    def test_pairs_that_are_none(self, wrong):
        with pytest.raises(InvalidParameter, match="privacy_utility draws"):
            ppdp.plot.privacy_utility(wrong)


class TestShape:
    def test_it_shows_the_steps_and_bands_that_were_released(self):
        table, ax = boosted().to_pandas(), ppdp.plot.shape(boosted(), "age")
        bands, lines = ax.patches[::2], ax.patches[1::2]
        assert [line.get_label() for line in lines] == ["0", "1", "2"]
        for label, band, line in zip("012", bands, lines):
            own = table[(table["statistic"] == f"shape of {label}") & (table["column"] == "age")][:-1]
            values, ends, _ = line.get_data()
            np.testing.assert_allclose(values, own["value"])
            np.testing.assert_allclose(ends, [*own["raw_low"], own["raw_high"].iloc[-1]])
            np.testing.assert_allclose(band.get_data().values, own["value"] + 2 * own["standard_error"])

    def test_categories_have_their_names(self):
        ax = ppdp.plot.shape(boosted(), "ward")
        assert [label.get_text() for label in ax.get_xticklabels()][:2] == ["north", r"\$outh"]

    def test_a_table_is_that_of_all_groups_with_a_cross_on_what_may_be_nothing(self):
        release = boosted(paired=True)
        ax, table = ppdp.plot.shape(release, "age, ward"), release.to_pandas()
        own = table[table["statistic"] == "table"]
        drawn = ax.collections[0].get_array()
        np.testing.assert_allclose(drawn.ravel(), own["value"])
        unclear = (own["value"].abs() <= 2 * own["standard_error"]).sum()
        assert len(ax.texts) == unclear
        assert [label.get_text() for label in ax.get_xticklabels()][:2] == ["north", r"\$outh"]
        assert np.abs(drawn).max() > 1

    @pytest.mark.parametrize(("release", "column"), [(released, None), (boosted, "height")])
    def test_what_has_no_shape_is_refused(self, release, column):
        with pytest.raises(InvalidParameter, match="Fix:"):
            ppdp.plot.shape(release(), column)
