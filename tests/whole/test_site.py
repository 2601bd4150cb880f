"""The site of the documentation, as ``make docs`` has built it: what it links and loads, and how a browser shows it."""

import functools
import json
import os
import re
import shutil
import subprocess
import threading
from html import unescape
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from sources import EXTRA, INSTALLED, tree_of

from ppdp import Pipeline, mechanisms, transformers
from ppdp.core.keywords import page_of
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import MinMaxScaler

ROOT = Path(__file__).parents[2]
SITE = ROOT / "docs" / "_build" / "html"
MADE = ("_build", "examples", "project", "api")
REQUIRED = os.environ.get("CI") == "true"

pytestmark = pytest.mark.xdist_group("site")


def sources():
    """What the site is made from."""
    outside = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "benchmarks", "reproductions")]
    for top in (ROOT / "docs", ROOT / "ppdp", *outside):
        for path in [top] if top.is_file() else top.rglob("*"):
            if path.suffix in (".md", ".py", ".ipynb", ".rst", ".css", ".html") and not set(MADE) & set(path.parts):
                yield path


@functools.cache
def why_not():
    """Why there is no site to look at."""
    if not (SITE / "index.html").exists():
        return "the site is not built: make docs"
    built = (SITE / "index.html").stat().st_mtime
    newer = [str(path.relative_to(ROOT)) for path in sources() if path.stat().st_mtime > built]
    return f"the site is older than {newer[0]}: make docs" if newer else ""


@pytest.fixture(autouse=True)
def _a_built_site():
    if why_not():
        (pytest.fail if REQUIRED else pytest.skip)(why_not())


LINKS = re.compile(r'<a\s[^>]*?\bhref="([^"]*)"')
LOADS = re.compile(
    r'<(?:img|script|iframe|source|video|audio|embed|object)\s[^>]*?\b(?:src|srcset|data|poster)="([^"]*)"'
)
STYLES = re.compile(r'<link\s(?=[^>]*\brel="(?:stylesheet|preload|icon|manifest|prefetch)")[^>]*?\bhref="([^"]*)"')
ANCHORS = re.compile(r'\bid="([^"]+)"')


class Page:
    """What a page links, what it loads, and which anchors it has. Expressions: a parser is ten times slower."""

    def __init__(self, path):
        text = path.read_text("utf-8")
        self.links = [unescape(link) for link in LINKS.findall(text)]
        self.loads = LOADS.findall(text) + STYLES.findall(text)
        self.anchors = {"", *map(unescape, ANCHORS.findall(text))}


@functools.cache
def pages():
    return {path: Page(path) for path in sorted(SITE.rglob("*.html")) if "_static" not in path.parts}


def is_local(link):
    return not urlsplit(link).scheme and not urlsplit(link).netloc


def test_links_and_anchors_lead_somewhere():
    dead = []
    for path, page in pages().items():
        for link in filter(is_local, page.links):
            parts = urlsplit(link)
            there = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
            anchor = unquote(parts.fragment)
            if not there.is_file() or (there in pages() and anchor not in pages()[there].anchors):
                dead.append(f"{path.relative_to(SITE)}: {link}")
    assert not dead


def test_nothing_comes_from_the_network():
    foreign = [f"{path.name}: {load}" for path, page in pages().items() for load in page.loads if not is_local(load)]
    assert [one for one in foreign if ": data:" not in one] == []
    assert len({load for page in pages().values() for load in page.loads}) > 20
    styles = "".join(path.read_text("utf-8") for path in SITE.rglob("*.css"))
    assert re.findall(r"(?:@import\s+|url\()['\"]?(?:https?:)?//[^)'\"]+", styles) == []


