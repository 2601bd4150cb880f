"""What stages of public maps have in common, each map for some of the columns."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import clone

from ppdp.bounds.release import CLIPPED, TINY
from ppdp.core.checks import columns_of, length
from ppdp.core.declared import Value, plain, ranges_by_column
from ppdp.core.distance import Distance
from ppdp.core.domain import ColumnBounds, Domain
from ppdp.core.names import slips
from ppdp.core.rounding import inflate
from ppdp.data.altered import MOST_TINY, Property
from ppdp.data.categories import among
from ppdp.data.cells import objects
from ppdp.data.frames import named, opened
from ppdp.data.parallel import blocks
from ppdp.data.rows import Array, Rows
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import DomainMismatch, InvalidParameter, NonNumericData
from ppdp.transformers.base import RowWiseTransformer, Statistics, hold
from ppdp.transformers.columns.categories import FOUND, FillMode, ReleasedCategories
from ppdp.transformers.columns.cell_parsers import TextParser, WordsParser
from ppdp.transformers.columns.column_group import ColumnGroup, LocatedBlock, NamedGroup, Released, readings, request_of
from ppdp.transformers.columns.made_up_rows import made_up
from ppdp.transformers.columns.maps import ColumnFacts, FunctionMap, PublicMap
from ppdp.transformers.fit_mode import FitMode
from ppdp.transformers.rowwise.probe import ENTRIES, check_row_by_row, clipped_to_ball
from ppdp.transformers.rowwise.ranges import resolve_ranges

COMMONEST = "the category that most rows hold, with noise"
_CONSTANTS = {"value": "what fills gaps", "threshold": "threshold", "n_bins": "number of bins"}


class ColumnStage(RowWiseTransformer):
    """Base of stages that are public maps of blocks of columns, of which some may hold no numbers."""

    max_norm: float | None = None
    bounds_rows = True  # where no bound follows it is refused

    def blocks_for(self, names: Sequence[str] | None, count: int) -> Sequence[ColumnGroup]:
        """The blocks of a table of so many columns, of these names if they have some."""
        raise NotImplementedError

    @property
    def _start_ranges(self) -> Any:
        """Public ranges of the columns that come in, in the form in which they are given."""
        return None

    @property
    def _fitted_reach(self) -> float:
        return float(getattr(self, "reach_", math.nan))

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        parts = self._parts(domain.feature_names, domain.d, _reach(domain))
        norm, entry, width = self._bounds(parts)
        gaps = domain.missing_rows > 0
        if not gaps:
            _check_filled(parts)
        check_row_by_row(lambda X: _mapped_by(parts, X, norm, {}), domain.d, width, "ColumnMap", gaps=gaps)
        fills = gaps and all(part.block.fills for part in parts)
        facts: dict[str, Any] = {"n_features": width, "row_norm": norm, "entry_bound": entry}
        facts["feature_names"] = _names(parts) if domain.feature_names is not None else None
        if fills:
            facts["fills_gaps"] = True
        request = request_of(parts, gaps=gaps)
        if request is None:
            return (_marked(FitMode.by("row-wise.row-map", domain, distance, lipschitz=None, **facts), parts),)
        formula, asked = f"row-wise.released-{request.statistic}", dict(request.parameters)
        return (_marked(FitMode.by(formula, domain, distance, request=request, **asked, **facts), parts),)

    def _bounds(self, parts: Sequence[LocatedBlock]) -> tuple[float, float, int]:
        """Norm of rows and bound of entries that come out, and their number of columns."""
        ranges = np.concatenate([part.end.ranges for part in parts]) if parts else np.empty((0, 2))
        if len(ranges) == 0:
            raise InvalidParameter("no column is left.", stage="ColumnMap", fix="give some block columns that exist.")
        square = sum(part.end.square for part in parts)
        if self.max_norm is None:
            for part in parts:
                part.end.bounded("ColumnMap")
        else:
            declared = length("max_norm", self.max_norm, self) ** 2
            square = declared if math.isnan(square) else min(declared, square)
        entry = float(np.nan_to_num(np.abs(ranges), nan=math.inf).max()) or 1.0
        norm = min(inflate(math.sqrt(square)) or 1.0, entry * math.sqrt(len(ranges)))
        return norm, min(entry, norm), len(ranges)

    def _parts(
        self, names: Sequence[str] | None, count: int, reach: float, released: Released | None = None
    ) -> list[LocatedBlock]:
        """Blocks that have columns, with the categories that were released by the position of their column."""
        found, start = self._found(names, count, released), self._start(names, count, reach)
        labels = list(names) if names is not None else [f"x{i}" for i in range(count)]
        parts = []
        for block, positions in found:
            # Ranges are for numbers: labels come as codes.
            ranges = start[positions] if block.encoder is None else np.full((len(positions), 2), np.nan)
            facts = [ColumnFacts.within([labels[i] for i in positions], ranges)]
            for step in block.maps:
                facts.append(facts[-1].after(step))
            parts.append(LocatedBlock(block, positions, tuple(facts)))
        return parts

    def located(self) -> list[tuple[ColumnGroup, list[int], tuple[ColumnFacts, ...]]]:
        """Once fitted: every block that has columns, where they are, and what is known around each of its maps."""
        return self.located_in(self.names_, self.n_features_in_, self._fitted_reach, self.found_)

    def located_in(
        self, names: Sequence[str] | None, count: int, reach: float, released: Released | None
    ) -> list[tuple[ColumnGroup, list[int], tuple[ColumnFacts, ...]]]:
        """The same for columns of these names, with the categories that were released for them."""
        return [(part.block, part.positions, part.facts) for part in self._parts(names, count, reach, released)]

    def _asked(self, blocks: Sequence[ColumnGroup]) -> list[str]:
        """Columns that ranges or blocks name."""
        ranges = self._start_ranges
        ranged = [name for name in ranges if isinstance(name, str)] if isinstance(ranges, Mapping) else []
        return list(dict.fromkeys([*ranged, *(name for block in blocks for name in block.named)]))

    def _check_named(self, blocks: Sequence[ColumnGroup], names: Sequence[str] | None) -> None:
        """Refuse a table that lacks columns that are taken by name."""
        asked, known = self._asked(blocks), set(names or ())
        missing = [name for name in asked if name not in known]
        if not missing:
            return
        if names is None:
            told = f"columns are taken by name ({', '.join(map(repr, asked))}), and there are no names of columns."
        else:
            told = f"X lacks the column(s) {', '.join(map(repr, missing))}, taken by name."
        fix = f"pass a frame with {', '.join(map(repr, asked))}; to plan, Domain(feature_names=(...)) with all columns."
        raise DomainMismatch(told, fix=slips(missing, sorted(known - set(asked))) or fix)

    def _found(
        self, names: Sequence[str] | None, count: int, released: Released | None = None
    ) -> list[tuple[ColumnGroup, list[int]]]:
        """Blocks that have columns, with their positions and the categories that were released for them."""
        blocks = self.blocks_for(names, count)
        self._check_named(blocks, names)
        taken = {i for block in blocks if not block.rest for i in block.positions(names, count)}
        rest = [i for i in range(count) if i not in taken]
        found = [(block, rest if block.rest else block.positions(names, count)) for block in blocks if not block.drop]
        return [(block.knowing(positions, released or {}), positions) for block, positions in found if positions]

    def _start(self, names: Sequence[str] | None, count: int, reach: float) -> Array:
        """Ranges of the columns that come in, NaN where there are none."""
        ranges = self._start_ranges
        if isinstance(ranges, Mapping):
            table = np.full((count, 2), np.nan)
            if ranges:
                positions = columns_of("ranges", list(ranges), names, count, self)
                table[positions] = resolve_ranges(ranges, len(positions), tuple(map(str, ranges)), "ColumnMap")
            return table
        if ranges is not None:
            return resolve_ranges(ranges, count, None, "ColumnMap").copy()
        return np.tile([-reach, reach], (count, 1))

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        return self.read({}, way, domain)

    def read(self, values: Any, way: FitMode, domain: Domain) -> Statistics:
        known = {"names": domain.feature_names, "reach": _reach(domain), "norm": way.parameters["row_norm"]}
        return {name: value for name, value in {**known, "found": values}.items() if name in self.statistic_names}

    def apply(self, rows: Rows, statistics: Statistics) -> Rows:
        found = {i: one for i, one in statistics.get("found", {}).items() if isinstance(one, tuple)}
        rows = among(rows, found) if found else rows
        return super().apply(rows, statistics if rows.texts is None else {**statistics, "texts": rows.texts})

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        parts = self._parts(
            statistics["names"], X.shape[1], statistics.get("reach", math.nan), statistics.get("found", {})
        )
        return _mapped_by(parts, X, statistics["norm"], statistics.get("texts") or {})

    def alters(self, domain: Domain) -> tuple[Property, ...]:
        found: list[Property] = []
        for kind, part in self._altering(domain):
            names = part.facts[0].names
            near = part.beside_zero() if kind == CLIPPED and domain.d <= MOST_TINY else []
            found += [*(Property(kind, name) for name in names), *(Property(TINY, names[i]) for i in near)]
        return tuple(found)

    def altered(self, X: Any, domain: Domain) -> Any:
        found = []
        for kind, part in self._altering(domain):
            values = X[:, part.positions]
            found += [part.altered(values)] + [part.tiny(values)] * (kind == CLIPPED and domain.d <= MOST_TINY)
        return np.concatenate(found, axis=1)

    def _altering(self, domain: Domain) -> list[tuple[str, LocatedBlock]]:
        parts = self._parts(domain.feature_names, domain.d, _reach(domain))
        found = [(part.alters(ranged=self._start_ranges is not None), part) for part in parts]
        return [(kind, part) for kind, part in found if kind is not None]

    def simulated(self, n: int, domain: Domain, rng: np.random.Generator) -> Any:
        names, reach = domain.feature_names, _reach(domain)
        return made_up(self._parts(names, domain.d, reach), self._start(names, domain.d, reach), n, rng)

    def units(self, columns: Columns) -> Columns:
        parts = self._parts(self.names_, len(columns.names), self._fitted_reach, self.found_)
        found = Columns.beside([part.units(columns) for part in parts])
        return found if self.max_norm is None else found.noted(f"rows clipped to norm {self.norm_:.6g}")

    def public_units(self, columns: Columns, way: FitMode, domain: Domain) -> Columns | None:
        """As behind public modes: that categories are released changes the names of theirs only."""
        made: Columns = hold(clone(self), self.read({}, way, domain), domain).units(columns)
        return made

    def rows_of(self, X: Any) -> Array:
        table, texts = self.read_cells(X)
        held = self.held() if texts is None else {**self.held(), "texts": texts}
        return self._mapped(self._checked_codes(table, reset=False), held)

    def _checked(self, X: Any, *, reset: bool) -> Array:
        return self._checked_codes(self.coded(X), reset=reset)

    improper: tuple[str, str] | None = None  # what to say of cells that are not what they should be

    def _checked_codes(self, table: Any, *, reset: bool) -> Array:
        """A table of which the cells were read, as an array."""
        values = super()._checked(table, reset=reset)
        if self.improper is not None and np.isinf(values).any():
            what, fix = self.improper
            raise NonNumericData(f"a cell is {what}.", stage=type(self).__name__, fix=fix)
        return values

    @property
    def takes_texts(self) -> bool:
        """Whether it maps whole texts, of which rows then hold codes."""
        return False

    def coded(self, X: Any) -> Any:
        """A table with numbers for labels and zeros in columns that are left out; row by row, by public rules."""
        return self._coded_by(getattr(self, "found_", {}), X)

    def read_cells(self, X: Any) -> tuple[Any, dict[int, Any] | None]:
        """The same, with the texts of columns that are mapped whole, by position; these are private."""
        texts: dict[int, Any] = {}
        table = self._coded_by(getattr(self, "found_", {}), X, texts, WordsParser)
        return table, texts or None

    def learned(self, X: Any) -> tuple[Any, dict[int, Any] | None]:
        """The same for a fit, also with the texts of columns whose categories are to be released."""
        texts: dict[int, Any] = {}
        table = self._coded_by({}, X, texts, WordsParser | TextParser)
        return table, texts or None

    def _coded_by(self, released: Released, X: Any, learned: dict[int, Any] | None = None, learn: Any = ()) -> Any:
        """The table with codes, those of released categories; texts of readers that ``learn`` go into a mapping."""
        X = opened(X)
        if getattr(X, "ndim", 0) != 2 or issparse(X) or getattr(getattr(X, "dtype", None), "kind", "") == "c":
            return X  # it has no cells: the check of its form says what is wrong
        framed = hasattr(X, "iloc")
        found = self._found(named(X), X.shape[1], released)
        codes_of, used = readings(found), {i for _, positions in found for i in positions}
        changed = [i for i in range(X.shape[1]) if i not in used or i in codes_of]
        if not changed:
            return X
        columns = list(X.columns) if framed else range(X.shape[1])
        made, X = X, X.copy(deep=False) if framed else objects(X)
        for i in changed:
            column = made.iloc[:, i] if framed else made[:, i]
            reading = codes_of.get(i)
            if learned is not None and isinstance(reading, learn):
                codes, learned[i] = reading.learned(column, columns[i])
            else:
                codes = reading.codes(column, columns[i]) if reading is not None else np.zeros(len(X))
            if framed:
                X.isetitem(i, codes)
            else:
                X[:, i] = codes
        return X

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the output columns."""
        return self.names_out(super().get_feature_names_out(input_features), self._fitted_reach, self.found_)

    def names_out(self, given: Sequence[str], reach: float, released: Released | None = None) -> NDArray[np.object_]:
        """Names of the columns that come out of columns of these names."""
        names = tuple(map(str, given))
        made = _names(self._parts(names, len(given), reach, released))
        if made is None:
            width = self._bounds(self._parts(names, len(given), reach))[2]
            made = [f"columnmap{i}" for i in range(width)]
        return np.asarray(made, dtype=object)

    def declared(self, domain: Domain) -> tuple[Value, ...]:
        """Constants of the maps that the user declares, with the columns they are for."""
        values: list[Value] = []
        for part in self._parts(domain.feature_names, domain.d, _reach(domain)):
            for step, given in zip(part.block.maps, part.facts):
                if isinstance(step, FunctionMap) and step.out_ranges is not None:
                    values += ranges_by_column(step.out_ranges, None, f"range of what {step.step!r} returns in")
                values += [(words, value, "declared") for words, value in step.told(given.names)]
                if isinstance(step, FillMode):
                    values += [(f"what fills gaps of {name}", COMMONEST, "released") for name in given.names]
                if isinstance(step, ReleasedCategories):
                    values += [(f"categories of {name}", FOUND, "released") for name in given.names]
                for name, words in _CONSTANTS.items():
                    if getattr(step, name, None) is not None:
                        values.append((f"{words} of {', '.join(given.names)}", plain(getattr(step, name)), "declared"))
        return tuple(values)


