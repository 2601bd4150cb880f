"""Whether a plan takes rows that are sparse, in memory, or read in blocks; no cell is looked at.

Sparse rows are taken as long as the first stages keep them sparse until one projects them, and rows in blocks if no
step needs all of them in memory.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ppdp.core.private_files import check_temporary
from ppdp.data.engine.source import BlockSource
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidInput, UnsupportedOrder
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.steps import takes_texts

FIX = "RandomProjection(...) as the first step, behind MinMaxScaler (from 0 to 0) or NormClipper; or pass X.toarray()."


def check_sparse_plan(plan: Plan) -> None:
    """Refuse sparse rows that a plan cannot project: a stage in front takes none, or one behind it compares rows."""
    for step in plan.steps:
        if getattr(step.stage, "compare", None) == "raw":
            what = f"Sparse data was passed, and the step {step.name!r} compares rows as they came in."
            raise InvalidInput(what, fix=FIX)
    _check(
        (
            step.name,
            step.stage,
            step.stage.prepare(Rows.of(np.empty((0, step.domain.d))), step.way, step.domain),
            step.domain.d,
        )
        for step in plan.steps
        if _taken(step.name, step.stage, public=step.way.name == "public")
    )


def check_sparse_twins(twins: Sequence[tuple[str, Any]], n_features: int) -> None:
    """Refuse sparse rows that released twins cannot project; raises like :func:`check_sparse_plan`."""
    _check((name, twin, twin.held(), n_features) for name, twin in twins if _taken(name, twin, public=True))


def _taken(name: str, stage: Any, *, public: bool) -> bool:
    if public and stage.takes_sparse:
        return True
    raise InvalidInput(f"Sparse data was passed, and the step {name!r} takes no sparse rows.", fix=FIX)


def _check(maps: Iterable[tuple[str, Any, Any, int]]) -> None:
    for name, stage, statistics, n_features in maps:
        if stage.takes_sparse == "projects":
            return
        if stage.map_rows(np.zeros((1, n_features)), statistics).any():
            raise InvalidInput(f"Sparse data was passed, and the step {name!r} makes zeros something else.", fix=FIX)
    raise InvalidInput("Sparse data was passed, and no step projects it.", fix=FIX)


def memory() -> float:
    """Bytes of memory of this machine; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf


def check_memory(plan: Plan) -> None:
    """Refuse a plan by which rows in memory get more columns than the memory of this machine holds."""
    for step in plan.steps:
        needed = 8 * plan.domain.n * step.way.domain.d
        if step.way.domain.d > step.domain.d and needed > memory():
            raise InvalidInput(
                f"{step.way.domain.d} columns of {plan.domain.n} rows take {needed} bytes, more than this machine has.",
                stage=step.name,
                fix="fewer columns, such as a smaller n_features; or the path of files in Parquet, read in blocks.",
            )


def check_streams(plan: Plan, source: BlockSource) -> None:
    """Refuse a plan that cannot be run in blocks, here or where the rows stay, or whose files have no place."""
    check_temporary(plan.disk_bytes if source.local else 0)
    for name in plan.in_memory:
        raise UnsupportedOrder(
            "it needs all rows in memory, and they are read in blocks.",
            stage=name,
            fix="another step, as MeanImputer() in place of medians and trimmed means, or rows in memory where they"
            " fit: pyarrow.dataset.dataset(...).to_table(), in a shell one file and --engine memory.",
        )
    if plan.domain.adjacency.unbounded and not source.local:
        what = "their number is private: they get secret slots on the disk of this process, and they stay elsewhere."
        raise UnsupportedOrder(what, stage="entrance", fix="files in Parquet, and no other engine.")
    if plan.domain.adjacency.unbounded and plan.steps and takes_texts(plan.steps[0].stage):
        what = "their number is private: they get secret slots on disk, where texts are not written."
        raise UnsupportedOrder(what, stage=plan.steps[0].name, fix="rows in memory, where they fit.")
    for release in plan.releases:
        if plan.domain.adjacency.unbounded and STATISTICS[release.statistic].listed:
            raise UnsupportedOrder(
                "their number is private: they get secret slots on disk, where undeclared categories are not written.",
                stage=plan.steps[release.at].name,
                fix="declared categories, or rows in memory.",
            )
