"""Many runs of a target on both of its datasets, in slices that processes share.

Runs that repeat earlier ones prove nothing, and are refused.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from ppdp.audit.scores import finite, form_of, in_form
from ppdp.audit.target import Target
from ppdp.core.checks import integer
from ppdp.core.progress import progress
from ppdp.data.rows import Array
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.noise.sampler import Noise

SLICE = 500  # runs on each dataset in one slice

MOST_RUNS = 10**9  # on both datasets together

_SURE = 64  # bits: chance makes what is refused once in so many


class Slice(NamedTuple):
    """Runs that were made together; ``seconds`` of a processor."""

    left: Array
    right: Array
    seconds: float


@dataclass(frozen=True, eq=False)
class Trials:
    """Slices in order."""

    slices: tuple[Slice, ...]

    @property
    def seconds(self) -> float:
        """Of processors."""
        return sum(part.seconds for part in self.slices)

    def parts(self, share: float) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """The runs on (left, right) of a share of the slices, the first ones, and those of the others."""
        cut, form = max(1, round(share * len(self.slices))), self.form
        return self.rows(form, 0, cut), self.rows(form, cut)

    @property
    def form(self) -> tuple[int, bool]:
        """How outcomes become rows of one width, see :func:`form_of`."""
        return form_of([side for part in self.slices for side in (part.left, part.right)])

    def rows(self, form: tuple[int, bool], first: int = 0, end: int | None = None) -> tuple[Array, Array]:
        """The runs on (left, right) of some slices, in a form that may be that of earlier ones alone."""
        some = self.slices[first:end]
        return in_form([part.left for part in some], *form), in_form([part.right for part in some], *form)


def make_trials(
    target: Target,
    slices: int,
    *,
    slice_runs: int = SLICE,
    n_jobs: int | None = None,
    random_state: int | None = None,
    before: Trials | None = None,
) -> Trials:
    """Make so many slices, each with so many runs on each dataset; refused are runs that repeat one another.

    A ``random_state`` seeds all noise, for tests of the audit itself; by default noise is that of a fit. Slices that
    were made ``before`` come first, and count among them.
    """
    earlier = () if before is None else before.slices
    from joblib import Parallel, delayed

    runs = integer("slice_runs", slice_runs, least=1, most=MOST_RUNS)
    wanted = range(len(earlier), integer("slices", slices, least=1, most=max(1, MOST_RUNS // (2 * runs))))
    if random_state is not None:
        integer("random_state", random_state, least=0)
    check_jobs(n_jobs)
    tasks = (delayed(_slice)(target, index, runs, random_state) for index in wanted)
    results = Parallel(n_jobs=n_jobs, pre_dispatch="n_jobs", return_as="generator")(tasks)
    made = (*earlier, *(result for _, result in zip(progress(wanted, f"runs of {target.name}"), results)))
    for side in ([part.left for part in made], [part.right for part in made]):
        _check_fresh(side)
    return Trials(made)


def check_jobs(n_jobs: Any) -> None:
    """Refuse as a number of processes what is neither None nor an integer other than 0."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0):
        raise InvalidParameter(f"n_jobs must be an integer other than 0, got {n_jobs!r}.", fix="-1 for all processors.")


def _check_fresh(slices: Sequence[Array]) -> None:
    """Refuse runs of one dataset in which several slices hold the same numbers in the same order.

    Of n independent runs with one law, a sequence with the empirical entropy of h bits a run has probability at most
    2^(-n h), whatever the law. So k slices are all the same such sequence with probability at most 2^(-(k - 1) n h),
    and there are at most s^k ways to take k of s slices. A number that hardly varies is therefore never refused.
    """
    for column in range(max((part.shape[1] for part in slices), default=0)):
        seen = Counter(part[:, column].tobytes() for part in slices if column < part.shape[1])
        for sequence, times in seen.items():
            chance = times * math.log2(len(slices)) + math.log2(2 * (column + 1) ** 2)
            if times > 1 and (times - 1) * _bits(sequence) >= _SURE + chance:
                raise InvalidParameter(
                    f"{times} of {len(slices)} slices of runs on one dataset hold the same numbers in the same order:"
                    " what is released draws from a generator that starts anew in every process, so its runs are not"
                    " independent.",
                    fix="draw everything from the noise that is passed, or from the operating system.",
                )


def _bits(sequence: bytes) -> float:
    """Empirical entropy of all runs together."""
    counts = np.unique(np.frombuffer(sequence, dtype=np.int64), return_counts=True)[1]
    return float(-(counts * np.log2(counts / counts.sum())).sum())


def _slice(target: Target, index: int, runs: int, random_state: int | None) -> Slice:
    """One slice; its noise is that of the operating system, or of a seed of its own."""
    start = time.process_time()
    if random_state is None:
        noise = Noise()
    else:
        noise = Noise(np.random.default_rng(np.random.SeedSequence(random_state, spawn_key=(index,))))
    left, right = (finite(target.outcomes(side, runs, noise)) for side in (0, 1))
    if any(side.ndim != 2 or len(side) != runs or not side.shape[1] for side in (left, right)):
        what = "outcomes must have the shape (runs, 1 + width)."
        raise InvalidParameter(what, fix="correct the target's outcomes().")
    return Slice(left, right, time.process_time() - start)
