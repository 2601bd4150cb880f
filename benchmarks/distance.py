"""Draws the picture of the first page of the documentation from the pipeline that stands above it.

    python benchmarks/distance.py

Distances follow from public facts alone, so nothing is fitted.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from ppdp import plot
from ppdp.core.domain import Domain
from ppdp.pipeline.planning.plan import Plan

ROOT = Path(__file__).parents[1]
NAMES = "ours", "all exact"


def pipeline() -> tuple[Any, Domain]:
    """The pipeline of that page's first code, and the public facts of its rows."""
    code = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "index.md").read_text(encoding="utf-8"), flags=re.S)[0]
    names: dict[str, Any] = {}
    exec(code.partition("pipe.fit(")[0], names)
    rows = names["X"]
    return names["pipe"], Domain(n_rows=len(rows), feature_names=tuple(rows.columns))


def routes() -> dict[str, Plan]:
    """The route that is chosen, and the one that fits every stage exactly."""
    pipe, domain = pipeline()
    chosen = pipe.plan(domain)
    fitted = [name for name, step in pipe.steps if "fit_mode" in step.get_params()]
    pipe.set_params(**{f"{name}__fit_mode": "exact" for name in fitted})
    return dict(zip(NAMES, (chosen, pipe.plan(domain))))


def main() -> None:
    """Write the picture."""
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    plot.distance(list(routes().items()), ax=figure.subplots())
    figure.savefig(ROOT / "docs" / "images" / "distance.png", dpi=150)


if __name__ == "__main__":
    main()
