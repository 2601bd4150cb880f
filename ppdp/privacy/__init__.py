"""Privacy losses, exact Gaussian accounting, and noise."""

from ppdp.privacy.losses.sketch import SketchLoss
from ppdp.privacy.losses.wishart import WishartLoss

__all__ = ["SketchLoss", "WishartLoss"]
