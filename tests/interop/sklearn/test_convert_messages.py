"""What a stranger sees: columns by name, slips in declarations, all refusals at once, words of errors."""

import re

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.random_projection import GaussianRandomProjection

from ppdp import Domain, Pipeline, transformers
from ppdp.core.names import nearest
from ppdp.exceptions import DomainMismatch, InvalidParameter, MissingBound, NonNumericData, UnknownStage

N = 400
NUMBERS = ["age", "dose", "bmi", "level"]
RANGES = dict.fromkeys(NUMBERS, (0, 1))
WARDS = {"ward": ["north", "south"], "sex": ["F", "M"]}
ALL = (*NUMBERS, "ward", "sex")
MODEL = LogisticRegression()


def columns(numbers=None, labels=None, where=NUMBERS, **settings):
    numbers = make_pipeline(SimpleImputer(), StandardScaler()) if numbers is None else numbers
    return ColumnTransformer([("num", numbers, where), ("cat", labels or OneHotEncoder(), ["ward", "sex"])], **settings)


def convert(*steps, **declared):
    facts = {"ranges": RANGES, "categories": WARDS, "classes": (0, 1), "epsilon": 5.0, "delta": 1e-5, **declared}
    return Pipeline.from_sklearn(make_pipeline(*steps), **facts)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(size=(N, 4)), columns=NUMBERS)
    X["ward"], X["sex"] = rng.choice(["north", "south"], N), rng.choice(["F", "M"], N)
    return X, (X["age"] > 0.5).astype(int)


@pytest.fixture(scope="module")
def fitted(table):
    return convert(columns(), MODEL).fit(*table)


class TestNamesOfColumns:
    """A plan knows the columns that the pipeline names."""

    def test_a_plan_takes_them_from_the_conversion(self):
        pipe = convert(columns(), MODEL)
        plan = pipe.plan(Domain(n_rows=4000, n_features=6))
        assert plan.domain.feature_names == ALL
        assert pipe.compare(Domain(n_rows=4000, n_features=6)).domain == "4000 rows x 6 columns, 2 classes"

    def test_they_are_as_good_as_declared_ones(self, table):
        pipe = convert(columns(), MODEL)
        declared = pipe.plan(Domain(n_rows=N, feature_names=tuple(table[0].columns)))
        assert declared.domain == pipe.plan(Domain(n_rows=N, n_features=6)).domain
        assert declared.mechanism.noise_scale == pipe.plan(Domain(n_rows=N, n_features=6)).mechanism.noise_scale

    def test_declared_names_are_the_number_of_columns(self):
        plan = convert(columns(), MODEL).plan(Domain(n_rows=4000, feature_names=("id", *ALL)))
        assert plan.domain.n_features == 7

    def test_columns_that_nobody_names_are_asked_for(self):
        with pytest.raises(InvalidParameter, match="6 names are known for 7 columns") as refused:
            convert(columns(), MODEL).plan(Domain(n_rows=4000, n_features=7))
        assert "feature_names=('age', ...)" in refused.value.fix

    @pytest.mark.parametrize("where", [[0, 1], slice("age", "level"), [True, True, False, False, False, False]])
    def test_where_their_order_matters_they_are_asked_for(self, where):
        pipe = convert(columns(where=where), MODEL)
        with pytest.raises(DomainMismatch, match="taken by name") as refused:
            pipe.plan(Domain(n_rows=4000, n_features=6))
        assert "feature_names" in refused.value.fix
        assert pipe.plan(Domain(n_rows=4000, feature_names=ALL)).domain.n_features == 6

    def test_positions_are_no_names(self):
        numbers = ColumnTransformer([("num", StandardScaler(), [0, 1])])
        pipe = convert(numbers, MODEL, ranges={0: (0, 1), 1: (0, 1)}, categories=None)
        assert pipe.plan(Domain(n_rows=4000, n_features=3)).domain.feature_names is None

    def test_positions_of_what_is_declared_by_name(self):
        encoded = ColumnTransformer([("hot", OneHotEncoder(), [3])])
        with pytest.raises(MissingBound, match=r"types=X\.dtypes tells which"):
            convert(encoded, MODEL, categories={"ward": ["north", "south"]})

    @pytest.mark.parametrize(
        ("make", "fix"),
        [
            (lambda X: X, "feature_names=tuple(X.columns)"),
            (pa.Table.from_pandas, "feature_names=tuple(X.column_names)"),
            (lambda X: X.to_numpy(), "n_features=X.shape[1]"),
            (lambda X: "X", "Domain(n_rows=..., n_features=...)"),
        ],
        ids=["pandas", "arrow", "numpy", "text"],
    )
    def test_data_are_no_domain(self, table, make, fix):
        pipe = convert(columns(), MODEL)
        for ask in (pipe.plan, pipe.compare, lambda X: convert(MODEL, domain=X)):
            with pytest.raises(InvalidParameter, match="domain must be a Domain") as refused:
                ask(make(table[0]))
            assert fix in refused.value.fix


