"""Many runs of a target on both of its datasets, in slices that a folder may keep.

A slice is there whole or not at all, whenever the process dies, and a folder belongs to one target: what another plan
or pair of datasets released is never mixed in. Once a verdict was given the number of slices is fixed: runs that are
added until a verdict pleases prove nothing.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ppdp.artefact.members import pack_arrays, unpack_arrays, write_bytes
from ppdp.audit.target import Target, joined
from ppdp.checks import integer
from ppdp.exceptions import InvalidParameter, PpdpError
from ppdp.privacy.noise import Noise
from ppdp.progress import progress

__all__ = ["SLICE", "Slice", "Trials", "check_verdict", "make_trials", "record_verdict"]

Array = NDArray[np.float64]

SLICE = 500
"""Runs on each dataset in one slice."""

_HEADER = "target.json"
_VERDICT = "verdict.json"  # not there in folders that were not judged, or by an older version
_FORM = 1  # of the files


class Slice(NamedTuple):
    """Runs that were made together; ``seconds`` of a processor."""

    left: Array
    right: Array
    seconds: float


@dataclass(frozen=True, eq=False)
class Trials:
    """Slices in order.

    Attributes
    ----------
    slices : tuple of Slice
        Those that are made.
    """

    slices: tuple[Slice, ...]

    @property
    def seconds(self) -> float:
        """Of processors."""
        return sum(one.seconds for one in self.slices)

    def parts(self, share: float) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """The runs on (left, right) of the first slices, and those of the others.

        Parameters
        ----------
        share : float
            Of the slices that come first, at least one.
        """
        first = max(1, round(share * len(self.slices)))
        left, right = joined([one.left for one in self.slices]), joined([one.right for one in self.slices])
        left, right = joined([left, right[:0]]), joined([right, left[:0]])  # equally wide
        cut = sum(len(one.left) for one in self.slices[:first])
        return (left[:cut], right[:cut]), (left[cut:], right[cut:])


@dataclass(frozen=True)
class _Header:
    """To whom a folder belongs."""

    form: int
    name: str
    target: str
    slice_runs: int
    random_state: int | None


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
    """Make the slices that are not there yet, and return all that are.

    Parameters
    ----------
    target : Target
        What is run.
    slices : int
        How many there should be.
    slice_runs : int, default=500
        Runs on each dataset in a slice.
    folder : path-like, optional
        Where slices are kept and looked for; made if it is not there.
    n_jobs : int, optional
        Processes; -1 for as many as there are processors.
    random_state : int, optional
        Seeds all noise, for tests of the audit itself. By default noise is that of a fit.
    seconds : float, optional
        No slice is begun after so much time on the clock, so fewer may come back. When that is must not depend on
        what was found.

    Raises
    ------
    InvalidParameter
        If the folder belongs to another target, or a number is impossible.
    ExportError
        If a file cannot be read or written.
    """
    wanted = range(integer("slices", slices, least=1))
    if random_state is not None:
        integer("random_state", random_state, least=0)
    runs = integer("slice_runs", slice_runs, least=1)
    home = (
        None if folder is None else _home(Path(folder), _Header(_FORM, target.name, target.digest, runs, random_state))
    )
    made = {} if home is None else {index: _read(home, index) for index in wanted if _place(home, index).exists()}
    todo = [index for index in wanted if index not in made]
    deadline = time.monotonic() + seconds
    results = _computed(target, todo, runs, n_jobs, random_state, deadline)
    for _, (index, one) in zip(progress(todo, f"runs of {target.name}"), results):
        if home is not None:
            write_bytes(_place(home, index), pack_arrays({**one._asdict(), "seconds": np.array([one.seconds])}))
        made[index] = one
    return Trials(tuple(made[index] for index in sorted(made)))


def check_verdict(folder: str | os.PathLike[str], slices: int) -> None:
    """Refuse to judge a folder with another number of slices than it was judged with.

    Raises
    ------
    InvalidParameter
        If it was, or if that cannot be read.
    """
    path = Path(folder) / _VERDICT
    if not path.exists():
        return
    known = _known(path)
    before = known.get("slices") if isinstance(known, dict) else None
    if before != slices:
        words = f"with {before} slices, not {slices}" if isinstance(before, int) else "with a number that is lost"
        raise InvalidParameter(
            f"the folder was judged {words}: runs that are added after a look have no confidence.",
            fix="use the same number of runs, or a new folder.",
        )


def record_verdict(folder: str | os.PathLike[str], slices: int) -> None:
    """Keep that so many slices are judged."""
    write_bytes(Path(folder) / _VERDICT, json.dumps({"slices": slices}).encode())


def _computed(
    target: Target, todo: list[int], runs: int, n_jobs: int | None, random_state: int | None, deadline: float
) -> Iterator[tuple[int, Slice]]:
    """Slices as they become ready."""
    from joblib import Parallel, delayed

    tasks = (delayed(_slice)(target, index, runs, random_state) for index in todo if time.monotonic() < deadline)
    found: Iterator[tuple[int, Slice]] = Parallel(
        n_jobs=n_jobs, pre_dispatch="n_jobs", return_as="generator_unordered"
    )(tasks)
    return found


def _slice(target: Target, index: int, runs: int, random_state: int | None) -> tuple[int, Slice]:
    """One slice; its noise is that of the operating system, or of a seed of its own."""
    start = time.process_time()
    if random_state is None:
        noise = Noise()
    else:
        noise = Noise(np.random.default_rng(np.random.SeedSequence(random_state, spawn_key=(index,))))
    left, right = (target.outcomes(side, runs, noise) for side in (0, 1))
    return index, Slice(left, right, time.process_time() - start)


def _home(folder: Path, header: _Header) -> Path:
    """The folder, which from now on belongs to this target."""
    path = folder / _HEADER
    if path.exists():
        if _known(path) != asdict(header):
            raise InvalidParameter(
                "the folder holds runs of another target, of other slices or of an older version.",
                fix="use another folder, or remove this one.",
            )
        return folder
    if folder.exists() and any(folder.iterdir()):
        raise InvalidParameter("the folder holds something that is not of an audit.", fix="use another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    write_bytes(path, json.dumps(asdict(header), indent=1).encode())
    return folder


def _known(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def _place(home: Path, index: int) -> Path:
    return home / f"slice-{index:06d}.npz"


def _read(home: Path, index: int) -> Slice:
    """A slice that was kept."""
    path = _place(home, index)
    try:
        arrays = unpack_arrays(path.read_bytes(), {"left": None, "right": None, "seconds": [1]})
    except (OSError, PpdpError):
        raise InvalidParameter(f"{path.name} is damaged.", fix="remove the file; it is then made again.") from None
    return Slice(arrays["left"], arrays["right"], float(arrays["seconds"][0]))
