"""Sketch tables: what they show, estimate, find, and write into files that are refused once they were changed."""

import base64
import pickle
from functools import cache

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import rounds
from text_mutants import bits_flipped

import ppdp
from ppdp import Adjacency, Pipeline, SketchTable
from ppdp.exceptions import CertificateError, ExportError, InvalidInput, InvalidParameter, MissingBound, PpdpError
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, SignMechanism
from ppdp.transformers import MinMaxScaler, NormClipper, RandomProjection, StandardScaler

D, K = 40, 20
MECHANISMS = {
    "gaussian": GaussianMechanism("rows"),
    "laplace": LaplaceMechanism("rows"),
    "staircase": SignMechanism(),
    "response": SignMechanism("randomized-response"),
}
NUMBERS, SIGNS = ("gaussian", "laplace"), ("staircase", "response")


def rows(n=300, seed=0):
    return np.random.default_rng(seed).uniform(0, 10, (n, D))


def pipeline(last, *more, family="oporp", **parameters):
    stages = [("range", MinMaxScaler(ranges=(0, 10))), *more, ("project", RandomProjection(K, family=family))]
    change = {"adjacency": Adjacency.change(coordinate=1.0), **parameters}
    return Pipeline([*stages, ("release", last)], epsilon=10.0, **change)


@cache
def fitted(name):
    return pipeline(MECHANISMS[name]).fit(rows())


def table(name):
    return fitted(name).release_.table


@cache
def queries():
    return fitted("laplace").project(rows(7, seed=1))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "sketches.parquet"


every = pytest.mark.parametrize("name", MECHANISMS)


class TestTable:
    @pytest.mark.parametrize("name", NUMBERS)
    def test_numbers(self, name):
        found = table(name)
        np.testing.assert_array_equal(found.values, fitted(name)["release"].rows_)
        scale = fitted(name)["release"].noise_scale
        assert found.noise_variance == pytest.approx(scale**2 if name == "gaussian" else 2 * scale**2)
        assert found.shape == (300, K)
        assert not hasattr(found, "packed")
        assert not hasattr(found, "signs")

    @pytest.mark.parametrize("name", SIGNS)
    def test_signs(self, name):
        found = table(name)
        np.testing.assert_array_equal(found.signs, fitted(name)["release"].signs_)
        np.testing.assert_array_equal(found.packed, np.packbits(found.signs > 0, axis=1, bitorder="little"))
        assert (found.signs.dtype, found.packed.dtype, found.packed.shape) == (np.int8, np.uint8, (300, 3))
        assert found.noise_variance is None
        assert not hasattr(found, "values")

    @every
    def test_it_says_what_it_is(self, name):
        found = table(name)
        kind = "numbers" if name in NUMBERS else "signs"
        assert repr(found).startswith(
            f"SketchTable(300 sketches of {K} {kind}, (10, 1e-06)-private (protects how far the values of any one row"
            " are off, by at most 1 in one column, and nothing else in it), certificate sha256:"
        )
        assert "are public and not protected" in found._repr_html_()
        assert found.certificate.digest in found._repr_html_()
        assert "epsilon 10" in found._repr_html_()
        assert len(found) == 300

    @every
    def test_it_cannot_be_changed_and_can_be_pickled(self, name):
        found = table(name)
        with pytest.raises(ValueError, match="read-only"):
            (found.values if name in NUMBERS else found.packed)[0, 0] = 1
        assert pickle.loads(pickle.dumps(found)).certificate == found.certificate

    def test_only_released_rows_are_one(self):
        pipe = Pipeline([("range", MinMaxScaler(ranges=(0, 10))), ("mean", GaussianMechanism())]).fit(rows())
        with pytest.raises(ExportError, match=r"no rows were released.*as the last step"):
            _ = pipe.release_.table


