"""An adapter in PEFT's files, beside its certificate."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from safetensors.torch import load_file

from ppdp.certificate.document import Certificate
from ppdp.certificate.issuing import content_hash
from ppdp.certificate.replay.rules import refuse_unsafe
from ppdp.certificate.share.files import hashed, write_bytes
from ppdp.core.checks import path_of
from ppdp.exceptions import CertificateError, ExportError
from ppdp.mechanisms.lora.adapter import arrays_of, description
from ppdp.mechanisms.lora.plan import FORMULAS, NAME

CERTIFICATE, CONFIG, WEIGHTS = "certificate.json", "adapter_config.json", "adapter_model.safetensors"


def write_adapter(
    model: Any, certificate: Certificate, folder: str | os.PathLike[str], *, conditional: bool = False
) -> str:
    """Write a new folder; see :meth:`~ppdp.mechanisms.lora.PrivateLoRA.export`."""
    refuse_unsafe(certificate.record, conditional=conditional)
    target = path_of("folder", folder)
    if os.path.lexists(target):
        raise ExportError(f"{str(target)!r} is already there.", fix="another name.")
    model.save_pretrained(str(target), save_embedding_layers=False)
    if not (target / WEIGHTS).exists():  # the adapter has a name of its own, and so has its folder
        target = target / next(iter(model.peft_config))
    write_bytes(target / CERTIFICATE, certificate.to_json().encode())
    certified(target)
    return str(target)


def certified(folder: str | os.PathLike[str]) -> Certificate:
    """The certificate of an exported adapter, once it and the adapter's files were found to be what they say.

    Parameters
    ----------
    folder : path-like
        Where :meth:`PrivateLoRA.export <ppdp.mechanisms.lora.PrivateLoRA.export>` wrote.

    Raises
    ------
    ExportError, CertificateError
        If a file is missing or another one, or the certificate does not hold.
    """
    where = Path(path_of("folder", folder))
    certificate = Certificate.load(where / CERTIFICATE)
    found = certificate.verify()
    mechanism = certificate.record.mechanism
    if not found or mechanism is None or mechanism.formula not in FORMULAS.values():
        raise CertificateError("the certificate does not hold, or is that of something else.")
    try:
        weights = load_file(where / WEIGHTS)
        config = json.loads((where / CONFIG).read_text(encoding="utf-8"))
        layers = mechanism.parameters["layers"]
        matrices = [tuple(weights.pop(f"{name}.lora_{one}.weight") for one in "AB") for name in layers]
        whole = mechanism.formula == FORMULAS["m2"]
        arrays = {f"{NAME}.{name}": array for name, array in arrays_of(matrices, whole=whole).items()}
        described = hashed(description(config, matrices).encode())
    except (OSError, KeyError, ValueError) as error:
        raise ExportError(f"an adapter of ppdp cannot be read there ({type(error).__name__}).") from None
    released = certificate.record.released
    if weights or content_hash(arrays) != released.sha256 or described != released.inference:
        raise ExportError("the adapter is not the one that the certificate was issued for.")
    return certificate
