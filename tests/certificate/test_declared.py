"""What a certificate takes from the user's word: every range and constant, for whoever asks where it comes from."""

import numpy as np
import pandas as pd
import pytest
from pages import Reader
from zoo import document, sealed

from ppdp import Domain, Pipeline, make_pipeline
from ppdp.certificate import verify
from ppdp.certificate.pages.statement import WORDS
from ppdp.certificate.pages.statements import MOST_FACTS
from ppdp.core.declared import constants, ranges_by_column
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, LogisticRegression
from ppdp.transformers import GridQuantizer, MinMaxScaler, NormClipper, RowMap

RANGES = {"age": (18, 110), "chain": (0.1, 42.25)}
FRAME = pd.DataFrame({"age": np.linspace(20, 90, 500), "chain": np.linspace(1, 40, 500)})


def on_trust(plan):
    return [(f.name, f.value, f.origin) for f in plan.facts if f.step]


def plan(*steps, **facts):
    return make_pipeline(*steps).plan(Domain(n_rows=1000, **{"n_features": 2, **facts}))


# ---------------------------------------------------------------- which facts there are


def test_every_declared_range_is_a_fact_of_the_certificate():
    issued = Pipeline([("box", MinMaxScaler(RANGES)), ("mean", GaussianMechanism())]).fit(FRAME).certificate_
    facts = [{"name": f"range of {n}", "value": v, "origin": "declared, step 'box'"} for n, v in
             (("age", "18 to 110"), ("chain", "0.1 to 42.25"))]  # fmt: skip
    assert [fact for fact in issued["facts"] if fact in facts] == facts
    assert issued.verify()
    for shown in (issued.to_text(full=True), issued.to_model_card()):
        assert "range of age = 18 to 110 (declared, step 'box')" in shown
    page = Reader(issued.to_html()).text
    assert "as they stand at these steps age 18 to 110; chain 0.1 to 42.25 declared, step “box”" in page
    assert WORDS["trust"] in page


def test_a_changed_range_is_found_by_the_digest():
    content = document("unconditional")
    (position,) = [i for i, fact in enumerate(content["facts"]) if fact["name"] == "range of every column"]
    content["facts"][position]["value"] = "0 to 1"
    assert not verify(content)
    assert verify(sealed(content)), "no number follows from it: only the digest protects what a user said"


@pytest.mark.parametrize(
    ("ranges", "named", "found"),
    [
        ((-1, 1), True, ["every column: -1 to 1"]),
        ([(0, 1), (0, 1e-9)], False, ["column 0: 0 to 1", "column 1: 0 to 1e-09"]),
        ([(0, 1), (0, 2)], True, ["age: 0 to 1", "chain: 0 to 2"]),
        (np.array([[0.0, 1.0], [0.0, 1e300]]), True, ["age: 0 to 1", "chain: 0 to 1e+300"]),
        ({1: (0, 2.5), 0: (0, 1)}, False, ["column 1: 0 to 2.5", "column 0: 0 to 1"]),
        ({"chain": (1, 2), "age": None}, True, ["chain: 1 to 2"]),
        ([(0, 1), (np.nan, np.nan)], True, ["age: 0 to 1"]),
    ],
)
def test_ranges_in_every_form(ranges, named, found):
    told = ranges_by_column(ranges, ["age", "chain"] if named else None)
    assert [f"{name.removeprefix('range of ')}: {value}" for name, value, _ in told] == found


def test_constants_of_stages_and_mechanisms():
    steps = NormClipper(2.5), RowMap(np.tanh, out_ranges={"u": (-1, 1), "v": (-2, 2)}), GridQuantizer(0.25)
    assert on_trust(plan(*steps, LaplaceMechanism("histogram", bins=4))) == [
        ("largest norm of a row", "2.5", "declared, step 'normclipper'"),
        ("range of what comes out in u", "-1 to 1", "declared, step 'rowmap'"),
        ("range of what comes out in v", "-2 to 2", "declared, step 'rowmap'"),
        ("width of a cell", "0.25", "declared, step 'gridquantizer'"),
        ("bins", "4", "declared, step 'laplacemechanism'"),
    ]


def test_defaults_are_not_the_users_word_but_the_norm_is_always_told():
    found = on_trust(plan(NormClipper(), GaussianMechanism()))
    assert found == [("largest norm of a row", "1", "default, step 'normclipper'")]


