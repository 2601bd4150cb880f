"""Thresholds of classifiers, public ones and those that follow from released counts, and calibration by these."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, logit
from sklearn.utils.metaestimators import available_if

from ppdp.bounds import lookup
from ppdp.bounds.selection import (
    BY_COUNTS,
    CALIBRATION,
    CLASSIFIERS,
    COUNTED,
    SCORE_CELLS,
    SCORE_EDGES,
    THRESHOLD,
    counts_apart,
)
from ppdp.core.checks import choice, number, shown
from ppdp.core.declared import Value, plain
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.histograms import weights_by_class
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.data.unit_conversion import Answers, Columns
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms.base import QuerySpec, SharedDocstring, twin_of
from ppdp.privacy.noise.sampler import Noise

SHARE = 0.1  # of mu², of the counts
CLEAR = 2.5  # standard deviations of noise that the rows of a cell exceed, or it is taken to be empty
NEIGHBOURS, NUMBERS = Distance(replaced=1), 2 * SCORE_CELLS
PARTS = 8  # of a cell, in each of which its rows are taken to lie in the middle
# How far slope and offset of the model's log-odds are expected to be off, the offset beside weights of classes and of
# margins, too, and the share of a cell beside these.
SLOPE, OFFSET, WIDE_OFFSET, UNLIKE = 0.3, 0.5, 5.0, 0.2
LEAST_SLOPE = 0.01
STARTS = np.array([(slope / 5, offset / 2) for slope in range(1, 16) for offset in range(-20, 21)])
WIDTH = SCORE_EDGES[1] - SCORE_EDGES[0]
MIDDLES = np.append(SCORE_EDGES, SCORE_EDGES[-1] + WIDTH) - WIDTH / 2  # of the cells, in log-odds
PLACES = (np.arange(PARTS) + 0.5) / PARTS - 0.5  # of the parts of a cell, about its middle
FINE = MIDDLES[:, None] + PLACES * WIDTH

SCORES: Mapping[str, Callable[[Array, Array, float, float], Array]] = {
    "accuracy": lambda true, false, second, first: true + first - false,
    "balanced_accuracy": lambda true, false, second, first: true / max(second, 1.0) - false / max(first, 1.0),
    "f1": lambda true, false, second, first: 2 * true / np.maximum(true + false + second, 1.0),
}
"""By scikit-learn's names: what is largest where the score is, of rows of the second and of the first class."""
HELD: Mapping[str, Callable[[Array, Array, float], Array]] = {
    "precision": lambda true, false, second: true / np.maximum(true + false, 1.0),
    "recall": lambda true, false, second: true / max(second, 1.0),
}
"""What may be held, of rows that are predicted to be of the second class."""


class Calibration(NamedTuple):
    """The log-odds of the second class, as a line of those that were learned."""

    slope: float = 1.0
    offset: float = 0.0


