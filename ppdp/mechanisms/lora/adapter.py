"""The adapter that training leaves: as arrays, and made of the sum of all steps where projections were fresh."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ppdp.certificate.issuing import content_hash
from ppdp.mechanisms.lora.layers import Layer, Tensor

Matrices = Sequence[tuple[Tensor, Tensor]]
"""A and B of every layer."""

_USED = ("alpha_pattern", "fan_in_fan_out", "lora_alpha", "r", "rank_pattern", "use_rslora")


def adapter_of(layers: Sequence[Layer], adapter: str) -> Matrices:
    """A and B of every layer."""
    return [(one.module.lora_A[adapter].weight.detach(), one.module.lora_B[adapter].weight.detach()) for one in layers]


def arrays_of(matrices: Matrices, *, whole: bool) -> dict[str, NDArray[np.float64]]:
    """What was released, layer after layer: B, and A as well if it was learned."""
    flat = {name: [pair[i] for pair in matrices] for i, name in enumerate("AB") if whole or name == "B"}
    return {name: torch.cat([one.reshape(-1).double().cpu() for one in parts]).numpy() for name, parts in flat.items()}


def description(config: Mapping[str, Any], matrices: Matrices) -> str:
    """How B is used: what counts of PEFT's configuration, and A."""
    used = {name: config[name] for name in _USED}
    return json.dumps({**used, "A": content_hash({"A": arrays_of(matrices, whole=True)["A"]})}, sort_keys=True)


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
            a, b = layer.module.lora_A[adapter].weight, layer.module.lora_B[adapter].weight
            a.zero_()
            b.zero_()
            few = min(rank, len(sizes))
            a[:few] = right[:few].to(a)
            b[:, :few] = (left * sizes)[:, :few].to(b)
