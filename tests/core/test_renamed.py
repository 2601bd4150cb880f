"""Names of the version before work once more, and say the new one."""

import inspect
import warnings

import pytest
from sklearn import preprocessing
from sklearn.base import clone

from ppdp import Adjacency, Domain, Pipeline, lint, mechanisms, transformers
from ppdp.core.keywords import PARAMETERS, renamed_parameters
from ppdp.exceptions import UnknownParameter, UnknownStage
from ppdp.mechanisms import LaplaceMechanism
from ppdp.mechanisms.base import Mechanism
from ppdp.transformers import Deduplicator, MeanImputer, NormClipper
from ppdp.transformers.base import RowWiseTransformer, Stage

OWN = {name: getattr(room, name) for room in (mechanisms, transformers) for name in room.__all__}
RENAMED = [(kind, old, new) for kind in OWN.values() for old, new in renamed_parameters(kind).items()]


@pytest.mark.parametrize(("kind", "old", "new"), RENAMED)
class TestEveryParameter:
    def test_works_under_its_old_name_and_is_kept_under_the_new_one(self, kind, old, new):
        with pytest.warns(FutureWarning, match=f"{old}= of {kind.__name__} is now {new}="):
            made = kind(**{old: 0.125})
        assert made.get_params()[new] == 0.125
        assert old not in made.get_params()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert getattr(clone(made), new) == 0.125

    def test_is_set_and_read_under_its_old_name(self, kind, old, new):
        stage = kind()
        with pytest.warns(FutureWarning, match=f"{new}="):
            stage.set_params(**{old: 0.125})
        with pytest.warns(FutureWarning, match=rf"{kind.__name__}\.{old} is now {new};"):
            assert getattr(stage, old) == 0.125

    def test_is_given_once(self, kind, old, new):
        with pytest.raises(UnknownParameter, match=f"has no parameter '{old}'"):
            kind(**{old: 1, new: 1})
        with pytest.raises(UnknownParameter, match=f"parameter '{old}'"):
            kind().set_params(**{old: 1, new: 1})


def test_every_new_name_is_there_and_no_old_one():
    for name, renamed in PARAMETERS.items():
        if name in OWN:  # the others are bases, or have a test of their own
            assert not {*inspect.signature(OWN[name]).parameters} & {*renamed}
            assert {*renamed.values()} <= {*inspect.signature(OWN[name]).parameters}


def test_a_pipeline_takes_parameters_of_its_steps_under_their_old_names():
    with pytest.warns(FutureWarning) as caught:
        pipe = Pipeline([("fill", MeanImputer())], invalid="repair").set_params(fill__floor=False)
    assert [str(one.message).partition(" ")[0] for one in caught] == ["invalid=", "floor="]
    assert (pipe.on_invalid, pipe.get_params()["fill__use_floor"]) == ("repair", False)


def test_a_finding_of_lint_has_its_counterpart_under_both_names():
    (found,) = lint(preprocessing.MinMaxScaler())
    with pytest.warns(FutureWarning, match="counterpart"):
        assert found.twin == found.counterpart == "MinMaxScaler"


def test_classes_of_users_keep_their_names():
    class PCA(RowWiseTransformer):
        def __init__(self, basis=1):
            self.basis = basis

    class Imputer(MeanImputer):
        def __init__(self, statistics="auto"):
            super().__init__()
            self.statistics = statistics

    assert PCA(basis=2).set_params(basis=3).basis == 3
    assert Imputer(statistics="mine").statistics == "mine"


class Halved(Stage):
    """Written for an earlier version."""

    def ways(self, domain, distance):
        return NormClipper(0.5).fit_modes(domain, distance)


class Counted(Mechanism):
    """The same."""

    def question(self, domain, mu=None):
        return LaplaceMechanism("count").query_spec(domain, mu)


class CountedHere(Counted):
    """The same, at a distance."""

    def question_at(self, domain, distance, mu=None):
        return LaplaceMechanism("sum").query_spec(domain, mu)


def test_methods_that_others_wrote_under_earlier_names_are_called():
    domain = Domain(n_rows=10, n_features=2, row_norm=1.0)
    with pytest.warns(FutureWarning, match="the method ways of Halved is now fit_modes"):
        assert Halved().stability_map(domain, domain.neighbours)[0].row_norm == 0.5
    with pytest.warns(FutureWarning, match="the method question of Counted is now query_spec"):
        assert Counted().query_spec_at(domain, domain.neighbours).formula == "laplace.count"
    with pytest.warns(FutureWarning, match="the method question_at of CountedHere is now query_spec_at"):
        assert CountedHere().query_spec_at(domain, domain.neighbours).formula == "laplace.sum"
    with pytest.raises(UnknownStage, match=r"it has no fit_modes\..*own-stage"):
        Stage().fit_modes(domain, domain.neighbours)


def test_a_warning_stands_where_the_name_was_written():
    with pytest.warns(FutureWarning) as caught:
        Deduplicator(keys="raw")
    assert caught[0].filename == __file__


def test_what_never_was_a_name_is_no_attribute():
    with pytest.raises(AttributeError, match="nonsense"):
        _ = MeanImputer().nonsense


def test_the_earlier_name_of_user_level_makes_the_same():
    with pytest.warns(FutureWarning, match="user_level"):
        assert Adjacency.person(3) == Adjacency.user_level(3)
