"""Many runs of a target on both of its datasets, in slices that a folder may keep.

A slice is there whole or not at all, whenever the process dies, and a folder belongs to one target: what another plan
or pair of datasets released is never mixed in. Once a verdict was given the number of slices and the confidence are
fixed: adding runs until one likes the answer voids it. Runs that repeat earlier ones prove nothing either.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ppdp.audit.scores import finite, joined, with_widths
from ppdp.audit.target import Target
from ppdp.certificate.share.files import pack_arrays, unpack_arrays, write_bytes
from ppdp.core.checks import integer
from ppdp.core.progress import progress
from ppdp.data.rows import Array
from ppdp.exceptions import ExportError, InvalidParameter, PpdpError
from ppdp.privacy.noise.sampler import Noise

SLICE = 500
"""Runs on each dataset in one slice."""

MOST_RUNS = 10**9
"""On both datasets together."""

_HEADER = "target.json"
_VERDICT = "verdict.json"  # not there in folders that were not judged, or by an older version
_FORM = 1  # of the files
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
        return sum(one.seconds for one in self.slices)

    def parts(self, share: float) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """The runs on (left, right) of a share of the slices, the first ones, and those of the others."""
        first = max(1, round(share * len(self.slices)))
        left, right = joined([one.left for one in self.slices]), joined([one.right for one in self.slices])
        left, right = joined([left, right[:0]]), joined([right, left[:0]])  # equally wide
        left, right = with_widths(left, right)
        cut = sum(len(one.left) for one in self.slices[:first])
        return (left[:cut], right[:cut]), (left[cut:], right[cut:])


def make_trials(
    target: Target,
    slices: int,
    *,
    slice_runs: int = SLICE,
    folder: str | os.PathLike[str] | None = None,
    n_jobs: int | None = None,
    random_state: int | None = None,
    seconds: float = math.inf,
) -> Trials:
    """Make the slices that are not there yet, and return all that are: each holds so many runs on each dataset.

    A ``random_state`` seeds all noise, for tests of the audit itself; by default noise is that of a fit. No slice is
    begun after so many ``seconds``, so fewer may come back; how many must not depend on what was found. Refused is a
    folder that belongs to another target or lost runs that were judged, and runs that repeat one another.
    """
    from joblib import Parallel, delayed

    runs = integer("slice_runs", slice_runs, least=1, most=MOST_RUNS)
    wanted = range(integer("slices", slices, least=1, most=max(1, MOST_RUNS // (2 * runs))))
    if random_state is not None:
        integer("random_state", random_state, least=0)
    check_jobs(n_jobs)
    home = None
    if folder is not None:
        owner = {"form": _FORM, "name": target.name, "target": target.digest, "slice_runs": runs}
        home = home_of(_path(folder), {**owner, "random_state": random_state})
    made = {} if home is None else _kept(home, wanted, runs)
    todo = [index for index in wanted if index not in made]
    deadline = time.monotonic() + seconds
    tasks = (delayed(_slice)(target, index, runs, random_state) for index in todo if time.monotonic() < deadline)
    results = Parallel(n_jobs=n_jobs, pre_dispatch="n_jobs", return_as="generator_unordered")(tasks)
    for _, (index, one) in zip(progress(todo, f"runs of {target.name}"), results):
        if home is not None:
            write_bytes(_place(home, index), pack_arrays({**one._asdict(), "seconds": np.array([one.seconds])}))
        made[index] = one
    found = tuple(made[index] for index in sorted(made))
    for side in ([one.left for one in found], [one.right for one in found]):
        _check_fresh(side)
    return Trials(found)


def check_jobs(n_jobs: Any) -> None:
    """Refuse as a number of processes what is neither None nor an integer other than 0."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or isinstance(n_jobs, bool) or n_jobs == 0):
        raise InvalidParameter(f"n_jobs must be an integer other than 0, got {n_jobs!r}.", fix="-1 for all processors.")


def check_verdict(folder: str | os.PathLike[str], slices: int, confidence: float, *, slice_runs: int = SLICE) -> None:
    """Refuse to judge a folder with other runs, or at another confidence, than it was judged.

    Older versions did not keep the confidence: then any will do, once.
    """
    path = _path(folder) / _VERDICT
    if not path.exists():
        return
    known = _known(path)
    before = known.get("slices") if isinstance(known, dict) else None
    if before != slices:
        each, words = 2 * slice_runs, "with a number that is lost"
        if isinstance(before, int):
            words = f"with {each * before} runs, not {each * slices}"
        problem = f"the folder was judged {words}: runs that are added after a look have no confidence."
        raise InvalidParameter(problem, fix="use the same number of runs, or a new folder.")
    if known.get("confidence", confidence) != confidence:
        problem = "the folder was judged at another confidence: one that is chosen after a look is none."
        raise InvalidParameter(problem, fix=f"confidence={known['confidence']!r}, or a new folder.")


