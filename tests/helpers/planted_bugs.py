"""Bugs of the kinds that others found in libraries, each planted in a step of ours.

Kinds are those of "Privacy in Theory, Bugs in Practice" (arXiv 2602.17454) and of reports to OpenDP. Where no number is
given, an analogue is the nearest honest one.
"""

import warnings
from dataclasses import replace

import numpy as np

from ppdp import Domain, Pipeline
from ppdp.mechanisms import ExponentialMechanism, GaussianMechanism, LaplaceMechanism, LogisticRegression
from ppdp.transformers import Deduplicator, MeanImputer, MinMaxScaler, NormClipper, StandardScaler
from ppdp.transformers.fit_mode import Condition

N = 60
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (N, 3))
X[40:] = X[:20]
Y = (X[:, 0] > 0).astype(int)
GAPS = X.copy()
GAPS[3, 1] = np.nan
GAPS[7] = np.nan


def planned(*steps, epsilon=20.0, delta=1e-3, **parameters):
    named = [(f"step{position}", step) for position, step in enumerate(steps)]
    return Pipeline(named, epsilon=epsilon, delta=delta, **parameters)


class PrivateNumber(GaussianMechanism):
    """Divides by the number of rows that are present."""

    def answer(self, rows, question):
        found = super().answer(rows, question)
        found[:-1] *= rows.n / max(rows.weight.sum(), 1.0)
        return found


class Shapes(GaussianMechanism):
    """OpenDP 2930: the length of what is released depends on the rows."""

    def release(self, rows, question, noise, noise_scale):
        exact = self.answer(rows, question)
        return {"answer": noise.release(exact[exact > 0.6], noise_scale, question.bound)}


class Stopping(LogisticRegression):
    """Descends until the exact gradient is small."""

    def release(self, rows, question, noise, noise_scale):
        steps = 5 + int(rows.X[:, 0].mean() * 1e6) % 3
        return super().release(rows, replace(question, steps=steps), noise, noise_scale)


class ClippedLate(GaussianMechanism):
    """Clips the mean, where it had to clip the rows."""

    def answer(self, rows, question):
        return np.clip(3 * super().answer(rows, question), -question.bound, question.bound)


class BoundsOfTheData(MinMaxScaler):
    def map_rows(self, X, statistics):
        return np.clip((X - X.min(axis=0)) / np.maximum(np.ptp(X, axis=0), 1e-9), 0.0, 1.0)


class NormOfTheData(NormClipper):
    def map_rows(self, X, statistics):
        return super().map_rows(X, {"max_norm": float(np.median(np.linalg.norm(X, axis=1)))})


class Balanced(LogisticRegression):
    """Weighs rows by the exact sizes of the classes."""

    def release(self, rows, question, noise, noise_scale):
        share = rows.y.mean()
        weight = np.where(rows.y > 0, 0.5 / max(share, 0.1), 0.5 / max(1 - share, 0.1))
        return super().release(replace(rows, weight=weight * rows.weight), question, noise, noise_scale)


class Hasty(LogisticRegression):
    """Noise for one step, spread over all of them."""

    def release(self, rows, question, noise, noise_scale):
        return super().release(rows, question, noise, noise_scale / np.sqrt(question.steps))


class Open(GaussianMechanism):
    def release(self, rows, question, noise, noise_scale):
        exact = self.answer(rows, question)
        noisy = noise.release(exact, noise_scale, question.bound)
        noisy[-1] = exact[-1]
        return {"answer": noisy}


class Keeping(GaussianMechanism):
    def release(self, rows, question, noise, noise_scale):
        self.exact_ = self.answer(rows, question)
        return super().release(rows, question, noise, noise_scale)


class KeepingStage(NormClipper):
    def map_rows(self, X, statistics):
        self.seen_ = float(np.nanmax(X, initial=0.0))
        return super().map_rows(X, statistics)


