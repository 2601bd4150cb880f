"""Centred rows: their sum stays, their second moment changes as a correlation does, and both are forgotten at once."""

import math

import adversary
import numpy as np
import pytest
from adversary import DISTANCES, attack, domains, named
from neighbours import ROUNDING, Chain, Pair
from worst_cases import four_values

from ppdp import Domain, Pipeline
from ppdp.bounds import lookup
from ppdp.core.distance import Distance
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.exceptions import CertificateError, PpdpError
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism
from ppdp.testing import REGISTRY
from ppdp.testing.neighbours import World
from ppdp.transformers import Deduplicator, MinMaxScaler, StandardScaler
from ppdp.transformers.base import Stage

SCALE = 1e-9  # of Laplace noise: what its lattice adds is then known to be small
QUERIES = {
    f"{kind.__name__} {query}": kind(query)
    for kind, queries in ((GaussianMechanism, ("mean", "sum", "covariance")), (LaplaceMechanism, ("mean", "sum")))
    for query in queries
}
FORMS = [{"use_floor": floor, "per_column": each} for floor in (True, False) for each in (True, False)]
ALL_PRESENT = [
    domain.but(min_present=domain.n) for domain in [*domains(9, 1, max_missing=0)[:1], *domains(9, 3, max_missing=0)]
]
COMPLETE = [distance for distance in DISTANCES if not distance.toggled]
queries = pytest.mark.parametrize("query", QUERIES)


def certified(query, domain, distance):
    """L2 sensitivity, or L1 shift of the one part of a Laplace release."""
    question = QUERIES[query].query_spec(domain)
    if question.gaussian:
        return question.sensitivity(domain, distance)
    scale = SCALE * question.bound * 2**16
    (part,) = question.privacy_map(domain, distance, scale).parts
    return part.shift


def change(query, domain, pair):
    """How far the exact answers of a pair are apart, in the norm of the noise."""
    question = QUERIES[query].query_spec(domain)
    left, right = (QUERIES[query].answer(rows, question) for rows in (pair.left, pair.right))
    return float(np.linalg.norm(left - right, 2 if question.gaussian else 1))


def known(pair, distance):
    """How much the sums of a pair use of what a distance knows of them."""
    sums = [rows.X.sum(axis=0) for rows in (pair.left, pair.right)]
    moments = [rows.X.T @ rows.X for rows in (pair.left, pair.right)]
    for sides, most in ((sums, distance.sums), (moments, distance.moments)):
        yield float(np.linalg.norm(sides[0] - sides[1])) / most


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("domain", ALL_PRESENT, ids=named)
@pytest.mark.parametrize("distance", COMPLETE, ids=named)
@pytest.mark.repeated("domain")
def test_a_scaled_table_sums_to_nothing_and_no_query_moves_further(domain, distance, form):
    """The sum, and every query behind it, against pairs that climb."""
    share = 0.05 if form["per_column"] else 0.1
    chain = Chain.of([StandardScaler(share, clip=None, **form)], domain, distance)
    way = chain.steps[0][1]
    assert way.formula == "scaling.centred"
    bounds = {query: certified(query, chain.domain, chain.distance) for query in QUERIES}

    def ratio(left, right):
        pair = Pair(left, right)
        deviations = [rows.X.std(axis=0) for rows in (pair.left, pair.right)]
        least = min(one.min() if form["per_column"] else np.linalg.norm(one) for one in deviations)
        if not form["use_floor"] and least < share * domain.row_norm:
            return 0.0
        after = pair.mapped(chain.run)
        return max(
            *known(after, chain.distance), *(change(query, chain.domain, after) / bounds[query] for query in QUERIES)
        )

    world, rng = World(domain, distance), np.random.default_rng(0)
    pairs = [world.drawn(rng) for _ in range(20)]
    used = [ratio(*pair) for pair in pairs]
    pair, most = pairs[int(np.argmax(used))], max(used)
    for step in range(20):
        trial = world.varied(pair, rng, 0.5 * 0.9**step)
        used.append(ratio(*trial))
        pair, most = (trial, used[-1]) if used[-1] >= most else (pair, most)
    assert max(used) <= ROUNDING


