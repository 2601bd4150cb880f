"""Columns of text, or of names with numbers, become hashed features, each cell by itself, in whatever container."""

import itertools
import pickle
from collections import Counter
from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy.spatial.distance import pdist
from sklearn import feature_extraction, linear_model
from sklearn.feature_extraction import text
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import normalize

import ppdp
from ppdp import Adjacency, ColumnTransformer, Domain, Pipeline, PrivateSearchCV, declare, make_column_map
from ppdp.data.cells import LONGEST_TEXT
from ppdp.exceptions import (
    ExportError,
    InvalidInput,
    InvalidParameter,
    InvalidValue,
    MissingBound,
    NonNumericData,
    UnsupportedOrder,
)
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import CategoryEncoder, FeatureHasher, HashingVectorizer, MinMaxScaler, StandardScaler
from ppdp.transformers.columns.cell_parsers import coded_texts, texts_at

pytestmark = pytest.mark.filterwarnings("ignore::ppdp.exceptions.DiagnosticWarning")


RNG = np.random.default_rng(0)
SPAM, MAIL = ["free", "prize", "money", "click", "offer"], ["report", "meeting", "lunch", "project", "team"]
Y = RNG.integers(2, size=400)
TEXTS = [" ".join(RNG.choice(SPAM if label else MAIL, 6)) for label in Y]
TABLE = pd.DataFrame({"mail": TEXTS, "size": RNG.uniform(0, 100, 400), "city": RNG.choice(["Bern", "Oslo"], 400)})
TABLE.loc[::40, "mail"] = None
PARTS = (
    (HashingVectorizer(32), ["mail"]),
    (MinMaxScaler({"size": (0, 100)}), ["size"]),
    (CategoryEncoder("private", max_categories=3), ["city"]),
)


def learned(first, **given):
    given = {"epsilon": 8.0, "delta": 1e-6, "random_state": 0, **given}
    return Pipeline([("words", first), ("model", LogisticRegression(classes=(0, 1)))], **given)


def first_word(words):
    return words.split()[:1]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"alternate_sign": False, "norm": "l1"},
        {"binary": True, "norm": None},
        {"analyzer": "char_wb", "ngram_range": (2, 3), "lowercase": False},
        {"stop_words": "english", "strip_accents": "unicode"},
        {"analyzer": first_word},
    ],
)
def test_the_vectors_are_those_of_scikit_learn_and_no_longer_than_declared(given):
    ours = HashingVectorizer(16, **given).fit_transform(TABLE[["mail"]])
    plain = text.HashingVectorizer(n_features=16, **given).transform(TABLE["mail"].fillna("")).toarray()
    np.testing.assert_array_equal(ours, plain)
    facts, _ = HashingVectorizer(16, **given).stability_map(
        Domain(n_rows=9, n_features=1), Adjacency.replace().distance
    )
    assert np.linalg.norm(ours, axis=1).max() <= facts.row_norm
    assert facts.row_norm == pytest.approx(4.0 if given.get("norm", "l2") is None else 1.0)


def test_a_replaced_text_moves_a_row_as_far_as_its_bound_admits():
    words = [[f"word{i} common"] for i in range(40)] + [[f"word{i}"] for i in range(40)]
    for norm, longest in (("l2", 1.0), ("l1", 1.0)):
        stage = HashingVectorizer(4, norm=norm)
        facts, _ = stage.stability_map(Domain(n_rows=80, n_features=1), Adjacency.replace().distance)
        apart = pdist(stage.fit_transform(words)).max()  # words of one column and opposite signs
        assert 1.99 * longest < apart <= 2 * facts.row_norm


def test_rows_of_several_columns_are_as_long_as_the_root_of_their_number():
    distance = Adjacency.replace().distance
    domain = Domain(n_rows=9, n_features=3, feature_names=("mail", "size", "city"))
    facts, _ = make_column_map(*PARTS).stability_map(domain, distance)
    assert (facts.n_features, facts.row_norm) == (37, pytest.approx(np.sqrt(3)))
    shortened, _ = HashingVectorizer(8, norm=None, max_norm=3.0).stability_map(Domain(n_rows=9, n_features=1), distance)
    assert shortened.row_norm == pytest.approx(3.0)
    longest = HashingVectorizer(8, norm=None, max_norm=3.0).fit_transform([["one two three " * 9]])
    assert np.linalg.norm(longest) == pytest.approx(3.0)


