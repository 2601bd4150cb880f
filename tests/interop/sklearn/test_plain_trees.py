"""Boosted shapes and tables as trees of scikit-learn: equal to 1e-12, with missing values and categories."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from ppdp import make_column_map, make_pipeline
from ppdp.mechanisms import GradientBoostingClassifier, GradientBoostingRegressor
from ppdp.mechanisms.boosting import estimators
from ppdp.transformers import CategoryEncoder, MinMaxScaler

pytestmark = pytest.mark.filterwarnings("ignore::ppdp.exceptions.CompositionWarning")

N, WARDS = 4000, list("abcde")
RNG = np.random.default_rng(0)
AGES, DOSES, WARD = RNG.integers(0, 65, N) * 1.0, RNG.uniform(0, 10, N), RNG.integers(0, 5, N)
EFFECT = (AGES - 32) / 10 + 2.0 * (WARD == 3) - 1 + (DOSES - 5) * (AGES - 32) / 20
TABLE = pd.DataFrame({"age": AGES, "dose": np.where(RNG.random(N) < 0.1, np.nan, DOSES)})
TABLE["ward"] = np.where(RNG.random(N) < 0.1, None, np.array(WARDS)[WARD])
WILD = pd.DataFrame(
    {"age": RNG.integers(-9, 99, 400), "dose": RNG.normal(5, 9, 400), "ward": RNG.choice([*WARDS, "zzz", None], 400)}
).astype({"age": float})
WILD.loc[::7, ["age", "dose"]] = np.nan
LABELS = {"two": EFFECT > 0, "three": np.digitize(EFFECT, [-1, 1]), "targets": EFFECT, "amounts": np.exp(EFFECT / 2)}
REGRESSORS = {
    "targets": GradientBoostingRegressor((-2, 2)),
    "amounts": GradientBoostingRegressor((0, 2), loss="poisson"),
}


@pytest.fixture(autouse=True)
def few_rows_are_enough_for_trees(monkeypatch):
    monkeypatch.setattr(estimators, "TREES", {0.0: (4, 6)})


@cache
def fitted(labels, text=True):
    """A pipeline with tables of two columns and trees; without text it has no wards."""
    encoder = CategoryEncoder({"ward": WARDS}, encoding="ordinal")
    ranges = MinMaxScaler(ranges={"age": (0, 64), "dose": (0, 10)})
    y = LABELS[labels]
    how = {"max_iter": 2, "categorical_features": ["ward"] if text else None}
    model = clone(REGRESSORS.get(labels) or GradientBoostingClassifier(tuple(np.unique(y).tolist())))
    model.set_params(**how)
    front = make_column_map((ranges, ["age", "dose"]), (encoder, ["ward"])) if text else ranges
    pipe = make_pipeline(front, model, epsilon=20.0, delta=1e-6)
    return pipe.fit(TABLE if text else TABLE[["age", "dose"]], y)


@pytest.mark.parametrize("labels", LABELS)
def test_trees_of_scikit_learn_say_the_same(labels):
    pipe = fitted(labels)
    plain = pipe.release_.to_sklearn()
    assert any(len(table.groups) > 1 for model in pipe[-1].models_ for table in model.tables())
    assert any(values.any() for model in pipe[-1].models_ for *_, values in model.trees)
    assert type(plain[-1]).__module__.startswith("sklearn.")
    assert (plain.predict(WILD) == pipe.predict(WILD)).all() or labels in REGRESSORS
    for method in ("predict",) if labels in REGRESSORS else ("predict_proba", "decision_function"):
        np.testing.assert_allclose(getattr(plain, method)(WILD), getattr(pipe, method)(WILD), 0, 1e-12)


@pytest.mark.parametrize("kind", ["float64", "float32"])
@pytest.mark.parametrize("labels", LABELS)
@pytest.mark.repeated("kind")
def test_a_runtime_of_onnx_says_the_same(labels, kind):
    """Numbers in both precisions: no edge of a cell is where whole numbers are."""
    kinds, runtime = pytest.importorskip("skl2onnx.common.data_types"), pytest.importorskip("onnxruntime")
    pipe = fitted(labels, text=False)
    rows = WILD[["age", "dose"]].to_numpy(kind)
    rows[:, 0] = np.rint(rows[:, 0])
    single = [("X", kinds.FloatTensorType([None, 2]))] if kind == "float32" else None
    found = pipe.release_.to_onnx(single).SerializeToString()
    answers = runtime.InferenceSession(found, providers=["CPUExecutionProvider"]).run(None, {"X": rows})
    rows = pd.DataFrame(rows.astype(np.float64), columns=["age", "dose"])
    wanted = pipe.predict(rows)[:, None] if labels in REGRESSORS else pipe.predict_proba(rows)
    np.testing.assert_allclose(answers[-1], wanted, 0, 1e-6)
    assert labels in REGRESSORS or (answers[0] == pipe.predict(rows)).all()


def test_a_runtime_of_onnx_takes_text_by_its_column():
    runtime = pytest.importorskip("onnxruntime")
    pipe, rows = fitted("two"), WILD.dropna()
    cells = {name: rows[[name]].to_numpy(object if name == "ward" else np.float64) for name in rows}
    session = runtime.InferenceSession(pipe.release_.to_onnx().SerializeToString(), providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, cells)[1], pipe.predict_proba(rows), 0, 1e-6)


def test_trees_weigh_their_leaves_by_released_shares():
    """So that what explains trees by the rows that they have seen says what the model says of itself."""
    pipe = fitted("two")
    fitted_trees = vars(pipe.release_.to_sklearn()[-1])
    expected = fitted_trees["_baseline_prediction"].item()
    for (tree,) in fitted_trees["_predictors"]:
        leaves = tree.nodes[tree.nodes["is_leaf"] == 1]
        expected += leaves["value"] @ leaves["count"] / tree.nodes["count"][0]
    assert expected == pytest.approx(pipe[-1].expected_value_, abs=1e-6)
