"""The way into a private search from one of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sklearn.base import clone
from sklearn.model_selection import ParameterGrid, ParameterSampler

from ppdp.exceptions import InvalidParameter, UnknownStage
from ppdp.interop.sklearn.converter import Conversion, Converted
from ppdp.interop.sklearn.steps import Step, own_name
from ppdp.pipeline.pipeline import Pipeline

_GRIDS = ("GridSearchCV", "HalvingGridSearchCV")
_MOST = 10_000  # candidates: each has its share of the budget
_MEAN = ("accuracy", "neg_mean_absolute_error", None)
_IDLE = ("n_jobs", "return_train_score", "verbose")


class SearchFromSklearn:
    """Mixin for the search: made from a ``GridSearchCV`` or ``RandomizedSearchCV``."""

    _conversion: Conversion | None = None

    @property
    def conversion(self) -> Conversion | None:
        """What became of a search of scikit-learn and of each step of its first candidate; None if there was none."""
        return self._conversion

    @classmethod
    def from_sklearn(
        cls,
        search: Any,
        *,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        share: float = 0.5,
        test_size: float = 0.25,
        ledger: Any = None,
        dataset: str | None = None,
        random_state: Any = None,
        **declared: Any,
    ) -> Any:
        """A search of scikit-learn with every candidate converted: ``docs/guides/existing-pipelines.md``.

        Parameters of scikit-learn's classes are read: candidates of ``C`` become ones of ``alpha``.

        Parameters
        ----------
        search : GridSearchCV or RandomizedSearchCV
            Around a pipeline of scikit-learn.
        epsilon, delta, share, test_size, ledger, dataset, random_state
            As for the class.
        **declared
            Public facts, as for :meth:`Pipeline.from_sklearn <ppdp.Pipeline.from_sklearn>`.
        """
        step = Step(own_name(search).lower() or "search", search)
        settings = _settings(step)
        found: dict[str, Pipeline] = {}
        for params in settings:
            pipe = Pipeline.from_sklearn(_with(step, params), **declared)
            found.setdefault(repr(pipe), pipe)
        pipes = list(found.values())
        kind: Any = cls
        made = kind(
            pipes[0],
            _grid(step, pipes),
            epsilon=epsilon,
            delta=delta,
            share=share,
            test_size=test_size,
            ledger=ledger,
            dataset=dataset,
            random_state=random_state,
        )
        _tell(step, len(settings), len(pipes), test_size)
        whole = Converted(step.name, type(search).__name__, cls.__name__, tuple(step.changed), tuple(step.ignored))
        inner = pipes[0].conversion
        made._conversion = Conversion((whole, *inner), inner.unused) if inner is not None else Conversion((whole,))
        return made

    def __sklearn_clone__(self) -> Any:
        cloned = super().__sklearn_clone__()  # type: ignore[misc]  # of the estimator that this is mixed into
        cloned._conversion = self._conversion
        return cloned


def _settings(step: Step) -> list[Mapping[str, Any]]:
    """Parameters of every candidate: those of a grid, or public draws."""
    if step.kind not in (*_GRIDS, "RandomizedSearchCV"):
        what = "a search of scikit-learn is needed."
        raise UnknownStage(what, fix="GridSearchCV(...) or RandomizedSearchCV(...), not fitted.")
    given = step.given()
    with step.reading():
        if step.kind in _GRIDS:
            found: Any = ParameterGrid(given["param_grid"])
        else:
            seed = given["random_state"] if isinstance(given["random_state"], int) else 0
            step.changed.append(f"candidates are drawn from the public seed {seed}")
            found = ParameterSampler(given["param_distributions"], given["n_iter"], random_state=seed)
        if 0 < len(found) <= _MOST:
            return list(found)
    step.refuse("there are no candidates, or too many.", f"at most {_MOST}.")


def _with(step: Step, params: Mapping[str, Any]) -> Any:
    """The estimator inside with the parameters of one candidate."""
    try:
        return clone(step.given()["estimator"]).set_params(**params)
    except (TypeError, ValueError, AttributeError) as error:
        what = "its grid does not fit the estimator inside."
        raise InvalidParameter(what, stage=step.name, fix="{'step__parameter': [value, value]}.") from error


def _grid(step: Step, pipes: Sequence[Pipeline]) -> list[dict[str, list[Any]]]:
    """What differs between the converted candidates, as a grid of single candidates."""
    names = [[name for name, _ in pipe.steps] for pipe in pipes]
    if len(pipes) < 2:
        what = "all candidates become the same pipeline: what differs between them has no effect here."
        step.refuse(what, "Pipeline.from_sklearn(estimator, ...), which needs no search.")
    if any(own != names[0] for own in names):
        return [{"steps": [pipe.steps]} for pipe in pipes]
    grid: list[dict[str, list[Any]]] = [{} for _ in pipes]
    for place, name in enumerate(names[0]):
        steps = [pipe.steps[place][1] for pipe in pipes]
        if len({repr(one) for one in steps}) < 2:
            continue
        params = [one.get_params(deep=False) for one in steps]
        alike = len({type(one) for one in steps}) == 1
        differing = [key for key in params[0] if alike and len({repr(own[key]) for own in params}) > 1]
        for candidate, one, own in zip(grid, steps, params):
            candidate |= {f"{name}__{key}": [own[key]] for key in differing} if alike else {name: [one]}
    return grid


def _tell(step: Step, given: int, made: int, test_size: float) -> None:
    """How the search differs."""
    parameters = step.given()
    step.changed.append(f"one public split of the rows, of which {test_size:g} are for scores, instead of folds")
    if made < given:
        step.changed.append(f"{given} candidates became {made}: the others differ in what has no effect here")
    scoring = parameters["scoring"]
    if not (scoring is None or scoring in _MEAN):
        step.changed.append(
            "scores are means of what each row scores by itself: accuracy, or 1 less the absolute error; set scoring= "
            "to a function of one answer and one prediction for another"
        )
    step.ignored += [name for name in _IDLE if parameters[name]]
