"""Coefficients in raw units: a score is linear in the columns, so a scale and a shift of each go into them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ppdp.data.units import Answers, Columns
from ppdp.mechanisms.learn.errors import Errors

TRAINED = "what the noise of training does to it depends on the rows: no standard error"
HIDDEN = "noise hides how the loss bends: no standard error"


def told(model: Any, columns: Columns, errors: Errors | None) -> list[Answers]:
    """Coefficients and intercept of every score, with the standard error of each; NaN where none follows."""
    coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    d = coef.shape[1]
    slope, why = 1 / columns.slope, TRAINED if errors is None else HIDDEN
    shift, known = columns.offset * slope, bool(np.isfinite(slope).all())
    numbers = np.vstack([np.eye(d + 1), [*(-shift if known else np.zeros(d)), 1.0]])[:, : d + bool(model.fit_intercept)]
    error, drawing = (np.full(d + 2, np.nan),) * 2 if errors is None else errors(numbers)
    notes = [why * bool(np.isnan(one)) for one in error]
    found = []
    for row, (own, constant) in enumerate(zip(coef, intercept)):
        of = f" of {model.classes_[row]}" if len(coef) > 1 else ""
        each = Answers.linear(f"coefficient{of}", columns.noted(*notes[:d]), own, error[:d], slope)
        found.append(replace(each, sampling=drawing[:d]))
        raw = np.array([constant - own @ shift])
        last = Answers(
            f"intercept{of}",
            ("",),
            np.array([constant]),
            error[d : d + 1],
            raw,
            error[d + 1 :] + 0 * raw,
            (notes[d] or notes[d + 1] if known else "some column has no way back to raw units",),
            sampling=drawing[d : d + 1],
            raw_sampling=drawing[d + 1 :] + 0 * raw,
        )
        found.append(last)
    return found
