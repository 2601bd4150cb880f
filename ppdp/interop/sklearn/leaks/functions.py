"""What a user's function tells about the rows: by what it holds on to, what it names, and what made-up rows show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ppdp.core.callables import Held, held_by, listed, of_library
from ppdp.interop.sklearn.leak import NOTHING, Leak
from ppdp.interop.sklearn.leaks.behaviour import APART, MIXED, UNSTEADY, UNTRIED, tried
from ppdp.interop.sklearn.table import TABLE

TWINS = {
    "scale": "StandardScaler",
    "zscore": "StandardScaler",
    "minmax_scale": "MinMaxScaler",
    "maxabs_scale": "MaxAbsScaler",
    "robust_scale": "RobustScaler",
    "quantile_transform": "QuantileTransformer",
    "power_transform": "PowerTransformer",
    "label_binarize": "LabelBinarizer",
    "get_dummies": "OneHotEncoder",
    "factorize": "OrdinalEncoder",
}
"""Functions that do what a class of scikit-learn does when it is fitted."""
AVERAGES = "average corrcoef cov gstd gzscore mean nanmean nanstd nansum nanvar prod std sum var whiten zmap"
ORDERS = (
    "accumulate amax amin argmax argmin argsort bfill boxcox boxcox_normmax cummax cummin cumprod cumsum cut "
    "cumulative_sum describe detrend diff drop_duplicates duplicated ewm expanding ffill fit fit_transform gradient "
    "groupby histogram max median min mode nancumsum nanmax nanmedian nanmin nanpercentile nanquantile nlargest "
    "normalize nsmallest partition pct_change percentile ptp qcut quantile rank rankdata reduce rolling shift sort "
    "sort_values trim_mean winsorize yeojohnson"
)
LABELS = "Categorical codes drop_duplicates factorize get_dummies nunique unique value_counts"
"""Names of what goes by the labels that occur, which made-up numbers cannot show."""
MIXES = {*f"{AVERAGES} {ORDERS} {LABELS}".split(), *TWINS}
"""Names of functions and methods that take many rows together, unless they are told to go along each row."""

_FIX = (
    "a function of one row at a time; for means, ranges or categories the stage that reads them: StandardScaler, "
    "MinMaxScaler(ranges=...), OneHotEncoder(categories=...)."
)
_DECLARED = "make sure of it; in a ppdp pipeline the certificate says that you declared it."
_CARRIED = Leak(
    "high",
    "whatever the estimator in its function was fitted on",
    "Public",
    "Public(transformer) if those were public data.",
)
_UNSTEADY = Leak(
    "high",
    "whatever it keeps from call to call: the same made-up rows came out differently the second time",
    fix="a function without memory and without random numbers.",
)


def leak_of_function(function: Callable[..., Any], *, of_rows: bool) -> Leak:
    """What a function tells that a user hands to an estimator, with its arguments as ``partial(function, ...)``.

    If it takes a table of rows, and all that it holds on to was seen, it is run on made-up rows.
    """
    held = held_by(function)
    if held.estimator is not None:
        return _CARRIED
    own = _own_name(function)
    mixes = sorted(({own} | held.names) & MIXES) if of_rows else []
    found = tried(function) if of_rows and not held.unseen else UNTRIED
    if found == UNSTEADY:
        return _UNSTEADY
    if found == MIXED or (found == UNTRIED and mixes) or (found == APART and set(LABELS.split()).intersection(mixes)):
        return _mixed(own, mixes, found)
    return _declared(held, of_rows and found == UNTRIED)


def _own_name(function: Any) -> str:
    """The bare name of a library's function, or of the one in a partial; empty for a user's own."""
    inner = getattr(function, "func", function)
    name = of_library(inner) or getattr(inner, "__name__", "") * (type(inner).__name__ == "builtin_function_or_method")
    return str(name).rpartition(".")[2]


def _mixed(own: str, mixes: list[str], found: str) -> Leak:
    """Of one function that is known what it is; of others what was seen."""
    if own in TWINS:
        known = TABLE[TWINS[own]].leak
        return replace(known, leaks=f"{known.leaks}, by {own}", fix=f"{known.fix.rstrip('.')}, in place of {own}.")
    if own in AVERAGES.split():
        return Leak("low", f"averages of all rows, by {own}", fix=_FIX)
    by = f" by {listed(mixes)}" if mixes else ""
    told = {
        MIXED: f"rows are mixed{by}: a made-up row came out differently among other rows",
        APART: f"which labels occur{by}: one row can bring its own",
        UNTRIED: f"rows may be mixed{by}: it could not be tried on made-up rows",
    }
    return Leak("high", told[found], fix=_FIX)


def _declared(held: Held, untried: bool) -> Leak:
    if held.values:
        unless = f"what its function keeps ({listed(held.values)}) was not read off these rows: nobody checked"
    elif held.unseen:
        unless = f"its function keeps none of these rows: nobody checked {listed(held.unseen)}"
    elif untried:
        unless = "its function treats rows one by one: it takes no made-up rows, so nobody checked"
    else:
        return Leak("none", NOTHING, "RowMap", "RowMap(function, out_ranges=...).")
    return Leak("declared", f"nothing, if {unless}", "RowMap", _DECLARED)
