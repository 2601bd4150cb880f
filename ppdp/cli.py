"""The command line: ``ppdp demo``, ``ppdp verify`` and ``ppdp lint``."""

from __future__ import annotations

import argparse
import importlib
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ppdp.exceptions import InvalidParameter, PpdpError

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of the process's own.

    Returns
    -------
    int
        0 if all is well, 1 if a certificate does not verify or a stage looks at the rows, 2 if the command cannot be
        carried out.
    """
    parser = argparse.ArgumentParser(prog="ppdp", description="End-to-end differential privacy certificates.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="run the main job on bundled real data and write its certificate")
    demo.add_argument("--data", choices=("flchain", "randhie"), default="flchain", help="which data (default: flchain)")
    demo.add_argument("--out", type=Path, help="folder for what is written (default: artifacts/DATA)")
    verify = commands.add_parser("verify", help="recompute a certificate; exit status 0 if it holds, 1 if not")
    verify.add_argument("certificate", type=Path, help="a certificate.json")
    verify.add_argument("--quiet", action="store_true", help="print nothing")
    lint = commands.add_parser("lint", help="list what every stage of a scikit-learn pipeline tells about the rows")
    lint.add_argument("pipeline", help="where it is: MODULE:NAME or FILE.py:NAME; the code of that module is run")
    lint.add_argument("--json", action="store_true", help="print JSON instead of a table")
    options = parser.parse_args(arguments)
    try:
        if options.command == "demo":
            return _demo(options.data, options.out or Path("artifacts") / options.data)
        if options.command == "lint":
            return _lint(options.pipeline, as_json=options.json)
        return _verify(options.certificate, quiet=options.quiet)
    except (PpdpError, OSError, ImportError) as error:
        print(f"ppdp: {error}", file=sys.stderr)
        return 2


def _demo(data: str, out: Path) -> int:
    from rich.console import Console

    from ppdp.demo import run

    console = Console()
    run(data, out, console if console.is_terminal else Console(width=110))
    return 0


def _verify(path: Path, *, quiet: bool) -> int:
    from ppdp.certificate import Certificate
    from ppdp.exceptions import CertificateError

    try:
        certificate = Certificate.load(path)
    except CertificateError as error:
        if not quiet:
            print(f"ppdp: {error}", file=sys.stderr)
        return 1
    result = certificate.verify()
    if not quiet:
        print(result)
        print(f"{certificate.status} ({certificate.epsilon:g}, {certificate.delta:g}) {certificate.digest}")
    return 0 if result else 1


def _lint(place: str, *, as_json: bool) -> int:
    from ppdp.linting import lint

    report = lint(_named(place))
    print(report.to_json() if as_json else report)
    return 0 if report.severity == "none" else 1


def _named(place: str) -> Any:
    """An object by its module, or file, and name."""
    module, _, name = place.rpartition(":")
    if not module:
        raise InvalidParameter(f"{place!r} names no pipeline.", fix="MODULE:NAME or FILE.py:NAME, as training.py:pipe.")
    if module.endswith(".py"):
        found = runpy.run_path(module)
    else:
        sys.path.insert(0, "")
        found = vars(importlib.import_module(module))
    if name not in found:
        raise InvalidParameter(f"{module} holds no {name!r}.", fix="the name of the variable that is the pipeline.")
    return found[name]


if __name__ == "__main__":
    sys.exit(main())
