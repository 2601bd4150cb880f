"""What becomes of rows in files is written part by part, and a killed run goes on: whole or not at all, never mixed."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from effort import rounds

import ppdp
from ppdp import Domain, make_pipeline
from ppdp.data.parallel import PIECE
from ppdp.exceptions import DomainMismatch, ExportError, InvalidInput, InvalidParameter, InvalidValue, RowsChanged
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.pipeline.release import parquet
from ppdp.transformers import PCA, MeanImputer, MinMaxScaler, StandardScaler

pytestmark = pytest.mark.filterwarnings("ignore::ppdp.exceptions.CompositionWarning")

N, D = 5 * PIECE + 321, 3
NAMES = [f"x{i}" for i in range(D)]


def table_of(seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    label = (X[:, 0] > 0).astype(np.int64)
    X[rng.random(X.shape) < 0.01] = np.nan
    return pa.table([*X.T, label, np.arange(n)], [*NAMES, "y", "number"])


TABLE = table_of()


@pytest.fixture(autouse=True)
def short(monkeypatch):
    """Parts of two blocks."""
    monkeypatch.setattr(parquet, "PART", 2 * PIECE)


@pytest.fixture
def rows(tmp_path):
    folder = tmp_path / "rows"
    folder.mkdir()
    half = N // 2 + 7
    pq.write_table(TABLE.slice(0, half), folder / "0.parquet", row_group_size=50_001)
    pq.write_table(TABLE.slice(half), folder / "1.parquet", row_group_size=9999)
    return folder


def front():
    return MinMaxScaler(ranges=(-4, 4)), MeanImputer(), StandardScaler()


def model(**given):
    steps = *front(), LogisticRegression(classes=(0, 1), max_iter=3)
    return make_pipeline(*steps, random_state=1, **given).fit(TABLE.select([*NAMES, "y"]), "y")


def stages():
    return make_pipeline(*front(), PCA(2), random_state=1).fit(TABLE.select(NAMES))


@pytest.fixture(scope="module")
def fitted():
    return model()


def read(folder):
    return ds.dataset(folder).to_table()


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "transform"])
@pytest.mark.repeated("method", keep=2)
def test_files_hold_what_the_method_gives_in_memory(rows, tmp_path, fitted, method):
    pipe = stages() if method == "transform" else fitted
    pipe.write_parquet(rows, tmp_path / "out", method=method, keep="number")
    found = read(tmp_path / "out")
    assert np.array_equal(found["number"], np.arange(N))
    wanted = np.asarray(getattr(pipe, method)(TABLE.select(NAMES))).reshape(N, -1)
    new = np.column_stack([found[name] for name in found.schema.names[1:]])
    assert np.allclose(new, wanted, rtol=1e-12, atol=1e-14)
    assert len(list((tmp_path / "out").glob("*.parquet"))) == 3
    assert b"no certificate covers it" in found.schema.metadata[parquet.ROWS_KEY]
    assert sorted(os.listdir(tmp_path)) == ["out", "rows"]


def test_columns_are_called_what_they_are(rows, tmp_path, fitted):
    kept = ["y", NAMES[0]]  # a feature as well
    fitted.write_parquet(rows, tmp_path / "out", method="predict_proba", keep=kept)
    assert read(tmp_path / "out").schema.names == [*kept, "probability of 0", "probability of 1"]
    stages().write_parquet(rows, tmp_path / "mapped")
    assert read(tmp_path / "mapped").schema.names == NAMES
    fitted.write_parquet(rows, tmp_path / "labels")
    assert read(tmp_path / "labels").schema.names == ["prediction"]


@pytest.mark.parametrize("method", ["predict", "predict_proba", "decision_function", "transform"])
@pytest.mark.repeated("method", keep=3)
def test_methods_take_rows_in_blocks(rows, fitted, method):
    pipe = stages() if method == "transform" else fitted
    found, wanted = getattr(pipe, method)(rows), getattr(pipe, method)(TABLE.select(NAMES))
    assert type(found) is type(wanted)
    assert np.allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_a_run_that_broke_off_writes_only_what_is_missing(rows, tmp_path, fitted, monkeypatch):
    write, done = parquet._write, []

    def breaking(path, blocks):
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(path.name)
        write(path, blocks)

    monkeypatch.setattr(parquet, "_write", breaking)
    with pytest.raises(KeyboardInterrupt):
        fitted.write_parquet(rows, tmp_path / "out", keep=["number"])
    assert not (tmp_path / "out").exists()
    (hidden,) = tmp_path.glob(".out.*.unfinished")
    (hidden / ".part-000002.parquet.half").write_bytes(b"PAR1")
    again = []
    monkeypatch.setattr(parquet, "_write", lambda path, blocks: (again.append(path.name), write(path, blocks)))
    fitted.write_parquet(rows, tmp_path / "out", keep=["number"])
    assert again == ["part-000002.parquet"]
    assert np.array_equal(read(tmp_path / "out")["number"], np.arange(N))
    assert sorted(os.listdir(tmp_path / "out")) == [parquet.MANIFEST, *sorted({*done, *again})]
    again.clear()
    fitted.write_parquet(rows, tmp_path / "out", keep=["number"])  # all there: nothing to do
    assert again == []


def test_another_release_or_other_rows_begin_again(rows, tmp_path, fitted, monkeypatch):
    write = parquet._write

    def broken(path, blocks):
        write(path, blocks)
        raise KeyboardInterrupt

    other = make_pipeline(*front(), LogisticRegression(classes=(0, 1), max_iter=3), random_state=2)
    other.fit(TABLE.select([*NAMES, "y"]), "y")
    for pipe, method in ((fitted, "predict"), (other, "predict"), (other, "decision_function")):
        monkeypatch.setattr(parquet, "_write", broken)
        with pytest.raises(KeyboardInterrupt):
            pipe.write_parquet(rows, tmp_path / "out", method=method)
    pq.write_table(TABLE.slice(0, N // 2), rows / "0.parquet")
    with pytest.raises(KeyboardInterrupt):
        other.write_parquet(rows, tmp_path / "out", method="decision_function")
    monkeypatch.setattr(parquet, "_write", write)
    other.write_parquet(rows, tmp_path / "out", method="decision_function")
    wanted = other.decision_function(rows)
    assert np.allclose(read(tmp_path / "out")["decision"], wanted, rtol=1e-12, atol=1e-14)
    with pytest.raises(ExportError, match="already there, of other rows or another release"):
        fitted.write_parquet(rows, tmp_path / "out", method="decision_function")


def test_nobody_else_reads_what_is_written(rows, tmp_path, fitted):
    fitted.write_parquet(rows, tmp_path / "out")
    assert (tmp_path / "out").stat().st_mode & 0o077 == 0
    assert {file.stat().st_mode & 0o077 for file in (tmp_path / "out").glob("part-*")} == {0}
    about = json.loads((tmp_path / "out" / parquet.MANIFEST).read_text())
    assert str(rows) not in json.dumps(about)


def broken_off(pipe, rows, out, monkeypatch):
    """The hidden folder of a run that was stopped behind its first part."""
    write = parquet._write
    with monkeypatch.context() as stopping:
        stopping.setattr(parquet, "_write", lambda path, blocks: (write(path, blocks), stop()))
        with pytest.raises(KeyboardInterrupt):
            pipe.write_parquet(rows, out)
    return next(out.parent.glob(".out.*.unfinished"))


def stop():
    raise KeyboardInterrupt


def false_part(path):
    pq.write_table(pa.table({"prediction": np.full(2 * PIECE, 7)}), path)


@pytest.mark.parametrize("what", ["its owner", "its mode", "a link", "a part's mode", "a linked part", "in use"])
def test_nothing_of_a_stranger_is_taken(what, rows, tmp_path, fitted, monkeypatch):
    """Of who may write beside it, and has made what an earlier run would have left."""
    out = tmp_path / "shared" / "out"
    out.parent.mkdir(mode=0o777)
    hidden = broken_off(fitted, rows, out, monkeypatch)
    assert hidden.stat().st_mode & 0o777 == 0o700
    first = hidden / "part-000000.parquet"
    first.unlink()
    false_part(first)
    first.chmod(0o600)
    if what == "its owner":
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
    elif what == "its mode":
        hidden.chmod(0o777)
    elif what == "a link":
        hidden.rename(tmp_path / "elsewhere")
        hidden.symlink_to(tmp_path / "elsewhere")
    elif what == "a part's mode":
        first.chmod(0o644)
    elif what == "a linked part":
        first.rename(tmp_path / "false.parquet")
        first.symlink_to(tmp_path / "false.parquet")
    else:
        lock = parquet.locked(hidden)
    if what == "its owner":
        with monkeypatch.context() as blind:  # who cannot be another user here looks at the name alone
            blind.setattr(parquet, "_is_part_of_ours", lambda file: False)
            fitted.write_parquet(rows, out)
    else:
        fitted.write_parquet(rows, out)
    found = read(out)["prediction"].to_numpy()
    assert np.array_equal(found, fitted.predict(rows))
    assert not (out / first.name).is_symlink()
    if what == "in use":
        os.close(lock)


def test_a_finished_folder_of_a_stranger_is_not_taken_for_ours(rows, tmp_path, fitted):
    out = tmp_path / "out"
    fitted.write_parquet(rows, out)
    out.chmod(0o755)
    with pytest.raises(ExportError, match="already there"):
        fitted.write_parquet(rows, out)


def test_names_of_any_length_are_written(rows, tmp_path, fitted):
    for name in ("a" * 255, "é" * 127):
        fitted.write_parquet(rows, tmp_path / name)
        assert read(tmp_path / name).num_rows == N


@pytest.mark.parametrize("values", [["a", None, "b"], pa.array(["a", "c", "b"], pa.string_view())], ids=["gap", "view"])
def test_kept_categories_are_written_whatever_their_dictionary_holds(values, tmp_path, fitted):
    words = pa.DictionaryArray.from_arrays([0, 1, 2, None], pa.array(values))
    rows = TABLE.slice(0, 4).select(NAMES).append_column("word", words)
    with pa.OSFile(str(tmp_path / "rows.arrow"), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    fitted.write_parquet(tmp_path / "rows.arrow", tmp_path / "out", keep="word")
    assert read(tmp_path / "out")["word"].to_pylist() == words.to_pylist()


def test_what_cannot_be_written_is_refused_and_leaves_nothing(rows, tmp_path, fitted):
    out = tmp_path / "out"
    with pytest.raises(InvalidInput, match="X is in memory"):
        fitted.write_parquet(TABLE, out)
    with pytest.raises(InvalidParameter, match="method"):
        fitted.write_parquet(rows, out, method="transform")
    with pytest.raises(DomainMismatch, match="'z'"):
        fitted.write_parquet(rows, out, keep=["z"])
    with pytest.raises(InvalidParameter, match="named twice"):
        fitted.write_parquet(rows, out, keep=["y", "y"])
    bare = tmp_path / "bare.parquet"
    pq.write_table(TABLE.select(["x0", "x1"]), bare)
    with pytest.raises(DomainMismatch, match="'x2'"):
        fitted.write_parquet(bare, out)
    with pytest.raises(InvalidParameter, match="maps no rows"):
        make_pipeline(*front(), GaussianMechanism("mean")).fit(TABLE.select(NAMES)).write_parquet(rows, out)
    with pytest.raises(InvalidInput, match="score takes rows in memory"):
        fitted.score(rows, "y")
    out.mkdir()
    with pytest.raises(ExportError, match="already there"):
        fitted.write_parquet(rows, out)
    assert sorted(os.listdir(tmp_path)) == ["bare.parquet", "out", "rows"]


def test_an_invalid_cell_ends_it_and_is_not_told(rows, tmp_path):
    steps = MinMaxScaler(ranges=(-4, 4)), StandardScaler()
    clean = TABLE.select(NAMES).slice(0, 1000).to_pandas().fillna(0.0)
    pipe = make_pipeline(*steps, domain=Domain(n_rows=1000)).fit(clean)
    with pytest.raises(InvalidValue, match="Input X contains NaN, and no step fills missing values"):
        pipe.write_parquet(rows, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_rows_that_change_meanwhile_end_it(rows, tmp_path, fitted, monkeypatch):
    write = parquet._write

    def changing(path, blocks):
        write(path, blocks)
        pq.write_table(TABLE.slice(0, 10), rows / "1.parquet")

    monkeypatch.setattr(parquet, "_write", changing)
    with pytest.raises(RowsChanged):
        fitted.write_parquet(rows, tmp_path / "out")
    assert not (tmp_path / "out").exists()


STARTS = """
import os, sys, ppdp
from ppdp.pipeline.release import parquet
parquet.PART = 2 * parquet.PIECE
ppdp.load(sys.argv[1])
for _ in sys.stdin:
    child = os.fork()
    if child == 0:
        ppdp.load(sys.argv[1]).write_parquet(sys.argv[2], sys.argv[3], keep=["number"])
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_again_and_again_it_ends_whole(rows, tmp_path):
    """From the first byte that is read to the last rename, at any moment; what stands at the path is always all of it.

    A process that has imported everything starts the runs that are killed.
    """
    steps = *front(), LogisticRegression(classes=(0, 1), max_iter=3)
    pipe = make_pipeline(*steps, dataset="rows").fit(TABLE.select([*NAMES, "y"]), "y")
    model, out = tmp_path / "model.zip", tmp_path / "out"
    pipe.export(model)
    rng, kills, line = np.random.default_rng(0), 0, [sys.executable, "-c", STARTS, model, rows, out]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as starter:
        for _ in range(rounds(4)):
            starter.stdin.write("\n")
            child = int(starter.stdout.readline())
            time.sleep(float(rng.uniform(0, 0.3)))
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
            kills += int(starter.stdout.readline()) == -signal.SIGKILL
            if out.exists():
                assert np.array_equal(read(out)["number"], np.arange(N))
                out.rename(tmp_path / f"done{len(os.listdir(tmp_path))}")
        starter.stdin.close()
    assert kills > 0
    ppdp.load(model).write_parquet(rows, out, keep=["number"])
    found = read(out)
    assert np.array_equal(found["number"], np.arange(N))
    assert np.array_equal(found["prediction"], pipe.predict(TABLE.select(NAMES)))
    assert not list(out.glob(".*"))
