"""PCA against an adversary: the projector turns, and rows move, no further than the conditions allow."""

import math
from operator import itemgetter

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from effort import rounds
from neighbours import ROUNDING, Chain, Pair
from worst_cases import LENSES, lens, rotation

from ppdp.bounds import lookup
from ppdp.bounds.pca import frame_shift, projector_shift
from ppdp.core.adjacency import Adjacency
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.rounding import COARSE, FINER
from ppdp.data.rows import Rows
from ppdp.data.summary import second_moment
from ppdp.transformers import PCA, SoftPCA
from ppdp.transformers.project.pca import Spectrum

BALLS = [domain for domain in domains(12, 2, 3, max_missing=0) if domain.entry_bound is None]
ONE = Adjacency.replace().distance
HALF = np.sqrt(0.5)
CENTRED = pytest.mark.parametrize("center", [False, True], ids=["uncentred", "centred"])


def spectra(pair, domain, k, center=False):
    """Eigengap after k and leading eigenvectors, for each side."""
    found = []
    for rows in (pair.left, pair.right):
        spectrum = Spectrum.of_rows(rows, domain, k, center=center)
        found.append((float(spectrum.values[k - 1] - spectrum.values[k]), spectrum.components))
    return found


def projector_ratio(domain, distance, k, center=False):
    """How far the projector turns, over its bound at the smaller of the two gaps."""

    def ratio(pair):
        (gap, left), (other, right) = spectra(pair, domain, k, center)
        least = min(gap, other)
        if least < 1e-3 * domain.row_norm**2:
            return np.nan
        bound = projector_shift(domain, distance, least, center=center, n_components=k)
        return np.linalg.norm(left.T @ left - right.T @ right, 2) / bound

    return ratio


def map_ratio(world, k, **settings):
    """How far rows move under PCA, over the bound for the gap and the alignment that the pair has."""

    def ratio(pair):
        found = spectra(pair, world.domain, k, settings.get("with_mean", False))
        gap = min(gap for gap, _ in found) / world.domain.row_norm**2 * (1 - 1e-12)
        if not 1e-3 < gap <= 1:
            return np.nan
        least = {}
        if settings.get("output") == "aligned":
            cosines = [np.linalg.svd(rows @ settings["public_basis"], compute_uv=False)[k - 1] for _, rows in found]
            least = {"min_alignment": min(cosines) * (1 - 1e-12)}
            if least["min_alignment"] < 1e-3:
                return np.nan
        return Chain.of([PCA(k, gap, **{"with_mean": False, **settings}, **least)], world.domain, world.distance).use(
            pair, world.free
        )

    return ratio


