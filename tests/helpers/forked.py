"""What a test does in a process of its own that needs no second start of Python."""

import os

import pytest


def forks(test):
    """Mark a test that forks; the test process has threads of its own under some runners."""
    quiet = pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
    return pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")(quiet(test))


def fork(work):
    """Run ``work()`` in a forked child and return its process id; the child ends with code 0 or 1."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return child


def ended(child):
    """Wait for a child; its exit code, or minus the signal that killed it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
