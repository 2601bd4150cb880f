"""Released categories and modes end to end: what is read, released, planned, certified and refused."""

import copy
import decimal
import io
import pickle

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from forger import rederived
from zoo import document, sealed

import ppdp
from ppdp import Adjacency, ColumnTransformer, Domain, Pipeline, make_column_map
from ppdp.certificate import verify
from ppdp.data.categories import MISSING, OTHER, text_of, texts_of
from ppdp.exceptions import (
    DiagnosticWarning,
    InvalidParameter,
    MissingBound,
    MissingBudget,
    NonNumericData,
    UnsupportedOrder,
)
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import PCA, CategoryEncoder, MeanImputer, MinMaxScaler

N = 4000


def table(n=N):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"city": rng.choice(["Rome", "Oslo", "Paris"], n, p=[0.5, 0.3, 0.2])})
    X.loc[:4, "city"] = [None, "", "Zwolle-7", "rarer", "x" * 61]
    return X, (X["city"] == "Rome").astype(int)


def encoder(**parameters):
    return CategoryEncoder("private", **{"max_categories": 5, **parameters})


def pipeline(*stages, **parameters):
    stages = [(f"s{i}", stage) for i, stage in enumerate(stages or [encoder()])]
    model = ("model", LogisticRegression(classes=(0, 1), max_iter=5))
    return Pipeline([*stages, model], **{"epsilon": 2.0, "random_state": 0, **parameters})


@pytest.mark.parametrize(
    ("cell", "text"),
    [
        *[(cell, "7") for cell in (7, 7.0, np.int8(7), np.float32(7), "7", b"7", decimal.Decimal(7))],
        *[(gap, None) for gap in (None, np.nan, "", b"", pd.NA, pd.NaT)],
        *[(nothing, "") for nothing in ([7], {}, np.inf, b"\xff", "\ud800", "a\n", "x" * 61, "é" * 31)],
        *[(np.datetime64("2000-01-01"), ""), (1j, ""), (object(), "")],
        *[(True, "True"), (np.bool_(False), "False"), (0.5, "0.5"), (-0.0, "0"), (" a ", " a "), ("é" * 30, "é" * 30)],
    ],
)
def test_every_cell_is_read_by_itself(cell, text):
    assert text_of(cell) == text


@pytest.mark.parametrize("kind", [object, pd.StringDtype("python"), pd.StringDtype("pyarrow"), "arrow"])
@pytest.mark.parametrize(("one", "other"), [("\ud800", "'\\ud800'"), ("a\0b", "a\0c"), ("a", "a\0"), ("é", "e\u0301")])
def test_equal_cells_and_no_others_are_read_once(kind, one, other):
    if one == "\ud800" and kind not in (object, pd.StringDtype("python")):
        pytest.skip("Arrow holds Unicode only")
    kind = pd.ArrowDtype(pa.string()) if kind == "arrow" else kind
    for cells in ([one, other, None, one], [other, None, one, other], [one, other, one]):
        places, texts = texts_of(pd.Series(cells, dtype=kind), {})
        alone = [texts_of(pd.Series([cell], dtype=object), {})[1][0] for cell in cells]
        assert [texts[place] for place in places] == alone


def test_what_arrow_holds_that_is_no_text_is_read_cell_by_cell():
    held = pd.Series([{"x": 1}, None, {"x": 1}], dtype=pd.ArrowDtype(pa.struct([("x", pa.int64())])))
    assert texts_of(held, {})[1] == [OTHER, MISSING, OTHER]
    assert texts_of(pd.Series([7, None, 7], dtype=pd.ArrowDtype(pa.int64())), {})[1] == ["7", MISSING, "7"]


def test_a_number_that_python_does_not_write_is_one_of_the_others():
    assert text_of(10**5000) == ""


CELLS = (
    "02139",
    "0012",
    "1.50",
    "1.0",
    "TRUE",
    "false",
    "9007199254740993",
    "1e5",
    "0.1234567890123",
    "-0",
    "inf",
    " 7",
)


@pytest.mark.parametrize("odd", ["x", "NA"])
@pytest.mark.parametrize("cell", CELLS)
def test_one_odd_cell_of_a_file_changes_the_text_of_no_other(cell, odd):
    """A reader makes numbers of a column where it can."""
    one, other = (pd.read_csv(io.StringIO("\n".join(["v", cell, cell, last])))["v"] for last in (cell, odd))
    assert text_of(one.iloc[0]) == text_of(other.iloc[0])


