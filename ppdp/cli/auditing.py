"""``ppdp audit``: attack what a pipeline file would certify."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ppdp.cli.output import complain, refuse, refuse_taken, say
from ppdp.cli.pipeline_file import PipelineFile, read_pipeline_file
from ppdp.cli.planning import planned_of, public_facts
from ppdp.exceptions import NoRoute, PpdpError

if TYPE_CHECKING:
    from ppdp.audit.report import Report
    from ppdp.pipeline.planning.plan import Plan


def audit(options: Namespace) -> int:
    """Try to break the plan of a pipeline file: 0 if nothing is found, 1 if a claim is false."""
    from ppdp.audit import attack_membership
    from ppdp.audit import audit as attack
    from ppdp.audit.report import check_report_path

    if options.out is not None:
        check_report_path(options.out)
        refuse_taken(options.out)
    if options.out is not None and not os.access(options.out.absolute().parent, os.W_OK):
        refuse(f"{str(options.out)!r} cannot be written.", place="--out", fix="a folder that is there and yours.")
    file = read_pipeline_file(options.file, options.imports)
    plan, why = _planned(file, options)
    given = {"n_jobs": options.jobs, "seed": options.seed}
    report: Report
    if options.membership:
        report = attack_membership(plan, models=options.runs, **given)
    else:
        search = {"evaluations": options.evaluations, "seconds": options.seconds}
        report = attack(plan, runs=options.runs, announce=lambda words: complain(f"{words}.{why}"), **search, **given)
    if options.out is not None:
        report.save(options.out)
    say(json.dumps(report.to_dict(), indent=2, ensure_ascii=False) if options.json else repr(report))
    return 1 if report.violated else 0


def _planned(file: PipelineFile, options: Namespace) -> tuple[Plan, str]:
    """The plan for the rows that are given, or for the fewest that have a route, and a word on their number."""
    from ppdp.audit.lab import fewest_rows

    if options.data is not None:
        return planned_of(file, options), ""
    pipe = file.pipeline()
    if options.rows is not None:  # rows are made up, so another number than the file's may be attacked
        pipe.set_params(domain=pipe.domain.but(n_rows=None))
    domain = public_facts(file, pipe.domain, options, needed=["n_features"])
    with file.located():
        if domain.n_rows is None:
            plan = fewest_rows(pipe.plan, domain)
            return plan, f" {plan.domain.n} rows are the fewest that have a route; --rows N attacks the plan for N."
        try:
            return pipe.plan(domain), _fewer(pipe, domain)
        except NoRoute as error:
            fewest = _fewest(pipe, domain)
            if fewest is None:
                raise
            fix = f"--rows {fewest} has a route, or leave --rows out."
            raise NoRoute(error.message, stage=error.stage, fix=fix) from None


def _fewer(pipe: Any, domain: Any) -> str:
    fewest = _fewest(pipe, domain)
    return f" Fewer rows are faster and sharper: --rows {fewest}." if fewest and fewest < domain.n else ""


def _fewest(pipe: Any, domain: Any) -> int | None:
    """The fewest rows with a route, if any has one."""
    from ppdp.audit.lab import fewest_rows

    try:
        return fewest_rows(pipe.plan, domain).domain.n
    except PpdpError:
        return None
