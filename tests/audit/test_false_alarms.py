"""What is true is not refuted: weights behind soft stages, rounding of foreign code, stages that fill no gaps."""

import numpy as np
import pytest

from ppdp import Adjacency, Distance, Domain, make_pipeline
from ppdp import transformers as S
from ppdp.audit import Claim, attack_stability
from ppdp.data.rows import Rows
from ppdp.exceptions import PpdpError
from ppdp.mechanisms import GaussianMechanism
from ppdp.testing import REGISTRY
from ppdp.testing.neighbours import World, measured
from ppdp.transformers.base import Stage

ROWS = 12
BALL = Domain(n_rows=ROWS, n_features=2, row_norm=1.0, max_missing=0)
SOFT = {
    "cells": S.GridDeduplicator(cell_width=0.3, keep="soft"),
    "bands": S.LSHDeduplicator(bands=2, mode="simhash", rule="soft"),
}
DISTANCES = {
    "weights only": Distance(reweighted=5, mass=1.0, one_sided=1.0),
    "one side less than the other": Distance(replaced=1, reweighted=8, mass=3.0, one_sided=1.2),
    "not even a whole row": Distance(replaced=1, toggled=2, reweighted=8, mass=1.5, one_sided=0.9),
    "moves": Distance(replaced=1, toggled=1, moved=3, radius=0.05, total=0.1, reweighted=2),
}


@pytest.mark.parametrize("name", DISTANCES)
class TestWorlds:
    def test_pairs_are_as_far_apart_as_granted(self, name):
        distance, rng = DISTANCES[name], np.random.default_rng(0)
        world = World(BALL, distance)
        drawn = [world.drawn(rng) for _ in range(100)]
        pairs = [*drawn, *(world.varied(pair, rng, 0.3) for pair in drawn)]
        assert all(world.allows(pair) for pair in pairs)
        masses = [measured(pair, world.free)["mass"] for pair in pairs]
        assert 0.7 * min(distance.mass, 2 * distance.one_sided) < max(masses) <= distance.mass + 1e-9

    def test_of_other_pairs_nothing_is_claimed(self, name):
        world, last = World(BALL, DISTANCES[name]), np.arange(ROWS) == ROWS - 1
        same = Rows(np.zeros((ROWS, 2)), np.zeros(ROWS), np.ones(ROWS))
        assert world.allows((same, same))
        absent = [Rows(same.X, same.y, np.zeros(ROWS)), same]
        moved = [same, same.with_X(same.X + last[:, None])]
        relabelled = [same, Rows(same.X, np.ones(ROWS), same.weight)]
        free_too = [Rows(same.X + 1.0, same.y, same.weight), same]
        assert not any(world.allows((left, right)) for left, right in (absent, moved, relabelled, free_too))


def test_absent_rows_are_no_more_than_declared():
    world = World(BALL.but(min_present=3), Adjacency.replace().distance)
    few = Rows(np.zeros((ROWS, 2)), np.zeros(ROWS), (np.arange(ROWS) < 2) * 1.0)
    assert not world.allows((few, few))


STAGES = {name: kind for name, kind in REGISTRY.items() if issubclass(kind, Stage)}


@pytest.mark.parametrize("soft", SOFT)
def test_no_stage_behind_soft_stages_is_accused(soft):
    """One after the other, every stage whose example can stand there."""
    attacked = set()
    for name, kind in STAGES.items():
        try:
            plan = make_pipeline(SOFT[soft], kind.example(), GaussianMechanism(), gate=None).plan(BALL)
        except PpdpError:  # it asks for other facts, labels or whole weights
            continue
        attacked.add(name)
        assert not attack_stability(plan, evaluations=5, seconds=None).violated, name
    assert attacked >= {"NormClipper", "StandardScaler", "PCA", "SoftPCA", "MeanImputer"}


def test_an_identity_behind_a_soft_stage_reaches_its_bound():
    plan = make_pipeline(SOFT["cells"], S.NormClipper(), GaussianMechanism()).plan(BALL)
    report = attack_stability(plan, evaluations=60)
    masses = [f.ratio for f in report.findings if (f.name, f.quantity) == ("normclipper, public", "mass")]
    assert masses == [pytest.approx(1.0)]
    assert not report.violated


def centred(X):
    return X - X.mean(axis=0)


def centred_and_back(X):
    return centred(X) + X.mean(axis=0)


def in_float32(transform):
    return lambda X: transform(X.astype(np.float32))


class TestRounding:
    def ratio(self, transform, bound, **settings):
        """The largest share of a bound, over pairs whose other rows are anywhere."""
        claim = Claim(transform, BALL, {"l2": bound}, name="it", **settings)
        found = []
        for rest in np.linspace(-0.7, 0.7, 41):
            tables = np.full((2, ROWS, 2), rest)
            tables[:, 0] = [[1.0, 0.0], [-1.0, 0.0]]
            attained, claimed = claim.uses((Rows.of(tables[0]), Rows.of(tables[1])))["l2"]
            found.append(attained / claimed if claimed else np.inf * attained if attained else 0.0)
        return max(found)

    @pytest.mark.parametrize("coarse", [in_float32, lambda transform: transform], ids=["float32", "float64"])
    def test_true_claims_of_code_that_rounds(self, coarse):
        assert self.ratio(coarse(centred), 2 / ROWS) == 1.0
        assert self.ratio(coarse(centred_and_back), 0.0) == 0

    def test_a_thousandth_too_little_is_no_rounding(self):
        assert self.ratio(in_float32(centred), 1.999 / ROWS) > 1.0004

    def test_who_declares_a_resolution_is_believed(self):
        assert self.ratio(in_float32(centred), 2 / ROWS, resolution=0.0) > 1
        assert self.ratio(in_float32(centred_and_back), 0.0, resolution=0.0) == np.inf

        def silently(X):
            return in_float32(centred_and_back)(X).astype(float)

        assert self.ratio(silently, 0.0) == np.inf
        assert self.ratio(silently, 0.0, resolution=1e-5) == 0


@pytest.mark.parametrize(
    "stage", [S.StandardScaler(0.3), S.PCA(1, min_gap=0.1), S.SoftPCA(), S.RandomProjection(1)], ids=repr
)
def test_stages_that_fill_no_gaps_need_no_word_about_gaps(stage):
    report = attack_stability(stage, Domain(n_rows=20, n_features=2), evaluations=30)
    assert not report.violated
    assert not any(np.isnan(rows.X).any() for finding in report.findings for rows in finding.pair)
