"""Draws which room of ppdp imports which, read from the sources: ``python docs/rooms.py`` writes the picture."""

import ast
import re
from pathlib import Path
from xml.sax.saxutils import escape

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs" / "images" / "rooms.svg"

# From the bottom up: a room imports only rooms that stand before it.
ROOMS = (
    "exceptions",
    "core",
    "privacy",
    "bounds",
    "data",
    "certificate",
    "transformers",
    "mechanisms",
    "datasets",
    "plot",
    "interop",
    "pipeline",
    "testing",
    "audit",
    "cli",
)
CELL, WORDS, TOP = 24, 690, 112


def files_of(room: str) -> list[Path]:
    """The sources of a room."""
    folder = ROOT / "ppdp" / room
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def what_lives_in(room: str) -> str:
    """The first line of its docstring."""
    return (
        (ast.get_docstring(ast.parse(files_of(room)[0].read_text("utf-8"))) or "").partition("\n")[0].replace("`", "")
    )


def imported_by(room: str) -> set[str]:
    """The other rooms that a room imports, wherever in its files."""
    statement = re.compile(r"^ *(?:from|import) ppdp(\.\w+| import .*)", flags=re.M)
    said = [rest for path in files_of(room) for rest in statement.findall(path.read_text("utf-8"))]
    found = {name for rest in said for name in re.findall(r"\w+", rest)}
    return (found & set(ROOMS)) - {room}


def drawn() -> str:
    """The matrix of imports as SVG: a mark says that the room of its row imports that of its column."""
    rows = ROOMS[::-1]
    left, width, height = 96, 96 + CELL * len(ROOMS) + WORDS, TOP + CELL * len(ROOMS) + 12
    body = []
    for i, room in enumerate(ROOMS):
        x = left + CELL * i + CELL / 2
        body.append(f'<text transform="translate({x + 4},{TOP - 8}) rotate(-60)">{room}</text>')
    for j, room in enumerate(rows):
        y, used = TOP + CELL * j, imported_by(room)
        if j % 2 == 0:
            body.append(f'<rect x="0" y="{y}" width="{width}" height="{CELL}" fill="#f3f6f7"/>')
        body.append(f'<text x="{left - 10}" y="{y + 16}" text-anchor="end" font-weight="600">{room}</text>')
        for i, other in enumerate(ROOMS):
            x = left + CELL * i
            if other == room:
                body.append(f'<rect x="{x + 5}" y="{y + 5}" width="14" height="14" fill="#aab4ba"/>')
            elif other in used:
                body.append(f'<circle cx="{x + CELL / 2}" cy="{y + CELL / 2}" r="6" fill="#2f7f79"/>')
        words = escape(what_lives_in(room))
        body.append(f'<text x="{left + CELL * len(ROOMS) + 16}" y="{y + 16}" fill="#44525c">{words}</text>')
    font = 'font-family="sans-serif" font-size="13"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {font}>'
    title = "<title>Rooms of ppdp: every import runs to a room further down</title>"
    background = f'<rect width="{width}" height="{height}" fill="white"/>'
    return "\n".join([head, title, background, *body, "</svg>"]) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
