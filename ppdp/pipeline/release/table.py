"""Released numbers as Arrow tables and Parquet files that carry their certificate."""

from __future__ import annotations

import base64
import binascii
import io
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.certificate import Certificate
from ppdp.certificate.share.export_rules import refuse_unsafe
from ppdp.certificate.share.files import pack_arrays, read_file, unpack_arrays, write_bytes
from ppdp.core.checks import path_of
from ppdp.exceptions import CertificateError, ExportError
from ppdp.pipeline.issue import content_hash

__all__ = ["read_parquet", "tabulated", "write_table"]

Array = NDArray[np.float64]
KEY, OTHERS = b"ppdp.certificate", b"ppdp.arrays"

CODECS = ("SNAPPY", "UNCOMPRESSED")  # ours; they expand at most some twenty times, others without limit
EXPANSION, SMALL = 1000, 2**24  # no table that was released is that much larger in memory than its file
_BYTES_OF_A_LINE = 40


def tabulated(certificate: Certificate, arrays: Mapping[str, Array]) -> Any:
    """One line per released number; arrays in the order of their names, each in C order.

    Of released rows one line per row and one column per feature; what else was released is in the metadata.

    Parameters
    ----------
    certificate : Certificate
        What the metadata hold.
    arrays : mapping of str to ndarray
        What was released.
    """
    import pyarrow as pa

    wide = _wide(certificate)
    if wide is not None:
        return _rows(certificate, dict(arrays), *wide)
    names = sorted(arrays)
    sizes = [arrays[name].size for name in names]
    columns = {
        "array": pa.array(np.repeat(np.array(names, dtype=object), sizes), pa.string()),
        "position": pa.array(np.concatenate([np.arange(size) for size in sizes]), pa.int64()),
        "value": pa.array(np.concatenate([arrays[name].ravel() for name in names]), pa.float64()),
    }
    cells = _cells(certificate)
    if cells is not None and len(cells[0]) == sum(sizes):
        columns |= {
            "column": pa.array(cells[0], pa.string()),
            "low": pa.array(cells[1], pa.float64()),
            "high": pa.array(cells[2], pa.float64()),
        }
    return pa.table(columns).replace_schema_metadata({KEY: certificate.to_json()})


def _cells(certificate: Certificate) -> tuple[list[str], list[float], list[float]] | None:
    """Column, lower and upper end of every cell, if what was released are histograms."""
    mechanism = certificate["mechanism"]
    if mechanism is None or not mechanism["formula"].endswith(".histogram"):
        return None
    grid, names = mechanism["parameters"], _features(certificate)
    found: tuple[list[str], list[float], list[float]] = ([], [], [])
    start = 0
    for column, size in zip(grid["columns"], grid["sizes"]):
        edges = grid["edges"][start : start + size]
        start += size
        found[0].extend([names[column]] * (size - 1))
        found[1].extend(edges[:-1])
        found[2].extend(edges[1:])
    return found


def _features(certificate: Certificate) -> list[str]:
    """Names of the columns at the input of the mechanism."""
    domain = ([certificate["entrance"], *certificate["steps"]][-1])["domain"]
    return list(domain.get("feature_names") or [f"x{i}" for i in range(domain["n_features"])])


def _wide(certificate: Certificate) -> tuple[str, list[str]] | None:
    """Name of the array of released rows, and of its columns; None if no rows were released."""
    mechanism = certificate["mechanism"]
    if mechanism is None or mechanism["formula"] != "query.rows":
        return None
    return f"{mechanism['name']}.answer", _features(certificate)


def _rows(certificate: Certificate, arrays: dict[str, Array], name: str, features: list[str]) -> Any:
    """Released rows as a table like the one that came in."""
    import pyarrow as pa

    columns = arrays.pop(name).reshape(-1, len(features)).T
    about = {KEY: certificate.to_json().encode()}
    if arrays:
        about[OTHERS] = base64.b64encode(pack_arrays(arrays))
    return pa.table([pa.array(column, pa.float64()) for column in columns], features).replace_schema_metadata(about)


def write_table(path: str | os.PathLike[str], table: Any) -> None:
    """Write a Parquet file whole or not at all."""
    import pyarrow.parquet as pq

    buffer = io.BytesIO()
    pq.write_table(table, buffer)
    write_bytes(path_of("path", path), buffer.getvalue())


