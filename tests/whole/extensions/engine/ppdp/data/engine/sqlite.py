"""Rows of a table in an SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from ppdp.data.engine.source import BlockSource
from ppdp.data.parallel import PIECE
from ppdp.exceptions import RowsChanged

TYPES = {"REAL": "float64", "INTEGER": "int64"}


@dataclass(frozen=True)
class SqliteTable:
    """A table, by the path of its file and its name."""

    path: str
    name: str


def opened(data: Any) -> BlockSource | None:
    """A source for an :class:`SqliteTable`."""
    return SqliteSource(data) if isinstance(data, SqliteTable) else None


class SqliteSource(BlockSource):
    """Columns of numbers of a table that no process writes to."""

    def __init__(self, table: SqliteTable) -> None:
        import pyarrow as pa

        self.table = table
        with closing(sqlite3.connect(table.path)) as file:
            columns = file.execute("SELECT name, type FROM pragma_table_info(?)", [table.name]).fetchall()
            ((self.n,),) = file.execute(f"SELECT COUNT(*) FROM {_quoted(table.name)}")
        self.schema = pa.schema([(name, TYPES[kind]) for name, kind in columns])

    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        import pyarrow as pa

        schema, seen = pa.schema([self.schema.field(name) for name in names]), 0
        columns = ", ".join(map(_quoted, names))
        with closing(sqlite3.connect(self.table.path)) as file:
            rows = file.execute(f"SELECT {columns} FROM {_quoted(self.table.name)} ORDER BY rowid")
            while block := rows.fetchmany(PIECE):
                seen += len(block)
                yield pa.table([pa.array(column, field.type) for column, field in zip(zip(*block), schema)], schema)
        if seen != self.n:
            raise RowsChanged("the rows of a table changed between two passes.", fix="fit a copy of the file.")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
