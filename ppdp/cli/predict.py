"""``ppdp predict``: what a released model says of the rows of a data file."""

from __future__ import annotations

import os
import re
from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ppdp.cli.cells import Layout
from ppdp.cli.errors import refuse, words_of
from ppdp.cli.fit import EXPORT
from ppdp.cli.output import say
from ppdp.cli.pipeline_file import PipelineFile, import_modules, read_pipeline_file
from ppdp.cli.tables import Source, open_source
from ppdp.exceptions import ExportError, InvalidValue

if TYPE_CHECKING:
    from ppdp.pipeline.release.load import ReleasedPipeline

__all__ = ["predict"]

_COLUMN = "prediction"
_FORMULA = re.compile(r"\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def predict(options: Namespace) -> int:
    """Write one prediction for every row, in their order."""
    import pandas as pd

    from ppdp.certificate.share.files import write_atomically

    if os.path.lexists(options.out):
        refuse(f"{str(options.out)!r} is already there.", place="--out", fix="another name; nothing is replaced.")
    if not options.out.absolute().parent.is_dir():
        refuse(f"there is no folder {str(options.out.absolute().parent)!r}.", place="--out", fix="make it first.")
    file = read_pipeline_file(options.file, options.imports)
    model = _loaded(options)
    layout = _unlabelled(open_source(options.data), file)
    wanted = tuple(model.feature_names_in_)
    absent = [name for name in wanted if name not in layout.names]
    if absent:
        fix = f"data like those of the fit, and the file of the fit: {options.file} makes {words_of(layout.names)}."
        refuse(f"lacks the columns {words_of(absent)}.", place=str(options.data), fix=fix)
    X = layout.read(None)[0][list(wanted)]
    try:
        predicted = model.predict(X)
    except InvalidValue:
        refuse(
            "a cell holds what the pipeline file does not declare: a gap, a word or infinity.",
            place=str(options.data),
            fix="correct the cell, or leave the row out.",
        )
    cells = [_harmless(label) for label in predicted.tolist()]
    write_atomically(options.out, pd.DataFrame({_COLUMN: cells}).to_csv(index=False, lineterminator="\n"))
    lines = [f"written: {options.out}, {len(predicted)} rows"]
    if cells != predicted.tolist():
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
    try:
        model = load(path, stages=import_modules(options.imports).values())
    except ExportError as error:
        refuse(error.message, place=str(path), fix=error.fix or "model.zip or the folder that `ppdp fit` wrote.")
    if not (hasattr(model, "predict") and hasattr(model, "feature_names_in_")):
        refuse(
            "predicts nothing.", place=str(path), fix="a model of `ppdp fit` that ends in a classifier or regressor."
        )
    return model


def _unlabelled(source: Source, file: PipelineFile) -> Layout:
    """The features alone: neither the labels nor what was dropped need be there."""
    rules: Any = file.rules
    ignored = tuple(name for name in (*rules.drop, rules.label) if name in source.types)
    return Layout.of(source, replace(file, rules=replace(rules, label=None, drop=ignored)))
