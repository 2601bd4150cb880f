"""Commands and their options."""

from __future__ import annotations

import argparse
import re
import tomllib
from functools import cache, partial
from importlib.resources import files
from pathlib import Path
from typing import Any, NoReturn

from ppdp.cli.output import Misuse, say, suggestion

_OF_MODULES = {
    "certificates": ("card", "record", "show", "sign", "verify"),
    "demo": ("demo",),
    "fit": ("fit", "ledger", "predict", "report"),
    "parser": ("completion",),
    "planning": ("audit", "compare", "init", "lint", "plan"),
}
RUN = {command: module for module, commands in _OF_MODULES.items() for command in commands}
"""The module of each command, which is a function of its name there; imported when it is run."""

_SHARED = {
    "plan": ["file"],
    "fit": ["file", "data"],
    "report": ["file", "data"],
}  # what stands in front of a command's own text

_texts = tomllib.loads(files("ppdp.cli").joinpath("manual.toml").read_text(encoding="utf-8"))
CLUSTERS = "dask", "ray"  # engines that read rows on other processes

MANUAL = {
    command: "\n".join([*(_texts["shared"][part] for part in _SHARED.get(command, ())), own])
    for command, own in _texts["commands"].items()
}
"""What the help of each command says behind its options."""

_FITS = {
    "fit": "fit a pipeline file to private rows, and write model and certificate",
    "report": "release statistics of a table, and write them with their certificate",
}

_CARRIERS = "certificate.json, model.zip or another export, folder of `ppdp fit`, Parquet"

