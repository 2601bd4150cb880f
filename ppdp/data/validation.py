"""The door between a user's data and private rows: public form first, then values.

The public form is what a container says of itself: shape, names and types of columns. Errors about it come first and
cost nothing. Cells are looked at behind the reservation, and never show in an error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from ppdp.bounds.release import CLASS, LABEL, OF_TARGETS, TINY_WEIGHT, WEIGHT
from ppdp.core import checks
from ppdp.core.boundary import outside, suppressed
from ppdp.core.domain import Domain
from ppdp.core.names import LONGEST_NAME, read_as_cells, repeated
from ppdp.data.altered import Marker, Marks, tiny
from ppdp.data.cells import Cells, numbers
from ppdp.data.column_types import NESTED, described, is_of_a_library, kind_of, type_of_values
from ppdp.data.deferred_input import DeferredTable
from ppdp.data.frames import cells, column, column_alone, matrix, opened
from ppdp.data.parallel import in_parallel, pieces
from ppdp.data.rows import Rows, encode_labels, encode_targets
from ppdp.data.statistics import clip_norms
from ppdp.data.weights import read_weights
from ppdp.exceptions import (
    DiagnosticWarning,
    HeaderWarning,
    InvalidInput,
    InvalidParameter,
    InvalidValue,
    NonNumericData,
)

Array = NDArray[np.float64]
MOST_NUMBERS = 50  # that are taken as labels where nobody has declared them

# How scikit-learn's messages begin that speak of shapes and columns only.
_PUBLIC_MESSAGES = (
    "Complex data",
    "Found array",
    "Expected 2D",
    "X has",
    "Found input",
    "Unable",
    "Number of",
    "y should be a 1d array",
    "Sparse data",
    "Input should have",
    "Input X contains",
    "Input y contains",
)


def table_of(X: Any, *, texts: bool = False, names: Sequence[str] | None = None) -> Any:
    """A user's table, as :func:`ppdp.data.frames.opened` has it; a column is a table of one if ``texts`` are mapped."""
    if type(X).__name__ == "LazyFrame":
        raise InvalidInput("X is a LazyFrame, whose rows were not computed yet.", fix="pass X.collect().")
    if isinstance(X, DeferredTable):
        return X
    if getattr(getattr(X, "dtype", None), "names", None):
        fix = "pd.DataFrame(X); of a frame the frame itself, without to_records()."
        raise InvalidInput("X is an array of records.", fix=fix)
    if issparse(X) and X.dtype.kind not in "biufc":
        raise InvalidInput("X is a sparse array of objects.", fix="X.astype(float).")
    try:
        table = opened(X)
        if texts and getattr(table, "ndim", 0) == 1:
            table = column_alone(table, names)
        if getattr(table, "shape", None) != ():
            return table
    except Exception:  # of a container that does not keep to its own form
        pass
    fix = "pass an array, a frame or a path; pd.DataFrame(X) of a dict of columns, pd.DataFrame([X]) of one row, "
    fix += "pd.concat(X) of parts of a table."
    if isinstance(X, str):
        fix = "rows in memory, as pd.read_parquet(X) has them; fit, predict and transform of a Pipeline take paths."
    raise InvalidInput(f"X is a {type(X).__name__}, which is no table.", fix=fix)


def check_form(estimator: Any, X: Any, coded: Callable[[Any], Any], *, reset: bool, unbounded: bool = False) -> None:
    """Shape, names and types of columns; no cell is looked at. Remembers columns if ``reset``, in a fit.

    ``coded`` puts numbers for labels that are public; it is shown the columns without their rows. Where the number of
    rows is private, the form is that of one row.
    """
    shape = X.shape if isinstance(X, DeferredTable) else np.shape(X)
    X = X.form if isinstance(X, DeferredTable) else X
    if hasattr(X, "columns"):
        check_names(list(X.columns))
    filler = _filler((min(shape[0], 1), *shape[1:]) if shape else shape, unbounded=unbounded)
    _publicly(lambda: check_array(filler, dtype=np.float64, estimator=estimator))
    schema = coded(X[:0])
    _publicly(lambda: validate_data(estimator, X, skip_check_array=True, reset=reset))
    kinds = {str(name): kind for name, kind in schema.dtypes.items()} if hasattr(schema, "columns") else {"": X.dtype}
    if any(getattr(kind, "kind", "O") == "c" for kind in kinds.values()):
        raise InvalidInput("Complex data not supported: X must hold real numbers.", fix="X.real, or no such column.")
    kinds = {name: type_of_values(kind) for name, kind in kinds.items()}
    times = [name for name, kind in kinds.items() if _is_time(kind)]
    if times:
        lengths = [name for name in times if str(kinds[name]).lower().startswith(("time", "duration"))]
        lengths = [name for name in lengths if not str(kinds[name]).lower().startswith("timestamp")]
        _refuse_cells(times, _LENGTHS.format(name=lengths[0]) if lengths else _DAYS.format(names=times))


