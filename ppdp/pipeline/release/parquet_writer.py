"""What becomes of many rows, in a folder of Parquet files that is written part by part: a killed run is continued.

A part holds the same rows whoever writes it, and is there whole or not at all. The manifest says of which release and
which rows the parts are.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from ppdp.certificate.share.files import hashed, read_file, replacing, write_bytes, written
from ppdp.core.checks import choice
from ppdp.core.private_files import is_ours, locked
from ppdp.core.progress import progress
from ppdp.data.engine.source import BlockSource
from ppdp.data.frames import opened
from ppdp.data.parallel import PIECE
from ppdp.data.rows import Array
from ppdp.exceptions import ExportError, InvalidParameter
from ppdp.pipeline.prediction import Predictor, ReleasedMap

FORM, MANIFEST, KEY = "ppdp-rows/1", "_ppdp.json", b"ppdp.rows"
PART = 32 * PIECE  # rows of a file
WORDS = {"transform": "", "predict": "prediction", "predict_proba": "probability", "decision_function": "decision"}
_SHOWN, _END = 40, ".unfinished"  # letters of the target's name in that of the hidden folder, and how that ends
NOTE = "of every row, by what a release holds; no certificate covers it"


def write_parts(
    pipeline: Any, predictor: Predictor, source: BlockSource, target: Path, method: str | None, keep: tuple[str, ...]
) -> None:
    """Write a folder; see :meth:`ppdp.Pipeline.write_parquet`."""
    offered = [name for name in WORDS if hasattr(pipeline, name)]
    if not offered:
        raise InvalidParameter("this release maps no rows.", fix="a last step that transforms or predicts.")
    method = offered[0] if method is None else choice("method", method, offered)
    names = predictor.columns_of(source, keep)
    columns = _columns(pipeline, method)
    if len({*keep, *columns}) < len(keep) + len(columns):
        raise InvalidParameter("a column to keep has the name of a new one, or is named twice.", fix="rename it.")
    about = _about(pipeline, source, method, [*keep, *columns])
    if os.path.lexists(target):
        if _is_folder_of_ours(target) and _manifest(target) == about:
            return
        raise ExportError(f"{str(target)!r} is already there, of other rows or another release.", fix="another name.")
    task = partial(_block, *predictor.map_of(method), names, keep, columns, {KEY: f"{method} {NOTE}".encode()})
    pieces = source.pieces(PART)
    with written(target), _unfinished(target, about) as hidden:
        files = [hidden / f"part-{number:06}.parquet" for number in range(-(-source.n // PART))]
        for file, rows in zip(progress(files, "files"), pieces):
            if not _is_part_of_ours(file):
                _write(file, rows.over(task, [*names, *keep], len(names)))
        for file in set(hidden.iterdir()) - {*files, hidden / MANIFEST}:  # of a run that was killed
            file.unlink()


def _columns(pipeline: Any, method: str) -> list[str]:
    """Names of what a method gives."""
    if method == "transform":
        return [str(name) for name in pipeline.get_feature_names_out()]
    classes, word = getattr(pipeline, "classes_", ()), WORDS[method]
    several = method == "predict_proba" or (method == "decision_function" and len(classes) > 2)
    return [f"{word} of {label}" for label in classes] if several else [word]


def _about(pipeline: Any, source: BlockSource, method: str, columns: Sequence[str]) -> dict[str, Any]:
    """The manifest: of which release and which rows this is."""
    released = pipeline.certificate_.record.released
    rows = hashed(json.dumps([source.n, source.marks]).encode())
    return {
        "form": FORM,
        "released": released.sha256,
        "inference": released.inference,
        "method": method,
        "columns": list(columns),
        "rows": rows,
        "part": PART,
    }


def _manifest(folder: Path) -> Any:
    with suppress(OSError, ValueError, RecursionError, ExportError):
        return json.loads(read_file(folder / MANIFEST, 2**24))
    return None


@contextmanager
def _unfinished(target: Path, about: dict[str, Any]) -> Iterator[Path]:
    """A hidden folder, which becomes the target if all goes well: that of a run that was killed, or a new one.

    None that others made is taken: its name cannot be foreseen, and owner and mode are looked at once it is open.
    """
    begin = f".{target.name[:_SHOWN]}.{hashed(target.name.encode(errors='surrogateescape'))[:8]}."
    hidden, lock = None, None
    for place in sorted(target.parent.glob(f"{glob.escape(begin)}*{_END}")):
        with suppress(OSError):
            if not _is_folder_of_ours(place) or (held := locked(place)) is None:
                continue  # somebody else's, or of a process that writes it
            if hidden is None and _manifest(place) == about and os.path.samestat(os.fstat(held), os.lstat(place)):
                hidden, lock = place, held
                continue
            shutil.rmtree(place)  # parts with another manifest are of no use
            os.close(held)
    if hidden is None:
        hidden = Path(tempfile.mkdtemp(dir=target.parent, prefix=begin, suffix=_END))
        with suppress(OSError):
            lock = locked(hidden)
        write_bytes(hidden / MANIFEST, json.dumps(about, indent=2).encode())
    made = os.lstat(hidden)
    try:
        yield hidden
        if not os.path.samestat(made, os.lstat(hidden)):
            raise ExportError(f"somebody has moved {str(hidden)!r}.", fix="a folder where no one else may write.")
        os.rename(hidden, target)
    finally:
        if lock is not None:
            os.close(lock)


def _is_folder_of_ours(place: Path) -> bool:
    about = os.lstat(place)
    return stat.S_ISDIR(about.st_mode) and is_ours(about)


def _is_part_of_ours(file: Path) -> bool:
    """Whether a part is there that this process's owner has written, for nobody else."""
    if not os.path.lexists(file):
        return False
    about = os.lstat(file)
    return stat.S_ISREG(about.st_mode) and is_ours(about)


def _block(
    released: ReleasedMap,
    then: Callable[[Array], Any] | None,
    names: Sequence[str],
    keep: Sequence[str],
    columns: Sequence[str],
    note: dict[bytes, bytes],
    first: int,
    table: Any,
) -> Any:
    """A table of what is kept of a block, and of what becomes of it."""
    import pyarrow as pa

    values = released(opened(table.select(list(names))))
    result = np.asarray(values if then is None else then(values))
    new = [pa.array(column) for column in result.reshape(len(result), -1).T]
    return pa.table([*(table[name] for name in keep), *new], [*keep, *columns]).replace_schema_metadata(note)


def _write(path: Path, blocks: Any) -> None:
    import pyarrow.parquet as pq

    first = next(blocks)
    with replacing(path) as file, pq.ParquetWriter(file, first.schema) as writer:
        writer.write_table(first)
        for block in blocks:
            writer.write_table(block)
