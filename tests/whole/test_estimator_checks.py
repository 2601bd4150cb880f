"""scikit-learn's own checks on every registered class, and that every class is registered."""

import importlib
import inspect
import re

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone
from sklearn.utils.estimator_checks import check_estimator
from sources import INSTALLED

import ppdp
from ppdp import ColumnTransformer, make_pipeline, mechanisms, transformers
from ppdp.exceptions import MissingBudget
from ppdp.mechanisms import LogisticRegression
from ppdp.mechanisms.base import Mechanism
from ppdp.privacy.ledger import fit_charging as fits
from ppdp.testing import REGISTRY, examples, register
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler, StandardScaler
from ppdp.transformers.base import Stage

NEVER_RUN_BY_DEFAULT = {"check_array_api_input"}  # needs an environment variable that is set before SciPy is imported


def titled(estimator):
    steps = getattr(estimator, "steps", ())
    return type(estimator).__name__ + "".join(f"-{type(step).__name__}" for _, step in steps)


def short(estimator):
    """The same with few steps of training, where it trains; the full pipeline is checked with the usual number."""
    names = [name for name, value in estimator.get_params().items() if name.endswith("max_iter") and value != 1]
    return estimator.set_params(**dict.fromkeys(names, 4))


def full_pipeline():
    """All kinds of stages, on a route that even the checks' few rows leave open."""
    fitted = MeanImputer(fit_mode="noisy"), StandardScaler(fit_mode="noisy")
    stages = MinMaxScaler(ranges=(-10, 10)), Deduplicator(), *fitted
    return make_pipeline(*stages, LogisticRegression(), epsilon=20.0, delta=1e-3)


@pytest.fixture
def few_rounds(monkeypatch):
    """A check of class weights asks of whatever has steps for 1000 of them, which boosting does not need."""
    plain = mechanisms.GradientBoostingClassifier.set_params

    def fewer(self, **given):
        return plain(self, **given | ({"max_iter": 5} if given == {"max_iter": 1000} else {}))

    monkeypatch.setattr(mechanisms.GradientBoostingClassifier, "set_params", fewer)


@pytest.mark.usefixtures("few_rounds")
@pytest.mark.filterwarnings("ignore")  # the checks provoke warnings on purpose; what must not warn, they look for
@pytest.mark.parametrize(
    "estimator", [*map(short, examples()), full_pipeline(), ColumnTransformer.example()], ids=titled
)
def test_no_check_fails_and_none_is_excused(estimator):
    results = check_estimator(estimator, on_skip=None, on_fail=None)
    assert len(results) >= 40
    assert not [(r["check_name"], repr(r["exception"])) for r in results if r["status"] == "failed"]
    assert {r["check_name"] for r in results if r["status"] != "passed"} <= NEVER_RUN_BY_DEFAULT


def test_examples_are_one_of_each_and_pipelines():
    kinds = [type(example) for example in examples()]
    assert set(REGISTRY.values()) < set(kinds)
    assert {titled(e).split("-")[-1] for e in examples() if isinstance(e, ppdp.Pipeline)} == {
        "LogisticRegression",
        "PCA",
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", REGISTRY.values(), ids=list(REGISTRY))
def test_docstrings_name_what_is_fitted(kind):
    """All but what scikit-learn names of every estimator; what several classes share, their base does."""
    X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
    fitted = vars(short(kind.example()).fit(X, np.tile([0, 1], 30)))
    bases = " ".join(base.__doc__ or "" for base in kind.__mro__ if base.__module__.startswith("ppdp."))
    named = {*re.findall(r"\w+", bases), "n_features_in_", "feature_names_in_"}
    assert not {name for name in fitted if name.endswith("_") and not name.startswith("_")} - named


@pytest.mark.parametrize("kind", REGISTRY.values())
def test_examples_are_ordinary_estimators(kind):
    first, second = kind.example(), kind.example()
    assert isinstance(first, BaseEstimator)
    assert first is not second
    assert repr(clone(first)) == repr(second)


NOT_FOR_USERS = (
    "base",
    "stage",
    "column_map",
    "column_stage",
    "column_subset",
    "floor",
    "Imputer",
    "ColumnImputer",
    "Hasher",
    "LabelledTransformer",
    "Selector",
)  # what others inherit from; what only a conversion, or a mechanism, makes


def concrete_classes(package, base):
    """Classes of a package that people can use, found in its files."""
    found = set()
    for path in (path for path in INSTALLED if path.startswith(f"{package.__name__}.")):
        module, last = importlib.import_module(path), path.rpartition(".")[2]
        for name, kind in inspect.getmembers(module, inspect.isclass):
            internal = name.startswith("_") or {last, name} & set(NOT_FOR_USERS)
            if issubclass(kind, base) and kind.__module__ == module.__name__ and not internal:
                found.add(name)
    return found


@pytest.mark.parametrize(("package", "base"), [(transformers, Stage), (mechanisms, Mechanism)])
def test_every_class_is_exported_and_registered(package, base):
    assert concrete_classes(package, base) == set(package.__all__)
    for name in package.__all__:
        assert REGISTRY[name] is getattr(package, name)


def test_own_classes_can_be_registered():
    class Halved(MinMaxScaler):
        pass

    try:
        assert register(Halved) is Halved
        assert any(isinstance(example, Halved) for example in examples())
    finally:
        REGISTRY.pop("Halved")


@pytest.mark.parametrize("kind", [getattr(mechanisms, name) for name in mechanisms.__all__])
def test_a_mechanism_alone_needs_a_noise_scale(kind):
    X = np.linspace(-1, 1, 60).reshape(30, 2)
    with pytest.raises(MissingBudget):
        kind().fit(X, np.arange(30) % 2)
    assert kind(noise_scale=0.1, random_state=0).fit(X, np.arange(30) % 2)


def noisy(estimators):
    return [estimator for estimator in estimators if "random_state" in estimator.get_params()]


@pytest.mark.parametrize("estimator", noisy([*examples(), full_pipeline()]), ids=titled)
def test_a_seed_decides_all_noise(estimator, monkeypatch):
    issued = fits.FitCharge.issued
    one_day = {"date": "2026-01-01T00:00:00+00:00"}
    monkeypatch.setattr(fits.FitCharge, "issued", lambda self, delta: issued(self, delta) | one_day)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), np.arange(300) % 2
    states, told = [], ("random_state", "_state")
    for seed in (7, 7, 8):
        fitted = clone(estimator).set_params(random_state=seed).fit(X, y)
        states.append({name: repr(value) for name, value in vars(fitted).items() if name not in told})
    assert states[0] == states[1] != states[2]
