"""``ppdp init``, ``plan``, ``compare``, ``audit`` and ``lint``: what is done before any private row is read."""

from __future__ import annotations

import importlib
import json
import os
import runpy
import sys
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdp.cli.column_parsing import Layout
from ppdp.cli.data_files import open_rows
from ppdp.cli.documents import place_of
from ppdp.cli.output import complain, refuse, refuse_taken, say, suggestion, table
from ppdp.cli.pipeline_file import PipelineFile, read_pipeline_file
from ppdp.exceptions import InvalidParameter, NoRoute, PpdpError, escaped, said_by

if TYPE_CHECKING:
    from ppdp.audit.report import AttackReport
    from ppdp.pipeline.planning.plan import Plan
from ppdp.pipeline.fit import plan_of

SHAPE = "n_rows", "n_features"


def plan(options: Namespace) -> int:
    """Print the plan of a pipeline file."""
    file = read_pipeline_file(options.file, options.imports)
    made = planned_of(file, options)
    taken = None
    if options.time:
        pipe = file.pipeline()
        with file.located():
            taken = pipe.fit_time(_shaped(pipe, made))
    if options.json:
        plain = as_plain(made) | ({} if taken is None else {"fit_time": asdict(taken)})
        say(json.dumps(plain, indent=2, ensure_ascii=False))
        return 0
    say(repr(made) if taken is None else f"{made!r}\n{taken!r}")
    noises = ["" if a.noise_scale is None else f"{a.noise_scale:.4g}" for a in made.alternatives]
    lines = [(a.route, noise, a.status, a.reason) for a, noise in zip(made.alternatives, noises)]
    say(table(("ways to fit the steps (routes)", "noise", "", "because"), lines))
    names = made.domain.feature_names
    if names is not None:
        origin = "" if options.data is not None else ", which the data must have"
        say(f"columns{origin}: {', '.join(escaped(name) for name in names)}")
    private = () if file.rules.declared is None else file.rules.declared.private
    if private:
        told = ", ".join(escaped(name) for name in private)
        say(f'"private", so read as numbers: {told}; one that holds text needs {{private = 20}}, else the fit is lost')
    return 0


def planned(file: PipelineFile, layout: Layout, pipe: Any) -> Any:
    """The plan of a pipeline for a data file, of which only shape and names are used."""
    declared = pipe.domain.feature_names
    if declared is not None and tuple(declared) != layout.names:
        what = f"other columns are declared than {str(layout.source.path)!r} has."
        fix = "leave the line out: names are read from the file."
        refuse(what, place=place_of(file.path, ["domain", "feature_names"]), fix=fix)
    with file.located():
        return plan_of(pipe, pipe.domain, shape=layout.shape, names=layout.names)


def planned_of(file: PipelineFile, options: Namespace) -> Any:
    """The plan for the public facts of the file, of the command line or of a data file."""
    pipe = file.pipeline()
    if options.data is not None:
        if options.rows is not None or options.columns is not None:
            what = "--rows and --columns are read from --data."
            refuse(what, place="--data", fix="give either --data or the numbers.")
        return planned(file, Layout.of(open_rows([options.data], header_is_names=options.header_is_names), file), pipe)
    domain = public_facts(file, pipe.domain, options)
    with file.located():
        return pipe.plan(domain)


def public_facts(file: PipelineFile, domain: Any, options: Namespace, *, needed: Sequence[str] = SHAPE) -> Any:
    """The domain of a pipeline file with the numbers of the command line; those that are needed must be known."""
    ranges = file.rules.declared.forms if file.rules.declared is not None else getattr(file.steps[0][1], "ranges", None)
    named = len(ranges) if isinstance(ranges, Mapping) else None  # columns that the file names
    given = {"n_rows": ("--rows", options.rows), "n_features": ("--columns", options.columns or named)}
    if named is not None and options.columns not in (None, named):
        what = f"{options.columns} is given, and lines of the file name {named} columns."
        refuse(what, place="--columns", fix="leave it out.")
    for fact, (option, value) in given.items():
        known = getattr(domain, fact)
        if known is not None and value is not None and known != value:
            refuse(f"{value} is given, and {file.path} declares {fact} = {known}.", place=option, fix="give it once.")
        if known is None and value is None and fact in needed:
            what = "rows" if fact == "n_rows" else "columns"
            what = f"the number of {what} is not declared."
            refuse(what, place=option, fix=f"{option} NUMBER, --data PATH, or {fact} = NUMBER in [domain].")
        domain = domain if value is None else domain.but(**{fact: value})
    return domain


