"""Sums of the clipped gradients of a batch, with noise: every example by itself."""

from __future__ import annotations

import math
from typing import NoReturn

import torch
from torch import nn

from ppdp.exceptions import StageFailed
from ppdp.mechanisms.lora.adapter import uniform_frame
from ppdp.mechanisms.lora.data import Batch, parts
from ppdp.mechanisms.lora.gradients import Gradients, GradientsOfB, Loss, backward
from ppdp.mechanisms.lora.layers import STAGE, Layer, Tensor
from ppdp.mechanisms.lora.plan import LoRAPlan
from ppdp.mechanisms.lora.probe import closeness
from ppdp.mechanisms.lora.state import State, fingerprint
from ppdp.privacy.noise.sampler import Noise

LARGEST_COUNT = 2.0**50  # what the sampler takes a whole number of its steps to be at most


class Sums:
    """What leaves a batch, as the plan says.

    :class:`StageFailed` if model or loss draw, or are seen to remember an example.
    """

    def __init__(
        self,
        model: nn.Module,
        loss: Loss,
        kind: type[Gradients],
        layers: tuple[Layer, ...],
        plan: LoRAPlan,
        public: Batch,
        microbatch: int,
        noise: Noise,
    ) -> None:
        self._model, self._loss, self._kind, self._layers = model, loss, kind, layers
        self._plan, self._asked = plan, plan.question.parameters
        self._public, self._microbatch, self._noise = public, microbatch, noise
        self._pure = True  # whether model and loss kept nothing of an example
        self._state = State(model, loss)  # as the last batch found it

    def are_pure(self) -> bool:
        """Whether nothing was found that model or loss kept of an example."""
        return self._pure and not self._state.changed()

    def impure(self, what: str) -> NoReturn:
        """Stop, and remember why nobody may go on with this model."""
        self._pure = False
        raise StageFailed(what, stage=STAGE, fix="a model, loss and optimizer that are pure.")

    def counts(self, batch: Batch, projections: list[Tensor | None]) -> list[Tensor]:
        """For every layer the sum of the clipped gradients, in whole steps of the lattice, each example by itself."""
        rank, clip = self._asked["rank"], self._asked["clip"]
        unit = math.ldexp(self._plan.noise_scale, -self._plan.exponent)
        sums = [torch.zeros(layer.outputs, rank, dtype=torch.float64) for layer in self._layers]
        trained = [layer.trained for layer in self._layers]
        weights = fingerprint(trained)
        self._state.look()
        alone = self._found(self._public)
        for part in parts(batch, self._microbatch):
            found = self._found(part)
            if found.terms() > self._asked.get("terms", 0):
                raise StageFailed("an example has more tokens than the probe.", stage=STAGE, fix="padding.")
            if self._state.changed():
                self.impure("model or loss drew a random number, or remember something of an example.")
            lengths = found.lengths()
            scales = torch.where(lengths.isfinite(), clip / lengths.clamp_min(clip) / unit, 0.0)
            for total, layer, projection in zip(sums, self._layers, projections):
                total += found.steps(layer, scales, projection)
        self._check_public(self._found(self._public), alone)
        if fingerprint(trained) != weights:
            self.impure("a forward pass changes the adapter.")
        return sums

    def _found(self, part: Batch) -> Gradients:
        found = self._kind(self._layers, len(next(iter(part.values()))))
        # Memory of its own, which the loss may fill, and from which no other example can be reached:
        backward(self._model, self._loss, found, {name: one.clone() for name, one in part.items()})
        return found

    def _check_public(self, found: Gradients, alone: Gradients) -> None:
        """Stop where a made-up example has another gradient behind private ones: something remembers them."""
        length = float(alone.lengths()[0])
        most = closeness(self._asked["batch_size"]) * max(length, self._asked["clip"])
        if math.isfinite(length) and not found.distance(0, alone, 0) <= most:
            self.impure("a made-up example has another gradient behind private ones than before them.")

    def projections(self) -> list[Tensor | None]:
        """For every layer ``rank`` orthonormal columns in a uniform direction, from fresh entropy; none of B."""
        if self._kind is GradientsOfB:
            return [None] * len(self._layers)
        rank = self._asked["rank"]
        return [torch.from_numpy(uniform_frame(self._noise, layer.inputs, rank)) for layer in self._layers]

    def noisy(self, counts: Tensor) -> Tensor:
        """The sum with noise, over the expected size of a batch."""
        noisy = self._noise.release(counts.numpy(), math.ldexp(1.0, self._plan.exponent), LARGEST_COUNT)
        unit = math.ldexp(self._plan.noise_scale, -self._plan.exponent)
        return torch.from_numpy(noisy * (unit / self._asked["batch_size"]))
