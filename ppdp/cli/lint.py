"""``ppdp lint``: what a scikit-learn workflow tells about its rows."""

from __future__ import annotations

import importlib
import runpy
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

from ppdp.cli.output import refuse, say, suggestion
from ppdp.exceptions import InvalidParameter, said_by


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
