"""From a pipeline file to a :class:`ppdp.Pipeline`; nothing in the file is executed."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ppdp.cli.documents import place_of, read_document
from ppdp.cli.output import Misuse, refuse, suggestion, words_of
from ppdp.exceptions import BudgetExceeded, LedgerError, PpdpError, PrivacyRefusal, said_by

_CODE = ("function", "transformer", "utility")
_ELSEWHERE = {
    "noise_scale": "leave it out: epsilon and delta decide the noise.",
    "random_state": "leave it out: seeded noise protects nobody, so it is never exported.",
}
_DEFAULT_MARKERS = ("NA", "N/A", "NaN", "nan", "null", "NULL")


@dataclass(frozen=True, slots=True)
class DataRules:
    """How a data file is read: public rules, for every cell by itself."""

    label: str | None  # column of labels
    groups: str | None  # column of ids: whose each row is
    drop: tuple[str, ...]  # columns that are not read
    missing: tuple[str | float, ...]  # what stands for a gap, beside empty cells
    categories: Mapping[str, tuple[str, ...]]  # public ones of columns of text
    one_hot: tuple[str, ...]  # which of them become a column for every category
    declared: Any = None  # a Declaration of every column, if the file has one
    sample_weight: str | None = None  # column of weights

    @property
    def no_features(self) -> tuple[str, ...]:
        """Columns that are read, but for what stands beside the features."""
        return tuple(name for name in (self.label, self.groups, self.sample_weight) if name is not None)


@dataclass(frozen=True, slots=True)
class PipelineFile:
    """A pipeline file that was read."""

    path: Path
    content: dict[str, Any]  # as it stands there
    rules: DataRules
    steps: tuple[tuple[str, Any], ...]

    @property
    def hides_number(self) -> bool:
        """Whether the number of rows is private."""
        return not {"add_remove", "person"}.isdisjoint(self.content.get("domain", {}).get("adjacency", {}))

    @property
    def classes(self) -> tuple[Any, str]:
        """The classes that the file declares, if it does, and where."""
        last = len(self.steps) - 1
        for keys, given in ((["steps", last], self.content["steps"][last]), (["domain"], self.content.get("domain"))):
            if given and "classes" in given:
                return given["classes"], place_of(self.path, [*keys, "classes"])
        return None, ""

    def pipeline(self, *, ledger: Any = None, dataset: str | None = None) -> Any:
        """The pipeline, not fitted, for a ledger and a public name of the data instead of the one in the file."""
        from ppdp.core.domain import Domain
        from ppdp.pipeline.pipeline import Pipeline

        given = dict(self.content.get("pipeline", {}))
        given |= {name: None for name in ("gate", "diagnostics") if given.get(name) == "none"}
        if dataset is not None:
            given["dataset"] = dataset
        with self.located():
            domain = Domain.from_dict(self.content.get("domain", {}))
            return Pipeline(self.all_steps(), domain=domain, ledger=ledger, **given)

    def all_steps(self) -> list[tuple[str, Any]]:
        """The steps of the file, behind the one that reads the columns as they are declared."""
        declared = self.rules.declared
        return [*([] if declared is None else declared.steps()), *self.steps]

    @contextmanager
    def located(self) -> Iterator[None]:
        """Say where in the file an error has its cause."""
        try:
            yield
        except (Misuse, PrivacyRefusal, BudgetExceeded, LedgerError):
            raise
        except PpdpError as error:
            raise self._misuse(error) from None

    def _misuse(self, error: PpdpError) -> Misuse:
        keys, default = self._keys(error)
        fix = error.fix or _FIXES.get(str(keys[-1]) if keys else "", "")
        if not fix and default not in (None, inspect.Parameter.empty):
            fix = f"{keys[-1]} = {default!r} is the default."
        last = f"correct it, or leave {keys[-1]} out." if keys and isinstance(keys[-1], str) else _FIX
        return Misuse(error.message, place=place_of(self.path, keys), fix=fix or last)

    def _keys(self, error: PpdpError) -> tuple[list[str | int], Any]:
        """Where in the file, as far as the words of an error tell, and what the default is there."""
        if error.stage in (COLUMNS, "ColumnMap") and self.rules.declared is not None:
            return [COLUMNS], None
        words = [word.strip(".,'") for word in error.message.split()]
        for position, (name, step) in enumerate(self.steps):
            if error.stage in (name, type(step).__name__):
                given, parameters = self.content["steps"][position], inspect.signature(type(step)).parameters
                named = [word for word in words if word in parameters and (word in given or word == words[0])]
                return ["steps", position, *named[:1]], parameters[named[0]].default if named else None
        for section in ("domain", "pipeline"):
            for word in words:
                key = word.removeprefix("Domain.")
                if key in self.content.get(section, {}):
                    return [section, key], None
        return [], None


COLUMNS = "columns"
"""The table that declares every column, and the name of the step that reads them so."""
_BESIDE = {"label": "labels", "groups": "ids"}
_FIX = "change the file; `ppdp help plan` says what may stand there."
_FIXES = {
    "classes": "labels of one kind, as in classes = [0, 1].",
    "ranges": "[low, high] for every column, as in age = [0, 110].",
}


def import_modules(names: Sequence[str]) -> dict[str, type[Any]]:
    """Run modules of the user's own, also from the working directory; the stages and mechanisms that they hold."""
    if not names:
        return {}
    from ppdp.mechanisms.base import Mechanism
    from ppdp.transformers.base import Stage

    if "" not in sys.path:
        sys.path.insert(0, "")
    found: dict[str, type[Any]] = {}
    for name in names:
        try:
            module = importlib.import_module(name)
        except (Exception, SystemExit) as error:  # a module of somebody else may raise anything
            refuse(
                f"cannot be imported: {said_by(error)}",
                place=f"--import {name}",
                fix="the name of a module that Python finds here, as my_stages for ./my_stages.py.",
            )
        kinds = [kind for kind in vars(module).values() if isinstance(kind, type)]
        found |= {kind.__name__: kind for kind in kinds if issubclass(kind, (Stage, Mechanism))}
    return found


