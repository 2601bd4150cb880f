"""Measurements of OpenDP, which state their own privacy map, and its PCA, which is given an epsilon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ppdp.audit.adapters.foreign import ForeignTarget, foreign
from ppdp.checks import positive

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
    seen: Callable[[Any], Any] | None = None,
    errors: tuple[type[Exception], ...] = (),
) -> ForeignTarget:
    """Invocations of a measurement whose output measure is the max divergence: pure privacy.

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
    seen : callable, optional
        The numbers in what the measurement returns, where it returns something else than numbers.
    errors : tuple of exception types, default=()
        That are outcomes, see :class:`ForeignTarget`.

    Raises
    ------
    InvalidParameter
        If OpenDP is not installed.
    """
    foreign("opendp.prelude", INSTALL)
    claimed = float(measurement.map(d_in)) if epsilon is None else positive("epsilon", epsilon)

    def invoked(data: Any, noise: object) -> Any:
        found = measurement(data)
        return found if seen is None else seen(found)

    return ForeignTarget(name, invoked, left, right, claimed, library="opendp", errors=errors)


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

    One run is one invocation of the measurement that ``fit`` invokes, without scikit-learn around it.

    Parameters
    ----------
    name : str
        For people.
    model : PCA
        Not fitted.
    left, right : array of shape (n_samples, n_features)
        Datasets that differ by ``model.n_changes`` replaced rows.
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