def test_accents_and_case_tell_categories_apart():
    assert len({text_of(one) for one in ("é", "e\u0301", "É")}) == 3


def test_a_fit_releases_what_many_rows_hold_and_nothing_else():
    X, y = table()
    pipe = pipeline(encoder(add_indicator=True)).fit(X, y)
    assert pipe["s0"].found_ == {0: ("Oslo", "Paris", "Rome")}
    names = ["city_Oslo", "city_Paris", "city_Rome", "city_unused_4", "city_unused_5", "city_other", "city_missing"]
    assert pipe["s0"].get_feature_names_out().tolist() == names
    rows = pipe["s0"].transform(pd.DataFrame({"city": ["Rome", "nowhere", None, ""]}))
    assert rows.argmax(axis=1).tolist() == [2, 5, 6, 6]
    assert rows.sum(axis=1).tolist() == [1] * 4
    assert pipe.score(X, y) > 0.95
    answers = pipe.release_.to_pandas().query("statistic == 'rows of the category'")
    assert answers["column"].tolist() == ["city = Oslo", "city = Paris", "city = Rome", "city = anything else"]
    np.testing.assert_allclose(answers["value"][:3], X["city"].value_counts()[["Oslo", "Paris", "Rome"]], atol=300)
    for text in ("Zwolle-7", "x" * 61):  # also in nothing that is kept
        assert text.encode() not in pickle.dumps(pipe)
        assert text not in repr(pipe) + pipe.certificate_.to_html()


def test_its_certificate_verifies_and_a_release_that_was_loaded_predicts_the_same(tmp_path):
    X, y = table()
    pipe = pipeline(make_column_map((encoder(), ["city"]), (MinMaxScaler(ranges=(0, N)), ["i"])), random_state=None)
    X["i"] = range(N)
    pipe.fit(X, y).export(tmp_path / "model.zip")
    record = pipe.certificate_.record
    assert pipe.certificate_.verify()
    assert pipe.certificate_.status == "UNCONDITIONAL"
    assert record.total.failure == record.releases[0].failure == pytest.approx(1e-7)
    loaded = ppdp.load(tmp_path / "model.zip")
    np.testing.assert_array_equal(loaded.predict_proba(X), pipe.predict_proba(X))
    assert pickle.loads(pickle.dumps(pipe))[0].found_ == loaded[0].found_ == pipe[0].found_
    assert "a category is released that only one person’s rows hold" in pipe.certificate_.to_html()


@pytest.mark.parametrize("adjacency", [Adjacency.replace(3), Adjacency.add_remove(), Adjacency.user_level(2)], ids=str)
def test_other_adjacencies_have_their_own_threshold(adjacency):
    X, y = table()
    groups = np.arange(N) // 2 if adjacency.bounds_contributions else None
    domain = Domain(n_rows=N + 500) if adjacency.unbounded else None
    pipe = pipeline(adjacency=adjacency, domain=domain, epsilon=4.0).fit(X, y, groups)
    assert pipe.certificate_.verify()
    assert pipe["s0"].found_ == {0: ("Oslo", "Paris", "Rome")}
    assert pipe.certificate_.under(adjacency).epsilon <= 4.0 * (1 + 1e-6)
    own = pipe.certificate_.under(Adjacency.replace())
    assert own.epsilon < 4.0 or adjacency == Adjacency.add_remove()


def test_under_counts_the_failure_of_more_rows():
    certificate = pipeline().fit(*table()).certificate_
    alone, many = (certificate.under(Adjacency.replace(k)).epsilon for k in (1, 2))
    assert alone <= 2.0 * (1 + 1e-6) < 2 * alone < many
    assert certificate.under(Adjacency.replace(100)).epsilon == np.inf  # its threshold hides no hundred rows