def read_pipeline_file(path: Path, modules: Sequence[str] = ()) -> PipelineFile:
    """Read a pipeline file and make its steps; modules hold further classes that ``use`` may name."""
    content = read_document(path)
    own = import_modules(modules)
    from ppdp.testing import REGISTRY

    _refuse_blanks(content, path)
    rules = _rules(content.get("data", {}), content.get(COLUMNS), path)
    steps: list[tuple[str, Any]] = []
    for i, step in enumerate(content["steps"]):
        given = with_hot_ranges(step, rules) if all(keeps_columns(before) for _, before in steps) else step
        steps.append(_step(given, i, path, {**own, **REGISTRY}, content.get("domain", {}).get("classes", ())))
    made = PipelineFile(path, content, rules, tuple(steps))
    _check_steps(made)
    _leave_hot_columns(made)
    return made


def _refuse_blanks(content: Mapping[str, Any], path: Path) -> None:
    """Name every blank that ``ppdp init`` has left and nobody has filled."""
    left = [place_of(path, keys).removeprefix(f"{path}: ") for keys in _blanks(content)]
    if left:
        refuse(
            f"blanks are left: {'; '.join(left)}.",
            place=str(path),
            fix="write what the column means, as the line says, never what the data hold; where nobody knows it,"
            ' "private" for numbers and text, or "drop".',
        )


