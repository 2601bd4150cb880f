"""A certificate as JSON, of which nothing can be taken in two ways: its form, how it is read, how it is hashed."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from ppdp.certificate.record import Record, read_as, unknown_to
from ppdp.exceptions import CertificateError

FORM = re.compile("ppdp-certificate/([1-9][0-9]{0,3})")
NEWEST = 3


def strict_json(text: str | bytes) -> Any:
    """Read JSON without NaN, infinity or repeated keys; anything else is a ValueError or a RecursionError."""
    return json.loads(text, parse_float=_finite, parse_constant=_no_constant, object_pairs_hook=_no_repetition)


def digest(content: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON form of the claim: all but the digest itself and the block ``issued``."""
    return _sha256(without(content, "digest", "issued"))


def seal(content: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON form of all but the digest: what a signature covers."""
    return _sha256(without(content, "digest"))


def copied(value: Any) -> Any:
    """A copy of a JSON document, ten times as fast as one of any object."""
    if type(value) in (str, float, int):
        return value
    if type(value) is dict:
        return {name: copied(one) for name, one in value.items()}
    if type(value) is list:
        return [copied(one) for one in value]
    return value if isinstance(value, (str, int, float, type(None))) else copy.deepcopy(value)


def without(content: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """A document but for some of its fields."""
    return {name: value for name, value in content.items() if name not in names}


def _no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError("1e400 is read as infinity")
    return value


def _no_constant(_: str) -> float:
    raise ValueError("NaN and infinity are not JSON")


def _sha256(body: dict[str, Any]) -> str:
    canonical = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


@cache
def shipped(package: str, name: str) -> dict[str, Any]:
    """A JSON document that ships with a package."""
    document: dict[str, Any] = json.loads(files(package).joinpath(name).read_text(encoding="utf-8"))
    return document


@cache
def schema(version: int = NEWEST) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of certificates of one version of the form; it ships with the package."""
    loaded = {**shipped("ppdp.certificate", "schema.json")}
    name = f"ppdp-certificate/{version}"
    if unknown := unknown_to(name):
        loaded["required"] = [one for one in loaded["required"] if one not in unknown]
        loaded["properties"] = without(loaded["properties"], *unknown) | {"schema": {"const": name}}
    return loaded


@cache
def _validator(version: int) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    whole = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)  # not 1.0
    return extend(Draft202012Validator, type_checker=whole)(schema(version))


def parse(content: Any) -> Record:
    """Read a document by the schema of its version, of which no value is converted; refused if it has another form."""
    from jsonschema.exceptions import best_match

    name = content.get("schema") if isinstance(content, dict) else None
    found = FORM.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        raise CertificateError("this is not a ppdp certificate.")
    version = int(found[1])
    if version > NEWEST:
        what = f"its form is {name}, and this ppdp reads up to ppdp-certificate/{NEWEST}: a newer ppdp is needed."
        raise CertificateError(what, fix="pip install --upgrade ppdp.")
    error = best_match(_validator(version).iter_errors(content))
    if error is not None:
        place = "/".join(map(str, error.absolute_path)) or "the document"
        fix = "use the file as it was issued."
        raise CertificateError(f"{place} does not have the form of a certificate.", fix=fix)
    return read_as(Record, content)
