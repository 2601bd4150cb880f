"""``ppdp audit``: attack what a pipeline file would certify."""

from __future__ import annotations

import json
import os
from argparse import Namespace

from ppdp.commands.errors import refuse
from ppdp.commands.output import say
from ppdp.commands.pipeline_file import read_pipeline_file
from ppdp.commands.planning import planned_of

__all__ = ["audit"]


def audit(options: Namespace) -> int:
    """Try to break the plan of a pipeline file: 0 if nothing is found, 1 if a claim is false."""
    from ppdp.audit import audit as attack

    if options.out is not None and os.path.lexists(options.out):
        refuse(f"{str(options.out)!r} is already there.", place="--out", fix="another name; nothing is replaced.")
    if options.out is not None and not os.access(options.out.absolute().parent, os.W_OK):
        refuse(f"{str(options.out)!r} cannot be written.", place="--out", fix="a folder that is there and yours.")
    file = read_pipeline_file(options.file, options.imports)
    plan = planned_of(file, options)
    report = attack(
        plan,
        evaluations=options.evaluations,
        seconds=options.seconds,
        runs=options.runs,
        folder=options.folder,
        n_jobs=options.jobs,
        seed=options.seed,
    )
    if options.out is not None:
        report.save(options.out)
    say(json.dumps(report.to_dict(), indent=2, ensure_ascii=False) if options.json else repr(report))
    return 1 if report.violated else 0
