"""How named steps behave as parameters: scikit-learn's habits, without its private base class."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline as SklearnPipeline
from sklearn.utils import Bunch, estimator_html_repr

from ppdp.certificate import Certificate
from ppdp.certificate.issue_statement import account_in_words
from ppdp.core.names import nearest
from ppdp.exceptions import InvalidParameter, PpdpError
from ppdp.interop.sklearn import FromSklearn
from ppdp.pipeline.estimator import same_kind
from ppdp.pipeline.steps import any_fills_gaps
from ppdp.transformers.columns.spread_steps import gathered, origins

_INSTEAD = {
    "fit_predict": ". Fix: pipe.fit(X, y).predict(X), which stays private.",
    "partial_fit": ". Fix: pipe.fit(X, y) of all rows, or of files in Parquet, read in blocks: every fit is charged.",
    "predict": ". Fix: pipe.release_.to_pandas() holds what a step without predictions released.",
    "predict_proba": ". Fix: pipe.predict(X), or a classifier with probabilities as the last step.",
    "score": ". Fix: a metric of scikit-learn, of pipe.predict(X), if there is one; pipe.release_.to_pandas().",
    "feature_importances_": ". Fix: pipe.release_.to_pandas() holds coefficients, of boosting importances.",
}
_CALLED_OTHERWISE = {
    "certificate": "pipe.certificate_",
    "epsilon_": "pipe.certificate_.epsilon",
    "model": "pipe[-1], the last step",
    "save": "pipe.export('model.zip'), which ppdp.load reads",
    "summary": "print(pipe.certificate_)",
    "to_onnx": "pipe.release_.to_onnx()",
    "to_sklearn": "pipe.release_.to_sklearn()",
}
_OF_STAGES = ("fit_transform", "get_feature_names_out", "transform")


@lru_cache(64)  # every fit is asked for attributes that there are not
def _meant(kind: Any, name: str) -> str | None:
    return nearest(name, dir(kind), least=0.85)


class _ByName(Bunch):
    """Steps by name; a name that there is not is answered with those that there are."""

    def __missing__(self, name: Any) -> Any:
        raise KeyError(f"there is no step {name!r}. Fix: one of {', '.join(map(repr, self))}, or pipe[-1].")


class NamedSteps(FromSklearn, BaseEstimator):
    """Parameters, access and display of an estimator with ``steps``; once it is fitted, released twins."""

    steps: Any
    twins_: list[tuple[str, Any]]

    def _named(self) -> Iterator[tuple[str, Any]]:
        """The steps that look like (name, estimator); tolerant, because parameters are checked in ``fit``."""
        if isinstance(self.steps, (list, tuple)):
            for item in self.steps:
                if isinstance(item, (list, tuple)) and len(item) == 2 and isinstance(item[0], str):
                    yield item[0], item[1]

    def _lacking(self, name: str, error: AttributeError) -> AttributeError:
        """The error of an attribute that there is not, with where it is or what to do in its place."""
        told = "" if name.startswith("_") else self._told_of(name)
        words = str(error).partition(". Fix: ")[0].removesuffix(".")
        return AttributeError(f"{words}{told}") if told else error

    def _told_of(self, name: str) -> str:
        """Where that is which somebody asks a pipeline for, or why it is not there; empty if nothing is known."""
        if name in _CALLED_OTHERWISE:
            return f". Fix: {_CALLED_OTHERWISE[name]}."
        steps = vars(self).get("twins_") or (list(self._named()) if "steps" in vars(self) else [])
        if not steps:
            return ""
        last = steps[-1][1]
        if name in _OF_STAGES and len(steps) > 1:
            return f". Fix: pipe[:-1].{name.removeprefix('fit_')} of the fitted pipeline: its last step maps no rows."
        try:
            getattr(last, name)
        except AttributeError as error:  # a mechanism says itself what is the rows' own
            words, _, told = str(error).partition(": ")
            told = "" if words.endswith("Fix") or "Fix: " not in told else told
            kind: Any = type(self)
            meant = _meant(kind, name) or nearest(name, vars(self), least=0.85)
            return f": {told}" if told else _INSTEAD.get(name, f". Fix: did you mean {meant!r}?" if meant else "")
        return f". Fix: pipe[-1].{name}, of its last step." if name.endswith("_") else ""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters of the pipeline and, if ``deep``, of its steps as ``name__parameter``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, step in self._named():
                params[name] = step
                if hasattr(step, "get_params") and not isinstance(step, type):
                    params |= {f"{name}__{key}": value for key, value in step.get_params(deep=True).items()}
        return params

    def set_params(self, **params: Any) -> Any:
        """Set parameters, replace steps by name, and set parameters of steps as ``name__parameter``."""
        parameters = super().get_params(deep=False)
        nested: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, _, rest = key.partition("__")
            if rest:
                nested.setdefault(name, {})[rest] = value
            elif key in parameters:
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
        return _ByName(**dict(self._current()))

    def _current(self) -> list[tuple[str, Any]]:
        twins = getattr(self, "twins_", None)
        return gathered(list(self._named()), twins) if twins else list(self._named())

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
            params = super().get_params(deep=False)
            part = type(self)(**{**params, "steps": list(self.steps)[where]})
            together = hasattr(self, "twins_") and where.step in (None, 1)
            return self._fitted_as_here(part) if together else part
        steps = self._current()
        return _ByName(**dict(steps))[where] if isinstance(where, str) else steps[where][1]

    def _fitted_as_here(self, part: Any) -> Any:
        """The slice with released twins; what was certified is the whole, so it has no certificate."""
        whole, named, own = list(self.twins_), dict(part.steps), origins(list(self._named()))
        twins = [(name, twin) for name, twin in whole if own.get(name, name) in named]
        if not twins:
            return part
        start = [name for name, _ in whole].index(twins[0][0])
        attributes: dict[str, Any] = {"row_norm_": None, "entry_bound_": None}  # further back, columns have no names
        if start == 0:
            kept = ("n_features_in_", "feature_names_in_", "row_norm_", "entry_bound_")
            attributes |= {name: getattr(self, name) for name in kept if hasattr(self, name)}
        elif hasattr(twins[0][1], "n_features_in_"):
            attributes["n_features_in_"] = twins[0][1].n_features_in_
        if hasattr(twins[-1][1], "classes_"):
            attributes["classes_"] = twins[-1][1].classes_
        attributes["gaps_"] = any_fills_gaps(whole[start:]) or (start == 0 and self._fills_gaps)
        vars(part).update(attributes, twins_=twins)
        return part

    @property
    def _fills_gaps(self) -> bool:
        """Whether rows may have gaps, which some step fills."""
        return getattr(self, "gaps_", False) or any_fills_gaps(self._own())

    def __len__(self) -> int:
        return len(self.steps)

    def set_output(self, *, transform: str | None = None) -> Any:
        """Choose the container of transformed rows ("default", "pandas", "polars") for every step."""
        for _, step in [*self._named(), *getattr(self, "twins_", ())]:
            if hasattr(step, "set_output") and not isinstance(step, type):
                step.set_output(transform=transform)
        return self

    def _repr_html_(self) -> str:
        """What was spent, a diagram of the steps and, once fitted, what was released and the certificate."""
        certificate = getattr(self, "certificate_", None)
        spent = "" if certificate is None else _spent_line(certificate)
        diagram = str(estimator_html_repr(self)) if self._drawn() else ""
        fitted = (getattr(self, name, None) for name in ("release_", "certificate_"))
        return spent + diagram + "".join(one._repr_html_() for one in fitted if one is not None)

    def _drawn(self) -> list[tuple[str, BaseEstimator]]:
        return [(name, step) for name, step in self._current() if isinstance(step, BaseEstimator)]

    def _sk_visual_block_(self) -> Any:
        """The steps, as scikit-learn draws those of its own pipeline."""
        return SklearnPipeline(self._drawn())._sk_visual_block_()

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": repr(self), "text/html": self._repr_html_()}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        steps = list(self._named())
        if steps and isinstance(steps[-1][1], BaseEstimator):
            last = steps[-1][1].__sklearn_tags__()
            same_kind(tags, last)
            tags.transformer_tags = last.transformer_tags
        tags.input_tags.allow_nan = self._fills_gaps
        return tags


def _spent_line(certificate: Certificate) -> str:
    """What the fit has spent, and on whose account, in one line."""
    if not certificate.verify():
        return ""
    from markupsafe import Markup

    from ppdp.certificate.pages.templating import number

    record = certificate.record
    pair = (number(value, upward=True) for value in (record.epsilon, record.delta))
    return str(Markup("<p><strong>Spent ({}, {}).</strong> {}</p>").format(*pair, account_in_words(record) or ""))