def warn_of_cells(names: Sequence[Any] | None) -> None:
    """Warn of names of columns that read as the cells of a row: names are public, and stand in certificates."""
    known, fix = [str(name) for name in names or ()], None
    unnamed = [name for name in known if name.startswith(("Unnamed: ", "__index_level_"))]
    if len(known) == 1 and (parted := next((one for one in ";\t|" if one in known[0]), None)):
        fix = f"pd.read_csv(path, sep={parted!r})"
    elif known and known[0] in ("index", "level_0"):
        fix = "X.reset_index(drop=True)"
    elif unnamed and unnamed[0].startswith("_"):
        fix = "X.to_parquet(path, index=False)"
    elif len(unnamed) == 1 < len(known):  # an index, by to_csv, or commas at the ends of lines
        fix = "pd.read_csv(path, index_col=0)" if unnamed == ["Unnamed: 0"] else f"X.drop(columns={unnamed[0]!r})"
    elif names is not None and read_as_cells(names):
        fix = "pd.read_csv(path, header=None, names=[...])"
    if fix is not None:
        warnings.warn(
            "names of columns read as the values of a row, as in a table that was read without its header or with an "
            f"index, and names are published in certificates. Fix: {fix}; ignore HeaderWarning if they are names.",
            HeaderWarning,
            stacklevel=outside(),
        )


def read_values(X: Any, invalid: str) -> Array:
    """Cells as float64, NaN for gaps; what is no number is an error ("error") or infinite ("repair")."""
    values, improper = matrix(X)
    if improper and invalid == "error":
        _refuse_cells(improper)
    return values


def check_numeric(table: Any, names: Collection[str] | None, coded: Callable[[Any], Any]) -> None:
    """Refuse columns of text, by their type, among those that must hold numbers; None stands for all."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DiagnosticWarning)  # which check_form has given
        form = coded((table.form if isinstance(table, DeferredTable) else table)[:0])
    kinds = dict(form.dtypes.items()) if hasattr(form, "columns") else {"": form.dtype}
    texts = [
        str(name)
        for name, kind in kinds.items()
        if (names is None or name in names) and kind_of(type_of_values(kind)) == "text"
    ]
    if texts:
        where = f"the column(s) {', '.join(texts)} hold" if any(texts) else "X holds"
        raise NonNumericData(
            f"{where} text, and a range, declared or found in the rows, is for numbers.",
            fix=f'CategoryEncoder({{{texts[0]!r}: ["a", "b"]}}) for text, DateEncoder for dates, in make_column_map; '
            "for numbers as text pd.to_numeric, or pd.read_csv(path, decimal=',', thousands='.'); or leave it out.",
        )


_SHAPED = (
    "X of rows and columns, table[['column', ...]], one row table.iloc[[0]], or pd.DataFrame(X) of a list of dicts; "
    "y of as many labels, "
    "table['column']; of columns of 0 and 1 y.idxmax(axis=1), of several targets one in each fit."
)
_FIXES = (  # of scikit-learn's messages, by how they begin
    ("The feature names", "the columns of the fit in their order: table[list(step.feature_names_in_)]."),
    ("X has", "the columns of the fit and no others; n_features_in_ says how many."),
    ("Sparse data", "X.toarray()."),
    ("Found array with 0 sample(s)", "a table of rows; of a reader, which is read once, a new one for every fit."),
    (
        "Input X contains NaN",
        "pipe.predict(X) or transform, whose imputer fills them; without one, MeanImputer() first.",
    ),
    ("", _SHAPED),
)
_CODES = (
    'CategoryEncoder for text, with categories of text (of ppdp.declare {"private": 20}, if unknown), DateEncoder for '
    "dates, pd.read_csv(path, decimal=',', thousands='.') for numbers in another form, or leave them out."
)
_LENGTHS = "numbers of one unit: table[{name!r}].dt.total_seconds() / 86400 for days."
_DAYS = (
    'in the first step, make_column_map((DateEncoder(("1990-01-01", "2030-12-31")), {names}), ...) for these columns; '
    "in a ColumnTransformer of scikit-learn the same pair. Of periods, .dt.to_timestamp() first."
)


def _refuse_cells(names: list[str], fix: str = _CODES) -> NoReturn:
    where = f"the column(s) {', '.join(names)} do" if any(names) else "X does"
    what = f"{where} not hold numbers; each argument must be a string or a number that float() reads."
    raise NonNumericData(what, fix=fix)


def check_names(names: list[Any]) -> None:
    """Names of columns are public, and all columns have one or none has."""
    try:
        several = repeated(names)
    except Exception:  # of a class of the user's own
        raise InvalidInput("names of columns must be strings.", fix="X.columns = [...].") from None
    if several:
        raise InvalidInput(f"several columns have the same name: {', '.join(several)}.", fix="rename them.")
    if max((len(name) for name in names if isinstance(name, str)), default=0) > LONGEST_NAME:
        raise InvalidInput(f"a name of a column has more than {LONGEST_NAME} characters.", fix="shorter names.")
    if len({isinstance(name, str) for name in names}) > 1:
        what = "some columns are named by strings and some are not."
        raise InvalidInput(what, fix="X.columns = X.columns.astype(str).")


def validated(estimator: Any, X: Any, *y: Any, **how: Any) -> Any:
    """Rows, and labels, as scikit-learn checks them for a step that is used alone; no error quotes a cell."""
    try:
        return validate_data(estimator, X, *y, **how)
    except Exception as error:
        message = _public_words(error)
    if message is None:
        _refuse_cells([""])
    _refuse_form(message)


def _publicly(check: Callable[[], Any]) -> None:
    """Run scikit-learn's check of a form; of its message only words on shapes and columns are passed on."""
    try:
        check()
        return
    except Exception as error:
        message = _public_words(error)
    _refuse_form(message or "X must be a table of rows and columns.")


