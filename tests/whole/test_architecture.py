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


def _sources(*rooms):
    return {file: file.read_text("utf-8") for room in rooms for file in (ROOT / "ppdp" / room).rglob("*.py")}


def test_verification_imports_no_planning_and_no_rows():
    imports = {
        found for text in _sources("certificate/replay").values() for found in re.findall(r"from (ppdp[\w.]*)", text)
    }
    above = "ppdp.data", "ppdp.pipeline", "ppdp.transformers", "ppdp.mechanisms"
    assert not [name for name in imports if name.startswith(above)]


def test_the_kind_of_an_adjacency_is_read_in_its_own_file_alone():
    reading = {
        file.name for file, text in _sources("").items() if re.search(r"(adjacency|neighbours|unit)\.kind\b", text)
    }
    assert reading <= {"adjacency.py"}


def test_a_plan_meets_rows_in_one_place():
    running = {file.parent.name for file, text in _sources("").items() if re.search(r"(?<![.\w])execute\(plan", text)}
    assert running == {"pipeline", "audit"}
