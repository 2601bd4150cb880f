"""Copies of stages that hold public or released values only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ppdp.core.domain import Domain


def hold(twin: Any, statistics: Mapping[str, Any], domain: Domain) -> Any:
    """A copy of a stage, once it holds statistics and has the columns of a domain."""
    twin.hold(statistics)
    twin.n_features_in_ = domain.d
    if domain.feature_names is not None:
        twin.feature_names_in_ = np.asarray(domain.feature_names, dtype=object)
    return twin
