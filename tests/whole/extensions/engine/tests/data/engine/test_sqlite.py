"""A table in an SQLite file is fitted as an array of the same rows, bit for bit."""

import sqlite3
from contextlib import closing

import numpy as np
from ppdp.data.engine.sqlite import SqliteTable

from ppdp import make_pipeline
from ppdp.data.parallel import PIECE
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import MinMaxScaler, StandardScaler


def fitted(data, y):
    steps = MinMaxScaler(ranges=(-4, 4)), StandardScaler(), LogisticRegression(classes=(0, 1))
    return make_pipeline(*steps, epsilon=1.0, dataset="clinic", random_state=0).fit(data, y=y)


def test_it_gives_the_bits_of_an_array(tmp_path):
    X = np.random.default_rng(0).standard_normal((PIECE + 100, 2))
    y = (X.sum(axis=1) > 0).astype(int)
    with closing(sqlite3.connect(tmp_path / "clinic.db")) as file, file:
        file.execute('CREATE TABLE patients ("the age" REAL, dose REAL, ill INTEGER)')
        file.executemany("INSERT INTO patients VALUES (?, ?, ?)", np.column_stack([X, y]).tolist())
    ours, theirs = fitted(SqliteTable(tmp_path / "clinic.db", "patients"), "ill"), fitted(X, y)
    assert np.array_equal(ours["logisticregression"].coef_, theirs["logisticregression"].coef_)
    assert ours.certificate_.verify()
    assert ours.certificate_["mechanism"] == theirs.certificate_["mechanism"]
