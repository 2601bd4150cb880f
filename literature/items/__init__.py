"""What became of every algorithm, theorem, lemma, corollary, table and figure of the papers, in the papers' order.

One text file for each paper. Its first line says what the paper numbers, by its own count: ``Lemma 1-3 A-B`` are five
lemmas. Every other line is an item: place, fate, ids of claims, files and words, with "-" for none.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from literature import preprocessing, projections, wishart

__all__ = ["FATES", "ITEMS", "NUMBERED", "Item"]

FATES = {
    "judged": "what it claims has a verdict below",
    "implemented": "ppdp has it, as it is or corrected",
    "refused": "ppdp has it not, for the reason that is given",
    "reproduced": "a command computes it",
    "stand-in": "a command computes it with public data or a small model in the place of the paper's",
    "quoted": "a fact of others, or a step of a proof; not judged",
    "defined": "a definition, or a picture without numbers",
    "absent": "not in the text that was checked",
}
"""What may become of an item."""


@dataclass(frozen=True, slots=True)
class Item:
    """One numbered item of a paper, or a section that claims something.

    Attributes
    ----------
    place : str
        Kind and number, such as ``"Lemma 4"``.
    fate : str
        One of ``FATES``.
    claims : tuple of str
        Ids of the claims that it makes or rests on.
    where : tuple of str
        Files that hold it, from the top of the project.
    words : str
        What it is, what became of it and why.
    """

    place: str
    fate: str
    claims: tuple[str, ...]
    where: tuple[str, ...]
    words: str


def _item(line: str) -> Item:
    place, fate, claims, where, words = ("" if cell.strip() == "-" else cell.strip() for cell in line.split("|"))
    return Item(place, fate, tuple(claims.split()), tuple(where.split()), words)


def _numbers(kinds: str) -> tuple[str, ...]:
    """Places that ``"Lemma 1-3 A.1 C-D; Figure 1"`` names: six lemmas and a figure."""
    found = []
    for kind in kinds.split(";"):
        name, *ranges = kind.split()
        for each in ranges:
            first, _, last = each.partition("-")
            last = last or first
            if first.isdigit():
                found += [f"{name} {number}" for number in range(int(first), int(last) + 1)]
            elif len(first) == 1:
                found += [f"{name} {chr(letter)}" for letter in range(ord(first), ord(last) + 1)]
            else:
                found.append(f"{name} {first}")
    return tuple(found)


_FILES = {
    preprocessing.PAPER: "preprocessing",
    projections.PAPER: "projections",
    wishart.BEYOND: "beyond",
    wishart.HELPS: "helps",
    wishart.DESIGN: "design",
}
_LINES = {
    paper: (Path(__file__).parent / f"{name}.txt").read_text(encoding="utf-8").splitlines()
    for paper, name in _FILES.items()
}
NUMBERED = {paper: _numbers(lines[0].removeprefix("numbered:")) for paper, lines in _LINES.items()}
"""Of each paper: the places that it numbers."""
ITEMS = {paper: tuple(_item(line) for line in lines[1:]) for paper, lines in _LINES.items()}
"""Of each paper: its items."""
