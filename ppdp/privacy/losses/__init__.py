"""Privacy losses, one class for each kind: ``docs/theory/accounting.md``."""

from ppdp.core.keywords import answering_all
from ppdp.privacy.losses.kinds import (
    BoundedRange,
    DiscreteLaplace,
    FixedSizeSamples,
    Gaussian,
    HiddenIterate,
    Laplace,
    PoissonSamples,
    Pure,
    ScalarLaplace,
    ZeroConcentrated,
)
from ppdp.privacy.losses.part import KINDS, Loss, Part
from ppdp.privacy.losses.projection import NoisyProjectionLoss
from ppdp.privacy.losses.signs import GaussianSigns, JointSigns, LaplaceSigns, RandomizedResponse
from ppdp.privacy.losses.sketch import SketchLoss
from ppdp.privacy.losses.wishart import WishartLoss

__all__ = [
    "KINDS",
    "BoundedRange",
    "DiscreteLaplace",
    "FixedSizeSamples",
    "Gaussian",
    "GaussianSigns",
    "HiddenIterate",
    "JointSigns",
    "Laplace",
    "LaplaceSigns",
    "Loss",
    "NoisyProjectionLoss",
    "Part",
    "PoissonSamples",
    "Pure",
    "RandomizedResponse",
    "ScalarLaplace",
    "SketchLoss",
    "WishartLoss",
    "ZeroConcentrated",
]

answering_all(__name__)
