"""The pipeline: parameters, a plan, one execution, a certificate."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator, clone, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ppdp.bounds.altered import LABEL, TARGET
from ppdp.certificate.altered import alerts
from ppdp.certificate.document import Certificate
from ppdp.certificate.record import Record, read_as, written
from ppdp.core.adjacency import Adjacency
from ppdp.core.boundary import at_step, before_rows, discreet, outside
from ppdp.core.checks import choice
from ppdp.core.domain import Domain, check_domain
from ppdp.core.keywords import answering
from ppdp.core.progress import unseen
from ppdp.data import intake as entrance
from ppdp.data.beside import warn_of_names, warn_of_order
from ppdp.data.deferred_input import Delivered, delivered
from ppdp.data.facts import Fact, check_beside_names, check_promised, complete, merged, of_neighbours
from ppdp.data.privacy_ids import check_groups, persons_of
from ppdp.data.rows import Rows
from ppdp.data.slot_assignment import placed, standing
from ppdp.data.weights import check_some_weight, check_weighing, check_weights, heaviest, weights_of
from ppdp.exceptions import (
    DiagnosticWarning,
    ImpossibleBudget,
    InvalidInput,
    InvalidParameter,
    NoiseWarning,
    NoRoute,
    PpdpError,
    PrivacyRefusal,
    UnsupportedOrder,
)
from ppdp.interop.sklearn import FromSklearn
from ppdp.pipeline.composition import Composition, check_steps, check_unbounded
from ppdp.pipeline.estimator import PrivateEstimator
from ppdp.pipeline.execute import Outcome, execute
from ppdp.pipeline.inferring import Inferring
from ppdp.pipeline.issue import certified, rehearse, steps_of
from ppdp.pipeline.planning.advice import Advice
from ppdp.pipeline.planning.diagnostics import Entrance
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.planning.solve import Solver, make_plan
from ppdp.pipeline.release.single_class import single_class
from ppdp.pipeline.release.table import Released
from ppdp.pipeline.release.twins import released_twins
from ppdp.pipeline.sparse import check_sparse_plan
from ppdp.pipeline.streams import check_streams
from ppdp.privacy.gate import GATE_KINDS
from ppdp.privacy.ledger.fits import Charge, Cost, charge, open_ledger
from ppdp.privacy.ledger.ledger import Ledger
from ppdp.privacy.noise.sampler import Noise


class Pipeline(Inferring, PrivateEstimator, Composition, FromSklearn, BaseEstimator):
    """Pre-processing and a private mechanism, with one end-to-end (epsilon, delta).

    Parameters
    ----------
    steps : list of (name, step)
        Transformers of :mod:`ppdp.transformers`; the last step may be one of :mod:`ppdp.mechanisms`. A
        pipeline that ends in a transformer releases its statistics. For steps of scikit-learn their twins are run, as
        :meth:`from_sklearn` makes them and ``conversion`` tells; what has none is refused, with what to write instead.
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
    invalid : {"error", "repair"}, default="error"
        What to do with undeclared NaN, infinity and unknown labels: stop (the certificate says that exceptions are not
        covered), or repair row by row (covered).
    diagnostics : {"auto", None}, default="auto"
        Whether noisy shares of the rows that are altered before anything is learned (repaired, clipped, of no declared
        category) are released, for 1.5 % of mu² where something can be altered. They stand on the certificate, and a
        share clearly above a tenth is a :class:`~ppdp.exceptions.DiagnosticWarning`.
    budget : mapping, optional
        Shares of mu² for "gate" and "release", instead of the public rule.
    ledger : Ledger, optional
        Where every fit is charged before it looks at the rows.
    dataset : str, optional
        Public name of the private data, for ledger and certificate.
    purpose, responsible : str, optional
        What the release is for and who answers for it: public words (at most 500 letters) that nothing proves.
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
    After ``fit``, ``pipe["name"]`` and ``named_steps`` give released twins: they hold public and released
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

    def __init__(
        self,
        steps: Sequence[tuple[str, Any]],
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        domain: Domain | None = None,
        adjacency: Adjacency | None = None,
        gate: str | None = "auto",
        invalid: str = "error",
        diagnostics: str | None = "auto",
        budget: Mapping[str, float] | None = None,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        purpose: str | None = None,
        responsible: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.steps = steps
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.adjacency = adjacency
        self.gate = gate
        self.invalid = invalid
        self.diagnostics = diagnostics
        self.budget = budget
        self.ledger = ledger
        self.dataset = dataset
        self.purpose = purpose
        self.responsible = responsible
        self.random_state = random_state

    def plan(self, domain: Domain | None = None) -> Plan:
        """Everything that is decided before any data: routes, bounds, noise.

        Parameters
        ----------
        domain : Domain, optional
            Public facts beside the pipeline's own; together they need ``n_rows``, and ``n_features`` or
            ``feature_names``. A fit with other facts than these (those of its table apart) is refused: what was priced
            is what is fitted. A plan without facts lifts that.
        """
        check_domain(domain)
        plan = self.plan_for(merged(domain, self.domain))
        self.mark(promised=None if domain is None else plan.domain)
        return plan

    def plan_for(self, declared: Domain | None, **seen: Any) -> Plan:
        """Plan with the declared facts and what may be ``seen`` of the data: shape, names, classes."""
        stages, mechanism = self.checked_steps()
        full, facts = self.facts_for(declared, **seen)
        adding, altering, begun = self._charges_a_ledger(), self._altering(mechanism), time.monotonic()
        solver = Solver(mechanism, full, facts, self.epsilon, self.delta, self.gate, self.budget, adding, altering)
        try:
            plan = make_plan(solver, stages)
        except (NoRoute, ImpossibleBudget, UnsupportedOrder) as error:
            error.advice = self._advice(declared, full, False, begun, **seen)
            raise
        return replace(plan, advice=self._advice(declared, full, True, begun, **seen)) if plan.strained else plan

    def _altering(self, mechanism: tuple[str, Any] | None) -> Entrance:
        """What may be altered at the entrance, and whether anybody wants to know."""
        labels = None if mechanism is None or not mechanism[1].needs_y else TARGET if is_regressor(self) else LABEL
        balances = mechanism is not None and mechanism[1].balances
        return Entrance(self.invalid == "repair", labels, told=self.diagnostics is not None, balances=balances)

    def _advice(
        self, declared: Domain | None, full: Domain, route: bool, begun: float, read_classes: Any = None, **_: Any
    ) -> Advice | None:
        """Advice for these steps as they are now; none where classes were read, for plans then know private labels."""
        if read_classes is not None:
            return None
        table = {name: getattr(full, name) for name in ("n_rows", "n_features", "feature_names")}
        steps = [(name, clone(step)) for name, step in self.steps]
        twin = type(self)(**{**super().get_params(deep=False), "steps": steps})
        return Advice(
            twin, (declared or Domain()).but(**table), route, time.monotonic() - begun, run=type(self)._rehearsed
        )

    def facts_for(self, declared: Domain | None, **seen: Any) -> tuple[Domain, tuple[Fact, ...]]:
        """The whole domain of such a plan, and from where its facts are."""
        stages, mechanism = self.checked_steps()
        domain = of_neighbours(declared, self.adjacency)
        check_unbounded(domain, stages)
        check_weighing(domain or Domain(), stages, mechanism)
        return complete(domain, stages, mechanism and mechanism[1], **seen)

    @property
    def neighbours(self) -> Adjacency:
        """Which datasets are neighbours, whoever said so."""
        self._check_kinds(domain=Domain, adjacency=Adjacency)
        return (of_neighbours(self.domain, self.adjacency) or Domain()).adjacency

    def _charges_a_ledger(self) -> bool:
        return self.ledger is not None or open_ledger() is not None

    def checked_steps(self) -> tuple[list[tuple[str, Any]], tuple[str, Any] | None]:
        """Stages and mechanism, after the pipeline's own parameters."""
        choice("gate", self.gate, ["auto", *GATE_KINDS, None])
        choice("invalid", self.invalid, ["error", "repair"])
        choice("diagnostics", self.diagnostics, ["auto", None])
        self._check_kinds(domain=Domain, adjacency=Adjacency)
        return check_steps(self.own_steps(), type(self))

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
            Whose each row is, for ``Adjacency.person``: private ids, or the name of their column in X as for ``y``.
            Whole numbers, text, UUIDs, dates or addresses are ids, equal to their texts; rows of equal ids are one
            person's. A row without an id is an invalid value: an error, or left out where ``invalid="repair"``.
        **params
            ``sample_weight``, also as ``<name of the last step>__sample_weight``: private weights, array-like of shape
            (n_samples,), or the name of their column in X as for ``y``. They need ``Domain(max_weight=...)``, to which
            they are clipped; the loss of every row counts by its weight, and stages in front do not look at it. A
            weight below 0 or that is none is an invalid value: an error, or 0 where ``invalid="repair"``.

        Raises
        ------
        PpdpError
            See :mod:`ppdp.exceptions`; no certificate is issued. Shape, schema and everything that you declare are
            checked first and cost nothing. Cells are looked at behind the ledger's reservation: whatever is raised
            then, also for a value that is no number, counts as spent. No variable of a frame leaves with it.
        """
        weights = weights_of(params, self.steps)
        with delivered(X, y, groups, weights) as given:
            self._check_beside(given[0], X, y, groups, weights)
            beside = dict(zip(("y", "groups", "sample_weight"), given[1:]))
            warn_of_names(given[0], self.steps, beside)
            self._fit(*given)
            warn_of_order(given[0], self.invalid, beside)
            return self

    def _check_beside(self, received: Any, X: Any, *beside: Any) -> None:
        """Refuse positions of columns where labels or ids are taken out of the table by name."""
        taken = [name for name in beside if isinstance(name, str)]
        if taken and type(X).__name__ != "LazyFrame":
            self._forget()
            names = getattr(X, "column_names", getattr(X, "columns", ()))
            if isinstance(received, Delivered):
                names = received.source.schema.names
            last = set(list(names)[-len(taken) :]) == set(taken)  # then the others stay in their places
            stages, mechanism = self.checked_steps()
            steps = [] if last else [*stages, *([] if mechanism is None else [mechanism])]
            check_beside_names(self.neighbours, steps, repr(taken[0]))

    def _fit(self, X: Any, y: Any, groups: Any, weights: Any) -> None:
        plan, X, labels, weights = self._received(X, y, groups, weights)
        noise = Noise(self.random_state)
        if plan.strained or plan.epsilon < self.epsilon or plan.cautioned:
            told = " ".join(plan.warned())
            warnings.warn(told, NoiseWarning, stacklevel=outside())
        with before_rows():
            rehearse(self, plan, seeded=noise.seeded)
        charged = self._charge(plan)
        status, counts = "failed", True
        try:
            with ExitStack() as files:
                with at_step("entrance"), unseen(plan.domain.adjacency.hides_number):
                    plan, rows = self._rows(plan, X, labels, weights)
                    persons = persons_of(X, groups, self.invalid)
                    rows = files.enter_context(standing(rows, plan.domain, noise, persons))
                outcome = execute(plan, rows, noise)
            status = "released"
        except PpdpError as error:
            status = "refused" if isinstance(error, PrivacyRefusal) else "failed"
            counts = not isinstance(error, InvalidInput)
            raise (error if charged.ledger is None else error.charged()) from None
        finally:
            charged.settle(status, counts=counts)
        self._keep(plan, outcome, charged.issued(plan.delta), seeded=noise.seeded)
        self.mark(charged=charged)
        for alert in alerts(self.certificate_.record):
            warnings.warn(alert, DiagnosticWarning, stacklevel=outside())

    def _received(self, X: Any, y: Any, groups: Any, weights: Any = None) -> tuple[Plan, Any, Any, Any]:
        """The plan for these data, and the data, of which only the form was looked at."""
        self._refuse_bagging()
        self._forget()
        _, mechanism = self.checked_steps()
        self._refuse_to_owe()
        hidden = self.neighbours.hides_number
        X, names = self._form_of(X, self.coded, hides_number=hidden)
        check_groups(X, groups, self.neighbours)
        weights = check_weights(X, weights, self.domain or Domain())
        supervised = mechanism is not None and mechanism[1].needs_y
        labels = entrance.check_labels(X, y, self, hides_number=hidden) if supervised else None
        if isinstance(X, Delivered) and not supervised:
            X = replace(X, label=None)
        shape = X.shape
        with before_rows():
            plan = self.plan_for(self.domain, shape=shape, names=names)
        check_promised(self.marks.promised, plan.domain)
        if issparse(X):
            check_sparse_plan(plan)
        elif plan.found_ranges != set():
            entrance.check_released(X, plan.found_ranges, self.coded)
        if isinstance(X, Delivered):
            check_streams(plan, X.source)
        if plan.hopeless:
            error = NoRoute(
                f"no data could pass the gate of {', '.join(plan.hopeless)}, so a fit would only spend.",
                fix="statistics='auto', looser thresholds, more rows or a larger epsilon.",
            )
            error.advice = plan.advice
            raise error
        return plan, X, labels, weights

    def _charge(self, plan: Plan) -> Charge:
        """Charge a ledger, or count, before any value is looked at."""
        loss = plan.loss
        cost = Cost(plan.epsilon, plan.delta, loss, max(loss.failure, loss.gate), plan.allowance, plan.domain.adjacency)
        return charge(self.ledger, cost, dataset=self.dataset, label=" > ".join(name for name, _ in self.steps))

    def _rows(self, plan: Plan, table: Any, labels: Any, weights: Any = None) -> tuple[Plan, Any]:
        """Values within the declared domain, and the plan with classes if they had to be read from y."""
        if labels is not None and plan.domain.classes is None and not is_regressor(self):
            seen = {"shape": table.shape, "names": plan.domain.feature_names}
            classes = entrance.read_classes(table.classes() if isinstance(table, Delivered) else labels)
            if self._charges_a_ledger() and len(classes) > 2:
                raise InvalidParameter(
                    "more than two classes must be declared where a ledger is charged.",
                    fix="pass classes=(...) to the model.",
                )
            plan = self.plan_for(self.domain, **seen, read_classes=classes)
        read = entrance.Reader(
            plan.domain,
            self.learning,
            plan.domain.missing_rows > 0,
            self.invalid,
            is_regressor(self),
            None if plan.diagnostics is None else plan.diagnostics.marker,
        )
        if isinstance(table, Delivered):
            return plan, table.stream(read, as_numbers=self.learning is None)
        return plan, check_some_weight(read(table, labels, weights), self.invalid)

    def _rehearsed(self, X: Any, y: Any, noise: Noise) -> Pipeline:
        """A copy that is fitted on simulated rows: nothing is charged, and no certificate of it leaves."""
        twin = copy(self)
        everybody = np.arange(len(X)) if self.neighbours.cuts else None  # one row each
        plan, table, labels, weights = twin._received(X, y, everybody, heaviest(self.domain, X))
        with ExitStack() as files:
            plan, rows = twin._rows(plan, table, labels, weights)
            persons = persons_of(table, everybody, self.invalid)
            outcome = execute(plan, files.enter_context(standing(rows, plan.domain, noise, persons)), noise)
        twin._keep(plan, outcome, {}, seeded=noise.seeded)
        return twin

    def _keep(self, plan: Plan, outcome: Outcome, issued: Mapping[str, Any], *, seeded: bool) -> None:
        """Keep what was released, the twins and the certificate; nothing else."""
        arrays = {name: np.array(array, dtype=np.float64) for name, array in outcome.released.items()}
        for array in arrays.values():
            array.setflags(write=False)
        inference, certificate = certified(self, plan, arrays, issued, seeded=seeded, altered=outcome.altered)
        record = read_as(Record, certificate.to_dict())  # which was just written, so its form needs no check
        release = Released.of(record, arrays, inference, certificate)
        self.hold(release, record, steps_of(plan))
        label = single_class(record, self.twins_)
        if label is not None:
            said = replace(record, released=replace(record.released, single_class=label), digest="")
            self.certificate_ = Certificate.sealed(written(said))
            self.release_ = replace(release, certificate=self.certificate_, twins=tuple(self.twins_))

    def hold(self, release: Released, record: Record, steps: Sequence[tuple[str, Any]]) -> None:
        """Predict with a release, the one of this fit or one that was loaded; ``record`` is that of its certificate."""
        domain = record.entrance.domain
        self.twins_ = released_twins(record, steps, release.arrays)
        if hasattr(self.twins_[-1][1], "classes_"):
            self.classes_ = self.twins_[-1][1].classes_
        self.row_norm_, self.entry_bound_ = domain.get("row_norm"), domain.get("entry_bound")
        self.release_, self.certificate_ = replace(release, twins=tuple(self.twins_)), release.certificate

    def _leaving(self) -> Pipeline:
        check_is_fitted(self)
        return self

    @available_if(lambda self: self._answers("transform"))
    @answering
    @discreet
    def fit_transform(self, X: Any, y: Any = None, groups: Any = None, **params: Any) -> Any:
        """Fit, then map the same rows with released statistics: private rows, which no certificate covers."""
        if hasattr(X, "columns") and (isinstance(y, str) or isinstance(groups, str)):
            what = "labels and ids are no features, and fit_transform maps all columns of X."
            raise InvalidInput(what, fix="fit(X, y=..., groups=...) by names, then transform of the features alone.")
        return self.fit(X, y, groups, **params).transform(X)


def rows_to_fit(
    pipeline: Pipeline, X: Any, y: Any = None, groups: Any = None, noise: Noise | None = None
) -> tuple[Plan, Rows]:
    """What a fit would execute, and on which rows, which are private; nothing is charged, released or changed.

    No execution writes over these rows, so that there may be several. Where their number is private they stand in slots
    that are drawn by ``noise``, if that is given. Where rows have weights, all have the largest.
    """
    twin = copy(pipeline)
    plan, table, labels, weights = twin._received(X, y, groups, heaviest(pipeline.domain, X))
    with at_step("entrance"):
        plan, rows = twin._rows(plan, table, labels, weights)
        if noise is not None:
            rows = placed(rows, plan.domain, noise, persons_of(table, groups, twin.invalid))
    return plan, replace(rows, ours=False)


def make_pipeline(*steps: Any, **parameters: Any) -> Pipeline:
    """Pipeline with names made from the classes of the steps.

    Parameters
    ----------
    *steps
        Transformers and, last, a mechanism.
    **parameters
        Parameters of :class:`Pipeline`.
    """
    kinds = [type(step).__name__.lower() for step in steps]
    names = [kind if kinds.count(kind) == 1 else f"{kind}-{kinds[: i + 1].count(kind)}" for i, kind in enumerate(kinds)]
    return Pipeline(list(zip(names, steps)), **parameters)
