"""Signs of rows: what leaves, how often they are flipped, what it costs, and what is refused."""

import math
import warnings

import numpy as np
import pytest
from scipy import special, stats
from sklearn.base import clone

import ppdp
from ppdp import Adjacency, Distance, Domain, PrivacyLoss, make_pipeline
from ppdp.data.rows import Rows
from ppdp.exceptions import CertificateError, ImpossibleBudget, InvalidParameter, MissingBound, MissingBudget, NoRoute
from ppdp.mechanisms import LaplaceMechanism, SignMechanism
from ppdp.mechanisms.query import signs
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import MinMaxScaler, NormClipper, RandomProjection, StandardScaler

FLIPS = signs.FLIPS
ONE = Adjacency.replace().distance
BOX = Domain(n_rows=50, n_features=4, row_norm=2.0, entry_bound=1.0)
FALSE_ALARM = 1e-6


def released(mechanism, X, weight=None, noise=None, domain=None):
    X = np.atleast_2d(np.asarray(X, float))
    domain = domain or BOX.but(n_rows=len(X), n_features=X.shape[1])
    question = mechanism.query_spec(domain)
    rows = Rows.of(X) if weight is None else Rows(X, None, np.asarray(weight, float)).settled()
    fitted = clone(mechanism)
    arrays = mechanism.release(rows, question, noise or Noise(0), mechanism.noise_scale)
    fitted.read(arrays, domain, question)
    return fitted.signs_


class TestWhatLeaves:
    @pytest.mark.parametrize("flips", FLIPS)
    def test_signs_flip_as_often_as_is_said(self, flips):
        mechanism = SignMechanism(flips, 0.4 if flips in ("laplace", "gaussian") else 0.8, unit=0.25)
        for x in (1.0, 0.3, 1e-12, 0.0, -0.25, -0.8):
            found = released(mechanism, np.full((20_000, 2), x))
            flipped = (found != (-1 if x < 0 else 1)).sum()
            chance = float(mechanism.flip_probability(x))
            assert stats.binomtest(int(flipped), found.size, chance).pvalue > FALSE_ALARM
            rare = chance < 0.02
            assert (
                rare or chance == 0.5 or stats.binomtest(int(flipped), found.size, 1.25 * chance).pvalue < FALSE_ALARM
            )

    def test_their_form(self):
        found = released(SignMechanism(noise_scale=1.0), np.zeros((7, 3)))
        assert found.dtype == np.int8
        assert found.shape == (7, 3)
        assert set(np.unique(found)) == {-1, 1}

    def test_a_deleted_row_is_coins_and_a_light_one_keeps_its_signs(self):
        X, weight = np.ones((6000, 3)), np.tile([0.0, 0.5, 1.0], 2000)
        found = released(SignMechanism("laplace", 0.05), X, weight)
        assert abs(found[::3].mean()) < 0.1
        assert (found[1::3] == 1).all()
        assert (found[2::3] == 1).all()

    def test_flips_do_not_depend_on_blocks_or_on_each_other(self, monkeypatch):
        X = np.zeros((4000, 5))
        one = released(SignMechanism(noise_scale=1.0), X)
        monkeypatch.setattr(signs, "_BLOCK", 7)
        assert (released(SignMechanism(noise_scale=1.0), X) == one).all()
        assert abs(np.corrcoef(one[:-1].ravel(), one[1:].ravel())[0, 1]) < 0.05

    def test_numbers_that_are_none_do_not_stop_a_release(self):
        found = released(SignMechanism("laplace", 0.01), [[np.nan, np.inf, -np.inf, 5.0]], domain=BOX.but(n_rows=1))
        np.testing.assert_array_equal(found[0, 1:], [1, -1, 1])

    def test_randomness_is_the_operating_systems(self):
        X = np.zeros((10, 10))
        assert (
            released(SignMechanism(noise_scale=1.0), X, noise=Noise())
            != released(SignMechanism(noise_scale=1.0), X, noise=Noise())
        ).any()

    def test_a_word_is_compared_with_a_whole_threshold(self):
        """The word at the threshold keeps the sign, the one before flips it."""
        mechanism = SignMechanism("smooth", 0.3, unit=0.25)
        threshold = int(float(mechanism.flip_probability(0.9)) * 2**64)

        class Words(Noise):
            def words(self, count):
                return np.array([threshold, threshold - 1], dtype=np.uint64)[:count]

        np.testing.assert_array_equal(released(mechanism, [[0.9, 0.9]], noise=Words()), [[1, -1]])

    def test_alone(self):
        X = np.random.default_rng(0).uniform(-1, 1, (200, 3))
        fitted = SignMechanism("gaussian", 1e-3, random_state=0).fit(X)
        assert (fitted.signs_ == np.sign(X)).mean() > 0.99


