"""The modules of ppdp, and what they import, read from their sources."""

import ast
import gc
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import ppdp

ROOT = Path(ppdp.__file__).parent
MODULES = sorted(
    ".".join(("ppdp", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    for path in ROOT.rglob("*.py")
    if path.name != "__main__.py"
)

_KNOWN = frozenset(MODULES)
EXTRA = "ppdp.mechanisms.lora"
INSTALLED = MODULES if find_spec("torch") else [name for name in MODULES if not name.startswith(EXTRA)]
"""Without those that need torch, where it is not installed."""


def source_of(module):
    path = ROOT.joinpath(*module.split(".")[1:])
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text("utf-8")


@cache
def trees():
    """Of all modules, made while no garbage is looked for in them, which would take twice the time; nor is it later."""
    gc.disable()
    made = {module: ast.parse(source_of(module)) for module in MODULES}
    gc.freeze()
    gc.enable()
    return made


def tree_of(module):
    return trees()[module]


@cache
def imports_of(module, *, everywhere):
    """Names imported at the top of a module, or also inside functions and for type checkers."""
    waiting, found = list(tree_of(module).body), []
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module} imports relatively"
            found += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and not everywhere:
            continue
        elif everywhere or not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting += ast.iter_child_nodes(node)
    return found


def needs(module, *, everywhere=False):
    """Other modules of ppdp that a module imports."""
    return {*imports_of(module, everywhere=everywhere)} & _KNOWN - {module, "ppdp"}


def held_alone(*words: str) -> bool:
    """Whether an adversary of its own goes for a mechanism, of which these are words; the contract holds them all."""
    texts = (path.read_text("utf-8") for path in (Path(__file__).parents[1] / "bounds").glob("test_*_adversary.py"))
    against = ("check_mechanism(", "<= ROUNDING")
    return any(all(word in text for word in words) and any(word in text for word in against) for text in texts)
