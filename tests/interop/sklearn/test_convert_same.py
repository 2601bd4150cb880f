"""What the conversion makes of a row is what scikit-learn makes of it, or the conversion says how it differs.

Pipelines of public maps are generated, and both are run on the same made-up rows. A difference passes only if the
report names it: what a sentence of the report allows stands in ``ALLOWED``, ``SCALED`` and ``FILLED``.
"""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from effort import rounds
from sklearn import preprocessing as P
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.pipeline import Pipeline as PlainPipeline

from ppdp import Pipeline
from ppdp.exceptions import MissingBound, PpdpError

N = 60
RANGES = {"age": (0, 100), "dose": (-5, 5), "share": (0, 1), "visits": (0, 3)}
NUMBERS = list(RANGES)
LABELS = {
    "ward": ["north", "south", "west"],
    "blood": ["b", "a", "missing_value", "none"],
    "flag": [False, True],
    "visits": [0, 1, 2, 3],
    "digits": ["1", "2", "3"],
}


def table(kind):
    """Columns that reach the ends of their public ranges: numbers, text, digits as text, truth values, dates."""
    draws = np.random.default_rng(0)
    X = pd.DataFrame({name: draws.uniform(*pair, N) for name, pair in RANGES.items()})
    X["visits"] = draws.integers(0, 4, N).astype(float)
    X.iloc[0], X.iloc[1] = ([pair[end] for pair in RANGES.values()] for end in (0, 1))
    for name in ("ward", "blood", "digits"):
        X[name] = draws.choice(LABELS[name], N).astype(object)
    X["flag"] = draws.random(N) < 0.5
    X["born"] = pd.date_range("2000-01-01", periods=N)
    if kind == "outside":
        X.loc[X.index[3::8], NUMBERS] = X[NUMBERS] * 3 - 1
    if kind == "other labels":
        X.loc[X.index[5::9], ["ward", "blood"]] = "elsewhere"
    if kind in ("gaps", "gaps that are None", "other labels"):
        for at, name in enumerate([*NUMBERS, "ward", "blood", "digits"]):
            X.loc[X.index[2 + at :: 7], name] = None if kind == "gaps that are None" else np.nan
    return X


TABLES = {kind: table(kind) for kind in ("complete", "gaps", "gaps that are None", "outside", "other labels")}


def squared(X):
    return np.clip(np.asarray(X, dtype=float) ** 2, 0, 1e4)


def mirrored(X):
    X = np.clip(np.asarray(X, dtype=float), -1e4, 1e4)
    return np.concatenate([X, -X], axis=1)