@dataclass(eq=False, repr=False)
class TunedByCounts(SharedDocstring):
    """Mixin for classifiers that may count their rows by score behind the training; it stands before their other bases.

    Parameters
    ----------
    threshold : float, {"accuracy", "balanced_accuracy", "f1"} or pair, optional
        Of two classes: the public probability of the second from which on it is predicted. Or the score for which it is
        to be the best, or what it is to hold, ``("recall", 0.9)`` with as few predictions of the second class as can
        be, ``("precision", 0.8)`` with as many: then numbers of rows by class and predicted probability are released
        with noise behind the training, for a tenth of mu² (``docs/theory/thresholds.md``). What is held is an estimate.
    calibration : {"sigmoid"}, optional
        Of two classes: slope and offset of the log-odds are read off the same released counts, which are asked once for
        both, and become a part of the model. Probabilities are then those of rows that weigh alike, also beside
        ``class_weight``; without that log loss is calibrated by itself.

    Attributes
    ----------
    threshold_ : float
        Probability of the second of two classes from which on it is predicted.
    calibration_ : tuple of two floats
        Slope and offset that the log-odds were given: (1, 0) without ``calibration``.
    """

    _: KW_ONLY
    threshold: float | str | tuple[str, float] | None = None
    calibration: str | None = None
    _held = 1.0  # likely share of what is to be held

    @property
    def unheld(self) -> float | None:
        """The largest share that a threshold is likely to hold, if that is less than is wanted; 0 if no count shows."""
        wanted = self.threshold[1] if isinstance(self.threshold, list | tuple) else 1.0
        return self._held if self._held < wanted else None

    def _probabilities(self, scores: Array) -> Array:
        """Those of the classes, of rows with these scores."""
        raise NotImplementedError

    @available_if(lambda self: self._probable)
    def predict_proba(self: Any, X: Any) -> Array:
        """Probability of each class.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return np.asarray(self._probabilities(self.decision_function(X)))

    @property
    def _probable(self) -> bool:
        """Whether scores are log-odds."""
        return True

    @property
    def _unsure(self: Any) -> tuple[float, float]:
        """By how much slope and offset of the scores are expected to be off."""
        return SLOPE, OFFSET if self.class_weight is None else WIDE_OFFSET

    @property
    def _seeks_threshold(self) -> bool:
        return isinstance(self.threshold, str | tuple | list)

    @property
    def counts_rows(self) -> bool:
        return self.calibration is not None or self._seeks_threshold

    def _counts_for(self: Any, domain: Domain) -> bool:
        """Whether rows are counted, by parameters that are checked."""
        choice("calibration", self.calibration, [None, "sigmoid"], self)
        given = [name for name in ("threshold", "calibration") if getattr(self, name) is not None]
        if given and self._n_classes(domain) != 2:
            what = f"Only binary classification is supported with {given[0]}."
            raise self._refused(what, f"leave {' and '.join(given)} out.", given[0])
        if self.threshold is not None:
            self._check_threshold()
        return self.counts_rows

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.classifier_tags.multi_class &= self.threshold is None and self.calibration is None
        return tags

    def _check_threshold(self: Any) -> None:
        if not self._probable:
            raise self._refused("threshold is a probability, and scores are none.", "calibration='sigmoid' beside it.")
        if isinstance(self.threshold, list | tuple) and len(self.threshold) == 2:
            if self.threshold[0] not in HELD:
                what = f"threshold[0] must be one of {', '.join(map(repr, HELD))}, got {shown(self.threshold[0])}."
                raise self._refused(what, "('recall', 0.9); or threshold=0.3, a probability of the second class.")
            number("threshold[1]", self.threshold[1], self, above=0, most=1, fix="a share, as in ('recall', 0.9).")
        elif isinstance(self.threshold, str) and self.threshold in HELD:
            what = f"threshold must be one of {', '.join(map(repr, SCORES))}, or a pair: how much {self.threshold}."
            raise self._refused(what, f"('{self.threshold}', 0.9).")
        elif isinstance(self.threshold, str):
            choice("threshold", self.threshold, list(SCORES), self)
        else:
            fix = "a probability, 'f1', or ('recall', 0.9)."
            number("threshold", self.threshold, self, above=0, most=1 - 1e-12, fix=fix)
            return
        if self.class_weight is not None and self.calibration is None:
            what = "class_weight moves probabilities, and threshold is found by them."
            raise self._refused(what, "calibration='sigmoid' beside them, or one of the two.")

    def _refused(self, why: str, fix: str, parameter: str = "threshold") -> InvalidParameter:
        return InvalidParameter(why, stage=type(self).__name__, fix=fix, parameter=parameter)

    def query_spec(self, domain: Domain, mu: float | None = None) -> QuerySpec:
        if not self._counts_for(domain):
            return super().query_spec(domain, mu)  # type: ignore[misc]
        return self._counted(domain, NEIGHBOURS, self._untuned().query_spec(domain, _left(mu)))

    def query_spec_at(self, domain: Domain, distance: Distance, mu: float | None = None) -> QuerySpec:
        if not self._counts_for(domain):
            return super().query_spec_at(domain, distance, mu)  # type: ignore[misc]
        return self._counted(domain, distance, self._untuned().query_spec_at(domain, distance, _left(mu)))

    def _untuned(self) -> Any:
        """The same classifier, of which nothing is counted."""
        plain = copy(self)
        plain.threshold = plain.calibration = None
        return plain

    def _counted(self, domain: Domain, distance: Distance, question: QuerySpec) -> QuerySpec:
        """The same question with counts behind it, which have their share of mu²."""
        if question.formula not in CLASSIFIERS:
            what = "counts follow Gaussian answers of all rows, and this solver has others."
            if self._seeks_threshold:
                raise self._refused(what, "solver='newton' or 'dpgd', or a public threshold=0.3.")
            raise self._refused(what, "solver='newton' or 'dpgd', or no calibration.", "calibration")
        of_model = math.sqrt(question.steps) * question.sensitivity(domain, distance)
        factor = math.sqrt(SHARE / (1 - SHARE)) * of_model / counts_apart(domain, distance) or 1.0
        asked = {**question.parameters, "answers": question.steps, "count_factor": float(f"{factor:.4g}")}
        name = f"{question.formula}{COUNTED}"
        size, bound = lookup(name, "mechanism").shape(domain, **asked)  # type: ignore[misc]
        return replace(question, formula=name, parameters=asked, steps=question.steps + 1, size=size, bound=bound)

    def settle(self, question: QuerySpec) -> None:
        super().settle(_of_model(question))  # type: ignore[misc]

    def release(
        self: Any, rows: Rows | Stream, question: QuerySpec, noise: Noise, noise_scale: float
    ) -> dict[str, Array]:
        own = _of_model(question)
        if own is question:
            return super().release(rows, question, noise, noise_scale)  # type: ignore[misc]
        by_class = partial(Rows.weighted, by_class=np.array(question.factors))
        weighed = rows.each(by_class, rows.d) if question.factors else rows
        if isinstance(weighed, Rows):
            weighed = replace(weighed, ours=False)  # training may write over them
        released: dict[str, Array] = super().release(weighed, own, noise, noise_scale)  # type: ignore[misc]
        facts = Domain(n_rows=rows.n, n_features=rows.d, classes=(0, 1))
        twin = twin_of(self._untuned(), own, noise_scale, released, facts)
        unit, padded = question.parameters["count_factor"] / rows.n, np.zeros(question.size)
        padded[:NUMBERS] = weights_by_class(rows, twin.steady_scores, SCORE_EDGES) * unit
        return released | {"counts": noise.release(padded, noise_scale, question.bound)[:NUMBERS] / unit}

    def read(self: Any, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        own = _of_model(question)
        self.calibration_ = Calibration()
        self.threshold_ = 0.5 if self.threshold is None else self.threshold
        if own is not question:
            noise = self.own_noise_scale() * domain.n / question.parameters["count_factor"]
            counts, unsure = released["counts"].reshape(-1, 2), self._unsure
            if self.calibration is not None:
                self.calibration_ = calibrated(counts, noise, unsure)[0]
            if self._seeks_threshold:
                found, self._held = best_threshold(counts, noise, self.threshold, unsure)
                slope, offset = self.calibration_
                self.threshold_ = float(expit(slope * logit(found) + offset))
        super().read(released, domain, own)  # type: ignore[misc]

    def answers(self, columns: Columns, domain: Domain, question: QuerySpec) -> list[Answers]:
        found: list[Answers] = super().answers(columns, domain, _of_model(question))  # type: ignore[misc]
        return found

    def declared(self: Any, domain: Domain) -> tuple[Value, ...]:
        values: tuple[Value, ...] = super().declared(domain)  # type: ignore[misc]
        word: Any = self.threshold
        if isinstance(word, str):
            word = f"best for {word}{BY_COUNTS}"
        elif isinstance(word, list | tuple):
            word = f"{word[0]} of at least {plain(word[1])}{BY_COUNTS}"
        if word is not None:
            values = *values, (THRESHOLD, word if isinstance(word, str) else plain(word), "declared")
        if self.calibration is not None:
            values = *values, (CALIBRATION, f"{self.calibration}{BY_COUNTS}", "declared")
        return values

    def _predicted(self: Any, scores: Array) -> NDArray[Any]:
        if self.threshold is None or scores.ndim > 1:
            return super()._predicted(scores)  # type: ignore[misc]
        return np.asarray(self.classes_[(scores >= logit(self.threshold_)).astype(int)])


def _left(mu: float | None) -> float | None:
    """What is left to the training."""
    return None if mu is None else mu * math.sqrt(1 - SHARE)


def _of_model(question: QuerySpec) -> QuerySpec:
    """The question of the training alone, in answers of the same size and bound."""
    if not question.formula.endswith(COUNTED):
        return question
    own = {name: one for name, one in question.parameters.items() if name not in ("answers", "count_factor")}
    name = question.formula.removesuffix(COUNTED)
    return replace(question, formula=name, parameters=own, steps=question.steps - 1)


def best_threshold(
    counts: Array, noise: float, wanted: str | tuple[str, float], unsure: tuple[float, float] = (SLOPE, OFFSET)
) -> tuple[float, float]:
    """The probability of the second class from which on it is best predicted, from noisy counts by cell and class.

    Beside it the share that it is likely to hold, 1 where none is to be held; a half and 0 where noise hides all rows.
    The log-odds of rows are those of the model but for a slope and an offset, which are likeliest beside their noise;
    where there are many rows for it, those of a cell are its own.
    """
    odds, own, rows = calibrated(counts, noise, unsure)
    if not rows.any():
        return 0.5, 0.0
    fine = FINE.ravel()
    shares = expit(odds.slope * fine + odds.offset + np.repeat(own, PARTS))
    each = (rows[:, None] * _parts(rows, noise)).ravel()
    second, first = each * shares, each * (1 - shares)
    true, false = (np.append(np.cumsum(one[::-1])[::-1], 0.0) for one in (second, first))
    if isinstance(wanted, str):
        best, held = int(np.argmax(SCORES[wanted](true, false, true[0], false[0]))), 1.0
    else:
        each = HELD[wanted[0]](true, false, true[0])[:-1]
        best = _holding(each, wanted)
        held = float(each[best])
    ends = np.append(fine, fine[-1] + WIDTH / PARTS) - WIDTH / PARTS / 2
    return float(expit(ends[best])), held


def _holding(shares: Array, wanted: tuple[str, float]) -> int:
    """Where a share is held with the fewest rows for recall, with the most for precision; else where it is largest."""
    held = np.flatnonzero(shares >= wanted[1])
    if not held.size:
        return int(np.argmax(shares))
    return int(held[-1] if wanted[0] == "recall" else held[0])


def calibrated(
    counts: Array, noise: float, unsure: tuple[float, float] = (SLOPE, OFFSET)
) -> tuple[Calibration, Array, Array]:
    """Likeliest slope and offset of the log-odds, what is to be added to those of each cell, and the rows of it.

    Both are expected to be off by ``unsure``.
    """
    rows = counts.sum(axis=1)
    rows = np.where(rows > CLEAR * math.sqrt(2) * noise, rows, 0.0)
    some = rows > 0
    first, second = counts[some].T
    held, at, parts = rows[some], FINE[some], _parts(rows, noise)[some]

    def mean_share(odds: Array) -> Array:
        slope, offset = odds[..., :1, None], odds[..., 1:, None]
        return np.asarray((expit(slope * at + offset) * parts).sum(axis=-1))

    def surprise(odds: Array) -> Array:
        slope, offset = odds[..., :1], odds[..., 1:]
        p = mean_share(odds)
        variance = _variance(p, held, noise)
        excess = (1 - p) * second - p * first  # 0 on average
        beside = ((slope - 1) / unsure[0]) ** 2 + (offset / unsure[1]) ** 2
        return np.asarray((excess**2 / variance + np.log(variance)).sum(axis=-1) + beside[..., 0])

    start = STARTS[np.argmin(surprise(STARTS))]
    first_steps = start + np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1]])
    how: Any = {"bounds": ((LEAST_SLOPE, None), (None, None)), "options": {"initial_simplex": first_steps}}
    odds = np.asarray(minimize(lambda odds: float(surprise(odds)), start, method="Nelder-Mead", **how).x)
    p = mean_share(odds)
    unlike = (UNLIKE * held * p * (1 - p)) ** 2
    trust = unlike / (unlike + _variance(p, held, noise))
    shares, expected = (logit(np.clip(share, 1e-6, 1 - 1e-6)) for share in (second / held, p))
    more = np.zeros(len(rows))
    more[some] = trust * (shares - expected)
    return Calibration(*odds.tolist()), more, rows


def _parts(rows: Array, noise: float) -> Array:
    """Shares of the rows of each cell in its parts, as the logarithm of their number goes from cell to cell."""
    slopes = np.gradient(np.log(np.maximum(rows, CLEAR * math.sqrt(2) * noise + 1)))
    parts = np.exp(slopes[:, None] * PLACES)
    return np.asarray(parts / parts.sum(axis=1, keepdims=True))


def _variance(p: Array, rows: Array, noise: float) -> Array:
    """Of ``(1 - p) second - p first`` by noise and by chance."""
    return np.asarray(noise**2 * (p**2 + (1 - p) ** 2) + rows * p * (1 - p) + 1e-12)
