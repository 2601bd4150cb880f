"""Privacy losses, exact Gaussian accounting, and noise."""

from ppdp.core.keywords import answering_all
from ppdp.privacy.losses.projection import NoisyProjectionLoss
from ppdp.privacy.losses.sketch import SketchLoss
from ppdp.privacy.losses.wishart import WishartLoss

__all__ = ["NoisyProjectionLoss", "SketchLoss", "WishartLoss"]

answering_all(__name__)