class Draws:
    """Pipelines that a seed decides."""

    def __init__(self, seed):
        self.random = np.random.default_rng(seed)

    def one(self, *values):
        return values[self.random.integers(len(values))]

    def some(self, values, least, most):
        count = self.random.integers(least, most + 1)
        return [values[i] for i in self.random.permutation(len(values))[:count]]

    def yes(self):
        return bool(self.one(True, False))

    def rising(self, *jumps):
        return P.FunctionTransformer(self.one(np.cbrt, np.arctan, np.tanh, np.arcsinh, *jumps, None))

    def by_extremes(self):
        """What reads smallest and largest values."""
        return self.one(
            P.SplineTransformer(self.one(2, 4), degree=self.one(1, 3), include_bias=self.yes()),
            P.MinMaxScaler(self.one((0, 1), (-1, 1), (2, 5))),
            P.MaxAbsScaler(),
            P.KBinsDiscretizer(
                self.one(2, 3, 5), encode=self.one("onehot", "onehot-dense", "ordinal"), strategy="uniform"
            ),
        )

    def other(self):
        """What may stand behind a scaler, so nothing that jumps where scalers differ in the last digit."""
        degree = self.one(0, 1, 2, 3, (2, 2), (0, 2))
        return self.one(
            self.rising(),
            P.FunctionTransformer(self.one(squared, mirrored)),
            P.Normalizer(self.one("l1", "l2", "max")),
            P.Binarizer(threshold=self.one(-1.0, 0.0, 0.5, 2)),
            P.PolynomialFeatures(degree, interaction_only=self.yes(), include_bias=self.yes()),
        )

    def numeric(self, *, nested=False):
        """A chain for numbers, of which columns reach their ranges' ends where extremes are read."""
        if not nested and self.one(*range(5)) == 0:
            return FeatureUnion([(name, self.numeric(nested=True)) for name in ("one", "two")])
        fill = SimpleImputer(strategy="constant", fill_value=self.one(None, 0, 1, 0.5, True))
        first = [made for made in (fill, self.rising(np.ceil, np.floor), self.by_extremes()) if self.yes()]
        chain = [*first, *(self.other() for _ in range(self.one(0, 0, 1, 2)))]
        return make_pipeline(*chain) if chain else "passthrough"

    def encoder(self, name):
        """A chain for labels, with gaps among them or filled by one of them."""
        labels = [1, 2, 3] if name == "digits" and self.yes() else list(LABELS[name])
        labels += [self.one(np.nan, None)] if name != "flag" and self.yes() else []
        if self.yes():
            drop = self.one(None, None, "first", "if_binary", [labels[1]])
            unknown = self.one("error", "ignore", "ignore", "infrequent_if_exist")
            made = P.OneHotEncoder(categories=[labels], handle_unknown=unknown, drop=drop)
        else:
            unknown = self.one({}, *({"unknown_value": value} for value in (-1, 9, np.nan)))
            unknown = {"handle_unknown": "use_encoded_value", **unknown} if unknown else {}
            made = P.OrdinalEncoder(categories=[labels], encoded_missing_value=self.one(np.nan, -2, 12), **unknown)
        fill = SimpleImputer(strategy="constant", fill_value=self.one(None, None, "none", "north", "1", 0, 1))
        again = P.OneHotEncoder(categories=[[0, 1]], handle_unknown="ignore")
        behind = self.one(P.Binarizer(threshold=0.5), P.PolynomialFeatures(2), again)
        first = getattr(made, "handle_unknown", "") == "error" or np.isnan(getattr(made, "unknown_value", None) or 0)
        behind = [] if first or self.yes() else [behind]  # what comes of another category is compared by itself
        return make_pipeline(*([fill] if self.yes() else []), made, *behind)

    def columns(self):
        """A ``ColumnTransformer`` and the columns of the table that it is used on."""
        where, rest = self.some(NUMBERS, 1, 3), self.one("drop", "passthrough")
        parts = [
            ("numbers", self.numeric(), where),
            *((n, self.encoder(n), [n]) for n in self.some(list(LABELS), 0, 2)),
        ]
        taken = {name for _, _, names in parts for name in names}
        left = [name for name in (NUMBERS if rest == "passthrough" else TABLES["complete"]) if name not in taken]
        numbers = {*where, *(left if rest == "passthrough" else ())}
        used = [name for name in TABLES["complete"] if name in taken or name in left]
        return ColumnTransformer(self.some(parts, 3, 3), remainder=rest, sparse_threshold=0), used, numbers


def one_kind_of_gap(gap):
    return lambda X: X.astype(object).where(X.notna(), gap).astype({name: float for name in RANGES if name in X})


ALLOWED = {
    "None, NaN and NA are one and the same": [one_kind_of_gap(np.nan), one_kind_of_gap(None)],
    "a number that is written as text counts as that number": [
        lambda X: X.assign(digits=X["digits"].astype(float)) if "digits" in X else X
    ],
}
"""What scikit-learn may be shown in place of the rows, if the report says so."""

SEEDS = rounds(6)
ALL = "all columns"
SCALED = "what comes out is scaled from its public range to [-1, 1]"
FIRST = "another category counts as the first: an error or a missing value would tell of a row"
FILLED = "a missing value becomes the middle of the public range"


def ours(steps, X, names):
    """What the stage at the entrance makes of rows, its columns, and the report.

    Functions whose ranges it asks for get them.
    """
    functions = {}
    while True:
        try:
            pipe = Pipeline.from_sklearn(
                make_pipeline(steps, LogisticRegression()),
                ranges={name: RANGES[name] for name in names},
                functions=functions,
                classes=(0, 1),
            )
            stage = pipe[0]
            return np.asarray(stage.fit_transform(X)), stage.get_feature_names_out(), repr(pipe.conversion)
        except MissingBound as asked:
            wanted = re.findall(r"'([\w-]+)': \(low, high\)", asked.fix.partition("functions=")[2])
            if functions.keys() >= set(wanted):
                raise
            functions |= dict.fromkeys(wanted, (-1e4, 1e4))


def shown(X, report, numbers):
    """The rows, and what scikit-learn may be shown in their place."""
    clip = "numbers are clipped to their public ranges" in report
    tables = [X.assign(**{name: X[name].clip(*RANGES[name]) for name in numbers}) if clip else X]
    for words, changes in ALLOWED.items():
        if words in report:
            tables += [change(one) for one in tables for change in changes]
    return tables


