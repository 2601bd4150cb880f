"""Fits outside a pipeline, of which nothing is certified: queries, and models with labels or targets."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_regressor
from sklearn.utils.multiclass import check_classification_targets

from ppdp.core.checks import classes_of, pair
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain
from ppdp.data.rows import Rows, encode_alone
from ppdp.data.summary import Extent
from ppdp.data.validation import validated
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.privacy.noise.sampler import Noise


class StandaloneQueryMixin:
    """``fit`` of a mechanism without labels, outside a pipeline."""

    def fit(self, X: Any, y: Any = None) -> Any:
        """Release the noisy answer; the domain is read off ``X``, so nothing is certified.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : ignored
            Present by convention.
        """
        mechanism: Any = self
        scale = mechanism.own_noise_scale()
        X = validated(mechanism, X, dtype=np.float64, ensure_all_finite="allow-nan" if mechanism.fills_gaps else True)
        domain = Extent.of(X).domain.but(min_present=X.shape[0])
        question = mechanism.query_spec(domain)
        released = mechanism.release(Rows.of(X), question, Noise(mechanism.random_state), scale)
        mechanism.read(released, domain, question)
        vars(self).pop("_longest", None)
        return self


class Supervised:
    """Mixin for classifiers and regressors; it stands before :class:`Mechanism` among the bases."""

    classes: Any  # of classifiers
    y_range: Any  # of regressors
    _several = True

    def fit(self: Any, X: Any, y: Any) -> Any:
        """Train with the given ``noise_scale``; bounds that are not declared are read off the data.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        y : array-like of shape (n_samples,)
            Labels or targets.

        Raises
        ------
        MissingBudget
            If ``noise_scale`` is not set.
        """
        scale = self.own_noise_scale()
        X, y = validated(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan" if self.fills_gaps else True)
        domain, codes = self._encode(Extent.of(X).domain, y)
        question = self.query_spec_at(domain, Distance(replaced=1))
        if self.balances:
            what = "class_weight='balanced' needs released numbers of rows, which a pipeline releases."
            fix = "class_weight={...}, or the model as the last step of ppdp.Pipeline."
            raise InvalidParameter(what, stage=type(self).__name__, fix=fix, parameter="class_weight")
        rows = Rows.of(X, codes).weighted(self.row_factors(question))
        self.read(self.release(rows, question, Noise(self.random_state), scale), domain, question)
        vars(self).pop("_longest", None)  # of a pipeline's rows
        return self

    def _encode(self: Any, domain: Domain, y: Any) -> tuple[Domain, NDArray[np.float64]]:
        """For a model that is fitted alone: the domain with its classes or range, and answers as rows hold them."""
        if is_regressor(self):
            domain = domain if self.y_range is None else domain.but(y_range=self._range(domain))
            return encode_alone(domain, y, type(self).__name__, targets=True)
        check_classification_targets(y)
        if self.classes is not None:
            domain = domain.but(classes=classes_of("classes", self.classes, self))
        domain, codes = encode_alone(domain, y, type(self).__name__, targets=False)
        self._n_classes(domain)
        return domain, codes

    def _n_classes(self, domain: Domain) -> int:
        """Number of public classes; two where nothing is known yet."""
        classes = domain.classes if self.classes is None else classes_of("classes", self.classes, self)
        count = 2 if classes is None else len(classes)
        if count < 2 or (count > 2 and not self._several):
            binary = "Only binary classification is supported. It needs exactly two classes, not one class or several."
            what = "it needs at least two classes, not one class." if self._several else binary
            raise InvalidParameter(what, stage=type(self).__name__, fix="pass classes=(...) to the model.")
        return count

    def _range(self, domain: Domain) -> tuple[float, float]:
        """The public range of the targets."""
        y_range = domain.y_range if self.y_range is None else pair("y_range", self.y_range, self)
        if y_range is None:
            fix = "pass y_range=(low, high) to the model or Domain(y_range=...)."
            raise MissingBound("the public range of the targets is not declared.", stage=type(self).__name__, fix=fix)
        return y_range
