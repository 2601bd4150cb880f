"""Slips of authors of own stages: each is refused with what to write, and before a fit is charged."""

import pickle
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.preprocessing import StandardScaler

from ppdp import Adjacency, ColumnTransformer, Domain, Ledger, PrivacyLoss, PrivateSearchCV, make_pipeline
from ppdp.core.adjacency import KINDS, Replace
from ppdp.core.formula import FORMULAS, formula
from ppdp.exceptions import InvalidParameter, PpdpError, StageFailed, UnknownParameter
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.mechanisms.base import Mechanism, QuerySpec
from ppdp.testing import REGISTRY, check_stage, register
from ppdp.transformers import MinMaxScaler, NormClipper
from ppdp.transformers.base import RowWiseTransformer, Stage
from ppdp.transformers.fit_mode import FitMode

X = np.random.default_rng(0).normal(size=(1000, 2))
STABILITY = {"kind": "stability", "page": "row-wise", "way": "public"}
USED_BY = "Other", "Nearer", "Mapped", "Keeping", "Heavier", "Fewer", "Holding", "Marking", "Again"


def same(domain, distance):
    """Nothing moves."""
    return domain, distance


@pytest.fixture(autouse=True)
def of_other(monkeypatch):
    """Formulas of these tests are forgotten; "own.map" is that of Other."""
    for name in ("own.map", "own.new"):
        monkeypatch.setitem(FORMULAS, name, None)
        del FORMULAS[name]
    formula("own.map", **STABILITY, gaps=True, row_by_row=True, used_by=USED_BY)(same)


class Other(RowWiseTransformer):
    """What is right."""

    def __init__(self, scale=1):
        self.scale = scale

    def fit_modes(self, domain, distance):
        return (FitMode.by("own.map", domain, distance),)

    def map_rows(self, X, statistics):
        return -X


class Unlisted(Other):
    pass


class Altering(Other):
    def __init__(self, scale=1):
        self.scale = scale + 1


class Single(Other):
    def fit_modes(self, domain, distance):
        return FitMode.by("own.map", domain, distance)


class WithoutModes(RowWiseTransformer):
    map_rows = Other.map_rows


class WithoutMap(RowWiseTransformer):
    fit_modes = Other.fit_modes


class Nearer(Other):
    def fit_modes(self, domain, distance):
        return (replace(FitMode.by("own.map", domain, distance), domain=domain.but(row_norm=3.0)),)


def mapped(function):
    return type("Mapped", (Other,), {"map_rows": lambda self, X, statistics: function(X)})()


def mixed(X):
    return X - X.mean(axis=0)


class Keeping(Other):
    def map_rows(self, X, statistics):
        self.mean = getattr(self, "mean", X.mean(axis=0))
        return X - self.mean


class Heavier(Other):
    def apply(self, rows, statistics):
        return replace(rows, weight=2 * rows.weight)


class Fewer(Stage):
    """A stage that is no transformer, and tells how many rows there are."""

    def fit_modes(self, domain, distance):
        return (FitMode.by("own.map", domain, distance),)

    def apply(self, rows, statistics):
        return rows.part(rows.X[:, 0] >= 0)


class Marking(Other):
    def map_rows(self, X, statistics):
        type(self).seen = X[0]
        return -X


class Holding(Other):
    def map_rows(self, X, statistics):
        self.rows = X
        return -X


class Total(Mechanism):
    """A sum of entries, with noise."""

    def __init__(self, noise_scale=None, random_state=None):
        self.noise_scale, self.random_state = noise_scale, random_state

    def query_spec(self, domain, mu=None):
        known = {"kind": "mechanism", "page": "releases", "shape": lambda domain: (1, 2.0 * domain.n)}
        formula("own.new", **known)(total)
        return QuerySpec.asked("own.new", "mechanism", domain, {})

    def release(self, rows, question, noise, noise_scale):
        return {"answer": noise.release(rows.X.sum(axis=0)[:1], noise_scale, question.bound)}

    def read(self, released, domain, question):
        self.total_ = released["answer"]