def with_last(part, report):
    """The part, and with a category more, where the report says that one was added."""
    name, steps, columns = part
    added = re.search(f"'(.*)' is the last category of {', '.join(map(repr, columns))}", report)
    if added is None or not isinstance(steps, PlainPipeline):
        return [part]
    more = clone(steps)
    for _, step in more.steps:
        if isinstance(getattr(step, "categories", None), list):
            step.categories = [
                [*(one for one in listed if one == one), added[1], *(one for one in listed if one != one)]
                for listed in step.categories
            ]
    return [part, (name, more, columns)]


def fitted(part, X):
    """Scikit-learn's result for some columns; None where it refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return np.asarray(clone(ColumnTransformer([part], sparse_threshold=0)).fit_transform(X), dtype=float)
        except Exception:
            return None


def same(found, wanted, scaled, filled):
    """Whether two parts are equal, up to a rising linear map of each column and up to gaps where the report says so."""
    if found.shape != wanted.shape:
        return False
    found, off = np.where(np.isnan(wanted), np.nan, found) if filled else found, 1e-9
    if scaled:
        (found, width), (wanted, _) = ends(found), ends(wanted)
        off += 1e-14 / width  # digits that are lost where declared ranges are much wider than what occurs
    return bool((np.isclose(found, wanted, rtol=1e-9, atol=off, equal_nan=True)).all())


def ends(table):
    """Columns from 0 to 1, and how wide they were."""
    low, high = np.fmin.reduce(table), np.fmax.reduce(table)
    width = np.where(high > low, high - low, 1.0)
    return (table - low) / width, width


def agrees(found, part, X, report, described):
    """Whether some columns are what scikit-learn makes, or differ as the report says; None where it refuses."""
    name, _, where = part
    tables = shown(X, report, () if name in LABELS else where)
    results = (fitted(one, seen) for one in with_last(part, report) for seen in tables)
    wanted = [one for one in results if one is not None]
    scaled = f"{described}: {SCALED}" in report or (described == ALL and "they are scaled to [-1, 1]" in report)
    filled = f"{described}: {FILLED}" in report or FIRST in report
    note = f"{part} differs, and is not reported:\n{report}\n{found[:9]}\n{[one[:9] for one in wanted[:1]]}"
    assert not wanted or any(same(found, one, scaled, filled) for one in wanted), note
    return bool(wanted)


def columns_agree(steps, X, numbers):
    """Compare the parts of a ``ColumnTransformer``, and return how many there were to compare."""
    try:
        found, names, report = ours(steps, X, numbers)
    except PpdpError:
        return 0
    taken = {column for _, _, columns in steps.transformers for column in columns}
    rest = [name for name in X if name not in taken] if steps.remainder == "passthrough" else []
    done = 0
    for part in [*steps.transformers, *([("remainder", "passthrough", rest)] if rest else [])]:
        mine = found[:, [name.startswith(f"{part[0]}__") for name in names]]
        described = "the remaining columns" if part[2] is rest else ", ".join(map(repr, part[2]))
        done += agrees(mine, part, X, report, described)
    return done


def all_agree(chain, X):
    """Compare a chain for all columns; whether there was anything to compare."""
    try:
        found, _, report = ours(chain, X, NUMBERS)
    except PpdpError:
        return False
    return agrees(found, ("numbers", chain, NUMBERS), X, report, ALL)


@pytest.mark.parametrize("kind", TABLES)
class TestEveryPublicMapIsScikitLearnsOrTheReportSaysHowItDiffers:
    """On complete rows, rows with gaps, numbers outside the public ranges, and categories that are not declared."""

    @pytest.mark.repeated("kind", keep=3)
    def test_of_some_columns(self, kind):
        drawn = [Draws([seed, list(TABLES).index(kind)]).columns() for seed in range(SEEDS)]
        assert sum(columns_agree(steps, TABLES[kind][used], numbers) for steps, used, numbers in drawn) > SEEDS / 2

    @pytest.mark.repeated("kind", keep=3)
    def test_of_all_columns(self, kind):
        drawn = [Draws([seed, 99, list(TABLES).index(kind)]).numeric() for seed in range(SEEDS)]
        assert sum(all_agree(chain, TABLES[kind][NUMBERS]) for chain in drawn) > SEEDS / 5
