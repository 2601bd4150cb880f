"""What is looked at on public examples before anything is spent, in the mode that is trained in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import nn

from ppdp.exceptions import said_by
from ppdp.mechanisms.lora.conditions import Operations, arithmetic, evaluating, fingerprint
from ppdp.mechanisms.lora.data import is_plain, taken_over
from ppdp.mechanisms.lora.gradients import Gradients, Loss, backward
from ppdp.mechanisms.lora.layers import Layer, Tensor, refuse
from ppdp.mechanisms.lora.state import State

MOST, WIDEST = 4, 32  # examples that are looked at; places of a batch that is filled with them, at least
CLOSE, ALL = 1e-4, 0.05  # of a gradient's length: what rounding may make of it in another batch; of a whole batch's
ADDED_UP = {False: 1e-3, True: 0.1}  # of the gradients' sum: what autograd may differ by; where numbers are coarse
MIXED = "the gradient of an example depends on the other examples of its batch"
PROBE = "probe must be a mapping of names to tensors with at least two made-up examples, as loss takes them."
PURE = "a model and a loss that remember nothing of a batch, and draw nothing."
DIFFER = "a probe of examples that differ, as torch.randint or two texts give them."
PER_EXAMPLE = "a loss that returns one number for every example, reduction='none', and layers that keep examples apart."
ALONE = "microbatch=1, by which every gradient is computed alone; or float32 throughout, model.float()."
CARRIED = "the gradient of an example depends on chance, or on an earlier call"


def closeness(batch_size: int) -> float:
    """What an example's gradient may differ by in another batch, as a share of its length."""
    return min(CLOSE, ALL / batch_size)


