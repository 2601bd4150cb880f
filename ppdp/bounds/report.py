"""L2 sensitivity of a report, several statistics of columns in one Gaussian answer: ``docs/theory/report.md``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ppdp.bounds.queries import MOMENT_COUNT_WEIGHT, check_grid, counting_step, histograms_apart
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.formula import formula, sane, whole
from ppdp.core.rounding import inflate

MOST_NAMES = 8  # of columns in a sentence


@dataclass(frozen=True, slots=True)
class ReportLayout:
    """Which numbers a report releases, in order, as they follow from public parameters."""

    mean: Sequence[int]  # columns of each statistic
    quantile: Sequence[int]
    histogram: Sequence[int]
    covariance: Sequence[int]
    levels: int  # how often the range of a column is halved for quantiles
    sizes: Sequence[int]  # numbers of edges of each histogram
    gaps: bool  # whether values may be missing, so that their numbers are released as well
    counted: bool  # whether the number of values is released, as some may be missing or rows absent
    replaces: bool  # whether rows are replaced; where they are only added or removed, numbers of values weigh less

    @property
    def count_weight(self) -> float:
        """Of "there is a value", beside a value that is between -1 and 1."""
        return MOMENT_COUNT_WEIGHT if self.replaces else 1.0

    @property
    def columns(self) -> list[int]:
        """Of each part how many columns it has."""
        return [len(self.mean), len(self.quantile), len(self.histogram), len(self.covariance)]

    @property
    def numbers(self) -> list[int]:
        """Of each part how many numbers it has."""
        means, quantiles, _, several = self.columns
        return [
            means * (2 + self.counted),
            quantiles * (2 ** (self.levels + 1) - 1),
            sum(size - 1 + self.gaps for size in self.sizes),
            several + several * (several + 1) // 2 + self.counted if several else 0,
        ]

    @property
    def diameters(self) -> list[float]:
        """Of each part how far the vectors of two rows are apart, or how long one is if none is replaced."""
        squares = [4.0, 2.0, 2.0, 4.0] if self.replaces else [self.single**2, 1.0, 1.0, self.single**2]
        return [math.sqrt(square * count) for square, count in zip(squares, self.columns)]

    @property
    def single(self) -> float:
        """Length of value, square over √2 and perhaps count, for one column."""
        return math.sqrt(1.5 + (self.count_weight**2 if self.counted else 0.0))


def layout(
    *,
    mean: Sequence[int],
    quantile: Sequence[int],
    histogram: Sequence[int],
    covariance: Sequence[int],
    cells: int,
    sizes: Sequence[int],
    gaps: bool,
    counted: bool,
    replaces: bool,
    **_: Any,
) -> ReportLayout:
    """The layout that parameters of the formula describe."""
    levels = cells.bit_length() - 1
    return ReportLayout(mean, quantile, histogram, covariance, levels, sizes, gaps, counted, replaces)


def _checked(
    domain: Domain,
    *,
    scaled: Sequence[int],
    low: Sequence[float],
    high: Sequence[float],
    edges: Sequence[float],
    shares: Sequence[float],
    **parameters: Any,
) -> ReportLayout:
    """The layout, once the parameters are found to be possible."""
    made = layout(**parameters)
    used = [made.mean, made.quantile, made.covariance]
    sane(all(whole(*columns) and len(set(columns)) == len(columns) for columns in [*used, made.histogram]))
    sane(all(0 <= column < domain.d for columns in [*used, made.histogram] for column in columns))
    sane(list(scaled) == sorted({column for columns in used for column in columns}))
    sane(len(low) == len(high) == len(scaled) and all(a < b and math.isfinite(b - a) for a, b in zip(low, high)))
    sane(whole(parameters["cells"]) and 1 <= made.levels <= 12 and parameters["cells"] == 2**made.levels)
    sane(all(type(flag) is bool for flag in (made.gaps, made.counted, made.replaces)))
    sane(made.counted or (domain.missing_rows == 0 and domain.min_present == domain.n_rows))
    sane(made.gaps or domain.missing_rows == 0)
    sane(not (made.histogram or made.sizes or edges) or len(made.sizes) > 0)
    if made.histogram:
        check_grid(domain, made.histogram, made.sizes, edges)
    sane(any(made.columns) and len(shares) == len(made.columns))
    sane(all((share > 0) == (count > 0) for share, count in zip(shares, made.columns)))
    sane(abs(math.fsum(shares) - 1) < 1e-9)
    return made


def scales(made: ReportLayout, shares: Sequence[float]) -> list[float]:
    """Public factor on the numbers of each part: a replaced row then changes it by the root of its share."""
    return [math.sqrt(share) / far if far else 0.0 for share, far in zip(shares, made.diameters)]


def _shape(domain: Domain, *, shares: Sequence[float], **parameters: Any) -> tuple[int, float]:
    """Numbers in a report, and the bound on each."""
    made = layout(**parameters)
    norm = math.sqrt(len(made.covariance))
    most = [max(1.0, made.count_weight), 1.0, 1.0, norm * max(1.0, made.count_weight)]
    bound = max(scale * own for scale, own in zip(scales(made, shares), most))
    return sum(made.numbers), inflate(domain.n * bound)


def _told(names: Sequence[str], **parameters: Any) -> str:
    """What is in a report, of columns with these names."""
    words = {"mean": "means and standard deviations", "quantile": "quantiles", "histogram": "histograms"}
    told = []
    for name, statistic in (words | {"covariance": "covariances"}).items():
        columns = parameters[name]
        listed = ", ".join(names[column] for column in columns[:MOST_NAMES])
        told += [f"{statistic} of {listed if len(columns) <= MOST_NAMES else f'{len(columns)} columns'}"] * bool(
            columns
        )
    return "; ".join(told)


def _counts(*, shares: Sequence[float], **parameters: Any) -> float | None:
    """Rows that noise of scale 1 is in its histograms, if it has some."""
    factor = scales(layout(**parameters), shares)[2]
    return 1 / factor if factor else None


@formula(
    "query.report",
    kind="mechanism",
    page="report",
    used_by=("Report",),
    shape=_shape,
    gaps=True,
    told=_told,
    counts=_counts,
)
def report(domain: Domain, distance: Distance, *, shares: Sequence[float], **parameters: Any) -> float:
    """Root of the sum of shares times squares, one for each part; 1 for one replaced row.

    A row that moved counts as replaced. Of means and of second moments an unmatched row on both sides costs 1 and a
    single one its norm over the diameter; of histograms and quantiles ``hypot(one_sided, paired)`` over √2.
    """
    made = _checked(domain, shares=shares, **parameters)
    far = distance.moved_as_replaced()
    paired, single = far.unmatched
    step = counting_step(domain.n) * min(far.changed, domain.n)
    of_values = paired + single * made.single / 2 if made.replaces else 2 * paired + single
    of_cells = histograms_apart(domain, far, 1) / (math.sqrt(2) if made.replaces else 1.0)
    several = len(made.covariance)
    parts = [
        of_values + 8 * step * math.sqrt(3 * max(len(made.mean), 1)),
        of_cells + 8 * step,
        of_cells + 8 * step,
        of_values + 8 * step * (several + 2),
    ]
    return inflate(math.sqrt(math.fsum(share * own * own for share, own in zip(shares, parts))))
