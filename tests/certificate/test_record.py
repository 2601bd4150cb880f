"""The record says exactly what the document says, as the schema has it and the page on it describes it."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from issue_golden import FIGURES, FOLDER
from jsonschema import Draft202012Validator
from zoo import certificate, document, of_a_search, zoo

from ppdp.certificate.canonical import parse, schema
from ppdp.certificate.issue_record import OF_A_CHAIN, OF_THE_ISSUER, Issued, LedgerEntry, PartOf
from ppdp.certificate.record import (
    OF_A_FACT,
    OF_A_MODEL,
    OF_A_THRESHOLD,
    OF_SHARES,
    FactRecord,
    Record,
    ReleasedRecord,
    ReleaseRecord,
    SearchRecord,
    read_as,
    written,
)
from ppdp.core.adjacency import KINDS
from ppdp.exceptions import CertificateError

GOLDEN = sorted(path for path in FOLDER.glob("*/*.json") if path.name != FIGURES)
PLAIN = {str: "string", float: "number", int: "integer", bool: "boolean", NoneType: "null"}


def test_every_release_is_read_and_written_as_it_was():
    for path in GOLDEN:
        text = path.read_text("utf-8")
        record = parse(json.loads(text))
        assert json.dumps(written(record), indent=2, ensure_ascii=False) + "\n" == text, path
        assert (record.issued is None) == (record.schema == "ppdp-certificate/1"), path


@zoo
def test_what_is_issued_is_its_record(name):
    assert json.dumps(written(certificate(name).record)) == json.dumps(document(name))


def test_a_search_and_its_last_fit_too():
    whole, part = of_a_search().values()
    assert isinstance(whole.record.search, SearchRecord)
    assert isinstance(part.record.part_of, PartOf)
    assert written(part.record) == part.to_dict()


def of_schema(one):
    """A block of the schema, whatever leads to it."""
    if "$ref" in one:
        return schema()["$defs"][one["$ref"].split("/")[2]]
    return next((of_schema(other) for other in one.get("oneOf", ()) if other != {"type": "null"}), one)


def differences(kind, block, where="document"):
    """Where a record and its block of the schema do not say the same."""
    hints = get_type_hints(kind)
    names = {name.rstrip("_"): name for name in (field.name for field in dataclasses.fields(kind))}
    optional = {
        FactRecord: OF_A_FACT,
        Issued: OF_THE_ISSUER,
        ReleaseRecord: OF_A_THRESHOLD,
        LedgerEntry: OF_A_CHAIN,
        ReleasedRecord: OF_A_MODEL,
    }
    optional[Record] = OF_SHARES
    unsaid = set(optional.get(kind, ()))
    if names.keys() != block["properties"].keys() or names.keys() - unsaid != set(block["required"]):
        yield f"{where}: {names.keys() ^ block['properties'].keys()}"
    for key, one in block["properties"].items():
        yield from of_type(hints[names[key]], one, f"{where}.{key}")


def of_type(hint, one, where):
    if get_origin(hint) is UnionType:
        nullable = {"type": "null"} in one.get("oneOf", ()) or "null" in one.get("type", ())
        unsaid = (*OF_THE_ISSUER, *OF_A_FACT, *OF_A_THRESHOLD, *OF_A_CHAIN, *OF_A_MODEL, *OF_SHARES)
        said = where.rpartition(".")[2] in unsaid
        if not nullable and not said and hint != Issued | None:  # since the second form
            yield f"{where}: it is never null"
        yield from of_type(get_args(hint)[0], one, where)
    elif dataclasses.is_dataclass(hint):
        yield from differences(hint, of_schema(one), where)
    elif get_origin(hint) is tuple:
        yield from of_type(get_args(hint)[0], one["items"], f"{where}[]")
    elif hint in PLAIN:
        types = one.get("type", "string" if {"const", "enum"} & one.keys() else None)
        if PLAIN[hint] not in ([types] if isinstance(types, str) else types):
            yield f"{where}: {types} and not {PLAIN[hint]}"
    elif of_schema(one).get("type") != "object":
        yield f"{where}: an open mapping"


def test_records_are_those_of_the_schema():
    assert list(differences(Record, schema())) == []


@pytest.mark.parametrize("value", [1.0, True, "1", None])
def test_nothing_is_converted(value):
    content = document("seeded")
    content["mechanism"]["steps"] = value
    with pytest.raises(CertificateError, match="mechanism/steps does not have the form"):
        parse(content)


def test_nobody_can_change_it():
    record = certificate("on a ladder").record
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.epsilon = 0.1
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.steps[0].domain = {}
    assert isinstance(record.gate.ladder.rungs[0].parameters, MappingProxyType)
    with pytest.raises(TypeError):
        record.steps[0].domain["n_rows"] = 1
    assert isinstance(read_as(Record, document("row map")).steps[0].parameters["widths"], tuple)


# ---------------- the page describes every field, and no other


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