SLIPS = {
    "categories": ({"categories": {**WARDS, "wards": ["north"]}}, "did you mean 'ward'?"),
    "categories that are needed": ({"categories": {"wards": ["north"], "sex": ["F"]}}, "did you mean 'ward'?"),
    "categories of nothing": ({"categories": {**WARDS, 17: ["north"]}}, "leave it out"),
    "ranges": ({"ranges": {**RANGES, "bmj": (0, 1)}}, "did you mean 'bmi'?"),
    "a range of labels": ({"ranges": {**RANGES, "sex": (0, 1)}}, "leave it out of ranges"),
    "functions": ({"functions": {"functiontransformer": (0, 1)}}, "leave it out"),
}


class TestSlips:
    """What is declared and asked for by nobody is refused before any data."""

    @pytest.mark.parametrize("name", SLIPS)
    def test_is_refused_with_what_was_meant(self, name):
        declared, fix = SLIPS[name]
        with pytest.raises((InvalidParameter, MissingBound)) as refused:
            convert(columns(), MODEL, **declared)
        assert fix in str(refused.value)

    def test_facts_of_columns_that_no_step_takes_are_said_to_be_unused(self):
        ranges = {**RANGES, "unlike": (0, 1), "height": "private"}
        pipe = convert(columns(), MODEL, ranges=ranges, categories={**WARDS, "country": ["A", "B"]})
        assert pipe.conversion.unused == ("ranges of 'unlike'", "ranges of 'height'", "categories of 'country'")
        assert set(pipe.steps[0][1].ranges) == set(RANGES)

    def test_names_that_differ_in_a_number_are_no_slips(self):
        parts = ColumnTransformer([("hot", OneHotEncoder(), ["q1"])])
        pipe = Pipeline.from_sklearn(parts, categories={"q1": [0, 1], "q2": [0, 1]})
        assert pipe.conversion.unused == ("categories of 'q2'",)

    def test_categories_of_truth_values_that_are_taken_as_numbers_are_their_range(self):
        parts = ColumnTransformer([("hot", OneHotEncoder(), ["q1"]), ("rest", "passthrough", ["q2"])])
        pipe = Pipeline.from_sklearn(parts, categories={"q1": [False, True], "q2": [False, True]})
        assert pipe.steps[0][1].ranges == {"q2": (0, 1)}

    def test_an_encoder_with_categories_of_its_own_asks_for_none_and_others_are_refused(self):
        own = OneHotEncoder(categories=list(WARDS.values()))
        assert convert(columns(labels=own), MODEL).conversion
        with pytest.raises(InvalidParameter, match="no encoder without categories of its own"):
            convert(columns(labels=own), MODEL, categories={name: ["other"] for name in WARDS})
        assert convert(columns(labels=own), MODEL, categories=None).conversion

    def test_a_function_by_another_name(self):
        with pytest.raises(InvalidParameter) as refused:
            convert(FunctionTransformer(np.tanh), MODEL, categories=None, functions={"functiontransformr": (-1, 1)})
        assert "did you mean 'functiontransformer'?" in refused.value.fix

    def test_declared_names_of_columns_are_compared(self):
        domain = Domain(feature_names=("age", "dose"))
        with pytest.raises(InvalidParameter, match="no column of the domain") as refused:
            convert(StandardScaler(), MODEL, ranges={"agee": (0, 1)}, categories=None, domain=domain)
        assert "did you mean 'age'?" in refused.value.fix

    def test_where_the_rest_passes_they_are_found_in_the_columns(self, table):
        X = table[0].rename(columns={"level": "stage"})
        rest = columns(where=NUMBERS[:3], remainder="passthrough")
        ranges = {**dict.fromkeys(NUMBERS[:3], (0, 1)), "staeg": (0, 1)}
        with pytest.raises(DomainMismatch, match=r"lacks the column\(s\) 'staeg'") as refused:
            convert(rest, MODEL, ranges=ranges).fit(X, table[1])
        assert refused.value.fix == "did you mean 'stage' by 'staeg'?"

    def test_a_dropped_column_needs_no_range(self):
        pipe = convert(columns(numbers="drop"), MODEL, ranges=None)
        assert pipe.plan(Domain(n_rows=4000, n_features=6)).domain.feature_names == ALL

    def test_what_is_no_name_is_near_to_nothing(self):
        assert nearest(3, ["3"]) is None
        assert nearest("3x", [3]) is None


