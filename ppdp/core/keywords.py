"""Names of parameters that a class or method does not have are answered with what to write in their place.

Most are those of scikit-learn's class of the same name. Names of earlier versions work for two minor ones, with a
``FutureWarning``. What is issued keeps its names: formulas, keys of certificates, exported models.
"""

from __future__ import annotations

import inspect
import math
import os
import re
import sys
import warnings
from abc import ABCMeta
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, wraps
from importlib.metadata import PackageNotFoundError, metadata
from types import FunctionType
from typing import Any, Self, TypeVar

from ppdp.core.boundary import outside
from ppdp.core.names import nearest, shipped
from ppdp.exceptions import UnknownParameter, UnknownStage

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
    """The method that a class of somebody else's defines under its old name; refused if it defines none."""
    if not hasattr(type(owner), old):
        raise unwritten(owner, new)
    warn_of_name(f"the method {old} of {type(owner).__name__}", new)
    return getattr(owner, old)


def unwritten(owner: object, method: str) -> UnknownStage:
    """The error of a class that does not define a method which it needs."""
    fix = "write it in its class: docs/guides/own-stage.md lists what a step of your own needs."
    return UnknownStage(f"it has no {method}.", stage=type(owner).__name__, fix=fix)


def warn_of_name(old: str, new: str) -> None:
    """Say that a name has changed, to whoever wrote the old one."""
    warnings.warn(f"{old} is now {new}; the old name will be removed.", FutureWarning, stacklevel=outside())


F = TypeVar("F", bound=Callable[..., Any])

VAR_POSITIONAL, VAR_KEYWORD = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
_VARIABLE = VAR_POSITIONAL, VAR_KEYWORD
_PLACES = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
_OWNERS = "self", "cls"

_STATED = "own_values", "accuracy", "justification", "other_releases", "legal_basis", "consent", "run_by", "contact"
_KIND = "MeanImputer(), TrimmedMeanImputer() or MedianImputer(); a public constant: RowMap(function, out_ranges=...)."

