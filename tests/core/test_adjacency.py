"""Which datasets are neighbours is said in one place."""

import ast
import json
import math

import numpy as np
import pytest
from sources import MODULES, source_of, tree_of

from ppdp import Adjacency, Distance, Domain
from ppdp.bounds import FORMULAS, lookup
from ppdp.core.distance import Moves
from ppdp.exceptions import DomainMismatch, InvalidParameter
from ppdp.transformers import MinMaxScaler

given_changes = pytest.mark.parametrize(
    ("count", "by_column", "seed"), [(1, False, 0), (1, True, 1), (2, True, 2), (3, False, 3), (9, True, 4)]
)


def test_a_domain_says_which_datasets_are_neighbours():
    assert Domain().adjacency == Adjacency.replace() == Adjacency.replace(rows=1)
    assert Domain(rows_per_unit=3).adjacency == Adjacency.replace(3) != Adjacency.replace(2)
    assert Adjacency.replace(3).distance == Distance(replaced=3, mass=6, one_sided=3)
    assert [Adjacency.replace(k).one_row for k in (1, 2)] == [True, False]


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "2"])
def test_rows_are_counted(rows):
    with pytest.raises(InvalidParameter, match="rows"):
        Adjacency.replace(rows)


def test_a_change_of_more_rows_is_several_steps():
    assert [Adjacency.replace(k).group_factor(Adjacency.replace(2)) for k in (1, 2, 3, 5)] == [1, 1, 2, 3]


def test_a_change_protects_how_far_values_are_off_and_says_so():
    change = Adjacency.change(coordinate=2.0, count=3)
    assert change.unit == "how far the values of any one row are off, by at most 2 in up to 3 columns"
    assert "not protected" in change.words
    assert not change.row_level
    assert Adjacency.replace().row_level


@pytest.mark.parametrize(
    ("adjacency", "radius", "moves"),
    [
        (Adjacency.change(coordinate=2.0, count=3), 2 * math.sqrt(3), Moves(2.0, 6.0, 3)),
        (Adjacency.change(coordinate=2.0, count=9), 4.0, Moves(2.0, 8.0, 4)),
        (Adjacency.change(l1=2.0), 2.0, Moves(2.0, 2.0, 4)),
        (Adjacency.change(l2=2.0), 2.0, Moves(2.0, 4.0, 4)),
        (Adjacency.change(coordinate={"a": 3.0, "c": 4.0}, count=2), 5.0, Moves((3.0, 0.0, 4.0, 0.0), 7.0, 2)),
        (Adjacency.change(coordinate={"a": 3.0, 2: 4.0}), 4.0, Moves((3.0, 0.0, 4.0, 0.0), 4.0, 1)),
    ],
    ids=str,
)
def test_the_distance_of_a_change(adjacency, radius, moves):
    found = Domain(feature_names=("a", "b", "c", "d"), n_features=4, adjacency=adjacency).neighbours
    assert found == Distance(moved=1, radius=radius).moving(moves)
    assert found.mass == 0
    assert Distance.from_dict(json.loads(json.dumps(found.to_dict()))) == found
    assert Adjacency.from_dict(json.loads(json.dumps(adjacency.to_dict()))) == adjacency


def test_rows_that_are_clipped_at_the_entrance_are_known_by_their_length_only():
    domain = Domain(n_features=4, row_norm=1.0, adjacency=Adjacency.change(coordinate=0.5))
    assert domain.neighbours.moves is None
    assert 0.5 < domain.neighbours.radius < 0.5 + 1e-12


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"l1": 1.0, "l2": 1.0},
        {"l1": 0.0},
        {"l2": math.inf},
        {"coordinate": -1.0},
        {"coordinate": {}},
        {"coordinate": {"a": "b"}},
        {"l1": 1.0, "count": 2},
        {"coordinate": 1.0, "count": 0},
    ],
    ids=str,
)
def test_what_is_no_change_is_refused(given):
    with pytest.raises(InvalidParameter):
        Adjacency.change(**given)


def test_columns_are_written_as_names_and_whole_numbers():
    limits = {np.str_("a"): 1.0, np.int64(3): 2.0}
    found = Adjacency.change(coordinate=limits, count=2)
    assert json.dumps(found.to_dict()) == '{"coordinate": [["a", 1.0], [3, 2.0]], "count": 2}'
    assert "(a: 1, column 3: 2)" in found.words  # a column may be called "3", and stand elsewhere
    for column in (True, 1.0, -1, None):
        with pytest.raises(InvalidParameter, match="column"):
            Adjacency.change(coordinate={column: 1.0})


