"""``ppdp fit`` and ``ppdp predict``, the account that a fit charges, and ``ppdp ledger``."""

from __future__ import annotations

import json
import math
import os
import re
import tempfile
from argparse import Namespace
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdp.cli.certificate_files import CERTIFICATE, EXPORT, PAGE, carried
from ppdp.cli.column_parsing import Layout
from ppdp.cli.data_files import is_large, open_rows
from ppdp.cli.documents import SUFFIXES, place_of
from ppdp.cli.main import NO, YES
from ppdp.cli.output import Misuse, busy, placed, refuse, refuse_taken, say, table, warning_lines, words_of
from ppdp.cli.parser import CLUSTERS
from ppdp.cli.pipeline_file import PipelineFile, import_modules, read_pipeline_file
from ppdp.cli.planning import planned
from ppdp.core.progress import unseen
from ppdp.exceptions import ExportError, InvalidValue, LedgerError, PpdpError, escaped

if TYPE_CHECKING:
    from ppdp.pipeline.release.load import ReleasedPipeline
    from ppdp.privacy.ledger.ledger import Ledger

_HELD = "its entry is there, with all before it."
_LACKED = (
    "its entry, or one before it, is not there as it was: the ledger was put back to an older copy, or went on without"
    " it. Enter it again; how is in docs/guides/command-line.md."
)
_FIX_LIMIT = "--limit EPSILON DELTA makes one, as in --limit 3 1e-5."


@dataclass(frozen=True, slots=True)
class Balance:
    """What was spent on one dataset."""

    dataset: str
    delta: float  # where epsilon is told: that of the limit, if there is one
    spent: float | None  # epsilon of all entries together; None if no epsilon covers them at this delta
    limit: float | None  # its epsilon
    remaining: float | None
    protects: str | None  # what, if that is less than everything about a row

    def __str__(self) -> str:
        spent = "no epsilon covers what was spent" if self.spent is None else f"spent epsilon {self.spent:.4g}"
        of_what = "" if self.protects is None else f" (protects {escaped(self.protects)}, and nothing else in it)"
        told = f"{escaped(self.dataset)}{of_what}: {spent} at delta {self.delta:g}"
        if self.remaining is None or self.limit is None:
            return f"{told}, without a limit"
        return f"{told}, of a limit of {self.limit:g}; {self.remaining:.4g} is left of it"


def ledger(options: Namespace) -> int:
    """Print what an account holds, and what is left of its limit."""
    account = _opened(options.path, place=str(options.path), fix="the path that was given to `ppdp fit --ledger`.")
    if account.budget is not None and options.delta is not None:
        refuse("the limit has a delta.", place="--delta", fix="leave it out; it is for ledgers without a limit.")
    entries = account.entries()
    balances = [balance(account, name, options.delta) for name in sorted({entry.dataset for entry in entries})]
    held = {str(path): _holds(account, path) for path in options.certificate}
    status = NO if False in held.values() else YES
    if options.json:
        found: dict[str, Any] = {"limit": account.budget, "accounting": account.accounting}
        found |= {"entries": [asdict(entry) for entry in entries], "datasets": [asdict(one) for one in balances]}
        found |= {"certificates": held} if held else {}
        say(json.dumps(found, indent=2, ensure_ascii=False, allow_nan=False))
        return status
    limit = "no limit" if account.budget is None else "limit ({:g}, {:g}) for each dataset".format(*account.budget)
    lines = [[escaped(w) for w in (str(e.id), e.time, e.status, e.dataset, e.block, e.label)] for e in entries]
    shown = table(("", "time", "status", "dataset", "block", "what for"), lines) if lines else "  nothing was spent"
    compared = [f"{escaped(path)}: {_HELD if there else _LACKED}" for path, there in held.items()]
    say("\n".join([f"{options.path}: {limit}", shown, *map(str, balances), *compared]))
    return status


