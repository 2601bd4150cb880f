"""The plan: everything that is decided before any data are seen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from ppdp.bounds.column_groups import span_of
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.figures import html_table, visible
from ppdp.core.formula import AT, lookup, of_group
from ppdp.data.engine.disk_cache import BESIDE, fit_memory
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.public_facts import Fact, taken_on_trust
from ppdp.mechanisms.base import QuerySpec, compose_behind_gate
from ppdp.pipeline.planning.diagnostics import PlannedDiagnostics
from ppdp.pipeline.planning.route import Alternative, PlannedRelease, PlannedStep
from ppdp.privacy.gate import Gate
from ppdp.privacy.loss import PrivacyLoss, any_of
from ppdp.transformers.fit_mode import Condition

TITLE = "PLAN: nothing has been certified"
MOST = 12  # routes in a notebook
SHORT = 0.05  # of how long standardised rows are: a norm below it leaves only their directions
IN_ANOTHER_UNIT = 50.0  # times 1 is the largest weight: rows of 1 are below the share of it that is counted


def _all_at_once(step: PlannedStep) -> bool:
    """Whether a step, going this way, needs all rows in memory."""
    request = step.way.request
    if step.way.name == "noisy":
        return request is not None and STATISTICS[request.statistic].sorts
    return step.way.name == "exact" and getattr(step.stage, "in_memory", True)


@dataclass(frozen=True, slots=True)
class PlannedMechanism:
    """The last step with its solved noise; a sensitivity has what adds Gaussian noise to every answer."""

    name: str
    stage: Any
    question: QuerySpec
    sensitivity: float | None
    noise_scale: float
    loss: PrivacyLoss
    max_weight: float = 1.0

    @property
    def relative_noise(self) -> float:
        """What routes are compared by."""
        return self.noise_scale if self.sensitivity is None else self.sensitivity / self.loss.mu

    @property
    def share_of_noise(self) -> float:
        """Length of the noise of all answers averaged, over the largest that an answer can be, or over what is told."""
        q = self.question
        return self.noise_scale * (q.drowning or math.sqrt(q.size / q.steps) / q.bound)

    @property
    def lightest(self) -> float:
        """As what part of the heaviest row others count: the class that weighs least, or weights of 1.

        Beyond :data:`IN_ANOTHER_UNIT` weights are numbers of people or the like, or shares of rows tell of it.
        """
        of_classes = min((factor for factor in self.question.factors if factor > 0), default=1.0)
        return of_classes / (self.max_weight if 1 < self.max_weight <= IN_ANOTHER_UNIT else 1.0)

    @property
    def drowns(self) -> bool:
        """Whether the noise is more than half of what is asked for; rows are released to be averaged or compared."""
        return self._exceeds(0.5)

    @property
    def misleads(self) -> bool:
        """Whether it is more than the answer bears, or what rows say at their weight: users are warned."""
        return self._exceeds(self.stage.noise_borne * self.lightest)

    def _exceeds(self, share: float) -> bool:
        q = self.question
        told = not lookup(q.formula, "mechanism").rows if q.gaussian else q.drowning > 0
        return told and self.share_of_noise > share


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """A route with every bound and every noise scale; needs no data.

    Attributes
    ----------
    epsilon, delta : float
        The end-to-end guarantee the plan keeps.
    domain, distance : Domain, Distance
        At the entrance.
    facts : tuple of Fact
        The public facts with their origins.
    steps : tuple of PlannedStep
        Stages with their ways.
    releases : tuple of PlannedRelease
        Statistics to be released with noise.
    gate : Gate or None
        The test of all conditions.
    mechanism : PlannedMechanism or None
        The last step; None for a pipeline that ends in a transformer.
    end : tuple of (Domain, Distance)
        After the last stage.
    allowance : float
        Part of delta set aside for the noise sampler.
    alternatives : tuple of Alternative
        Every route with its final noise; where there are more than 16, the chosen one, each change of one stage, and
        those on which all stages that can be are exact, or noisy.
    warnings : tuple of str
        What a user should know before spending.
    vague : bool
        Whether some stage is fitted from statistics with much noise, since no plan does better.
    diagnostics : PlannedDiagnostics or None
        Noisy shares of altered rows; None if none are released.
    silent : str
        Why none are, where somebody asked for them.
    advice : Advice or None
        What would help where it is strained: a larger epsilon, another step.
    """

    epsilon: float
    delta: float
    domain: Domain
    distance: Distance
    facts: tuple[Fact, ...]
    steps: tuple[PlannedStep, ...]
    releases: tuple[PlannedRelease, ...]
    gate: Gate | None
    mechanism: PlannedMechanism | None
    end: tuple[Domain, Distance]
    allowance: float
    alternatives: tuple[Alternative, ...]
    warnings: tuple[str, ...]
    vague: bool = False
    diagnostics: PlannedDiagnostics | None = None
    silent: str = ""
    advice: Any = field(default=None, compare=False)

    def with_declared(self) -> Plan:
        """The plan with a fact for every range and constant that a step takes from the user's word."""
        steps = [(step.name, step.stage, step.domain) for step in self.steps]
        last = [(self.mechanism.name, self.mechanism.stage, self.end[0])] if self.mechanism is not None else []
        return replace(self, facts=(*self.facts, *taken_on_trust([*steps, *last])))

    @property
    def conditions(self) -> tuple[tuple[str, Condition], ...]:
        """Every condition with the name of its step."""
        return tuple((step.name, condition) for step in self.steps for condition in step.way.conditions)

    @property
    def unpassable_gates(self) -> tuple[str, ...]:
        """Steps whose conditions leave too small a margin for the gate, whatever the data."""
        return () if self.gate is None else tuple(step.name for step in self.steps if out_of_reach(step, self.gate))

    @property
    def in_memory(self) -> tuple[str, ...]:
        """Steps that need all rows in memory: without one, rows may be read in blocks."""
        last = (self.mechanism,) if self.mechanism is not None else ()
        stages = [step.name for step in self.steps if _all_at_once(step)]
        return (*stages, *(m.name for m in last if getattr(m.stage, "in_memory", True)))

    def passes(self, position: int) -> int:
        """How often the rows are read, at most, that stand in front of a step, the mechanism counted once."""
        behind = self.steps[position:]
        fitted = sum(one.stage.passes * (len(one.way.conditions) + (one.way.name == "exact")) for one in behind)
        released = sum(1 + (STATISTICS[release.statistic].further is not None) for release in self.releases)
        return released + (self.mechanism is not None) + fitted

    @property
    def mechanism_passes(self) -> int:
        """How often the mechanism reads all rows, at most."""
        m = self.mechanism
        return 0 if m is None else int(m.stage.passes(m.question, self.end[0]))

    @property
    def n_passes(self) -> int:
        """How often all rows are read, at most: for what is fitted, released or asked, and to be written down for that.

        Rows that are read in blocks are; in memory it is fewer.
        """
        first, asked = self._first_fitted, self.mechanism_passes
        held = (first < len(self.steps) and self.passes(first) > 1) + (asked > 1)
        apart = self.domain.adjacency.unbounded + self.domain.adjacency.bounds_contributions + self.reads_labels
        apart += asked == 1 and self.diagnostics is not None and bool(self.diagnostics.predicted)  # by what it learned
        return self.passes(first) - (self.mechanism is not None) + asked + held + apart

    @property
    def reads_labels(self) -> bool:
        """Whether labels are read beforehand, since nobody has declared which there are."""
        labels = self.mechanism is not None and self.mechanism.stage.needs_y
        return labels and self.domain.classes is None and self.domain.y_range is None

    @property
    def _first_fitted(self) -> int:
        """Position of the first step that looks at rows before it maps them, or behind all."""
        return next((i for i, one in enumerate(self.steps) if one.way.name != "public"), len(self.steps))

    @property
    def disk_bytes(self) -> int:
        """Least room on the disk that rows need which are read in blocks: none if they are read once, or are few."""
        first = self._first_fitted
        numbers = [step.domain.d for step in self.steps[first:]]
        several = bool(numbers) and self.passes(first) > 1
        if self.mechanism_passes > 1:
            numbers, several = [*numbers, self.end[0].d], True
        if numbers and fit_memory(self.domain.n, max(numbers)) and not self.domain.adjacency.unbounded:
            return 0
        return 8 * self.domain.n * (min(numbers) + BESIDE) if several else 0

    @property
    def private_range_columns(self) -> set[str] | None:
        """Columns whose range is found in the rows, by name; None if these may be all, since they have no names."""
        columns: set[str] = set()
        for step in self.steps:
            asked = "" if step.way.request is None else step.way.request.statistic
            if asked.partition(AT)[0] == "ranges":
                names = step.domain.feature_names
                if names is None:
                    return None
                start = span_of(step.domain, asked.partition(AT)[2])[1] if AT in asked else 0
                columns |= {names[start + i] for i in step.way.parameters["columns"]}
        return columns

    @property
    def noise_exceeds_signal(self) -> bool:
        """Whether the noise of the mechanism is larger than half of what it asks for."""
        return self.mechanism is not None and self.mechanism.drowns

    @property
    def has_warnings(self) -> bool:
        """Whether it warns that noise drowns the signal or statistics, or that no data could pass."""
        misled = self.mechanism is not None and self.mechanism.misleads
        return misled or bool(self.unpassable_gates) or self.vague

    @property
    def cautioned(self) -> bool:
        """Whether the last step warns of what it does here, or rows lose their lengths in front of it."""
        own = self.mechanism is not None and bool(self.mechanism.question.warnings)
        return own or bool(shortening(self.steps))

    @property
    def conditions_untested(self) -> bool:
        """Whether conditions are assumed instead of tested."""
        return self.gate is None and bool(self.conditions)

    @property
    def reasons(self) -> list[str]:
        """Why what it promises is not unconditional."""
        trusted = [f"{fact.name}: {fact.origin}" for fact in self.facts if not fact.public]
        assumed = self.conditions if self.conditions_untested else ()
        return [*trusted, *(f"{name} assumes that {condition.statement}" for name, condition in assumed)]

    @property
    def loss(self) -> PrivacyLoss:
        """Everything that is released, composed."""
        before = loss_before(self.releases, self.gate, self.diagnostics)
        if self.mechanism is None:
            return before
        return compose_behind_gate(before, self.mechanism.loss)

    def __repr__(self) -> str:
        """The plan for a terminal."""
        width = max([12, *(len(step.name) for step in self.steps)])
        steps = [
            f"{s.name:<{width}} {s.way.name:<7} neighbours then differ by {s.way.distance.describe()}"
            for s in self.steps
        ]
        warnings = [f"warning: {warning}" for warning in self.warned()]
        return "\n  ".join([TITLE, self._promise(), *steps, *self._noise(), *self._trusted(), *self._held(), *warnings])

    def _repr_html_(self) -> str:
        """The plan for a notebook: the stages, what gets noise, and the other routes."""
        stages = html_table(
            f"{TITLE}\n{self._promise()}",
            ("stage", "fitted", "neighbouring datasets then differ by", "assumes"),
            (
                (
                    s.name,
                    s.way.name,
                    s.way.distance.describe(),
                    "; ".join(c.statement for c in s.way.conditions) or "nothing",
                )
                for s in self.steps
            ),
        )
        below = *self._noise(), *self._trusted(), *self._held()
        lines = "".join(f"<div>{escape(visible(line.strip()))}</div>" for line in below)
        warnings = "".join(f"<div>⚠ {escape(visible(warning))}</div>" for warning in self.warned())
        best = self.ranked()[:MOST]
        routes = html_table(
            "routes" if len(self.alternatives) <= MOST else f"the best {MOST} of {len(self.alternatives)} routes",
            ("route", "noise", "status", "why not"),
            ((a.route, "" if a.noise_scale is None else f"{a.noise_scale:.3g}", a.status, a.reason) for a in best),
            bold=0 if any(a.status == "chosen" for a in best) else None,
        )
        return f"<div>{stages}{lines}{warnings}{routes if len(self.alternatives) > 1 else ''}</div>"

    def ranked(self) -> list[Alternative]:
        """The chosen route, the others by their noise, then those that are not offered."""

        def order(route: Alternative) -> tuple[bool, float]:
            return route.status != "chosen", math.inf if route.noise_scale is None else route.noise_scale

        return sorted(self.alternatives, key=order)

    def warned(self) -> list[str]:
        """Warnings, with what would help."""
        return [*self.warnings, *([str(self.advice)] if self.advice is not None else [])]

    def _promise(self) -> str:
        return f"(epsilon, delta) = ({self.epsilon:g}, {self.delta:g}), {self.domain.describe()}"

    def _held(self) -> list[str]:
        """How often rows are read, and whether they can be in blocks."""
        most = "once" if self.n_passes == 1 else f"{self.n_passes} times at most"
        asked = self.mechanism_passes
        by = f", {asked} of them for {self.mechanism.name}" if self.mechanism is not None and asked > 1 else ""
        if self.in_memory:
            return [f"reads the rows {most}{by}", f"needs all rows in memory: {', '.join(self.in_memory)}"]
        disk = f"{max(self.disk_bytes / 1e9, 0.1):.1f} GB of the disk" if self.disk_bytes else "no disk"
        return [f"reads the rows {most}{by}; in blocks, with {disk}, or in memory"]

    def _trusted(self) -> list[str]:
        """Ranges and constants that nobody can check, a line each."""
        declared = [fact for fact in self.facts if fact.step]
        lines = [visible(" ".join(f"{f.name}: {f.value} ({f.origin})".split())) for f in declared[:MOST]]
        return [*lines, *([f"and {len(declared) - MOST} more that are declared"] if len(declared) > MOST else [])]

    def _noise(self) -> list[str]:
        """Everything that gets noise, a line each."""
        lines = []
        for release in self.releases:
            served = ", ".join(self.steps[i].name for i in release.serves)
            noise = f"Gaussian noise, sigma {release.noise_scale:.3g}, mu {release.mu:.3g}"
            needed = "" if release.threshold is None else f", one needs {release.threshold:.0f} rows and their noise"
            lines.append(f"released {of_group(release.statistic)} for {served}: {noise}{needed}")
        if self.diagnostics is not None:
            lines.append(self.diagnostics.describe())
        elif self.silent:
            lines.append(f"no diagnostics: {self.silent}")
        if self.gate is not None:
            lines.append(
                f"gate: {len(self.conditions)} condition(s), {self.gate.kind} noise, passes in 99 % of cases from a"
                f" margin of {math.ceil(self.gate.needed_margin())} rows"
            )
        elif self.conditions:
            lines.append(f"no gate: {len(self.conditions)} condition(s) are assumed")
        if self.mechanism is not None:
            q = self.mechanism.question
            lines.append(
                f"{self.mechanism.name}: {q.steps} answer(s) of {q.size} numbers,"
                f" noise {self.mechanism.noise_scale:.3g} on values up to {q.bound:.3g}"
            )
        return lines


