"""Signs of the rows, each flipped at random."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from ppdp.bounds.signs import LEAST_FLIP, MOST_SIGNS, MOST_SUMMED, widest_change
from ppdp.core.checks import choice, integer, length
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.exact_matmul import product
from ppdp.data.rows import Array, Rows
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.mechanisms.base import Mechanism, QuerySpec
from ppdp.mechanisms.standalone import StandaloneQueryMixin
from ppdp.privacy.noise.sampler import Noise

FLIPS = ("staircase", "randomized-response", "smooth", "laplace", "gaussian")  # of the rows as they come
ANGLE = "angle"
STEPPED = ("staircase", "smooth")
LIKE_NOISE = ("laplace", "gaussian")
AFFORDABLE = (
    "a stage in front of the signs moves many rows, and every sign of such a row counts as one that may change, however"
    " little the row moved: flips='laplace' or 'gaussian' cost what rows moved together."
)
_BITS = 53  # a probability of at least 2^-20 in so many bits is off by a share of 2^-33 at most
_BLOCK = 2**18  # numbers at a time
_ROWS = 4096  # the same of rows of a product
_LATTICE = 37  # bits behind the point of a normal number


@dataclass(eq=False, repr=False)
class SignMechanism(StandaloneQueryMixin, Mechanism):
    """Release the sign of every entry of every row, flipped at random: one bit for each, rows in their places.

    Behind :class:`~ppdp.transformers.RandomProjection` the share of bits in which two rows agree tells the angle
    between them.

    Parameters
    ----------
    flips : {"staircase", "randomized-response", "smooth", "laplace", "gaussian", "angle"}, default="staircase"
        With which probability the sign of x flips. "randomized-response": one for all. "smooth" and "staircase": less
        for larger numbers, in steps of length ``unit``; "staircase" never more than "smooth", at the same price.
        "laplace", "gaussian": as if this noise were added to x. It alone suits rows that a fitted stage has moved a
        little, all of them: the others count every entry that moves at all. "angle": signs of a Gaussian projection
        of its own, without a :class:`~ppdp.transformers.RandomProjection` in front.
    noise_scale : float, optional
        The more, the more private; a pipeline sets it. Of "laplace" and "gaussian" the scale of the noise, in units of
        the rows. Of the others ``1 / η``, where η is the privacy loss of one sign whose number crosses one step.
    unit : float, optional
        Length of a step, in units of the rows, for "staircase" and "smooth"; any is private, and of those that a change
        fills exactly it may cross one more. Default: the most by which one entry can change, and a little more; a
        pipeline sets it.
    n_signs : int, optional
        Of "angle" only, and needed there: how many signs are made of every row.
    norm_floor : float, optional
        Of "angle" only: a public number that is appended to every row, in units of the rows. No row is then shorter,
        so that a change turns it by little. The larger, the fewer flips are needed, and the less signs tell of the
        rows. Default: the bound on the norm of rows.
    random_state : int, RandomState instance or None, default=None
        For tests only: flips that can be predicted protect nobody.

    Attributes
    ----------
    signs_ : ndarray of shape (n_rows, n_features) or (n_rows, n_signs)
        1 and -1, as int8; of 0 fair coins, and of a deleted row but for "angle".
    matrix_ : ndarray of shape (n_signs, n_features + 1)
        Of "angle" only: the matrix, released with the signs. Its last column meets the floor.

    Notes
    -----
    **Guarantee** (``docs/theory/signs.md``): for N entries that can change, ``epsilon = N / noise_scale`` at delta 0,
    and less at some delta: exactly that of N randomised responses. "laplace": what the entries change together over
    ``noise_scale``. "gaussian" needs a delta. No sign flips with a probability below 2^-20.

    "angle" (Theorem 5): the matrix is drawn from the operating system's entropy at every release, never from a seed,
    and (epsilon, delta) is of matrix and signs together. It needs fewer flips than a matrix that was there before,
    because a small change turns few signs under most matrices; given the matrix all ``n_signs`` signs count. So
    never release other private rows with ``matrix_``: fit again, which draws another.
    """

    flips: str = "staircase"
    noise_scale: float | None = None
    _: KW_ONLY
    unit: float | None = None
    n_signs: int | None = None
    norm_floor: float | None = None
    random_state: Any = None

    _example: ClassVar = {"noise_scale": 1.0}

    def query_spec(self, domain: Domain, mu: float | None = None) -> QuerySpec:
        return self.query_spec_at(domain, Distance(replaced=1), mu)

    def query_spec_at(self, domain: Domain, distance: Distance, mu: float | None = None) -> QuerySpec:
        flips = self._flips()
        norm = domain.require("row_norm", "SignMechanism")
        parameters: dict[str, Any] = {}
        if flips == ANGLE:
            parameters["n_signs"] = self._components(domain)
            parameters["norm_floor"] = norm if self.norm_floor is None else length("norm_floor", self.norm_floor, self)
            return QuerySpec.asked("signs.angle", "privacy", domain, parameters, start=float(parameters["n_signs"]))
        if flips in STEPPED:
            parameters["unit"] = widest_change(domain, distance) if self.unit is None else self._unit()
        usual = largest_entry(domain) if flips in LIKE_NOISE else float(domain.d)
        warnings = (AFFORDABLE,) if distance.moved > 1 and flips not in LIKE_NOISE else ()
        return QuerySpec.asked(f"signs.{flips}", "privacy", domain, parameters, start=usual, warnings=warnings)

    def settle(self, question: QuerySpec) -> None:
        self.set_params(
            **{name: question.parameters[name] for name in ("unit", "norm_floor") if name in question.parameters}
        )

    def release(self, rows: Rows, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
        values, released = rows.X * rows.weight[:, None], dict[str, Array]()
        if self.flips == ANGLE:
            shape = question.parameters["n_signs"], values.shape[1] + 1
            released["matrix"] = np.ldexp(noise.standard_lattice(shape).astype(np.float64), -_LATTICE)
            values = _images(np.nan_to_num(values), released["matrix"], question.parameters["norm_floor"])
        draw = partial(self._drawn, values.ravel(), question, noise_scale)
        return {"answer": noise.answer("flips", values.ravel(), noise_scale, question.bound, draw), **released}

    def _drawn(self, values: Array, question: QuerySpec, noise_scale: float, noise: Noise) -> Array:
        signs = np.empty(values.size)
        for start in range(0, values.size, _BLOCK):
            block = np.clip(np.nan_to_num(values[start : start + _BLOCK]), -question.bound, question.bound)
            chances = _chances(self.flips, block, noise_scale, question.parameters.get("unit", 1.0))
            flipped = noise.words(block.size) < np.ldexp(chances, 64).astype(np.uint64)
            signs[start : start + _BLOCK] = np.where((block < 0) ^ flipped, -1.0, 1.0)
        return signs

    def read(self, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        self.signs_ = released["answer"].astype(np.int8).reshape(domain.n, -1)
        if self.flips == ANGLE:
            self.matrix_ = released["matrix"]

    def queries(self, X: Array) -> Array:
        return X if self.norm_floor is None or self.flips != ANGLE else _images(X, self.matrix_, self.norm_floor)

    def flip_probability(self, values: ArrayLike) -> Array:
        """With which probability the sign of each number is flipped: exactly, and 1/2 for 0.

        Public: it needs no rows, only parameters, of which a pipeline sets ``noise_scale`` and ``unit``. Whoever holds
        released signs can correct with it what flips do to averages.

        Parameters
        ----------
        values : array-like of any shape
            Numbers that entries could be.

        Raises
        ------
        MissingBudget, MissingBound
            If ``noise_scale``, or ``unit`` where it counts, is not set.
        """
        flips, scale = self._flips(), self.own_noise_scale()
        if flips in STEPPED and self.unit is None:
            fix = "use it as the last step of ppdp.Pipeline, or set unit."
            raise MissingBound("unit is not set.", stage="SignMechanism", fix=fix, parameter="unit")
        unit = self._unit() if flips in STEPPED else 1.0
        return _chances(flips, np.asarray(values, dtype=np.float64), scale, unit)

    def _flips(self) -> str:
        flips = str(choice("flips", self.flips, (*FLIPS, ANGLE), self))
        if flips != ANGLE and not self.n_signs is self.norm_floor is None:
            what = f"n_signs and norm_floor are parameters of flips='angle', and flips is {flips!r}."
            fix = "leave them out; RandomProjection(n_components) in front of the signs makes that many."
            raise InvalidParameter(what, stage="SignMechanism", fix=fix, parameter="n_signs")
        return flips

    def _components(self, domain: Domain) -> int:
        if self.n_signs is None:
            raise InvalidParameter(
                "flips='angle' is private only with a matrix that it draws itself at the release, and n_signs is"
                " not set.",
                stage="SignMechanism",
                fix="SignMechanism('angle', n_signs=256) without a RandomProjection in front; behind one,"
                " flips='staircase' or 'gaussian', which are private whatever the matrix.",
                parameter="flips",
            )
        if domain.d > MOST_SUMMED:
            what = f"flips='angle' is for rows of at most {MOST_SUMMED} columns."
            fix = "RandomProjection(...) in front, and flips='staircase'."
            raise InvalidParameter(what, stage="SignMechanism", fix=fix, parameter="flips")
        return integer("n_signs", self.n_signs, self, most=MOST_SIGNS)

    def _unit(self) -> float:
        return length("unit", self.unit, self)


def _images(X: Array, matrix: Array, floor: float) -> Array:
    """What a matrix makes of rows to which a number is appended; equal rows have equal bits."""
    parts = [np.empty((0, len(matrix)))]
    for start in range(0, len(X), _ROWS):
        rows = X[start : start + _ROWS]
        parts.append(product(np.column_stack([rows, np.full(len(rows), floor)]), matrix))
    return np.concatenate(parts)


def _chances(flips: str, values: Array, scale: float, unit: float) -> Array:
    """Probabilities of a flip, multiples of 2^-53 from 2^-20 to 1/2."""
    with np.errstate(over="ignore", under="ignore"):
        if flips == "laplace":
            chances = np.exp(-np.abs(values) / scale) / 2
        elif flips == "gaussian":
            chances = special.ndtr(-np.abs(values) / scale)
        elif flips in ("randomized-response", ANGLE):
            chances = np.full(values.shape, special.expit(-1 / scale))
        else:
            level = np.maximum(np.ceil(np.abs(values) / unit), 1.0)
            chances = special.expit(-level / scale)
            if flips == "staircase":
                chances = np.exp((1 - level) / scale) * special.expit(-1 / scale)
    chances = np.where(values == 0, 0.5, np.clip(chances, LEAST_FLIP, 0.5))
    return np.asarray(np.floor(np.ldexp(chances, _BITS)) * 2.0**-_BITS)
