"""What a fitted pipeline released, also as Arrow tables and Parquet files that carry their certificate."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from ppdp.certificate import Certificate
from ppdp.certificate.issuance import content_hash
from ppdp.certificate.record import Record
from ppdp.certificate.replay.rules import refuse_unsafe
from ppdp.core.checks import number
from ppdp.core.domain import Domain
from ppdp.core.formula import FORMULAS
from ppdp.core.keywords import answering
from ppdp.data.rows import Array
from ppdp.data.unit_conversion import Answers
from ppdp.exceptions import ExportError
from ppdp.interop.sklearn.to_onnx import to_onnx
from ppdp.interop.sklearn.to_sklearn import to_sklearn
from ppdp.pipeline.release.answers import answers_of, frame_of, html_of, intervals_of, names_of
from ppdp.pipeline.release.export import logged
from ppdp.pipeline.release.parquet import CertifiedFile, WithParquet, described, malformed, unpacked
from ppdp.pipeline.release.sketches import SketchTable
from ppdp.pipeline.release.step_serialization import released_twins, restore

Shapes = Mapping[str, Sequence[int]]
_BYTES_OF_A_LINE = 40


@dataclass(frozen=True, slots=True, eq=False)
class Released(WithParquet, Mapping[str, Array]):
    """Named arrays with the noise they carry, and the path on which they predict.

    Attributes
    ----------
    arrays : mapping of str to ndarray
        Read-only arrays by name, ``"<step>.<statistic>"``.
    noise_scale : mapping of str to float
        Standard deviation of the noise on each entry (per step for trained models).
    sha256 : str
        Hash of the arrays, as in the certificate.
    inference : str
        JSON: the steps and their public parameters. Together with the arrays and the certificate it is all that
        predicting needs; the certificate holds its hash as well.
    certificate : Certificate
        What is guaranteed for all of it.
    twins : sequence of (str, step)
        Released copies of the steps, with which numbers are told in raw units.
    """

    arrays: Mapping[str, Array]
    noise_scale: Mapping[str, float]
    sha256: str
    inference: str
    certificate: Certificate
    twins: Sequence[tuple[str, Any]] = ()

    @classmethod
    def of(cls, record: Record, arrays: Mapping[str, Array], inference: str, certificate: Certificate) -> Released:
        """What a certificate, here also as a record, says of these arrays."""
        last = record.mechanism
        scales = {f"{record.steps[r.at].name}.{r.statistic}": r.noise_scale for r in record.releases}
        scales |= {name: last.noise_scale for name in record.released.names if name not in scales and last is not None}
        noise = {name: float(scales[name]) for name in record.released.names}
        return cls(arrays, noise, record.released.sha256, inference, certificate)

    def __getattr__(self, name: str) -> Any:
        of_frames = "" if name.startswith("_") else " Fix: to_pandas(), which gives a frame."
        raise AttributeError(f"'Released' object has no attribute {name!r}.{of_frames}")

    def _columns(self) -> Any:
        return _tabulated(self.certificate, self.arrays)

    @answering
    def to_pandas(self) -> Any:
        """Every released number with its column, its standard error, and both in raw units.

        Raw are the units of the table that came in. Standard errors are of the noise alone, before numbers are moved to
        where they could lie. Where a map behind a number was fitted without noise, or is no scale and shift of each
        column, raw values are NaN; ``note`` says why, or of which values they are: clipped ones, filled ones.

        Returns
        -------
        DataFrame
            A line for every number: ``step``, ``statistic``, ``column``, ``value``, ``standard_error``, ``raw_value``,
            ``raw_standard_error``, ``note``; of histograms also the ends of cells, ``low``, ``high``, ``raw_low`` and
            ``raw_high``, of which the outer ones take what lies beyond. Released rows are a table like the one that
            came in, as from ``to_arrow``.
        """
        if _wide(self.certificate.record) is not None:
            return self._columns().to_pandas()
        return frame_of(self._answers())

    @answering
    def conf_int(self, alpha: float = 0.05, *, raw: bool = True) -> Any:
        """Confidence intervals of every released number: of its noise, and of what the rows were drawn from.

        They are made from released and public numbers, so they cost nothing (``docs/theory/intervals.md``).

        Parameters
        ----------
        alpha : float, default=0.05
            An interval fails to cover with this probability, about or at most.
        raw : bool, default=True
            In the units of the table that came in, NaN where no map leads back; else as released.

        Returns
        -------
        DataFrame
            Lines as in :meth:`to_pandas`. ``lower`` and ``upper`` are for what would have been released without noise
            **on these rows**, ``standard_error`` is that of the noise. ``population_lower`` and ``population_upper``
            are for the population of which the rows are a random sample: they cover the noise and the
            ``sampling_error`` together. NaN where released numbers do not tell it, or where no coverage is known.
            Where raw values are dates, ``date``, ``date_lower`` and ``date_upper`` have them as text.
        """
        if _wide(self.certificate.record) is not None:
            raise ExportError("released rows have no intervals.", fix="release_.table, whose estimates have errors.")
        return intervals_of(self._answers(), number("alpha", alpha, above=0, most=1 - 2.0**-40), raw=raw)

    def _answers(self) -> list[tuple[str, Answers]]:
        return list(answers_of(self.certificate.record, self.arrays, self.twins))

    def _repr_html_(self) -> str:
        """The first released numbers for a notebook; of released rows nothing but how many."""
        if _wide(self.certificate.record) is not None:
            return f"<div>{escape(repr(self))}</div>"
        return html_of(self._answers())

    @property
    def table(self) -> SketchTable:
        """Released rows as sketches that can be searched; :class:`ExportError` if no rows were released."""
        return SketchTable.of(self.certificate, self.arrays)

    def to_sklearn(
        self, *, functions: Mapping[str, Any] | None = None, stages: Sequence[type[Any]] = (), conditional: bool = False
    ) -> Any:
        """An ordinary fitted pipeline of scikit-learn with what was released, for ONNX, SHAP and other tools.

        It predicts what the fitted pipeline predicts, up to 1e-12; behind a random projection of the families
        "gaussian" and "uniform", which rounds rows, up to 1e-8 of the largest entry. It carries no certificate. Steps
        keep their names, and those that map no new row are not in it. Where rows are clipped to a norm, that step is
        :class:`ppdp.interop.sklearn.plain_objects.NormClip`. :class:`ExportError` names a step without counterpart.

        Parameters
        ----------
        functions : mapping, optional
            What is no plain data, by the name of its step, as for :func:`ppdp.load`.
        stages : sequence of type
            Classes of steps that are not ppdp's.
        conditional : bool, default=False
            Whether what a CONDITIONAL certificate speaks of may leave.
        """
        return to_sklearn(*self._steps(functions, stages, conditional=conditional))

    def _steps(
        self, functions: Mapping[str, Any] | None, stages: Sequence[type[Any]], *, conditional: bool
    ) -> tuple[Any, list[Domain], str]:
        """Steps that hold released numbers, the domain in front of each, and what becomes of improper cells."""
        record = self.certificate.record
        refuse_unsafe(record, conditional=conditional)
        steps, _ = restore(self.inference, functions or {}, tuple(stages))
        domains = list(map(Domain.from_dict, record.domains))
        return released_twins(record, steps, self.arrays), domains, record.invalid

    def to_onnx(
        self,
        initial_types: Sequence[Any] | None = None,
        *,
        functions: Mapping[str, Any] | None = None,
        stages: Sequence[type[Any]] = (),
        conditional: bool = False,
    ) -> Any:
        """The pipeline as a model of ONNX, which runs without Python: what skl2onnx makes of :meth:`to_sklearn`.

        Boosted shapes and tables are one operator, ``TreeEnsembleRegressor``, with thresholds in double precision.
        Outputs are called as skl2onnx calls them: ``label`` and ``probabilities``, or ``variable``; a runtime loads
        ``SerializeToString()`` of the model. Raises what :meth:`to_sklearn` does.

        Parameters
        ----------
        initial_types : sequence of tuple, optional
            Names and types of the inputs, as skl2onnx takes them. Default: one matrix ``X`` of doubles, or of floats
            where a step fills missing values, which runtimes do in single precision only; where the first step takes
            columns by name, each of them as a matrix with one column.
        functions, stages, conditional
            As for :meth:`to_sklearn`.
        """
        return to_onnx(*self._steps(functions, stages, conditional=conditional), initial_types)

    def log_model(self, name: str = "model", *, conditional: bool = False, **options: Any) -> Any:
        """Log the plain pipeline to the active run of MLflow, with the certificate as artefacts beside it.

        Raises what :meth:`to_sklearn` does; nothing is logged then.

        Parameters
        ----------
        name : str, default="model"
            Where MLflow puts the model; the certificate goes to ``<name>-certificate.json`` and ``.html``.
        conditional : bool, default=False
            As for :meth:`to_sklearn`.
        **options
            For :func:`mlflow.sklearn.log_model`, such as ``input_example``; ``functions`` and ``stages`` are those of
            :meth:`to_sklearn`.
        """
        conversion = {key: options.pop(key) for key in ("functions", "stages") if key in options}
        plain = self.to_sklearn(conditional=conditional, **conversion)
        return logged(plain, self.certificate, name, options)

    def __getitem__(self, name: str) -> Array:
        if name not in self.arrays:
            names = ", ".join(map(repr, self.arrays))
            raise KeyError(f"{name!r} is no array. Fix: one of {names}; to_pandas() has every number with its name.")
        return self.arrays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.arrays)

    def __len__(self) -> int:
        return len(self.arrays)

    def __repr__(self) -> str:
        shown = (f"{k}: {v.size} numbers, noise {self.noise_scale[k]:.4g}" for k, v in self.arrays.items())
        return f"Released({'; '.join(shown)})"


def _tabulated(certificate: Certificate, arrays: Mapping[str, Array]) -> Any:
    """One line per released number, arrays by name, in C order; of released rows a row each, a column per feature."""
    import pyarrow as pa

    wide = _wide(certificate.record)
    if wide is not None:
        return _rows(certificate, dict(arrays), *wide)
    names = sorted(arrays)
    sizes = [arrays[name].size for name in names]
    columns = {
        "array": np.repeat(np.array(names, dtype=object), sizes),
        "position": np.concatenate([np.arange(size) for size in sizes]),
        "value": np.concatenate([arrays[name].ravel() for name in names]),
        **_cells(certificate.record, sum(sizes)),
    }
    schema = _schema(certificate.record, sum(sizes)).with_metadata(described(certificate, {}))
    return pa.table(columns, schema)


def _cells(record: Record, lines: int) -> dict[str, list[Any]]:
    """Column, lower and upper end of every cell, if what was released are histograms and nothing else."""
    if record.mechanism is None or not record.mechanism.formula.endswith(".histogram"):
        return {}
    grid, names = record.mechanism.parameters, _features(record)
    cells: dict[str, list[Any]] = {"column": [], "low": [], "high": []}
    start = 0
    for column, size in zip(grid["columns"], grid["sizes"]):
        edges = grid["edges"][start : start + size]
        start += size
        cells["column"] += [names[column]] * (size - 1)
        cells["low"] += edges[:-1]
        cells["high"] += edges[1:]
    return cells if len(cells["low"]) == lines else {}


def _features(record: Record) -> list[str]:
    """Names of the columns at the input of the mechanism."""
    return names_of(record.domains[-1])


def _wide(record: Record) -> tuple[str, list[str]] | None:
    """Name of the array of released rows, and of its columns; None if no rows were released."""
    if record.mechanism is None or not getattr(FORMULAS[record.mechanism.formula], "rows", False):
        return None
    n_signs = record.mechanism.parameters.get("n_signs")
    return f"{record.mechanism.name}.answer", _features(record) if n_signs is None else [
        f"sign{i}" for i in range(n_signs)
    ]


def _rows(certificate: Certificate, arrays: dict[str, Array], name: str, features: list[str]) -> Any:
    """Released rows as a table like the one that came in."""
    import pyarrow as pa

    columns = arrays.pop(name).reshape(-1, len(features)).T
    table = pa.table([pa.array(column, pa.float64()) for column in columns], features)
    return table.replace_schema_metadata(described(certificate, arrays))


def read_parquet(path: str | os.PathLike[str]) -> tuple[Any, Certificate]:
    """A released dataset and its certificate, both checked.

    Parameters
    ----------
    path : path-like
        What ``pipe.release_.to_parquet`` or :meth:`ppdp.SketchTable.to_parquet` wrote.

    Returns
    -------
    table : pyarrow.Table
        As from ``to_arrow``.
    certificate : Certificate
        Verified, and that of exactly these numbers.

    Raises
    ------
    CertificateError
        If what stands for its certificate is none, or does not verify.
    ExportError
        If the file cannot be read, or its numbers are not those that were certified.

    Examples
    --------
    >>> read_parquet("nowhere.parquet")  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    ...
    ppdp.exceptions.ExportError: cannot read 'nowhere.parquet': No such file or directory.
    """
    file = CertifiedFile.opened(path, "write it with pipe.release_.to_parquet.")
    if file.sketches:
        return SketchTable.read(file).to_arrow(conditional=True), file.certificate
    record, wide = file.record, _wide(file.record)
    shapes = record.released.names
    whole = sum(math.prod(shape) for shape in shapes.values())
    if wide is not None:
        whole = math.prod(shapes[wide[0]]) // len(wide[1])
    longest = max(map(len, [*shapes, *_features(record)]))
    line = _BYTES_OF_A_LINE + longest if wide is None else 8 * len(wide[1])
    table = file.read(_schema(record, whole), whole, line, "pipe.release_.to_parquet")
    with malformed("the table is malformed."):
        if wide is None:
            arrays = _arrays(np.asarray(table["value"], dtype=np.float64), shapes)
        else:
            arrays = _arrays_of_rows(table, file.others, shapes, wide[0])
        expected = _tabulated(file.certificate, arrays)
        same = content_hash(arrays) == record.released.sha256 and _same(table, expected)
    if not same:
        raise ExportError("the numbers are not those that the certificate was issued for.")
    return expected, file.certificate


def _schema(record: Record, lines: int) -> Any:
    """Names and types of the columns of a released table."""
    import pyarrow as pa

    wide = _wide(record)
    if wide is not None:
        return pa.schema([(name, pa.float64()) for name in wide[1]])
    columns = [("array", pa.string()), ("position", pa.int64()), ("value", pa.float64())]
    if _cells(record, lines):
        columns += [("column", pa.string()), ("low", pa.float64()), ("high", pa.float64())]
    return pa.schema(columns)


def _same(found: Any, expected: Any) -> bool:
    """Whether two tables hold the same; words are compared as codes."""
    pairs = ((found[name], expected[name]) for name in expected.schema.names)
    return all(_same_words(a, b) if hasattr(a.type, "value_type") else a.equals(b) for a, b in pairs)


def _same_words(found: Any, expected: Any) -> bool:
    """Whether a column that was read as codes holds these words; it is never written out."""
    if found.null_count:
        return False
    wanted = expected.combine_chunks().dictionary_encode()
    place = {word: code for code, word in enumerate(wanted.dictionary.to_pylist())}
    codes = []
    for chunk in found.chunks:
        chunk.validate(full=True)
        own = [place.get(word, -1) for word in chunk.dictionary.to_pylist()]
        codes.append(np.asarray(own, dtype=np.int64)[chunk.indices.to_numpy()])
    return np.array_equal(np.concatenate(codes), wanted.indices.to_numpy())


def _arrays(values: Array, shapes: Shapes) -> dict[str, Array]:
    """Arrays by name from their numbers in a row."""
    arrays, start = {}, 0
    for name in sorted(shapes):
        end = start + math.prod(shapes[name])
        arrays[name] = values[start:end].reshape(shapes[name])
        start = end
    return arrays


def _arrays_of_rows(table: Any, others: bytes | None, shapes: Shapes, name: str) -> dict[str, Array]:
    """Released rows, and what else was released from the metadata."""
    rows = np.column_stack([np.asarray(column, dtype=np.float64) for column in table.columns])
    rest = {array: list(shape) for array, shape in shapes.items() if array != name}
    return {name: rows.reshape(shapes[name]), **unpacked(others, rest)}
