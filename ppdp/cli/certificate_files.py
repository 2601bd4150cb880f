"""Certificates, alone or in what carries them: an export, a folder of ``ppdp fit``, a Parquet file."""

from __future__ import annotations

import contextlib
import io
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ppdp.cli.output import placed, refuse
from ppdp.exceptions import CertificateError, ExportError

if TYPE_CHECKING:
    from ppdp.certificate import Certificate

EXPORT, CERTIFICATE, PAGE, ADAPTER = "model.zip", "certificate.json", "certificate.html", "adapter_config.json"
_FIX = "a certificate.json as it was issued, model.zip or another export, a folder of `ppdp fit`, a Parquet file."
_PAGE = "is a page to read, which cannot be checked.", "the certificate.json with the digest that the page shows."
_TABLE = "is a table; a certificate is in what was released from one.", _FIX
_OTHERS = {".html": _PAGE, ".htm": _PAGE, ".pdf": _PAGE, ".csv": _TABLE, ".tsv": _TABLE, ".xlsx": _TABLE}
"""What people give instead, by ending: what it is, and what to give."""
_FIX_ISSUED = "the files as they were issued."


def carried(path: Path) -> Certificate:
    """The certificate in a JSON document, an export, a folder of ``ppdp fit`` or of an adapter, or a Parquet file.

    That of an export or a table was verified, and is that of exactly these numbers; a document was only read.
    A CertificateError says that what is there does not hold, a Misuse that there is none.
    """
    if not path.exists():
        refuse("is not there.", place=str(path), fix=_FIX)
    if path.suffix == ".parquet":
        return _of_table(path)
    if (path / EXPORT).is_file():
        certificate = _of_export(path / EXPORT)
        beside = path / CERTIFICATE
        if beside.exists() and _of_document(beside).to_dict() != certificate.to_dict():
            raise CertificateError(f"{beside}: is another certificate than the one in {EXPORT}.", fix=_FIX_ISSUED)
        return certificate
    if (path / ADAPTER).is_file():
        return _of_adapter(path)
    if path.is_dir() or path.suffix == ".zip":
        return _of_export(path)
    return _of_document(path)


def folder_of(path: Path) -> Path:
    """Where attachments of the certificate lie."""
    return path if (path / EXPORT).is_file() else path.parent


def unchecked(path: Path, certificate: Certificate) -> list[str]:
    """Names of files that nobody checks: strange ones beside an export, and its text for people if it is not ours."""
    from ppdp.certificate.share.files import read_members
    from ppdp.pipeline.release.export import EXAMPLE, README, REQUIRED, readme

    folder = (path / EXPORT).is_file()  # one that is an export itself holds nothing else, or is refused
    others = {one.name for one in path.iterdir()} if folder else set()
    others -= {EXPORT, CERTIFICATE, f"{CERTIFICATE}.sig"}
    if PAGE in others and (path / PAGE).read_bytes() == certificate.to_html().encode():
        others -= {PAGE}
    exported = path / EXPORT if folder else path
    if (exported.is_dir() and not (exported / ADAPTER).is_file()) or exported.suffix == ".zip":
        text = read_members(exported, REQUIRED | {EXAMPLE})[README]
        others |= set() if text == readme(certificate).encode() else {README}
    return sorted(others)


def _of_export(path: Path) -> Certificate:
    from ppdp.certificate.share.files import read_members
    from ppdp.pipeline.release.export import EXAMPLE, REQUIRED
    from ppdp.pipeline.release.load import certificate_of, certified

    if path.is_dir() and not any((path / name).is_file() for name in REQUIRED):
        refuse("is a folder that is no export.", place=str(path), fix=_FIX)
    with placed(str(path), ExportError, fix=_FIX):
        members = read_members(path, REQUIRED | {EXAMPLE})
    if not members.keys() >= REQUIRED:
        refuse("holds other files than those of an export.", place=str(path), fix=_FIX)
    try:
        certificate = certificate_of(members, None)
        certified(members, certificate)
        return certificate
    except (ExportError, CertificateError) as error:
        raise _untrue(path, error) from None


def _of_adapter(path: Path) -> Certificate:
    try:
        from ppdp.mechanisms.lora import certified
    except ModuleNotFoundError as error:
        refuse("holds an adapter of PyTorch.", place=str(path), fix=error.msg.partition("Fix: ")[2])
    try:
        return certified(path)
    except (ExportError, CertificateError) as error:
        raise _untrue(path, error) from None


def _of_table(path: Path) -> Certificate:
    from ppdp.pipeline.release.table import read_parquet

    try:
        return read_parquet(path)[1]
    except CertificateError as error:
        raise _untrue(path, error) from None
    except ExportError as error:
        if not _names_a_certificate(path):
            refuse(error.message, place=str(path), fix=error.fix or _FIX)
        raise _untrue(path, error) from None


def _of_document(path: Path) -> Certificate:
    from ppdp.certificate import Certificate

    try:
        return Certificate.load(path)
    except CertificateError as error:
        if _is_called_certificate(path):
            raise _untrue(path, error) from None
        message, fix = _OTHERS.get(path.suffix.lower(), (error.message, _FIX))
        refuse(message, place=str(path), fix=fix)


def _untrue(path: Path, error: ExportError | CertificateError) -> CertificateError:
    return CertificateError(f"{path}: {error.message}", fix=error.fix or _FIX_ISSUED)


def _names_a_certificate(path: Path) -> bool:
    """Whether a file is Parquet and carries what stands for a certificate."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from ppdp.certificate.share.files import read_file
    from ppdp.pipeline.release.parquet import KEY

    with contextlib.suppress(ExportError, pa.ArrowException, OSError, ValueError):
        return KEY in (pq.read_schema(io.BytesIO(read_file(path))).metadata or {})
    return False


def _is_called_certificate(path: Path) -> bool:
    """Whether a file is a JSON document that names a schema of ppdp, so that its form alone is wrong."""
    from ppdp.certificate.canonical import strict_json
    from ppdp.certificate.share.files import read_file

    with contextlib.suppress(ExportError, OSError, ValueError, RecursionError):
        content = strict_json(read_file(Path(os.path.realpath(path))))
        return isinstance(content, dict) and str(content.get("schema")).startswith("ppdp")
    return False
