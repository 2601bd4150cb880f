"""Neighbours of a change are audited as what they are: nothing true is refuted, and half of the noise is."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from effort import rounds

from ppdp import Adjacency, Distance, Domain, Pipeline
from ppdp.audit import Claim, PlanTarget, attack_output, attack_stability, audit, pairs
from ppdp.audit.plans import reaching
from ppdp.core.distance import Moves
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, LogisticRegression, SignMechanism
from ppdp.mechanisms.query.signs import FLIPS
from ppdp.testing.neighbours import World
from ppdp.transformers import GridDeduplicator, MeanImputer, MinMaxScaler, NormClipper, RandomProjection, StandardScaler

pytestmark = pytest.mark.usefixtures("short_slices")
N, D = 6, 4
FACTS = Domain(n_rows=N, n_features=D, max_missing=0)
FEW = FACTS.but(n_rows=3)
RANGE = ("range", MinMaxScaler(ranges=[(0, 1), (0, 100), (-1, 1), (5, 6)], feature_range=(0, 1)))
CLIP = ("clip", NormClipper(1.0))
ONE = Adjacency.change(coordinate={0: 0.2, 1: 30.0, 2: 0.5}, count=2)
CHANGES = {
    "one column": Adjacency.change(coordinate=0.2),
    "two of some columns": ONE,
    "sum": Adjacency.change(l1=0.3),
    "length": Adjacency.change(l2=0.3),
}
SPENT = {"epsilon": 3.0, "delta": 1e-6}


def planned(*steps, adjacency=ONE, domain=FACTS, **spent):
    named = [step if isinstance(step, tuple) else (f"step{at}", step) for at, step in enumerate(steps)]
    return Pipeline(named, adjacency=adjacency, **{"diagnostics": None, **SPENT, **spent}).plan(domain)


def halved(plan):
    return replace(plan, mechanism=replace(plan.mechanism, noise_scale=plan.mechanism.noise_scale / 2))


def used(plan, evaluations=80):
    """The largest share of each claim of the parts of a plan that has any."""
    report = attack_stability(plan, evaluations=rounds(evaluations), seconds=None)
    assert not report.violated, report
    return {(finding.name, finding.quantity): finding.ratio for finding in report.findings}


class TestNothingTrueIsRefuted:
    @pytest.mark.parametrize("change", CHANGES)
    @pytest.mark.parametrize("family", ["gaussian", "oporp"])
    @pytest.mark.repeated("change")
    def test_rows_behind_ranges_and_a_projection_come_close(self, change, family):
        noise = LaplaceMechanism("rows") if family == "oporp" else GaussianMechanism("rows")
        found = used(planned(RANGE, RandomProjection(3, family=family), noise, adjacency=CHANGES[change]))
        assert found["step1, public", "radius"] > 0.9
        # The norm of absolute values behind a dense matrix is bounded by products of components, not by all signs.
        assert found["step1, public", "entries"] > (0.8 if (family, change) == ("gaussian", "length") else 0.85)
        assert found["step1, public", "entry"] > 0.85
        if change == "two of some columns":  # others may move columns further than their ranges are wide
            assert found["step2, end to end", "answer"] > 0.9

    @pytest.mark.parametrize(
        "steps",
        [
            (RANGE, GaussianMechanism("mean")),
            (RANGE, LaplaceMechanism("mean")),
            (CLIP, StandardScaler(), GaussianMechanism("covariance")),
            (CLIP, GridDeduplicator(0.2), GaussianMechanism("mean")),
            (CLIP, GridDeduplicator(0.2, keep="soft"), GaussianMechanism("mean")),
            (CLIP, LogisticRegression((0, 1), max_iter=3)),
        ],
        ids=str,
    )
    def test_means_stages_and_models(self, steps):
        """A deduplicator stands behind few rows that move only."""
        domain = FACTS.but(n_rows=12)
        assert used(planned(*steps, adjacency=CHANGES["length"], domain=domain, epsilon=20.0), 60)

    def test_a_row_that_is_clipped_at_the_entrance_moves_in_any_direction(self):
        domain = Domain(n_rows=N, n_features=D, row_norm=1.0, max_missing=0)
        assert used(planned(LaplaceMechanism("mean"), domain=domain, adjacency=CHANGES["one column"]))[
            "step0, end to end", "answer"
        ] == pytest.approx(1.0, rel=1e-6)

    @pytest.mark.parametrize("noise", [GaussianMechanism("rows"), LaplaceMechanism("rows")], ids=repr)
    @pytest.mark.repeated("noise")
    def test_releases_are_told_apart_as_well_as_certified_and_no_better(self, noise):
        report = audit(planned(RANGE, noise, domain=FEW), evaluations=60, runs=4000)
        assert not report.violated, report
        assert "neighbours: change one row in up to 2 columns" in repr(report)
        assert "which rows there are" in report.to_dict()["neighbours"]
        _, low, high = report.bounds()[0]
        assert 0.25 * high < low <= high


@pytest.fixture
def few_pairs(monkeypatch):
    """Beside the pair that is found one other is tried, in an attack all."""

    def few(every):
        return lambda *given: islice(every(*given), rounds(1, 99))

    monkeypatch.setattr(pairs, "_crossing", few(pairs._crossing))
    monkeypatch.setattr(pairs, "_others", few(pairs._others))


class TestHalfOfTheNoise:
    @pytest.mark.parametrize("noise", [GaussianMechanism("rows"), LaplaceMechanism("rows")], ids=repr)
    @pytest.mark.repeated("noise")
    def test_is_refuted(self, noise):
        epsilon, runs = (3.0, 3000) if isinstance(noise, LaplaceMechanism) else (8.0, 900)
        report = audit(halved(planned(RANGE, noise, epsilon=epsilon, domain=FEW)), evaluations=60, runs=rounds(runs))
        assert report.output.violated, report
        assert not report.stability.violated

    @pytest.mark.usefixtures("few_pairs")
    @pytest.mark.repeated("of")
    @pytest.mark.parametrize("of", ["a sketch", "a mean"])
    def test_of_others_is_refuted(self, of):
        sketch = RANGE, RandomProjection(2, family="oporp"), LaplaceMechanism("rows")
        plan = planned(*sketch, delta=0, domain=FEW)
        runs = 1200 if of == "a mean" else 3000
        if of == "a mean":
            domain = FEW.but(n_rows=2, n_features=1)
            plan = planned(CLIP, LaplaceMechanism("mean"), delta=0, adjacency=CHANGES["length"], domain=domain)
        assert audit(halved(plan), evaluations=30, runs=rounds(runs)).output.violated


@pytest.mark.usefixtures("few_pairs")
@pytest.mark.parametrize("flips", FLIPS)
@pytest.mark.repeated("flips")
def test_half_of_the_flips_is_refuted_and_none_of_all(flips):
    """On rows whose numbers cross 0, where what signs tell is no rare event; "gaussian" has no pure loss."""
    scale = MinMaxScaler(ranges=(0, 1), feature_range=(-1, 1))
    steps = scale, RandomProjection(rounds(1, 2)), SignMechanism(flips=flips)
    plan = planned(*steps, adjacency=CHANGES["one column"], domain=FEW.but(n_rows=2))
    for one, refuted in ((halved(plan), True), (plan, False))[: rounds(1)]:
        report = audit(one, evaluations=12, runs=rounds(2000))
        assert report.violated is refuted, report
        assert not report.stability.violated


class TestPairsOfOnesOwn:
    """Of pairs that are further apart than a change may be nothing is certified."""

    plan = planned(RANGE, GaussianMechanism("mean"))
    row = np.array([0.5, 50.0, 0.0, 5.5])

    def pair(self, *changes, **other):
        tables = np.tile(self.row, (2, N, 1))
        for at, change in enumerate(changes):
            tables[1, at] += change
        left, right = (Rows(X, np.zeros(N), np.ones(N)) for X in tables)
        return left, replace(right, **other)

    @pytest.mark.parametrize(
        "changes", [([0.2, -30.0, 0, 0],), ([0, 30.0, 0.5, 0],), ([0, 0, 0, 0], [0.1, 0, 0, 0])], ids=str
    )
    def test_neighbours_are_accepted(self, changes):
        assert PlanTarget("it", self.plan, *self.pair(*changes))

    @pytest.mark.parametrize(
        ("changes", "other"),
        [
            (([0.21, 0, 0, 0],), {}),
            (([0.1, 1.0, 0.1, 0],), {}),
            (([0, 0, 0, 0.01],), {}),
            (([0.1, 0, 0, 0], [0.1, 0, 0, 0]), {}),
            ((), {"y": np.eye(N)[0]}),
            ((), {"weight": np.full(N, 0.5)}),
        ],
        ids=["too far", "three columns", "a public column", "two rows", "a label", "weights"],
    )
    def test_others_are_refused(self, changes, other):
        with pytest.raises(InvalidParameter, match="no neighbours: change one row in up to 2 columns"):
            PlanTarget("it", self.plan, *self.pair(*changes, **other))

    def test_a_gap_may_not_come_or_go(self):
        plan = planned(RANGE, MeanImputer(), GaussianMechanism(), domain=FACTS.but(max_missing=2), epsilon=20.0)
        left, right = self.pair()
        right.X[0, 0] = np.nan
        with pytest.raises(InvalidParameter, match="no neighbours"):
            PlanTarget("it", plan, left, right)

    def test_a_chosen_pair_shows_the_halved_noise(self):
        plan = halved(planned(RANGE, GaussianMechanism("rows"), epsilon=8.0))
        target = PlanTarget("it", plan, *self.pair([0, 30.0, 0.5, 0]))
        assert attack_output(target, runs=1200).violated


class TestPrivateRows:
    X = np.random.default_rng(0).uniform(0, 1, (40, D)) * [1, 100, 1, 1] + [0, 0, 0, 5]
    X[3] = 0.0
    Y = (X[:, 0] > 0.5).astype(int)

    def replayed(self, *steps, adjacency=ONE):
        named = [step if isinstance(step, tuple) else (f"step{at}", step) for at, step in enumerate(steps)]
        return audit(Pipeline(named, adjacency=adjacency, epsilon=20.0, delta=1e-3), data=(self.X, self.Y))

    @pytest.fixture(autouse=True)
    def stars(self, monkeypatch):
        monkeypatch.setattr("ppdp.audit.replay.STARS", rounds(4))

    @pytest.mark.parametrize("mechanism", [LaplaceMechanism("rows"), GaussianMechanism("mean")], ids=repr)
    def test_true_claims_are_reached(self, mechanism):
        report = self.replayed(RANGE, mechanism)
        assert not report.violated, report
        ratios = {finding.quantity: finding.ratio for finding in report.findings}
        assert 0.9 < ratios["radius"] <= 1 + 1e-9
        assert 0.9 < ratios["exact answers"] <= 1 + 1e-9

    def test_stages_and_models(self):
        length = CHANGES["length"]
        for steps in ((CLIP, GridDeduplicator(0.2), GaussianMechanism()), (CLIP, LogisticRegression((0, 1)))):
            report = self.replayed(*steps, adjacency=length)
            assert not report.violated, report
            assert report.counted

    @pytest.mark.parametrize("also", [1, 2])
    def test_weights_that_change_beside_a_row_that_moved_are_no_rows_that_are_replaced(self, also):
        class Soft(GridDeduplicator):
            def _by_cell(self, rows, cells):
                return super()._by_cell(rows, cells) / (1 if len(np.unique(cells, axis=0)) % 2 else also)

        found = self.replayed(CLIP, Soft(0.9, keep="soft"), GaussianMechanism(), adjacency=Adjacency.change(l2=60.0))
        ratios = {finding.quantity: finding.ratio for finding in found.findings if finding.name == "step1"}
        assert ratios["slots"] == 1
        assert 0 < ratios["reweighted"] <= 1
        assert (ratios["mass"] <= 1) is (not found.violated) is (also == 1)

    def test_a_mechanism_that_does_not_divide_is_refuted(self):
        class Careless(GaussianMechanism):
            def answer(self, rows, question):
                return super().answer(rows, question) * 1.5

        assert self.replayed(RANGE, Careless()).violated


class TestClaims:
    facts = Domain(n_rows=N, n_features=D, adjacency=ONE)

    def test_of_a_change_every_number_may_be_claimed(self):
        claimed = {"radius": np.hypot(30.0, 0.5), "entry": 30.0, "entries": 30.5, "columns": 2, "slots": 0}
        report = attack_stability(Claim(lambda X: X[:, ::-1], self.facts, claimed), evaluations=200)
        assert not report.violated, report
        assert all(finding.ratio > 0.99 for finding in report.telling)

    @pytest.mark.parametrize("least", [{"entry": 29.0}, {"entries": 30.0}, {"columns": 1}, {"radius": 29.9}], ids=str)
    def test_too_little_is_refuted(self, least):
        assert attack_stability(Claim(lambda X: X, self.facts, least), evaluations=200, until_violated=True).violated

    def test_a_distance_with_moves_is_claimed_as_a_whole(self):
        before = self.facts.neighbours
        told = before.moving(Moves((0.2, 29.0, 0.5, 0.0), before.moves.l1, 2))
        assert not attack_stability(Claim(lambda X: X, self.facts, before), evaluations=200).violated
        found = attack_stability(Claim(lambda X: X, self.facts, told), evaluations=200)
        assert [finding.quantity for finding in found.violations] == ["entry"]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("norm", [None, 1.0])
@pytest.mark.repeated("norm")
def test_pairs_are_neighbours_and_reach_the_corners(change, norm):
    domain, rng = FACTS.but(row_norm=norm, min_present=N), np.random.default_rng(0)
    distance = CHANGES[change].entrance_distance(D)
    scaled = distance if norm is None else Distance(moved=1, radius=0.2 * 2**0.5).moving(Moves(0.2, 0.4, 2))
    world = World(domain, scaled)
    pairs = [world.drawn(rng) for _ in range(150)]
    pairs += [world.varied(pair, rng, 0.3) for pair in pairs]
    assert all(world.allows(pair) for pair in pairs)
    changes = np.array([right.X[0] - left.X[0] for left, right in pairs])
    assert all((left.X[1:] == right.X[1:]).all() for left, right in pairs)
    assert np.abs(changes).sum(axis=1).max() == pytest.approx(scaled.moves.l1, rel=0.05)
    assert np.linalg.norm(changes, axis=1).max() == pytest.approx(scaled.radius, rel=0.05)


def test_the_column_that_a_projection_sends_furthest_is_tried_with_both_signs():
    plan = planned(RANGE, RandomProjection(3), GaussianMechanism("rows"), adjacency=Adjacency.change(coordinate=0.2))
    found = reaching(plan.steps, TestPairsOfOnesOwn.row, plan.distance)
    matrix = RandomProjection(3).fit(np.zeros((1, D))).components_
    reach = np.linalg.norm(matrix, axis=0) / [1, 100, 2, 1]
    assert {int(np.flatnonzero(one)[0]) for one in found[1:] if np.count_nonzero(one) == 1} >= {int(np.argmax(reach))}
    assert np.abs(found[1:]).max() == 0.2
