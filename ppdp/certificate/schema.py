"""The form of a certificate: a JSON schema that ships with the package."""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

from ppdp.exceptions import CertificateError

__all__ = ["check_form", "schema"]


@lru_cache(maxsize=1)
def schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of certificates."""
    loaded: dict[str, Any] = json.loads(files("ppdp.certificate").joinpath("schema.json").read_text(encoding="utf-8"))
    return loaded


@lru_cache(maxsize=1)
def _validator() -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    whole = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)  # not 1.0
    return extend(Draft202012Validator, type_checker=whole)(schema())


def check_form(content: Any) -> None:
    """Check a document against the schema.

    Raises
    ------
    CertificateError
        If it does not have the form of a certificate.
    """
    from jsonschema.exceptions import best_match

    if not isinstance(content, dict) or "schema" not in content:
        raise CertificateError("this is not a ppdp certificate.")
    error = best_match(_validator().iter_errors(content))
    if error is not None:
        place = "/".join(str(part) for part in error.absolute_path) or "the document"
        raise CertificateError(
            f"{place} does not have the form of a certificate.", fix="use the file as it was issued."
        )
