"""Measurements of OpenDP, which state their own privacy map, and its PCA, which is given an epsilon."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from adapters._library import foreign
from ppdp.audit import ForeignTarget
from ppdp.core.checks import number, positive
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.renyi import gaussian_curve, renyi_epsilon

__all__ = ["opendp_pca_target", "opendp_target"]

INSTALL = 'pip install "opendp[scikit-learn]".'


def opendp_target(
    name: str,
    measurement: Any,
    left: Any,
    right: Any,
    *,
    d_in: float = 2,
    epsilon: float | None = None,
    delta: float | None = None,
    seen: Callable[[Any], Any] | None = None,
    errors: tuple[type[Exception], ...] = (),
) -> ForeignTarget:
    """Invocations of a measurement, claimed to be as private as its privacy map says.

    What the map says is read by its output measure: epsilon under the max divergence, (epsilon, delta) under its
    approximate form. Under the zero-concentrated divergence it says rho, which bounds the Rényi curve by ``alpha rho``
    and does not promise Gaussian privacy: what is attacked is the epsilon that this curve gives at ``delta``. Under the
    smoothed max divergence it is the profile's epsilon at ``delta``.

    Parameters
    ----------
    name : str
        For people.
    measurement : opendp.mod.Measurement
        What is invoked; its noise is the library's own, which knows no seed.
    left, right : object
        Two members of its input domain that are at most ``d_in`` apart.
    d_in : float, default=2
        In its input metric: under ``symmetric_distance`` 1 for a row that is added or removed, 2 for one replaced.
    epsilon : float, optional
        As claimed; by default what ``measurement.map(d_in)`` says.
    delta : float, optional
        In (0, 1): that which is claimed with ``epsilon``, or where a measure that has no epsilon of its own is
        compared. A large one, such as 0.01, needs fewer runs.
    seen : callable, optional
        The numbers in what the measurement returns, where it returns something else than numbers.
    errors : tuple of exception types, default=()
        That are outcomes, see :class:`ForeignTarget`.

    Raises
    ------
    InvalidParameter
        If OpenDP is not installed, or the claim is under another measure or needs a delta.
    """
    foreign("opendp.prelude", INSTALL)
    if delta is not None and number("delta", delta, above=0, fix="0 < delta < 1.") >= 1:
        raise InvalidParameter(f"delta must be below 1, got {delta!r}.", fix="0 < delta < 1.")
    if epsilon is None:
        claimed = _claimed(str(measurement.output_measure), measurement.map(d_in), delta)
    else:
        claimed = positive("epsilon", epsilon), delta or 0.0

    def invoked(data: Any, noise: object) -> Any:
        found = measurement(data)
        return found if seen is None else seen(found)

    return ForeignTarget(name, invoked, left, right, *claimed, library="opendp", errors=errors)


def _claimed(measure: str, found: Any, delta: float | None) -> tuple[float, float]:
    """Epsilon and delta of what a privacy map says under an output measure."""
    if measure == "MaxDivergence":
        return float(found), 0.0
    if measure == "Approximate(MaxDivergence)":
        return float(found[0]), float(found[1])
    if measure not in ("ZeroConcentratedDivergence", "SmoothedMaxDivergence"):
        raise InvalidParameter(
            f"the output measure {measure} is not known, so what the privacy map says is no epsilon.",
            fix="pass the epsilon and delta that it stands for.",
        )
    if delta is None:
        raise InvalidParameter(
            f"under the output measure {measure} the privacy map says no epsilon, but one for every delta.",
            fix="pass delta=, at which the claim is attacked.",
        )
    if measure == "SmoothedMaxDivergence":
        return float(found.epsilon(delta)), delta
    return renyi_epsilon(gaussian_curve(math.sqrt(2 * float(found))), delta), delta


def opendp_pca_target(
    name: str,
    model: Any,
    left: Any,
    right: Any,
    *,
    epsilon: float | None = None,
    seen: Callable[[Any], Any] | None = None,
) -> ForeignTarget:
    """Fits of ``opendp.extras.sklearn.decomposition.PCA``, claimed to be ``model.epsilon``-private.

    One run is one invocation of the measurement that ``fit`` invokes, without scikit-learn around it. OpenDP 0.16 does
    not say for which neighbours ``epsilon`` holds. It hands ``2 * epsilon / n_changes`` to ``make_private_pca`` as that
    of one replaced row, so the privacy map of the measurement says twice ``epsilon`` with ``n_changes=1``, the default,
    and ``epsilon`` with ``n_changes=2``. To attack what the map says, pass ``epsilon=model.measurement().map(2)``.

    Parameters
    ----------
    name : str
        For people.
    model : PCA
        Not fitted.
    left, right : array of shape (n_samples, n_features)
        Datasets for which ``epsilon`` is read as a claim, such as those that differ by one replaced row.
    epsilon : float, optional
        As claimed; by default that of the model.
    seen : callable, optional
        What an attacker makes of the fitted model, instead of its mean, variances and components.

    Raises
    ------
    InvalidParameter
        If OpenDP is not installed.
    """
    foreign("opendp.prelude", INSTALL)
    measurement = model.measurement()

    claimed = float(model.epsilon) if epsilon is None else epsilon
    return opendp_target(name, measurement, left, right, epsilon=claimed, seen=seen or _learned)


def _learned(model: Any) -> Any:
    return [model.mean_, model.explained_variance_, model.components_]