def loss_before(
    releases: Sequence[PlannedRelease], gate: Gate | None, diagnostics: PlannedDiagnostics | None = None
) -> PrivacyLoss:
    """Loss of releases, shares of altered rows and the gate, whose delta adds behind a release that may fail."""
    test = gate.loss if gate is not None else PrivacyLoss()
    shares = diagnostics.loss if diagnostics is not None else PrivacyLoss()
    mu = math.sqrt(sum(release.mu**2 for release in releases) + test.mu**2 + shares.mu**2)
    delta = gate.delta if gate is not None else 0.0
    adding = gate is not None and gate.adding
    failures = [release.failure or 0.0 for release in releases]
    return PrivacyLoss(
        mu, any_of(*failures, delta if adding else 0.0), 0.0 if adding else delta, shares.parts + test.parts
    )


def shortening(steps: Iterable[PlannedStep]) -> list[PlannedStep]:
    """Those that clip standardised rows, about as long as the root of the number of columns, to far less."""
    return [
        step
        for step in steps
        if step.way.formula == "row-wise.norm-clip"
        and step.domain.usual_norm is not None
        and step.way.parameters["max_norm"] < SHORT * math.sqrt(step.domain.d)
    ]


def out_of_reach(step: PlannedStep, gate: Gate) -> bool:
    """Whether the largest possible margin of a condition is too small for the gate."""
    return any(condition.largest < gate.needed_margin() for condition in step.way.conditions)
