"""The code that people read is run: README and documentation."""

import inspect
import json
import re
import sys
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pytest
from effort import rounds
from page_code import python_blocks

from ppdp import Adjacency, Domain
from ppdp.cli.demo import build
from ppdp.exceptions import PpdpError
from ppdp.testing import check_stage

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
NOTEBOOKS = sorted((ROOT / "docs" / "tutorials").glob("*.ipynb"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# The site's copies of pages that stand elsewhere.
PAGES = [page for page in PAGES if "project" not in page.relative_to(ROOT).parts]


@pytest.fixture(autouse=True)
def no_figure_stays_open():
    """Blocks may leave one, and other tests count them."""
    yield
    plt.close("all")


def run(code: str, file: Path, names: dict[str, Any]) -> None:
    """Run a program among these names."""
    exec(compile(code, str(file), "exec"), names)


def check_installed(code: str) -> None:
    """Adapters of networks are an extra."""
    if "ppdp.mechanisms.lora" in code:
        pytest.importorskip("torch")


@pytest.mark.parametrize("page", [p for p in PAGES if python_blocks(p)], ids=lambda p: p.name)
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("ppdp.audit.pairs.TRIAL_RUNS", 200)  # as in tests of audits
    monkeypatch.setattr("ppdp.testing.mechanisms.FEWEST", 40)  # as in tests of contracts
    few = {"pairs": rounds(6, 15), "climbs": rounds(10, 40)}
    for name, value in few.items():
        monkeypatch.setitem(inspect.unwrap(check_stage).__kwdefaults__, name, value)
    check_installed(code := python_blocks(page))
    run(code, page, {"__name__": "documentation"})


@pytest.mark.long
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.name)
def test_notebooks_run(notebook: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are kept without outputs; cells that Jupyter expects to fail do, with an error of ours."""
    monkeypatch.chdir(tmp_path)
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)
    check_installed("".join(line for cell in code for line in cell["source"]))
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in code:
        fails = "raises-exception" in cell["metadata"].get("tags", [])
        with pytest.raises(PpdpError) if fails else nullcontext():
            run("".join(cell["source"]), notebook, names)


def test_links_lead_somewhere() -> None:
    for page in PAGES:
        targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text(encoding="utf-8"))
        missing = [t for t in targets if "://" not in t and not (page.parent / t).exists()]
        assert missing == [], page


def test_the_picture_of_the_first_page_is_of_the_code_above_it() -> None:
    """And its figure stands in the text below."""
    drawn = import_module("distance").routes()
    lengths = {label: bars(plan) for label, plan in drawn.items()}
    assert set(lengths["ours"].values()) == {1.0}
    assert list(lengths["all exact"]) == ["entrance", "range", "dedup", "impute", "scale"]
    page = (ROOT / "docs" / "index.md").read_text("utf-8")
    assert f"as if {lengths['all exact']['scale']:.0f} rows had been replaced" in page


def test_the_front_page_is_short_and_shows_what_its_code_prints(capsys: pytest.CaptureFixture[str]) -> None:
    text = PAGES[0].read_text("utf-8")
    run(python_blocks(PAGES[0]).replace('"patients"', '"front page"'), PAGES[0], {"__name__": "documentation"})
    digest = re.compile(r"sha256:\w+")
    (shown,) = re.findall(r"```text\n(.*?)```", text, flags=re.S)
    assert digest.sub("", shown) == digest.sub("", capsys.readouterr().out)
    assert all(f"“{more.capitalize()}”" in text for more in re.findall(r"and \d+ more", shown))
    assert text.count("\n") <= 90


def test_the_front_page_says_what_the_demo_shows_of_the_usual_claim() -> None:
    pipe, X, _ = build("flchain")
    rows = len(X) * 3 // 4
    compared = pipe.compare(Domain(n_rows=rows, n_features=X.shape[1], feature_names=tuple(X.columns)))
    claims = {one.name: one for one in compared.practices}
    text = PAGES[0].read_text("utf-8")
    assert f"{rows:,} rows to train on" in text
    assert f"| {claims['naive claim'].provable:,.0f} |" in text
    assert claims["naive claim"].claimed == claims["ours"].claimed == 1
    assert claims["ours"].provable <= 1


def bars(plan: Any) -> dict[str, float]:
    """How far apart neighbouring datasets are, in replaced rows, at the entrance and behind every stage."""
    points = [("entrance", plan.domain, Adjacency.replace().distance)]
    points += [(step.name, step.way.domain, step.way.distance) for step in plan.steps]
    return {
        name: far.shift(norm, 1.0) / (2 * norm) if (norm := domain.row_norm) else 1.0 for name, domain, far in points
    }
