"""Maps that behave badly: they reorder and repeat rows, change their width, lose numbers, draw, raise and shout."""

import math
import time
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.random_projection import GaussianRandomProjection

from ppdp import Domain, make_pipeline
from ppdp.audit import Claim, attack_stability
from ppdp.audit import search as climbing
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import NormClipper

DOMAIN = Domain(n_rows=4, n_features=1, row_norm=1.0)
PAIR = Rows.of([[1.0], [0.0], [0.0], [0.5]]), Rows.of([[-1.0], [0.0], [0.0], [0.5]])


def attained(transform, *quantities, **settings):
    claim = Claim(transform, DOMAIN, dict.fromkeys(quantities, 1.0), **settings)
    return tuple(value for value, _ in claim.uses(PAIR).values())


class Sampler(BaseEstimator):
    """Returns the rows that a rule names, and says which."""

    def __init__(self, rule):
        self.rule = rule

    def fit_resample(self, X, y=None):
        self.sample_indices_ = self.rule(X)
        return X[self.sample_indices_], y


class TestSamplers:
    @pytest.mark.parametrize("order", [[3, 2, 1, 0], [2, 0, 3, 1]])
    def test_another_order_changes_no_row(self, order):
        assert attained(Sampler(lambda X: order), "linf", "l2", "slots", "mass") == (0, 0, 1, 2)

    def test_a_row_that_is_repeated_weighs_as_much_as_its_copies(self):
        thrice = Sampler(lambda X: [0, 1, 0, 2, 0, 3])
        assert attained(thrice, "linf", "slots", "mass", "one_sided") == (0, 1, 6, 3)

    def test_more_copies_of_a_shared_row_are_a_change_of_it(self):
        more = Sampler(lambda X: [0, 1, 2, 3, *[3] * (2 if X[0, 0] > 0 else 0)])
        assert attained(more, "linf", "reweighted", "mass") == (1, 1, 4)

    def test_a_mask_names_rows_too(self):
        assert attained(Sampler(lambda X: X[:, 0] >= 0), "slots", "mass") == (1, 1)

    def test_copies_that_differ_cannot_be_counted(self):
        class Jitter(Sampler):
            def fit_resample(self, X, y=None):
                out, y = super().fit_resample(X, y)
                return out + 0.1 * np.arange(len(out))[:, None], y

        with pytest.raises(InvalidParameter, match="copies of one row differ"):
            attained(Jitter(lambda X: [0, 0, 1, 2, 3]), "mass")

    @pytest.mark.parametrize("kept", [[0, 1, 2, 4], [-1, 0, 1, 2], [0, 1], [[0, 1, 2, 3]]], ids=str)
    def test_rows_that_are_named_wrongly(self, kept):
        class Wrong(BaseEstimator):
            def fit_resample(self, X, y=None):
                self.sample_indices_ = np.array(kept)
                return X, y

        with pytest.raises(InvalidParameter, match="unclear which output row"):
            attained(Wrong(), "slots")

    @pytest.mark.parametrize("transform", [lambda X: X[:2], lambda X: (X[:2], [0, 1])], ids=["lost", "a short mask"])
    def test_rows_that_are_lost_are_said_to_be(self, transform):
        with pytest.raises(InvalidParameter, match=r"unclear which output row.*mask of the rows"):
            attained(transform, "slots")


