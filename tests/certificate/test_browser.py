"""The page in a real browser: nothing fails, nothing is cut off, in light and dark, on a phone and on paper."""

import io
import re

import matplotlib.image
import pytest
from browser import Browser, find_browser
from documents import render_fragment, render_page
from pages import cleaned, exact_pca, rank_one_rows, real_documents, rows_with_gaps

from ppdp import Adjacency, Domain, Ledger, Pipeline, make_pipeline
from ppdp.certificate.issue_record import OF_THE_ISSUER
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import Deduplicator, NormClipper

PROGRAM = find_browser()
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium or Chrome on PATH to open pages with")

PHONE, DESKTOP = 390, 1280
KINDS = ("unconditional", "gated", "conditional")
BEYOND = """[...document.querySelectorAll("body, body *")].map(e => [e.getBoundingClientRect(), e])
    .filter(([at, e]) => at.left < -0.5 || at.right > innerWidth + 0.5).map(([at, e]) => e.outerHTML.slice(0, 80))"""
NOTEBOOK = (
    '<!DOCTYPE html><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<style>table, td {{ border: 9px solid red; text-align: right; white-space: nowrap }}</style>"
    "<body>{}</body>"
)

every_screen = pytest.mark.parametrize("width", [PHONE, DESKTOP], ids=["phone", "desktop"])
every_scheme = pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])


@pytest.fixture(scope="module", name="folder")
def folder_with_pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    for kind in KINDS:
        document = real_documents()[kind]
        (folder / f"{kind}.html").write_text(render_page(document), encoding="utf-8")
        (folder / f"{kind} in a notebook.html").write_text(NOTEBOOK.format(render_fragment(document)), encoding="utf-8")
    return folder


@pytest.fixture(scope="module", name="browser")
def one_browser(tmp_path_factory):
    with Browser(PROGRAM, tmp_path_factory.mktemp("profile")) as browser:
        yield browser


def pixels_of(png):
    """Red, green and blue of every pixel, between 0 and 1."""
    return matplotlib.image.imread(io.BytesIO(png))[..., :3]


def contents_of(browser):
    """What the page says first, and what went wrong."""
    return (
        browser.value("(document.querySelector('.status') ?? document.body).innerText.trim().split('\\n')[0]"),
        browser.log,
        browser.requests,
    )


@every_scheme
@every_screen
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.repeated("kind")
def test_page_opens_without_a_word_on_the_console_and_fits(browser, folder, kind, width, dark):
    page = folder / f"{kind}.html"
    browser.show(page, width=width, dark=dark, phone=width == PHONE)
    status = "CONDITIONAL" if kind == "conditional" else "UNCONDITIONAL"
    assert contents_of(browser) == (status, [], [page.as_uri()])
    assert browser.value("innerWidth") == width
    assert browser.value("document.documentElement.scrollWidth") == width, "nothing to scroll sideways"
    assert browser.value(BEYOND) == []


@every_screen
def test_light_and_dark_are_two_pictures_and_both_show_something(browser, folder, width):
    pictures = {}
    for dark in (False, True):
        browser.show(folder / "gated.html", width=width, dark=dark, phone=width == PHONE)
        pictures[dark] = pixels_of(browser.picture())
        assert browser.value("matchMedia('(prefers-color-scheme: dark)').matches") is dark
    assert pictures[False].shape == pictures[True].shape
    assert pictures[False].mean() > 0.85, "dark on light"
    assert pictures[True].mean() < 0.25, "light on dark"
    for picture in pictures.values():
        assert picture.std() > 0.03, "words and figures are there"
        assert (picture.max(axis=2) - picture.min(axis=2)).max() > 0.3, "and colours"


def test_a_script_in_the_page_would_not_run(browser, folder):
    page = folder / "with a script.html"
    text = (folder / "gated.html").read_text("utf-8")
    page.write_text(text.replace("<h2>", "<script>document.title = 'it ran'</script><img src='x.png'><h2>", 1), "utf-8")
    browser.show(page, width=DESKTOP)
    assert browser.value("document.title") != "it ran"
    assert len(browser.log) == 2, "script and image are refused"
    assert browser.value("getComputedStyle(document.querySelector('.status')).letterSpacing") != "normal"


def test_figures_have_a_size_and_a_name(browser, folder):
    browser.show(folder / "gated.html", width=DESKTOP)
    sizes = browser.value("[...document.querySelectorAll('svg')].map(s => s.getBoundingClientRect().height)")
    assert len(sizes) >= 4
    assert min(sizes) > 5
    drawn = browser.value("[...document.querySelectorAll('svg path')].map(p => p.getTotalLength())")
    assert len(drawn) == 1
    assert min(drawn) > 50, "what a test detects"
    named = browser.value(
        "[...document.querySelectorAll('svg[role=img]')].map(s => s.querySelector('title').textContent.length"
        " * s.querySelector('desc').textContent.length)"
    )
    assert len(named) == 1
    assert min(named) > 0


