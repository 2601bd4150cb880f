"""A model of diffprivlib as the last step of a pipeline: ``docs/theory/diffprivlib.md``."""

from __future__ import annotations

import copy
import sys
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from ppdp.bounds import lookup
from ppdp.bounds.diffprivlib import ROUNDED, VERSION
from ppdp.core.checks import classes_of, pair
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows, encode_labels, encode_targets
from ppdp.data.summary import observed_domain
from ppdp.exceptions import InvalidParameter, InvalidValue, MissingBound, StageFailed
from ppdp.interop.diffprivlib.draws import Draws
from ppdp.interop.diffprivlib.models import REFUSED, SUPPORTED, Adapter
from ppdp.mechanisms.base import Mechanism, Question
from ppdp.privacy.noise.sampler import Noise

__all__ = ["Diffprivlib"]

Array = NDArray[np.float64]
INSTALL = 'pip install "ppdp[diffprivlib]"'


def _learns(kind: str) -> Any:
    """Whether the model is a classifier or a regressor, for ``available_if``."""

    def check(self: Diffprivlib) -> bool:
        if _kind(self.model) != kind:
            raise AttributeError(f"this model is no {kind}.")
        return True

    return check


class Diffprivlib(Mechanism):
    """A model of diffprivlib behind ordinary pre-processing, with a proved guarantee for all of it.

    The pipeline sets the model's ``epsilon``; bounds, norms and labels come from the public domain, never from the
    rows. What a model's own epsilon is worth, on one replaced row and behind each stage, was proved from the source of
    diffprivlib 0.6.6; it is not always what diffprivlib says. All noise is drawn in this process, from the operating
    system's entropy, whatever ``numpy.random.seed`` and ``joblib.parallel_config`` were told.

    Parameters
    ----------
    model : diffprivlib estimator
        LogisticRegression (``C``, ``fit_intercept`` are yours to choose), LinearRegression (``fit_intercept``) or
        GaussianNB (``var_smoothing``); all else must be left at its default. RandomForestClassifier is refused, since
        its noise can be found by trying 2^31 seeds.
    classes : sequence of labels, optional
        The public labels of a classifier. If absent they are read from ``y``, and the certificate says so.
    y_range : tuple of (low, high), optional
        Public range of a regression's targets; here or in the domain.
    noise_scale : float, optional
        One over the epsilon that diffprivlib is given; a pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels of a classifier.
    coef_, intercept_ : ndarray
        Of linear models, as scikit-learn has them.
    theta_, var_, class_prior_ : ndarray
        Of GaussianNB: means, variances and prior of the classes.

    Notes
    -----
    **Guarantee** (``docs/theory/diffprivlib.md``): pure epsilon at every distance. Certificates are CONDITIONAL: that
    diffprivlib computes in exact arithmetic what its source says is taken at its word.

    **Accountants** of diffprivlib would not count these fits, so a model that was made with one, or while one was the
    default, is refused: use :class:`~ppdp.Ledger`. ``sklearn.base.clone`` of such a model copies its accountant, so it
    is refused as well; clones of this step are not. A default accountant that has no limit and has counted nothing
    cannot be told from the one that diffprivlib makes by itself: it is accepted, and counts nothing.
    """

    needs_y = True
    predicts = True

    def __init__(
        self,
        model: Any = None,
        classes: Sequence[Any] | None = None,
        *,
        y_range: tuple[float, float] | None = None,
        noise_scale: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.classes = classes
        self.y_range = y_range
        self.noise_scale = noise_scale
        self.random_state = random_state

    @classmethod
    def example(cls) -> Diffprivlib:
        """A logistic regression with next to no noise."""
        try:
            from diffprivlib.models import LogisticRegression
        except ImportError:
            raise InvalidParameter("diffprivlib is not installed.", stage=cls.__name__, fix=INSTALL) from None
        return cls(LogisticRegression(), noise_scale=1e-3)

    def assumptions(self) -> tuple[tuple[str, str], ...]:
        return ((type(self.model).__name__, ROUNDED),)

    def _adapter(self) -> Adapter:
        """What is known of the model.

        Raises
        ------
        InvalidParameter
            If nothing is proved for it, or it is known to be no protection.
        """
        found = _known(self.model)
        if found is None:
            names = ", ".join(sorted(name.rpartition(".")[2] for name in SUPPORTED))
            raise InvalidParameter(
                REFUSED.get(_full_name(self.model), "no guarantee has been proved for this model."),
                stage=type(self).__name__,
                fix=f"pass an instance of diffprivlib's {names}, or use a mechanism of ppdp.",
            )
        return found

    def _admitted(self) -> Adapter:
        """What is known of the model, once it may be fitted: version, parameters and accountant are as in the proof."""
        found = self._adapter()
        version = getattr(sys.modules.get("diffprivlib"), "__version__", None)
        if version != VERSION:
            raise InvalidParameter(
                f"the proofs are of diffprivlib {VERSION}, and this is {version or 'none'}.",
                stage=type(self).__name__,
                fix=INSTALL,
            )
        defaults = type(self.model)().get_params(deep=False)
        for name, value in self.model.get_params(deep=False).items():
            if name not in found.free | {"accountant"} and value is not defaults[name] and value != defaults[name]:
                raise InvalidParameter(
                    f"the model's {name} is set from public facts, or must be the default for the proof to hold.",
                    stage=type(self).__name__,
                    fix="leave it out; epsilon is the pipeline's.",
                )
        if _watched(self.model):
            raise InvalidParameter(
                "the model has an accountant of diffprivlib, which would not count this fit.",
                stage=type(self).__name__,
                fix="count fits with a ledger, Pipeline(..., ledger=ppdp.Ledger(...)); call "
                "BudgetAccountant.pop_default() and make the model anew, without accountant= and not by clone.",
            )
        return found

    def __sklearn_clone__(self) -> Diffprivlib:
        """A clone whose model has the same accountant, not a copy, so that it is told from diffprivlib's default."""
        twin: Diffprivlib = super().__sklearn_clone__()
        if hasattr(self.model, "accountant"):
            twin.model.accountant = self.model.accountant
        return twin

    def __getstate__(self) -> dict[str, Any]:
        """Without diffprivlib's default accountant: every process has one of its own."""
        state = dict(super().__getstate__())
        if hasattr(self.model, "accountant") and not _watched(self.model):
            state["model"] = copy.copy(self.model)
            state["model"].accountant = None
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if getattr(self.model, "accountant", ...) is None:
            self.model.accountant = type(self.model)().accountant

    def question(self, domain: Domain, mu: float | None = None) -> Question:
        adapter = self._admitted()
        domain.require("row_norm", type(self).__name__)
        if is_regressor(self):
            count = 1
            self._range(domain)
        else:
            count = self._n_classes(domain)
        parameters = adapter.parameters(self.model, count)
        shape = lookup(adapter.formula, "privacy").shape
        assert shape is not None
        return Question(adapter.formula, parameters, 1, *shape(domain, **parameters), kind="privacy")

    def _n_classes(self, domain: Domain) -> int:
        """Number of classes; two where nothing is known yet."""
        known = domain.classes if self.classes is None else classes_of("classes", self.classes, self)
        if known is not None and len(known) < 2:
            raise InvalidParameter(
                "it needs at least two classes, not one class.",
                stage=type(self).__name__,
                fix="pass classes=(...) to the model.",
            )
        return 2 if known is None else len(known)

    def _range(self, domain: Domain) -> tuple[float, float]:
        known = domain.y_range if self.y_range is None else pair("y_range", self.y_range, self)
        if known is None:
            raise MissingBound(
                "the public range of the targets is not declared.",
                stage=type(self).__name__,
                fix="pass y_range=(low, high) to the model or Domain(y_range=...).",
            )
        return known

    def release(self, rows: Rows, question: Question, noise: Noise, noise_scale: float) -> dict[str, Array]:
        adapter = self._adapter()
        model = clone(self.model).set_params(epsilon=1 / noise_scale, random_state=Draws(noise))
        failure = "diffprivlib could not fit this model"
        sequential = parallel_config(backend="sequential")  # whoever else uses joblib may have chosen processes
        with sequential, warnings.catch_warnings(record=True) as heard, np.errstate(all="ignore"):
            warnings.simplefilter("always")
            try:
                released = adapter.learn(model, rows, question.parameters, question.bound)
                failure = ""
            except Exception:  # whatever it says may quote the rows
                released = np.zeros(0)
        if any(warning.category.__name__ == "PrivacyLeakWarning" for warning in heard):
            failure = "diffprivlib would have read a bound off the rows"
        if failure or released.size != question.size:
            raise StageFailed(f"{failure or 'diffprivlib released something else'}.", stage=type(self).__name__)
        return {"model": _rounded(released)}

    def read(self, released: Mapping[str, Array], domain: Domain, question: Question) -> None:
        fitted = self._adapter().read(np.asarray(released["model"]), domain.d, question.parameters)
        if is_regressor(self):
            low, high = self._range(domain)
            half = high / 2 - low / 2
            fitted = {
                "coef_": half * fitted["coef_"],
                "intercept_": low / 2 + high / 2 + half * fitted["intercept_"][0],
            }
        else:
            self.classes_ = np.asarray(domain.require("classes", type(self).__name__))
        for name, value in fitted.items():
            setattr(self, name, value)

    def fit(self, X: Any, y: Any) -> Diffprivlib:
        """Train with the given ``noise_scale``; bounds that are not declared are read off the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels or targets.

        Raises
        ------
        MissingBudget
            If ``noise_scale`` is not set.
        """
        scale = self.own_noise_scale()
        self._admitted()
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=is_regressor(self))
        domain, codes = self._encode(observed_domain(X).but(min_present=X.shape[0]), y)
        question = self.question(domain)
        self.read(self.release(Rows.of(X, codes), question, Noise(self.random_state), scale), domain, question)
        return self

    def _encode(self, domain: Domain, y: Any) -> tuple[Domain, Array]:
        """Answers as rows hold them, and the domain with their classes or range."""
        if is_regressor(self):
            low, high = float(y.min()), float(y.max())
            if self.y_range is None:
                domain = domain.but(y_range=(low, high) if low < high else (low - 1.0, low + 1.0))
            return domain, encode_targets(y, self._range(domain))
        check_classification_targets(y)
        own = np.unique(y).tolist() if self.classes is None else self.classes
        domain = domain.but(classes=classes_of("classes", own, self))
        self._n_classes(domain)
        codes = encode_labels(y, domain.classes or ())
        if np.isnan(codes).any():
            raise InvalidValue("a label is not one of the declared classes.", stage=type(self).__name__)
        return domain, codes

    def predict(self, X: Any) -> NDArray[Any]:
        """Most likely label, or predicted target, of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        if is_regressor(self):
            return np.asarray(self._checked(X) @ self.coef_ + self.intercept_)
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    @available_if(_learns("classifier"))
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, shape (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        adapter: Any = self._adapter()
        return np.asarray(adapter.probability(self, self._checked(X)))

    def _checked(self, X: Any) -> Array:
        return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))

    def score(self, X: Any, y: Any) -> float:
        """Accuracy, or R² of a regression."""
        from sklearn.metrics import accuracy_score, r2_score

        return float((r2_score if is_regressor(self) else accuracy_score)(y, self.predict(X)))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classes_") or hasattr(self, "coef_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.estimator_type = _kind(self.model)
        if tags.estimator_type == "classifier":
            tags.classifier_tags = ClassifierTags(poor_score=True)
        elif tags.estimator_type == "regressor":
            tags.regressor_tags = RegressorTags(poor_score=True)
        return tags


def _known(model: Any) -> Adapter | None:
    """What is known of a model of exactly one of the supported classes; None of any other."""
    return SUPPORTED.get(_full_name(model))


def _rounded(released: Array) -> Array:
    """To the nearest float32: the last bits of noise that was added in floating point show what it was added to."""
    most = float(np.finfo(np.float32).max)
    return np.nan_to_num(released).clip(-most, most).astype(np.float32).astype(np.float64)


def _watched(model: Any) -> bool:
    """Whether a model has an accountant in which somebody may look for its fits.

    That is any but diffprivlib's default one, and that one too if it has a limit, has counted, or is in a context.
    """
    own, default = (getattr(one, "accountant", None) for one in (model, type(model)()))
    return own is not default or (own is not None and vars(own) != vars(type(own)()))


def _full_name(model: Any) -> str:
    """Of its class."""
    return f"{type(model).__module__}.{type(model).__qualname__}"


def _kind(model: Any) -> str | None:
    """Whether a model is a classifier or a regressor."""
    known = _known(model)
    return None if known is None else "classifier" if hasattr(known, "probability") else "regressor"
