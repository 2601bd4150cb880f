"""Tables of categories as fitted objects of scikit-learn alone."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn import linear_model as models
from sklearn import preprocessing as scaling
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.pipeline import make_pipeline as make_sklearn_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, SplineTransformer

from ppdp import Domain, Pipeline, make_column_map, make_pipeline
from ppdp.exceptions import ExportError
from ppdp.mechanisms import LinearSVC, LogisticRegression
from ppdp.transformers import (
    CategoryEncoder,
    ClusterDistances,
    DateEncoder,
    MeanImputer,
    MinMaxScaler,
    NormClipper,
    StandardScaler,
)

N = 4000
RNG = np.random.default_rng(0)
FRAME = pd.DataFrame(
    {
        "age": RNG.uniform(0, 100, N),
        "ward": RNG.choice(["a", "b", "c"], N).astype(object),
        "city": RNG.choice(["x", "y y", "Z"], N).astype(object),
        "grade": RNG.choice([3.0, 1.0, 2.0], N),
    }
)
LABELS = RNG.integers(0, 2, N)
TEXT = ["ward", "city"]
AGE = (MinMaxScaler(ranges={"age": (0, 100)}), ["age"])


def wild(names):
    """Rows with gaps of both kinds, undeclared labels, names of further categories, and cells that are no text."""
    rows = FRAME.head(90).copy()
    rows["ward"] = rows["ward"].astype(object)
    rows["city"] = rows["city"].astype(object)
    cells = [None, np.nan, "d", "other", "missing", "", 7, True]
    for i, cell in enumerate(cells):
        rows.loc[5 * i : 5 * i + 4, "ward"] = cell
        rows.loc[5 * i + 2 : 5 * i + 8, "city"] = cell
    rows.loc[60:69, "grade"] = 9.0
    rows["age"] = 3 * rows["age"] - 50
    return rows[names]


def fit(*stages, names=(*TEXT, "age"), model=LogisticRegression, **options):
    pipe = make_pipeline(*stages, model(classes=(0, 1)), epsilon=8.0, delta=1e-6, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pipe.fit(FRAME[list(names)], LABELS)


def assert_same(pipe, rows):
    plain = pipe.release_.to_sklearn()
    np.testing.assert_allclose(plain.predict_proba(rows), pipe.predict_proba(rows), 0, 1e-12)
    return plain


@pytest.mark.parametrize("indicator", [False, True])
@pytest.mark.parametrize("other", ["other", None])
@pytest.mark.parametrize("encoding", ["onehot", "ordinal"])
@pytest.mark.parametrize(
    ("categories", "most"),
    [({"ward": ["b", "a"], "city": ["x", "Z"]}, None), ("private", 5)],
    ids=["declared", "private"],
)
@pytest.mark.repeated("other", "indicator", keep=2)
def test_texts_are_read_alike(categories, most, encoding, other, indicator):
    encoder = CategoryEncoder(categories, encoding=encoding, other=other, add_indicator=indicator, max_categories=most)
    behind = [MinMaxScaler(ranges=(-1, 9))] if encoding == "ordinal" else []
    filled = [MeanImputer()] if indicator else []
    pipe = fit(make_column_map((encoder, TEXT), AGE), *filled, *behind)
    assert_same(pipe, wild([*TEXT, "age"]))


def test_numbers_in_any_order_and_a_label_that_is_the_name_of_the_others():
    encoder = CategoryEncoder({"ward": ["b", "a"], "grade": [3, 1]}, other="a")
    assert_same(fit(encoder, names=["ward", "grade"]), wild(["ward", "grade"]))


def test_gaps_of_numbers():
    encoder = CategoryEncoder([[3, 1]], add_indicator=True)
    rows = wild(["grade"])
    rows.loc[3:9, "grade"] = np.nan
    assert_same(fit(encoder, names=["grade"]), rows)


def test_bounds_at_the_entrance_hold_for_labels_that_are_numbers():
    encoder = CategoryEncoder([[3, 1]])
    plain = assert_same(fit(encoder, names=["grade"], domain=Domain(entry_bound=2.0)), wild(["grade"]))
    assert next(iter(plain.named_steps)) == "entrance"


def test_an_encoder_of_declared_text_alone_is_one_object():
    plain = assert_same(fit(CategoryEncoder([["b", "a"]], other=None), names=["ward"]), wild(["ward"]))
    ((_, encoder),) = plain["categoryencoder"].transformer_list
    assert [type(step).__name__ for _, step in encoder.steps] == ["ColumnTransformer", "OneHotEncoder"]
    assert [list(found) for found in encoder[1].categories_] == [["b", "a"]]


def test_numbers_are_read_alike_whatever_holds_them():
    encoder = CategoryEncoder([[1, 0, 3]], add_indicator=True)
    pipe = fit(make_column_map((encoder, ["grade"])), names=["grade"])
    for cells in (
        pd.Series([1, None, 3.0, np.nan, 9, True], dtype=object),
        pd.Series(["1", "3.0", "9", None], dtype=object),
        pd.Series([True, False]),
        pd.Series([1, 3, 9], dtype="int8"),
        pd.Series(["1", "3", "9"], dtype="category"),
    ):
        assert_same(pipe, pd.DataFrame({"grade": cells}))


def test_a_column_may_be_encoded_twice():
    frame = FRAME[["ward"]]
    encoder = CategoryEncoder([["b", "a"]] * 2)
    pipe = make_pipeline(make_column_map((encoder, ["ward", "ward"])), LogisticRegression(classes=(0, 1)), epsilon=8.0)
    assert_same(pipe.fit(frame, LABELS), wild(["ward"]))


def test_ranges_of_a_map_and_of_its_steps_are_kept():
    pipe = fit(make_column_map((MinMaxScaler(ranges={"age": (0, 100)}, feature_range=(2, 3)), ["age"])), names=["age"])
    assert_same(pipe, wild(["age"]))


@pytest.mark.parametrize("more", [{}, {"extrapolation": "periodic"}, {"knots": [[10.0], [40.0], [80.0]]}], ids=repr)
def test_splines_of_public_ranges(more):
    splines = SplineTransformer(6, **more)
    columns = make_column_transformer((splines, ["age"]), (OneHotEncoder(handle_unknown="ignore"), ["ward"]))
    facts = {"ranges": {"age": (0, 100)}, "categories": {"ward": ["b", "a"]}, "classes": (0, 1)}
    pipe = Pipeline.from_sklearn(make_sklearn_pipeline(columns, models.LogisticRegression()), epsilon=8.0, **facts)
    rows = wild(["age", "ward"])
    assert_same(pipe.fit(FRAME[["age", "ward"]], LABELS), rows[[isinstance(cell, str) for cell in rows["ward"]]])


@pytest.mark.parametrize(
    "step",
    [
        RBFSampler(n_components=7, random_state=0),
        Nystroem(n_components=6),
        Nystroem(kernel="poly", degree=2, n_components=6),
        PolynomialFeatures((1, 3), interaction_only=True),
        PolynomialFeatures(2, include_bias=False),
        scaling.FunctionTransformer(np.arctan),
    ],
    ids=repr,
)
def test_features_behind_an_imputer_beside_text(step):
    numbers = make_sklearn_pipeline(SimpleImputer(), scaling.StandardScaler())
    columns = make_column_transformer((numbers, ["age"]), (OneHotEncoder(handle_unknown="ignore"), ["ward"]))
    facts = {"ranges": {"age": (0, 100)}, "categories": {"ward": ["b", "a"]}, "classes": (0, 1)}
    pipe = Pipeline.from_sklearn(
        make_sklearn_pipeline(columns, step, models.LogisticRegression()), epsilon=8.0, **facts
    )
    assert_same(pipe.fit(FRAME[["age", "ward"]], LABELS), wild(["age", "ward"]))


@pytest.mark.parametrize("step", [RBFSampler(n_components=7, random_state=0), PolynomialFeatures(2)], ids=repr)
def test_features_of_a_group_behind_its_scaler(step):
    numbers = make_sklearn_pipeline(SimpleImputer(), scaling.StandardScaler(), step)
    columns = make_column_transformer((numbers, ["age"]), (OneHotEncoder(handle_unknown="ignore"), ["ward"]))
    facts = {"ranges": {"age": (0, 100)}, "categories": {"ward": ["b", "a"]}, "classes": (0, 1)}
    pipe = Pipeline.from_sklearn(make_sklearn_pipeline(columns, models.LogisticRegression()), epsilon=8.0, **facts)
    assert_same(pipe.fit(FRAME[["age", "ward"]], LABELS), wild(["age", "ward"]))


def test_features_in_front_of_an_imputer_are_refused_where_scikit_learn_takes_no_gaps():
    numbers = make_sklearn_pipeline(SimpleImputer(), SplineTransformer(4))
    columns = make_column_transformer((numbers, ["age"]))
    pipe = make_sklearn_pipeline(columns, models.LogisticRegression())
    fitted = Pipeline.from_sklearn(pipe, ranges={"age": (0, 100)}, classes=(0, 1)).fit(FRAME[["age"]], LABELS)
    with pytest.raises(ExportError, match="pass through it to an imputer"):
        fitted.release_.to_sklearn()


def to_onnx(*stages, model=LogisticRegression):
    """A pipeline of text and numbers, and what a runtime of ONNX answers for some rows."""
    pytest.importorskip("skl2onnx")
    runtime = pytest.importorskip("onnxruntime")
    encoder = CategoryEncoder({"ward": ["b", "a"], "city": ["x", "Z"]})
    pipe = fit(make_column_map((encoder, TEXT), AGE), *stages, model=model)
    session = runtime.InferenceSession(pipe.release_.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"])
    rows = FRAME[[*TEXT, "age"]].head(200)
    cells = {name: rows[[name]].to_numpy(np.float32 if name == "age" else object) for name in rows}
    return pipe, rows, session.run(None, cells)


@pytest.mark.parametrize("stages", [(), (MeanImputer(), StandardScaler()), (NormClipper(),)], ids=len)
def test_onnx_knows_it(stages):
    """Stages behind it map the column of numbers alone, and put the columns into their places again."""
    pipe, rows, (_, shares) = to_onnx(*stages)
    np.testing.assert_allclose(shares, pipe.predict_proba(rows), 0, 1e-5)


def test_onnx_knows_a_model_without_probabilities():
    pipe, rows, (labels, _) = to_onnx(StandardScaler(), model=LinearSVC)
    assert np.mean(labels == pipe.predict(rows)) > 0.99


class TestRefused:
    def test_what_onnx_has_no_words_for(self):
        with pytest.raises(ExportError, match=r"skl2onnx does not convert it.*Fix: to_sklearn"):
            to_onnx(MeanImputer(), ClusterDistances(2))

    @pytest.mark.parametrize("cell", ["7", "True", "1e3", None])
    def test_private_categories_with_several_spellings_or_none(self, cell):
        frame = FRAME.assign(ward=np.where(FRAME["ward"] == "a", cell, FRAME["ward"]))
        if cell is None:
            frame["ward"] = [f"ward {i}" for i in range(N)]
        pipe = make_pipeline(
            CategoryEncoder("private", max_categories=5), LogisticRegression(classes=(0, 1)), epsilon=8.0
        )
        with pytest.raises(ExportError, match=r"'categoryencoder'.*several spellings.*Fix: declare"):
            pipe.fit(frame[["ward"]], LABELS).release_.to_sklearn()

    def test_text_and_numbers_among_the_categories_of_a_column(self):
        with pytest.raises(ExportError, match="text and numbers"):
            fit(CategoryEncoder([["a", 1]]), names=["ward"]).release_.to_sklearn()

    def test_dates(self):
        days = pd.DataFrame({"day": pd.Timestamp("2020-01-01") + pd.to_timedelta(FRAME["age"], unit="D")})
        encoder = DateEncoder({"day": ("2020-01-01", "2020-06-01")}, epoch="2020-01-01")
        pipe = make_pipeline(make_column_map((encoder, ["day"])), LogisticRegression(classes=(0, 1)), epsilon=8.0)
        with pytest.raises(ExportError, match=r"'DateEncoder'.*Fix:"):
            pipe.fit(days, LABELS).release_.to_sklearn()

    def test_numbers_that_are_repaired_where_labels_are_read(self):
        encoder = CategoryEncoder({"ward": ["b", "a"]}, other=None)
        pipe = fit(make_column_map((encoder, ["ward"]), AGE), names=["ward", "age"], on_invalid="repair")
        with pytest.raises(ExportError, match="would be done with labels"):
            pipe.release_.to_sklearn()
