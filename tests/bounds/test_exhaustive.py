"""All neighbouring datasets of few rows on a grid: no stage or mechanism exceeds what it certifies."""

import pytest
from effort import found, rounds
from exhaustive import ADJACENCIES, closest
from neighbours import ROUNDING
from small_grids import CASES

from ppdp.exceptions import PpdpError


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.repeated("adjacency")
def test_no_pair_exceeds_what_is_certified(name, adjacency):
    try:
        case = CASES[name]
        _, _, shares = closest(case, adjacency, rounds(40, case.most(adjacency)))
    except PpdpError:  # refused behind such neighbours, or nothing is asked that they change: no claim is made
        shares = {}
    assert all(found(share) <= ROUNDING for share in shares.values())
