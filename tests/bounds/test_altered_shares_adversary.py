"""Counts of altered rows: no neighbouring dataset moves them further than is certified, and some do so fully."""

import math
from dataclasses import replace

import numpy as np
import pytest

from ppdp import Adjacency, Domain
from ppdp.bounds import lookup
from ppdp.bounds.laplace import whole_loss
from ppdp.bounds.release import CELL, CLIPPED, LABEL, predicted_apart
from ppdp.core.distance import Distance
from ppdp.data.altered import Marker, Property, altered_counts, counts_by_outcome
from ppdp.data.rows import Rows
from ppdp.data.slot_assignment import assign_slots
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import MinMaxScaler

N, D = 12, 3
FORMULA = lookup("release.altered-shares", "release")
PURE = lookup("release.altered-shares-laplace", "release")
PROPERTIES = (
    Property(LABEL),
    *(Property(CELL, f"x{i}") for i in range(D)),
    *(Property(CLIPPED, f"x{i}") for i in range(D)),
)
KINDS = tuple(Property(kind) for kind in (LABEL, CELL, CLIPPED))
ADJACENCIES = {
    "replace": Adjacency.replace(),
    "replace two": Adjacency.replace(2),
    "add or remove": Adjacency.add_remove(),
    "person": Adjacency.user_level(max_rows=3),
    "change": Adjacency.change(coordinate=0.5),
}


def rows_of(values, wrong, counted):
    marker = Marker(PROPERTIES, counted, 1.0, None, False, ())
    X = np.clip(np.where(np.isfinite(values), values, 0.0), -1.0, 1.0)
    rows = Rows.of(X, np.zeros(len(X)))
    return Rows(rows.X, rows.y, rows.weight, marks=marker(values, X, {LABEL: wrong}))


@pytest.mark.parametrize("counted", [PROPERTIES, KINDS], ids=["by column", "by kind"])
@pytest.mark.parametrize("adjacency", ADJACENCIES.values(), ids=list(ADJACENCIES))
def test_no_neighbour_exceeds_the_bound_and_one_reaches_it(adjacency, counted):
    facts = Domain(n_rows=N, n_features=D, adjacency=adjacency)
    bound, bound_l1 = (formula(facts, facts.neighbours, counts=len(counted)) for formula in (FORMULA, PURE))
    hidden, many = adjacency.unbounded, adjacency.rows
    held = N - many if hidden else N
    rng, most = np.random.default_rng(0), 0.0
    for _ in range(200):
        values = rng.choice([0.0, 0.5, 3.0, np.nan, np.inf], (held, D), p=[0.5, 0.2, 0.1, 0.1, 0.1])
        wrong = rng.random(held) < 0.2
        others, other_wrong = values.copy(), wrong.copy()
        if adjacency.row_level and not hidden:
            values[:many], wrong[:many] = 0.0, False
            others[:many], other_wrong[:many] = rng.choice([3.0, np.inf], (many, D)), True
        elif hidden:
            others = np.concatenate([values, rng.choice([3.0, np.inf], (many, D))])
            other_wrong = np.append(wrong, np.ones(many, dtype=bool))
        else:
            values[0], others[0] = 1.0, 1.0 + rng.choice([0.0, 0.25], D)
        one, other = (
            altered_counts(
                assign_slots(
                    rows_of(v, w, counted),
                    facts,
                    Noise(3),
                    np.concatenate([np.arange(held), np.full(len(v) - held, held)])
                    if adjacency.bounds_contributions
                    else None,
                ),
                len(counted),
            )
            for v, w in ((values, wrong), (others, other_wrong))
        )
        most = max(most, float(np.linalg.norm(one - other)) / bound)
        assert np.abs(one - other).sum() <= bound_l1
    # A value is either repaired or clipped, so no row has every property by column.
    assert (0.3 if not adjacency.row_level else 0.7) < most <= 1 + 1e-12


def test_the_bound_is_attained_by_a_row_of_all_properties():
    facts = Domain(n_rows=N, n_features=D)
    none, every = np.zeros((N, D)), np.zeros((N, D))
    every[0] = [np.inf, 3.0, 0.0]
    counts = [
        altered_counts(rows_of(values, np.arange(N) < wrong, KINDS), 3) for values, wrong in ((none, 0), (every, 1))
    ]
    assert np.linalg.norm(counts[1] - counts[0]) == pytest.approx(math.sqrt(3), rel=1e-12)
    assert FORMULA(facts, facts.neighbours, counts=3) == pytest.approx(math.sqrt(3), rel=1e-8)
    assert np.abs(counts[1] - counts[0]).sum() == PURE(facts, facts.neighbours, counts=3) == 3


