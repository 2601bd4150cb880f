"""The optimizer that takes the noisy gradients: one of torch, of exactly the trained tensors, and new."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import torch

from ppdp.mechanisms.lora.layers import Tensor, refuse


def made_of(trained: Sequence[Tensor], optimizer: Any, rate: float) -> Any:
    """The optimizer of these tensors: what ``optimizer`` makes of them, or plain gradient descent."""
    made: Any = torch.optim.SGD(trained, lr=rate) if optimizer is None else optimizer
    made = made(trained) if callable(made) else made
    if not isinstance(made, torch.optim.Optimizer):
        refuse("the optimizer is none of torch.", "optimizer=lambda tensors: torch.optim.Adam(tensors, lr=1e-3).")
    if {id(one) for group in made.param_groups for one in group["params"]} != {id(one) for one in trained}:
        refuse("the optimizer does not have exactly the trained tensors.", "optimizer=lambda tensors: ...")
    closure = inspect.signature(made.step).parameters.get("closure")
    if closure is not None and closure.default is closure.empty:
        refuse("the optimizer asks for the loss itself, of which only one noisy gradient leaves.", "SGD or Adam.")
    refuse_used(made)
    return made


def mark_used(optimizer: Any) -> None:
    """Note that private steps are taken; for good, since what the optimizer keeps of them is never put back."""
    optimizer.ppdp_trained = True


def refuse_used(optimizer: Any) -> None:
    """Refuse the optimizer of a training that failed: its moments hold steps that a certificate would not count."""
    if getattr(optimizer, "ppdp_trained", False):
        refuse("the optimizer took steps on private examples before.", "a new one, optimizer=lambda tensors: ...")