def test_every_container_gives_the_same_bits(tmp_path):
    pq.write_table(pa.Table.from_pandas(TABLE.assign(y=Y)), tmp_path / "mails.parquet", row_group_size=90)
    pipe = learned(make_column_map(*PARTS)).fit(TABLE, Y)
    for form in (pl.DataFrame(TABLE), pa.Table.from_pandas(TABLE), TABLE.astype({"mail": "category"})):
        np.testing.assert_array_equal(learned(make_column_map(*PARTS)).fit(form, Y)["model"].coef_, pipe["model"].coef_)
        np.testing.assert_array_equal(pipe.predict_proba(form), pipe.predict_proba(TABLE))
    read = learned(make_column_map(*PARTS)).fit(tmp_path / "mails.parquet", "y")
    np.testing.assert_array_equal(read["model"].coef_, pipe["model"].coef_)
    np.testing.assert_array_equal(read.predict(tmp_path / "mails.parquet"), pipe.predict(TABLE))


def test_a_list_of_texts_a_column_and_a_table_are_the_same():
    mails = TABLE["mail"].fillna("")
    pipe = learned(HashingVectorizer(32)).fit(mails.to_frame(), Y)
    assert pipe.score(mails.tolist(), Y) > 0.9
    for form in (mails, mails.tolist(), mails.to_numpy()):
        again = learned(HashingVectorizer(32)).fit(form, Y)
        np.testing.assert_array_equal(again["model"].coef_, pipe["model"].coef_)
        np.testing.assert_array_equal(pipe.predict(form), pipe.predict(mails.to_frame()))
    search = PrivateSearchCV(learned(HashingVectorizer(8), random_state=None), {"words__n_features": [8, 32]})
    assert search.fit(mails.tolist(), Y).predict(mails.tolist()).shape == (400,)
    assert pipe[:1].set_output(transform="pandas").transform(mails.to_frame()).index.equals(mails.index)


def test_texts_that_are_taken_for_paths_are_quoted_nowhere():
    with pytest.raises(InvalidInput, match="at one of them there is no file") as refused:
        learned(MinMaxScaler((0, 1))).fit(["a secret of one?", "another"], [0, 1])
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("adjacency", [Adjacency.add_remove(), Adjacency.user_level(max_rows=2)])
def test_texts_keep_their_rows_in_secret_slots(adjacency):
    groups = np.arange(400) // 2 if adjacency.bounds_contributions else None
    given = {"adjacency": adjacency, "domain": Domain(n_rows=450), "epsilon": 30.0}
    pipe = learned(HashingVectorizer(32), **given).fit(TABLE[["mail"]], Y, groups=groups)
    assert pipe.score(TABLE[["mail"]], Y) > 0.9


def test_texts_are_never_taken_for_the_codes_that_stand_for_them(tmp_path):
    pq.write_table(pa.Table.from_pandas(TABLE[["mail"]].assign(y=Y)), tmp_path / "mails.parquet", row_group_size=90)
    given = {"adjacency": Adjacency.add_remove(), "domain": Domain(n_rows=450)}
    with pytest.raises(UnsupportedOrder, match="secret slots on disk, where texts are not written"):
        learned(HashingVectorizer(32), **given).fit(tmp_path / "mails.parquet", "y")
    found = [  # rows that move make a fit of files write its rows down, and never as codes
        learned(HashingVectorizer(32), adjacency=Adjacency.change(coordinate=0.1)).fit(*rows)["model"].coef_
        for rows in ((TABLE[["mail"]], Y), (tmp_path / "mails.parquet", "y"))
    ]
    np.testing.assert_array_equal(*found)
    codes, held = coded_texts(TABLE["mail"])
    assert texts_at(codes, held).tolist() == TABLE["mail"].fillna("").tolist()
    with pytest.raises(RuntimeError, match="lost on the way"):
        texts_at(codes, None)


def test_a_group_of_words_stands_beside_a_group_that_is_scaled():
    parts = [("text", HashingVectorizer(32), ["mail"]), ("size", [MinMaxScaler((0, 100)), StandardScaler()], ["size"])]
    pipe = learned(ColumnTransformer(parts), random_state=None).fit(TABLE, Y)
    assert "words of mail" in pipe.certificate_.to_text(full=True)
    complete = TABLE.fillna({"mail": ""})
    np.testing.assert_array_equal(pipe.release_.to_sklearn().predict(complete), pipe.predict(complete))
    with pytest.raises(ExportError, match="no hash of words"):
        pipe.release_.to_onnx()
    held = [pickle.dumps(pipe), repr(vars(pipe)).encode(), pipe.certificate_.to_json().encode()]
    assert not any(word in one for word in (b"prize", b"click", b"lunch") for one in held)


