"""What became of a pipeline of scikit-learn, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Converted:
    """One step."""

    step: str  # its name
    given: str  # its class
    became: str  # name of the step that stands for it
    changed: tuple[str, ...]  # how the counterpart differs
    ignored: tuple[str, ...]  # parameters without a meaning for the counterpart

    def __str__(self) -> str:
        notes = list(self.changed)
        if self.ignored:
            notes.append(f"ignored: {', '.join(self.ignored)}")
        arrow = f"{self.step} ({self.given}) -> {self.became}" if self.given else f"added: {self.became}"
        return "".join([arrow, *(f"\n    {note}" for note in notes)])


@dataclass(frozen=True, slots=True)
class Conversion:
    """What became of a pipeline of scikit-learn.

    Attributes
    ----------
    steps : tuple of Converted
        In the order of the pipeline.
    unused : tuple of str
        What was declared of columns that no step takes.
    """

    steps: tuple[Converted, ...]
    unused: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Converted]:
        return iter(self.steps)

    def __repr__(self) -> str:
        unused = [f"declared of columns that no step takes: {', '.join(self.unused)}"] if self.unused else []
        return "\n".join([*map(str, self.steps), *unused])