def _holds(account: Ledger, path: Path) -> bool:
    """Whether an account holds the entry of the certificate in a file."""
    certificate = carried(path)
    with placed(str(path), LedgerError, fix="a certificate that was charged to this ledger."):
        return account.holds(certificate)


def balance(account: Ledger, dataset: str | None, delta: float | None = None) -> Balance:
    """What was spent on one dataset, or on the one without a name, at the delta of the limit or else at this one."""
    from ppdp.core.names import dataset_name
    from ppdp.privacy.ledger.ledger import DELTA

    name = dataset_name(dataset)
    limit, at = account.budget or (None, DELTA if delta is None else delta)
    spent = account.epsilon(at, name)
    remaining = None if limit is None else max(0.0, limit - spent)
    less = (entry.adjacency.unit for entry in account.entries(name) if not entry.adjacency.row_level)
    return Balance(name, at, spent if math.isfinite(spent) else None, limit, remaining, next(less, None))


def account_of(options: Namespace) -> Ledger | None:
    """The account that a fit is charged to; a new one only with a limit."""
    if options.ledger is None:
        if options.limit is not None:
            refuse("a limit needs a ledger.", place="--limit", fix="add --ledger PATH.")
        return None
    if not options.ledger.absolute().parent.is_dir():
        refuse(f"the folder of {str(options.ledger)!r} is not there.", place="--ledger", fix="make it first.")
    if options.limit is None:
        return _opened(options.ledger, place="--ledger", fix=_FIX_LIMIT)
    from ppdp.privacy.ledger.ledger import Ledger

    try:
        return Ledger(options.ledger, *options.limit)
    except PpdpError as error:
        fix = _FIX_LIMIT if error.parameter in ("epsilon", "delta") else error.fix or _FIX_LIMIT
        raise Misuse(error.message, place="--ledger", fix=fix) from None


def _opened(path: Path, *, place: str, fix: str) -> Ledger:
    """An account that is there: an empty one in the place of a mistyped one would forget what was spent."""
    from ppdp.privacy.ledger.ledger import Ledger

    if not (path.is_file() and path.stat().st_size):
        refuse(f"no ledger at {str(path)!r}.", place=place, fix=fix)
    with placed(place, fix=fix):
        return Ledger(path)


TABLE = "report.csv"
_SHOWN = ("statistic", "column", "category", "low", "high", "value", "lower", "upper", "note")
_CELL = "a cell holds what the pipeline file does not declare: a gap, a word, infinity, or another form of number."
_NUMBERS = "numbers as 1234.5 and no more: pandas.read_csv(path, thousands=','), or (..., decimal=',', thousands='.')"
_WRITTEN = f"{_NUMBERS}; dates as 2030-12-31: pandas.to_datetime(column, format='%d/%m/%Y', errors='coerce')"
_TEXT = 'NAME = ["a", "b"] in [columns] where a column declared as a range holds text'
_COLUMN = "prediction"
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def fit(options: Namespace) -> int:
    """Fit, write the folder, print the certificate.

    All that is public is checked first, so that no budget is spent on something that could not be written.
    """
    return _run(options, read_pipeline_file(options.file, options.imports), write=_write)


def report(options: Namespace) -> int:
    """As ``fit``, with statistics of the columns as the one step where the file has none; prints and writes a table."""
    file = read_pipeline_file(options.file, options.imports, {"use": "Report"})
    if not getattr(file.steps[-1][1], "tells_errors", False):
        what = "the last step is no statistic of columns."
        refuse(what, place=place_of(file.path, ["steps", len(file.steps) - 1]), fix='use = "Report", or `ppdp fit`.')
    return _run(options, file, write=_write_report)


