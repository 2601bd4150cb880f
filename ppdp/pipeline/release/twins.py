"""Released twins: what a fitted pipeline predicts with.

They are made from a certificate, public parameters and released arrays by the one function below, after ``fit`` and
after ``load`` alike; so nothing else that was learned from private rows can be in them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.releases import STATISTICS
from ppdp.data.rows import Rows
from ppdp.mechanisms.base import Mechanism, Question
from ppdp.transformers.way import Way

__all__ = ["mapped", "noise_scales", "released_twins"]

Array = NDArray[np.float64]
Document = Mapping[str, Any]


def released_twins(
    document: Document, steps: Sequence[tuple[str, Any]], arrays: Mapping[str, Array]
) -> list[tuple[str, Any]]:
    """Copies of the steps that hold public and released values only.

    Parameters
    ----------
    document : mapping
        Content of the certificate.
    steps : sequence of (name, step)
        As configured.
    arrays : mapping of str to ndarray
        What was released.
    """
    domain, moments = Domain.from_dict(document["entrance"]["domain"]), None
    twins = []
    for position, (record, (name, stage)) in enumerate(zip(document["steps"], steps)):
        way = _way(record)
        for release in document["releases"]:
            if release["at"] == position:
                statistic = release["statistic"]
                moments = STATISTICS[statistic].read(arrays[f"{name}.{statistic}"], domain)
        served = any(name in release["serves"] for release in document["releases"])
        twin = clone(stage)
        statistics = _statistics(twin, way, domain, moments if served else None)
        twins.append((name, twin))
        if statistics or not way.private:  # else nothing was released for it: it stays unfitted
            twin.hold(statistics)
            _remember_columns(twin, domain)
        moments = stage.carry(moments, statistics) if way.affine and moments is not None else None
        domain = way.domain
    if document["mechanism"] is not None:
        name, mechanism = steps[-1]
        twins.append((name, _mechanism(document["mechanism"], mechanism, domain, arrays)))
    return twins


def mapped(twins: Sequence[tuple[str, Any]], values: Array) -> Array:
    """Rows through released twins of stages; a deduplicator maps nothing.

    Always row after row in memory: some stages copy only if some row has to be changed, and in another layout products
    of matrices are summed in another order, so that one row would change the last bits of others.
    """
    for _, twin in twins:
        if hasattr(twin, "map_rows"):
            values = np.ascontiguousarray(twin.map_rows(values, twin.held()))
    return values


def noise_scales(document: Document) -> dict[str, float]:
    """Standard deviation of the noise on each entry of every released array."""
    scales = {
        f"{document['steps'][r['at']]['name']}.{r['statistic']}": float(r["noise_scale"]) for r in document["releases"]
    }
    last = document["mechanism"]
    return {
        name: scales[name] if name in scales else float(last["noise_scale"]) for name in document["released"]["names"]
    }


def _way(record: Document) -> Way:
    """The way that a certificate records."""
    domain, distance = Domain.from_dict(record["domain"]), Distance.from_dict(record["distance"])
    return Way(record["formula"], record["parameters"], domain, distance)


def _statistics(stage: Any, way: Way, domain: Domain, released: Any) -> Mapping[str, Any]:
    """What the twin predicts with; only a public way needs no release."""
    found: Mapping[str, Any]
    if released is not None:
        found = stage.read(released, way, domain)
    elif way.name == "exact":
        found = stage.without_release(way)
    else:
        found = stage.prepare(Rows.of(np.empty((0, domain.d))), way, domain)
    return found


def _mechanism(record: Document, mechanism: Mechanism, domain: Domain, arrays: Mapping[str, Array]) -> Any:
    """The last step, with its noise and what it released."""
    kind = "privacy" if record["mu"] is None else "mechanism"
    question = Question(record["formula"], record["parameters"], record["steps"], record["size"], record["bound"], kind)
    twin: Any = clone(mechanism).set_params(noise_scale=record["noise_scale"])
    twin.settle(question)
    prefix = f"{record['name']}."
    twin.read({k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}, domain, question)
    twin.n_features_in_ = domain.d
    return twin


def _remember_columns(twin: Any, domain: Domain) -> None:
    twin.n_features_in_ = domain.d
    if domain.feature_names is not None:
        twin.feature_names_in_ = np.asarray(domain.feature_names, dtype=object)
