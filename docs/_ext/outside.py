"""What lies outside this folder, on the site: links of pages to it, other Markdown pages, and sources.

Pages are written for a reader of the repository: their links are relative paths of files. Those into this folder are
left to MyST. Markdown files outside become pages under ``project/``; every other file that a page links becomes a page
under ``source/``.
"""

import html
import inspect
import json
import os
import re
import sys
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import TextLexer, get_lexer_for_filename
from pygments.util import ClassNotFound
from sphinx.application import Sphinx
from sphinx.errors import SphinxError

DOCS = Path(__file__).resolve().parents[1]
ROOT = DOCS.parent
PAGES = (
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    *(
        str(page.relative_to(ROOT))
        for room in ("benchmarks", "reproductions")
        for page in sorted((ROOT / room).glob("*.md"))
    ),
)
"""Markdown files outside, which are pages of the site as well."""

NOT_RUN = '\n\nThis page shows no results: the site was built without PyTorch. Run it after `pip install "ppdp[lora]"`.'
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s#]+)(#[^()\s]*)?\)")
ANCHOR = re.compile(r'^(#+ )<a id="([^"]+)"></a>', flags=re.M)
MENTION = re.compile(r"``docs/([\w/-]+)\.md``")


def copy_pages(app: Sphinx) -> None:
    """Put the Markdown files outside into the folder, where they have changed."""
    for name in PAGES:
        there, text = DOCS / "project" / name, (ROOT / name).read_text("utf-8")
        if not there.exists() or there.read_text("utf-8") != text:
            there.parent.mkdir(parents=True, exist_ok=True)
            there.write_text(text, "utf-8")


def home_of(docname: str) -> Path:
    """The folder that the links of a page start from."""
    return (ROOT / docname.removeprefix("project/") if docname.startswith("project/") else DOCS / docname).parent


def on_the_site(target: str, docname: str) -> tuple[str, str] | None:
    """Where a linked file stands on the site, as a path from the page; None leaves the link as it is."""
    file = Path(os.path.normpath(home_of(docname) / target))
    if ":" in target or not file.exists() or not file.is_relative_to(ROOT):
        return None
    here, path = (DOCS / docname).parent, file.relative_to(ROOT).as_posix()
    if path in PAGES:
        return "page", os.path.relpath(DOCS / "project" / path, here)
    if file.is_relative_to(DOCS / "gallery"):
        example = file.relative_to(DOCS / "gallery")
        found = example.with_suffix(".rst") if file.is_file() and file.suffix == ".py" else example / "index.rst"
        return "page", os.path.relpath(DOCS / "examples" / found, here)
    if file.is_relative_to(DOCS) and file.suffix != ".py":
        return "page", os.path.relpath(file, here)
    if file.suffix in (".png", ".svg"):
        return "image", os.path.relpath(file, here)
    return "source", os.path.relpath(DOCS / "source" / f"{path}.html", here)


def rewrite(app: Sphinx, docname: str, source: list[str]) -> None:
    """Make links of a Markdown page or of a notebook lead to what the site has."""
    if not str(app.env.doc2path(docname)).endswith((".md", ".ipynb")):
        return
    quote = "'" if str(app.env.doc2path(docname)).endswith(".ipynb") else '"'

    def replaced(match: re.Match[str]) -> str:
        mark, words, target, anchor = match.groups()
        found = on_the_site(target, docname)
        if found is None:
            return match.group()
        kind, path = found
        if kind == "source" and not mark:
            return f"<a class={quote}reference internal{quote} href={quote}{path}{quote}>{words}</a>"
        return f"{mark}[{words}]({path}{anchor or ''})"

    source[0] = LINK.sub(replaced, ANCHOR.sub(r"(\2)=\n\1", source[0]))
    if any(fnmatch(docname, pattern) for pattern in app.config.nb_execution_excludepatterns):
        notebook = json.loads(source[0])
        first = notebook["cells"][0]
        first["source"] = "".join(first["source"]) + NOT_RUN
        source[0] = json.dumps(notebook)


