"""Private logistic regression against diffprivlib's and one epoch of SGDClassifier: accuracy and time.

Both sides run in one process on the same generated rows; needs ``pip install "ppdp[diffprivlib]"``. Ratios come last.
Ours is the whole of ``fit``: checks, clipping, plan, training, certificate.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import SGDClassifier
from threadpoolctl import threadpool_limits

from ppdp import make_pipeline
from ppdp.mechanisms import LogisticRegression
from ppdp.transformers import NormClipper

EPSILONS = (0.1, 0.5, 1.0, 2.0, 5.0)
PASSES = (5, 10, 20, 40, 80, 160, 320)

Array = NDArray[np.float64]


def generated(n: int, d: int, seed: int = 0) -> tuple[Array, NDArray[np.int64]]:
    """Rows of norm at most 1, and labels of a hyperplane that a twentieth of the rows ignore."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) / np.sqrt(d)
    X /= np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True))
    y = (X @ rng.normal(size=d) > 0).astype(np.int64)
    flipped = rng.random(n) < 0.05
    return X, np.where(flipped, 1 - y, y)


def theirs(epsilon: float) -> Any:
    """A model of diffprivlib with its defaults."""
    from diffprivlib.models import LogisticRegression as Theirs

    return Theirs(epsilon=epsilon, data_norm=1.0)


def ours(epsilon: float, passes: int | str = "auto", **public: Any) -> Any:
    """A pipeline with a public number of passes over the rows."""
    model = LogisticRegression(classes=(0, 1), solver="dpgd", max_iter=passes, **public)
    return make_pipeline(NormClipper(1.0), model, epsilon=epsilon, delta=1e-6)


def measured(make: Callable[[], Any], train: Any, test: Any, runs: int) -> tuple[float, float]:
    """Median seconds of a fit, and mean accuracy."""
    seconds, scores = [], []
    for _ in range(runs):
        model = make()
        start = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(*train)
        seconds.append(time.perf_counter() - start)
        scores.append(model.score(*test))
    return statistics.median(seconds), float(np.mean(scores))


def main() -> None:
    """Read the options, measure, then print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--threads", type=int, help="of linear algebra, on both sides; all by default")
    parser.add_argument("--learning-rate", type=float, help="ours, instead of the default")
    parser.add_argument("--max-coef-norm", type=float, help="ours, instead of the default")
    options = parser.parse_args()
    with threadpool_limits(options.threads):
        compare(options)


def compare(options: argparse.Namespace) -> None:
    """Both sides at every epsilon."""
    given = {"learning_rate": options.learning_rate, "max_coef_norm": options.max_coef_norm}
    public = {name: value for name, value in given.items() if value is not None}
    X, y = generated(options.rows + options.rows // 5, options.columns)
    train, test = (X[: options.rows], y[: options.rows]), (X[options.rows :], y[options.rows :])
    sgd, _ = measured(lambda: SGDClassifier(loss="log_loss", max_iter=1, tol=None), train, test, options.runs)
    print(f"one epoch of SGDClassifier: {sgd:.3f} s")
    lines = []
    for epsilon in EPSILONS:
        their_time, their_score = measured(lambda e=epsilon: theirs(e), train, test, options.runs)
        full_time, full_score = measured(lambda e=epsilon: ours(e, **public), train, test, options.runs)
        for passes in PASSES:
            early_time, early_score = measured(
                lambda e=epsilon, p=passes: ours(e, p, **public), train, test, options.runs
            )
            if early_score >= their_score:
                break
        print(
            f"epsilon {epsilon}: diffprivlib {their_score:.4f} in {their_time:.2f} s, ours {full_score:.4f} in"
            f" {full_time:.2f} s, after {passes} passes {early_score:.4f} in {early_time:.2f} s"
        )
        lines.append(
            f"epsilon {epsilon}: accuracy {full_score - their_score:+.4f} (goal > 0), time {full_time / their_time:.2f}"
            f" (goal 5), stopped at its accuracy {early_time / their_time:.2f} (goal 1)"
        )
    few, many = (measured(lambda p=p: ours(1.0, p, **public), train, test, options.runs)[0] for p in (20, 120))
    lines.append(f"one full pass over one epoch of SGDClassifier: {(many - few) / 100 / sgd:.3f} (goal 0.2)")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
