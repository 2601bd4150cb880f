"""Thresholds of the statistical tests of noise."""

from scipy import stats

FALSE_ALARM = 1e-7  # per test: a p-value below is an error of the sampler
Z_LIMIT = stats.norm.isf(FALSE_ALARM / 2)
