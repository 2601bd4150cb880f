"""Random projection with a public seed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_array, check_is_fitted

from ppdp.bounds.projection import Matrix
from ppdp.bounds.random_matrix import BINS, FAMILIES, MOST_COLUMNS, MOST_ENTRIES, at_once
from ppdp.core.checks import choice, integer, number
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.exact_matmul import product, project
from ppdp.data.frames import canonical
from ppdp.data.rows import Array, Rows
from ppdp.data.validation import validated
from ppdp.exceptions import DomainMismatch, InvalidParameter
from ppdp.transformers.base import RowWiseTransformer, Statistics
from ppdp.transformers.fit_mode import FitMode


@dataclass(eq=False, repr=False)
class RandomProjection(ClassNamePrefixFeaturesOutMixin, RowWiseTransformer):
    """Map every row to a few random combinations of its columns; the matrix is public.

    Parameters
    ----------
    n_components : int, default=100
        Number of columns that come out.
    family : {"gaussian", "uniform", "rademacher", "sparse", "oporp"}, default="gaussian"
        Normal entries; uniform entries; random signs; random signs at a share 1/s of the places; one random sign for
        each column, which goes to one component. All keep squared norms on average.
    seed : int, default=0
        Decides the matrix. It is public and must be chosen without looking at the data.
    s : float, optional
        Of the family "sparse" only, at least 1. Default: √d.
    bins : {"balanced", "fixed", "variable"}, optional
        Of the family "oporp" only: how columns find their component. "balanced", the default: permuted and dealt out
        in turn. "fixed": permuted together with empty columns, until every component gets equally many. "variable":
        each by itself (count-sketch).

    Attributes
    ----------
    components_ : ndarray or sparse array of shape (n_components, n_features)
        The matrix.
    entry_ : float
        Public bound on entries of rows, which decides to what they are rounded under "sparse" with s of about 4 and
        less; else 0, and where nothing was declared.

    Notes
    -----
    **Guarantee** (``docs/theory/random-projection.md``): row-wise, moves nothing. Rows that moved before move further
    by the operator norm of the matrix that was drawn, which also bounds the rows. Random projections do not add
    privacy.

    Rows may be a SciPy sparse array; their images are dense, and those of the same rows made dense.

    Examples
    --------
    >>> import numpy as np
    >>> RandomProjection(n_components=2, family="oporp").fit_transform(np.array([[1.0, 2.0, 4.0, 8.0]]))
    array([[-10.,  -5.]])
    """

    n_components: int = 100
    family: str = "gaussian"
    seed: int = 0
    s: float | None = None
    bins: str | None = None

    allows_gaps = False
    takes_sparse = "projects"
    leakage = "none", "nothing: every row is mapped by itself; images of private rows stay private"
    statistic_names = "components", "entry"
    _example: ClassVar = {"n_components": 2}

    def fit_modes(self, domain: Domain, distance: Distance) -> tuple[FitMode, ...]:
        self._norm_of_complete_rows(domain)
        family = choice("family", self.family, FAMILIES, self)
        components = integer("n_components", self.n_components, self)
        if components * (1 if family == "oporp" else domain.d) > MOST_ENTRIES:
            what = f"n_components = {components} makes a matrix of more than {MOST_ENTRIES} entries."
            fix = "take fewer." if family == "oporp" else "take fewer, or family='oporp'."
            raise InvalidParameter(what, stage="RandomProjection", fix=fix, parameter="n_components")
        if domain.d > MOST_COLUMNS:
            what = f"rows have more than {MOST_COLUMNS} columns."
            raise InvalidParameter(what, stage="RandomProjection", fix="hash them to fewer first.")
        if self.seed is None:
            raise InvalidParameter(
                "seed is None, but the matrix is public: to keep a random projection secret does not make it private.",
                stage="RandomProjection",
                fix="seed=0, or another number chosen without the rows, in front of a mechanism.",
                parameter="seed",
            )
        chosen: dict[str, Any] = {"family": family, "n_components": components}
        chosen["seed"] = integer("seed", self.seed, self, least=0, most=2**63 - 1)
        for name, its in (("s", "sparse"), ("bins", "oporp")):
            if getattr(self, name) is not None and family != its:
                what = f"{name} is a parameter of the family {its!r}, and family is {family!r}."
                fix = f"leave {name} out, or family={its!r}."
                raise InvalidParameter(what, stage="RandomProjection", fix=fix, parameter=name)
        if self.s is not None:
            chosen["s"] = number("s", self.s, self, least=1, most=MOST_ENTRIES)
        if self.bins is not None:
            chosen["bins"] = choice("bins", self.bins, BINS, self)
        return (FitMode.by("projection.drawn", domain, distance, **chosen),)

    def prepare(self, rows: Rows, way: FitMode, domain: Domain) -> Statistics:
        A = Matrix(n_features=domain.d, **way.parameters).entries
        return {"components": A, "entry": largest_entry(domain) if issparse(A) and at_once(A) else 0.0}

    def map_rows(self, X: Array, statistics: Statistics) -> Array:
        return project(X, statistics["components"], statistics["entry"])

    def inverse_transform(self, X: Any) -> Array:
        """The shortest rows whose images are nearest to these, by least squares.

        They are the images times the pseudo-inverse of ``components_``; under the family "oporp" that is its transpose,
        with every component divided by the number of columns that it sums. Of a row that was projected it gives back
        what the projection has seen, on average a share k/d of it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_components)
            Images, perhaps with noise.
        """
        check_is_fitted(self)
        X, A = check_array(X, dtype=np.float64), self.components_
        if X.shape[1] != A.shape[0]:
            raise DomainMismatch(f"X has {X.shape[1]} columns, and images have {A.shape[0]}.", stage="RandomProjection")
        if issparse(A) and (np.bincount(A.indices, minlength=A.shape[1]) == 1).all():  # its rows are orthogonal
            squares = np.asarray((A * A).sum(axis=1)).ravel()
            return product(X / np.where(squares > 0, squares, 1.0), A.T.tocsr())
        return product(X, np.linalg.pinv(A.toarray() if issparse(A) else A))

    def _checked(self, X: Any, *, reset: bool) -> Any:
        if not issparse(X):
            return super()._checked(X, reset=reset)
        X = validated(self, X, accept_sparse="csr", dtype=np.float64, ensure_all_finite=False, reset=reset)
        X = canonical(X)
        assert_all_finite(X, estimator_name="RandomProjection", input_name="X")
        return X

    def _fit(self, X: Any) -> Statistics:
        # The map is the same whatever the rows are, so nothing has to be read off sparse ones.
        domain = Domain(n_rows=X.shape[0], n_features=X.shape[1], row_norm=1.0, max_missing=0)
        domain = domain if issparse(X) else self._observed_domain(self._extent(X))
        way = self.standalone_mode(domain, domain.neighbours)
        self._hold_standalone(self._public_statistics(way, domain), way)
        self.entry_ = 0.0  # what was read off these rows is no bound on rows to come
        return self.held()

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
