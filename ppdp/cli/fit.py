"""``ppdp fit``: fit a pipeline file to private rows, and write what may leave."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from argparse import Namespace
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ppdp.cli.cells import Layout
from ppdp.cli.documents import place_of
from ppdp.cli.errors import Misuse, refuse
from ppdp.cli.ledgers import account_of, balance
from ppdp.cli.output import say
from ppdp.cli.pipeline_file import PipelineFile, read_pipeline_file
from ppdp.cli.planning import planned
from ppdp.cli.tables import open_source
from ppdp.exceptions import ExportError, InvalidValue

__all__ = ["fit"]

EXPORT, CERTIFICATE, PAGE = "model.zip", "certificate.json", "certificate.html"


def fit(options: Namespace) -> int:
    """Fit, write the folder, print the certificate.

    All that is public is checked first, so that no budget is spent on something that could not be written.
    """
    file = read_pipeline_file(options.file, options.imports)
    _check_out(options.out, options.ledger)
    layout = Layout.of(open_source(options.data), file)
    plan = planned(file, layout, file.pipeline(dataset=options.dataset))
    _check_exportable(file, plan, conditional=options.conditional)
    account = account_of(options)
    pipe = file.pipeline(ledger=account, dataset=options.dataset)
    with _busy("reading and fitting", quiet=options.quiet):
        X, y = layout.read(plan.domain.classes)
        try:
            with file.located():
                pipe.fit(X, y)
        except Misuse as error:
            raise _about_cells(error, options.data) from None
        sha256 = _write(pipe, options.out, conditional=options.conditional)
    certificate = pipe.certificate_
    after = None if account is None else balance(account, pipe.dataset, certificate.delta)
    if options.json:
        written = {"out": str(options.out), "sha256": sha256, "certificate": certificate.to_dict()}
        written |= {} if after is None else {"ledger": {"path": str(options.ledger), **asdict(after)}}
        say(json.dumps(written, indent=2, ensure_ascii=False, allow_nan=False))
    elif not options.quiet:
        lines = [f"written: {options.out}/{EXPORT} (sha256 {sha256}), {CERTIFICATE}, {PAGE}"]
        if after is not None:
            lines.append(f"charged to {options.ledger}: ({certificate.epsilon:g}, {certificate.delta:g})\n{after}")
        say("\n".join([certificate.to_text(), *lines]))
    return 0


def _check_out(out: Path, ledger: Path | None) -> None:
    """Refuse a folder that could not be made in the end, by making one beside it and taking it away again."""
    from ppdp.certificate.share.files import write_folder

    if os.path.lexists(out):
        refuse(f"{str(out)!r} is already there.", place="--out", fix="another name; nothing is replaced.")
    parent = out.absolute().parent
    if not parent.is_dir():
        refuse(f"there is no folder {str(parent)!r}.", place="--out", fix="make it first.")
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
        refuse(
            "the classes are not declared.",
            place=place_of(file.path, ["steps", len(file.steps) - 1, "classes"]),
            fix="classes = [0, 1], or whatever the labels are.",
        )
    reasons = [f"{fact.name}: {fact.origin}" for fact in plan.facts if not fact.public]
    if plan.ungated:
        reasons.append("conditions are assumed, not tested")
    if reasons and not conditional:
        place = place_of(file.path, ["pipeline", "gate"] if plan.ungated else ["steps", len(file.steps) - 1])
        fix = 'gate = "auto", or --conditional' if plan.ungated else "--conditional"
        refuse(
            f"the certificate would be CONDITIONAL ({'; '.join(reasons)}).",
            place=place,
            fix=f"{fix} if whoever receives it shall rely on that.",
        )


def _busy(words: str, *, quiet: bool) -> AbstractContextManager[Any]:
    """Something that moves on a terminal while nothing else does."""
    if quiet or not sys.stderr.isatty():
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(words)


def _about_cells(error: Misuse, data: Path) -> Misuse:
    """An invalid value has its cause in the data, not in the pipeline file."""
    if not isinstance(error.__context__, InvalidValue):
        return error
    return Misuse(
        "a cell holds what the pipeline file does not declare: a gap, a word or infinity.",
        place=str(data),
        fix='invalid = "repair" in [pipeline], an imputer, or missing, categories and classes that cover it.',
    )


def _write(pipe: Any, out: Path, *, conditional: bool) -> str:
    """Write the folder, whole or not at all."""
    from ppdp.certificate.share.files import write_folder

    with _beside(out) as folder:
        path = Path(folder) / EXPORT
        sha256: str = pipe.export(path, conditional=conditional)
        members = {
            EXPORT: path.read_bytes(),
            CERTIFICATE: f"{pipe.certificate_.to_json()}\n".encode(),
            PAGE: pipe.certificate_.to_html().encode(),
        }
    write_folder(out, members)
    return sha256
