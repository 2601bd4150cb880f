"""A run says what it altered: released shares of repaired, clipped and unlisted values, with warnings."""

import warnings

import numpy as np
import pandas as pd
import pytest

from ppdp import (
    Adjacency,
    Certificate,
    ColumnTransformer,
    Domain,
    Pipeline,
    PrivateSearchCV,
    make_column_map,
    make_pipeline,
)
from ppdp.bounds import release
from ppdp.bounds.release import PREDICTED
from ppdp.certificate.altered import recalls
from ppdp.data import parallel
from ppdp.data.engine import disk_cache
from ppdp.exceptions import DiagnosticWarning
from ppdp.mechanisms import (
    ExponentialMechanism,
    GaussianMechanism,
    GaussianNB,
    GaussianSketch,
    GradientBoostingClassifier,
    LaplaceMechanism,
    LinearSVC,
    LogisticRegression,
    Report,
    Ridge,
    SignMechanism,
)
from ppdp.pipeline.fit import plan_of
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import (
    CategoryEncoder,
    DateEncoder,
    Deduplicator,
    GridDeduplicator,
    KBinsDiscretizer,
    MeanImputer,
    MedianImputer,
    MinMaxScaler,
    NormClipper,
    StandardScaler,
)

N = 4000
AGE = np.random.default_rng(0).uniform(18, 80, N)
TABLE = pd.DataFrame({"age": AGE})
IN_YEARS = MinMaxScaler(ranges={"age": (18, 80)})
LABELS = np.where(AGE + np.random.default_rng(2).normal(0, 4, N) > 50, "yes", "no")  # not without an error


def warned(pipe, *data, **further):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        pipe.fit(*data, **further)
    return [str(one.message) for one in found if one.category is DiagnosticWarning]


def shares(pipe):
    return {(one.kind, one.column): one.share for one in pipe.certificate_.record.diagnostics.shares}


def model(*, scale=IN_YEARS, **given):
    return make_pipeline(scale, LogisticRegression(classes=("no", "yes")), **{"epsilon": 4.0, **given})


def test_labels_in_another_spelling_are_said():
    pipe = model(on_invalid="repair")
    single, said = warned(pipe, TABLE, np.char.capitalize(LABELS))
    assert "predicts one class only, 'no'" in single
    assert "labels repaired" in said
    assert shares(pipe)["labels repaired", None] == pytest.approx(1.0, abs=0.02)
    assert pipe.certificate_.verify()
    assert pipe.certificate_.status == "UNCONDITIONAL"
    for page in (pipe.certificate_.to_text(full=True), pipe.certificate_.to_html(), pipe.certificate_._repr_html_()):
        assert "labels repaired" in page


@pytest.mark.parametrize("last", [LogisticRegression, LinearSVC, GaussianNB, GradientBoostingClassifier])
@pytest.mark.parametrize("more", [[], [MeanImputer(), StandardScaler(fit_mode="auto")]], ids=["range", "scaler"])
@pytest.mark.parametrize("classes", [("no", "yes"), ("no", "perhaps", "yes")])
@pytest.mark.repeated("more")
def test_a_model_of_one_class_is_called_one(last, more, classes):
    if last is LinearSVC and len(classes) > 2:
        pytest.skip("for two classes")
    for labels in (LABELS, np.full(N, "no")):
        steps = [IN_YEARS, *more, last(classes=classes)]
        pipe = make_pipeline(*steps, epsilon=4.0, diagnostics=None)
        said = warned(pipe, TABLE, labels)
        single = pipe.certificate_.record.released.single_class
        assert (single == "no") == (len({*pipe.predict(TABLE)}) == 1) == (len(said) == 1)
        assert ("one class only" in pipe.certificate_.to_html()) == (single is not None)
        assert pipe.certificate_.verify()


