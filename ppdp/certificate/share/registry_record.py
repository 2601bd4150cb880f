"""A record for the OpenDP Deployments Registry: what a certificate knows, and what people must add."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from ppdp.certificate.canonical import shipped
from ppdp.certificate.pages.derivation import is_model, law_of, only_the_last
from ppdp.certificate.pages.interpretation import rho
from ppdp.certificate.pages.renderers import rendered
from ppdp.certificate.pages.statement import Topic
from ppdp.certificate.pages.statements import view_of
from ppdp.certificate.record import Record
from ppdp.certificate.replay.rules import refuse_unsafe
from ppdp.core.adjacency import Adjacency
from ppdp.core.formula import FORMULAS, GAUSSIAN
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.losses import Part

HUMAN_TIER_3 = {
    "deployment_model": ("trust_assumptions", "actors", "release_type", "data_source_type"),
    "implementation": ("justification",),
}


class Registered:
    """What a draft is made of."""

    __slots__ = ()

    def _held(self, otherwise: str) -> Record:
        raise NotImplementedError

    def to_registry_record(
        self,
        *,
        name: str,
        curators: Mapping[str, str],
        description: str,
        intended_use: str,
        region: str,
        publication_date: Any,
        authors: Sequence[str],
        product_type: str | None = None,
        further: Mapping[str, Mapping[str, Any]] | None = None,
        conditional: bool = False,
    ) -> dict[str, Any]:
        """A draft for the OpenDP Deployments Registry: ``docs/guides/export.md``.

        Variant, unit, parameters, mechanisms, composition and what is not covered follow from the certificate; the rest
        only people know.

        Parameters
        ----------
        name, description, intended_use, region, publication_date, product_type : str
            Of what is published: what for, whose laws apply, the day of the first publication (YYYY-MM-DD), and one of
            the registry's kinds, such as "Dataset"; by default what follows from the last step.
        curators : mapping of str to str
            Who publishes it: names, each with "Government", "Industry" or "Nonprofit".
        authors : sequence of str
            Who writes the record.
        further : mapping of str to mapping, optional
            Further fields of the registry by section, such as ``{"implementation": {"justification": "..."}}``.
        conditional : bool, default=False
            Whether you know that the certificate is CONDITIONAL.

        Returns
        -------
        dict
            For ``yaml.safe_dump`` or ``json.dump``; its status is "Draft".

        Raises
        ------
        CertificateError, ExportError, InvalidParameter
            If the certificate does not hold; if it may not leave as what it is; if the registry would not read a field,
            or ``further`` says otherwise than the certificate.
        """
        record = self._held(", so it gets no record")
        refuse_unsafe(record, conditional=conditional)
        day, listed = _published(publication_date, curators)
        basic = {
            "name": name,
            "data_curators": listed,
            "description": description,
            "intended_use": intended_use,
            "data_product_type": product_type or _product(record),
            "data_product_region": region,
            "publication_date": day,
        }
        administrative = {"status": "Draft", "registry_authors": list(authors)}
        deployment = _joined({"basic": basic, **_known(record), "administrative": administrative}, further or {})
        if evidence := {**deployment["administrative"].get("evidence_sources", {}), **_evidence(record)}:
            deployment["administrative"]["evidence_sources"] = evidence
        told = all(name in deployment[section] for section, names in HUMAN_TIER_3.items() for name in names)
        deployment["administrative"]["tier"] = 3 if told else 2
        words = " ".join(map(str, [name, *(one["data_curator_name"] for one in listed), day[:4]])).lower()
        made = {"url_slug": "-".join(re.findall("[a-z0-9]+", words)), "deployment": deployment}
        check_record(made)
        return made


def record_schema() -> dict[str, Any]:
    """JSON schema (draft 2020-12) of a record: our description of the fields that the registry publishes."""
    return shipped("ppdp.certificate.share", "registry_record.schema.json")


def check_record(record: Any) -> None:
    """Refuse a record with a field that the registry would not read."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(record_schema()).iter_errors(record))
    if error is not None:
        place = "/".join(str(part) for part in error.absolute_path) or "the record"
        choices = f"one of {', '.join(map(repr, error.validator_value))}." if error.validator == "enum" else None
        raise InvalidParameter(f"{place} is not as the registry has it: {error.message}.", fix=choices)


def _published(day: Any, curators: Any) -> tuple[str, list[dict[str, Any]]]:
    """When, and by whom."""
    try:
        day = date.fromisoformat(str(day)).isoformat()
    except ValueError:
        raise InvalidParameter(f"publication_date must be a day, got {day!r}.", fix="'2026-11-21'.") from None
    if not isinstance(curators, Mapping):
        raise InvalidParameter("curators must be a mapping of names to kinds.", fix="{'Our clinic': 'Nonprofit'}.")
    return day, [{"data_curator_name": name, "data_curator_type": kind} for name, kind in curators.items()]


def _product(c: Record) -> str:
    """What leaves."""
    if c.mechanism is None:
        return "Machine learning model"  # a fitted transformer
    if getattr(FORMULAS[c.mechanism.formula], "rows", False):
        return "Dataset"
    return "Machine learning model" if is_model(c.mechanism) else "Summary statistics"


def _evidence(c: Record) -> dict[str, Any]:
    """The certificate and what is attached to it, where somebody answers for them."""
    if c.issued is None or c.issued.responsible is None:
        return {}
    titles = {"certificate": (f"Certificate of differential privacy {c.digest}", "certificate.json; ppdp verify")}
    for i, one in enumerate(c.issued.attachments or ()):
        titles[f"attachment_{i + 1}"] = (one.name, one.sha256)
    return {
        name: {
            "evidence_source_type": "Authorized organizational attestation",
            "misc": {"title": title, "author": c.issued.responsible, "year": int(c.issued.date[:4]), "note": note},
        }
        for name, (title, note) in titles.items()
    }


def _joined(known: dict[str, Any], further: Mapping[str, Any]) -> dict[str, Any]:
    """What is known and what people add; nobody says otherwise than the certificate."""
    for section, fields in further.items():
        if section not in known or not isinstance(fields, Mapping):
            what = f"further has no section {section!r} of fields."
            raise InvalidParameter(what, fix=f"one of {', '.join(map(repr, known))}.")
        taken = sorted(map(str, fields.keys() & {*known[section], *(["tier"] if section == "administrative" else [])}))
        if taken:
            raise InvalidParameter(f"{', '.join(taken)} of {section!r} follows from certificate and arguments.")
        known[section] = {**known[section], **fields}
    return known


def _known(c: Record) -> dict[str, dict[str, Any]]:
    """Sections that the certificate fills."""
    view, m = view_of(c, raw=True), c.mechanism
    shown = {
        "assumed": [f"It rests on this: {words}" for words in view.texts(Topic.RESTS_ON, Topic.READ_OFF)],
        "not_covered": [f"Not covered: {words}" for words in c.not_covered],
        "counts_units": c.neighbours == Adjacency.replace(),
        "families": {noise.law.split(" ")[0].rstrip(",") for noise in view.noises},
        "some_mu": any(noise.part.mu is not None for noise in view.noises),
        "parts": [Part.from_dict(part).describe() for part in c.total.parts],
        "law": law_of(m) if m is not None else "",
        "hides_iterates": only_the_last(m),
        "GAUSSIAN": GAUSSIAN,
        "rho": rho(c),
    }
    sections: dict[str, dict[str, Any]] = json.loads(rendered("registry.json", {**view.context, **shown}))
    return sections
