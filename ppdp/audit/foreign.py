"""A release that somebody else's library makes, with what that library claims of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from ppdp.audit.digests import code_of, digest_of
from ppdp.audit.scores import numbers_of
from ppdp.audit.target import Target
from ppdp.core.checks import number
from ppdp.data.rows import Array
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import Pure
from ppdp.privacy.noise.sampler import Noise
from ppdp.testing.confidence import Certified


@dataclass(frozen=True)
class ForeignTarget(Target):
    """A release of another library on two neighbouring datasets.

    What it claims is taken literally: (epsilon, delta)-privacy for this pair. Its noise is its own; only a seeded
    attack, a test of the audit itself, hands it a seed. Its warnings are silenced.

    Attributes
    ----------
    name : str
        For people, and for the digest: with the code of ``release`` it stands for all that decides what is published.
    release : callable
        ``release(data, noise)``: what is published of one dataset; ``noise`` tells whether the run is seeded.
    left, right : object
        Neighbouring datasets, made up, in the form that ``release`` takes.
    epsilon, delta : float
        As claimed.
    library : str
        Whose release it is, as it is called in the package index; its version belongs to the digest.
    errors : tuple of exception types, default=()
        That the library raises because of what it is given: such an error is an outcome that an attacker sees. Any
        other error ends the attack.
    """

    name: str
    release: Callable[[Any, Noise], Any]
    left: Any
    right: Any
    epsilon: float
    delta: float = 0.0
    library: str = "ppdp"
    errors: tuple[type[Exception], ...] = ()

    def __post_init__(self) -> None:
        number("epsilon", self.epsilon, least=0)
        number("delta", self.delta, least=0, most=1)

    @cached_property
    def certified(self) -> Certified:
        """The claim, of which nothing is known but its two numbers."""
        parts = (Pure(epsilon=self.epsilon),) if self.epsilon else ()
        return Certified(PrivacyLoss(failure=self.delta, parts=parts), self.epsilon, self.delta)

    @property
    def digest(self) -> str:
        """Of the name, the claim, the code of the release, and the version of the library."""
        claim = repr(self.epsilon), repr(self.delta)
        return digest_of(self.name, *claim, self.library, _version(self.library), code_of(self.release))

    def outcome(self, side: int, noise: Noise) -> Array:
        """What was published, or that the library raised one of its errors."""
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found = self.release((self.left, self.right)[side], noise)
            except self.errors:
                return self._refused
        return np.append(1.0, numbers_of(found))


def foreign(module: str, fix: str) -> Any:
    """A module of another library; if it is not installed, an InvalidParameter that says how to install it."""
    try:
        return import_module(module)
    except ImportError:
        raise InvalidParameter(f"{module.partition('.')[0]} is not installed.", fix=fix) from None


def seed_of(noise: Noise) -> int | None:
    """A seed for another library's generator where the attack is seeded; None leaves the noise to the library."""
    return int(noise.standard_lattice(1)[0]) % 2**31 if noise.seeded else None


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"
