"""Public maps that make features: kernels by public draws, splines of public ranges, and where values are missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import fields
from functools import partial
from typing import Any

import numpy as np

from ppdp.core.checks import flag, integer, number, shown
from ppdp.core.closure_inspection import refuse_captured
from ppdp.exceptions import said_by
from ppdp.interop.sklearn.declared_facts import DeclaredFacts
from ppdp.interop.sklearn.steps import TERMS, TEXTS, Step, is_word, public_seed
from ppdp.transformers.columns.categories import is_gap
from ppdp.transformers.columns.feature_hasher import HashedTerms
from ppdp.transformers.columns.features import FourierFeatures, KnottedSplines, Landmarks, PeriodicSplines, Splines
from ppdp.transformers.columns.hashing_vectorizer import HashedWords
from ppdp.transformers.columns.maps import MOST_COLUMNS, FunctionMap, GapIndicators, PublicMap
from ppdp.transformers.rowwise.probe import made_up_rows, quiet


def fourier(step: Step, facts: DeclaredFacts, columns: Any) -> PublicMap:
    """Waves of directions that a public seed draws."""
    given = step.read("gamma", "n_components", "random_state")
    components = integer("n_components", given["n_components"], step.name, least=1, most=MOST_COLUMNS)
    return FourierFeatures(_width_of_kernel(step, given), components, public_seed(step, given), step.name)


def sketched_powers(step: Step, facts: DeclaredFacts, columns: Any) -> PublicMap:
    """Similarity to public rows by the kernel whose products are sketched."""
    given = step.read("gamma", "degree", "coef0", "n_components", "random_state")
    components = integer("n_components", given["n_components"], step.name, least=1, most=MOST_COLUMNS)
    step.changed.append("similarity to public landmarks by the same polynomial kernel instead of a sketch of it")
    gamma = number("gamma", given["gamma"], step.name, above=0, most=1e100)
    kernel = "poly", gamma, given["degree"], given["coef0"]
    return Landmarks(*kernel, components, public_seed(step, given), normal=step.scaled, step=step.name)


def landmarks(step: Step, facts: DeclaredFacts, columns: Any) -> PublicMap:
    """Similarity to public rows instead of some of the private ones."""
    given = step.read("kernel", "gamma", "coef0", "degree", "n_components", "random_state")
    if not is_word(given["kernel"], "rbf", "poly"):
        step.refuse(f"kernel={shown(given['kernel'])} has no counterpart.", "kernel='rbf' or kernel='poly'.")
    components = integer("n_components", given["n_components"], step.name, least=1, most=MOST_COLUMNS)
    step.changed.append(
        "its landmarks are drawn from a public law, "
        + ("that of standard normal rows" if step.scaled else "even over the public ranges")
        + ", instead of from the rows"
    )
    defaults = {"degree": 3, "coef0": 1}
    powers = {name: value if given[name] is None else given[name] for name, value in defaults.items()}
    kernel = str(given["kernel"]), _width_of_kernel(step, given), powers["degree"], powers["coef0"]
    return Landmarks(*kernel, components, public_seed(step, given), normal=step.scaled, step=step.name)


def _width_of_kernel(step: Step, given: Mapping[str, Any]) -> float | None:
    """Gamma; None is 1 over the number of columns, which is what "scale" gives for columns of variance 1."""
    gamma = given["gamma"]
    if is_word(gamma, "scale") and not step.scaled:
        step.changed.append("gamma='scale' became 1 over the number of columns: their variance is read off the rows")
    if is_word(gamma, None, "auto", "scale"):
        return None
    return number("gamma", gamma, step.name, above=0, most=1e100)


def own_knots(given: Mapping[str, Any]) -> bool:
    """Whether knots are numbers, in the units of the columns."""
    return not is_word(given.get("knots", "uniform"), "uniform", "quantile")


def splines(step: Step, facts: DeclaredFacts, columns: Any) -> PublicMap:
    """Splines of the public ranges."""
    given = step.read("n_knots", "knots", "degree", "extrapolation", "include_bias", "handle_missing")
    periodic, bias = is_word(given["extrapolation"], "periodic"), flag("include_bias", given["include_bias"], step.name)
    if own_knots(given):
        try:
            own = tuple(tuple(map(float, knots)) for knots in given["knots"])
        except (TypeError, ValueError):
            step.refuse(f"knots={shown(given['knots'])} are no rows of numbers.", "knots=[[0.0], [10.0], [50.0]].")
        if not is_word(given["extrapolation"], "constant", "periodic"):
            step.changed.append("beyond the outer knots curves are flat")
        degree = integer("degree", given["degree"], step.name, least=0)
        return KnottedSplines(len(own), degree, bias, step.name, own, periodic)
    instead = "quantiles" if given["knots"] == "quantile" else "the smallest and largest values"
    step.changed.append(f"knots at equal steps of the public ranges instead of {instead}")
    knots, degree = (integer(name, given[name], step.name, least=0) for name in ("n_knots", "degree"))
    return (PeriodicSplines if periodic else Splines)(knots, degree, bias, step.name)


def indicators(step: Step, facts: DeclaredFacts, columns: Any) -> PublicMap:
    """Where values are missing, of every column."""
    given = step.read("features", "missing_values", "error_on_new", "sparse")
    if not is_gap(given["missing_values"]):
        step.refuse(f"missing_values={shown(given['missing_values'])} has no counterpart.", "NaN for missing values.")
    if not is_word(given["features"], "all"):
        step.changed.append("of every column: which columns have missing values is read off the rows")
    return GapIndicators(step.name)


def hashed_words(step: Step, facts: DeclaredFacts, columns: Any) -> PublicMap:
    """Words of one column of texts, by scikit-learn's own hash, also where a vocabulary would be read off the texts."""
    own = [one.name for one in fields(HashedWords) if one.name not in ("max_norm", "step")]
    fixes = {"input": "input='content', texts that stand in the column.", "encoding": "text, or bytes as UTF-8."}
    given = step.read(*own, *_OF_VOCABULARY, "decode_error", fixes=fixes)
    if step.kind != "HashingVectorizer":
        given = _hashed_words(step, given, facts)
    _of_one_column(step, columns, "texts")
    bound = facts.max_norm if given["norm"] is None else None
    made = HashedWords(**{name: given[name] for name in own}, max_norm=bound, step=step.name)
    made.check()
    return made


