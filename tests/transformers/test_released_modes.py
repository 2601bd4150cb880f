"""Gaps of categories that become the most frequent one, end to end: released, paid for, certified, refused."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from ppdp import Adjacency, ColumnTransformer, Domain, Pipeline
from ppdp.exceptions import InvalidParameter, MissingBudget
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import CategoryEncoder, MeanImputer, MinMaxScaler

N = 4000
LISTS = {"ward": ["a", "b", "c"], "code": [1, 0, 4]}


def table():
    rng = np.random.default_rng(0)
    ward = rng.choice(["a", "b", "c", "Z"], N, p=[0.1, 0.5, 0.2, 0.2]).astype(object)
    X = pd.DataFrame({"ward": ward, "code": rng.choice([0.0, 1.0, 4.0], N, p=[0.2, 0.1, 0.7]), "age": rng.random(N)})
    y = (X["ward"] == "c").astype(int).to_numpy()
    X.loc[::7, "ward"], X.loc[::5, "code"], X.loc[::3, "age"] = None, np.nan, np.nan
    return X, y


def encoder(**parameters):
    return CategoryEncoder(LISTS, **{"strategy": "most_frequent", **parameters})


def pipeline(first=None, **parameters):
    numbers = [MinMaxScaler(ranges=(0, 1)), MeanImputer(fit_mode="noisy")]
    groups = [("labels", first or encoder(), ["ward", "code"]), ("numbers", numbers, ["age"])]
    steps = [("columns", ColumnTransformer(groups)), ("model", LogisticRegression(classes=(0, 1)))]
    return Pipeline(steps, **{"epsilon": 2.0, "random_state": 0, **parameters})


@pytest.mark.parametrize("encoding", ["onehot", "ordinal"])
def test_gaps_become_the_mode_and_nothing_else_does(encoding):
    X, y = table()
    pipe = pipeline(encoder(encoding=encoding), random_state=None, epsilon=5.0).fit(X, y)
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
    X, y = table()
    certificate = pipeline(random_state=None).fit(X, y).certificate_
    assert certificate.verify()
    assert certificate.status == "UNCONDITIONAL"
    modes = certificate.record.releases[0]
    assert (modes.statistic, modes.sensitivity) == ("modes", pytest.approx(2.0))
    assert modes.parameters == {"columns": (0, 1), "sizes": (3, 3), "values": (0.0, 1.0, 2.0, 0.0, 1.0, 4.0)}
    assert "how many rows hold each category" in certificate.to_html()


def test_rows_in_blocks_are_counted_to_the_same_bits():
    X, y = table()
    batches = pa.Table.from_pandas(X.assign(y=y)).to_batches(700)
    whole = pipeline().fit(X, y).release_.arrays
    blocks = pipeline().fit(pa.RecordBatchReader.from_batches(batches[0].schema, batches), "y").release_.arrays
    assert {name: value.tobytes() for name, value in whole.items()} == {n: v.tobytes() for n, v in blocks.items()}


@pytest.mark.parametrize(
    ("adjacency", "cost"), [(Adjacency.add_remove(), 2**0.5), (Adjacency.user_level(2), 4.0)], ids=str
)
def test_other_adjacencies_pay_their_own(adjacency, cost):
    X, y = table()
    groups = np.arange(N) // 2 if adjacency.bounds_contributions else None
    domain = Domain(n_rows=N + 500) if adjacency.unbounded else None
    pipe = pipeline(adjacency=adjacency, domain=domain, epsilon=4.0).fit(X, y, groups)
    assert pipe.certificate_.verify()
    assert pipe.certificate_.record.releases[0].sensitivity == pytest.approx(cost)


def test_where_no_value_can_be_missing_nothing_is_paid():
    facts = Domain(n_rows=N, feature_names=tuple(LISTS), max_missing=0, classes=(0, 1))
    steps = [("codes", encoder()), ("model", LogisticRegression())]
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
        pipeline(CategoryEncoder(**{"categories": LISTS, "strategy": "most_frequent", **wrong})).fit(*table())


def test_it_is_refused_beside_private_categories_and_alone():
    X, y = table()
    groups = [("w", CategoryEncoder("private", max_categories=3), ["ward"])]
    groups += [("c", CategoryEncoder([[0, 1, 4]], strategy="most_frequent"), ["code"])]
    steps = [("columns", ColumnTransformer(groups)), ("model", LogisticRegression(classes=(0, 1)))]
    with pytest.raises(InvalidParameter, match="of others the most frequent one"):
        Pipeline(steps, epsilon=1.0).fit(X, y)
    with pytest.raises(MissingBudget):
        encoder().fit(X[["ward", "code"]])
