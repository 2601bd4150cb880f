"""The reproductions run, and give the figures that stand in ``reproductions/results.md``."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "reproductions"))

import _learning
import _page
import figure_2
import phase_diagram
import table_2

from ppdp.mechanisms.descent import ClippedGradient, descend_faster, path
from ppdp.rows import Rows

FOLDER = Path(__file__).parents[1] / "reproductions"
COMMITTED = (FOLDER / "results.md").read_text(encoding="utf-8")


def cells(page: str, *start: str) -> list[str]:
    """The rest of the line of a table that starts with these cells."""
    (line,) = {line for line in page.splitlines() if line.startswith("| " + " | ".join([*start, ""]))}
    return [cell.strip() for cell in line.strip("| ").split("|")][len(start) :]


def test_figure_2(tmp_path):
    page = figure_2.main(["--quick", "--out", str(tmp_path)])
    assert (tmp_path / "images" / "figure_2.png").stat().st_size > 10_000
    for start in (("n = 100", "50"), ("η = 0.1, B within 8η", "100"), ("gap ≈ 0.15", "500")):
        assert cells(page, *start) == cells(COMMITTED, *start)
    group, printed, worst, ours, _ = cells(page, "n = 53", "50")
    assert (group, printed, worst, ours) == ("129", "721", "70.9", "70.9")
    assert "exceeds" in cells(page, "η = 0.01, B within 2η", "50")[2]
    assert "exceeds" not in "".join(line for line in page.splitlines() if "8η |" in line or line.startswith("| n ="))


@pytest.mark.parametrize(
    "point", [*figure_2.quantization([60]), *figure_2.imputation([20]), *figure_2.projection([150])]
)
def test_no_pair_exceeds_ours(point):
    assert point.worst <= point.ours * (1 + 1e-9)
    assert point.ours <= point.printed or "2η" in point.setting


def test_table_2(tmp_path):
    page = table_2.main(["--quick", "--out", str(tmp_path)])
    found = [
        cells(page, f"{name}")
        for name in ("mean imputation, n = 100, 10 missing", "mean imputation, n = 100, 50 missing")
    ]
    found.append(cells(page, "quantization, η = 0.1, B = 50"))
    assert [row[1] for row in found] == ["1.91", "4.62", "66.7"]  # printed
    assert [row[4] for row in found] == ["1.24", "3.32", "15.2"]  # the same moves, exactly
    assert cells(page, "M_G") == cells(COMMITTED, "M_G")
    assert table_2.exact_sampled_rdp(4, 1000, 100, 1.0) == pytest.approx(0.903, abs=1e-3)


def test_every_way_is_priced_at_its_stability_map():
    world = phase_diagram.World(10_000, 100, 1.0)
    model, statistic = (phase_diagram.ERRORS[use](world, 0.3) for use in phase_diagram.ERRORS)
    assert model["no pre-processing"] < min(model["exact PCA"], model["soft PCA"])
    assert statistic["exact PCA"] < statistic["noisy PCA"]
    assert "exact PCA" not in phase_diagram.model_errors(phase_diagram.World(1000, 100, 1.0), 0.3)


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
        settings = {"steps": 12, "step_size": runs.step[k], "radius": runs.radius[k]}
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