def _of_one_column(step: Step, columns: Any, cells: str) -> None:
    """Refuse several columns, and say what becomes of one."""
    if isinstance(columns, (list, tuple)) and len(columns) != 1:
        step.refuse(f"it takes one column of {cells}.", f"one of it for each column: ({step.kind}(...), 'name').")
    if isinstance(columns, (list, tuple)) or columns is None:
        step.changed.append(f"a column alone, a list of {cells}, and a table of one column are the same")
    step.changed.append("a missing cell is a row of zeros")


def hashed_terms(step: Step, facts: DeclaredFacts, columns: Any) -> PublicMap:
    """Names with numbers of one column, by scikit-learn's own hash, also where it would look for all names."""
    given = step.read("n_features", "input_type", "alternate_sign", "separator", "sort")
    buckets, signs = given.get("n_features", 256), given.get("alternate_sign", True)
    if step.kind == "DictVectorizer":
        step.changed.append(f"names go into {buckets} buckets of a public hash: which occur is read off the rows")
    _of_one_column(step, columns, "dicts")
    if facts.max_norm is None:
        step.changed.append("rows have length 1, so that none counts more than another, or as long as max_norm")
    norm = "l2" if facts.max_norm is None else None
    made = HashedTerms(buckets, norm, signs, facts.max_norm, step.name)
    made.check()
    return made


_OF_VOCABULARY = ("max_df", "max_features", "min_df", "smooth_idf", "sublinear_tf", "use_idf", "vocabulary")
_MOST_BUCKETS = 1024


def _hashed_words(step: Step, given: Mapping[str, Any], facts: DeclaredFacts) -> dict[str, Any]:
    """What a vectorizer with a vocabulary asks for, with buckets of a public hash in its place."""
    most = 256 if given["max_features"] is None else integer("max_features", given["max_features"], step.name)
    buckets = min(most, _MOST_BUCKETS)
    step.changed += [
        f"words go into {buckets} buckets of a public hash, which several may share: which words occur is read off the "
        "texts; HashingVectorizer(n_features=...) for another number",
        "no word is weighed or left out by how many texts have it",
    ]
    if given["vocabulary"] is not None:
        step.changed.append("all words count, not only those of its vocabulary")
    norm = given.get("norm", "l2" if facts.max_norm is None else None)
    if "norm" not in given and norm is not None:
        step.changed.append("rows have length 1, so that no text counts more than another")
    return {**given, "n_features": buckets, "norm": norm, "alternate_sign": True}


def function(step: Step, facts: DeclaredFacts, columns: Any) -> PublicMap | None:
    """A function of each row; None if it is none."""
    given = step.read("func", "kw_args")
    if given["func"] is None:
        return None
    if not callable(given["func"]):
        step.refuse("func is not callable.", "func=np.log1p, or a function of your own.")
    keywords = given["kw_args"] or {}
    if not isinstance(keywords, Mapping):
        step.refuse("kw_args is no mapping.", "kw_args={'name': value}.")
    refuse_captured(partial(given["func"], **keywords), step.name)
    facts.mapped.add(step.name)
    made = FunctionMap(given["func"], dict(keywords), facts.functions.get(step.name), step=step.name)
    if not (made.bounds or made.rises):
        if _takes_frames(partial(given["func"], **keywords)):
            step.refuse("its function takes a frame, and it gets arrays of numbers.", _NO_FRAMES)
        why = f"what comes out of {getattr(made.function, '__name__', 'its function')} has no public range."
        facts.lack("functions", {step.name: "(low, high)"}, why, step.name)
    if not isinstance(given["func"], np.ufunc):
        step.changed.append("its function gets float64 arrays, never frames: dates and text must be numbers before")
    if step.name in facts.functions:
        step.changed.append("what it returns is clipped to the declared range")
    return made


def _takes_frames(function: Callable[..., Any]) -> bool:
    """Whether it asks its rows for what only frames have."""
    try:
        with quiet():
            deepcopy(function)(made_up_rows(2, gaps=False))  # so that an object with a memory stays as it is
    except (Exception, SystemExit) as error:  # a user's function may raise anything
        return isinstance(error, AttributeError) or "only integers" in said_by(error)
    return False


_NO_FRAMES = (
    'for dates (DateEncoder(("1990-01-01", "2030-12-31")), ["column"]) of ppdp.transformers in its place; for text an '
    "encoder or a vectorizer; to choose columns a ColumnTransformer; else row by row in front of the pipeline, as "
    "X.assign(month=X['column'].dt.month)."
)

FEATURES: dict[str, tuple[str, Callable[..., Any]]] = {
    **dict.fromkeys(TEXTS, ("map", hashed_words)),
    **dict.fromkeys(TERMS, ("map", hashed_terms)),
    "FunctionTransformer": ("map anywhere", function),
    "MissingIndicator": ("map", indicators),
    "Nystroem": ("map anywhere", landmarks),
    "PolynomialCountSketch": ("map anywhere", sketched_powers),
    "RBFSampler": ("map anywhere", fourier),
    "SplineTransformer": ("map", splines),
}
"""By class: as in ``MAPS``."""