class TestFlipProbability:
    def test_closed_forms(self):
        x, level = np.array([[0.1, -0.5, 0.51]]), np.array([[1, 2, 3]])
        eta = 1 / 0.7
        for flips, true in (
            ("randomized-response", np.full((1, 3), special.expit(-eta))),
            ("smooth", special.expit(-level * eta)),
            ("staircase", np.exp((1 - level) * eta) / (1 + np.exp(eta))),
            ("laplace", np.exp(-np.abs(x) / 0.7) / 2),
            ("gaussian", stats.norm.sf(np.abs(x) / 0.7)),
        ):
            found = SignMechanism(flips, 0.7, unit=0.25).flip_probability(x)
            np.testing.assert_allclose(found, true, rtol=2.0**-32)

    @pytest.mark.parametrize("flips", FLIPS)
    def test_it_is_a_fair_coin_at_0_and_never_more_and_falls(self, flips):
        for scale in (1e-300, 1e-3, 0.3, 20.0, 1e300):
            mechanism = SignMechanism(flips, scale, unit=0.1)
            x = np.concatenate([[0.0, 5e-324, 1e-300], np.geomspace(1e-9, 1e300, 400)])
            found = mechanism.flip_probability(x)
            assert found[0] == 0.5
            assert ((found >= 2.0**-20) & (found <= 0.5)).all()
            assert (np.diff(found) <= 0).all()
            assert (found == mechanism.flip_probability(-x)).all()
            assert (found * 2.0**53 == np.floor(found * 2.0**53)).all()

    def test_the_staircase_flips_no_sign_more_often_than_the_smooth_steps(self):
        x = np.linspace(0, 3, 1000)
        for scale in (0.1, 1.0, 10.0):
            stairs, smooth = (SignMechanism(f, scale, unit=0.2).flip_probability(x) for f in ("staircase", "smooth"))
            assert (stairs <= smooth).all()
        assert (stairs < smooth).any()

    def test_it_needs_what_a_pipeline_sets(self):
        with pytest.raises(MissingBudget):
            SignMechanism().flip_probability([1.0])
        with pytest.raises(MissingBound, match="unit"):
            SignMechanism(noise_scale=1.0).flip_probability([1.0])
        assert SignMechanism("laplace", 1.0).flip_probability([1.0]).shape == (1,)