_MEANT = {"version": "ppdp --version.", "train": "ppdp fit.", "check": "ppdp verify."}


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line like all others."""

    def __init__(self, **given: Any) -> None:
        given.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **given)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Refuse what is unknown by the parser of the command, which knows its own options alone."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            command = commands_of(self).get(getattr(found, "command", None) or "", self)
            command.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found

    def error(self, message: str) -> NoReturn:
        """Raise instead of printing the usage."""
        raise Misuse(message[:1].lower() + message[1:].rstrip(".") + ".", place=f"{self.prog}", fix=self._fix(message))

    def _fix(self, message: str) -> str:
        chosen = re.search(r"invalid choice: '(.*?)' \(choose from (.*)\)", message)
        if chosen is not None:
            return _MEANT.get(chosen[1]) or suggestion(chosen[1], re.findall(r"[\w-]+", chosen[2]))
        unknown = re.search(r"unrecognized arguments: (\S+)", message)
        if unknown is not None and unknown[1].startswith("-"):
            from ppdp.cli.documents import schema

            option = unknown[1].partition("=")[0]
            key = option.lstrip("-").replace("-", "_")
            table = next(
                (name for name, one in schema()["properties"].items() if key in one.get("properties", ())), None
            )
            if option in ("--out", "-o", "--output") and self.prog.endswith(" init"):
                return "ppdp init DATA > study.toml: it prints the file."
            known = {one for action in self._actions for one in action.option_strings if one.startswith("--")}
            return suggestion(option, known) if table is None else f"{key} = ... in [{table}] of the pipeline file."
        number = re.search(r"argument (--[\w-]+): (?:invalid|must be a) (float|whole number)", message)
        if number is not None:
            return f"digits alone, as in {number[1]} {'5000' if number[2] == 'whole number' else '1.5'}."
        if self.prog.split()[-1] in _FITS and "are required" in message:
            return f"`ppdp init DATA > study.toml`, fill it in; then `{self.prog} study.toml --data DATA --out FOLDER`."
        return f"{' '.join(self.format_usage().split()[1:])}."


@cache
def make_parser() -> Parser:
    """The whole command line."""
    parser = Parser(
        prog="ppdp",
        description="Clean a table and train a model with differential privacy; anybody can recompute the certificate.",
        epilog=_texts["overview"],
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands", parser_class=Parser)

    for group in (_add_planning, _add_fits, _add_certificates, _add_issuing, _add_attacks):
        group(commands)
    return parser


def _command(commands: Any, name: str, words: str) -> argparse.ArgumentParser:
    made: argparse.ArgumentParser = commands.add_parser(name, help=words, description=words, epilog=MANUAL[name])
    return made


def _add_planning(commands: Any) -> None:
    command = partial(_command, commands)
    demo = command("demo", "fit one model to bundled real data, and write it with its certificate")
    demo.add_argument("--data", choices=("flchain", "randhie"), default="flchain", help="which data (default: flchain)")
    demo.add_argument("--out", type=Path, help="folder for what is written (default: artifacts/DATA)")

    init = command("init", "print a pipeline file for a data file, from the names and types of its columns alone")
    init.add_argument("data", type=Path, metavar="DATA", help="data file, of which no value is looked at")
    init.add_argument("--label", type=_name, metavar="COLUMN", help="column of labels or targets of a model")
    _header(init)

    plan = command("plan", "say what a fit would cost and how each step would be fitted; reads no private row")
    plan.add_argument("file", type=Path, metavar="FILE", help="pipeline file")
    plan.add_argument("--time", action="store_true", help="also try on generated rows how long a fit takes here")
    _facts(plan)


def _add_fits(commands: Any) -> None:
    command = partial(_command, commands)
    for name, words in _FITS.items():
        fit = command(name, words)
        fit.add_argument("rows", type=Path, nargs="*", metavar="ROWS", help="files of private rows, instead of --data")
        fit.add_argument("file", type=Path, metavar="FILE", help="pipeline file")
        fit.add_argument("--data", type=Path, metavar="PATH", help="the private rows: a file, a folder or a glob")
        _engine(fit, "memory", "arrow", *CLUSTERS)
        fit.add_argument("--scheduler", metavar="ADDRESS", help="of a cluster of Dask or Ray (default: here)")
        fit.add_argument("--out", type=Path, required=True, metavar="OUT", help="new folder for what is written")
        fit.add_argument("--ledger", type=Path, metavar="PATH", help="account that is charged; made with --limit")
        fit.add_argument(
            "--limit", type=float, nargs=2, metavar=("EPSILON", "DELTA"), help="limit of a new ledger, for each dataset"
        )
        fit.add_argument(
            "--dataset", type=_name, metavar="NAME", help="public name of the private data, for ledger and certificate"
        )
        fit.add_argument("--conditional", action="store_true", help="also write a certificate that is CONDITIONAL")
        fit.add_argument("--quiet", action="store_true", help="print nothing but warnings and errors")
        _header(fit)
        _imports(fit)
        _json(fit)

    predict = command("predict", "write what a released model predicts for the rows of a data file")
    predict.add_argument("model", type=Path, metavar="MODEL", help="model.zip, or the folder of `ppdp fit`")
    predict.add_argument("file", type=Path, metavar="FILE", help="the pipeline file it was fitted with: how to read")
    predict.add_argument("--data", type=Path, required=True, metavar="PATH", help="the rows; labels may be absent")
    predict.add_argument("--out", type=Path, required=True, metavar="OUT", help="new CSV file, or folder of Parquet")
    predict.add_argument("--id", type=_name, metavar="COLUMN", help="column of ids that is written beside predictions")
    predict.add_argument("--proba", action="store_true", help="the probability of every class instead of the likeliest")
    _engine(predict, "memory", "arrow")
    _header(predict)
    _imports(predict)


def _add_certificates(commands: Any) -> None:
    command = partial(_command, commands)
    verify = command("verify", "recompute a certificate; exit status 0 if it holds, 1 if not")
    verify.add_argument("path", type=Path, metavar="PATH", help=_CARRIERS)
    verify.add_argument("--signature", type=Path, metavar="FILE", help="a signature that must hold as well")
    verify.add_argument("--public-key", type=Path, metavar="PEM", help="public key of the required signer")
    verify.add_argument(
        "--require",
        choices=("unconditional", "alone", "record-level"),
        action="append",
        help="unconditional: refuse what is CONDITIONAL or SEEDED, a part of a search, and one of several fits that no"
        " ledger adds up; alone: refuse whatever is not known to stand alone; record-level: refuse what protects less"
        " than everything about a row",
    )
    verify.add_argument("--max-epsilon", type=float, metavar="E", help="refuse a larger epsilon")
    verify.add_argument("--status", type=Path, metavar="FILE", help="list of withdrawn certificates: refuse one in it")
    verify.add_argument("--quiet", action="store_true", help="print nothing but errors")
    _imports(verify)
    _json(verify)

    show = command("show", "print a certificate that holds, or write it as a page")
    show.add_argument("path", type=Path, metavar="PATH", help=_CARRIERS)
    form = show.add_mutually_exclusive_group()
    form.add_argument("--full", action="store_true", help="print all of it, not only the first twelve lines")
    form.add_argument("--html", type=Path, metavar="OUT", help="write a page instead")
    form.add_argument("--pdf", type=Path, metavar="OUT", help="print that page, with a Chromium or Chrome on PATH")
    form.add_argument("--out", type=Path, metavar="OUT", help="write it in the form that the ending of the file names")
    form.add_argument("--json", action="store_true", help="print JSON")
    show.add_argument("--signature", type=Path, metavar="FILE", help="a signature that must hold, for the page to name")
    show.add_argument("--public-key", type=Path, metavar="PEM", help="public key of the required signer")
    _imports(show)

    card = command("card", "print a certificate that holds as the section Privacy of a model card, in Markdown")
    card.add_argument("path", type=Path, metavar="PATH", help=_CARRIERS)
    _imports(card)

    record = command("record", "print a certificate that holds as a draft for the OpenDP Deployments Registry, in YAML")
    record.add_argument("path", type=Path, metavar="PATH", help=_CARRIERS)
    record.add_argument("about", type=Path, metavar="FILE", help="what only people know: name, curators, region, ...")
    record.add_argument("--conditional", action="store_true", help="also print that of a CONDITIONAL certificate")
    _imports(record)
    _json(record)


def _add_issuing(commands: Any) -> None:
    command = partial(_command, commands)
    sign = command("sign", "write a signature of a certificate that holds, so that others know who issued it")
    sign.add_argument("certificate", type=Path, metavar="CERTIFICATE", help="a certificate.json, or a status list")
    sign.add_argument("--key", type=Path, required=True, metavar="PEM", help="private key of Ed25519")
    sign.add_argument("--password", type=Path, metavar="FILE", help="file with the password of an encrypted key")
    sign.add_argument("--conditional", action="store_true", help="also sign a certificate that is CONDITIONAL")
    sign.add_argument("--out", type=Path, metavar="OUT", help="what to write (default: CERTIFICATE.sig)")
    _imports(sign)

    ledger = command("ledger", "list what was released about the same people, and what is left of the limit")
    ledger.add_argument("path", type=Path, metavar="PATH", help="as given to `ppdp fit --ledger`")
    ledger.add_argument("--delta", type=float, metavar="DELTA", help="where epsilon is told, without a limit")
    ledger.add_argument(
        "--certificate",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="also say of each whether the account holds its entry; 1 if not: an older copy was put back",
    )
    _json(ledger)


def _add_attacks(commands: Any) -> None:
    command = partial(_command, commands)
    lint = command("lint", "list what each step of a scikit-learn pipeline reveals about the rows")
    lint.add_argument("pipeline", help="where it is: MODULE:NAME or FILE.py:NAME; the code of that module is run")
    _json(lint)

    compare = command("compare", "compare the epsilon that usual practices claim for the same steps with what holds")
    compare.add_argument("file", type=Path, nargs="+", metavar="FILE", help="pipeline files")
    _facts(compare)

    audit = command("audit", "attack what a pipeline file would certify, on synthetic data")
    audit.add_argument("file", type=Path, metavar="FILE", help="pipeline file")
    audit.add_argument("--out", type=Path, metavar="OUT", help="also write the report as JSON")
    audit.add_argument(
        "--runs", type=_count, default=50_000, metavar="N", help="executions of the plan (default: 50000)"
    )
    audit.add_argument(
        "--evaluations", type=_count, default=20_000, metavar="N", help="pairs tried on each stage (default: 20000)"
    )
    audit.add_argument("--seconds", type=float, default=20.0, help="longest search on each stage (default: 20)")
    audit.add_argument("--sequential", action="store_true", help="stop the runs as soon as they refute the claim")
    audit.add_argument("--membership", action="store_true", help="only ask of trained models who was a member")
    audit.add_argument("--jobs", type=int, metavar="N", help="processes for the runs; -1 for one per processor")
    audit.add_argument("--seed", type=int, default=0, help="of the search (default: 0)")
    _facts(audit, rows="rows of the made-up data (default: n_rows of the file, else the fewest that have a route)")

    shell = command("completion", "print a script that completes commands and options in a shell")
    shell.add_argument("shell", choices=("bash", "zsh", "fish"), help="for which shell")

    manual = command("help", "print the manual of a command")
    manual.add_argument("topic", nargs="?", choices=sorted(MANUAL), metavar="COMMAND", help="which command")


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parser of every command."""
    found = (action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(next(found, {}))


def _facts(parser: argparse.ArgumentParser, *, rows: str = "public number of rows") -> None:
    """Where shape and names come from, if not from the pipeline file."""
    parser.add_argument("--rows", type=_count, metavar="N", help=rows)
    parser.add_argument("--columns", type=_count, metavar="M", help="number of columns")
    parser.add_argument("--data", type=Path, metavar="PATH", help="data file, of which only names and size are used")
    _header(parser)
    _imports(parser)
    _json(parser)


def _engine(parser: argparse.ArgumentParser, *engines: str) -> None:
    words = "what reads the rows (default: memory for one file, but a fit's of 256 MiB or more; else arrow, in blocks)"
    parser.add_argument("--engine", choices=engines, help=words)


def _header(parser: argparse.ArgumentParser) -> None:
    words = "names of columns that read as numbers or dates are names, and no values of a row"
    parser.add_argument("--header-is-names", action="store_true", help=words)


def _imports(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="run a module of yours that holds stages and bounds; may be repeated",
    )


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _count(text: str) -> int:
    value = int(text)
    if not 1 <= value < 2**63:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1 and at most 18 digits, got {text!r}")
    return value


_count.__name__ = "whole number"


def _name(text: str) -> str:
    if not text or re.search("[\ud800-\udfff]", text):
        raise argparse.ArgumentTypeError(f"must be a name in UTF-8, got {text!r}")
    return text


def completion(options: argparse.Namespace) -> int:
    """Print the script for a shell."""
    import shtab

    parser = make_parser()
    for action in (action for command in commands_of(parser).values() for action in command._actions):
        if action.type is Path:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
    say(shtab.complete(parser, shell=options.shell))
    return 0
