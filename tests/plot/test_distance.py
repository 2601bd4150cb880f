"""The figure of distances: its bars are the bound, in replaced rows, for a plan as for a certificate."""

import matplotlib
import numpy as np
import pytest

import ppdp.plot
from ppdp import Domain, Pipeline, make_pipeline
from ppdp.core.figures import figure
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import PCA, Deduplicator, MeanImputer, MinMaxScaler, NormClipper, StandardScaler

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

DOMAIN = Domain(n_rows=8000, n_features=3)


def cleaned(statistics):
    steps = [
        ("range", MinMaxScaler(ranges=[(0, 1)] * 3)),
        ("dedup", Deduplicator()),
        ("impute", MeanImputer(fit_mode=statistics)),
        ("scale", StandardScaler(fit_mode=statistics)),
        ("model", LogisticRegression(classes=(0, 1))),
    ]
    return Pipeline(steps).plan(DOMAIN)


def projected(gate="auto", rows_per_unit=1):
    pca = PCA(n_components=1, min_gap=0.1, fit_mode="exact")
    pipe = make_pipeline(NormClipper(), Deduplicator(), pca, GaussianMechanism(), gate=gate)
    return pipe, DOMAIN.but(rows_per_unit=rows_per_unit)


def levels_of(plan):
    """The bound, from the plan's own Distances: (R mass + total) / 2R."""
    levels = [plan.distance.mass / 2]
    for step in plan.steps:
        norm, d = step.way.domain.row_norm, step.way.distance
        levels.append((norm * d.mass + d.total) / (2 * norm))
    return levels


def stages(ax):
    return [label.get_text().split("\n")[0] for label in ax.get_yticklabels()]


def ends(ax, color=None):
    """Where the bars end, from top to bottom."""
    bars = [bar for bar in ax.patches if color is None or to_hex(bar.get_facecolor()) == color]
    found = {}
    for bar in bars:
        y = round(bar.get_y() + bar.get_height() / 2, 6)
        found[y] = max(found.get(y, 0.0), bar.get_x() + bar.get_width())
    return [found[y] for y in sorted(found)]


def test_one_bar_for_the_entrance_and_every_stage():
    pipe, domain = projected()
    ax = ppdp.plot.distance(pipe.plan(domain))
    assert stages(ax) == ["entrance", "normclipper", "deduplicator", "pca"]
    low, high = ax.get_ylim()
    assert low > high, "the entrance is on top"


@pytest.mark.parametrize("rows_per_unit", [1, 3])
def test_bars_are_the_bound_in_replaced_rows(rows_per_unit):
    pipe, domain = projected(rows_per_unit=rows_per_unit)
    plan = pipe.plan(domain)
    ax = ppdp.plot.distance(plan)
    assert ends(ax) == pytest.approx(levels_of(plan))
    assert ends(ax)[0] == rows_per_unit
    assert ends(ax, "#3b6690") == [rows_per_unit] * 4
    assert ends(ax)[-1] > 2 * rows_per_unit, "exact PCA moves every row"


def test_words_and_numbers_of_each_stage():
    pipe, domain = projected()
    plan = pipe.plan(domain)
    ax = ppdp.plot.distance(plan)
    words = [label.get_text().split("\n")[1] for label in ax.get_yticklabels()]
    moved = plan.end[1]
    assert words[:3] == ["1 replaced"] * 3
    assert words[3] == f"1 replaced, {moved.moved:g} moved by ≤\u00a0{figure(moved.radius, 3, upward=True)}"
    assert [float(text.get_text()) for text in ax.texts] == pytest.approx(levels_of(plan), rel=1e-3)


def test_a_line_leads_from_each_stage_to_the_next():
    plan = cleaned("exact")
    ax = ppdp.plot.distance(plan)
    assert [line.get_xdata()[0] for line in ax.lines] == pytest.approx(levels_of(plan)[:-1])


def test_a_certificate_looks_like_its_plan():
    pipe, _ = projected(gate=None)
    X = np.random.default_rng(0).normal(size=(DOMAIN.n, 3))
    of_certificate = ppdp.plot.distance(pipe.fit(X).certificate_)
    of_plan = ppdp.plot.distance(pipe.plan(DOMAIN))
    assert ends(of_certificate) == ends(of_plan)
    assert [t.get_text() for t in of_certificate.get_yticklabels()] == [t.get_text() for t in of_plan.get_yticklabels()]


def test_routes_side_by_side():
    ours, exact = cleaned("noisy"), cleaned("exact")
    ax = ppdp.plot.distance([("ours", ours), ("all exact", exact)])
    assert stages(ax) == ["entrance", "range", "dedup", "impute", "scale"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["ours", "all exact"]
    assert ends(ax)[0::2] == pytest.approx(levels_of(ours))
    assert ends(ax)[1::2] == pytest.approx(levels_of(exact))


def test_routes_with_other_stages_share_the_rows_they_have_in_common():
    pipe, domain = projected()
    short = make_pipeline(NormClipper(), PCA(n_components=1, min_gap=0.1, fit_mode="exact"), GaussianMechanism())
    plans = pipe.plan(domain), short.plan(domain)
    ax = ppdp.plot.distance([("short", plans[1]), ("long", plans[0])])
    assert stages(ax) == ["entrance", "normclipper", "deduplicator", "pca"]
    assert len(ends(ax)) == 4 + 3


def test_scale_is_logarithmic_only_where_lengths_spread_far():
    assert ppdp.plot.distance(cleaned("exact")).get_xscale() == "log"
    flat = ppdp.plot.distance(cleaned("noisy"))
    assert flat.get_xscale() == "linear"
    assert flat.get_xlim()[0] == 0
    assert flat.get_xlim()[1] >= 4, "a distance that never grows looks short"


def test_every_bar_lies_inside_the_axes():
    for plan in (cleaned("exact"), cleaned("noisy"), projected()[0].plan(DOMAIN)):
        ax = ppdp.plot.distance(plan)
        low, high = ax.get_xlim()
        assert low < min(ends(ax))
        assert max(ends(ax)) < high


def test_axis_says_its_unit():
    assert "in replaced rows" in ppdp.plot.distance(cleaned("noisy")).get_xlabel()


@pytest.mark.parametrize("wrong", [None, [], 3, "plan", ["plan"], [("label", "plan")], [("label",)], {"a": 1}])
def test_anything_else_is_refused(wrong):
    with pytest.raises(InvalidParameter):
        ppdp.plot.distance(wrong)
    assert plt.get_fignums() == [], "refused before a figure is made"
