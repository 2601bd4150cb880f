"""Released mean labels by name: which category, how many rows, which share of a class or which mean target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ppdp.certificate.record import Release
from ppdp.core.domain import Domain
from ppdp.data.label_means import CLEAR
from ppdp.data.rows import Array
from ppdp.data.units import Answers, Columns
from ppdp.transformers.columns.categories import Encoded, Labelled, is_gap
from ppdp.transformers.columns.unlisted import Unlisted

Codes = Mapping[str, Sequence[str]]
ELSE = "anything else"


def codes_behind(twin: Any) -> Codes:
    """What the codes in columns behind a released twin stand for, by the name of the column, where it makes codes."""
    located = twin.located() if hasattr(twin, "located") else ()
    return {
        f"{block.prefix}{name}": words
        for block, _, facts in located
        if block.maps
        for i, name in enumerate(facts[-1].names)
        if (words := _words(block.maps[-1], i))
    }


def _words(step: Any, position: int) -> Sequence[str]:
    """The categories of a column in the order of their codes; no words for codes that no row can have."""
    if isinstance(step, Labelled):
        return step.categories[position]
    if isinstance(step, Unlisted) and not step.hot:
        found = () if step.found is None else step.found[position]
        unused = [""] * (step.most - len(found))
        return [*found, *unused, *(name for name in (step.other, step.missing) if name is not None)]
    if isinstance(step, Encoded):
        return ["missing" if is_gap(one) else str(one) for one in step.categories[position]]
    return ()


def label_answers(
    release: Release, table: Array, noise: float, columns: Columns, domain: Domain, codes: Codes
) -> list[Answers]:
    """For every column and category the number of rows, and what their labels are where there are clearly some.

    Standard errors are those of the noise; of a quotient to first order.
    """
    told = []
    for position, own in zip(release.parameters["columns"], table):
        name = columns.names[position]
        words = codes.get(name) or [str(code) for code in range(len(own) - 1)]
        used = [code for code, word in enumerate(words) if word]
        own = own[[*used, -1]]
        named = Columns.raw([f"{name} = {word}" for word in (*(words[code] for code in used), ELSE)])
        rows, parts = own.sum(axis=1), own.shape[1]
        told.append(Answers.of("rows of the category", named, rows, noise * math.sqrt(parts)))
        with np.errstate(all="ignore"):
            shares = own / np.where(rows > CLEAR * noise * math.sqrt(parts), rows, np.nan)[:, None]
            errors = noise * np.sqrt(1 - 2 * shares + parts * shares**2) / rows[:, None]
        note = "before smoothing; none where hardly more than noise"
        if domain.classes is None:
            low, high = domain.require("y_range")
            width = np.full(len(rows), high - low)
            told.append(Answers.linear("mean target", named, shares[:, 1], errors[:, 1], width, low, note))
            continue
        for i, label in list(enumerate(domain.classes))[1 if parts == 2 else 0 :]:
            told.append(Answers.of(f"share of class {label}", named, shares[:, i], errors[:, i], note))
    return told
