"""What classes that are not ppdp's make of made-up rows, before private ones are seen, and how they add noise."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from scipy.sparse import issparse

from ppdp.core.boundary import at_step
from ppdp.core.domain import ColumnBounds, Domain
from ppdp.core.names import shipped
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.parallel import PIECE
from ppdp.data.rows import Array, Rows
from ppdp.data.statistics import clip_norms, row_norms
from ppdp.exceptions import InvalidParameter, PpdpError, StageFailed
from ppdp.mechanisms.base import PRESENT, Mechanism
from ppdp.pipeline.planning.plan import Plan, PlannedMechanism
from ppdp.pipeline.planning.route import PlannedRelease, PlannedStep
from ppdp.pipeline.steps import apart
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers.base import Stage, Transformer
from ppdp.transformers.columns.column_subset import bounded_by
from ppdp.transformers.rowwise.probe import ENTRIES, call_surely, check_row_by_row, made_up_rows

RUNS = 5  # of a mechanism whose law is not known
ROUNDING = 1e-5  # of a row: products of matrices are summed in another order among other rows


def check_map(step: PlannedStep, release: PlannedRelease | None) -> None:
    """Refuse a map that makes other rows of made-up ones than its formula says, or other ones among other rows."""
    way, domain, d, width = step.way, step.domain, step.domain.d, step.way.domain.d
    made_up, public = _rows_within(domain), way.name == "public"

    def mapped(X: Array) -> Any:
        """Rows behind a copy that has seen no others."""
        stage, rows = apart(step.stage), Rows.of(made_up[:0] if public else made_up)
        if way.name == "noisy":
            assert release is not None  # the plan put one before every stage that reads one
            statistic = STATISTICS[release.statistic]
            exact = statistic.measure(rows, domain, release.parameters)
            answer = statistic.answer(exact, rows, domain, release, Noise(0))
            statistics = stage.read(statistic.read(answer, domain, release), way, domain)
        else:
            statistics = stage.prepare(rows, way, domain)
        found = stage.apply(Rows.of(given := X.copy()), statistics)
        if not np.array_equal(given, X, equal_nan=True):
            raise InvalidParameter("it writes over the rows that it is given.", stage=step.name, fix="X = X.copy().")
        if not ((found.weight >= 0) & (found.weight <= 1)).all():
            raise InvalidParameter("it gives weights beyond 0 and 1.", stage=step.name, fix="those that came in, or 0.")
        return found.X

    try:
        with at_step(step.name):
            tables = [mapped(np.zeros((2, d)))]
    except PpdpError:
        if public and isinstance(step.stage, Transformer):
            raise
        return  # that so few rows are none that it can be fitted on, or compare, says nothing
    with suppress(StageFailed), at_step(step.name):  # on a row on which it fails a fit fails, too
        tables.append(mapped(made_up))
    for n, table in zip((2, len(made_up)), tables):
        if issparse(table) or np.shape(table) != (n, width):
            shape = "a sparse array" if issparse(table) else f"the shape {np.shape(table)}"
            what = f"it maps {n} rows of {d} columns to {shape}, and its formula says {(n, width)}."
            fix = "one row for each row; domain.but(n_features=...) in the formula, if it makes other columns."
            raise InvalidParameter(what, stage=step.name, fix=fix)
    out = call_surely(mapped, made_up, width)
    if type(bounded_by(step.stage, way.formula)).apply is Transformer.apply:  # others may compare rows
        gaps, norm, rows = domain.missing_rows > 0, _norm_within(domain), min(domain.n, PIECE)
        near = ROUNDING * (row_norms(made_up) + row_norms(out))
        check_row_by_row(mapped, d, width, step.name, gaps=gaps, norm=norm, tolerance=near, rows=rows)
    if public:
        _check_within(step, mapped, made_up, out)


def _norm_within(domain: Domain) -> float | None:
    """The norm up to which every row keeps to all bounds of a domain."""
    parts: list[Domain | ColumnBounds] = [domain, *domain.groups]
    bounds = [bound for part in parts for bound in (part.row_norm, part.entry_bound)]
    return min((bound for bound in bounds if bound is not None), default=None)


def _rows_within(domain: Domain) -> Array:
    """Made-up rows of a domain."""
    return clip_norms(made_up_rows(domain.d, domain.missing_rows > 0), _norm_within(domain))


def _check_within(step: PlannedStep, mapped: Callable[[Array], Any], made_up: Array, out: Array) -> None:
    """Refuse a public map that leads a made-up row beyond the bounds that its formula gives."""
    behind = step.way.domain
    for i in np.flatnonzero(np.isnan(out).any(axis=1) & (behind.missing_rows == 0)):
        try:
            mapped(made_up[i : i + 1])
        except Exception:
            continue  # it fails there, as a fit would
        what = "it maps a made-up row to missing values, and its formula says that there are none."
        raise InvalidParameter(what, stage=step.name, fix="np.maximum(X, 0) in front of a root, as any row may come.")
    found = {"row_norm": row_norms(out).max(), "entry_bound": np.abs(np.nan_to_num(out)).max()}
    for name, most in found.items():
        claimed = getattr(behind, name)
        if claimed is not None and not most <= claimed * (1 + ROUNDING):
            what = f"it maps a made-up row to {name} {most:.6g}, and its formula says at most {claimed:.6g}."
            raise InvalidParameter(what, stage=step.name, fix=f"domain.but({name}=...) in the formula.")


@contextmanager
def listening(planned: PlannedMechanism, noise: Noise) -> Iterator[None]:
    """Refuse what a mechanism of another class has answered here, if its noise was not that of its question.

    Everything to which noise is added passes ``noise.answer``. Of mechanisms that are not Gaussian no law is known.
    """
    known = shipped(type(planned.stage)) or not planned.question.gaussian
    if known or type(noise) is not Noise:  # an audit's is another
        yield
        return
    asked: list[tuple[Any, ...]] = []
    drawn = noise.answer

    def answer(law: str, value: Any, noise_scale: float, bound: float, draw: Any) -> Any:
        asked.append((law, np.size(value), noise_scale, bound))
        return drawn(law, value, noise_scale, bound, draw)

    noise.answer = answer  # type: ignore[method-assign]
    try:
        yield
    finally:
        del noise.answer
    times = planned.question.steps
    if asked != [("gaussian", planned.question.size, planned.noise_scale, planned.question.bound)] * times:
        what = f"noise must be added {times} times, to as many numbers, of the scale and bound that its question says."
        raise InvalidParameter(what, stage=planned.name, fix="noise.release(exact, noise_scale, question.bound).")


def tried(plan: Plan) -> dict[str, Array] | None:
    """What an own mechanism releases of made-up rows; None if there is none, if that takes long, or if it fails."""
    m, end = plan.mechanism, plan.end[0]
    if m is None or shipped(type(m.stage)) or m.stage.balances or end.n * end.d * m.question.steps > ENTRIES:
        return None
    y = np.arange(end.n) % len(end.classes or (0,)) if m.stage.needs_y else None
    made_up = np.resize(_rows_within(end), (end.n, end.d))
    runs: list[dict[str, Any]] = []
    drawn = False
    try:
        for seed in range(1 if m.question.gaussian else RUNS):
            rows, noise = Rows.of(made_up.copy(), y), Noise(seed)
            with listening(m, noise):
                runs.append(dict(apart(m.stage).release(rows, m.question, noise, m.noise_scale)))
            drawn |= noise.random_bytes(8) != Noise(seed).random_bytes(8)
    except InvalidParameter:
        raise
    except Exception:
        return None
    if not np.array_equal(rows.X, made_up, equal_nan=True):
        raise InvalidParameter("it writes over the rows that it is given.", stage=m.name, fix="X = rows.X.copy().")
    released = runs[0]
    if not drawn and all(one.keys() == released.keys() and _same(one, released) for one in runs):
        what = f"it releases the same of made-up rows {len(runs)} times, as if there were no noise."
        raise InvalidParameter(what, stage=m.name, fix="laplace_release, choose or noise.answer, at each release.")
    arrays = {f"{m.name}.{name}": value for name, value in released.items() if name != PRESENT}
    for one in plan.releases:
        step, statistic = plan.steps[one.at], STATISTICS[one.statistic]
        arrays[f"{step.name}.{one.statistic}"] = np.zeros(statistic.size(step.domain, one.parameters))
    return arrays


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(np.array_equal(one[name], other[name]) for name in other)


def kept_by_classes(steps: Sequence[Any]) -> dict[Any, Any]:
    """What classes of somebody else's hold, for every object of theirs, and what is in it if it holds others."""
    kinds = {kind for step in steps for kind in type(step).__mro__ if issubclass(kind, (Stage, Mechanism))}
    return {(kind, name): _seen(one) for kind in kinds if not shipped(kind) for name, one in vars(kind).items()}


def _seen(one: Any) -> tuple[int, str | None]:
    """Which object it is, and a fingerprint of what it holds; None of what cannot be pickled."""
    import joblib

    with suppress(Exception):
        return id(one), joblib.hash(one) if isinstance(one, (list, dict, set, bytearray, np.ndarray)) else None
    return id(one), None