def test_every_page_of_the_repository_is_reached_from_the_first():
    seen, waiting = set(), [SITE / "index.html"]
    while waiting:
        path = waiting.pop()
        if path in pages() and path not in seen:
            seen.add(path)
            links = filter(is_local, pages()[path].links)
            waiting += [Path(os.path.normpath(path.parent / urlsplit(link).path)) for link in links if link[0] != "#"]
    found = (ROOT / "docs").rglob("*")
    written = [path for path in found if path.suffix in (".md", ".ipynb") and "examples" not in path.parts]
    wanted = {
        SITE / path.relative_to(ROOT / "docs").with_suffix(".html") for path in written if "_build" not in path.parts
    }
    assert wanted - seen == set()


def exported():
    """Names in ``__all__`` of every package that has one, read from the sources: torch may be missing."""
    for module in (*INSTALLED, EXTRA):
        for node in tree_of(module).body:
            if getattr(getattr(node, "targets", [None])[0], "id", "") == "__all__":
                yield from (f"{module}.{name.value}" for name in node.value.elts)


def test_the_sign_for_help_in_a_diagram_opens_a_page_of_the_site(monkeypatch):
    monkeypatch.setenv("PPDP_DOCS", SITE.as_uri())
    kinds = [Pipeline, *(getattr(room, name) for room in (transformers, mechanisms) for name in room.__all__)]
    kinds = [kind for kind in kinds if hasattr(kind, "_doc_link_template")]
    opened = {kind.__name__: Path(unquote(urlsplit(page_of(kind)).path)) for kind in kinds}
    assert {name: page for name, page in opened.items() if page not in pages()} == {}
    drawn = Pipeline([("range", MinMaxScaler(ranges=(0, 1))), ("model", LogisticRegression())])._repr_html_()
    signs = re.findall(r'class="sk-estimator-doc-link[^>]*href="([^"]*)"', drawn)
    assert [Path(unquote(urlsplit(sign).path)) for sign in signs] == [
        opened[name] for name in ("Pipeline", "MinMaxScaler", "LogisticRegression")
    ]


def test_every_public_name_has_a_page():
    names = set(exported())
    assert "ppdp.mechanisms.lora.PrivateLoRA" in names
    made = {path.stem for path in (SITE / "reference" / "api").glob("*.html")} - {"index"}
    assert made == names
    described = {path.stem for path in made_pages() if path.stem in names and 'class="sig ' in path.read_text("utf-8")}
    assert described == names


def made_pages():
    return (SITE / "reference" / "api").glob("*.html")


# Pages of the same styles are shown in one frame: reading styles takes ten times as long as laying out a page.
LOOK = """<!DOCTYPE html><meta charset="utf-8"><title>look</title><body><script>
const frame = (src, scripts) => new Promise(done => {
  const made = document.createElement("iframe");
  if (!scripts) made.sandbox = "allow-same-origin";
  made.style = "width:390px;height:844px;border:0;visibility:hidden";
  made.onload = () => done(made);
  made.src = src;
  document.body.append(made);
});
const until = async test => {
  for (let i = 0; i < 400 && !test(); i++) await new Promise(later => setTimeout(later, 50));
};
const width = made => made.contentDocument.documentElement.scrollWidth;
(async () => {
  const report = {widths: {}, found: [], themes: []};
  try {
    const waiting = await (await fetch("/pages.json")).json();
    const work = async () => {
      const shown = {};
      while (waiting.length) {
        const page = waiting.pop(), address = new URL(page, location);
        const read = new DOMParser().parseFromString(await (await fetch(page)).text(), "text/html");
        const styles = [...read.head.querySelectorAll("style, link[rel=stylesheet]")];
        const look = styles.map(one => one.href ? new URL(one.getAttribute("href"), address) : one.textContent).join();
        if (shown[look]) {
          for (const image of read.images) image.src = new URL(image.getAttribute("src"), address);
          shown[look].contentDocument.body.replaceWith(shown[look].contentDocument.adoptNode(read.body));
          await Promise.all([...shown[look].contentDocument.images].map(image => image.decode()));
        } else shown[look] = await frame(page, false);
        report.widths[page] = width(shown[look]);
      }
    };
    await Promise.all([work(), work(), work(), work()]);
    for (const page of WITH_SCRIPTS) {
      const made = await frame(page, true);
      report.widths[page + " with scripts"] = width(made);
      made.remove();
    }
    const search = await frame("/search.html?q=StandardScaler", true);
    await until(() => search.contentDocument.querySelector("#search-results ul.search li a"));
    report.found = [...search.contentDocument.querySelectorAll("#search-results ul.search li a")].map(a => a.href);
    const first = await frame("/index.html", true), root = first.contentDocument.documentElement;
    for (const mode of ["light", "dark"]) {
      root.querySelector(`.theme-change-button[data-mode="${mode}"]`).click();
      const style = first.contentWindow.getComputedStyle(root.querySelector("body"));
      report.themes.push([root.dataset.theme, style.backgroundColor]);
    }
  } catch (error) { report.error = String(error); }
  await fetch("/report", {method: "POST", body: JSON.stringify(report)});
})();
</script>"""
WITH_SCRIPTS = [
    "/index.html",
    "/theory/README.html",
    "/errata.html",
    "/reference/api/index.html",
    "/examples/index.html",
]


