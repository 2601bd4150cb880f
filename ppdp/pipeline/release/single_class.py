"""Whether a released model predicts the same class whatever the row is: what nobody wants who fits a classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ppdp.certificate.record import Record
from ppdp.certificate.replay.rules import PRIVATE_ORIGIN
from ppdp.core.domain import Domain
from ppdp.pipeline.release.answers import columns_at_the_end


def single_class(record: Record, twins: Sequence[tuple[str, Any]]) -> str | None:
    """The class that a linear model predicts of every row within the public ranges and norm, if there is one.

    It follows from released and public numbers alone: the score of this class exceeds those of all others by more than
    any row can change their difference.
    """
    model = twins[-1][1]
    classes, coef = getattr(model, "classes_", None), getattr(model, "coef_", None)
    read = any(fact.name == "classes" and fact.origin == PRIVATE_ORIGIN for fact in record.facts)
    if record.mechanism is None or classes is None or coef is None or read:
        return None
    domain = Domain.from_dict((record.steps[-1] if record.steps else record.entrance).domain)
    ranges = columns_at_the_end(record, twins).ranges
    bound = np.inf if domain.entry_bound is None else domain.entry_bound
    ends = np.where(np.isfinite(ranges), ranges, [-bound, bound])
    weights, starts = np.atleast_2d(coef), np.atleast_1d(model.intercept_)
    if len(weights) == 1:  # one score, for the second of two classes
        weights, starts = np.vstack([-weights, weights]) / 2, np.append(-starts, starts) / 2
    for position, label in enumerate(classes):
        others = np.arange(len(classes)) != position
        slopes = weights[position] - weights[others]
        with np.errstate(invalid="ignore"):
            least = np.nansum(np.minimum(slopes * ends[:, 0], slopes * ends[:, 1]), axis=1)
        if domain.row_norm is not None:
            least = np.maximum(least, -np.linalg.norm(slopes, axis=1) * domain.row_norm)
        if (least + starts[position] - starts[others] > 0).all():
            return str(label)
    return None