@pytest.mark.parametrize("scale", [0.7, 2.0, 5.0])
def test_counts_with_laplace_noise_are_told_apart_as_is_charged(scale):
    """Two counts that both move by 1: what all tests of both together achieve, by their exact law."""
    z = np.arange(-200, 201)
    law = np.exp(-np.abs(z) / scale) / np.exp(-np.abs(z) / scale).sum()
    moved = np.roll(law, 1)
    one, other = np.outer(law, law), np.outer(moved, moved)
    loss = whole_loss(2, scale, 100.0)
    assert loss.epsilon(0.0) == pytest.approx(np.log(one[:401, :200] / other[:401, :200])[1:, 1:].max(), rel=1e-9)
    for epsilon in np.linspace(0.0, 2.2 / scale, 9):
        told = np.maximum(one - math.exp(epsilon) * other, 0.0).sum()
        assert told <= loss.delta(epsilon) + 1e-12
    assert loss.delta(0.0) <= 1.9 * np.maximum(one - other, 0.0).sum()


def test_the_bound_is_attained_between_clipped_and_tiny_values():
    stage, facts = MinMaxScaler(ranges=(-1, 1)), Domain(n_rows=N, n_features=D)
    rows = np.full((N, D), 0.5)
    clipped, tiny = ([*np.full((1, D), value), *rows[1:]] for value in (3.0, 0.01))
    counts = [np.sum(stage.altered(np.array(one), facts), axis=0) for one in (clipped, tiny)]
    assert len(stage.alters(facts)) == 2 * D
    assert np.linalg.norm(counts[0].astype(int) - counts[1]) == pytest.approx(math.sqrt(2 * D), rel=1e-12)


class Signs:
    """A released model: the class of a row by the sign of its sum, of the third where that is large."""

    classes_ = np.array(["no", "yes", "perhaps"])

    def steady_labels(self, X):
        total = X.sum(axis=1)
        return self.classes_[np.where(total > 2, 2, (total > 0).astype(int))]


@pytest.mark.parametrize("adjacency", ADJACENCIES.values(), ids=list(ADJACENCIES))
def test_counts_of_predictions_add_two_to_the_bound_and_a_neighbour_reaches_it(adjacency):
    facts = Domain(n_rows=N, n_features=D, adjacency=adjacency)
    size, near = len(KINDS) + 6, facts.neighbours
    bound = FORMULA(facts, near, counts=size, exclusive=6)
    rng, most = np.random.default_rng(0), 0.0
    rows = min(math.ceil(near.changed), N)
    for attempt in range(400):
        values, wrong = rng.choice([0.0, 0.5, 3.0, np.inf], (N, D)), rng.random(N) < 0.3
        labels, weight = rng.integers(0, 3, N).astype(float), np.ones(N)
        others, other_wrong, other_labels, other_weight = values.copy(), wrong.copy(), labels.copy(), weight.copy()
        if near.toggled:
            weight[:rows] = 0.0
        if attempt % 2:  # no property at all beside every one
            values[:rows], wrong[:rows], labels[:rows] = 0.5, False, 0
            others[:rows], other_wrong[:rows], other_labels[:rows] = [np.inf, 3.0, 3.0], True, 1
        else:
            others[:rows], other_labels[:rows] = (
                rng.choice([0.0, 0.5, 3.0, np.inf], (rows, D)),
                rng.integers(0, 3, rows),
            )
        counts = []
        for v, w, y, held in ((values, wrong, labels, weight), (others, other_wrong, other_labels, other_weight)):
            made = rows_of(v, w, KINDS)
            made = replace(made, y=y, weight=held, marks=made.marks & (held > 0)[:, None])
            counts.append(np.append(altered_counts(made, len(KINDS)), counts_by_outcome(made, Signs())))
        most = max(most, float(np.linalg.norm(counts[0] - counts[1])) / bound)
    assert 0.99 < most <= 1 + 1e-12


def test_predictions_are_not_counted_where_rows_of_one_side_become_rows_of_both():
    facts = Domain(n_rows=N, n_features=D)
    toggled, replaced = Distance(toggled=1), Distance(replaced=1)
    assert predicted_apart(toggled, facts, toggled)
    assert predicted_apart(replaced, facts, toggled)
    assert not predicted_apart(toggled, facts, replaced)