class Encoder(ColumnStage):
    """One public map of all columns, which may hold no numbers: a subclass gives :meth:`column_maps`.

    Attributes
    ----------
    names_ : sequence of str or None
        Names of the columns that came in.
    norm_ : float
        Public norm of the rows that come out.
    found_ : dict
        What was released of columns, by position: their categories, or what fills their gaps.
    """

    statistic_names = ("names", "norm", "found")

    def column_maps(self, columns: Sequence[Any]) -> tuple[PublicMap, ...]:
        """The public maps that it is for columns of these names, or positions."""
        raise NotImplementedError

    def blocks_for(self, names: Sequence[str] | None, count: int) -> Sequence[ColumnGroup]:
        by_position = names is None or getattr(self, "names_", names) is None
        return (ColumnGroup(None, self.column_maps(list(range(count)) if by_position else list(names or ()))),)

    @property
    def reads_cells(self) -> bool:
        """Whether some columns hold no numbers, so that it must come first."""
        return True


def _marked(way: FitMode, parts: Sequence[LocatedBlock]) -> FitMode:
    """The way, whose domain tells which columns stand for categories, and which are of which named group."""
    hot = np.concatenate([np.full(len(part.end.names), part.end.indicators) for part in parts])
    domain = way.domain.with_indicators(tuple(np.flatnonzero(hot).tolist()))
    named = [_made(part, part.block.group) for part in parts if isinstance(part.block, NamedGroup)]
    return replace(way, domain=domain.laid_out(named) if named else domain)