def as_plain(made: Any) -> dict[str, Any]:
    """A plan for machines."""
    gate, mechanism = made.gate, made.mechanism
    return {
        "certified": False,
        "epsilon": made.epsilon,
        "delta": made.delta,
        "domain": made.domain.to_dict(),
        "facts": [asdict(fact) for fact in made.facts],
        "steps": [
            {
                "name": step.name,
                "class": type(step.stage).__name__,
                "way": step.way.name,
                "formula": step.way.formula,
                "distance": step.way.distance.to_dict(),
                "conditions": [condition.statement for condition in step.way.conditions],
            }
            for step in made.steps
        ],
        "releases": [
            {
                "statistic": release.statistic,
                "serves": [made.steps[i].name for i in release.serves],
                "noise_scale": release.noise_scale,
                "mu": release.mu,
            }
            for release in made.releases
        ],
        "diagnostics": made.diagnostics
        and {
            "properties": [asdict(one) for one in made.diagnostics.properties],
            "noise_scale": made.diagnostics.noise_scale,
            "mu": made.diagnostics.loss.mu or None,
            "error": made.diagnostics.error,
        },
        "withheld": made.silent or None,
        "gate": gate
        and {"kind": gate.kind, "needed_margin": gate.needed_margin(), "hopeless": list(made.unpassable_gates)},
        "mechanism": mechanism
        and {
            "name": mechanism.name,
            "class": type(mechanism.stage).__name__,
            "steps": mechanism.question.steps,
            "size": mechanism.question.size,
            "noise_scale": mechanism.noise_scale,
        },
        "mu": made.loss.mu,
        "passes": made.n_passes,
        "in_memory": list(made.in_memory),
        "alternatives": [asdict(alternative) for alternative in made.alternatives],
        "warnings": list(made.warnings),
    }


def compare(options: Namespace) -> int:
    """Print what other people's claims for the same steps are worth."""
    found = [_compared(path, options) for path in options.file]
    if options.json:
        documents = [{"file": str(path), **one.to_dict()} for path, one in zip(options.file, found)]
        say(json.dumps(documents, indent=2, ensure_ascii=False))
        return 0
    for path, one in zip(options.file, found):
        say(f"{path}: {one!r}")
    return 0


def _compared(path: Path, options: Namespace) -> Any:
    file = read_pipeline_file(path, options.imports)
    made = planned_of(file, options)
    if made.mechanism is None:
        what = "a pipeline that ends in a transformer has no last noise to compare."
        refuse(what, place=place_of(path, ["steps"]), fix="end it in a mechanism, such as LogisticRegression.")
    pipe = file.pipeline()
    with file.located():
        return pipe.compare(_shaped(pipe, made))


def _shaped(pipe: Any, made: Plan) -> Any:
    """The facts of a pipeline with the shape and the names that its plan has."""
    return pipe.domain.but(**{name: getattr(made.domain, name) for name in (*SHAPE, "feature_names")})


def audit(options: Namespace) -> int:
    """Try to break the plan of a pipeline file: 0 if nothing is found, 1 if a claim is false."""
    from ppdp.audit import attack_membership
    from ppdp.audit import audit as attack
    from ppdp.audit.report import check_report_path

    if options.membership and options.sequential:
        refuse("membership is attacked with a fixed number of models.", place="--sequential", fix="leave it out.")
    if options.out is not None:
        check_report_path(options.out)
        refuse_taken(options.out)
    if options.out is not None and not os.access(options.out.absolute().parent, os.W_OK):
        refuse(f"{str(options.out)!r} cannot be written.", place="--out", fix="a folder that is there and yours.")
    file = read_pipeline_file(options.file, options.imports)
    plan, why = _planned(file, options)
    given = {"n_jobs": options.jobs, "seed": options.seed}
    report: AttackReport
    if options.membership:
        report = attack_membership(plan, models=options.runs, **given)
    else:
        search = {"evaluations": options.evaluations, "seconds": options.seconds, "sequential": options.sequential}
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
            plan, fewest = pipe.plan(domain), _fewest(pipe, domain)
            less = fewest is not None and fewest < domain.n
            return plan, f" Fewer rows are faster and sharper: --rows {fewest}." if less else ""
        except NoRoute as error:
            fewest = _fewest(pipe, domain)
            if fewest is None:
                raise
            fix = f"--rows {fewest} has a route, or leave --rows out."
            raise NoRoute(error.message, stage=error.stage, fix=fix) from None


def _fewest(pipe: Any, domain: Any) -> int | None:
    """The fewest rows with a route, if any has one."""
    from ppdp.audit.lab import fewest_rows

    try:
        return fewest_rows(pipe.plan, domain).domain.n
    except PpdpError:
        return None


_HEAD = """\
# Written from the names and types of the columns of {name}; no value was looked at.
# Fill in every "?" from what the column means, never from the data: `ppdp plan` names those that are left.
# Several rows of one person? groups = "COLUMN" in [data]; adjacency = {{person = 3}} and n_rows = CAP in [domain]."""

_DELTA = "1e-6  # far below 1 / (number of rows), by a public rule; smaller where there may be 100,000 rows and more"

