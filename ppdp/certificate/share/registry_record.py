"""A record for the OpenDP Deployments Registry: what a certificate knows, and what people must add."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from ppdp.certificate.canonical import shipped
from ppdp.certificate.pages.derivation import law_of, only_the_last
from ppdp.certificate.pages.statement import Topic
from ppdp.certificate.pages.statements import ON_TRUST
from ppdp.certificate.pages.view import View, view_of
from ppdp.certificate.record import Mechanism, Record
from ppdp.core.adjacency import Adjacency
from ppdp.core.domain import Domain
from ppdp.core.figures import figure
from ppdp.core.formula import FORMULAS, GAUSSIAN, LAPLACE
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.losses import Part

HUMAN_TIER_3 = {
    "deployment_model": ("trust_assumptions", "actors", "release_type", "data_source_type"),
    "implementation": ("justification",),
}


def registry_record(c: Record, authors: Sequence[str], further: Mapping[str, Any], **basic: Any) -> dict[str, Any]:
    """The record as a mapping that YAML and JSON can hold; see ``Certificate.to_registry_record``.

    ``basic`` has the fields of that section; the type of the product is None for what follows from the certificate.
    """
    administrative = {"status": "Draft", "registry_authors": list(authors)}
    deployment = _joined({"basic": _basic(c, basic), **_known(c), "administrative": administrative}, further)
    told = all(name in deployment[section] for section, names in HUMAN_TIER_3.items() for name in names)
    deployment["administrative"]["tier"] = 3 if told else 2
    record = {"url_slug": _slug(deployment["basic"]), "deployment": deployment}
    check_record(record)
    return record


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


def _basic(c: Record, given: Mapping[str, Any]) -> dict[str, Any]:
    published, curators = given["publication_date"], given["data_curators"]
    try:
        day = date.fromisoformat(str(published)).isoformat()
    except ValueError:
        raise InvalidParameter(f"publication_date must be a day, got {published!r}.", fix="'2026-11-21'.") from None
    if not isinstance(curators, Mapping):
        raise InvalidParameter("curators must be a mapping of names to kinds.", fix="{'Our clinic': 'Nonprofit'}.")
    return {
        **given,
        "publication_date": day,
        "data_curators": [{"data_curator_name": name, "data_curator_type": kind} for name, kind in curators.items()],
        "data_product_type": given["data_product_type"] or _product(c),
    }


def _product(c: Record) -> str:
    """What leaves."""
    if c.mechanism is None:
        return "Machine learning model"  # a fitted transformer
    if getattr(FORMULAS[c.mechanism.formula], "rows", False):
        return "Dataset"
    return "Summary statistics" if c.mechanism.class_.endswith("Mechanism") else "Machine learning model"


def _slug(basic: Mapping[str, Any]) -> str:
    curators = [one["data_curator_name"] for one in basic["data_curators"]]
    words = " ".join(map(str, [basic["name"], *curators, basic["publication_date"][:4]])).lower()
    return "-".join(re.findall("[a-z0-9]+", words))


def _joined(known: dict[str, Any], further: Mapping[str, Any]) -> dict[str, Any]:
    """What is known and what people add; nobody says otherwise than the certificate."""
    for section, fields in further.items():
        if section not in known or not isinstance(fields, Mapping):
            raise InvalidParameter(
                f"further has no section {section!r} of fields.", fix=f"one of {', '.join(map(repr, known))}."
            )
        taken = sorted(map(str, fields.keys() & {*known[section], *(["tier"] if section == "administrative" else [])}))
        if taken:
            raise InvalidParameter(f"{', '.join(taken)} of {section!r} follows from certificate and arguments.")
        known[section] = {**known[section], **fields}
    return known


def _known(c: Record) -> dict[str, dict[str, Any]]:
    """Sections that the certificate fills."""
    view, domain, adjacency = view_of(c), Domain.from_dict(c.entrance.domain), c.neighbours
    claim = f"({figure(c.epsilon, upward=True)}, {figure(c.delta, upward=True)})"
    most = "at most " if adjacency.hides_number else ""
    level = "Value" if not adjacency.record_level else "Row" if adjacency.single else "Person"
    neighbours, protected = (view.texts(topic)[0] for topic in (Topic.NEIGHBOURS, Topic.PROTECTED))
    loss = {
        "privacy_unit": f"{level} level: {adjacency.unit}",
        "privacy_unit_details": f"Neighbouring datasets: {neighbours}. Protected is {protected}.",
        "privacy_parameters": {"epsilon": c.epsilon, "delta": c.delta},
        "privacy_parameters_details": _sentences(
            [
                *view.texts(Topic.BESIDE),
                f"{c.status}: {view.claim(claim)}",
                *view.texts(Topic.MEANING),
                *c.reasons,
                *(f"It rests on this: {words}" for words in view.texts(Topic.RESTS_ON, Topic.READ_OFF)),
                f"Certificate {c.digest}",
            ]
        ),
        **({"number_of_privacy_units": domain.n} if adjacency == Adjacency.replace() else {}),
    }
    return {
        "dp_variant": {
            "variant_name": "Approximate DP" if c.delta > 0 else "Pure DP",
            "data_domain": f"Tables of {most}{domain.n} rows and {domain.d} columns that have the public"
            " facts of the certificate, with labels or targets where a model needs them.",
            "unprotected_quantities": _sentences(
                [
                    "Public facts that the derivation rests on and the certificate publishes",
                    *view.texts(Topic.FACT),
                    ON_TRUST,
                ]
            ),
        },
        "privacy_loss": loss,
        "deployment_model": {
            "model_name": "Central",
            "model_name_details": "Whoever fits the pipeline holds the rows; noise is added before anything leaves.",
            "access_type": "Non-interactive",
        },
        "implementation": {
            "preprocessing_and_hyperparameter_tuning": _preprocessing(c),
            "mechanisms": _mechanisms(view),
            "composition": _composition(view),
            "post_processing": "Predictions and everything else that is read from the released numbers use nothing else"
            " of the private rows.",
            "additional_information": _sentences(
                [
                    f"Certificate {c.digest} ({c.schema}): anybody can compute it again without the data, with"
                    f" `ppdp verify`, ppdp {c.versions['ppdp']}"
                ]
                + [f"Not covered: {words}" for words in c.not_covered]
            ),
        },
    }


def _preprocessing(c: Record) -> str:
    stages = ", ".join(step.title for step in c.steps)
    tests = "; ".join(k.statement for k in c.conditions if k.tested)
    return _sentences(
        [
            f"Preprocessing is inside the guarantee, stage by stage: {stages}"
            if stages
            else "No preprocessing in front of the mechanism",
            f"What it assumes of the rows was put to a private test: {tests}" if tests else "",
            *c.warnings,
            "Choices made from evaluation on private rows are not covered unless they are charged to a ledger",
        ]
    )


def _mechanisms(view: View) -> str:
    """Everything that adds noise."""
    c = view.record
    found = [
        f"Gaussian mechanism for {r.statistic} ({r.size} numbers, sigma {figure(r.noise_scale)})" for r in c.releases
    ]
    if (d := c.diagnostics) is not None:
        noise = "Gaussian noise, sigma" if d.mu is not None else "Laplace noise, scale"
        found.append(f"Numbers of altered rows: {d.size} numbers, {noise} {figure(d.noise_scale)}")
    if c.gate is not None:
        found.append(f"A propose-test-release gate with {c.gate.kind} noise")
    m = c.mechanism
    if m is not None:
        law = law_of(m)
        noise = "Gaussian noise, sigma" if law == GAUSSIAN else f"{law.replace('Laplace', 'Laplace noise')}, scale"
        found.append(f"{m.class_} ({m.formula}): {_answers(m)}, {noise} {figure(m.noise_scale)}")
    exact = [name for name in (GAUSSIAN, LAPLACE) if any(noise.law.startswith(name) for noise in view.noises)]
    if exact:
        found.append(
            f"{' and '.join(exact)} noise is drawn exactly on a public lattice; floating point and the sampler are part"
            " of the guarantee, running time and memory are not"
        )
    return _sentences([*found, f"Implemented by ppdp {c.versions['ppdp']}"])


def _answers(m: Mechanism) -> str:
    """How many numbers are made noisy."""
    if only_the_last(m):
        return f"{m.steps} noisy steps, of which one iterate of {m.size} numbers is released"
    return f"{m.steps} x {m.size} numbers" if m.steps > 1 else f"{m.size} numbers"


def _composition(view: View) -> str:
    total = view.record.total
    mu, parts = (
        f"mu = {figure(total.mu, upward=True)} (Gaussian DP)",
        [Part.from_dict(p).describe() for p in total.parts],
    )
    if any(noise.part.mu is not None for noise in view.noises):
        first = f"Gaussian releases compose to {mu}"
    else:
        first = f"The rounding of noise costs {mu}" if total.mu else ""
    further = f"{', also' if first else ', that is'} {', '.join(parts)}"
    together = f"Everything together{further}, is composed to an upper bound at delta" if parts else ""
    return _sentences([first, together, "Other releases from the same rows are not included"])


def _sentences(parts: Sequence[str]) -> str:
    return " ".join(part.rstrip(". ") + "." for part in parts if part)
