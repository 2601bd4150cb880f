"""Steps of a pipeline of scikit-learn: what they are given, what is inside, and what became of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn

from scipy.special import expit
from sklearn.base import clone
from sklearn.impute import MissingIndicator
from sklearn.kernel_approximation import RBFSampler
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import FeatureUnion
from sklearn.preprocessing import OrdinalEncoder, PolynomialFeatures
from sklearn.svm import LinearSVC

from ppdp.core.checks import number, shown
from ppdp.exceptions import InvalidParameter, PpdpError, UnknownStage
from ppdp.mechanisms.target_functions import FUNCTIONS
from ppdp.mechanisms.thresholds import SCORES

DEEPEST = 50  # pipelines inside pipelines
WEIGHTS = {"transformer_weights": "leave it out, and use feature_range of a MinMaxScaler."}
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
    changed: list[str] = field(default_factory=list)  # how the counterpart differs, in plain words
    ignored: list[str] = field(default_factory=list)  # parameters without a meaning for the counterpart
    calibrated: bool = False  # whether probabilities are asked of it
    scaled: bool = False  # whether it stands behind a StandardScaler of all columns
    spreads: bool = False  # whether it is a union of which only the first part goes on to what stands behind it
    target_func: str | None = None  # of which function of the targets its error is taken
    threshold: Any = None
    """The threshold that is asked for: a public probability, or the score for which it is to be the best."""
    fills_labels: bool = False  # whether it puts the most frequent label in place of missing ones
    encodes: bool = False  # whether it is an encoder of ppdp's for some columns

    @property
    def kind(self) -> str:
        """Name of its class, if that is one of scikit-learn's."""
        return own_name(self.estimator)

    def given(self) -> dict[str, Any]:
        """Its parameters."""
        found: dict[str, Any] = self.estimator.get_params(deep=False)
        return found

    def read(self, *used: str, fixes: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Its parameters; only ``used`` (names, several with spaces between) and harmless ones may be no defaults."""
        given, known = self.given(), inspect.signature(type(self.estimator)).parameters
        for name, value in given.items():
            if name in " ".join(used).split() or (name in known and _same(value, known[name].default)):
                continue
            if name not in _HARMLESS:
                what = f"{name}={shown(value)} has no counterpart and would change the result."
                self.refuse(what, (fixes or {}).get(name))
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
        """Say what has no counterpart, and what to do."""
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


def public_seed(step: Step, given: Mapping[str, Any]) -> int:
    """The seed of a public draw."""
    seed = given["random_state"]
    if seed is None or isinstance(seed, bool) or not isinstance(seed, int):
        step.changed.append("drawn from the public seed 0")
        return 0
    step.changed.append(f"random_state={seed} became the public seed={seed}")
    return seed


def flattened(name: str, estimator: Any, depth: int = 0) -> list[Step]:
    """The steps of a pipeline of scikit-learn or imbalanced-learn, also in it; steps that only pass are gone."""
    if estimator is None or (isinstance(estimator, str) and estimator == "passthrough"):
        return []
    if type(estimator).__name__ == "Pipeline" and type(estimator).__module__.startswith(("sklearn.", "imblearn.")):
        if depth > DEEPEST:
            raise InvalidParameter("a pipeline contains itself, or too many others.", fix="one list of steps.")
        inner = named_parts(name, "steps", estimator.get_params(deep=False)["steps"], "(name, estimator)")
        return _settled(
            [step for label, one in inner for step in flattened(f"{name}-{label}" if name else label, one, depth + 1)]
        )
    if isinstance(estimator, type) or not hasattr(estimator, "get_params"):
        what = f"an estimator is needed, got {shown(estimator)}."
        raise UnknownStage(what, stage=name or None, fix="an instance of its class.")
    step = Step((name or type(estimator).__name__.lower()).replace(".", "-").replace("__", "-"), estimator)
    if _stands_around(step):
        if depth > DEEPEST:
            raise InvalidParameter("an estimator contains itself, or too many others.", fix="one model.")
        return _unwrapped(step, name, depth) if step.kind in _AROUND else _of_targets(step, name, depth)
    return _behind_codes(step) if step.kind == "TargetEncoder" else _with_kernel(step)


def _stands_around(step: Step) -> bool:
    """Whether it is an estimator around a model; bags of trees are a forest."""
    if step.kind.startswith("Bagging"):
        inner = step.given()["estimator"]
        return inner is not None and "Tree" not in own_name(inner)
    return step.kind in _AROUND or step.kind == "TransformedTargetRegressor"


def _behind_codes(step: Step) -> list[Step]:
    """Mean labels behind codes of categories."""
    codes = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=-1, encoded_missing_value=-1)
    return [Step(f"{step.name}-codes", codes.set_params(categories=step.given()["categories"])), step]


def _with_kernel(step: Step) -> list[Step]:
    """Support vectors of a radial kernel behind features of it, quadratic discriminants behind products."""
    if step.kind == "QuadraticDiscriminantAnalysis":
        products = Step(f"{step.name}-products", PolynomialFeatures(2, include_bias=False))
        products.changed.append("products of two columns, of which a linear model has quadratic log-odds")
        return [products, step]
    given = step.given() if step.kind in KERNEL_MACHINES else {"kernel": None}
    if is_word(given["kernel"], "rbf"):
        features = Step(f"{step.name}-kernel", RBFSampler(gamma=given["gamma"], n_components=200, random_state=0))
        features.changed.append("200 random Fourier features of the radial kernel, and a linear model of them")
    elif is_word(given["kernel"], "poly"):
        features = Step(f"{step.name}-products", PolynomialFeatures(given["degree"], include_bias=False))
        features.changed.append(f"products of up to {given['degree']} columns, and a linear model of them")
    else:
        return [step]
    return [features, step]


KERNEL_MACHINES = ("KernelRidge", "NuSVC", "NuSVR", "SVC", "SVR")
ENCODERS = ("OneHotEncoder", "OrdinalEncoder")
TERMS = ("DictVectorizer", "FeatureHasher")
TEXTS = ("CountVectorizer", "HashingVectorizer", "TfidfVectorizer", *TERMS)
_NO_HARM = "a column that hardly varies does no harm"
_OF_WEIGHTS = (
    "which columns a model gives weight is read off the rows; SelectKBest(k=...) keeps a public number of them"
)
_TURNED = "all components are the columns, turned"
_IDLE: dict[str, tuple[Callable[[dict[str, Any]], bool], str]] = {
    "IncrementalPCA": (lambda given: given["n_components"] is None and given["whiten"] is False, _TURNED),
    "PCA": (lambda given: given["n_components"] is None and given["whiten"] is False, _TURNED),
    "RFECV": (lambda _: True, _OF_WEIGHTS),
    "SelectFromModel": (
        lambda given: given["max_features"] is None and not is_word(given["threshold"], "median"),
        _OF_WEIGHTS,
    ),
    "SelectKBest": (lambda given: _same(given["k"], "all"), _NO_HARM),
    "SelectPercentile": (lambda given: _same(given["percentile"], 100), _NO_HARM),
    "VarianceThreshold": (lambda _: True, f"{_NO_HARM}; VarianceThreshold of ppdp.transformers zeroes it by a release"),
}
"""What is left out, with which parameters, and why: all columns stay."""


def _settled(steps: list[Step]) -> list[Step]:
    """Without selectors that select nothing, and with labels told apart from numbers where missing ones are filled."""
    for i, step in enumerate(steps):
        mode = step.kind == "SimpleImputer" and is_word(step.given()["strategy"], "most_frequent")
        if mode and any(later.kind in ENCODERS for later in steps[i + 1 :]):
            step.fills_labels = True
    steps = [_beside_indicators(step) for step in _unweighed(steps)]
    kept = [step for step in steps if not _is_idle(step)]
    if not kept:
        return steps
    for step in filter(_is_idle, steps):
        kept[0].changed.append(f"{step.name!r} is left out: {_IDLE[step.kind][1]}")
    return kept


def _unweighed(steps: list[Step]) -> list[Step]:
    """Without weights of words by how many texts have them; the length of rows stays as it is."""
    kept: list[Step] = []
    for step in steps:
        if step.kind != "TfidfTransformer" or not kept or kept[-1].kind not in TEXTS:
            kept.append(step)
            continue
        texts = kept[-1]
        if "norm" in texts.given():
            texts.estimator = clone(texts.estimator).set_params(norm=step.given()["norm"])
        texts.changed.append(f"{step.name!r} is left out: no word is weighed by how many texts have it")
    return kept


def _beside_indicators(step: Step) -> Step:
    """An imputer that also tells where values were missing, as a union of both; any other step as it is."""
    if not step.kind.endswith("Imputer") or step.given().get("add_indicator") is not True or step.fills_labels:
        return step
    filled = clone(step.estimator).set_params(add_indicator=False)
    parts = [(step.name, filled), (f"{step.name}-indicator", MissingIndicator())]
    return Step(step.name, FeatureUnion(parts, verbose_feature_names_out=False), spreads=True)


def _is_idle(step: Step) -> bool:
    return step.kind in _IDLE and _IDLE[step.kind][0](step.given())


_BAGGED = "is left out: one model of all rows, where each of many would pay for its own noise"
_AROUND = {
    "BaggingClassifier": _BAGGED,
    "BaggingRegressor": _BAGGED,
    "CalibratedClassifierCV": "is left out: log loss is calibrated by itself, and held-out rows need not be read",
    "OneVsOneClassifier": "is left out: one model learns all classes together",
    "OneVsRestClassifier": "is left out: one model learns all classes together",
    "OutputCodeClassifier": "is left out: one model learns all classes together",
    "FixedThresholdClassifier": "became the threshold of its classifier",
    "TunedThresholdClassifierCV": "became the threshold of its classifier: by noisy counts, no rows are held out",
}
"""What stands around a classifier, and why it is not needed."""

_BAGS = ("bootstrap", "bootstrap_features", "max_features", "max_samples", "n_estimators", "oob_score")
_THRESHOLDS = ("refit", "response_method", "store_cv_results", "threshold", "thresholds")


def _unwrapped(step: Step, name: str, depth: int) -> list[Step]:
    """The steps of the estimator inside."""
    given = step.read("estimator", "cv", "ensemble", "method", "code_size", "scoring", *_THRESHOLDS, *_BAGS)
    calibrated = step.kind == "CalibratedClassifierCV"
    inner = LinearSVC() if given["estimator"] is None and calibrated else given["estimator"]
    steps = flattened(name, inner, depth + 1)
    if not steps:
        step.refuse("there is no model in it.", "a classifier.")
    steps[-1].changed.append(f"{step.kind} {_AROUND[step.kind]}")
    if step.kind.endswith("ThresholdClassifierCV") or step.kind == "FixedThresholdClassifier":
        steps[-1].threshold = _threshold(step)
    steps[-1].calibrated = steps[-1].calibrated or calibrated
    return steps


_SCALERS = ("MaxAbsScaler", "MinMaxScaler", "RobustScaler", "StandardScaler")


def _of_targets(step: Step, name: str, depth: int) -> list[Step]:
    """The steps of a regressor that learns a public function of the targets, which its last one is told."""
    given = step.read("regressor", "transformer", "func", "inverse_func", "check_inverse")
    transformer, function, inverse = given["transformer"], given["func"], given["inverse_func"]
    scaled = own_name(transformer) in _SCALERS
    if own_name(transformer) == "FunctionTransformer":
        own = Step(step.name, transformer).read("func", "inverse_func")
        function, inverse = own["func"], own["inverse_func"]
    elif transformer is not None and not scaled:
        step.refuse("what its transformer makes of the targets would be read off them.", _LOGARITHM)
    pairs: list[tuple[str | None, Any]] = [(None, (None, None)), *FUNCTIONS.items()]
    known = next((name for name, pair in pairs if pair[0] is function and pair[1] is inverse), "")
    if known == "":
        what = f"functions of targets known here are {', '.join(FUNCTIONS)} of NumPy, with their inverses."
        step.refuse(what, _LOGARITHM)
    inner = LinearRegression() if given["regressor"] is None else given["regressor"]
    steps = flattened(name, inner, depth + 1)
    if not steps:
        step.refuse("there is no model in it.", "regressor=Ridge().")
    if scaled:
        steps[-1].changed.append(f"{own_name(transformer)} of the targets is left out: they are scaled by y_range")
    steps[-1].target_func = known
    return steps


_LOGARITHM = "func=np.log1p, inverse_func=np.expm1, or np.log and np.exp; y_range in the units of the targets."


def _threshold(step: Step) -> Any:
    """A public probability, or the score that is to be best; None for a half."""
    given = step.given()
    if step.kind == "FixedThresholdClassifier":
        if is_word(given["threshold"], "auto"):
            return None
        if is_word(given["response_method"], "decision_function"):
            return float(expit(number("threshold", given["threshold"], step.name)))
        return number("threshold", given["threshold"], step.name, above=0, most=1 - 1e-12)
    if not is_word(given["scoring"], *SCORES):
        step.refuse("a threshold for this score is not known here.", f"scoring={' or '.join(map(repr, SCORES))}.")
    return given["scoring"]


def named_parts(name: str, parameter: str, parts: Any, form: str) -> list[Any]:
    """What a container of scikit-learn holds: a list of tuples of this form, with a string in front."""
    listed = list(parts) if isinstance(parts, (list, tuple)) else [None]
    if all(is_named(part, form.count(",") + 1) for part in listed):
        return listed
    what = f"{parameter} must be a list of {form}."
    raise InvalidParameter(what, stage=name or None, fix="names are strings.", parameter=parameter)


def is_named(part: Any, size: int) -> bool:
    """Whether it is a tuple of this size with a string in front; somebody else's class is not asked what it is."""
    return issubclass(type(part), list | tuple) and len(part) == size and issubclass(type(part[0]), str)


def branches(prefix: str, steps: list[Step], depth: int = 0) -> Iterator[tuple[str, list[Step]]]:
    """Chains of steps without a union in them, whose results side by side are that of these steps.

    What stands in front of a union stands in front of each of its parts. The prefix is put before the names of what
    comes out.
    """
    at = next((i for i, step in enumerate(steps) if step.kind == "FeatureUnion"), None)
    if at is None:
        yield prefix, steps
        return
    union, front, behind = steps[at], steps[:at], steps[at + 1 :]
    if depth > DEEPEST:
        raise InvalidParameter("a FeatureUnion contains itself, or too many others.", fix="one list of transformers.")
    if behind and union.spreads:
        (_, first), (_, second) = union.given()["transformer_list"]
        yield from branches(prefix, [*front, Step(union.name, first), *behind], depth + 1)
        yield prefix, [*front, Step(f"{union.name}-indicator", second)]
        return
    if behind:
        what = f"{behind[0].name!r} stands behind it, and not behind all columns."
        union.refuse(what, "put that into each part of the FeatureUnion, or behind everything.")
    given = union.read("transformer_list", "verbose_feature_names_out", fixes=WEIGHTS)
    for name, one in named_parts(union.name, "transformer_list", given["transformer_list"], "(name, transformer)"):
        if isinstance(one, str) and one == "drop":
            continue
        own = f"{prefix}{name}__" if given["verbose_feature_names_out"] is True else prefix
        yield from branches(own, [*front, *flattened(name, one)], depth + 1)
