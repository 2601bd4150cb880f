"""An adapter in PEFT's files, beside its certificate: four files, written whole or not at all, read without trust."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from safetensors.torch import load

from ppdp.certificate.document import Certificate
from ppdp.certificate.issuance import content_hash
from ppdp.certificate.replay.rules import refuse_unsafe
from ppdp.certificate.share.files import read_members, write_folder
from ppdp.core.checks import path_of
from ppdp.exceptions import CertificateError, ExportError
from ppdp.mechanisms.lora.adapter import CARD, CONFIG, WEIGHTS, arrays_of, described
from ppdp.mechanisms.lora.plan import FORMULAS, NAME

CERTIFICATE = "certificate.json"
FILES = frozenset({CERTIFICATE, CONFIG, WEIGHTS, CARD})


def write_adapter(
    files: Mapping[str, bytes], certificate: Certificate, folder: str | os.PathLike[str], *, conditional: bool = False
) -> str:
    """Write a new folder; see :meth:`~ppdp.mechanisms.lora.PrivateLoRA.export`."""
    refuse_unsafe(certificate.record, conditional=conditional)
    target = path_of("folder", folder)
    if os.path.lexists(target):
        raise ExportError(f"{str(target)!r} is already there.", fix="another name.")
    _check(certificate, files)
    write_folder(Path(target), {**files, CERTIFICATE: certificate.to_json().encode()})
    return str(target)


def certified(folder: str | os.PathLike[str]) -> Certificate:
    """The certificate of an exported adapter, once it holds and the folder has its four files and nothing else.

    Every byte of PEFT's configuration, weights and model card is bound by the certificate.

    Parameters
    ----------
    folder : path-like
        Where :meth:`PrivateLoRA.export <ppdp.mechanisms.lora.PrivateLoRA.export>` wrote.

    Raises
    ------
    ExportError, CertificateError
        If a file is missing, another one, or one too many, or the certificate does not hold.
    """
    where = Path(path_of("folder", folder))
    if not where.is_dir():
        raise ExportError(f"{str(where)!r} is no folder.", fix="the folder that PrivateLoRA.export wrote.")
    files = read_members(where, FILES)
    if missing := FILES - files.keys():
        raise ExportError(f"{', '.join(sorted(missing))} cannot be read there.", fix="all four files of the export.")
    certificate = Certificate.from_json(files.pop(CERTIFICATE))
    _check(certificate, files)
    return certificate


def _check(certificate: Certificate, files: Mapping[str, bytes]) -> None:
    """Refuse a certificate that does not hold, and files that are not those that it was issued for."""
    mechanism, released = certificate.record.mechanism, certificate.record.released
    if not certificate.verify() or mechanism is None or mechanism.formula not in FORMULAS.values():
        raise CertificateError("the certificate does not hold, or is that of something else.")
    wrong = ExportError("the adapter is not the one that the certificate was issued for.")
    if described(files) != released.inference:
        raise wrong
    try:
        weights, config = load(files[WEIGHTS]), json.loads(files[CONFIG])
        matrices = [
            tuple(weights.pop(f"{name}.lora_{one}.weight") for one in "AB") for name in mechanism.parameters["layers"]
        ]
        whole = mechanism.formula == FORMULAS["m2"]
        arrays = {f"{NAME}.{name}": array for name, array in arrays_of(matrices, whole=whole).items()}
    except Exception as error:  # of whoever reads safetensors or JSON: whatever it is, there is no adapter
        raise ExportError(f"an adapter of ppdp cannot be read there ({type(error).__name__}).") from None
    if weights or config.get("peft_type") != "LORA" or content_hash(arrays) != released.sha256:
        raise wrong