class Certain(Total):
    """Of a law that is not known, and without noise."""

    def query_spec(self, domain, mu=None):
        known = {"kind": "privacy", "page": "releases", "shape": lambda domain: (1, 2.0 * domain.n)}
        formula("own.new", **known)(nothing)
        return QuerySpec.asked("own.new", "privacy", domain, {})

    def release(self, rows, question, noise, noise_scale):
        return {"answer": rows.X.sum(axis=0)[:1]}


def nothing(domain, distance, *, noise_scale):
    return PrivacyLoss(1 / noise_scale)


def total(domain, distance):
    return distance.shift(domain.row_norm, 1.0)


def releasing(function):
    """One that releases an array by a function of rows and noise, and what else it has."""
    return type("Releasing", (Total,), {"release": lambda self, *given: function(*given)})()


class Late(Total):
    """Shows what it is on private rows only."""

    def release(self, rows, question, noise, noise_scale):
        if not np.array_equal(rows.X[0], rows.X[16]):  # as made-up ones are
            self.rows = rows.X
            return {"answer": rows.X.sum(axis=0)[:1]}
        return super().release(rows, question, noise, noise_scale)


class Fitted(Other):
    """Its statistic is allowed, what its map takes beside it is not."""

    def fit_modes(self, domain, distance):
        formula("own.new", **{**STABILITY, "way": "exact"})(same)
        return (FitMode.by("own.new", domain, distance),)

    def prepare(self, rows, way, domain):
        return {"mean": rows.X.mean(axis=0)}

    def map_rows(self, X, statistics):
        return mixed(X)


class Looser(NormClipper):
    def map_rows(self, X, statistics):
        return 100 * X


class Louder(GaussianMechanism):
    pass


class WithoutRelease(GaussianMechanism):
    release = Mechanism.release


for ours in (Looser, Louder):  # as somebody may call a class that inherits from ppdp's
    for name in ("__name__", "__qualname__", "__module__"):
        setattr(ours, name, getattr(ours.__mro__[1], name))


def test_what_is_right_is_taken_and_may_be_written_again():
    formula("own.map", **STABILITY, gaps=True, row_by_row=True, used_by=USED_BY)(same)
    assert pipeline(Other()).fit(X).certificate_.verify()


@pytest.mark.parametrize("name", ["row-wise.norm-clip", "own.map"])
def test_a_name_that_is_taken_is_refused(name):
    known = FORMULAS[name]
    with pytest.raises(InvalidParameter, match=r"exists already, in .* Fix: another name"):
        formula(name, **STABILITY)(lambda domain, distance: (domain, distance))
    assert FORMULAS[name] is known


def test_what_is_shipped_is_not_defined_again(monkeypatch):
    known = FORMULAS["row-wise.norm-clip"]
    monkeypatch.setattr(same, "__module__", known.function.__module__)
    assert (known.shipped, FORMULAS["own.map"].shipped) == (True, False)
    with pytest.raises(InvalidParameter, match="exists already"):
        formula(known.id, **STABILITY)(known.function)


@pytest.mark.parametrize(
    ("facts", "kind", "words"),
    [
        ({"kind": "stabil"}, InvalidParameter, "kind of 'own.new' must be one of 'stability', "),
        ({"way": "pubic"}, InvalidParameter, "way of 'own.new' must be one of 'public', 'noisy', 'exact'"),
        ({"page": 3}, InvalidParameter, "page must be text"),
        ({"used_by": "Other"}, InvalidParameter, "used_by=('Name',), in quotes and with the comma"),
        ({"used": ("Other",)}, UnknownParameter, "did you mean 'used_by'"),
    ],
)
def test_facts_that_are_none_are_refused(facts, kind, words):
    with pytest.raises(kind, match=re.escape(words)):
        formula("own.new", **{**STABILITY, **facts})(same)
    assert "own.new" not in FORMULAS


def test_a_class_of_a_shipped_name_does_not_take_its_place_in_the_registry():
    with pytest.raises(InvalidParameter, match=r"NormClipper is registered already.* Fix: another name"):
        register(Looser)
    assert REGISTRY["NormClipper"] is NormClipper


def test_an_adjacency_of_a_shipped_name_does_not_take_its_key():
    with pytest.raises(InvalidParameter, match="'replace' is a key of Replace"):
        type("Replace", (Replace,), {"keys": ("replace",), "__module__": Replace.__module__})
    assert type(Adjacency.replace()) is Replace is KINDS["replace",]


