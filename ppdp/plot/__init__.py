"""Figures; need the extra ``ppdp[plot]``. None of them takes data, each returns the axis it drew on."""

from ppdp.core.keywords import answering_all
from ppdp.plot.bars import advice, comparison, distance
from ppdp.plot.curves import epsilon_delta, gate, membership, privacy_utility
from ppdp.plot.shapes import shape

__all__ = ["advice", "comparison", "distance", "epsilon_delta", "gate", "membership", "privacy_utility", "shape"]

answering_all(__name__)