class TestCost:
    @pytest.mark.parametrize("flips", ["staircase", "smooth", "randomized-response"])
    def test_of_every_entry_that_can_change(self, flips):
        def price(distance, unit=None):
            loss = SignMechanism(flips, 2.0, unit=unit).privacy_map(BOX, distance)
            return loss.epsilon(0.0)

        coin = math.log((1 + math.exp(0.5)) / 2)
        assert price(ONE) == pytest.approx(4 * 0.5, rel=1e-8)
        assert price(Distance(replaced=2)) == pytest.approx(8 * 0.5, rel=1e-8)
        assert price(Distance(toggled=1)) == pytest.approx(4 * coin, rel=1e-7)
        assert price(Distance(moved=3, radius=1e-6)) == pytest.approx(12 * 0.5, rel=1e-8)
        assert price(Distance(moved=30, radius=0.1, total=0.1)) == pytest.approx(120 * 0.5, rel=1e-8)
        assert price(Distance(moved=100, radius=0.1)) == pytest.approx(200 * 0.5, rel=1e-8)
        change = Adjacency.change(coordinate=0.3, count=2)
        assert price(change.entrance_distance(4)) == pytest.approx(2 * 0.5, rel=1e-8)
        assert price(Adjacency.change(l1=0.3).entrance_distance(4)) == pytest.approx(4 * 0.5, rel=1e-8)
        if flips != "randomized-response":
            assert price(change.entrance_distance(4), unit=0.15001) == pytest.approx(2 * 2 * 0.5, rel=1e-8)
            assert price(ONE, unit=0.501) == pytest.approx(4 * 4 * 0.5, rel=1e-8)
            assert price(ONE, unit=0.5) == pytest.approx(4 * 5 * 0.5, rel=1e-8)  # rounding may cross one more

    def test_no_sign_costs_more_than_its_floor(self):
        loss = SignMechanism(noise_scale=1e-200).privacy_map(BOX, ONE)
        assert loss.epsilon(0.0) == pytest.approx(4 * math.log(2**20 - 1), rel=1e-8)

    def test_laplace_is_that_of_rows_and_falls_with_the_distance(self):
        for distance in (ONE, Distance(moved=50, radius=1e-3), Adjacency.change(coordinate=0.1).entrance_distance(4)):
            own = SignMechanism("laplace", 0.4).privacy_map(BOX, distance).epsilon(0.0)
            rows = LaplaceMechanism("rows", 0.4).privacy_map(BOX, distance).epsilon(0.0)
            assert own <= rows * (1 + 1e-6)
            assert distance == ONE or own == pytest.approx(rows, rel=1e-6)
        opposite = 4 * math.log(2 * math.exp(1 / 0.4) - 1)
        assert SignMechanism("laplace", 0.4).privacy_map(BOX, ONE).epsilon(0.0) == pytest.approx(opposite, rel=1e-6)

    def test_gaussian_signs_need_a_delta(self):
        for distance in (ONE, Adjacency.change(l2=0.1).entrance_distance(4)):
            assert SignMechanism("gaussian", 1.0).privacy_map(BOX, distance).epsilon(0.0) == math.inf

    def test_a_unit_chosen_for_a_distance_is_just_above_its_changes(self):
        for distance, most in (
            (ONE, 2.0),
            (Distance(toggled=1), 1.0),
            (Adjacency.change(l1=0.1).entrance_distance(4), 0.1),
        ):
            unit = SignMechanism().query_spec_at(BOX, distance).parameters["unit"]
            assert most < unit <= most * (1 + 1e-6)

    def test_a_certificate_with_an_impossible_unit_is_refused(self):
        formula = ppdp.bounds.lookup("signs.smooth", "privacy")
        with pytest.raises(CertificateError):
            formula(BOX, ONE, noise_scale=1.0, unit=0.0)


class TestInAPipeline:
    CHANGE = Adjacency.change(coordinate=0.5)

    def fitted(self, *, flips="staircase", family="oporp", **parameters):
        X = np.random.default_rng(0).uniform(-1, 1, (60, 20))
        steps = MinMaxScaler(ranges=(-1, 1)), RandomProjection(8, family=family), SignMechanism(flips)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ppdp.exceptions.CompositionWarning)
            return make_pipeline(*steps, **{"epsilon": 4.0, "adjacency": self.CHANGE, **parameters}).fit(X)

    @pytest.mark.parametrize("flips", FLIPS)
    def test_certificates_verify_and_say_the_law(self, flips):
        pipe = self.fitted(flips=flips, family="rademacher")
        certificate = pipe.certificate_
        assert certificate.verify()
        assert certificate["status"] == "UNCONDITIONAL"
        assert certificate["mechanism"]["formula"] == f"signs.{flips}"
        assert "random flips" in certificate.to_text(full=True)
        assert "The order of the rows" in certificate.to_text(full=True)
        assert "flipped at random; nothing else of them was used" in certificate.to_html()

    def test_one_coordinate_costs_one_sign_behind_oporp_and_all_behind_dense_matrices(self):
        given = {"delta": 0.0, "diagnostics": None}
        assert self.fitted(**given)[-1].noise_scale == pytest.approx(1 / 4, rel=1e-6)
        assert self.fitted(**given, family="rademacher")[-1].noise_scale == pytest.approx(8 / 4, rel=1e-6)
        everything = self.fitted(**given, adjacency=Adjacency.change(l1=0.5))[-1].noise_scale
        assert everything == pytest.approx(8 / 4, rel=1e-6)

    def test_many_signs_are_composed(self):
        pure, composed = (
            SignMechanism().calibrate(
                Domain(n_rows=9, n_features=256, row_norm=16.0, entry_bound=1.0),
                ONE,
                PrivacyLoss(parts=(ppdp.privacy.losses.Pure(epsilon=10.0),)),
                delta=delta,
            )
            for delta in (1e-15, 1e-6)
        )
        assert composed.noise_scale == pytest.approx(1 / 0.1167, rel=2e-2)
        assert pure.noise_scale > 1.5 * composed.noise_scale

    def test_delta_0_is_impossible_for_gaussian_signs(self):
        with pytest.raises((NoRoute, ImpossibleBudget)):
            self.fitted(flips="gaussian", delta=0.0)

    def test_every_row_that_a_fitted_stage_moves_counts(self):
        domain = Domain(n_rows=400, n_features=2, row_norm=1.0)
        steps = NormClipper(1.0), StandardScaler(fit_mode="exact", clip=1.0)
        plan = make_pipeline(*steps, SignMechanism(), epsilon=8.0, delta=1e-6, gate=None).plan(domain)
        assert sum(part.count for part in plan.mechanism.loss.parts) == 400 * 2
        assert plan.mechanism.noise_scale > 15

    def test_a_user_may_choose_the_unit(self):
        pipe = make_pipeline(NormClipper(1.0), SignMechanism(unit=0.5), epsilon=4.0, delta=0.0, diagnostics=None)
        plan = pipe.plan(Domain(n_rows=10, n_features=2))
        assert plan.mechanism.question.parameters == {"unit": 0.5}
        assert plan.mechanism.noise_scale == pytest.approx(2 * 5 / 4, rel=1e-6)  # 2 R is more than 4 steps


