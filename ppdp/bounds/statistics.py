"""The statistics that can be released: how many numbers each has, and a public bound on each number.

How they are measured and read back stands in ``ppdp/data/noisy_statistics.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ppdp.bounds.column_groups import domain_of
from ppdp.bounds.k_means import COUNT_WEIGHT, FIXED_DEPTH, cell_count
from ppdp.bounds.queries import longest_row
from ppdp.bounds.release import BOX_WEIGHT, FINER, RANGE_CELLS, TAIL_CELLS, TAIL_WEIGHT, TURN_CELLS, label_parts
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import AT, OfGroups

Parameters = Mapping[str, Any]

LONGEST_CATEGORY = 60  # bytes of UTF-8: a longer text is no category
PACKED = 6  # bytes of text in a number that is released
CATEGORY_NUMBERS = 1 + LONGEST_CATEGORY // PACKED  # for each category: its noisy weight and its text


@dataclass(frozen=True, slots=True)
class StatisticForm:
    """What is public of a statistic; the parameters are those of its formula."""

    formula: str  # id of its L2 sensitivity
    sizes: Callable[[Domain, Parameters], tuple[int, ...]]  # how many numbers each of its parts has
    bound: Callable[[Domain], float] = largest_entry

    def size(self, domain: Domain, parameters: Parameters) -> int:
        """How many numbers it has."""
        return sum(self.sizes(domain, parameters))


def n_columns(domain: Domain, parameters: Parameters) -> int:
    """How many columns a statistic is of, where its parameters may name some."""
    columns = parameters.get("columns")
    return domain.d if columns is None else len(columns)


def row_norm(domain: Domain) -> float:
    """The public bound on the norm of a row."""
    return float(domain.require("row_norm"))


def _for_each_column(formula: str, count: int, bound: Callable[[Domain], float] = largest_entry) -> StatisticForm:
    return StatisticForm(formula, lambda domain, parameters: (count * n_columns(domain, parameters),), bound)


def _n_rows(domain: Domain) -> float:
    return float(domain.n)


def _triangle(domain: Domain) -> int:
    return domain.d * (domain.d + 1) // 2


def _of_labels(formula: str) -> StatisticForm:
    return StatisticForm(
        formula,
        lambda domain, _: (label_parts(domain) * (1 + domain.d) + domain.d,),
        lambda domain: max(BOX_WEIGHT * largest_entry(domain), COUNT_WEIGHT * longest_row(domain)),
    )


_MOMENT = StatisticForm("release.complete-moment", lambda domain, _: (_triangle(domain),), row_norm)

STATISTIC_FORMS: OfGroups[StatisticForm] = OfGroups(
    {
        "means": StatisticForm("release.column-means", lambda domain, _: (domain.d,)),
        "squares": _for_each_column("release.mean-and-squares", 2, lambda domain: BOX_WEIGHT * largest_entry(domain)),
        "squares-in-parts": StatisticForm(
            "release.squares-in-parts",
            lambda domain, parameters: tuple(
                size * n_columns(domain, parameters) for size in (TAIL_CELLS + TURN_CELLS, 2)
            ),
            lambda _: TAIL_WEIGHT,
        ),
        "diagonal": _for_each_column("release.mean-and-diagonal", 2, row_norm),
        "matrix": StatisticForm("release.mean-and-moment", lambda domain, _: (domain.d + _triangle(domain),), row_norm),
        "moment": _MOMENT,
        "complete-matrix": _MOMENT,
        "trimmed-means": _for_each_column("release.trimmed-means", 1),
        "medians": _for_each_column("release.medians", 1),
        "quantile-pairs": _for_each_column("release.quantile-pairs", 2),
        "quantile-triples": _for_each_column("release.quantile-triples", 3),
        "quantile-choices": StatisticForm(
            "release.quantile-choices",
            lambda domain, parameters: (len(parameters["quantiles"]) * n_columns(domain, parameters),),
            _n_rows,
        ),
        "ranges": StatisticForm(
            "release.ranges",
            lambda _, parameters: tuple(len(parameters["columns"]) * cells for cells in (RANGE_CELLS, FINER)),
            _n_rows,
        ),
        "categories": StatisticForm(
            "release.categories", lambda _, parameters: (CATEGORY_NUMBERS * sum(parameters["max_categories"]),), _n_rows
        ),
        "modes": StatisticForm("release.modes", lambda _, parameters: (len(parameters["values"]),), _n_rows),
        "clusters": StatisticForm(
            "release.clusters",
            lambda domain, parameters: (cell_count(FIXED_DEPTH), parameters["n_clusters"] * (1 + domain.d)),
            _n_rows,
        ),
        "label-means": StatisticForm(
            "release.label-means",
            lambda domain, parameters: (len(parameters["columns"]) * parameters["cells"] * label_parts(domain),),
            _n_rows,
        ),
        "label-moments": _of_labels("release.label-moments"),
        "light-label-moments": _of_labels("release.light-label-moments"),
    }
)


def form_of_group(form: StatisticForm, group: str) -> StatisticForm:
    """The same statistic of one group of columns."""
    return StatisticForm(
        f"{form.formula}{AT}{group}",
        lambda domain, parameters: form.sizes(domain_of(domain, group), parameters),
        lambda domain: form.bound(domain_of(domain, group)),
    )


STATISTIC_FORMS.of_group = form_of_group