# What to write, and the parameters in place of which it is written.
_MEANT = {
    "leave it out: it says how scikit-learn computes, and changes nothing here.": (
        "algorithm compute_inverse_components copy copy_X copy_x dtype dual feature_name_combiner"
        " intercept_scaling iterated_power memory n_jobs n_oversamples order power_iteration_normalizer"
        " pre_dispatch coef_init intercept_init sparse_output svd_solver transform_input verbose warm_start"
    ),
    "sample_weight= of Pipeline.fit, with Domain(max_weight=...), for the loss of a linear model alone.": (
        "sample_weight sample_weights"
    ),
    "alpha, the weight of a squared penalty, where the model has one; a sparse model has no counterpart.": (
        "penalty l1_ratio"
    ),
    _KIND: "fill_value missing_values",
    f"leave it out: bins lie between released quantiles (public ones: from_sklearn); for gaps {_KIND}": "strategy",
    "leave it out: zeros are values like any other.": "ignore_implicit_zeros",
    "leave it out: shares of classes are released with their moments.": "priors",
    "leave it out: quantiles are chosen with noise.": "quantile_method",
    "leave it out: which columns have missing values is read off the rows.": "add_indicator keep_empty_features",
    "leave it out: columns are both centred and scaled.": "with_centering with_scaling with_std unit_variance",
    "epsilon= and delta= of Pipeline; its plan says mu.": "rho mu sigma noise_multiplier noise_scale",
    "set it on the Pipeline: the guarantee is for all steps together.": (
        "epsilon delta ledger on_invalid adjacency gate"
    ),
    "leave it out: cells hold text, or bytes as UTF-8.": "decode_error encoding input",
    "leave it out: a cell shows whether it holds a dict, pairs or names.": "input_type",
    "leave it out: it would be decided by private scores or counts.": "error_score return_train_score",
    "leave it out: how far a round goes, and where bins end or centres begin, follows from noisy numbers.": (
        "ccp_alpha criterion init learning_rate max_depth max_features max_leaf_nodes min_impurity_decrease"
        " min_samples_leaf min_samples_split min_weight_fraction_leaf n_init n_iter_no_change subsample"
        " validation_fraction"
    ),
    "alpha, which is 1/C; LinearSVC has no penalty, and max_coef_norm bounds its coefficients.": "C",
    "ledger=Ledger(...) of the Pipeline.": "accountant",
    "max_coef_norm of a linear model, in place of a penalty; GaussianNB has var_smoothing.": "alpha",
    "ranges= of MinMaxScaler in front, in a Pipeline.": "bounds",
    'CategoryEncoder(categories, encoding="ordinal") in front.': "categories",
    "class_weight= of LogisticRegression or LinearSVC, in ppdp.mechanisms.": "class_weight",
    "classes= of the model, the last step.": "classes",
    "leave it out: what lies outside the public ranges is clipped anyhow.": "clip extrapolation",
    "leave it out: a missing value is a row of zeros.": "handle_missing",
    "n_clusters, or n_components: a whole number.": "k",
    "classes=(...): all labels that there may be.": "labels",
    "q, as in q=0.5 for the median.": "quantile",
    "n_knots: knots lie at released quantiles, those of public ranges come of from_sklearn.": "knots",
    "test_size of PrivateSearchCV, the share of the rows that all candidates are scored on, once.": "cv",
    "calibration= of LogisticRegression, LinearSVC or boosting, the last step.": "calibration",
    "ranges= of MinMaxScaler, or NormClipper, in front, in a Pipeline.": "data_norm",
    "leave it out: every category has a column, and a model without a penalty learns the same.": "drop",
    "n_components, a public number of columns.": "eps",
    "leave it out: an audit is made in one go; report.save(path) keeps what it found.": "folder",
    "groups= of Pipeline.fit, with Adjacency.user_level(max_rows=...).": "groups",
    "other, the name of the category that anything else counts as; None for a row of zeros.": "handle_unknown",
    "leave it out: the link is the logarithm.": "link",
    "leave it out: the class says it; LinearSVC learns a hinge loss, as smooth as smoothing says.": "loss",
    'categories="private" with max_categories, which releases those that many rows hold.': "min_frequency",
    "max_iter, the number of rounds.": "n_estimators",
    "leave it out: several classes are learned together.": "multi_class",
    "param_grid, of which every candidate is tried; a choice costs the same however many there are.": "n_iter",
    "max_norm, the largest Euclidean norm of a row.": "norm",
    "param_grid, lists of values.": "param_distributions",
    "leave it out: coefficients of either sign are learned.": "positive",
    "seed, which is public, where a public map is drawn; that of noise is the Pipeline's, for tests.": "random_state",
    "ranges= of MinMaxScaler, the first step.": "ranges",
    "leave it out: columns that no part names are left out; name those that are to stay.": "remainder",
    "domain=Domain(rows_per_unit=...).": "rows_per_unit",
    "domain=Domain(n_rows=...).": "n_rows",
    "query= of GaussianMechanism, queries= of Report.": "stat stats statistic",
    "threshold= of LogisticRegression or boosting; or pipe.predict_proba(X)[:, 1] >= 0.3, which is free.": "threshold",
    "leave it out: columns are compared as by F, of classes or of targets as the model has them.": "score_func",
    "leave it out: mean labels are released with noise, not learned across folds.": "shuffle",
    "leave it out: what the model learns says it.": "target_type",
    "max_iter: so many steps are taken, for when to stop would be read off the rows.": "tol",
    "leave it out, and put StandardScaler in front.": "whiten",
    "y_range= of the model, the last step.": "y_range",
}
INSTEAD: dict[str, str] = {
    **{name: words for words, names in _MEANT.items() for name in names.split()},
    **{name: f'statements={{"{name}": "..."}} of the Pipeline.' for name in _STATED},
}
"""What to write in place of a parameter that a class or method does not have, where it is another word."""

METHODS = (
    *("fit", "fit_transform", "fit_resample", "transform", "predict", "predict_proba", "score", "decision_function"),
    *("plan", "compare", "forecast", "expected_errors", "project", "export", "write_parquet"),
    *("save", "verify", "sign", "to_text", "to_html", "to_pandas", "conf_int"),
)
"""Methods whose names of parameters are checked wherever a class that is exported defines them."""


def answering(method: F) -> F:
    """The method, which answers names of parameters that it does not have; the rows that it is given leave no trace."""
    signature = inspect.signature(method)
    parameters = list(signature.parameters.values())
    first = parameters[0].name if parameters else ""
    kinds, named_ones = {one.kind for one in parameters}, {one.name for one in parameters}
    places = math.inf if VAR_POSITIONAL in kinds else sum(one.kind in _PLACES for one in parameters)
    needed = [one.name for one in parameters if one.default is one.empty and one.kind not in _VARIABLE]

    @wraps(method)
    def called(*given: Any, **named: Any) -> Any:
        try:
            if len(given) > places or not (VAR_KEYWORD in kinds or named.keys() <= named_ones):
                whose = _whose(method, first, given)
                named = under_new_names(whose, PARAMETERS.get(whose, {}), named)
                check_names(whose, signature, given, named)
            missing = [name for name in needed[len(given) :] if name not in named]
            if missing:
                what = f"{_whose(method, first, given)} needs {', '.join(missing)}."
                raise UnknownParameter(what, fix=f"{missing[0]}=... .")
            return method(*given, **named)
        finally:
            del given, named

    called.answers = True  # type: ignore[attr-defined]
    return called  # type: ignore[return-value]


