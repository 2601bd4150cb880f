"""Released mean labels by name: which category, how many rows, which share of a class or which mean target."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ppdp.certificate.record import Release
from ppdp.core.domain import Domain
from ppdp.data.intervals import gaussian_ends
from ppdp.data.label_means import CLEAR
from ppdp.data.rows import Array
from ppdp.data.units import Answers, Codes, Columns

ELSE = "anything else"
CERTAIN = 8.0  # standard deviations of its noise that a number of rows exceeds where quotients have intervals


def _words(kind: Any, count: int) -> list[str]:
    """The categories by code, or so many codes where they have no names; no words for codes that no row can have."""
    if not isinstance(kind, Codes):
        return [str(code) for code in range(count)]
    names = dict(zip(kind.values, kind.names))
    return [names.get(float(code), "") for code in range(count)]


def label_answers(release: Release, table: Array, noise: float, columns: Columns, domain: Domain) -> list[Answers]:
    """For every column and category the number of rows, and what their labels are where there are clearly some.

    Standard errors are those of the noise; of a quotient to first order.
    """
    told = []
    for position, own in zip(release.parameters["columns"], table):
        name = columns.names[position]
        words = _words(columns.kinds[position], len(own) - 1)
        used = [code for code, word in enumerate(words) if word]
        own = own[[*used, -1]]
        named = Columns.raw([f"{name} = {word}" for word in (*(words[code] for code in used), ELSE)])
        rows, parts = own.sum(axis=1), own.shape[1]
        told.append(Answers.of("rows of the category", named, rows, noise * math.sqrt(parts)))
        with np.errstate(all="ignore"):
            shares = own / np.where(rows > CLEAR * noise * math.sqrt(parts), rows, np.nan)[:, None]
            errors = noise * np.sqrt(1 - 2 * shares + parts * shares**2) / rows[:, None]
            certain = np.where(rows > CERTAIN * noise * math.sqrt(parts), 1.0, np.nan)
        note = "before smoothing; none where hardly more than noise"
        if domain.classes is None:
            low, high = domain.require("y_range")
            width = np.full(len(rows), high - low)
            own = Answers.linear("mean target", named, shares[:, 1], errors[:, 1], width, low, note)
            told.append(replace(own, ends=partial(gaussian_ends, own.value, own.error * certain)))
            continue
        for i, label in list(enumerate(domain.classes))[1 if parts == 2 else 0 :]:
            own = Answers.of(f"share of class {label}", named, shares[:, i], errors[:, i], note)
            told.append(replace(own, ends=partial(gaussian_ends, own.value, own.error * certain)))
    return told