def test_bounds_of_the_domain_are_facts_as_well():
    facts = {f.name: (f.value, f.origin) for f in plan(GaussianMechanism(), row_norm=2.0, entry_bound=1.5).facts}
    assert facts["entry_bound"] == ("1.5", "declared; entries above it are clipped")


def test_a_converted_pipeline_tells_ranges_fills_and_thresholds():
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline as theirs
    from sklearn.preprocessing import Binarizer

    columns = make_column_transformer(
        (SimpleImputer(strategy="constant", fill_value=40), ["age"]), (Binarizer(threshold=7.5), ["chain"])
    )
    pipe = Pipeline.from_sklearn(theirs(columns, LogisticRegression()), ranges=RANGES, classes=(0, 1))
    domain = Domain(n_rows=1000, n_features=2, feature_names=("age", "chain"))
    told = {name: value for name, value, _ in on_trust(pipe.plan(domain))}
    expected = {"range of age": "18 to 110", "range of chain": "0.1 to 42.25", "what fills gaps of age": "40"}
    assert expected.items() <= told.items()
    assert told["threshold of chain"] == "7.5"


class Strange(NormClipper):
    """A stage of somebody else, with parameters of other forms."""

    def __init__(self, max_norm=1.0, ranges=None, weights=None):
        super().__init__(max_norm)
        self.ranges = ranges
        self.weights = weights


@pytest.mark.parametrize("ranges", [{"age": "wide"}, "wide", 3, [1, 2, 3], {7: (0, 1)}])
def test_parameters_in_other_forms_are_told_as_they_stand(ranges):
    told = {name: value for name, value, _ in constants(Strange(ranges=ranges, weights=np.array([0.5, 2.0])), ["age"])}
    assert told["weights"] == "0.5, 2"
    assert any(name.startswith("range of ") for name in told)


# ---------------------------------------------------------------- where they are shown


def test_a_wide_table_is_shortened_on_the_page_and_whole_in_the_document():
    width = 2 * MOST_FACTS
    box = MinMaxScaler([(0, 1 + i) for i in range(width)])
    issued = make_pipeline(box, GaussianMechanism()).fit(np.zeros((300, width))).certificate_
    assert sum(fact["name"].startswith("range of column") for fact in issued["facts"]) == width
    for shown in (Reader(issued.to_html()).text, issued.to_text(full=True)):
        assert f"column {MOST_FACTS - 1} " in shown
        assert f"column {MOST_FACTS} " not in shown
        assert f"{width - MOST_FACTS} more that are declared" in shown


def test_the_plan_tells_them_before_any_data():
    domain = Domain(n_rows=1000, n_features=2, feature_names=("age", "chain"))
    made = make_pipeline(MinMaxScaler(RANGES), GaussianMechanism()).plan(domain)
    assert "range of age: 18 to 110 (declared, step 'minmaxscaler')" in repr(made)
    assert "range of age: 18 to 110" in made._repr_html_()


def test_statistics_that_predictions_need_are_not_said_to_fit():
    from ppdp.pipeline.planning.solve import _too_noisy
    from ppdp.transformers import StandardScaler

    domain = Domain(n_rows=1000, n_features=2)
    model = LogisticRegression((0, 1))
    exact, noisy = (
        make_pipeline(NormClipper(), StandardScaler(fit_mode=way), model).plan(domain) for way in ("exact", "noisy")
    )
    stage = {
        id(plan): next(step for step in plan.steps if step.name == "standardscaler").stage for plan in (exact, noisy)
    }
    imprecise = {id(plan): [(plan.releases[0], 0.29)] for plan in (exact, noisy)}
    told = [_too_noisy(plan, imprecise[id(plan)]) for plan in (exact, noisy)]
    assert told == ["", ""], "a user who chose the way insists on it"
    for plan in (exact, noisy):
        stage[id(plan)].fit_mode = "auto"
    assert _too_noisy(noisy, imprecise[id(noisy)]) == (
        "too noisy: the mean squares for 'standardscaler' err by 29 % of the largest square"
    )
    assert "for predictions of 'standardscaler' err by 29 %" in _too_noisy(exact, imprecise[id(exact)])
