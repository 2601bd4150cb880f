"""The same auditor on what other libraries claim.

    python benchmarks/honesty.py diffprivlib|opendp|smartnoise [words]

Tries every claim of a library that this environment has (only those with the words in their names), writes what was
found into ``honesty.csv``, in the place of what was found for the same claim of the same version, and the page
``honesty.md`` anew from all of that file. How to make an environment stands in the page.
"""

from __future__ import annotations

import csv
import math
import os
import platform
import sys
from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from _claims import Claimed
from threadpoolctl import threadpool_limits

from ppdp.audit import ForeignTarget
from ppdp.audit.output import OutputFinding, attack_output

HERE = Path(__file__).parent
LIBRARIES = "diffprivlib", "opendp", "smartnoise"
BESIDE = {"smartnoise-synth": ("opendp", "pandas"), "smartnoise-sql": ("opendp", "pandas")}
CONFIDENCE = 1 - 1e-4  # of each attempt
COLUMNS = "the pair", "ε claimed", "ε at least", "verdict", "runs", "attempts", "an event", "remark"
FIELDS = (
    *("library", "version", "claim", "pair", "kind", "epsilon", "delta", "epsilon_low", "most", "verdict", "event"),
    *("runs", "attempts", "confidence", "remark", "seconds", "python", "scikit-learn", "numpy", "others"),
)
KEYS = "library", "version", "claim"
UNCOUNTED = "?"
SHOWN = {"exceeded": "**exceeded**", "disclaimed": "**disclaimed**"}


def measured(claimed: Claimed) -> dict[str, Any]:
    """A row of the table, but for the number of attempts."""
    target = claimed.target()
    found = attack_output(target, runs=claimed.runs, confidence=CONFIDENCE)
    return {
        "library": target.library,
        "version": version(target.library),
        "claim": claimed.name,
        "pair": claimed.pair,
        "kind": claimed.kind,
        "epsilon": f"{found.epsilon:.3g}",
        "delta": f"{found.delta:.3g}",
        "epsilon_low": below(found.epsilon_low),
        "most": below(most(found.runs, found.delta)),
        "verdict": verdict(found, claimed.kind),
        "event": event(found),
        "runs": found.runs,
        "confidence": CONFIDENCE,
        "remark": claimed.remark,
        "seconds": f"{found.seconds:.0f}",
        "python": platform.python_version(),
        "scikit-learn": version("scikit-learn"),
        "numpy": version("numpy"),
        "others": ", ".join(f"{one} {version(one)}" for one in BESIDE.get(target.library, ())),
    }


def verdict(found: OutputFinding, kind: str) -> str:
    """What may be said of a claim."""
    if found.violated:
        return "disclaimed" if kind == "disclaimed" else "exceeded"
    return "not exceeded" if found.epsilon_low > 0 else "too weak to say"


def most(runs: int, delta: float) -> float:
    """The largest epsilon that so many runs can show: that of a release that says which dataset it is of."""
    target = ForeignTarget("told", lambda data, noise: data, 0.0, 1.0, 0.0, delta)
    return attack_output(target, runs=runs, confidence=CONFIDENCE).epsilon_low


def event(found: OutputFinding) -> str:
    """The probabilities that give the bound on epsilon, of an event or of its complement."""
    if found.epsilon_low <= 0:
        return "nothing"
    sides = [pair for one in found.events for pair in ((one.tpr, one.fpr), (1 - one.fpr, 1 - one.tpr))]
    high, low = max((pair for pair in sides if pair[0] > found.delta), key=lambda pair: gain(*pair, found.delta))
    return f"≥ {below(high)} against ≤ {above(low)}"


def gain(high: float, low: float, delta: float) -> float:
    """Epsilon of an event."""
    return math.log((high - delta) / low) if low else math.inf


def below(value: float) -> str:
    """Three digits, rounded down."""
    return digits(value, ROUND_FLOOR) if value else "0"


def above(value: float) -> str:
    """Three digits, rounded up."""
    return digits(value, ROUND_CEILING)


def digits(value: float, rounding: str) -> str:
    """Three digits."""
    return f"{float(Context(prec=3, rounding=rounding).create_decimal(value)):#.3g}".rstrip(".")


