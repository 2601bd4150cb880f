"""Public maps of columns leave with an export, and predict after it what they predicted before."""

import functools
import hashlib
import io
import json
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, StandardScaler

import ppdp
from ppdp import Certificate, Pipeline
from ppdp.exceptions import ExportError, PpdpError
from ppdp.interop.sklearn import ColumnGroup, ColumnMap
from ppdp.pipeline.release.export import CERTIFICATE, INFERENCE, MANIFEST
from ppdp.pipeline.release.step_serialization import describe, restore
from ppdp.transformers.columns.categories import Encoded, OneHot
from ppdp.transformers.columns.features import (
    FourierFeatures,
    KnottedSplines,
    Landmarks,
    PeriodicSplines,
    PolynomialTerms,
    Splines,
)
from ppdp.transformers.columns.maps import (
    Binarized,
    Binned,
    FillConstant,
    FunctionMap,
    GapIndicators,
    Normalised,
    RangeScale,
)

N = 600
RANGES = {"age": (0, 100), "dose": (-5, 5)}
WARDS = ["north", "south", "west"]


def table():
    """Numbers with gaps, labels with gaps and surprises, and a column that nobody takes."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame({"age": rng.uniform(20, 90, N), "dose": rng.normal(size=N)})
    X.loc[::9, "dose"] = np.nan
    X["ward"] = np.where(rng.random(N) < 0.9, rng.choice(WARDS, N), "attic")
    X["smoker"] = rng.choice(["yes", "no"], N).astype(object)
    X.loc[::7, "smoker"] = None
    X["patient"] = [f"p{i}" for i in range(N)]
    return X, (X["age"] / 50 + X["dose"].fillna(0) > 1).to_numpy().astype(int)


def clip_ends(X, low=0.0):
    return np.clip(X, low, 50.0)


def columns(*more):
    smokers = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="no"), OrdinalEncoder(categories=[["no", "yes"]])
    )
    return ColumnTransformer(
        [
            ("numbers", make_pipeline(SimpleImputer(), StandardScaler()), ["age", "dose"]),
            ("ward", OneHotEncoder(categories=[WARDS], handle_unknown="ignore"), np.array(["ward"], dtype=object)),
            ("smoker", smokers, pd.Index(["smoker"])),
            ("old", KBinsDiscretizer(3, encode="onehot", strategy="uniform"), slice("age", "age")),
            *more,
        ]
    )


@functools.cache
def fitted():
    X, y = table()
    mine = make_pipeline(columns(("low", FunctionTransformer(np.arctan), ["dose"])), LogisticRegression())
    return Pipeline.from_sklearn(mine, epsilon=5.0, delta=1e-5, ranges=RANGES, classes=(0, 1)).fit(X, y), X


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.zip"


class TestRoundTrip:
    def test_predictions_are_the_same_to_the_last_bit(self, path):
        pipe, X = fitted()
        assert type(pipe.steps[0][1]) is ColumnMap
        model = ppdp.load(path, sha256=pipe.export(path))
        assert model.certificate_ == pipe.certificate_
        assert model.certificate_.verify()
        for method in ("predict", "predict_proba", "decision_function"):
            np.testing.assert_array_equal(getattr(model, method)(X), getattr(pipe, method)(X))
        assert len(set(model.decision_function(X))) > N / 2

    @pytest.mark.parametrize("container", [pl.from_pandas, pa.Table.from_pandas, lambda X: X.convert_dtypes()])
    def test_in_every_container(self, path, container):
        pipe, X = fitted()
        pipe.export(path)
        np.testing.assert_array_equal(ppdp.load(path).decision_function(container(X)), pipe.decision_function(X))

    def test_from_a_parquet_file(self, path, tmp_path):
        pipe, X = fitted()
        pipe.export(path)
        X.to_parquet(tmp_path / "rows.parquet")
        read = pa.parquet.read_table(tmp_path / "rows.parquet")
        np.testing.assert_array_equal(ppdp.load(path).predict(read), pipe.predict(X))

    def test_by_position_without_names(self, path):
        X, y = table()
        by_position = ColumnTransformer(
            [("ward", OneHotEncoder(categories=[WARDS]), [2]), ("rest", "passthrough", [-5, 1])]
        )
        rows = X.fillna({"dose": 0.0}).to_numpy(dtype=object)
        mine = make_pipeline(by_position, LogisticRegression())
        pipe = Pipeline.from_sklearn(mine, delta=1e-5, ranges={0: (0, 100), 1: (-5, 5)}, classes=(0, 1)).fit(rows, y)
        pipe.export(path)
        np.testing.assert_array_equal(ppdp.load(path).decision_function(rows), pipe.decision_function(rows))

    def test_what_was_loaded_is_exported_as_it_came(self, path, tmp_path):
        pipe, _ = fitted()
        assert ppdp.load(path, sha256=pipe.export(path)).export(tmp_path / "again.zip") == pipe.export(
            tmp_path / "x.zip"
        )


EVERY_MAP = (
    ColumnGroup(["a"], (FillConstant(3.0, "f"), RangeScale((0.0, 2.0), "s"), Binarized(0.5, "b"))),
    ColumnGroup(
        slice("a", "b", None),
        (FillConstant(None), RangeScale(None), PolynomialTerms((1, 2), True, False, "p")),
        "pre__",
    ),
    ColumnGroup([0, 1], (Landmarks("poly", 0.5, 2, 1, 3, 7, step="l"), FourierFeatures(0.5, 3, 1, "w"))),
    ColumnGroup([0, 1], (Splines(4, 2, False, "s"), GapIndicators("g"))),
    ColumnGroup([0], (PeriodicSplines(4, 2, False, "s"),)),
    ColumnGroup([0], (KnottedSplines(3, 2, False, "s", ((0.0,), (1.0,), (4.0,)), True),)),
    ColumnGroup([0, -1], (Normalised("max", "n"), FunctionMap(np.tanh, step="t"))),
    ColumnGroup(np.array([True, False, True]), (Binned(4, hot=True, step="k"),)),
    ColumnGroup(None, (OneHot(((0, 1, np.nan), ("x", None), (True, 2.5)), "x", True, "h", (None, 0, 1)),), rest=True),
    ColumnGroup("b", (Encoded((("u", "v"),), unknown=-1.0, missing=9.0, step="e"),), drop=True),
)


class TestDescription:
    def test_every_map_comes_back_as_it_was(self):
        stage = ColumnMap(EVERY_MAP, {"a": (-1.0, 1.0), "c": (0, 2)}, 3.0)
        text = describe([("columns", stage)], ["a", "b", "c"])
        ((name, again),), names = restore(text, {}, ())
        assert (name, names, type(again)) == ("columns", ("a", "b", "c"), ColumnMap)
        assert repr(again.get_params()) == repr(stage.get_params())
        assert describe([("columns", again)], ["a", "b", "c"]) == text

    def test_numpys_known_functions_are_data_and_others_are_named(self):
        for function, encoded in ((np.log1p, {"known": "log1p"}), (np.sin, {"function": "numpy.sin"})):
            stage = ColumnMap((ColumnGroup(None, (FunctionMap(function, out_ranges=(-1, 1), step="wave"),)),))
            text = describe([("columns", stage)], None)
            assert json.dumps(encoded, separators=(",", ":")) in text
        with pytest.raises(
            ExportError, match=r"stage 'wave': function is no plain data.*numpy.sin.*functions=\{'wave'"
        ):
            restore(text, {}, ())
        (((_, again),), _) = restore(text, {"wave": np.sin}, ())
        assert again.blocks[0].maps[0].function is np.sin

    def test_a_function_that_only_has_the_name_of_a_known_one_is_no_known_one(self):
        def tanh(X):
            return X

        text = describe([("columns", ColumnMap((ColumnGroup(None, (FunctionMap(tanh, out_ranges=(0, 1)),)),)))], None)
        assert '{"known"' not in text


class TestFunctions:
    def test_what_is_handed_in_has_its_keywords_so_that_only_rows_reach_it(self, path):
        X, y = table()
        mine = make_pipeline(
            columns(("ends", FunctionTransformer(clip_ends, kw_args={"low": 1.0}), ["age"])), LogisticRegression()
        )
        pipe = Pipeline.from_sklearn(mine, delta=1e-5, ranges=RANGES, functions={"ends": (0, 50)}, classes=(0, 1)).fit(
            X, y
        )
        pipe.export(path)
        with pytest.raises(ExportError, match=r"stage 'ends': .*clip_ends with low"):
            ppdp.load(path)
        with pytest.raises(ExportError, match="made-up rows come out otherwise"):
            ppdp.load(path, functions={"ends": functools.partial(clip_ends, low=25.0)})
        model = ppdp.load(path, functions={"ends": functools.partial(clip_ends, low=1.0)})
        np.testing.assert_array_equal(model.decision_function(X), pipe.decision_function(X))


def invented(pipe, path, change):
    """An export whose steps somebody changed, with a certificate that was issued for them by whoever did so."""
    pipe.export(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    document = json.loads(members[INFERENCE])
    change(document["steps"][0]["parameters"]["blocks"]["tuple"])
    members[INFERENCE] = json.dumps(document).encode()
    certificate = json.loads(members[CERTIFICATE])
    certificate["released"]["inference"] = hashlib.sha256(members[INFERENCE]).hexdigest()
    certificate = Certificate.sealed(certificate).to_dict()
    members[CERTIFICATE] = json.dumps(certificate).encode()
    manifest = {**json.loads(members[MANIFEST]), "certificate": certificate["digest"]}
    hashes = {name: hashlib.sha256(data).hexdigest() for name, data in members.items() if name != MANIFEST}
    members[MANIFEST] = json.dumps({**manifest, "sha256": hashes}).encode()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in members.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    path.write_bytes(buffer.getvalue())


def part(kind, **fields):
    return {"part": {"class": kind, "fields": {**fields, "step": "x"}}}


WIDE = {"tuple": [part("Powers", degree=10**9, interaction_only=False, include_bias=True)]}
FINE = {"tuple": [part("Binned", n_bins=10**12, hot=False)]}
HOSTILE = {
    "powers that fill the memory": lambda blocks: blocks[0]["part"]["fields"].update(maps=WIDE),
    "bins that fill the memory": lambda blocks: blocks[0]["part"]["fields"].update(maps=FINE),
    "no part": lambda blocks: blocks.append(part("Pipeline")),
    "a class of Python": lambda blocks: blocks.append(part("builtins.exec")),
    "other fields": lambda blocks: blocks[0]["part"]["fields"].update(run="os.system"),
    "keywords": lambda blocks: blocks.append(
        part("Mapped", function={"known": "tanh"}, keywords={"mapping": []}, out_ranges=None)
    ),
    "an unknown function": lambda blocks: blocks.append(part("Mapped", function={"known": "eval"}, out_ranges=None)),
    "a function to be handed in": lambda blocks: blocks.append(
        part("Mapped", function={"function": "os.system"}, out_ranges=None)
    ),
    "a part for a map": lambda blocks: blocks[0]["part"]["fields"].update(maps={"tuple": [blocks[1]]}),
    "columns of nowhere": lambda blocks: blocks[0]["part"]["fields"].update(columns=["nowhere"]),
    "a slice of too much": lambda blocks: blocks[0]["part"]["fields"].update(columns={"slice": [1, 2]}),
    "categories that are none": lambda blocks: blocks[1]["part"]["fields"].update(maps={"tuple": [part("OneHot")]}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_made_up_maps_are_refused(what, path):
    invented(fitted()[0], path, HOSTILE[what])
    with pytest.raises(PpdpError):
        ppdp.load(path)


def test_the_same_maps_would_be_taken(path):
    """So it is the change that was refused."""
    invented(fitted()[0], path, lambda blocks: None)
    assert ppdp.load(path).certificate_.verify()
