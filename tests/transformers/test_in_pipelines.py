"""Every stage in a pipeline: certified, with released values only, in front of a model and of a mean."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from ppdp import Adjacency, Domain, make_pipeline
from ppdp import transformers as S
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers.base import Transformer

FITTED = [
    S.MeanImputer(),
    S.MeanImputer(columns=["b"]),
    S.MedianImputer(),
    S.TrimmedMeanImputer(),
    S.TrimmedMeanImputer(max_missing=0.2),
    S.RegressionImputer(),
    S.RegressionImputer(max_missing=0.3),
    S.StandardScaler(0.1),
    S.StandardScaler(0.1, per_column=False),
    S.StandardScaler(0.1, per_column=False, use_floor=False),
    S.RobustScaler(),
    S.MinMaxScaler(quantiles=(0.1, 0.9)),
    S.PCA(1),
    S.PCA(1, output="projected"),
    S.PCA(1, with_mean=True, output="aligned", public_basis=np.eye(2)[:, :1], min_alignment=0.5),
    S.SoftPCA(0.05),
]
PUBLIC = [
    *(S.GridQuantizer(cell_width=0.25, mode=mode, seed=2) for mode in ("hard", "staircase", "dither")),
    *(S.Deduplicator(label_rule=labels) for labels in ("record", "unanimous", "first")),
    *(
        S.GridDeduplicator(0.02, keep=keep, label_rule=labels)
        for keep in ("centre", "first")
        for labels in ("record", "unanimous", "first")
    ),
    S.GridDeduplicator(0.001, keep="soft"),
    *(S.LSHDeduplicator(2, mode="simhash", rule=rule, window=2) for rule in ("first", "window", "soft")),
    S.ClusterDeduplicator(radius=0.001, max_cluster=400),
    S.ClusterQuantizer(radius=0.001, max_cluster=400),
]
BEHIND = [
    S.Deduplicator(compare="raw"),
    S.GridDeduplicator(0.01, keep="first", compare="raw"),
    S.LSHDeduplicator(2, mode="simhash", compare="raw"),
    S.ClusterDeduplicator(radius=0.001, max_cluster=400, compare="raw"),
]
N = 4000


def table(gaps):
    """Two columns, the second shorter than the first; a tenth of its cells may be missing."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.uniform(-1, 1, (N, 2)) * [1.0, 0.4], columns=["a", "b"])
    y = (X["a"] > 0).astype(int)
    if gaps:
        X.loc[: N // 10, "b"] = np.nan
    return X, y


def pipeline(stage, last, **parameters):
    facts = Domain(max_missing=None if stage.fills_gaps else 0)
    settings = {"epsilon": 20.0, "delta": 1e-4, "domain": facts, **parameters}
    return make_pipeline(S.MinMaxScaler(ranges=(-1, 1)), clone(stage), last, **settings)


def model():
    return LogisticRegression(classes=(0, 1), solver="dpgd", max_iter=10)


@pytest.mark.parametrize("statistics", ["exact", "noisy"])
@pytest.mark.parametrize("stage", FITTED, ids=repr)
@pytest.mark.repeated("statistics", keep=2)
def test_a_model_behind_a_fitted_stage_predicts_with_released_values_only(stage, statistics):
    X, y = table(stage.fills_gaps)
    stage = clone(stage).set_params(fit_mode=statistics)
    pipe = pipeline(stage, model()).fit(X, y)
    step = pipe.certificate_["steps"][1]
    assert pipe.certificate_.verify()
    assert pipe.certificate_.status == "UNCONDITIONAL"
    assert step["way"] == statistics
    assert all(condition["tested"] for condition in step["conditions"])
    assert statistics == "exact" or step["distance"]["moved"] == 0
    assert statistics == "exact" or pipe.score(X, y) > 0.8
    assert pipe.predict(X).shape == y.shape
    released, standalone = pipe[1], clone(stage).set_params(fit_mode="exact").fit(X)
    for name in set(stage.statistic_names) - {"norm", "clip", "columns", "entry_bound", "ridge"}:
        value = getattr(released, f"{name}_", None)
        assert value is None or not np.array_equal(value, getattr(standalone, f"{name}_"))


@pytest.mark.parametrize("stage", FITTED, ids=repr)
def test_in_front_of_a_mean_nothing_is_released_for_new_rows(stage):
    X, _ = table(stage.fills_gaps)
    pipe = pipeline(clone(stage).set_params(fit_mode="exact"), GaussianMechanism()).fit(X)
    assert pipe.certificate_.verify()
    assert not [name for name in pipe.release_.arrays if name.startswith(f"{type(stage).__name__.lower()}.")]


@pytest.mark.parametrize("stage", PUBLIC, ids=repr)
def test_stages_that_release_nothing(stage):
    X, y = table(gaps=False)
    last = GaussianMechanism() if getattr(stage, "_weighs", False) else model()
    pipe = pipeline(stage, last).fit(X, y)
    assert pipe.certificate_.verify()
    assert pipe.certificate_.status == "UNCONDITIONAL"
    assert pipe.certificate_["releases"] == []
    assert isinstance(last, GaussianMechanism) or pipe.predict(X[:5]).shape == (5,)


@pytest.mark.parametrize("stage", BEHIND, ids=repr)
def test_raw_keys_let_it_stand_behind_a_stage_that_moved_all_rows(stage):
    X, y = table(gaps=False)
    stages = S.StandardScaler(fit_mode="exact"), clone(stage), model()
    pipe = make_pipeline(S.MinMaxScaler(ranges=(-1, 1)), *stages, epsilon=20.0, delta=1e-4).fit(X, y)
    assert pipe.certificate_.verify()
    assert pipe.certificate_["steps"][-1]["distance"]["moved"] > N / 2


@pytest.mark.parametrize("stage", [stage for stage in FITTED if isinstance(stage, Transformer)], ids=repr)
def test_a_plan_needs_no_data(stage):
    facts = Domain(n_rows=N, feature_names=("a", "b"), max_missing=None if stage.fills_gaps else 0)
    plan = pipeline(stage, GaussianMechanism()).plan(facts)
    assert plan.steps[1].way.distance.replaced >= Adjacency.replace().distance.replaced