class TestRefusals:
    """All steps that have no counterpart in one error."""

    def test_a_model_without_twin_is_named_at_once(self):
        late = make_pipeline(PCA(1), SimpleImputer())
        with pytest.raises(UnknownStage, match="2 steps are refused") as refused:
            convert(columns(numbers=late), MLPClassifier())
        assert "the imputer first" in str(refused.value)
        assert "stage 'mlpclassifier': MLPClassifier has no counterpart here" in str(refused.value)

    def test_every_step_is_listed_in_order(self):
        steps = OneHotEncoder(), StandardScaler(with_std=False), PCA("mle"), LogisticRegression(C="weak")
        with pytest.raises(InvalidParameter, match="4 steps are refused") as refused:
            convert(*steps, categories=None)
        assert re.findall("stage '(.*?)'", str(refused.value)) == [type(step).__name__.lower() for step in steps]
        assert str(refused.value).count("Fix: ") == 4

    def test_all_missing_facts_are_one_line_to_write(self):
        parts = [
            ("hot", OneHotEncoder(), ["ward"]),
            ("code", OrdinalEncoder(), ["sex"]),
            ("age", "passthrough", ["age"]),
        ]
        steps = make_pipeline(ColumnTransformer([*parts, ("own", FunctionTransformer(np.round), ["dose"])]), Ridge())
        with pytest.raises(MissingBound, match=r"Public facts are missing: .*\(5\)") as refused:
            Pipeline.from_sklearn(steps)
        assert refused.value.fix == (
            "Pipeline.from_sklearn(pipe, ranges={'age': (low, high)}, categories={'ward': [...], 'sex': [...]}, "
            "functions={'own': (low, high)}, y_range=(low, high)), from public knowledge."
        )
        known = {"ranges": {"age": (0, 1)}, "functions": {"own": (0, 1)}, "y_range": (0, 1)}
        assert Pipeline.from_sklearn(steps, categories=WARDS, **known).conversion

    def test_a_refused_step_and_missing_facts(self):
        with pytest.raises(UnknownStage, match=r"1 step is refused: .* Public facts are missing: ") as refused:
            convert(columns(numbers="passthrough"), MLPClassifier(), ranges=None, categories={"sex": ["F"]})
        assert "categories={'ward': [...], ...}" in refused.value.fix
        assert all(f"{name!r}: (low, high)" in refused.value.fix for name in NUMBERS)

    def test_one_refusal_is_itself(self):
        with pytest.raises(UnknownStage) as refused:
            convert(columns(), MLPClassifier())
        assert refused.value.stage == "mlpclassifier"

    def test_the_bound_of_rows_comes_after_them(self):
        with pytest.raises(UnknownStage):
            convert(columns(), MLPClassifier(), ranges=None)
        with pytest.raises(MissingBound):
            convert(columns(), MODEL, ranges=None)

    def test_a_class_of_ppdp_between_columns(self):
        with pytest.raises(UnknownStage, match="already ppdp's class; from_sklearn takes scikit-learn's") as refused:
            convert(columns(numbers=transformers.StandardScaler()), MODEL)
        assert "ppdp.ColumnTransformer" in refused.value.fix

    def test_a_pipeline_of_ppdp(self):
        with pytest.raises(UnknownStage, match="already ppdp's class") as refused:
            Pipeline.from_sklearn(convert(columns(), MODEL))
        assert "as it is" in refused.value.fix

    def test_an_encoder_without_names_is_told_where_to_put_categories(self):
        with pytest.raises(InvalidParameter, match="no names here") as refused:
            convert(OneHotEncoder(), MODEL)
        assert "OneHotEncoder(categories=[[" in refused.value.fix

    def test_facts_of_another_kind_of_model(self):
        for model, name in ((Ridge(), "classes"), (MODEL, "y_range")):
            with pytest.raises(InvalidParameter, match=f"{name} is declared.*leave it out"):
                convert(model, categories=None, y_range=(0, 1))

    @pytest.mark.parametrize("strength", [0, -1.0, "a", True])
    def test_an_impossible_strength(self, strength):
        with pytest.raises(InvalidParameter, match="no positive number"):
            convert(LogisticRegression(C=strength), categories=None)