def test_a_table_that_nobody_has_fills_no_memory():
    with pytest.raises(InvalidParameter, match="one for all"):
        _ = Domain(n_features=2**40, adjacency=Adjacency.change(coordinate={0: 1.0})).neighbours


def test_one_column_has_one_limit():
    domain = Domain(n_features=2, feature_names=("a", "b"), adjacency=Adjacency.change(coordinate={"b": 5.0, 1: 1.0}))
    with pytest.raises(InvalidParameter, match="twice"):
        _ = domain.neighbours


def test_a_column_that_does_not_exist_is_refused():
    domain = Domain(n_features=2, feature_names=("a", "b"), adjacency=Adjacency.change(coordinate={"c": 1.0}))
    with pytest.raises(DomainMismatch, match="'c'"):
        _ = domain.neighbours


def test_who_protects_rows_protects_their_values_and_nobody_the_other_way_round():
    change = Adjacency.change(l2=1.0)
    assert change.group_factor(Adjacency.replace()) == change.group_factor(change) == 1
    assert Adjacency.replace().group_factor(change) == Adjacency.change(l2=2.0).group_factor(change) == math.inf


def test_domain_and_rows_per_unit_may_not_disagree():
    with pytest.raises(InvalidParameter):
        Domain(rows_per_unit=2, adjacency=Adjacency.change(l2=1.0))
    assert Domain(adjacency=Adjacency.replace(2)).rows_per_unit == 2
    assert Domain(rows_per_unit=2).but(rows_per_unit=3).adjacency == Adjacency.replace(3)
    assert Domain.from_dict(Domain(adjacency=Adjacency.change(l1=1.0)).to_dict()).adjacency == Adjacency.change(l1=1.0)


def test_only_maps_of_single_columns_pass_on_what_is_known_of_moves():
    known = Domain(n_rows=5, n_features=2, row_norm=1.0), Distance(moved=1, radius=1.0).moving(Moves(1.0, 1.0, 1))
    told = {name for name, one in FORMULAS.items() if getattr(one, "entrywise", False)}
    assert told <= {
        "row-wise.identity",
        "row-wise.range-scaling",
        "projection.random",
        "projection.drawn",
        "column-groups.split",
    }
    assert lookup("row-wise.norm-clip", "stability")(*known, max_norm=1.0)[1].moves is None


@given_changes
def test_range_scaling_scales_a_change_column_by_column(count, by_column, seed):
    """Pairs at the edges of what is allowed come as close to it as rounding lets them."""
    rng = np.random.default_rng(seed)
    widths, d = rng.uniform(0.5, 20, 4), 4
    limit = dict(enumerate(rng.uniform(0.1, 3, d))) if by_column else 1.5
    adjacency = Adjacency.change(coordinate=limit, count=count)
    ranges = [(0.0, width) for width in widths]
    stage = MinMaxScaler(ranges=ranges, feature_range=(-1, 2))
    domain = Domain(n_rows=9, n_features=d, max_missing=0, adjacency=adjacency)
    (way,) = [way for way in stage.fit_modes(domain, domain.neighbours) if way.name == "public"]
    stage.fit(np.zeros((1, d)))
    moves, largest = way.distance.moves, np.zeros(4)
    each = np.array([limit[j] if by_column else limit for j in range(d)])
    for _ in range(60):
        row, other = rng.uniform(-1, 21, d), None
        row = np.clip(row, 0, widths) if rng.random() < 0.7 else row
        other = row.copy()
        changed = rng.choice(d, size=min(count, d), replace=False)
        other[changed] += each[changed] * rng.choice([-1, 1], len(changed)) * rng.choice([1, rng.random()])
        apart = np.abs(np.subtract(*stage.transform(np.stack([row, other]))))
        limits = moves.linf if isinstance(moves.linf, tuple) else (moves.linf,) * d
        assert (apart <= limits).all()
        figures = apart.max() / max(limits), apart.sum() / moves.l1, np.linalg.norm(apart) / way.distance.radius
        assert max(figures) <= 1
        assert np.count_nonzero(apart) <= moves.columns
        largest = np.maximum(largest, (*figures, np.count_nonzero(apart) / moves.columns))
    assert largest.min() > 0.6 if count == 1 else largest.max() == 1