class TestAngles:
    """The matrix is drawn with the signs."""

    CHANGE = Adjacency.change(coordinate=0.5)
    X = np.random.default_rng(0).uniform(-1, 1, (300, 20))

    def fitted(self, X=X, k=24, floor=4.0, **parameters):
        last = SignMechanism("angle", n_signs=k, norm_floor=floor)
        pipe = make_pipeline(
            MinMaxScaler(ranges=(-1, 1)), last, **{"epsilon": 4.0, "adjacency": self.CHANGE, **parameters}
        )
        return pipe.fit(X)

    def test_a_release_and_its_files(self, tmp_path):
        pipe = self.fitted()
        own, certificate = pipe[-1], pipe.certificate_
        assert certificate.verify()
        assert certificate["status"] == "UNCONDITIONAL"
        assert certificate["mechanism"]["parameters"] == {"n_signs": 24, "norm_floor": 4.0}
        assert "delta is over the joint draw of matrix and flips" in " ".join(certificate.to_text(full=True).split())
        assert (own.signs_.shape, own.matrix_.shape) == ((300, 24), (24, 21))
        pipe.export(tmp_path / "signs.zip")
        loaded = ppdp.load(tmp_path / "signs.zip")
        np.testing.assert_array_equal(loaded[-1].matrix_, own.matrix_)
        table = pipe.release_.table
        table.to_parquet(tmp_path / "table.parquet")
        again = ppdp.SketchTable.from_parquet(tmp_path / "table.parquet")
        np.testing.assert_array_equal(again.signs, own.signs_)
        np.testing.assert_array_equal(loaded.project(self.X), pipe.project(self.X))
        pipe.release_.to_parquet(tmp_path / "signs.parquet")
        rows, _ = ppdp.read_parquet(tmp_path / "signs.parquet")
        np.testing.assert_array_equal(np.column_stack(rows.columns), own.signs_)

    def test_every_fit_draws_a_matrix_whatever_was_seeded(self):
        np.random.seed(0)  # noqa: NPY002
        one = self.fitted()[-1].matrix_
        np.random.seed(0)  # noqa: NPY002
        assert (self.fitted()[-1].matrix_ != one).mean() > 0.99

    def test_fewer_flips_than_for_a_matrix_that_was_there_before(self):
        joint = self.fitted(k=256)[-1].noise_scale
        steps = MinMaxScaler(ranges=(-1, 1)), RandomProjection(256), SignMechanism("randomized-response")
        given = make_pipeline(*steps, epsilon=4.0, adjacency=self.CHANGE).plan(Domain(n_rows=300, n_features=20))
        assert joint < given.mechanism.noise_scale / 3
        pure = self.fitted(k=256, delta=0.0, diagnostics=None)[-1].noise_scale
        assert pure == pytest.approx(256 / 4, rel=1e-6)

    def test_a_row_may_miss_the_floor_by_anything(self):
        X = np.vstack([np.zeros((150, 20)), self.X[:150]])
        assert (self.fitted(X)[-1].signs_ != 0).all()

    def test_estimated_angles_are_those_of_rows_with_the_floor(self):
        pipe = self.fitted(k=1024, floor=1.0, epsilon=450.0)
        queries, rows = (np.column_stack([X, np.ones(len(X))]) for X in (self.X[:20], self.X))
        unit = [A / np.linalg.norm(A, axis=1, keepdims=True) for A in (queries, rows)]
        true = np.arccos(np.clip(unit[0] @ unit[1].T, -1, 1))
        found = pipe.release_.table.angle(pipe.project(self.X[:20]))
        assert np.abs((found.value - true) / found.standard_error)[true > 0.1].max() < 6
        assert (pipe.release_.table.kneighbors(pipe.project(self.X[:20]), 1)[1][:, 0] == np.arange(20)).mean() > 0.8

    def test_behind_stages_of_every_adjacency(self):
        facts = Domain(n_rows=300, n_features=20)
        changes = (Adjacency.change(l1=0.5), None), (Adjacency.change(l2=0.5), None)
        for adjacency, share in ((Adjacency.replace(), 0.5), (Adjacency.add_remove(), 0.25), *changes):
            steps = MinMaxScaler(ranges=(-1, 1)), SignMechanism("angle", n_signs=16)
            plan = make_pipeline(*steps, epsilon=4.0, adjacency=adjacency).plan(facts)
            (part,) = plan.mechanism.loss.parts
            assert share is None or part.share == pytest.approx(share)