class TestPrediction:
    """Which column of X is missing."""

    def test_all_missing_columns_are_named(self, fitted, table):
        with pytest.raises(DomainMismatch, match=r"X lacks the column\(s\) 'bmi', 'ward', taken by name"):
            fitted.predict(table[0].drop(columns=["bmi", "ward"]))

    def test_arrays_have_no_names(self, fitted, table):
        with pytest.raises(DomainMismatch, match="there are no names of columns") as refused:
            fitted.predict(table[0].to_numpy(dtype=object))
        assert "pass a frame with 'age', 'dose'" in refused.value.fix


@pytest.mark.parametrize(
    ("steps", "words", "domain"),
    [
        ([LogisticRegression(C=0.1)], "C=0.1 became alpha=10", None),
        ([LogisticRegression(C=np.inf)], "no penalty became alpha=0", None),
        ([GaussianRandomProjection(3, random_state=7), MODEL], "random_state=7 became the public seed=7", None),
        ([GaussianRandomProjection(eps=0.9), MODEL], "n_components='auto' became", Domain(n_rows=1000)),
    ],
)
def test_parameters_that_were_translated_are_told(steps, words, domain):
    assert words in repr(convert(*steps, categories=None, domain=domain).conversion)


DIGITS = OneHotEncoder(categories=[["1", "2"]], handle_unknown="ignore")


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        ([LogisticRegression()], "numbers are clipped to their public ranges"),
        ([LogisticRegression()], "they are scaled to [-1, 1]"),
        ([LogisticRegression()], "so its penalty weighs otherwise"),
        ([FunctionTransformer(np.cbrt), LogisticRegression()], "so its penalty weighs otherwise"),
        ([columns(), LogisticRegression()], "so its penalty weighs otherwise"),
        ([columns(), LogisticRegression()], "for a linear model without a penalty that is the same"),
        ([columns(numbers="passthrough"), MODEL], "'age', 'dose', 'bmi', 'level': what comes out is scaled from its"),
        (
            [columns(where=NUMBERS[:3], remainder="passthrough"), MODEL],
            "the remaining columns: what comes out is scaled",
        ),
        ([columns(where=NUMBERS[:3], remainder="passthrough"), MODEL], "missing values of all columns are filled"),
        ([FunctionTransformer(np.round), MODEL], "dates and text must be numbers before"),
        ([StandardScaler(), PCA(2), StandardScaler(), MODEL], "it scales the projected columns, not the components"),
        ([PCA(2), LogisticRegression(fit_intercept=False)], "rows that are not centred"),
    ],
)
def test_what_the_conversion_changes_is_told(steps, words):
    encodes = isinstance(steps[0], ColumnTransformer)
    functions = {"functiontransformer": (0, 1)} if words.startswith("dates") else None
    assert words in repr(convert(*steps, categories=WARDS if encodes else None, functions=functions).conversion)


