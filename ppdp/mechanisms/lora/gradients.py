"""Gradients of single examples, their norms, and exact sums of clipped ones: ``docs/theory/low-rank-training.md``.

Inputs and gradients of outputs of a layer are kept example by example: an example's gradient is the sum over its tokens
of their outer products. Every part is rounded to whole steps of the noise's lattice, so that sums in float64 are exact.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from ppdp.bounds.low_rank import CANCELLED
from ppdp.core.rounding import UNIT
from ppdp.mechanisms.lora.conditions import evaluating
from ppdp.mechanisms.lora.layers import Layer, Tensor

TINY = 2.0**-1000

Loss = Callable[[Any, Mapping[str, Tensor]], Tensor]  # ``loss(model, batch)``: the loss of every example, of shape (n,)


class Gradients(ABC):
    """What the backward pass of n examples leaves."""

    def __init__(self, layers: Sequence[Layer], n: int) -> None:
        self.layers = layers
        self.n = n

    @abstractmethod
    def keep(self, layer: Layer, x: Tensor, g: Tensor) -> None:
        """Keep one call of a layer: inputs (n, tokens, inputs) and gradients of outputs (n, tokens, outputs)."""

    @abstractmethod
    def kept(self) -> Iterator[Tensor]:
        """Everything that is kept, examples first."""

    def derived(self) -> Iterator[Tensor]:
        """What is 0 for an example on which no loss depends."""
        return self.kept()

    @abstractmethod
    def total(self, layer: Layer) -> Tensor:
        """Sum of all gradients, unclipped, of shape (outputs, inputs)."""

    @abstractmethod
    def lengths(self) -> Tensor:
        """Of every example a length, float64, that is no less than the norm of its gradient over all layers.

        Not finite where the gradient is not.
        """

    @abstractmethod
    def inner(self, place: int, other: Gradients, there: int) -> float:
        """The inner product of an example's gradient with another's, over all layers, in float64."""

    def distance(self, place: int, other: Gradients, there: int) -> float:
        """Length of the difference of two examples' gradients."""
        own, both = self.inner(place, self, place), self.inner(place, other, there)
        return math.sqrt(max(own - 2 * both + other.inner(there, other, there), 0.0))

    @abstractmethod
    def steps(self, layer: Layer, scales: Tensor, projection: Tensor | None) -> Tensor:
        """Sum over the examples of their scaled gradients, each rounded to whole numbers, of shape (outputs, rank).

        ``projection`` of shape (inputs, rank) is applied from the right, if there is one.
        """

    def terms(self, *, routed: bool = False) -> int:
        """The most numbers that are added up in one entry of an example's projected gradient, or none.

        Or, if tokens may be ``routed`` to other layers, in that of any example with as many tokens.
        """
        return 0


class GradientsOfB(Gradients):
    """Gradients of B, a matrix of ``outputs x rank`` for every example and layer."""

    def __init__(self, layers: Sequence[Layer], n: int) -> None:
        super().__init__(layers, n)
        self._of: dict[str, Tensor] = {}

    def keep(self, layer: Layer, x: Tensor, g: Tensor) -> None:
        one = torch.bmm(g.transpose(1, 2), x)
        self._of[layer.name] = self._of[layer.name] + one if layer.name in self._of else one

    def kept(self) -> Iterator[Tensor]:
        yield from self._of.values()

    def total(self, layer: Layer) -> Tensor:
        found = self._of.get(layer.name)
        return torch.zeros_like(layer.trained) if found is None else found.sum(0)

    def lengths(self) -> Tensor:
        squares = sum(torch.linalg.vector_norm(one.flatten(1), dim=1, dtype=torch.float64) ** 2 for one in self.kept())
        size = sum(layer.outputs * layer.inputs for layer in self.layers)
        return _roots(squares, self.n, (size + 64) * 4 * UNIT)

    def inner(self, place: int, other: Gradients, there: int) -> float:
        assert isinstance(other, GradientsOfB)
        both = self._of.keys() & other._of.keys()
        return math.fsum(float((self._of[one][place].double() * other._of[one][there].double()).sum()) for one in both)

    def steps(self, layer: Layer, scales: Tensor, projection: Tensor | None) -> Tensor:
        found = self._of.get(layer.name)
        if found is None:
            return torch.zeros(layer.outputs, layer.inputs, dtype=torch.float64, device="cpu")
        return _rounded_sum(found, scales)