@CENTRED
@pytest.mark.parametrize("domain", domains(12, 2, 3, max_missing=0), ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("domain", "center")
def test_no_pair_turns_the_projector_further(domain, distance, center):
    world = World(domain, distance, deleted=True)
    for k in range(1, domain.d):
        reached, _ = attack(world, projector_ratio(domain, distance, k, center), draws=40, steps=40 if center else 80)
        assert (0.2 if center else 0.5) < reached <= ROUNDING


MAPS = {
    "rank": (1, {}),
    "centred rank": (1, {"with_mean": True}),
    "projected": (1, {"output": "projected", "public_basis": [[0.6], [0.8], [0.0]]}),
    "centred, projected": (2, {"with_mean": True, "output": "projected", "public_basis": np.eye(3)[:, 1:]}),
    "a sign": (1, {"output": "aligned", "public_basis": [[1.0], [0.0], [0.0]]}),
    "a sign from two columns": (1, {"output": "aligned", "public_basis": np.eye(3)[:, :2]}),
    "a frame": (2, {"output": "aligned", "public_basis": np.eye(3)[:, :2]}),
    "a centred frame": (2, {"with_mean": True, "output": "aligned", "public_basis": np.eye(3)[:, :2]}),
}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("distance")
def test_no_row_moves_further(distance, name):
    k, settings = MAPS[name]
    world = World(BALLS[1], distance, deleted=True)
    reached, _ = attack(world, map_ratio(world, k, **settings), draws=40, steps=50)
    assert 0.25 < reached <= ROUNDING


@pytest.mark.parametrize("stage", ["uncentred", "centred", "soft"])
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("stage", keep=2)
def test_weights_between_0_and_1_move_rows_no_further(distance, stage):
    """Of every row that both datasets weigh differently the smaller weight is matched."""
    rng = np.random.default_rng(0)
    n, share = 12, 0.4
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0, max_missing=0)
    wide = Distance(
        distance.replaced,
        distance.toggled,
        distance.moved,
        distance.radius,
        distance.total,
        distance.mass + 2 * share,
        distance.one_sided + 2 * share,
        reweighted=2,
    )
    for _ in range(rounds(50)):
        pair = World(domain, distance).draw(rng)
        weights = [pair.left.weight * np.append(rng.uniform(share, 1, n - 2), [1.0, share]), None]
        weights[0] = np.where(pair.left.weight > 0, weights[0], 0.0)
        scale = np.where(pair.left.weight > 0, weights[0], 1.0)
        weights[1] = pair.right.weight * scale
        weights[1][-2:] = pair.right.weight[-2:] * [1 - share, 0.0 + 2 * share]
        left, right = Rows(pair.left.X, None, weights[0]), Rows(pair.right.X, None, weights[1])
        center = stage == "centred"
        gap = min(gap for gap, _ in spectra(Pair(left, right), domain, 1, center)) * (1 - 1e-12)
        if gap < 1e-3:
            continue
        chain = Chain.of([SoftPCA(0.1) if stage == "soft" else PCA(1, gap, with_mean=center)], domain, wide)
        move = np.linalg.norm(chain.run(left).X - chain.run(right).X, axis=1)
        matched = np.minimum(weights[0], weights[1])
        matched[: int(distance.replaced)] = 0.0
        assert (move * (matched > 0)).max() <= chain.distance.radius * ROUNDING
        assert move @ matched <= chain.distance.total * ROUNDING


@CENTRED
@pytest.mark.parametrize("domain", BALLS, ids=named)
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("domain")
def test_the_gap_changes_by_at_most_its_unit(domain, distance, center):
    world = World(domain, distance, deleted=True)
    unit = lookup("pca.centred-gap" if center else "pca.gap", "margin")(domain, distance)

    def change(pair):
        (left, _), (right, _) = spectra(pair, domain, 1, center)
        return abs(left - right) / unit

    reached, _ = attack(world, change, draws=40, steps=40)
    assert (0.2 if center else 0.5) < reached <= ROUNDING


def test_the_centred_gap_changes_by_all_of_its_unit_if_all_rows_stand_far_out():
    """Rows at one point of the sphere, a few moved off at 45 degrees; z on the other side goes to its reflection."""
    n, v = 20_000, math.sqrt(3) / 2
    tail = [[0.65, -0.35]] * 60 + [[1.0, 0.0]] * (n - 61)
    pair = Pair.of([[-0.5, v], *tail], [[-0.5, -v], *tail])
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0, max_missing=0)
    (left, _), (right, _) = spectra(pair, domain, 1, True)
    assert 0.98 <= abs(left - right) / lookup("pca.centred-gap", "margin")(domain, ONE) <= ROUNDING


@CENTRED
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@pytest.mark.repeated("center")
def test_the_joint_margin_changes_by_at_most_one_and_is_zero_outside(distance, center):
    """Two conditions, the second of which has a meaning only where the first one holds."""
    domain = Domain(n_rows=24, n_features=3, row_norm=1.0, max_missing=0)
    world = World(domain, distance, deleted=True)
    basis, gap, least = np.eye(3)[:, :2], 0.02, 0.1
    stage = PCA(2, gap, with_mean=center, output="aligned", public_basis=basis, min_alignment=least)
    chain = Chain.of([stage], domain, distance)
    assert [condition.name for condition in chain.steps[0][1].conditions] == ["eigengap", "alignment"]

    def change(pair):
        margins = [chain.margin(pair.left), chain.margin(pair.right)]
        for margin, (found, components) in zip(margins, spectra(pair, domain, 2, center)):
            holds = found >= gap and np.linalg.svd(components @ basis, compute_uv=False)[1] >= least
            assert holds or margin == 0
        return abs(margins[0] - margins[1])

    reached, _ = attack(world, change, draws=50, steps=50)
    assert 0.01 < reached <= ROUNDING