def test_a_range_of_several_that_is_left_out():
    ranges = {name: RANGES[name] for name in NUMBERS if name != "bmi"}
    assert "ranges={'bmi': (low, high), ...} is missing" in repr(convert(columns(), MODEL, ranges=ranges).conversion)
    assert "is missing" not in repr(convert(columns(), MODEL).conversion)


def test_where_units_stay_the_penalty_stays():
    for steps in ([StandardScaler(), MODEL], [LogisticRegression(C=np.inf)]):
        assert "penalty weighs" not in repr(convert(*steps, categories=None).conversion)


class TestLabelsAndNumbers:
    """Text that looks like numbers, and one column that is read twice."""

    def test_a_number_that_is_no_text_is_no_category_and_the_report_says_so(self):
        rows = pd.DataFrame({"ward": [1, 2], "sex": ["1", "2"]})
        both = ColumnTransformer([("ward", DIGITS, ["ward"]), ("sex", DIGITS, ["sex"])])
        pipe = convert(both, MODEL, categories=None, ranges=None)
        assert pipe[0].fit_transform(rows).tolist() == [[0, 0, 1, 0], [0, 0, 0, 1]]
        assert "numbers that are not written as text are none of its categories" in repr(pipe.conversion)

    def test_a_column_is_labels_or_numbers(self, table):
        both = ColumnTransformer([("hot", OneHotEncoder(), ["ward"]), ("own", "passthrough", ["ward", *NUMBERS])])
        ranges = {**RANGES, "ward": (0, 1)}
        with pytest.raises(InvalidParameter, match="once as categories and once as numbers"):
            convert(both, MODEL, categories={"ward": WARDS["ward"]}, ranges=ranges).fit(*table)

    @pytest.mark.parametrize("order", [1, -1])
    def test_a_column_of_numbers_may_be_both(self, order):
        hot = OneHotEncoder(categories=[[0, 1]], handle_unknown="ignore")
        parts = [("hot", hot, ["age"]), ("own", "passthrough", ["age"])][::order]
        rows = pd.DataFrame({"age": [0.0, 1.0, 0.5]})
        found = convert(ColumnTransformer(parts), MODEL, categories=None, ranges={"age": (0, 1)})[0].fit_transform(rows)
        assert sorted(found[1]) == [0, 1, 1]

    def test_bins_of_a_column_may_be_encoded(self):
        bins = KBinsDiscretizer(2, encode="ordinal", strategy="uniform")
        hot = OneHotEncoder(categories=[[0, 1]], handle_unknown="ignore")
        pipe = convert(
            ColumnTransformer([("bins", make_pipeline(bins, hot), ["age"])]),
            MODEL,
            categories=None,
            ranges={"age": (0, 1)},
        )
        assert pipe[0].fit_transform(pd.DataFrame({"age": [0.1, 0.9]})).tolist() == [[1, 0], [0, 1]]

    def test_a_column_of_dates_is_named_with_what_to_do(self, table):
        X = pd.DataFrame({"born": pd.date_range("2000-01-01", periods=N), "age": table[0]["age"]})
        with pytest.raises(NonNumericData, match=r"the column\(s\) born") as refused:
            convert(FunctionTransformer(np.cbrt), MODEL, categories=None, ranges=(0, 1)).fit(X, table[1])
        assert "make_column_map((DateEncoder((" in refused.value.fix
        dates = transformers.DateEncoder(("2000-01-01", "2002-01-01"))
        parts = ColumnTransformer([("born", dates, ["born"]), ("num", StandardScaler(), ["age"])])
        pipe = convert(parts, MODEL, categories=None, ranges={"age": (0, 1)}).fit(X, table[1])
        np.testing.assert_array_equal(pipe[:1].transform(X)[:, 0], dates.fit_transform(X[["born"]]).ravel())

    @pytest.mark.parametrize(
        ("front", "behind", "words"),
        [
            (lambda X: X.apply(len), MODEL, "takes a frame.*DateEncoder"),
            (lambda X: X["note"], CountVectorizer(), "in front of 'countvectorizer'.*leave it out"),
            (lambda X: X.to_dict("records"), DictVectorizer(), "in front of 'dictvectorizer'.*OneHotEncoder"),
        ],
    )
    def test_functions_of_frames_and_of_text(self, front, behind, words):
        with pytest.raises(InvalidParameter, match=words):
            convert(FunctionTransformer(front), behind, MODEL, categories=None)


