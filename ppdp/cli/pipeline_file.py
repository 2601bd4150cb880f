"""From a pipeline file to a :class:`ppdp.Pipeline`; nothing in the file is executed."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ppdp.cli.documents import place_of, read_document
from ppdp.cli.output import Misuse, did_you_mean, placed, refuse
from ppdp.core.adjacency import Adjacency
from ppdp.core.keywords import instead_of, renamed_parameters, under_new_names
from ppdp.exceptions import BudgetExceeded, LedgerError, PpdpError, PrivacyRefusal, said_by

_CODE = ("function", "preprocessor", "tokenizer", "transformer", "utility")
_ELSEWHERE = {
    "noise_scale": "leave it out: epsilon and delta decide the noise.",
    "random_state": "leave it out: seeded noise protects no one, so it is never exported.",
}
_DEFAULT_MARKERS = ("NA", "N/A", "NaN", "nan", "null", "NULL")

COLUMNS = "columns"  # the table that declares every column, and the name of the step that reads them so


@dataclass(frozen=True, slots=True)
class DataRules:
    """How a data file is read: public rules, for every cell by itself."""

    label: str | None = None  # column of labels
    groups: str | None = None  # column of ids: whose each row is
    sample_weight: str | None = None  # column of weights
    missing: tuple[str | float, ...] = _DEFAULT_MARKERS  # what stands for a missing value, beside empty cells
    declared: Any = None  # a Declaration of every column; without, all features are numbers

    @property
    def beside(self) -> dict[str, str]:
        """Columns that are no features, by what they are."""
        given = {"label": self.label, "groups": self.groups, "sample_weight": self.sample_weight}
        return {what: name for what, name in given.items() if name is not None}


@dataclass(frozen=True, slots=True)
class PipelineFile:
    """A pipeline file that was read."""

    path: Path
    content: dict[str, Any]  # as it stands there
    rules: DataRules
    steps: tuple[tuple[str, Any], ...]

    @property
    def unbounded(self) -> bool:
        """Whether the number of rows is private."""
        return self.adjacency.unbounded

    @property
    def adjacency(self) -> type[Adjacency]:
        """Which kind of neighbours the file declares."""
        return Adjacency.kind_of(self.content.get("domain", {}).get("adjacency") or {"replace": 1})

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
        encoding = "ordinal" if self.steps and getattr(self.steps[-1][1], "takes_codes", False) else "onehot"
        return [*([] if declared is None else declared.steps(encoding)), *self.steps]

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
        fix = next((_IN_A_FILE[word] for word in _IN_A_FILE if fix.startswith(f"pass {word}=")), fix)
        if not fix and default not in (None, inspect.Parameter.empty):
            fix = f"{keys[-1]} = {default!r} is the default."
        last = f"correct it, or leave {keys[-1]} out." if keys and isinstance(keys[-1], str) else _FIX
        made = Misuse(error.message, place=place_of(self.path, keys), fix=fix or last)
        made.advice, made.details = error.advice, error.details
        return made

    def _keys(self, error: PpdpError) -> tuple[list[str | int], Any]:
        """Where in the file the parameter stands that an error is about, and what its default is."""
        if error.stage in (COLUMNS, "ColumnMap") and self.rules.declared is not None:
            return [COLUMNS], None
        from ppdp.transformers.columns.column_transformer import ColumnTransformer

        for position, (name, step) in enumerate(self.steps):
            inner = isinstance(step, ColumnTransformer) and str(error.stage).startswith(f"{name}-")
            if inner or error.stage in (name, type(step).__name__):
                parameter = inspect.signature(type(step)).parameters.get(error.parameter or "")
                if parameter is None:
                    return ["steps", position], None
                return ["steps", position, parameter.name], parameter.default
        for section in ("domain", "pipeline"):
            if error.parameter in self.content.get(section, {}):
                return [section, str(error.parameter)], None
        return [], None


_FIX = "change the file; `ppdp help plan` says what may stand there."
_IN_A_FILE = {
    "classes": "classes = [...] in the step of the model, with all labels that there may be.",
    "y_range": "y_range = [low, high] in the step of the model.",
}
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
            fix = "the name of a module that Python finds here, as my_stages for ./my_stages.py."
            refuse(f"cannot be imported: {said_by(error)}", place=f"--import {name}", fix=fix)
        kinds = [kind for kind in vars(module).values() if isinstance(kind, type)]
        found |= {kind.__name__: kind for kind in kinds if issubclass(kind, (Stage, Mechanism))}
    return found


def read_pipeline_file(path: Path, modules: Sequence[str] = (), *default: Mapping[str, Any]) -> PipelineFile:
    """Read a pipeline file and make its steps, the default ones if it has none; modules hold further classes."""
    content = read_document(path, *default)
    own = import_modules(modules)
    from ppdp.testing import REGISTRY
    from ppdp.transformers.columns.column_transformer import ColumnTransformer

    _refuse_blanks(content, path)
    content = _with_sources(content, path)
    rules = _rules(content.get("data", {}), content.get(COLUMNS), path)
    known: dict[str, type[Any]] = {**own, **REGISTRY, "ColumnTransformer": ColumnTransformer}
    classes = content.get("domain", {}).get("classes", ())
    steps = tuple(_step(step, ["steps", i], path, known, classes) for i, step in enumerate(content["steps"]))
    file = PipelineFile(path, content, rules, steps)
    _check_steps(file)
    return file


def _with_sources(content: dict[str, Any], path: Path) -> dict[str, Any]:
    """The content with sources of columns where the pipeline takes them, and attachments from the file's folder."""
    columns, given = content.get(COLUMNS, {}), dict(content.get("pipeline", {}))
    stated = {name: one for name, one in columns.items() if isinstance(one, Mapping) and "source" in one}
    if stated:
        given["sources"] = {**given.get("sources", {}), **{name: one["source"] for name, one in stated.items()}}
        columns = {**columns, **{name: one["values"] for name, one in stated.items()}}
        content = {**content, COLUMNS: columns}
    if attached := given.get("statements", {}).get("attachments"):
        given["statements"] = {**given["statements"], "attachments": [str(path.parent / name) for name in attached]}
    return {**content, "pipeline": given} if given else content