class TestOutputs:
    def test_datasets_of_different_widths_are_infinitely_far_apart(self):
        def wide(X):
            return np.zeros((len(X), len(np.unique(X))))

        one_more = Rows.of([[1.0], [0.0], [0.0], [0.5]]), Rows.of([[0.5], [0.0], [0.0], [0.5]])
        uses = Claim(wide, DOMAIN, {"l2": 0.0, "linf": 4}).uses(one_more)
        assert uses == {"l2": (math.inf, 0.0), "linf": (math.inf, 4.0)}
        assert attack_stability(Claim(wide, DOMAIN, {"l2": 0.0}), evaluations=20).violated

    @pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
    @pytest.mark.parametrize("side", [1, -1])
    def test_a_number_that_is_lost_or_infinite_has_moved_infinitely_far(self, bad, side):
        def spread(X):
            return np.where(side * X[0, 0] > 0, bad, X)

        found = attained(spread, "linf", "l2", "moved", "radius", "total")
        assert found == (3, math.inf, 3, math.inf, math.inf)

    def test_a_row_with_other_gaps_is_replaced_where_replaced_rows_are_counted(self):
        def torn(X):
            return np.where((np.arange(4) == 2)[:, None] & (X[0, 0] > 0), np.nan, X)

        assert attained(torn, "slots", "mass", "radius", "l2") == (2, 4, 0, math.inf)
        assert attained(torn, "radius", "moved") == (math.inf, 1)

    @pytest.mark.parametrize("bad", [np.nan, np.inf])
    def test_the_same_gaps_and_infinities_are_no_move(self, bad):
        assert attained(lambda X: np.full(X.shape, bad), "linf", "l2", "radius") == (0, 0, 0)

    def test_an_infinite_bound_is_not_exceeded(self):
        report = attack_stability(Claim(np.negative, DOMAIN, {"l2": math.inf, "linf": 3}), evaluations=20)
        assert not report.violated
        width = Claim(lambda X: X.repeat(1 + (X[0, 0] > 0), axis=1), DOMAIN, {"l2": math.inf, "linf": 3})
        assert [f.quantity for f in attack_stability(width, evaluations=20).violations] == ["linf"]

    @pytest.mark.parametrize(
        "transform",
        [lambda X: X * 1j, lambda X: 3.0, lambda X: None, lambda X: np.full(X.shape, "a")],
        ids=["complex", "a scalar", "nothing", "words"],
    )
    def test_only_rows_of_real_numbers_are_measured(self, transform):
        with pytest.raises(InvalidParameter, match="no table of real numbers"):
            attained(transform, "l2")


class Remembers(BaseEstimator):
    seen = 0

    def fit_transform(self, X, y=None):
        type(self).seen += 1
        return X + self.seen


def test_a_claim_of_nothing_is_tried_on_all_pairs():
    report = attack_stability(Claim(np.abs, DOMAIN, {"l2": 0.0}), evaluations=100)
    assert (report.violated, report.worst.evaluations) == (False, 100)


class TestRandomMaps:
    @pytest.mark.parametrize("transform", [GaussianRandomProjection(1), Remembers()], ids=["random", "remembers"])
    def test_are_refused(self, transform):
        with pytest.raises(InvalidParameter, match=r"same dataset to different rows.*random_state"):
            attack_stability(Claim(transform, DOMAIN, {"linf": 0}), evaluations=5)

    def test_are_refused_where_they_draw_on_some_datasets_only(self):
        rng = np.random.default_rng(0)

        def rarely(X):
            return X + (rng.normal() if 0 < X[1, 0] < 0.5 else 0.0)

        claim = Claim(rarely, DOMAIN, {"l2": 0.0})
        claim.refuse_random(*PAIR)
        with pytest.raises(InvalidParameter, match="same dataset to different rows"):
            attack_stability(claim, evaluations=200)

    def test_are_fine_with_a_fixed_state(self):
        claim = Claim(GaussianRandomProjection(1, random_state=0), DOMAIN, {"linf": 0, "l2": 0.0})
        assert not attack_stability(claim, evaluations=20).violated

    def test_may_lose_the_same_numbers_each_time(self):
        Claim(lambda X: np.full(X.shape, np.nan), DOMAIN, {"l2": 0.0}).refuse_random(*PAIR)


class Own(NormClipper):
    """A stage of somebody who made a mistake in it."""

    def __init__(self, max_norm=1.0, mistake=None):
        super().__init__(max_norm)
        self.mistake = mistake

    def map_rows(self, X, statistics):
        return self.mistake(super().map_rows(X, statistics))


def fails_on_some(X):
    if X[0, 0] > 0:
        raise KeyError("a\x1b[31mb\nc")
    return X


