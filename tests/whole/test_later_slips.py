"""Slips that later readers made: each ends in a refusal that says what to write, or in a warning on the page, too."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_selector

from ppdp import ColumnTransformer, Ledger, declare, load, make_column_map, make_pipeline, read_parquet
from ppdp.bounds.release import PREDICTED
from ppdp.certificate.altered import alerts
from ppdp.certificate.record import Share
from ppdp.cli.main import main
from ppdp.exceptions import DiagnosticWarning, HeaderWarning, InvalidParameter, PpdpError
from ppdp.mechanisms import (
    ExponentialMechanism,
    GradientBoostingClassifier,
    KMeans,
    LinearRegression,
    LogisticRegression,
    PoissonRegressor,
    Report,
)
from ppdp.transformers import (
    CategoryEncoder,
    MeanImputer,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
    TargetMeanEncoder,
)

N = 4000
KNOWN = {"age": (18, 80), "income": (0, 100_000)}


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(12)
    X = pd.DataFrame({"age": rng.uniform(18, 80, N).round(), "income": rng.uniform(0, 1e5, N).round()})
    score = 0.1 * (X["age"] - 49) + 3e-5 * (X["income"] - 5e4)
    return X.assign(
        ill=score + rng.logistic(size=N) > 0, cost=rng.poisson(np.exp(0.3 * score)), ward=list("abcd") * (N // 4)
    )


def fitted(X, y, *steps, **options):
    return make_pipeline(*steps, **{"dataset": "later"} | options).fit(X, y)


def classifier(X, y, **options):
    return fitted(
        X, y, MinMaxScaler(ranges=KNOWN), StandardScaler(), LogisticRegression(classes=(False, True)), **options
    )


def test_an_epsilon_is_told_at_a_delta():
    ledger = Ledger(epsilon=1.0, delta=1e-6)
    ledger.reserve(mu=0.1)
    assert ledger.epsilon() == ledger.epsilon(1e-6) > 0
    with pytest.raises(InvalidParameter, match=r"ledger\.epsilon\(delta="):
        Ledger().epsilon()


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda X: X.to_records(index=False), r"array of records.*pd\.DataFrame\(X\)"),
        (lambda X: X.T.set_axis(range(len(X)), axis=1), r"none that are text.*not X\.T"),
        (lambda X: {"age": 30, "income": 1.0}, r"pd\.DataFrame\(\[X\]\)"),
        (lambda X: X.iloc[0], r"iloc\[\[0\]\]"),
        (lambda X: X.assign(__index_level_0__=range(len(X))), r"to_parquet\(path, index=False\)"),
    ],
)
def test_forms_of_a_table(table, made, words):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X = made(table[list(KNOWN)])
        with pytest.raises(PpdpError, match=words):
            classifier(X, table["ill"][: len(X)])


def test_an_index_among_columns(table):
    for name in ("index", "__index_level_0__"):
        X = table[["age"]].reset_index(drop=True).rename_axis(name).reset_index()
        with pytest.warns(HeaderWarning, match=r"reset_index\(drop=True\)|index=False"):
            fitted(X, table["ill"], MinMaxScaler(ranges={name: (0, N), "age": (18, 80)}), KMeans(2))


def test_words_for_truth_values_and_texts(table):
    words = table["ill"].map({True: "TRUE", False: "FALSE"}).astype(object)
    with pytest.raises(PpdpError, match=r"y\.map\(\{'TRUE': True, 'FALSE': False\}\)"):
        classifier(table[list(KNOWN)], words)
    facts = declare(table[["ward"]].astype(object))
    facts.update(ward="private")
    with pytest.raises(PpdpError, match=r'\{"private": 20\}'):
        fitted(table[["ward"]].astype(object), table["ill"], *(s for _, s in facts.steps()), MeanImputer(), KMeans(2))


def test_a_model_of_another_name(table, tmp_path):
    pipe = classifier(table[list(KNOWN)], table["ill"])
    pipe.export(tmp_path / "model")
    with pytest.raises(PpdpError, match=r"model', which is there"):
        load(tmp_path / "model.zip")
    pipe.export(tmp_path / "other.zip")
    with pytest.raises(PpdpError, match=r"other\.zip', which is there"):
        load(tmp_path / "other")


@pytest.mark.parametrize("rows", ["5k", "-5", "0"])
def test_numbers_of_rows(rows, tmp_path, capsys):
    (tmp_path / "study.toml").write_text("")
    assert main(["plan", str(tmp_path / "study.toml"), f"--rows={rows}"]) == 2
    assert "as in --rows 5000" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("report", "words"),
    [
        (Report("describe"), "mean, quantile, histogram"),
        (Report("mean"), r"\['mean'\]"),
        (Report(np.mean), "standard deviation|mean, quantile"),
        (Report(bins=20), "'histogram'"),
        (Report(["mean"], bins=[0, 50, 100]), "'histogram'"),
        (Report(["var"]), "standard deviations are released"),
        (Report(["min", "max"]), r"q=\(0\.01, 0\.99\)"),
    ],
)
def test_reports_of_what_is_not_asked(table, report, words):
    if report.queries is np.mean:
        fitted(table[list(KNOWN)], None, MinMaxScaler(ranges=KNOWN), report)  # its name is that of a statistic
        return
    with pytest.raises(PpdpError, match=words):
        fitted(table[list(KNOWN)], None, MinMaxScaler(ranges=KNOWN), report)


def test_scores_of_what_has_none(table):
    for last in (KMeans(2), Report()):
        pipe = fitted(table[list(KNOWN)], None, MinMaxScaler(ranges=KNOWN), last)
        with pytest.raises(AttributeError, match=r"pipe\.predict\(X\)"):
            pipe.score(table[list(KNOWN)], table["ill"])


def _said(pipe, words):
    """Whether it is warned of, where its certificate verifies."""
    assert pipe.certificate_.verify()
    return words in pipe.certificate_.to_text()


def test_a_column_made_of_the_label(table):
    X = table[list(KNOWN)].assign(copy=table["ill"] * 1.0)
    steps = MinMaxScaler(ranges={**KNOWN, "copy": (0, 1)}), StandardScaler(), LogisticRegression(classes=(False, True))
    with pytest.warns(DiagnosticWarning, match="hardly an error.*Is a column computed from the labels"):
        pipe = fitted(X, table["ill"], *steps, epsilon=4.0)
    assert _said(pipe, "hardly an error")
    assert not _said(classifier(table[list(KNOWN)], table["ill"], epsilon=4.0), "hardly an error")


@pytest.mark.parametrize(("rare", "warned"), [(0, True), (400, False)])
def test_labels_of_one_class_alone(table, rare, warned):
    """As of labels compared with a word that none of them is; also where the model happens to tell both classes."""
    pipe = classifier(table[list(KNOWN)], table["ill"] & (table["ill"].cumsum() <= rare), epsilon=4.0)
    record = pipe.certificate_.record
    alike = replace(record, released=replace(record.released, single_class=None))
    assert any("is of another class than 'False'" in one for one in alerts(alike)) == warned


@pytest.mark.parametrize(("noises", "warned"), [(20, False), (100, True)])
def test_one_class_alone_is_said_of_the_rows_that_are_predicted(table, noises, warned):
    """They may be few of all, and noise a large part of them."""
    record = classifier(table[list(KNOWN)], table["ill"], epsilon=4.0).certificate_.record
    found, rows = record.diagnostics, {"False": (noises, 0.5), "True": (1.0, 1.0)}
    shares = tuple(
        Share(kind=kind, column=of, share=found.error * rows[of][i]) for i, kind in enumerate(PREDICTED) for of in rows
    )
    told = [one for one in alerts(replace(record, diagnostics=replace(found, shares=shares))) if "hardly any" in one]
    assert ["is of another class than 'False' (5.9 % at most)" in one for one in told] == [True] * warned


@pytest.mark.parametrize(("low", "high", "warned"), [(-999, 100_000, True), (-99, 99, False), (-998, 100_000, False)])
def test_a_code_for_missing_values_as_the_end_of_a_range(table, low, high, warned):
    ranges = {**KNOWN, "income": (low, high)}
    pipe = fitted(table[list(KNOWN)], None, MinMaxScaler(ranges=ranges), KMeans(2), epsilon=2.0)
    assert _said(pipe, "reads as a code") == warned


@pytest.mark.parametrize(
    ("y_range", "intercept", "warned"), [((0, 60), False, True), ((-60, 60), False, False), ((0, 60), True, False)]
)
def test_a_regression_without_an_intercept(table, y_range, intercept, warned):
    model = LinearRegression(y_range=y_range, fit_intercept=intercept)
    pipe = fitted(table[list(KNOWN)], table["cost"], MinMaxScaler(ranges=KNOWN), StandardScaler(), model)
    assert _said(pipe, "the middle of y_range") == warned


def test_logarithms_whose_errors_are_unknown_are_not_warned_of(table):
    """Where noise hides how the loss bends, intervals are wide whatever the targets are."""
    told, counts = [], np.random.default_rng(1).poisson(np.exp(0.015 * (table["age"] - 49)) * table["income"] / 5e4)
    for seed in range(8):
        steps = MinMaxScaler(ranges=KNOWN), StandardScaler(), PoissonRegressor(y_range=(0, 60))
        pipe = fitted(table[list(KNOWN)], counts, *steps, random_state=seed)
        told.append(pipe.certificate_.record.released.no_slope)
    assert not any(told)


def test_columns_that_a_function_leaves_out(table):
    X = table[list(KNOWN)].astype({"income": object})
    numbers = [MinMaxScaler(ranges=KNOWN), StandardScaler()]
    model = LogisticRegression(classes=(False, True))
    chosen = ColumnTransformer([("numbers", numbers, make_column_selector(dtype_include="number"))])
    with pytest.warns(DiagnosticWarning, match=r"leaves out \['income'\].*pd\.to_numeric"):
        fitted(X, table["ill"], chosen, model)
    with warnings.catch_warnings():
        warnings.simplefilter("error", DiagnosticWarning)
        fitted(table[list(KNOWN)], table["ill"], chosen, model)


def test_a_selector_that_takes_no_column(table):
    X = table[[*KNOWN, "ill"]].astype({"ill": str}).astype({"ill": object})
    parts = [("numbers", MinMaxScaler(ranges=KNOWN), list(KNOWN))]
    none = ColumnTransformer([*parts, ("truth", "passthrough", make_column_selector(dtype_include=bool))])
    with pytest.warns(DiagnosticWarning, match="'truth': a function chooses its columns, and takes none"):
        fitted(X, None, none, KMeans(2))
    for columns in (make_column_selector(dtype_include="category"), []):
        some = ColumnTransformer([*parts, ("text", CategoryEncoder({"ill": ["True", "False"]}), columns)])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with pytest.raises(PpdpError, match="a list, or a selector that takes some"):
                fitted(X, None, some, KMeans(2))


@pytest.mark.parametrize(
    ("ends", "warned"),
    [
        ((20230101, 20241231), True),
        ((2023010100, 2024123123), True),
        ((0, 20241231), False),
        ((20230101, 20231399), False),
    ],
)
def test_days_as_numbers(table, ends, warned):
    X = pd.DataFrame({"day": np.linspace(*ends, N)})
    assert _said(fitted(X, None, MinMaxScaler(ranges={"day": ends}), KMeans(2)), "DateEncoder") == warned


def test_new_rows_far_from_those_of_the_fit(table):
    """Columns of an array in another order, all of whose values are within both ranges; not what the fit had itself."""
    X, rows = table[list(KNOWN)].assign(income=(table["income"] / 1e5) ** 8 * 10).to_numpy(), ([18, 80], [0, 80])
    pipe = fitted(
        X, table["ill"], MinMaxScaler(ranges=rows), MeanImputer(), StandardScaler(), LogisticRegression((False, True))
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", DiagnosticWarning)
        for few in (X, X[:1], X[:3]):
            pipe.predict(few)
    with pytest.warns(DiagnosticWarning, match="'column 1' are more than 3 released standard deviations.*order"):
        pipe.predict(X[:, ::-1] + [18, 0])
    facts = declare(pd.DataFrame(X, columns=list(KNOWN)))
    facts.update(age=(18, 80), income=(0, 80))
    steps = *(step for _, step in facts.steps()), StandardScaler(), LogisticRegression((False, True))
    named = pd.DataFrame(X, columns=list(KNOWN))
    pipe = fitted(named, table["ill"], *steps)
    with pytest.warns(DiagnosticWarning, match="'income' are more than 3 released standard deviations"):
        pipe.predict(named.assign(income=named["age"]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe = fitted(named[:200], table["ill"][:200], *steps, epsilon=0.3)
        warnings.simplefilter("error", DiagnosticWarning)
        pipe.predict(named.assign(income=named["age"]))  # noise drowns its means


def test_rows_in_a_file_without_a_certificate(table, tmp_path):
    table.to_parquet(tmp_path / "rows.parquet")
    with pytest.raises(PpdpError, match=r"pd\.read_parquet\(path\)"):
        read_parquet(tmp_path / "rows.parquet")


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (lambda: make_pipeline(KMeans(2), calibration="sigmoid"), "calibration= of LogisticRegression"),
        (lambda: LogisticRegression(cv=5), "of PrivateSearchCV"),
        (lambda: fitted([[1.0]], None, RobustScaler(quantile_range=(0.25, 0.75))), r"percent.*\(25\.0, 75\.0\)"),
        (
            lambda: fitted([[1.0]], None, MinMaxScaler((0, 1)), MinMaxScaler(quantiles=(5, 95)), KMeans(2)),
            r"\(0\.05, 0",
        ),
        (lambda: fitted([[1.0]], None, MinMaxScaler(ranges=("2024-01-01", "2024-12-31"))), "of dates DateEncoder"),
    ],
)
def test_parameters_of_others(made, words):
    with pytest.raises(PpdpError, match=words):
        made()


def test_two_candidates_are_no_range(table):
    for candidates in ((18, 80), {"age": (18, 80)}):
        with pytest.raises(InvalidParameter, match=r"candidates=100 .* or candidates=\[18, 80\] for these two"):
            fitted(
                table[["age"]],
                None,
                MinMaxScaler(ranges={"age": (18, 80)}),
                ExponentialMechanism(candidates=candidates),
            )
    listed = ExponentialMechanism(candidates=[18, 80])
    assert fitted(table[["age"]], None, MinMaxScaler(ranges={"age": (18, 80)}), listed).release_ is not None


def test_arrays_are_printed_as_declared(table):
    facts = declare(table[["age"]])
    facts.update(age=np.array([18, 80]))
    assert str(facts).startswith("age = [18, 80]")


def test_two_spellings_of_a_column_are_one_name(table):
    taken = [("numbers", MinMaxScaler(ranges=KNOWN), ["age", "Income"])]
    with pytest.raises(PpdpError, match=r"one name for 'income' and 'Income', as X\.columns has it"):
        fitted(table[list(KNOWN)], table["ill"], ColumnTransformer(taken), KMeans(2))


def test_a_day_of_review_that_has_passed(table):
    with pytest.warns(DiagnosticWarning, match=r"review_by, 2020-01-01, has passed"):
        classifier(table[list(KNOWN)], table["ill"], statements={"review_by": "2020-01-01"})


def test_more_categories_than_boosting_takes(table):
    wards = [*"abcd", *(f"w{i}" for i in range(1100))]
    first = make_column_map(
        (MinMaxScaler(ranges=KNOWN), list(KNOWN)), (CategoryEncoder([wards], encoding="ordinal"), ["ward"])
    )
    boosted = GradientBoostingClassifier(classes=(False, True), categorical_features=["ward"])
    X, y = table[[*KNOWN, "ward"]], table["ill"]
    with pytest.raises(
        InvalidParameter, match=r"TargetMeanEncoder\(columns=\['ward'\]\) in front, and 'ward' left out"
    ):
        fitted(X, y, first, boosted)
    followed = boosted.set_params(categorical_features=None)
    assert len(fitted(X, y, first, TargetMeanEncoder(columns=["ward"]), followed).predict(X)) == N


def test_rows_of_no_released_category(table):
    X = table.assign(shop=[f"s{i % 40}" for i in range(N)])[["shop"]]
    pipe = fitted(
        X, table["ill"], CategoryEncoder("private", max_categories=3), LogisticRegression(classes=(False, True))
    )
    told = pipe.release_.to_pandas().query("statistic == 'rows of the category'").set_index("column")["value"]
    assert told["shop = anything else"] == pytest.approx(N - told.drop("shop = anything else").sum())
    assert told["shop = anything else"] > N / 2