def _run(options: Namespace, file: PipelineFile, write: Callable[..., Written]) -> int:
    _check_out(options.out, options.ledger)
    if bool(options.rows) == (options.data is not None):
        refuse("where are the rows?", place="--data", fix="--data PATH, or their files in front of the pipeline file.")
    with _engine(options):
        paths = options.rows or [options.data]
        engine = options.engine or ("arrow" if is_large(paths) else None)
        source = open_rows(paths, engine, header_is_names=options.header_is_names)
        return _fit(options, file, Layout.of(source, file), write)


def _engine(options: Namespace) -> AbstractContextManager[None]:
    """What reads the rows."""
    if options.engine in CLUSTERS:
        from ppdp.data.engine.registry import engine

        return engine(options.engine, options.scheduler)
    if options.scheduler is not None:
        refuse("only a cluster has a scheduler.", place="--scheduler", fix="--engine dask, or --engine ray.")
    return nullcontext()


def _fit(options: Namespace, file: PipelineFile, layout: Layout, write: Callable[..., Written]) -> int:
    plan = planned(file, layout, file.pipeline(dataset=options.dataset))
    _check_exportable(file, plan, conditional=options.conditional)
    account = account_of(options)
    pipe = file.pipeline(ledger=account, dataset=options.dataset)
    with unseen(options.quiet), busy(quiet=options.quiet or layout.source.blocks is not None):
        rules, rows = file.rules, layout.rows(plan.domain.classes)
        try:
            with file.located(), warning_lines(printed=not (options.quiet or options.json)):
                pipe.fit(rows, rules.label, rules.groups, sample_weight=rules.sample_weight)
        except Misuse as error:
            if isinstance(error.__context__, InvalidValue):  # its cause is in the data, not in the pipeline file
                what, fix = _undeclared(error.__context__, file)
                refuse(what, place=str(layout.source.path), fix=fix)
            raise
        made = write(pipe, options.out, conditional=options.conditional)
    certificate = pipe.certificate_
    after = None if account is None else balance(account, pipe.dataset, certificate.delta)
    if options.json:
        written = {"out": str(options.out), "sha256": made.sha256, "certificate": certificate.to_dict()}
        written |= {} if after is None else {"ledger": {"path": str(options.ledger), **asdict(after)}}
        say(json.dumps(written, indent=2, ensure_ascii=False, allow_nan=False))
    elif not options.quiet:
        lines = [f"written: {options.out}/{EXPORT} (sha256 {made.sha256}), {', '.join(made.others)}"]
        if after is not None:
            told = f"charged to {options.ledger}: ({certificate.epsilon:g}, {certificate.delta:g})"
            lines.append(f"{told}; of all its entries on these data:\n{after}")
        say("\n".join([*made.words, certificate.to_text(), *lines]))
    return 0


def _undeclared(error: InvalidValue, file: PipelineFile) -> tuple[str, str]:
    """What is said of a value that stopped a fit, and what to write in the pipeline file."""
    rules, spent = file.rules, " The ledger counts this fit as spent." if error.spent else ""
    repair = 'on_invalid = "repair" in [pipeline], which'
    if error.parameter == "y":
        fix = f"classes = [...] with all labels that there may be; {repair} takes any other as the first class."
        if file.classes[0] is None:
            fix = f"{_NUMBERS}; for text a classifier; {repair} takes it as the centre of y_range."
        return f"a label in {rules.label!r} is missing, or not as declared.{spent}", fix
    if error.parameter == "groups":
        return f"a row has no id in {rules.groups!r}.{spent}", f"{repair} leaves it out."
    if error.parameter == "sample_weight":
        what = f"a weight in {rules.sample_weight!r} is missing, below 0, infinite or no number, or all are 0."
        return f"{what}{spent}", f"{repair} takes it as 0."
    fix = f'on_invalid = "repair" in [pipeline], an imputer, or missing that covers it; {_TEXT}; {_WRITTEN}.'
    if rules.declared is not None and rules.declared.private:
        other = '{private = 20}, ["a", "b"] or "drop" where one of them holds text, a first and a last day for dates.'
        fix = f'"private" is for numbers, here in {words_of(rules.declared.private)}: {other} Otherwise {fix}'
    return f"{_CELL}{spent}", fix


