"""Steps: sums of the clipped gradients of a secret batch, every example by itself, with noise, and what they move."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NoReturn

import torch

from ppdp.core.rounding import inflate
from ppdp.exceptions import StageFailed
from ppdp.mechanisms.learn.sampling import poisson_sample
from ppdp.mechanisms.lora.adapter import uniform_frame
from ppdp.mechanisms.lora.conditions import Probed, told_nothing
from ppdp.mechanisms.lora.data import Batch, parts, taken
from ppdp.mechanisms.lora.gradients import FullGradients, Gradients, GradientsOfB, backward
from ppdp.mechanisms.lora.layers import STAGE, Tensor
from ppdp.mechanisms.lora.plan import LoRAPlan
from ppdp.mechanisms.lora.probe import closeness
from ppdp.mechanisms.lora.process import LONGEST, Copies
from ppdp.mechanisms.lora.state import State
from ppdp.mechanisms.lora.weights import Weights
from ppdp.privacy.noise.sampler import Noise

LARGEST_COUNT = 2.0**50  # what the sampler takes a whole number of its steps to be at most


class Sums:
    """What leaves a batch, as the plan says, and what it makes of the weights.

    :class:`StageFailed` if model or loss draw, are seen to remember an example, or are not as for the probe.
    """

    def __init__(self, probed: Probed, plan: LoRAPlan, public: Batch, weights: Weights, noise: Noise) -> None:
        self._probed, self._layers, self._plan, self.weights = probed, probed.layers, plan, weights
        self._asked, self._public, self._noise = plan.question.parameters, public, noise
        self._unit = math.ldexp(plan.noise_scale, -plan.exponent)  # the step of the lattice
        self._pure = True  # whether model and loss kept nothing of an example
        self._state = State(probed.model, probed.loss)  # as the last call left it
        self._done = 0
        self._copies = self._waiting() if self._asked["isolation"] == "process" else None

    def _waiting(self) -> Copies:
        """What is copied for each example: model and loss as they are now, which learn of no projection."""
        loaded = [layer.trained for layer in self._layers]
        if self._probed.kind is GradientsOfB:
            size = sum(map(math.prod, self._shapes()))
            return Copies(loaded, self._public, [torch.empty(size, dtype=torch.float64)], self._clipped_alone)
        widest = max(layer.inputs + layer.outputs for layer in self._layers)
        kind = max((layer.trained.dtype for layer in self._layers), key=lambda one: one.itemsize)
        numbers = torch.empty(self._most_tokens * widest, dtype=torch.promote_types(kind, torch.float32))
        counts = torch.empty(len(self._layers), dtype=torch.int64)
        return Copies(loaded, self._public, [counts, numbers], self._tokens_alone)

    def _clipped_alone(self, part: Batch) -> list[Tensor]:
        clipped = self._clipped(self._found(part), self._no_projections())
        return [torch.cat([one.flatten() for one in clipped])]

    def _tokens_alone(self, part: Batch) -> list[Tensor]:
        found = self._found(part)
        assert isinstance(found, FullGradients)
        return found.packed()

    @property
    def _most_tokens(self) -> int:
        """The most tokens of an example, in all layers together."""
        return int(self._asked["terms"]) - max(layer.inputs for layer in self._layers)

    def close(self) -> None:
        """Let no process wait for more."""
        if self._copies is not None:
            self._copies.close()

    def are_pure(self) -> bool:
        """Whether nothing was found that model or loss kept of an example."""
        with told_nothing():
            return self._pure and not self._state.changed() and not self._probed.changed()

    def impure(self, what: str) -> NoReturn:
        """Stop, and remember why nobody may go on with this model."""
        self._pure = False
        raise StageFailed(what, stage=STAGE, fix="a model and a loss that are pure, and nothing beside them.")

    def step(self, table: Batch) -> bool:
        """Draw a batch, and move the weights by its noisy sum; whether they can be, and are as before otherwise."""
        if self._copies is None:
            self.check()
        self.weights.write()
        places = poisson_sample(self._noise, len(next(iter(table.values()))), self._plan.rate)
        projections = self.projections()
        counts = self.counts(taken(table, places, self._public), projections)
        if self._copies is None:
            self.check()
            if not self.weights.are_written():
                self.impure("a forward pass, or something beside it, changes the adapter.")
        answers = zip((self.noisy(one) for one in counts), projections)
        self._done += 1
        return self.weights.update((one if frame is None else one @ frame.T for one, frame in answers), self._done - 1)

    def check(self) -> None:
        """Stop where anything is not as the last call left it, or not as the probe found it."""
        with told_nothing():
            changed, places = self._probed.changed(), ", ".join(self._state.places())
        if changed:
            self.impure(f"{changed} changed while the adapter was trained.")
        if places:
            self.impure(f"something is kept or was changed between two steps, in {places}.")

    def counts(self, batch: Batch, projections: list[Tensor | None]) -> list[Tensor]:
        """For every layer the sum of the clipped gradients, in whole steps of the lattice, each example by itself."""
        sums = [torch.zeros(shape, dtype=torch.float64, device="cpu") for shape in self._shapes()]
        for found in (self._watched if self._copies is None else self._apart)(batch, projections):
            for total, one in zip(sums, found):
                total += one
        return sums

    def _shapes(self) -> list[tuple[int, int]]:
        return [(layer.outputs, self._asked["rank"]) for layer in self._layers]

    def _watched(self, batch: Batch, projections: list[Tensor | None]) -> Iterator[list[Tensor]]:
        """The sums of all calls, behind each of which model and loss must be as they were."""
        with told_nothing():
            self._state.look()
        alone = self._found(self._public)
        for part in parts(batch, self._probed.microbatch):
            found = self._found(part)
            with told_nothing():
                changed = self._state.changed()
            if changed:
                self.impure("model or loss drew a random number, or remember something of an example.")
            yield self._clipped(found, projections)
        self._check_public(self._found(self._public), alone)

    def _apart(self, batch: Batch, projections: list[Tensor | None]) -> Iterator[list[Tensor]]:
        """The sums of all examples, each from a process of its own; one that fails adds nothing."""
        assert self._copies is not None
        self._copies.load(self.weights.own)
        answers = (self._copies.call(part) for part in parts(batch, 1))
        yield from (found for one in answers if one and (found := self._read(one, projections)) is not None)

    def _read(self, answer: list[Tensor], projections: list[Tensor | None]) -> list[Tensor] | None:
        """What a process of its own gave of an example, as whole numbers no longer than the clip, or None.

        What is projected is clipped here: a length behind a projection does not tell that in front of it.
        """
        if self._probed.kind is not GradientsOfB:
            counts, numbers = answer
            whole = FullGradients.unpacked(self._layers, counts, numbers, self._most_tokens)
            return None if whole is None else self._clipped(whole, projections)
        shapes, found = self._shapes(), answer[0]
        sizes = [math.prod(shape) for shape in shapes]
        most = inflate(self._asked["clip"] / self._unit + math.sqrt(sum(sizes)) / 2)
        if not found.round_().norm() <= most:
            return None
        return [one.view(shape) for one, shape in zip(found.split(sizes), shapes)]

    def try_apart(self) -> bool:
        """Whether a made-up example has its gradient in a process of its own, if all are to have one."""
        if self._copies is None:
            return True
        self._copies.load(self.weights.own)
        answer = self._copies.call(self._public, longest=LONGEST)
        return answer is not None and self._read(answer, self._no_projections()) is not None

    def _clipped(self, found: Gradients, projections: list[Tensor | None]) -> list[Tensor]:
        """For every layer the sum of these gradients, each clipped, in whole steps of the lattice."""
        if found.terms() > self._asked.get("terms", 0):
            raise StageFailed("an example has more tokens than the probe.", stage=STAGE, fix="padding.")
        lengths, clip = found.lengths(), self._asked["clip"]
        scales = torch.where(lengths.isfinite(), clip / lengths.clamp_min(clip) / self._unit, 0.0)
        return [found.steps(layer, scales, projection) for layer, projection in zip(self._layers, projections)]

    def _found(self, part: Batch) -> Gradients:
        probed = self._probed
        found: Gradients = probed.kind(self._layers, len(next(iter(part.values()))))
        # Memory of its own, which the loss may fill, and from which no other example can be reached:
        with told_nothing():
            backward(probed.model, probed.loss, found, {name: one.clone() for name, one in part.items()})
        return found

    def _check_public(self, found: Gradients, alone: Gradients) -> None:
        """Stop where a made-up example has another gradient behind private ones: something remembers them."""
        length = float(alone.lengths()[0])
        most = closeness(self._asked["batch_size"]) * max(length, self._asked["clip"])
        if math.isfinite(length) and not found.distance(0, alone, 0) <= most:
            self.impure("a made-up example has another gradient behind private ones than before them.")

    def projections(self) -> list[Tensor | None]:
        """For every layer ``rank`` orthonormal columns in a uniform direction, from fresh entropy; none of B."""
        uniform = (uniform_frame(self._noise, *one.shape) for one in self._no_projections() if one is not None)
        return [*map(torch.from_numpy, uniform)] or self._no_projections()

    def _no_projections(self) -> list[Tensor | None]:
        """As :meth:`projections`, of zeros."""
        if self._probed.kind is GradientsOfB:
            return [None] * len(self._layers)
        rank = self._asked["rank"]
        return [torch.zeros(layer.inputs, rank, dtype=torch.float64, device="cpu") for layer in self._layers]

    def noisy(self, counts: Tensor) -> Tensor:
        """The sum with noise, over the expected size of a batch."""
        noisy = self._noise.release(counts.numpy(), math.ldexp(1.0, self._plan.exponent), LARGEST_COUNT)
        return torch.from_numpy(noisy * (self._unit / self._asked["batch_size"]))
