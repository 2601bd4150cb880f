"""The adapter that training leaves: arrays, files, and the sum of all steps where projections were fresh.

PEFT's files lie beside their certificate: four files, written whole or not at all, read without trust.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import load, save

from ppdp.certificate.document import Certificate
from ppdp.certificate.issuance import content_hash
from ppdp.certificate.replay.rules import refuse_unsafe
from ppdp.certificate.share.files import hashed, read_members, write_folder
from ppdp.core.checks import path_of
from ppdp.exceptions import CertificateError, ExportError
from ppdp.mechanisms.lora.layers import Layer, Tensor, mark_trained, refuse
from ppdp.mechanisms.lora.plan import FORMULAS, NAME
from ppdp.privacy.noise.sampler import Noise

Matrices = Sequence[tuple[Tensor, Tensor]]  # A and B of every layer

CONFIG, WEIGHTS, CARD = "adapter_config.json", "adapter_model.safetensors", "README.md"
CERTIFICATE = "certificate.json"
FILES = frozenset({CERTIFICATE, CONFIG, WEIGHTS, CARD})

_CARD = """---
library_name: peft
tags:
- lora
- differential-privacy
---

# An adapter with a certificate of differential privacy

`certificate.json` says what is promised, and for whom. `ppdp.mechanisms.lora.certified(folder)` derives it again, and
refuses every file but those that it was issued for.
"""


def arrays_of(matrices: Matrices, *, whole: bool) -> dict[str, NDArray[np.float64]]:
    """What was released, layer after layer: B, and A as well if it was learned."""
    flat = {name: [pair[i] for pair in matrices] for i, name in enumerate("AB") if whole or name == "B"}
    return {name: torch.cat([one.reshape(-1).double().cpu() for one in parts]).numpy() for name, parts in flat.items()}


def configuration_of(model: Any, adapter: str, rank: int | None) -> dict[str, Any]:
    """PEFT's configuration of the adapter as it is exported, of plain values; of another rank, where one is given.

    :class:`InvalidParameter` if it has no form in JSON.
    """
    given = model.peft_config[adapter].to_dict().items()
    config = {name: sorted(value) if isinstance(value, (set, frozenset)) else value for name, value in given}
    base = model.get_base_model()
    config["inference_mode"] = True
    config["base_model_name_or_path"] = config["base_model_name_or_path"] or vars(base).get("name_or_path") or None
    if config["task_type"] is None:
        config["auto_mapping"] = {"base_model_class": type(base).__name__, "parent_library": type(base).__module__}
    config |= {} if rank is None else _of_rank(rank)
    try:
        return dict(json.loads(json.dumps(config, allow_nan=False)))
    except (TypeError, ValueError):
        refuse("the configuration of the adapter has no form in JSON.", "numbers and words in LoraConfig(...).")


def files_of(config: Mapping[str, Any], layers: Sequence[Layer], matrices: Matrices) -> dict[str, bytes]:
    """The adapter's files as PEFT reads them: configuration, weights and a model card, byte for byte the same again."""
    named = {
        f"{one.name}.lora_{which}.weight": matrix
        for one, pair in zip(layers, matrices)
        for which, matrix in zip("AB", pair)
    }
    weights = {name: one.detach().cpu().clone().contiguous() for name, one in sorted(named.items())}
    written = json.dumps(config, indent=2, sort_keys=True)
    return {CONFIG: written.encode(), WEIGHTS: save(weights, metadata={"format": "pt"}), CARD: _CARD.encode()}


def described(files: Mapping[str, bytes]) -> str:
    """A hash of the files, by name."""
    return hashed(json.dumps({name: hashed(data) for name, data in files.items()}, sort_keys=True).encode())


def _of_rank(rank: int) -> dict[str, Any]:
    """Entries of a configuration whose adapter is added as it is."""
    return {"r": rank, "lora_alpha": rank, "use_rslora": False, "rank_pattern": {}, "alpha_pattern": {}}


def sum_of_steps(layer: Layer, start: Tensor, weights: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """A and B of this rank, whose product is what was added to a layer's weights.

    Each has the root of a size: what the weights' type holds, they hold as well.
    """
    added = (weights.double() - start.double()).detach()
    left, sizes, right = torch.linalg.svd(added.T if layer.transposed else added, full_matrices=False)
    few = min(rank, len(sizes))
    a, b = start.new_zeros(rank, layer.inputs), start.new_zeros(layer.outputs, rank)
    roots = sizes[:few].sqrt()
    a[:few] = (roots[:, None] * right[:few]).to(a)
    b[:, :few] = (left[:, :few] * roots).to(b)
    return a, b


def put_adapter(model: Any, layers: Sequence[Layer], adapter: str, matrices: Matrices, training: object) -> None:
    """Make these matrices, of any rank, the adapter of the model, marked as in this training."""
    rank, config = len(matrices[0][0]), model.peft_config[adapter]
    for name, value in _of_rank(rank).items():
        setattr(config, name, value)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):  # by which PEFT fills what is new
        for layer, pair in zip(layers, matrices):
            layer.module.update_layer(adapter, rank, lora_alpha=rank, config=config)
            mark_trained([layer], training)  # before anything private is in it
            for of, matrix in zip((layer.module.lora_A, layer.module.lora_B), pair):
                of[adapter].weight.copy_(matrix)


def kept_adapter(model: Any, layers: Sequence[Layer], adapter: str) -> Callable[[], None]:
    """What makes the adapter of the model again the one that it is now, down to the same modules."""
    config = model.peft_config[adapter]
    before = [(vars(config), name, value) for name, value in vars(config).items()]
    for module in (layer.module for layer in layers):
        before += [(vars(module), name, value) for name, value in vars(module).items()]
        held = [*vars(module).values(), *module.children()]
        tables = [one for one in held if isinstance(one, (dict, torch.nn.ModuleDict))]
        before += [(table, adapter, table[adapter]) for table in tables if adapter in table]

    def put_back() -> None:
        for table, name, value in before:
            table[name] = value

    return put_back


def adapter_rank(layers: Sequence[Layer], most: int | None) -> int:
    """The least rank that holds every sum of steps."""
    full = max(min(layer.outputs, layer.inputs) for layer in layers)
    return full if most is None else min(full, most)


def uniform_frame(noise: Noise, dimension: int, rank: int) -> NDArray[np.float64]:
    """Orthonormal columns whose span is uniform, up to float64: the Q of a Gaussian matrix."""
    frame, _ = np.linalg.qr(noise.standard_lattice((dimension, rank)) * 2.0**-37)
    return np.ascontiguousarray(frame)


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
