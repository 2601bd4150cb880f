"""The reproductions run, and give the figures that stand in ``reproductions/results.md``."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "reproductions"))

import _learning
import _page
import _prices
import _ways
import calibrated
import figure_2
import figure_3
import formulas
import membership
import phase_diagram
import printed
import released_mean
import retrieval
import sketched_text
import table_2
import table_4

from literature.preprocessing.components import eigengap
from ppdp.data.rows import Rows
from ppdp.mechanisms.learn.descent import ClippedGradient, descend_faster, path
from ppdp.privacy.renyi import ORDERS

FOLDER = Path(__file__).parents[2] / "reproductions"
COMMITTED = (FOLDER / "results.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def no_layout(monkeypatch):
    """How much room labels take does not matter: to find out every picture is drawn twice."""
    monkeypatch.setattr("matplotlib.figure.Figure.get_layout_engine", lambda self: None)


def cells(page: str, *start: str) -> list[str]:
    """The rest of the line of a table that starts with these cells."""
    (line,) = {line for line in page.splitlines() if line.startswith("| " + " | ".join([*start, ""]))}
    return [cell.strip() for cell in line.strip("| ").split("|")][len(start) :]


def test_figure_2(tmp_path):
    page = figure_2.main(["--quick", "--out", str(tmp_path)])
    assert (tmp_path / "images" / "figure_2.png").stat().st_size > 10_000
    starts = (("n = 100", "50"), ("η = 0.1, B within 8η", "100"), ("gap ≈ 0.15", "500"), ("gap = 0.07, P x", "500"))
    for start in starts:
        assert cells(page, *start) == cells(COMMITTED, *start)
    assert cells(page, "n = 53", "50") == ["129", "75.7", "721", "70.9", "70.9", "1.00"]
    assert "exceeds both" in cells(page, "η = 0.1, B within 2η", "50")[3]
    assert not any("exceeds both" in line for line in page.splitlines() if "2η |" not in line)


@pytest.mark.parametrize(
    "point",
    [
        *figure_2.quantization([60]),
        *figure_2.imputation([20]),
        *figure_2.covariance([150]),
        *figure_2.second_moment([150]),
    ],
    ids=lambda point: f"{point.setting} {point.kind}",
)
def test_no_pair_exceeds_ours(point):
    assert point.worst <= point.ours * (1 + 1e-9)
    assert point.ours <= point.theorem <= point.table or point.kind == figure_2.GOOD


def test_a_verdict_fails_where_the_numbers_say_something_else():
    panels = [list(points(xs[:1])) for points, xs, *_ in figure_2.PANELS]
    assert len(list(figure_2.verdicts(*panels))) == 3
    panels[2][0] = replace(panels[2][0], worst=panels[2][0].theorem * 1.1)
    with pytest.raises(AssertionError):
        list(figure_2.verdicts(*panels))


@pytest.mark.parametrize("total", [0.2, 2.0, 81.3])
def test_theorem_2_takes_the_best_c_of_each_term_and_the_larger_term(total):
    alpha, c = np.array(ORDERS)[:, None], 1 + np.geomspace(1e-5, 1e5, 2001)

    def least(first, second):
        share, order = (alpha * c - 1) / (c * (alpha - 1)), (c * alpha - 1) / (c - 1)
        return (share * first * alpha * c + second * order).min(axis=1)

    moved, replaced = (figure_2.BASE * total) ** 2 / 2, figure_2.BASE**2 / 2
    larger = np.maximum(least(moved, replaced), least(replaced, moved))
    by_hand = (larger - np.log(printed.DELTA) / (alpha[:, 0] - 1)).min()
    assert printed.theorem_two(figure_2.BASE, total) == pytest.approx(by_hand, rel=1e-4)
    assert by_hand <= printed.theorem_two(figure_2.BASE, total, c=2.0)


def test_the_paper_s_pca_needs_more_than_the_uncentred_constant_and_less_than_ours():
    assert 2.4 < figure_2.needed(figure_2.lens_of_gap(500, 0.07)) < 1.5 * np.sqrt(3)
    assert figure_2.needed(figure_2.on_circle(500, 0.07)) == pytest.approx(1, abs=0.01)
    pair = figure_2.lens_of_gap(500, 0.07).pair
    assert min(eigengap(rows.X, 1) for rows in (pair.left, pair.right)) == pytest.approx(0.07, rel=1e-9)


def test_table_2(tmp_path):
    page = table_2.main(["--quick", "--out", str(tmp_path)])
    names = ("mean imputation, n = 100, 10 missing", "mean imputation, n = 100, 50 missing")
    found = [cells(page, name) for name in (*names, "quantization, η = 0.1, B = 50", "PCA, n = 101, gap 0.07")]
    assert [row[1] for row in found] == ["1.91", "4.62", "66.7", "19,659"]  # Table 2's formula
    assert [row[3] for row in found] == ["1.56", "3.99", "17.1", "1,079"]  # Theorem 2
    assert [row[4] for row in found] == ["1.24", "3.32", "15.2", "1,057"]  # the same moves, exactly
    assert found[3][6] == "405"  # group privacy, which is no part of that
    assert "up to 19 times smaller" in page
    assert cells(page, "M_G") == cells(COMMITTED, "M_G")
    assert [cell.split("(")[1] for cell in cells(page, "M_G")] == ["false)", "ambiguous)", "loose)", "misprint)"]
    assert table_2.exact_sampled_rdp(4, 1000, 100, 1.0) == pytest.approx(0.903, abs=1e-3)


def test_phase_diagram():
    page = phase_diagram.main(["--quick"])
    for start in (("d = 100, ε = 1", "10,000"), ("d = 6,000, ε = 0.1", "1,000,000")):
        assert cells(page, *start) == cells(COMMITTED, *start)
    model, statistic = (cells(page, use, "100") for use in (_prices.MODEL, _prices.WORST))
    assert model[1:] == ["100 %", "0 %", "0 %", "0 %"]
    assert statistic[1:] == ["-", "100 %", "-", "0 %"]


def test_noisy_pca_errs_as_priced():
    rng, d, n, share, gap = np.random.default_rng(0), 80, 20_000, 0.5, 0.3
    world = _prices.World(n, d, 1.0)
    case, place = _prices.Case(world, gap), _prices.SHARES.index(share)
    (noise, left), s, spectrum = world.releases[place], np.sqrt(case.high), np.full(d, case.low)
    spectrum[0] = case.high
    scores, moves, lengths = [], [], []
    for _ in range(60):
        square = rng.standard_normal((d, d))
        turned = np.linalg.eigh(np.diag(spectrum) + noise * (square + square.T) / np.sqrt(2))[1][:, -1]
        rows = rng.standard_normal((500, d)) * np.sqrt(spectrum)
        along, length = rows @ turned, np.sqrt(spectrum @ turned**2)
        weight = s * turned[0] + 2 * length / (n * left) * rng.standard_normal()
        deserved = s * turned[0] ** 2 * rows[:, 0]
        scores.append(np.mean((along * weight - deserved) ** 2) / (case.high * turned[0] ** 2) ** 2)
        moves.append(np.mean(np.sum((np.outer(rows[:, 0], np.eye(d)[0]) - np.outer(along, turned)) ** 2, axis=1)))
        lengths.append(length)
    assert list(case.noisy_model())[place] == pytest.approx(np.sqrt(np.mean(scores)), rel=0.05)
    assert list(case.noisy_worst())[place] == pytest.approx(np.sqrt(np.mean(moves)) / s, rel=0.05)
    shorter = 1 - np.mean(lengths) / s
    assert list(case.noisy_length())[place] == pytest.approx(np.hypot(1 / (n * left), shorter), rel=0.05)


def test_every_way_has_its_best_share_of_the_budget():
    world = _prices.World(10_000, 100, 1.0)
    (usual,) = [margin for share, (margin, _) in zip(_prices.SHARES, world.gates) if share == _prices.USUAL_SHARE]
    assert usual == world.margin()
    case = _prices.Case(world, 0.3)
    for use, ways in _prices.ASKED.items():
        for way in ways:
            assert case.errors(use, (way,))[way] == min(_prices.ERRORS[use, way](case))
    assert _prices.EXACT not in _prices.Case(_prices.World(1000, 100, 0.1), 0.3).errors(_prices.MODEL, _prices.WAYS)


def test_words_that_no_longer_hold_are_refused():
    cells = list(phase_diagram.survey([1e4, 1e6], [0.1, 0.9]))
    worse = [replace(cell, errors=cell.errors | {_prices.NOISY: 1e-9}) for cell in cells]
    with pytest.raises(RuntimeError, match="no longer true"):
        list(phase_diagram.verdicts(worse))


def test_all_runs_together_are_the_descent_of_the_library():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    X /= 2 * np.linalg.norm(X, axis=1, keepdims=True)
    y = (X[:, 0] > 0).astype(float)
    runs = _learning.Runs(np.zeros(2), np.array([5.0, 80.0]), np.array([3.0, 9.0]), steps=12)
    together = _learning.train(X, y, 6, runs, rng)
    gradient = ClippedGradient.of(
        Rows.of(X, y), lambda scores, y: 1 / (1 + np.exp(-scores)) - y[:, None], clip=1.0, fit_intercept=False
    )
    for k in range(2):
        settings = {"steps": 12, "learning_rate": runs.step[k], "radius": runs.radius[k]}
        iterates = descend_faster(gradient, lambda value: value, np.zeros((1, 3)), **settings)
        np.testing.assert_allclose(together[k], path(iterates, 12)[-1][0], rtol=1e-10)


def test_noise_in_columns_without_rows_has_the_law_of_a_symmetric_gaussian_matrix():
    rng, signal = np.random.default_rng(1), np.diag([1.0, 1.0, 0.0, 0.0])

    def direct() -> float:
        square = rng.standard_normal((24, 24))
        noisy = 0.2 * (square + square.T) / np.sqrt(2)
        noisy[:4, :4] += signal
        return float((np.linalg.eigh(noisy)[1][:2, -2:] ** 2).sum())

    ours = [(_learning.noisy_components(signal, 0.2, 24, 2, rng)[:, :2] ** 2).sum() for _ in range(200)]
    theirs = [direct() for _ in range(200)]
    assert abs(np.mean(ours) - np.mean(theirs)) < 4 * np.sqrt((np.var(ours) + np.var(theirs)) / 200)


def test_figure_3(tmp_path):
    page = figure_3.main(["--quick", "--out", str(tmp_path)])
    assert (tmp_path / "images" / "figure_3.png").stat().st_size > 10_000
    assert cells(page, "1,000", "exact PCA, certified") == ["refused", "refused"]
    nothing, told = (
        [float(cell) for cell in cells(page, "1,000", way)] for way in ("no pre-processing", "noisy PCA, 80 columns")
    )
    assert all(without < behind for without, behind in zip(nothing, told))
    assert "It is in 0 of 2 cells" in page
    assert "the noise is 47 times larger if all of that gap is tested, 94 times if half is" in page


def test_a_page_with_a_curve_is_not_replaced_by_one_without(tmp_path):
    section = _page.Section("figure_3", out=tmp_path)
    section.text(f"| {figure_3.NAMES['diffprivlib']} |")
    section.publish()
    before = (tmp_path / "results.md").read_text(encoding="utf-8")
    with pytest.raises(SystemExit, match="left as it is"):
        figure_3.main(["--quick", "--out", str(tmp_path)])
    assert (tmp_path / "results.md").read_text(encoding="utf-8") == before


def test_a_claim_survives_by_the_number_of_its_cells():
    assert [figure_3.survives(count, 2) for count in range(3)] == [
        "Does not survive here",
        "Survives here in part",
        "Survives here",
    ]
    risks = figure_3.Risks(
        {(10, "a", 1.0): np.array([0.1, 0.2, 0.3]), (10, "b", 1.0): np.full(3, np.nan)}, {10: np.array([0.2, 0.3, 0.5])}
    )
    assert risks.ahead("a", "b", [(10, 1.0)]) == [(10, 1.0)]  # by 0.1, 0.1, 0.2
    assert risks.ahead("b", "a", [(10, 1.0)]) == []


def test_table_4(tmp_path):
    page = table_4.main(["--quick", "--out", str(tmp_path)])
    assert cells(page, "1,000", "clip, then fit", "1") == ["refused"] * 4
    assert cells(page, "1,000", "fit, then clip", "1") == [f"refused ({a})" for a in ("0.84", "0.89", "0.88", "0.89")]
    assert "(0." not in "".join(cells(page, "1,000", "clip, no PCA", "1"))
    assert float(cells(page, "1,000", "clip, no PCA", "1")[0]) < 0.5


@pytest.fixture(scope="module")
def data():
    return _learning.classification(400, 100, 5, 3, seed=0)


def test_no_linear_model_has_a_lower_risk_than_the_least():
    data = _learning.classification(400, 100, 5, 3, seed=1)
    X, y, rng = data.X.astype(float), data.y, np.random.default_rng(0)
    found = _learning.train(X, y, 8, _learning.Runs(np.zeros(1), np.array([4.0]), np.array([1e9]), 10_000), rng)
    assert data.least_risk == pytest.approx(_learning.losses(X, y, found)[0], abs=1e-6)


def test_noise_where_no_row_lies_acts_by_its_lengths_and_angles(data, monkeypatch):
    runs = _learning.Runs(np.full(3000, 0.05), np.full(3000, 8.0), np.full(3000, 6.0), steps=8)

    def norms(seed: int) -> np.ndarray:
        return np.linalg.norm(_learning.train(data.X, data.y, 40, runs, np.random.default_rng(seed)), axis=1)

    rotated = norms(0)
    monkeypatch.setattr(
        _learning, "_elsewhere", lambda columns, steps, m, rng: rng.standard_normal((steps, m, columns))
    )
    direct = norms(1)
    assert abs(rotated.mean() - direct.mean()) < 4 * np.sqrt((rotated.var() + direct.var()) / 3000)
    assert rotated.std() == pytest.approx(direct.std(), rel=0.1)


def test_a_best_setting_on_an_edge_is_refused(data):
    (learner,) = _ways.none(data, 5.0, np.random.default_rng(0))
    narrow = replace(learner, grid=_ways.Grid((0.25, 1.0), (2.5, _ways.ENDLESS)))
    assert _ways.best([data], [[learner]], 1, 1, "wide")[0] < _ways.best([data], [[narrow]], 1, 1)[0]
    with pytest.raises(AssertionError, match="narrow"):
        _ways.best([data], [[narrow]], 1, 1, "narrow")
    assert np.isnan(_ways.best([data], [[]], 1, 1)).all()


def scores(page: str, name: str, k: str = "") -> list[float]:
    """Of a method, behind the words "k = ...:"."""
    (line,) = re.findall(rf"^\| {re.escape(name)} \|.*", page.partition(k)[2] if k else page, re.MULTILINE)[:1]
    return [float(cell.split("±")[0]) for cell in line.strip("| ").split("|")[3:]]


def test_retrieval(tmp_path):
    page = retrieval.main(["--quick", "--out", str(tmp_path)])
    (ours,), (theirs,), (raw,) = (scores(page, name) for name in (retrieval.OURS, retrieval.THEIRS, "DP-RP-G"))
    assert ours > theirs + 0.05 > raw + 0.05
    assert "with δ = 0, is ahead of it at (k = 64, ε = 5)" in page
    found = {name: scores(COMMITTED, name, "k = 256:") for name in retrieval.PAPER | retrieval.BETTER}
    assert found[retrieval.OURS][1] > 0.95 > 0.4 > found[retrieval.THEIRS][1] > 0.25
    assert all(found[retrieval.OURS][1] > others[1] for name, others in found.items() if name != retrieval.OURS)


def test_what_is_found_is_counted_against_the_true_neighbours(monkeypatch):
    monkeypatch.setattr(retrieval, "QUERIES", 2)
    angles = np.array([0.0, 1.0, *np.linspace(-0.5, 1.5, 41)])
    rows = np.column_stack([np.cos(angles), np.sin(angles)])
    gold = retrieval.nearest(rows, 10)
    assert {int(place) for place in gold[0]} == {*range(5, 16)} - {5, 15} | ({5, 15} & {int(p) for p in gold[0]})
    assert retrieval.precision(3 * rows, gold) == 1
    assert retrieval.precision(-rows[:, ::-1], gold) < 1


def test_sketched_text(tmp_path):
    page = sketched_text.main(["--quick", "--out", str(tmp_path)])
    (ours,), (theirs,) = (scores(page, name) for name in (sketched_text.OURS, sketched_text.THEIRS))
    assert ours > theirs
    assert "beyond two standard errors in 4 of 4" in COMMITTED
    X, y = sketched_text.texts(50, 4000, 0)
    assert X.max() == X.data.min() == 1
    assert 90 <= X.sum(axis=1).min() <= X.sum(axis=1).max() <= sketched_text.LENGTH
    assert 0 < y.mean() < 1


def test_membership(tmp_path, monkeypatch):
    monkeypatch.setattr(membership, "STEPS", 30)
    page = membership.main(["--quick", "--out", str(tmp_path)])
    assert (tmp_path / "images" / "membership.png").stat().st_size > 10_000
    assert float(cells(page, "LoRA-FA, no noise")[0].split(" / ")[1]) == 1
    bare, little, much = (
        [tuple(map(float, cell.split(" / ")[:2])) for cell in cells(COMMITTED, name) if cell != "-"]
        for name in ("LoRA-FA, no noise", "M2, σ = 4", "M2, σ = 16")
    )
    assert min(steps for _, steps in bare) >= 0.97
    assert min(loss for loss, _ in bare[1:]) > 0.9
    assert [steps for _, steps in little] == sorted(steps for _, steps in little)
    assert all(more < less for (_, more), (_, less) in zip(much, little))


def test_a_section_takes_its_place_on_the_page(tmp_path):
    for name in ("table_2", "figure_2", "table_2"):
        section = _page.Section(name, out=tmp_path)
        section.text(f"Of {name}.")
        section.publish()
    heads = re.findall(r"^## (.*) \(", (tmp_path / "results.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert heads == ["Figure 2", "Table 2"]


def test_the_page_is_whole():
    assert all(f"reproductions/{name}.py" in COMMITTED for name in _page.SECTIONS)
    assert "--quick" not in COMMITTED
    pictures = re.findall(r"\]\((images/\w+\.png)\)", COMMITTED)
    assert pictures
    assert all((FOLDER / picture).exists() for picture in pictures)


def test_calibrated(tmp_path):
    """What it says is asserted where it says it."""
    page = calibrated.main(["--quick", "--out", str(tmp_path)])
    assert "5.68 |" in page
    assert "5.68 |" in COMMITTED


def test_formulas(tmp_path):
    page = formulas.main(["--quick", "--out", str(tmp_path)])
    for start in (("20", "1e-03"), ("16", "0.0632"), ("10.0",), ("σ/Δ₂",)):
        assert cells(page, *start) == cells(COMMITTED, *start)
    exact = [float(cells(COMMITTED, str(r), "1e-03")[2]) for r in (20, 200, 500, 2000)]
    assert exact == sorted(exact), "more rank does not mean more privacy"
    normal, flipped, *_ = map(float, cells(page, "two of 1/2", "(10)")[1:])
    assert normal < 0.03 < 0.4 < flipped, "(10) is far off"


def test_released_mean(tmp_path):
    """What it says is asserted where it says it."""
    page = released_mean.main(["--quick", "--out", str(tmp_path)])
    assert all(cells(text, "8", "2.01") for text in (page, COMMITTED))
