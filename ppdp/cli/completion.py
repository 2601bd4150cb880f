"""``ppdp completion``: a script that completes commands, options and paths in a shell."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace, _SubParsersAction

from ppdp.cli.output import say

__all__ = ["completion"]


def completion(options: Namespace) -> int:
    """Print the script for a shell."""
    import shtab

    from ppdp.cli.parser import make_parser

    parser = make_parser()
    _complete_paths(parser, shtab)
    say(shtab.complete(parser, shell=options.shell))
    return 0


def _complete_paths(parser: ArgumentParser, shtab: object) -> None:
    """Paths are what has the type Path."""
    from pathlib import Path

    for action in parser._actions:
        if isinstance(action, _SubParsersAction):
            for command in action.choices.values():
                _complete_paths(command, shtab)
        elif action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
