"""Names of earlier versions: they work for two minor ones, with a ``FutureWarning`` that says the new name.

What is issued keeps its names: formulas, keys of certificates, exported models.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Mapping
from functools import cache
from typing import Any

from ppdp.core.boundary import outside

_FIT_MODE = {"statistics": "fit_mode"}
_FLOOR = {**_FIT_MODE, "floor": "use_floor"}
_GAP = {**_FIT_MODE, "gap": "max_quantile_gap"}
_ALPHA = {**_FIT_MODE, "regularization": "alpha"}
_KEYS = {"keys": "compare"}
_CELL = {"cell": "cell_width"}
_NORMS = {"clip": "max_grad_norm", "coef_norm": "max_coef_norm", "step_size": "learning_rate"}

PARAMETERS: dict[str, dict[str, str]] = {
    "ClusterDeduplicator": {**_KEYS, "eta": "radius"},
    "ClusterQuantizer": {"eta": "radius"},
    "Deduplicator": {**_KEYS, "key": "subset", "labels": "label_rule"},
    "GridDeduplicator": {**_KEYS, **_CELL, "labels": "label_rule"},
    "GridQuantizer": {**_CELL, "ramp": "soft_edge"},
    "LinearModel": _NORMS,
    "LSHDeduplicator": {**_KEYS, "rows": "rows_per_band"},
    "MeanImputer": _FLOOR,
    "MedianImputer": _GAP,
    "MinMaxScaler": _GAP,
    "PCA": {**_FIT_MODE, "center": "with_mean", "basis": "public_basis"},
    "Pipeline": {"invalid": "on_invalid"},
    "PrivateLoRA": {"clip": "max_grad_norm"},
    "RegressionImputer": _ALPHA,
    "RobustScaler": _GAP,
    "SoftPCA": _ALPHA,
    "StandardScaler": _FLOOR,
    "TargetMeanEncoder": {"smoothing": "smooth"},
    "TrimmedMeanImputer": _FIT_MODE,
}
"""Old and new names of parameters, by the class or the function that has them."""


@cache
def renamed_parameters(kind: Any) -> Mapping[str, str]:
    """Old and new names of the parameters of a class of ours, or of one of somebody else on it."""
    ours = (base for base in kind.__mro__ if base.__module__.startswith("ppdp."))
    renamed = (pair for base in ours for pair in PARAMETERS.get(base.__name__, {}).items())
    return {old: new for old, new in renamed if old not in inspect.signature(kind.__init__).parameters}


def under_new_names(whose: str, renamed: Mapping[str, str], named: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments under the new names of parameters; what is given under both names stays, and is refused as unknown."""
    old = [name for name in named if renamed.get(name, name) not in named]
    for name in old:
        warn_of_name(f"{name}= of {whose}", f"{renamed[name]}=")
    return {renamed[name] if name in old else name: value for name, value in named.items()}


def under_earlier_name(owner: Any, old: str, new: str) -> Any:
    """The method that a class of somebody else's defines under its old name; none is `NotImplementedError`."""
    if not hasattr(type(owner), old):
        raise NotImplementedError
    warn_of_name(f"the method {old} of {type(owner).__name__}", new)
    return getattr(owner, old)


def warn_of_name(old: str, new: str) -> None:
    """Say that a name has changed, to whoever wrote the old one."""
    warnings.warn(f"{old} is now {new}; the old name will be removed.", FutureWarning, stacklevel=outside())
