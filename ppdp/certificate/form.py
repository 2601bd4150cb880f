"""Whether a document has the form that a JSON schema describes: yes or no, in a small part of jsonschema's time."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache, reduce
from operator import getitem
from typing import Any

Test = Callable[[Any], bool]

_NUMBERS = (int, float)
_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": _NUMBERS,
    "object": (dict,),
    "string": (str,),
}
_SAYS_NOTHING = {"$defs", "$id", "$schema", "description", "title"}
_LIMITS: dict[str, tuple[tuple[type, ...], Callable[[Any, Any], bool]]] = {
    "exclusiveMaximum": (_NUMBERS, lambda value, limit: value < limit),
    "exclusiveMinimum": (_NUMBERS, lambda value, limit: value > limit),
    "maxItems": ((list,), lambda value, limit: len(value) <= limit),
    "maxLength": ((str,), lambda value, limit: len(value) <= limit),
    "maximum": (_NUMBERS, lambda value, limit: value <= limit),
    "minItems": ((list,), lambda value, limit: len(value) >= limit),
    "minLength": ((str,), lambda value, limit: len(value) >= limit),
    "minimum": (_NUMBERS, lambda value, limit: value >= limit),
    "pattern": ((str,), lambda value, pattern: re.search(pattern, value) is not None),
    "required": ((dict,), lambda value, names: all(name in value for name in names)),
}


def quick_test(schema: Mapping[str, Any]) -> Test:
    """Make a test of whether a value has a form, to be asked before jsonschema is.

    What it passes, jsonschema passes. It may fail values that no JSON file holds, as NaN and objects of other classes.

    Parameters
    ----------
    schema : mapping
        A JSON schema (draft 2020-12) whose alternatives (``oneOf``) differ in their types. An integer is one that is
        written as such. A keyword that is not known here raises :class:`NotImplementedError`.

    Returns
    -------
    callable
        Takes a value, gives true or false.
    """

    @cache
    def named(pointer: str) -> Test:
        return _test(reduce(getitem, pointer.split("/")[1:], schema), named)

    return _test(schema, named)


def _test(form: Any, named: Callable[[str], Test]) -> Test:
    if isinstance(form, bool):
        return lambda _: form
    tests = [_keyword(word, rule, form, named) for word, rule in form.items() if word not in _SAYS_NOTHING]

    return tests[0] if len(tests) == 1 else lambda value: all(test(value) for test in tests)


def _keyword(word: str, rule: Any, form: Mapping[str, Any], named: Callable[[str], Test]) -> Test:
    if word in _LIMITS:
        limited, holds = _LIMITS[word]
        return lambda value: type(value) not in limited or holds(value, rule)
    match word:
        case "type":
            kinds = {kind for name in ([rule] if isinstance(rule, str) else rule) for kind in _TYPES[name]}
            return lambda value: type(value) in kinds
        case "const" | "enum":
            texts = [rule] if word == "const" else rule
            return lambda value: type(value) is str and value in texts
        case "$ref":
            return lambda value: named(rule)(value)
        case "not":
            test = _test(rule, named)
            return lambda value: not test(value)
        case "oneOf":
            ways = [_test(one, named) for one in rule]
            return lambda value: sum(way(value) for way in ways) == 1
        case "prefixItems":
            first = [_test(one, named) for one in rule]
            return lambda value: type(value) is not list or all(test(one) for test, one in zip(first, value))
        case "items":
            each, begin = _test(rule, named), len(form.get("prefixItems", ()))
            return lambda value: type(value) is not list or all(map(each, value[begin:]))
        case "properties":
            known = {name: _test(one, named) for name, one in rule.items()}
            return lambda value: (
                type(value) is not dict or all(known[name](one) for name, one in value.items() if name in known)
            )
        case "additionalProperties":
            other, names = _test(rule, named), form.get("properties", {}).keys()
            return lambda value: (
                type(value) is not dict or all(other(one) for name, one in value.items() if name not in names)
            )
    raise NotImplementedError(f"{word} in a JSON schema")