def read_parquet(path: str | os.PathLike[str]) -> tuple[Any, Certificate]:
    """A released dataset and its certificate, both checked.

    Parameters
    ----------
    path : path-like
        What ``pipe.release_.to_parquet`` wrote.

    Returns
    -------
    table : pyarrow.Table
        As from ``pipe.release_.to_arrow``.
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
    import pyarrow as pa
    import pyarrow.parquet as pq

    failures = (pa.ArrowException, OSError, ValueError, TypeError, OverflowError, MemoryError)
    try:
        data = read_file(path_of("path", path))
    except OSError as error:
        raise ExportError(f"cannot read {os.fspath(path)!r}: {error.strerror}.") from None
    try:
        file = pq.ParquetFile(io.BytesIO(data))
        about, lines = dict(file.schema_arrow.metadata or {}), file.metadata.num_rows
    except failures:
        raise ExportError("this is not a Parquet file.") from None
    if KEY not in about:
        raise ExportError("the file carries no certificate.", fix="write it with pipe.release_.to_parquet.")
    certificate = verified(about[KEY])
    refuse_unsafe(certificate.record, conditional=True)
    shapes, wide = certificate["released"]["names"], _wide(certificate)
    whole = sum(math.prod(shape) for shape in shapes.values())
    if wide is not None:
        whole = math.prod(shapes[wide[0]]) // len(wide[1])
    if lines != whole or (wide is not None and file.metadata.num_columns != len(wide[1])):
        raise ExportError("the file holds another number of values than its certificate says.")
    schema = _schema(certificate, whole)
    _refuse_to_expand(file, schema, certificate, len(data))
    words = [field.name for field in schema if field.type == pa.string()]
    try:
        found = pq.ParquetFile(io.BytesIO(data), read_dictionary=words).read()
        if wide is None:
            arrays = _arrays(np.asarray(found["value"], dtype=np.float64), shapes)
        else:
            arrays = _arrays_of_rows(found, about.get(OTHERS), shapes, wide[0])
        expected = tabulated(certificate, arrays)
        same = content_hash(arrays) == certificate["released"]["sha256"] and _same(found, expected)
    except (*failures, KeyError):
        raise ExportError("the table is malformed.") from None
    if not same:
        raise ExportError("the numbers are not those that the certificate was issued for.")
    return expected, certificate


def _schema(certificate: Certificate, lines: int) -> Any:
    """Names and types of the columns of a released table."""
    import pyarrow as pa

    wide = _wide(certificate)
    if wide is not None:
        return pa.schema([(name, pa.float64()) for name in wide[1]])
    columns = [("array", pa.string()), ("position", pa.int64()), ("value", pa.float64())]
    cells = _cells(certificate)
    if cells is not None and len(cells[0]) == lines:
        columns += [("column", pa.string()), ("low", pa.float64()), ("high", pa.float64())]
    return pa.schema(columns)


def _refuse_to_expand(file: Any, schema: Any, certificate: Certificate, size: int) -> None:
    """Read nothing whose size in memory does not follow from the certificate and the size of the file.

    What a footer says of sizes anybody can forge, so none is believed. What is checked is that columns, physical types
    and numbers of values are those of the certificate, and that no codec can expand without limit. Words are then read
    as codes, so that one long word counts once.
    """
    about = file.metadata
    physical = {"string": "BYTE_ARRAY", "int64": "INT64", "double": "DOUBLE"}
    kinds = [(one.physical_type, one.max_repetition_level) for one in map(file.schema.column, range(about.num_columns))]
    groups = [about.row_group(i) for i in range(about.num_row_groups)]
    chunks = [(group.num_rows, group.column(i)) for group in groups for i in range(group.num_columns)]
    if not (
        file.schema_arrow.equals(schema)
        and kinds == [(physical[str(field.type)], 0) for field in schema]
        and sum(group.num_rows for group in groups) == about.num_rows
        and all(chunk.num_values == rows and chunk.compression in CODECS for rows, chunk in chunks)
    ):
        raise ExportError("the table has another form than pipe.release_.to_parquet gives it.")
    longest = max(map(len, [*certificate["released"]["names"], *_features(certificate)]))
    line = 8 * len(schema) if _wide(certificate) is not None else _BYTES_OF_A_LINE + longest
    if about.num_rows * line > EXPANSION * size + SMALL:
        raise ExportError("the table would be far larger than its file.")


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


def verified(text: str | bytes) -> Certificate:
    """A certificate whose derivation holds.

    Raises
    ------
    CertificateError
        If it is none, or does not verify.
    """
    certificate = Certificate.from_json(text)
    found = certificate.verify()
    if not found:
        raise CertificateError(f"the certificate does not verify: {' '.join(found.problems)}")
    return certificate


def _arrays(values: Array, shapes: Mapping[str, list[int]]) -> dict[str, Array]:
    """Arrays by name from their numbers in a row."""
    found, start = {}, 0
    for name in sorted(shapes):
        end = start + math.prod(shapes[name])
        found[name] = values[start:end].reshape(shapes[name])
        start = end
    return found


def _arrays_of_rows(table: Any, others: bytes | None, shapes: Mapping[str, list[int]], name: str) -> dict[str, Array]:
    """Released rows, and what else was released from the metadata."""
    rows = np.column_stack([np.asarray(column, dtype=np.float64) for column in table.columns])
    rest = {other: shape for other, shape in shapes.items() if other != name}
    try:
        packed = base64.b64decode(others or b"", validate=True)
    except binascii.Error:
        raise ValueError("base64") from None
    return {name: rows.reshape(shapes[name]), **(unpack_arrays(packed, rest) if rest else {})}
