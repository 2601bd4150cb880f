"""Clusters around centres that are made of noisy weights and sums."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ppdp.bounds.k_means import MOST_DEPTH
from ppdp.core.checks import integer
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.clusters import HalvedCells, Synopsis, center_answers, count_of_clusters, nearest, stepped, sums_around
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.data.unit_conversion import Answers, Columns
from ppdp.exceptions import UnsupportedOrder
from ppdp.mechanisms.base import Mechanism, QuerySpec
from ppdp.mechanisms.standalone import StandaloneQueryMixin
from ppdp.privacy.noise.sampler import Noise


@dataclass(eq=False, repr=False)
class KMeans(StandaloneQueryMixin, Mechanism):
    """Centres of clusters, from noisy weights of cells and noisy means around the centres of these.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    max_iter : int, default=3
        Noisy steps of Lloyd's algorithm.
    max_depth : int or "auto", default="auto"
        Rounds, at most 8, in which every cell that holds rows is split into four. "auto": 5 and one for each column,
        at most 8.
    noise_scale : float, optional
        Standard deviation of the noise on each number, in rows; a pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        The centres, in the units of the rows at this step.
    counts_ : ndarray of shape (n_clusters,)
        Noisy number of rows, or weight, that was nearest to each centre before its last step.
    n_iter_ : int
        Steps of Lloyd's algorithm.

    Notes
    -----
    **Guarantee** (``docs/theory/k-means.md``): ``μ = √(2 max_depth + 4 max_iter) / σ`` for one replaced row, whatever
    the number of clusters and columns. First the public range is split into cells where rows are, by noisy weights;
    k-means of these weighted cells, without further noise, gives the first centres. Then weights and means of the rows
    around each centre are released, clipped at a distance that the cells tell. There are no ``labels_`` and no
    ``inertia_``, which are the rows' own: ``predict`` says of any row which centre is nearest. Rows must be complete,
    and columns scaled in front, so that distances in all of them count alike.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.repeat([[-0.9], [0.1], [0.9]], 50, axis=0)
    >>> np.sort(KMeans(3, noise_scale=1e-3).fit(X).cluster_centers_.ravel()).round(1)
    array([-0.9,  0.1,  0.9])
    """

    n_clusters: int = 8
    _: KW_ONLY
    max_iter: int = 3
    max_depth: int | str = "auto"
    noise_scale: float | None = None
    random_state: Any = None

    predicts = True
    in_memory = False
    weighs = True

    def __getattr__(self, name: str) -> Any:
        if name in _PRIVATE:
            raise AttributeError(f"KMeans has no {name!r}: {_PRIVATE[name]}")
        return super().__getattr__(name)

    _example: ClassVar = {"n_clusters": 2, "max_iter": 1, "max_depth": 2, "noise_scale": 1e-3}

    def query_spec(self, domain: Domain, mu: float | None = None) -> QuerySpec:
        stage = type(self).__name__
        if domain.missing_rows:
            raise UnsupportedOrder("rows may have missing values here.", stage=stage, fix="put an imputer before it.")
        domain.require("row_norm", stage)
        count = count_of_clusters(self, domain)
        depth, steps = self._depth(domain), integer("max_iter", self.max_iter, self, most=1000)
        entry = largest_entry(domain)
        parameters = {"n_clusters": count, "depth": depth, "max_iter": steps, "entry_bound": entry}
        return QuerySpec.asked("learning.k-means", "mechanism", domain, parameters, depth + steps)

    def _depth(self, domain: Domain) -> int:
        if isinstance(self.max_depth, str) and self.max_depth == "auto":
            return min(5 + domain.d, MOST_DEPTH)
        return integer("max_depth", self.max_depth, self, most=MOST_DEPTH)

    def settle(self, question: QuerySpec) -> None:
        self.max_depth = question.parameters["depth"]

    def passes(self, question: QuerySpec, domain: Domain) -> int:
        """Cells are weighed in one pass, whatever their depth."""
        return 1 + int(question.parameters["max_iter"])

    def release(self, rows: Rows | Stream, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
        p = question.parameters

        def answer(exact: Array) -> Array:
            padded = np.zeros(question.size)
            padded[: exact.size] = exact.ravel()
            return noise.release(padded, noise_scale, question.bound)[: exact.size].reshape(exact.shape)

        bound, cells = p["entry_bound"], HalvedCells(rows.d, p["depth"], p["entry_bound"])
        exact = cells.weights(rows)
        synopsis = Synopsis.of(
            cells,
            lambda level, parts: answer(exact[level - 1][parts]),
            noise_scale,
            most=question.size,
            least=p["n_clusters"],
        )
        centers = synopsis.clustered(p["n_clusters"])
        for left in reversed(range(p["max_iter"])):
            radii = synopsis.radii(centers)
            noisy = answer(sums_around(rows, centers, radii, bound))
            rest = synopsis.without_unseen(centers, noisy[:, 0], noise_scale) if left else None
            if rest is not None:
                synopsis, centers = rest, rest.clustered(p["n_clusters"])
            else:
                centers, errors = stepped(centers, radii, noisy, noise_scale)
        return {"centers": centers * bound, "counts": noisy[:, 0], "errors": errors * bound}

    def read(self, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        self.cluster_centers_, self._errors = released["centers"], released["errors"]
        self.counts_ = released["counts"] * (domain.max_weight or 1.0)
        self.n_iter_ = question.parameters["max_iter"]

    def answers(self, columns: Columns, domain: Domain, question: QuerySpec) -> list[Answers]:
        sigma = self.own_noise_scale() * (domain.max_weight or 1.0)
        counts = (
            Answers.plain(f"rows of cluster {cluster}", count, sigma) for cluster, count in enumerate(self.counts_)
        )
        return [*center_answers(self.cluster_centers_, self._errors, columns), *counts]

    def predict(self, X: Any) -> NDArray[np.int32]:
        """Number of the nearest centre of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        X = self._new_rows(X)
        return nearest(X, self.cluster_centers_)[0].astype(np.int32)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "cluster_centers_")


_LABELS = "which centre is nearest to a row of the fit is that row's own. Fix: fit(X).predict(X), which stays private."
_PRIVATE = {
    "labels_": _LABELS,
    "fit_predict": _LABELS,
    "inertia_": "a sum over the rows, which would cost a release. Fix: counts_ and cluster_centers_ were released.",
}
"""What scikit-learn's has and this has not, and why."""
