"""Privacy losses, one class for each kind, and their composition: ``docs/theory/accounting.md``."""

from ppdp.privacy.losses.base import Loss, Part
from ppdp.privacy.losses.choices import BoundedRange, Pure
from ppdp.privacy.losses.noise import DiscreteLaplace, Gaussian, Laplace, ScalarLaplace
from ppdp.privacy.losses.training import FixedSizeSamples, HiddenIterate, PoissonSamples

__all__ = [
    "BoundedRange",
    "DiscreteLaplace",
    "FixedSizeSamples",
    "Gaussian",
    "HiddenIterate",
    "Laplace",
    "Loss",
    "Part",
    "PoissonSamples",
    "Pure",
    "ScalarLaplace",
]
