"""``ppdp verify`` and ``ppdp show``: certificates, alone or in what carries them."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from ppdp.commands.errors import one_line, refuse
from ppdp.commands.output import complain, escaped, say
from ppdp.commands.pipeline_file import import_modules
from ppdp.exceptions import CertificateError, ExportError

__all__ = ["show", "verify"]


def verify(options: Namespace) -> int:
    """Recompute a certificate: 0 if it holds, 1 if not."""
    from ppdp.certificate import Certificate
    from ppdp.commands.signatures import asked_signature

    import_modules(options.imports)
    try:
        certificate = Certificate.load(options.certificate)
    except CertificateError as error:
        if options.json:
            say(json.dumps({"holds": False, "problems": [error.message]}, ensure_ascii=False))
        elif not options.quiet:
            complain(one_line(error))
        return 1
    result = certificate.verify(**asked_signature(options.signature, options.public_key))
    if options.json:
        found = {"holds": bool(result), "problems": list(result.problems), **_summary(certificate)}
        if result.signer:
            found["signer"] = result.signer
        say(json.dumps(found, indent=2, ensure_ascii=False))
    elif not options.quiet:
        say(repr(replace(result, problems=tuple(escaped(problem) for problem in result.problems))))
        say(f"{certificate.status} ({certificate.epsilon:g}, {certificate.delta:g}) {certificate.digest}")
    return 0 if result else 1


def _summary(certificate: Any) -> dict[str, Any]:
    return {
        "status": certificate.status,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "digest": certificate.digest,
    }


def show(options: Namespace) -> int:
    """Print a certificate that holds, or write its page: 1 if it does not hold."""
    import_modules(options.imports)
    if options.html is not None and os.path.lexists(options.html):
        refuse(f"{str(options.html)!r} is already there.", place="--html", fix="another name; nothing is replaced.")
    certificate = _found(options.path)
    result = certificate.verify()
    if not result:
        complain(f"{options.path}: {' '.join(result.problems)}")
        return 1
    if options.html is not None:
        from ppdp.certificate.document import write_atomically

        write_atomically(options.html, certificate.to_html())
        say(f"written: {options.html}")
    else:
        say(certificate.to_json() if options.json else certificate.to_text())
    return 0


def _found(path: Path) -> Any:
    """The certificate in a JSON document, an export, a folder of ``ppdp fit`` or a Parquet file.

    Raises
    ------
    Misuse
        If there is none.
    CertificateError
        If it does not hold.
    """
    from ppdp.artefact.members import read_members
    from ppdp.artefact.table import read_parquet
    from ppdp.certificate import Certificate
    from ppdp.commands.fit import EXPORT
    from ppdp.export import EXAMPLE, REQUIRED, _checked

    if not path.exists():
        refuse("is not there.", place=str(path), fix="a certificate.json, an export or a Parquet file.")
    try:
        if path.suffix == ".parquet":
            return read_parquet(path)[1]
        if (path / EXPORT).is_file():
            path = path / EXPORT
        if path.is_dir() or path.suffix == ".zip":
            return _checked(read_members(path, REQUIRED | {EXAMPLE}), None)
    except ExportError as error:
        refuse(error.message, place=str(path), fix=error.fix or "the export as it was written.")
    try:
        return Certificate.load(path)
    except CertificateError as error:
        refuse(error.message, place=str(path), fix="a certificate.json as it was issued, an export or a Parquet file.")