def _made(part: LocatedBlock, group: str) -> ColumnBounds:
    """What a block has made for its group."""
    norm = inflate(math.sqrt(part.end.square))
    return ColumnBounds(group, len(part.end.names), norm if 0 < norm < math.inf else None, None, part.block.fills)


def _reach(domain: Domain) -> float:
    """What every entry is known to be within, where no ranges are given."""
    return domain.entry_bound or domain.row_norm or math.nan


def _names(parts: Sequence[LocatedBlock]) -> list[str] | None:
    made = [f"{part.block.prefix}{name}" for part in parts for name in part.end.names]
    return made if len(set(made)) == len(made) else None


def _check_filled(parts: Sequence[LocatedBlock]) -> None:
    """Where no gap may come in, filling those of some columns only is a mistake."""
    bare = [name for part in parts if not part.block.fills for name in part.facts[0].names]
    if bare and any(part.block.expects for part in parts):
        what = f"no value may be missing: those of {', '.join(map(repr, bare))} are not filled, others are."
        raise InvalidParameter(what, stage="ColumnMap", fix="fill these columns as well, or put an imputer behind it.")


@np.errstate(all="ignore")  # a warning would be an answer about the rows
def _mapped_by(parts: Sequence[LocatedBlock], X: Array, norm: float, texts: Mapping[int, Any]) -> Array:
    def mapped(X: Array) -> Array:
        out = np.concatenate([part.apply(X, texts) for part in parts], axis=1)
        return clipped_to_ball(X, out, norm, fills=all(part.block.fills for part in parts))

    width = sum(len(part.end.names) for part in parts)
    if len(X) * width <= ENTRIES or not any(part.block.takes_texts for part in parts):
        return mapped(X)
    out = np.empty((len(X), width))
    for some in blocks(len(X), width):  # a text has many columns, and each map of a block copies it
        out[some] = mapped(X[some])
    return out