@pytest.mark.parametrize("n", [10, 1000, 100_000])
@pytest.mark.parametrize("share", [1e-5, 0.3])
def test_rounding_leaves_far_less_than_is_charged(n, share):
    """Rows far from zero that hardly vary lose most digits; the charge is at least a millionth of the largest sum."""
    domain = Domain(n_rows=n, n_features=3, row_norm=1.0, max_missing=0, min_present=n)
    chain = Chain.of([StandardScaler(share, clip=None, use_floor=True)], domain, Distance(replaced=1))
    rng = np.random.default_rng(0)
    for centre, width in ((0.57, 1e-4), (0.1, 1e-9), (0.0, 0.5)):
        X = centre + width * rng.standard_normal((n, 3))
        rows = Pair.of(X / np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True)), X).left
        assert np.linalg.norm(chain.run(rows).X.sum(axis=0)) < 1e-3 * chain.distance.sums
    assert chain.distance.sums < 1e-6 * n * chain.domain.row_norm


@queries
def test_what_is_known_of_the_sums_is_attained(query):
    """All rows move, the sums by as much as they may; or two opposite rows turn, and the sum stays where it is."""
    n, far = 50, 1e-3
    domain = Domain(n_rows=n, n_features=2, row_norm=1.0, max_missing=0, min_present=n)
    left = np.full((n, 2), far / n / 2 / math.sqrt(2))
    right, distance = -left, Distance(moved=n, radius=1.0).knowing(sums=far, moments=1e-9)
    if "covariance" in query:
        left, right = np.zeros((2, n, 2))
        left[:2], right[:2] = [[1, 0], [-1, 0]], [[0, 1], [0, -1]]
        distance = Distance(replaced=2).knowing(sums=1e-9, moments=2 * math.sqrt(2))
    assert 1 - 1e-5 < change(query, domain, Pair.of(left, right)) / certified(query, domain, distance) <= ROUNDING


@pytest.mark.parametrize(
    ("distance", "right"),
    [(Distance(replaced=2), (0.0, 1.0)), (Distance(moved=2, radius=2e-4), (0.9998, 0.0))],
    ids=["replaced", "moved"],
)
def test_where_the_sum_stays_the_second_moment_alone_has_to_be_paid(distance, right):
    """Opposite rows: each costs R/n, where the mean alone would cost 2R/n."""
    domain = Domain(n_rows=20, n_features=2, row_norm=1.0, max_missing=0, min_present=20)
    sides = np.zeros((2, 20, 2))
    sides[0, :2], sides[1, :2] = [[1, 0], [-1, 0]], [right, np.negative(right)]
    pair, stays = Pair.of(*sides), distance.knowing(sums=1e-9, moments=math.inf)
    query, matrix = "GaussianMechanism covariance", STATISTICS["matrix"]
    bound = lookup(matrix.formula, "release")(domain, stays)
    apart = np.linalg.norm(matrix.measure(pair.left, domain, {}) - matrix.measure(pair.right, domain, {}))
    for reached in (apart / bound, change(query, domain, pair) / certified(query, domain, stays)):
        assert 0.999 < reached <= ROUNDING
    assert bound < 0.85 * lookup(matrix.formula, "release")(domain, distance)


@pytest.mark.parametrize(
    ("floor", "per_column", "d", "least"),
    [
        (True, True, 1, 0.85),
        (True, True, 2, 0.6),
        (False, True, 2, 0.45),
        (True, False, 2, 0.65),
        (False, False, 2, 0.5),
    ],
)
def test_the_change_of_the_second_moment_is_reached_up_to_a_small_factor(floor, per_column, d, least):
    n, share = 100, 0.3 / math.sqrt(d) if per_column else 0.3
    domain = Domain(n_rows=n, n_features=d, row_norm=1.0, max_missing=0, min_present=n)
    stage = StandardScaler(share, use_floor=floor, clip=None, per_column=per_column)
    chain = Chain.of([stage], domain, Distance(replaced=1))

    def ratio(pair):
        deviations = [rows.X.std(axis=0) for rows in (pair.left, pair.right)]
        smallest = min(one.min() if per_column else np.linalg.norm(one) for one in deviations)
        if min(pair.left.weight.min(), pair.right.weight.min()) < 1 or (not floor and smallest < share):
            return np.nan
        return list(known(pair.mapped(chain.run), chain.distance))[1]

    reached, _ = attack(adversary.World(domain), ratio, draws=60, steps=250)
    assert least <= reached <= ROUNDING