@pytest.mark.parametrize(("rare", "single"), [(12, "no"), (400, None)])
def test_naive_bayes_of_a_rare_class_predicts_hardly_any_of_it(rare, single):
    ranks = (AGE + np.random.default_rng(1).normal(0, 8, N)).argsort().argsort()
    pipe = make_pipeline(IN_YEARS, GaussianNB(("no", "yes")), epsilon=4.0, random_state=0)
    pipe.fit(TABLE, np.where(ranks >= N - rare, "yes", "no"))
    assert pipe.certificate_.record.released.single_class == single
    assert ((pipe.predict(TABLE) == "yes").sum() < rare / 10) == (single is not None)


COLUMN = {"age": np.round(AGE)}, {"age": AGE}


@pytest.mark.parametrize("last", [LogisticRegression, LinearSVC, GaussianNB, GradientBoostingClassifier])
@pytest.mark.parametrize("step", [Deduplicator(), GridDeduplicator()], ids=str)
@pytest.mark.repeated("step")
def test_few_rows_behind_a_deduplicator_are_said(last, step):
    few, many = (make_pipeline(IN_YEARS, step, last(("no", "yes")), epsilon=2.0) for _ in COLUMN)
    (said,) = (one for one in warned(few, pd.DataFrame(COLUMN[0]), LABELS) if "rows are left with a value" in one)
    assert repr(few.steps[1][0]) in said
    assert said in " ".join(few.certificate_.to_text(full=True).split())
    assert 0.01 < few.certificate_.record.released.share_left < 0.5
    assert few.certificate_.verify()
    if isinstance(step, Deduplicator):
        assert not warned(many, pd.DataFrame(COLUMN[1]), LABELS)
    assert "present" not in "".join(few.release_.arrays)


@pytest.mark.parametrize(
    "last",
    [
        GaussianMechanism(),
        GaussianMechanism("covariance"),
        GaussianMechanism("count"),
        GaussianMechanism("histogram"),
        LaplaceMechanism("mean"),
        Report(["mean"]),
    ],
    ids=str,
)
def test_statistics_of_few_rows_behind_a_deduplicator_say_so(last):
    few, many = (make_pipeline(IN_YEARS, Deduplicator(), last, epsilon=2.0) for _ in COLUMN)
    (said,) = (one for one in warned(few, pd.DataFrame(COLUMN[0])) if "rows are left with a value" in one)
    assert "'deduplicator'" in said
    left = few.certificate_.record.released.share_left
    assert 0.005 < left < 0.3
    assert few.certificate_.verify()
    assert not warned(many, pd.DataFrame(COLUMN[1]))


def test_weights_of_classes_are_no_rows_that_are_missing():
    last = LogisticRegression(("no", "yes"), class_weight={"no": 0.01})
    pipe = make_pipeline(IN_YEARS, Deduplicator(), last, epsilon=4.0)
    assert not any("rows are left" in one for one in warned(pipe, TABLE, LABELS))


PURE = LaplaceMechanism(), LaplaceMechanism("rows"), ExponentialMechanism(), SignMechanism()


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
@pytest.mark.parametrize(
    ("last", "delta"),
    [*((last, 0.0) for last in PURE), *((last, 1e-6) for last in (*PURE, GaussianSketch(20)))],
    ids=str,
)
@pytest.mark.repeated("epsilon")
def test_shares_beside_noise_that_is_not_gaussian(last, delta, epsilon):
    """They cost a last step little."""
    told, off = (
        make_pipeline(IN_YEARS, last, epsilon=epsilon, delta=delta, diagnostics=given).plan(
            Domain(n_rows=N, n_features=1)
        )
        for given in ("auto", None)
    )
    assert told.diagnostics is not None
    assert told.mechanism.noise_scale <= 1.03 * off.mechanism.noise_scale
    assert told.loss.epsilon(delta - told.allowance) <= epsilon * (1 + 1e-6)
    assert delta or told.loss.epsilon(0.0) == pytest.approx(epsilon, rel=1e-6)


