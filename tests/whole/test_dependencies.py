"""The oldest versions that may be installed have no advisory against what they do."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIRED = [
    Requirement(line) for line in [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)]
]

# The first version without an advisory, and the last one there was, by November 2026.
SOUND = {
    "cryptography": ("50.0.0", "CVE-2026-69247"),
    "distributed": ("2026.1.0", "CVE-2026-23528"),
    "jinja2": ("3.1.6", "CVE-2025-27516"),
    "joblib": ("1.2.0", "CVE-2022-21797"),
    "pyarrow": ("14.0.1", "CVE-2023-47248"),  # CVE-2026-25087 is of Arrow's C++ alone, not of Python
    "scikit-learn": ("1.5.0", "CVE-2024-5206"),
    "scipy": ("1.10.0", "CVE-2023-25399"),
    "skops": ("0.13.0", "CVE-2025-54886"),
    "torch": ("2.11.0", "CVE-2026-4538"),
    "PyYAML": ("5.4", "CVE-2020-14343"),
}


@pytest.mark.parametrize("name", SOUND)
def test_begin_behind_the_last_advisory(name):
    asked = [one for one in REQUIRED if one.name.lower() == name.lower()]
    assert asked
    for one in asked:
        floors = [Version(part.version) for part in one.specifier if part.operator in (">=", "==")]
        assert not floors or min(floors) >= Version(SOUND[name][0]), one
    assert any(part.operator in (">=", "==") for one in asked for part in one.specifier)


PIP = """#!/bin/sh
case "$*" in
*"config get global.cert"*) echo "$CONFIGURED" ;;
*) echo "pip $*" >> log ;;
esac
"""
UV = """#!/bin/sh
echo "uv" >> log
[ "$SSL_CERT_FILE" = company.pem ] || { echo "error: invalid peer certificate" >&2; exit 1; }
"""


@pytest.mark.skipif(shutil.which("make") is None, reason="no make")
@pytest.mark.parametrize("known", ["to pip's configuration", "to the environment", "to nobody"])
def test_certificates_of_pip_are_those_of_uv_and_what_uv_cannot_do_pip_does(known, tmp_path):
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    (tmp_path / "pyproject.toml").touch()
    for name, script in (("python", PIP), ("uv", UV)):
        (tmp_path / "venv" / "bin" / name).write_text(script)
        (tmp_path / "venv" / "bin" / name).chmod(0o755)
    given = {"PIP_CERT": "company.pem"} if known == "to the environment" else {}
    given["CONFIGURED"] = "company.pem" if known == "to pip's configuration" else ""
    kept = {name: value for name, value in os.environ.items() if name not in ("PIP_CERT", "SSL_CERT_FILE")}
    line = ["make", "-f", str(ROOT / "Makefile"), "NEWEST=venv", f"PYTHON={sys.executable}", "venv/.demo"]
    made = subprocess.run(line, cwd=tmp_path, env={**kept, **given}, capture_output=True, text=True, check=True)
    assert "invalid peer certificate" not in made.stdout + made.stderr
    took = [step.split()[0] for step in (tmp_path / "log").read_text().splitlines()]
    assert took == (["pip", "uv", "pip"] if known == "to nobody" else ["pip", "uv"])
