"""Targets of whoever does not know better, or does: no false alarm, no crash, nothing that stays hidden."""

import dataclasses
import json
import math
from statistics import NormalDist

import numpy as np
import pytest

from ppdp import Domain
from ppdp.audit import FunctionTarget, GateTarget, PlanTarget, attack_output
from ppdp.audit.events import Event
from ppdp.audit.scores import finite, form_of, in_form
from ppdp.audit.target import Target
from ppdp.audit.trials import make_trials
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import GaussianMechanism
from ppdp.pipeline.pipeline import make_pipeline
from ppdp.privacy.loss import PrivacyLoss
from ppdp.transformers import NormClipper

pytestmark = pytest.mark.usefixtures("short_slices")
RUNS = {"runs": 400, "random_state": 0}
ANY = PrivacyLoss(mu=1.0)


def attacked(release, loss=ANY, **settings):
    return attack_output(FunctionTarget("hostile", release, loss), **{**RUNS, **settings})


def normal(noise):
    return NormalDist().inv_cdf(chance(noise))


def chance(noise):
    """Uniform in (0, 1)."""
    return (int.from_bytes(noise.random_bytes(8), "little") // 2**32 + 0.5) / 2**32


class Restarted(FunctionTarget):
    """A target whose own generator stands at its beginning in every slice, as in a process that was just started."""

    def outcomes(self, side, runs, noise):
        if side == 0:
            type(self).own = np.random.default_rng(7)
        return super().outcomes(side, runs, noise)


class TestRunsThatRepeat:
    """They are refused, because bounds for independent runs mean nothing; numbers that hardly vary are not."""

    def of(self, draw, width=1):
        def release(side, noise):
            return [normal(noise)] * (width - 1) + [draw(Restarted.own)]

        return Restarted("restarted", release, ANY)

    @pytest.mark.parametrize(
        "draw",
        [lambda own: own.normal(), lambda own: float(own.random() < 0.5), lambda own: float(own.random() < 0.02)],
        ids=["continuous", "coin", "rare"],
    )
    @pytest.mark.parametrize("width", [1, 3])
    @pytest.mark.repeated("width")
    def test_a_generator_that_starts_anew_is_seen(self, draw, width):
        with pytest.raises(InvalidParameter, match="20 of 20 slices of runs on one dataset"):
            make_trials(self.of(draw, width), 20, slice_runs=100, random_state=0)

    @pytest.mark.parametrize(
        "draw",
        [
            lambda noise: 0.0,
            lambda noise: [],
            lambda noise: None,
            lambda noise: math.nan,
            lambda noise: float(chance(noise) < 0.5),
            lambda noise: float(chance(noise) < 0.001),
            lambda noise: None if chance(noise) < 0.01 else 1.0,
            lambda noise: [0.0] * int(3 * chance(noise)),
        ],
    )
    def test_honest_numbers_of_few_values_are_not_refused(self, draw):
        target = FunctionTarget("honest", lambda side, noise: draw(noise), ANY)
        assert len(make_trials(target, 40, slice_runs=10, random_state=0).slices) == 40
        assert not attack_output(target, **RUNS).violated

    def test_noise_that_both_sides_share_is_no_repetition(self):
        target = FunctionTarget("coupled", lambda side, noise: None, ANY)
        found = {}

        class Coupled(FunctionTarget):
            def outcomes(self, side, runs, noise):
                if side == 0:
                    found["drawn"] = noise.standard_lattice((runs, 1)) * 2.0**-37
                return np.hstack([np.ones((runs, 1)), found["drawn"] + 0.5 * side])

        finding = attack_output(Coupled(target.name, target.release, ANY), **RUNS)
        assert not finding.violated


class TestNumbersThatAreNone:
    """NaN, infinite and huge outcomes are outcomes."""

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            (math.nan, 0.0),
            (math.nan, -math.inf),
            (math.inf, -math.inf),
            (math.inf, 1e308),
            (1e200, -1e200),
            (1e200, 1e250),
            (1e-300, 0.0),
        ],
    )
    def test_a_full_leak_is_refuted(self, one, other):
        for sides in ((one, other), (other, one)):
            assert attacked(lambda side, noise, sides=sides: sides[side]).violated

    @pytest.mark.parametrize("strange", [math.nan, math.inf, -math.inf, 1e300])
    @pytest.mark.repeated("strange", keep=2)
    def test_among_honest_numbers_they_are_no_alarm(self, strange):
        def release(side, noise):
            return strange if chance(noise) < 0.1 else normal(noise) + side

        assert not attacked(release).violated

    def test_so_are_those_of_a_target_that_makes_many_at_once(self):
        class Many(FunctionTarget):
            def outcomes(self, side, runs, noise):
                return np.column_stack([np.ones(runs), np.full(runs, (math.nan, math.inf)[side])])

        assert attack_output(Many("many", print, ANY), **RUNS).violated

    def test_scales_that_no_square_can_hold(self):
        assert not attacked(lambda side, noise: 1e306 * (normal(noise) + side)).violated

    def test_ordinary_numbers_stay_bit_for_bit_and_others_stay_distinct(self):
        plain = np.array([0.0, -0.0, 1.0, -1e100, 5e-324])
        assert finite(plain).tobytes() == plain.tobytes()
        strange = np.array([math.nan, math.inf, -math.inf, 1e101, 2e101, 1e308, -1e308, *plain[1:]])
        found = finite(strange)
        assert np.isfinite(found**2).all()
        assert len(np.unique(found)) == strange.size
        assert finite(found).tobytes() == found.tobytes()
        assert found[-4:].tobytes() == plain[1:].tobytes()

    @pytest.mark.parametrize("wrong", ["yes", 1j, object(), np.ones(2) * 1j, [1.0, ["x"]]])
    def test_what_holds_no_numbers_is_refused(self, wrong):
        with pytest.raises(InvalidParameter, match="no real number"):
            attacked(lambda side, noise: wrong)

    def test_lists_and_dictionaries_are_read(self):
        found = FunctionTarget("nested", lambda side, noise: {"b": [1, [2, 3]], "a": 0}, ANY).outcome(0, None)
        assert found[[0, 2, 3, 4, 5]].tolist() == [1, 0, 1, 2, 3]  # what stands for the keys comes first