def test_in_one_column_it_is_attained():
    """All rows are equal; one of them leaves for the other pole, and the variance stays below the floor."""
    case = four_values(200, 1.0, 1.0, 1.0, 1.0, 0, s=0.3, clip=None, floor=True)
    chain = Chain.of([case.stage], case.domain.but(min_present=200), Distance(replaced=1))
    assert 0.994 <= list(known(case.pair.mapped(chain.run), chain.distance))[1] <= ROUNDING


@pytest.mark.parametrize("name", [name for name, kind in REGISTRY.items() if issubclass(kind, Stage)])
def test_every_stage_forgets_what_was_known(name):
    known = {"row_norm": 1.0, "entry_bound": 1.0, "max_missing": 0, "classes": (0, 1)}
    domain = Domain(n_rows=300, n_features=2, min_present=300, **known)
    for n in (300, 2 if name == "ClusterDistances" else 1):  # which has no more clusters than rows
        facts = domain.but(n_rows=n, min_present=n)
        distances = Distance(replaced=1).knowing(sums=0.0, moments=0.0), Distance(replaced=1)
        for one, other in zip(*(REGISTRY[name].example().fit_modes(facts, distance) for distance in distances)):
            assert one.distance == other.distance
            assert other.formula == "scaling.centred" or one.distance.sums == one.distance.moments == math.inf


def test_it_is_no_part_of_a_distance_that_is_written_or_changed():
    known = Distance(replaced=1, moved=3, radius=0.1, reordered=2).knowing(sums=0.0, moments=0.0)
    assert Distance.from_dict(known.to_dict()).sums == math.inf
    changed = known.by_position(), known.moved_as_replaced(), known.stretched(1.0), known.jittered(0.1)
    assert {(one.sums, one.moments) for one in (*changed, known.widened(9, 1, 0.1))} == {(math.inf, math.inf)}
    with pytest.raises(TypeError):
        Distance(sums=0.0)


@pytest.mark.parametrize(
    ("stages", "formula"),
    [
        ([StandardScaler(clip=None)], "scaling.centred"),
        ([StandardScaler()], "scaling.standard"),
        ([StandardScaler(clip=None, with_mean=False)], "scaling.standard"),
        ([Deduplicator(), StandardScaler(clip=None)], "scaling.standard"),
    ],
)
def test_rows_are_centred_only_where_none_is_clipped_or_absent(stages, formula):
    domain = Domain(n_rows=100, n_features=2, row_norm=1.0, max_missing=0, min_present=100)
    chain = Chain.of(stages, domain, Distance(replaced=1))
    assert chain.steps[-1][1].formula == formula
    assert (chain.distance.sums < math.inf) == (formula == "scaling.centred")


def test_a_forged_certificate_cannot_centre_other_rows():
    given = {"min_std": 0.1, "conditional": False, "clip": None, "with_mean": True}
    domain = Domain(n_rows=100, n_features=2, row_norm=1.0, max_missing=0, min_present=100)
    formula = lookup("scaling.centred", "stability")
    assert formula(domain, Distance(replaced=1), **given)[1].sums < math.inf
    for other, distance, changes in (
        (domain.but(min_present=99), Distance(replaced=1), {}),
        (domain, Distance(replaced=1, toggled=1), {}),
        (domain, Distance(replaced=1, reweighted=1), {}),
        (domain, Distance(replaced=1), {"clip": 1e9}),
        (domain, Distance(replaced=1), {"with_mean": False}),
    ):
        with pytest.raises(CertificateError):
            formula(other, distance, **{**given, **changes})


@queries
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 20.0])
@pytest.mark.repeated("epsilon")
def test_a_pipeline_costs_next_to_nothing_and_its_certificate_verifies(query, epsilon):
    rows = np.random.default_rng(0).uniform(-1, 1, (400, 2))
    stages = [("range", MinMaxScaler(ranges=(-1, 1))), ("scale", StandardScaler(clip=None, fit_mode="exact"))]
    pipe = Pipeline([*stages, ("query", QUERIES[query])], epsilon=epsilon, delta=1e-6).fit(rows)
    assert pipe.certificate_.verify()
    if query.endswith("mean"):
        assert np.abs(pipe.named_steps["query"].mean_).max() < 0.01 / epsilon
    try:
        pipe.plan(Domain(n_rows=10**5, n_features=2))
    except PpdpError as error:  # noise is never too fine for its lattice
        pytest.fail(error.message)