def test_the_alignment_changes_by_all_of_its_unit():
    """The leading direction turns by what it can, toward and away from a column that is almost orthogonal to it."""
    case = rotation(200, 0.1)
    stage = PCA(
        1, case.stage.min_gap, with_mean=False, output="aligned", public_basis=[[0.1], [1.0]], min_alignment=1e-6
    )
    (way,) = (way for way in stage.fit_modes(case.domain, ONE) if way.name == "exact")
    margins = [way.conditions[1].margin(rows) for rows in (case.pair.left, case.pair.right)]
    assert 0.98 <= abs(margins[0] - margins[1]) <= ROUNDING


@pytest.mark.parametrize(
    ("d", "k", "columns", "sharp"), [(4, 1, 1, 1.0), (4, 1, 2, 1.0), (4, 2, 2, 1.0), (5, 2, 3, 0.816)]
)
def test_frames_turn_no_further_than_their_projectors_and_their_alignment_allow(d, k, columns, sharp):
    rng = np.random.default_rng(0)

    def share(table):
        frames = [np.linalg.qr(part)[0] for part in (table[:, :k], table[:, :k] + table[:, k:])]
        turn = np.linalg.norm(frames[0] @ frames[0].T - frames[1] @ frames[1].T, 2)
        polar = [np.linalg.svd(frame.T[:, :columns], full_matrices=False) for frame in frames]
        least = min(values[-1] for _, values, _ in polar)
        if turn < 1e-6 or least < 1e-6:
            return 0.0
        A, B = (frame @ left @ right for frame, (left, _, right) in zip(frames, polar))
        return np.linalg.norm(A - B, 2) / frame_shift(turn, k, columns, least)

    best, reached, size = rng.standard_normal((d, 2 * k)), 0.0, 0.3
    for _ in range(rounds(800)):
        trial = best + size * rng.standard_normal(best.shape) * (rng.random(best.shape) < 0.5)
        value = share(trial)
        size = min(1.0, size * 1.5) if value > reached else max(1e-3, size * 0.97)
        best, reached = (trial, value) if value > reached else (best, reached)
    assert sharp - 0.05 <= reached <= ROUNDING


@pytest.mark.parametrize(("n", "k"), LENSES)
def test_a_row_far_from_the_mean_turns_the_centred_projector_as_far_as_any_can(n, k):
    first, other, some, rest = LENSES[n, k]
    tail = [some] * k + [rest] * (n - 1 - k)
    pair = Pair.of([first, *tail], [other, *tail])
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0, max_missing=0)
    assert 0.98 <= projector_ratio(domain, ONE, 1, center=True)(pair) <= ROUNDING


@pytest.mark.parametrize(
    ("mean", "measure", "settings", "least"),
    [
        (math.sqrt(0.9), "radius", {}, 0.95),
        (math.sqrt(0.9), "radius", {"output": "projected", "public_basis": np.eye(2)}, 0.92),
        (math.sqrt(0.9), "radius", {"output": "aligned", "public_basis": [[0.0], [1.0]], "min_alignment": 0.9}, 0.92),
        (1 / math.sqrt(3), "total", {}, 0.75),
        (1 / math.sqrt(3), "total", {"output": "projected", "public_basis": np.eye(2)}, 0.92),
    ],
)
def test_centred_maps_come_close_to_their_bounds(mean, measure, settings, least):
    case = lens(1000, mean, **settings)
    assert least <= getattr(case.reached, measure) / getattr(case.certified, measure) <= ROUNDING


@pytest.mark.parametrize(
    ("n", "k", "gap", "distance", "center", "turn"),
    [
        (1000, 2, 0.1, ONE, False, 0.01),
        (1000, 2, 0.1, ONE, True, 0.024163256849010956),
        (500, 1, 0.3, Distance(replaced=2, moved=5, radius=0.01, total=0.03), False, 0.013533333333333331),
        (500, 1, 0.3, Distance(replaced=2, moved=5, radius=0.01, total=0.03), True, 0.031272130288601256),
    ],
)
def test_figures_of_an_independent_computation(n, k, gap, distance, center, turn):
    domain = Domain(n_rows=n, n_features=6, row_norm=1.0, max_missing=0)
    found = projector_shift(domain, distance, gap, center=center, n_components=k)
    assert turn <= found <= turn * (1 + 1e-8)


