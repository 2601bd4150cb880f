"""Claims of smartnoise-synth's transformers, their parameter ``epsilon``, and of smartnoise-sql's private reader."""

from __future__ import annotations

from typing import Any

from _claims import Claimed
from sklearn.preprocessing import MinMaxScaler as PlainMinMaxScaler

from ppdp.audit.adapters import ForeignTarget, smartnoise_query_target, smartnoise_target

LIBRARY, MODULE = "smartnoise-synth", "snsynth.transform"

ZEROS, ONE = [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]
MANY, FAR = [1.5] * 40, [1.5] * 40 + [1e6]


def scaler(**bounds: float) -> ForeignTarget:
    from snsynth.transform import StandardScaler

    return smartnoise_target("SmartNoise StandardScaler", lambda: StandardScaler(epsilon=1.0, **bounds), ZEROS, ONE)


def guessed_bounds() -> ForeignTarget:
    from snsynth.transform import MinMaxTransformer

    def make() -> Any:
        return MinMaxTransformer(epsilon=1.0)

    return smartnoise_target("SmartNoise MinMaxTransformer", make, MANY, FAR, errors=(ValueError,))


def categories() -> ForeignTarget:
    from snsynth.transform import LabelTransformer

    def release(column: Any, noise: object) -> Any:
        transformer = LabelTransformer(nullable=False)
        transformer.fit(column)
        return len(transformer.categories)

    return ForeignTarget("SmartNoise labels", release, ["a", "b", "a"], ["a", "b", "c"], 0.0, library=LIBRARY)


def query(sql: str) -> ForeignTarget:
    import pandas as pd

    column = {"type": "float", "lower": 0.0, "upper": 1.0}
    metadata = {"": {"s": {"t": {"row_privacy": True, "rows": 3, "x": column}}}}
    sides = (pd.DataFrame({"x": side}) for side in (ZEROS, ONE[1:] + [0.0] * 0))
    return smartnoise_query_target(f"SmartNoise {sql}", sql, *sides, metadata=metadata, epsilon=1.0, delta=1e-6)


LAST = "three rows of 0; one of them is 1"
CLAIMS = (
    Claimed("transform.StandardScaler(lower=0, upper=1, epsilon=1)", LAST, lambda: scaler(lower=0.0, upper=1.0), "noise is searched for at distance 1 where the number of rows is public and distances are even"),
)
