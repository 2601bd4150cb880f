"""The API reference, written when the site is built: a table for each public package, a page for each name."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.autodoc.mock import mock
from sphinx.pycode import ModuleAnalyzer

PACKAGES = (
    "ppdp",
    "ppdp.transformers",
    "ppdp.mechanisms",
    "ppdp.mechanisms.lora",
    "ppdp.certificate",
    "ppdp.datasets",
    "ppdp.plot",
    "ppdp.interop",
    "ppdp.interop.sklearn",
    "ppdp.testing",
    "ppdp.audit",
    "ppdp.exceptions",
    "ppdp.privacy",
    "ppdp.privacy.losses",
    "ppdp.bounds",
)
"""In the order of the reference: what a user writes first, what a reviewer reads last."""

FIRST = """\
API
===

Every public name, by the package that exports it: ``from ppdp.transformers import StandardScaler``.
Names that are not listed here may move in any version (:doc:`/reference/versions`).

"""


def home_of(package: str, name: str) -> str:
    """The module that describes a constant: where it is assigned, not where it is exported."""
    made = getattr(import_module(package), name)
    holders = sorted(m for m, module in sys.modules.items() if m.startswith("ppdp") and vars(module).get(name) is made)
    return next(m for m in holders if ("", name) in ModuleAnalyzer.for_module(m).find_attr_docs())


def page_of(package: str, name: str) -> str:
    """The page of a name, in reStructuredText."""
    made: Any = getattr(import_module(package), name)
    # What two packages export has two pages, of which references find the one of the first.
    first = next(one for one in PACKAGES if getattr(import_module(one), name, None) is made)
    again = "" if first == package else "   :no-index:\n"
    if isinstance(made, type):
        body = f".. currentmodule:: {package}\n.. autoclass:: {name}\n   :members:\n{again}"
    elif callable(made):
        body = f".. currentmodule:: {package}\n.. autofunction:: {name}\n{again}"
    else:
        body = f".. autodata:: {home_of(package, name)}.{name}\n   :no-value:\n"
    return f"{name}\n{'=' * len(name)}\n\n{body}"


def table_of(package: str, names: list[str]) -> str:
    """A package in the page of all: what it is for, and a line for each name."""
    words = (import_module(package).__doc__ or "").partition("\n")[0]
    rows = "".join(f"   * - :doc:`{package}.{name}`\n     - {summary_of(package, name)}\n" for name in names)
    title = f"``{package}``"
    head = f"{title}\n{'-' * len(title)}\n\n{words}\n\n"
    table = f".. list-table::\n   :widths: 35 65\n   :class: api\n\n{rows}\n"
    return head + table + ".. toctree::\n   :hidden:\n\n" + "".join(f"   {package}.{name}\n" for name in names) + "\n"


def summary_of(package: str, name: str) -> str:
    """The first sentence of a docstring."""
    made: Any = getattr(import_module(package), name)
    if isinstance(made, type) or callable(made):
        words = made.__doc__ or ""
    else:
        words = " ".join(ModuleAnalyzer.for_module(home_of(package, name)).find_attr_docs()["", name])
    return " ".join(words.strip().partition("\n\n")[0].split())


def write_pages(app: Sphinx) -> None:
    """Write what has changed, and remove the pages of names that are gone."""
    folder = Path(app.srcdir) / "reference" / "api"
    folder.mkdir(exist_ok=True)
    with mock(app.config.autodoc_mock_imports):
        exported = {package: list(import_module(package).__all__) for package in PACKAGES}
        pages = {f"{package}.{name}": page_of(package, name) for package, names in exported.items() for name in names}
        pages["index"] = FIRST + "".join(table_of(package, names) for package, names in exported.items())
    for old in folder.glob("*.rst"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        page = folder / f"{name}.rst"
        if not page.exists() or page.read_text("utf-8") != text:
            page.write_text(text, "utf-8")


def is_made_elsewhere(app: Sphinx, what: str, name: str, made: Any, skip: bool, options: Any) -> bool | None:
    """Leave out what scikit-learn puts into classes, ``set_fit_request`` and the like."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-skip-member", is_made_elsewhere)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