class FullGradients(Gradients):
    """Gradients of the whole weights of layers, of which only inputs and gradients of outputs are kept."""

    def __init__(self, layers: Sequence[Layer], n: int) -> None:
        super().__init__(layers, n)
        self._calls: dict[str, list[tuple[Tensor, Tensor]]] = {}

    def keep(self, layer: Layer, x: Tensor, g: Tensor) -> None:
        if x.shape[1]:
            self._calls.setdefault(layer.name, []).append((x, g))

    def kept(self) -> Iterator[Tensor]:
        yield from (one for calls in self._calls.values() for call in calls for one in call)

    def derived(self) -> Iterator[Tensor]:
        yield from (g for calls in self._calls.values() for _, g in calls)

    def total(self, layer: Layer) -> Tensor:
        x, g = self._tokens(layer)
        return g.flatten(0, 1).T @ x.flatten(0, 1)

    def lengths(self) -> Tensor:
        """Ghost norms: ``sum <g_s, g_t> <x_s, x_t>`` over pairs of tokens, plus all that rounding may have lost.

        At least 2^-8 of the sum of the lengths of the terms.
        """
        squares, most = torch.zeros(2, self.n, dtype=torch.float64, device="cpu")
        error = 0.0
        for layer in self.layers:
            x, g = self._tokens(layer)
            pairs, xx, gg = x.shape[1] ** 2, x.square().sum(2), g.square().sum(2)
            if pairs > layer.inputs * layer.outputs:  # what is summed in place of pairs is smaller, and no worse
                found = torch.bmm(g.mT, x).square()
            else:
                found = torch.bmm(x, x.mT) * torch.bmm(g, g.mT)
            least = TINY * pairs * (1 + xx.amax(1) + gg.amax(1))  # what underflows
            squares = squares + (found.sum((1, 2)) + least).cpu()
            most = most + (xx * gg).sqrt().sum(1).cpu() ** 2
            error = max(error, 8 * UNIT * (pairs + layer.inputs + layer.outputs + 16))
        return torch.maximum(_roots(squares.clamp_min(0) + error * most, self.n, 1e-12), most.sqrt() / CANCELLED)

    def inner(self, place: int, other: Gradients, there: int) -> float:
        assert isinstance(other, FullGradients)
        found = []
        for layer in self.layers:
            (x, g), (u, d) = self._tokens(layer, [place]), other._tokens(layer, [there])
            found.append(float(((x[0] @ u[0].mT) * (g[0] @ d[0].mT)).sum()))
        return math.fsum(found)

    def steps(self, layer: Layer, scales: Tensor, projection: Tensor | None) -> Tensor:
        assert projection is not None
        x, g = self._tokens(layer)
        return _rounded_sum(torch.bmm(g.mT, x @ projection.to(x.device)), scales)

    def packed(self) -> list[Tensor]:
        """Of one example, how many tokens came to each layer, and these: a layer's inputs, its gradients of outputs."""
        counts, numbers = [], []
        for layer in self.layers:
            calls = self._calls.get(layer.name, [])
            counts.append(sum(x.shape[1] for x, _ in calls))
            numbers += [call[place].flatten() for place in (0, 1) for call in calls]
        return [torch.tensor(counts), torch.cat(numbers) if numbers else torch.zeros(0)]

    @classmethod
    def unpacked(cls, layers: Sequence[Layer], counts: Tensor, numbers: Tensor, most: int) -> FullGradients | None:
        """One example's, as another process packed them; None where these are no such numbers, or too many tokens."""
        found, tokens = cls(layers, 1), counts.tolist()
        if min(tokens) < 0 or sum(tokens) > most:
            return None
        for layer, count in zip(layers, tokens):
            x, g, numbers = numbers.tensor_split([count * layer.inputs, count * (layer.inputs + layer.outputs)])
            found.keep(layer, x.view(1, count, layer.inputs), g.view(1, count, layer.outputs))
        return found

    def terms(self, *, routed: bool = False) -> int:
        tokens = {name: sum(x.shape[1] for x, _ in calls) for name, calls in self._calls.items()}
        if routed:
            return max(layer.inputs for layer in self.layers) + sum(tokens.values())
        return max(layer.inputs + tokens.get(layer.name, 0) for layer in self.layers)

    def _tokens(self, layer: Layer, places: Sequence[int] | None = None) -> tuple[Tensor, Tensor]:
        """Inputs and gradients of outputs of all calls of a layer, in float64; of all examples, or of some."""
        some = slice(None) if places is None else places
        calls = self._calls.get(layer.name)
        if calls is None:
            n = self.n if places is None else len(places)
            place = {"dtype": torch.float64, "device": layer.device}
            x, g = (torch.zeros(n, 1, width, **place) for width in (layer.inputs, layer.outputs))
        else:
            x, g = (torch.cat([call[some] for call in one], dim=1).double() for one in zip(*calls))
        return x, g


