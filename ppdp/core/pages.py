"""Where the documentation of a class is: the page that its docstring names, below the address of the site."""

from __future__ import annotations

import os
import re
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata

_PAGE = re.compile(r"``docs/([\w./-]+)``")


class Documented:
    """Mixin for estimators, before scikit-learn's base: the sign for help in their diagram opens our page.

    The environment variable ``PPDP_DOCS`` is the address at which the site is served, or else what the package gives.
    Without an address there is no sign: it would open a page of scikit-learn.
    """

    _doc_link_module = "ppdp"

    @property
    def _doc_link_template(self) -> str:
        return page_of(type(self))

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Names of parameters: scikit-learn inspects the constructor each time, and a fit asks dozens of times."""
        names: list[str] = super()._get_param_names()  # type: ignore[misc]
        return names


def page_of(kind: type) -> str:
    """The address of the page; empty where nobody has said where the site is."""
    found = next((page for one in kind.__mro__ for page in _PAGE.findall(one.__doc__ or "")), "index.md")
    address = (os.environ.get("PPDP_DOCS") or _address()).rstrip("/")
    return f"{address}/{found.removesuffix('.md')}.html" if address else ""


@cache
def _address() -> str:
    """What pyproject.toml says under ``[project.urls]`` as Documentation."""
    try:
        urls = metadata("ppdp").get_all("Project-URL") or []
    except PackageNotFoundError:
        return ""
    named = dict(url.split(", ", 1) for url in urls)
    return named.get("Documentation", "")