def _refuse_form(message: str) -> NoReturn:
    raise InvalidInput(message, fix=next(fix for words, fix in _FIXES if message.startswith(words)))


def _public_words(error: Exception) -> str | None:
    """What scikit-learn says of shapes, columns and gaps; None of anything else, which may quote a cell."""
    message = str(error)
    if message.startswith("The feature names"):
        return " ".join(message.split())
    message = (message.splitlines() or [""])[0].rstrip(":")
    if message.startswith("Expected 2D array"):
        message = f"{message}. Reshape your data."
    return message if message.startswith(_PUBLIC_MESSAGES) or "requires y to be passed" in message else None


def _is_time(kind: Any) -> bool:
    """Whether a type is one of dates or durations, which would silently become numbers, or labels."""
    name = str(kind).lower()
    return name.startswith(("date", "time", "duration", "period", "month")) or name[1:3] == "m8"


def _filler(shape: tuple[int, ...], *, unbounded: bool) -> Array:
    """What stands for data of which only the form may be looked at; one row where the number of rows is private."""
    return np.broadcast_to(0.0, (1, *shape[1:]) if unbounded and shape else shape)


def check_labels(X: Any, y: Any, estimator: Any, *, unbounded: bool = False) -> Any:
    """One label or target per row of ``X``: the column, of which only the form was looked at."""
    if y is None:
        what = f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        raise InvalidInput(what, fix="fit(X, y), or fit(table, y='its column').")
    if isinstance(y, str):
        raise InvalidInput("y is a name, where labels are asked for.", fix=f"a column: y=table[{y!r}].")
    try:
        y = column(y)
        kind, filler = y.dtype, _filler(y.shape, unbounded=unbounded)
    except Exception:  # of a container that does not keep to its own form
        kind, filler = None, np.empty(0)
    if kind is None or kind.kind == "V" or described(type_of_values(kind)) in NESTED or issparse(y):
        raise InvalidInput("y must be a column of labels.", fix="one label for every row: y=table['its column'].")
    if kind.kind == "c":
        raise InvalidInput("Complex data not supported: y must hold labels or real numbers.", fix="y.real.")
    if _is_time(type_of_values(kind)):
        what = "y holds dates or durations, which are neither labels nor numbers."
        raise InvalidInput(what, fix="(y - pd.Timestamp('2020-01-01')).dt.days; of durations, y.dt.days.")
    _publicly(lambda: column_or_1d(filler, warn=True))
    if not isinstance(X, DeferredTable) and len(y) != np.shape(X)[0]:
        what = "Found input variables with inconsistent numbers of samples: y must have one entry for every row of X."
        raise InvalidInput(what, fix="X and y of the same rows, in the same order; y='its column' of X.")
    return y


