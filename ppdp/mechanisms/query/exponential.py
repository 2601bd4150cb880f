"""The exponential mechanism on cleaned rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from ppdp.bounds.queries import by_column
from ppdp.core.checks import choice, number, positive, shown, without_effect
from ppdp.core.closure_inspection import refuse_captured
from ppdp.core.domain import Domain
from ppdp.data.histograms import rank_scores
from ppdp.data.rows import Array, Rows
from ppdp.data.summary import column_sums
from ppdp.data.unit_conversion import Answers, Columns
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms.base import Mechanism, QuerySpec
from ppdp.mechanisms.query.public_grids import grid_in_units, public_grid
from ppdp.mechanisms.standalone import StandaloneQueryMixin
from ppdp.privacy.noise.laplace import choose
from ppdp.privacy.noise.sampler import Noise

LEAST_BEYOND = 0.02  # twice the share of the rows beyond a quantile, at least, that its rank may miss


@dataclass(eq=False, repr=False)
class ExponentialMechanism(StandaloneQueryMixin, Mechanism):
    """Choose among public candidates, each with probability ``~ exp(utility / noise_scale)``.

    Parameters
    ----------
    query : {"quantile", "utility"}, default="quantile"
        "quantile": a quantile of every column; the utility of a candidate is minus the number of rows by which its
        rank misses ``q`` times the number of rows. "utility": one candidate, by a function of your own.
    q : float, default=0.5
        Which quantile, in [0, 1].
    candidates : int, sequence, or mapping of columns to either, default=100
        For quantiles so many equally spaced points of the public range of a column, or ascending numbers within it; a
        mapping, by name or position, chooses columns. In a pipeline these are raw, in the units of the table that comes
        in, dates as dates, wherever steps in front are public scales and shifts of each column; elsewhere in the units
        of the last step. For your own utility a sequence of anything.
    utility : callable, optional
        ``utility(X) -> array of shape (n, m)`` for a float64 array X of shape (n, d): what each row gives each of the m
        candidates, rows one by one. It is clipped to ``[0, sensitivity]``, 0 where it is NaN or the function fails; the
        rows are added up.
    sensitivity : float, default=1.0
        The most that a row gives to a candidate.
    lipschitz : float, optional
        Declared Lipschitz constant (L2) of what a row gives to any candidate, in the row. Without it a row that an
        earlier stage moved counts as replaced.
    noise_scale : float, optional
        The temperature: the more, the more private; a pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: a choice that can be predicted protects nobody.

    Attributes
    ----------
    quantile_ : ndarray
        Chosen candidate of each column, in the units of the rows at this step; ``release_.to_pandas()`` of a pipeline
        has raw units.
    selected_ : object
        Chosen candidate, for your own utility.

    Notes
    -----
    **Guarantee** (``docs/theory/exponential.md``): the privacy loss of a choice has a range of at most ``width /
    noise_scale``, so epsilon is at most that, and less at some delta. For one replaced row the width is 2 (quantile),
    2 sensitivity (utility).
    """

    query: str = "quantile"
    _: KW_ONLY
    q: float = 0.5
    candidates: Any = 100
    utility: Callable[[Array], Any] | None = None
    sensitivity: float = 1.0
    lipschitz: float | None = None
    noise_scale: float | None = None
    random_state: Any = None

    _example: ClassVar = {"noise_scale": 100.0}

    @property
    def tells_errors(self) -> bool:
        """Whether it chooses quantiles, whose ranks are told."""
        return self.query == "quantile"

    in_memory = False

    @property
    def writes_units(self) -> bool:
        return self.query == "quantile"

    def in_units(self, columns: Columns) -> Any:
        given = grid_in_units("candidates", self.candidates, columns, self, edges=False)
        return clone(self).set_params(candidates=given)

    def declarations(self) -> tuple[str, ...]:
        if self.query != "utility":
            return ()
        words = ["the utility treats rows one by one (tested on made-up rows)"]
        constant = [f"its Lipschitz constant is {self.lipschitz}, and it fails on no row"]
        return (*words, *(constant if self.lipschitz is not None else []))

    def query_spec(self, domain: Domain, mu: float | None = None) -> QuerySpec:
        if choice("query", self.query, ["quantile", "utility"], self) == "quantile":
            without_effect(self, ("utility", "sensitivity", "lipschitz"), "query='quantile'", "query='utility'")
            q = number("q", self.q, self, least=0, most=1)
            grid = {"q": q, **public_grid("candidates", self.candidates, domain, self, edges=False)}
            missed = _rank_missed(max(grid["sizes"])) / domain.n / max(2 * min(q, 1 - q), LEAST_BEYOND)
            return QuerySpec.asked("exponential.quantile", "privacy", domain, grid, drowning=missed)
        without_effect(self, ("q",), "query='utility'", "query='quantile'")
        parameters: dict[str, Any] = {
            "candidates": self._number_of_candidates(),
            "sensitivity": positive("sensitivity", self.sensitivity, self, most=1e100),
            "lipschitz": None if self.lipschitz is None else number("lipschitz", self.lipschitz, self, least=0),
        }
        self._check_utility(domain, parameters["candidates"])
        return QuerySpec.asked("exponential.utility", "privacy", domain, parameters)

    def _number_of_candidates(self) -> int:
        sized = hasattr(self.candidates, "__len__") and hasattr(self.candidates, "__getitem__")
        if not sized or isinstance(self.candidates, (str, bytes, Mapping)) or len(self.candidates) < 2:
            what = "candidates must be a sequence of at least two."
            raise InvalidParameter(what, stage="ExponentialMechanism", fix="list them.", parameter="candidates")
        return len(self.candidates)

    def _check_utility(self, domain: Domain, m: int) -> None:
        """Run the utility on made-up rows, together and one at a time, before any row is seen."""
        if not callable(self.utility):
            what = f"utility must be callable, got {shown(self.utility)}."
            fix = "pass utility=function of an array of rows."
            raise InvalidParameter(what, stage="ExponentialMechanism", fix=fix, parameter="utility")
        refuse_captured(self.utility, "ExponentialMechanism")
        spread = float(domain.require("row_norm", "ExponentialMechanism")) / math.sqrt(domain.d)
        made_up = np.random.default_rng(0).uniform(-spread, spread, (8, domain.d))
        made_up[1], made_up[2] = made_up[0], 0.0
        together = self._given(made_up, m)
        alone = np.concatenate([self._given(row[None, :], m) for row in made_up])
        if np.isnan(together).all() or not np.array_equal(together, alone, equal_nan=True):
            what = f"utility must give each row {m} numbers, whatever rows stand beside it."
            fix = "return an array of shape (n, number of candidates), made of operations on single rows."
            raise InvalidParameter(what, stage="ExponentialMechanism", fix=fix, parameter="utility")

    def _given(self, X: Array, m: int) -> Array:
        """What each row gives each candidate; NaN for a row on which the function fails."""
        assert self.utility is not None
        try:
            with np.errstate(all="ignore"):
                given = np.asarray(self.utility(X.copy()), dtype=np.float64)
        except Exception:  # that it fails is nobody's business
            given = np.empty(0)
        if given.shape == (len(X), m):
            return given
        if len(X) <= 1:
            return np.full((len(X), m), np.nan)
        half = len(X) // 2
        return np.concatenate([self._given(X[:half], m), self._given(X[half:], m)])

    def release(self, rows: Rows, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
        chosen = [choose(noise, utilities, noise_scale, question.bound) for utilities in self.utilities(rows, question)]
        if self.query == "utility":
            return {"answer": np.array(chosen, dtype=np.float64)}
        return {"answer": np.array([marks[i] for marks, i in zip(_candidates(question), chosen)])}

    def utilities(self, rows: Rows, question: QuerySpec) -> list[Array]:
        """Utility of every candidate, for each choice."""
        p = question.parameters
        if self.query == "quantile":
            return rank_scores(rows, p["columns"], p["q"], _candidates(question))

        def given(block: Rows) -> Rows:
            clipped = np.nan_to_num(self._given(block.X, p["candidates"]), nan=0.0)
            return replace(block, X=np.clip(clipped, 0.0, p["sensitivity"]))

        return [column_sums(rows.each(given, p["candidates"]), p["sensitivity"])]

    def read(self, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        if self.query == "quantile":
            self.quantile_ = released["answer"]
        else:
            self.selected_ = self.candidates[int(released["answer"][0])]

    def answers(self, columns: Columns, domain: Domain, question: QuerySpec) -> list[Answers]:
        if self.query != "quantile":
            return []
        scale = self.own_noise_scale()
        where, sizes = question.parameters["columns"], question.parameters["sizes"]
        worst = [scale * _rank_missed(m) for m in sizes]
        lost = (f"its rank misses by at most {most:.4g} rows more than the best candidate's" for most in worst)
        noted = columns.at(where).noted(*(f"{words} in 95 % of runs" for words in lost))
        quantiles = Answers.of(f"quantile {self.q:g}", noted, self.quantile_, math.nan)
        raw = [columns.raw_value(column, value) for column, value in zip(where, self.quantile_)]
        return [replace(quantiles, raw=np.array(raw))]


def _rank_missed(candidates: int) -> float:
    """At most, in 95 % of runs, where the temperature is 1: P(loss >= s (log m + t)) <= exp(-t)."""
    return math.log(20 * candidates)


def _candidates(question: QuerySpec) -> list[Array]:
    """Those of each column."""
    p = question.parameters
    return [np.array(marks) for marks in by_column(p["sizes"], p["candidates"])]