def record_verdict(folder: str | os.PathLike[str], slices: int, confidence: float) -> None:
    """Keep that so many slices are judged at this confidence."""
    write_bytes(Path(folder) / _VERDICT, json.dumps({"slices": slices, "confidence": confidence}).encode())


def _check_fresh(slices: Sequence[Array]) -> None:
    """Refuse runs of one dataset in which several slices hold the same numbers in the same order.

    Of n independent runs with one law, a sequence with the empirical entropy of h bits a run has probability at most
    2^(-n h), whatever the law. So k slices are all the same such sequence with probability at most 2^(-(k - 1) n h),
    and there are at most s^k ways to take k of s slices. A number that hardly varies is therefore never refused.
    """
    for column in range(max((one.shape[1] for one in slices), default=0)):
        seen = Counter(one[:, column].tobytes() for one in slices if column < one.shape[1])
        for sequence, times in seen.items():
            chance = times * math.log2(len(slices)) + math.log2(2 * (column + 1) ** 2)
            if times > 1 and (times - 1) * _bits(sequence) >= _SURE + chance:
                raise InvalidParameter(
                    f"{times} of {len(slices)} slices of runs on one dataset hold the same numbers in the same order:"
                    " what is released draws from a generator that starts anew in every process, or when an audit goes"
                    " on, so its runs are not independent.",
                    fix="draw everything from the noise that is passed, or from the operating system; in a new folder.",
                )


def _bits(sequence: bytes) -> float:
    """Empirical entropy of all runs together."""
    counts = np.unique(np.frombuffer(sequence, dtype=np.int64), return_counts=True)[1]
    return float(-(counts * np.log2(counts / counts.sum())).sum())


def _slice(target: Target, index: int, runs: int, random_state: int | None) -> tuple[int, Slice]:
    """One slice; its noise is that of the operating system, or of a seed of its own."""
    start = time.process_time()
    if random_state is None:
        noise = Noise()
    else:
        noise = Noise(np.random.default_rng(np.random.SeedSequence(random_state, spawn_key=(index,))))
    left, right = (finite(target.outcomes(side, runs, noise)) for side in (0, 1))
    if not (_shaped(left, runs) and _shaped(right, runs)):
        raise InvalidParameter("outcomes must have the shape (runs, 1 + width).", fix="mend the target's outcomes().")
    return index, Slice(left, right, time.process_time() - start)


def _shaped(outcomes: Array, runs: int) -> bool:
    return outcomes.ndim == 2 and len(outcomes) == runs and outcomes.shape[1] > 0


def home_of(folder: Path, owner: dict[str, Any]) -> Path:
    """The folder, which from now on belongs to this target."""
    path = folder / _HEADER
    if path.exists():
        if _known(path) != owner:
            problem = "the folder holds runs of another target, of other slices or of an older version."
            raise InvalidParameter(problem, fix="use another folder, or remove this one.")
        return folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        empty = not any(folder.iterdir())
    except OSError as error:
        raise ExportError(f"cannot use the folder {str(folder)!r}: {error.strerror}.") from None
    if not empty:
        raise InvalidParameter("the folder holds something that is not of an audit.", fix="use another folder.")
    write_bytes(path, json.dumps(owner, indent=1).encode())
    return folder


def _path(folder: Any) -> Path:
    if not isinstance(folder, str | os.PathLike):
        raise InvalidParameter(f"folder must be a path, not a {type(folder).__name__}.", fix="folder='audit-runs'.")
    return Path(folder)


def _known(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _place(home: Path, index: int) -> Path:
    return home / f"slice-{index:06d}.npz"


def _kept(home: Path, wanted: range, runs: int) -> dict[int, Slice]:
    """The slices that a folder holds: all of them once they were judged, as others would be another look."""
    judged = (home / _VERDICT).exists()
    there = [index for index in wanted if _place(home, index).exists()]
    fix = "use a new folder: a verdict was given on the old runs." if judged else "remove the file; it is made again."
    if judged and len(there) < len(wanted):
        raise InvalidParameter(f"{len(wanted) - len(there)} slices are gone that were judged.", fix=fix)
    return {index: _read(home, index, runs, fix) for index in there}


def _read(home: Path, index: int, runs: int, fix: str) -> Slice:
    """A slice that was kept, of so many runs."""
    path = _place(home, index)
    try:
        arrays = unpack_arrays(path.read_bytes(), {"left": None, "right": None, "seconds": [1]})
    except (OSError, PpdpError):
        arrays = {}
    if not arrays or not all(_shaped(arrays[side], runs) for side in ("left", "right")):
        raise InvalidParameter(f"{path.name} is damaged.", fix=fix)
    return Slice(arrays["left"], arrays["right"], float(arrays["seconds"][0]))
