"""Claims of "Provable privacy with non-private pre-processing", as printed; the collection is the two datasets."""

from functools import partial

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from ppdp import Domain
from ppdp.audit import Claim

ETA = 0.05


def ball(n, d):
    return Domain(n_rows=n, n_features=d, row_norm=1.0)


def good_clusters(X, eta):
    """Which rows are near each other, and which have nobody between eta and 3 eta."""
    apart = cdist(X, X)
    return apart <= eta, ~((apart > eta) & (apart <= 3 * eta)).any(axis=1)


def leaders(X, eta):
    """For every row the first good centre within eta, or itself."""
    near, good = good_clusters(X, eta)
    mine = near & good
    return np.where(mine.any(axis=1), mine.argmax(axis=1), np.arange(len(X)))


def deduplicated(X, eta):
    return X, leaders(X, eta) == np.arange(len(X))


def quantized(X, eta):
    return X[leaders(X, eta)]


def twice_the_largest_cluster(*datasets):
    found = (near.sum(axis=1)[good].max(initial=0) for near, good in (good_clusters(X, ETA) for X in datasets))
    return 2 * max(found)


def deduplication(n, d):
    """Proposition 3."""
    return Claim(partial(deduplicated, eta=ETA), ball(n, d), {"linf": twice_the_largest_cluster}, name="deduplication")


def quantization(n, d):
    """Proposition 3."""
    bounds = {"linf": twice_the_largest_cluster, "l2": ETA}
    return Claim(partial(quantized, eta=ETA), ball(n, d), bounds, name="quantization")


def scaling(n, least):
    """Proposition 6, where the standard deviation is at least ``least``."""

    def moved(*datasets):
        s = min(X.std(axis=0).min() for X in datasets)
        return 2 / (s**3 * n) + 2 / (n * s)

    bounds = {"linf": n, "l2": moved}
    return Claim(StandardScaler(), ball(n, 1), bounds, holds=lambda X: X.std(axis=0).min() >= least, name="scaling")


def imputed(X):
    means = np.nansum(X, axis=0) / np.maximum((~np.isnan(X)).sum(axis=0), 1)
    return np.where(np.isnan(X), means, X)


def imputation(n, d, gaps):
    """Corollary 4, p being the number of missing entries."""

    def missing(*datasets):
        return max(int(np.isnan(X).sum()) for X in datasets)

    bounds = {"linf": missing, "l2": lambda *datasets: 2 / (n - missing(*datasets))}
    return Claim(imputed, ball(n, d), bounds, gaps=gaps, name="imputation")


def projection(n, d, k):
    """Proposition 5, to k dimensions."""

    def moved(*datasets):
        spectra = [np.append(np.linalg.eigvalsh(np.cov(X.T))[::-1], 0.0) for X in datasets]
        gap = min(min(values[k - 1] - values[k], values[0] - values[1]) for values in spectra)
        return 8 * (3 * n + 2) / (n * (n - 1) * gap) if gap > 1e-9 else np.nan

    return Claim(PCA(k), ball(n, d), {"linf": n, "l2": moved}, name="projection")
