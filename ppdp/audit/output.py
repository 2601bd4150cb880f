"""The output attack: what can be told of the data from what is released, in many runs.

Outcomes of many runs on a pair of neighbouring datasets are split in two. With the first part an attacker chooses
statistics and thresholds; with the second, events that are now fixed are counted. Exact bounds on their probabilities
give, at a stated confidence, a lower bound on mu and epsilon, or refute what is certified.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from ppdp.audit.events import Event, Wager, bets_of, chosen_events, counted_event, purposes_of
from ppdp.audit.target import Target
from ppdp.audit.trials import MOST_RUNS, SLICE, Trials, make_trials
from ppdp.core.checks import flag, integer
from ppdp.exceptions import InvalidParameter
from ppdp.testing.confidence import check_confidence, epsilon_at_least

NOTHING_TOLD = "no event that was tried tells the two datasets apart"

CHOOSING = 0.2  # share of the runs that choose statistics and thresholds

LEAST_RUNS = 4 * SLICE


@dataclass(frozen=True, slots=True)
class OutputFinding:
    """What an output attack shows; all of it at once is wrong with probability at most ``1 - confidence``.

    Attributes
    ----------
    target : str
        What was attacked.
    runs : int
        On both datasets together, those that chose the events included.
    confidence : float
        That all bounds hold.
    events : tuple of Event
        What was counted.
    mu_low, epsilon_low : float
        The mechanism is not mu-GDP for a smaller mu, and not (epsilon, ``delta``)-private for a smaller epsilon.
        Of mu, nothing is shown where it is negative.
    mu : float or None
        As certified, but for failures and what a gate may let pass; None where not everything is Gaussian.
    epsilon, delta : float
        As certified.
    excess : float
        By how much an event breaks ``p - e^ε q <= δ(ε)``, the certified profile, at most.
    violated : bool
        Whether the certificate is refuted.
    seconds : float
        Of processors, for the runs.
    refused : int, default=0
        Runs that ended in a refusal.
    """

    target: str
    runs: int
    confidence: float
    events: tuple[Event, ...]
    mu_low: float
    epsilon_low: float
    mu: float | None
    epsilon: float
    delta: float
    excess: float
    violated: bool
    seconds: float
    refused: int = 0

    @property
    def ratio(self) -> float:
        """Lower over upper bound: of mu where the loss is Gaussian, else of epsilon (infinite if 0 is certified)."""
        low, high = (self.epsilon_low, self.epsilon) if self.mu is None else (self.mu_low, self.mu)
        return max(low, 0.0) / high if high else float("inf" if low > 0 else 0.0)

    @property
    def best(self) -> Event:
        """What told the datasets apart best."""
        return max(self.events, key=lambda event: event.tpr - event.fpr)

    @property
    def told(self) -> bool:
        """Whether any event tells the datasets apart."""
        return max(self.mu_low, self.epsilon_low) > 0

    def to_dict(self) -> dict[str, Any]:
        """JSON form; None where a number is infinite, such as the mu of which nothing at all is shown."""
        names = "runs", "refused", "confidence", "mu_low", "mu", "epsilon_low", "epsilon", "delta", "violated"
        values = {name: getattr(self, name) for name in names}
        plain = {name: value if value is None or math.isfinite(value) else None for name, value in values.items()}
        return {**plain, "events": [event._asdict() for event in self.events]}

    def __str__(self) -> str:
        mu = "" if self.mu is None else f"mu {max(self.mu_low, 0.0):.3f} of {self.mu:.3f}, "
        word = "REFUTED" if self.violated else "nothing found"
        more = f", one by {self.excess:.3g} more likely than certified" if self.violated and self.excess > 0 else ""
        event = "{}: probability {:.4g} against {:.4g}".format(self.best.statistic, *self.best.bounds)
        refused = f", {self.refused} of them refused" if self.refused else ""
        return (
            f"{self.target}: {word} ({mu}epsilon {self.epsilon_low:.3f} of {self.epsilon:.3f} at delta"
            f" {self.delta:.3g}; {event if self.told else NOTHING_TOLD}{more};"
            f" {self.runs} runs{refused}, confidence 1 - {1 - self.confidence:.1g}, {self.seconds:.0f} s)"
        )


def attack_output(
    target: Target,
    *,
    runs: int = 100_000,
    confidence: float = 1 - 1e-6,
    n_jobs: int | None = None,
    random_state: int | None = None,
    sequential: bool = False,
) -> OutputFinding:
    """Run a target many times on two neighbouring datasets and try to tell them apart.

    Parameters
    ----------
    target : Target
        What is attacked: a :class:`PlanTarget`, :class:`GateTarget` or :class:`FunctionTarget`.
    runs : int, default=100_000
        On both datasets together, rounded up to whole slices of 1000; at least 2000. Fixed in advance: whoever adds
        runs until something is found has no such confidence, but with ``sequential``, where they are the most.
    confidence : float, default=1 - 1e-6
        Of everything that the finding says.
    n_jobs : int, optional
        Processes; -1 for as many as there are processors.
    random_state : int, optional
        Seeds all noise, for tests of the audit itself.
    sequential : bool, default=False
        Stop as soon as the claim is refuted, at any number of runs from 2000 on: bets against it, by events that the
        runs before chose, hold with probability ``confidence`` whenever one looks
        (``docs/theory/sequential-audit.md``). After Kutta, Dunsche, Wei and Zikas (2026, arXiv 2602.06518).

    Examples
    --------
    >>> from ppdp import PrivacyLoss
    >>> from ppdp.audit import FunctionTarget, attack_output
    >>> def twice_the_loss(side, noise):
    ...     return noise.release(2.0 * side, noise_scale=1.0, bound=2.0)
    >>> target = FunctionTarget("a mean", twice_the_loss, PrivacyLoss(mu=1.0))
    >>> attack_output(target, runs=4000, random_state=0).violated
    True
    """
    if not isinstance(target, Target):
        fix = "FunctionTarget(name, release, loss), or a PlanTarget."
        raise InvalidParameter(f"a {type(target).__name__} is no target.", fix=fix)
    slices = -(-integer("runs", runs, least=LEAST_RUNS, most=MOST_RUNS) // (2 * SLICE))
    confidence = check_confidence(confidence)
    if flag("sequential", sequential):
        return _in_bets(target, slices, confidence, n_jobs, random_state)
    trials = make_trials(target, slices, slice_runs=SLICE, n_jobs=n_jobs, random_state=random_state)
    return judged(target, trials, confidence=confidence)


def _in_bets(
    target: Target, slices: int, confidence: float, n_jobs: int | None, random_state: int | None
) -> OutputFinding:
    """Look after each slice, later after each quarter more; whenever runs have doubled, all of them choose anew."""
    certified, bets, looks = target.certified, bets_of(target.certified), _looks(slices)
    doubt = (1 - confidence) / 4  # of mu, of epsilon, of the loss, and of all events that are shown
    trials, chosen_by, form, wagers = Trials(()), 0, (1, False), dict[str, Wager]()
    for look in looks:
        made = len(trials.slices)
        trials = make_trials(target, look, slice_runs=SLICE, n_jobs=n_jobs, random_state=random_state, before=trials)
        with threadpool_limits(1):
            for purpose, wager in wagers.items():
                wager.bet(bets[purpose], trials.rows(form, made))
            low = {purpose: player.refuted(doubt) for purpose, player in bets.items()}
            mu = certified.loss.mu if certified.gaussian else math.inf
            violated = low["loss"] >= 0 or low["mu"] > mu or low["epsilon"] > certified.epsilon
            if violated or look == slices:
                break
            if look >= 2 * chosen_by:
                chosen_by, form = look, trials.form
                sides = trials.rows(form)
                chosen = chosen_events(sides, target, purposes_of(certified), len(sides[0]), doubt)
                wagers = {purpose: Wager(*chosen[purpose], sides) for purpose in chosen}
    each = doubt / (2 * len(bets) * len(looks))
    return _finding(
        target,
        trials,
        confidence,
        [wager.shown(certified, each) for wager in wagers.values()],
        mu_low=low["mu"],
        epsilon_low=max(low["epsilon"], 0.0),
        excess=low["loss"],
        violated=violated,
    )


def _looks(slices: int) -> list[int]:
    """After how many slices a sequential attack looks: each of the first, then each quarter more."""
    found = [1]
    while found[-1] < slices:
        found.append(min(slices, found[-1] + max(1, found[-1] // 4)))
    return found


def symmetry_attack(candidate: ArrayLike, released: ArrayLike) -> float:
    """How far a released ``Y = Z Z' V`` is from being made of a candidate V, whatever Z was.

    ``V' Y = (Z' V)' (Z' V)`` is symmetric. For another V of which neither is a multiple of the other, and that are not
    ``v a'`` and ``w a'`` with the same a, it is symmetric with probability 0. So no (epsilon, delta) with delta < 1 is
    private, for any number of columns of Z: noise-free low-rank adaptation is not. Neither Z nor its law is needed.

    Parameters
    ----------
    candidate : array-like of shape (d, m)
        What may have been projected, such as the gradient of a batch with one record more.
    released : array-like of shape (d, m)
        What was released of it.

    Returns
    -------
    float
        ``|V'Y - Y'V| / |V'Y|`` in the Frobenius norm: 0 but for rounding if it was this candidate.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> V, Z = rng.standard_normal((20, 2)), rng.standard_normal((20, 5))
    >>> symmetry_attack(V, Z @ Z.T @ V) < 1e-12, symmetry_attack(V + 0.01 * V[::-1], Z @ Z.T @ V) > 1e-5
    (True, True)
    """
    V, Y = np.asarray(candidate, dtype=np.float64), np.asarray(released, dtype=np.float64)
    if V.ndim != 2 or V.shape != Y.shape:
        raise InvalidParameter(f"matrices of one shape are compared, not {V.shape} and {Y.shape}.")
    product = V.T @ Y
    return float(np.linalg.norm(product - product.T) / max(np.linalg.norm(product), np.finfo(np.float64).tiny))


def judged(target: Target, trials: Trials, *, confidence: float = 1 - 1e-6) -> OutputFinding:
    """What runs show, once all are made: the first fifth (of two slices at least) serves to choose, the rest counts."""
    confidence = check_confidence(confidence)
    if len(trials.slices) < 2:
        raise InvalidParameter("an audit needs two slices at least: one to choose, one to count.", fix="more runs.")
    certified = target.certified
    first, counted = trials.parts(CHOOSING)
    purposes = purposes_of(certified)
    doubt = (1 - confidence) / (2 * len(purposes))
    with threadpool_limits(1):  # threads that wait for each other cost more than they give on so little
        chosen = chosen_events(first, target, purposes, len(counted[0]), doubt)
        events = [counted_event(*chosen[purpose], counted, certified, doubt) for purpose in purposes]
    p, q = (np.array([getattr(event, name) for event in events]) for name in ("tpr", "fpr"))
    return _finding(
        target,
        trials,
        confidence,
        events,
        mu_low=float(certified.mu_at_least(p, q).max()),
        epsilon_low=float(epsilon_at_least(p, q, certified.delta).max()),
        excess=float(certified.excess(p, q).max()),
        violated=certified.refuted(p, q),
    )


def _finding(target: Target, trials: Trials, confidence: float, events: Sequence[Event], **shown: Any) -> OutputFinding:
    certified = target.certified
    sides = [side for part in trials.slices for side in (part.left, part.right)]
    return OutputFinding(
        target=target.name,
        runs=sum(map(len, sides)),
        confidence=confidence,
        events=tuple(events),
        mu=certified.loss.mu if certified.gaussian and certified.loss.mu else None,
        epsilon=certified.epsilon,
        delta=certified.delta,
        seconds=trials.seconds,
        refused=sum(int((side[:, 0] == 0).sum()) for side in sides),
        **shown,
    )
