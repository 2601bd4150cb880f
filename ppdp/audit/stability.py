"""The stability attack: neighbouring datasets that try to exceed what a stage, a plan or a claim promises."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ppdp.audit.claims import Claim, StabilityTarget, lengths
from ppdp.audit.plans import plan_targets, stage_target
from ppdp.audit.search import SIZES, search, share
from ppdp.core.checks import integer, positive
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.figures import aligned, html_table, visible
from ppdp.exceptions import InvalidParameter
from ppdp.pipeline.planning.plan import Plan
from ppdp.testing.neighbours import EXCESS, Pair, World, inhabited
from ppdp.transformers.base import Stage

LOOKED = 100  # pairs, for what a claim's transform raises
NOTHING_MOVED = (
    "nothing moved on any pair, so this attack shows nothing; if it should move, declare what it looks at, such as gaps"
    " (max_missing), or take more rows"
)
HEAD = "what", "quantity", "attained", "claimed", "ratio", ""


@dataclass(frozen=True, slots=True)
class StabilityFinding:
    """The most that was attained of one quantity that is claimed.

    Attributes
    ----------
    name : str
        What was attacked.
    quantity : str
        What was measured: a field of a Distance, "slots" (replaced or toggled), "linf", "l2", "row_norm",
        "entry_bound" or "answer" (how far apart a mechanism's answers without noise are, in the metric of its claim).
    attained, claimed : float
        The largest share of the claim, as two numbers.
    pair : tuple of Rows
        The two datasets. They are made up: they may be shown.
    evaluations : int
        Pairs that were tried on what was attacked.
    seconds : float
        Time that took.
    counted : int, optional
        So many of the pairs count: the conditions held on them, and what was attacked did not refuse them.
    """

    name: str
    quantity: str
    attained: float
    claimed: float
    pair: Pair
    evaluations: int
    seconds: float
    counted: int | None = None

    @property
    def ratio(self) -> float:
        """Attained over claimed."""
        return share(self.attained, self.claimed)

    @property
    def violated(self) -> bool:
        """Whether the claim is false: exceeded by more than rounding."""
        return self.ratio > EXCESS

    def __repr__(self) -> str:
        words = "VIOLATED" if self.violated else "not exceeded" if self.attained else "nothing moved"
        numbers = f"{self.attained:.6g} of {self.claimed:.6g} ({self.ratio:.4g}, {words})"
        return f"{_plain(self.name)}: {self.quantity} {numbers}"

    def to_dict(self) -> dict[str, Any]:
        """JSON form, without the pair."""
        sizes = {"attained": self.attained, "claimed": self.claimed, "ratio": self.ratio}
        numbers = {name: size if math.isfinite(size) else None for name, size in sizes.items()}
        effort = {name: getattr(self, name) for name in ("evaluations", "counted", "seconds")}
        return {"name": self.name, "quantity": self.quantity, **numbers, **effort, "violated": self.violated}


@dataclass(frozen=True, slots=True)
class StabilityReport:
    """Everything a stability attack found.

    Attributes
    ----------
    findings : tuple of StabilityFinding
        One for every quantity of everything that was attacked.
    skipped : tuple of (name, reason)
        What could not be attacked.
    """

    findings: tuple[StabilityFinding, ...]
    skipped: tuple[tuple[str, str], ...] = ()

    @property
    def violations(self) -> tuple[StabilityFinding, ...]:
        """Claims that are false."""
        return tuple(finding for finding in self.findings if finding.violated)

    @property
    def violated(self) -> bool:
        """Whether any claim is false."""
        return bool(self.violations)

    @property
    def worst(self) -> StabilityFinding:
        """The largest ratio."""
        return max(self.findings, key=lambda finding: finding.ratio)

    @property
    def telling(self) -> tuple[StabilityFinding, ...]:
        """Findings without those of a claim of 0 that holds beside others of the same subject."""
        kept = [finding.claimed > 0 or finding.violated for finding in self.findings]
        named = {finding.name for finding, so in zip(self.findings, kept) if so}
        return tuple(finding for finding, so in zip(self.findings, kept) if so or finding.name not in named)

    @property
    def vacuous(self) -> tuple[str, ...]:
        """Names of what was attacked and of which nothing at all moved, on any pair: the attack shows nothing of it."""
        moved = {finding.name for finding in self.findings if finding.attained and finding.quantity not in SIZES}
        return tuple(dict.fromkeys(finding.name for finding in self.findings if finding.name not in moved))

    def _lines(self) -> Iterator[tuple[str, ...]]:
        for f in self.telling:
            sizes = f"{f.attained:.4g}", f"{f.claimed:.4g}", f"{f.ratio:.4f}"
            yield _plain(f.name), f.quantity, *sizes, "VIOLATED" * f.violated

    def _caption(self) -> str:
        tried = sum({f.name: f.evaluations for f in self.findings}.values())
        counted = sum({f.name: f.evaluations if f.counted is None else f.counted for f in self.findings}.values())
        words = f"stability attack: {len(self.violations)} violations, {tried} pairs of neighbouring datasets"
        words += f", {counted} of them count" * (counted < tried)
        vacuous = (f"VACUOUS: {_plain(name)}: {NOTHING_MOVED}" for name in self.vacuous)
        skipped = (f"not attacked: {_plain(name)}: {reason}" for name, reason in self.skipped)
        return "\n".join([words, *vacuous, *skipped])

    def __repr__(self) -> str:
        return "\n".join([self._caption(), *aligned([HEAD, *self._lines()])])

    def _repr_html_(self) -> str:
        return html_table(self._caption(), HEAD, self._lines())

    def to_dict(self) -> dict[str, Any]:
        """JSON form, without the pairs."""
        skipped = [{"name": name, "reason": reason} for name, reason in self.skipped]
        findings = [finding.to_dict() for finding in self.findings]
        return {"findings": findings, "vacuous": list(self.vacuous), "skipped": skipped}


def _plain(name: str) -> str:
    """A name in one line, harmless on a terminal."""
    return visible(" ".join(name.split()))


def attack_stability(
    subject: Any,
    domain: Domain | None = None,
    *,
    distance: Distance | None = None,
    evaluations: int = 20_000,
    seconds: float | None = 60.0,
    until_violated: bool = False,
    seed: int = 0,
) -> StabilityReport:
    """Search for neighbouring datasets on which a claimed stability is exceeded.

    Pairs are drawn at random and from families on which bounds are usually tight or false, then climbed from. What is
    found is a proof by example; that nothing is found proves nothing. Where a condition is assumed, pairs count on
    which it holds on both datasets. A claim's transform maps a dataset twice at the start, and again where the claim is
    exceeded: if it is random, nothing can be said.

    Parameters
    ----------
    subject : Claim, Stage, Plan or Pipeline
        What is attacked. Of a stage every way; of a plan every stage, every released statistic, all stages together
        and what the mechanism answers without noise.
    domain : Domain, optional
        Public facts at the entrance; of a claim and of a plan they are known. ``n_rows`` and ``n_features`` are
        needed; of a stage ``row_norm`` is 1 unless it is declared, and a stage that fills no gaps is attacked with
        rows without gaps unless ``max_missing`` is declared. Where thresholds are small, such as a standard
        deviation of 0.3 or less of scalers, 50 rows or more make an attack sharper: with a dozen their bounds are far
        from what any pair attains.
    distance : Distance, optional
        Of a stage: how far apart the datasets are before it. Default: one replaced row.
    evaluations : int, default=20000
        Pairs that are tried on each of them.
    seconds : float or None, default=60
        Longest time for each of them; the result is a function of the seed unless it runs out.
    until_violated : bool, default=False
        Whether each search ends at the first violation.
    seed : int, default=0
        Of everything that is random.

    Raises
    ------
    InvalidParameter
        If the subject is none of these, if it is random, or raises an error, or if nothing is claimed of any pair that
        was tried.

    Examples
    --------
    >>> import numpy as np
    >>> from ppdp import Domain
    >>> domain = Domain(n_rows=10, n_features=1, row_norm=1.0)
    >>> centring = Claim(lambda X: X - X.mean(axis=0), domain, {"l2": 1 / 10}, name="centring")
    >>> attack_stability(centring, evaluations=200).worst
    centring: l2 0.2 of 0.1 (2, VIOLATED)
    """
    budget = integer("evaluations", evaluations, least=1)
    longest = math.inf if seconds is None else positive("seconds", seconds)
    seed = integer("seed", seed, least=0)
    enough = EXCESS if until_violated else math.inf
    targets, skipped = _targets(subject, domain, distance)
    found: list[StabilityFinding] = []
    for target in targets:
        if isinstance(target, Claim):
            target.refuse_random(target.world.drawn(np.random.default_rng(seed))[0])
        done = search(target, evaluations=budget, seconds=longest, enough=enough, seed=seed)
        if not done.best:
            skipped.append((target.name, _why_nothing(target, seed)))
        for quantity, best in done.best.items():
            numbers = best.attained, best.claimed, best.pair, done.tried, done.elapsed, done.counted
            found.append(StabilityFinding(target.name, quantity, *numbers))
            if found[-1].violated and isinstance(target, Claim):
                target.refuse_random(*best.pair)
    if not found:
        reasons = "; ".join(f"{_plain(name)}: {reason}" for name, reason in skipped)
        fix = "more evaluations, more rows, or other parameters."
        raise InvalidParameter(f"nothing could be attacked: {reasons}.", fix=fix)
    return StabilityReport(tuple(found), tuple(skipped))


def _why_nothing(target: StabilityTarget, seed: int) -> str:
    """Why no pair counted, with the first error of a claim's transform on the pairs that were drawn first."""
    rng = np.random.default_rng(seed)
    drawn = (target.world.drawn(rng) for _ in range(LOOKED))
    failures = (target.failure(pair) for pair in drawn if isinstance(target, Claim))
    first = next((f" ({failure})" for failure in failures if failure is not None), "")
    return f"its conditions held, or it ran, on none of the pairs{first}"


def _targets(
    subject: Any, domain: Domain | None, distance: Distance | None
) -> tuple[Sequence[StabilityTarget], list[tuple[str, str]]]:
    """What is to be attacked, and what cannot be."""
    for name, given, kind in (("domain", domain, Domain), ("distance", distance, Distance)):
        if given is not None and not isinstance(given, kind):
            fix = f"pass a {kind.__name__}, or leave it out."
            raise InvalidParameter(f"{name} is of type {type(given).__name__}.", fix=fix)
    if isinstance(subject, Claim):
        return [subject], []
    if isinstance(subject, Stage):
        if domain is None:
            raise InvalidParameter("a stage is attacked in a domain.", fix="pass Domain(n_rows=..., n_features=...).")
        return list(_ways(subject, domain, distance or domain.neighbours)), []
    if not isinstance(subject, Plan):
        if not hasattr(subject, "plan"):
            fix = "pass a Claim, a stage of ppdp, a Plan or a Pipeline."
            raise InvalidParameter(f"a {type(subject).__name__} cannot be attacked.", fix=fix)
        subject = subject.plan(domain)
    return plan_targets(subject)


def _ways(stage: Stage, domain: Domain, distance: Distance) -> Iterator[StabilityTarget]:
    if domain.max_missing is None and not stage.fills_gaps:
        domain = domain.but(max_missing=0)
    facts = inhabited(domain.but(row_norm=domain.row_norm or 1.0), distance)
    for way in stage.fit_modes(facts, distance):
        gaps = facts.missing_rows if stage.fills_gaps else 0
        kind = type(stage).__name__
        yield stage_target(f"{kind}, {way.name}", stage, way, World(facts, distance, gaps, tuple(lengths(stage, way))))
