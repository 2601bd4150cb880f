"""Figures; need the extra ``ppdp[plot]``."""

from ppdp.plot.distance import distance

__all__ = ["distance"]
