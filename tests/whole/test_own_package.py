"""Somebody else's stage, mechanism and loss: three files in a package of theirs, used with ppdp from its wheel.

What CONTRIBUTING says is all there is to write; lint, plan, fit, pages, audit, verification and conversion know them.
"""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ppdp import Certificate

ROOT = Path(__file__).parents[2]
PACKAGE = Path(__file__).parent / "own_package"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", folder, ROOT]
    subprocess.run(command, check=True, timeout=120)
    (found,) = folder.glob("ppdp-*.whl")
    return found


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"ppdp"}
    shipped = {str(path.relative_to(ROOT)) for path in (ROOT / "ppdp").rglob("*") if path.is_file()}
    shipped = {name for name in shipped if "__pycache__" not in name}
    assert shipped == {name for name in names if ".dist-info/" not in name}
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_files_of_somebody_else_are_all_that_is_needed(wheel, tmp_path):
    site = tmp_path / "site"
    zipfile.ZipFile(wheel).extractall(site)
    package = shutil.copytree(PACKAGE, tmp_path / "package")
    paths = {"PYTHONPATH": f"{site}:{package}", "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    settings = {**paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    line = [sys.executable, package / "tried.py", site, tmp_path]
    done = subprocess.run(line, env=settings, cwd=tmp_path, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    elsewhere = Certificate.load(tmp_path / "certificate.json").verify()
    assert "own." in repr(elsewhere)
    assert not elsewhere