def closer(turn, size):
    """Two orthogonal rows, of norm 1 and ``size``, and how much of their gap coarse products take away."""
    rows = np.array([[np.cos(turn), np.sin(turn)], [-size * np.sin(turn), size * np.cos(turn)]])
    long, short = (row @ (second_moment(Rows.of([row]), 1.0, coarse=True) - np.outer(row, row)) @ row for row in rows)
    return short - long, rows


def test_coarse_products_close_the_gap_of_all_rows_and_the_bound_allows_for_it():
    """Of many tables of two rows, repeated, the one whose gap is closed most; without an allowance it is too much."""
    rng, n = np.random.default_rng(0), 2**15
    _, (long, short) = max(
        (closer(*draw) for draw in rng.uniform([0.2, 0.999], [1.3, 1.0], (300, 2))), key=itemgetter(0)
    )
    size = float(np.linalg.norm(short))
    many = int((n - 1) * size**2 / (1 + size**2)) + 2
    tail = [*[long] * many, *[short] * (n - 1 - many)]
    pair = Pair.of(*([HALF * (long + sign * short / size), *tail] for sign in (1, -1)))
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0, max_missing=0)
    gap = min(found for found, _ in spectra(pair, domain, 1)) * (1 - 1e-12)
    stage = PCA(1, gap, with_mean=False)
    (way,) = (way for way in stage.fit_modes(domain, ONE) if way.name == "exact")
    assert way.formula == "pca.coarse-rank"
    left, right = (stage.prepare(rows, way, domain)["components"] for rows in (pair.left, pair.right))
    turned = np.linalg.norm(left.T @ left - right.T @ right, 2)
    assert 0.999 < turned / way.distance.radius <= ROUNDING
    assert turned > lookup("pca.rank", "stability")(domain, ONE, min_gap=gap)[1].radius * ROUNDING


@CENTRED
def test_the_margin_of_a_coarse_gap_changes_by_at_most_one(center):
    """A row without error becomes one with the largest."""
    n, step = 2**15, 2.0 ** (1 - COARSE)
    worst = (1 - step) + step * 2.0 ** -(FINER + 2) * 1.01
    tail = [*[[0.0, 0.5]] * (n // 2), *[[0.0, -0.5]] * (n // 2 - 1)]
    pair = Pair.of([[worst, 0.0], *tail], [[0.0, 1.0], *tail])
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0, max_missing=0)
    (way,) = (way for way in PCA(1, 0.01, with_mean=center).fit_modes(domain, ONE) if way.name == "exact")
    (condition,) = way.conditions
    assert "coarse" in way.formula
    assert condition.measure.keywords["coarse"]
    assert 0.1 < abs(condition.margin(pair.left) - condition.margin(pair.right)) <= ROUNDING


TILT = np.cos(5e-4), np.sin(5e-4)


@pytest.mark.parametrize(
    ("distance", "left", "right"),
    [
        (Distance(toggled=1), [(HALF, HALF)], [None]),
        (Distance(replaced=2), [(HALF, HALF)] * 2, [(HALF, -HALF)] * 2),
        (Distance(moved=1, radius=1e-3), [TILT], [(TILT[0], -TILT[1])]),
    ],
    ids=["a toggled row counts half", "two replaced rows", "a moved row counts by its move"],
)
def test_every_part_of_the_distance_is_tight(distance, left, right):
    n = 400
    sides = []
    for changed in (left, right):
        X = np.zeros((n, 2))
        X[: len(changed)] = [row or (0.0, 0.0) for row in changed]
        X[len(changed) : 200, 0] = 1.0
        weight = np.ones(n)
        weight[: len(changed)] = [row is not None for row in changed]
        sides.append(Rows(X, None, weight))
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0, max_missing=0)
    assert 0.98 <= projector_ratio(domain, distance, 1)(Pair(*sides)) <= ROUNDING
