"""Long loops show how far they are, on terminals and in notebooks; short ones, and private numbers, show nothing."""

import io
import sys
import time
import types

import pytest

from ppdp.core import progress as watched
from ppdp.core.progress import paced, progress, unseen


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr(watched, "PATIENCE", -1.0)
    monkeypatch.setattr(watched, "PAUSE", -1.0)


@pytest.fixture
def terminal(monkeypatch):
    """A function that puts a terminal in the place of standard error, and gives what is written there."""

    def opened():
        screen = io.StringIO()
        screen.isatty = lambda: True
        monkeypatch.setattr(sys, "stderr", screen)
        return screen.getvalue

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    return opened


@pytest.fixture
def notebook(monkeypatch):
    """What a notebook shows in the output of a cell, one picture after the other."""
    shown = []
    page = types.SimpleNamespace(
        HTML=lambda text: text, display=lambda text, display_id: types.SimpleNamespace(update=shown.append)
    )
    shell = types.SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: shell, display=page))
    monkeypatch.setitem(sys.modules, "IPython.display", page)
    return shown


def slowly(items):
    """So that the bar is drawn in between, ten times a second."""
    for item in items:
        time.sleep(0.15)
        yield item


def test_a_terminal_shows_rows_and_their_rate(terminal):
    screen = terminal()
    assert list(paced(slowly("abc"), 90_000, 30_000)) == ["a", "b", "c"]
    assert "rows" in screen()
    assert "million a second" in screen()


def test_a_terminal_shows_steps(terminal):
    screen = terminal()
    assert list(slowly(progress([1, 2], "noisy gradient descent"))) == [1, 2]
    assert "noisy gradient descent" in screen()


def test_a_notebook_shows_passes_within_steps_and_is_left_empty(notebook):
    for _ in progress(["first", "second"], "noisy gradient descent"):
        list(paced(range(3), 90_000, 30_000))
    last = [text for text in notebook if "noisy gradient descent" in text and "million a second" in text]
    assert "67%" in last[-1]
    assert all(text.startswith("<pre>") for text in notebook[:-1])
    assert notebook[-1] == ""
    assert watched._shown == []


def test_a_private_number_is_not_shown(terminal, notebook):
    screen = terminal()
    with unseen(True):
        list(paced(slowly("abc"), 90_000, 30_000))
    assert screen() == ""
    assert notebook == []


def test_neither_shows_what_is_done_soon(terminal, notebook, monkeypatch):
    monkeypatch.setattr(watched, "PATIENCE", 60.0)
    screen = terminal()
    list(paced(range(3), 90_000, 30_000))
    assert screen() == ""
    assert notebook == []


def test_a_loop_that_fails_leaves_no_bar(notebook):
    def failing():
        yield 1
        raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        list(paced(failing(), 90_000, 30_000))
    assert notebook[-1] == ""
    assert watched._shown == []


def test_neither_a_file_nor_a_plain_shell_gets_a_bar(monkeypatch):
    log = io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setitem(sys.modules, "IPython", types.SimpleNamespace(get_ipython=lambda: None))
    list(paced(range(3), 90_000, 30_000))
    assert log.getvalue() == ""
