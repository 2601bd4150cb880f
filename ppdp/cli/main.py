"""The command line: ``ppdp COMMAND``; what each does is in a module beside this one.

Everything else is imported inside :func:`main`, where an interrupt is one line and no traceback.
"""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

YES, NO, WRONG, FAULT, UNPRINTED, INTERRUPTED = 0, 1, 2, 3, 4, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, that of the process or the one that is given.

    The answer is 0 if all is well, 1 if the answer is no (a certificate does not hold, a stage looks at the rows, the
    gate or the ledger refuses), 2 if the command cannot be carried out as given, 3 if ppdp itself fails, 4 if all is
    done and written but standard output could not be, 130 after Ctrl-C.
    """
    try:
        with _interruptible():
            return _run(arguments)
    except BrokenPipeError:  # whoever reads has seen enough
        from ppdp.cli.output import silence

        silence(sys.stdout)
        return YES
    except KeyboardInterrupt:
        line, status = "interrupted.", INTERRUPTED
    except BaseException as error:
        line, status = _answer(error)
    from ppdp.cli.output import complain

    complain(line)
    return status


@contextmanager
def _interruptible() -> Iterator[None]:
    """Signals that end the process let it clean up first: Ctrl-C is an interrupt, what a system sends an exit."""
    import signal
    import threading

    came: list[BaseException] = []

    def interrupt(number: int, _: Any) -> None:
        came.append(KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number))
        raise came[0]

    ours = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL}
    ours |= {signal.SIGHUP: signal.SIG_DFL} if hasattr(signal, "SIGHUP") else {}
    in_main_thread = threading.current_thread() is threading.main_thread()
    # What whoever called has decided about a signal stays.
    before = {number: usual for number, usual in ours.items() if in_main_thread and signal.getsignal(number) is usual}
    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    except BaseException:
        if came:
            raise came[0] from None
        raise
    finally:
        for number, usual in before.items():
            signal.signal(number, usual)


def _answer(error: BaseException) -> tuple[str, int]:
    """The line and the exit status of an error."""
    from ppdp.cli.output import Unprinted, one_line
    from ppdp.exceptions import BudgetExceeded, CertificateError, PpdpError, PrivacyRefusal

    if not isinstance(error, (Exception, PpdpError)):  # somebody wants the process to end
        raise error
    if isinstance(error, Unprinted):
        what = f"done, but standard output cannot be written: {error.strerror}."
        return f"{what} Fix: send it elsewhere; what the command writes into files is there.", UNPRINTED
    if isinstance(error, (BudgetExceeded, CertificateError, PrivacyRefusal)):
        return f"refused: {one_line(error)}", NO
    if isinstance(error, (PpdpError, OSError, ImportError)):
        return f"error: {one_line(error)}", WRONG
    # its message may quote a row
    return f"fault: {type(error).__name__} in ppdp. Fix: report it, without the data.", FAULT


def _run(arguments: Sequence[str] | None) -> int:
    import importlib

    from ppdp.cli.output import prepare, printing, refuse, say
    from ppdp.cli.parser import RUN, commands_of, make_parser

    prepare()
    given = sys.argv[1:] if arguments is None else list(arguments)
    if any("\0" in word for word in given):
        refuse("an argument holds a NUL character.", place="ppdp", fix="leave it out.")
    parser, options = make_parser(), None
    with printing(sys.stdout), suppress(SystemExit):  # argparse has printed a manual
        options = parser.parse_args(given)
    if options is None:
        return YES
    if options.version:
        from ppdp import __version__

        say(f"ppdp {__version__}")
        return YES
    if options.command is None:
        refuse("which command?", place="ppdp", fix=f"one of {', '.join(sorted(RUN))}; see `ppdp help`.")
    if options.command == "help":
        about = parser if options.topic is None else commands_of(parser)[options.topic]
        say(about.format_help().rstrip("\n"))
        return YES
    status: int = getattr(importlib.import_module(f"ppdp.cli.{RUN[options.command]}"), options.command)(options)
    return status


if __name__ == "__main__":
    sys.exit(main())