def test_rows_that_fill_the_memory_are_refused_before_anything_is_spent(monkeypatch):
    monkeypatch.setattr("ppdp.pipeline.input_checks.memory", lambda: 1e5)
    with ppdp.Ledger() as account, pytest.raises(InvalidInput, match="64 columns of 400 rows take 204800 bytes"):
        learned(HashingVectorizer(64)).fit(TEXTS, Y)
    assert not account.entries()


@pytest.mark.parametrize(
    ("cell", "same"),
    [
        (b"free prize", "free prize"),
        (12.0, "12"),
        (0.1234567890123456, "0.1234567890123456"),
        (True, "True"),
        (pd.NA, ""),
        ("\ud800 prize", "? prize"),
        ("x " * LONGEST_TEXT, "x " * (LONGEST_TEXT // 2)),
    ],
)
def test_a_cell_is_read_by_itself(cell, same):
    read = HashingVectorizer(64, token_pattern=r"\S+").fit_transform
    table = pd.DataFrame({"mail": pd.Series(["a b", cell], dtype=object)})
    np.testing.assert_array_equal(read(table)[1:], read([[same]]))


@pytest.mark.parametrize("cell", [["free", "prize"], {"free": 1}, b"\xff\xfe", pd.Timestamp("2020-01-01"), 1j])
def test_what_is_no_text_is_an_error_or_a_row_of_zeros(cell):
    table = pd.DataFrame({"mail": pd.Series([*TEXTS[:99], cell], dtype=object)})
    with pytest.raises(InvalidValue, match="no date or text"):
        learned(HashingVectorizer(32)).fit(table, Y[:100])
    with pytest.raises(NonNumericData, match="no text"):
        HashingVectorizer(32).fit(table).transform(table)
    pipe = learned(HashingVectorizer(32), on_invalid="repair").fit(table, Y[:100])
    assert not pipe[:1].transform(pd.DataFrame({"mail": pd.Series([cell, "a prize"], dtype=object)}))[0].any()


def test_a_function_that_fails_on_a_text_is_silent():
    def words(given):
        return [given[:1]] if given[0] != "s" else 1 / 0

    made = HashingVectorizer(4, preprocessor=partial(str.strip), tokenizer=words).fit_transform([["secret"], ["open"]])
    assert made.any(axis=1).tolist() == [False, True]


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"n_features": 2**20}, InvalidParameter, "8388608000 bytes"),
        ({"n_features": 0}, InvalidParameter, "at least 1"),
        ({"norm": "max"}, InvalidParameter, "norm must be one of"),
        ({"norm": None}, MissingBound, "any number of words"),
        ({"ngram_range": (2, 1)}, InvalidParameter, "lower boundary"),
        ({"token_pattern": "("}, InvalidParameter, "unterminated"),
        ({"stop_words": "french"}, InvalidParameter, "english"),
        ({"analyzer": lambda words: [1]}, InvalidParameter, "must be strings"),
        ({"tokenizer": HashingVectorizer().fit_transform}, InvalidParameter, "holds on to a HashingVectorizer"),
    ],
)
def test_parameters_are_refused_before_anything_is_spent(given, kind, words):
    with ppdp.Ledger() as account, pytest.raises(kind, match=words):
        learned(HashingVectorizer(**given)).fit(TABLE[["mail"]], Y)
    assert not account.entries()


def test_a_type_that_holds_no_words_is_refused():
    pipe = Pipeline([("words", HashingVectorizer(4)), ("mean", GaussianMechanism())])
    with pytest.raises(NonNumericData, match="words are declared"):
        pipe.fit(pd.DataFrame({"mail": pd.to_datetime(["2020-01-01"] * 2)}))


# ---------------- names with numbers


BASKETS = [
    {"beer" if y else "tea": int(RNG.integers(1, 9)), "bread": 0.5, "city": str(RNG.choice(list("abc")))} for y in Y
]


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_features_are_those_of_scikit_learn_and_no_longer_than_declared(norm):
    plain = normalize(feature_extraction.FeatureHasher(16).transform(BASKETS), norm).toarray()
    ours = FeatureHasher(16, norm=norm).fit_transform(pd.DataFrame({"basket": BASKETS}))
    np.testing.assert_array_equal(ours, plain)
    facts, _ = FeatureHasher(16, norm=norm).stability_map(Domain(n_rows=9, n_features=1), Adjacency.replace().distance)
    assert np.linalg.norm(ours, axis=1).max() <= facts.row_norm < 1.01


