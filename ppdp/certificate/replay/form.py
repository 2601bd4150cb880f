"""The form of a certificate: a JSON schema that ships with the package."""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

from ppdp.certificate.record import SINCE_SECOND, Record, read_as
from ppdp.exceptions import CertificateError

__all__ = ["NEWEST", "parse", "schema"]


FORM = re.compile("ppdp-certificate/([1-9][0-9]{0,3})")
NEWEST = 2


@cache
def schema(version: int = NEWEST) -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of certificates of one version of the form."""
    text = files("ppdp.certificate").joinpath("schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    if version == 1:
        loaded["properties"] = {name: one for name, one in loaded["properties"].items() if name not in SINCE_SECOND}
        loaded["required"] = [name for name in loaded["required"] if name not in SINCE_SECOND]
        loaded["properties"]["schema"] = {"const": "ppdp-certificate/1"}
    return loaded


@cache
def _validator(version: int) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    whole = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)  # not 1.0
    return extend(Draft202012Validator, type_checker=whole)(schema(version))


def parse(content: Any) -> Record:
    """Read a document by the schema of its version; no value is converted.

    Raises
    ------
    CertificateError
        If it does not have the form of a certificate.
    """
    from jsonschema.exceptions import best_match

    if not isinstance(content, dict) or "schema" not in content:
        raise CertificateError("this is not a ppdp certificate.")
    found = FORM.fullmatch(content["schema"]) if isinstance(content["schema"], str) else None
    if found is None:
        raise CertificateError("this is not a ppdp certificate.")
    if int(found[1]) > NEWEST:
        raise CertificateError(
            f"its form is {found[0]}, and this ppdp reads up to ppdp-certificate/{NEWEST}: a newer ppdp is needed.",
            fix="pip install --upgrade ppdp.",
        )
    error = best_match(_validator(int(found[1])).iter_errors(content))
    if error is not None:
        place = "/".join(str(part) for part in error.absolute_path) or "the document"
        raise CertificateError(
            f"{place} does not have the form of a certificate.", fix="use the file as it was issued."
        )
    return read_as(Record, content)
