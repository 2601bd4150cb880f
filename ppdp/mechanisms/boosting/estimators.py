"""Gradient boosting as scikit-learn has it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit
from sklearn.base import ClassifierMixin, RegressorMixin, clone

from ppdp.bounds.boosting import LINEAR as PREFIX
from ppdp.bounds.boosting import LOSSES as LINEAR
from ppdp.bounds.boosting import POWERS, answers, derived, n_scores
from ppdp.core.checks import choice, integer, number, without_effect
from ppdp.core.distance import Distance
from ppdp.core.domain import Domain, largest_entry
from ppdp.data.cell_grid import CellGrid, Codes
from ppdp.data.rows import Array, Rows
from ppdp.data.unit_conversion import Columns
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms.base import PRESENT, Mechanism, QuerySpec, SharedDocstring
from ppdp.mechanisms.boosting.columns import categories_of, coded, directions_of, doubts
from ppdp.mechanisms.boosting.explain import Explained
from ppdp.mechanisms.boosting.model import AdditiveModel
from ppdp.mechanisms.boosting.plans import share_of_edges, terms, usual_cells
from ppdp.mechanisms.boosting.rounds import models
from ppdp.mechanisms.boosting.training import Training
from ppdp.mechanisms.learn.regression import LARGEST_EXPONENT
from ppdp.mechanisms.learn.solvers import USUAL_MU, Newton, TrainingConfig
from ppdp.mechanisms.outcomes import ClassModel
from ppdp.mechanisms.standalone import Supervised
from ppdp.mechanisms.target_functions import FunctionOfTargets
from ppdp.mechanisms.thresholds import TunedByCounts
from ppdp.privacy.noise.sampler import Noise

OF_TARGETS = 0.04  # of mu², which the histogram of the targets has
# At which rows of shapes are clipped, over the root of how many numbers they have: the first, and the second at most,
# with the root of `n mu / √(2 d)` over the third in between. A clip is a bias that no number of rows removes.
NORM = 4.0, 16.0, 1000.0
ROUNDS = (2000.0, 8000.0, 32000.0)  # `n mu / √(2 d)`, from which on there is one round more
# Trees, how often each halves the rows, and `n mu / √(2 d)`, over the root of the number of scores, from which on; and
# their share of mu², which all else has less.
TREES, SHARE_OF_TREES = {8000.0: (16, 7), 24000.0: (16, 10), 128000.0: (32, 12)}, 0.25
FORMULA_LOSSES = {
    "squared_error": "squared",
    "absolute_error": "quantile",
    "gamma": "gamma",
    "poisson": "poisson",
    "quantile": "quantile",
}
INTERACTIONS = {"pairwise": True, "no_interactions": False}


def usual_norm(certain: float) -> float:
    """At which rows of shapes are clipped, over the root of how many numbers they have."""
    least, most, few = NORM
    return min(max(least * math.sqrt(certain / few), least), most)


@dataclass(eq=False, repr=False)
class GradientBoosting(Explained, SharedDocstring, Supervised):
    """Mixin for boosted shapes of columns and of pairs of columns.

    Parameters
    ----------
    max_iter : int or "auto", default="auto"
        Rounds after the first histogram and the linear model of its shapes, trees of many rows beside. "auto": 1 to 4,
        more of more rows.
    max_bins : int or "auto", default="auto"
        Cells of the range of a column of numbers, a power of 2 from 4 to 1024, finer where noisy shares say that rows
        are; missing values have one of their own, and cells of few rows are merged. "auto": 64, of few rows 16, of
        many 256 or 1024.
    categorical_features : mapping, sequence of columns or None, default=None
        Columns, by name or position, that hold the codes 0, 1, ... of categories, as
        ``CategoryEncoder(encoding="ordinal")`` makes them; with the number of categories of each, or as many as the
        public bound on entries allows. None: those that the stages in front have made, where a pipeline knows it.
        Beside them numbers are taken to lie between -1 and 1, as
        :class:`~ppdp.transformers.MinMaxScaler` puts them; others count as its ends.
    interaction_cst : {"pairwise", "no_interactions"} or None, default=None
        Whether the last round is one of tables of two columns. None: where noise leaves them to be seen, or where
        single columns say hardly anything, both by released numbers; and of many rows 16 or 32 trees follow, of columns
        that are drawn, for what three and more of them do together.
    monotonic_cst : array-like of int of shape (n_features,), dict or None, default=None
        1 of columns with which predictions must not fall, -1 of those with which they must not rise, else 0; a dict
        names some of them. Their shapes are made so, and they have no tables. Of targets and two classes.
    noise_scale : float, optional
        Standard deviation of the noise on each answer; a pipeline sets it.
    random_state : int, RandomState instance or None, default=None
        For tests only: noise that can be predicted protects nobody.

    Attributes
    ----------
    feature_importances_ : ndarray of shape (n_features,)
        Standard deviation of what each column adds to the score, tables with others included, as shares of their sum;
        from released numbers only.
    expected_value_ : float or ndarray of shape (n_classes,)
        What :meth:`shap_values` are added to.
    models_ : list
        The sum of tables and trees of each score.
    n_iter_ : int
        Rounds, trees included.

    Notes
    -----
    The model adds up a shape of every column and tables of pairs of columns, all of them constant in bins, and of many
    rows trees of several columns, so it is a sum of trees (``docs/theory/boosting.md``). No imputer, scaler or one-hot
    encoder is needed in front, only what makes ranges public. **Guarantee**: ``μ = 2 √A / (n σ)`` for one row that is
    replaced or moved, with A answers: a histogram, and for every score those of a linear model
    (``docs/theory/newton.md``) and the rounds.
    """

    _: KW_ONLY
    max_iter: int | str = "auto"
    max_bins: int | str = "auto"
    categorical_features: Any = None
    interaction_cst: str | None = None
    monotonic_cst: Any = None
    noise_scale: float | None = None
    random_state: Any = None

    needs_y = True
    predicts = True
    in_memory = False
    weighs = True
    fills_gaps = True
    takes_codes = True
    noise_borne = 0.11  # at 0.16 a third of fits scored no better than a constant, at 0.10 none
    _example: ClassVar[Mapping[str, Any]] = {
        "max_bins": 16,
        "max_iter": 1,
        "interaction_cst": "no_interactions",
        "noise_scale": 1e-3,
    }

    def _of_loss(self, domain: Domain) -> dict[str, Any]:
        """Parameters of the formula that follow from loss and labels."""
        raise NotImplementedError

    def _factors(self, domain: Domain) -> tuple[tuple[float, ...], float]:
        """As what parts of the largest weight losses of each class count, empty if all weigh the same; and that."""
        return (), 1.0

    _doubts: ClassVar[tuple[str, ...]] = ()  # warnings of columns that are no numbers or categories as they should be

    writes_units = True

    def in_units(self: Any, columns: Columns) -> Any:
        found, codes = clone(self), coded(columns)
        if self.categorical_features is None and codes:
            found.set_params(categorical_features=codes)
        found._doubts = doubts(found.categorical_features, columns)
        return found

    def query_spec(self: Any, domain: Domain, mu: float | None = None) -> QuerySpec:
        return self.query_spec_at(domain, Distance(replaced=1), mu)

    def query_spec_at(self: Any, domain: Domain, distance: Distance, mu: float | None = None) -> QuerySpec:
        of_loss, categories, bound = self._of_loss(domain), categories_of(self, domain), largest_entry(domain)
        certain = domain.n * (mu or USUAL_MU) / math.sqrt(2 * domain.d)
        rounds, scores = self._rounds(certain), n_scores(of_loss.get("n_classes", 2))
        targets = "y_range" in of_loss
        lines, indicators, shares = terms(categories, domain.n * (mu or USUAL_MU), certain)
        norm = usual_norm(certain) * math.sqrt(domain.d + sum(indicators))
        usual = derived(domain, norm, indicators)
        linear = self._linear(usual, (mu or USUAL_MU) * math.sqrt(shares[1] / scores), of_loss)
        directions = directions_of(self, domain, categories, scores)
        trees = self._trees(certain / math.sqrt(scores), directions)
        edges = {} if all(categories) else {"share_of_edges": share_of_edges(certain)}
        of_trees = {"trees": trees, "share_of_trees": SHARE_OF_TREES} if trees else {}
        rest = 1 - sum(part for name, part in {**edges, **of_trees}.items() if name.startswith("share"))
        rounds, shares = rounds + (trees or [0])[0], (rest * shares[0], rest * shares[1])
        if self.interaction_cst is not None:
            choice("interaction_cst", self.interaction_cst, list(INTERACTIONS), self)
        parameters = {
            "categories": list(categories),
            "bound": min(bound, 1.0) if any(categories) else bound,
            "cells": self._cells(certain),
            "shares": [*shares, *[OF_TARGETS] * targets],
            "rounds": rounds,
            "norm": norm,
            "terms": [max(both) for both in zip(lines, indicators)],
            **{f"{PREFIX}{name}": value for name, value in linear.items()},
            "replaces": distance.moved_as_replaced().unmatched[0] > 0,
            **({"directions": directions} if any(directions) else {}),
            **edges,
            **of_trees,
            **of_loss,
        }
        question = QuerySpec.asked("learning.boosting", "mechanism", domain, parameters, answers(parameters))
        factors, largest = self._factors(domain)
        largest *= domain.max_weight or 1.0
        return replace(question, factors=factors, largest_weight=largest, warnings=self._doubts)

    def _linear(self, domain: Domain, mu: float, of_loss: Mapping[str, Any]) -> dict[str, Any]:
        """How the linear model of shapes is trained."""
        formula = f"learning.{LINEAR[of_loss['loss']]}-gradient"
        power = {"power": POWERS[of_loss["loss"]]} if of_loss["loss"] in POWERS else {}
        config = TrainingConfig(
            type(self).__name__,
            {"dpgd": formula},
            {"fit_intercept": True, **power, **{name: of_loss[name] for name in ("y_range",) if name in of_loss}},
            alpha=None,
            max_iter=None,
            batch_size=None,
            learning_rate=1.0,
            usual_step=True,
            newton_alpha=1.0,
        )
        parameters = dict(Newton().query_spec(domain, config, mu).parameters)
        for name in ("loss", "norm", "y_range"):
            parameters.pop(name, None)
        return parameters

    def _rounds(self, certain: float) -> int:
        if isinstance(self.max_iter, str) and self.max_iter == "auto":
            return 1 + sum(certain >= least for least in ROUNDS)
        return integer("max_iter", self.max_iter, self, most=1000)

    def _trees(self, certain: float, directions: Sequence[int]) -> list[int]:
        """How many trees, and how often they halve the rows; none where columns must not go together."""
        if self.interaction_cst is not None or directions.count(0) < 2:
            return []
        return list(next((trees for least, trees in reversed(TREES.items()) if certain >= least), ()))

    def _cells(self, certain: float) -> int:
        if isinstance(self.max_bins, str) and self.max_bins == "auto":
            return usual_cells(certain)
        cells = integer("max_bins", self.max_bins, self, least=4, most=1024)
        if cells & (cells - 1):
            what = f"max_bins must be a power of 2, got {cells}."
            fix = f"max_bins={2 ** round(math.log2(cells))}."
            raise InvalidParameter(what, stage=type(self).__name__, fix=fix, parameter="max_bins")
        return cells

    def settle(self, question: QuerySpec) -> None:
        trees, _ = question.parameters.get("trees", (0, 0))
        self.max_iter, self.max_bins = question.parameters["rounds"] - trees, question.parameters["cells"]

    def release(self, rows: Rows, question: QuerySpec, noise: Noise, noise_scale: float) -> dict[str, Array]:
        cells = _cells_of(question)
        interactions = None if self.interaction_cst is None else INTERACTIONS[self.interaction_cst]

        def answer(values: Array) -> Array:
            return noise.release(values, noise_scale, question.bound)

        training = Training.of(
            rows,
            cells,
            answer,
            noise_scale,
            question.size,
            question.parameters,
            interactions,
            question.parameters.get("directions", [0] * rows.d),
        )
        _, depth = question.parameters.get("trees", (0, 0))
        made, present = models(training)
        arrays = [model.to_arrays(depth) for model in made]
        return {name: np.array([each[name] for each in arrays]) for name in arrays[0]} | {PRESENT: present}

    def read(self: Any, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        self.n_iter_ = question.parameters["rounds"]
        cells, count = _cells_of(question), len(released["baseline"])
        arrays = {name: array for name, array in released.items() if name != PRESENT}
        of_score = ({name: array[score] for name, array in arrays.items()} for score in range(count))
        self.models_ = [AdditiveModel.from_arrays(cells, arrays) for arrays in of_score]
        spreads = np.sum([model.importances for model in self.models_], axis=0)
        self.feature_importances_ = spreads / max(float(spreads.sum()), 1e-300)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "models_")

    def _codes(self: Any, X: Any) -> list[Any]:
        """Cells of the values of every column."""
        X = self._new_rows(X, ensure_all_finite="allow-nan")
        return list(self.models_[0].codes(X))

    def _predicted(self, scores: Array) -> NDArray[Any]:
        """What rows of these scores are said to be."""
        raise NotImplementedError

    def predict(self, X: Any) -> NDArray[Any]:
        """Most likely label, or predicted target, of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows.
        """
        return self._predicted(self._scores(X))

    def _scores(self, X: Any) -> Array:
        """Score of each row, or of each row and class if there are several."""
        return self._scores_of(self._codes(X))

    def _scores_of(self, codes: list[Codes]) -> Array:
        scores = np.column_stack([model.scores(codes) for model in self.models_])
        return np.asarray(scores[:, 0] if len(self.models_) == 1 else scores)


def _cells_of(question: QuerySpec) -> CellGrid:
    parameters = question.parameters
    return CellGrid(tuple(parameters["categories"]), parameters["cells"], parameters["bound"])


@dataclass(eq=False, repr=False)
class GradientBoostingClassifier(TunedByCounts, ClassModel, GradientBoosting, ClassifierMixin, Mechanism):
    """Boosted shapes and tables for classes; of more than two classes each is told from all others.

    How: ``docs/theory/boosting.md``.
    """

    def _of_loss(self, domain: Domain) -> dict[str, Any]:
        return {"loss": "logistic", "n_classes": self._n_classes(domain)}

    def read(self, released: Mapping[str, Array], domain: Domain, question: QuerySpec) -> None:
        super().read(released, domain, question)
        self.models_ = [model.scaled(*self.calibration_) for model in self.models_]

    def steady_scores(self, X: Array) -> Array:
        return self._scores_of(self.models_[0].codes(X))

    def _probabilities(self, scores: Array) -> Array:
        if scores.ndim == 1:
            return np.column_stack([expit(-scores), expit(scores)])
        logs = log_expit(scores)
        shares = np.exp(logs - logs.max(axis=1, keepdims=True))
        return np.asarray(shares / shares.sum(axis=1, keepdims=True))


@dataclass(eq=False, repr=False)
class GradientBoostingRegressor(FunctionOfTargets, GradientBoosting, RegressorMixin, Mechanism):
    """Boosted shapes and tables for targets in a public range.

    Parameters
    ----------
    y_range : tuple of two floats, optional
        Public range of the targets, here or in the pipeline's domain; targets outside are clipped. For counts and
        amounts it must not begin below 0.
    loss : {"squared_error", "absolute_error", "gamma", "poisson", "quantile"}, default="squared_error"
        Least squares; medians; amounts and counts, whose logarithms shapes add up; or other quantiles.
    quantile : float, optional
        Share of the targets that shall lie below what is predicted, between 0 and 1, for ``loss="quantile"``.

    Notes
    -----
    A histogram of the targets is released first, for 4 % of mu². It says beyond which of them so few lie that they are
    better clipped, where the median is, and how far targets are spread around it.
    """

    _: KW_ONLY
    loss: str = "squared_error"
    quantile: float | None = None

    @property
    def log_link(self) -> bool:
        """Whether scores are logarithms of what is predicted."""
        return FORMULA_LOSSES[self.loss] in POWERS

    def _of_loss(self, domain: Domain) -> dict[str, Any]:
        loss = FORMULA_LOSSES[choice("loss", self.loss, list(FORMULA_LOSSES), self)]
        low, high = self._range(domain)
        of_loss: dict[str, Any] = {"loss": loss, "y_range": [low, high]}
        if loss in POWERS and (low < 0 or not 1e-100 <= high <= 1e100):
            what = "the range of counts and amounts must begin at 0 or above and end between 1e-100 and 1e100."
            fix = "pass y_range=(low, high) with low >= 0, or loss='squared_error'."
            raise InvalidParameter(what, stage=type(self).__name__, fix=fix, parameter="y_range")
        if loss in POWERS and self.target_func is not None:
            what = f"loss={self.loss!r} is about the targets themselves, so target_func has no place."
            fix = "loss='squared_error', or leave target_func out."
            raise InvalidParameter(what, stage=type(self).__name__, fix=fix, parameter="target_func")
        if self.loss == "quantile":
            if self.quantile is None or not 0 < number("quantile", self.quantile, self, least=0, most=1) < 1:
                what = "loss='quantile' needs a quantile between 0 and 1."
                fix = "quantile=0.9, or loss='absolute_error' for the median."
                raise InvalidParameter(what, stage=type(self).__name__, fix=fix, parameter="quantile")
            of_loss["quantile"] = float(self.quantile)
        else:
            without_effect(self, ("quantile",), f"loss={self.loss!r}", "loss='quantile'")
        if self.loss == "absolute_error":
            of_loss["quantile"] = 0.5
        return of_loss

    def _predicted(self, scores: Array) -> NDArray[Any]:
        if self.log_link:
            return super()._predicted(np.exp(np.clip(scores, -LARGEST_EXPONENT, LARGEST_EXPONENT)))
        low, high = self.learned_range_
        return super()._predicted(low / 2 + high / 2 + (high / 2 - low / 2) * scores)
