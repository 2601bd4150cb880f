"""The pipeline: parameters, what is known before a fit, a fit, and what it is for."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from ppdp.core.adjacency import Adjacency
from ppdp.core.boundary import discreet
from ppdp.core.checks import path_of
from ppdp.core.domain import Domain, check_domain
from ppdp.core.keywords import answering
from ppdp.data.engine.registry import opened_source
from ppdp.data.public_facts import merged
from ppdp.data.rows import Array
from ppdp.data.weights import weights_of
from ppdp.exceptions import ExportError, InvalidInput
from ppdp.pipeline.estimator import PrivateEstimator, begin_fit, if_predicts, remember
from ppdp.pipeline.expected import FitTime, expected_errors, fit_time
from ppdp.pipeline.fit import adjacency_of, fit_pipeline, fit_simulated, plan_of
from ppdp.pipeline.forecast import EPSILONS, Forecast, forecast
from ppdp.pipeline.named_steps import NamedSteps
from ppdp.pipeline.planning.baselines import Comparison
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.prediction import Predictor
from ppdp.privacy.ledger.ledger import Ledger


@dataclass(eq=False, repr=False)
class Pipeline(PrivateEstimator, NamedSteps):
    """Pre-processing and a private mechanism, with one end-to-end (epsilon, delta).

    Parameters
    ----------
    steps : list of (name, step)
        Transformers of :mod:`ppdp.transformers`; the last step may be one of :mod:`ppdp.mechanisms`. A
        pipeline that ends in a transformer releases its statistics. Steps of scikit-learn are replaced as by
        :meth:`from_sklearn`; ``conversion`` lists the changes. One without a counterpart is refused, with a fix.
    epsilon, delta : float, default=1.0 and 1e-6
        The guarantee for everything that leaves. epsilon is at most 500. delta must be below one over the number of
        rows, so the default is refused from a million rows on; 0 is allowed where nothing needs a delta.
    domain : Domain, optional
        Public facts; completed from the steps and from the shape and schema of X.
    adjacency : Adjacency, optional
        Which datasets are neighbours; the domain's, else one replaced row.
    gate : {"auto", "gaussian", "laplace", "discrete-laplace", None}, default="auto"
        The noise of the test of all conditions of the chosen route; "auto" takes what leaves the mechanism the least
        noise. None assumes the conditions, and the certificate says CONDITIONAL.
    on_invalid : {"error", "repair"}, default="error"
        What to do with undeclared NaN, infinity and unknown labels: stop (the certificate says that exceptions are not
        covered), or repair row by row (covered).
    diagnostics : {"auto", None}, default="auto"
        Whether noisy shares of the rows that are altered before anything is learned (repaired, clipped, of no declared
        category) are released, for 1.5 % of mu², and with them of how many rows of each declared class a classifier
        predicts right. They stand on the certificate; a share clearly above a tenth, and a classifier that hardly
        tells classes apart, is a :class:`~ppdp.exceptions.DiagnosticWarning`.
    budget : mapping, optional
        Shares of mu² for "gate" and "release", instead of the public rule.
    ledger : Ledger, optional
        Where every fit is charged before it looks at the rows.
    dataset : str, optional
        Public name of the private data, for ledger and certificate.
    purpose, responsible : str, optional
        What the release is for and who answers for it: public words (at most 500 letters) that nothing proves.
    sources : str or mapping, optional
        Where declared facts come from (a codebook, a regulation): words for all of them, or by name of a fact
        (``"classes"``), a column or a step. They stand beside the facts on the certificate.
    statements : mapping, optional
        What else you state beside the claim. In words: ``"run_by"``, ``"prediction"`` (what labels mean),
        ``"accuracy"`` (on other people), ``"justification"`` (why this epsilon), ``"own_values"`` (how you know that
        each value is of the person of its row alone), ``"other_releases"`` (what else of these people got out),
        ``"contact"``, ``"legal_basis"``, ``"consent"``, ``"ethics_approval"``, ``"retention"`` (of the rows),
        ``"remarks"``, ``"limit_set_by"``, ``"signed_by"`` (whose key), ``"software"`` (where this version of ppdp is to
        be had, and its checksum), ``"status_list"`` (where withdrawn certificates are listed, "and its .sig" if that is
        signed) and ``"attachments_hold"``. And ``"review_by"`` (a day),
        ``"supersedes"`` (an earlier certificate or its digest), ``"attachments"`` (paths of files, of which name and
        digest are kept).
    random_state : int, RandomState instance or None, default=None
        Seeds all noise. For tests only: the certificate then says SEEDED.

    Attributes
    ----------
    certificate_ : Certificate
        What is guaranteed.
    release_ : Released
        Everything that left the rows.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features,)
        Column names, if X has any.
    classes_ : ndarray of shape (n_classes,)
        Labels, if the last step is a classifier.

    Notes
    -----
    After ``fit``, ``pipe["name"]`` and ``named_steps`` give the released steps, which hold public and released
    values only. ``steps`` stays as configured.

    Examples
    --------
    >>> import numpy as np
    >>> from ppdp.mechanisms import GaussianMechanism
    >>> from ppdp.transformers import Deduplicator, NormClipper
    >>> pipe = make_pipeline(NormClipper(), Deduplicator(), GaussianMechanism(), epsilon=1.0, delta=1e-6)
    >>> pipe.fit(np.linspace(-1, 1, 300)[:, None]).certificate_.status
    'UNCONDITIONAL'
    """

    __metadata_request__fit = {"sample_weight": None}  # noqa: RUF012  for scikit-learn's routing, which names it

    steps: Sequence[tuple[str, Any]]
    _: KW_ONLY
    epsilon: float = 1.0
    delta: float = 1e-6
    domain: Domain | None = None
    adjacency: Adjacency | None = None
    gate: str | None = "auto"
    on_invalid: str = "error"
    diagnostics: str | None = "auto"
    budget: Mapping[str, float] | None = None
    ledger: Ledger | None = None
    dataset: str | None = None
    purpose: str | None = None
    responsible: str | None = None
    sources: str | Mapping[str, str] | None = None
    statements: Mapping[str, Any] | None = None
    random_state: Any = None

    def plan(self, domain: Domain | None = None) -> Plan:
        """Everything that is decided before any data: routes, bounds, noise.

        Parameters
        ----------
        domain : Domain, optional
            Public facts beside the pipeline's own; together they need ``n_rows``, and ``n_features`` or
            ``feature_names`` where the first step does not name all columns. A fit with other facts than these (those
            of its table apart) is refused: what was priced is what is fitted. A plan without facts lifts that.
        """
        check_domain(domain)
        plan = plan_of(self, merged(domain, self.domain))
        remember(self, promised=None if domain is None else plan.domain)
        return plan

    @property
    def neighbours(self) -> Adjacency:
        """Which datasets are neighbours, whoever said so."""
        return adjacency_of(self)

    @discreet
    def fit(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> Pipeline:
        """Run the plan on private rows, and certify what leaves.

        Parameters
        ----------
        X : array, pandas, polars or Arrow table of shape (n_samples, n_features), or rows that are read in blocks
            Private rows. A path, a glob or a folder of Parquet or Arrow files, a ``pyarrow.dataset.Dataset`` or a
            ``RecordBatchReader`` is read in blocks and never held in memory.
        y : array-like of shape (n_samples,) or str, optional
            Private labels, if the last step needs them, or the name of their column in X, which is then no feature.
        groups : array-like of shape (n_samples,) or str, optional
            Whose each row is, for ``Adjacency.user_level``: private ids, or the name of their column in X as for ``y``.
            Whole numbers, text, UUIDs, dates or addresses are ids, equal to their texts; rows of equal ids are one
            person's. A row without an id is an invalid value: an error, or left out where ``on_invalid="repair"``.
        **params
            ``sample_weight``, also as ``<name of the last step>__sample_weight``: private weights, array-like of shape
            (n_samples,), or the name of their column in X as for ``y``. They need ``Domain(max_weight=...)``, to which
            they are clipped; the loss of every row counts by its weight, and stages in front do not look at it. A
            weight below 0 or that is none is an invalid value: an error, or 0 where ``on_invalid="repair"``.

        Raises
        ------
        PpdpError
            See :mod:`ppdp.exceptions`; no certificate is issued. Shape, schema and everything that you declare are
            checked first and cost nothing. Cells are looked at behind the ledger's reservation: whatever is raised
            then, also for a value that is no number, counts as spent. No variable of a frame leaves with it.
        """
        begin_fit(self)
        fit_pipeline(self, X, y, groups, weights_of(params, self.steps))
        return self

    @if_predicts("transform")
    @answering
    @discreet
    def fit_transform(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> Any:
        """Fit, then map the same rows with released statistics: private rows, which no certificate covers."""
        if hasattr(X, "columns") and (isinstance(y, str) or isinstance(groups, str)):
            what = "labels and ids are no features, and fit_transform maps all columns of X."
            raise InvalidInput(what, fix="fit(X, y=..., groups=...) by names, then transform of the features alone.")
        return Predictor(self.fit(X, y, groups, **params), private=True).transform(X)

    @if_predicts("transform")
    @answering
    @discreet
    def transform(self, X: Any) -> Any:
        """Map rows with released statistics only.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features), or rows that are read in blocks
            Rows; they need not be the private ones. Of rows in blocks the columns of the fit are read, and what they
            are mapped to is held in memory: :meth:`write_parquet` holds little.
        """
        return Predictor(self).transform(X)

    @if_predicts("transform")
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the output columns.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names of the columns that come in. Default: those of the fit, else x0, x1 and so on.
        """
        return Predictor(self).names_out(input_features)

    @discreet
    def write_parquet(
        self, X: Any, path: str | os.PathLike[str], *, method: str | None = None, keep: Sequence[str] = ()
    ) -> None:
        """Write what a method gives for rows that are read in blocks, as a new folder of Parquet files.

        Nothing is held in memory but a few blocks. The folder is there whole or not at all: until all rows are written,
        its parts are in a hidden one beside it. The same call after a killed run, with this pipeline or the one that
        :func:`ppdp.load` gives, writes what is missing; after another release, other rows or rows that somebody wrote
        to, it begins again.

        Parameters
        ----------
        X : path, glob, folder, pyarrow.dataset.Dataset or RecordBatchReader
            Raw rows, in files of Parquet or Arrow. The columns of the fit are read by their names.
        path : path-like
            The new folder. Only you can read what is in it, for it tells of every row what no certificate covers.
        method : {"transform", "predict", "predict_proba", "decision_function"}, optional
            Default: the first of them that the pipeline has; one that ends in a model has no "transform".
        keep : sequence of str
            Columns that are copied as they are, such as labels and numbers of rows.

        Raises
        ------
        DomainMismatch, InvalidInput, InvalidValue
            If a column or a cell is not what the fit declared, or X is in memory or elsewhere.
        ExportError
            If something else is at the path, or it cannot be written.
        RowsChanged
            If somebody writes to the rows meanwhile.
        """
        from ppdp.pipeline.release.parquet import write_parts

        predictor = Predictor(self)
        if not hasattr(self, "certificate_"):
            fix = "write from the whole pipeline, or what transform gives for some rows after the others."
            raise ExportError("a slice of a pipeline has no certificate of its own.", fix=fix)
        source = opened_source(X)
        if source is None:
            raise InvalidInput("X is in memory.", fix="transform or predict, or the path of files in Parquet.")
        with source:
            keep = (keep,) if isinstance(keep, str) else tuple(keep)
            write_parts(self, predictor, source, path_of("path", path), method, keep)

    @discreet
    def project(self, X: Any) -> Array:
        """New rows as they come to the mechanism, through public and released stages; no noise, and nothing is spent.

        Beside released rows (``release_.table``) they are queries.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            Raw rows, as in ``fit``. They are not covered by the certificate.

        Raises
        ------
        UnsupportedOrder
            If the last step is no mechanism, or a stage was fitted exactly and nothing was released that would map new
            rows.
        """
        return Predictor(self).queries(X)

    def compare(self, domain: Domain | None = None) -> Comparison:
        """What the usual claims are worth beside this pipeline's plan, before any data: a table and a picture.

        Parameters
        ----------
        domain : Domain, optional
            Public facts, as for ``plan``.
        """
        from ppdp.pipeline.planning.baselines import compare

        return compare(self, domain)

    def forecast(
        self,
        domain: Domain | None = None,
        *,
        epsilons: Sequence[float] = EPSILONS,
        repeats: int = 3,
        random_state: int = 0,
        simulate: Callable[[Any, int], tuple[Any, Any]] | None = None,
    ) -> Forecast:
        """What noise costs in accuracy at several epsilons, before any data: from fits of simulated rows, at no cost.

        Rows are drawn from what is declared (within ranges, among categories, inside the norm), in independent columns;
        a target follows a weighted sum of them. Real rows may be easier or harder, so compare a score with that without
        noise, and expect neither of real rows; ``simulate`` takes rows that look like yours.

        Parameters
        ----------
        domain : Domain, optional
            Public facts, as for ``plan``.
        epsilons : sequence of float
            Where to look.
        repeats : int, default=3
            Runs at every epsilon, with the same rows and other noise.
        random_state : int, default=0
            Seed of rows and noise.
        simulate : callable, optional
            ``simulate(rng, n) -> (X, y)``, public rows; y is None without labels. Never draw from private ones.

        Raises
        ------
        NoRoute
            If none of these epsilons has a route, or simulated rows do not pass the gate.
        """
        return forecast(self, fit_simulated, domain, epsilons, repeats, random_state, simulate)

    def fit_time(self, domain: Domain | None = None) -> FitTime:
        """About how long a fit will take here, before any data: the plan is run on generated rows, for some seconds.

        Rows are as :meth:`forecast` draws them, two numbers of them, at most some 100,000; what more rows take follows.
        Time that training saves by ending early is that of these rows. Nothing is charged.

        Parameters
        ----------
        domain : Domain, optional
            Public facts, as for ``plan``.
        """
        return fit_time(self, domain)

    def expected_errors(self, domain: Domain | None = None, *, alpha: float = 0.05) -> Any:
        """How far noise will move every number that is released, before any row is seen (``docs/theory/intervals.md``).

        Parameters
        ----------
        domain : Domain, optional
            Public facts beside the pipeline's own, as for :meth:`plan`.
        alpha : float, default=0.05
            Noise is more than the half width with this probability, about or at most.

        Returns
        -------
        DataFrame
            A line for every number: ``step``, ``statistic``, ``column``, ``standard_error``, ``half_width``, the same
            in raw units where public maps lead back, ``note``. NaN where it depends on the rows; the note says what is
            known of it, and :meth:`forecast` rehearses models.
        """
        return expected_errors(self, domain, alpha)

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError as error:
            raise self._lacking(name, error) from None

    def _has_method(self, method: str) -> bool:
        getattr(self._own()[-1][1], method)  # whose error says that it does not
        return True

    @discreet
    def _predict_with(self, method: str, X: Any, *y: Any) -> Any:
        return Predictor(self).answer(method, X, *y)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "twins_")

    def _exportable(self) -> Pipeline:
        check_is_fitted(self)
        return self


def make_pipeline(*steps: Any, **parameters: Any) -> Pipeline:
    """Pipeline with names made from the classes of the steps.

    Parameters
    ----------
    *steps
        Transformers and, last, a mechanism.
    **parameters
        Parameters of :class:`Pipeline`.
    """
    kinds = [(step if isinstance(step, type) else type(step)).__name__.lower() for step in steps]
    names = [kind if kinds.count(kind) == 1 else f"{kind}-{kinds[: i + 1].count(kind)}" for i, kind in enumerate(kinds)]
    return Pipeline(list(zip(names, steps)), **parameters)