class Probe:
    """Runs of a model on a few made-up examples.

    :class:`InvalidParameter` if they are none, if a run depends on chance, if something remembers it, or if a gradient
    is not that of the example alone.
    """

    def __init__(
        self, model: nn.Module, loss: Loss, kind: type[Gradients], layers: tuple[Layer, ...], examples: Any
    ) -> None:
        given = {name: taken_over(one) for name, one in examples.items()} if isinstance(examples, Mapping) else {}
        # Names are hashed in every step: by no class of the user's, which would see the batch.
        if not given or not all(type(name) is str and is_plain(one) for name, one in given.items()):
            refuse(PROBE, "probe={'input_ids': ..., 'labels': ...}.")
        n = min(map(len, given.values()))
        if n < 2 or any(len(one) != n for one in given.values()):
            refuse(PROBE, "two rows or more, as many in every tensor.")
        self._model, self._loss, self._kind, self._layers = model, loss, kind, layers
        self._examples = {name: one[:MOST].clone() for name, one in given.items()}
        self.public = {name: one[:1].clone() for name, one in self._examples.items()}
        self._n = min(n, MOST)

    def check(self, microbatch: int, batch_size: int) -> int:
        """Refuse what is not covered; the most terms of an inner product."""
        if microbatch > 1 and (alike := _alike(self._examples)):
            named = ", ".join(alike)
            refuse(f"the first made-up examples have all the same {named}: nothing shows what mixes them.", DIFFER)
        before = fingerprint(self._model.parameters())
        whole = self._run(range(min(self._n, microbatch)))  # what is made once and kept, is made here
        self._state = State(self._model, self._loss)
        self._looked(self._state.look)
        operations = Operations()
        with operations:
            first = self._run([0])
        if operations.chance:
            drawn = ", ".join(sorted(operations.chance))
            what = f"the loss of a made-up example depends on chance ({drawn})."
            refuse(what, "no dropout by hand, no sampling; eval() for a model beside it.")
        self._unchanged()
        self._coarse = operations.coarse or bool(arithmetic())
        if self._coarse and microbatch > 1:
            refuse("numbers of less than 32 bits make a gradient depend on its batch.", ALONE)
        alone = [first, *(self._run([place]) for place in range(1, self._n))]
        self._sane([*alone, whole])
        most = closeness(batch_size)
        for places in self._batches(microbatch, batch_size):
            self._compare(self._run(places), places, alone, most)
        if microbatch > 1:
            self._derive()
        self._add_up(microbatch)
        if fingerprint(self._model.parameters()) != before:
            refuse("a run on made-up examples changes the model's weights.", "a model whose forward pass is pure.")
        del self._state
        self._first, self._most = first, most
        return max(one.terms(routed=True) for one in alone)

    def again(self) -> None:
        """Refuse where the first made-up example has another gradient by now, for whatever reason."""
        length = float(self._first.lengths()[0])
        if not self._run([0]).distance(0, self._first, 0) <= self._most * length:
            what = "a made-up example has another gradient than the probe saw."
            refuse(what, "the model, loss and settings of then.")

    def _run(self, places: Sequence[int], only: int | None = None) -> Gradients:
        """Gradients of a batch of these examples, or of the loss of one of them."""
        found = self._kind(self._layers, len(places))
        try:
            batch = {name: one[torch.tensor(list(places), device=one.device)] for name, one in self._examples.items()}
            losses = backward(self._model, self._loss, found, batch, only)
        except Exception as error:  # whose words tell of nothing private
            refuse(f"loss(model, probe) stopped with {said_by(error)}.", PER_EXAMPLE)
        if not losses.isfinite().all():
            refuse("the loss of a made-up example is not finite.", "a probe as the model expects it.")
        return found

    def _looked(self, look: Callable[[], Any]) -> Any:
        try:
            return look()
        except Exception as error:  # whose words tell of nothing private
            refuse(f"what model and loss hold cannot be looked at: {said_by(error)}.", "plain attributes and globals.")

    def _unchanged(self) -> None:
        changed = self._looked(self._state.changed)
        if changed:
            refuse(f"a run depends on chance, or leaves a trace, in {', '.join(changed[:3])}.", PURE)

    def _sane(self, found: Sequence[Gradients]) -> None:
        if not all(kept.isfinite().all() for one in found for kept in one.kept()):
            refuse("the gradient of a made-up example is not finite.", "a probe as the model expects it.")
        if not any(kept.any() for one in found for kept in one.derived()):
            refuse("no gradient reaches any adapted layer.", "a loss of the model's outputs, no checkpointing.")

    def _batches(self, microbatch: int, batch_size: int) -> list[list[int]]:
        """Batches as they are trained on: all examples, in other orders, one less, companions exchanged, full ones."""
        own = list(range(self._n))
        if microbatch == 1:
            return [[place] for place in own[::-1]]
        found = [own, own[::-1], own[1:] + own[:1]]
        found += [own[:place] + own[place + 1 :] for place in own]
        found += [[place, (place + 1) % self._n] for place in own]
        full = min(microbatch, max(WIDEST, 2 * batch_size))
        found += [[place % self._n for place in range(full)]]
        found += [[(place + 1) % self._n] * (full - 1) + [place] for place in own]  # one that is unlike all others
        return [places[:microbatch] for places in found]

    def _compare(self, found: Gradients, places: Sequence[int], alone: Sequence[Gradients], most: float) -> None:
        """Refuse a batch in which an example has another gradient than alone."""
        self._unchanged()
        sizes = [one.inner(0, one, 0) ** 0.5 for one in alone]
        lengths, own = found.lengths(), [float(one.lengths()[0]) for one in alone]
        for i, place in enumerate(places):
            least = most * max(sizes[place], 1e-3 * max(sizes))
            same = found.distance(i, alone[place], 0) <= least
            if not same or not abs(float(lengths[i]) - own[place]) <= most * max(own[place], 1e-3 * max(own)):
                what = f"{MIXED}, or on chance, or on an earlier batch." if len(places) > 1 else f"{CARRIED}."
                refuse(what, f"{PER_EXAMPLE} Or microbatch=1." if len(places) > 1 else PURE)

    def _derive(self) -> None:
        """Refuse losses on which other examples have an influence, however small."""
        for place in range(self._n):
            rest = [other for other in range(self._n) if other != place]
            if any(one[rest].any() for one in self._run(range(self._n), only=place).derived()):
                refuse(f"{MIXED}.", PER_EXAMPLE)

    def _add_up(self, microbatch: int) -> None:
        """Refuse layers whose gradients do not add up to autograd's: weights that something else uses as well."""
        places = range(min(self._n, microbatch))
        found = self._run(places)
        batch = {name: one[: len(places)].clone() for name, one in self._examples.items()}
        weights = [layer.trained for layer in self._layers]
        before = [one.requires_grad for one in weights]
        try:
            for one in weights:
                one.requires_grad_(True)
            with torch.enable_grad(), evaluating(self._model):
                true = torch.autograd.grad(self._loss(self._model, batch).sum(), weights, allow_unused=True)
        except Exception as error:  # whose words tell of nothing private
            fast = "torch.backends.mha.set_fastpath_enabled(False) for nn.TransformerEncoder"
            refuse(f"autograd stopped with {said_by(error)}.", f"checkpoints with use_reentrant=False; {fast}.")
        finally:
            for one, learned in zip(weights, before):
                one.requires_grad_(learned)
        for layer, one in zip(self._layers, true):
            same = layer.shaped(found.total(layer)).double()
            other = torch.zeros_like(same) if one is None else one.double()
            rounded = 1e-6 * max(1.0, float(same.numel()) ** 0.5)
            if not (same - other).norm() <= ADDED_UP[self._coarse] * max(same.norm(), other.norm()) + rounded:
                what = "its weights are used elsewhere as well, or something changes gradients"
                refuse(f"the gradient of {layer.name} is not autograd's: {what}.", "other target_modules.")


def _alike(examples: Mapping[str, Tensor]) -> list[str]:
    """Names of tensors that are the same in all examples, unless another of their shape differs, as beside a mask."""
    same = {name: bool((one == one[:1]).all()) for name, one in examples.items()}
    differ = {one.shape for name, one in examples.items() if not same[name]}
    return sorted(name for name, one in examples.items() if same[name] and one.shape not in differ)