class TestRefusals:
    @pytest.mark.parametrize(
        ("mechanism", "words"),
        [
            (SignMechanism("angle", 1.0), "draws itself at the release, and n_signs is not set"),
            (SignMechanism("angle", 1.0, n_signs=0), "n_signs must be an integer"),
            (SignMechanism("angle", 1.0, n_signs=4, norm_floor=0.0), "norm_floor"),
            (SignMechanism("angle", 1.0, n_signs=4, norm_floor=math.nan), "norm_floor"),
            (SignMechanism(noise_scale=1.0, n_signs=4), "are parameters of flips='angle'"),
            (SignMechanism(noise_scale=1.0, norm_floor=1.0), "are parameters of flips='angle'"),
        ],
        ids=str,
    )
    def test_angles_need_a_matrix_of_their_own(self, mechanism, words):
        with pytest.raises(InvalidParameter, match=words) as caught:
            mechanism.query_spec(BOX)
        assert caught.value.stage == "SignMechanism"

    def test_angles_of_rows_that_are_too_wide(self):
        wide = Domain(n_rows=2, n_features=2**17 + 1, row_norm=1.0)
        with pytest.raises(InvalidParameter, match="at most 131072 columns"):
            SignMechanism("angle", 1.0, n_signs=4).query_spec(wide)

    def test_rows_without_a_bound(self):
        with pytest.raises(MissingBound):
            SignMechanism(noise_scale=1.0).privacy_map(Domain(n_rows=5, n_features=2), ONE)

    def test_what_no_neighbour_changes(self):
        for flips in FLIPS:
            with pytest.raises(InvalidParameter, match="nothing that noise could protect"):
                SignMechanism(flips).calibrate(BOX, Distance(), PrivacyLoss(1.0))


def test_behind_a_fitted_stage_the_plan_says_which_flips_stay_affordable():
    facts = Domain(n_rows=400, n_features=3, row_norm=1.0)

    def planned(flips):
        scaler = StandardScaler(fit_mode="exact", min_std=0.3)
        return make_pipeline(scaler, SignMechanism(flips), epsilon=8.0, delta=1e-6, gate=None).plan(facts)

    told = {flips: any("what rows moved together" in one for one in planned(flips).warnings) for flips in signs.FLIPS}
    assert told == {flips: flips not in ("laplace", "gaussian") for flips in signs.FLIPS}
