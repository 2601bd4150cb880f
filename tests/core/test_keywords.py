"""Wrong names of parameters, scikit-learn's above all, are answered with what to write in their place."""

import importlib
import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline as SklearnPipeline
from sklearn.utils import all_estimators
from sources import INSTALLED

import ppdp
from ppdp import Pipeline, PrivateSearchCV, make_pipeline, mechanisms, transformers
from ppdp.core.keywords import INSTEAD
from ppdp.exceptions import InvalidParameter, MissingBound, PpdpError, UnknownParameter
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import MinMaxScaler, StandardScaler

THEIRS = dict(all_estimators())
NAMESAKES = {"MeanImputer": "SimpleImputer", "MedianImputer": "SimpleImputer", "TrimmedMeanImputer": "SimpleImputer"}
NAMESAKES |= {"CategoryEncoder": "OneHotEncoder", "TargetMeanEncoder": "TargetEncoder", "NormClipper": "Normalizer"}
NAMESAKES |= {"RandomProjection": "GaussianRandomProjection"}
OWN = {name: getattr(room, name) for room in (mechanisms, transformers) for name in room.__all__}
PAIRS = {name: (kind, THEIRS.get(NAMESAKES.get(name, name))) for name, kind in OWN.items() if isinstance(kind, type)}
PAIRS |= {"Pipeline": (Pipeline, SklearnPipeline), "search": (PrivateSearchCV, GridSearchCV)}
PAIRS |= {"random search": (PrivateSearchCV, RandomizedSearchCV)}
BOTH = {name: pair for name, pair in PAIRS.items() if pair[1] is not None}
METHODS = ("fit", "transform", "fit_transform", "predict", "predict_proba", "score", "decision_function")


def parameters(of):
    return {name for name, one in inspect.signature(of).parameters.items() if one.kind != one.VAR_KEYWORD}


def pipeline(**more):
    return make_pipeline(MinMaxScaler(ranges=(0, 1)), LogisticRegression(classes=(0, 1)), **more)


@pytest.fixture(scope="module")
def rows():
    X = np.random.default_rng(0).uniform(size=(200, 2))
    return X, (X[:, 0] > 0.5).astype(int)


@pytest.mark.parametrize("name", BOTH)
class TestNamesOfScikitLearn:
    def test_of_constructors(self, name):
        own, theirs = BOTH[name]
        for wrong in parameters(theirs) - parameters(own):
            with pytest.raises(UnknownParameter, match=f"{own.__name__} has no parameter '{wrong}'") as refused:
                own(**{wrong: None})
            assert refused.value.fix == INSTEAD[wrong]

    def test_of_methods(self, name):
        own, theirs = BOTH[name]
        for method in METHODS:
            if not (hasattr(own, method) and hasattr(theirs, method)):
                continue
            for wrong in parameters(getattr(theirs, method)) - parameters(getattr(own, method)) - {"params"}:
                instance = own.example() if hasattr(own, "example") else pipeline()
                with pytest.raises((UnknownParameter, AttributeError)):
                    getattr(instance, method)(np.zeros((1, 1)), **{wrong: None})


@pytest.mark.parametrize("name", [name for name, (kind, _) in PAIRS.items() if hasattr(kind, "fit")])
@pytest.mark.parametrize("wrong", ["sample_weight", "class_weight", "C", "nonsense"])
def test_no_class_and_no_fit_takes_what_it_does_not_know(name, wrong):
    kind = PAIRS[name][0]
    if wrong not in parameters(kind):
        with pytest.raises(UnknownParameter) as refused:
            kind(**{wrong: 1})
        assert isinstance(refused.value, TypeError)
        assert refused.value.fix
    if wrong == "sample_weight" and name in ("Pipeline", "search", "random search"):  # whose fits take it
        return
    needed = {"search": (None, {}), "random search": (None, {}), "Pipeline": ([],)}.get(name, ())
    for method in ("fit", "fit_transform"):
        if method in vars(kind) or any(method in vars(base) for base in kind.__mro__ if base.__module__[:4] == "ppdp"):
            with pytest.raises((UnknownParameter, AttributeError), match=f"no parameter '{wrong}'|no attribute"):
                getattr(kind(*needed), method)([[1.0]], [0], **{wrong: 1})


def exported():
    """Whatever a user calls: constructors and class methods of exported classes, and exported functions."""
    for module in (importlib.import_module(name) for name in INSTALLED):
        for name in getattr(module, "__all__", ()) if module not in (ppdp.exceptions, ppdp.datasets) else ():
            made = getattr(module, name)
            if isinstance(made, type):
                methods = [key for key, one in vars(made).items() if isinstance(one, (classmethod, staticmethod))]
                yield from ((f"{name}.{key}", getattr(made, key)) for key in methods if key[0] != "_")
            if inspect.isroutine(made) or (isinstance(made, type) and not is_base(made)):
                yield name, made


def is_base(kind):
    """Whether nobody makes an object of it: an error, or what others inherit from."""
    return issubclass(kind, BaseException) or inspect.isabstract(kind) or kind.__init__ is object.__init__


def hands_on(made):
    """Whether names that it does not know are for somebody else."""
    return any(one.kind == one.VAR_KEYWORD for one in inspect.signature(made).parameters.values())


CALLED = {name: made for name, made in exported() if not hands_on(made)}