class TestEstimates:
    @pytest.mark.parametrize("name", NUMBERS)
    def test_of_numbers_are_mostly_within_two_errors(self, name):
        here = 2 * rows() / 10 - 1, 2 * rows(7, seed=1) / 10 - 1
        norms = [np.linalg.norm(one, axis=1) for one in here]
        products = here[1] @ here[0].T
        cosines = products / norms[1][:, None] / norms[0]
        distances = np.sqrt(norms[1][:, None] ** 2 + norms[0] ** 2 - 2 * products)
        found = table(name)
        for what, true in (
            (found.inner_product(queries()), products),
            (found.distance(queries()), distances),
            (found.distance(queries(), squared=True), distances**2),
            (found.cosine(queries()), cosines),
            (found.angle(queries()), np.arccos(cosines)),
        ):
            assert what.value.shape == what.standard_error.shape == (7, 300)
            within = np.abs(what.value - true) < 2 * what.standard_error
            assert within.mean() > 0.9

    @pytest.mark.parametrize("name", SIGNS)
    def test_of_signs_are_mostly_within_two_errors(self, name):
        here = 2 * rows() / 10 - 1, 2 * rows(7, seed=1) / 10 - 1
        cosines = here[1] @ here[0].T / np.linalg.norm(here[1], axis=1)[:, None] / np.linalg.norm(here[0], axis=1)
        found, norm = table(name), {} if name == "response" else {"norm": np.sqrt(D / 3)}
        for what, true in (
            (found.angle(queries(), **norm), np.arccos(cosines)),
            (found.cosine(queries(), **norm), cosines),
        ):
            assert (np.abs(what.value - true) < 2 * what.standard_error).mean() > 0.9

    def test_of_some_rows(self):
        whole, some = table("laplace").cosine(queries()), table("laplace").cosine(queries(), rows=[5, 2])
        np.testing.assert_allclose(some.value, whole.value[:, [5, 2]])

    def test_components_of_no_column_tell_nothing(self):
        pipe = pipeline(SignMechanism("randomized-response"))
        pipe.set_params(project__n_components=64).fit(rows())
        empty = (pipe["project"].components_.toarray() != 0).sum(axis=1) == 0
        assert empty.sum() == 64 - D
        other = pipe.project(rows(2, seed=1))
        expected = pipe.release_.table.angle(other)
        other[:, empty] = -1.0
        np.testing.assert_array_equal(pipe.release_.table.angle(other), expected)

    def test_what_signs_cannot_tell(self):
        with pytest.raises(InvalidParameter, match="no lengths"):
            table("response").inner_product(queries())
        with pytest.raises(InvalidParameter, match="no lengths"):
            table("response").distance(queries())
        with pytest.raises(MissingBound, match="norm="):
            table("staircase").angle(queries())
        with pytest.raises(InvalidParameter, match="norm"):
            table("staircase").cosine(queries(), norm=-1.0)
        steps = [("range", MinMaxScaler(ranges=(0, 10))), ("release", SignMechanism("randomized-response"))]
        with pytest.raises(InvalidParameter, match="projected at random"):
            Pipeline(steps, epsilon=20.0).fit(rows()).release_.table.angle(rows(2))

    @every
    @pytest.mark.parametrize(
        "wrong",
        [np.ones(K), np.ones((2, K + 1)), np.ones((0, K)), [["a"] * K], None, np.full((1, K), np.nan)],
        ids=["a row", "wide", "none", "words", "nothing", "gaps"],
    )
    def test_queries_that_are_none(self, name, wrong):
        for ask in (table(name).kneighbors, table(name).cosine):
            with pytest.raises(InvalidInput, match="queries"):
                ask(wrong)

    @pytest.mark.parametrize("wrong", [[300], [-1], [[1]], [0.5], "a"])
    def test_rows_that_are_none(self, wrong):
        with pytest.raises(InvalidParameter, match="positions from 0 to 299"):
            table("laplace").inner_product(queries(), rows=wrong)


class TestNeighbours:
    @pytest.mark.parametrize("name", NUMBERS)
    def test_of_numbers(self, name):
        products, places = table(name).kneighbors(queries(), 5)
        whole = table(name).inner_product(queries()).value
        np.testing.assert_array_equal(places, np.argsort(-whole, axis=1)[:, :5])
        np.testing.assert_allclose(products, np.take_along_axis(whole, places, axis=1))

    @pytest.mark.parametrize("name", SIGNS)
    def test_of_signs(self, name):
        distances, places = table(name).kneighbors(queries(), 5)
        whole = (np.where(queries() >= 0, 1, -1)[:, None] != table(name).signs).sum(axis=2)
        np.testing.assert_array_equal(places, np.argsort(whole, axis=1, kind="stable")[:, :5])
        np.testing.assert_array_equal(distances, np.take_along_axis(whole, places, axis=1))

    @pytest.mark.parametrize("wrong", [0, 301, 1.5, None])
    def test_there_must_be_so_many(self, wrong):
        with pytest.raises(InvalidParameter, match="n_neighbors"):
            table("laplace").kneighbors(queries(), wrong)

    def test_with_little_noise_a_row_is_nearest_to_itself(self):
        pipe = pipeline(LaplaceMechanism("rows"), adjacency=Adjacency.change(coordinate=1e-3)).fit(rows())
        found = pipe.release_.table.distance(pipe.project(rows()[:20])).value
        np.testing.assert_array_equal(found.argmin(axis=1), np.arange(20))


