"""The pipeline: parameters, a plan, one execution, a certificate."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_regressor
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from ppdp.certificate.document import Certificate
from ppdp.certificate.share.files import hashed
from ppdp.core.boundary import AtStep, discreet
from ppdp.core.checks import choice
from ppdp.core.domain import Domain, check_domain
from ppdp.core.ladder import Ladder
from ppdp.data import intake as entrance
from ppdp.data.facts import Fact, check_promised, complete, merged
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, NoRoute, PpdpError, PrivacyRefusal
from ppdp.interop.sklearn import FromSklearn
from ppdp.pipeline.composition import Composition, check_steps
from ppdp.pipeline.copies import Copied
from ppdp.pipeline.execute import Outcome, execute
from ppdp.pipeline.issue import content_hash, issue
from ppdp.pipeline.planning.laddering import ladder_plan
from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.planning.solve import make_plan
from ppdp.pipeline.release.description import describe
from ppdp.pipeline.release.released import Released
from ppdp.pipeline.release.twins import mapped, noise_scales, released_twins
from ppdp.privacy.ledger.fits import Charge, Cost, charge, open_ledger
from ppdp.privacy.ledger.ledger import Ledger
from ppdp.privacy.noise.gate import GATE_KINDS
from ppdp.privacy.noise.sampler import Noise

__all__ = ["Pipeline", "make_pipeline", "rows_to_fit"]

Array = NDArray[np.float64]


def _last_has(name: str) -> Any:
    """Whether the last step has a method, for ``available_if``."""

    def check(self: Pipeline) -> bool:
        getattr(self.steps[-1][1], name)
        return True

    return check


class Pipeline(Copied, Composition, FromSklearn, BaseEstimator):
    """Pre-processing and a private mechanism, with one end-to-end (epsilon, delta).

    Parameters
    ----------
    steps : list of (name, step)
        Transformers of :mod:`ppdp.transformers`; the last step may be one of :mod:`ppdp.mechanisms`. A
        pipeline that ends in a transformer releases its statistics.
    epsilon, delta : float, default=1.0 and 1e-6
        The guarantee for everything that leaves.
    domain : Domain, optional
        Public facts; completed from the steps and from the shape and schema of X.
    gate : {"auto", "gaussian", "laplace", "discrete-laplace", None} or Ladder, default="auto"
        The noise of the test of all conditions of the chosen route; "auto" takes what leaves the mechanism the least
        noise. None assumes the conditions, and the certificate says CONDITIONAL. A :class:`~ppdp.Ladder` tests several
        public thresholds of one condition.
    invalid : {"error", "repair"}, default="error"
        What to do with undeclared NaN, infinity and unknown labels: stop (the certificate says that exceptions are not
        covered), or repair row by row (covered).
    budget : mapping, optional
        Shares of mu² for "gate" and "release", instead of the public rule.
    ledger : Ledger, optional
        Where every fit is charged before it looks at the rows.
    dataset : str, optional
        Public name of the private data, for ledger and certificate.
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
    feature_names_in_ : ndarray of shape (n_features_in_,)
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

    def __init__(
        self,
        steps: Sequence[tuple[str, Any]],
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        domain: Domain | None = None,
        gate: str | Ladder | None = "auto",
        invalid: str = "error",
        budget: Mapping[str, float] | None = None,
        ledger: Ledger | None = None,
        dataset: str | None = None,
        random_state: Any = None,
    ) -> None:
        self.steps = steps
        self.epsilon = epsilon
        self.delta = delta
        self.domain = domain
        self.gate = gate
        self.invalid = invalid
        self.budget = budget
        self.ledger = ledger
        self.dataset = dataset
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
        planner: Any = ladder_plan if isinstance(self.gate, Ladder) else make_plan
        return planner(
            stages,
            mechanism,
            full,
            facts,
            epsilon=self.epsilon,
            delta=self.delta,
            gate=self.gate,
            budget=self.budget,
            deltas_add=self._charges_a_ledger(),
        )

    def facts_for(self, declared: Domain | None, **seen: Any) -> tuple[Domain, tuple[Fact, ...]]:
        """The whole domain of such a plan, and from where its facts are."""
        stages, mechanism = self.checked_steps()
        return complete(declared, stages, mechanism and mechanism[1], **seen)

    def _charges_a_ledger(self) -> bool:
        return self.ledger is not None or open_ledger() is not None

    def checked_steps(self) -> tuple[list[tuple[str, Any]], tuple[str, Any] | None]:
        """Stages and mechanism, after the pipeline's own parameters."""
        if not isinstance(self.gate, Ladder):
            choice("gate", self.gate, ["auto", *GATE_KINDS, None])
        choice("invalid", self.invalid, ["error", "repair"])
        for name, kind in (("ledger", Ledger), ("domain", Domain), ("dataset", str)):
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise InvalidParameter(f"{name} must be a {kind.__name__} or None, got {type(value).__name__}.")
        return check_steps(self.steps, type(self))

    @discreet
    def fit(self, X: Any, y: Any = None) -> Pipeline:
        """Run the plan on private rows, and certify what leaves.

        Parameters
        ----------
        X : array, pandas, polars or Arrow table of shape (n_samples, n_features)
            Private rows.
        y : array-like of shape (n_samples,), optional
            Private labels, if the last step needs them.

        Raises
        ------
        PpdpError
            See :mod:`ppdp.exceptions`; no certificate is issued. Shape, schema and everything that you declare are
            checked first and cost nothing. Cells are looked at behind the ledger's reservation: whatever is raised
            then, also for a value that is no number, counts as spent. No variable of a frame leaves with it.
        """
        plan, X, labels = self._received(X, y)
        noise = Noise(self.random_state)
        self._rehearse(plan, noise)
        charged = self._charge(plan)
        status = "failed"
        try:
            with AtStep("entrance"):
                plan, rows = self._rows(plan, X, labels)
            outcome = execute(plan, rows, noise)
            status = "released"
        except PpdpError as error:
            status = "refused" if isinstance(error, PrivacyRefusal) else "failed"
            raise (error if charged.ledger is None else error.charged()) from None
        finally:
            charged.settle(status)
        self._keep(plan.on(outcome.rung), outcome, charged, seeded=noise.seeded)
        return self

    def _received(self, X: Any, y: Any) -> tuple[Plan, Any, Any]:
        """The plan for these data, and the data, of which only the form was looked at."""
        self._forget()
        _, mechanism = self.checked_steps()
        self._refuse_to_owe()
        X = entrance.table_of(X)
        entrance.check_form(self, X, self.coded, reset=True)
        names = tuple(self.feature_names_in_) if hasattr(self, "feature_names_in_") else None
        supervised = mechanism is not None and mechanism[1].needs_y
        labels = entrance.check_labels(X, y, self) if supervised else None
        plan = self.plan_for(self.domain, shape=X.shape, names=names)
        check_promised(self.marks.promised, plan.domain)
        if plan.hopeless:
            raise NoRoute(
                f"no data could pass the gate of {', '.join(plan.hopeless)}, so a fit would only spend.",
                fix="statistics='auto', looser thresholds, more rows or a larger epsilon.",
            )
        return plan, X, labels

    def _forget(self) -> None:
        """Drop what an earlier fit left, so that a fit that fails leaves no certificate."""
        for name in [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]:
            delattr(self, name)

    def _rehearse(self, plan: Plan, noise: Noise) -> None:
        """Write everything that will be written, but for the released numbers: no public word may fail after the spend.

        Raises
        ------
        InvalidParameter
            If something cannot be written.
        """
        try:
            self._written(plan.on(-1), {}, {}, seeded=noise.seeded)
            return
        except PpdpError:
            raise
        except ValueError:  # a name with half a character, a number that is none
            pass
        raise InvalidParameter(
            "a public name, label or parameter cannot be written into a certificate.",
            fix="names and labels in whole characters, finite numbers.",
        )

    def _charge(self, plan: Plan) -> Charge:
        """Charge a ledger, or count, before any value is looked at."""
        loss = plan.loss
        cost = Cost(plan.epsilon, plan.delta, loss, max(loss.failure, loss.gate), plan.allowance, plan.domain.adjacency)
        return charge(self.ledger, cost, dataset=self.dataset, label=" > ".join(name for name, _ in self.steps))

    def _rows(self, plan: Plan, table: Any, labels: Any) -> tuple[Plan, Rows]:
        """Values within the declared domain, and the plan with classes if they had to be read from y."""
        if labels is not None and plan.domain.classes is None and not is_regressor(self):
            seen = {"shape": table.shape, "names": plan.domain.feature_names}
            classes = entrance.read_classes(labels)
            if self._charges_a_ledger() and len(classes) > 2:
                raise InvalidParameter(
                    "more than two classes must be declared where a ledger is charged.",
                    fix="pass classes=(...) to the model.",
                )
            plan = self.plan_for(self.domain, **seen, read_classes=classes)
        values = entrance.read_values(self.coded(table), self.invalid)
        X = entrance.repaired_values(values, plan.domain, gaps=plan.domain.missing_rows > 0, invalid=self.invalid)
        if labels is None:
            return plan, Rows.of(X)
        if is_regressor(self):
            return plan, Rows.of(X, entrance.repaired_targets(labels, plan.domain.require("y_range"), self.invalid))
        return plan, Rows.of(X, entrance.repaired_labels(labels, plan.domain.classes or (), self.invalid))

    def _keep(self, plan: Plan, outcome: Outcome, charged: Charge, *, seeded: bool) -> None:
        """Keep what was released, the twins and the certificate; nothing else."""
        arrays = {name: np.array(array, dtype=np.float64) for name, array in outcome.released.items()}
        for array in arrays.values():
            array.setflags(write=False)
        inference, certificate = self._written(plan, arrays, charged.issued(plan.delta), seeded=seeded)
        scales = noise_scales(certificate.to_dict())
        self.mark(charged=charged)
        self.hold(Released(arrays, scales, content_hash(arrays), inference, certificate), _steps_of(plan))

    def _written(
        self, plan: Plan, arrays: Mapping[str, Array], issued: Mapping[str, Any], *, seeded: bool
    ) -> tuple[str, Certificate]:
        """The description of the steps, and the certificate."""
        inference = describe(_steps_of(plan), getattr(self, "feature_names_in_", None))
        certificate = issue(
            plan,
            arrays,
            inference=hashed(inference.encode()),
            invalid=self.invalid,
            seeded=seeded,
            dataset=self.dataset,
            issued=issued,
        )
        return inference, certificate

    def hold(self, release: Released, steps: Sequence[tuple[str, Any]]) -> None:
        """Predict with a release, the one of this fit or one that was loaded."""
        document = release.certificate.to_dict()
        domain = document["entrance"]["domain"]
        self.twins_ = released_twins(document, steps, release.arrays)
        if hasattr(self.twins_[-1][1], "classes_"):
            self.classes_ = self.twins_[-1][1].classes_
        self.row_norm_, self.entry_bound_ = domain.get("row_norm"), domain.get("entry_bound")
        self.release_, self.certificate_ = release, release.certificate

    def export(self, path: str | os.PathLike[str], *, conditional: bool = False, overwrite: bool = False) -> str:
        """Write the release with its certificate: the only thing that may leave the building.

        Arrays, JSON and words, no pickle; :func:`ppdp.load` verifies them and gives a pipeline that predicts. Whenever
        the process is killed, the export is there whole or not at all.

        Parameters
        ----------
        path : path-like
            A ``.zip``, or else a new folder.
        conditional : bool, default=False
            Whether a CONDITIONAL certificate may leave; it says so first wherever it is read.
        overwrite : bool, default=False
            Whether a ``.zip`` may take the place of an earlier export.

        Returns
        -------
        str
            SHA-256 of the export, the same for folder and zip: ``ppdp.load(path, sha256=...)`` takes no other one.

        Raises
        ------
        ExportError
            If the noise was seeded, labels were read from y, the certificate is CONDITIONAL and you did not say that
            you know, or something else stands at the path.
        """
        from ppdp.pipeline.release.export import export

        check_is_fitted(self)
        return export(self, path, conditional=conditional, overwrite=overwrite)

    @discreet
    def _inference(self, X: Any) -> Array:
        """Raw rows through the released twins of all stages before the mechanism or the last transformer."""
        check_is_fitted(self)
        X = entrance.table_of(X)
        entrance.check_form(self, X, self.coded, reset=False)
        values = entrance.read_values(self.coded(X), self.invalid)
        facts = Domain(row_norm=self.row_norm_, entry_bound=self.entry_bound_)
        values = entrance.repaired_values(values, facts, gaps=self.fills_gaps, invalid=self.invalid)
        return mapped(self.twins_[:-1], values)

    def _last(self, method: str, X: Any) -> Any:
        values = self._inference(X)
        return getattr(self.twins_[-1][1], method)(values)

    @available_if(_last_has("transform"))
    @discreet
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, then map the same rows with released statistics.

        The mapped rows are not covered by the certificate: they are the private rows.
        """
        return self.fit(X, y).transform(X)

    @available_if(_last_has("transform"))
    def transform(self, X: Any) -> Any:
        """Map rows with released statistics only.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            Rows; they need not be the private ones.
        """
        values = self._inference(X)
        last = self.twins_[-1][1]
        if hasattr(last, "feature_names_in_"):
            import pandas as pd

            index = X.index if isinstance(X, pd.DataFrame) else None
            return last.transform(pd.DataFrame(values, columns=last.feature_names_in_, index=index))
        return last.transform(values)

    @available_if(_last_has("transform"))
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the output columns."""
        check_is_fitted(self)
        return np.asarray(self.twins_[-1][1].get_feature_names_out(), dtype=object)

    @available_if(_last_has("predict"))
    def predict(self, X: Any) -> NDArray[Any]:
        """Predict with the released model.

        Parameters
        ----------
        X : array or frame of shape (n_samples, n_features)
            Raw rows, as in ``fit``.
        """
        return np.asarray(self._last("predict", X))

    @available_if(_last_has("predict_proba"))
    def predict_proba(self, X: Any) -> Array:
        """Probability of each class, shape (n_samples, n_classes)."""
        return np.asarray(self._last("predict_proba", X))

    @available_if(_last_has("decision_function"))
    def decision_function(self, X: Any) -> Array:
        """Signed distance from the decision boundary."""
        return np.asarray(self._last("decision_function", X))

    @available_if(_last_has("predict"))
    def score(self, X: Any, y: Any) -> float:
        """Accuracy of the released model, R² or D² of a regression; on private rows no certificate covers it."""
        values = self._inference(X)
        return float(self.twins_[-1][1].score(values, y))


def rows_to_fit(pipeline: Pipeline, X: Any, y: Any = None) -> tuple[Plan, Rows]:
    """What a fit would execute, and on which rows; nothing is charged, released or changed. The rows are private.

    Parameters
    ----------
    pipeline : Pipeline
        Left as it is.
    X, y : table and column
        As for ``fit``, whose errors are raised.
    """
    twin = copy(pipeline)
    plan, table, labels = twin._received(X, y)
    with AtStep("entrance"):
        return twin._rows(plan, table, labels)


def _steps_of(plan: Plan) -> list[tuple[str, Any]]:
    """Every step with its name, the mechanism last."""
    last = [(plan.mechanism.name, plan.mechanism.stage)] if plan.mechanism is not None else []
    return [*((step.name, step.stage) for step in plan.steps), *last]


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