class TestWidths:
    @pytest.mark.parametrize(("one", "other"), [([0.0], [0.0, 0.0]), ([], [0.0]), ([1.0], [1.0, 0.0, 0.0])])
    def test_how_much_is_released_is_seen(self, one, other):
        for sides in ((one, other), (other, one)):
            assert attacked(lambda side, noise, sides=sides: sides[side]).violated

    def test_a_width_that_noise_decides_is_no_alarm(self):
        assert not attacked(lambda side, noise: [normal(noise) + side] + [0.0] * int(4 * chance(noise))).violated

    def test_widths_stand_in_a_last_column_only_where_they_vary(self):
        refused, one, two = np.array([[0.0]]), np.array([[1.0, 5.0]]), np.array([[1.0, 5.0, 0.0]])
        assert form_of([one, refused]) == (2, False)
        assert in_form([one, refused], 2, False).tolist() == [[1, 5], [0, 0]]
        assert form_of([one, two, refused]) == (3, True)
        assert in_form([one, two, refused], 3, True).tolist() == [[1, 5, 0, 2], [1, 5, 0, 3], [0, 0, 0, 3]]

    def test_what_grows_wider_later_is_cut_to_the_form_of_the_runs_that_chose(self):
        assert in_form([np.array([[1.0, 5.0, 7.0]])], 2, False).tolist() == [[1, 5]]

    def test_that_is_what_statistics_see(self):
        target = FunctionTarget("wide", lambda side, noise: [7.0] * (1 + side), ANY)
        (left, right), _ = make_trials(target, 2, slice_runs=3, random_state=0).parts(0.5)
        assert left.tolist() == [[1, 7, 0, 2]] * 3
        assert right.tolist() == [[1, 7, 7, 3]] * 3


DOMAIN = Domain(n_rows=5, n_features=2, row_norm=2.0, entry_bound=1.5, max_missing=1, min_present=4)
PLAN = dataclasses.replace(
    make_pipeline(NormClipper(1.0), GaussianMechanism(), epsilon=5.0, delta=1e-6).plan(DOMAIN), domain=DOMAIN
)


def rows(count=0, value=1.0, shape=(5, 2), **changes):
    """Zeros, of which some rows begin with a value."""
    X = np.zeros(shape)
    X[:count, 0] = value
    return dataclasses.replace(Rows.of(X), **changes)


