"""An existing pipeline of scikit-learn, step by step, as twins."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ppdp.core.checks import shown
from ppdp.core.declared import PRIVATE
from ppdp.exceptions import InvalidParameter, MissingBound, PpdpError, UnsupportedOrder
from ppdp.interop.sklearn.columns import hoisted, is_listed, split_columns
from ppdp.interop.sklearn.counterparts import is_public, public_map, role_of, twin_of
from ppdp.interop.sklearn.facts import Facts
from ppdp.interop.sklearn.steps import Conversion, Converted, Step, flattened
from ppdp.transformers import MinMaxScaler, NormClipper
from ppdp.transformers.columns.block import Block
from ppdp.transformers.columns.categories import OneHot
from ppdp.transformers.columns.column_map import ColumnMap
from ppdp.transformers.columns.maps import AnySize, Binarized, Binned, Filled, Normalised, PublicMap, Scaled
from ppdp.transformers.columns.unlisted import Unlisted
from ppdp.transformers.rowwise.ranges import has_private

CONTAINERS = ("ColumnTransformer", "FeatureUnion")


def convert(estimator: Any, facts: Facts, reserved: frozenset[str]) -> tuple[list[tuple[str, Any]], Conversion]:
    """Steps of a ppdp pipeline, none of which has a reserved name, and what became of what.

    Only classes and parameters are looked at, never what was fitted.
    """
    if isinstance(estimator, type) or not hasattr(type(estimator), "get_params"):
        raise InvalidParameter(
            f"a pipeline of scikit-learn is needed, got {shown(estimator)}.",
            fix="pass an instance of sklearn.pipeline.Pipeline.",
        )
    if facts.ranges is not None and facts.max_norm is not None:
        raise InvalidParameter(
            "ranges and max_norm are both given.", fix="give one bound at the entrance.", parameter="ranges"
        )
    made = _Made(facts, reserved)
    steps = hoisted(flattened("", estimator))
    ahead = _ahead(steps)
    front, rest = steps[:ahead], steps[ahead:]
    _check_each(front, rest, facts)
    if rest and rest[0].kind in CONTAINERS:
        rest = made.columns(front, rest[0], rest[1:])
    else:
        made.front(front, [Block(None, public_map(front, None, facts))], rest)
    for position, step in enumerate(rest):
        made.add(step, last=position == len(rest) - 1)
    first = made.steps[0][1] if made.steps else None
    unused = facts.check_used(first.blocks if isinstance(first, ColumnMap) else ())
    return made.steps, Conversion(tuple(made.report), unused)


def _ahead(steps: list[Step]) -> int:
    """How many steps stand at the entrance: public maps, and imputers that go into the ``FeatureUnion`` behind them."""
    public = next((i for i, step in enumerate(steps) if not is_public(step)), len(steps))
    union = next((i for i, step in enumerate(steps) if step.kind == "FeatureUnion"), 0)
    return union if all(is_public(step) or role_of(step) == "imputer" for step in steps[:union]) and union else public


def _check_each(front: list[Step], rest: list[Step], facts: Facts) -> None:
    """Refuse all steps at once that have no twin, in front and behind; a single refusal is raised as it is."""
    errors: list[PpdpError] = []
    # What a step notes, the conversion itself notes once.
    entrance, fresh = ([Step(step.name, step.estimator) for step in steps] for steps in (front, rest))
    blocks: list[Block] = []
    plain = not (fresh and fresh[0].kind in CONTAINERS)
    try:
        if plain:
            blocks = [Block(None, public_map(entrance, None, facts))]
        else:
            split = split_columns(fresh.pop(0), facts, entrance)
            blocks, errors = split.blocks, split.errors
    except PpdpError as error:
        errors.append(error)
    for step in fresh:
        try:
            if not is_public(step):
                twin_of(step, facts, last=step is fresh[-1])
        except PpdpError as error:
            errors.append(error)
    if not plain or all(isinstance(error, MissingBound) for error in errors):  # what is refused might bound all rows
        try:
            _check_bounds(blocks, fresh, facts, plain=plain)
        except MissingBound as error:
            errors.append(error)
    facts.refuse(errors)


def _only_bounds(maps: Sequence[PublicMap]) -> bool:
    """Whether these maps of all columns are one of ranges, or none."""
    return len(maps) < 2 and all(isinstance(m, Scaled) and m.target is not None for m in maps)


def _check_bounds(blocks: Sequence[Block], rest: list[Step], facts: Facts, *, plain: bool) -> None:
    """Whatever comes in, something must bound each set of columns."""
    if facts.ranges is not None:
        return
    whole = plain and bool(blocks) and _only_bounds(blocks[0].maps)
    scaler = whole and next((m.step for m in blocks[0].maps if isinstance(m, Scaled)), None)
    if not scaler and (facts.max_norm is not None or facts.bounded):
        return
    if whole and not scaler and rest and getattr(rest[0].estimator, "bounds_rows", False):
        return
    bare = [block for block in blocks if scaler or not (block.drop or any(m.bounds for m in block.maps))]
    if not bare:
        return
    listed = [block.columns for block in bare if isinstance(block.columns, (list, tuple))]
    asked = dict.fromkeys((name for names in listed for name in names), "(low, high)")
    asked |= {"column": "(low, high), ..."} if len(listed) < len(bare) else {}
    why = "no public bound of the rows is declared: ranges, or max_norm."
    why = "the public ranges that it scales by are not declared." if scaler else why
    facts.lack("ranges", asked, why, scaler or None)


def _is_released(block: Block, facts: Facts) -> bool:
    """Whether the ranges of its columns are to be released."""
    if block.drop or block.encoder is not None:
        return False
    name = block.named[0] if is_listed(block.columns) or isinstance(block.columns, str) else None
    if not facts.is_unranged(name):
        return False
    for one in block.maps:
        if not isinstance(one, Filled):
            raise UnsupportedOrder(
                f"it goes by the ranges of {block.described}, which are to be released.",
                stage=one.step,
                fix="declare them, or leave it out: columns are scaled by what is released.",
            )
    return True


def _public_ranges(facts: Facts, blocks: Sequence[Block]) -> Any:
    """The ranges that are public, of the columns that are taken if all of them are known."""
    if not isinstance(facts.ranges, Mapping):
        return {} if facts.is_unranged(None) else facts.ranges
    open_ = any(block.ordered or block.columns is None for block in blocks)
    taken = {name for block in blocks if not block.drop for name in block.named}
    known = facts.ranges.items()
    return {k: v for k, v in known if not facts.is_unranged(k) and (open_ or not isinstance(k, str) or k in taken)}


def _released_ranges(first: ColumnMap, step: Step) -> MinMaxScaler:
    """What scales the columns behind a public stage, some of them by released ranges."""
    names = first.named_columns()
    if names is None or any(block.columns is None for block in first.blocks):
        step.refuse(
            "ranges are to be released of columns whose names are not known here.",
            "a ColumnTransformer with named columns only.",
        )
    located = first.located_in(names, len(names), math.nan, None)
    ends = [end for _, _, facts in located for end in facts[-1].ranges.tolist()]
    known = [tuple(end) if max(map(abs, end)) > 1 else (-1.0, 1.0) for end in ends]
    private = [isinstance(m, AnySize) for block, _, facts in located for m in block.maps[:1] for _ in facts[-1].names]
    made = first.names_out(names, math.nan)
    return MinMaxScaler({n: PRIVATE if p else k for n, p, k in zip(made, private, known)})


@dataclass
class _Made:
    """What was converted so far."""

    facts: Facts
    reserved: frozenset[str]
    steps: list[tuple[str, Any]] = field(default_factory=list)
    report: list[Converted] = field(default_factory=list)
    units: str = "own"
    """Of the columns: "own" if somebody who only has the rows could say what they are, "ranges" if only ranges tell."""
    rescaled: bool = False
    """Whether columns stand in other units than in scikit-learn's pipeline, which a penalty feels."""
    uneven: Step | None = None
    """The scaler that was asked for some of the columns only."""
    projected: str | None = None
    """The step by which rows are projected: they keep their columns, where scikit-learn's get components."""
    stretched: bool = False
    """Whether projected columns are scaled."""
    shifted: bool = False
    """Whether rows have a mean that scikit-learn's pipeline has subtracted."""

    def put(self, name: str, twin: Any) -> str:
        """Add a step under a name that is free."""
        taken = self.reserved | {known for known, _ in self.steps}
        free = next(n for n in (name, *(f"{name}-{i}" for i in range(2, 99))) if n not in taken)
        self.steps.append((free, twin))
        return free

    def note(self, step: Step, became: str, twin: Any) -> None:
        """Remember what became of a step."""
        shown = f"{became} ({type(twin).__name__})"
        given = "" if step.estimator is None else type(step.estimator).__name__
        self.report.append(
            Converted(step.name, given, shown, tuple(dict.fromkeys(step.changed)), tuple(dict.fromkeys(step.ignored)))
        )

    def columns(self, front: list[Step], step: Step, behind: list[Step]) -> list[Step]:
        """A ``ColumnTransformer`` or ``FeatureUnion``; returns the steps behind its public part."""
        if front and step.kind == "ColumnTransformer":
            front[0].refuse("it stands in front of a ColumnTransformer.", "move it into the branches.")
        split = split_columns(step, self.facts, front)
        if split.scaler is not None and split.partly:
            if any(role_of(s) != "model" for s in behind):
                split.scaler.refuse(
                    f"it scales some of the columns, and what stands behind the {step.kind} would see others.",
                    f"put the scaler behind the {step.kind}, or MinMaxScaler in its place.",
                )
            split.scaler.changed.append(
                "all columns are scaled but those of 0 and 1 that stand for categories: for a linear model without a"
                " penalty that is the same"
            )
            self.uneven = split.scaler
        if split.imputer is not None and split.gappy:
            split.imputer.changed.append("missing values of all columns are filled, also of those that had no imputer")
        tail = [s for s in (split.imputer, split.scaler) if s is not None]
        rest = [*tail, *behind]
        self.front([s for s in split.inside if is_public(s)], split.blocks, rest, step)
        return rest

    def front(self, public: list[Step], blocks: list[Block], rest: list[Step], whole: Step | None = None) -> None:
        """The public stage at the entrance, with the bound of all rows."""
        facts, maps = self.facts, [m for block in blocks for m in block.maps]
        notes: list[str] = []
        if facts.ranges is not None and not all(block.drop or block.encoder is not None for block in blocks):
            notes.append(f"numbers are clipped to their {'released' if has_private(facts.ranges) else 'public'} ranges")
        elif facts.max_norm is not None:
            notes.append("rows that are longer than max_norm are shortened to it")
        if whole is None and _only_bounds(maps):
            twin: Any = self._plain_bound(maps)
            if not maps and facts.ranges is not None:
                self.rescaled = True
                notes.append("they are scaled to [-1, 1]")
            name = public[0].name if public else "range" if facts.ranges is not None else "clip"
        else:
            gaps = any(block.expects for block in blocks) and not self._filled_later(rest)
            finished = tuple(self._finished(block, gaps, notes) for block in blocks)
            twin = ColumnMap(finished, _public_ranges(facts, finished), facts.max_norm)
            name = whole.name if whole is not None else public[0].name if len(public) == 1 else "columns"
        if twin is None:
            return
        self.units = "ranges" if facts.scales else "own"
        became = self.put(name, twin)
        if whole is not None or not public:
            step = whole or Step("", None)
            step.changed += notes or ["bounds every row"]
            self.note(step, became, twin)
        else:
            public[0].changed += notes
        for step in public:
            self.note(step, became, twin)
        if isinstance(twin, ColumnMap) and any(isinstance(m, AnySize) for block in twin.blocks for m in block.maps):
            released = _released_ranges(twin, whole or public[0])
            step = Step(
                "", None, ["ranges that nobody declared are released with noise, and columns are scaled by them"]
            )
            self.note(step, self.put("ranges", released), released)
            self.rescaled = True

    def _plain_bound(self, maps: list[PublicMap]) -> Any:
        """A stage that only bounds; None if rows have a bound already."""
        facts = self.facts
        if facts.ranges is not None:
            target = next((m.target for m in maps if isinstance(m, Scaled)), (-1.0, 1.0))
            return MinMaxScaler(ranges=facts.ranges, feature_range=target or (-1.0, 1.0))
        return None if facts.max_norm is None else NormClipper(facts.max_norm)

    def _filled_later(self, rest: list[Step]) -> bool:
        """Whether a step behind the entrance fills gaps."""
        filling = any(role_of(step) == "imputer" or getattr(step.estimator, "fills_gaps", False) for step in rest)
        return filling and self.facts.domain.max_missing != 0

    def _finished(self, block: Block, gaps: bool, notes: list[str]) -> Block:
        """The block with what bounds it, and without gaps that nothing else fills; what was added is noted."""
        added: list[PublicMap] = []
        sized = any(
            isinstance(m, (Scaled, OneHot, Normalised, Binarized)) or (isinstance(m, (Binned, Unlisted)) and m.hot)
            for m in block.maps
        )
        if _is_released(block, self.facts):
            return replace(block, maps=(AnySize(), *block.maps))
        if self.facts.scales and not sized and not block.drop:
            added.append(Scaled())
            self.rescaled = True
            notes.append(f"{block.described}: what comes out is scaled from its public range to [-1, 1]")
        if gaps and not block.fills:
            added.append(Filled(None))
            notes.append(
                f"{block.described}: a missing value becomes the middle of the public range: nothing else fills it"
            )
        return replace(block, maps=(*block.maps, *added))

    def add(self, step: Step, *, last: bool) -> None:
        """The twin of one step."""
        twin = self._late_map(step) if is_public(step) else twin_of(step, self.facts, last=last)
        if role_of(step) == "components":
            self._components(step, twin)
        if role_of(step) == "scaler":
            self._scaled(step)
        elif role_of(step) in ("components", "projection") and self.units == "ranges":
            step.changed.append("of columns that public ranges have scaled")
        if role_of(step) == "model":
            self._learned(step, twin)
        self.note(step, self.put(step.name, twin), twin)

    def _scaled(self, step: Step) -> None:
        """What a scaler of all columns makes of units and axes."""
        self.units, self.rescaled = "own", step is self.uneven
        if step is not self.uneven and any(_made_of_categories(stage) for _, stage in self.steps):
            step.changed.append("columns of 0 and 1 that stand for categories stay as they are")
            self.rescaled = True
        self.shifted = self.shifted and not step.given().get("with_mean", True)
        if self.projected is not None:
            self.stretched = self.rescaled = True
            step.changed.append(
                "it scales the projected columns, not the components: for a linear model without a penalty the same"
            )

    def _components(self, step: Step, twin: Any) -> None:
        """Projected columns in place of components."""
        if self.stretched:
            raise UnsupportedOrder(
                f"it would find components of scaled columns, and scikit-learn scales those of {self.projected!r}.",
                stage=step.name,
                fix="put the scaler in front of both, or leave one of the three out.",
            )
        self.projected, self.shifted = step.name, bool(twin.center)
        step.changed.append(
            "rows keep their columns: they are projected on the components, which for linear models is the same"
        )

    def _learned(self, step: Step, twin: Any) -> None:
        """What a model sees that scikit-learn's does not."""
        if self.rescaled and getattr(twin, "alpha", 0.0) not in (0.0, "auto"):
            step.changed.append("columns are scaled otherwise than for scikit-learn's, so its penalty weighs otherwise")
        if self.shifted and not twin.fit_intercept:
            step.changed.append("it learns no intercept from rows that are not centred, as scikit-learn's PCA has them")

    def _late_map(self, step: Step) -> Any:
        """A public map behind stages that look at the rows."""
        if role_of(step) != "map anywhere" or self.units == "ranges":
            raise UnsupportedOrder(
                "it stands behind a stage that looks at the rows, and the units of the columns are not public here.",
                stage=step.name,
                fix="put it first: missing values pass through it.",
            )
        if self.projected is not None:
            raise UnsupportedOrder(
                f"it would act on projected columns, and scikit-learn's acts on the components of {self.projected!r}: "
                "only for what is linear that is the same.",
                stage=step.name,
                fix=f"put it in front of {self.projected!r}, or leave one of the two out.",
            )
        return ColumnMap((Block(None, public_map([step], None, self.facts)),))


def _made_of_categories(stage: Any) -> bool:
    """Whether some columns that come out are of 0 and 1 and stand for categories."""
    last = [block.maps[-1] for block in getattr(stage, "blocks", ()) if block.maps]
    return any(isinstance(step, (OneHot, Binarized)) or getattr(step, "hot", False) for step in last)
