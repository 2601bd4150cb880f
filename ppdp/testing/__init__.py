"""Checks for authors of stages and mechanisms, the registry of examples, and neighbouring datasets to try on them."""

from ppdp.testing.mechanisms import check_mechanism
from ppdp.testing.registry import REGISTRY, examples, register
from ppdp.testing.stages import check_stage

__all__ = ["REGISTRY", "check_mechanism", "check_stage", "examples", "register"]
