"""``ppdp init``: a pipeline file for a data file, written from its names and types alone."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

from ppdp.cli.data_files import open_rows
from ppdp.cli.output import say
from ppdp.exceptions import escaped

_HEAD = """\
# Written from the names and types of the columns of {name}; no value was looked at.
# Fill in every "?" from what the column means, never from the data: `ppdp plan` names those that are left.
# Several rows of one person? groups = "COLUMN" in [data]; adjacency = {{person = 3}} and n_rows = CAP in [domain]."""

_DELTA = "1e-6  # far below 1 / (number of rows), by a public rule; smaller where there may be 100,000 rows and more"

_REST = """
[pipeline]
epsilon = 1.0
delta = {delta}

[[steps]]
use = "MeanImputer"
"""

_RELEASE = """\
# For a model instead of means: `ppdp init DATA --label COLUMN`.
[[steps]]
use = "GaussianMechanism\""""

_CLASSIFIER = """\
[[steps]]
use = "StandardScaler"

[[steps]]
use = "LogisticRegression"
classes = {classes}"""

_REGRESSION = """\
[[steps]]
use = "StandardScaler"

[[steps]]
use = "Ridge"
y_range = "?"  # [low, high] of the targets"""


def init(options: Namespace) -> int:
    """Print a pipeline file with a blank for everything that only people know."""
    import pandas as pd

    from ppdp.transformers.columns.declaration import Declaration

    source = open_rows([options.data], header_is_names=options.header_is_names)
    if options.label is not None:
        source.require(options.label, "--label")
    kinds = {name: None if kind is None else pd.ArrowDtype(kind) for name, kind in source.types.items()}
    features = {name: kind for name, kind in kinds.items() if name != options.label}
    say(_study(options.data, Declaration(features), options.label, kinds.get(options.label)))
    return 0


def _study(path: Path, declared: Any, label: str | None, kind: Any) -> str:
    """The whole file."""
    from ppdp.data.column_types import kind_of
    from ppdp.transformers.columns.declaration import in_toml

    head = [] if label is None else ["[data]", f"label = {in_toml(label)}", ""]
    lines = [
        _HEAD.format(name=escaped(path.name)),
        "",
        *head,
        "[columns]",
        str(declared),
        _REST.format(delta=_DELTA),
    ]
    if label is None:
        return "\n".join([*lines, _RELEASE])
    if kind is not None and kind_of(kind) == "number" and kind.kind not in "iu":
        return "\n".join([*lines, _REGRESSION])
    known = "[0, 1]" if kind is not None and kind_of(kind) == "boolean" else '"?"  # [0, 1], or ["no", "yes"]'
    return "\n".join([*lines, _CLASSIFIER.format(classes=known)])