class TestWhatIsAttacked:
    def test_neighbours_may_differ_in_the_rows_of_one_person(self):
        assert isinstance(PlanTarget("one row", PLAN, rows(), rows(1)), Target)
        assert isinstance(PlanTarget("a gap", PLAN, rows(1, math.nan), rows(1, math.nan)), Target)
        two = dataclasses.replace(PLAN, domain=PLAN.domain.but(rows_per_unit=2))
        assert isinstance(PlanTarget("two rows", two, rows(), rows(2)), Target)

    @pytest.mark.parametrize(
        ("right", "words"),
        [
            (rows(2), "differ in 2 rows"),
            (rows(1, weight=np.array([1.0, 1.0, 0.0, 1.0, 1.0])), "differ in 2 rows"),
            (rows(1, y=np.zeros(5)), "labels"),
            (rows(shape=(6, 2)), r"shape \(5, 2\)"),
            (rows(shape=(5, 3)), r"shape \(5, 2\)"),
            (rows(weight=np.ones(4)), "one weight"),
            (rows(y=np.zeros(4)), "one label"),
            (rows(1, math.inf), "infinite"),
            (rows(weight=np.array([2.0, 1.0, 1.0, 1.0, 1.0])), "weights must lie"),
            (rows(weight=np.array([0.0, 0.0, 1.0, 1.0, 1.0])), "too few rows"),
            (rows(2, math.nan), "too many rows have gaps"),
            (rows(1, 3.0), "longer than row_norm"),
            (rows(1, 1.6), "larger than entry_bound"),
            (np.zeros((5, 2)), "must be Rows"),
            (None, "must be Rows"),
        ],
    )
    def test_other_datasets_are_refused_because_nothing_is_certified_of_them(self, right, words):
        for kind, pair in ((PlanTarget, (rows(), right)), (GateTarget, (right, rows()))):
            more = {"fails": True} if kind is GateTarget else {}
            with pytest.raises(InvalidParameter, match=words):
                kind("wrong", PLAN, *pair, **more)

    def test_labels_count(self):
        labelled = [rows(y=np.eye(5)[0] * side) for side in (0, 1, 0)]
        labelled[2] = dataclasses.replace(labelled[2], y=np.ones(5))
        assert isinstance(PlanTarget("label", PLAN, *labelled[:2]), Target)
        with pytest.raises(InvalidParameter, match="differ in 5 rows"):
            PlanTarget("labels", PLAN, labelled[0], labelled[2])


class TestNumbersThatAreGiven:
    def test_outcomes_of_another_shape_are_refused(self):
        class Wrong(FunctionTarget):
            def outcomes(self, side, runs, noise):
                return np.ones((runs - 1, 1))

        with pytest.raises(InvalidParameter, match="shape"):
            attack_output(Wrong("x", lambda side, noise: 0.0, ANY), **RUNS)


class TestFinding:
    def test_where_nothing_is_told_the_words_say_so(self):
        finding = attacked(lambda side, noise: None)
        assert finding.mu_low == -math.inf
        assert "no event that was tried tells the two datasets apart" in str(finding)
        assert "probability" not in str(finding)
        assert finding.refused == 400
        assert "400 of them refused" in str(finding)
        assert "probability" in str(attacked(lambda side, noise: float(side)))

    def test_of_an_event_that_is_nearly_sure_the_complement_is_shown(self):
        """Its odds are what epsilon follows from."""
        assert Event("epsilon", "histogram", 0.999, 0.5).bounds == pytest.approx((0.5, 0.001))
        assert Event("epsilon", "histogram", 0.5, 0.001).bounds == (0.5, 0.001)
        assert Event("mu", "histogram", 1.0, 1.0).bounds == (1.0, 1.0)

    def test_its_json_form_is_json(self):
        document = json.loads(json.dumps(attacked(lambda side, noise: None).to_dict(), allow_nan=False))
        assert document["mu_low"] is None
        assert document["violated"] is False
        told = attacked(lambda side, noise: float(side)).to_dict()
        assert told["mu_low"] > told["mu"] == 1.0
        assert [event["purpose"] for event in told["events"]] == ["mu", "epsilon", "loss"]