def test_a_group_of_columns_is_no_part_of_a_name():
    with pytest.raises(InvalidParameter, match="without '@'"):
        formula("row-wise.norm-clip@numbers", **STABILITY)(same)


D = Domain(n_rows=1000, n_features=2, row_norm=2.0)


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (
            lambda: WithoutMap(k=3),
            "has no parameter 'k'. Fix: @dataclass(eq=False, repr=False) on the class WithoutMap",
        ),
        (lambda: Other(k=3), "has no parameter 'k'. Fix: its parameters are scale."),
        (lambda: FitMode.by("own.map", D, D.neighbours, distanse=1), "no parameter 'distanse'. Fix: did you mean"),
    ],
)
def test_words_that_are_no_parameters(made, words):
    with pytest.raises(UnknownParameter, match=re.escape(words)):
        made()


def pipeline(step, **options):
    last = [] if isinstance(step, Mechanism) else [GaussianMechanism()]
    return make_pipeline(NormClipper(2.0), step, *last, epsilon=1.0, delta=1e-6, **options)


MIXING = [
    mapped(mixed),
    mapped(lambda X: X * np.random.default_rng().choice([-1, 1], size=X.shape)),
    mapped(lambda X: mixed(X) if len(X) > 900 else X),
    Keeping(),
    Fitted(),
    ColumnTransformer([("all", mapped(mixed), [0, 1])]),
]


def changed(step, **attributes):
    vars(step).update(attributes)
    return step


def defined_again():
    """An object of a class that gave its name to another one."""
    kinds = [type("Again", (Other,), {"__module__": __name__}) for _ in range(2)]
    globals()["Again"] = kinds[1]
    return kinds[0]()


@pytest.mark.parametrize(
    ("step", "words"),
    [
        (Unlisted(), f"not that of Unlisted. Fix: used_by={(*USED_BY, 'Unlisted')}"),
        (Altering(), "its __init__ does not keep the parameter scale as it is given. Fix: self.scale = scale"),
        (Single(), "return (FitMode.by(...),), with the comma"),
        (WithoutModes(), "it has no fit_modes. Fix: write it in its class"),
        (WithoutMap(), "it has no map_rows. Fix: write it in its class"),
        (Nearer(), "the certificate of this plan would not hold: steps[1].domain: another domain follows."),
        (mapped(lambda X: X[:-1]), "it maps 2 rows of 2 columns to the shape (1, 2), and its formula says (2, 2)"),
        (
            mapped(lambda X: X[:, :1]),
            "to the shape (2, 1), and its formula says (2, 2). Fix: one row for each row; domain.but(",
        ),
        *((step, "gives a row another result among other rows, or the next time. Fix: use") for step in MIXING),
        (
            mapped(lambda X: 2 * X),
            "it maps a made-up row to row_norm 4, and its formula says at most 2.",
        ),
        (mapped(np.sqrt), "it maps a made-up row to missing values, and its formula says that there are none."),
        (mapped(csr_array), "it maps 2 rows of 2 columns to a sparse array"),
        (mapped(lambda X: np.negative(X, out=X)), "it writes over the rows that it is given"),
        (Fewer(), "it maps 16 rows of 2 columns to the shape"),
        (Certain(), "it releases the same of made-up rows 5 times, as if there were no noise"),
        (Heavier(), "it gives weights beyond 0 and 1"),
        (Marking(), "its class has kept something of made-up rows"),
        (
            releasing(lambda rows, *_: {"answer": rows.X.sum(axis=0)[:1]}),
            "noise must be added 1 times, to as many numbers",
        ),
        (
            releasing(lambda rows, question, noise, scale: Total().release(rows, question, noise, scale / 2)),
            "of the scale",
        ),
        (
            releasing(lambda rows, *given: {**Total().release(rows, *given), "rows": rows.X[:3]}),
            "the certificate of this plan would not hold: released.names: other arrays follow",
        ),
        (changed(Other(), elementwise=True), "its attribute elementwise is not that of its class"),
        (defined_again(), "Again has been defined again since this one was made"),
        (Looser(2.0), "'row-wise.norm-clip' is proved of ppdp's own classes, and this NormClipper is none."),
        (
            Louder(),
            "is proved of ppdp's own classes, and this GaussianMechanism is none. Fix: @formula('own",
        ),
        (WithoutRelease(), "it has no release. Fix: write it in its class"),
        ("passthrough", "leave this step out"),
        (None, "leave this step out"),
        (NormClipper, "stage 'normclipper-2': ppdp.transformers.rowwise.norm_clipper.NormClipper is not a ppdp stage"),
    ],
)
def test_a_step_that_cannot_be_certified_is_refused_before_anything_is_spent(step, words):
    ledger = Ledger()
    with pytest.raises(PpdpError, match=re.escape(words)):
        pipeline(step, ledger=ledger).fit(X)
    assert not ledger.entries()