@pytest.mark.parametrize("name", CALLED)
def test_whatever_is_exported_answers_a_slip(name):
    known = [one for one in inspect.signature(CALLED[name]).parameters.values() if one.kind == one.KEYWORD_ONLY]
    slip = f"{known[0].name}x" if known else "nonsense"
    with pytest.raises(UnknownParameter, match=rf"^{name} has no parameter '{slip}'") as refused:
        CALLED[name](**{slip: 1})
    assert repr(known[0].name) in refused.value.fix if known else refused.value.fix


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        (lambda: ppdp.Domain(n_row=5), "'n_rows'"),
        (lambda: ppdp.Ledger(epsilom=1.0), "'epsilon'"),
        (lambda: ppdp.Adjacency.user_level(row=2), "max_rows"),
        (lambda: ppdp.Adjacency.user_level(), "max_rows=..."),
        (lambda: ppdp.Adjacency.change(0.5), "coordinate, count, l1, l2"),
        (lambda: ppdp.make_column_map((MinMaxScaler(), ["a"]), remainder="drop"), "no part names are left out"),
    ],
)
def test_entries_name_what_was_meant(call, fix):
    with pytest.raises(UnknownParameter) as refused:
        call()
    assert fix in refused.value.fix


def test_exported_functions_are_pickled_by_their_names():
    for made in CALLED.values():
        if inspect.isfunction(made):
            assert pickle.loads(pickle.dumps(made)) is made


class TestFits:
    @pytest.mark.parametrize("method", ["fit", "score", "predict", "predict_proba", "decision_function", "transform"])
    def test_weights_are_refused_before_anything_is_spent(self, rows, method):
        ledger = ppdp.Ledger(epsilon=2.0, delta=1e-3)
        pipe = pipeline(ledger=ledger, delta=1e-4)
        pipe = pipe if method in ("fit", "transform") else pipe.fit(*rows)
        spent = len(ledger)
        given = rows if method in ("fit", "score") else rows[:1]
        with pytest.raises((UnknownParameter, MissingBound, AttributeError), match=r"sample_weight'|transform"):
            getattr(pipe, method)(*given, sample_weight=np.ones(200))
        assert len(ledger) == spent

    def test_a_weight_is_not_swallowed(self, rows):
        with pytest.raises(UnknownParameter):
            StandardScaler().fit_transform(*rows, sample_weight=np.ones(200))

    def test_too_many_arguments(self, rows):
        with pytest.raises(UnknownParameter, match="fewer arguments") as refused:
            pipeline().fit(*rows, None, np.ones(200))
        assert "X, y, groups" in refused.value.fix

    def test_no_rows_stay_in_the_traceback(self, rows):
        with pytest.raises(UnknownParameter) as refused:
            pipeline().fit(*rows, sample_weights=rows[1])
        frames, trace = [], refused.value.__traceback__.tb_next
        while trace is not None:
            frames.append(trace.tb_frame)
            trace = trace.tb_next
        assert not any(value is rows[0] for frame in frames for value in frame.f_locals.values())


class TestSetting:
    def test_slips_and_words_of_scikit_learn(self):
        cases = {"epsilonn": "'epsilon'", "logisticregression__C": "1/C", "minmaxscaler__rangs": "'ranges'"}
        for name, fix in cases.items():
            with pytest.raises(UnknownParameter, match="Invalid parameter") as refused:
                pipeline().set_params(**{name: 1})
            assert fix in refused.value.fix
        with pytest.raises(InvalidParameter, match="Invalid parameter 'modell'"):
            pipeline().set_params(modell__C=1)

    def test_a_grid_of_scikit_learn_names_the_right_one(self, rows):
        search = PrivateSearchCV(pipeline(), {"logisticregression__C": [0.1, 1.0]})
        with pytest.raises(UnknownParameter) as refused:
            search.fit(*rows)
        assert refused.value.fix.startswith("alpha, which is 1/C")

    def test_new_steps_and_their_parameters_at_once(self):
        pipe = pipeline().set_params(steps=[("m", LogisticRegression())], m__alpha=2.0, epsilon=3.0)
        assert (pipe.steps[0][1].alpha, pipe.epsilon) == (2.0, 3.0)

    def test_what_is_made_pickled_and_cloned_is_the_same(self):
        for one in (pipeline(), LogisticRegression(classes=(0, 1)), PrivateSearchCV(pipeline(), {})):
            assert repr(clone(one)) == repr(one)
        assert pickle.loads(pickle.dumps(LogisticRegression((0, 1)))).classes == (0, 1)
        assert "C" not in inspect.signature(LogisticRegression).parameters
        assert make_column_transformer((StandardScaler(), [0]))


def test_no_message_holds_a_line_break_in_letters(rows):
    def failing(X):
        raise ValueError("first line\nsecond line")

    frame = pd.DataFrame(rows[0], columns=["a", "b"])
    broken = [
        lambda: pipeline().fit(frame, rows[1]).predict(frame.rename(columns={"a": "c"})),
        lambda: transformers.RowMap(failing, out_ranges=(0, 1)).fit(rows[0]),
        lambda: PrivateSearchCV(pipeline(), {"logisticregression__alpha": 5}).fit(*rows),
    ]
    for call in broken:
        with pytest.raises(PpdpError) as refused:
            call()
        assert "\\n" not in str(refused.value)
        assert "\n" not in str(refused.value)