@pytest.mark.parametrize("change", [{"failure": 1e-9}, {"noise_scale": 1e-3}, {"threshold": 5.0}])
def test_a_changed_release_is_refused(change):
    forged = copy.deepcopy(document("private categories"))
    forged["releases"][0].update(change)
    assert not verify(sealed(forged))
    if "failure" in change:  # who computes everything again claims that less was released
        assert (
            rederived(forged)["releases"][0]["threshold"] > document("private categories")["releases"][0]["threshold"]
        )
    forged = copy.deepcopy(document("private categories"))
    forged["releases"][0]["parameters"]["max_categories"] = [9, 9, 9]
    assert not verify(sealed(forged))
    del forged["releases"][0]["failure"], forged["releases"][0]["threshold"]
    assert not verify(sealed(forged))


def test_order_and_container_of_the_rows_change_no_bit():
    X, y = table()
    order = np.random.default_rng(1).permutation(N)
    pipes = [
        pipeline().fit(X, y),
        pipeline().fit(X.iloc[order], y.iloc[order]),
        pipeline().fit(X.astype("category"), y),
        pipeline().fit(X.to_numpy(dtype=object), y),
        pipeline().fit(X.convert_dtypes(dtype_backend="pyarrow"), y),
    ]
    first = pipes[0].release_.arrays["s0.categories"]
    for pipe in pipes[1:]:
        np.testing.assert_array_equal(pipe.release_.arrays["s0.categories"], first)


