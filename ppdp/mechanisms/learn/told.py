"""Coefficients in raw units: a score is linear in the columns, so a scale and a shift of each go into them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ppdp.data.units import Answers, Columns

TRAINED = "what the noise of training does to it depends on the rows: no standard error"


def told(model: Any, columns: Columns, error: float) -> list[Answers]:
    """Coefficients and intercept of every score, with the standard error of each; NaN where none follows."""
    coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    slope, note = 1 / columns.slope, TRAINED if math.isnan(error) else ""
    shift, known = columns.offset * slope, bool(np.isfinite(slope).all())
    spread = float(np.sqrt(model.fit_intercept + (shift**2).sum()))
    beyond = note if known else "some column has no way back to raw units"
    found = []
    for row, (own, constant) in enumerate(zip(coef, intercept)):
        of = f" of {model.classes_[row]}" if len(coef) > 1 else ""
        found.append(Answers.linear(f"coefficient{of}", columns, own, error, slope, note=note))
        value, raw = np.array([constant]), np.array([constant - own @ shift])
        errors = (np.array([error * size]) for size in (float(model.fit_intercept), spread))
        found.append(Answers(f"intercept{of}", ("",), value, next(errors), raw, next(errors), (beyond,)))
    return found
