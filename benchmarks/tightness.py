"""How close neighbouring datasets come to our bounds, and to those printed in the literature.

    python benchmarks/tightness.py

The pairs are those of the tests: worst cases that are known, and an adversary that climbs where none is. A ratio never
exceeds 1. "Printed" are Corollary 4 and Propositions 3, 5 and 6 of "Provable privacy with non-private
pre-processing" (``literature``), for one replaced row, p in Corollary 4 read as the most gaps in a column; what
moves further is marked.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from adversary import World, attack
from neighbours import Chain, Pair, as_multisets, by_position
from worst_cases import (
    CIRCLE,
    CLIPPED,
    FLOORED,
    KISSES,
    TOTALS,
    Case,
    distinct,
    equal_masks,
    evenly_spaced,
    four_values,
    gap_then_scale,
    lens,
    masks_change,
    outliers_cut,
    poles,
    pulled_apart,
    rotation,
    shrunk,
    sparse_masks,
    steep,
    three_steps,
    twice,
)

from literature import claim
from ppdp.bounds import lookup
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.rows import Rows
from ppdp.transformers import PCA, ClusterDeduplicator, Deduplicator, GridDeduplicator, MinMaxScaler, RobustScaler

ONE = Adjacency.replace().distance

SIZES = 10, 50, 200
MEANS, SCALING, COMPONENTS, CLUSTERS = (
    claim(name).bound for name in ("cor-4", "prop-6", "prop-5-rank", "prop-3-count")
)
BOX = Domain(n_rows=30, n_features=2, row_norm=math.sqrt(2), entry_bound=1.0, max_missing=0)


@dataclass(frozen=True)
class Line:
    """One line of the table; ``printed`` is None where nothing is printed."""

    stage: str
    setting: str
    reached: float
    ours: float
    printed: float | None = None

    @property
    def ratio(self) -> float:
        """Share of our bound that is reached."""
        return self.reached / self.ours

    @property
    def refuted(self) -> bool:
        """Whether data exceed the printed bound, by more than rounding."""
        return self.printed is not None and self.reached > self.printed * (1 + 1e-9)

    def __str__(self) -> str:
        printed = "-" if self.printed is None else f"{self.printed:.4g}{' exceeded' if self.refuted else ''}"
        numbers = f"{self.reached:>10.4g}{self.ours:>10.4g}{self.ratio:>8.3f}"
        return f"{self.stage:<28}{self.setting:<34}{numbers}   {printed}"


def imputation() -> Iterator[Line]:
    for n in SIZES:
        case = masks_change(n)
        yield move("mean imputation", f"n={n}, masks change", case, MEANS(rows=n, missing=2))
    for n in SIZES:
        case = equal_masks(n, 3)
        yield move("mean imputation", f"n={n}, entries in a box", case, math.sqrt(3) * MEANS(rows=n, missing=1))
    for n, d in ((50, 8), (200, 16)):
        case = sparse_masks(n, d)
        n0 = case.stage.min_observed
        means = [
            STATISTICS["means"].measure(rows, case.domain, {"min_observed": n0})
            for rows in (case.pair.left, case.pair.right)
        ]
        bound = lookup("release.column-means", "release")(case.domain, ONE, min_observed=n0)
        shift = float(np.linalg.norm(means[0] - means[1]))
        yield Line(
            "means of columns with gaps", f"n={n}, d={d}, sparse masks", shift, bound, MEANS(rows=n, missing=n - n0)
        )


def regression() -> Iterator[Line]:
    for conditional, stage in ((False, "ridge imputation"), (True, "regression imputation")):
        for n in (50, 200):
            for share in (0.1, 0.2):
                case = steep(n, share, conditional, gap=True)
                yield move(stage, f"n={n}, share={share}", case)


def ranks() -> Iterator[Line]:
    for n in SIZES:
        case = evenly_spaced(n, 9)
        yield move("median imputation", f"n={n}, d=9", case, case.certified.radius / 3)
        yield move("trimmed-mean imputation", f"n={n}, d=3, m=n/10", outliers_cut(n, 3))
    robust = {"min_width": 0.2, "max_quantile_gap": 1e-3}
    quantile = {"quantiles": (0.25, 0.75), **robust}
    yield move("robust scaling", "n=401, gap 0.001", three_steps(RobustScaler(**robust)))
    yield move("quantile scaling", "n=401, gap 0.001", three_steps(MinMaxScaler(**quantile)))
    for n in (41, 401, 2001):
        case = pulled_apart(n, 1, 1e-6)
        yield Line("robust scaling, all rows", f"n={n}", case.reached.total, case.certified.total)
    for n, gaps in ((200, 3), (5000, 5)):
        case = steep(n, 0.2, conditional=False, gap=gaps)
        case = replace(case, domain=case.domain.but(max_missing=gaps))
        yield Line("ridge imputation, all rows", f"n={n}, {gaps} gaps", case.reached.total, case.certified.total)


def scaling() -> Iterator[Line]:
    for n, thresholds in ((10, (0.6,)), (50, (0.2, 0.35, 0.6)), (200, (0.2, 0.35, 0.6))):
        for threshold in thresholds:
            case = poles(n, threshold)
            s = case.stage.min_std
            yield move("scaling, std >= s", f"n={n}, s={s:.3f}", case, SCALING(rows=n, deviation=s))
    for (n, s), values in FLOORED.items():
        case = four_values(n, *values, s=s, clip=None, floor=True)
        yield move("scaling, max(std, s)", f"n={n}, s={s}", case)
    for (n, s), values in CLIPPED.items():
        case = four_values(n, *values, s=s, clip=1.0, floor=True)
        yield move("scaling, max(std, s), clip", f"n={n}, s={s}, B=1", case)
    for (n, s), values in TOTALS.items():
        case = four_values(n, *values, s=None, clip=None, floor=False)
        yield Line("scaling, all rows together", f"n={n}, s={s}", case.reached.total, case.certified.total)
    for n in (50, 200):
        yield second_moment(four_values(n, 1.0, 1.0, 1.0, 1.0, 0, s=0.3, clip=None, floor=True))


def second_moment(case: Case) -> Line:
    """Of centred rows: what one query costs behind a scaling that moves them all."""
    chain = Chain.of([case.stage], case.domain.but(min_present=case.domain.n), ONE)
    after = case.pair.mapped(chain.run)
    change = np.linalg.norm(after.left.X.T @ after.left.X - after.right.X.T @ after.right.X)
    return Line("scaling, second moment", f"n={case.domain.n}, s=0.3", float(change), chain.distance.moments)


def projection() -> Iterator[Line]:
    for n in SIZES:
        for beta in (0.1, 0.3):
            case = rotation(n, beta)
            yield move("projection", f"n={n}, gap={beta}", case, COMPONENTS(rows=n, gap=beta))
        case = rotation(n, 0.2, everywhere=True)
        gap = case.stage.min_gap
        yield Line("projection, all rows", f"n={n}, gap={gap:.3f}", case.reached.total, case.certified.total)
    for n in (*SIZES, 1000):
        case = lens(n, math.sqrt(0.9))
        gap = case.stage.min_gap
        yield move("centred projection", f"n={n}, gap={gap:.3f}", case, COMPONENTS(rows=n, gap=gap))
        case = lens(n, 1 / math.sqrt(3), output="projected")
        yield Line("centred projection, all rows", f"n={n}, public columns", case.reached.total, case.certified.total)
    for n in (*SIZES, 1000):
        yield move("soft projection", f"n={n}, ridge=0.1", shrunk(n, 0.1))
        case = shrunk(n, 0.1, everywhere=True)
        yield Line("soft projection, all rows", f"n={n}, ridge=0.1", case.reached.total, case.certified.total)


def deduplication() -> Iterator[Line]:
    domain = Domain(n_rows=3, n_features=2)
    for name, key, left in (("whole record", None, 9.0), ("keep first by key", [0], 0.0)):
        pair = Pair.of([[0, left], [0, 1], [1, 1]], [[1, left], [0, 1], [1, 1]])
        chain = Chain.of([Deduplicator(key)], domain, ONE)
        yield Line("deduplication", f"{name}, mass", as_multisets(pair.mapped(chain.run)).mass, chain.distance.mass)
    labelled = Pair.of([[0, 0], [0, 0], [1, 0]], [[1, 0], [0, 0], [1, 0]], ([0.0, 1.0, 1.0], [0.0, 1.0, 1.0]))
    for stage in (Deduplicator(label_rule="unanimous"), Deduplicator(label_rule="first"), GridDeduplicator(0.5)):
        chain = Chain.of([stage], domain, ONE)
        reached = as_multisets(labelled.mapped(chain.run)).mass
        yield Line("deduplication", f"{type(stage).__name__}, {stage.label_rule}, mass", reached, chain.distance.mass)


def clusters() -> Iterator[Line]:
    pairs = {"d=2, 12 rows on a circle": (twice(CIRCLE, (0, 0)), 5.0, 13, False)}
    for d, (eta, points) in KISSES.items():
        pairs[f"d={d}, clusters of 50"] = (twice(np.repeat(points, 50, axis=0), np.zeros(d)), eta, 50, True)
    for setting, (pair, eta, most, low_dimension) in pairs.items():
        domain = Domain(n_rows=10**6, n_features=pair.left.X.shape[1], row_norm=9.0)
        stages = [ClusterDeduplicator(eta, most, low_dimension)]
        chain = Chain.of(stages, domain, ONE)
        switched = by_position(pair.mapped(chain.run), free=[0]).toggled
        yield Line("cluster deduplication", setting, switched, chain.distance.toggled, CLUSTERS(largest=most))


def use(measure: Callable[[Rows, Domain, dict[str, object]], np.ndarray], bound: float, pair: Pair) -> float:
    """How much of a sensitivity a pair uses."""
    return float(np.linalg.norm(measure(pair.left, BOX, {}) - measure(pair.right, BOX, {}))) / bound


def climbing() -> Iterator[Line]:
    """Where nothing is known in closed form the adversary climbs."""
    after_keys = Distance(replaced=1, toggled=2, mass=4, one_sided=2)
    settings = {
        "one replaced": ONE,
        "one toggled": Distance(toggled=1),
        "keep first": after_keys,
    }
    for statistic in ("squares", "moment", "matrix"):
        found = STATISTICS[statistic]
        for name, distance in settings.items():
            bound = lookup(found.formula, "release")(BOX, distance)

            ratio = partial(use, found.measure, bound)
            reached, _ = attack(World(BOX, distance, deleted=True), ratio, draws=100, steps=400)
            yield Line(f"release of {statistic}", f"n=30, {name}", reached * bound, bound)


def pipelines() -> Iterator[Line]:
    masks, turn = masks_change(50), rotation(50, 0.1, everywhere=True)
    gap = turn.stage.min_gap * (1 - 1e-4)  # rows that differ by 1e-6 have a slightly smaller gap
    chains = {
        "dedup, impute": ([Deduplicator(), masks.stage], masks.domain, distinct(masks.pair)),
        "dedup, project": ([Deduplicator(), PCA(1, min_gap=gap, with_mean=False)], turn.domain, distinct(turn.pair)),
        "impute, scale": gap_then_scale(2000, 21, None),
        "impute, scale, clip": gap_then_scale(2000, 21, 1.0),
    }
    for name, (stages, domain, pair) in chains.items():
        chain = Chain.of(stages, domain, ONE)
        reached = by_position(pair.mapped(chain.run), free=[0]).radius
        yield Line("pipeline", f"n={domain.n}, {name}", reached, chain.distance.radius)


def move(stage: str, setting: str, case: Case, printed: float | None = None) -> Line:
    """The largest move of one row."""
    return Line(stage, setting, case.reached.radius, case.certified.radius, printed)


def main() -> None:
    print(f"{'stage':<28}{'setting':<34}{'reached':>10}{'ours':>10}{'ratio':>8}   printed")
    lines = []
    for family in (imputation, regression, ranks, scaling, projection, deduplication, clusters, climbing, pipelines):
        for line in family():
            print(line, flush=True)
            lines.append(line)
    comparable = [line for line in lines if line.printed is not None]
    refuted = sum(line.refuted for line in comparable)
    print(f"\nprinted bounds exceeded in {refuted} of {len(comparable)} settings")
    print(f"largest ratio of a reached distance to our bound: {max(line.ratio for line in lines):.9f}")


if __name__ == "__main__":
    main()
