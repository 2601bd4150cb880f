"""Coefficients in raw units with their standard errors, from released numbers only: ``docs/theory/intervals.md``."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ppdp.data.rows import Array
from ppdp.data.unit_conversion import Answers, Columns
from ppdp.mechanisms.learn.whitened import NewtonState

CLIPPED = 4 * (math.sqrt(2) - 1) ** 2  # variance that clips may add to a gradient, over that of noise
CLEAR = 1.25  # norms of its noise by which a curvature must lie above 0 to be resolved
UNKNOWN = -1.0  # a variance
FEW = 1.0  # variance from unresolved directions, over that from others, up to which errors of noise are given
FEWER = 0.05  # ... and up to which errors of drawing are, of which nothing at all is known there
TRAINED = "what the noise of training does to it depends on the rows: no standard error"
UNSEEN = "noise hides how the loss bends: no standard error"


def errors_of_coefficients(
    state: NewtonState, curvature: tuple[Array, Array] | None, dispersion: float, unresolved: float
) -> Array:
    """Directions as columns of coefficients, and below them three variances in each; of shape (width + 3, width).

    The first is of noise where the curvature is resolved, the second of what is not known where it is not, the third of
    drawing the rows, ``dispersion`` over the curvature, with the square of the penalty's bias; -1 where that is not
    known. Every number is finite. ``curvature`` is that of the loss with the norm of its noise by direction,
    ``unresolved`` the variance of scores that other directions may add.
    """
    width = state.theta.shape[1]
    with np.errstate(all="ignore"), suppress(np.linalg.LinAlgError):
        errors = None if curvature is None else _of_steps(state, *curvature, dispersion, unresolved)
        if errors is not None and np.isfinite(errors).all():
            return errors
    nothing = np.zeros((width + 3, width))
    nothing[:width], nothing[width + 1], nothing[width + 2] = np.eye(width), 1.0, UNKNOWN
    return nothing


def _of_steps(state: NewtonState, matrix: Array, noise_norms: Array, dispersion: float, unresolved: float) -> Array:
    whitening, (gradient, noise), width = state.whitening, state.last_gradient, state.theta.shape[1]
    values, vectors = np.linalg.eigh(matrix + state.ridge)
    noise_norms = vectors.T**2 @ noise_norms
    resolved = values > CLEAR * noise_norms
    least = np.where(resolved, values - noise_norms, np.inf)
    move = (vectors.T @ gradient[0]) / least
    of_noise = ((1 + CLIPPED) * noise**2 + noise_norms**2 / (4 * width) * float(move @ move)) / least**2
    typical = (unresolved + state.score_norm(state.theta) ** 2) / width
    of_others = np.where(resolved, 0.0, vectors.T**2 @ (typical / np.diag(whitening.moments)))
    penalty = vectors.T @ state.ridge
    unpenalised = least - np.einsum("ij,ji->i", penalty, vectors)  # the curvature of the penalty tells of no rows
    drawing = np.full(width, UNKNOWN)
    if not math.isnan(dispersion):
        of_rows = (dispersion + (penalty @ state.theta[0]) ** 2 / unpenalised) / unpenalised
        drawing = np.where(unpenalised > 0, of_rows, UNKNOWN)
    directions = np.vstack([whitening.coefficients(unit) for unit in np.eye(width)[:, None]]).T @ vectors
    return np.vstack([directions, of_noise, of_others, drawing])


@dataclass(frozen=True, slots=True)
class Errors:
    """Of numbers that are linear in coefficients: standard errors of noise, and of drawing the rows; NaN if unknown."""

    directions: Array  # (width, number of directions); coefficients, intercept last
    noise: Array
    unresolved: Array  # of directions whose curvature is not known
    drawing: Array

    @classmethod
    def of(cls, released: Array | None, scale: float, *, sampled: bool) -> Errors | None:
        """From a release, for coefficients that are ``scale`` times those that were learned."""
        if released is None:
            return None
        noise, unresolved, drawing = released[-3:]
        return cls(scale * released[:-3], noise, unresolved, np.where(sampled & (drawing >= 0), drawing, np.nan))

    @classmethod
    def alike(cls, width: int, error: float) -> Errors:
        """Of coefficients that have independent noise of one size, and that alone."""
        return cls(np.eye(width), np.full(width, error**2), np.zeros(width), np.full(width, np.nan))

    def __call__(self, numbers: Array) -> tuple[Array, Array]:
        """Of as many numbers as there are rows of factors."""
        squares, unknown = (numbers @ self.directions) ** 2, np.isnan(self.drawing) | (self.unresolved > 0)
        with np.errstate(invalid="ignore"):
            resolved, unresolved = squares @ self.noise, squares @ self.unresolved
            error = np.where(unresolved <= FEW * resolved, np.sqrt(resolved + unresolved), np.nan)
            left_out = squares[:, unknown] @ (self.noise + self.unresolved)[unknown]
            drawing = np.sqrt(squares[:, ~unknown] @ self.drawing[~unknown])
            return error, np.where(left_out <= FEWER * (resolved + unresolved), drawing, np.nan)


def coefficient_answers(model: Any, columns: Columns, errors: Errors | None) -> list[Answers]:
    """Coefficients and intercept of every score, with the standard error of each; NaN where none follows."""
    coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
    d = coef.shape[1]
    slope, why = 1 / columns.slope, TRAINED if errors is None else UNSEEN
    shift, in_raw_units = columns.offset * slope, bool(np.isfinite(slope).all())
    raw_intercept = [*(-shift if in_raw_units else np.zeros(d)), 1.0]
    numbers = np.vstack([np.eye(d + 1), raw_intercept])[:, : d + bool(model.fit_intercept)]
    error, drawing = (np.full(d + 2, np.nan),) * 2 if errors is None else errors(numbers)
    notes = [why * bool(np.isnan(value)) for value in error]
    answers = []
    for score, (row, constant) in enumerate(zip(coef, intercept)):
        of = f" of {model.classes_[score]}" if len(coef) > 1 else ""
        each = Answers.linear(f"coefficient{of}", columns.noted(*notes[:d]), row, error[:d], slope)
        answers.append(replace(each, sampling=drawing[:d]))
        raw = np.array([constant - row @ shift])
        last = Answers(
            f"intercept{of}",
            ("",),
            np.array([constant]),
            error[d : d + 1],
            raw,
            error[d + 1 :] + 0 * raw,
            (notes[d] or notes[d + 1] if in_raw_units else "some column has no way back to raw units",),
            sampling=drawing[d : d + 1],
            raw_sampling=drawing[d + 1 :] + 0 * raw,
        )
        answers.append(last)
    return answers
