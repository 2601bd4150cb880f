"""The picture of the rooms is that of the imports, and every room is described."""

import re
from pathlib import Path

from rooms import PICTURE, ROOMS, drawn

import ppdp

ROOT = Path(__file__).parents[2]


def test_the_picture_is_that_of_the_imports():
    assert PICTURE.read_text("utf-8") == drawn(), "python docs/rooms.py"


def test_every_room_has_a_line_of_its_own():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    described = {
        name.rstrip("/").removesuffix(".py") for name in re.findall(r"\[`([a-z_./]+)`\]\(\.\./ppdp/[a-z_.]+\)", page)
    }
    assert set(ROOMS) <= described


def test_the_changelog_begins_with_this_version():
    versions = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), flags=re.M)
    assert versions[0] == ppdp.__version__
    assert versions == sorted(versions, reverse=True)
