"""What is computed once for all pages of the site, since Sphinx would for each."""

import functools
import gc
from typing import Any

from jinja2 import PackageLoader, Template
from jinja2.sandbox import SandboxedEnvironment
from sphinx.application import Sphinx
from sphinx.search.en import SearchEnglish


class Search(SearchEnglish):
    """Words come again on hundreds of pages, and their stems take long to find."""

    @functools.cache  # noqa: B019  there is one
    def stem(self, word: str) -> str:
        """What is common to the forms of a word."""
        return super().stem(word)


@functools.cache
def template() -> Template:
    """What numpydoc writes a docstring with."""
    return SandboxedEnvironment(loader=PackageLoader("numpydoc")).get_template("numpydoc_docstring.rst")


def give_template(app: Sphinx, what: str, name: str, made: Any, options: Any, lines: list[str]) -> None:
    """Give it to numpydoc, which would compile it for each docstring."""
    vars(options)["template"] = template()


def keep(*_: Any) -> None:
    """Look for garbage among new objects only. Called before each example, as the gallery collects garbage after it."""
    gc.freeze()


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    gc.set_threshold(100_000, 20, 20)  # pages are large trees, of which little is garbage
    app.add_search_language(Search)
    app.connect("autodoc-process-docstring", give_template, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
