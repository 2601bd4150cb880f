"""Released numbers as Arrow tables and Parquet files that carry their certificate."""

from __future__ import annotations

import base64
import binascii
import io
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ppdp.artefact.members import pack_arrays, read_file, unpack_arrays, write_bytes
from ppdp.certificate import Certificate
from ppdp.certificate.issue import content_hash
from ppdp.certificate.leaving import refuse_unsafe
from ppdp.exceptions import CertificateError, ExportError

__all__ = ["read_parquet", "tabulated", "write_table"]

Array = NDArray[np.float64]
KEY, OTHERS = b"ppdp.certificate", b"ppdp.arrays"


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
    write_bytes(Path(path), buffer.getvalue())


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
        data = read_file(Path(path))
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
    refuse_unsafe(certificate, conditional=True)
    shapes, wide = certificate["released"]["names"], _wide(certificate)
    whole = sum(math.prod(shape) for shape in shapes.values())
    if wide is not None:
        whole = math.prod(shapes[wide[0]]) // len(wide[1])
    if lines != whole or (wide is not None and file.metadata.num_columns != len(wide[1])):
        raise ExportError("the file holds another number of values than its certificate says.")
    try:
        found = file.read()
        if wide is None:
            arrays = _arrays(np.asarray(found["value"], dtype=np.float64), shapes)
        else:
            arrays = _arrays_of_rows(found, about.get(OTHERS), shapes, wide[0])
    except (*failures, KeyError):
        raise ExportError("the table is malformed.") from None
    expected = tabulated(certificate, arrays)
    same = content_hash(arrays) == certificate["released"]["sha256"]
    if not same or not found.equals(expected):
        raise ExportError("the numbers are not those that the certificate was issued for.")
    return expected, certificate


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
