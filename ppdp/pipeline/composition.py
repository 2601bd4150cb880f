"""How named steps behave as parameters: scikit-learn's habits, without its private base class."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sklearn.base import BaseEstimator
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from ppdp.data.rows import Array
from ppdp.exceptions import InvalidParameter, PpdpError, UnknownStage, UnsupportedOrder
from ppdp.mechanisms.base import Mechanism
from ppdp.pipeline.diagram import diagram_of, spent_line
from ppdp.pipeline.estimator import same_kind
from ppdp.pipeline.expected import expected_errors
from ppdp.pipeline.forecast import EPSILONS, Forecast, forecast
from ppdp.transformers.base import Stage
from ppdp.transformers.floor import DataAssumption

if TYPE_CHECKING:
    from ppdp.core.domain import Domain
    from ppdp.pipeline.planning.comparison import Comparison


def assumption_stages() -> dict[str, Any]:
    """Stages that mechanisms bring themselves, by class."""
    return {kind.__name__: kind for kind in DataAssumption.__subclasses__()}


class Composition:
    """Parameters, access and display of an estimator with ``steps``."""

    steps: Any
    own_steps: Callable[[], Any]
    _inference: Callable[[Any], Array]
    _rehearsed: Callable[..., Any]

    def _named(self) -> Iterator[tuple[str, Any]]:
        """The steps that look like (name, estimator); tolerant, because parameters are checked in ``fit``."""
        if isinstance(self.steps, (list, tuple)):
            for item in self.steps:
                if isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str):
                    yield item[0], item[1]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the pipeline and, if ``deep``, of its steps as ``name__parameter``."""
        params: dict[str, Any] = super().get_params(deep=False)  # type: ignore[misc]
        if deep:
            for name, step in self._named():
                params[name] = step
                if hasattr(step, "get_params") and not isinstance(step, type):
                    params |= {f"{name}__{key}": value for key, value in step.get_params(deep=True).items()}
        return params

    def set_params(self, **params: Any) -> Any:
        """Set parameters, replace steps by name, and set parameters of steps as ``name__parameter``."""
        own = super().get_params(deep=False)  # type: ignore[misc]
        nested: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, _, rest = key.partition("__")
            if rest:
                nested.setdefault(name, {})[rest] = value
            elif key in own:
                setattr(self, key, value)
            else:
                self.steps = [(n, value if n == key else step) for n, step in self._named()]
        for name, values in nested.items():
            step = dict(self._named()).get(name)
            if step is None:
                raise InvalidParameter(f"Invalid parameter {name!r} for estimator {type(self).__name__}.")
            step.set_params(**values)
        return self

    @property
    def named_steps(self) -> Bunch:
        """Steps by name: released twins once fitted, as configured before."""
        return Bunch(**dict(self._current()))

    def _current(self) -> list[tuple[str, Any]]:
        return list(getattr(self, "twins_", None) or self._named())

    def _own(self) -> list[tuple[str, Any]]:
        """The steps with twins of scikit-learn's; as they stand where one is refused, which ``fit`` says."""
        try:
            steps = getattr(self, "twins_", None) or self.own_steps()
        except PpdpError:
            steps = None
        return list(steps) if isinstance(steps, (list, tuple)) and steps is not self.steps else self._current()

    def __getitem__(self, where: int | str | slice) -> Any:
        """A step by name or position, or a pipeline of a slice of the steps, fitted if this one is."""
        if isinstance(where, slice):
            params = super().get_params(deep=False)  # type: ignore[misc]
            part = type(self)(**{**params, "steps": list(self.steps)[where]})
            together = self.__sklearn_is_fitted__() and where.step in (None, 1)
            return self._fitted_as_here(part) if together else part
        steps = self._current()
        return dict(steps)[where] if isinstance(where, str) else steps[where][1]

    def _fitted_as_here(self, part: Any) -> Any:
        """The slice with released twins; what was certified is the whole, so it has no certificate."""
        whole, named = self._current(), dict(part.steps)
        twins = [(name, twin) for name, twin in whole if name in named]
        if not twins:
            return part
        start = [name for name, _ in whole].index(twins[0][0])
        known: dict[str, Any] = {"row_norm_": None, "entry_bound_": None}  # further back, where columns have no names
        if start == 0:
            kept = ("n_features_in_", "feature_names_in_", "row_norm_", "entry_bound_")
            known |= {name: getattr(self, name) for name in kept if hasattr(self, name)}
        elif hasattr(twins[0][1], "n_features_in_"):
            known["n_features_in_"] = twins[0][1].n_features_in_
        if hasattr(twins[-1][1], "classes_"):
            known["classes_"] = twins[-1][1].classes_
        known["gaps_"] = any(_fills_gaps(twin) for _, twin in whole[start:]) or (start == 0 and self.fills_gaps)
        vars(part).update(known, twins_=twins)
        return part

    def __len__(self) -> int:
        return len(self.steps)

    def set_output(self, *, transform: str | None = None) -> Any:
        """Choose the container of transformed rows ("default", "pandas", "polars") for every step."""
        for _, step in [*self._named(), *getattr(self, "twins_", ())]:
            if hasattr(step, "set_output") and not isinstance(step, type):
                step.set_output(transform=transform)
        return self

    @property
    def coding(self) -> Callable[[Any], Any] | None:
        """What puts numbers for labels, if the first step knows public labels."""
        found: Callable[[Any], Any] | None = getattr(next(iter(self._own()), ("", None))[1], "coded", None)
        return found

    @property
    def learning(self) -> Callable[[Any], tuple[Any, Any]] | None:
        """The same for the rows of a fit, with the texts of which some are to be released."""
        found: Callable[[Any], tuple[Any, Any]] | None = getattr(
            next(iter(self._own()), ("", None))[1], "learned", None
        )
        return found

    def coded(self, X: Any) -> Any:
        """The table with numbers for labels, if the first step knows public labels."""
        coding = self.coding
        return X if coding is None else coding(X)

    @property
    def fills_gaps(self) -> bool:
        """Whether rows may have gaps, which some step fills."""
        return getattr(self, "gaps_", False) or any(_fills_gaps(step) for _, step in self._own())

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
        check_is_fitted(self)
        *stages, (name, last) = self._current()
        if not isinstance(last, Mechanism):
            raise UnsupportedOrder("there is no mechanism to project for.", stage=name, fix="use transform.")
        for name, stage in stages:
            if hasattr(stage, "map_rows") and not stage.__sklearn_is_fitted__():
                raise UnsupportedOrder(
                    "it was fitted on the private rows and nothing was released, so new rows cannot be mapped.",
                    stage=name,
                    fix="statistics='noisy', or a stage with public parameters.",
                )
        return last.queries(self._inference(X))

    def compare(self, domain: Domain | None = None) -> Comparison:
        """What the usual claims are worth beside this pipeline's plan, before any data.

        Parameters
        ----------
        domain : Domain, optional
            Public facts, as for ``plan``.

        Returns
        -------
        Comparison
            Naive claim, group privacy, all-exact and all-noisy route, and ours: a table and a picture.
        """
        from ppdp.pipeline.planning.practices import compare

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

        Returns
        -------
        Forecast
            Scores of a model, or errors of an answer: a table and a picture.

        Raises
        ------
        NoRoute
            If none of these epsilons has a route, or simulated rows do not pass the gate.
        """
        return forecast(self, type(self)._rehearsed, domain, epsilons, repeats, random_state, simulate)

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

    def _repr_html_(self) -> str:
        """What was spent, a diagram of the steps and, once fitted, what was released and the certificate."""
        steps = [(name, step) for name, step in self._current() if isinstance(step, BaseEstimator)]
        certificate = getattr(self, "certificate_", None)
        spent = "" if certificate is None else spent_line(certificate)
        diagram = diagram_of(steps, type(self)) if steps else ""
        fitted = (getattr(self, name, None) for name in ("release_", "certificate_"))
        return spent + diagram + "".join(one._repr_html_() for one in fitted if one is not None)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "twins_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        steps = list(self._named())
        if steps and isinstance(steps[-1][1], BaseEstimator):
            last = steps[-1][1].__sklearn_tags__()
            same_kind(tags, last)
            tags.transformer_tags = last.transformer_tags
        tags.input_tags.allow_nan = self.fills_gaps
        return tags


def _fills_gaps(step: Any) -> bool:
    return bool(getattr(step, "fills_gaps", False))


_ON_THE_PIPELINE = {
    "noise_scale": "leave it out: the pipeline solves the noise.",
    "random_state": "set it on the Pipeline.",
}


@lru_cache(maxsize=64)
def _parameters_of(cls: type) -> frozenset[str]:
    return frozenset(inspect.signature(cls).parameters)


_PAIRS = "Pipeline([('range', MinMaxScaler(...)), ...]), or make_pipeline(step, ...), which names them."


def check_steps(steps: Any, cls: type) -> tuple[list[tuple[str, Any]], tuple[str, Any] | None]:
    """Stages and the mechanism, if the last step is one; ``cls`` is the pipeline's class.

    :class:`InvalidParameter` if ``steps`` is not a list of uniquely named pairs. :class:`UnknownStage` if a step is not
    one of ppdp's, or a mechanism is not last.
    """
    if not isinstance(steps, (list, tuple)) or not steps:
        raise InvalidParameter("steps must be a non-empty list of (name, step) pairs.", fix=_PAIRS, parameter="steps")
    if any(not isinstance(item, (list, tuple)) or len(item) != 2 for item in steps):
        raise InvalidParameter("steps must be a list of (name, step) pairs.", fix=_PAIRS, parameter="steps")
    names = [name for name, _ in steps]
    if any(not isinstance(name, str) or not name.isprintable() or not name for name in names):
        raise InvalidParameter("names of steps must be strings of printable characters.", fix=_PAIRS)
    if any("__" in name or "." in name for name in names):
        raise InvalidParameter("names of steps must be strings without '__' and '.'.", fix=_PAIRS)
    own = _parameters_of(cls)
    if own & set(names):
        raise InvalidParameter(
            f"names of steps must not be those of parameters: {sorted(own & set(names))}.", fix="other names."
        )
    if len(set(names)) != len(names):
        raise InvalidParameter(
            "names of steps must be unique.", fix="another name for each, or make_pipeline(step, ...)."
        )
    for position, (name, step) in enumerate(steps):
        if isinstance(step, Mechanism) and position < len(steps) - 1:
            raise UnknownStage("a mechanism must be the last step.", stage=name, fix="move it to the end.")
        if not isinstance(step, (Stage, Mechanism)):
            raise UnknownStage(f"{_described(step)} is not a ppdp stage.", stage=name, fix=_twin(step))
        if position and getattr(step, "reads_cells", False):
            raise UnsupportedOrder(
                "it reads text or dates, and behind another step there are none.",
                stage=name,
                fix="put it first; make_column_map((stage, columns), ...) takes several stages side by side.",
            )
        labelled = isinstance(steps[-1][1], Mechanism) and steps[-1][1].needs_y
        if isinstance(step, Stage) and step.needs_y and not labelled:
            raise UnsupportedOrder(
                "it looks at labels, and the last step learns from none.",
                stage=name,
                fix="a model as the last step, such as LogisticRegression(classes=...).",
            )
    for name, step in steps[-1:]:
        for parameter, fix in _ON_THE_PIPELINE.items():
            if getattr(step, parameter, None) is not None:
                raise InvalidParameter(
                    f"{parameter} has no effect inside a pipeline.", stage=name, fix=fix, parameter=parameter
                )
    (last_name, last), stages = steps[-1], [(name, step) for name, step in steps]
    if isinstance(last, Mechanism):
        return [*stages[:-1], *_guarding(stages[:-1], last_name, last)], (last_name, last)
    return stages, None


def check_unbounded(domain: Domain | None, stages: list[tuple[str, Any]]) -> None:
    """Refuse bounds of numbers in front of a step that reads text or dates: they would cut its codes."""
    if domain is None or not stages or not getattr(stages[0][1], "reads_cells", False):
        return
    if domain.row_norm is not None or domain.entry_bound is not None:
        raise InvalidParameter(
            "row_norm and entry_bound are bounds of numbers, and this step reads text or dates.",
            stage=stages[0][0],
            fix="leave them out of the domain: the step bounds its rows by itself.",
            parameter="row_norm",
        )


def guard_of(mechanism: Mechanism) -> Any:
    """The stage that says what a mechanism assumes of the rows; None if it assumes nothing."""
    if not mechanism.guard:
        return None
    kind, *shared = mechanism.guard
    return assumption_stages()[kind](**{name: getattr(mechanism, name) for name in shared})


def _guarding(stages: list[tuple[str, Any]], name: str, mechanism: Mechanism) -> list[tuple[str, Any]]:
    """That stage with a name, unless it stands there already (in steps that were loaded)."""
    guard = guard_of(mechanism)
    if guard is None or (stages and repr(stages[-1][1]) == repr(guard)):
        return []
    own = f"{name}-floor"
    if own in dict(stages):
        raise InvalidParameter(f"the name {own!r} is that of a step which the mechanism brings itself.", stage=name)
    return [(own, guard)]


def _described(step: Any) -> str:
    kind = step if isinstance(step, type) else type(step)
    return repr(step) if isinstance(step, str) else f"{kind.__module__}.{kind.__qualname__}"


def _twin(step: Any) -> str:
    """What to use instead of somebody else's estimator."""
    from ppdp import mechanisms, transformers

    name = (step if isinstance(step, type) else type(step)).__name__
    if isinstance(step, type):
        return "pass an instance, not the class."
    if name == "SimpleImputer":
        name = "MeanImputer"
    if name in ("MaxAbsScaler", "MinMaxScaler"):
        return (
            "use ppdp.transformers.MinMaxScaler with public ranges=..., or with quantiles=(0.05, 0.95):"
            " one row decides the ends of the data, so that no test could ever find them stable."
        )
    for module in (transformers, mechanisms):
        if name in module.__all__:
            return f"use {module.__name__}.{name}."
    return (
        "use a stage of ppdp.transformers, RowMap(function, out_ranges=...) for a public row-wise map, or"
        " Public(transformer) for one that was fitted on public data."
    )
