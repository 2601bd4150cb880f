"""Steps as plain JSON, and back: classes by name, public parameters as data. Nothing here runs what a file says.

A parameter that is no plain data (a function, somebody else's fitted transformer) is only named; whoever reads the
description must have it and hand it in. Of functions in public maps NumPy's few whose ranges are known are data, by
name; any other is handed in with its keywords, so that nothing in a file reaches it but rows.
"""

from __future__ import annotations

import base64
import binascii
import inspect
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

import ppdp.transformers.columns.categories as categories
import ppdp.transformers.columns.maps as maps
from ppdp import mechanisms, transformers
from ppdp.certificate.canonical import strict_json
from ppdp.certificate.record import MechanismRecord, Record
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.core.keywords import renamed_parameters
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.rows import Array, Rows
from ppdp.exceptions import ExportError
from ppdp.mechanisms.base import Mechanism, QuerySpec, twin_of
from ppdp.pipeline.steps import assumption_stages
from ppdp.transformers.base import Stage, hold
from ppdp.transformers.columns.cell_parsers import is_date
from ppdp.transformers.columns.column_group import ColumnGroup, NamedGroup
from ppdp.transformers.columns.column_map import ColumnMap
from ppdp.transformers.columns.column_subset import ColumnSplit, ColumnSubset
from ppdp.transformers.columns.date_encoder import Dated
from ppdp.transformers.columns.feature_hasher import HashedTerms
from ppdp.transformers.columns.features import (
    FourierFeatures,
    KnottedSplines,
    Landmarks,
    PeriodicSplines,
    PolynomialTerms,
    Splines,
)
from ppdp.transformers.columns.hashing_vectorizer import HashedWords
from ppdp.transformers.fit_mode import FitMode
from ppdp.transformers.rowwise.ranges import RISING

Steps = list[tuple[str, Any]]

OURS = {name: getattr(module, name) for module in (transformers, mechanisms) for name in module.__all__}
OURS |= {"ColumnMap": ColumnMap, "ColumnSplit": ColumnSplit, "ColumnSubset": ColumnSubset, **assumption_stages()}
PARTS: dict[str, type[Any]] = {
    "AnySize": maps.Unclipped,
    "Binarized": maps.Binarized,
    "Binned": maps.Binned,
    "Block": ColumnGroup,
    "Dated": Dated,
    "Encoded": categories.Encoded,
    "Filled": maps.FillConstant,
    "Hashed": categories.HashedCategories,
    "Fourier": FourierFeatures,
    "Labelled": categories.OrdinalCodes,
    "Landmarks": Landmarks,
    "Mapped": maps.FunctionMap,
    "NamedBlock": NamedGroup,
    "Missing": maps.GapIndicators,
    "Mode": categories.FillMode,
    "Normalised": maps.Normalised,
    "OneHot": categories.OneHot,
    "Powers": PolynomialTerms,
    "Scaled": maps.RangeScale,
    "KnottedSplines": KnottedSplines,
    "PeriodicSplines": PeriodicSplines,
    "Splines": Splines,
    "Terms": HashedTerms,
    "Unlisted": categories.ReleasedCategories,
    "Within": maps.ClipToRange,
    "Words": HashedWords,
}
"""Parts of a ``ColumnMap`` by their names in exported models, which are those that they had first."""
PART_NAMES = {kind: name for name, kind in PARTS.items()}
KNOWN = {function.__name__: function for function in RISING}
PLAIN_ARRAYS = re.compile(r"[<|][bfiu][1248]|<U[1-9]\d{0,5}")
NUMBERS = {"inf": math.inf, "-inf": -math.inf, "nan": math.nan}


def describe(steps: Steps, columns: Sequence[str] | None) -> str:
    """Steps and their public parameters as canonical JSON, with the names of the columns of raw rows, if any."""
    described = [{"name": name, **_described(step)} for name, step in steps]
    document = {"columns": None if columns is None else list(columns), "steps": described}
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _described(step: Any) -> dict[str, Any]:
    """A step with its public parameters."""
    return {
        "class": type(step).__name__,
        "own": OURS.get(type(step).__name__) is not type(step),
        "parameters": {_issued(step, key): _plain(value) for key, value in step.get_params(deep=False).items()},
    }


def _issued(step: Any, parameter: str) -> str:
    """The name of a parameter in exported models, which keep the one that it had first."""
    return next((old for old, new in renamed_parameters(step.__class__).items() if new == parameter), parameter)