@pytest.mark.parametrize("step", [Unlisted(), mapped(lambda X: X[:-1])])
def test_a_search_refuses_it_before_anything_is_spent(step):
    ledger, model = Ledger(), LogisticRegression(classes=(0, 1))
    search = PrivateSearchCV(make_pipeline(NormClipper(2.0), step, model), {"normclipper__max_norm": [1.0, 2.0]})
    with pytest.raises(InvalidParameter, match=r"used_by=|maps 2 rows"):
        search.set_params(ledger=ledger).fit(X, X[:, 0] > 0)
    assert not ledger.entries()


def test_columns_of_another_number_are_numbered():
    wider = type("Wider", (Other,), {"map_rows": lambda self, X, statistics: np.c_[X, X]})()
    made = wider.set_output(transform="pandas").fit_transform(pd.DataFrame(X))
    assert list(made) == ["wider0", "wider1", "wider2", "wider3"]


def test_fitted_parts_and_steps_stay_fitted():
    """A public model that is a parameter, and a step that was fitted alone before."""
    stage = mapped(lambda X: X).set_params(scale=StandardScaler(with_std=False).fit(X))
    type(stage).map_rows = lambda self, X, statistics: self.scale.transform(X) - X
    pipe = make_pipeline(MinMaxScaler((-4, 4)).fit(X), NormClipper(2.0), stage, GaussianMechanism(), epsilon=1.0)
    assert pipe.fit(X).certificate_.verify()


def test_what_a_class_keeps_of_private_rows_ends_with_the_fit():
    pipe = pipeline(Holding()).fit(X)
    assert not hasattr(pipe.steps[1][1], "rows")
    assert len(pickle.dumps(pipe)) < X.nbytes


def test_noise_is_counted_in_a_fit_as_well():
    pipe = pipeline(Late())
    with pytest.raises(InvalidParameter, match="noise must be added"):
        pipe.fit(X)
    assert not hasattr(pipe, "release_")
    assert pipeline(Total()).fit(X).certificate_.verify()


def test_an_object_with_a_method_of_its_own_is_refused():
    step, ledger = GaussianMechanism(), Ledger()
    step.release = lambda rows, question, noise, noise_scale: {"answer": rows.X.mean(axis=0)}
    with pytest.raises(InvalidParameter, match="its method release is not that of its class"):
        pipeline(step, ledger=ledger).fit(X)
    assert not ledger.entries()


def test_errors_of_a_map_lead_to_the_contract_test(monkeypatch):
    monkeypatch.setattr(Other, "map_rows", lambda self, X: X)
    with pytest.raises(StageFailed, match=r"check_stage\(stage\)"):
        pipeline(Other()).fit(X)
    with pytest.raises(TypeError, match="2 positional arguments"):
        check_stage(Other())


@pytest.mark.parametrize(
    ("stage", "words"),
    [
        (StandardScaler(), "it is no instance of a ppdp stage"),
        (GaussianMechanism(), "a mechanism goes to check_mechanism"),
        (NormClipper, "NormClipper: it is no instance"),
        (Altering(), "clone changes its parameters; __init__ must keep them"),
        (Single(), "with the comma"),
        (WithoutModes(), "it has no fit_modes"),
    ],
)
def test_the_contract_test_names_what_is_wrong(stage, words):
    with pytest.raises(AssertionError, match=re.escape(words)):
        check_stage(stage)
