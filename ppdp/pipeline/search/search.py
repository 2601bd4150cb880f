"""Search for parameters on private rows, with everything it takes charged to one (epsilon, delta)."""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, MetaEstimatorMixin, is_regressor
from sklearn.utils.validation import check_is_fitted

import ppdp.pipeline.estimator as estimators
from ppdp.certificate import Certificate
from ppdp.certificate.issuance import certificate_status
from ppdp.certificate.issuer import issuer_words
from ppdp.core.adjacency import Adjacency
from ppdp.core.boundary import WARNINGS, at_step, before_rows, discreet, outside
from ppdp.core.checks import check_budget, choice, flag, integer, number
from ppdp.core.domain import Domain
from ppdp.core.names import dataset_name
from ppdp.core.progress import progress
from ppdp.data import validation
from ppdp.data.frames import cells
from ppdp.data.public_facts import check_matches_plan, merged, with_adjacency
from ppdp.data.rows import Array, Rows
from ppdp.data.summary import column_sums
from ppdp.data.weights import check_weights, warn_of_names, warn_of_order, weights_of
from ppdp.exceptions import InvalidParameter, NoiseWarning, PrivacyRefusal
from ppdp.pipeline.fit import checked_steps, facts_of
from ppdp.pipeline.input_checks import check_sparse_plan
from ppdp.pipeline.pipeline import Pipeline
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.prediction import Predictor
from ppdp.pipeline.search.candidates import (
    Candidate,
    Scoring,
    Setting,
    candidates_of,
    own_score,
    row_scores,
    searched,
    select,
)
from ppdp.pipeline.search.from_sklearn import SearchFromSklearn
from ppdp.pipeline.search.plan import SearchPlan, SearchSummary, part_of_search, plan_search, whole_search
from ppdp.pipeline.steps import as_texts, takes_texts
from ppdp.privacy.ledger.fit_charging import FitCharge, FitCost, charge
from ppdp.privacy.ledger.ledger import Ledger
from ppdp.privacy.noise.sampler import Noise, lowered


