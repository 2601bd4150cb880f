"""Released twins: what a fitted pipeline predicts with.

They are made from a certificate, public parameters and released arrays by the one function below, after ``fit`` and
after ``load`` alike; so nothing else that was learned from private rows can be in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import clone

from ppdp.certificate.record import MechanismRecord, Record
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.data.rows import Array, Rows
from ppdp.mechanisms.base import Mechanism, QuerySpec
from ppdp.transformers.base import hold
from ppdp.transformers.fit_mode import FitMode


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
        moments = stage.carry(moments, statistics) if way.affine and moments is not None else None
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
    question = question_of(record)
    twin: Any = clone(mechanism).set_params(noise_scale=record.noise_scale)
    twin.settle(question)
    prefix = f"{record.name}."
    twin.read({k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}, domain, question)
    twin.n_features_in_ = domain.d
    return twin
