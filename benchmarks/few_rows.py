"""All neighbouring datasets of at most five rows on a grid: how close they come to what every step certifies.

    python benchmarks/few_rows.py

Writes ``few_rows.md``. The tests at length (``make attack``) compare the same pairs; this says how close they come.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from exhaustive import ADJACENCIES, NUMBERS, Shares, closest
from small_grids import CASES

from ppdp.exceptions import PpdpError

PAGE = Path(__file__).with_name("few_rows.md")
HEAD = """# All pairs of few rows

Written by `python benchmarks/few_rows.py`: every pair of neighbouring datasets of 2 to 5 rows on a small grid of
values, gaps, labels and weights (`tests/helpers/small_grids.py`), where no more than 2000 have that number of rows
(two rows of a person 5000, boosting 1000, and 16,000 where order counts). In a cell: the number of pairs, the most
rows, and the largest share of what is certified. Of a stage, of each number by itself, in the closest mode: how far
each row moves / all rows together / unmatched weight / change of the second moment, "·" where none is certified; of a
mechanism, of its sensitivity or its privacy loss. "person" is two rows of one person, "change" half a unit in one
column, "weight" one weight that is halved. "-": refused, nothing that noise could protect, or no such pair on the
grid. A share below 0.9 is explained on the proof page, that of a halved weight with that of an added row.

| step | {names} |
|---|{bars}
"""


def cell(name: str, adjacency: str) -> str:
    """One number of pairs, and the closest of them."""
    try:
        case = CASES[name]
        compared, rows, shares = closest(case, adjacency, case.most(adjacency))
    except PpdpError:
        return "-"
    if not compared:
        return "-"
    return f"{compared}, n ≤ {rows}: {' / '.join(figures(shares))}"


def figures(shares: Shares) -> list[str]:
    """The largest share of every number of the claim, over all modes."""
    found = [[share for (_, own), share in shares.items() if own == number] for number in (*NUMBERS, "claimed")]
    written = [f"{max(own):.3f}" if own else "·" for own in found]
    return written[:3] + written[3:4] * (written[3] != "·") if written[4] == "·" else written[4:]


def main() -> None:
    lines = []
    for name in CASES:
        lines.append(f"| {name} | {' | '.join(cell(name, adjacency) for adjacency in ADJACENCIES)} |")
        print(lines[-1], flush=True)
    head = HEAD.format(names=" | ".join(ADJACENCIES), bars="---|" * len(ADJACENCIES))
    PAGE.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