class Warning_(NormClipper):
    def map_rows(self, X, statistics):
        if (np.linalg.norm(X, axis=1) > 1).any():
            warnings.warn("rows were clipped", stacklevel=1)
        return super().map_rows(X, statistics)


class Failing(NormClipper):
    """OpenDP 2929 and 2942: some rows end the execution."""

    def map_rows(self, X, statistics):
        if (np.linalg.norm(X, axis=1) > 1).any():
            raise ValueError("a long row")
        return super().map_rows(X, statistics)


class MarginOff(StandardScaler):
    """Counts every row three times."""

    def fit_modes(self, domain, distance):
        def thrice(condition):
            return replace(condition, measure=lambda rows, unit: 3 * condition.measure(rows, unit))

        return tuple(
            replace(way, conditions=tuple(map(thrice, way.conditions))) for way in super().fit_modes(domain, distance)
        )


class OtherDataset(StandardScaler):
    """Tests rows that were jittered, and divides those that were not."""

    def fit_modes(self, domain, distance):
        def elsewhere(condition: Condition):
            def measure(rows, unit):
                jitter = np.random.default_rng(0).uniform(-0.5, 0.5, rows.X.shape)
                return condition.measure(replace(rows, X=jitter), unit)

            return replace(condition, measure=measure)

        return tuple(
            replace(way, conditions=tuple(map(elsewhere, way.conditions)))
            for way in super().fit_modes(domain, distance)
        )


class Unstable(NormClipper):
    """Sorts, and breaks ties as it happens."""

    def map_rows(self, X, statistics):
        return super().map_rows(X, statistics)[np.argsort(X[:, 0])]


class Random(NormClipper):
    """OpenDP 2928: a step in front of the mechanism draws."""

    def map_rows(self, X, statistics):
        return super().map_rows(X + 1e-3 * np.random.default_rng().standard_normal(X.shape), statistics)


class SinglePrecision(GaussianMechanism):
    """OpenDP 2941: numbers of 32 bits are accounted as if they had 64."""

    def answer(self, rows, question):
        return rows.X.astype(np.float32).sum(axis=0).astype(np.float64)


class Cancelling(GaussianMechanism):
    """OpenDP 2923: the rounding of a mean far from 0 is not accounted."""

    def answer(self, rows, question):
        far = 2.0**44
        return ((rows.X + far).sum(axis=0) - far * rows.n) / rows.n


class FewBits(GaussianMechanism):
    """OpenDP 2941 and its like: a count of few bits wraps around."""

    def answer(self, rows, question):
        return super().answer(rows, question).astype(np.int64).astype(np.int8).astype(np.float64)


class Wrapping(LaplaceMechanism):
    """OpenDP 2937: a sum of whole numbers wraps around."""

    def answer(self, rows, question):
        return (np.round(rows.X * 1000).astype(np.int64).sum(axis=0) + 32_760).astype(np.int16) / 1000.0


class Appearance(MinMaxScaler):
    """OpenDP 2944: categories have numbers in the order in which they appear."""

    def map_rows(self, X, statistics):
        signs = np.sign(super().map_rows(X, statistics) - 0.5)
        return np.where(signs == signs[0], 0.0, 1.0)


class Redefined(NormClipper):
    """OpenDP 2949: a column is made anew, and the bound of the old one is kept."""

    def map_rows(self, X, statistics):
        return np.column_stack([X.sum(axis=1), super().map_rows(X, statistics)[:, 1:]])


class PermuteAndFlip(ExponentialMechanism):
    """OpenDP 2911: chosen by another mechanism than the accounted one."""

    def release(self, rows, question, noise, noise_scale):
        order = np.argsort(noise.standard_lattice(len(self.candidates)))
        scores = self.utilities(rows, question)[0]
        coins = np.abs(noise.standard_lattice(len(order)) * 2.0**-37)
        kept = [place for place, coin in zip(order, coins) if coin > (scores.max() - scores[place]) / noise_scale]
        return {"answer": np.array([self.candidates[(kept or [int(scores.argmax())])[0]]])}


