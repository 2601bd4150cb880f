"""Mutated certificates: none may verify that means something else than what was issued, and none may crash.

    python benchmarks/mutations.py [--count 10000] [--seed 0] [--start 0]

Mutants are made of the golden certificates (``tests/helpers/mutants.py``) and judged by an oracle that does not ask
``verify`` (``tests/helpers/truth.py``). Each follows from seed and number: ``--start`` goes on where a run was
stopped, and ``--start NUMBER --count 1`` repeats a finding. Exit status 1 if there is one.
"""

from __future__ import annotations

import argparse
import signal
import sys
import time
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from mutants import ATTACKERS, Mutant, mutant
from truth import VERDICTS, judge

LONGEST = 120  # seconds
CRASH = "CRASH"


class Hang(BaseException):
    """A verification that takes longer than LONGEST."""


def _ring(*_: Any) -> None:
    raise Hang


def judged(one: Mutant) -> tuple[str, str]:
    """The verdict, or that there was none."""
    signal.alarm(LONGEST)
    try:
        return judge(one)
    except (Exception, Hang):
        return CRASH, traceback.format_exc(limit=-4)
    finally:
        signal.alarm(0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0)
    options = parser.parse_args()
    signal.signal(signal.SIGALRM, _ring)
    found: Counter[tuple[str, str]] = Counter()
    slowest = (0.0, "")
    for number in range(options.start, options.start + options.count):
        one = mutant(options.seed, number)
        begun = time.perf_counter()
        verdict, why = judged(one)
        slowest = max(slowest, (time.perf_counter() - begun, f"{number}, {one.original}: {', '.join(one.changes)}"))
        found[one.attacker, verdict] += 1
        if verdict in ("WRONG", CRASH):
            print(f"{verdict} {number} {one.original} {one.attacker} {', '.join(one.changes)}\n  {why}", flush=True)
        if (number + 1) % 1000 == 0:
            print(f"{number + 1} judged", file=sys.stderr, flush=True)
    print(f"| verdict | {' | '.join(ATTACKERS)} |\n|---{'|---' * len(ATTACKERS)}|")
    for verdict in (*VERDICTS, CRASH):
        print(f"| {verdict} | {' | '.join(str(found[attacker, verdict]) for attacker in ATTACKERS)} |")
    print(f"slowest: {slowest[0]:.1f} s ({slowest[1]})")
    return int(any(verdict in ("WRONG", CRASH) for _, verdict in found))


if __name__ == "__main__":
    sys.exit(main())
