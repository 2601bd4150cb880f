"""Released statistics against an adversary: no pair moves them further than their L2 sensitivity."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from neighbours import ROUNDING, Pair

from ppdp.bounds import lookup
from ppdp.bounds.release import BOX_WEIGHT, TAIL_CELLS
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.rows import Rows
from ppdp.mechanisms import GaussianMechanism


class Silent:
    """Noise that adds nothing, to see what would be released."""

    def release(self, value, noise_scale, bound):
        assert np.abs(value).max(initial=0.0) <= bound * ROUNDING
        return value


def measured(statistic, domain, **parameters):
    """The exact statistic, as a function of rows, with its sensitivity, as a function of the distance."""
    if statistic == "count":
        mechanism = GaussianMechanism()
        question = mechanism.query_spec(domain)
        return (
            lambda rows: mechanism.release(rows, question, Silent(), 1.0)["answer"],
            lambda distance: question.sensitivity(domain, distance),
        )
    form = STATISTICS[statistic]

    def value(rows):
        answer = Silent().release(form.measure(rows, domain, parameters), 0.0, form.bound(domain))
        if form.further is None:
            return answer
        steering = np.zeros(len(answer))  # whatever was answered first: here that rows lie around the middle
        steering[TAIL_CELLS // 2 - 10 :: TAIL_CELLS] = steering[TAIL_CELLS // 2 + 10 :: TAIL_CELLS] = 1.0
        release = SimpleNamespace(parameters=parameters, noise_scale=0.01)
        further = form.further(rows, steering, domain, release)
        return np.append(answer, Silent().release(further, 0.0, form.bound(domain)))

    return value, lambda distance: lookup(form.formula, "release")(domain, distance, **parameters)


def use(statistic, domain, distance, **parameters):
    value, sensitivity = measured(statistic, domain, **parameters)
    bound = sensitivity(distance)
    return lambda pair: float(np.linalg.norm(value(pair.left) - value(pair.right))) / bound


N = 9
CASES = {
    **{name: (name, {}, 0.0) for name in ("matrix", "moment", "squares", "diagonal", "squares-in-parts", "count")},
    **{
        f"{name} of two columns": (name, {"columns": [0, 2]}, 0.3)
        for name in ("squares", "diagonal", "squares-in-parts")
    },
    "squares-in-parts of gaps": ("squares-in-parts", {}, 0.3),
    **{f"means, n0 = {n0}": ("means", {"min_observed": n0}, 0.0) for n0 in (2, 7)},
    **{
        f"trimmed means, n0 = {n0}, m = {m}": ("trimmed-means", {"min_observed": n0, "trimmed": m}, 0.0)
        for n0, m in ((3, 1), (7, 2), (9, 0), (9, 4))
    },
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("place", range(6))
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("place", "distance", keep=3)
def test_no_pair_exceeds_the_sensitivity(case, place, distance):
    statistic, parameters, least = CASES[case]
    gaps = N if "means" in statistic or "gaps" in case else 0
    facts = domains(N, 1, 3, max_missing=None if gaps else 0)
    domain = facts[3 + place % 3 if "columns" in parameters else place]
    if statistic == "squares" and domain.entry_bound is None:
        domain = domain.but(entry_bound=1.0)
    world = World(domain, distance, gaps=gaps, deleted=True)
    reached, _ = attack(world, use(statistic, domain, distance, **parameters), draws=20, steps=30)
    assert least <= reached <= ROUNDING


@pytest.mark.parametrize("domain", domains(12, 2, max_missing=0, min_present=12), ids=named)
def test_where_no_row_can_be_deleted_the_mean_alone_is_released(domain):
    value, sensitivity = measured("count", domain)
    distance = Distance(replaced=1, moved=3, radius=0.1, total=0.2)
    assert value(Rows.of(np.zeros((12, 2)))).shape == (2,)
    reached, _ = attack(World(domain, distance), use("count", domain, distance))
    assert reached <= ROUNDING
    assert sensitivity(Adjacency.replace().distance) == pytest.approx(2 * domain.row_norm / 12, rel=1e-8)


def corner(d, sign=1.0):
    """A row at a corner of the box and, the box having norm sqrt(d), on the ball."""
    return [sign] * d


# (left, right) of the rows that differ; None is absent. The other rows are zero.
TIGHT = {
    ("matrix", "replaced"): (1.0, Distance(replaced=1), [corner(2)], [corner(2, -1)]),
    ("matrix", "toggled"): (1.0, Distance(toggled=1), [corner(2)], [None]),
    ("matrix", "moved"): (0.999, Distance(moved=1, radius=1e-3), [corner(2)], [corner(2, 1 - 1e-3 / math.sqrt(2))]),
    ("moment", "replaced"): (1.0, Distance(replaced=1), [corner(2)], [[1.0, -1.0]]),
    ("moment", "toggled"): (1.0, Distance(toggled=1), [corner(2)], [None]),
    ("moment", "moved"): (0.999, Distance(moved=1, radius=1e-3), [corner(2)], [corner(2, 1 - 1e-3 / math.sqrt(2))]),
    ("squares", "replaced"): (1.0, Distance(replaced=1), [corner(2)], [corner(2, -1)]),
    ("squares", "toggled"): (1.0, Distance(toggled=1), [corner(2)], [None]),
    ("squares", "moved"): (0.999, Distance(moved=1, radius=1e-3), [corner(2)], [corner(2, 1 - 1e-3 / math.sqrt(2))]),
    ("squares-in-parts", "replaced"): (1.0, Distance(replaced=1), [corner(2)], [corner(2, -1)]),
    ("squares-in-parts", "toggled"): (1.0, Distance(toggled=1), [corner(2)], [None]),
    ("squares-in-parts", "moved"): (1.0, Distance(moved=1, radius=3.0), [corner(2)], [corner(2, -1)]),
    ("diagonal", "replaced"): (1.0, Distance(replaced=1), [corner(2)], [corner(2, -1)]),
    ("diagonal", "toggled"): (math.sqrt(2.5 / 3), Distance(toggled=1), [corner(2)], [None]),
    ("count", "replaced"): (1.0, Distance(replaced=1), [corner(2)], [corner(2, -1)]),
    ("count", "toggled"): (1.0, Distance(toggled=1), [corner(2)], [None]),
    ("count", "moved"): (1.0, Distance(moved=1, radius=1e-3), [corner(2)], [corner(2, 1 - 1e-3 / math.sqrt(2))]),
    ("count", "keep-first"): (1.0, DISTANCES[2], [corner(2), None, corner(2)], [corner(2, -1), corner(2, -1), None]),
    ("matrix", "keep-first"): (1.0, DISTANCES[2], [corner(2), None, corner(2)], [corner(2, -1), corner(2, -1), None]),
}


@pytest.mark.parametrize("case", TIGHT, ids=" ".join)
def test_every_part_of_the_distance_is_attained(case):
    least, distance, left, right = TIGHT[case]
    domain = Domain(n_rows=30, n_features=2, row_norm=math.sqrt(2), entry_bound=1.0)
    assert least - 1e-8 <= use(case[0], domain, distance)(Pair.in_front(30, left, right)) <= ROUNDING


def test_no_larger_weight_of_the_squares_comes_free():
    """Two entries in [-1, 1] that differ by t have squares that differ by at most t (2 - t)."""
    t = np.linspace(0, 2, 400_001)

    def largest(c):
        return (t**2 * (1 + c**2 * (2 - t) ** 2)).max()

    assert largest(BOX_WEIGHT) <= 4
    assert largest(BOX_WEIGHT * (1 + 1e-6)) > 4
