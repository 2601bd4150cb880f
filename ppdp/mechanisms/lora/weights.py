"""The weights that are trained: ppdp's own, which no model, loss or loop holds, and the optimizer that moves them."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.optim import optimizer as optimizers

from ppdp.core.checks import choice, number, positive
from ppdp.exceptions import said_by
from ppdp.mechanisms.lora.conditions import OPTIMIZER_HOOKS, Probed, told_nothing
from ppdp.mechanisms.lora.layers import STAGE, Tensor, refuse

_NAMES = ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "Adamax", "Adagrad", "Adadelta", "RMSprop")
# Where and how an update is computed, which is ppdp's choice, and what other parameters say:
_NOT_GIVEN = {"self", "params", "lr", "foreach", "fused", "capturable", "differentiable", "maximize"}
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Optimizer:
    """Which optimizer of torch it is and its numbers: all public, tried before anything is spent.

    Of torch alone, new for every training and never seen by anybody else, so that it knows noisy gradients of this
    training and nothing more.
    """

    def __init__(self, optimizer: Any, given: Any, learning_rate: Any, steps: int) -> None:
        kinds = {name: getattr(torch.optim, name) for name in _NAMES}
        name = next((name for name, kind in kinds.items() if optimizer is kind), optimizer)
        self._kind = kinds[choice("optimizer", name, _NAMES, STAGE)]
        given = {} if given is None else given
        known = sorted(inspect.signature(self._kind).parameters.keys() - _NOT_GIVEN)
        if not isinstance(given, Mapping) or not all(name in known for name in given):
            refuse(f"optimizer_kwargs are not among {', '.join(known)}.", f"optimizer_kwargs={{{known[0]!r}: ...}}.")
        self._given = {name: _plain(name, value) for name, value in given.items()}
        self.rates = _rates(learning_rate, steps)
        if any(getattr(optimizers, name, ()) for name in OPTIMIZER_HOOKS):
            refuse("a hook of all optimizers of torch is registered.", "remove() of its handle before.")
        one = torch.zeros(2, 2, requires_grad=True)
        one.grad = torch.ones(2, 2)
        try:
            made = self.made([one])
            for rate in (self.rates[0], min(self.rates), max(self.rates)):
                _move(made, rate)
        except Exception as error:  # whose words are of these numbers
            refuse(f"the optimizer stopped with {said_by(error)}.", "a smaller learning_rate, other optimizer_kwargs.")

    @property
    def is_plain(self) -> bool:
        """Whether the sum of its updates is a sum of noisy gradients times numbers, of no higher rank than they."""
        return self._kind is torch.optim.SGD and not self._given.get("weight_decay")

    def made(self, weights: Sequence[Tensor]) -> torch.optim.Optimizer:
        """A new one of these weights."""
        return self._kind(weights, lr=self.rates[0], **self._given)


def _move(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.step()


def _plain(name: str, value: Any) -> Any:
    """A truth, a number or a pair of numbers."""
    if isinstance(value, (tuple, list)):
        return tuple(number(name, one, STAGE) for one in value)
    return bool(value) if isinstance(value, (bool, np.bool_)) else number(name, value, STAGE)


def _rates(learning_rate: Any, steps: int) -> list[float]:
    """The learning rate of each step."""
    if not isinstance(learning_rate, (list, tuple, np.ndarray)):
        return [positive("learning_rate", learning_rate, STAGE)] * steps
    if len(learning_rate) != steps:
        refuse(f"learning_rate has {len(learning_rate)} numbers for {steps} steps.", "one for each step, or one.")
    return [number("learning_rate", rate, STAGE, least=0) for rate in learning_rate]


class Weights:
    """The trained weights of a training, under which the model's only stand in: they are written before each step.

    What anything else writes into the model is overwritten or found out; it is in no step, certificate or export.
    They have 32 bits or more, of which a coarser model is given as many as it holds.
    """

    def __init__(self, probed: Probed, optimizer: Optimizer) -> None:
        self._layers, self._rates = probed.layers, optimizer.rates
        self.a = [layer.module.lora_A[probed.adapter].weight.detach().clone() for layer in probed.layers]
        # Of torch's own class and of this type, whatever becomes of the model's parameters between two steps, and
        # whatever attributes they have:
        self._written = [torch.Tensor.detach(layer.trained) for layer in probed.layers]
        self.start = [one.clone() for one in self._written]
        wide = (one.float() if one.element_size() < 4 else one for one in self.start)
        self._own = [nn.Parameter(one.clone()) for one in wide]
        self._optimizer = optimizer.made(self._own)
        self._types = [one.dtype for one in self.start]

    @property
    def own(self) -> list[Tensor]:
        """As the model holds them."""
        return [one.detach().to(kind) for kind, one in zip(self._types, self._own)]

    def write(self, weights: Sequence[Tensor] | None = None) -> None:
        """Write them into the model, or others in their place."""
        with torch.no_grad():
            for place, one in zip(self._written, self.own if weights is None else weights):
                place.copy_(one)

    def are_written(self) -> bool:
        """Whether the model has them, bit by bit."""
        return all(torch.equal(_bits(place), _bits(one)) for place, one in zip(self._written, self.own))

    def update(self, gradients: Iterable[Tensor], step: int) -> bool:
        """One step of the optimizer, of which the model learns by the next :meth:`write`; whether all stay finite.

        If not, the weights are those that were written last.
        """
        for one, layer, gradient in zip(self._own, self._layers, gradients):
            one.grad = layer.shaped(gradient).to(one)
        last = [one.clone() for one in self.own]  # not the model's, into which anything may have written meanwhile
        with told_nothing():  # by what was put into a class of torch
            _move(self._optimizer, self._rates[step])
        self._optimizer.zero_grad(set_to_none=True)
        finite = all(one.isfinite().all() for one in self.own)
        if not finite:
            with torch.no_grad():
                for one, before in zip(self._own, last):
                    one.copy_(before)
        return finite


def _bits(one: Tensor) -> Tensor:
    """As whole numbers, of which each is equal to itself."""
    return one.detach().view(_BITS[one.element_size()])
