"""Private rows go to the folder that is named and to no other, for nobody else to read, and end with the process."""

import errno
import os
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np
import pyarrow as pa
import pytest

from ppdp import make_pipeline
from ppdp.core import private_files
from ppdp.core.private_files import check_temporary, private_file, private_folder, private_path
from ppdp.exceptions import DiskFull, InvalidInput
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import MinMaxScaler

linux = pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="files without a name are opened by /proc")


@pytest.fixture
def place(tmp_path, monkeypatch):
    """TMPDIR, set after Python has chosen another folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "elsewhere"))
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "named").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "named"))
    yield tmp_path / "named"
    assert not list((tmp_path / "elsewhere").iterdir())


@linux
def test_a_folder_that_is_named_late_is_the_place(place):
    with private_file() as file, private_path() as path, private_folder() as folder:
        assert os.readlink(f"/proc/self/fd/{file.fileno()}").startswith(str(place))
        assert os.readlink(path).startswith(str(place))
        assert os.path.dirname(folder) == str(place)
        assert os.listdir(place) == [os.path.basename(folder)]
        assert os.stat(path).st_mode & 0o777 == 0o600
        assert os.stat(folder).st_mode & 0o777 == 0o700
    assert os.listdir(place) == []


def fitting(reader=True):
    table = pa.table({"a": np.zeros(100), "b": np.ones(100)})
    pipe = make_pipeline(MinMaxScaler(ranges=(-9, 9)), GaussianMechanism(), epsilon=1.0, delta=1e-6)
    return pipe.fit(table.to_reader())


def test_a_full_disk_is_no_reason_for_another_folder(place, monkeypatch):
    make = tempfile.TemporaryFile

    def full(*given, **named):
        if named.get("dir") == str(place):
            raise OSError(errno.ENOSPC, "no space")
        return make(*given, **named)

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    with pytest.raises(DiskFull, match="TMPDIR"):
        fitting()
    with pytest.raises(DiskFull), private_folder():
        pass


@pytest.mark.parametrize("named", ["/proc", "/dev/null", "missing", "/sys"])
@pytest.mark.parametrize("begin", [fitting, check_temporary, lambda: private_folder().__enter__()])
def test_nor_is_one_that_takes_no_file(named, begin, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", named)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="go to no other"):
        begin()
    assert os.listdir(tmp_path) == []


STOPS = """
import os, signal, sys
import pyarrow as pa, pyarrow.dataset as ds, numpy as np
from ppdp import make_pipeline
from ppdp.core.private_files import private_folder
from ppdp.data.engine import disk_cache
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import MinMaxScaler

def stop(*given, **named):
    print(len(os.listdir(os.environ["TMPDIR"])), flush=True)
    os.kill(os.getpid(), number)

disk_cache._DiskCache.over, disk_cache.ROOM = stop, 0
table = pa.table({"a": np.arange(3000.0), "y": np.arange(3000) % 2})
pipe = make_pipeline(MinMaxScaler(ranges=(0, 3000)), LogisticRegression(classes=(0, 1)), epsilon=1.0, delta=1e-6)
for number in map(int, sys.argv[1:]):
    child = os.fork()
    if child == 0:
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)  # tests may run where hanging up is ignored
        with private_folder() as folder:
            open(os.path.join(folder, "of a worker"), "w").close()
            pipe.fit(table.to_reader(), "y")
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@linux
def test_a_process_that_is_stopped_leaves_no_row(tmp_path):
    numbers = [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL]
    line, named = [sys.executable, "-c", STOPS, *(str(int(number)) for number in numbers)], {"TMPDIR": str(tmp_path)}
    done = subprocess.run(line, env={**os.environ, **named}, capture_output=True, text=True, check=True)
    found = [int(word) for word in done.stdout.split()]
    assert found[1::2] == [-number for number in numbers], done.stderr
    assert found[0] == 1  # the folder alone: rows that are kept have no name
    deadline = time.monotonic() + 20
    while os.listdir(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(private_files.fcntl is None, reason="no locks")
def test_folders_of_processes_that_are_gone_are_swept_and_no_others(place, monkeypatch):
    for name, mode in ((private_files._FOLDER + "dead", 0o700), ("ppdp-other", 0o700), ("else", 0o755)):
        (place / name).mkdir(mode=mode)
        (place / name / "rows").write_bytes(b"1")
    (place / (private_files._FOLDER + "link")).symlink_to(place / "else")
    (place / (private_files._FOLDER + "open to others")).mkdir(mode=0o755)
    with private_folder() as alive:
        check_temporary()
        assert os.path.isdir(alive)
    left = {private_files._FOLDER + "link", private_files._FOLDER + "open to others", "ppdp-other", "else"}
    assert set(os.listdir(place)) == left
    assert (place / "else" / "rows").exists()
