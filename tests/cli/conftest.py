"""The study of most tests of the command line, in the folder where commands run."""

import pytest
from studies import write_study


@pytest.fixture
def study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return write_study(tmp_path)
