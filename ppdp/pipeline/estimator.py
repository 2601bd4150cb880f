"""What a pipeline and a search share: copies and who pays for their fits, how a fit begins, and what is released."""

from __future__ import annotations

import copy
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn import get_config
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from ppdp.core.boundary import called_from
from ppdp.core.domain import Domain
from ppdp.core.keywords import Answering, answering
from ppdp.data import validation
from ppdp.data.rows import Array
from ppdp.exceptions import InvalidParameter, LedgerError, UnsupportedOrder
from ppdp.privacy.ledger.fit_charging import FitCharge, charged_to, mark_pickled, open_ledger
from ppdp.privacy.ledger.ledger import Ledger


@dataclass(frozen=True, slots=True)
class EstimatorState:
    """What an estimator remembers beside its parameters and what its fit has released."""

    promised: Domain | None = None  # facts for which it was planned, and which its next fit must have
    owed: str | None = None  # account that paid for the fit of which this is a pickled copy, and pays for its next one
    charged: FitCharge | None = None  # who paid for its fit in this process
    part: bool = False  # whether another estimator takes it along in a pickle


def if_predicts(method: str) -> Any:
    """Only if the last step has this method."""
    return available_if(lambda self: self._has_method(method))


class PrivateEstimator(Answering, BaseEstimator, ABC):
    """An estimator with the parameters ``ledger`` and ``dataset`` that is fitted on private rows and may predict.

    A pickle takes the open ledger along, or counts as a fit that nobody saw. One that is fitted is made to be kept and
    read anywhere, so it only notes the account: it is not fitted again without it.
    """

    ledger: Any
    dataset: Any
    _state = EstimatorState()
    _made_where = "fit(X, y) first."

    @abstractmethod
    def _has_method(self, method: str) -> bool:
        """Whether the model has a method; the error of the attribute says that it has not."""

    @abstractmethod
    def _predict_with(self, method: str, X: Any, *y: Any) -> Any:
        """What that method gives for raw rows."""

    @abstractmethod
    def _exportable(self) -> Any:
        """The fitted pipeline that is exported."""

    @abstractmethod
    def __sklearn_is_fitted__(self) -> bool:
        """Whether anything was released."""

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        """As scikit-learn writes it, but never without the guarantee."""
        text: str = super().__repr__(N_CHAR_MAX)
        defaults = inspect.signature(type(self)).parameters
        shown = {name: getattr(self, name) for name in ("epsilon", "delta") if name in defaults}
        silent = [f"{name}={value!r}" for name, value in shown.items() if repr(value) == repr(defaults[name].default)]
        if not silent or not get_config()["print_changed_only"]:
            return text
        return f"{text.removesuffix(')')}, {', '.join(silent)})"

    def __copy__(self) -> Self:
        return self._twin(self.__dict__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self._twin(copy.deepcopy(self.__dict__, memo))

    def __sklearn_clone__(self) -> Self:
        cloned: Self = super().__sklearn_clone__()
        kept = EstimatorState(self._state.promised, self._state.owed)
        if kept != EstimatorState():
            cloned._state = kept
        return cloned

    def _twin(self, state: Mapping[str, Any]) -> Self:
        """A copy in this process, which is not on its way to another one."""
        duplicate = object.__new__(type(self))
        duplicate.__dict__ |= state
        return duplicate

    def __getstate__(self) -> dict[str, Any]:
        remembered = replace(self._state, charged=None)
        state: dict[str, Any] = {**super().__getstate__(), "_state": remembered}
        if self.ledger is not None or remembered.part:
            return state
        opened = open_ledger()
        if self.__sklearn_is_fitted__():
            return state if opened is None else {**state, "_state": replace(remembered, owed=opened.account)}
        if opened is None:
            mark_pickled(self.dataset)
        return {**state, "ledger": opened}  # which refuses to be pickled if it is in memory

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._state.part:
            remember(self, part=False)
        elif self.ledger is None and not self._was_paid():
            mark_pickled(self.dataset)

    def _was_paid(self) -> bool:
        """Whether its fit was charged to a ledger."""
        certificate = getattr(self, "certificate_", None)
        issued = None if certificate is None else certificate.record.issued
        return issued is not None and issued.ledger is not None

    @if_predicts("predict")
    @answering
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict with the released model.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            Raw rows, as in ``fit``.
        """
        return np.asarray(self._predict_with("predict", X))

    @if_predicts("predict_proba")
    @answering
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, shape (n_samples, n_classes)."""
        return np.asarray(self._predict_with("predict_proba", X))

    @if_predicts("predict_log_proba")
    @answering
    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of each class, shape (n_samples, n_classes)."""
        return np.asarray(self._predict_with("predict_log_proba", X))

    @if_predicts("decision_function")
    @answering
    def decision_function(self, X: Any) -> Array:
        """Signed distance from the decision boundary."""
        return np.asarray(self._predict_with("decision_function", X))

    @if_predicts("score")
    @answering
    def score(self, X: Any, y: Any) -> float:
        """Accuracy of the released model, R² or D² of a regression; on private rows no certificate covers it."""
        return float(self._predict_with("score", X, y))

    def export(self, path: str | os.PathLike[str], *, conditional: bool = False, overwrite: bool = False) -> str:
        """Write the release with its certificate: the only thing that may leave the building.

        Arrays, JSON and words, no pickle; :func:`ppdp.load` verifies them and gives a pipeline that predicts. Whenever
        the process is killed, the export is there whole or not at all.

        Parameters
        ----------
        path : path-like
            A ``.zip``, or else a new folder.
        conditional : bool, default=False
            Whether a CONDITIONAL certificate may leave; it says so first wherever it is read.
        overwrite : bool, default=False
            Whether a ``.zip`` may take the place of an earlier export.

        Returns
        -------
        str
            SHA-256 of the export, the same for folder and zip: ``ppdp.load(path, sha256=...)`` takes no other one.

        Raises
        ------
        ExportError
            If the noise was seeded, labels were read from y, the certificate is CONDITIONAL and you did not say that
            you know, or something else stands at the path.
        """
        from ppdp.pipeline.release.export import export

        fitted = self._exportable()
        return export(fitted, path, fitted._state.charged, conditional=conditional, overwrite=overwrite)


def state_of(estimator: PrivateEstimator) -> EstimatorState:
    """What an estimator remembers beside parameters and released values."""
    return estimator._state


def remember(estimator: PrivateEstimator, **changes: Any) -> None:
    """Change some of what it remembers."""
    estimator._state = replace(estimator._state, **changes)


_DRAWN = {"bagging": "_bagging", "boosting": "_weight_boosting"}


def begin_fit(estimator: PrivateEstimator) -> None:
    """Drop what an earlier fit left, so that one that fails has no certificate; refuse what repeats rows."""
    drawn = next((name for name, module in _DRAWN.items() if called_from(f"sklearn.ensemble.{module}")), None)
    if drawn is not None:
        what = f"{drawn} draws some rows several times, sets seeds, and fits many models on the same people."
        fix = "fit this pipeline alone: noise is added once, and averages over models cost budget for each."
        raise UnsupportedOrder(what, fix=fix)
    for name in [name for name in vars(estimator) if name.endswith("_") and not name.startswith("_")]:
        delattr(estimator, name)


def check_account(estimator: PrivateEstimator) -> None:
    """Refuse to fit a copy if another ledger than that under which it was pickled, or none, would be charged."""
    inner = getattr(estimator, "estimator", None)
    owed = estimator._state.owed or (inner._state.owed if isinstance(inner, PrivateEstimator) else None)
    ledger = charged_to(estimator.ledger)
    if owed is not None and (ledger is None or ledger.account != owed):
        what = f"this fitted copy was pickled in the with-block of the ledger {owed}, and a new fit is charged to it."
        fix = "set_params(ledger=...) in the copy, or send a clone, which takes along a ledger with a path."
        raise LedgerError(what, fix=fix)


_MADE = {
    "adjacency": "an object of the class Adjacency, as Adjacency.user_level(...) makes one.",
    "dataset": "a name in quotes, as dataset='survey of 2024'.",
}


def check_kinds(estimator: Any, **kinds: type) -> None:
    """Refuse parameters that are neither None nor of their kind; ledger and dataset among them."""
    for name, kind in {"ledger": Ledger, **kinds, "dataset": str}.items():
        value = getattr(estimator, name)
        if value is not None and not isinstance(value, kind):
            what = f"{name} must be a {kind.__name__} or None, got {type(value).__name__}."
            of_class = f"an object of the class {kind.__name__}, as {kind.__name__}(...) makes one."
            raise InvalidParameter(what, fix=_MADE.get(name, of_class))


def form_of(
    estimator: Any, X: Any, coded: Callable[[Any], Any], *, unbounded: bool = False, texts: bool = False
) -> tuple[Any, tuple[str, ...] | None]:
    """The table of a fit, of which only the form was looked at, and the names of its columns."""
    table = validation.table_of(X, texts=texts)
    validation.check_form(estimator, table, coded, reset=True, unbounded=unbounded)
    names = tuple(estimator.feature_names_in_) if hasattr(estimator, "feature_names_in_") else None
    validation.warn_of_cells(names)
    return table, names


def same_kind(tags: Any, own: Any) -> None:
    """Give tags the kind of an estimator that decides what comes out."""
    for name in ("estimator_type", "classifier_tags", "regressor_tags", "target_tags"):
        setattr(tags, name, getattr(own, name))


def as_part(estimator: Any) -> Any:
    """An estimator that is pickled as a part of another one, which takes the account along."""
    if not isinstance(estimator, PrivateEstimator):
        return estimator
    part = copy.copy(estimator)
    remember(part, part=True)
    return part