def _roots(squares: Tensor | int, n: int, error: float) -> Tensor:
    found = squares.cpu() if isinstance(squares, torch.Tensor) else torch.zeros(n, dtype=torch.float64, device="cpu")
    return found.sqrt() * (1 + error)


def _rounded_sum(parts: Tensor, scales: Tensor) -> Tensor:
    """``sum_i rint(scales_i parts_i)``, exact; an example whose scale is 0 counts nothing, whatever it holds."""
    steps = torch.nan_to_num_(parts.double(), nan=0.0, posinf=0.0, neginf=0.0)
    steps *= scales.to(parts.device).view(-1, *[1] * (parts.dim() - 1))
    return steps.round_().sum(0).cpu()


@contextmanager
def _watched(model: nn.Module, found: Gradients) -> Iterator[None]:
    """In this context, backward passes of the model leave their gradients in ``found``, and none in parameters."""
    learned = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    idle = [layer.module for layer in found.layers if layer.watched is layer.module]  # adapters whose B is 0
    handles = []
    try:
        for module in idle:
            module.enable_adapters(False)
        for parameter, _ in learned:
            parameter.requires_grad_(False)
        for layer in found.layers:
            handles.append(layer.watched.register_forward_hook(_hook(layer, found)))
        yield
    finally:
        for handle in handles:
            handle.remove()
        for module in idle:
            module.enable_adapters(True)
        for parameter, before in learned:
            parameter.requires_grad_(before)


class _Begun(torch.autograd.Function):
    """The same numbers, at which a graph begins; nothing is copied, and no gradient is kept for what was before."""

    @staticmethod
    def forward(_: Any, output: Tensor, token: Tensor) -> Tensor:
        """Depends on the token alone."""
        return output.view_as(output)

    @staticmethod
    def backward(_: Any, g: Tensor) -> tuple[None, None]:
        """Ends here."""
        return None, None


def _hook(layer: Layer, found: Gradients) -> Callable[..., Tensor]:
    def after(_: nn.Module, given: tuple[Tensor, ...], output: Tensor) -> Tensor:
        if not torch.is_grad_enabled():
            return output
        if not output.requires_grad:  # nothing before it learns: the graph begins here
            output = _Begun.apply(output, torch.zeros((), device=output.device, requires_grad=True))
            if layer.watched is layer.module:  # a model may go on in place with what its layers give
                output = output.clone()
        x = given[0].detach()
        if type(x) is not torch.Tensor:  # of a class whose products are its own
            raise ValueError("a layer's inputs are not of torch's own class")
        output.register_hook(lambda g: found.keep(layer, _by_example(x, found.n), _by_example(g.detach(), found.n)))
        return output

    return after


def _by_example(values: Tensor, n: int) -> Tensor:
    """As (n, tokens, features); all of it is of the one example if there is one."""
    if n > 1 and values.shape[0] != n:
        raise ValueError("the first dimension of a layer's inputs is not that of the examples")
    return values.reshape(n, math.prod(values.shape[:-1]) // n, values.shape[-1])


def backward(
    model: nn.Module, loss: Loss, found: Gradients, batch: Mapping[str, Tensor], only: int | None = None
) -> Tensor:
    """Run forward and backward, which leaves the examples' gradients in ``found``; the losses of all examples.

    Every module is in evaluation mode: none drops anything, or learns from a batch by itself.
    ``only`` one of them is derived, if that is asked for.
    """
    with torch.enable_grad(), evaluating(model), _watched(model, found):
        losses = loss(model, batch)
        if not isinstance(losses, torch.Tensor) or losses.shape != (found.n,):
            raise ValueError("the loss is not one number for every example")
        if losses.requires_grad:
            (losses.sum() if only is None else losses[only]).backward()
    return losses.detach()
