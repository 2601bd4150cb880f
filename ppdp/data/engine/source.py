"""What an engine is to everything else: rows in blocks, as often as they are asked for."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Self, TypeVar

from ppdp.core.progress import paced
from ppdp.data.parallel import PIECE, block_rows, in_parallel
from ppdp.exceptions import InvalidInput

T = TypeVar("T")


class BlockSource(ABC):
    """Rows that an engine holds. The same rows in the same order on every pass, or an error."""

    schema: Any  # of pyarrow: public names and types of the columns
    n: int  # number of rows
    untyped: Sequence[str] = ()  # columns of objects, text or numbers by what their cells hold: they are not read
    local = True  # whether blocks come to this process, in their order; else only results of tasks do
    keeps: Any = False  # whether some of the rows can be taken again

    @abstractmethod
    def tables(self, names: Sequence[str]) -> Iterator[Any]:
        """All rows as pyarrow tables, split anywhere; :class:`RowsChanged` if rows or types are not those before."""

    def over(
        self, task: Callable[[int, Any], T], names: Sequence[str], width: int, merge: Callable[[T, T], T] | None = None
    ) -> Iterator[T]:
        """Results of a task for every block, each once; if the source is not local, in any order, some of them merged.

        A block is a table of as many rows as :meth:`block_rows` says, counted from the first row; the last may be
        shorter. So no partition shows in a bit, though a product of matrices rounds by where a row stands in a block. A
        task gets the number of its first row, and the block. It and its results can be pickled by cloudpickle, so that
        an engine may run it where the rows are.
        """
        rows = self.block_rows(names)
        blocks = enumerate(aligned(self.tables(names), rows))
        results = in_parallel(lambda block: task(block[0] * rows, block[1]), blocks, width)
        return paced(results, self.n, rows)

    def block_rows(self, names: Sequence[str]) -> int:
        """How many rows of these columns a block has: by their public number, so that it fits memory."""
        return block_rows(len(names)) if self.local else PIECE

    def pieces(self, size: int) -> Iterator[BlockSource]:
        """The rows as sources of so many each, that are read apart; :class:`InvalidInput` if they cannot be."""
        raise InvalidInput("these rows are read from the first to the last, or elsewhere.", fix="files in Parquet.")

    def held(self, task: Callable[[int, Any], Any], names: Sequence[str], width: int) -> BlockSource:
        """The rows that a task makes of every block, which are kept where they are; of a source that is not local."""
        raise InvalidInput("these rows come to this process.", fix="a private file, which keeps them.")

    def taken(self, batch: Any) -> Any:
        """Some of the rows that are held, ascending by their numbers: in memory, or held in turn."""
        raise InvalidInput("these rows are read from the first to the last.", fix="rows that are held.")

    def grouped(
        self, task: Callable[[int, Any], Any], names: Sequence[str], width: int, parts: int, compare: Any
    ) -> Any:
        """Of a source that is not local: see :func:`ppdp.data.engine.external_join.grouped`."""
        what = "these rows come to this process."
        raise InvalidInput(what, fix="a private file, in which rows with equal keys meet.")

    @property
    def marks(self) -> Any:
        """What changes where somebody writes to the rows, as far as that is known without reading them."""
        return None

    def close(self) -> None:  # noqa: B027  most have nothing to remove
        """Remove whatever was made to read the rows twice."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def aligned(tables: Iterable[Any], rows: int = PIECE) -> Iterator[Any]:
    """The same rows in tables of so many, but for the last one; nothing is copied."""
    import pyarrow as pa

    waiting: list[Any] = []
    held = 0
    for table in tables:
        waiting.append(table)
        held += table.num_rows
        while held >= rows:
            whole = pa.concat_tables(waiting)
            yield whole.slice(0, rows)
            waiting, held = [whole.slice(rows)], held - rows
    if held:
        yield pa.concat_tables(waiting)
