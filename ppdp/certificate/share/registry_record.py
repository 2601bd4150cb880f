"""A record for the OpenDP Deployments Registry: what a certificate knows, and what people must add."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from datetime import date
from functools import lru_cache
from importlib.resources import files
from typing import Any

from ppdp.certificate.pages.losses import law_of, only_the_last
from ppdp.certificate.pages.view import View, view_of
from ppdp.certificate.pages.wording import ON_TRUST
from ppdp.certificate.record import Mechanism, Record
from ppdp.core.domain import Domain
from ppdp.core.figures import figure
from ppdp.core.formula import GAUSSIAN, LAPLACE
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.losses import Part

__all__ = ["check_record", "record_schema", "registry_record"]

HUMAN_TIER_3 = {
    "deployment_model": ("trust_assumptions", "actors", "release_type", "data_source_type"),
    "implementation": ("justification",),
}


def registry_record(
    c: Record, basic: Mapping[str, Any], authors: Sequence[str], further: Mapping[str, Any]
) -> dict[str, Any]:
    """The record as a mapping that YAML and JSON can hold; see ``Certificate.to_registry_record``.

    Parameters
    ----------
    c : Record
        The certificate of the deployment, which holds.
    basic : mapping
        What people say of the product: the fields of the section "basic" but the type of the product, which may be
        None for what follows from the certificate.
    authors : sequence of str
        Who writes the record.
    further : mapping of str to mapping
        Further fields by section; none that the certificate fills.
    """
    administrative = {"status": "Draft", "registry_authors": list(authors)}
    known = {"basic": _basic(c, basic), **_known(c), "administrative": administrative}
    deployment = _joined(known, further)
    told = all(name in deployment[section] for section, names in HUMAN_TIER_3.items() for name in names)
    deployment["administrative"]["tier"] = 3 if told else 2
    record = {"url_slug": _slug(deployment["basic"]), "deployment": deployment}
    check_record(record)
    return record


@lru_cache(maxsize=1)
def record_schema() -> dict[str, Any]:
    """JSON schema (draft 2020-12) of a record: our description of the fields that the registry publishes."""
    text = files("ppdp.certificate.share").joinpath("registry_record.schema.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def check_record(record: Any) -> None:
    """Check a record against :func:`record_schema`.

    Raises
    ------
    InvalidParameter
        Naming the field that the registry would not read.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(record_schema()).iter_errors(record))
    if error is not None:
        place = "/".join(str(part) for part in error.absolute_path) or "the record"
        choices = f"one of {', '.join(map(repr, error.validator_value))}." if error.validator == "enum" else None
        raise InvalidParameter(f"{place} is not as the registry has it: {error.message}.", fix=choices)


def _basic(c: Record, given: Mapping[str, Any]) -> dict[str, Any]:
    basic = {**given, "publication_date": _day(given["publication_date"])}
    curators = given["data_curators"]
    if not isinstance(curators, Mapping):
        raise InvalidParameter("curators must be a mapping of names to kinds.", fix="{'Our clinic': 'Nonprofit'}.")
    basic["data_curators"] = [{"data_curator_name": name, "data_curator_type": kind} for name, kind in curators.items()]
    basic["data_product_type"] = given["data_product_type"] or _product(c)
    return basic


def _day(given: Any) -> str:
    try:
        return date.fromisoformat(str(given)).isoformat()
    except ValueError:
        raise InvalidParameter(f"publication_date must be a day, got {given!r}.", fix="'2026-11-21'.") from None


def _product(c: Record) -> str:
    """What leaves."""
    if c.mechanism is None:
        return "Machine learning model"  # a fitted transformer
    if c.mechanism.formula == "query.rows":
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
    loss: dict[str, Any] = {
        "privacy_unit": f"{'Row' if adjacency.single else 'Person'} level: {adjacency.unit}",
        "privacy_unit_details": f"Neighbouring datasets: {view.neighbours}. Protected is {view.protected}.",
        "privacy_parameters": {"epsilon": c.epsilon, "delta": c.delta},
        "privacy_parameters_details": _sentences(
            [
                *view.beside,
                f"{c.status}: {view.title(claim)}",
                view.meaning,
                *c.reasons,
                *(f"It rests on this: {words}" for words in view.rests_on),
                f"Certificate {c.digest}",
            ]
        ),
    }
    if adjacency.single:
        loss["number_of_privacy_units"] = domain.n
    return {
        "dp_variant": {
            "variant_name": "Approximate DP" if c.delta > 0 else "Pure DP",
            "data_domain": f"Tables of {domain.n} rows and {domain.d} columns that have the public"
            " facts of the certificate, with labels or targets where a model needs them.",
            "unprotected_quantities": _sentences(
                ["Public facts that the derivation rests on and the certificate publishes", *view.fact_lines, ON_TRUST]
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
    stages = [step.title for step in c.steps]
    tests = [k.statement for k in c.conditions if k.tested]
    first = f"Preprocessing is inside the guarantee, stage by stage: {', '.join(stages)}" if stages else ""
    tested = f"What it assumes of the rows was put to a private test: {'; '.join(tests)}" if tests else ""
    return _sentences(
        [
            first or "No preprocessing in front of the mechanism",
            tested,
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
    if c.gate is not None:
        found.append(f"A propose-test-release gate with {c.gate.kind} noise")
    m = c.mechanism
    if m is not None:
        found.append(f"{m.class_} ({m.formula}): {_answers(m)}, {_noise(m)} {figure(m.noise_scale)}")
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


def _noise(m: Mechanism) -> str:
    """Law of the noise and what its scale is called."""
    law = law_of(m)
    if law == GAUSSIAN:
        return "Gaussian noise, sigma"
    return f"{law.replace('Laplace', 'Laplace noise')}, scale"


def _composition(view: View) -> str:
    parts = [Part.from_dict(part).describe() for part in view.record.total.parts]
    mu = _composed(view)
    further = f"{', also' if mu else ', that is'} {', '.join(parts)}"
    return _sentences(
        [
            mu,
            f"Everything together{further}, is composed to an upper bound at delta" if parts else "",
            "Other releases from the same rows are not included",
        ]
    )


def _composed(view: View) -> str:
    """What mu is the cost of; empty if nothing costs a mu."""
    total = view.record.total.mu
    mu = f"mu = {figure(total, upward=True)} (Gaussian DP)"
    if any(noise.one.mu is not None for noise in view.noises):
        return f"Gaussian releases compose to {mu}"
    return f"The rounding of noise costs {mu}" if total else ""


def _sentences(parts: Sequence[str]) -> str:
    return " ".join(part.rstrip(". ") + "." for part in parts if part)