def restore(
    text: str, functions: Mapping[str, Any], stages: Sequence[type[Any]]
) -> tuple[Steps, tuple[str, ...] | None]:
    """Steps and columns from what :func:`describe` wrote, with ``functions`` it only names, and foreign ``stages``."""
    classes = {kind.__name__: kind for kind in stages}
    try:
        document = strict_json(text)
        columns = document["columns"]
        steps = [(str(step["name"]), _step(step, functions, classes)) for step in document["steps"]]
        return steps, None if columns is None else tuple(map(str, columns))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError, MemoryError) as error:
        if isinstance(error, ExportError):
            raise
    raise ExportError("the description of the steps is malformed.")


def _step(record: Mapping[str, Any], functions: Mapping[str, Any], own: Mapping[str, type[Any]]) -> Any:
    """One step; its class is one of ours or one that the caller named."""
    name, kind = record["name"], (own if record["own"] else OURS).get(record["class"])
    if not (isinstance(kind, type) and issubclass(kind, (Stage, Mechanism))):
        fix = f"import it and pass stages=[{record['class']}]; its issuer has it."
        raise ExportError(f"the class {record['class']!r} is not ppdp's.", stage=str(name), fix=fix)
    current = renamed_parameters(kind)
    given = {current.get(key, key): value for key, value in record["parameters"].items()}
    if set(given) != set(inspect.signature(kind).parameters):
        what = f"{record['class']} has other parameters here."
        raise ExportError(what, stage=str(name), fix="use the ppdp version that wrote it.")
    return kind(**{key: _value(value, _Place(name, key, kind, functions, own)) for key, value in given.items()})


def _plain(value: Any) -> Any:
    """A parameter as JSON; a kind that JSON lacks is an object with one key, its name."""
    if isinstance(value, np.generic) and value.dtype.kind in "biufU":
        value = value.item()
    if value is None or type(value) in (bool, int, str):
        return value
    if is_date(value):
        return str(value)  # whatever takes dates takes them as ISO 8601
    if type(value) is float:
        return value if math.isfinite(value) else {"number": repr(value)}
    if type(value) is list:
        return [_plain(item) for item in value]
    if type(value) is tuple:
        return {"tuple": [_plain(item) for item in value]}
    if type(value) is dict:
        return {"mapping": [[_plain(key), _plain(item)] for key, item in value.items()]}
    if type(value) is np.ndarray and PLAIN_ARRAYS.fullmatch(_little(value).dtype.str):
        array = _little(value)
        data = base64.b64encode(array.tobytes()).decode()
        return {"array": {"dtype": array.dtype.str, "shape": list(array.shape), "data": data}}
    if type(value) is slice:
        return {"slice": [_plain(end) for end in (value.start, value.stop, value.step)]}
    if type(value) in PART_NAMES:
        return {"part": {"class": PART_NAMES[type(value)], "fields": _part_fields(value)}}
    if isinstance(value, Stage):
        return {"stage": _described(value)}
    return _named(value)


def _part_fields(part: Any) -> dict[str, Any]:
    """What a part of a ``ColumnMap`` was made with."""
    given = {one.name: getattr(part, one.name) for one in fields(part)}
    if not isinstance(part, maps.FunctionMap):
        return {name: _plain(value) for name, value in given.items()}
    keywords, name = given.pop("keywords"), getattr(part.function, "__name__", "")
    if not keywords and KNOWN.get(name) is part.function:
        function: Any = {"known": name}
    else:
        ((called, words),) = _named(part.function).items()
        function = {called: f"{words} with {', '.join(sorted(keywords))}" if keywords else words}
    return {**{key: _plain(value) for key, value in given.items()}, "function": function}


def _named(value: Any) -> dict[str, str]:
    """What is no plain data, by name only."""
    called = "function" if callable(value) and not isinstance(value, type) else "object"
    kind = value if hasattr(value, "__qualname__") and hasattr(value, "__module__") else type(value)
    return {called: f"{kind.__module__}.{kind.__qualname__}"}


