"""The page on the certificate describes every field of its schema, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from zoo import certificate

from ppdp.certificate.canonical import schema
from ppdp.core.adjacency import KINDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "certificate.md").read_text("utf-8")
DEFINITIONS = {"The document": schema(), **{f"`{name}`": form for name, form in schema()["$defs"].items()}}


def described(heading: str) -> list[str]:
    """The fields in the table below a heading; a field without words does not count."""
    (section,) = re.findall(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", PAGE, flags=re.M | re.S)
    return re.findall(r"^\| `([^`]+)` \| \S.+ \|$", section, flags=re.M)


def fields(form: dict[str, Any], prefix: str = "") -> Iterator[str]:
    """Names of the properties of a form, and of forms that stand inside it without a name of their own."""
    form = next(one for one in form.get("oneOf", [form]) if one.get("type") != "null")
    form = form.get("items", form) if form.get("type") == "array" else form
    for name, inner in form.get("properties", {}).items():
        yield f"{prefix}{name}"
        if name == "adjacency":  # whose keys are those of its classes: test_the_keys_of_an_adjacency_are_described
            continue
        yield from fields(inner, f"{prefix}{name}{'[]' if inner.get('type') == 'array' else ''}.")
    if "properties" in form and isinstance(form.get("additionalProperties"), dict):
        yield f"{prefix}*"


@pytest.mark.parametrize("heading", DEFINITIONS)
def test_every_field_is_described_once(heading):
    assert sorted(described(heading)) == sorted(fields(DEFINITIONS[heading]))


def test_the_keys_of_an_adjacency_are_described_where_it_is_defined():
    page = (ROOT / "docs" / "theory" / "distance.md").read_text("utf-8")
    keys = schema()["$defs"]["domain"]["properties"]["adjacency"]["properties"]
    assert re.findall(r"^\| `(\w+)` \| .*\| \S.+ \|$", page.split("As JSON")[1].split("\n\n")[1], flags=re.M) == [*keys]
    assert {*keys} == {key for known in KINDS for key in known} - {"replace"}  # which the number of rows says


def test_every_field_is_found():
    """The walk sees what an issued certificate holds."""
    assert {*certificate("gated, sum").to_dict()} <= {*fields(schema())}
    assert {"facts[].origin", "total.parts[].kind", "released.sha256"} <= {*fields(schema())}
    assert "conditions[].tested" in {*fields(schema()["$defs"]["step"])}


def test_the_file_of_a_signature_is_described():
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    signature = certificate("unconditional").sign(Ed25519PrivateKey.generate())
    assert described("The signature") == re.findall(r'^  "(\w+)":', signature.to_json(), flags=re.M)


def test_the_schema_is_one():
    Draft202012Validator.check_schema(schema())
    assert schema()["properties"]["schema"]["const"] in PAGE