def test_some_of_the_rows_differ_no_more_than_all_of_them():
    """Chosen by position, so what matches only in another order counts as toggled."""
    far = Distance(replaced=3, toggled=2, moved=4, radius=0.5, total=1.0)
    assert far.among(9) == far
    assert far.among(2) == Distance(replaced=2, toggled=2, moved=2, radius=0.5, mass=4, one_sided=2)
    assert Distance(toggled=1, reordered=3).among(4) == Distance(toggled=4, one_sided=2.5)


COUNTING = [name for name in MODULES if name != "ppdp.core.adjacency" and "rows_per_unit" in source_of(name)]


@pytest.mark.parametrize("module", COUNTING)
def test_nobody_else_counts_rows_per_person(module):
    """To know whether it is one row is to know what neighbours are."""
    for node in (one for one in ast.walk(tree_of(module)) if isinstance(one, ast.Compare)):
        sides = (node.left, *node.comparators)
        if any(isinstance(side, ast.Constant) and side.value == 1 for side in sides):
            assert not any(ast.unparse(side).endswith("rows_per_unit") for side in sides), f"line {node.lineno}"


def test_added_rows_are_toggled_and_their_number_is_private():
    added = Adjacency.add_remove(3)
    assert added.distance == Distance(toggled=3, mass=3, one_sided=3)
    assert added.row_level
    assert added.unbounded
    assert not added.bounded
    assert added.words.startswith("add or remove up to 3 rows, all of one person; the number of rows is private")
    facts = Domain(n_rows=9, n_features=2, adjacency=added)
    assert facts.to_dict()["adjacency"] == added.to_dict() == {"add_remove": 3}
    assert Domain.from_dict(json.loads(json.dumps(facts.to_dict()))) == facts
    assert facts.describe().startswith("at most 9 rows")
    for wrong in ({"add_remove": 0}, {"add_remove": 1.5}, {"add_remove": 1, "count": 2}):
        with pytest.raises(InvalidParameter):
            Adjacency.from_dict(wrong)


def test_a_replaced_row_is_removed_and_added_but_no_number_of_replaced_rows_adds_one():
    added = Adjacency.add_remove
    assert [added(k).group_factor(added(2)) for k in (1, 2, 3)] == [1, 1, 2]
    assert [Adjacency.replace(k).group_factor(added(2)) for k in (1, 3)] == [2, 4]
    assert Adjacency.change(l2=1.0).group_factor(added()) == 2
    assert added().group_factor(Adjacency.replace()) == added().group_factor(Adjacency.change(l2=1.0)) == math.inf


def test_persons_are_replaced_rows_behind_a_cut_and_any_number_of_rows_in_front_of_it():
    person = Adjacency.user_level
    assert person(3).distance == Adjacency.replace(3).distance
    assert person(3).row_level
    assert person(3).unbounded
    assert not person(3).bounded
    assert not person(1).one_row  # their rows may stand in several parts
    facts = Domain(n_rows=9, n_features=2, adjacency=person(3))
    assert facts.to_dict()["adjacency"] == person(3).to_dict() == {"person": 3}
    assert Domain.from_dict(json.loads(json.dumps(facts.to_dict()))) == facts
    assert "at most 1 row of each person is kept" in person(1).words
    for wrong in ({"person": 0}, {"person": 1.5}, {"person": 1, "count": 2}, {"person": 1, "add_remove": 1}):
        with pytest.raises(InvalidParameter):
            Adjacency.from_dict(wrong)


def test_one_step_of_persons_covers_any_rows_of_one_and_no_number_of_other_steps_covers_it():
    person, added = Adjacency.user_level(2), Adjacency.add_remove
    assert [added(j).group_factor(person) for j in (1, 7)] == [1, 1]
    assert [Adjacency.replace(j).group_factor(person) for j in (1, 3)] == [2, 4]
    assert Adjacency.change(l2=1.0).group_factor(person) == Adjacency.user_level(5).group_factor(person) == 1
    for other in (added(), Adjacency.replace(), Adjacency.change(l2=1.0)):
        assert person.group_factor(other) == math.inf
