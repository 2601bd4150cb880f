"""Somebody else's stage, mechanism and loss: three files in a package of theirs, used with ppdp from its wheel.

What CONTRIBUTING says is all there is to write; lint, plan, fit, pages, audit, verification and conversion know them.
"""

import os
import shutil
import subprocess
import sys
import zipfile
from contextlib import chdir
from importlib.util import cache_from_source
from pathlib import Path

import pytest

from ppdp import Certificate

ROOT = Path(__file__).parents[2]
PACKAGE = Path(__file__).parent / "own_package"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built as pip builds it, by the program that pyproject.toml names."""
    from hatchling.build import build_wheel

    folder = tmp_path_factory.mktemp("wheel")
    with chdir(ROOT):
        return folder / build_wheel(str(folder))


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"ppdp"}
    shipped = {str(path.relative_to(ROOT)) for path in (ROOT / "ppdp").rglob("*") if path.is_file()}
    shipped = {name for name in shipped if "__pycache__" not in name}
    assert shipped == {name for name in names if ".dist-info/" not in name}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def compiled_as_here(site):
    """So that the new process does not compile all of them again."""
    for path in (ROOT / "ppdp").rglob("*.py"):
        compiled, copy = Path(cache_from_source(path)), site / path.relative_to(ROOT)
        if compiled.exists() and copy.read_bytes() == path.read_bytes():
            os.utime(copy, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns))  # by which Python knows its source
            copy.with_name("__pycache__").mkdir(exist_ok=True)
            shutil.copy(compiled, cache_from_source(copy))


def test_files_of_somebody_else_are_all_that_is_needed(wheel, tmp_path):
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    compiled_as_here(site)
    package = shutil.copytree(PACKAGE, tmp_path / "package")
    paths = {"PYTHONPATH": f"{site}:{package}", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    settings = {**paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    line = [sys.executable, package / "tried.py", site, tmp_path]
    done = subprocess.run(line, env=settings, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    elsewhere = Certificate.load(tmp_path / "certificate.json").verify()
    assert "own." in repr(elsewhere)
    assert not elsewhere
