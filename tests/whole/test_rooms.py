"""Every line has a room, and imports run downwards, wherever they stand in a file."""

import ast
import re
from functools import cache

from rooms import ROOMS
from sources import MODULES, ROOT, needs, tree_of

STRANGERS = {"transformers": {"mechanisms", "certificate"}, "mechanisms": {"transformers"}, "datasets": set(ROOMS[1:])}


def room_of(module):
    return module.split(".")[1]


def test_every_file_is_in_a_room():
    found = {path.stem for path in ROOT.iterdir() if path.name != "__pycache__"} - {"__init__", "__main__", "py"}
    assert found == set(ROOMS)
    assert len(ROOMS) <= 16


def test_a_room_knows_only_those_below():
    for module in (name for name in MODULES if name != "ppdp"):
        room = room_of(module)
        known = {*ROOMS[: ROOMS.index(room) + 1]} - STRANGERS.get(room, set()) | {room}
        above = {name for name in needs(module, everywhere=True) if room_of(name) not in known}
        assert not above, f"{module} imports {sorted(above)}"


def test_no_two_files_import_each_other_in_a_circle():
    """Files can be put in an order in which each needs only earlier ones."""
    waiting = {module: needs(module, everywhere=True) for module in MODULES if module != "ppdp"}
    while waiting:
        ready = [module for module, wanted in waiting.items() if not wanted & set(waiting)]
        assert ready, f"imports run in a circle among {sorted(waiting)}"
        for module in ready:
            del waiting[module]


def test_optimised_python_does_the_same():
    """What it leaves out tells types, and what a table of constants holds."""
    harmless = re.compile(r"[\w.]+ is not None|isinstance\([\w.]+, \w+\)|len\([A-Z]+\) \+ 1 == [A-Z_]+")
    for module in MODULES:
        for node in ast.walk(tree_of(module)):
            assert not isinstance(node, ast.Assert) or harmless.fullmatch(ast.unparse(node.test)), module
            assert not (isinstance(node, ast.Name) and node.id == "__debug__"), module


def test_verification_knows_nothing_of_what_made_the_certificate():
    """Also not through what it imports."""
    seen, waiting = set(), ["ppdp.certificate.replay.verify"]
    while waiting:
        module = waiting.pop()
        if module not in seen:
            seen.add(module)
            waiting += needs(module, everywhere=True)
    assert {room_of(name) for name in seen} == {"exceptions", "core", "privacy", "bounds", "certificate"}


OF_OTHERS = {
    "_BatchNorm": "what every batch-norm of torch derives from",
    "_actions": "argparse has no other list of the options of a parser",
    "_SubParsersAction": "nor of its commands",
    "_backward_hooks": "where torch keeps the hooks of a tensor",
    "_exit": "how the standard library itself ends a copy of its process",
    "_Fork": "the name that POSIX gave the copy of which no library is told",
    "_asdict": "public in a named tuple, in spite of the underscore",
    "_discretization": "dp_accounting has no other way to the numbers of a loss distribution",
    "_get_param_names": "what scikit-learn's own get_params goes by",
    "_get_current_dispatch_mode_stack": "torch has no other list of the modes that are on",
    "_get_current_function_mode_stack": "as _get_current_dispatch_mode_stack",
    "_getframe": "how the standard library itself finds who calls",
    "_infinity_mass": "as _discretization",
    "_inheriting": "how multiprocessing itself tells a process that still runs the script of its parent",
    "_lower_loss": "as _discretization",
    "_probs": "as _discretization",
    "_rand": "NumPy's global generator as an object, by which scikit-learn itself goes",
    "_schema": "the names of an operation's arguments in torch",
    "_version": "how torch itself counts what was written to a tensor",
}
"""Names of other libraries, with the reason."""


def private(name):
    return name.startswith("_") and not name.endswith("_")


def is_self(node):
    calls_super = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"
    return calls_super or (isinstance(node, ast.Name) and node.id in ("self", "cls"))


@cache
def names_in(module):
    """What a file defines: functions, classes, variables, and attributes that its classes set on themselves.

    And what it takes of others: attributes of anything but ``self``, by dot or by name, and imported names.
    """
    own, of_others = set(), set()
    for node in ast.walk(tree_of(module)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            own.add(node.name)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                own.add(node.id)
        elif isinstance(node, ast.Attribute):
            if not is_self(node.value):
                of_others.add(node.attr)
            elif isinstance(node.ctx, ast.Store):
                own.add(node.attr)
        elif isinstance(node, ast.ImportFrom):
            of_others |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id.endswith("attr"):
            of_others |= {word.value for word in node.args[1:2] if isinstance(word, ast.Constant)}
    return own, of_others


def test_what_has_an_underscore_is_used_in_its_own_file_only():
    """Only a subclass may use what its bases keep to themselves."""
    for module in MODULES:
        own, of_others = names_in(module)
        strange = {name for name in of_others if private(name)} - own - OF_OTHERS.keys()
        assert not strange, f"{module} uses {sorted(strange)}"


def test_excuses_are_in_use():
    assert set().union(*(names_in(module)[1] for module in MODULES)) >= OF_OTHERS.keys()