def _check_out(out: Path, ledger: Path | None) -> None:
    """Refuse a folder that could not be made in the end, by making one beside it and taking it away again."""
    from ppdp.certificate.share.files import OF_OTHERS, write_folder

    refuse_taken(out)
    if out.suffix.lower() in OF_OTHERS:
        fix = f"a name without an ending; {EXPORT} will be in it."
        refuse(f"{out.name!r} is to be a folder.", place="--out", fix=fix)
    if ledger is not None and os.path.realpath(ledger) == os.path.realpath(out):
        refuse(f"{str(out)!r} is the ledger.", place="--out", fix="another name.")
    try:
        with _beside(out) as folder:
            write_folder(Path(folder) / out.name, {PAGE: b""})
    except (OSError, ExportError):
        refuse(f"{str(out)!r} cannot be written.", place="--out", fix="another place, or a shorter name.")


def _beside(out: Path) -> tempfile.TemporaryDirectory[str]:
    """A hidden place on the disk of what will be written."""
    return tempfile.TemporaryDirectory(dir=out.absolute().parent, prefix=f".{out.name}.")


def _check_exportable(file: PipelineFile, plan: Any, *, conditional: bool) -> None:
    """Refuse, before anything is spent, what could not be exported afterwards."""
    if plan.mechanism is not None and any(fact.name == "classes" and not fact.public for fact in plan.facts):
        what = "the classes are not declared."
        fix = "classes = [0, 1], or whatever the labels are."
        refuse(what, place=place_of(file.path, ["steps", len(file.steps) - 1, "classes"]), fix=fix)
    reasons = [f"{fact.name}: {fact.origin}" for fact in plan.facts if not fact.public]
    if plan.conditions_untested:
        reasons.append("conditions are assumed, not tested")
    if reasons and not conditional:
        keys = ["pipeline", "gate"] if plan.conditions_untested else ["steps", len(file.steps) - 1]
        fix = 'gate = "auto", or --conditional' if plan.conditions_untested else "--conditional"
        what = f"the certificate would be CONDITIONAL ({'; '.join(reasons)})."
        refuse(what, place=place_of(file.path, keys), fix=f"{fix} if the recipient shall rely on that.")


@dataclass(frozen=True)
class Written:
    """A folder that was written: the hash of its export, its other files, and lines to print above the certificate."""

    sha256: str
    others: tuple[str, ...]
    words: tuple[str, ...] = ()


def _write(pipe: Any, out: Path, *, conditional: bool, **more: bytes) -> Written:
    """Write the folder, whole or not at all."""
    from ppdp.certificate.share.files import write_folder

    with _beside(out) as folder:
        path = Path(folder) / EXPORT
        sha256: str = pipe.export(path, conditional=conditional)
        members = {
            EXPORT: path.read_bytes(),
            CERTIFICATE: f"{pipe.certificate_.to_json()}\n".encode(),
            PAGE: pipe.certificate_.to_html().encode(),
            **more,
        }
    write_folder(out, members)
    return Written(sha256, tuple(name for name in members if name != EXPORT))


def _write_report(pipe: Any, out: Path, *, conditional: bool) -> Written:
    """The folder with a table of all numbers in it, which is printed as well."""
    table = pipe.release_.conf_int()
    written = _write(pipe, out, conditional=conditional, **{TABLE: table.to_csv(index=False).encode()})
    for name, text in (("value", "date"), ("lower", "date_lower"), ("upper", "date_upper")):
        if text in table:
            table[name] = table[text].where(table[text] != "", table[name].map("{:.6g}".format))
    shown = [name for name in _SHOWN if name in table and not table[name].isin([""]).all()]
    words = table[shown].to_string(index=False, na_rep="", float_format="{:.6g}".format)
    return replace(written, words=(words, "lower and upper: 95 % intervals of the noise alone", ""))