def test_page_one_is_one_sheet_of_a4(browser, folder):
    inside = 680, 267 * 96 / 25.4  # pixels between the margins of a sheet
    X, y = rows_with_gaps()
    steps = [*cleaned(), ("model", LogisticRegression(classes=(0, 1)))]
    people = {"adjacency": Adjacency.user_level(max_rows=1), "domain": Domain(n_rows=5000)}
    words = {"purpose": "Model for a research article", "responsible": "Ann Author, head of statistics, Our Clinic"}
    stated = {"limit_set_by": "Data board of the clinic (board@our.clinic), minute of 2026-03-02"}
    stated |= {"review_by": "2087-06-30", "supersedes": f"sha256:{64 * '0'}"}
    stated |= {"status_list": "https://our.clinic/withdrawn.json", "attachments": {"audit.json": f"sha256:{64 * '0'}"}}
    stated |= {"run_by": "Bo Bell, data office of Our Clinic", "accuracy": "AUC 0.85 on 1,969 others"}
    stated |= {"justification": "as in the clinic's policy of 2025", "other_releases": "nothing"}
    stated |= {"own_values": "each was measured on the person", "contact": "author@our.clinic, +1 507 555 0100"}
    stated |= {"legal_basis": "GDPR Art. 6(1)(e), 9(2)(j)", "consent": "broad consent to research, form of 1995"}
    stated |= {"ethics_approval": "Ethics board of Our Clinic, no. 2025-114", "retention": "until 2035-12-31"}
    stated |= {"remarks": "data protection officer: Di Dean, dpo@our.clinic", "prediction": "1 = died, 0 = alive"}
    stated |= {"attachments_hold": "a test of ppdp on made-up rows", "signed_by": "Ann Author, shown at our.clinic/key"}
    stated |= {"software": f"pypi.our.clinic, wheel sha256:{64 * '0'}"}
    assert {*stated, *words} == {*OF_THE_ISSUER}
    words |= {"statements": stated, "sources": "Codebook of the survey, version 3.1"}
    with Ledger(epsilon=3.0, delta=1e-5):
        full = Pipeline(steps, dataset="survey of residents of Olmsted County", **people, **words)
        full.fit(X, y, groups=[f"patient {i}" for i in range(len(X))])
        assumed = make_pipeline(NormClipper(), Deduplicator(), exact_pca(), GaussianMechanism(), gate=None, **words)
        assumed.fit(rank_one_rows())
    for kind, pipe in {"everything": full, "everything assumed": assumed}.items():
        page = render_page(pipe.certificate_.to_dict(), "sha256:" + 64 * "0")
        (folder / f"{kind}.html").write_text(page, encoding="utf-8")
    for kind in (*KINDS, "everything", "everything assumed"):
        browser.show(folder / f"{kind}.html", width=inside[0])
        browser("Emulation.setEmulatedMedia", media="print")
        assert browser.value("document.querySelector('header').getBoundingClientRect().height") <= inside[1], kind
        browser("Emulation.setEmulatedMedia", media="")


def test_the_annex_behind_page_two_is_folded_on_a_screen_and_printed(browser, folder):
    shown = "[...document.querySelectorAll('h2')].filter(one => one.getClientRects().length).length"
    browser.show(folder / "gated.html", width=DESKTOP, folded=True)
    assert browser.value(shown) == 3
    browser("Emulation.setEmulatedMedia", media="print")
    printed = browser.value(shown)
    browser("Emulation.setEmulatedMedia", media="")
    browser.value("document.querySelector('label.behind').click() || 0")
    assert browser.value(shown) == printed > 8


def test_page_prints_on_white_even_from_a_dark_screen(browser, folder):
    for kind in KINDS:
        browser.show(folder / f"{kind}.html", width=DESKTOP, dark=True)
        browser("Emulation.setEmulatedMedia", media="print")
        assert browser.value("getComputedStyle(document.querySelector('h2')).color") == "rgb(28, 33, 38)", "ink"
        browser("Emulation.setEmulatedMedia", media="")
        paper = browser.pdf()
        assert paper.startswith(b"%PDF-")
        assert 2 <= len(re.findall(rb"/Type\s*/Page\b", paper)) <= 8
        assert b"/ToUnicode" in paper, "words that can be searched, no picture of them"
    assert browser.log == []


@pytest.mark.parametrize("kind", KINDS)
def test_fragment_fits_into_a_notebook_whatever_its_style(browser, folder, kind):
    browser.show(folder / f"{kind} in a notebook.html", width=PHONE, phone=True)
    assert browser.log == []
    assert browser.value("document.documentElement.scrollWidth") <= PHONE
    edges = browser.value("[...document.querySelectorAll('td')].map(c => getComputedStyle(c).borderTopWidth)")
    assert set(edges) == {"0px"}


def test_this_browser_would_notice(browser, tmp_path):
    """A page that fails, asks for more and is too wide is seen to do so."""
    page = tmp_path / "wrong.html"
    page.write_text(
        '<!DOCTYPE html><meta name="viewport" content="width=device-width"><p>first</p>'
        '<div style="width:9999px">wide</div><img src="missing.png"><script>console.error("no"); undefined.x</script>'
    )
    browser.show(page, width=PHONE, phone=True)
    first, log, requests = contents_of(browser)
    assert first == "first"
    assert len(log) >= 3
    assert len(requests) == 2
    assert browser.value("document.documentElement.scrollWidth") > PHONE
    assert browser.value(BEYOND)