def test_gaps_of_text_become_scikit_learns_own_label(table):
    X = table[0].assign(ward=table[0]["ward"].where(table[0]["age"] < 0.5))
    labels = ["north", "missing_value", "south"]
    filled = make_pipeline(SimpleImputer(strategy="constant"), OneHotEncoder(categories=[labels]))
    pipe = convert(ColumnTransformer([("ward", filled, ["ward"])]), MODEL, categories=None, ranges=None)
    assert (pipe[0].fit_transform(X)[:, 1] == X["ward"].isna()).all()
    assert "missing values become 'missing_value'" in repr(pipe.conversion)


@pytest.mark.parametrize("code", [np.nan, -2, 12])
@pytest.mark.parametrize("unknown", [-1, 9])
@pytest.mark.parametrize("gap", [[], [np.nan]])
@pytest.mark.repeated("code")
def test_the_code_of_a_gap_is_scikit_learns(code, unknown, gap):
    theirs = OrdinalEncoder(
        categories=[["a", "b", *gap]],
        handle_unknown="use_encoded_value",
        unknown_value=unknown,
        encoded_missing_value=code,
    )
    rows = pd.DataFrame({"ward": ["a", "b", "z", np.nan]}, dtype=object)
    pipe = convert(ColumnTransformer([("ward", theirs, ["ward"])]), MODEL, categories=None, ranges=None, max_norm=100.0)
    found, wanted = pipe[0].fit_transform(rows), theirs.fit_transform(rows)
    known = ~np.isnan(wanted)
    assert np.array_equal(found[known], wanted[known])
    report = repr(pipe.conversion)
    assert known.all() or "a missing value becomes the middle of the public range" in report
    assert ("None, NaN and NA are one and the same" in report) == bool(gap)


class TestRowsPerUnit:
    """How many rows one person has is a fact of the domain."""

    def test_it_reaches_the_certificate(self, table):
        pipe = convert(columns(), MODEL, rows_per_unit=2).fit(*table)
        assert {"2"} == {fact["value"] for fact in pipe.certificate_["facts"] if fact["name"] == "rows_per_unit"}
        assert clone(pipe).domain == Domain(rows_per_unit=2)

    def test_beside_other_facts(self):
        pipe = convert(columns(), MODEL, rows_per_unit=2, domain=Domain(n_rows=N))
        assert pipe.domain == Domain(n_rows=N, rows_per_unit=2)

    def test_two_that_differ_are_refused(self):
        with pytest.raises(InvalidParameter, match="are both declared"):
            convert(columns(), MODEL, rows_per_unit=2, domain=Domain(rows_per_unit=3))

    @pytest.mark.parametrize("count", [0, 1.5, "a", True])
    def test_it_is_a_number_of_rows(self, count):
        with pytest.raises(InvalidParameter, match="rows_per_unit must be an integer"):
            convert(columns(), MODEL, rows_per_unit=count)
