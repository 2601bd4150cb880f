"""Released datasets carry their certificate, and are refused without it."""

import base64
import io
import json
import subprocess
import sys
from contextlib import suppress
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zoo
from effort import rounds
from text_mutants import bits_flipped

import ppdp
from ppdp import Certificate, Pipeline, make_pipeline
from ppdp.exceptions import CertificateError, ExportError
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism
from ppdp.pipeline.release import parquet as parquet_module
from ppdp.transformers import MinMaxScaler, NormClipper, RandomProjection, StandardScaler

KEY = b"ppdp.certificate"


@cache
def histogram():
    rows = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (1000, 2)), columns=["age", "dose"])
    grid = {"dose": (-1.0, 0.0, 1.0), "age": 3}
    return make_pipeline(MinMaxScaler(ranges=(-1, 1)), LaplaceMechanism("histogram", bins=grid), epsilon=5.0).fit(rows)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "release.parquet"


@pytest.fixture
def written(path):
    histogram().release_.to_parquet(path)
    return path


class TestRoundTrip:
    @pytest.mark.parametrize("name", ["a histogram", "a covariance", "transformer-ended", "unconditional"])
    def test_numbers_and_certificate_come_back(self, name, path):
        pipe, _ = zoo.released(name)
        pipe.release_.to_parquet(path)
        table, certificate = ppdp.read_parquet(path)
        assert certificate == pipe.certificate_
        assert certificate.verify()
        assert table.equals(pipe.release_.to_arrow(), check_metadata=True)
        for array, values in pipe.release_.items():
            mine = table.filter(pa.compute.equal(table["array"], array))
            np.testing.assert_array_equal(mine["value"].to_numpy().reshape(values.shape), values)
            np.testing.assert_array_equal(mine["position"], np.arange(values.size))

    def test_the_cells_of_a_histogram_have_names_and_ends(self, written):
        table, _ = ppdp.read_parquet(written)
        assert table.column_names == ["array", "position", "value", "column", "low", "high"]
        found = table.drop_columns(["array", "position", "value"]).to_pylist()
        edges = dict(zip(["age", "dose"], histogram()[-1].edges_, strict=True))
        expected = [
            {"column": name, "low": low, "high": high}
            for name in ("age", "dose")
            for low, high in zip(edges[name], edges[name][1:], strict=False)
        ]
        assert found == expected

    def test_anybody_reads_it_without_ppdp(self, written):
        table = pq.read_table(written)
        assert json.loads(table.schema.metadata[KEY])["epsilon"] == 5.0
        assert len(pd.read_parquet(written)) == 5

    def test_a_conditional_certificate_only_as_what_it_is(self, path):
        pipe, _ = zoo.released("conditional")
        with pytest.raises(ExportError, match="CONDITIONAL"):
            pipe.release_.to_parquet(path)
        pipe.release_.to_parquet(path, conditional=True)
        assert ppdp.read_parquet(path)[1].status == "CONDITIONAL"

    def test_a_failure_leaves_nothing(self, path, monkeypatch):
        monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        with pytest.raises(ExportError, match=r"cannot write.*No space"):
            histogram().release_.to_parquet(path)
        assert not list(path.parent.iterdir())


def other_certificate():
    return make_pipeline(NormClipper(), GaussianMechanism(), epsilon=5.0).fit(np.eye(100)[:, :2]).certificate_.to_json()


def with_certificate(table, text):
    return table.replace_schema_metadata({KEY: text})


def resealed(table, **changes):
    document = {**json.loads(table.schema.metadata[KEY]), **changes}
    return with_certificate(table, Certificate.sealed(document).to_json())


TAMPERED = {
    "a value": lambda t: t.set_column(2, "value", pa.array([*t["value"].to_pylist()[:-1], 1e3])),
    "an end": lambda t: t.set_column(4, "low", pa.array(np.zeros(5))),
    "a column's name": lambda t: t.set_column(3, "column", pa.array(["age"] * 5)),
    "the order": lambda t: t.take(pa.array([1, 0, 2, 3, 4])),
    "a line less": lambda t: t.slice(1),
    "a line more": lambda t: pa.concat_tables([t, t.slice(0, 1)]),
    "a column less": lambda t: t.drop_columns(["low"]),
    "a column more": lambda t: t.append_column("who", pa.array(["Ann"] * 5)),
    "no values": lambda t: t.drop_columns(["value"]),
    "words for values": lambda t: t.set_column(2, "value", pa.array(list("abcde"))),
    "a gap": lambda t: t.set_column(2, "value", pa.array([None, *t["value"].to_pylist()[1:]])),
    "no certificate": lambda t: t.replace_schema_metadata(None),
    "another certificate": lambda t: with_certificate(t, other_certificate()),
    "no JSON": lambda t: with_certificate(t, b"\x80\x04"),
    "a smaller epsilon": lambda t: resealed(t, epsilon=0.1),
    "an unsealed one": lambda t: with_certificate(t, t.schema.metadata[KEY].replace(b"5.0", b"6.0", 1)),
    "seeded": lambda t: resealed(t, status="SEEDED", reasons=["a seed"]),
}


