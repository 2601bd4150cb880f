"""A model of diffprivlib as the last step of a pipeline: ``docs/theory/diffprivlib.md``."""

from __future__ import annotations

import copy
import random
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NoReturn

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.utils import ClassifierTags, RegressorTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from ppdp.bounds.diffprivlib import ROUNDED, VERSION
from ppdp.core.checks import library
from ppdp.core.domain import Domain
from ppdp.data.rows import Array, Rows
from ppdp.exceptions import InvalidParameter, StageFailed
from ppdp.interop.diffprivlib.models import REFUSED, SUPPORTED, Adapter, full_name
from ppdp.mechanisms.base import Mechanism, QuerySpec
from ppdp.mechanisms.standalone import Supervised
from ppdp.privacy.noise.sampler import Noise

Shape = int | tuple[int, ...]


class Draws(np.random.RandomState):
    """Uniform, normal and gamma numbers made of the bits of a :class:`~ppdp.privacy.noise.sampler.Noise`.

    diffprivlib's models take a ``RandomState`` or None. Given None they hand on NumPy's global generator, and each
    mechanism then draws from the operating system instead, if the generator is still that very object. In a worker
    process it is a copy: all workers draw the same noise from it, and ``numpy.random.seed`` repeats it. Here there is
    no state: every number is made of bits that nothing else was made of, the operating system's unless the fit is
    seeded. A generator cannot be copied, and draws nothing but what the models with a proof ask for.
    """

    def __init__(self, noise: Noise) -> None:
        super().__init__()
        self._numbers = _Numbers(noise)

    def random(self, size: Shape | None = None) -> Any:  # type: ignore[override]
        """Uniform numbers, multiples of 2^-53 from 0 to below 1, of this shape; one float if it is absent."""
        return self._numbers.random() if size is None else _many(self._numbers.random, size)

    def standard_normal(self, size: Shape) -> Array:  # type: ignore[override]
        """Standard normal numbers of this shape."""
        return _many(lambda: self._numbers.normalvariate(0.0, 1.0), size)

    def gamma(self, shape: float, scale: float, size: Shape) -> Array:  # type: ignore[override]
        """Numbers of a gamma distribution's ``shape`` and ``scale``, as many as ``size`` says.

        Each is a sum of exponential variables and of one whose shape is below 1: of larger shapes Python's sampler
        leaves out the ends of the distribution, 2 in 10^7.
        """
        pieces = [1.0] * int(shape) + [shape % 1] * (shape % 1 > 0)
        return _many(lambda: sum(self._numbers.gammavariate(piece, scale) for piece in pieces), size)

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("__") or name in _OWN:
            return super().__getattribute__(name)
        raise AttributeError(f"no model with a proof draws by {name}.")

    def __reduce__(self) -> NoReturn:
        raise InvalidParameter("noise is drawn in one process and for one fit, so its generator is never copied.")


_OWN = frozenset({"_numbers", "random", "standard_normal", "gamma"})


class _Numbers(random.SystemRandom):
    """Python's own ways to make numbers of uniform ones, as diffprivlib uses them; the bits may be seeded."""

    def __init__(self, noise: Noise) -> None:
        self._noise = noise

    def random(self) -> float:
        """A multiple of 2^-53 from 0 to below 1, of 53 fresh bits."""
        return float((int.from_bytes(self._noise.random_bytes(7), "big") >> 3) * 2.0**-53)


def _many(draw: Callable[[], float], size: Shape) -> Array:
    return np.reshape([draw() for _ in range(int(np.prod(size)))], size)


INSTALL = 'pip install "ppdp[diffprivlib]"'


def _classifies(step: Diffprivlib) -> bool:
    """Whether the model is a classifier, for ``available_if``."""
    if _kind(step.model) != "classifier":
        raise AttributeError("this model is no classifier.")
    return True


