"""Releases in files: written whole with their certificate."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from ppdp.certificate import Certificate
from ppdp.certificate.replay.rules import refuse_unsafe
from ppdp.certificate.share.files import (
    hashed,
    pack_arrays,
    read_members,
    refuse_ending,
    write_bytes,
    write_folder,
    zipped,
)
from ppdp.core.checks import library, path_of
from ppdp.data.rows import Array
from ppdp.exceptions import ExportError
from ppdp.mechanisms.base import Mechanism
from ppdp.pipeline.release.step_serialization import mapped
from ppdp.pipeline.steps import any_fills_gaps
from ppdp.privacy.ledger.fit_charging import FitCharge

FORM = "ppdp-export/1"
MANIFEST, CERTIFICATE, INFERENCE = "manifest.json", "certificate.json", "inference.json"
PARAMETERS, EXAMPLE, README = "parameters.npz", "example.npz", "README.txt"
REQUIRED = {MANIFEST, CERTIFICATE, INFERENCE, PARAMETERS, README}
EXAMPLE_ROWS = 8


def export(
    pipe: Any,
    path: str | os.PathLike[str],
    charged: FitCharge | None,
    *,
    conditional: bool = False,
    overwrite: bool = False,
) -> str:
    """Write what a fitted pipeline released, and was charged for; see :meth:`ppdp.Pipeline.export`."""
    if not hasattr(pipe, "release_"):
        raise ExportError("a slice of a pipeline has no certificate of its own.", fix="export the whole pipeline.")
    release, target = pipe.release_, path_of("path", path)
    certificate = pipe.certificate_ if charged is None else pipe.certificate_.told(charged.other_fits())
    refuse_unsafe(certificate.record, conditional=conditional)
    members = {
        README: readme(certificate).encode(),
        CERTIFICATE: certificate.to_json().encode(),
        INFERENCE: release.inference.encode(),
        PARAMETERS: pack_arrays(release.arrays),
    }
    stages = inference_path(pipe)
    if stages:
        rows, gaps = _example(pipe)
        members[EXAMPLE] = pack_arrays({"rows": rows, "gaps": gaps, "mapped": outcome(stages, rows, gaps)})
    members = {MANIFEST: json.dumps(manifest(members, certificate), indent=2).encode(), **members}
    refuse_ending(target, "a name that ends in .zip, or that of a folder; ppdp.load reads it.", ".zip")
    _refuse_to_replace(target, overwrite)
    if target.suffix == ".zip":
        write_bytes(target, zipped(members))
    else:
        write_folder(target, members)
    return hashed(members[MANIFEST])


def manifest(members: Mapping[str, bytes], certificate: Certificate) -> dict[str, Any]:
    """What says of every file which one it is, and of which certificate."""
    return {
        "form": FORM,
        "status": certificate.status,
        "certificate": certificate.digest,
        "sha256": {name: hashed(data) for name, data in members.items()},
    }


def inference_path(pipe: Any) -> list[tuple[str, Any]]:
    """The twins that raw rows go through before a model, or all of them; () if the release does not predict."""
    last = pipe.twins_[-1][1]
    if not isinstance(last, Mechanism):
        return pipe.twins_
    return pipe.twins_[:-1] if last.predicts else []


def _example(pipe: Any) -> tuple[Array, Array]:
    """Made-up rows of several magnitudes, and where they have gaps."""
    d, bound = pipe.n_features_in_, pipe.entry_bound_ or pipe.row_norm_
    size = np.arange(EXAMPLE_ROWS)[:, None]
    magnitude = np.asarray(10.0 ** (size - 2) if bound is None else bound / np.sqrt(d) * 2.0**-size, dtype=np.float64)
    rows: Array = magnitude * np.sin(1.0 + np.arange(EXAMPLE_ROWS * d).reshape(EXAMPLE_ROWS, d))
    gaps = np.zeros_like(rows)
    if any_fills_gaps(inference_path(pipe)):
        gaps[np.arange(EXAMPLE_ROWS), np.arange(EXAMPLE_ROWS) % d] = np.arange(EXAMPLE_ROWS) % 2
    return rows, gaps


def outcome(stages: list[tuple[str, Any]], rows: Array, gaps: Array) -> Array:
    """What the made-up rows are mapped to."""
    with np.errstate(all="ignore"):
        return mapped(stages, np.where(gaps > 0, np.nan, rows))


def _refuse_to_replace(target: Path, overwrite: bool) -> None:
    """Never put an export in the place of something else."""
    if not os.path.lexists(target):
        return
    if target.is_dir() or not overwrite:
        what = f"{str(target)!r} is already there."
        raise ExportError(what, fix="another name; a .zip may be replaced with overwrite=True.")
    if not read_members(target, REQUIRED | {EXAMPLE}).keys() >= REQUIRED:
        raise ExportError(f"{str(target)!r} is no export, so it is not replaced.", fix="another name.")


def readme(certificate: Certificate) -> str:
    """The text for people in an export."""
    return f"""{certificate.to_text(full=True)}

This is a release of ppdp. inference.json holds the steps and their public parameters, parameters.npz what was released
with noise, example.npz made-up rows and what they are mapped to, manifest.json the hash of every file. No private row
and nothing else that was learned from one is in it.

    pipe = ppdp.load(path)      verifies the certificate and the files, then predicts on raw rows like any estimator
    pipe.certificate_           what is guaranteed, and what is not
"""


def logged(plain: Any, certificate: Certificate, name: str, options: dict[str, Any]) -> Any:
    """What MLflow says of a pipeline that it logs; :class:`ExportError` if it is not installed."""
    mlflow, models = (library(module, "MLflow", "mlflow", ExportError) for module in ("mlflow", "mlflow.sklearn"))
    mlflow.log_text(certificate.to_json(), f"{name}-certificate.json")
    mlflow.log_text(certificate.to_html(), f"{name}-certificate.html")
    mlflow.set_tags({"ppdp.certificate": certificate.digest, "ppdp.status": certificate.status})
    accepted = signature(models.log_model).parameters
    options["name" if "name" in accepted else "artifact_path"] = name
    if "skops_trusted_types" in accepted and "serialization_format" not in options:
        options.setdefault("skops_trusted_types", _all_types(plain))
    return models.log_model(plain, **options)


def _all_types(plain: Any) -> list[str]:
    """Types that skops would not read unasked: all can be trusted of a pipeline that was built here."""
    from skops.io import dumps, get_untrusted_types

    types: list[str] = get_untrusted_types(data=dumps(plain))
    return types