def looked_at():
    """Every page, and of the listings of sources, which are all made alike, every twentieth."""
    names = ["/" + path.relative_to(SITE).as_posix() for path in pages()]
    listings = [name for name in names if name.startswith("/source/")]
    return sorted({*names} - {*listings}) + listings[::20]


class Server(SimpleHTTPRequestHandler):
    """The site, the page that looks at all others, and where it reports. A browser asks for what pages share once."""

    protocol_version = "HTTP/1.1"

    def end_headers(self):
        self.send_header("Cache-Control", "max-age=3600")
        super().end_headers()

    def do_GET(self):
        if self.path not in ("/look", "/pages.json"):
            return super().do_GET()
        names = looked_at()
        text = LOOK.replace("WITH_SCRIPTS", json.dumps(WITH_SCRIPTS)) if self.path == "/look" else json.dumps(names)
        text = text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("Content-Type", "text/html" if self.path == "/look" else "application/json")
        self.end_headers()
        self.wfile.write(text)

    def do_POST(self):
        self.server.report = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()
        self.server.reported.set()

    def log_message(self, *words):
        """Silent: requests are no output of a test."""


@pytest.mark.long
def test_a_browser_shows_it_on_a_phone_searches_and_turns_dark(tmp_path):
    browser = shutil.which("chromium")
    if browser is None:
        (pytest.fail if REQUIRED else pytest.skip)("there is no chromium on the path")
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Server, directory=str(SITE)))
    server.reported, server.report = threading.Event(), {}
    threading.Thread(target=server.serve_forever, daemon=True).start()
    log = tmp_path / "log"
    options = [
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-background-networking",
        "--enable-logging=stderr",
    ]
    options += ["--disable-dev-shm-usage", f"--user-data-dir={tmp_path / 'profile'}", "--remote-debugging-port=0"]
    with log.open("w") as written:
        address = f"http://127.0.0.1:{server.server_port}/look"
        shown = subprocess.Popen([browser, *options, address], stdout=written, stderr=written)
        try:
            assert server.reported.wait(120), log.read_text("utf-8")[-2000:]
        finally:
            shown.kill()
            shown.wait()
            server.shutdown()
            server.server_close()
    report = server.report
    assert "error" not in report, report["error"]
    assert {page: wide for page, wide in report["widths"].items() if wide > 390} == {}
    assert len(report["widths"]) == len(looked_at()) + len(WITH_SCRIPTS)
    assert any("ppdp.transformers.StandardScaler.html" in link for link in report["found"])
    assert [theme for theme, _ in report["themes"]] == ["light", "dark"]
    assert report["themes"][0][1] != report["themes"][1][1]
    # The theme says there what it does, and browsers that a frame has no scripts, as it was told, nor uses them.
    expected = '"[PST]: ', "sandboxed", "was preloaded using link preload but not used"
    console = [line for line in log.read_text("utf-8").splitlines() if "CONSOLE" in line]
    console = [line for line in console if not any(words in line for words in expected)]
    assert console == []
