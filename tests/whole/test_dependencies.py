"""The oldest versions that may be installed have no advisory against what they do."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8"))["project"]
EXTRAS = PROJECT["optional-dependencies"]
REQUIRED = [
    Requirement(line) for line in [*PROJECT["dependencies"], *(line for extra in EXTRAS.values() for line in extra)]
]

# The first version without an advisory, and the last one there was, by November 2026.
SOUND = {
    "cryptography": ("50.0.0", "CVE-2026-69247"),
    "distributed": ("2026.1.0", "CVE-2026-23528"),
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
