"""The record says exactly what the document says, as the schema has it, and nobody can change it."""

import dataclasses
import json
from types import MappingProxyType, NoneType, UnionType
from typing import get_args, get_origin, get_type_hints

import pytest
from issue_golden import FIGURES, FOLDER
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
