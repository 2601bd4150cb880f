"""Privacy of signs of rows, each flipped at random: ``docs/theory/signs.md``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

from ppdp.bounds.laplace import rows_change
from ppdp.bounds.queries import moving, rows_sensitivity
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.core.formula import FLIPS, formula, sane, whole
from ppdp.core.rounding import UNIT, inflate
from ppdp.privacy.loss import PrivacyLoss
from ppdp.privacy.losses import GaussianSigns, JointSigns, LaplaceSigns, RandomizedResponse

LEAST_FLIP = 2.0**-20
"""No sign is kept with more certainty; below, floats would tell flips of different numbers apart too well."""

MOST_SIGNS, MOST_SUMMED = 2**20, 2**17  # of a row under ``signs.angle``, and columns of such a row

_LARGEST = math.log(1 / LEAST_FLIP - 1)  # the privacy loss of one sign is never more
_PRECISION = 2.0**-30  # of a flip's logarithm, on both sides together; 2^-31 is proved
_BAND = 2.0**-35  # times √columns: how often rounding decides about a sign, on one of two sides
_ROUNDED = 8 * UNIT  # of a value over a unit, in bounds on entries; 2 are proved


def signs_shape(domain: Domain, **_: Any) -> tuple[int, float]:
    """One sign for every entry of every row."""
    return domain.n * domain.d, largest_entry(domain)


_flipped = partial(
    formula, kind="privacy", page="signs", law=FLIPS, used_by=("SignMechanism",), by_position=True, rows=True
)
_TELLS = "tells the sign of {} of the prepared rows, flipped at random; nothing else of them was used."
_signs = partial(_flipped, shape=signs_shape, tells=_TELLS.format("every entry"))


def _changes(domain: Domain, distance: Distance) -> Iterator[tuple[int, float, bool]]:
    """How many entries change, by how much each, and whether from or to 0; by kinds of rows that differ."""
    far, most, n = distance.by_position(), largest_entry(domain), domain.n
    moved, columns, step = moving(far), domain.d, far.radius
    if far.moves is not None:
        columns, step = math.ceil(min(far.moves.columns, columns)), min(far.moves.most, step)
    for rows, width, change, from_zero in (
        (far.replaced + far.reweighted, domain.d, 2 * most, False),
        (far.toggled, domain.d, most, True),
        (moved, columns, min(step, 2 * most), False),
    ):
        entries = min(math.ceil(rows), n) * width
        if entries and change:
            yield entries, change, from_zero


def widest_change(domain: Domain, distance: Distance) -> float:
    """Most by which one entry changes, and what rounding may add: on steps of this length no change crosses two."""
    most = max((change for _, change, _ in _changes(domain, distance)), default=2 * largest_entry(domain))
    return inflate(most) + 2 * _ROUNDED * largest_entry(domain)


@_signs("signs.randomized-response")
def randomized_response(domain: Domain, distance: Distance, *, noise_scale: float) -> PrivacyLoss:
    """Every sign flips with one probability, ``1 / (1 + exp(1 / noise_scale))``.

    ``1 / noise_scale`` for each that can change, however little.
    """
    return _responses(domain, distance, noise_scale, math.inf)


@_signs("signs.smooth")
def smooth(domain: Domain, distance: Distance, *, noise_scale: float, unit: float) -> PrivacyLoss:
    """A sign of level ``L = ceil(|x| / unit)`` flips with probability ``1 / (1 + exp(L / noise_scale))``.

    ``1 / noise_scale`` for each level by which a number can change.
    """
    return _responses(domain, distance, noise_scale, unit)


@_signs("signs.staircase")
def staircase(domain: Domain, distance: Distance, *, noise_scale: float, unit: float) -> PrivacyLoss:
    """A sign of level L flips with probability ``exp((1 - L) / noise_scale) / (1 + exp(1 / noise_scale))``.

    As private as ``signs.smooth``, and no sign flips more often.
    """
    return _responses(domain, distance, noise_scale, unit)


def _responses(domain: Domain, distance: Distance, noise_scale: float, unit: float) -> PrivacyLoss:
    """Signs that a change of one level makes ``1 / noise_scale`` more or less likely, at most.

    A sign that was a fair coin, or becomes one, is half of a step nearer.
    """
    sane(unit > 0 and noise_scale > 0)
    step, together = 1 / noise_scale, dict[float, int]()
    rounded = _ROUNDED * largest_entry(domain)
    for entries, change, from_zero in _changes(domain, distance):
        levels = 1 if math.isinf(unit) else math.ceil((change + rounded) / unit)
        loss = levels * step
        if from_zero:
            loss += math.log1p(math.exp(-step)) - math.log(2)
        loss = inflate(min(loss, _LARGEST)) + _PRECISION
        together[loss] = together.get(loss, 0) + entries
    return PrivacyLoss(parts=tuple(RandomizedResponse(count=n, epsilon=loss) for loss, n in together.items()))


@_signs("signs.laplace")
def laplace(domain: Domain, distance: Distance, *, noise_scale: float) -> PrivacyLoss:
    """The sign of a number with Laplace noise: the least of two losses.

    That of ``laplace.rows``, and that of as many signs as can change. Numbers in [-B, B] of which one changes by c have
    signs that are ``log(2 exp(B/b) - exp((2B - c)/b))``-private if c is more than B, else c/b.
    """
    entries = _entries(domain, distance)
    if not entries:
        return PrivacyLoss()
    together = inflate(rows_change(domain, distance) / noise_scale) + _PRECISION * entries
    most, each = (value / noise_scale for value in (largest_entry(domain), _largest_change(domain, distance)))
    if each > most:
        each = most + math.log(2 - math.exp(most - each))
    each = inflate(min(each, _LARGEST)) + _PRECISION
    return PrivacyLoss(parts=(LaplaceSigns(epsilon=each, numbers=entries, shift=together),))


@_signs("signs.gaussian")
def gaussian(domain: Domain, distance: Distance, *, noise_scale: float) -> PrivacyLoss:
    """The sign of a number with Gaussian noise: the least of two losses.

    That of ``query.rows``, and that of as many signs as can change, of which each costs less than its number.
    """
    entries = _entries(domain, distance)
    if not entries:
        return PrivacyLoss()
    mu = rows_sensitivity(domain, distance) / noise_scale + _PRECISION * math.sqrt(entries)
    shift = inflate(_largest_change(domain, distance) / noise_scale) + _PRECISION
    if 2 / math.pi * entries * shift**2 >= mu**2:  # then signs are known to cost no less
        return PrivacyLoss(mu)
    return PrivacyLoss(parts=(GaussianSigns(mu=mu, numbers=entries, shift=shift),))


def _largest_change(domain: Domain, distance: Distance) -> float:
    """Most by which one entry changes, and what rounding may add."""
    return max(change for _, change, _ in _changes(domain, distance)) + _ROUNDED * largest_entry(domain)


def _entries(domain: Domain, distance: Distance) -> int:
    """How many entries can change."""
    return sum(entries for entries, _, _ in _changes(domain, distance))


def angle_shape(domain: Domain, *, n_signs: int, norm_floor: float) -> tuple[int, float]:
    """So many signs for every row, and a bound on the numbers whose signs they are."""
    most = 16 * math.sqrt(domain.d + 1) * math.hypot(float(domain.require("row_norm")), norm_floor)
    return domain.n * n_signs, most


def angle_arrays(domain: Domain, steps: int, size: int, /, *, n_signs: int, **_: Any) -> dict[str, list[int]]:
    """Shapes of the signs, and of the matrix that is released with them."""
    return {"answer": [size], "matrix": [n_signs, domain.d + 1]}


@_flipped("signs.angle", shape=angle_shape, arrays=angle_arrays, tells=_TELLS.format("random combinations"))
def angle(domain: Domain, distance: Distance, *, noise_scale: float, n_signs: int, norm_floor: float) -> PrivacyLoss:
    """Signs of the images of rows under a Gaussian matrix that is drawn for them and released, flipped with one
    probability, ``1 / (1 + exp(1 / noise_scale))`` (Theorem 5).

    To every row the number ``norm_floor`` is appended, so that two rows that are c apart subtend an angle of at most
    ``2 atan(c / (2 norm_floor))``, and signs of their images differ with that probability over π.
    """
    norm = float(domain.require("row_norm"))
    sane(whole(n_signs) and 1 <= n_signs <= MOST_SIGNS and domain.d <= MOST_SUMMED)
    sane(0 < norm_floor < 1e150 and noise_scale > 0)
    far, own, slots, apart = distance.by_position(), norm * (1 + 4 * UNIT), 0, 0.0
    for rows, most in (
        (far.replaced, 2 * math.atan(own / norm_floor)),
        (far.toggled + far.reweighted, math.atan(own / norm_floor)),
        (moving(far), 2 * math.atan(min(far.radius / 2 + 4 * UNIT * norm, own) / norm_floor)),
    ):
        count = min(math.ceil(rows), domain.n - slots)
        slots, apart = slots + count, apart + count * (most / math.pi + math.sqrt(domain.d + 1) * _BAND)
    if not slots:
        return PrivacyLoss()
    each = inflate(min(1 / noise_scale, _LARGEST)) + _PRECISION
    part = JointSigns(count=n_signs, epsilon=each, share=min(inflate(apart), 1.0), signs=slots)
    return PrivacyLoss(parts=(part,))