def _refuse_blanks(content: Mapping[str, Any], path: Path) -> None:
    """Name every blank that ``ppdp init`` has left and nobody has filled."""
    left = [place_of(path, keys).removeprefix(f"{path}: ") for keys in _blanks(content)]
    if left:
        refuse(
            f"blanks are left: {'; '.join(left)}.",
            place=str(path),
            fix="write what the column means, as the line says, never what the data hold; where it is unknown,"
            ' "private" for the range of numbers, {private = 20} for the categories of text, or "drop".',
        )


def _blanks(value: Any, keys: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Where a key has the value "?"; in lists it is a word like any other."""
    if isinstance(value, Mapping):
        yield from ((*keys, key) for key, inner in value.items() if inner == "?")
    for key, inner in value.items() if isinstance(value, Mapping) else enumerate(value):
        if isinstance(inner, (Mapping, list)):
            yield from _blanks(inner, (*keys, key))


def _rules(given: Mapping[str, Any], columns: Mapping[str, Any] | None, path: Path) -> DataRules:
    from ppdp.transformers.columns.declaration import DROP, Declaration

    given = {**given, "missing": tuple(given.get("missing", _DEFAULT_MARKERS))}
    rules = DataRules(**given)
    taken: dict[str, str] = {}
    for what, name in rules.beside.items():
        if name in taken:
            fix = "another column: each is one thing only."
            refuse(f"the column {name!r} is that of {taken[name]}, too.", place=place_of(path, ["data", what]), fix=fix)
        taken[name] = what
        if columns is not None and columns.get(name, DROP) != DROP:
            fix = f'take its line out of [{COLUMNS}], or write "{DROP}" there.'
            refuse(f"{what} = {name!r} in [data], so it is no feature.", place=place_of(path, [COLUMNS, name]), fix=fix)
    if columns is None:
        return rules
    features = {name: value for name, value in columns.items() if name not in taken}
    with placed(place_of(path, [COLUMNS]), fix=_FIX):
        declared = Declaration(dict.fromkeys(features), features)
        declared.column_map()
    forms, words = declared.forms, {one.strip() if isinstance(one, str) else f"{one:g}" for one in rules.missing}
    for name, value in features.items():
        if not isinstance(value, list) or (forms.get(name) == "number" and len(value) == 2):
            continue
        if lost := [one for one in value if (one if isinstance(one, str) else f"{one:g}").strip() in words - {"nan"}]:
            fix = f"missing = [...] in [data] without {lost[0]!r}, or no such category."
            what = f"{lost[0]!r} is a category of {name!r}, and by missing in [data] no value."
            refuse(what, place=place_of(path, [COLUMNS, name]), fix=fix)
    return replace(rules, declared=declared)


def _by_label(weights: Mapping[str, Any], classes: Sequence[Any]) -> dict[Any, Any]:
    """Weights by label, of which a file can only write the text."""
    labels = {str(label).lower() if isinstance(label, bool) else str(label): label for label in classes}
    return {labels.get(text, text): weight for text, weight in weights.items()}


def _step(
    given: Mapping[str, Any], keys: list[str | int], path: Path, known: Mapping[str, type[Any]], classes: Sequence[Any]
) -> tuple[str, Any]:
    """A step from its table."""
    kind = known.get(given["use"])
    if kind is None:
        from ppdp.interop.sklearn.known_estimators import KNOWN

        use = given["use"]
        other = did_you_mean(use, known) or "a class of ppdp, or --import the module that holds yours."
        place = place_of(path, [*keys, "use"])
        refuse(f"there is no stage {use!r}.", place=place, fix=KNOWN[use].leak.fix if use in KNOWN else other)
    parameters = {key: value for key, value in given.items() if key not in ("name", "use")}
    if isinstance(parameters.get("class_weight"), Mapping):
        parameters["class_weight"] = _by_label(parameters["class_weight"], given.get("classes", classes))
    renamed = renamed_parameters(kind)  # type: ignore[arg-type]
    parameters = under_new_names(str(given["use"]), renamed, parameters)
    allowed = inspect.signature(kind).parameters
    for key in parameters:
        place = place_of(path, [*keys, key])
        if key not in allowed:
            refuse(f"{kind.__name__} has no parameter {key!r}.", place=place, fix=instead_of(key, allowed))
        if key in _ELSEWHERE:
            refuse(f"{key} has no effect inside a pipeline.", place=place, fix=_ELSEWHERE[key])
        if key in _CODE:
            what = f"{key!r} is code, which a pipeline file cannot hold."
            refuse(what, place=place, fix="make a class of your own in a module, and --import it.")
    for key, parameter in allowed.items():
        if parameter.default is parameter.empty and key not in parameters:
            refuse(f"{kind.__name__} needs {key!r}.", place=place_of(path, keys), fix=f"add {key} = ...")
    if kind is known["ColumnTransformer"]:
        parameters["transformers"] = _transformers(parameters["transformers"], [*keys, "transformers"], path, known)
    return given.get("name", kind.__name__.lower()), kind(**parameters)


def _transformers(
    given: Any, keys: list[str | int], path: Path, known: Mapping[str, type[Any]]
) -> list[tuple[str, Any, Any]]:
    """The stages of groups of columns, from their tables."""
    made = []
    for i, table in enumerate(given if isinstance(given, list) else [None]):
        if not isinstance(table, Mapping) or table.keys() != {"name", "columns", "steps"}:
            what = "a transformer is a table of name, columns and steps."
            fix = '{name = "numbers", columns = ["age"], steps = [{use = "StandardScaler"}]}.'
            refuse(what, place=place_of(path, [*keys, i] if isinstance(given, list) else keys), fix=fix)
        steps = table["steps"]
        if not isinstance(steps, str):
            steps = [_step(step, [*keys, i, "steps", at], path, known, ()) for at, step in enumerate(steps)]
        made.append((table["name"], steps, table["columns"]))
    return made


def _check_steps(file: PipelineFile) -> None:
    """Refuse what cannot be of all steps together."""
    from ppdp.data.public_facts import check_beside_names
    from ppdp.pipeline.pipeline import Pipeline
    from ppdp.pipeline.steps import check_steps
    from ppdp.transformers.columns.spread_steps import spread

    names = [name for name, _ in file.steps]
    for position, name in enumerate(names):
        if name in names[:position]:
            place = place_of(file.path, ["steps", position, "name"])
            refuse(f"the name {name!r} is there twice.", place=place, fix=f'name = "{name}2".')
    rules, domain = file.rules, file.content.get("domain", {})
    with file.located():
        steps = check_steps(spread(file.all_steps()), Pipeline)
        for column in rules.beside.values():
            check_beside_names(Adjacency.replace(), steps.stages, repr(column))  # a file has no changes by position
    _check_domain(file, domain)
    learns = steps.supervised
    if learns != (rules.label is not None):
        what = f"{type(file.steps[-1][1]).__name__} learns labels, and no column of them is named."
        fix = 'label = "COLUMN".' if learns else f'take the line out; {rules.label} = "drop" in [{COLUMNS}].'
        refuse(what if learns else "no step learns labels.", place=place_of(file.path, ["data", "label"]), fix=fix)


def _check_domain(file: PipelineFile, domain: Mapping[str, Any]) -> None:
    """Refuse public facts that do not go with the columns of ids and weights."""
    if file.unbounded and "n_rows" not in domain:
        refuse(
            "the number of rows is private, and no cap on it is declared.",
            place=place_of(file.path, ["domain", "n_rows"]),
            fix="n_rows = CAP in [domain]: with add_remove at least the rows that any such file may have, with person "
            "those that are kept of all persons together; never the number of rows in this file.",
        )
    persons = file.adjacency.bounds_contributions
    if persons and file.rules.groups is None:
        what = "persons are protected, and no column says whose each row is."
        refuse(what, place=place_of(file.path, ["domain", "adjacency"]), fix='groups = "COLUMN" in [data].')
    if not persons and file.rules.groups is not None:
        fix = "adjacency = {person = 3} and n_rows in [domain], or take the line out."
        refuse("persons are not protected.", place=place_of(file.path, ["data", "groups"]), fix=fix)
    if (file.rules.sample_weight is None) != ("max_weight" not in domain):
        what = "weights of rows need their column, and the largest that there may be."
        fix = 'sample_weight = "COLUMN" in [data], and max_weight = MOST in [domain].'
        refuse(what, place=place_of(file.path, ["data", "sample_weight"]), fix=fix)