@pytest.mark.parametrize("adjacency", [Adjacency.replace(2), Adjacency.add_remove(), Adjacency.user_level(max_rows=2)])
def test_without_delta_slips_are_said_as_well(adjacency):
    domain = Domain(n_rows=N, n_features=1, feature_names=("age",), adjacency=adjacency)
    pipe = make_pipeline(IN_YEARS, LaplaceMechanism(), epsilon=8, delta=0, domain=domain)
    said = warned(pipe, TABLE * 1000, **({"groups": np.arange(N)} if adjacency.bounds_contributions else {}))
    own, found = pipe.certificate_.record.diagnostics, pipe.certificate_.verify()
    assert found, found
    assert own.mu is None
    assert pipe.certificate_["total"]["mu"] == 0
    assert any("clipped" in one for one in said), said
    assert abs(shares(pipe)["values clipped", "age"] - 1) < 8 * own.error
    assert float(own.shares[0].share * N).is_integer()
    assert pipe.certificate_.under(adjacency).epsilon == pytest.approx(8, rel=1e-6)
    assert "Laplace, scale" in pipe.certificate_.to_text(full=True)


def test_laplace_noise_has_the_error_that_is_said():
    plan = make_pipeline(IN_YEARS, LaplaceMechanism(), delta=0).plan(Domain(n_rows=N, n_features=1))
    noise = Noise(0)
    drawn = [plan.diagnostics.release(np.full(1, 7.0), noise)[0] - 7 for _ in range(4000)]
    assert np.std(drawn) / N == pytest.approx(plan.diagnostics.error, rel=0.1)


