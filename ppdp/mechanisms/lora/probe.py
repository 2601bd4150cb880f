"""What is found out on public examples before anything is spent, and that nothing but the adapter changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
from torch import nn

from ppdp.exceptions import said_by
from ppdp.mechanisms.lora.gradients import Gradients, Loss, backward
from ppdp.mechanisms.lora.layers import Layer, Tensor, refuse

Fingerprint = tuple[int, ...]

MOST = 4  # examples that are looked at
CLOSE = 1e-3  # of a gradient's length: what float32 may make of it in another batch
MIXED = "the gradient of an example depends on the other examples of its batch"
PROBE = "probe must be a mapping of names to tensors with at least two made-up examples, as loss takes them."
PER_EXAMPLE = "a loss that returns one number for every example, reduction='none', and layers that keep examples apart."


def check_probe(model: nn.Module, loss: Loss, kind: type[Gradients], layers: tuple[Layer, ...], probe: Any) -> int:
    """Refuse losses and models whose gradients are not those of single examples; the most terms of an inner product.

    Of a few made-up examples gradients are taken together, of one loss at a time, each example alone, and by autograd.
    :class:`InvalidParameter` if they differ, or a loss is not finite.
    """
    if not isinstance(probe, Mapping) or not probe or not all(isinstance(one, torch.Tensor) for one in probe.values()):
        refuse(PROBE, "probe={'input_ids': ..., 'labels': ...}.")
    n = min((len(one) if one.dim() else 0) for one in probe.values())
    if n < 2 or any(len(one) != n for one in probe.values()):
        refuse(PROBE, "as many rows in every tensor.")
    n = min(n, MOST)
    batch = {name: one[:n] for name, one in probe.items()}

    def run(some: Mapping[str, Tensor], count: int, only: int | None = None) -> tuple[Tensor, Gradients]:
        found = kind(layers, count)
        return backward(model, loss, found, some, only), found

    with _without_dropout(model):
        try:
            losses, together = run(batch, n)
        except Exception as error:  # whose words tell of nothing private
            refuse(f"loss(model, probe) stopped with {said_by(error)}.", PER_EXAMPLE)
        if not losses.isfinite().all():
            refuse("the loss of a made-up example is not finite.", "a probe as the model expects it.")
        if not all(one.isfinite().all() for one in together.kept()):
            refuse("the gradient of a made-up example is not finite.", "a probe as the model expects it.")
        if not any(one.any() for one in together.derived()):
            refuse("no gradient reaches any adapted layer.", "a loss of the model's outputs, no checkpointing.")
        for i in range(n):
            rest = [j for j in range(n) if j != i]
            _, single = run(batch, n, only=i)
            if any(one[rest].any() for one in single.derived()):
                refuse(f"{MIXED}.", PER_EXAMPLE)
            own, alone = run({name: one[i : i + 1] for name, one in batch.items()}, 1)
            pairs = [(own[0], losses[i]), *((a[0], b[i]) for a, b in zip(alone.kept(), together.kept()))]
            if not all(_close(a, b) for a, b in pairs):
                refuse(f"{MIXED}, or on chance.", PER_EXAMPLE)
        _compare(model, loss, together, batch)
    return together.terms()


def _compare(model: nn.Module, loss: Loss, found: Gradients, batch: Mapping[str, Tensor]) -> None:
    """Refuse layers whose gradients do not add up to autograd's: weights that something else uses as well."""
    before = [layer.trained.requires_grad for layer in found.layers]
    try:
        for layer in found.layers:
            layer.trained.requires_grad_(True)
        with torch.enable_grad():
            weights = [layer.trained for layer in found.layers]
            true = torch.autograd.grad(loss(model, batch).sum(), weights, allow_unused=True)
        for layer, one in zip(found.layers, true):
            same = layer.shaped(found.total(layer))
            if not _close(same, torch.zeros_like(same) if one is None else one):
                refuse(f"the weights of {layer.name} are used elsewhere as well.", "other target_modules.")
    finally:
        for layer, learned in zip(found.layers, before):
            layer.trained.requires_grad_(learned)


def _close(one: Tensor, other: Tensor) -> bool:
    least = 1e-6 * max(1.0, float(other.numel()) ** 0.5)
    return bool((one - other).norm() <= CLOSE * max(one.norm(), other.norm()) + least)


@contextmanager
def _without_dropout(model: nn.Module) -> Iterator[None]:
    """As in evaluation; every module is put back afterwards."""
    training = [module for module in model.modules() if module.training]
    try:
        model.eval()
        yield
    finally:
        for module in training:
            module.training = True


def fingerprint(tensors: Iterable[Tensor]) -> Fingerprint:
    """A number for every tensor, which changes with any of its bits that changes alone."""
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    flat = (one.detach().reshape(-1) for one in tensors)
    return tuple(int(one.view(whole[one.element_size()]).sum(dtype=torch.int64)) for one in flat)


def others(model: nn.Module, layers: tuple[Layer, ...]) -> list[Tensor]:
    """Parameters and buffers that training leaves as they are."""
    trained = {id(layer.trained) for layer in layers}
    return [one for one in chain(model.parameters(), model.buffers()) if id(one) not in trained]
