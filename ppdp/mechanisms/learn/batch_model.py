"""What linear models share that may be trained on batches, and whose models on the way are released."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ppdp.data.intake import validated
from ppdp.data.rows import Array
from ppdp.mechanisms.learn.linear import LinearModel, scores_of

ONE_MODEL = ("output", "hidden", "moments", "sketch")  # solvers that release nothing but the last model


def has_path(model: Any) -> bool:
    """Whether the iterates are released, so that there are learning curves; for ``available_if``."""
    return model.solver not in ONE_MODEL


@dataclass(eq=False, repr=False)
class BatchModel(LinearModel):
    """Mixin for models whose gradients are taken of all rows or of batches, and whose iterates are released.

    Parameters
    ----------
    solver : {"auto", "newton", "dpgd", "poisson", "fixed-size", "epochs", "hidden"}, default="auto"
        Noisy Newton steps on whitened rows, or noisy projected gradient descent on all rows ("dpgd") or on batches, as
        the notes have it; "output" is offered by :class:`LogisticRegression` and :class:`Ridge`. "auto" is "newton"
        where no stage in front moves all rows, ``n μ >= 25 k (d + 1)`` (100 for least squares) and
        ``k (d + 1) (d + 2) / 2 <= 50,000``, for k scores of a row. It is "dpgd" elsewhere, and where one of ``clip``,
        ``coef_norm``, ``step_size`` and ``batch_size`` is given or searched over: they have no effect under "newton".
    max_iter : int or "auto", default="auto"
        Number of steps T, or of passes over the rows under "epochs"; "hidden" makes one pass. "auto": under "newton" 3,
        one more for each doubling of ``n μ / (k (d + 1))`` from 150 on, up to 7, which where the solver is "auto" a
        number can only make fewer; under "dpgd"
        ``6 (n μ / √(d + 1))^0.275``, between 10 and 80, but 30 or 40 of many rows, of which the logistic loss makes
        fewer where the iterates settle before (``docs/theory/noisy-gradient-descent.md``, *How many steps*), for n
        rows, d columns and the share μ of the budget, k (d + 1) in place of d + 1 for k > 2 classes; where batches are
        sampled ``4 √(n μ / √(d + 1))``, between 10 and 400, and at least ``(0.4 n / B)²``, up to 1000; under "epochs" 1
        to 10 passes; under "output" as many as leave an error that is small beside what one row does (the sensitivity
        is that of the last iterate, however far it is).
    batch_size : int or "auto", default="auto"
        Rows in a batch B, their expected number under "poisson"; of no effect under "dpgd" and "output". "auto": the
        larger of 256 and ``n / 50`` where batches are sampled; under "epochs" ``√(n μ / √(d + 1)) / 2`` batches hold
        all rows, 4 to 100; under "hidden" 100 do.
    coef_norm : float or "auto", default="auto"
        Radius D of the ball of coefficients, intercept included; of k > 2 classes all together, ``D √k``.
        "auto": ``5 max(1, √d / R)`` for classes and ``2 max(1, √d / R)`` for targets, R the norm of the rows.
    step_size : float or "auto", default="auto"
        Of the first step under "dpgd": where noise is small, later ones are longer if released gradients show that the
        loss is flat. "auto": ``s / max(1, min(R², d) / √d)`` with s = 1.2 for least squares, 2.4 for the hinge loss and
        4.8 for the logistic one, there k / 3 times that for k > 3 classes; under "hidden" at most 1 / smoothness; of
        no effect under "output".
    noise_scale : float, optional
        Standard deviation of the noise: on the mean gradient (of a batch, over B), per step; under "output" on the
        coefficients. A pipeline sets it.

    Attributes
    ----------
    coef_path_, intercept_path_ : ndarray
        Those of up to 100 models on the way, along a first axis, where the solver releases its iterates.
    path_steps_ : ndarray of shape (n_models,)
        After how many steps these models stood.

    Notes
    -----
    **Guarantee** (``docs/theory/noisy-gradient-descent.md``): μ-GDP with
    ``μ = √T (C mass + min(L total, 2C moved)) / (n σ)``, L the Lipschitz constant of the row's gradient in the row.

    Under "newton" (``docs/theory/newton.md``): ``μ = 2 √A / (n σ)`` for one row that is replaced or moved, with
    A = T + 3 answers, or T + 5 where slope and intercept are calibrated.

    Under "poisson" every step takes each row by a secret coin of probability B/n, under "fixed-size" B secret rows
    without replacement, under "epochs" disjoint batches, in whole passes over the rows, shuffled once
    (``docs/theory/subsampling.md``): exact distributions of the privacy loss, and ``μ = √E (C mass + √(M S)) / (B σ)``
    for E passes. "hidden", experimental, is one such pass of which only one iterate, at a secret time, is released: the
    Rényi curve of ``docs/theory/renyi.md``; convex losses and steps of at most 2 / smoothness are demanded when
    planning.
    """

    _: KW_ONLY
    batch_size: int | str = "auto"

    _staged = True

    @available_if(has_path)
    def staged_predict(self, X: Any) -> Iterator[NDArray[Any]]:
        """Labels or targets that the model would predict after the steps of ``path_steps_``; the last are its own.

        Made from released iterates only, so a learning curve on other rows costs nothing.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        return map(self._predicted, self._staged_scores(X))

    def _staged_scores(self: Any, X: Any) -> Iterator[Array]:
        """Scores that the models on the way give each row."""
        check_is_fitted(self, "coef_path_")
        X = validated(self, X, dtype=np.float64, reset=False)
        for coef, intercept in zip(self.coef_path_, self.intercept_path_):
            yield scores_of(X, coef, intercept)
