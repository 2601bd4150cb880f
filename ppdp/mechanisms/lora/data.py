"""Private examples: named tensors that look like the probe, taken out by their places and never stacked unevenly."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils.data import TensorDataset

from ppdp.core.boundary import at_step, discreet
from ppdp.exceptions import DomainMismatch, InvalidInput
from ppdp.mechanisms.lora.layers import STAGE, Tensor
from ppdp.mechanisms.lora.state import has_generator, seeded
from ppdp.privacy.noise.sampler import Noise

Batch = Mapping[str, Tensor]
Form = Mapping[str, Tensor]
"""Tensors of no rows, whose shapes and types are public."""


@discreet
def length_of(data: Any, form: Form) -> int:
    """How many examples there are; only the form of the data is looked at, of a dataset that of its first example.

    :class:`InvalidInput` if they are neither named tensors of one length nor a dataset, :class:`DomainMismatch` if they
    have another form than the probe.
    """
    if isinstance(data, Mapping):
        check_form(data, form)
        return len(next(iter(data.values())))
    unnamed = hasattr(data, "shape") or isinstance(data, (str, bytes, TensorDataset))  # tables and arrays as well
    if unnamed or not hasattr(data, "__len__") or not hasattr(data, "__getitem__"):
        raise InvalidInput(
            f"examples are named tensors, or a dataset with len() that gives named tensors by index; a"
            f" {type(data).__name__} is neither.",
            stage=STAGE,
            fix=f"{{{', '.join(f'{name!r}: torch.as_tensor(...)' for name in form)}}}.",
        )
    if has_generator(data):
        raise InvalidInput(
            "the dataset has a random generator of its own, whose draws would depend on the order of examples.",
            stage=STAGE,
            fix="draw from the global generators, which are seeded afresh for each example.",
        )
    count = len(data)
    if count:
        with at_step(STAGE):
            _example(data, 0, 0, form)
    return count


def check_form(batch: Any, form: Form) -> None:
    """Refuse examples of another form than the probe's: padding to the longest of a batch would mix them."""
    same = isinstance(batch, Mapping) and batch.keys() == form.keys()
    if same:
        tensors = [(batch[name], form[name]) for name in form]
        same = all(isinstance(one, torch.Tensor) for one, _ in tensors)
        same = same and all(one.shape[1:] == of.shape[1:] and one.dtype == of.dtype for one, of in tensors)
        same = same and len({len(one) for one, _ in tensors}) == 1
    if not same:
        raise DomainMismatch(
            "the examples have another form than the probe.",
            stage=STAGE,
            fix="the same names, shapes and types, as of texts that are padded to one length.",
        )


def taken(data: Any, places: NDArray[np.intp], form: Form, noise: Noise) -> Batch:
    """The examples at these places.

    A dataset makes each of them with generators that were seeded for it alone, so that what it draws does not depend on
    the others (Statement 5).
    """
    if isinstance(data, Mapping):
        return {name: one.detach()[torch.from_numpy(places).to(one.device)] for name, one in data.items()}
    if not len(places):
        return dict(form)
    examples = [_example(data, int(place), int(seed), form) for place, seed in zip(places, noise.words(len(places)))]
    return {name: torch.cat([one[name] for one in examples]) for name in form}


def _example(data: Any, place: int, seed: int, form: Form) -> Batch:
    """One example of a dataset, as a batch, without the graph by which its numbers were made."""
    found: Batch = {}
    with seeded(seed):
        one = data[place]  # perhaps in memory that the next one will fill
        with suppress(Exception):  # a tuple, or no numbers
            found = {name: torch.as_tensor(one[name]).detach().clone()[None] for name in form}
    check_form(found, form)
    return found


def parts(batch: Batch, most: int) -> Iterator[Batch]:
    """Parts of at most so many examples."""
    for start in range(0, len(next(iter(batch.values()))), most):
        yield {name: one[start : start + most] for name, one in batch.items()}


def versions(batch: Batch) -> list[tuple[str, int, int]]:
    """Which tensors a batch holds, and how often they were written to."""
    return [(name, id(one), one._version) for name, one in batch.items()]
