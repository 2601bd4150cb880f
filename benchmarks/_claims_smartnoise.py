"""Claims of smartnoise-synth's transformers, their parameter ``epsilon``, and of smartnoise-sql's private reader."""

from __future__ import annotations

from typing import Any

from _claims import Claimed, searched_once
from adapters import smartnoise_query_target, smartnoise_target

from ppdp.audit import ForeignTarget

LIBRARY = "smartnoise-synth"

ZEROS, ONE = [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]
MANY = [1.5] * 40 + [1e6] * 22


def scaler(**bounds: float) -> ForeignTarget:
    from snsynth.transform import StandardScaler, standard

    searched_once(standard)
    return smartnoise_target("SmartNoise StandardScaler", lambda: StandardScaler(epsilon=1.0, **bounds), ZEROS, ONE)


def guessed_bounds() -> ForeignTarget:
    from snsynth.transform import MinMaxTransformer

    def make() -> Any:
        return MinMaxTransformer(epsilon=1.0)

    return smartnoise_target("SmartNoise MinMaxTransformer", make, MANY, [*MANY, 1e6], errors=(ValueError,))


def categories() -> ForeignTarget:
    """Whole tables are transformed, and the odometer says what they cost; the names of the categories are seen."""
    from snsynth.transform import LabelTransformer, TableTransformer

    left, right = [("a",), ("b",), ("a",)], [("a",), ("b",), ("c",)]

    def fitted(rows: Any) -> Any:
        table = TableTransformer([LabelTransformer(nullable=False)])
        table.fit(rows)
        return table

    def release(rows: Any, noise: object) -> Any:
        return dict.fromkeys(fitted(rows).transformers[0].categories, 1)

    spent = fitted(left).odometer.spent
    return ForeignTarget("SmartNoise labels", release, left, right, *spent, library=LIBRARY)


def query(sql: str) -> ForeignTarget:
    import pandas as pd
    from snsql.sql._mechanisms import laplace

    searched_once(laplace)
    column = {"type": "float", "lower": 0.0, "upper": 1.0}
    metadata = {"": {"s": {"t": {"row_privacy": True, "censor_dims": False, "rows": 3, "x": column}}}}
    left, right = (pd.DataFrame({"x": side}) for side in (ZEROS, [*ZEROS, 1.0]))
    return smartnoise_query_target(f"SmartNoise {sql}", sql, left, right, metadata=metadata, epsilon=1.0, delta=1e-6)


LAST = "three rows of 0; one of them is 1"
ADDED = "three rows of 0; a row of 1 is added"
SUM = "SELECT SUM(x) AS s FROM s.t"
CLAIMS = (
    Claimed(
        "transform.StandardScaler(lower=0, upper=1, epsilon=1)",
        LAST,
        lambda: scaler(lower=0.0, upper=1.0),
        "noise is searched for at distance 1, where the number of rows is declared and all distances are even",
        2000,
    ),
    Claimed(
        "transform.MinMaxTransformer(epsilon=1); errors are seen",
        "forty rows of 1.5 and 22 of a million; a 23rd is added",
        guessed_bounds,
        "expected to hold; where it finds no bounds it raises",
        2000,
    ),
    Claimed(
        "TableTransformer([LabelTransformer()]): tt.odometer.spent",
        "a, b, a; one a is c",
        categories,
        "categories are read off the column; of a table with such columns the documentation says 'no privacy budget "
        "used' and asserts that (0.0, 0.0) is spent (synth/docs/source/transforms/index.rst)",
        2000,
    ),
    Claimed(f"private reader, {SUM}: get_privacy_cost", ADDED, lambda: query(SUM), "expected to hold", 2000),
)