@cache
def released_rows(*stages):
    """Rows behind a stage that predicts from a release of its own."""
    X = pd.DataFrame(np.random.default_rng(0).uniform(-1, 1, (500, 2)), columns=["age", "dose"])
    stages = [("box", MinMaxScaler(ranges=(-1, 1))), *stages, ("rows", GaussianMechanism("rows"))]
    return Pipeline(stages, epsilon=5.0).fit(X)


SCALED = ("scale", StandardScaler(fit_mode="noisy"))
PROJECTED = ("project", RandomProjection(1))


class TestRows:
    @pytest.mark.parametrize(("stages", "names"), [((), ["age", "dose"]), ((PROJECTED,), ["x0"])])
    def test_they_are_a_table_like_the_one_that_came_in(self, path, stages, names):
        pipe = released_rows(*stages)
        pipe.release_.to_parquet(path)
        table, certificate = ppdp.read_parquet(path)
        assert certificate == pipe.certificate_
        assert table.column_names == names
        np.testing.assert_array_equal(table.to_pandas().to_numpy(), pipe[-1].rows_)
        assert pd.read_parquet(path).shape == (500, len(names))

    def test_what_else_was_released_is_in_the_metadata_and_checked(self, path):
        pipe = released_rows(SCALED)
        assert len(pipe.release_) == 2
        pipe.release_.to_parquet(path)
        table, certificate = ppdp.read_parquet(path)
        assert table.equals(pipe.release_.to_arrow(), check_metadata=True)
        assert certificate.verify()
        (other,) = pipe.release_.keys() - {"rows.answer"}
        packed = base64.b64decode(table.schema.metadata[b"ppdp.arrays"])
        with np.load(io.BytesIO(packed)) as archive:
            np.testing.assert_array_equal(archive[other], pipe.release_[other])

    @pytest.mark.parametrize("what", ["gone", "no base64", "other numbers", "not packed"])
    def test_metadata_that_were_changed_are_refused(self, path, what):
        table = released_rows(SCALED).release_.to_arrow()
        about = dict(table.schema.metadata)
        packed = bytearray(base64.b64decode(about[b"ppdp.arrays"]))
        packed[len(packed) // 2] ^= 1
        changed = {"no base64": b"?", "other numbers": base64.b64encode(bytes(packed)), "not packed": b"UEsDBA=="}
        about = {k: v for k, v in {**about, b"ppdp.arrays": changed.get(what)}.items() if v is not None}
        pq.write_table(table.replace_schema_metadata(about), path)
        with pytest.raises(ExportError):
            ppdp.read_parquet(path)

    @pytest.mark.parametrize(
        "change",
        [
            lambda t: t.set_column(1, "dose", pa.array([0.0] * 500)),
            lambda t: t.select(["dose", "age"]),
            lambda t: t.rename_columns(["age", "weight"]),
            lambda t: t.select(["age"]),
            lambda t: t.append_column("who", pa.array(["Ann"] * 500)),
            lambda t: t.slice(1),
            lambda t: t.take(pa.array([1, 0, *range(2, 500)])),
            lambda t: t.set_column(1, "dose", pa.array(["x"] * 500)),
            lambda t: t.set_column(1, "dose", t["dose"].cast(pa.float32())),
        ],
    )
    def test_rows_that_were_changed_are_refused(self, path, change):
        table = released_rows().release_.to_arrow()
        pq.write_table(change(table).replace_schema_metadata(table.schema.metadata), path)
        with pytest.raises(ExportError):
            ppdp.read_parquet(path)


class TestRefusals:
    @pytest.mark.parametrize("what", TAMPERED)
    def test_whatever_was_changed(self, written, what):
        pq.write_table(TAMPERED[what](pq.read_table(written)), written)
        with pytest.raises((ExportError, CertificateError)):
            ppdp.read_parquet(written)

    @pytest.mark.parametrize("content", [b"", b"PAR1", b"PAR1" * 100, b"name,age\nAnn,40\n"])
    def test_what_is_no_parquet(self, path, content):
        path.write_bytes(content)
        with pytest.raises(ExportError, match="not a Parquet file"):
            ppdp.read_parquet(path)

    def test_what_is_not_there(self, path):
        with pytest.raises(ExportError, match=r"cannot read.*No such file"):
            ppdp.read_parquet(path)

    def test_broken_bytes_are_refused_or_without_effect(self, written):
        whole = histogram().release_.to_arrow(), histogram().certificate_
        assert bits_flipped(written, ppdp.read_parquet, whole, rounds(150)) > rounds(50)


# ---------------------------------------------------------------- small files that would be large in memory

READ = """
import sys
import ppdp
from ppdp.exceptions import PpdpError

def most_used():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmHWM"))

ppdp.read_parquet(sys.argv[1])
before = most_used()
try:
    ppdp.read_parquet(sys.argv[2])
except PpdpError as error:
    print(type(error).__name__, error.message, sep="|")
print(most_used() - before)
"""
REPEATING = {"use_dictionary": False, "column_encoding": {"array": "DELTA_BYTE_ARRAY"}}
BLOWN_UP = {
    "one long word": {},
    "words that repeat the one before": REPEATING,
    "words whose footer denies that they repeat": REPEATING,
    "a codec without limit": {"compression": "zstd"},
}


@cache
def covariance():
    """230 numbers, in one array."""
    rows = np.random.default_rng(0).uniform(-0.2, 0.2, (1000, 20))
    return make_pipeline(NormClipper(), GaussianMechanism("covariance"), epsilon=5.0).fit(rows)


def called_plain(data):
    """The file with a footer that calls its one encoding with repetition plain."""
    footer = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
    for place in (i for i in range(footer, len(data) - 8) if data[i] == 14):  # 7, zigzag: DELTA_BYTE_ARRAY
        forged = data[:place] + b"\0" + data[place + 1 :]
        with suppress(pa.ArrowException, OSError):
            if (
                "DELTA_BYTE_ARRAY"
                not in pq.ParquetFile(pa.BufferReader(forged)).metadata.row_group(0).column(0).encodings
            ):
                return forged
    raise AssertionError("no encoding was found")


@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured as Linux counts it")
@pytest.mark.repeated("name")
@pytest.mark.parametrize("name", BLOWN_UP)
def test_a_small_file_takes_little_memory(name, path, tmp_path):
    covariance().release_.to_parquet(tmp_path / "as it was.parquet")
    table = covariance().release_.to_arrow()
    words = pa.array(["x" * 2**20] * len(table), pa.large_string()).cast(pa.string())
    pq.write_table(table.set_column(0, "array", words), path, **BLOWN_UP[name])
    if "denies" in name:
        path.write_bytes(called_plain(path.read_bytes()))
    assert path.stat().st_size < 2**21
    line = [sys.executable, "-c", READ, tmp_path / "as it was.parquet", path]
    error, megabytes = subprocess.run(line, capture_output=True, text=True, check=True).stdout.splitlines()
    assert error.startswith("ExportError|the ")
    assert int(megabytes) < 150


def test_nothing_is_read_of_another_form(written, monkeypatch):
    """Columns, types, codecs and numbers of values are compared with the certificate before a value is read."""
    table = pq.read_table(written)
    forms = {
        "a list": table.set_column(2, "value", pa.array([[0.0]] * len(table))),
        "a nested column": table.set_column(1, "position", pa.array([{"a": 1}] * len(table))),
        "a long string": table.set_column(0, "array", table["array"].cast(pa.large_string())),
        "another order": table.select(["position", "array", "value", "column", "low", "high"]),
    }
    monkeypatch.setattr(pq.ParquetFile, "read", lambda *_: pytest.fail("it was read"))
    for changed in forms.values():
        pq.write_table(changed, written)
        with pytest.raises(ExportError, match="another form"):
            ppdp.read_parquet(written)


def test_a_certificate_of_a_huge_table_is_not_written_out(written, monkeypatch):
    """Whoever forges a certificate chooses names, and one long name stands in every line."""
    monkeypatch.setattr(parquet_module, "SMALL", 0)
    monkeypatch.setattr(parquet_module, "EXPANSION", 0.01)
    with pytest.raises(ExportError, match="far larger than its file"):
        ppdp.read_parquet(written)
