"""Pipeline files as plain data: TOML or YAML, checked against the schema that ships with the package."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ppdp.certificate.canonical import shipped
from ppdp.cli.data_files import ARROW, CSV, PARQUET
from ppdp.cli.output import Misuse, refuse, suggestion
from ppdp.core.adjacency import KINDS, Replace
from ppdp.exceptions import ExportError

SUFFIXES = (".toml", ".yaml", ".yml")
_MOST_BYTES = 2**26
_MOST_REPEATED = 10_000  # entries that references of YAML may stand for
_SURROGATE = re.compile("[\ud800-\udfff]")
_KINDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "number": "a number",
    "object": "a table",
    "string": "text",
}
_GONE = {
    "target": 'label = "COLUMN".',
    "person": 'groups = "COLUMN" here, and adjacency = {person = ROWS} in [domain].',
    "engine": "leave it out and pass --engine.",
    **dict.fromkeys(("sep", "decimal", "thousands"), "pandas.read_csv(path, sep=..., ...).to_csv(name, index=False)."),
    "user_level": "person = ROWS, as many of each person at most.",
    "ledger": "leave it out and pass --ledger PATH.",
    "random_state": "leave it out: seeded noise protects no one, so it is never exported.",
}
_OF_COLUMNS = ("drop", "categories", "one_hot")  # keys of [data] in files of earlier versions


def schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of pipeline files, with the keys of every adjacency."""
    found = shipped("ppdp.cli", "pipeline.schema.json")
    adjacency = found["properties"]["domain"]["properties"]["adjacency"]["properties"]
    for key in (key for keys, kind in KINDS.items() if kind is not Replace for key in keys):
        adjacency.setdefault(key, {})  # its class checks the value
    return found


def read_document(path: Path, *steps: Mapping[str, Any]) -> dict[str, Any]:
    """The content of a pipeline file, with these steps if it has none, of the form that the schema asks for."""
    if path.name.lower().endswith((*CSV, *PARQUET, *ARROW)):
        table = shlex.quote(str(path))
        fix = f"`ppdp init {table} > study.toml`, fill it in; then this command with `study.toml --data {table}`."
        refuse("is a file of rows, not a pipeline file.", place=str(path), fix=fix)
    content = read_tables(path, "a pipeline file", "write [[steps]] with name and use; see `ppdp help plan`.")
    if steps:
        content.setdefault("steps", list(steps))
    check_form(content, path, schema())
    return content


def read_tables(path: Path, what: str, fix: str) -> dict[str, Any]:
    """The content of a file in TOML or YAML, if JSON has all of it; ``what`` and ``fix`` are for messages."""
    if path.suffix not in SUFFIXES:
        what = f"{what} ends in .toml, .yaml or .yml."
        refuse(what, place=str(path), fix="rename it.")
    from ppdp.certificate.share.files import read_file

    try:
        text = read_file(Path(os.path.realpath(path)), _MOST_BYTES).decode("utf-8").replace("\r\n", "\n")
    except OSError as error:
        refuse(f"cannot be read: {error.strerror}.", place=str(path), fix=f"the path of {what}.")
    except ExportError:
        refuse("is no ordinary file, or too large.", place=str(path), fix=f"the path of {what}.")
    except UnicodeDecodeError:
        refuse("is not UTF-8 text.", place=str(path), fix="save it as UTF-8.")
    content = _toml(text, path) if path.suffix == ".toml" else _yaml(text, path)
    if not isinstance(content, dict) or not content:
        refuse("holds no tables.", place=str(path), fix=fix)
    _refuse_odd_values(content, path)
    return content


def _toml(text: str, path: Path) -> Any:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, where = str(error).partition(" (at ")
        fix = "correct the line; text and names with blanks or accents in quotes, lists in [ ], a decimal point,"
        fix = f"{fix} true and false in small letters."
        refuse(f"is not TOML: {what}.", place=f"{path}, {where.rstrip(')')}" if where else str(path), fix=fix)
    except (ValueError, RecursionError):
        refuse("a number is too long, or nested too deeply.", place=str(path), fix="plain tables, lists and numbers.")