@dataclass(eq=False, repr=False)
class Diffprivlib(Supervised, Mechanism):
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

    model: Any = None
    classes: Sequence[Any] | None = None
    _: KW_ONLY
    y_range: tuple[float, float] | None = None
    noise_scale: float | None = None
    random_state: Any = None

    @classmethod
    def example(cls) -> Diffprivlib:
        """A logistic regression with next to no noise."""
        models = library("diffprivlib.models", "diffprivlib", '"ppdp[diffprivlib]"')
        return cls(models.LogisticRegression(), noise_scale=1e-3)

    def assumptions(self) -> tuple[tuple[str, str], ...]:
        return ((type(self.model).__name__, ROUNDED),)

    def _adapter(self) -> Adapter:
        """What is known of the model; refused if nothing is proved for it, or it is known to be no protection."""
        name = full_name(self.model)
        if name not in SUPPORTED:
            names = ", ".join(sorted(known.rpartition(".")[2] for known in SUPPORTED))
            self._refuse(
                REFUSED.get(name, "no guarantee has been proved for this model."),
                f"pass an instance of diffprivlib's {names}, or use a mechanism of ppdp.",
            )
        return SUPPORTED[name]

    def _admitted(self) -> Adapter:
        """What is known of the model, once it may be fitted: version, parameters and accountant are as in the proof."""
        found = self._adapter()
        version = getattr(sys.modules.get("diffprivlib"), "__version__", None)
        if version != VERSION:
            self._refuse(f"the proofs are of diffprivlib {VERSION}, and this is {version or 'none'}.", INSTALL)
        defaults = type(self.model)().get_params(deep=False)
        for name, value in self.model.get_params(deep=False).items():
            if name not in found.free | {"accountant"} and value is not defaults[name] and value != defaults[name]:
                what = f"the model's {name} is set from public facts, or must be the default for the proof to hold."
                self._refuse(what, "leave it out; epsilon is the pipeline's.")
        if _watched(self.model):
            self._refuse(
                "the model has an accountant of diffprivlib, which would not count this fit.",
                "count fits with a ledger, Pipeline(..., ledger=ppdp.Ledger(...)); call "
                "BudgetAccountant.pop_default() and make the model anew, without accountant= and not by clone.",
            )
        return found

    @classmethod
    def _refuse(cls, why: str, fix: str) -> NoReturn:
        raise InvalidParameter(why, stage=cls.__name__, fix=fix)

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

    def query_spec(self, domain: Domain, mu: float | None = None) -> QuerySpec:
        adapter = self._admitted()
        domain.require("row_norm", type(self).__name__)
        if is_regressor(self):
            self._range(domain)
        parameters = adapter.parameters(self.model, 1 if is_regressor(self) else self._n_classes(domain))
        return QuerySpec.asked(adapter.formula, "privacy", domain, parameters)

    def release(self, rows: Rows, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
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

    def read(self, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
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

    def _encode(self, domain: Domain, y: Any) -> tuple[Domain, Array]:
        self._admitted()
        return super()._encode(domain.but(min_present=domain.n_rows), y)

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

    @available_if(_classifies)
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, shape (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        return np.asarray(self._adapter().probability(self, self._checked(X)))

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


def _rounded(released: Array) -> Array:
    """To the nearest float32: the last bits of noise that was added in floating point show what it was added to."""
    most = float(np.finfo(np.float32).max)
    return np.nan_to_num(released).clip(-most, most).astype(np.float32).astype(np.float64)


def _watched(model: Any) -> bool:
    """Whether a model's accountant may be looked at: any but the default one, or one with a limit, count, context."""
    own, default = (getattr(one, "accountant", None) for one in (model, type(model)()))
    return own is not default or (own is not None and vars(own) != vars(type(own)()))


def _kind(model: Any) -> str | None:
    """Whether a model is a classifier or a regressor."""
    known = SUPPORTED.get(full_name(model))
    return None if known is None else known.kind
