"""Forms in which a certificate is written for people: an entry each, which `save` and `ppdp show --out` know."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from ppdp.certificate.pages import renderers
from ppdp.certificate.replay.verify import Verification
from ppdp.core.private_files import temporary_folder
from ppdp.exceptions import ExportError

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
PATIENCE = 120  # seconds
_FIX = "print the page from any browser, or put Chromium or Chrome on PATH."


def print_to_pdf(page: str) -> bytes:
    """A self-contained page as a PDF; :class:`ExportError` if no browser is on PATH, or it does not print."""
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        raise ExportError("there is no Chromium or Chrome on PATH that could print the page.", fix=_FIX)
    with tempfile.TemporaryDirectory(dir=temporary_folder()) as folder:
        source, target = Path(folder, "page.html"), Path(folder, "page.pdf")
        source.write_text(page, encoding="utf-8")
        line = [browser, "--headless=new", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
        line += [f"--user-data-dir={folder}/profile", "--no-pdf-header-footer", f"--print-to-pdf={target}"]
        if hasattr(os, "geteuid") and os.geteuid() == 0:  # for root there is no sandbox; the page has no script
            line.append("--no-sandbox")
        try:
            subprocess.run([*line, source.as_uri()], capture_output=True, check=True, timeout=PATIENCE)
            found = target.read_bytes()
        except (OSError, subprocess.SubprocessError):
            found = b""
    if not found.startswith(b"%PDF-"):
        raise ExportError(f"{Path(browser).name} did not print the page.", fix=_FIX)
    return found


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