def _whose(method: Any, first: str | None, given: Sequence[Any]) -> str:
    """What a user calls it: a function, a class, or a method with its class."""
    if first not in _OWNERS or not given:
        return str(method.__qualname__)
    owner = (given[0] if isinstance(given[0], type) else type(given[0])).__name__
    return owner if method.__name__ == "__init__" else f"{owner}.{method.__name__}"


def answering_all(package: str) -> None:
    """Let all that a package exports answer names of parameters that it does not have."""
    for name in vars(sys.modules[package])["__all__"]:
        setattr(sys.modules[package], name, answering_public(getattr(sys.modules[package], name)))


def answering_public(made: Any) -> Any:
    """The same of a function, or of a class with its constructor and its class methods; anything else as it is."""
    if isinstance(made, FunctionType):
        if not hasattr(made, "answers"):
            made = answering(made)
            setattr(sys.modules[made.__module__], made.__name__, made)  # where pickles look for it
    elif isinstance(made, type) and not issubclass(made, BaseException):
        for name, method in list(vars(made).items()):
            inner = getattr(method, "__func__", None)
            if inner is not None and not name.startswith("_") and not hasattr(inner, "answers"):
                setattr(made, name, type(method)(answering(inner)))
            if name in METHODS and isinstance(method, FunctionType) and not hasattr(method, "answers"):
                setattr(made, name, answering(method))
        inner = vars(made).get("__init__", made.__init__)
        if isinstance(inner, FunctionType) and not issubclass(made, Answering) and not hasattr(inner, "answers"):
            setattr(made, "__init__", answering(inner))  # noqa: B010  mypy knows no other constructor
    return made


def check_names(
    whose: str, signature: inspect.Signature, given: Sequence[Any], named: Iterable[str], owner: Any = None
) -> None:
    """Refuse arguments that a signature does not take, by :class:`UnknownParameter`; those that are missing are not.

    ``owner`` is the class whose constructor it is of, or the function, where they may be somebody else's.
    """
    parameters = signature.parameters.values()
    kinds = {one.kind for one in parameters}
    known = [one.name for one in parameters if one.name not in _OWNERS and one.kind not in _VARIABLE]
    wrong = next((name for name in named if name not in known), None)
    if VAR_KEYWORD not in kinds and wrong is not None:
        scored = "a metric of scikit-learn, of y and pipe.predict(X)." if whose.endswith(".score") else None
        raise UnknownParameter(f"{whose} has no parameter {wrong!r}.", fix=scored or instead_of(wrong, known, owner))
    if VAR_POSITIONAL not in kinds and len(given) > sum(one.kind in _PLACES for one in parameters):
        last = f", and {known[-1]} by its name" if any(one.kind == one.KEYWORD_ONLY for one in parameters) else ""
        fix = f"by name: {', '.join(known)}." if known else instead_of("...", known, owner)
        raise UnknownParameter(f"{whose} takes fewer arguments{last}.", fix=fix)


def instead_of(name: str, known: Iterable[str], owner: Any = None) -> str:
    """What to write in place of a parameter: another of the ``known`` ones, what its word stands for, or one of all.

    Words stand for what they do in ppdp's own classes: not in those of an ``owner`` that is somebody else's.
    """
    known = sorted(known)
    if owner is not None and not shipped(owner):
        meant = nearest(name, known)
        if not known and isinstance(owner, type):
            return f"@dataclass(eq=False, repr=False) on the class {owner.__name__}, with a field for each parameter."
        return f"did you mean {meant!r}?" if meant else f"its parameters are {', '.join(known)}."
    meant = None if name in INSTEAD else nearest(name, known)
    meant = meant or next((one for one in known if len(name) > 2 and one.startswith(name)), None)  # as "eps" of epsilon
    if meant is not None:
        return f"did you mean {meant!r}?"
    word = nearest(name, INSTEAD, least=0.8)  # as "epsilonn"
    return INSTEAD.get(word or name, f"its parameters are {', '.join(known)}." if known else "leave it out.")


@cache
def _constructor(cls: Any) -> inspect.Signature:
    return inspect.signature((lambda self: None) if cls.__init__ is object.__init__ else cls.__init__)