class TestProject:
    def test_new_rows_come_as_far_as_the_mechanism(self):
        pipe = fitted("gaussian")
        X = rows(5, seed=2)
        expected = pipe["project"].transform(pipe["range"].transform(X))
        np.testing.assert_array_equal(pipe.project(X), expected)
        np.testing.assert_array_equal(pipe.project(X), pipe.project(X))

    def test_names_of_columns_are_checked(self):
        X = pd.DataFrame(rows(), columns=[f"c{i}" for i in range(D)])
        pipe = pipeline(LaplaceMechanism("rows")).fit(X)
        assert pipe.project(X[:3]).shape == (3, K)
        with pytest.raises(PpdpError):
            pipe.project(X[:3].iloc[:, ::-1])

    def test_through_what_was_released(self):
        noisy = ("scale", StandardScaler(fit_mode="noisy"))
        pipe = pipeline(GaussianMechanism("rows"), noisy, adjacency=None).fit(rows(3000))
        X = pipe["scale"].transform(pipe["range"].transform(rows(5, seed=2)))
        np.testing.assert_array_equal(pipe.project(rows(5, seed=2)), pipe["project"].transform(X))

    def test_not_through_what_was_not(self):
        exact = ("scale", StandardScaler(fit_mode="exact"))
        pipe = pipeline(GaussianMechanism("rows"), exact, adjacency=None, gate=None).fit(rows(3000))
        with pytest.raises(ppdp.exceptions.UnsupportedOrder, match=r"'scale': .*nothing was released.*noisy"):
            pipe.project(rows(5))

    def test_only_in_front_of_a_mechanism(self):
        with pytest.raises(ppdp.exceptions.UnsupportedOrder, match="use transform"):
            Pipeline([("clip", NormClipper())]).fit(rows()).project(rows())

    def test_after_a_fit(self):
        with pytest.raises(ValueError, match="not fitted"):
            pipeline(LaplaceMechanism("rows")).project(rows())

    def test_of_a_release_that_was_loaded(self, tmp_path):
        fitted("laplace").export(tmp_path / "release.zip")
        loaded = ppdp.load(tmp_path / "release.zip")
        np.testing.assert_array_equal(loaded.project(rows(7, seed=1)), queries())
        np.testing.assert_array_equal(loaded.release_.table.values, table("laplace").values)


def changed(name):
    """Other tables in place of the one that was written."""
    column = "values" if name in NUMBERS else "signs"
    packed = np.zeros((300, K)).tolist() if name in NUMBERS else [b"\0\0\0"] * 300

    def put(make):
        return lambda t: t.set_column(0, t.schema.field(0), make(t[column]))

    return {
        "other sketches": put(lambda c: pa.array(packed, c.type)),
        "another order": lambda t: t.take(pa.array([1, 0, *range(2, 300)])),
        "a row less": lambda t: t.slice(1),
        "a row more": lambda t: pa.concat_tables([t, t.slice(0, 1)]),
        "a gap": put(lambda c: pa.array([None, *c.to_pylist()[1:]], c.type)),
        "a gap inside": put(lambda c: pa.array([[None] * K if name in NUMBERS else None, *c.to_pylist()[1:]], c.type)),
        "another name": lambda t: t.rename_columns(["sketch"]),
        "a column more": lambda t: t.append_column("who", pa.array(["Ann"] * 300)),
        "no column": lambda t: t.select([]),
        "other lists": lambda t: t.set_column(0, column, pa.array([[1.0]] * 300)),
        "longer lists": lambda t: t.set_column(
            0, column, pa.array([[1.0] * (K + 1)] * 300, pa.list_(pa.float64(), K + 1))
        ),
        "longer bytes": lambda t: t.set_column(0, column, pa.array([b"abcd"] * 300, pa.binary(4))),
        "words": lambda t: t.set_column(0, column, pa.array(["a"] * 300)),
        "no certificate": lambda t: t.replace_schema_metadata(None),
        "another certificate": lambda t: t.replace_schema_metadata(
            {b"ppdp.certificate": fitted("gaussian" if name == "laplace" else "laplace").certificate_.to_json()}
        ),
        "no JSON": lambda t: t.replace_schema_metadata({b"ppdp.certificate": b"\x80"}),
    }


