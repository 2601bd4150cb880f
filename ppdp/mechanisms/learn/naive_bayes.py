"""Naive Bayes from released moments of every class."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from sklearn.base import ClassifierMixin

from ppdp.bounds.queries import longest_row
from ppdp.core.checks import number
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.exact_matmul import squares_of
from ppdp.data.label_moments import scaled_squares
from ppdp.data.rows import Array, Rows
from ppdp.data.stream import Stream
from ppdp.data.summary import ColumnSums
from ppdp.data.together import Weight, together
from ppdp.data.unit_conversion import Answers, Columns, no_ends
from ppdp.exceptions import UnsupportedOrder
from ppdp.mechanisms.base import PRESENT, Mechanism, QuerySpec
from ppdp.mechanisms.standalone import Supervised
from ppdp.privacy.noise.sampler import Noise

UNEVEN = 0.25  # how far numbers of rows of classes are expected to lie apart, as a share of their mean
SEEN = 2.0  # standard deviations of the noise, beyond which they are seen to lie further apart
RARE = 0.04  # of rows have a category, as a mean: of 80 scikit-learn's had an AUC of 0.59, of 10 and of none 0.71
DRAWN = "drawn towards that of all classes where noise hides it; error of the last step before that"
LEAST_VARIANCE = 0.05  # of a class, as a share of that within all classes: noise makes any other of it


@dataclass(eq=False, repr=False)
class GaussianNB(Supervised, ClassifierMixin, Mechanism):
    """Naive Bayes with a normal law of each column in each class, from one noisy answer.

    Parameters
    ----------
    classes : sequence of labels, optional
        The public labels, two or more. If absent they are read from ``y``, and a pipeline's certificate is conditional.
    var_smoothing : float, default=1e-9
        Share of the largest variance that is added to all variances.
    noise_scale : float, optional
        Standard deviation of the noise on each number; a pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels.
    class_count_, class_prior_ : ndarray of shape (n_classes,)
        Noisy number of rows of each class, and its share.
    theta_, var_ : ndarray of shape (n_classes, n_features)
        Mean and variance of each column in each class.

    Notes
    -----
    **Guarantee** (``docs/theory/naive-bayes.md``): ``μ = √6 N / σ`` for one replaced row, N the longest that a row can
    be; the number of rows, sums and sums of squares of every class are one answer. Numbers of rows that noise hides are
    pulled towards their mean, means and variances that few rows tell towards those of all rows. Rows must be complete.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = np.array([[-1.0], [-0.9], [0.9], [1.0]] * 50), np.array([0, 0, 1, 1] * 50)
    >>> GaussianNB((0, 1), noise_scale=1e-3).fit(X, y).predict(np.array([[-0.5], [0.5]]))
    array([0, 1])
    """

    classes: Sequence[Any] | None = None
    _: KW_ONLY
    var_smoothing: float = 1e-9
    noise_scale: float | None = None
    random_state: Any = None

    needs_y = True
    predicts = True
    in_memory = False

    def query_spec(self, domain: Domain, mu: float | None = None) -> QuerySpec:
        if domain.missing_rows:
            what = "rows may have missing values here."
            raise UnsupportedOrder(what, stage=type(self).__name__, fix="put an imputer before it.")
        number("var_smoothing", self.var_smoothing, self, least=0, most=1)
        norm = domain.require("row_norm", type(self).__name__)
        entry, rare = largest_entry(domain), len(domain.indicators)
        told = (
            f"a normal law hardly fits columns that are 1 in few rows and else 0, as those of many categories ({rare}"
            " here), with noise or without: LogisticRegression takes them."
        )
        one = max(1.0, norm**2 - (domain.d - rare) * entry**2)  # of these, in a row
        parameters = {"n_classes": self._n_classes(domain), "entry_bound": entry}
        warnings = (told,) if rare * RARE > one else ()
        return QuerySpec.asked("learning.class-moments", "mechanism", domain, parameters, warnings=warnings)

    def release(self, rows: Rows | Stream, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
        norm, entry = question.bound / rows.n, float(question.parameters["entry_bound"])
        sums = ColumnSums(rows.n, rows.d, [(None, norm), (partial(scaled_squares, entry), norm)])
        maps = [methodcaller("weighted", own) for own in np.eye(question.parameters["n_classes"])]
        found = together(rows, *((of_class, one) for of_class in maps for one in (Weight(rows.n), sums)))
        parts = [part for weight, of_class in zip(found[::2], found[1::2]) for part in (norm * weight, *of_class)]
        answer = noise.release(np.concatenate(parts), noise_scale, question.bound)
        count = question.parameters["n_classes"]
        total = answer.reshape(count, -1)[:, 0].sum(), noise_scale * math.sqrt(count)
        return {"answer": answer, PRESENT: np.array(total) / question.bound}

    def read(self, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        self.classes_ = np.asarray(domain.require("classes", type(self).__name__))
        entry, sigma = float(question.parameters["entry_bound"]), self.own_noise_scale()
        answer = released["answer"].reshape(question.parameters["n_classes"], -1)
        counts, sums, squares = answer[:, 0] / longest_row(domain), *np.split(answer[:, 1:], 2, axis=1)
        rows = self.class_count_ = _likely_counts(counts, sigma / longest_row(domain))
        self.class_prior_ = rows / rows.sum()
        total, unsure = rows.sum(), entry * sigma * math.sqrt(len(rows)) / rows.sum()  # of a variance of all rows
        mean, second = np.clip(sums.sum(axis=0) / total, -entry, entry), squares.sum(axis=0) * entry / total
        spread = np.clip(second - mean**2, 2 * unsure, None)
        # What noise makes of a mean or a mean square, beside how far those of classes may lie apart.
        noise = (sigma / rows[:, None]) ** 2
        trust = spread / (spread + noise)
        self.theta_ = np.clip(mean + trust * (sums / rows[:, None] - mean), -entry, entry)
        within = np.clip(second - self.class_prior_ @ self.theta_**2, np.maximum(2 * unsure, spread / 10), None)
        apart = (within / 2) ** 2
        trust = apart / (apart + 3 * entry**2 * noise)
        own = squares * entry / rows[:, None] - self.theta_**2
        variance = np.maximum(within + trust * (own - within), LEAST_VARIANCE * within)
        self.var_ = variance + self.var_smoothing * float(variance.max())

    def answers(self, columns: Columns, domain: Domain, question: QuerySpec) -> list[Answers]:
        sigma, entry = self.own_noise_scale(), float(question.parameters["entry_bound"])
        unit = sigma / longest_row(domain)  # of numbers of rows
        counts = zip(self.classes_, self.class_count_)
        found = [Answers.plain(f"rows of {label}", rows, unit, DRAWN) for label, rows in counts]
        for label, rows, mean, variance in zip(self.classes_, self.class_count_, self.theta_, self.var_):
            deviation = np.sqrt(variance)
            error = np.hypot(sigma, mean * unit) / rows
            of_variance = np.hypot(entry * sigma, 2 * np.abs(mean) * sigma) / rows
            found += [
                Answers.of(f"mean among {label}", columns, mean, error, DRAWN),
                Answers.linear(
                    f"standard deviation among {label}",
                    columns,
                    deviation,
                    of_variance / (2 * deviation),
                    np.abs(columns.slope),
                    note=DRAWN,
                ),
            ]
        return [replace(one, ends=partial(no_ends, one.value)) for one in found]

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the probability of each class, shape (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        X = self._new_rows(X)
        likelihood = np.stack(
            [
                -0.5 * ((X - mean) ** 2 / variance + np.log(2 * math.pi * variance)).sum(axis=1)
                for mean, variance in zip(self.theta_, self.var_)
            ],
            axis=1,
        )
        return np.asarray(log_softmax(likelihood + np.log(self.class_prior_), axis=1))

    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, shape (n_samples, n_classes); takes what :meth:`predict_log_proba` does."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row; takes what :meth:`predict_log_proba` does."""
        best = self.predict_log_proba(X).argmax(axis=1)  # refuses what is not fitted
        return np.asarray(self.classes_[best])

    def steady_labels(self, X: Array) -> NDArray[Any]:
        """What ``predict`` gives, by bits that follow from a row alone."""
        laws = zip(self.theta_, self.var_)
        beyond = np.array([squares_of(((X - mean) / np.sqrt(variance)).T) for mean, variance in laws])
        scores = np.log(self.class_prior_) - np.log(self.var_).sum(axis=1) / 2 - beyond.T / 2
        return np.asarray(self.classes_[scores.argmax(axis=1)])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "theta_")


def _likely_counts(counts: Array, noise: float) -> Array:
    """Numbers of rows of classes: where noise hides how far apart they are, near their mean, no less than its error."""
    middle = max(1.0, float(counts.mean()), noise / math.sqrt(len(counts)))
    apart = max((UNEVEN * middle) ** 2, float(counts.var(ddof=1)) - (SEEN * noise) ** 2)
    return np.maximum(middle + apart / (apart + noise**2) * (counts - middle), 1.0)