def predict(options: Namespace) -> int:
    """Write one prediction for every row, or the probabilities of classes, in the order of the rows."""
    import pandas as pd

    from ppdp.certificate.share.files import write_atomically

    refuse_taken(options.out)
    if options.model.suffix in SUFFIXES:
        fix = "ppdp predict MODEL FILE --data ...: the model first."
        refuse("is a pipeline file.", place=str(options.model), fix=fix)
    file = read_pipeline_file(options.file, options.imports)
    model, method = _loaded(options), "predict_proba" if options.proba else "predict"
    if not hasattr(model, method):
        refuse("has no probabilities.", place=str(options.model), fix="leave --proba out; LogisticRegression has some.")
    source = open_rows([options.data], options.engine, header_is_names=options.header_is_names)
    wanted = tuple(model.feature_names_in_)
    if options.id is not None:
        source.require(options.id, "--id", features=wanted)
        if options.id in wanted:
            fix = "a column that says whose each row is."
            refuse(f"the column {options.id!r} is a feature.", place="--id", fix=fix)
    layout = Layout.for_model(source, file, wanted, options.id)
    X = layout.rows(None)
    in_parts = layout.source.blocks is not None and not options.out.name.lower().endswith(".csv")
    if not in_parts and options.out.suffix.lower() not in ("", ".csv", ".txt"):
        refuse("predictions are written as CSV.", place="--out", fix="a name that ends in .csv.")
    try:
        if in_parts:
            model.write_parquet(X, options.out, method=method, keep=[] if options.id is None else [options.id])
            say(f"written: {options.out}, {layout.source.n_rows} rows")
            return 0
        predicted = getattr(model, method)(X if layout.source.blocks is not None else X.select(list(wanted)))
    except InvalidValue:
        refuse(_CELL, place=str(options.data), fix=f"correct the cell, or leave the row out; {_WRITTEN}.")
    if options.proba:
        table = pd.DataFrame(predicted, columns=[f"probability of {label}" for label in model.classes_])
    else:
        table = pd.DataFrame({_COLUMN: [_harmless(label) for label in predicted.tolist()]})
    labels = table.get(_COLUMN, pd.Series()).tolist()
    if options.id is not None:
        if options.id in table:
            refuse(f"a column of what is written has the name {options.id!r}.", place="--id", fix="rename the column.")
        ids = [_harmless(one) for one in layout.row_ids()]  # of which pandas would make fractions if one is missing
        table.insert(0, options.id, pd.Series(ids, dtype=object))
    write_atomically(options.out, table.to_csv(index=False, lineterminator="\n"), 0o600)  # of private rows
    lines = [f"written: {options.out}, {len(predicted)} rows"]
    if not options.proba and labels != predicted.tolist():
        lines.append("labels that a spreadsheet would run as a formula begin with ' there")
    say("\n".join(lines))
    return 0


def _harmless(label: Any) -> Any:
    """A label as a cell that no spreadsheet takes for a formula; a number stays one.

    Who made the model chose its labels: ``=HYPERLINK(...)`` would send what stands beside it to somebody.
    """
    text = isinstance(label, str) and not _NUMBER.fullmatch(label)
    return f"'{label}" if text and _FORMULA.match(label) else label


def _loaded(options: Namespace) -> ReleasedPipeline:
    """The model in an export or a folder of ``ppdp fit``; everything of it was verified."""
    from ppdp.pipeline.release.load import load

    path = options.model / EXPORT if (options.model / EXPORT).is_file() else options.model
    with placed(str(path), ExportError, fix="model.zip or the folder that `ppdp fit` wrote."):
        model = load(path, stages=import_modules(options.imports).values())
    if not (hasattr(model, "predict") and hasattr(model, "feature_names_in_")):
        fix = "a model of `ppdp fit` that ends in a classifier or regressor."
        refuse("predicts nothing.", place=str(path), fix=fix)
    return model
