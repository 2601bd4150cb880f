"""Rows that are read in blocks, which a plan takes if none of its steps needs all of them in memory."""

from __future__ import annotations

from ppdp.core.private_files import check_temporary
from ppdp.data.engine.source import BlockSource
from ppdp.data.releases import STATISTICS
from ppdp.exceptions import UnsupportedOrder
from ppdp.pipeline.planning.plan import Plan


def check_streams(plan: Plan, source: BlockSource) -> None:
    """Refuse a plan that cannot be run in blocks; no cell is looked at.

    :class:`InvalidInput` if private files have no place; :class:`UnsupportedOrder` if a step needs all rows in memory,
    or here while they stay elsewhere, as secret slots do.
    """
    check_temporary()
    for name in plan.in_memory:
        raise UnsupportedOrder(
            "it needs all rows in memory, and they are read in blocks.",
            stage=name,
            fix="another step, or rows in memory where they fit: pyarrow.dataset.dataset(...).to_table(), in a shell"
            " one file and --engine memory.",
        )
    if plan.domain.adjacency.hides_number and not source.local:
        raise UnsupportedOrder(
            "their number is private: they get secret slots on the disk of this process, and they stay elsewhere.",
            stage="entrance",
            fix="files in Parquet, and no other engine.",
        )
    for release in plan.releases:
        if plan.domain.adjacency.hides_number and STATISTICS[release.statistic].listed:
            raise UnsupportedOrder(
                "their number is private: they get secret slots on disk, where categories that nobody declared are not"
                " written.",
                stage=plan.steps[release.at].name,
                fix="declared categories, or rows in memory.",
            )