def _little(array: Any) -> Any:
    return np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a parameter stands, and what may be handed in for it."""

    step: str
    parameter: str
    kind: type[Any]
    functions: Mapping[str, Any]
    own: Mapping[str, type[Any]]

    def given(self, what: str, hint: str) -> Any:
        """What was handed in. What a mechanism asked of private rows is needed no more."""
        for key in (f"{self.step}__{self.parameter}", self.step):
            if key in self.functions:
                return self.functions[key]
        if what == "function" and issubclass(self.kind, Mechanism):
            return None
        raise ExportError(
            f"{self.parameter} is no plain data, so the export only names it: {hint}.",
            stage=self.step,
            fix=f"pass functions={{{self.step!r}: ...}}, the one that was used; it is tried on made-up rows.",
        )


def _value(encoded: Any, place: _Place) -> Any:
    """Inverse of :func:`_plain`."""
    if isinstance(encoded, list):
        return [_value(item, place) for item in encoded]
    if not isinstance(encoded, dict):
        return encoded
    ((kind, content),) = encoded.items()
    if kind == "tuple":
        return tuple(_value(item, place) for item in content)
    if kind == "mapping":
        return {_value(key, place): _value(item, place) for key, item in content}
    if kind == "number":
        return NUMBERS[content]
    if kind == "array":
        return _array(**content)
    if kind == "slice":
        return slice(*(_value(end, place) for end in content))
    if kind == "known":
        return KNOWN[content]
    if kind == "stage":
        return _step({"name": place.step, **content}, place.functions, place.own)
    if kind == "part":
        return _part(content["class"], content["fields"], place)
    if kind in ("function", "object"):
        return place.given(kind, str(content))
    raise ValueError(kind)


def _part(name: str, given: Mapping[str, Any], place: _Place) -> Any:
    """A part of a ``ColumnMap``; a function is asked for by the name of the step that it was."""
    kind = PARTS[name]
    if set(given) != {one.name for one in fields(kind) if kind is not maps.FunctionMap or one.name != "keywords"}:
        raise ExportError(f"{name} has other fields here.", stage=place.step, fix="use the ppdp version that wrote it.")
    step = str(given.get("step") or place.step)
    return kind(**{key: _value(item, replace(place, step=step, parameter=key)) for key, item in given.items()})


def _array(dtype: str, shape: list[int], data: str) -> Any:
    """An array of plain numbers or words, of exactly as many as there are bytes for."""
    if not PLAIN_ARRAYS.fullmatch(dtype):
        raise ValueError(dtype)
    try:
        content = base64.b64decode(data, validate=True)
    except binascii.Error:
        raise ValueError("base64") from None
    return np.frombuffer(content, dtype=dtype).reshape(shape).copy()


def released_twins(
    record: Record, steps: Sequence[tuple[str, Any]], arrays: Mapping[str, Array]
) -> list[tuple[str, Any]]:
    """Copies of the steps, as configured, that hold public and released values only."""
    domain, moments = Domain.from_dict(record.entrance.domain), None
    twins: list[tuple[str, Any]] = []
    names = None  # those that released categories give, in the place of the plan's
    for position, (step, (name, stage)) in enumerate(zip(record.steps, steps)):
        after, distance = Domain.from_dict(step.domain), Distance.from_dict(step.distance)
        way = FitMode(step.formula, step.parameters, after, distance)
        for release in record.releases:
            if release.at == position:
                moments = STATISTICS[release.statistic].read(arrays[f"{name}.{release.statistic}"], domain, release)
        served = any(name in release.serves for release in record.releases)
        twin = clone(stage)
        statistics = _statistics(twin, way, domain, moments if served else None)
        if statistics or not way.private:  # else nothing was released for it: it stays unfitted
            hold(twin, statistics, domain)
            if names is not None:
                twin.feature_names_in_ = names
            if names is not None or getattr(twin, "found_", None):
                names = twin.get_feature_names_out()
        twins.append((name, twin))
        later = {name for name, _ in steps[position + 1 :]}
        wanted = way.affine and any(later.intersection(release.serves) for release in record.releases)
        moments = stage.carry(moments, statistics) if wanted and moments is not None else None
        domain = after
    if record.mechanism is not None:
        name, mechanism = steps[-1]
        twins.append((name, _mechanism(record.mechanism, mechanism, domain, arrays)))
    return twins


def mapped(twins: Sequence[tuple[str, Any]], values: Any, texts: Any = None) -> Array:
    """Rows through released twins of stages; a deduplicator maps nothing. The first may map texts of some columns.

    Always row after row in memory: some stages copy only if some row has to be changed, and in another layout products
    of matrices are summed in another order, so that one row would change the last bits of others.
    """
    for _, twin in twins:
        if hasattr(twin, "map_rows"):
            held, texts = (twin.held() if texts is None else {**twin.held(), "texts": texts}), None
            values = twin.map_rows(values, held)
            values = values if issparse(values) else np.ascontiguousarray(values)
    return values


def _statistics(stage: Any, way: FitMode, domain: Domain, released: Any) -> Any:
    """What the released stage predicts with; only a public mode needs no release."""
    if released is not None:
        return stage.read(released, way, domain)
    if way.name == "exact":
        return stage.without_release(way)
    return stage.prepare(Rows.of(np.empty((0, domain.d))), way, domain)


def question_of(record: MechanismRecord) -> QuerySpec:
    """What the last step has asked."""
    kind = "privacy" if record.mu is None else "mechanism"
    return QuerySpec(record.formula, record.parameters, record.steps, record.size, record.bound, kind)


def _mechanism(record: MechanismRecord, mechanism: Mechanism, domain: Domain, arrays: Mapping[str, Array]) -> Any:
    """The last step, with its noise and what it released."""
    prefix = f"{record.name}."
    released = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
    return twin_of(mechanism, question_of(record), record.noise_scale, released, domain)
