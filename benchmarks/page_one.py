"""Draws page one of the demo's certificate as it is printed, docs/images/certificate.png.

    python benchmarks/page_one.py

Needs a Chromium or Chrome on PATH. The noise is drawn again, so that figures of altered rows and the digest differ from
run to run.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from sklearn.model_selection import train_test_split

from ppdp import Ledger
from ppdp.certificate.formats import BROWSERS
from ppdp.cli.demo import build

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "certificate.png"
SHEET = "html { background: #fff; } body { width: 794px; padding: 38px 53px; } .first ~ * { display: none; }"  # A4


def page() -> str:
    """The page with its style for paper, cut behind the first sheet."""
    pipe, X, y = build("flchain")
    X_train, _, y_train, _ = train_test_split(X, y, random_state=0)
    with Ledger(epsilon=3.0, delta=1e-5):
        text = pipe.fit(X_train, y_train).certificate_.to_html()
    text = re.sub(r"<meta [^>]*Content-Security-Policy[^>]*>", "", text)  # which admits the page's own style alone
    return text.replace("@media print", "@media screen").replace("</head>", f"<style>{SHEET}</style></head>")


def main() -> None:
    """Write the picture."""
    browser = next(filter(None, map(shutil.which, BROWSERS)))
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "page.html")
        source.write_text(page(), encoding="utf-8")
        line = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        line += ["--window-size=794,1123", "--force-device-scale-factor=1.5", f"--user-data-dir={folder}/profile"]
        subprocess.run(
            [*line, f"--screenshot={PICTURE}", source.as_uri()], check=True, capture_output=True, timeout=120
        )


if __name__ == "__main__":
    main()
