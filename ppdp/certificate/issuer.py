"""What the issuer says beside the claim: a signature covers it, the digest does not, and nothing proves it."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from ppdp.certificate.issue_record import OF_THE_ISSUER
from ppdp.certificate.record import Record
from ppdp.certificate.share.files import hashed, read_file
from ppdp.core.boundary import outside
from ppdp.core.checks import shown
from ppdp.exceptions import DiagnosticWarning, ExportError, InvalidParameter

UNPROVED = "the issuer's words, not proved, nor in the digest"
OF_A_PIPELINE = {"purpose", "responsible"}  # parameters of their own
_MOST_LETTERS = 500  # as in the schema
_MOST_BYTES = 2**28  # of an attachment
_DIGEST = re.compile("sha256:[0-9a-f]{64}")


def issuer_words(pipe: Any) -> dict[str, Any]:
    """Everything that a pipeline says beside its claim, as the block ``issued`` has it."""
    given = {} if pipe.statements is None else pipe.statements
    if not isinstance(given, Mapping) or not OF_A_PIPELINE.isdisjoint(given):
        what = f"statements must be a mapping without {' and '.join(sorted(OF_A_PIPELINE))}, got {shown(given)}."
        raise InvalidParameter(what, fix="{'review_by': '2027-06-30'}.", parameter="statements")
    return read_statements({**{name: getattr(pipe, name) for name in OF_A_PIPELINE}, **given})


def with_digests(pipe: Any) -> dict[str, Any]:
    """What a pipeline takes as ``statements``, each read once: files may be gone when it is fitted."""
    read = {name: said for name, said in issuer_words(pipe).items() if name not in OF_A_PIPELINE}
    if attached := read.get("attachments"):
        read["attachments"] = {one["name"]: one["sha256"] for one in attached}
    return read


def read_statements(given: Mapping[str, Any]) -> dict[str, Any]:
    """Statements by name, each in the form of the document; those that are None are left out."""
    if unknown := [name for name in given if name not in OF_THE_ISSUER]:
        raise InvalidParameter(f"there is no statement {shown(unknown[0])}.", fix=f"one of {', '.join(OF_THE_ISSUER)}.")
    return {name: _READ[name](name, value) for name, value in given.items() if value is not None}


def issuer_statements(c: Record, *, short: bool = False) -> list[tuple[str, str]]:
    """Name and words of whatever the issuer said; of a digest only the beginning if ``short``."""
    if c.issued is None:
        return []
    given = ((name, getattr(c.issued, name)) for name in OF_THE_ISSUER)
    return [(name, _in_words(name, value, short=short)) for name, value in given if value is not None]


def issuer_rules(c: Record) -> Iterator[str]:
    """What must hold of these statements, beyond their form."""
    issued = c.issued
    if issued is None:
        return
    if issued.review_by is not None and not _is_day(issued.review_by):
        yield "issued.review_by: there is no such day."
    if issued.supersedes is not None and issued.supersedes == c.digest:
        yield "issued.supersedes: a certificate does not take its own place."
    names = [attachment.name for attachment in issued.attachments or ()]
    if len({*names}) < len(names):
        yield "issued.attachments: two have one name."


def attachments_beside(c: Record, folder: Path) -> dict[str, str]:
    """Of every attachment by name, whether the file of that name in a folder is the "same", "another" or "absent"."""
    found = {}
    for attachment in (c.issued.attachments if c.issued is not None else None) or ():
        try:
            same = _hash_of(folder / attachment.name) == attachment.sha256
            found[attachment.name] = "same" if same else "another"
        except (OSError, ExportError):
            found[attachment.name] = "another" if os.path.lexists(folder / attachment.name) else "absent"
    return found


def review_is_due(c: Record) -> bool:
    """Whether the day by which the issuer wants a review has passed."""
    day = None if c.issued is None else c.issued.review_by
    return day is not None and day < datetime.now(UTC).date().isoformat()


def words(name: str, value: Any) -> str:
    """Public words that can be shown to everybody."""
    if not isinstance(value, str) or not value.strip() or len(value) > _MOST_LETTERS or not value.isprintable():
        what = f"{name} must be public words that can be seen, in one line of at most {_MOST_LETTERS} letters."
        fix = f"plain words without control characters, or leave {name} out."
        raise InvalidParameter(what, fix=fix, parameter=name)
    return value


def _day(name: str, value: Any) -> str:
    day = str(value)
    if not _is_day(day):
        raise InvalidParameter(f"{name} must be a day, got {shown(value)}.", fix="'2027-06-30'.", parameter=name)
    if day < datetime.now(UTC).date().isoformat():
        warnings.warn(f"{name}, {day}, has passed. Fix: a day to come.", DiagnosticWarning, stacklevel=outside())
    return day


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _digest(name: str, value: Any) -> str:
    digest = getattr(value, "digest", value)
    if not _is_digest(digest):
        what = f"{name} must be a certificate or its digest, got {shown(value)}."
        raise InvalidParameter(what, fix="Certificate.load('earlier/certificate.json').digest.", parameter=name)
    return str(digest)


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and _DIGEST.fullmatch(value) is not None


def _attachments(name: str, value: Any) -> list[dict[str, str]]:
    """Names and digests of files, of which only these are kept."""
    listed = [value] if isinstance(value, (str, os.PathLike)) else value
    found: dict[str, Any] = {}
    if isinstance(listed, Mapping):
        found = {str(key): digest for key, digest in listed.items()}
    elif isinstance(listed, (list, tuple)) and all(isinstance(path, (str, os.PathLike)) for path in listed):
        found = {Path(path).name: _attached(name, Path(path)) for path in listed}
    alone = len(found) == len(listed) if found else False
    if not alone or not all(Path(key).name == key and _is_digest(digest) for key, digest in found.items()):
        what = f"{name} must be files with different names, or digests by name, got {shown(value)}."
        fix = "['audit.json', 'policy.pdf'], or {'audit.json': 'sha256:...'}."
        raise InvalidParameter(what, fix=fix, parameter=name)
    return [{"name": words(name, key), "sha256": digest} for key, digest in found.items()]


def _attached(name: str, path: Path) -> str:
    try:
        return _hash_of(path)
    except (OSError, ValueError, ExportError):
        what = f"{name}: {shown(str(path))} is no file of at most {_MOST_BYTES} bytes that can be read."
        raise InvalidParameter(what, fix="paths of files that are there.", parameter=name) from None


def _hash_of(path: Path) -> str:
    return f"sha256:{hashed(read_file(path, _MOST_BYTES))}"


_READ: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(OF_THE_ISSUER, words),
    "review_by": _day,
    "supersedes": _digest,
    "attachments": _attachments,
}


def _in_words(name: str, value: Any, *, short: bool) -> str:
    cut = len("sha256:") + 12 if short else None
    if name == "attachments":
        return ", ".join(f"{one.name} ({one.sha256[:cut]}{'…' if short else ''})" for one in value)
    return f"{value[:cut]}…" if short and name == "supersedes" else str(value)