class TestErrors:
    @pytest.mark.parametrize(
        ("transform", "words"),
        [
            (lambda X: X.meen(), "AttributeError: .* no attribute 'meen'"),
            (lambda: 0, "TypeError: .*positional argument"),
            (Sampler(lambda X: [99]), "IndexError"),
        ],
        ids=["a typo", "another signature", "a sampler"],
    )
    def test_of_a_map_that_never_runs_are_shown(self, transform, words):
        with pytest.raises(InvalidParameter, match=rf"on none of the pairs \({words}"):
            attack_stability(Claim(transform, DOMAIN, {"l2": 1.0}), evaluations=5)

    def test_pairs_that_are_refused_do_not_count(self):
        report = attack_stability(Claim(fails_on_some, DOMAIN, {"l2": 1.0}), evaluations=60)
        assert 0 < report.worst.counted < report.worst.evaluations == 60
        assert f"60 pairs of neighbouring datasets, {report.worst.counted} of them count" in repr(report)
        assert report.worst.to_dict()["counted"] == report.worst.counted

    def test_of_a_stage_say_which_stage(self):
        plan = make_pipeline(NormClipper(), Own(mistake=fails_on_some), GaussianMechanism(), epsilon=5.0).plan(
            Domain(n_rows=12, n_features=2)
        )
        with pytest.raises(InvalidParameter, match=r"'own, public': it raised KeyError: .* on made-up rows") as error:
            attack_stability(plan, evaluations=20)
        assert isinstance(error.value.__cause__, KeyError)

    @pytest.mark.parametrize(
        "mistake", [lambda X: X[:, :1], lambda X: X[:-1], lambda X: None], ids=["a column", "a row", "all"]
    )
    def test_of_a_stage_that_loses_rows_or_columns_say_so(self, mistake):
        with pytest.raises(InvalidParameter, match=r"'Own, public': its output has the shape .* instead of \(12, 2\)"):
            attack_stability(Own(mistake=mistake), Domain(n_rows=12, n_features=2), evaluations=5)

    def test_a_stage_that_answers_infinity_is_refuted(self):
        infinite = Own(mistake=lambda X: np.where(X[:1, :1] > 0, np.inf, X))
        assert attack_stability(infinite, Domain(n_rows=12, n_features=2), evaluations=20).violated


def named(value):
    """The same in every process."""
    return "function" if callable(value) else str(value)[:20]


def test_names_are_harmless_on_a_terminal():
    claim = Claim(np.negative, DOMAIN, {"l2": 0.1}, name="red\x1b[31m\nit: l2 0 of 1")
    report = attack_stability(claim, evaluations=5)
    for shown in (repr(report), repr(report.worst), report._repr_html_()):
        assert "\x1b" not in shown
        assert "red\ufffd[31m it: l2" in shown


class Watched:
    """Something to attack that looks at the progress bar."""

    name, world = "it", Claim(np.negative, DOMAIN, {"l2": 1.0}).world

    def __init__(self, bar):
        self.bar, self.seen = bar, []

    def uses(self, pair):
        self.seen.append(self.bar[-1])
        return {"l2": (abs(pair[0].X[0, 0]), 2.0)}


@pytest.mark.parametrize("limit", ["pairs", "seconds"])
def test_a_progress_bar_shows_what_is_spent(monkeypatch, limit):
    bar, began, asked = [], time.monotonic(), count()

    def watched(items, description):
        for done in items:
            bar.append(done / len(items))
            yield done

    monkeypatch.setattr(climbing, "progress", watched)
    monkeypatch.setattr(climbing, "time", SimpleNamespace(monotonic=lambda: began + next(asked) / 200))
    target = Watched(bar)
    search = climbing.search(target, evaluations=400, seconds=math.inf if limit == "pairs" else 1.0)
    assert search.counted == search.tried == len(target.seen)
    assert (search.tried == 400) == (limit == "pairs")
    assert target.seen[0] == 0
    assert 0 < np.diff(target.seen).max() < 0.04  # no leaps
    assert target.seen[-1] > 0.95
