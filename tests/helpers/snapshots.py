"""Texts that are kept beside the tests: what is shown today is compared with them, ``--update`` writes them anew."""

from __future__ import annotations

import pytest


@pytest.fixture
def snapshot(request):
    """Compare a text with the file of a name in the folder ``snapshots`` beside the test."""

    def compare(name: str, text: str) -> None:
        file = request.path.parent / "snapshots" / name
        if request.config.getoption("--update"):
            file.write_text(text, encoding="utf-8")
        assert text == file.read_text("utf-8"), f"{file.name}: see what changed, then run pytest --update"

    return compare