@dataclass(eq=False, repr=False)
class PrivateSearchCV(SearchFromSklearn, estimators.PrivateEstimator, MetaEstimatorMixin, BaseEstimator):
    """Fit candidates on some of the rows, choose one by its score on the others, and fit that one on all.

    All of it together keeps (epsilon, delta). Which rows are for training is decided by their position alone, so
    neighbouring datasets differ on one side only: fits and choice cost no more than the dearer of the two. A choice
    costs the same however many candidates there are; every fit has its share.

    Parameters
    ----------
    estimator : Pipeline
        A pipeline that predicts. Its own epsilon and delta have no effect.
    param_grid : dict or list of dicts
        As scikit-learn's: names of parameters and the values to try. All combinations are candidates.
    epsilon, delta : float, default=1.0 and 1e-6
        The guarantee for everything that leaves.
    share : float, default=0.5
        Share of mu² for finding the best candidate; the rest is for fitting it on all rows.
    test_size : float, default=0.25
        Share of the rows that candidates are scored on.
    scoring : callable, "accuracy" or "neg_mean_absolute_error", optional
        ``scoring(y_true, y_predicted) -> float`` for one row, clipped to [0, 1]; 0 where it fails. One that is the same
        whatever is predicted of made-up answers is refused. By default
        "accuracy"; for a regression "neg_mean_absolute_error", 1 less the absolute error as a share of the range of y,
        which is then the same of all candidates.
    scores : {"best", "all", None}, default="best"
        Which mean scores are released: that of the chosen candidate, those of all (then the best of them is chosen, and
        the noise grows with the root of their number), or none.
    refit : bool, default=True
        Whether to fit the chosen candidate on all rows.
    split_state : int, default=0
        Public seed of the split.
    ledger : Ledger, optional
        Where the whole search is charged before it looks at the rows.
    dataset : str, optional
        Public name of the private data.
    random_state : int or None, default=None
        Seeds all noise. For tests only.

    Attributes
    ----------
    certificate_ : Certificate
        What is guaranteed for the whole search; if ``refit``.
    best_estimator_ : Pipeline
        The chosen candidate, fitted on all rows.
    best_params_ : dict
        Its parameters.
    best_index_ : int
        Its position among the candidates.
    best_score_ : float
        Its mean score on the validation rows, with noise.
    cv_results_ : dict
        "params", "outcome" ("refused": a gate did not pass) and, if all are released, "noisy_test_score".
    summary_ : SearchSummary
        What was released, and what all of it costs together.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, if X has any.
    classes_ : ndarray of shape (n_classes,)
        Labels, of a classifier.

    Notes
    -----
    **Guarantee** (``docs/theory/search.md``): ``mu² = max(Σ mu_fit², mu_choice² + mu_score²) + mu_refit²``.
    ``certificate_`` and ``export`` speak of the whole search; the certificate of ``best_estimator_`` is that of its
    last fit and says so first.
    """

    __metadata_request__fit = {"sample_weight": None}  # noqa: RUF012  for scikit-learn's routing, which names it

    estimator: Any
    param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]]
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    share: float = 0.5
    test_size: float = 0.25
    scoring: Scoring | str | None = None
    scores: str | None = "best"
    refit: bool = True
    split_state: int = 0
    ledger: Ledger | None = None
    dataset: str | None = None
    random_state: Any = None

    def plan(self, domain: Domain) -> SearchPlan:
        """Everything that is decided before any data: what every fit and the choice may spend.

        Parameters
        ----------
        domain : Domain
            Public facts beside those of the estimator; needs ``n_rows`` and ``n_features``. A fit with other facts than
            these (those of its table apart) is refused.
        """
        candidates = self._candidates(domain)
        facts = with_adjacency(merged(domain, self.estimator.domain), self.estimator.adjacency) or domain
        plan = self._planned(candidates, Setting(facts, domain.n, domain.d, domain.feature_names))
        estimators.remember(self, promised=facts)
        return plan

    def _planned(self, candidates: Sequence[Candidate], setting: Setting) -> SearchPlan:
        """Plan with the public facts."""
        n = setting.n_rows
        share, refit = number("share", self.share, above=0, most=1), flag("refit", self.refit)
        if refit and share == 1:
            raise InvalidParameter("share = 1 leaves nothing to fit with.", fix="a smaller share, or refit=False.")
        epsilon, delta = check_budget(self.epsilon, self.delta, n)
        return plan_search(
            [partial(candidate.plan, setting=setting) for candidate in candidates],
            epsilon=epsilon,
            delta=delta,
            n_rows=n,
            n_validation=len(self._split(n)[1]),
            adjacency=setting.adjacency,
            share=share if refit else 1.0,
            scores=choice("scores", self.scores, ["best", "all", None]),
        )

    def _candidates(self, table: Any) -> list[Candidate]:
        """All combinations of parameters, each with its pipeline, in which columns of the table have names."""
        if not isinstance(self.estimator, Pipeline):
            kind = type(self.estimator)
            what = f"estimator must be a ppdp.Pipeline, got {kind.__module__.partition('.')[0]}'s {kind.__name__}."
            fix = "ppdp.Pipeline.from_sklearn(estimator, ranges=..., classes=...) makes one of scikit-learn's."
            raise InvalidParameter(what, fix=fix)
        for name in ("ledger", "random_state", "dataset"):
            if getattr(self.estimator, name) is not None:
                what = f"{name} has no effect inside a search."
                raise InvalidParameter(what, fix=f"set it on {type(self).__name__}.", parameter=name)
        regression = is_regressor(self.estimator)
        usual = "neg_mean_absolute_error" if regression else "accuracy"
        named = isinstance(self.scoring, str | None) and self.scoring in (None, usual)
        if not (named or callable(self.scoring)):
            what = f"scoring must be a function of one answer and one prediction, or {usual!r}, which is the default."
            raise InvalidParameter(what, fix=own_score(regression=regression), parameter="scoring")
        estimators.check_kinds(self)
        return candidates_of(self.estimator, self.param_grid, self.scoring, table)

    def _split(self, n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Positions of training and validation rows: a function of public numbers."""
        size = number("test_size", self.test_size, above=0, most=1)
        held_out = math.ceil(size * n)
        if not 0 < held_out < n:
            raise InvalidParameter("test_size leaves no rows to train on.", fix="a usual value is 0.25.")
        order = np.random.default_rng(integer("split_state", self.split_state, least=0)).permutation(n)
        return np.sort(order[held_out:]), np.sort(order[:held_out])

    @discreet
    def fit(self, X: Any, y: Any = None, **params: Any) -> PrivateSearchCV:
        """Search on private rows; if it fails, what was reserved counts as spent.

        Parameters
        ----------
        X : array, pandas, polars or Arrow table of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,)
            Private labels or targets.
        **params
            ``sample_weight``, as :meth:`Pipeline.fit` takes it, but for names of columns: private weights of the losses
            that candidates learn from. Scores do not count them.
        """
        estimators.begin_fit(self)
        given = weights_of(params, getattr(self.estimator, "steps", ()))
        candidates = self._candidates(X)
        estimators.check_account(self)
        declared = with_adjacency(self.estimator.domain, self.estimator.adjacency)
        searched(declared)  # first, for where it is refused not even the number of rows is public
        steps = checked_steps(self.estimator, X)
        X = as_texts(steps.all[0][1], X)
        table, names = estimators.form_of(self, X, steps.coded, texts=takes_texts(steps.all[0][1]))
        labels = validation.check_labels(table, y, self)
        weights = check_weights(table, given, declared or Domain())
        warn_of_names(X, steps.given, {"y": y, "sample_weight": given})
        weights = None if weights is None else cells(weights)
        setting = Setting(declared, table.shape[0], table.shape[1], names)
        noise = Noise(self.random_state)
        check_matches_plan(estimators.state_of(self).promised, declared or Domain())
        facts, _ = facts_of(self.estimator, steps, self.estimator.domain, shape=table.shape, names=names)
        check_matches_plan(estimators.state_of(self.estimator).promised, facts)
        validation.check_classes(labels, () if steps.regression else facts.classes or ())
        with before_rows():
            plan = self._planned(candidates, setting)
        if plan.epsilon < self.epsilon:
            warnings.warn(lowered(self.epsilon, self.delta, plan.epsilon), NoiseWarning, stacklevel=outside())
        for candidate, spend in zip(candidates, plan.fits) if issparse(table) else ():
            check_sparse_plan(candidate.plan(setting.n_rows, spend.epsilon, spend.delta, setting))
        charged = self._charge(plan)
        with charged.settling(), at_step("search"), warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            model = self._run(candidates, plan, setting, table, (cells(labels), weights), noise)
        if model is not None:
            self._certify(model, charged)
        for words, kind in dict.fromkeys((str(one.message), one.category) for one in raised):
            if kind is NoiseWarning:
                of = f"a fit of this search, which divides epsilon = {self.epsilon:g} by {len(candidates)} candidates"
                words = f"{of}: {words} Fewer candidates, or a larger epsilon of the search, leave more to each."
            if kind in WARNINGS:  # now, since one that is an error must not end what is paid for
                warnings.warn(words, kind, stacklevel=outside())
        warn_of_order(X, self.estimator.on_invalid, {"y": y, "sample_weight": given})
        return self

    def _charge(self, plan: SearchPlan) -> FitCharge:
        """Charge a ledger with everything at once, or count it, before any value is looked at."""
        unit = Adjacency.replace(plan.rows_per_unit)
        cost = FitCost(plan.epsilon, plan.delta, plan.loss, plan.loss.failure, plan.allowance, unit)
        label = f"search over {len(plan.fits)}: " + " > ".join(name for name, _ in self.estimator.steps)
        return charge(self.ledger, cost, dataset=self.dataset, label=label)

    def _certify(self, model: Pipeline, charged: FitCharge) -> None:
        """The certificate of everything, and the chosen model with that of its own part."""
        issued = {**charged.issued(self.summary_.delta), **issuer_words(model)}
        whole = whole_search(model.certificate_, self.summary_, issued)
        self.certificate_ = whole
        self.best_estimator_ = _certified(model, part_of_search(model.certificate_, whole, len(self.summary_.outcomes)))
        self.best_estimator_.set_params(ledger=self.ledger, dataset=self.dataset)
        estimators.remember(self.best_estimator_, charged=charged)
        if hasattr(model, "classes_"):
            self.classes_ = model.classes_

    def _run(
        self,
        candidates: Sequence[Candidate],
        plan: SearchPlan,
        setting: Setting,
        table: Any,
        beside: tuple[NDArray[Any], NDArray[Any] | None],
        noise: Noise,
    ) -> Pipeline | None:
        """Fits, choice and refit, which is returned; all that is kept was released. ``beside``: labels, weights."""
        seeds = _seeds(self.random_state, len(candidates) + 1)
        facts, sums = self._scored(candidates, plan, setting, table, beside, seeds)
        passed = np.flatnonzero(~np.isnan(sums))
        if not passed.size:
            raise PrivacyRefusal("no candidate passed its gate.", fix="unconditional or noisy stages, or more rows.")
        chosen, noisy = select(sums[passed], plan.selection, noise)
        best = int(passed[chosen])
        model = None
        if self.refit:
            refit = plan.refits[best]
            facts.append(candidates[best].plan(setting.n_rows, refit.epsilon, refit.delta, setting))
            model = candidates[best].fit(refit, setting, table, beside, seeds[-1])
        self.best_index_, self.best_params_ = best, dict(candidates[best].params)
        outcomes = np.where(np.isnan(sums), "refused", "released")
        self.cv_results_: dict[str, Any] = {
            "params": [dict(candidate.params) for candidate in candidates],
            "outcome": outcomes,
        }
        if self.scores == "all":
            released = np.full(len(candidates), np.nan)
            released[passed] = noisy
            self.cv_results_["noisy_test_score"] = released
        if self.scores is not None:
            self.best_score_ = float(noisy[chosen if self.scores == "all" else 0])
        invalid = "error" if any(c.pipeline.on_invalid == "error" for c in candidates) else "repair"
        status, reasons = certificate_status(
            sorted({why for fit_plan in facts for why in fit_plan.reasons}), seeded=noise.seeded
        )
        self.summary_ = SearchSummary(
            plan=plan,
            status=status,
            reasons=reasons,
            parameters=tuple(self.cv_results_["params"]),
            outcomes=tuple(outcomes.tolist()),
            best_index=best,
            dataset=None if self.dataset is None else dataset_name(self.dataset),
            invalid=invalid,
        )
        return model

    def _scored(
        self,
        candidates: Sequence[Candidate],
        plan: SearchPlan,
        setting: Setting,
        table: Any,
        beside: tuple[NDArray[Any], NDArray[Any] | None],
        seeds: Sequence[int | None],
    ) -> tuple[list[Plan], Array]:
        """Plan of every candidate, and the sum of its scores on the rows held out, which is private; NaN if refused."""
        labels, weights = beside
        train, held_out = self._split(len(labels))
        some = labels[train], None if weights is None else weights[train]
        facts = [c.plan(len(train), spend.epsilon, spend.delta, setting) for c, spend in zip(candidates, plan.fits)]
        sums = np.full(len(candidates), np.nan)
        for i, (candidate, spend, fit_plan) in enumerate(zip(progress(candidates, "candidates"), plan.fits, facts)):
            try:
                pipeline = candidate.fit(spend, setting, _rows(table, train), some, seeds[i])
            except PrivacyRefusal:
                continue
            predicted = Predictor(pipeline, private=True).answer("predict", _rows(table, held_out))
            scored = row_scores(
                fit_plan.domain,
                labels[held_out],
                predicted,
                self.scoring if callable(self.scoring) else None,
                regression=is_regressor(self),
            )
            sums[i] = column_sums(Rows.of(scored[:, None]), 1.0)[0]
        return facts, sums

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError as error:
            if vars(self).get("refit") is not False or not (hasattr(type(self), name) or name in _OF_A_MODEL):
                raise
            raise AttributeError(f"{error}. Fix: refit=True: without it a search has no model.") from None

    def _has_method(self, method: str) -> bool:
        getattr(getattr(self, "best_estimator_", self.estimator), method)  # whose error says that it does not
        return bool(self.refit) or not hasattr(self, "summary_")

    def _predict_with(self, method: str, X: Any, *y: Any) -> Any:
        check_is_fitted(self)
        return getattr(self.best_estimator_, method)(X, *y)

    def _exportable(self) -> Pipeline:
        """The chosen model with the certificate of the whole search."""
        check_is_fitted(self, "certificate_")
        return _certified(self.best_estimator_, self.certificate_)

    def __getstate__(self) -> dict[str, Any]:
        state = super().__getstate__()
        return {**state, "estimator": estimators.as_part(self.estimator)}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "summary_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, BaseEstimator):
            inner = self.estimator.__sklearn_tags__()
            estimators.same_kind(tags, inner)
            tags.input_tags.allow_nan = inner.input_tags.allow_nan
        tags.target_tags.required = True
        return tags


_OF_A_MODEL = "best_estimator_", "certificate_"


def _certified(model: Pipeline, certificate: Certificate) -> Pipeline:
    """A fitted pipeline with another certificate."""
    copied = copy.copy(model)
    copied.certificate_, copied.release_ = certificate, replace(model.release_, certificate=certificate)
    return copied


def _rows(table: Any, positions: NDArray[np.intp]) -> Any:
    return table.iloc[positions] if hasattr(table, "iloc") else table[positions]


def _seeds(random_state: Any, count: int) -> list[int | None]:
    """Seeds for the fits of a search that is seeded."""
    if random_state is None:
        return [None] * count
    return [int(seed) for seed in np.random.default_rng(random_state).integers(2**31, size=count)]
