"""Files at paths: each once, and all of them or none.

A folder that is read in part, and a file that is read twice, change how many rows a person has.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NoReturn

from ppdp.exceptions import InvalidInput

_HIDDEN = (".", "_")  # how names of files and folders begin that hold no rows, as other readers have it


def files_at(paths: Sequence[str]) -> list[str]:
    """Every file at some paths, of a glob or folder in the order of names; refused if there is none, or one twice."""
    files = [file for path in paths for file in _files_at(path)]
    check_distinct((_identity(file), file) for file in files)
    return files


def without_values(path: str) -> str:
    """A path, quoted, without the values by which rows may be parted into folders."""
    return repr(re.sub(r"=[^/\\\\]+", "=...", path))


def check_distinct(identified: Iterable[tuple[Any, str]]) -> None:
    """Refuse files, or parts of one, each with what it is to the system, of which two are the same."""
    seen: dict[Any, str] = {}
    for identity, name in identified:
        if identity in seen:
            twice = " and ".join(sorted({without_values(seen[identity]), without_values(name)}))
            what = f"rows would count twice: a file is named twice, {twice}."
            raise InvalidInput(what, fix="each file once; links to a file that is named, too, are the same file.")
        seen[identity] = name


def typed_by_cells() -> InvalidInput:
    """The error of readers that find the types of columns in cells."""
    what = "columns of CSV and JSON have the types that their first cells are of, and any other cell stops a fit."
    fix = "pyarrow.dataset.write_dataset(dataset, folder, format='parquet'), and the folder; or pd.read_csv(path)."
    return InvalidInput(what, fix=fix)


def check_fragments(fragments: Sequence[Any], schema: Any) -> None:
    """Refuse fragments of a dataset of which a cell says the types or stops the reader, or two hold the same rows."""
    forms = {getattr(getattr(one, "format", None), "default_extname", "") for one in fragments}
    if {"csv", "json"} & forms:
        raise typed_by_cells()
    if instants := [field.name for field in schema if "orc" in forms and "timestamp[" in str(field.type)]:
        what = (
            f"the column(s) {', '.join(instants)} of ORC hold instants, and one before 1677 or after 2262 stops a fit."
        )
        fix = "these rows as Parquet, by the program that wrote them; or dates without times."
        raise InvalidInput(what, fix=fix)
    files = [(_of_fragment(fragment), fragment) for fragment in fragments]
    shared = {identity for identity, times in Counter(identity for identity, _ in files).items() if times > 1}
    for identity in shared - {None}:  # parts of one file, which may be different row groups
        parts = [fragment for other, fragment in files if other == identity]
        groups = [[group.id for group in getattr(part, "row_groups", [])] or [None] for part in parts]
        check_distinct((group, part.path) for part, ids in zip(parts, groups) for group in ids)


def _of_fragment(fragment: Any) -> Any:
    """What the file of a fragment is to the system that holds it; None of rows in memory."""
    path, files = getattr(fragment, "path", None), getattr(fragment, "filesystem", None)
    if not path or files is None:
        return None
    while hasattr(files, "base_fs"):
        path, files = os.path.join(files.base_path, path), files.base_fs
    try:
        return _identity(path) if files.type_name == "local" else (files.type_name, path)
    except OSError:  # said where the file is read
        return path


def _identity(path: str) -> tuple[int, int]:
    """Device and number of a file, which all its hard and symbolic links share."""
    status = os.stat(path)
    return status.st_dev, status.st_ino


def _files_at(path: str) -> list[str]:
    if os.path.isdir(path):
        files = list(_within(path))
    elif glob.has_magic(path) and not os.path.lexists(path):
        _check_readable(path)
        matches = glob.glob(path, recursive=True)  # folders that ** stands for match, and so do their files
        files = [match for match in matches if not ("**" in path and os.path.isdir(match))]
    else:
        files = [path] if os.path.lexists(path) else []
    if not files:
        raise InvalidInput(f"there is no file at {path!r}.", fix="the path of a file, a folder or a glob.")
    for file in files:
        _check_file(file)
    return sorted(files)


def _within(folder: str) -> Iterator[str]:
    """Every file in a folder and its subfolders, but for hidden ones."""
    for place, folders, names in os.walk(folder, onerror=_unreadable):
        folders[:] = [name for name in folders if not name.startswith(_HIDDEN)]
        for name in folders:
            if os.path.islink(os.path.join(place, name)):
                _refuse(os.path.join(place, name), "is a link to a folder", "name that folder beside this one.")
        yield from (os.path.join(place, name) for name in names if not name.startswith(_HIDDEN))


def _check_readable(pattern: str) -> None:
    """Refuse a glob, some of whose folders cannot be listed: it would pass them over without a word."""
    fixed, *wild = _parts(pattern)
    root, depth = fixed or ".", None if "**" in wild else len(wild) - 1
    if not os.path.isdir(root):
        return
    for place, folders, _ in os.walk(root, onerror=_unreadable):
        level = 0 if place == root else os.path.relpath(place, root).count(os.sep) + 1
        folders[:] = [name for name in folders if not name.startswith(".") and (depth is None or level < depth)]


def _parts(pattern: str) -> list[str]:
    """A pattern in parts: the folder in front of the first one with a wildcard, and every part from there on."""
    wild: list[str] = []
    while glob.has_magic(pattern):
        pattern, part = os.path.split(pattern)
        wild.insert(0, part)
    return [pattern, *wild]


def _check_file(path: str) -> None:
    """Refuse what is neither a file nor a link to one."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        _refuse(path, "is a link to a file that is not there, or cannot be looked at", "take it away, or mend it.")
    if stat.S_ISDIR(mode):
        _refuse(path, "is a folder among the files of a glob", "the folder itself, or ** and the ending of the files.")
    if not stat.S_ISREG(mode):
        _refuse(path, "is neither a file nor a folder", "take it away, or name the files that hold rows.")


def _unreadable(error: OSError) -> NoReturn:
    _refuse(str(error.filename), "cannot be listed", "the right to read that folder; a part of the rows is not fitted.")


def _refuse(path: str, reason: str, fix: str) -> NoReturn:
    raise InvalidInput(f"{without_values(path)} {reason}.", fix=fix)