def read_classes(y: NDArray[Any]) -> tuple[Any, ...]:
    """Labels found in y: private, so the certificate becomes conditional."""
    message: str | None = "Unknown label type: y must hold classes of one kind, not a continuous target."
    classes: tuple[Any, ...] = ()
    y = cells(y)
    fix = "labels of one kind without missing values; for a target, a regressor such as Ridge."
    with suppressed():
        if y.dtype == object:
            if len({isinstance(label, str) for label in y}) > 1:  # NumPy would make text of the others
                raise TypeError
            y = np.asarray(y.tolist())
        classes = checks.labels("classes", np.unique(y).tolist())
        if y.dtype.kind == "f" and not np.isfinite(y).all():
            message = "Input y contains NaN or infinity."
        else:
            check_classification_targets(y)
            message = None
        if y.dtype.kind in "biuf" and len(classes) > MOST_NUMBERS:
            message = f"y holds more than {MOST_NUMBERS} different numbers, as a target does."
            fix = "a regressor such as Ridge; or classes=(...) of the model, if they are labels."
    if message is not None:
        raise InvalidInput(message, fix=fix)
    if len(classes) < 2:
        what = "y must hold at least two classes, not one class."
        raise InvalidParameter(what, fix="pass classes=(a, b) to the model.")
    return classes


def repaired_values(X: Any, domain: Domain, *, gaps: bool, invalid: str) -> Any:
    """Check values or repair them row by row, then clip rows to what is declared; no error says where.

    NaN is a declared gap if ``gaps``. Entries that a sparse array does not hold are 0 and stay 0.
    """
    if issparse(X):
        held = repaired_values(X.data, Domain(entry_bound=domain.entry_bound), gaps=False, invalid=invalid)
        return clip_norms(csr_array((held, X.indices, X.indptr), X.shape), domain.row_norm)
    if invalid == "error":
        if any(list(in_parallel(lambda piece: np.isinf(X[piece]).any(), pieces(len(X)), 0))):
            what = "Input X contains infinity, or what is no date or text."
            fix = (
                "on_invalid='repair' for numbers; dates as they are written, DateEncoder(..., format='%d/%m/%Y'), or"
                " for declare pd.to_datetime(column, format='%d/%m/%Y', errors='coerce'); lists of words,"
                " X['column'].str.join(' ')."
            )
            raise InvalidValue(what, fix=fix)
        if not gaps and np.isnan(X).any():
            raise InvalidValue(
                "Input X contains NaN, and no step fills missing values.",
                fix="MeanImputer() for numbers; of codes a category for missing values, by CategoryEncoder(...,"
                " add_indicator=True) or declared as code = [0, 1, 2, nan], with MeanImputer()"
                " behind; or on_invalid='repair'.",
            )
    else:
        X = np.where(np.isfinite(X), X, np.nan if gaps else 0.0)
    if domain.entry_bound is not None:
        X = np.clip(X, -domain.entry_bound, domain.entry_bound)
    return np.ascontiguousarray(clip_norms(X, domain.row_norm))


def check_classes(y: Any, classes: tuple[Any, ...]) -> None:
    """Refuse a column whose type holds none of the classes, or cannot tell them apart; the type is public."""
    text, kind = {isinstance(label, str) for label in classes}, kind_of(type_of_values(y.dtype))
    typed, own = is_of_a_library(y.dtype) and kind != "unknown", getattr(y.dtype, "kind", "O")
    unlike = {True: typed and kind != "text", False: kind == "text" or (typed and kind == "none")}
    if len(text) == 1 and unlike[True in text]:
        words, other, like = ("text", "numbers", (0, 1)) if True in text else ("numbers", "text", ("no", "yes"))
        fix = (
            f"declare them as y has them: {other}, such as classes={like}; or convert y. VotingClassifier,"
            " StackingClassifier and OneVsRestClassifier hand on codes: classes=(0, 1)."
        )
        fix = "y.astype(str), and classes as text." if own == "S" else fix
        raise InvalidInput(f"y must hold {words}, as the declared classes do.", fix=fix)
    if own == "f" and any(isinstance(label, int) and abs(label) > 2**53 for label in classes):
        raise InvalidInput("y holds fractions, of which two classes may be one.", fix="y.astype('Int64').")


