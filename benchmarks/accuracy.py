"""Accuracy of the demo's pipeline against the same pipeline without privacy, over splits and noise draws.

Both sides run in one process; the losses are printed last.
"""

from __future__ import annotations

import argparse

import numpy as np
from sklearn.base import clone
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from ppdp import Pipeline, declare
from ppdp.cli.demo import build, without_privacy
from ppdp.transformers import MinMaxScaler


def knowing_nothing(epsilon: float, draws: int, categories: tuple[str, ...] = ()) -> list[float]:
    """AUC where every range is found with noise, and the categories of some columns, of which there may be 20 each.

    Only the number of rows is public.
    """
    known, X, y = build("flchain", epsilon=epsilon)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    facts = declare(X)
    facts.update({name: {"private": 20} if name in categories else "private" for name in X})
    first = facts.steps() if categories else [("range", MinMaxScaler(ranges="private"))]
    pipe = Pipeline([*first, *known.steps[1:]], epsilon=epsilon, delta=known.delta)
    return [roc_auc_score(y_test, clone(pipe).fit(X_train, y_train).decision_function(X_test)) for _ in range(draws)]


def auc(epsilon: float, split: int, draws: int) -> tuple[float, list[float]]:
    pipe, X, y = build("flchain", epsilon=epsilon)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=split)
    plain = without_privacy(pipe, X_train, y_train)
    private = [roc_auc_score(y_test, clone(pipe).fit(X_train, y_train).decision_function(X_test)) for _ in range(draws)]
    return roc_auc_score(y_test, plain.decision_function(X_test)), private


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10, help="noise draws on split 0")
    parser.add_argument("--splits", type=int, default=10, help="splits, with a few draws each")
    options = parser.parse_args()
    for epsilon in (1.0, 0.5):
        plain, private = auc(epsilon, 0, options.draws)
        spread = f"{np.mean(private):.4f} +- {np.std(private):.4f}"
        print(f"epsilon {epsilon}: split 0, without privacy {plain:.4f}, private {spread}")
        private = knowing_nothing(epsilon, options.draws)
        print(f"epsilon {epsilon}: no range is declared, private {np.mean(private):.4f} +- {np.std(private):.4f}")
        private = knowing_nothing(epsilon, options.draws, ("sex", "mgus"))
        print(f"epsilon {epsilon}: and no category, private {np.mean(private):.4f} +- {np.std(private):.4f}")
        losses = []
        for split in range(options.splits):
            plain, private = auc(epsilon, split, 3)
            losses.append(plain - np.mean(private))
        last = options.splits - 1
        print(
            f"epsilon {epsilon}: loss of AUC, mean of splits 0 to {last}: {np.mean(losses):.4f}, max {max(losses):.4f}"
        )


if __name__ == "__main__":
    main()