class _OfConstructor:
    """The signature of a class: that of its constructor, whoever makes its objects."""

    def __get__(self, _: Any, owner: Any) -> inspect.Signature:
        found = _constructor(owner)
        return found.replace(parameters=list(found.parameters.values())[1:])


class _Renaming(ABCMeta):
    """Classes whose constructor takes parameters under their earlier names, too."""

    def __call__(cls, *given: Any, **named: Any) -> Any:
        return super().__call__(*given, **under_new_names(cls.__name__, renamed_parameters(cls), named))


class Answering(metaclass=_Renaming):
    """Mixin for estimators, before scikit-learn's base: wrong names of parameters are answered with the right ones.

    The sign for help in their diagram opens our page. The environment variable ``PPDP_DOCS`` is the address at which
    the site is served, or else what the package gives. Without one there is no sign: it would open scikit-learn's.
    """

    __signature__ = _OfConstructor()
    _doc_link_module = "ppdp"
    _made_where = "fit first; a pipeline fits copies of its steps, pipe[-1].{0} or pipe['name'].{0} once it is fitted."

    @property
    def _doc_link_template(self) -> str:
        return page_of(type(self))

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of parameters: scikit-learn inspects the constructor each time, and a fit asks dozens of times."""
        names: list[str] = super()._get_param_names()  # type: ignore[misc]
        return names

    def __new__(cls, *given: Any, **named: Any) -> Self:
        constructor = _constructor(cls)
        check_names(cls.__name__, constructor, (None, *given), named, cls)
        return super().__new__(cls)

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        for name in METHODS:
            method = next((vars(base)[name] for base in cls.__mro__ if name in vars(base)), None)
            if not isinstance(method, FunctionType) or method.__module__.startswith("sklearn."):
                continue
            if not hasattr(method, "answers"):
                setattr(cls, name, answering(method))

    def __getattr__(self, name: str) -> Any:
        new = renamed_parameters(type(self)).get(name)
        if new is None:
            try:
                return object.__getattribute__(self, name)
            except AttributeError as error:  # what it raised before
                raise self._not_yet(name, error) from None
        warn_of_name(f"{type(self).__name__}.{name}", new)
        return getattr(self, new)

    def _not_yet(self, name: str, error: AttributeError) -> AttributeError:
        """The error of an attribute that there is not; of one that a fit may make it says where that is."""
        if name.startswith("_") or not name.endswith("_") or any(one.endswith("_") for one in vars(self)):
            return error
        if name in ("certificate_", "release_") and self._made_where == Answering._made_where:
            return AttributeError(f"{error}. Fix: pipe.{name}, of the pipeline that is fitted.")
        return AttributeError(f"{error}. Fix: {self._made_where.format(name)}")

    def set_params(self, *given: Any, **params: Any) -> Any:
        """Set parameters, as scikit-learn does."""
        if given:
            raise UnknownParameter("set_params takes names of parameters.", fix="set_params(name=value), or (**given).")
        params = under_new_names(type(self).__name__, renamed_parameters(type(self)), params)
        if "steps" in params:  # they hold what other names speak of
            super().set_params(steps=params.pop("steps"))  # type: ignore[misc]
        values = self.get_params()
        for name, inner, _ in (one.partition("__") for one in params):
            if name not in values or (inner and not hasattr(values[name], "set_params")):
                what = f"Invalid parameter {name!r} for estimator {type(self).__name__}."
                parts = [one for one, value in values.items() if hasattr(value, "set_params") and "__" not in one]
                known = (inner and parts) or [one for one in values if "__" not in one]
                whole = f"{name}=...; it has no parts." if name in values and not parts else None
                if name not in values and not inner:  # that of a step, under its longer name
                    whole = next((f"did you mean {one!r}?" for one in values if one.endswith(f"__{name}")), None)
                raise UnknownParameter(what, fix=whole or instead_of(name, known, type(self)))
        return super().set_params(**params)  # type: ignore[misc]


_PAGE = re.compile(r"``docs/([\w./-]+)``")


def page_of(kind: type) -> str:
    """The address of the page; empty where nobody has said where the site is."""
    found = next((page for one in kind.__mro__ for page in _PAGE.findall(one.__doc__ or "")), "index.md")
    address = (os.environ.get("PPDP_DOCS") or _address()).rstrip("/")
    return f"{address}/{found.removesuffix('.md')}.html" if address else ""


@cache
def _address() -> str:
    """What pyproject.toml says under ``[project.urls]`` as Documentation."""
    try:
        urls = metadata("ppdp").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = dict(url.split(", ", 1) for url in urls)
    return named.get("Documentation", "")
