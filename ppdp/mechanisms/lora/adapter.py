"""The adapter that training leaves: as arrays, and made of the sum of all steps where projections were fresh."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from peft.utils import get_peft_model_state_dict
from safetensors.torch import save

from ppdp.certificate.share.files import hashed
from ppdp.mechanisms.lora.layers import Layer, Tensor, mark_trained, refuse
from ppdp.privacy.noise.sampler import Noise

Matrices = Sequence[tuple[Tensor, Tensor]]
"""A and B of every layer."""

CONFIG, WEIGHTS, CARD = "adapter_config.json", "adapter_model.safetensors", "README.md"

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


def adapter_of(layers: Sequence[Layer], adapter: str) -> Matrices:
    """A and B of every layer."""
    return [(one.module.lora_A[adapter].weight.detach(), one.module.lora_B[adapter].weight.detach()) for one in layers]


def arrays_of(matrices: Matrices, *, whole: bool) -> dict[str, NDArray[np.float64]]:
    """What was released, layer after layer: B, and A as well if it was learned."""
    flat = {name: [pair[i] for pair in matrices] for i, name in enumerate("AB") if whole or name == "B"}
    return {name: torch.cat([one.reshape(-1).double().cpu() for one in parts]).numpy() for name, parts in flat.items()}


def files_of(model: Any, adapter: str) -> dict[str, bytes]:
    """The adapter's files as PEFT reads them: configuration, weights and a model card, byte for byte the same again.

    :class:`InvalidParameter` if the configuration has no form in JSON.
    """
    config = {name: _plain(value) for name, value in model.peft_config[adapter].to_dict().items()}
    base = model.get_base_model()
    config["inference_mode"] = True
    config["base_model_name_or_path"] = config["base_model_name_or_path"] or vars(base).get("name_or_path") or None
    if config["task_type"] is None:
        config["auto_mapping"] = {"base_model_class": type(base).__name__, "parent_library": type(base).__module__}
    try:
        written = json.dumps(config, indent=2, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError):
        refuse("the configuration of the adapter has no form in JSON.", "numbers and words in LoraConfig(...).")
    named = get_peft_model_state_dict(model, adapter_name=adapter, save_embedding_layers=False)
    weights = {name: one.detach().cpu().clone().contiguous() for name, one in sorted(named.items())}
    return {CONFIG: written.encode(), WEIGHTS: save(weights, metadata={"format": "pt"}), CARD: _CARD.encode()}


def described(files: Mapping[str, bytes]) -> str:
    """A hash of the files, by name."""
    return hashed(json.dumps({name: hashed(data) for name, data in files.items()}, sort_keys=True).encode())


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, (set, frozenset)) else value


def make_adapter(model: Any, layers: Sequence[Layer], start: Sequence[Tensor], adapter: str, rank: int) -> None:
    """Give layers the weights that they began with, and make what was added to them the adapter of this rank."""
    config = model.peft_config[adapter]
    config.r = config.lora_alpha = rank
    config.use_rslora, config.rank_pattern, config.alpha_pattern = False, {}, {}
    with torch.no_grad():
        for layer, before in zip(layers, start):
            added = (layer.trained.double() - before.double()).detach()
            left, sizes, right = torch.linalg.svd(added.T if layer.transposed else added, full_matrices=False)
            layer.trained.copy_(before)
            layer.module.update_layer(adapter, rank, lora_alpha=rank, config=config)
            mark_trained([layer], adapter, True)  # before anything private is in it
            a, b = layer.module.lora_A[adapter].weight, layer.module.lora_B[adapter].weight
            a.zero_()
            b.zero_()
            few = min(rank, len(sizes))
            a[:few] = right[:few].to(a)
            b[:, :few] = (left * sizes)[:, :few].to(b)


def adapter_rank(layers: Sequence[Layer], most: int | None) -> int:
    """The least rank that holds every sum of steps."""
    full = max(min(layer.outputs, layer.inputs) for layer in layers)
    return full if most is None else min(full, most)


def uniform_frame(noise: Noise, dimension: int, rank: int) -> NDArray[np.float64]:
    """Orthonormal columns whose span is uniform, up to float64: the Q of a Gaussian matrix."""
    frame, _ = np.linalg.qr(noise.standard_lattice((dimension, rank)) * 2.0**-37)
    return np.ascontiguousarray(frame)