@pytest.mark.parametrize(
    ("cells", "same"),
    [
        ([["tea", "tea", "milk"], ["milk"]], [{"tea": 2, "milk": 1}, {"milk": 1}]),
        (["[tea", "[1, 2]"], [{"[tea": 1}, {"[1, 2]": 1}]),
        ([[("tea", 2.0)], []], [{"tea": 2}, {}]),
        ([{"tea": 2.0, "milk": None}, {"tea": None, "milk": 1.0}], [{"tea": 2}, {"milk": 1}]),
        ([{"tea": 1e300, "milk": -1e300}, {"tea": 1e-300}], [{"tea": 1, "milk": -1}, {}]),
    ],
)
def test_containers_and_forms_of_a_cell_are_the_same(cells, same):
    plain = FeatureHasher(8).fit_transform(pd.DataFrame({"basket": same}))
    pairs = cells[0] and isinstance(cells[0], list) and isinstance(cells[0][0], tuple)
    stored = pa.array(cells, pa.map_(pa.string(), pa.float64())) if pairs else pa.array(cells)
    forms = [pd.DataFrame({"basket": cells}), pa.table({"basket": stored})]
    for form in forms if pairs else [*forms, pl.DataFrame({"basket": cells})]:
        np.testing.assert_allclose(FeatureHasher(8).fit_transform(form), plain, rtol=1e-15)


@pytest.mark.parametrize("twin", [feature_extraction.FeatureHasher(32), feature_extraction.DictVectorizer()])
def test_dicts_are_converted_and_fitted_as_they_are(twin):
    pipe = Pipeline.from_sklearn(make_pipeline(twin, linear_model.LogisticRegression()), classes=(0, 1), epsilon=8.0)
    pipe.fit(BASKETS, Y)
    assert pipe.score(BASKETS, Y) > 0.95
    with pytest.raises(ExportError, match="no object of scikit-learn"):
        pipe.release_.to_sklearn()


class Endless(dict):
    def items(self):
        return itertools.repeat(("tea", 1.0))


def test_a_class_of_the_users_does_not_say_what_a_cell_holds():
    cells = [Endless(tea=1.0), Counter(["tea", "tea", "milk"])]
    plain = FeatureHasher(8).fit_transform(pd.DataFrame({"basket": [{"tea": 1.0}, {"tea": 2, "milk": 1}]}))
    np.testing.assert_array_equal(FeatureHasher(8).fit_transform(pd.DataFrame({"basket": cells})), plain)


@pytest.mark.parametrize("cell", [{"a": object()}, {"a": np.inf}, [{"a": 1}], [["a", "b", "c"]], pd.Timestamp("2020")])
def test_what_is_no_name_with_a_number_is_an_error_or_a_row_of_zeros(cell):
    table = pd.DataFrame({"basket": pd.Series([*BASKETS[:99], cell], dtype=object)})
    pipe = Pipeline.from_sklearn(
        make_pipeline(feature_extraction.FeatureHasher(8), linear_model.LogisticRegression()), classes=(0, 1)
    )
    with pytest.raises(InvalidValue):
        pipe.fit(table, Y[:100])
    repaired = pipe.set_params(on_invalid="repair").fit(table, Y[:100])
    assert not repaired[:1].transform(table)[-1].any()


def test_declared_lists_of_a_typed_table():
    table = pl.DataFrame({"basket": [list(basket) for basket in BASKETS]})
    facts = declare(table)
    assert "hashed names" in str(facts)
    facts["basket"] = {"words": 8}
    plain = FeatureHasher(8).fit_transform(table)
    np.testing.assert_array_equal(facts.column_map().fit_transform(table), plain)
    with pytest.raises(NonNumericData, match="FeatureHasher for lists"):
        HashingVectorizer(8).fit(table).transform(table)


def test_what_has_no_bound_is_refused():
    table = pd.DataFrame({"basket": BASKETS})
    with pytest.raises(MissingBound, match="any number of names"):
        FeatureHasher(norm=None).fit(table)
    with pytest.raises(InvalidParameter, match="8388608000 bytes"):
        Pipeline.from_sklearn(
            make_pipeline(feature_extraction.FeatureHasher(), linear_model.LogisticRegression()), classes=(0, 1)
        )
    assert np.linalg.norm(FeatureHasher(8, norm=None, max_norm=2.0).fit_transform(table), axis=1).max() <= 2.0