@pytest.mark.parametrize(
    ("column", "found"),
    [
        ([None] * N, ()),
        ([f"v{i}" for i in range(N)], ()),
        (["only"] * N, ("only",)),
        ([7, "7", None, [1], b"\xff"] * (N // 5), ("7",)),
        (["other", "missing", "unused_2", "unused_2_"] * (N // 4), ("unused_2", "unused_2_")),
    ],
    ids=["missing", "all different", "one value", "mixed", "names of its own"],
)
def test_columns_of_any_kind_have_the_public_width(column, found):
    X = pd.DataFrame({"a": pd.Series(column, dtype=object)})
    pipe = pipeline(encoder(max_categories=2, add_indicator=True)).fit(X, np.arange(N) % 2)
    names = pipe["s0"].get_feature_names_out()
    assert len(set(names)) == 4
    assert pipe["s0"].transform(X[:9]).shape == (9, 4)
    assert not set(pipe["s0"].found_[0]) & {"other", "missing"}
    assert pipe["s0"].found_[0] == found


def test_positions_are_within_public_bounds():
    X, y = table()
    pipe = pipeline(encoder(encoding="ordinal", other=None), MinMaxScaler(ranges=(-1, 5))).fit(X, y)
    assert pipe["s0"].transform(pd.DataFrame({"city": ["Oslo", "Rome", "?", None]})).ravel().tolist() == [0, 2, -1, -1]


def test_a_plan_needs_no_data_and_says_what_it_pays():
    plan = pipeline().plan(Domain(n_rows=N, feature_names=("city",)))
    (release,) = plan.releases
    assert plan.end[0].feature_names == ("city_1", "city_2", "city_3", "city_4", "city_5", "city_other")
    assert plan.loss.failure == release.failure
    assert release.threshold > 5 * release.noise_scale
    assert plan.in_memory == ()
    assert f"one needs {release.threshold:.0f} rows" in repr(plan)


def test_a_gate_behind_it_adds_its_delta():
    plan = pipeline(encoder(), PCA(1, fit_mode="exact")).plan(Domain(n_rows=N, feature_names=("city",)))
    assert plan.gate.adding
    assert plan.loss.gate == 0
    assert plan.loss.failure == pytest.approx(plan.gate.delta + plan.releases[0].failure, rel=1e-6)


X_Y = table()
REFUSED = {
    "no number": (lambda: pipeline(encoder(max_categories=None)).fit(*X_Y), MissingBound, "max_categories"),
    "too many": (lambda: pipeline(encoder(max_categories=20_000)).fit(*X_Y), InvalidParameter, "10000"),
    "declared and bounded": (
        lambda: CategoryEncoder(["a"], max_categories=3).fit(X_Y[0]),
        InvalidParameter,
        "no max_categories",
    ),
    "alone": (lambda: encoder().fit(X_Y[0]), MissingBudget, "Pipeline"),
    "not first": (lambda: pipeline(MinMaxScaler(ranges=(0, 1)), encoder()).fit(*X_Y), UnsupportedOrder, "put it first"),
    "dates": (
        lambda: pipeline().fit(pd.DataFrame({"d": pd.date_range("2000-01-01", periods=N)}), X_Y[1]),
        NonNumericData,
        "DateEncoder",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_name_the_fix(name):
    make, kind, words = REFUSED[name]
    with pytest.raises(kind, match=words):
        make()


def test_statistics_of_a_released_answer_fit_the_plan_of_a_map_without_a_model():
    X, _ = table()
    pipe = Pipeline([("cats", encoder()), ("mean", GaussianMechanism())]).fit(X)
    assert pipe.certificate_.verify()
    assert pipe.release_.arrays["cats.categories"].shape == (55,)


def test_names_that_collide_give_way_to_numbers():
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"a": rng.choice(["b_c", "q"], N), "a_b": rng.choice(["c", "w"], N)})
    pipe = pipeline(make_column_map((encoder(max_categories=3), ["a", "a_b"]))).fit(X, rng.integers(0, 2, N))
    assert pipe["s0"].get_feature_names_out().tolist() == [f"columnmap{i}" for i in range(8)]


# ---------------- gaps that become the most frequent category


LISTS = {"ward": ["a", "b", "c"], "code": [1, 0, 4]}


def table_with_gaps():
    rng = np.random.default_rng(0)
    ward = rng.choice(["a", "b", "c", "Z"], N, p=[0.1, 0.5, 0.2, 0.2]).astype(object)
    X = pd.DataFrame({"ward": ward, "code": rng.choice([0.0, 1.0, 4.0], N, p=[0.2, 0.1, 0.7]), "age": rng.random(N)})
    y = (X["ward"] == "c").astype(int).to_numpy()
    X.loc[::7, "ward"], X.loc[::5, "code"], X.loc[::3, "age"] = None, np.nan, np.nan
    return X, y


def mode_encoder(**parameters):
    return CategoryEncoder(LISTS, **{"strategy": "most_frequent", **parameters})


def mode_pipeline(first=None, **parameters):
    numbers = [MinMaxScaler(ranges=(0, 1)), MeanImputer(fit_mode="noisy")]
    groups = [("labels", first or mode_encoder(), ["ward", "code"]), ("numbers", numbers, ["age"])]
    steps = [("columns", ColumnTransformer(groups)), ("model", LogisticRegression(classes=(0, 1)))]
    return Pipeline(steps, **{"epsilon": 2.0, "random_state": 0, **parameters})


@pytest.mark.parametrize("encoding", ["onehot", "ordinal"])
def test_gaps_become_the_mode_and_nothing_else_does(encoding):
    X, y = table_with_gaps()
    pipe = mode_pipeline(mode_encoder(encoding=encoding), random_state=None, epsilon=5.0).fit(X, y)
    few = X.iloc[:60]
    filled = few.assign(ward=few["ward"].fillna("b"), code=few["code"].fillna(4.0))
    np.testing.assert_array_equal(pipe.predict_proba(few), pipe.predict_proba(filled))
    plain = pipe.release_.to_sklearn()
    np.testing.assert_allclose(plain.predict_proba(few), pipe.predict_proba(few), rtol=0, atol=1e-12)
    counted = pipe.release_.to_pandas().query("statistic == 'rows of the category'")
    assert counted["column"].tolist() == ["ward"] * 3 + ["code"] * 3
    true = [*(sum(X["ward"] == one) for one in "abc"), *(sum(X["code"] == one) for one in (0, 1, 4))]
    np.testing.assert_allclose(counted["value"], true, atol=120)


def test_its_certificate_verifies_and_counts_are_all_that_it_costs():
    X, y = table_with_gaps()
    certificate = mode_pipeline(random_state=None).fit(X, y).certificate_
    assert certificate.verify()
    assert certificate.status == "UNCONDITIONAL"
    modes = certificate.record.releases[0]
    assert (modes.statistic, modes.sensitivity) == ("modes", pytest.approx(2.0))
    assert modes.parameters == {"columns": (0, 1), "sizes": (3, 3), "values": (0.0, 1.0, 2.0, 0.0, 1.0, 4.0)}
    assert "how many rows hold each category" in certificate.to_html()


def test_rows_in_blocks_are_counted_to_the_same_bits():
    X, y = table_with_gaps()
    batches = pa.Table.from_pandas(X.assign(y=y)).to_batches(700)
    whole = mode_pipeline().fit(X, y).release_.arrays
    blocks = mode_pipeline().fit(pa.RecordBatchReader.from_batches(batches[0].schema, batches), "y").release_.arrays
    assert {name: value.tobytes() for name, value in whole.items()} == {n: v.tobytes() for n, v in blocks.items()}


@pytest.mark.parametrize(
    ("adjacency", "cost"), [(Adjacency.add_remove(), 2**0.5), (Adjacency.user_level(2), 4.0)], ids=str
)
def test_other_adjacencies_pay_their_own(adjacency, cost):
    X, y = table_with_gaps()
    groups = np.arange(N) // 2 if adjacency.bounds_contributions else None
    domain = Domain(n_rows=N + 500) if adjacency.unbounded else None
    pipe = mode_pipeline(adjacency=adjacency, domain=domain, epsilon=4.0).fit(X, y, groups)
    assert pipe.certificate_.verify()
    assert pipe.certificate_.record.releases[0].sensitivity == pytest.approx(cost)


def test_where_no_value_can_be_missing_nothing_is_paid():
    facts = Domain(n_rows=N, feature_names=tuple(LISTS), max_missing=0, classes=(0, 1))
    steps = [("codes", mode_encoder()), ("model", LogisticRegression())]
    assert not Pipeline(steps, epsilon=1.0).plan(facts).releases
    one = Pipeline([("codes", CategoryEncoder([["a"], [1]], strategy="most_frequent")), steps[1]], epsilon=1.0)
    assert not one.plan(facts.but(max_missing=N)).releases  # of a single category nothing need be asked


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"strategy": "median"}, "strategy must be one of"),
        ({"add_indicator": True}, "add_indicator=False"),
        ({"categories": "hashed", "max_categories": 4}, "add_indicator=True"),
        ({"categories": "private", "max_categories": 4}, "add_indicator=True"),
    ],
)
def test_what_means_nothing_together_is_refused(wrong, words):
    with pytest.raises(InvalidParameter, match=words):
        mode_pipeline(CategoryEncoder(**{"categories": LISTS, "strategy": "most_frequent", **wrong})).fit(
            *table_with_gaps()
        )


