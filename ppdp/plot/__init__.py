"""Figures; need the extra ``ppdp[plot]``. None of them takes data, each returns the axis it drew on."""

from ppdp.core.keywords import answering_all
from ppdp.plot.distance import distance
from ppdp.plot.gate import gate
from ppdp.plot.membership import membership
from ppdp.plot.noise import advice, comparison
from ppdp.plot.privacy import epsilon_delta
from ppdp.plot.utility import privacy_utility

__all__ = ["advice", "comparison", "distance", "epsilon_delta", "gate", "membership", "privacy_utility"]

answering_all(__name__)
