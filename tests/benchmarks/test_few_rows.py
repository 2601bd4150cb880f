"""The table of all pairs of few rows: it has every step, and says of each that is below 0.9 where this is explained."""

from pathlib import Path

import pytest
from small_grids import CASES

import ppdp
from ppdp.bounds import FORMULAS
from ppdp.mechanisms.base import Mechanism
from ppdp.testing.mechanisms import Trial

ROOT = Path(ppdp.__file__).parents[1]
LINES = [
    line.strip("| \n").split(" | ")
    for line in (ROOT / "benchmarks" / "few_rows.md").read_text("utf-8").splitlines()
    if line.startswith("| ")
][1:]


def least(cells):
    """The smallest share that is compared."""
    figures = [cell.partition(": ")[2].split(" / ") for cell in cells if ": " in cell]
    return min(float(figure) for of_cell in figures for figure in of_cell if figure != "·")


LOOSE = [name for name, *cells in LINES if least(cells) < 0.9]


def pages(name):
    """Proof pages of a step, behind the entrance for which it is planned with few rows."""
    case = CASES[name]
    world = case.world("replace", 3)
    if isinstance(case.step, Mechanism):
        used = [Trial.of(case.step, world).planned.question.formula]
    else:
        used = [mode.formula for mode in case.step.fit_modes(world.domain, world.distance)]
    return [(ROOT / "docs" / "theory" / f"{FORMULAS[formula].page}.md") for formula in used]


def test_every_step_has_a_line():
    assert [name for name, *_ in LINES] == [*CASES]
    assert len(LOOSE) > 20


@pytest.mark.parametrize("name", LOOSE)
@pytest.mark.repeated("name", keep=40)
def test_a_share_below_nine_tenths_is_explained_on_its_page(name):
    assert any("few_rows.md" in page.read_text("utf-8") for page in pages(name)), pages(name)
