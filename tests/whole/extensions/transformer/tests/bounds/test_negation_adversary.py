"""Negated rows against an adversary, and end to end."""

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, domains, named
from neighbours import ROUNDING, Chain, by_position, shares

from ppdp import make_pipeline
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import Negator, NormClipper


@pytest.mark.parametrize("distance", DISTANCES, ids=named)
def test_rows_end_as_far_apart_as_they_were(distance):
    for domain in domains(6, 2):
        chain = Chain.of([Negator()], domain, distance)
        world = World(domain, distance)

        def used(pair, chain=chain, free=range(world.roles[1].stop)):
            return max(shares(by_position(pair.mapped(chain.run), free), chain.distance).values())

        reached, _ = attack(world, used)
        assert 0.99 < reached <= ROUNDING


def test_a_fit_negates_and_its_certificate_holds():
    X = np.full((400, 2), 0.5)
    pipe = make_pipeline(NormClipper(), Negator(), GaussianMechanism(), epsilon=1.0, delta=1e-6).fit(X)
    assert pipe["gaussianmechanism"].mean_ == pytest.approx([-0.5, -0.5], abs=0.1)
    assert pipe.certificate_.verify()
    assert "negator" in pipe.certificate_.to_text(full=True)
