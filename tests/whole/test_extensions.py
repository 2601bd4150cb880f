"""A transformer, a mechanism, an engine, an adjacency and a format are added to a copy of the project.

A folder of ``extensions`` holds what is added of each: whole files, and ``.part`` for what a file of the project gets,
behind a line that is named. There are as many as CONTRIBUTING lists, and no other file changes.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXTENSIONS = Path(__file__).parent / "extensions"
MOST = {"transformer": 7, "mechanism": 7, "engine": 3, "adjacency": 4, "format": 3}
CONTRACTS = {
    "test_the_example_keeps_the_contract[Negator": "tests/testing/test_contract.py",
    "test_every_mechanism_keeps_its_promises[ShareInside": "tests/testing/test_mechanisms.py",
    "test_what_is_released_goes_where_it_should[ShareInside": "tests/testing/test_contract.py",
    "test_every_registered_class_has_an_entry": "tests/testing/test_contract.py",
    "test_every_formula_of_a_mechanism_is_looked_at": "tests/mechanisms/test_privacy_maps.py",
    "test_every_mechanism_is_here_or_has_tests_of_its_own": "tests/mechanisms/test_declared_noise.py",
    "test_the_keys_of_an_adjacency_are_described_where_it_is_defined": "tests/certificate/test_record.py",
    "test_what_a_package_exports_is_there_and_sorted": "tests/whole/test_exports.py",
    "test_formulas_say_what_they_compute": "tests/whole/test_theory_pages.py",
    "test_index_leads_to_the_pages_and_lists_their_formulas": "tests/whole/test_theory_pages.py",
}


def files_of(kind: str) -> dict[str, Path]:
    """What is added, by its place in the project."""
    found = (path for path in sorted((EXTENSIONS / kind).rglob("*.*")) if path.suffix != ".pyc")
    return {path.relative_to(EXTENSIONS / kind).as_posix().removesuffix(".part"): path for path in found}


def listed(kind: str) -> list[str]:
    """The files that CONTRIBUTING lists, whose names it leaves open."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    (section,) = re.findall(rf"^## Add an? {kind}\b.*?\n(.*?)^## ", text, flags=re.M | re.S)
    return re.findall(r"^\d+\. `([^`]+)`", section, flags=re.M)


def merged(whole: dict, part: dict) -> dict:
    """One JSON document in another one."""
    return whole | {key: merged(whole[key], value) if key in whole else value for key, value in part.items()}


def extended(text: str, part: str) -> str:
    """Lines behind those that a part names, or at the end."""
    first, *others = re.split(r"^<<< (.*)\n", part, flags=re.M)
    for place, lines in zip(others[::2], others[1::2]):
        assert text.count(place) == 1, place
        end = text.index("\n", text.index(place)) + 1
        text = text[:end] + lines + text[end:]
    return text + first


def add(kind: str, project: Path) -> None:
    """Add all files of one kind."""
    for name, source in files_of(kind).items():
        target = project / name
        assert target.exists() == (source.suffix == ".part"), name
        target.parent.mkdir(parents=True, exist_ok=True)
        part = source.read_text("utf-8")
        if source.suffix != ".part":
            target.write_text(part, "utf-8")
        elif target.suffix == ".json":
            target.write_text(json.dumps(merged(json.loads(target.read_text("utf-8")), json.loads(part))), "utf-8")
        else:
            target.write_text(extended(target.read_text("utf-8"), part), "utf-8")


@pytest.mark.parametrize("kind", MOST)
def test_files_are_those_that_contributing_lists(kind):
    files, places = {*files_of(kind)}, {*listed(kind)}
    assert len(files) == len(places) <= MOST[kind]
    for place in places - files:
        (named,) = (name for name in files - places if re.fullmatch(re.sub(r"<\w+>", r"[\\w.-]+", place), name))
        assert named


@pytest.mark.long
def test_nothing_else_is_needed(tmp_path):
    """Tests of their own pass, and those that hold every class to its contract know them."""
    left_out = shutil.ignore_patterns("_build", "images", "golden", "snapshots", "extensions")
    for folder in ("ppdp", "docs", "tests"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=left_out)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for kind in MOST:
        add(kind, tmp_path)
    own = [name for kind in MOST for name in files_of(kind) if "/test_" in name]
    line = [sys.executable, "-m", "pytest", "--assert=plain", "-rA", "-p", "no:cacheprovider"]
    asked = [*map(Path, own), *map(Path, CONTRACTS)]
    line += [*own, *CONTRACTS.values(), "-k", " or ".join(name.stem.replace("[", " and ") for name in asked)]
    settings = {**os.environ, "PYTHONPATH": str(tmp_path), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(line, env=settings, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stdout
    assert all(f"PASSED {name}::" in done.stdout for name in own)
    assert all(re.search(f"PASSED {file}::.*{re.escape(name)}", done.stdout) for name, file in CONTRACTS.items())