def test_it_is_refused_beside_private_categories_and_alone():
    X, y = table_with_gaps()
    groups = [("w", CategoryEncoder("private", max_categories=3), ["ward"])]
    groups += [("c", CategoryEncoder([[0, 1, 4]], strategy="most_frequent"), ["code"])]
    steps = [("columns", ColumnTransformer(groups)), ("model", LogisticRegression(classes=(0, 1)))]
    with pytest.raises(InvalidParameter, match="of others the most frequent one"):
        Pipeline(steps, epsilon=1.0).fit(X, y)
    with pytest.raises(MissingBudget):
        mode_encoder().fit(X[["ward", "code"]])


def test_rows_of_none_of_the_released_categories_are_said():
    """A third of the towns have one row each."""
    towns = [f"town {i}" if i % 3 == 0 else "big" for i in range(N)]
    X = table()[0][["city"]].assign(town=towns)
    with pytest.warns(DiagnosticWarning, match=r"'town': 3\d % of the rows are of none"):
        pipe = ppdp.make_pipeline(encoder(), GaussianMechanism(), epsilon=4.0).fit(X)
    (column, share), *rest = pipe.certificate_.record.released.others.items()
    assert (column, rest) == ("town", [])
    assert share == pytest.approx(1 / 3, abs=0.05)
    assert "of none of the released categories" in " ".join(pipe.certificate_.to_text(full=True).split())
    assert pipe.certificate_.verify()


@pytest.mark.parametrize("grouped", [False, True])
def test_columns_of_which_no_category_shows_are_said(grouped):
    X = table()[0].assign(id=[f"person {i}" for i in range(N)])
    first = ColumnTransformer([("c", encoder(), ["city", "id"])]) if grouped else encoder()
    with pytest.warns(DiagnosticWarning, match=r"^'id': no category shows.* about \d+ rows at epsilon = 4\."):
        pipe = ppdp.make_pipeline(first, GaussianMechanism(), epsilon=4.0).fit(X)
    assert pipe.certificate_.record.released.no_range == ("id",)
    assert "no category shows" in " ".join(pipe.certificate_.to_text(full=True).split())
    assert pipe.certificate_.verify()
