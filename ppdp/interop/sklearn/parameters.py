"""Parameters of somebody else's estimator: used, harmless, or refused."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ppdp.core.checks import shown
from ppdp.exceptions import InvalidParameter, PpdpError

_COMPUTATION = """
    algorithm average compute_inverse_components copy copy_X early_stopping epsilon eta0 iterated_power learning_rate
    max_iter n_iter n_iter_no_change n_jobs n_oversamples power_iteration_normalizer power_t random_state shuffle solver
    subsample svd_solver tol validation_fraction verbose warm_start
"""
_FORM = """
    accept_sparse check_inverse clip dense_output dtype dual feature_name_combiner feature_names_out
    force_int_remainder_cols intercept_scaling inv_kw_args inverse_func keep_empty_features l1_ratio order
    quantile_method sparse_output sparse_threshold validate
"""
_HARMLESS = frozenset(f"{_COMPUTATION} {_FORM}".split())
"""How a result is computed or stored; the twins have their own ways."""


@dataclass
class Step:
    """One step of somebody else's pipeline: its class and parameters are looked at, and nothing that was fitted."""

    name: str
    estimator: Any
    changed: list[str] = field(default_factory=list)
    """How the twin differs, in plain words."""
    ignored: list[str] = field(default_factory=list)
    """Parameters without a meaning for the twin."""

    @property
    def kind(self) -> str:
        """Name of its class, if that is one of scikit-learn's."""
        return own_name(self.estimator)

    def given(self) -> dict[str, Any]:
        """Its parameters."""
        found: dict[str, Any] = self.estimator.get_params(deep=False)
        return found

    def read(self, *used: str, fixes: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Its parameters, of which only those ``used`` and harmless ones may differ from their defaults."""
        given, signature = self.given(), inspect.signature(type(self.estimator)).parameters
        for name, value in given.items():
            if name in used or (name in signature and _same(value, signature[name].default)):
                continue
            if name not in _HARMLESS:
                self.refuse(f"{name}={shown(value)} has no twin and would change the result.", (fixes or {}).get(name))
            self.ignored.append(name)
        return given

    @contextmanager
    def reading(self) -> Iterator[None]:
        """In this context its parameters are read: whatever they raise by themselves is refused, and names it."""
        try:
            yield
        except (PpdpError, Warning):
            raise
        except Exception as error:  # a parameter may be of any class
            kind = type(error).__name__
        else:
            return
        self.refuse(f"a parameter of it cannot be read ({kind}).", "parameters of the types that scikit-learn takes.")

    def refuse(self, why: str, fix: str | None = None) -> NoReturn:
        """Say what has no twin, and what to do."""
        raise InvalidParameter(why, stage=self.name, fix=fix or "leave it at its default.")


def own_name(estimator: Any) -> str:
    """Name of the class if it is exactly one of scikit-learn's, else empty: a subclass may do anything."""
    kind = type(estimator)
    return kind.__name__ if kind.__module__.partition(".")[0] == "sklearn" else ""


def _same(value: Any, default: Any) -> bool:
    """Whether a parameter has its default; NaN is the same as NaN."""
    try:
        return value is default or bool(value == default) or (value != value and default != default)
    except Exception:  # an array, or of a class of the user's own
        return False


def is_word(value: Any, *words: str | None) -> bool:
    """Whether a parameter, which may be anything, is one of these words."""
    return (value is None or isinstance(value, str)) and value in words