def mention_pages(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """In docstrings the path of a page becomes a link to it."""
    lines[:] = [MENTION.sub(r":doc:`/\1`", line) for line in lines]


def linkcode_resolve(domain: str, info: dict[str, str]) -> str | None:
    """From a documented name to the lines that define it."""
    made: Any = sys.modules.get(info["module"])
    for part in info["fullname"].split("."):
        made = getattr(made, part, None)
    try:
        made = inspect.unwrap(made.fget if isinstance(made, property) else made)
        file, line = inspect.getsourcefile(made), inspect.findsource(made)[1] + 1
    except (TypeError, OSError):
        return None
    if file is None or not Path(file).is_relative_to(ROOT / "ppdp"):
        return None
    return f"../../source/{Path(file).relative_to(ROOT).as_posix()}.html#L-{max(line, 1)}"


def linked() -> set[Path]:
    """Files and folders that have a page of their own: those that pages link, and the package."""
    found = {file for file in (ROOT / "ppdp").rglob("*") if file.suffix in (".py", ".json", ".toml")}
    for page in (*DOCS.rglob("*.md"), *DOCS.rglob("*.ipynb")):
        if "_build" not in page.parts:
            docname = page.relative_to(DOCS).with_suffix("").as_posix()
            for match in LINK.finditer(page.read_text("utf-8")):
                if (place := on_the_site(match[3], docname)) and place[0] == "source":
                    found.add(Path(os.path.normpath(home_of(docname) / match[3])))
    for folder in [one for one in found if one.is_dir()]:
        found |= set(inside(folder))
    return found


def inside(folder: Path) -> list[Path]:
    """What a reader of a folder is shown."""
    return sorted(
        file
        for file in folder.iterdir()
        if file.name[0] not in "._" and file.suffix in ("", ".py", ".json", ".toml") and file.name != "__pycache__"
    )


def source_pages(app: Sphinx) -> Iterator[tuple[str, dict[str, Any], str]]:
    """A plain page for each file or folder, without the frame of the site, so that hundreds are made in seconds."""
    form = HtmlFormatter(nowrap=False, linenos=False, lineanchors="L", cssclass="highlight")
    found = linked()
    for file in sorted(
        found | {folder for one in found for folder in one.parents if folder.is_relative_to(ROOT / "ppdp")}
    ):
        name = file.relative_to(ROOT).as_posix()
        if file.is_dir():
            rows = "".join(
                f'<li><a href="{html.escape(file.name)}/{html.escape(one.name)}.html">{html.escape(one.name)}</a></li>'
                for one in inside(file)
            )
            body = f"<ul>{rows}</ul>"
        else:
            try:
                lexer = get_lexer_for_filename(file.name)
            except ClassNotFound:
                lexer = TextLexer()
            body = highlight(file.read_text("utf-8"), lexer, form)
        yield f"source/{name}", {"title": name, "body": body, "up": "../" * name.count("/") + "../"}, "source.html"


def all_are_there(app: Sphinx, error: Exception | None) -> None:
    """Sphinx says nothing when one of the processes that write pages fails."""
    missing = sorted(one for one in app.env.found_docs if not Path(app.builder.get_outfilename(one)).exists())
    if error is None and missing:
        raise SphinxError(f"pages were not written: {missing}. Fix: build with -j 1, which says why.")


def setup(app: Sphinx) -> dict[str, Any]:
    """Called by Sphinx."""
    app.config.linkcode_resolve = linkcode_resolve
    app.connect("builder-inited", copy_pages)
    app.connect("source-read", rewrite)
    app.connect("autodoc-process-docstring", mention_pages, priority=400)
    app.connect("html-collect-pages", source_pages)
    app.connect("build-finished", all_are_there)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
