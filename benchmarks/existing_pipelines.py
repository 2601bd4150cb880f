"""How many of the pipelines that people write convert and fit, and what becomes of the others.

They are in ``tests/helpers/corpus.py``; nothing is declared but ranges, categories and classes.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from corpus import CORPUS, outcome

from ppdp.exceptions import PpdpError


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    warnings.simplefilter("ignore")
    refused = 0
    for name, case in CORPUS.items():
        found = outcome(case)
        refused += isinstance(found, PpdpError)
        print(f"{name}: {found if isinstance(found, PpdpError) else 'converts and fits'}")
    print(f"{len(CORPUS) - refused} of {len(CORPUS)} convert and fit")


if __name__ == "__main__":
    main()
