"""Boosted shapes and tables as trees of scikit-learn: equal to 1e-12, with missing values and categories."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from ppdp import make_column_map, make_pipeline
from ppdp.mechanisms import GradientBoostingClassifier, GradientBoostingRegressor
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
LABELS = {"two": EFFECT > 0, "three": np.digitize(EFFECT, [-1, 1]), "targets": EFFECT}


@cache
def fitted(labels, text=True):
    """A pipeline whose tables of two columns are wanted; without text its wards are codes."""
    encoder = CategoryEncoder({"ward": WARDS}, encoding="ordinal")
    ranges = MinMaxScaler(ranges={"age": (0, 64), "dose": (0, 10)})
    y = LABELS[labels]
    how = {"interaction_cst": "pairwise", "max_iter": 2, "categorical_features": ["ward"] if text else None}
    classes = tuple(np.unique(y).tolist())
    model = (
        GradientBoostingRegressor((-2, 2), **how) if labels == "targets" else GradientBoostingClassifier(classes, **how)
    )
    front = make_column_map((ranges, ["age", "dose"]), *([(encoder, ["ward"])] if text else []))
    pipe = make_pipeline(front, model, epsilon=20.0, delta=1e-6)
    return pipe.fit(TABLE if text else TABLE[["age", "dose"]], y)


@pytest.mark.parametrize("labels", LABELS)
def test_trees_of_scikit_learn_say_the_same(labels):
    pipe = fitted(labels)
    plain = pipe.release_.to_sklearn()
    assert any(model.pairs for model in pipe[-1].models_)
    assert type(plain[-1]).__module__.startswith("sklearn.")
    assert (plain.predict(WILD) == pipe.predict(WILD)).all() or labels == "targets"
    for method in ("predict",) if labels == "targets" else ("predict_proba", "decision_function"):
        np.testing.assert_allclose(getattr(plain, method)(WILD), getattr(pipe, method)(WILD), 0, 1e-12)
