"""Bins and ranks between released quantiles, and naive Bayes, as fitted objects of scikit-learn."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, QuantileTransformer

from ppdp.data.rows import Array
from ppdp.interop.sklearn import plain_objects as plain
from ppdp.transformers.columns.quantile_maps import WIDEST_SCORE


def bins(step: Any) -> Any:
    """Bins, a column of 0 and 1 for each or their numbers; a value that is an edge is in the lower one here too."""
    encode = "onehot-dense" if step.encode == "onehot" else "ordinal"

    def made(edges: Array) -> Any:
        count, d = edges.shape[0] + 1, edges.shape[1]
        rows = np.linspace(0.0, 1.0, count)[:, None] * np.ones(d)
        fitted = KBinsDiscretizer(count, encode=encode, strategy="uniform").fit(rows)
        above = np.nextafter(edges, np.inf)
        infinite = np.full((1, d), np.inf)
        ends = np.empty(d, dtype=object)
        ends[:] = list(np.vstack([-infinite, above, infinite]).T)
        return plain.with_attributes(fitted, bin_edges_=ends)

    return _of_columns(step, made)


def ranks(step: Any) -> Any:
    """Ranks, or normal scores that are clipped."""
    parts = len(step.edges_) + 1
    levels = np.array([0.0, 0.0, *np.arange(1, parts) / parts, 1.0, 1.0])
    normal = step.output_distribution == "normal"

    def made(edges: Array) -> Any:
        end = np.full((1, edges.shape[1]), step.reach_)
        knots = np.vstack([-end - 1, -end, edges, end, end + 1])  # scikit-learn takes what reaches the last for an end
        fitted = QuantileTransformer(n_quantiles=len(knots), output_distribution=step.output_distribution).fit(knots)
        fitted = plain.with_attributes(fitted, quantiles_=knots, references_=levels)
        limits = np.full(edges.shape[1], WIDEST_SCORE)
        return make_pipeline(fitted, plain.box(-limits, limits)) if normal else fitted

    return _of_columns(step, made)


def _of_columns(step: Any, made: Any) -> Any:
    """What is made for the columns that a stage maps; the others stay in their places between them."""
    if step.columns_ is None:
        return made(step.edges_)
    own, d = {column: i for i, column in enumerate(step.columns_)}, step.n_features_in_
    parts = []
    for mapped, group in groupby(range(d), own.__contains__):
        run = list(group)
        objects = [made(step.edges_[:, [own[i] for i in run]])] if mapped else []
        parts.append((f"columns-{run[0]}", make_pipeline(plain.select(run, d), *objects)))
    return FeatureUnion(parts)


def naive_bayes(step: Any) -> Any:
    """The model with its released means, variances and shares of classes."""
    d, classes = step.theta_.shape[1], step.classes_
    fitted = GaussianNB().fit(np.zeros((len(classes), d)) + np.arange(len(classes))[:, None], classes)
    released = {name: getattr(step, name) for name in ("theta_", "var_", "class_prior_", "class_count_")}
    return plain.with_attributes(fitted, epsilon_=0.0, **released)