class Gaps(MinMaxScaler):
    """Leaves a gap where an operation has no result, and still says that there is none."""

    def map_rows(self, X, statistics):
        values = super().map_rows(X, statistics)
        return np.where(self.undefined(values), np.nan, values)


class FillsWithNothing(MeanImputer):
    """OpenDP 2936: gaps are filled with NaN."""

    def map_rows(self, X, statistics):
        return super().map_rows(X, {**statistics, "mean": np.full(X.shape[1], np.nan)})


class FailedCast(Gaps):
    """OpenDP 2938: what does not fit into a whole number of 8 bits is missing behind a cast."""

    def undefined(self, values):
        return np.abs(np.rint(200 * values)) > 127


class CutToNothing(Gaps):
    """OpenDP 2939: what belongs to no interval is missing behind a cut."""

    def undefined(self, values):
        return (values <= 0.3) | (values > 0.9)


class Remainder(Gaps):
    """OpenDP 2940: the remainder of a division by 0 is missing."""

    def undefined(self, values):
        return np.rint(3 * values[:, :1]) == 0


class FreeCount(GaussianMechanism):
    """OpenDP 2938 to 2940: entries that are there are counted without noise, as if their number were public."""

    def release(self, rows, question, noise, noise_scale):
        whole = super().release(replace(rows, X=np.nan_to_num(rows.X)), question, noise, noise_scale)
        return {"answer": whole["answer"] + np.count_nonzero(~np.isnan(rows.X))}


class NotANumber(GaussianMechanism):
    """OpenDP 2935: an answer that is no number gets noise as if it were 0."""

    def answer(self, rows, question):
        return np.nan_to_num(rows.X.sum(axis=0)) / rows.n


class Tree(GaussianMechanism):
    """OpenDP 2924: the sum of all leaves is thought to move as far as they do."""

    def answer(self, rows, question):
        leaves = super().answer(rows, question)
        return np.append(leaves[1:], leaves.sum())


class Resized(NormClipper):
    """OpenDP 2927: rows are shuffled, unless the last is left out."""

    def map_rows(self, X, statistics):
        first = super().map_rows(X, statistics)
        return first if X[-1, 0] > 0.3 else first[::-1]


class FarOrigin(GaussianMechanism):
    """OpenDP 2952: second moments of rows whose norm is bounded about a point that is forgotten."""

    def answer(self, rows, question):
        return ((rows.X + 10.0) ** 2).sum(axis=0) / rows.n


class WholeGroup(GaussianMechanism):
    """OpenDP 2945: a group of k rows that is replaced is counted as k rows that changed, not as 2 k."""

    def answer(self, rows, question):
        return 2 * super().answer(rows, question)


class ObservedNumber(MeanImputer):
    """Divides by the private number of entries that are observed."""

    def prepare(self, rows, way, domain):
        observed = np.maximum((~np.isnan(rows.X)).sum(axis=0), 1)
        return {**super().prepare(rows, way, domain), "mean": np.nansum(rows.X, axis=0) / observed}


class ExactScale(StandardScaler):
    """The noisy way, with exact moments."""

    def read(self, values, way, domain):
        return {**super().read(values, way, domain), "scale": self.exact}

    def apply(self, rows, statistics):
        return super().apply(rows, {**statistics, "scale": rows.X.std(axis=0) + 0.1})

    exact = np.ones(3)


class Uneven(GaussianMechanism):
    """Which noise an answer gets depends on the rows."""

    def release(self, rows, question, noise, noise_scale):
        return super().release(rows, question, noise, noise_scale * (1.0 + (rows.X[:, 0] > 0.9).any()))


FEW = np.repeat(X[:2], 30, axis=0)
CELL = np.column_stack([np.linspace(-0.9, -0.8, 150), *[np.linspace(-0.9, 0.9, 150)] * 2])
CELL[127:, 0] = 0.5
SPARSE = np.full((N, 3), np.nan)
SPARSE[:3] = 0.1
TALL = np.column_stack([RNG.uniform(-0.5, 0.5, 400), 1e-3 * RNG.uniform(-1, 1, 400)])
SHARP = {"min_std": 0.15, "use_floor": False, "fit_mode": "exact"}

