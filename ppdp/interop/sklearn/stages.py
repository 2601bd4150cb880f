"""What stands for scikit-learn's transformers that look at rows, or that draw a map of all columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.feature_selection import chi2, f_classif, f_regression, mutual_info_classif, mutual_info_regression
from sklearn.random_projection import johnson_lindenstrauss_min_dim

from ppdp import transformers
from ppdp.core.checks import choice, flag, integer, number, shown
from ppdp.exceptions import InvalidParameter
from ppdp.interop.sklearn.column_maps import read_imputer
from ppdp.interop.sklearn.declared_facts import DeclaredFacts
from ppdp.interop.sklearn.steps import Step, is_word, public_seed
from ppdp.transformers.columns.categories import is_gap
from ppdp.transformers.columns.quantile_maps import MOST_QUANTILES


def imputer(step: Step, facts: DeclaredFacts) -> Any:
    """A mean, or a trimmed mean in place of a median."""
    given = read_imputer(step)
    if is_word(given["strategy"], "mean"):
        return transformers.MeanImputer()
    if is_word(given["strategy"], "median", "most_frequent"):
        middle = "median" if given["strategy"] == "median" else "most frequent value"
        step.changed.append(f"a trimmed mean instead of the {middle}, whose release would drown in noise")
        return transformers.TrimmedMeanImputer()
    step.refuse(
        f"strategy={given['strategy']!r} has no counterpart: one row can decide it.",
        "strategy='constant' with a public fill_value, for text a category of its own; or 'mean' or 'median'.",
    )


def imputer_of_neighbours(step: Step, facts: DeclaredFacts) -> Any:
    """Means: `RegressionImputer` has no intercept, so that columns which do not lie around 0 are filled far off."""
    fixes = {"add_indicator": "leave it out."}
    given = step.read("missing_values estimator", _PASSES, _NEIGHBOURS, fixes=fixes)
    if not is_gap(given["missing_values"]):
        step.refuse(f"missing_values={shown(given['missing_values'])} has no counterpart.", "NaN for missing values.")
    instead = "the nearest rows, which it would keep" if step.kind == "KNNImputer" else "rounds of regressions"
    step.changed.append(f"means of columns instead of {instead}; RegressionImputer() where all columns lie around 0")
    return transformers.MeanImputer()


_PASSES = "fill_value imputation_order initial_strategy max_value min_value n_nearest_features"
_NEIGHBOURS = "metric n_neighbors weights"


def standard(step: Step, facts: DeclaredFacts) -> Any:
    """By released or exact moments."""
    given = step.read("with_mean", "with_std")
    if not flag("with_std", given["with_std"], step.name):
        step.refuse("with_std=False has no counterpart.", "leave the step out: models learn an intercept.")
    step.changed.append("a floor under the standard deviation, and a public clip of scaled rows")
    return transformers.StandardScaler(with_mean=flag("with_mean", given["with_mean"], step.name))


def robust(step: Step, facts: DeclaredFacts) -> Any:
    """By quantiles behind a condition."""
    given = step.read("quantile_range")
    step.changed.append("quantiles rest on a tested condition; StandardScaler() is far cheaper")
    return transformers.RobustScaler(quantile_range=given["quantile_range"])


def quantile_bins(step: Step, facts: DeclaredFacts) -> Any:
    """Bins between released quantiles."""
    given = step.read("n_bins", "encode", "strategy")
    if isinstance(given["n_bins"], (list, tuple, np.ndarray)):
        step.refuse("n_bins differs between columns.", "one number of bins, or a KBinsDiscretizer for each.")
    bins = integer("n_bins", given["n_bins"], step.name, least=2, most=MOST_QUANTILES)
    encode = choice("encode", given["encode"], ("onehot", "onehot-dense", "ordinal"), step.name)
    step.changed.append("its edges are quantiles that are released with noise")
    if given["strategy"] == "kmeans":
        step.changed.append("bins hold about as many rows each, instead of those that lie near one of n_bins centres")
    return transformers.KBinsDiscretizer(bins, "ordinal" if encode == "ordinal" else "onehot")


def quantile_splines(step: Step, facts: DeclaredFacts) -> Any:
    """Splines with knots at released quantiles."""
    given = step.read("n_knots", "knots", "degree", "extrapolation", "include_bias", "handle_missing")
    step.changed.append(
        "its knots are quantiles from 5 to 95 per cent, which are released with noise; beyond them curves are flat"
    )
    return transformers.SplineTransformer(given["n_knots"], given["degree"], given["include_bias"])


QUANTILES = {"KBinsDiscretizer": ("strategy", quantile_bins), "SplineTransformer": ("knots", quantile_splines)}
"""By class: the parameter that may ask for quantiles of the rows, and what releases them."""
_PARTS = 20


def quantile_ranks(step: Step, facts: DeclaredFacts) -> Any:
    """Ranks or normal scores by released quantiles."""
    normal, parts = True, _PARTS
    if step.kind == "PowerTransformer":
        step.read("method", "standardize")
        step.changed.append("normal scores by released quantiles instead of the power that fits best")
    else:
        given = step.read("n_quantiles", "output_distribution", "ignore_implicit_zeros")
        parts = integer("n_quantiles", given["n_quantiles"], step.name, least=2)
        kinds = ("uniform", "normal")
        normal = choice("output_distribution", given["output_distribution"], kinds, step.name) == "normal"
        step.changed.append("quantiles are released with noise, and ranks between two of them rise in a straight line")
        if parts > _PARTS:
            step.changed.append(f"n_quantiles={parts} became {_PARTS}: each of them has its own noise")
            parts = _PARTS
    return transformers.QuantileTransformer(parts, "normal" if normal else "uniform")


def _components(step: Step, value: Any) -> int:
    try:
        return integer("n_components", value, step.name)
    except InvalidParameter:
        fix = "a number, n_components=5, or of PCA a share of the variance, n_components=0.95."
        step.refuse(f"n_components={value!r} is decided by the rows.", fix)


def pca(step: Step, facts: DeclaredFacts) -> Any:
    """The projection on the components."""
    given = step.read("n_components", "batch_size", "whiten")
    rank = given["n_components"]
    if given.get("whiten", False) is not False:
        step.changed.append("whiten is left out: penalties and distances weigh components by their variance")
    if step.kind == "PCA" and isinstance(rank, float) and 0 < rank < 1:
        step.changed.append("how many components have this share of the variance is told by the released second moment")
    else:
        rank = _components(step, rank)
    return transformers.PCA(rank, with_mean=step.kind != "TruncatedSVD")


def other_components(step: Step, facts: DeclaredFacts) -> Any:
    """Directions of most variance in place of others, as many."""
    given = step.read(*step.given())
    step.changed.append(f"directions of most variance in place of those of {step.kind}")
    return transformers.PCA(_components(step, given["n_components"]), with_mean=step.kind in _CENTRED)


_UNCENTRED = "LatentDirichletAllocation MiniBatchNMF NMF"
_CENTRED = "DictionaryLearning FactorAnalysis FastICA MiniBatchDictionaryLearning MiniBatchSparsePCA SparsePCA"


def projection(step: Step, facts: DeclaredFacts) -> Any:
    """A random projection with a public seed."""
    given = step.read("n_components", "eps", "random_state", "density")
    components = given["n_components"]
    if is_word(components, "auto"):
        if facts.domain.n_rows is None:
            what = "n_components='auto' needs the public number of rows."
            step.refuse(what, "domain=Domain(n_rows=...), or a number of components.")
        eps = number("eps", given["eps"], step.name, above=0, most=1 - 1e-9)
        components = int(johnson_lindenstrauss_min_dim(facts.domain.n_rows, eps=eps))
        step.changed.append(f"n_components='auto' became {components}, from the public number of rows and eps")
    seed = public_seed(step, given)
    family, s = "gaussian", None
    if step.kind == "SparseRandomProjection":
        family, density, fix = "sparse", given["density"], "density='auto', or a share of at most 1."
        s = None if is_word(density, "auto") else 1 / number("density", density, step.name, least=1e-7, most=1, fix=fix)
    return transformers.RandomProjection(_components(step, components), family=family, seed=seed, s=s)


def target_encoder(step: Step, facts: DeclaredFacts) -> Any:
    """Mean labels of codes, by one release."""
    given = step.read("categories", "target_type", "smooth", "cv", "shuffle")
    step.changed.append("mean labels of all rows, released with noise, instead of those of other folds; from -1 to 1")
    if is_word(given["smooth"], "auto"):
        return transformers.TargetMeanEncoder()
    return transformers.TargetMeanEncoder(smooth=number("smooth", given["smooth"], step.name, least=0))


_COMPARED = (chi2, f_classif, f_regression, mutual_info_classif, mutual_info_regression)


def selector(step: Step, facts: DeclaredFacts) -> Any:
    """The columns that labels explain most, by released sums of every class."""
    name = "k" if step.kind == "SelectKBest" else "percentile"
    given = step.read("score_func", name)
    compared = given["score_func"]
    if not any(compared is known for known in _COMPARED):
        step.refuse("its score_func has no counterpart.", "score_func=f_classif, or f_regression for targets.")
    step.changed.append("columns are compared, as by F, by released sums of every class, or products with the targets")
    if compared is chi2:
        step.changed.append("of columns of 0 and 1 chi2 is that times the share of zeros")
    if compared in (mutual_info_classif, mutual_info_regression):
        step.changed.append("F sees straight effects alone: mutual information goes by the nearest rows")
    return getattr(transformers, step.kind)(given[name])


def weighed(step: Step, facts: DeclaredFacts) -> Any:
    """As many columns as a selector keeps that asks a model; a public number of them, or half."""
    step.read(_OF_WEIGHTS)
    given = step.given()
    kept = next((given[name] for name in ("n_features_to_select", "max_features") if name in given), None)
    step.changed.append("columns that labels explain most, one by one, instead of those that a model gives most weight")
    if kept is None or is_word(kept, "auto"):
        return transformers.SelectPercentile(50)
    if isinstance(kept, float) and 0 < kept <= 1:
        return transformers.SelectPercentile(100 * kept)
    return transformers.SelectKBest(integer("the number of columns", kept, step.name))


_OF_WEIGHTS = (
    "cv direction estimator importance_getter max_features min_features_to_select n_features_to_select norm_order "
    "prefit scoring step threshold"
)

_MAKERS: dict[str, tuple[str, Callable[..., Any]]] = {
    "SimpleImputer": ("imputer", imputer),
    "IterativeImputer KNNImputer": ("imputer", imputer_of_neighbours),
    "StandardScaler": ("scaler", standard),
    "RobustScaler": ("scaler", robust),
    "PowerTransformer QuantileTransformer": ("quantiles", quantile_ranks),
    "IncrementalPCA PCA TruncatedSVD": ("components", pca),
    f"{_CENTRED} {_UNCENTRED}": ("components", other_components),
    "GaussianRandomProjection SparseRandomProjection": ("projection", projection),
    "TargetEncoder": ("label means", target_encoder),
    "SelectKBest SelectPercentile": ("selector", selector),
    "RFE RFECV SelectFromModel SequentialFeatureSelector": ("selector", weighed),
}
FITTED = {name: made for names, made in _MAKERS.items() for name in names.split()}
"""By class: its role, and what makes its counterpart of a step and facts."""
