"""A look at no cell before the reservation, and no cell that decides over another one or over an error."""

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import refusals
from refusals import NAME, N, classifier, frame, labels, mean, quotes, rows

from ppdp import Ledger, PrivateSearchCV, make_pipeline
from ppdp.exceptions import BudgetExceeded, InvalidInput, InvalidParameter, InvalidValue, NonNumericData, PpdpError
from ppdp.mechanisms import GaussianMechanism, LogisticRegression, Ridge
from ppdp.transformers import MinMaxScaler, NormClipper, RowMap

drawn, refused = refusals.drawn, refusals.refused


class Hostile:
    """A cell whose every use raises, with the record in the words."""

    def __init__(self, kind):
        self.kind = kind

    def _raise(self, *_):
        raise self.kind(NAME)

    __float__ = __int__ = __index__ = __eq__ = __hash__ = __repr__ = __str__ = __bool__ = __array__ = _raise


class Chatty:
    def __float__(self):
        warnings.warn(NAME, stacklevel=1)
        return 0.25


NO_NUMBERS = {
    "NA": pd.NA,
    "NaT": pd.NaT,
    "none": None,
    "401 digits": 10**400,
    "5001 digits": 10**5000,
    "a signalling NaN": decimal.Decimal("sNaN"),
    "text": NAME,
    "half a character": "\ud800",
    "bytes": NAME.encode(),
    "a list": [0.5],
    "an array": np.array([0.5]),
    "a mapping": {NAME: 1},
    "complex": 1j,
    "complex of NumPy": np.complex128(1),
    "a date": np.datetime64("2001"),
    "a duration": np.timedelta64(1, "s"),
    "masked": np.ma.masked,
    **{kind.__name__: Hostile(kind) for kind in (RuntimeError, RecursionError, MemoryError)},
}
GAPS = {"NA", "NaT", "none", "masked"}


def table(cell, held):
    X = rows().astype(object)
    X[:, 1] = 0.5
    column = np.full(N, 0.5, dtype=object)
    column[3] = cell
    X[:, 1] = column
    frames = {"a frame": lambda: pd.DataFrame(X, columns=["a", "b", "c"]), "an array": lambda: X}
    return {**frames, "lists": lambda: [list(row) for row in X]}[held]()


