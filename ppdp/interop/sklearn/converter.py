"""What a pipeline of scikit-learn becomes, step by step."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from typing import Any

from ppdp.exceptions import UnsupportedOrder
from ppdp.interop.sklearn.counterparts import public_maps, role_of
from ppdp.interop.sklearn.declared_facts import DeclaredFacts
from ppdp.interop.sklearn.entrance_ranges import (
    ends_of_ranges,
    is_released,
    meets_gaps,
    only_bounds,
    public_ranges,
    released_ranges,
    without_range,
)
from ppdp.interop.sklearn.models import CLUSTERS
from ppdp.interop.sklearn.steps import Step, is_word
from ppdp.interop.sklearn.trees import TREES, as_codes, holds_codes, numbers_of_categories, only_trees, told_of_columns
from ppdp.transformers import MinMaxScaler, NormClipper, RobustScaler, StandardScaler
from ppdp.transformers.columns.categories import OneHot, ReleasedCategories
from ppdp.transformers.columns.column_group import ColumnGroup, NamedGroup
from ppdp.transformers.columns.column_map import ColumnMap
from ppdp.transformers.columns.column_subset import ColumnSplit, ColumnSubset
from ppdp.transformers.columns.maps import Binarized, Binned, FillConstant, Normalised, PublicMap, RangeScale, Unclipped
from ppdp.transformers.rowwise.ranges import has_private

KERNELS = ("Nystroem", "PolynomialCountSketch", "RBFSampler")  # what may stand behind columns that ranges have scaled
_CATEGORIES_ARE_KEPT = "columns that stand for categories or words stay as they are"
_PROJECTED = "it scales the projected columns, not the components: for a linear model without a penalty the same"
_WEIGH_OTHERWISE = "columns are scaled otherwise than for scikit-learn's, so distances weigh otherwise"
_RELEASED = "undeclared ranges are released with noise, and columns are scaled by them"


@dataclass(frozen=True, slots=True)
class Converted:
    """One step."""

    step: str  # its name
    given: str  # its class
    became: str  # name of the step that stands for it
    changed: tuple[str, ...]  # how the counterpart differs
    ignored: tuple[str, ...]  # parameters without a meaning for the counterpart

    def __str__(self) -> str:
        notes = list(self.changed)
        if self.ignored:
            notes.append(f"ignored: {', '.join(self.ignored)}")
        arrow = f"{self.step} ({self.given}) -> {self.became}" if self.given else f"added: {self.became}"
        return "".join([arrow, *(f"\n    {note}" for note in notes)])


@dataclass(frozen=True, slots=True)
class Conversion:
    """What became of a pipeline of scikit-learn.

    Attributes
    ----------
    steps : tuple of Converted
        In the order of the pipeline.
    unused : tuple of str
        What was declared of columns that no step takes.
    """

    steps: tuple[Converted, ...]
    unused: tuple[str, ...] = ()

    def __iter__(self) -> Iterator[Converted]:
        return iter(self.steps)

    def __repr__(self) -> str:
        unused = [f"declared of columns that no step takes: {', '.join(self.unused)}"] if self.unused else []
        return "\n".join([*map(str, self.steps), *unused])


@dataclass
class Converter:
    """What was converted so far, and what scikit-learn's pipeline would see otherwise."""

    facts: DeclaredFacts
    reserved: frozenset[str]
    uneven: Step | None  # the scaler that was asked for some of the columns only
    groups: Mapping[str, Sequence[Step]] = field(default_factory=dict)
    """The stages of every set of columns, where these share no statistics."""
    behind: Sequence[Step] = ()  # what stands behind the entrance, for all columns
    steps: list[tuple[str, Any]] = field(default_factory=list)
    report: list[Converted] = field(default_factory=list)
    units: str = "own"
    """Of the columns: "own" if somebody who only has the rows could say what they are, "ranges" if only ranges tell."""
    rescaled: bool = False
    """Whether columns stand in other units than in scikit-learn's pipeline, which a penalty feels."""
    projected: str | None = None
    """The step by which rows are projected: they keep their columns, where scikit-learn's get components."""
    stretched: bool = False  # whether projected columns are scaled
    shifted: bool = False  # whether rows have a mean that scikit-learn's pipeline has subtracted
    categories: dict[int, int] | None = None
    """How many categories each column of codes has in front of trees, by position."""
    averaged: bool = False  # whether mean labels take the place of all codes
    coded: bool = False  # whether some columns come in as codes of categories

    def add_step(self, name: str, made: Any) -> str:
        """Add a step under a name that is free."""
        taken = self.reserved | {name for name, _ in self.steps}
        free = next(n for n in (name, *(f"{name}-{i}" for i in range(2, 99))) if n not in taken)
        self.steps.append((free, made))
        return free

    def note(self, step: Step, became: str, made: Any) -> None:
        """Remember what became of a step."""
        given = "" if step.estimator is None else type(step.estimator).__name__
        changed, ignored = (tuple(dict.fromkeys(words)) for words in (step.changed, step.ignored))
        self.report.append(Converted(step.name, given, f"{became} ({type(made).__name__})", changed, ignored))

    def add_entrance(self, public: list[Step], blocks: list[ColumnGroup], rest: list[Step], whole: Step | None) -> None:
        """The public stage at the entrance, with the bound of all rows."""
        facts, maps, self.behind = self.facts, [m for block in blocks for m in block.maps], rest
        notes: list[str] = []
        if facts.ranges is not None and not all(block.drop or block.encoder is not None for block in blocks):
            notes.append(f"numbers are clipped to their {'released' if has_private(facts.ranges) else 'public'} ranges")
        elif facts.max_norm is not None:
            notes.append("rows that are longer than max_norm are shortened to it")
        bare = meets_gaps(rest) and facts.domain.max_missing != 0
        if whole is None and only_bounds(maps) and not bare:
            made: Any = self._plain_bound(maps, rest)
            if not maps and facts.ranges is not None:
                self.rescaled = True
                notes.append("they are scaled to [{:g}, {:g}]".format(*ends_of_ranges(rest)))
            name = public[0].name if public else "range" if facts.ranges is not None else "clip"
        else:
            gaps = any(block.expects for block in blocks) or any(map(self._has, self.groups, repeat("imputer")))
            gaps = bare or (gaps and not self._filled_later(rest))
            # Trees take missing values, and stages of a group in front of them do not.
            needy = {group for group, tail in self.groups.items() if gaps or (only_trees(rest) and tail)}
            gappy = {group for group in needy | ({""} if gaps else set()) if not self._has(group, "imputer")}
            self.averaged = any(role_of(step) == "label means" for step in rest)
            self.coded = any(holds_codes(block) and not self._averages(block) for block in blocks)
            own: list[str] = []
            codes = [as_codes(block, rest[0]) for block in blocks] if only_trees(rest) and facts.scales else []
            if any(map(holds_codes, codes)):
                made = self._stage(codes, gappy, own, codes=True)
                self.categories = numbers_of_categories(made, facts.domain)
            if not self.categories:
                own.clear()
                made = self._stage(blocks, gappy, own, codes=False)
            notes += own
            name = whole.name if whole is not None else public[0].name if len(public) == 1 else "columns"
        if made is None:
            return
        scaled = [self._has(_group_of(block), "scaler") for block in blocks if block.encoder is None and not block.drop]
        own_units = (scaled and all(scaled)) or all(block.takes_texts for block in blocks if not block.drop)
        self.units = "ranges" if facts.scales and not own_units else "own"
        became = self.add_step(name, made)
        first = whole or (public[0] if public else Step("", None))
        first.changed += notes or ([] if whole is None and public else ["bounds every row"])
        for step in public if first in public else [first, *public]:
            self.note(step, became, made)
        if isinstance(made, ColumnMap) and any(isinstance(m, Unclipped) for block in made.blocks for m in block.maps):
            released = released_ranges(made, first)
            self.note(Step("", None, [_RELEASED]), self.add_step("ranges", released), released)
            self.rescaled = True

    def _stage(
        self, blocks: Sequence[ColumnGroup], gappy: Collection[str], notes: list[str], *, codes: bool
    ) -> ColumnMap:
        """The public stage of these blocks, in which codes of categories stay as they are if they may."""
        finished = tuple(
            self._finished(
                block, _group_of(block) in gappy, notes, codes=(codes or self._averages(block)) and holds_codes(block)
            )
            for block in blocks
        )
        if bare := [name for block in finished for name in without_range(block, self.facts)]:
            asked = ", ".join(f"{name!r}: (low, high)" for name in bare)
            notes.append(f"no fit starts without the public range of every column: ranges={{{asked}, ...}} is missing")
        return ColumnMap(finished, public_ranges(self.facts, finished), self.facts.max_norm)

    def _plain_bound(self, maps: list[PublicMap], rest: Sequence[Step]) -> Any:
        """A stage that only bounds; None if rows have a bound already."""
        facts = self.facts
        if facts.ranges is not None:
            target = next((m.target for m in maps if isinstance(m, RangeScale)), None)
            return MinMaxScaler(ranges=facts.ranges, feature_range=target or ends_of_ranges(rest))
        return None if facts.max_norm is None else NormClipper(facts.max_norm)

    def _filled_later(self, rest: list[Step]) -> bool:
        """Whether a step behind the entrance fills missing values."""
        filling = any(role_of(step) == "imputer" or getattr(step.estimator, "fills_gaps", False) for step in rest)
        return (filling or only_trees(rest)) and self.facts.domain.max_missing != 0

    def _finished(self, block: ColumnGroup, gaps: bool, notes: list[str], *, codes: bool) -> ColumnGroup:
        """The block with what bounds it, and without missing values that nothing else fills; additions are noted."""
        added: list[PublicMap] = []
        sized = codes or any(
            m.sized
            or isinstance(m, (RangeScale, OneHot, Normalised, Binarized))
            or (isinstance(m, (Binned, ReleasedCategories)) and m.hot)
            for m in block.maps
        )
        if is_released(block, self.facts):
            return replace(block, maps=(Unclipped(), *block.maps))
        if self.facts.scales and not sized and not block.drop:
            ends = ends_of_ranges(self.groups.get(_group_of(block)) or self.behind)
            added.append(RangeScale(ends))
            self.rescaled |= not self._has(_group_of(block), "scaler")
            to = "[{:g}, {:g}]".format(*ends)
            notes.append(f"{block.described}: what comes out is scaled from its public range to {to}")
        if gaps and not block.fills:
            added.append(FillConstant(None))
            notes.append(
                f"{block.described}: a missing value becomes the middle of the public range: nothing else fills it"
            )
        return replace(block, maps=(*block.maps, *added))

    def add(self, step: Step, made: Any) -> None:
        """What stands for one step behind the entrance; None for a public map, which is made here."""
        role = role_of(step)
        made = self._late_map(step) if made is None else made
        if role in ("components", "projection") and self.units == "ranges":
            step.changed.append("of columns that public ranges have scaled")
        if step.kind in CLUSTERS:  # distances, which no rotation changes, in units that every step behind them sees
            if self.rescaled:
                step.changed.append(_WEIGH_OTHERWISE)
            self.units, self.rescaled, self.shifted, self.projected = "own", False, False, None
        elif role == "components":
            self._components(step, made)
        elif role in ("selector", "label means"):
            self._check_components(step)
        elif role == "quantiles":
            self._check_components(step)
            self.units, self.rescaled, self.shifted = "own", False, False
        elif role == "scaler":
            self._scaled(step)
        elif step.kind in TREES:
            self._grown(step, made)
        elif role == "model":
            self._learned(step, made)
        self.note(step, self.add_step(step.name, made), made)

    def add_groups(self, whole: Step, made: Mapping[int, Any]) -> None:
        """Stages for one set of columns each, which stand as they are."""
        split = ColumnSplit([(group, None) for group in self.groups])
        words = ["its columns stand in groups, and every stage sees those of its own"]
        self.note(Step("", None, words), self.add_step(f"{whole.name}-split", split), split)
        for group, tail in self.groups.items():
            projected = None
            for step in tail:
                role, stage = role_of(step), made[id(step)]
                if stage is None:
                    step.scaled = True
                    stage = ColumnMap((ColumnGroup(None, public_maps([step], None, self.facts)),))
                if role == "components":
                    self._components(step, stage)
                    projected = step
                elif step.kind in CLUSTERS and not self._has(group, "scaler"):
                    step.changed.append(_WEIGH_OTHERWISE)
                elif role == "scaler" and projected is not None:
                    self.stretched = True
                    step.changed.append(_PROJECTED)
                self.note(step, self.add_step(step.name, ColumnSubset(stage, group)), stage)

    def _averages(self, block: ColumnGroup) -> bool:
        """Whether mean labels take the place of its codes."""
        return self.averaged or self._has(_group_of(block), "label means")

    def _has(self, group: str, role: str) -> bool:
        """Whether a set of columns has a stage of this role."""
        return any(role_of(step) == role for step in self.groups.get(group, ()))

    def _scaled(self, step: Step) -> None:
        """What a scaler of all columns makes of units and axes."""
        self.units, self.rescaled = "own", step is self.uneven
        if step is not self.uneven and any(_made_of_categories(stage) for _, stage in self.steps):
            step.changed.append(_CATEGORIES_ARE_KEPT)
            self.rescaled = True
        self.shifted = self.shifted and not step.given().get("with_mean", True)
        if self.projected is not None:
            self.stretched = self.rescaled = True
            step.changed.append(_PROJECTED)

    def _components(self, step: Step, made: Any) -> None:
        """Projected columns in place of components."""
        if self.stretched:
            what = f"it would find components of scaled columns, and scikit-learn scales those of {self.projected!r}."
            fix = "put the scaler in front of both, or leave one of the three out."
            raise UnsupportedOrder(what, stage=step.name, fix=fix)
        self.projected, self.shifted = step.name, bool(made.with_mean)
        step.changed.append(
            "rows keep their columns: they are projected on the components, which for linear models is the same"
        )

    def _learned(self, step: Step, made: Any) -> None:
        """What a model sees that scikit-learn's does not."""
        if self.rescaled and getattr(made, "alpha", 0.0) not in (0.0, "auto"):
            step.changed.append("columns are scaled otherwise than for scikit-learn's, so its penalty weighs otherwise")
        if step.kind == "GaussianNB":
            self._check_components(step)
        if self.shifted and not getattr(made, "fit_intercept", True):
            step.changed.append("it learns no intercept from rows that are not centred, as scikit-learn's PCA has them")

    def _grown(self, step: Step, made: Any) -> None:
        """What trees see that scikit-learn's do not."""
        self._check_components(step)
        made.categorical_features = self.categories
        told_of_columns(step, made, self.coded)

    def _check_components(self, step: Step) -> None:
        """Only what is linear may stand behind a projection on components."""
        if self.projected is not None:
            raise UnsupportedOrder(
                f"after {self.projected!r} ppdp keeps the columns, and scikit-learn uses components: this step "
                "gives the same result only if it is linear.",
                stage=step.name,
                fix=f"put it in front of {self.projected!r}, or leave one of the two out.",
            )

    def _sees_components(self, step: Step) -> bool:
        """Whether projected columns do what components do: for distances, and for products of rows with their mean."""
        if self.stretched or (step.kind == "Normalizer" and not is_word(step.given()["norm"], "l2")):
            return False
        distances = step.kind == "RBFSampler" or (step.kind == "Nystroem" and is_word(step.given()["kernel"], "rbf"))
        return distances or (not self.shifted and step.kind in (*KERNELS, "Normalizer"))

    def _late_map(self, step: Step) -> Any:
        """A public map behind stages that look at the rows."""
        step.scaled = any(_about_normal(getattr(stage, "stage", stage)) for _, stage in self.steps)
        anywhere = role_of(step) == "map anywhere"
        if not anywhere or (self.units == "ranges" and step.kind not in KERNELS):
            what = "it follows a fitted stage, so the ranges of the columns are no longer public."
            fix = "put it first: missing values pass through it."
            fix = f"StandardScaler() in front of it, behind all others; or {fix}" if anywhere else fix
            raise UnsupportedOrder(what, stage=step.name, fix=fix)
        if not self._sees_components(step):
            self._check_components(step)
        elif step.kind in KERNELS:
            self.projected = None
        if self.units == "ranges":
            step.changed.append("of columns that public ranges have scaled")
        return ColumnMap((ColumnGroup(None, public_maps([step], None, self.facts)),))


def _about_normal(stage: Any) -> bool:
    """Whether columns behind it have a mean near 0 and a variance near 1."""
    return isinstance(stage, StandardScaler | RobustScaler) or getattr(stage, "output_distribution", "") == "normal"


def _group_of(block: ColumnGroup) -> str:
    """The set of columns that it belongs to; empty where all share their statistics."""
    return block.group if isinstance(block, NamedGroup) else ""


def _made_of_categories(stage: Any) -> bool:
    """Whether some columns that come out stand for categories or words."""
    last = [block.maps[-1] for block in getattr(stage, "blocks", ()) if block.maps]
    return any(isinstance(step, (OneHot, Binarized)) or getattr(step, "hot", step.takes_texts) for step in last)
