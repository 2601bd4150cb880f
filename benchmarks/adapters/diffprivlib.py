"""Models and transformers of diffprivlib as targets: a new copy is fitted in every run, and what it learned is seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from sklearn.base import clone

from adapters._library import foreign
from ppdp.audit import ForeignTarget
from ppdp.audit.target import seed_of
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.noise.sampler import Noise

__all__ = ["LEARNED", "diffprivlib_target"]

INSTALL = 'pip install "ppdp[diffprivlib]", which needs scikit-learn below 1.8.'

LEARNED = {
    "StandardScaler": ("mean_", "var_"),
    "PCA": ("mean_", "components_", "explained_variance_"),
    "LinearRegression": ("coef_", "intercept_"),
    "LogisticRegression": ("coef_", "intercept_"),
    "GaussianNB": ("class_prior_", "theta_", "var_"),
    "KMeans": ("cluster_centers_",),
}
"""What a fitted model publishes; names of scikit-learn's attributes."""


def diffprivlib_target(
    name: str,
    model: Any,
    left: Sequence[Any],
    right: Sequence[Any],
    *,
    learned: Sequence[str] | None = None,
    seen: Callable[[Any], Any] | None = None,
    errors: tuple[type[Exception], ...] = (),
) -> ForeignTarget:
    """Fits of a model of diffprivlib, claimed to be ``model.epsilon``-private.

    Parameters
    ----------
    name : str
        For people.
    model : estimator
        Of ``diffprivlib.models``; it is copied, never fitted, and its accountant is left alone.
    left, right : sequence of array
        Neighbouring datasets: the arguments of ``fit``, (X,) or (X, y).
    learned : sequence of str, optional
        Attributes that are published; by default what the model has learned by :data:`LEARNED`.
    seen : callable, optional
        What an attacker makes of the fitted model, instead of its attributes as they are.
    errors : tuple of exception types, default=()
        That are outcomes, see :class:`ForeignTarget`.

    Raises
    ------
    InvalidParameter
        If diffprivlib is not installed, or the model is not one of its own.
    """
    library = foreign("diffprivlib", INSTALL)
    if not type(model).__module__.startswith("diffprivlib."):
        raise InvalidParameter("this is no model of diffprivlib.", fix="an instance of a class in diffprivlib.models.")
    kind = type(model).__name__
    if learned is None and seen is None and kind not in LEARNED:
        raise InvalidParameter(f"it is not known what a {kind} publishes.", fix="name its attributes by learned=.")
    names = tuple(learned or LEARNED.get(kind, ()))

    def fitted(data: Sequence[Any], noise: Noise) -> Any:
        own = {"accountant": library.BudgetAccountant(), "random_state": seed_of(noise)}
        found = clone(model).set_params(**own).fit(*data)
        return seen(found) if seen is not None else [getattr(found, attribute) for attribute in names]

    return ForeignTarget(name, fitted, left, right, float(model.epsilon), library="diffprivlib", errors=errors)
