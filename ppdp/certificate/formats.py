"""Forms in which a certificate is written for people: an entry each, which `save` and `ppdp show --out` know."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ppdp.certificate.pages import renderers
from ppdp.certificate.replay.verify import Verification
from ppdp.certificate.share.pdf import print_to_pdf


class Format(NamedTuple):
    """How a certificate is written."""

    endings: tuple[str, ...]  # of the files that are written so
    write: Callable[[Verification], str | bytes]  # of one that does not hold only that, and why


FORMATS: dict[str, Format] = {
    "html": Format((".html", ".htm"), renderers.page),
    "pdf": Format((".pdf",), lambda result: print_to_pdf(renderers.page(result))),
}


def format_of(path: Path) -> Format | None:
    """The form of a file with this ending; None if it is to hold the JSON document."""
    return next((form for form in FORMATS.values() if path.suffix.lower() in form.endings), None)
