"""Private examples: named tensors of one length that look like the probe, which are data and run nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from numpy.typing import NDArray

from ppdp.exceptions import DomainMismatch, InvalidInput
from ppdp.mechanisms.lora.conditions import told_nothing
from ppdp.mechanisms.lora.layers import STAGE, Tensor, is_ordinary

Batch = Mapping[str, Tensor]
Form = Mapping[str, Tensor]  # tensors whose shapes but for the first dimension, types and devices are public


def taken_over(one: Any) -> Any:
    """A tensor as one of ppdp's, whose class is what is used later: anything of a user's is asked once."""
    return torch.Tensor.detach(one) if isinstance(one, torch.Tensor) else one


def is_plain(one: Any) -> bool:
    """Whether it is a tensor of torch's own class with a number in every place, and a row for each example."""
    plain = type(one) is torch.Tensor and is_ordinary(one) and one.dim() > 0
    return plain and (not one.numel() or one.untyped_storage().nbytes() > 0)  # which sharded training frees


def table_of(data: Any, form: Form) -> Batch:
    """The tensors of all examples, as they are now; only their form is looked at.

    :class:`InvalidInput` if they are no named tensors, :class:`DomainMismatch` if they have another form than the
    probe.
    """
    if not isinstance(data, Mapping):
        raise InvalidInput(
            f"examples are named tensors with a row for each; a {type(data).__name__} is something else.",
            stage=STAGE,
            fix=f"{{{', '.join(f'{name!r}: torch.stack([one[{name!r}] for one in data])' for name in form)}}}.",
        )
    with told_nothing():  # by what reads a file when it is asked
        table = {name: taken_over(data[name]) for name in form} if data.keys() == form.keys() else {}
        other = [f"{name!r} {how}" for name, one in table.items() if (how := _otherwise(one, form[name]))]
    if not table:
        other = [f"their names are not {', '.join(map(repr, form))} alone"]
    elif not other and len({len(one) for one in table.values()}) != 1:
        other = ["the tensors are not of one length"]
    if other:
        fix = "torch.as_tensor(...), .to(type), texts that are padded to one length."
        raise DomainMismatch(f"the examples have another form than the probe: {other[0]}.", stage=STAGE, fix=fix)
    return table


def _otherwise(one: Any, of: Tensor) -> str:
    """What is not as in the probe, told by classes, types and the probe's own shape; empty if nothing is."""
    if not is_plain(one):
        return f"is of the class {type(one).__name__}, and no ordinary tensor with a row for each example"
    if one.dtype != of.dtype:
        return f"is of {one.dtype}, not of {of.dtype}"
    return "" if one.shape[1:] == of.shape[1:] else f"has no rows of the shape {tuple(of.shape[1:])}"


def taken(table: Batch, places: NDArray[Any], form: Form) -> Batch:
    """The examples at these places, where the probe was."""
    chosen = torch.from_numpy(places)
    return {name: one[chosen.to(one.device)].to(form[name].device) for name, one in table.items()}


def parts(batch: Batch, most: int) -> Iterator[Batch]:
    """Parts of at most so many examples."""
    for start in range(0, len(next(iter(batch.values()))), most):
        yield {name: one[start : start + most] for name, one in batch.items()}


def versions(table: Batch) -> list[int]:
    """How often tensors were written to."""
    return [0 if one.is_inference() else one._version for one in table.values()]
