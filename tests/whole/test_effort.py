"""How many cases of a test are run: all in an attack, every day some of each kind."""

import os
import re
import subprocess
import sys
from pathlib import Path

import effort
import pytest
from effort import chosen, found, rounds, taken

TESTS = """
import pytest

@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
@pytest.mark.repeated("size")
def test_of_every_name(name, size): pass

@pytest.mark.parametrize(("seed", "twice"), [(seed, 2 * seed) for seed in range(10)])
@pytest.mark.repeated("seed", "twice", keep=4)
def test_of_some_seeds(seed, twice): assert twice == 2 * seed

@pytest.mark.long
def test_once(): pass
"""


@pytest.mark.parametrize("size", range(1, 40))
@pytest.mark.parametrize("keep", [1, 2, 5])
@pytest.mark.repeated("size", keep=13)
def test_every_place_is_met_before_one_comes_again(size, keep):
    groups = [[(group, place) for place in range(size)] for group in range(size)]
    kept = chosen(groups, keep, "test")
    assert len(kept) == len(set(kept)) == size * min(keep, size)
    assert {place for _, place in kept} == set(range(size))
    assert kept == chosen(groups, keep, "test")


def test_tests_begin_at_different_places():
    assert len({chosen([range(10)], 1, name)[0] for name in "abcdefgh"}) > 4


RUN = """
import pytest
for options in ([], ["--attack"], ["--quick"]):
    assert pytest.main(["-p", "effort", "-p", "no:cacheprovider", "-rp", *options, "test_it.py"]) == 0
"""


def names_of_passed(folder):
    """Names of the tests that pass every day, in an attack, and while one writes."""
    (folder / "test_it.py").write_text(TESTS)
    (folder / "pytest.ini").write_text("[pytest]\n")  # whatever lies in a folder above, names begin here
    place = str(Path(effort.__file__).parent)
    environment = {**os.environ, "PYTHONPATH": place, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    line = [sys.executable, "-c", RUN]
    ended = subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    parts = re.split(r"^=+ test session starts =+$", ended.stdout, flags=re.M)[1:]
    return [re.findall(r"^PASSED test_it.py::(\S+)", part, flags=re.M) for part in parts]


def test_every_day_one_of_the_repetitions_is_run_and_in_an_attack_all(tmp_path):
    passed, attacked, quick = names_of_passed(tmp_path)
    assert len(passed) == 4 + 4 + 1
    assert passed[0] == attacked[0] == "test_once"  # which is long
    assert {re.split(r"[\[-]", name)[1] for name in passed if "every_name" in name} == set("abcd")
    assert {name[-2] for name in passed if "every_name" in name} == set("123")
    assert set(passed) < set(attacked)
    assert len(attacked) == 12 + 10 + 1
    assert set(quick) <= {"test_of_every_name[a-1]", "test_of_some_seeds[0-0]", "test_once"}


def test_notes_are_taken_once():
    taken()
    assert found(0.5) == 0.5
    found(float("nan"))
    found(-0.5)
    assert taken() == 0.5
    assert taken() is None


def test_loops_have_their_rounds_of_every_day(request):
    assert rounds(25) == (100 if request.config.getoption("--attack") else 25)
