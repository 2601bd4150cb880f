"""The figures of a certificate's page: bars that measure, a curve that is the guarantee, colours that can be read."""

import re
from importlib.resources import files

import pytest
from documents import detection_power, points_of, render_fragment, render_page
from pages import every_kind, real_documents, replaced

from ppdp.certificate.pages.derivation import Point
from ppdp.certificate.pages.interpretation import FALSE_ALARMS, rounded_up
from ppdp.core.distance import Distance


@pytest.fixture(scope="module", name="documents")
def documents_of_every_kind():
    return real_documents()


def bars_of(page):
    """Lengths of the parts of every bar of the stages."""
    svgs = re.findall(r"<svg[^>]*viewBox=\"0 0 100 10\".*?</svg>", page.split("What was released</h2>")[0])
    return [{k: float(w) for w, k in re.findall(r'width="([\d.]+)" height="10" class="(\w+)"', svg)} for svg in svgs]


def test_bars_measure_the_distance(documents):
    for kind in ("gated", "moved"):
        points, bars = points_of(documents[kind]), bars_of(render_page(documents[kind]))
        assert len(bars) == len(points)
        assert all(("moved" in bar) == (point.rows > point.unmatched) for bar, point in zip(bars, points))
        ends = [bar["unmatched"] + bar.get("moved", 0.0) for bar in bars]
        assert ends == sorted(ends)
        assert max(ends) == pytest.approx(96, abs=0.02)
    last, bar = points_of(documents["gated"])[-1], bars_of(render_page(documents["gated"]))[-1]
    assert bar["unmatched"] / (bar["unmatched"] + bar["moved"]) == pytest.approx(1 / last.rows, rel=1e-3)


def test_a_logarithmic_scale_is_announced(documents):
    wide = replaced(documents["gated"], ("steps", 2, "distance", "radius"), 0.5)
    wide = replaced(wide, ("steps", 2, "distance", "total"), 1900.0)
    assert "The bars are logarithmic" in render_page(wide)
    assert "The bars are logarithmic" not in render_page(documents["gated"])
    assert bars_of(render_page(wide))[-1]["unmatched"] < bars_of(render_page(documents["gated"]))[-1]["unmatched"]


@every_kind
def test_curve_of_a_test_is_what_it_detects_and_never_below_guessing(documents, kind):
    page = render_page(documents[kind])
    path = re.search(r'class="power" d="([^"]*)"', page)[1]
    corners = [tuple(map(float, corner)) for corner in re.findall(r"([\d.]+) ([\d.]+)", path)]
    (left, bottom), (right, top) = corners[0], corners[-1]
    bottom = float(re.search(r'class="blind" x1="[\d.]+" y1="([\d.]+)"', page)[1])
    for x, y in corners[1:]:
        alarm, power = (x - left) / (right - left), (bottom - y) / (bottom - top)
        assert power >= alarm - 1e-3
        assert power == pytest.approx(detection_power(documents[kind], alarm), abs=4e-3)
    assert page.count('class="mark"') == len(FALSE_ALARMS)


@every_kind
def test_figures_say_in_words_what_they_show(documents, kind):
    c = documents[kind]
    figures = re.findall(r"<svg[^>]*role=\"img\".*?</svg>", render_page(c), re.S)
    words = rounded_up(detection_power(c, 0.05))
    (one,) = figures
    assert re.search(r"<title>.+</title>", one)
    assert words in re.search(r"<desc>(.+)</desc>", one)[1]
    assert words in re.search(r'aria-label="([^"]+)"', one)[1]


# ---------------------------------------------------------------- points


def test_a_point_weighs_movement_in_replaced_rows():
    d = Distance(replaced=1, moved=100, radius=0.5, total=30.0)
    assert Point("x", d, 2.0).rows == pytest.approx((2.0 * 2 + 30.0) / 4.0)
    assert Point("x", d, 0.1).rows == pytest.approx(1 + 100), "a row that moved is at most replaced"
    assert Point("x", d, None).rows == pytest.approx(1 + 100), "without a unit of length too"
    assert Point("", Distance(replaced=1, toggled=1), None).rows == 1.5


def test_points_follow_the_document(documents):
    points = points_of(documents["gated"])
    assert [p.name for p in points] == ["", "normclipper", "deduplicator", "pca"]
    assert [p.labels[0] for p in points] == ["1 replaced"] * 4
    assert points[-1].rows == pytest.approx(1 + documents["gated"]["steps"][-1]["distance"]["total"] / 2)


def test_every_kind_of_change_has_its_words():
    assert Point("x", Distance(replaced=2, toggled=3, moved=4, radius=0.25), 1.0).labels == (
        "2 replaced",
        "3 toggled",
        "4 moved by ≤\u00a00.25",
    )


# ---------------------------------------------------------------- colours


def contrast(one, other):
    def light(colour):
        parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_can_be_read_in_both_schemes():
    css = files("ppdp.certificate.pages").joinpath("page.css").read_text(encoding="utf-8")
    schemes = [dict(re.findall(r"--(\w+): (#\w{6})", block)) for block in re.findall(r":root \{(.*?)\}", css, re.S)]
    assert len(schemes) == 2
    for scheme in schemes:
        for name in ("ink", "soft", "good", "caution", "bad"):
            assert contrast(scheme[name], scheme["paper"]) >= 4.5, name
        for name in ("unmatched", "moved"):
            assert contrast(scheme[name], scheme["track"]) >= 2.3, name
        assert contrast(scheme["unmatched"], scheme["paper"]) >= 3, "the curves"


def test_badges_can_be_read(documents):
    for c in documents.values():
        ground = re.search(r"background:(#\w{6})", render_fragment(c))[1]
        assert contrast("#ffffff", ground) >= 4.5
