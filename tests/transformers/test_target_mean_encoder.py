"""Categories as released mean labels: what comes out, what is refused, and what a fit tells of them."""

import math

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.preprocessing import TargetEncoder

from ppdp import Adjacency, Domain, Pipeline, make_column_map
from ppdp.exceptions import DomainMismatch, ExportError, InvalidInput, InvalidParameter, MissingBound, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, LinearRegression, LogisticRegression
from ppdp.transformers import CategoryEncoder, MinMaxScaler, TargetMeanEncoder

N = 6000
RNG = np.random.default_rng(0)
WARD, X1 = RNG.integers(3, size=N), RNG.uniform(-1, 1, N)
TRUE = np.array([0.1, 0.5, 0.8])
Y = (RNG.random(N) < TRUE[WARD]).astype(int)
TABLE = pd.DataFrame({"ward": np.array(["A", "B", "C"])[WARD], "x": X1})
CODES = CategoryEncoder(["A", "B", "C"], encoding="ordinal")
COLUMNS = make_column_map((CODES, ["ward"]), (MinMaxScaler(ranges=(-1, 1)), ["x"]))


def fitted(model, y=Y, table=TABLE, first=COLUMNS, **parameters):
    steps = [("cols", first), ("means", TargetMeanEncoder(["ward"])), ("model", model)]
    return Pipeline(steps, **{"epsilon": 5.0, "delta": 1e-6, **parameters}).fit(table, y)


@pytest.mark.parametrize("adjacency", [Adjacency.replace(), Adjacency.add_remove(), Adjacency.replace(2)], ids=repr)
def test_released_means_are_near_the_true_ones_and_the_certificate_verifies(adjacency):
    facts = Domain(n_rows=N + 50) if adjacency.unbounded else Domain()
    pipe = fitted(LogisticRegression((0, 1)), adjacency=adjacency, domain=facts)
    assert pipe.certificate_.verify()
    out = pipe[:-1].transform(pd.DataFrame({"ward": ["A", "B", "C", "Z"], "x": [0.5, -1.0, 0.2, 0.0]}))
    np.testing.assert_allclose(out[:3, 0], 2 * TRUE - 1, atol=0.1)
    np.testing.assert_allclose(out[:, 1], [0.5, -1.0, 0.2, 0.0], atol=1e-12)
    assert np.abs(out).max() <= 1


def test_it_tells_names_units_and_errors():
    told = fitted(LogisticRegression(("no", "yes")), np.array(["no", "yes"])[Y]).release_.to_pandas()
    rows, shares = (
        told[told.statistic == what].set_index("column") for what in ("rows of the category", "share of class yes")
    )
    assert list(rows.index) == [f"ward = {name}" for name in ("A", "B", "C", "other", "anything else")]
    for name, count, share in zip("ABC", np.bincount(WARD), TRUE):
        assert abs(rows.raw_value[f"ward = {name}"] - count) < 6 * rows.standard_error.iloc[0]
        assert shares.raw_value[f"ward = {name}"] == pytest.approx(share, abs=0.05)
    assert math.isnan(shares.raw_value["ward = other"])
    told = fitted(LinearRegression(y_range=(10, 20)), 10.0 + 10 * Y).release_.to_pandas()
    means = told[told.statistic == "mean target"].set_index("column")
    np.testing.assert_allclose(means.raw_value[:3], 10 + 10 * TRUE, atol=0.5)
    assert (means.raw_standard_error[:3] < 0.1).all()


def test_private_categories_and_several_classes():
    first = CategoryEncoder("private", encoding="ordinal", max_categories=5)
    pipe = fitted(
        LogisticRegression(("u", "v", "w")), np.array(["u", "v", "w"])[(WARD + Y) % 3], TABLE[["ward"]], first
    )
    assert pipe.certificate_.verify()
    assert list(pipe[1].get_feature_names_out()) == ["ward_u", "ward_v", "ward_w"]
    shares = pipe[:-1].transform(pd.DataFrame({"ward": ["A", "B", "C"]}))
    for at, share in enumerate(TRUE):
        np.testing.assert_allclose((1 + shares[at, [at, (at + 1) % 3]]) / 2, [1 - share, share], atol=0.05)


def test_rows_in_blocks_are_the_same_to_the_last_bit(tmp_path):
    pq.write_table(pa.table({"ward": TABLE.ward, "x": X1, "y": Y}), tmp_path / "a.parquet")
    seeded = [
        fitted(LogisticRegression((0, 1)), y, table, random_state=0)
        for table, y in ((TABLE, Y), (str(tmp_path / "a.parquet"), "y"))
    ]
    np.testing.assert_array_equal(*(pipe.release_.arrays["means.label-means"] for pipe in seeded))


def test_there_is_no_plain_twin():
    with pytest.raises(ExportError):
        fitted(LogisticRegression((0, 1))).release_.to_sklearn()


@pytest.mark.parametrize(
    ("steps", "error"),
    [
        ([CODES, TargetMeanEncoder(), LogisticRegression()], MissingBound),
        ([CODES, TargetMeanEncoder(), LinearRegression()], MissingBound),
        ([CODES, TargetMeanEncoder(), GaussianMechanism()], UnsupportedOrder),
        ([CODES, TargetMeanEncoder()], UnsupportedOrder),
        ([TargetMeanEncoder(), LogisticRegression((0, 1))], MissingBound),
        ([CODES, TargetMeanEncoder([0, 0]), LogisticRegression((0, 1))], InvalidParameter),
        ([CODES, TargetMeanEncoder([7]), LogisticRegression((0, 1))], DomainMismatch),
        ([CODES, TargetMeanEncoder(smooth=-1), LogisticRegression((0, 1))], InvalidParameter),
        (
            [MinMaxScaler((0, 1), feature_range=(0, 1e6)), TargetMeanEncoder(), LogisticRegression((0, 1))],
            InvalidParameter,
        ),
    ],
    ids=str,
)
def test_what_is_refused_before_any_row_is_looked_at(steps, error):
    named = [(f"step{i}", step) for i, step in enumerate(steps)]
    with pytest.raises(error, match="Fix: "):
        Pipeline(named, epsilon=1.0, delta=1e-6).plan(Domain(n_rows=N, n_features=1))


def test_only_the_label_that_the_model_learns_counts():
    facts = Domain(n_rows=N, n_features=1, classes=(0, 1, 2), y_range=(0.0, 1.0))
    for model, size in ((LinearRegression(), 2), (LogisticRegression(), 3)):
        plan = Pipeline([("c", CODES), ("t", TargetMeanEncoder()), ("m", model)], epsilon=1.0, delta=1e-6).plan(facts)
        assert plan.steps[1].way.domain.n_features == (1 if size == 2 else 3)


def test_alone_it_is_what_scikit_learn_fits_on_all_rows():
    codes = WARD[:, None].astype(float)
    ours = TargetMeanEncoder(smooth=7.0).fit_transform(codes, Y).ravel()
    theirs = TargetEncoder(smooth=7.0).fit(codes, Y).transform(codes).ravel()
    np.testing.assert_allclose((1 + ours) / 2, theirs, atol=1e-12)
    target = 3 + 2 * Y + X1
    mapped = TargetMeanEncoder(smooth=7.0).fit(codes, target)
    theirs = TargetEncoder(smooth=7.0).fit(codes, target).transform(codes).ravel()
    np.testing.assert_allclose(mapped.unit_[0] + mapped.unit_[1] * mapped.transform(codes).ravel(), theirs, atol=1e-9)
    with pytest.raises(InvalidInput, match="requires y"):
        TargetMeanEncoder().fit(codes)