def table() -> list[dict[str, Any]]:
    """What was found so far."""
    path = HERE / "honesty.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def kept(
    rows: list[dict[str, Any]], new: dict[str, Any], claims: Sequence[str], before: int = 0
) -> list[dict[str, Any]]:
    """The rows with a new one, in the place of an old one for the same claim of the same version, else in order.

    Attempts are counted: whoever tries again until something is found has no such confidence.
    """
    same = [at for at, row in enumerate(rows) if all(row[key] == new[key] for key in KEYS)]
    if same:
        at, old = same[0], rows[same[0]]["attempts"]
        return [*rows[:at], {**new, "attempts": once_more(old)}, *rows[at + 1 :]]
    later = claims[list(claims).index(new["claim"]) + 1 :]
    mine = [row["version"] == new["version"] and row["claim"] in later for row in rows]
    at = mine.index(True) if True in mine else len(rows)
    return [*rows[:at], {**new, "attempts": str(before + 1)}, *rows[at:]]


def once_more(attempts: str) -> str:
    """One more attempt; those before counting began stay unknown."""
    *unknown, counted = [attempts, "0"] if attempts == UNCOUNTED else attempts.split(" + ")
    return " + ".join([*unknown, str(int(counted) + 1)])


def written(rows: list[dict[str, Any]]) -> None:
    """Table and page."""
    with (HERE / "honesty.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    words = (HERE / "honesty.md").read_text(encoding="utf-8").partition("<!-- figures -->")[0]
    (HERE / "honesty.md").write_text(f"{words}<!-- figures -->\n{''.join(sections(rows))}", encoding="utf-8")


def sections(rows: list[dict[str, Any]]) -> list[str]:
    """One table for each version of each library, and one for the naive claim."""
    libraries = dict.fromkeys((row["library"], row["version"]) for row in rows)
    own = [row for row in rows if row["kind"] != "naive"]
    naive = [row for row in rows if row["kind"] == "naive"]
    found = [
        section(f"{library} {number}", [row for row in own if (row["library"], row["version"]) == (library, number)])
        for library, number in libraries
    ]
    return [*found, section("The naive claim, which neither library makes", naive)] if naive else found


def section(title: str, rows: list[dict[str, Any]]) -> str:
    """A table, and where its rows were measured."""
    around: dict[str, list[str]] = {}
    for row in rows:
        around.setdefault(surroundings(row), []).append(row["claim"])
    single = len(around) == 1
    where = [f"{one}." if single else f"* {one}: {'; '.join(claims)}." for one, claims in around.items()]
    lines = [f"\n## {title}\n", "\n".join(where), "", f"| claim | {' | '.join(COLUMNS)} |", "|---" * 9 + "|"]
    return "\n".join([*lines, *(cells(row) for row in rows)]) + "\n"


def surroundings(row: dict[str, Any]) -> str:
    """Versions of what a row was measured with."""
    found = f"Python {row['python']}, scikit-learn {row['scikit-learn']}, numpy {row['numpy']}"
    library = f"{row['library']} {row['version']}, " if row["kind"] == "naive" else ""
    return library + found + (f", {row['others']}" if row["others"] else "")


def cells(row: dict[str, Any]) -> str:
    """A line of a table."""
    claimed = row["epsilon"] + (f" (δ = {row['delta']})" if float(row["delta"]) else "")
    low = row["epsilon_low"] + (" †" if float(row["epsilon_low"]) >= float(row["most"]) else "")
    verdict, runs = SHOWN.get(row["verdict"], row["verdict"]), f"{int(row['runs']):,}"
    found = [row["claim"], row["pair"], claimed, low, verdict, runs, row["attempts"], row["event"], row["remark"]]
    return f"| {' | '.join(found)} |"


def main(library: str = "", *words: str) -> int:
    if library not in LIBRARIES:
        print(__doc__)
        return 2
    os.environ.setdefault("RUST_BACKTRACE", "0")  # OpenDP would take half a second for every error
    claims = import_module(f"_claims_{library}").CLAIMS
    for claimed in (one for one in claims if " ".join(words) in one.name):
        with threadpool_limits(1):  # matrices are tiny
            row = measured(claimed)
        written(kept(table(), row, [one.name for one in claims], claimed.before))
        print(" ".join(row[key] for key in ("claim", "verdict", "epsilon_low", "epsilon", "seconds")), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
