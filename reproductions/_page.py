"""What every command here shares: its options, its section of ``results.md``, and its picture."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
SECTIONS = {
    "figure_2": "Figure 2",
    "table_2": "Table 2",
    "figure_3": "Figure 3",
    "table_4": "Table 4",
    "phase_diagram": "When does non-private pre-processing pay?",
    "retrieval": "Retrieval from private sketches",
    "sketched_text": "A linear model from private sketches",
    "membership": "Who was a member, of low-rank training",
    "calibrated": "The calibrated attack on low-rank training",
    "released_mean": "Retrieval by a released direction",
    "formulas": "Figures that need no data",
}
TITLE = """# Reproductions

Five papers beside ppdp. Every section is written by its own command, `python reproductions/<name>.py`, and every number
in it is computed by that command unless it is said to be printed in the paper. Unless another is named, δ = 10⁻⁶.

* Up to *When does non-private pre-processing pay?*: "Provable privacy with non-private pre-processing" (Hu, Sanyal and
  Schölkopf, ICML 2024). Its bounds are its formulas, at parameters of our choice where it prints none, such as the ε of
  a mechanism alone; one replaced row.
* The sections on membership and on the calibrated attack: the attacks in three papers on random projections and
  low-rank adaptation, see [errata](../docs/errata.md), which also says of every figure what reproduces it.
* The section on a released direction: a use that one of these papers has for a projection without noise.
* The two sections on sketches: "Differential privacy with random projections and sign random projections" (Li and Li,
  NeurIPS 2023); one value of one row changes by at most 1.
"""


@dataclass
class Section:
    """One section of the page.

    Attributes
    ----------
    name : str
        Of the command.
    quick : bool
        Whether this is a short run, for tests.
    out : Path or None
        Folder of ``results.md`` and ``images``; None prints only.
    """

    name: str
    quick: bool = False
    out: Path | None = HERE
    parts: list[str] = field(default_factory=list)

    def text(self, words: str) -> None:
        """A paragraph."""
        self.parts.append(words.strip())

    def table(self, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
        """A table; numbers with three digits."""
        lines = [header, ["---"] * len(header), *([shown(cell) for cell in row] for row in rows)]
        self.parts.append("\n".join(f"| {' | '.join(map(str, line))} |" for line in lines))

    def picture(self, figure: Figure, says: str) -> None:
        """A picture, drawn but for runs that only print."""
        if self.out is None:
            return
        target = self.out / "images" / f"{self.name}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(target, dpi=65 if self.quick else 130)
        self.parts.append(f"![{says}](images/{self.name}.png)")

    def keep(self, words: str) -> None:
        """Stop before a section that has such words is replaced by one that cannot.

        Raises
        ------
        SystemExit
            If the page has them.
        """
        if self.out is not None and words in self._page().get(self.name, ""):
            raise SystemExit(f"{self.out / 'results.md'} has {words!r}, which this run cannot give: left as it is.")

    def publish(self) -> str:
        """Print the section and put it in its place on the page."""
        head = f"## {SECTIONS[self.name]} (`python reproductions/{self.name}.py{' --quick' if self.quick else ''}`)"
        section = "\n\n".join([head, *self.parts]) + "\n"
        print(section)
        if self.out is not None:
            held = self._page() | {self.name: section}
            order = [held[name] for name in SECTIONS if name in held]
            self.out.mkdir(parents=True, exist_ok=True)
            (self.out / "results.md").write_text("\n".join([TITLE, *order]), encoding="utf-8")
        return section

    def _page(self) -> dict[str, str]:
        """The sections that are there."""
        held = (HERE if self.out is None else self.out) / "results.md"
        return _sections(held.read_text(encoding="utf-8") if held.exists() else "")


def _sections(page: str) -> dict[str, str]:
    """The sections of a page, by the command that writes them."""
    found = re.split(r"^(?=## )", page, flags=re.MULTILINE)[1:]
    names = [re.search(r"reproductions/(\w+)\.py", text.partition("\n")[0]) for text in found]
    return {name.group(1): text.rstrip() + "\n" for name, text in zip(names, found) if name}


def shown(cell: object) -> str:
    """A number with three digits."""
    if not isinstance(cell, float):
        return str(cell)
    return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:#.3g}".rstrip(".")


def run(name: str, doc: str | None, build: Callable[[Section], None], arguments: Sequence[str] | None = None) -> str:
    """Run a command: options, section, page."""
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few settings only; prints, and writes only with --out")
    parser.add_argument("--out", type=Path, help="folder of results.md and images (default: this one)")
    options = parser.parse_args(arguments)
    section = Section(name, options.quick, options.out or (None if options.quick else HERE))
    build(section)
    return section.publish()
