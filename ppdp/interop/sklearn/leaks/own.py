"""What ppdp's own classes tell, inside a ppdp pipeline and outside of one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ppdp.interop.sklearn.leak import NOTHING, UNKNOWN, Leak
from ppdp.interop.sklearn.table import TABLE

__all__ = ["STRANGERS", "leak_of_own", "leak_of_pipeline"]

Given = Mapping[str, Any]

_NEAR = Leak("high", "which rows repeat each other, or lie close to each other")
_ALONE: dict[str, Leak] = {
    **dict.fromkeys(("Deduplicator", "GridDeduplicator", "LSHDeduplicator", "ClusterDeduplicator"), _NEAR),
    **dict.fromkeys(("NormClipper", "RandomProjection", "RowMap"), Leak("none", NOTHING)),
    "ClusterQuantizer": TABLE["KMeans"].leak,
    "GridQuantizer": Leak("high", "the length of the longest row, unless it is declared"),
    "MeanImputer": TABLE["SimpleImputer"].leak,
    "MedianImputer": Leak("high", "medians of columns, which are values of single rows"),
    "MinMaxScaler": Leak("high", "quantiles of columns, which are values of single rows"),
    "PCA": TABLE["PCA"].leak,
    "RegressionImputer": TABLE["IterativeImputer"].leak,
    "RobustScaler": TABLE["RobustScaler"].leak,
    "SoftPCA": TABLE["PCA"].leak,
    "StandardScaler": TABLE["StandardScaler"].leak,
    "TrimmedMeanImputer": TABLE["SimpleImputer"].leak,
}
_COVERED = Leak("none", "nothing that its certificate does not cover")
_INTO = "put it into ppdp.Pipeline(..., epsilon=..., delta=...): alone it is exact, and no certificate covers it."
_LAST = "make it the last step of ppdp.Pipeline(..., epsilon=..., delta=...), which sets the noise and accounts for it."
_SEEDED = Leak(
    "high",
    "what its noise is to hide: the noise comes from a seed, and whoever knows the seed takes it away",
    "",
    "random_state=None.",
)
_UNTESTED = Leak(
    "declared",
    "nothing, if what its bounds assume of the rows holds: gate=None, so nobody tests it",
    "",
    "leave gate out, and it is tested.",
)
_DIFFPRIVLIB = Leak(
    "declared",
    "nothing, if diffprivlib's model does what it says: nobody checked, and the certificate is CONDITIONAL",
    "",
    "one of ppdp.mechanisms.",
)
STRANGERS = Leak(
    "declared",
    "nothing, if the bound that its author has registered is right: nobody checked",
    "",
    "ppdp.testing tries to exceed it.",
)


def leak_of_own(estimator: Any, given: Given, *, covered: bool) -> Leak:
    """What is known of a stage, a mechanism or a search of ppdp.

    Parameters
    ----------
    estimator : estimator
        Of ppdp.
    given : mapping of str to object
        Its parameters.
    covered : bool
        Whether it stands in a ppdp pipeline, whose certificate covers it.
    """
    name = type(estimator).__name__
    if name == "Public":
        return _public(given)
    if "noise_scale" in given:
        return _mechanism(name, given, covered)
    if name == "PrivateSearchCV":
        return _SEEDED if given.get("random_state") is not None else _COVERED
    if covered:
        return _COVERED
    if name == "MinMaxScaler" and given.get("quantiles") is None:
        return _ALONE["RowMap"]
    known = _ALONE.get(name, UNKNOWN)
    if known.severity == "none":
        return known
    return replace(known, leaks=f"{known.leaks}; without noise, outside a ppdp.Pipeline", twin=name, fix=_INTO)


def _public(given: Given) -> Leak:
    inner = given.get("transformer")
    inner = getattr(inner, "estimator", inner) if type(inner).__name__ == "FrozenEstimator" else inner
    told = f"nothing, if its {type(inner).__name__} was fitted on public data: nobody checked"
    return Leak("declared", told, "", "make sure of it; the certificate says that you declared it.")


def _mechanism(name: str, given: Given, covered: bool) -> Leak:
    """A pipeline sets the noise and draws it itself; alone, a mechanism takes what its parameters say."""
    if covered:
        known = _DIFFPRIVLIB if name == "Diffprivlib" else _COVERED
        unused = [word for word in ("noise_scale", "random_state") if given.get(word) is not None]
        return replace(known, leaks=f"{known.leaks}; not used here: {', '.join(unused)}") if unused else known
    if given.get("random_state") is not None:
        return replace(_SEEDED, twin=name, fix=f"random_state=None, and {_LAST}")
    scale = given.get("noise_scale")
    noise = "noise of a size that is not set" if scale is None else f"noise of size {scale!r}, which you chose"
    return Leak("high", f"its answer with {noise}: nobody accounts for it outside a ppdp.Pipeline", name, _LAST)


def leak_of_pipeline(given: Given) -> Leak | None:
    """What a ppdp pipeline adds to its steps; None if nothing.

    Parameters
    ----------
    given : mapping of str to object
        Its parameters.
    """
    if given.get("random_state") is not None:
        return _SEEDED
    return _UNTESTED if given.get("gate", "auto") is None else None