def _blanks(value: Any, keys: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where a key has the value "?"; in lists it is a word like any other."""
    if isinstance(value, Mapping):
        yield from ((*keys, key) for key, inner in value.items() if inner == "?")
    for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
        if isinstance(inner, (Mapping, list)):
            yield from _blanks(inner, (*keys, key))


def _rules(given: Mapping[str, Any], columns: Mapping[str, Any] | None, path: Path) -> DataRules:
    if columns is not None:
        return _declared_rules(given, columns, path)
    categories = {name: tuple(labels) for name, labels in given.get("categories", {}).items()}
    for i, name in enumerate(given.get("one_hot", [])):
        if name not in categories:
            refuse(
                f"no categories of {name!r} are declared.",
                place=place_of(path, ["data", "one_hot", i]),
                fix=f"add {name} = [...] to [data.categories].",
            )
    label, groups, drop = given.get("label"), given.get("groups"), tuple(given.get("drop", ()))
    weight = given.get("sample_weight")
    for name in [label, groups, weight, *drop]:
        if name in categories:
            refuse(
                f"the column {name!r} is no feature, so it needs no categories.",
                place=place_of(path, ["data", "categories", name]),
                fix="leave it out; labels have classes.",
            )
    if label in drop:
        refuse("the column of labels is dropped.", place=place_of(path, ["data", "drop"]), fix="leave it out here.")
    _check_apart(given, path)
    missing = tuple(given.get("missing", _DEFAULT_MARKERS))
    one_hot = tuple(given.get("one_hot", ()))
    return DataRules(label, groups, drop, missing, categories, one_hot, sample_weight=weight)


def _check_apart(given: Mapping[str, Any], path: Path) -> None:
    """Refuse ids or weights in a column that is another thing, too."""
    for key, what, others in (("groups", "ids", ("label",)), ("sample_weight", "weights", ("label", "groups"))):
        if key in given and given[key] in (*given.get("drop", ()), *(given.get(other) for other in others)):
            told = f"the column of {what} is that of {' or '.join(_BESIDE[other] for other in others)}, or dropped."
            refuse(told, place=place_of(path, ["data", key]), fix="name it there only: it is no feature.")


def _declared_rules(given: Mapping[str, Any], columns: Mapping[str, Any], path: Path) -> DataRules:
    """The rules of a file that declares every column."""
    from ppdp.transformers.columns.declaration import DROP, Declaration

    label, groups, weight = given.get("label"), given.get("groups"), given.get("sample_weight")
    _check_apart(given, path)
    missing = tuple(given.get("missing", _DEFAULT_MARKERS))
    for key in ("drop", "categories", "one_hot"):
        if key in given:
            fix = 'column = "drop", or column = ["a", "b"].'
            refuse(f"{key} is declared in [{COLUMNS}].", place=place_of(path, ["data", key]), fix=fix)
    for what, name in (("labels", label), ("ids", groups), ("weights", weight)):
        if name is not None and columns.get(name, DROP) != DROP:
            fix = f'take its line out of [{COLUMNS}], or write "{DROP}" there.'
            refuse(f"the column of {what} is no feature.", place=place_of(path, [COLUMNS, name]), fix=fix)
    columns = {name: value for name, value in columns.items() if name not in (label, groups, weight)}
    declared = Declaration(dict.fromkeys(columns), columns)
    try:
        declared.column_map()
    except PpdpError as error:
        refuse(error.message, place=place_of(path, [COLUMNS]), fix=error.fix or _FIX)
    return DataRules(label, groups, (), missing, {}, (), declared, weight)


def _by_label(weights: Mapping[str, Any], classes: Sequence[Any]) -> dict[Any, Any]:
    """Weights by label, of which a file can only write the text."""
    labels = {str(label).lower() if isinstance(label, bool) else str(label): label for label in classes}
    return {labels.get(text, text): weight for text, weight in weights.items()}


def _step(
    given: Mapping[str, Any], position: int, path: Path, known: Mapping[str, type[Any]], classes: Sequence[Any]
) -> tuple[str, Any]:
    """A step from its table."""
    kind = known.get(given["use"])
    if kind is None:
        fix = suggestion(given["use"], known)
        refuse(
            f"there is no stage {given['use']!r}.",
            place=place_of(path, ["steps", position, "use"]),
            fix=fix if fix.startswith("did") else "a class of ppdp, or --import the module that holds yours.",
        )
    parameters = {key: value for key, value in given.items() if key not in ("name", "use")}
    if isinstance(parameters.get("class_weight"), Mapping):
        parameters["class_weight"] = _by_label(parameters["class_weight"], given.get("classes", classes))
    allowed = inspect.signature(kind).parameters
    for key in parameters:
        place = place_of(path, ["steps", position, key])
        if key not in allowed:
            refuse(f"{kind.__name__} has no parameter {key!r}.", place=place, fix=suggestion(key, allowed))
        if key in _ELSEWHERE:
            refuse(f"{key} has no effect inside a pipeline.", place=place, fix=_ELSEWHERE[key])
        if key in _CODE:
            refuse(
                f"{key!r} is code, which a pipeline file cannot hold.",
                place=place,
                fix="make a class of your own in a module, and --import it.",
            )
    for key, parameter in allowed.items():
        if parameter.default is parameter.empty and key not in parameters:
            refuse(f"{kind.__name__} needs {key!r}.", place=place_of(path, ["steps", position]), fix=f"add {key} = ...")
    return given.get("name", kind.__name__.lower()), kind(**parameters)


def _check_steps(made: PipelineFile) -> None:
    """Errors that are about all steps together."""
    from ppdp.core.adjacency import Adjacency
    from ppdp.data.facts import check_beside_names
    from ppdp.pipeline.composition import check_steps
    from ppdp.pipeline.pipeline import Pipeline

    names = [name for name, _ in made.steps]
    for position, name in enumerate(names):
        if name in names[:position]:
            refuse(
                f"the name {name!r} is there twice.",
                place=place_of(made.path, ["steps", position, "name"]),
                fix=f'name = "{name}2".',
            )
    with made.located():
        stages, mechanism = check_steps(made.all_steps(), Pipeline)
        if taken := [*made.rules.no_features, *made.rules.drop]:
            check_beside_names(Adjacency.replace(), stages, repr(taken[0]))  # a file has no changes by position
    if made.hides_number and "n_rows" not in made.content["domain"]:
        refuse(
            "the number of rows is private, and no cap on it is declared.",
            place=place_of(made.path, ["domain", "n_rows"]),
            fix="n_rows = CAP in [domain]: with add_remove at least the rows that any such file may have, with person "
            "those that are kept of all persons together; never the number of rows in this file.",
        )
    persons = "person" in made.content.get("domain", {}).get("adjacency", {})
    if persons != (made.rules.groups is not None):
        what = (
            "persons are protected, and no column says whose each row is." if persons else "persons are not protected."
        )
        fix = 'groups = "COLUMN" in [data].' if persons else "adjacency = {person = 3} and n_rows in [domain], or drop."
        keys = ["domain", "adjacency"] if persons else ["data", "groups"]
        refuse(what, place=place_of(made.path, keys), fix=fix)
    if (made.rules.sample_weight is None) != ("max_weight" not in made.content.get("domain", {})):
        what = "weights of rows need their column, and the largest that there may be."
        fix = 'sample_weight = "COLUMN" in [data], and max_weight = MOST in [domain].'
        refuse(what, place=place_of(made.path, ["data", "sample_weight"]), fix=fix)
    needs = mechanism is not None and mechanism[1].needs_y
    if needs and made.rules.label is None:
        refuse(
            f"{type(made.steps[-1][1]).__name__} learns labels, and no column of them is named.",
            place=place_of(made.path, ["data", "label"]),
            fix='label = "COLUMN".',
        )
    if made.rules.label is not None and not needs:
        refuse(
            "no step learns labels.",
            place=place_of(made.path, ["data", "label"]),
            fix=f'drop = ["{made.rules.label}"] leaves the column out; without the line it is a feature.',
        )


def with_hot_ranges(parameters: Mapping[str, Any], rules: DataRules) -> dict[str, Any]:
    """Parameters of a step, in which a column of 0 and 1 that has no range has [0, 1]."""
    ranges = parameters.get("ranges")
    if not isinstance(ranges, Mapping):
        return dict(parameters)
    hot = {f"{name}={label}": [0, 1] for name in rules.one_hot for label in rules.categories[name]}
    return {**parameters, "ranges": {**ranges, **{name: pair for name, pair in hot.items() if name not in ranges}}}


def _leave_hot_columns(made: PipelineFile) -> None:
    """Let scalers leave columns of 0 and 1 alone, unless they name columns; ranges in front tell the others."""
    from ppdp.transformers import RobustScaler, StandardScaler

    ranges: Any = ()
    for i, (_, step) in enumerate(made.steps if made.rules.one_hot else ()):
        ranges = ranges or getattr(step, "ranges", ())
        if ranges is None:  # which the plan refuses
            return
        if isinstance(step, (StandardScaler, RobustScaler)) and "columns" not in made.content["steps"][i]:
            if not isinstance(ranges, Mapping):
                what = f"nothing says which columns {type(step).__name__} scales beside those of one_hot."
                fix = 'columns = ["age", ...] here, or columns = "all".'
                refuse(what, place=place_of(made.path, ["steps", i]), fix=fix)
            hot = {f"{name}={label}" for name in made.rules.one_hot for label in made.rules.categories[name]}
            step.set_params(columns=[name for name in ranges if name not in hot])
        if not keeps_columns(step):
            return


def keeps_columns(step: Any) -> bool:
    """Whether a step of ppdp is known to hand on the columns that it got."""
    from sklearn.base import OneToOneFeatureMixin

    kind = type(step)
    named = getattr(kind, "get_feature_names_out", None)
    return kind.__module__.startswith("ppdp.") and named is OneToOneFeatureMixin.get_feature_names_out


def check_ranges(path: Path, steps: Sequence[tuple[str, Any]], rules: DataRules, names: Sequence[str] | None) -> None:
    """Refuse ranges of columns that are not there, and columns without a range.

    Where the names of the features are not known, only what ``[data]`` tells is checked.
    """
    for position, (_, step) in enumerate(() if rules.declared is not None else steps):
        ranges = getattr(step, "ranges", None)
        if isinstance(ranges, Mapping):
            place = place_of(path, ["steps", position, "ranges"])
            needed = [name for name in rules.categories if name not in rules.one_hot]
            without = [name for name in (needed if names is None else names) if name not in ranges]
            for name in ranges:
                if names is None or name not in names:
                    _refuse_superfluous(name, rules, names, without, place)
            if without:
                refuse(f"ranges lacks the columns {without}.", place=place, fix=_range_of(without[0], rules))
        if not keeps_columns(step):
            return


def _refuse_superfluous(
    name: str, rules: DataRules, names: Sequence[str] | None, without: Sequence[str], place: str
) -> None:
    """Refuse the range of what is known to be no feature."""
    what = f"ranges has {name!r}, which is"
    if name == rules.label:
        refuse(f"{what} the column of labels.", place=place, fix="leave it out.")
    if name in rules.drop:
        refuse(f"{what} dropped in [data].", place=place, fix="leave it out here, or there.")
    if name in rules.one_hot:
        refuse(
            f"{what} one of the one_hot columns.",
            place=place,
            fix="leave it out; the columns of 0 and 1 that it becomes have [0, 1].",
        )
    column, _, label = name.partition("=")
    if column in rules.one_hot and label not in rules.categories[column]:
        refuse(
            f"{what} no column: {column!r} has no category {label!r}.",
            place=place,
            fix=suggestion(label, rules.categories[column]),
        )
    if names is not None:
        lacking = f", and lacks {words_of(without)}" if without else ""
        refuse(f"{what} no column of the data{lacking}.", place=place, fix=suggestion(name, without or names))


def _range_of(name: str, rules: DataRules) -> str:
    """How a column gets a range."""
    labels = rules.categories.get(name)
    pair = "[LOW, HIGH]" if labels is None else f"[0, {max(1, len(labels) - 1)}]"
    return f"{name} = {pair} here, from what the column means, or list it in [data] drop."