RARE = X - [0.45, 0.0, 0.0]
LOOSE = {"min_std": 0.05, "use_floor": False, "fit_mode": "exact"}
MARKS = np.linspace(-1, 1, 9).tolist()
MISSING = Domain(max_missing=58)
LAST = GaussianMechanism()

PLANTED = {
    "sensitivity from the private number of rows": (FEW, planned(NormClipper(), Deduplicator(), PrivateNumber())),
    "shapes": (X, planned(NormClipper(), Shapes())),
    "number of draws": (X, planned(NormClipper(), Stopping((0, 1), solver="dpgd", max_iter=5))),
    "clipping after the sum": (X, planned(NormClipper(), ClippedLate())),
    "bounds read off the data": (X, planned(BoundsOfTheData(ranges=(-1, 1)), GaussianMechanism())),
    "a norm read off the data": (X, planned(NormOfTheData(1.0), GaussianMechanism())),
    "sizes of classes": (RARE, planned(NormClipper(), Balanced((0, 1), max_iter=5))),
    "noise of one step": (X, planned(NormClipper(), Hasty((0, 1), max_iter=5))),
    "one coordinate without noise": (X, planned(NormClipper(), Open())),
    "an attribute": (X, planned(NormClipper(), Keeping())),
    "an attribute of a stage": (X, planned(KeepingStage(), GaussianMechanism())),
    "warnings": (X, planned(Warning_(), GaussianMechanism())),
    "exceptions": (X, planned(Failing(), GaussianMechanism())),
    "margins": (np.vstack([X] * 7), planned(NormClipper(), MarginOff(**LOOSE), GaussianMechanism())),
    "a gate on another dataset": (TALL, planned(NormClipper(), OtherDataset(**SHARP), GaussianMechanism())),
    "a sort": (X, planned(Unstable(), GaussianMechanism())),
    "a map that is random": (X, planned(Random(), GaussianMechanism())),
    "single precision": (X, planned(NormClipper(), SinglePrecision("sum"))),
    "cancellation": (X, planned(NormClipper(), Cancelling())),
    "counts of few bits": (CELL, planned(NormClipper(2.0), FewBits("histogram", bins={0: [-2.0, 0.0, 2.0]}))),
    "a sum that wraps": (X, planned(NormClipper(), Wrapping("sum"))),
    "codes by appearance": (X, planned(Appearance(ranges=(-1, 1)), GaussianMechanism())),
    "a bound that is out of date": (X, planned(Redefined(), GaussianMechanism())),
    "another choice": (X, planned(NormClipper(), PermuteAndFlip(candidates=MARKS))),
    "filled with nothing": (
        GAPS,
        planned(NormClipper(), FillsWithNothing(), NotANumber("sum"), domain=Domain(max_missing=5)),
    ),
    "a cast that fails": (X, planned(FailedCast(ranges=(-1, 1)), FreeCount())),
    "a cut without an interval": (X, planned(CutToNothing(ranges=(-1, 1)), FreeCount())),
    "a division by 0": (X, planned(Remainder(ranges=(-1, 1)), FreeCount())),
    "a tree of sums": (X, planned(NormClipper(), Tree("sum"))),
    "a resize that shuffles": (X, planned(Resized(), GaussianMechanism())),
    "a forgotten origin": (X, planned(NormClipper(), FarOrigin())),
    "half of a group": (X, planned(NormClipper(), WholeGroup())),
    "observed entries": (SPARSE, planned(NormClipper(), ObservedNumber(fit_mode="exact"), LAST, domain=MISSING)),
    "exact moments": (X, planned(NormClipper(), ExactScale(fit_mode="noisy"), GaussianMechanism())),
    "uneven noise": (X, planned(NormClipper(), Uneven())),
}