def _yaml(text: str, path: Path) -> Any:
    try:
        import yaml
    except ImportError:
        what = "YAML needs the package PyYAML."
        refuse(what, place=str(path), fix="pip install 'ppdp[yaml]', or write the file as TOML.")
    with _yaml_errors(path):
        node = yaml.compose(text, Loader=yaml.SafeLoader)
    _refuse_repetition(node, path)
    with _yaml_errors(path):
        return yaml.safe_load(text)


@contextlib.contextmanager
def _yaml_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # PyYAML lets pass whatever Python raises: a KeyError for `!!bool x`
        mark = getattr(error, "problem_mark", None)
        refuse(
            f"is not YAML: {getattr(error, 'problem', None) or 'it cannot be read'}.",
            place=str(path) if mark is None else f"{path}, line {mark.line + 1}, column {mark.column + 1}",
            fix="correct the line; what belongs together has the same indentation.",
        )


def _refuse_repetition(node: Any, path: Path) -> None:
    """YAML itself would take the last of two equal keys, and follow references without end."""
    todo, seen, repeated = [node], set(), 0
    while todo:
        one = todo.pop()
        repeated += id(one) in seen
        seen.add(id(one))
        if repeated > _MOST_REPEATED:
            fix = "write out what they stand for."
            refuse("its references (*name) stand for too many entries.", place=str(path), fix=fix)
        if getattr(one, "id", None) == "sequence":
            todo += one.value
        if getattr(one, "id", None) == "mapping":
            _refuse_equal_keys(one, path)
            todo += [part for pair in one.value for part in pair]


def _refuse_equal_keys(node: Any, path: Path) -> None:
    keys = [key for key, _ in node.value if isinstance(key.value, str)]
    times = Counter(key.value for key in keys)
    for key in keys:
        if times[key.value] > 1:
            what = f"the key {key.value!r} is there twice."
            refuse(what, place=f"{path}, line {key.start_mark.line + 1}", fix="leave one of them out.")


def _refuse_odd_values(value: Any, path: Path, keys: tuple[str | int, ...] = ()) -> None:
    """Keys are text, text is UTF-8, whole numbers have 64 bits; YAML and TOML have others."""
    if len(keys) > 20:
        refuse("is nested too deeply.", place=str(path), fix="write plain tables and lists.")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        refuse("a whole number is too long.", place=place_of(path, keys), fix="at most 18 digits.")
    if isinstance(value, str) and _SURROGATE.search(value):
        refuse("holds half a character.", place=place_of(path, keys), fix="write the character itself, in UTF-8.")
    items = enumerate(value) if isinstance(value, list) else ()
    for key, inner in value.items() if isinstance(value, Mapping) else items:
        if isinstance(value, Mapping):
            if not isinstance(key, str):
                refuse(f"the key {key!r} is not text.", place=str(path), fix=f'write "{key}".')
            _refuse_odd_values(key, path, keys)
        _refuse_odd_values(inner, path, (*keys, key))


def place_of(path: Path, keys: Any) -> str:
    """``FILE: steps[2].min_std``; positions count from 0."""
    text = ""
    for key in keys:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
    return f"{path}: {text}" if text else str(path)


def check_form(content: dict[str, Any], path: Path, schema: Mapping[str, Any]) -> None:
    """Refuse the first thing, in the order of the file, that the schema does not allow."""
    from jsonschema import Draft202012Validator

    order = {name: position for position, name in enumerate(content)}
    found = sorted(
        Draft202012Validator(schema).iter_errors(content),
        key=lambda e: (order.get(next(iter(e.absolute_path), ""), -1), [str(key) for key in e.absolute_path]),
    )
    if found:
        raise _misuse(found[0], path)


