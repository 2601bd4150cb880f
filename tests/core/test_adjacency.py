"""Which datasets are neighbours is said in one place."""

import ast

import pytest
from sources import MODULES, tree_of

from ppdp import Adjacency, Distance, Domain
from ppdp.exceptions import InvalidParameter


def test_a_domain_says_which_datasets_are_neighbours():
    assert Domain().adjacency == Adjacency.replace() == Adjacency.replace(rows=1)
    assert Domain(rows_per_unit=3).adjacency == Adjacency.replace(3) != Adjacency.replace(2)
    assert Adjacency.replace(3).distance == Distance(replaced=3, mass=6, one_sided=3)
    assert [Adjacency.replace(k).single for k in (1, 2)] == [True, False]


@pytest.mark.parametrize("rows", [0, -1, 1.5, True, "2"])
def test_rows_are_counted(rows):
    with pytest.raises(InvalidParameter, match="rows"):
        Adjacency.replace(rows)


def test_a_change_of_more_rows_is_several_steps():
    assert [Adjacency.replace(k).steps_of(Adjacency.replace(2)) for k in (1, 2, 3, 5)] == [1, 1, 2, 3]


def test_some_of_the_rows_differ_no_more_than_all_of_them():
    """Chosen by position, so what matches only in another order counts as toggled."""
    far = Distance(replaced=3, toggled=2, moved=4, radius=0.5, total=1.0)
    assert far.among(9) == far
    assert far.among(2) == Distance(replaced=2, toggled=2, moved=2, radius=0.5, mass=4, one_sided=2)
    assert Distance(toggled=1, reordered=3).among(4) == Distance(toggled=4, one_sided=2.5)


@pytest.mark.parametrize("module", [name for name in MODULES if name != "ppdp.core.adjacency"])
def test_nobody_else_counts_rows_per_person(module):
    """To know whether it is one row is to know what neighbours are."""
    for node in (one for one in ast.walk(tree_of(module)) if isinstance(one, ast.Compare)):
        words = [ast.unparse(side) for side in (node.left, *node.comparators)]
        assert "1" not in words or not any(word.endswith("rows_per_unit") for word in words), f"line {node.lineno}"