SLIPS = {
    "a range in thousands": (MinMaxScaler(ranges={"c": (0, 80)}), AGE * 1000, "values clipped"),
    "money as text": (MinMaxScaler(ranges={"c": (0, 80_000)}), [f"${1000 * a:,.0f}" for a in AGE], "cells repaired"),
    "a category misspelt": (CategoryEncoder({"c": ["male", "female"]}), ["Male", "Female"] * (N // 2), "no declared"),
    "dates of the US": (DateEncoder({"c": ("2000-01-01", "2030-01-01")}), ["12/31/2020"] * N, "cells repaired"),
}


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_in_a_column_are_said(slip):
    stage, values, kind = SLIPS[slip]
    pipe = make_pipeline(stage, GaussianMechanism(), epsilon=4, on_invalid="repair")
    said = warned(pipe, pd.DataFrame({"c": values}))
    assert any(kind in one for one in said), said
    assert pipe.certificate_.verify()


OTHER_UNITS = {
    "shares in percent": ((0, 100), AGE / 80),
    "thousands in units": ((0, 100_000), AGE),
    "a range on both sides": ((-1e6, 1e6), AGE),
}


@pytest.mark.parametrize("unit", OTHER_UNITS)
@pytest.mark.parametrize("spelled", ["by a step", "in a map"])
def test_values_far_below_their_range_are_said(unit, spelled):
    ends, values = OTHER_UNITS[unit]
    stage = MinMaxScaler(ranges={"c": ends}) if spelled == "by a step" else make_column_map((MinMaxScaler(ends), ["c"]))
    pipe = make_pipeline(stage, GaussianMechanism(), epsilon=4)
    (said,) = warned(pipe, pd.DataFrame({"c": values}))
    assert "closer to 0" in said
    assert "'c'" in said
    assert pipe.certificate_.verify()


@pytest.mark.parametrize(
    ("ends", "values"),
    [((0, 100), AGE), ((0, 10), np.arange(N) % 100 // 99), ((-5, 5), (AGE - 49) / 18), ((18, 80), AGE)],
    ids=["in their unit", "nearly all 0", "standard scores", "far from 0"],
)
def test_nothing_is_said_of_values_in_the_unit_of_their_range(ends, values):
    pipe = make_pipeline(MinMaxScaler(ranges={"c": ends}), GaussianMechanism(), epsilon=4)
    assert warned(pipe, pd.DataFrame({"c": values})) == []


@pytest.mark.parametrize("y", [AGE / 80, AGE - 49])
def test_targets_in_another_unit_are_said(y):
    pipe = make_pipeline(IN_YEARS, Ridge(y_range=(0, 100_000)), epsilon=4)
    assert any("targets not 0 but closer to 0" in said for said in warned(pipe, TABLE, y))
    assert warned(make_pipeline(IN_YEARS, Ridge(y_range=(0, 100)), epsilon=4), TABLE, AGE) == []


def test_years_beside_a_range_of_dates_are_said():
    years = pd.DataFrame({"born": 1940 + np.arange(N) % 60})
    (said,) = warned(make_pipeline(DateEncoder(("1920-01-01", "2010-12-31")), GaussianMechanism()), years)
    assert "MinMaxScaler({'born'" in said
    assert warned(make_pipeline(DateEncoder((0, 3000)), GaussianMechanism()), years) == []
    assert warned(make_pipeline(MinMaxScaler({"born": (1920, 2010)}), GaussianMechanism()), years) == []


def test_nothing_is_said_where_all_is_well():
    pipe = model(on_invalid="repair")
    assert warned(pipe, TABLE, LABELS) == []
    assert max(abs(share) for (kind, _), share in shares(pipe).items() if kind not in PREDICTED) < 0.03


def test_columns_of_a_map_are_counted_each():
    table = pd.DataFrame({"a": AGE * 1000, "b": AGE, "k": ["x", "Y"] * (N // 2)})
    stage = make_column_map((MinMaxScaler((0, 100)), ["a", "b"]), (CategoryEncoder({"k": ["x", "y"]}), ["k"]))
    pipe = make_pipeline(stage, GaussianMechanism(), epsilon=8).fit(table)
    found = shares(pipe)
    expected = {("values clipped", "a"): 1, ("values clipped", "b"): 0, ("values of no declared category", "k"): 0.5}
    expected |= {("values tiny beside their range", name): 0 for name in "ab"}
    assert found.keys() == expected.keys()
    assert all(abs(found[key] - expected[key]) < 0.03 for key in expected)


@pytest.mark.parametrize(("labels", "others"), [(["other", "b"], 0.2), (["b", "c"], 0.8)])
def test_a_declared_category_that_is_called_other_is_none_of_the_others(labels, others):
    """The name that undeclared values get may be one of the declared, in a fit as in new rows."""
    table = pd.DataFrame({"k": np.tile(["other", "other", "other", "b", "unheard"], N // 5)})
    with pytest.warns(DiagnosticWarning, match="values of no declared category"):
        pipe = make_pipeline(CategoryEncoder({"k": labels}), GaussianMechanism(), epsilon=8).fit(table)
    assert shares(pipe)["values of no declared category", "k"] == pytest.approx(others, abs=0.03)
    named = pd.DataFrame({"k": ["other"] * 100})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert pipe[:-1].transform(named).sum() == 100
    assert len(said) == (labels[0] != "other")


@pytest.mark.parametrize("imputer", [MeanImputer(), MedianImputer()], ids=str)
@pytest.mark.parametrize("grouped", [False, True])
def test_columns_without_values_are_said(imputer, grouped):
    table = pd.DataFrame({"a": np.where(np.arange(N) % 4, AGE, np.nan), "b": np.nan, "k": ["x", "Y"] * (N // 2)})
    numbers, kind = MinMaxScaler({"a": (18, 80), "b": (0, 1)}), (CategoryEncoder({"k": ["x", "y"]}), ["k"])
    if grouped:
        first = (ColumnTransformer([("n", make_pipeline(numbers, imputer), ["a", "b"]), ("k", *kind)]),)
    else:
        first = make_column_map((numbers, ["a", "b"]), kind), imputer
    pipe = make_pipeline(*first, GaussianMechanism(), epsilon=8)
    said = [one for one in warned(pipe, table) if "missing" in one]
    assert len(said) == 1
    assert "values missing in 'b': " in said[0]
    found, clipped = shares(pipe), "values clipped"
    expected = {("values missing", "a"): 0.25, ("values missing", "b"): 1, (clipped, "a"): 0, (clipped, "b"): 0}
    expected |= {("values of no declared category", "k"): 0.5}
    expected |= {("values tiny beside their range", "b"): 0} if not grouped else {}
    assert {key: found[key] for key in expected} == pytest.approx(expected, abs=0.05)
    assert pipe.certificate_.verify()


def test_missing_values_are_counted_where_they_fit_beside_the_others_and_no_model_learns():
    table = pd.DataFrame({"age": np.where(np.arange(N) % 4, AGE, np.nan)})
    for last, epsilon, counted in ((GaussianMechanism(), 8, True), (GaussianMechanism(), 0.1, False)):
        pipe = make_pipeline(IN_YEARS, MeanImputer(), last, epsilon=epsilon).fit(table)
        assert (("values missing", "age") in shares(pipe)) == counted
    pipe = make_pipeline(IN_YEARS, MeanImputer(), Ridge(y_range=(0, 1)), epsilon=8).fit(table, AGE / 80)
    assert ("values missing", "age") not in shares(pipe)


def test_missing_values_are_seen_among_the_rows_that_are_kept():
    table = pd.DataFrame({"age": np.where(np.arange(N) % 50, np.nan, AGE)})
    domain = Domain(n_rows=N, n_features=1, feature_names=("age",), adjacency=Adjacency.user_level(max_rows=1))
    pipe = make_pipeline(IN_YEARS, MeanImputer(), GaussianMechanism(), epsilon=16, domain=domain)
    said = warned(pipe, table, groups=np.arange(N) // 2)
    assert shares(pipe)["values missing", "age"] == pytest.approx(0.49, abs=0.05)
    assert any("values missing in 'age'" in one for one in said), said


def test_rows_clipped_to_a_norm_and_targets_are_counted():
    X = np.random.default_rng(1).standard_normal((N, 3))
    pipe = make_pipeline(NormClipper(0.5), Ridge(y_range=(0, 1)), epsilon=8).fit(X, np.full(N, 7.0))
    found = shares(pipe)
    assert found["targets clipped or repaired", None] == pytest.approx(1.0, abs=0.03)
    assert found["rows clipped to a norm", None] == pytest.approx(
        float((np.linalg.norm(X, axis=1) > 0.5).mean()), abs=0.03
    )


def test_many_columns_become_one_share_for_each_kind():
    X = np.random.default_rng(1).uniform(0, 2, (500, 80))
    pipe = make_pipeline(MinMaxScaler((0, 1)), GaussianMechanism(), epsilon=1).fit(X)
    ((key, share),) = shares(pipe).items()
    assert key == ("values clipped", None)
    assert abs(share - 1) < 5 * pipe.certificate_.record.diagnostics.error


def test_the_share_of_the_budget():
    plan, off = (plan_of(model(diagnostics=on), None, shape=(N, 1), names=("age",)) for on in ("auto", None))
    assert plan.diagnostics.loss.mu**2 == pytest.approx(0.015 * off.loss.mu**2, rel=1e-3)
    assert plan.loss.mu == pytest.approx(off.loss.mu, rel=1e-6)
    assert plan.mechanism.loss.mu**2 == pytest.approx(0.985 * off.loss.mu**2, rel=1e-3)
    assert off.diagnostics is None
    assert "standard error" in repr(plan)


@pytest.mark.parametrize(
    ("why", "given"),
    [
        ("diagnostics=None", {"diagnostics": None}),
        ("diagnostics=None", {"diagnostics": None, "delta": 0}),
        ("budget", {"budget": {"release": 0.99}}),
    ],
)
def test_where_nothing_is_told_of_altered_rows_every_page_says_so(why, given):
    middle, last = (
        ([StandardScaler(fit_mode="noisy")], GaussianMechanism()) if why == "budget" else ([], LaplaceMechanism())
    )
    pipe = make_pipeline(IN_YEARS, *middle, last, epsilon=4, **given).fit(TABLE)
    c = pipe.certificate_
    assert c.verify()
    assert (c.record.diagnostics, c.record.withheld) == (None, why)
    for page in (
        c.to_text(full=True),
        c.to_html(),
        c._repr_html_(),
        c.to_model_card(),
        repr(pipe.plan(Domain(n_rows=N, n_features=1))),
    ):
        assert why in page
        assert "diagnostics" in page.lower()
    document = c.to_dict() | {"diagnostics": model().fit(TABLE, LABELS).certificate_["diagnostics"]}
    assert not Certificate.sealed({k: v for k, v in document.items() if k != "digest"}).verify()


def test_nothing_is_said_where_nothing_can_be_altered():
    pipe = make_pipeline(GaussianMechanism("count"), diagnostics=None).fit(TABLE)
    assert pipe.certificate_.record.withheld is None
    assert "withheld" not in pipe.certificate_.to_dict()


@pytest.mark.parametrize(
    ("limit", "named", "told"), [(N, 50, True), (N, N, False), (4 * N, N, True), (3 * N // 2, N, False)]
)
def test_few_rows_of_their_limit_are_called_out(limit, named, told):
    ids = np.where(np.arange(N) < N - named, None, np.arange(N).astype(object))
    domain = Domain(n_rows=limit, n_features=1, feature_names=("age",), adjacency=Adjacency.user_level(max_rows=1))
    pipe = make_pipeline(IN_YEARS, GaussianMechanism(), epsilon=8, domain=domain, on_invalid="repair")
    said = warned(pipe, TABLE, groups=ids)
    assert any("rows kept" in one for one in said) == told, said
    assert shares(pipe)["rows kept", None] == pytest.approx(named / limit, abs=0.03)
    assert pipe.certificate_.verify()


def test_few_rows_of_their_limit_are_called_out_without_ids():
    domain = Domain(n_rows=4 * N, n_features=1, feature_names=("age",), adjacency=Adjacency.add_remove())
    pipe = make_pipeline(IN_YEARS, GaussianMechanism(), epsilon=8, domain=domain)
    assert any("rows kept: 2" in one for one in warned(pipe, TABLE))  # 25 %, by noise of 0.1 %
    assert pipe.certificate_.verify()


def test_blocks_give_the_same_counts(tmp_path):
    table = TABLE.assign(y=np.where(AGE > 70, "YES", LABELS))
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=700)
    seeded = {"on_invalid": "repair", "random_state": 0}
    inside = model(**seeded).fit(TABLE, table["y"])
    outside = model(**seeded).fit(str(tmp_path / "rows.parquet"), "y")
    assert shares(inside) == shares(outside)


@pytest.mark.parametrize("more", [[], [Deduplicator()]], ids=["map", "duplicates"])
@pytest.mark.parametrize("adjacency", [Adjacency.add_remove(), Adjacency.user_level(max_rows=2)])
def test_blocks_with_a_private_number_give_the_same_counts(tmp_path, adjacency, more, monkeypatch):
    monkeypatch.setattr(disk_cache, "ROOM", parallel.ROOM)  # they are written down in memory, which tests do without
    table = TABLE.assign(y=np.where(AGE > 70, "YES", LABELS), id=np.arange(N) // 3)
    table.to_parquet(tmp_path / "rows.parquet", row_group_size=700)
    domain = Domain(n_rows=N + 100, n_features=1, feature_names=("age",), adjacency=adjacency)
    given = {"on_invalid": "repair", "random_state": 0, "domain": domain}
    ids = {"groups": "id"} if adjacency.bounds_contributions else {}
    columns = ["age", "y", *ids.values()]
    table[columns].to_parquet(tmp_path / "rows.parquet", row_group_size=700)
    steps = IN_YEARS, *more, LogisticRegression(classes=("no", "yes"))
    pipes = [make_pipeline(*steps, epsilon=4.0, **given) for _ in range(2)]
    sources = table[columns], str(tmp_path / "rows.parquet")
    found = [shares(pipe.fit(X, "y", **ids)) for pipe, X in zip(pipes, sources)]
    assert found[0] == found[1]


def test_a_search_releases_them_once():
    search = PrivateSearchCV(
        model(on_invalid="repair", epsilon=1.0), {"logisticregression__max_iter": [5, 10]}, epsilon=8.0
    )
    search.fit(TABLE, LABELS)
    assert search.certificate_.record.diagnostics is not None
    assert search.certificate_.verify()


@pytest.mark.parametrize(
    "change", [{"mu": 0.5}, {"noise_scale": 1e-3}, {"size": 7}, {"sensitivity": 0.1}, {"bound": 1.0}]
)
def test_forged_shares_do_not_verify(change):
    document = model().fit(TABLE, LABELS).certificate_.to_dict()
    document["diagnostics"] |= change
    assert not Certificate.sealed({k: v for k, v in document.items() if k != "digest"}).verify()


def test_both_records_and_pages_survive_a_round_trip():
    certificate = Pipeline([("s", IN_YEARS), ("m", GaussianMechanism())]).fit(TABLE).certificate_
    assert Certificate.from_json(certificate.to_json()) == certificate
    assert "Diagnostics" in certificate.to_model_card()


def test_slips_are_said_in_front_of_a_released_mode():
    """A mode that fills gaps does not change what another row came as."""
    table = TABLE.assign(use=np.where(np.arange(N) % 2, "private", "work"))
    use = CategoryEncoder(categories={"use": ["Private", "work"]}, strategy="most_frequent")
    scale = make_column_map((MinMaxScaler(ranges={"age": (18, 30)}), ["age"]), (use, ["use"]))
    last = MeanImputer(), LogisticRegression(classes=("no", "yes"))
    pipe = make_pipeline(scale, *last, epsilon=4.0)
    said = " ".join(warned(pipe, table, LABELS))
    assert "values clipped" in said
    assert "values of no declared category" in said
    assert shares(pipe)["values of no declared category", "use"] == pytest.approx(0.5, abs=0.05)
    assert pipe.certificate_.verify()


ALL = MinMaxScaler({"age": (18, 30), "other": (0, 1)})
OWN, SHORT = ("own", MinMaxScaler("private"), ["other"]), ("short", MinMaxScaler((18, 30)), ["age"])


@pytest.mark.parametrize(
    "first",
    [ALL, ColumnTransformer([OWN, SHORT]), ColumnTransformer([SHORT, OWN])],
    ids=["all", "behind a private range", "in front of one"],
)
def test_slips_are_said_behind_a_step_that_removes_duplicates(first):
    pipe = make_pipeline(Deduplicator(), first, LogisticRegression(classes=("no", "yes")), epsilon=4.0)
    (said,) = warned(pipe, TABLE.assign(other=AGE / 80), LABELS)
    assert "values clipped" in said
    assert shares(pipe)["values clipped", "age"] == pytest.approx((AGE > 30).mean(), abs=0.05)
    assert pipe.certificate_.verify()


def test_groups_behind_one_whose_width_changes_are_not_counted():
    wider = ("own", [MinMaxScaler("private"), KBinsDiscretizer(3)], ["other"])
    pipe = make_pipeline(Deduplicator(), ColumnTransformer([wider, SHORT]), LogisticRegression(classes=("no", "yes")))
    assert warned(pipe, TABLE.assign(other=AGE / 80), LABELS) == []
    assert {kind for kind, _ in shares(pipe)} <= set(PREDICTED)


CALIBRATED = {"calibration": "sigmoid", "class_weight": {"yes": 9.0}}


@pytest.mark.parametrize("last", [LogisticRegression, LinearSVC, GaussianNB, GradientBoostingClassifier])
@pytest.mark.parametrize("given", [{}, CALIBRATED], ids=["", "calibrated"])
def test_how_rows_of_each_class_are_predicted_is_said(last, given):
    if given.keys() - last().get_params().keys():
        pytest.skip("it is not calibrated")
    noisy = np.where(AGE + np.random.default_rng(1).normal(0, 15, N) > 55, "yes", "no")
    pipe = make_pipeline(IN_YEARS, last(("no", "yes"), **given), epsilon=8.0).fit(TABLE, noisy)
    predicted, order = pipe.predict(TABLE), np.random.default_rng(2).permutation(N)
    at_last = pipe[:-1].transform(TABLE)
    assert (pipe[-1].steady_labels(at_last[order]) == predicted[order]).all()
    for one in recalls(pipe.certificate_.record.diagnostics):
        assert one.value == pytest.approx((predicted[noisy == one.label] == one.label).mean(), abs=4 * one.error)
        assert str(one) in " ".join(pipe.certificate_.to_text(full=True).split())
    assert pipe.certificate_.verify()


@pytest.mark.parametrize("last", [LogisticRegression, GaussianNB, GradientBoostingClassifier])
@pytest.mark.parametrize("slip", ["labels of other rows", "a rare class", "a threshold", "none"])
def test_a_model_that_tells_no_classes_apart_is_called_out(last, slip):
    rng = np.random.default_rng(2)
    noisy, given = AGE + rng.normal(0, 15, N), {}
    labels = np.where(noisy > (90 if slip == "a rare class" else 50), "yes", "no")
    if slip == "labels of other rows":
        labels = rng.permutation(labels)
    if slip == "a threshold":
        if last is GaussianNB:
            pytest.skip("it has none")
        labels, given = np.where(noisy > 90, "yes", "no"), {"threshold": 0.7}
    pipe = make_pipeline(IN_YEARS, last(("no", "yes"), **given), epsilon=8.0, random_state=0)
    told = " ".join(warned(pipe, TABLE, labels))
    slipped = slip in ("labels of other rows", "a rare class")
    said = "predicts a rare class" if slip == "a rare class" else "tells classes apart"
    assert (said in told or ("one class only" in told and slipped)) == slipped


class Mine(LogisticRegression):
    """Somebody else's classifier: none of its code is run on private rows but its release."""

    def steady_labels(self, X):
        raise AssertionError


@pytest.mark.parametrize(
    ("steps", "labels", "given"),
    [
        ([Ridge(y_range=(0, 100))], AGE, {}),
        ([LogisticRegression()], LABELS, {}),
        ([LogisticRegression(("no", "yes"), class_weight="balanced")], LABELS, {}),
        ([Deduplicator(compare="raw"), LogisticRegression(("no", "yes"))], LABELS, {}),
    ],
    ids=[
        "targets",
        "classes that were read",
        "numbers of rows by class",
        "rows that move others",
    ],
)
def test_predictions_are_counted_only_where_a_row_decides_on_its_own(steps, labels, given):
    pipe = make_pipeline(IN_YEARS, *steps, epsilon=4.0, **given).fit(TABLE, labels)
    assert not {kind for kind, _ in shares(pipe)} & set(PREDICTED)


def test_no_code_of_somebody_else_predicts_private_rows():
    domain = Domain(n_rows=N, n_features=1, feature_names=("age",))
    for last, counted in ((Mine(("no", "yes")), 0), (LogisticRegression(("no", "yes")), 4)):
        assert len(make_pipeline(IN_YEARS, last).plan(domain).diagnostics.predicted) == counted


@pytest.mark.parametrize("rows", [2**16, 2**16 + 1])
def test_rows_that_match_up_to_order_are_all_predicted_or_none(rows):
    pipe = make_pipeline(IN_YEARS, Deduplicator(), LogisticRegression(("no", "yes")))
    plan = pipe.plan(Domain(n_rows=rows, n_features=1, feature_names=("age",)))
    assert plan.end[1].reordered > 0
    assert bool(plan.diagnostics.predicted) == (rows == 2**16)


def test_some_of_many_rows_are_predicted(tmp_path, monkeypatch):
    monkeypatch.setattr(release, "MOST_ROWS", 1000)
    TABLE.assign(y=LABELS).to_parquet(tmp_path / "rows.parquet", row_group_size=700)
    inside, outside = model(random_state=0).fit(TABLE, LABELS), model(random_state=0)
    outside.fit(str(tmp_path / "rows.parquet"), "y")
    assert shares(inside) == shares(outside)
    assert "of its own rows (one in 4 of them)" in " ".join(inside.certificate_.to_text(full=True).split())
    counted = sum(share for (kind, _), share in shares(inside).items() if kind in PREDICTED)
    assert counted == pytest.approx(1000 / N, abs=0.03)