def _misuse(error: Any, path: Path) -> Misuse:
    """What is wrong in words; a pipeline file is public, so its values may be shown."""
    keys, value, wanted = list(error.absolute_path), error.instance, error.validator_value
    if error.validator == "additionalProperties":
        known = error.schema.get("properties", {})
        key = next(key for key in value if key not in known)
        if keys == ["data"] and key in _OF_COLUMNS:
            fix = '[columns] with a line for every column: id = "drop", sex = ["F", "M"], age = [0, 110].'
            return Misuse(f"{key} is declared in [columns] now.", place=place_of(path, [*keys, key]), fix=fix)
        tables = schema()["properties"]
        own = next((f"{key} in [{name}]." for name, one in tables.items() if key in one.get("properties", {})), None)
        own = f"[{key}] in a line of its own, a table behind this one." if key in tables else own
        fix = _GONE.get(key) or own or suggestion(key, known)
        return Misuse(f"the key {key!r} is unknown.", place=place_of(path, [*keys, key]), fix=fix)
    if error.validator == "required":
        missing = next(key for key in wanted if key not in value)
        return Misuse(
            f"{missing!r} is missing.", place=place_of(path, keys), fix=_MISSING.get(missing, f"add {missing} = ...")
        )
    other = (f"{value!r} is not allowed here", "see `ppdp help plan`")
    what, fix = _WORDS[error.validator](value, wanted) if error.validator in _WORDS else other
    fix = _OF_A_COLUMN if keys[:1] == ["columns"] else fix
    return Misuse(f"{what}.", place=place_of(path, keys), fix=fix if fix.endswith(("?", ".")) else f"{fix}.")


_OF_A_COLUMN = (
    'NAME = [low, high], ["a", "b"], {private = 20}, {words = 256} or "drop"; a NAME with a point or a blank in quotes'
)
_MISSING = {
    "steps": 'add [[steps]] with use = "StandardScaler" or another class.',
    "use": 'add use = "StandardScaler" or another class.',
}


def _type(value: Any, wanted: Any) -> tuple[str, str]:
    kinds = [wanted] if isinstance(wanted, str) else list(wanted)
    must = " or ".join(_KINDS[kind] for kind in kinds)
    fix = "write [[steps]], in two brackets" if isinstance(value, dict) and "use" in value else f"write {must}"
    if isinstance(value, str) and {"number", "integer"} & set(kinds):
        with contextlib.suppress(ValueError):
            number = float(value)
            shown = int(number) if "number" not in kinds and number.is_integer() else number
            fix = f"write {shown!r} without quotes" + ", and in YAML with a point, as 1.0e-6" * ("number" in kinds)
    elif kinds == ["array"] and not isinstance(value, (dict, list)):
        fix = f"write [{json.dumps(value)}]"
    elif kinds == ["string"] and isinstance(value, list) and value:
        fix = f"write {json.dumps(value[0])}, without brackets"
    elif kinds == ["object"]:
        fix = "write a table, {KEY = VALUE}, as `ppdp help plan` shows it"
    return f"must be {must}, got {value!r}", fix


def _enum(value: Any, wanted: Any) -> tuple[str, str]:
    options = ", ".join(repr(option) for option in wanted)
    return f"must be one of {options}, got {value!r}", suggestion(str(value), wanted)


def _limit(word: str) -> Callable[[Any, Any], tuple[str, str]]:
    return lambda value, wanted: (f"must be {word} {wanted:g}, got {value!r}", f"a number {word} {wanted:g}")


_WORDS: dict[str, Callable[[Any, Any], tuple[str, str]]] = {
    "enum": _enum,
    "exclusiveMaximum": _limit("below"),
    "exclusiveMinimum": _limit("above"),
    "maxLength": lambda value, wanted: (f"is too long ({len(value)} letters)", f"at most {wanted} letters"),
    "maxItems": lambda value, wanted: (f"holds {len(value)} entries", f"give at most {wanted}"),
    "maximum": _limit("at most"),
    "minItems": lambda value, wanted: (f"holds {len(value)} entries", f"give at least {wanted}"),
    "minLength": lambda value, wanted: ("is empty", "write a name, or leave the line out"),
    "minimum": _limit("at least"),
    "pattern": lambda value, wanted: (
        f"{value!r} holds a point, '__' or a control character",
        'a plain word, as in name = "scale"',
    ),
    "type": _type,
    "uniqueItems": lambda value, wanted: (f"holds an entry twice: {value!r}", "leave one of them out"),
}