def read_labels(y: Any, classes: tuple[Any, ...]) -> Array:
    """Codes of labels, NaN for any that is missing or no public class."""
    check_classes(y, classes)
    return encode_labels(y.ravel() if isinstance(y, np.ndarray) else y, classes)


def settled_labels(codes: Array, invalid: str) -> Array:
    """Codes of labels, of which NaN is none of the classes: an error, or the first class."""
    unknown = np.isnan(codes)
    if unknown.any() and invalid == "error":
        raise InvalidValue(
            "a label is not one of the declared classes, or is missing.",
            fix="declare all classes, or of numbers take a regression, LinearRegression(y_range=...); of objects"
            " y.astype(str), and classes as text, or of words y.map({'TRUE': True, 'FALSE': False});"
            " where labels are missing, make a class of them, y.fillna('none') or"
            " (-1), or fit(X, y.fillna(a class), sample_weight=y.notna()) with domain=Domain(max_weight=1.0), where"
            " these rows count nothing. on_invalid='repair' takes any other label as the first class.",
            parameter="y",
        )
    return np.where(unknown, 0.0, codes)


def settled_targets(read: Cells, y_range: tuple[float, float], invalid: str) -> Array:
    """Targets clipped to their public range; NaN and infinity are an error without a place, or its centre."""
    targets, improper = (part.ravel() for part in read)
    if invalid == "error" and improper.any():
        how = "pd.read_csv(path, thousands=','), or (path, decimal=',', thousands='.')"
        fix = f"45000.0, without signs or units: {how}; for text a classifier such as LogisticRegression."
        raise InvalidInput("y must hold numbers, to learn a regression.", fix=fix)
    finite = np.isfinite(targets)
    if invalid == "error" and not finite.all():
        what = "Input y contains NaN or infinity."
        fix = (
            "where targets are missing, fit(X, y.fillna(a number), sample_weight=y.notna()) with "
            "domain=Domain(max_weight=1.0), where these rows count nothing; or on_invalid='repair'."
        )
        raise InvalidValue(what, fix=fix, parameter="y")
    return encode_targets(np.where(finite, targets, np.nan), y_range)


@dataclass(frozen=True, slots=True)
class Reader:
    """How cells become rows within the declared domain, each row by itself; ``invalid`` says what becomes of others.

    ``coded`` puts numbers for labels and tells texts that are to be released; ``marker`` finds rows that are altered.
    """

    domain: Domain
    coded: Callable[[Any], tuple[Any, Any]] | None
    gaps: bool
    invalid: str
    regression: bool = False
    marker: Marker | None = None

    def __call__(self, table: Any, labels: Any = None, weights: Any = None) -> Rows:
        """Rows of an opened table."""
        table, texts = (table, None) if self.coded is None else self.coded(table)
        values = read_values(table, self.invalid)  # infinite where a cell is improper
        X = repaired_values(values, self.domain, gaps=self.gaps, invalid=self.invalid)
        y, beside = (None, {}) if labels is None else self._labels(labels)
        factor = None
        if weights is not None:
            factor, beside[WEIGHT] = read_weights(weights, self.domain.require("max_weight"), self.invalid)
            beside[TINY_WEIGHT] = tiny(factor, np.zeros(1), np.ones(1))
        marks = None if self.marker is None else self.marker(values, X, beside)
        copied = not issparse(X) and not np.may_share_memory(X, values)  # as columns of a frame are, to become rows
        return replace(Rows.of(X, y), texts=texts, ours=copied, marks=marks, factor=factor)

    def _labels(self, labels: Any) -> tuple[Array, dict[str, Marks]]:
        """Codes of labels, or targets; and which were none of the classes, or outside of their range or tiny in it."""
        if not self.regression:
            codes = read_labels(labels, self.domain.classes or ())
            settled = settled_labels(codes, self.invalid)
            of_class = (np.arange(len(self.domain.classes or ()))[:, None] == settled).T
            return settled, {LABEL: np.isnan(codes), CLASS: of_class}
        read, (low, high) = numbers(labels), self.domain.require("y_range")
        values = read.values.ravel()
        marks = ~((values >= low) & (values <= high)), tiny(values, low, high), values == 0
        return settled_targets(read, (low, high), self.invalid), dict(zip(OF_TARGETS, marks))
