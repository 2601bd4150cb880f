"""The command line: ``ppdp COMMAND``; what each does is in :mod:`ppdp.commands`."""

from __future__ import annotations

import importlib
import os
import sys
from argparse import Namespace
from collections.abc import Sequence

from ppdp.commands.errors import Misuse, one_line
from ppdp.commands.parser import RUN, commands_of, make_parser
from ppdp.exceptions import BudgetExceeded, CertificateError, PpdpError, PrivacyRefusal

__all__ = ["main"]

YES, NO, WRONG, FAULT, INTERRUPTED = 0, 1, 2, 3, 130
_ANSWERS = (BudgetExceeded, CertificateError, PrivacyRefusal)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of the process's own.

    Returns
    -------
    int
        0 if all is well, 1 if the answer is no (a certificate does not hold, a stage looks at the rows, the gate or the
        ledger refuses), 2 if the command cannot be carried out as given, 3 if ppdp itself fails.
    """
    try:
        return _run(arguments)
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return YES
    except _ANSWERS as error:
        return _say(f"refused: {one_line(error)}", NO)
    except (PpdpError, OSError, ImportError) as error:
        return _say(f"error: {one_line(error)}", WRONG)
    except KeyboardInterrupt:
        return _say("interrupted.", INTERRUPTED)
    except Exception as error:  # its message may quote a row
        return _say(f"fault: {type(error).__name__} in ppdp. Fix: report it, without the data.", FAULT)


def _say(text: str, status: int) -> int:
    print(f"ppdp: {text}", file=sys.stderr)
    return status


def _run(arguments: Sequence[str] | None) -> int:
    parser = make_parser()
    try:
        options = parser.parse_args(arguments)
    except SystemExit:  # argparse has printed a manual
        return YES
    if options.version:
        from ppdp import __version__

        print(f"ppdp {__version__}")
        return YES
    if options.command is None:
        raise Misuse("which command?", place="ppdp", fix=f"one of {', '.join(sorted(RUN))}; see `ppdp help`.")
    return _help(options) if options.command == "help" else _called(options)


def _help(options: Namespace) -> int:
    parser = make_parser()
    (parser if options.topic is None else commands_of(parser)[options.topic]).print_help()
    return YES


def _called(options: Namespace) -> int:
    """Import what the command needs, and run it."""
    module, name = RUN[options.command]
    status: int = getattr(importlib.import_module(f"ppdp.commands.{module}"), name)(options)
    return status


if __name__ == "__main__":
    sys.exit(main())
