"""Every registered stage is held to one contract, the one that :func:`ppdp.testing.check_stage` offers to everybody.

Random, structured and climbing neighbours under several distances; output within the domain; margins that change by
at most 1; pure maps; clone and pickle.
"""

import math

import pytest
from effort import rounds
from sklearn.base import clone

from ppdp import Adjacency, Domain
from ppdp.testing import REGISTRY, check_stage
from ppdp.testing.stages import DOMAINS
from ppdp.transformers.base import Stage

STAGES = [kind for kind in REGISTRY.values() if issubclass(kind, Stage)]
BOX = Domain(n_rows=14, n_features=2, row_norm=math.sqrt(2), entry_bound=1.0, min_present=14, classes=(0, 1))


@pytest.mark.parametrize("domain", DOMAINS, ids=["one column", "ball", "box"])
@pytest.mark.parametrize("kind", STAGES, ids=lambda kind: kind.__name__)
@pytest.mark.repeated("domain")
def test_the_example_keeps_the_contract(kind, domain, monkeypatch):
    """On one of three domains, in an attack on each."""
    monkeypatch.setattr("ppdp.testing.stages.DOMAINS", (domain,))
    assert 0 < check_stage(kind.example(), pairs=rounds(3), climbs=rounds(4)) <= 1 + 1e-9


@pytest.mark.parametrize("kind", STAGES, ids=lambda kind: kind.__name__)
def test_sensitivity_is_the_stability_map_of_one_replaced_row(kind):
    stage = clone(kind.example())
    complete = BOX if stage.fills_gaps else BOX.but(max_missing=0)
    domain, distance = stage.stability_map(complete, Adjacency.replace().distance)
    assert stage.sensitivity(complete).linf == distance.moved
    assert stage.sensitivity(complete).l2 == distance.radius
    assert domain.missing_rows == 0
    assert distance.replaced >= 1
