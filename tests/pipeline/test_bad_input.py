"""Bad input: a typed error that names stage and fix, quotes nothing private, and certifies nothing."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import refusals
from refusals import DOMAIN, NAME, NUMBER, N, classifier, frame, labels, mean, quotes, rows
from scipy import sparse

from ppdp import Domain, Ledger, Pipeline, make_pipeline
from ppdp.exceptions import DomainMismatch, InvalidInput, InvalidParameter, InvalidValue, NonNumericData
from ppdp.mechanisms import GaussianMechanism, LinearSVC, LogisticRegression, Ridge
from ppdp.transformers import MeanImputer, NormClipper, RowMap, StandardScaler

# pytest finds a fixture by its name in the test's own module
drawn, refused = refusals.drawn, refusals.refused


WRONG_FORM = {
    "one dimension": lambda: rows()[:, 0],
    "a number": lambda: np.float64(NUMBER),
    "three dimensions": lambda: rows()[None],
    "a column of a frame": lambda: frame()["a"],
    "no rows": lambda: rows()[:0],
    "no columns": lambda: rows()[:, :0],
    "sparse": lambda: sparse.csr_array(rows()),
    "complex": lambda: rows() + 1j,
    "complex column": lambda: frame(np.full(N, NUMBER * 1j)),
    "ragged": lambda: [[NUMBER, 1.0], [NUMBER]],
    "none": lambda: None,
    "an object": lambda: object(),
    "a record array": lambda: np.zeros(N, dtype=[(NAME, float)]),
    "an integer beyond float": lambda: [[10**400, 1, 2]] * N,
    "columns named twice": lambda: pd.DataFrame(rows(), columns=["a", "a", "c"]),
    "names of several kinds": lambda: pd.DataFrame(rows(), columns=["a", 1, "c"]),
}

NOT_NUMBERS = {
    "object": lambda: frame(np.full(N, NAME, dtype=object)),
    "one text among numbers": lambda: frame([NAME] + [1.0] * (N - 1)),
    "string": lambda: frame(pd.array([NAME] * N, dtype="string")),
    "arrow string": lambda: frame(pd.Series([NAME] * N, dtype=pd.ArrowDtype(pa.string()))),
    "category": lambda: frame(pd.Categorical([NAME] * N)),
    "bytes": lambda: frame([NAME.encode()] * N),
    "dict": lambda: frame([{NAME: NUMBER}] * N),
    "datetime": lambda: frame(pd.to_datetime(["2001-02-03"] * N)),
    "datetime with zone": lambda: frame(pd.to_datetime(["2001-02-03"] * N, utc=True)),
    "timedelta": lambda: frame(pd.to_timedelta(np.arange(N), unit="s")),
    "period": lambda: frame(pd.period_range("2001", periods=N, freq="D")),
    "polars string": lambda: pl.from_pandas(frame(pd.array([NAME] * N, dtype="string"))),
    "arrow table": lambda: pa.Table.from_pandas(frame(pd.array([NAME] * N, dtype="string"))),
}

BAD_LABELS = {
    "none": lambda: None,
    "too few": lambda: labels()[:-1],
    "two columns": lambda: np.column_stack([labels(), labels()]),
    "a text": lambda: NAME,
    "ragged": lambda: [[1], [2, 3]] * (N // 2),
    "sparse": lambda: sparse.csr_array(labels()[:, None]),
    "complex": lambda: np.full(N, NUMBER + 1j),
    "undeclared text": lambda: np.where(labels() == 1, NAME, "b"),
    "undeclared number": lambda: np.where(labels() == 1, NUMBER, 0),
    "gap": lambda: np.where(labels() == 1, np.nan, 0),
    "nullable gap": lambda: pd.Series([0, 1, pd.NA, 1] * (N // 4), dtype="Int64"),
    "none among them": lambda: np.array([0, None] * (N // 2), dtype=object),
    "text among numbers": lambda: np.array([NAME, 1] * (N // 2), dtype=object),
    "continuous": lambda: rows()[:, 0],
}


class TestForm:
    @pytest.mark.parametrize("what", WRONG_FORM)
    def test_of_X(self, refused, what):
        refused((InvalidInput, InvalidParameter), classifier(), WRONG_FORM[what](), labels())

    @pytest.mark.parametrize("what", NOT_NUMBERS)
    def test_columns_that_are_not_numbers(self, refused, what):
        error = refused(NonNumericData, classifier(), NOT_NUMBERS[what](), labels(), says=r"column\(s\) b ")
        assert error.fix

    @pytest.mark.parametrize(
        ("names", "says"), [(["a", "a", "c"], "same name: a"), (["a", 1, "c"], "named by strings")]
    )
    def test_names_that_are_no_names(self, refused, names, says):
        assert refused(InvalidInput, classifier(), pd.DataFrame(rows(), columns=names), labels(), says=says).fix

    def test_arrays_that_are_not_numbers(self, refused):
        for X in (np.full((N, 3), NAME), np.full((N, 3), np.datetime64("2001-02-03")), [[NAME, 1, 2]] * N):
            refused(NonNumericData, classifier(), X, labels())

    @pytest.mark.parametrize("what", BAD_LABELS)
    def test_of_y(self, refused, what):
        refused(InvalidInput, classifier(), rows(), BAD_LABELS[what]())

    @pytest.mark.parametrize("what", sorted(set(BAD_LABELS) - {"undeclared text", "undeclared number"}))
    def test_of_y_from_which_classes_are_read(self, refused, what):
        refused(InvalidInput, classifier().set_params(model__classes=None), rows(), BAD_LABELS[what]())

    @pytest.mark.parametrize("y", [np.zeros(N), np.array([NAME] * N)])
    def test_one_class_cannot_be_read(self, refused, y):
        pipe = classifier().set_params(model__classes=None)
        error = refused(InvalidParameter, pipe, rows(), y, says="at least two classes")
        assert "classes=" in error.fix

    @pytest.mark.parametrize("y", [np.arange(N) % 3, np.array(["a", "b", NAME, "b"] * (N // 4))])
    def test_three_classes_cannot_be_read_for_a_model_of_two(self, refused, y):
        for model in (LinearSVC(), LogisticRegression(solver="output")):
            error = refused(
                InvalidParameter, classifier().set_params(model=model), rows(), y, says="exactly two classes"
            )
            assert "classes=" in error.fix

    def test_three_classes_cannot_be_read_under_a_ledger(self, refused):
        pipe = classifier(ledger=Ledger()).set_params(model__classes=None)
        error = refused(InvalidParameter, pipe, rows(), np.arange(N) % 3, says="ledger")
        assert "classes=" in error.fix

    @pytest.mark.parametrize("y", [np.array([NAME] * N), np.array([NUMBER, "x"] * (N // 2), dtype=object)])
    def test_targets_that_are_no_numbers(self, refused, y):
        pipe = classifier().set_params(model=Ridge(y_range=(0, 1)))
        refused(InvalidInput, pipe, rows(), y, says="y must hold numbers")

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_targets_that_are_not_finite(self, refused, bad):
        y = np.full(N, NUMBER)
        y[7] = bad
        refused(InvalidValue, classifier().set_params(model=Ridge(y_range=(0, 1))), rows(), y, says="NaN or infinity")

    @pytest.mark.parametrize(
        ("domain", "says"),
        [
            (Domain(n_rows=N + 1), "n_rows"),
            (Domain(n_features=4), "n_features"),
            (Domain(feature_names=("a", "b", "x")), "feature_names"),
            (Domain(classes=("no", "yes")), "classes"),
        ],
    )
    def test_other_than_declared(self, refused, domain, says):
        error = refused(DomainMismatch, classifier(domain=domain), frame(), labels(), says=says)
        assert error.fix

    @pytest.mark.parametrize(
        ("X", "says"),
        [
            (frame()[["a", "b"]], "feature names"),
            (frame()[["b", "a", "c"]], "same order"),
            (frame().rename(columns={"a": "x"}), "unseen"),
            (rows()[:, :2], "2 features"),
            (rows()[0], "2D array"),
            (rows() + 1j, "Complex"),
            (frame(np.full(N, NAME)), "column"),
            (frame(np.inf), "infinity"),
        ],
    )
    @pytest.mark.filterwarnings("ignore:X does not have valid feature names")
    def test_at_prediction(self, X, says):
        pipe = classifier().fit(frame(), labels())
        with pytest.raises(InvalidInput, match=says) as caught:
            pipe.predict(X)
        assert not quotes(caught.value)


class TestValues:
    @pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
    def test_undeclared(self, refused, value):
        X = rows()
        X[3, 1] = value
        error = refused(InvalidValue, mean(NormClipper()), X)
        assert "on_invalid='repair'" in error.fix

    def test_a_gap_is_declared_by_an_imputer_and_infinity_by_nothing(self, refused):
        X = rows()
        X[3, 1] = np.nan
        assert classifier().fit(X, labels()).certificate_
        X[3, 1] = np.inf
        refusing = classifier()
        with pytest.raises(InvalidValue, match="infinity"):
            refusing.fit(X, labels())
        assert not hasattr(refusing, "certificate_")

    def test_repair_is_row_wise(self, drawn):
        bad, plain = rows(), rows()
        bad[5], plain[5] = [np.inf, -np.inf, np.nan], 0.0
        repaired = mean(NormClipper(), on_invalid="repair", diagnostics=None).fit(bad)
        assert repaired.release_.sha256 == mean(NormClipper(), diagnostics=None).fit(plain).release_.sha256

        plain[5] = np.nan
        y, known = labels().astype(object), labels()
        y[[7, 9]], known[[7, 9]] = [NAME, None], 0
        repaired, alike = classifier(on_invalid="repair", diagnostics=None).fit(bad, y), classifier(diagnostics=None)
        assert repaired.release_.sha256 == alike.fit(plain, known).release_.sha256
        assert repaired.certificate_.verify()
        np.testing.assert_array_equal(repaired.predict_proba(bad), alike.predict_proba(plain))

    @pytest.mark.parametrize("what", sorted(set(BAD_LABELS) - {"none", "too few", "two columns", "a text", "ragged"}))
    def test_repair_takes_every_label(self, what):
        y = BAD_LABELS[what]()
        if what in ("sparse", "complex", "undeclared text"):  # the form is wrong, not a value
            with pytest.raises(InvalidInput):
                classifier(on_invalid="repair").fit(rows(), y)
        else:
            assert classifier(on_invalid="repair").fit(rows(), y).certificate_

    @pytest.mark.parametrize("invalid", ["error", "repair"])
    def test_rows_above_the_declared_norm_are_always_clipped(self, drawn, invalid):
        X = rows()
        clipped = X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None]
        given = {"on_invalid": invalid, "diagnostics": None}
        for pipe in (mean(NormClipper(1.0), **given), mean(domain=Domain(row_norm=1.0), **given)):
            pipe.fit(X)
            value, *_ = drawn.pop()
            np.testing.assert_allclose(value, clipped.mean(axis=0), atol=1e-12)

    @pytest.mark.parametrize("invalid", ["error", "repair"])
    def test_a_function_that_fails_on_a_row_gives_that_row_the_middle_of_the_range(self, capfd, invalid):
        """That it fails is a fact about the row, so nobody may see it."""

        def fails(X):
            if (X > NUMBER - 1).any():
                raise ValueError(f"{NAME} has {X.max()}")
            return X

        def gives_gaps(X):
            return np.where((X > NUMBER - 1).any(axis=1, keepdims=True), np.nan, X)

        one, other = (mean(RowMap(f, out_ranges=(-1, 3)), on_invalid=invalid).fit(rows()) for f in (fails, gives_gaps))
        assert one.release_.sha256 == other.release_.sha256
        assert one.certificate_.verify()
        assert not any(capfd.readouterr())


class TestFromTheOutside:
    """What a hostile reviewer found; each of these once went through."""

    @pytest.mark.parametrize("stage", [StandardScaler(fit_mode="noisy"), StandardScaler(fit_mode="exact")])
    def test_a_gap_where_none_is_declared_is_an_invalid_value_also_before_an_imputer(self, stage):
        X = np.full((2000, 2), 0.5)
        X[0, 0] = np.nan
        domain = Domain(row_norm=1.0, max_missing=0)
        steps = [("s", stage), ("i", MeanImputer()), ("m", GaussianMechanism())]
        with pytest.raises(InvalidValue):
            Pipeline(steps, domain=domain).fit(X)
        repaired, zero = (
            Pipeline(steps, domain=domain, on_invalid="repair", random_state=0).fit(rows).release_["m.answer"]
            for rows in (X, np.where(np.isnan(X), 0.0, X))
        )
        np.testing.assert_array_equal(repaired, zero)

    @pytest.mark.parametrize("cell", [f"{NAME}: a feature", f"{NAME}, array instead of", f"sparse {NAME}"])
    def test_no_cell_passes_for_a_message_about_form(self, cell):
        table = pd.DataFrame({"a": [1.0, 2.0] * 50, "b": [1.0, 2.0] * 50}, dtype=object)
        table.loc[3, "b"] = cell
        with pytest.raises(NonNumericData) as caught:
            mean(NormClipper(), delta=1e-4).fit(table)
        assert not quotes(caught.value)

    @pytest.mark.parametrize(
        "function",
        [
            lambda X: np.where(np.isnan(X), np.nanmean(X, axis=0), X),
            lambda X: pd.DataFrame(X).ffill().to_numpy(),
            lambda X: X * ~pd.DataFrame(X).duplicated().to_numpy()[:, None],
            lambda X: X[::-1],
        ],
    )
    @pytest.mark.filterwarnings("ignore:Mean of empty slice")
    def test_functions_that_mix_rows_are_found_without_data(self, function):
        steps = RowMap(function, out_ranges=(-1, 1)), MeanImputer(), GaussianMechanism()
        with pytest.raises(InvalidParameter, match="among other rows"):
            make_pipeline(*steps).plan(Domain(n_rows=2000, n_features=2))

    def test_labels_are_compared_one_by_one_whatever_they_are(self):
        y = pd.Series([0, 1] * (N // 2), dtype=object)
        y[5] = pd.NA
        with pytest.raises(InvalidValue):
            classifier().fit(rows(), y)
        assert classifier(on_invalid="repair").fit(rows(), y).certificate_

    def test_classes_stand_in_ascending_order(self):
        pipe = Pipeline([("c", NormClipper()), ("m", LogisticRegression(classes=(1, 0)))], delta=1e-4)
        assert pipe.fit(rows(), labels()).classes_.tolist() == [0, 1]

    def test_errors_of_floating_point_do_not_depend_on_the_rows(self):
        with np.errstate(all="raise"):
            for value in (0.5, 1e-200, 1e-310):
                X = np.full((N, 3), 0.5)
                X[0] = value
                assert classifier().fit(X, labels()).certificate_

    @pytest.mark.parametrize("norm", [1e154, 1e-200])
    def test_norms_that_cannot_be_squared_are_refused(self, norm):
        for build in (lambda: Domain(row_norm=norm), lambda: mean(NormClipper(norm)).plan(DOMAIN)):
            with pytest.raises(InvalidParameter, match="norm"):
                build()

    @pytest.mark.parametrize("setting", [{"noise_scale": 1.0}, {"random_state": 0}])
    def test_what_belongs_on_the_pipeline_is_not_ignored_on_the_mechanism(self, setting):
        with pytest.raises(InvalidParameter, match="pipeline"):
            make_pipeline(NormClipper(), GaussianMechanism(**setting)).plan(Domain(n_rows=500, n_features=2))
