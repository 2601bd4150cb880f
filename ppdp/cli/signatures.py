"""``ppdp sign``, and the signature that ``ppdp verify`` is asked to look at."""

from __future__ import annotations

import os
from argparse import Namespace
from pathlib import Path
from typing import Any

from ppdp.cli.errors import refuse
from ppdp.cli.output import complain, say
from ppdp.cli.pipeline_file import import_modules
from ppdp.exceptions import CertificateError, InvalidParameter, SignatureError

__all__ = ["asked_signature", "sign"]


def sign(options: Namespace) -> int:
    """Write a signature of a certificate: 1 if it does not hold, or protects nobody."""
    from ppdp.certificate import Certificate

    import_modules(options.imports)
    target = options.out or options.certificate.with_name(f"{options.certificate.name}.sig")
    if os.path.lexists(target):
        refuse(f"{str(target)!r} is already there.", place="--out", fix="another name; nothing is replaced.")
    if not target.parent.is_dir():
        refuse(f"there is no folder {str(target.parent)!r}.", place="--out", fix="make it first.")
    try:
        certificate = Certificate.load(options.certificate)
    except CertificateError as error:
        refuse(error.message, place=str(options.certificate), fix=error.fix or "a certificate.json as it was issued.")
    result = certificate.verify()
    if not result:
        complain(f"{options.certificate}: {' '.join(result.problems)}")
        return 1
    password = None if options.password is None else _password(options.password)
    try:
        signature = certificate.sign(options.key, password=password, conditional=options.conditional)
    except InvalidParameter as error:
        refuse(error.message, place="--key", fix=str(error.fix))
    signature.save(target)
    say(f"written: {target}\nsigned with the key {signature.key}")
    return 0


def asked_signature(signature: Path | None, public_key: Path | None) -> dict[str, Any]:
    """Signature and key for :meth:`ppdp.Certificate.verify`, once both can be read."""
    from ppdp.certificate.share.signature import Signature, read_public_key

    if signature is None and public_key is None:
        return {}
    if signature is None or public_key is None:
        other = "--public-key" if public_key is None else "--signature"
        refuse("a signature is checked with a public key.", place=other, fix="give both, or neither.")
    try:
        return {"signature": Signature.load(signature), "public_key": read_public_key(public_key)}
    except SignatureError as error:
        refuse(error.message, place="--signature", fix=str(error.fix))
    except InvalidParameter as error:
        refuse(error.message, place="--public-key", fix=str(error.fix))


def _password(path: Path) -> bytes:
    """The first line of a file."""
    try:
        with path.open("rb") as file:
            return file.readline(10_000).rstrip(b"\r\n")
    except OSError as error:
        refuse(f"cannot be read: {error.strerror}.", place="--password", fix="a file whose first line is the password.")
