"""The same auditor on what other libraries claim.

    python benchmarks/honesty.py diffprivlib|opendp|smartnoise [words]

Tries every claim of a library that this environment has (only those with the words in their names), writes what was
found into ``honesty.csv``, in the place of what was found for the same claim of the same version, and the page
``honesty.md`` anew from all of that file. How to make an environment stands in the page.
"""

from __future__ import annotations

import csv
import os
import platform
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

from _claims import Claimed
from threadpoolctl import threadpool_limits

from ppdp.audit.output import OutputFinding, attack_output

HERE = Path(__file__).parent
LIBRARIES = "diffprivlib", "opendp", "smartnoise"
CONFIDENCE = 1 - 1e-4  # of each row
HEADING = "| claim | the pair | ε claimed | ε at least | verdict | probability of an event | remark |"
FIELDS = (
    *("library", "version", "claim", "pair", "epsilon", "delta", "epsilon_low", "verdict", "event", "runs"),
    *("confidence", "remark", "seconds", "python", "scikit-learn", "numpy"),
)


def measured(claimed: Claimed) -> dict[str, Any]:
    """A row of the table."""
    target = claimed.target()
    found = attack_output(target, runs=claimed.runs, confidence=CONFIDENCE)
    return {
        "library": target.library,
        "version": version(target.library),
        "claim": claimed.name,
        "pair": claimed.pair,
        "epsilon": f"{found.epsilon:.3g}",
        "delta": f"{found.delta:.3g}",
        "epsilon_low": f"{found.epsilon_low:.2f}",
        "verdict": "exceeded" if found.violated else "not exceeded",
        "event": event(found),
        "runs": found.runs,
        "confidence": CONFIDENCE,
        "remark": claimed.remark,
        "seconds": f"{found.seconds:.0f}",
        "python": platform.python_version(),
        "scikit-learn": version("scikit-learn"),
        "numpy": version("numpy"),
    }


def event(found: OutputFinding) -> str:
    """The probabilities behind the bound on epsilon."""
    one = next(event for event in found.events if event.purpose == "epsilon")
    return f"≥ {one.tpr:.3f} against ≤ {one.fpr:.3f}"


def table() -> list[dict[str, Any]]:
    """What was found so far."""
    path = HERE / "honesty.csv"
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def kept(rows: list[dict[str, Any]], new: dict[str, Any]) -> list[dict[str, Any]]:
    """The rows with a new one, in the place of an old one for the same claim of the same version."""
    keys = ("library", "version", "claim")
    places = [at for at, row in enumerate(rows) if all(row[key] == new[key] for key in keys)]
    at = places[0] if places else len(rows)
    return [*rows[:at], new, *rows[at + bool(places) :]]


def written(rows: list[dict[str, Any]]) -> None:
    """Table and page."""
    with (HERE / "honesty.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    words = (HERE / "honesty.md").read_text(encoding="utf-8").partition("<!-- figures -->")[0]
    (HERE / "honesty.md").write_text(f"{words}<!-- figures -->\n{''.join(sections(rows))}", encoding="utf-8")


def sections(rows: list[dict[str, Any]]) -> list[str]:
    """One table for each version of each library."""
    found = []
    for library, number in dict.fromkeys((row["library"], row["version"]) for row in rows):
        mine = [row for row in rows if (row["library"], row["version"]) == (library, number)]
        around = f"Python {mine[-1]['python']}, scikit-learn {mine[-1]['scikit-learn']}, numpy {mine[-1]['numpy']}"
        lines = [f"\n## {library} {number}\n\n{around}.\n"]
        lines += [HEADING, "|---|---|---|---|---|---|---|"]
        lines += [cells(row) for row in mine]
        found.append("\n".join(lines) + "\n")
    return found


def cells(row: dict[str, Any]) -> str:
    """A line of a table."""
    claimed = row["epsilon"] + (f" (δ = {row['delta']})" if float(row["delta"]) else "")
    verdict = "**exceeded**" if row["verdict"] == "exceeded" else f"not exceeded in {int(row['runs']):,} runs"
    found = [row["claim"], row["pair"], claimed, row["epsilon_low"], verdict, row["event"], row["remark"]]
    return f"| {' | '.join(found)} |"


def main(library: str = "", *words: str) -> int:
    if library not in LIBRARIES:
        print(__doc__)
        return 2
    os.environ.setdefault("RUST_BACKTRACE", "0")  # OpenDP would take half a second for every error
    module = import_module(f"_claims_{library}")
    for claimed in (one for one in module.CLAIMS if " ".join(words) in one.name):
        with threadpool_limits(1):  # matrices are tiny
            row = measured(claimed)
        written(kept(table(), row))
        print(" ".join(row[key] for key in ("claim", "verdict", "epsilon_low", "epsilon", "seconds")), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