class TestCells:
    @pytest.mark.parametrize("held", ["a frame", "an array", "lists"])
    @pytest.mark.parametrize("what", NO_NUMBERS)
    @pytest.mark.filterwarnings("error", "ignore::ppdp.exceptions.CompositionWarning")
    @pytest.mark.repeated("held")
    def test_what_is_no_number_is_repaired_as_a_gap_and_else_refused(self, refused, what, held):
        plain = rows()
        plain[:, 1] = 0.5
        plain[3, 1] = np.nan
        expected = classifier(diagnostics=None).fit(plain, labels()).release_.sha256
        X = table(NO_NUMBERS[what], held)
        assert classifier(on_invalid="repair", diagnostics=None).fit(X, labels()).release_.sha256 == expected
        if what in GAPS:
            assert classifier(diagnostics=None).fit(X, labels()).release_.sha256 == expected
        else:
            with pytest.raises(NonNumericData) as caught:
                classifier().fit(X, labels())
            assert not quotes(caught.value)

    @pytest.mark.parametrize("dtype", ["string", "string[pyarrow]", "object"])
    def test_where_nothing_fills_gaps_it_is_the_public_filler(self, dtype):
        texts = frame(pd.Series(["0.5"] * (N - 2) + [pd.NA, NAME], dtype=dtype))
        zeros = frame(np.array([0.5] * (N - 2) + [0.0, 0.0]))
        one, other = (mean(NormClipper(1.0), on_invalid="repair").fit(X) for X in (texts, zeros))
        assert one.release_.sha256 == other.release_.sha256

    @pytest.mark.parametrize("dtype", ["string", "category", "string[pyarrow]", "U"])
    def test_text_whose_range_is_private_is_refused_by_its_type(self, dtype):
        ledger, texts = Ledger(epsilon=9.0, delta=0.1), np.array(["a", NAME] * (N // 2))
        X = texts[:, None] if dtype == "U" else frame(pd.Series(texts, dtype="string").astype(dtype))
        with pytest.raises(NonNumericData, match="text, and a range, declared or found") as caught:
            mean(MinMaxScaler("private"), ledger=ledger).fit(X)
        assert ledger.entries() == ()
        assert not quotes(caught.value)
        assert mean(MinMaxScaler("private")).fit(frame(pd.Categorical([1.0, 2.0] * (N // 2)))).certificate_

    def test_text_that_is_no_utf8_is_no_number(self):
        offsets, data = pa.py_buffer(np.arange(N + 1, dtype=np.int32)), pa.py_buffer(b"1" * (N - 1) + b"\xff")
        X = pa.table({"a": rows()[:, 0], "b": pa.Array.from_buffers(pa.string(), N, [None, offsets, data])})
        assert mean(NormClipper(), on_invalid="repair").fit(X).certificate_
        with pytest.raises(NonNumericData, match=r"column\(s\) b "):
            mean(NormClipper()).fit(X)

    @pytest.mark.filterwarnings("error", "ignore::ppdp.exceptions.CompositionWarning")
    def test_what_a_cell_warns_of_is_not_said(self):
        assert classifier().fit(table(Chatty(), "an array"), labels()).certificate_

    @pytest.mark.parametrize("cast", [np.copy, lambda X: X.astype(object)])
    def test_what_a_mask_hides_is_a_gap(self, cast):
        X, hidden = rows(), np.zeros((N, 3), dtype=bool)
        hidden[5], hidden[9, 1] = True, True
        masked = np.ma.masked_array(cast(X), hidden)
        X[hidden] = np.nan
        one, other = (classifier().fit(X, labels()) for X in (masked, X))
        assert one.release_.sha256 == other.release_.sha256
        np.testing.assert_array_equal(one.predict(masked), other.predict(X))
        np.testing.assert_array_equal(MinMaxScaler((-1, 1)).fit_transform(masked)[5], np.full(3, np.nan))

    @pytest.mark.parametrize("kind", [pl.Int128, pl.Decimal(20, 2), pl.Int64, pl.Float32, pl.Boolean])
    def test_numbers_of_polars_are_numbers(self, kind):
        X = pl.DataFrame({"a": rows()[:, 0], "b": pl.Series([1, None] * (N // 2), strict=False).cast(kind)})
        plain = np.column_stack([rows()[:, 0], [1.0, np.nan] * (N // 2)])
        one, other = (mean(NormClipper(), on_invalid="repair").fit(X) for X in (X, plain))
        np.testing.assert_array_equal(one[-1].mean_, other[-1].mean_)

    def test_objects_of_polars_are_no_numbers(self):
        X = pl.DataFrame({"a": rows()[:, 0], "b": pl.Series([object()] * N, dtype=pl.Object)})
        with pytest.raises(NonNumericData, match=r"column\(s\) b "):
            mean(NormClipper()).fit(X)

    @pytest.mark.parametrize("values", [[datetime.date(2001, 2, 3)] * N, [datetime.time(1)] * N])
    @pytest.mark.parametrize("make", [pl.Series, pa.array, lambda cells: pa.array(cells).dictionary_encode()])
    def test_dates_are_refused_by_their_type_also_under_repair(self, refused, make, values):
        X = type(make([1])).__module__.startswith("polars")
        X = (pl.DataFrame if X else pa.table)({"a": rows()[:, 0], "b": make(values)})
        refused(
            NonNumericData,
            mean(NormClipper(), on_invalid="repair", ledger=Ledger(epsilon=1.0, delta=1e-3)),
            X,
            says=r"s\) b ",
        )

    def test_a_frame_that_was_not_computed_is_no_table(self, refused):
        error = refused(InvalidInput, mean(NormClipper()), pl.LazyFrame({"a": [1.0]}), says="LazyFrame")
        assert "collect" in error.fix


DATES = {
    "days": np.array(["2001", "2002"] * (N // 2), dtype="M8[D]"),
    "durations": labels().astype("m8[s]"),
    "with a zone": pd.Series(pd.to_datetime(["2001", "2002"] * (N // 2), utc=True)),
    "periods": pd.period_range("2001", periods=N, freq="D"),
    "polars": pl.Series([datetime.date(2001, 2, 3)] * N),
    "Arrow": pa.array([datetime.timedelta(1)] * N),
    "categories": pa.array([datetime.date(2001, 2, 3)] * N).dictionary_encode(),
}


class TestLabels:
    @pytest.mark.parametrize("invalid", ["error", "repair"])
    @pytest.mark.parametrize("what", DATES)
    def test_dates_are_none(self, refused, what, invalid):
        refused(InvalidInput, classifier(on_invalid=invalid), rows(), DATES[what], says="dates or durations")

    @pytest.mark.parametrize("cell", [["a"], {"x": 1}])
    def test_lists_are_none(self, refused, cell):
        model = LogisticRegression(max_iter=3)  # without classes, which are found in the rows
        pipe = make_pipeline(NormClipper(), model, epsilon=1.0, delta=1e-4, on_invalid="repair")
        table = pa.table({"a": rows()[:, 0], "y": [cell] * N})
        for X in (table, table.to_reader()):
            refused(InvalidInput, pipe, X, "y", says="column of labels")

    @pytest.mark.parametrize(
        "values", [pa.array(labels()), pl.Series(labels()), pd.array(labels(), "Int64"), pa.array([b"a"] * N)]
    )
    def test_a_type_that_holds_no_text_is_refused_where_classes_are_text(self, refused, values):
        pipe = classifier(on_invalid="repair").set_params(model__classes=("0", "1"))
        refused(InvalidInput, pipe, rows(), values, says="y must hold text")

    def test_a_duration_in_a_cell_is_unknown(self):
        y = [np.timedelta64(int(code), "s") for code in labels()]
        with pytest.raises(InvalidValue):
            classifier().fit(rows(), y)
        one, other = (classifier(on_invalid="repair").fit(rows(), y) for y in (y, np.zeros(N)))
        assert one.release_.sha256 == other.release_.sha256

    @pytest.mark.parametrize("model", [None, Ridge(y_range=(-1, 1))])
    def test_what_a_mask_hides_is_none(self, model):
        y = np.ma.masked_array(labels(), np.arange(N) < 3)
        known = np.where(np.arange(N) < 3, 0, labels())  # the first class, and the centre of the range
        pipe = classifier() if model is None else classifier().set_params(model=model)
        with pytest.raises(InvalidValue):
            pipe.fit(rows(), y)
        one, other = (pipe.set_params(on_invalid="repair").fit(rows(), y).release_.sha256 for y in (y, known))
        assert one == other


class TestOrder:
    """Whoever may not spend learns nothing of a cell, and whoever may learns it at the whole price."""

    @pytest.mark.parametrize("search", [False, True])
    def test_nothing_is_looked_at_before_an_overspend_is_refused(self, search, monkeypatch):
        def looked(*_):
            raise AssertionError("a cell was looked at")

        spent = Ledger(epsilon=1.0, delta=1e-4)
        if search:
            fit = PrivateSearchCV(
                classifier(random_state=None), {"model__max_grad_norm": [0.5, 1.0]}, epsilon=9.0, ledger=spent
            )
        else:
            fit = classifier(ledger=spent)
        y = labels().tolist()
        y[3] = NAME
        X = table(NAME, "a frame")
        for reader in ("validation.matrix", "validation.cells", "frames.objects", "frames.numbers"):
            monkeypatch.setattr(f"ppdp.data.{reader}", looked)
        with pytest.raises(BudgetExceeded):
            fit.fit(X, y)

    @pytest.mark.parametrize("cell", [NAME, np.inf, 10**400])
    def test_an_error_on_a_cell_is_charged_and_says_so(self, cell):
        ledger = Ledger(epsilon=100.0, delta=1e-2)
        with pytest.raises((NonNumericData, InvalidValue), match="ledger counts this fit as spent"):
            classifier(ledger=ledger).fit(table(cell, "a frame"), labels())
        assert [entry.status for entry in ledger.entries()] == ["failed"]

    def test_an_error_on_the_form_is_free(self):
        ledger = Ledger(epsilon=100.0, delta=1e-2)
        with pytest.raises(InvalidInput) as caught:
            classifier(ledger=ledger).fit(rows()[:, :1], labels()[:-1])
        assert "ledger" not in str(caught.value)
        assert not ledger.entries()


PLACES = {
    "a label": lambda word: (classifier().set_params(model__classes=("a", word)), frame()),
    "the dataset": lambda word: (classifier(dataset=word), frame()),
    "a column": lambda word: (classifier(), frame().set_axis(pd.Index(["a", word, "c"], dtype=object), axis=1)),
    "a step": lambda word: (classifier().set_params(steps=[(word, NormClipper())]), frame()),
}


HUGE = {
    "a label": lambda n: classifier().set_params(model__classes=(0, n)),
    "iterations": lambda n: classifier().set_params(model__max_iter=n),
    "epsilon": lambda n: classifier(epsilon=n),
    "a range": lambda n: mean(MinMaxScaler(ranges=(0, n))),
    "ranges": lambda n: mean(MinMaxScaler(ranges=n)),
    "the range of a function": lambda n: mean(RowMap(np.tanh, out_ranges=(-1, 1), lipschitz=n)),
    "targets": lambda n: classifier().set_params(model=Ridge(y_range=(0, n))),
    "bins": lambda n: mean(NormClipper()).set_params(gaussianmechanism=GaussianMechanism("histogram", bins=[0, n])),
}


class TestPublicWords:
    @pytest.mark.parametrize("where", PLACES)
    def test_half_a_character_is_refused_before_the_spend(self, where):
        pipe, X = PLACES[where]("half \ud800")
        ledger = Ledger(epsilon=100.0, delta=1e-2)
        y = np.where(labels() == 1, "a", "b") if where == "a label" else labels()
        with pytest.raises((InvalidParameter, InvalidInput)) as caught:
            pipe.set_params(ledger=ledger).fit(X, y)
        assert str(caught.value).isprintable()
        assert not ledger.entries()

    @pytest.mark.parametrize("number", [10**400, 10**5000, Hostile(RuntimeError)], ids=["401", "5001", "hostile"])
    @pytest.mark.parametrize("where", HUGE)
    def test_what_no_number_type_holds_is_refused_on_one_line(self, where, number):
        with pytest.raises(PpdpError) as caught:
            HUGE[where](number).plan(refusals.DOMAIN)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 500
        assert not quotes(caught.value)

    def test_names_that_cannot_be_compared_are_refused(self, refused):
        class Name(Hostile):
            def __hash__(self):
                return 1

        names = pd.Index([Name(RuntimeError), Name(RuntimeError), "c"], dtype=object)
        refused(InvalidInput, mean(NormClipper()), pd.DataFrame(rows(), columns=names), says="must be strings")

    def test_no_path_holds_a_zero_byte(self):
        from ppdp import load

        with pytest.raises(InvalidParameter, match="path of a file"):
            load("a\0b")
        with pytest.raises(InvalidParameter, match="path of a file"):
            mean(NormClipper(), random_state=None).fit(rows()).export("a\0b")