_REST = """
[domain]
# rows_per_unit = 1      # if no person has two rows: else the certificate says that nobody confirmed it

[pipeline]
epsilon = 1.0
delta = {delta}
# dataset = "?"          # a name of the people whose data these are, for ledger and certificate
# purpose = "?"          # and who publishes it: on the page for reviewers, as the next line
# responsible = "?"      # who answers for the release
# [pipeline.statements]  # what reviewers ask for; `ppdp help fit` has more
# contact = "?"          # of the person responsible
# run_by = "?"           # who runs this
# prediction = "?"       # what the labels mean; and accuracy, on whom
# justification = "?"    # why this epsilon
# own_values = "?"       # how it is known that no value or row depended on another person
# legal_basis = "?"      # and consent, ethics_approval, retention: day, number, where the paper is to be had
# limit_set_by = "?"     # of the ledger, with how to reach them
# other_releases = "?"   # what else of these people got out, or "nothing"
# review_by = "?"        # the day by which to sign; and supersedes, status_list, remarks
# attachments = ["?"]    # files; and attachments_hold: by whom, of which day, with which result
# signed_by = "?"        # whose key, and where it is published; and software: where ppdp is to be had, its checksum
# [pipeline.sources]     # where each fact is from, as "codebook, page 3"; page one names who said so otherwise
{sources}
"""

_RELEASE = """\
# Means, quartiles and counts of categories (`ppdp report`). For a model: `ppdp init DATA --label COLUMN`.
[[steps]]
use = "Report\""""

_CLASSIFIER = """\
[[steps]]
use = "MeanImputer"

[[steps]]
use = "StandardScaler"

[[steps]]
use = "LogisticRegression"
classes = {classes}"""

_REGRESSION = """\
[[steps]]
use = "MeanImputer"

[[steps]]
use = "StandardScaler"

[[steps]]
use = "Ridge"
y_range = "?"  # [low, high] of the targets"""


def init(options: Namespace) -> int:
    """Print a pipeline file with a blank for everything that only people know."""
    import pandas as pd

    from ppdp.transformers.columns.declaration import Declaration

    source = open_rows([options.data], header_is_names=options.header_is_names)
    if options.label is not None:
        source.require(options.label, "--label")
    kinds = {name: None if kind is None else pd.ArrowDtype(kind) for name, kind in source.types.items()}
    features = {name: kind for name, kind in kinds.items() if name != options.label}
    say(_study(options.data, Declaration(features), options.label, kinds.get(options.label)))
    return 0


def _study(path: Path, declared: Any, label: str | None, kind: Any) -> str:
    """The whole file."""
    from ppdp.data.column_types import kind_of
    from ppdp.transformers.columns.declaration import in_toml, key_in_toml

    head = [] if label is None else ["[data]", f"label = {in_toml(label)}", ""]
    sources = "\n".join(f'# {key_in_toml(name)} = "?"' for name in declared)
    rest = _REST.format(delta=_DELTA, sources=sources)
    lines = [_HEAD.format(name=escaped(path.name)), "", *head, "[columns]", str(declared), rest]
    if label is None:
        return "\n".join([*lines, _RELEASE])
    if kind is not None and kind_of(kind) == "number" and kind.kind not in "iu":
        return "\n".join([*lines, _REGRESSION])
    known = "[0, 1]" if kind is not None and kind_of(kind) == "boolean" else '"?"  # [0, 1], or ["no", "yes"]'
    return "\n".join([*lines, _CLASSIFIER.format(classes=known)])


def lint(options: Namespace) -> int:
    """Print what the stages of a workflow tell about the rows: 1 if any tells something, or may."""
    from ppdp.interop.sklearn.lint import lint as linted

    workflow = _named(options.pipeline)
    try:
        report = linted(workflow)
    except InvalidParameter as error:
        refuse(error.message, place=options.pipeline, fix=error.fix or "the name of a pipeline.")
    except (Exception, SystemExit) as error:  # and so may an attribute of somebody else's object
        fix = "an estimator that can be asked for its parameters."
        refuse(f"cannot be looked at: {said_by(error)}", place=options.pipeline, fix=fix)
    say(report.to_json() if options.json else repr(report))
    return 0 if report.severity == "none" else 1


def _named(place: str) -> Any:
    """An object by its module, or file, and name."""
    from ppdp.interop.sklearn.lint import is_estimator

    module, _, name = place.rpartition(":")
    if not module:
        refuse(f"{place!r} names no pipeline.", place="lint", fix="MODULE:NAME or FILE.py:NAME, as training.py:pipe.")
    if module.endswith(".py") and not Path(module).is_file():
        refuse(f"there is no file {module!r}.", place="lint", fix="the path of the file that holds the pipeline.")
    try:
        if module.endswith(".py"):
            found = runpy.run_path(module)
        else:
            sys.path.insert(0, "")
            found = vars(importlib.import_module(module))
    except (Exception, SystemExit) as error:  # somebody else's code may raise anything
        what = f"{module} cannot be run: {said_by(error)}"
        refuse(what, place="lint", fix="MODULE:NAME or FILE.py:NAME of code that runs by itself.")
    if name not in found:
        estimators = [word for word, value in found.items() if not word.startswith("_") and is_estimator(value)]
        fix = suggestion(name, estimators) if estimators else "a file that makes a pipeline where it is imported."
        refuse(f"{module} holds no {name!r}.", place="lint", fix=fix)
    return found[name]