class TestFiles:
    @every
    def test_numbers_signs_and_certificate_come_back(self, name, path):
        table(name).to_parquet(path)
        found = SketchTable.from_parquet(path)
        assert found.certificate == table(name).certificate
        assert found.to_arrow().equals(table(name).to_arrow(), check_metadata=True)
        for mine, other in zip(found.kneighbors(queries()), table(name).kneighbors(queries()), strict=True):
            np.testing.assert_array_equal(mine, other)

    @every
    def test_any_reader_of_parquet_reads_it(self, name, path):
        table(name).to_parquet(path)
        read = pq.read_table(path)
        if name in NUMBERS:
            assert read.schema.types == [pa.list_(pa.float64(), K)]
            np.testing.assert_array_equal(np.stack(read["values"].to_numpy()), table(name).values)
        else:
            assert read.schema.types == [pa.binary(3)]
            assert read["signs"][7].as_py() == table(name).packed[7].tobytes()
        other, certificate = ppdp.read_parquet(path)
        assert other.equals(read, check_metadata=True)
        assert certificate.verify()

    def test_what_else_was_released_comes_along(self, path):
        noisy = ("scale", StandardScaler(fit_mode="noisy"))
        pipe = pipeline(GaussianMechanism("rows"), noisy, adjacency=None).fit(rows(3000))
        pipe.release_.table.to_parquet(path)
        np.testing.assert_array_equal(SketchTable.from_parquet(path).values, pipe.release_.table.values)
        read = pq.read_table(path)
        about = dict(read.schema.metadata)
        packed = bytearray(base64.b64decode(about[b"ppdp.arrays"]))
        packed[len(packed) // 2] ^= 1
        for other in (None, b"?", base64.b64encode(bytes(packed))):
            more = {} if other is None else {b"ppdp.arrays": other}
            forged = {b"ppdp.certificate": about[b"ppdp.certificate"], **more}
            pq.write_table(read.replace_schema_metadata(forged), path)
            with pytest.raises(ExportError):
                SketchTable.from_parquet(path)

    @pytest.mark.parametrize("name", ["laplace", "staircase"])
    @pytest.mark.parametrize("what", changed("laplace"))
    @pytest.mark.repeated("name")
    def test_what_was_changed_is_refused(self, name, what, path):
        table(name).to_parquet(path)
        pq.write_table(changed(name)[what](pq.read_table(path)), path)
        for read in (SketchTable.from_parquet, ppdp.read_parquet):
            with pytest.raises((ExportError, CertificateError)):
                read(path)

    def test_bits_behind_the_last_sign_are_refused(self, path):
        table("staircase").to_parquet(path)
        read = pq.read_table(path)
        packed = table("staircase").packed.copy()
        packed[0, -1] |= 128
        column = pa.array([row.tobytes() for row in packed], pa.binary(3))
        pq.write_table(read.set_column(0, read.schema.field(0), column), path)
        with pytest.raises(ExportError, match="malformed"):
            SketchTable.from_parquet(path)

    @pytest.mark.parametrize("name", ["laplace", "staircase"])
    @pytest.mark.repeated("name")
    def test_broken_bytes_are_refused_or_without_effect(self, name, path):
        table(name).to_parquet(path)
        whole = table(name).to_arrow()
        assert bits_flipped(path, lambda path: SketchTable.from_parquet(path).to_arrow(), whole, rounds(30)) > rounds(
            10
        )

    def test_nothing_is_read_of_another_form(self, path, monkeypatch):
        table("laplace").to_parquet(path)
        read = pq.read_table(path)
        monkeypatch.setattr(pq.ParquetFile, "read", lambda *_: pytest.fail("it was read"))
        pq.write_table(changed("laplace")["longer lists"](read), path)
        with pytest.raises(ExportError, match="another form"):
            SketchTable.from_parquet(path)

    def test_of_something_else_that_was_released(self, path):
        Pipeline([("range", MinMaxScaler(ranges=(0, 10))), ("mean", GaussianMechanism())]).fit(
            rows()
        ).release_.to_parquet(path)
        with pytest.raises(ExportError, match="no rows were released"):
            SketchTable.from_parquet(path)
        fitted("laplace").release_.to_parquet(path)
        with pytest.raises(ExportError, match="another form"):
            SketchTable.from_parquet(path)
