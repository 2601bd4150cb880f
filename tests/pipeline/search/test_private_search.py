"""A search for parameters that is charged, chooses privately, and says what all of it costs."""

import math
import pickle

import numpy as np
import pytest
import searches
from searches import N, pipeline, search

import ppdp.pipeline.search.search
from ppdp import Adjacency, Certificate, Domain, Ledger, Pipeline, load
from ppdp.certificate.replay.rules import Exclusion
from ppdp.cli.main import main
from ppdp.exceptions import BudgetExceeded, ImpossibleBudget, InvalidValue, NoRoute, PrivacyRefusal
from ppdp.mechanisms import PoissonRegressor
from ppdp.pipeline.search.candidates import Candidate, select
from ppdp.pipeline.search.plan import Selection
from ppdp.privacy.gaussian import gaussian_mu
from ppdp.privacy.noise.sampler import Noise
from ppdp.transformers import PCA, NormClipper

data, fitted_once = searches.data, searches.fitted_once  # pytest finds fixtures by names in the test's own module


class TestWhatIsFound:
    def test_the_better_parameters(self, data):
        X, y = data
        found = search().fit(X[:2500], y[:2500])
        assert found.best_params_ == {"clip__max_norm": 2.0, "model__fit_intercept": True}
        assert found.score(X[2500:], y[2500:]) > 0.85
        assert found.best_score_ == pytest.approx(found.score(X[2500:], y[2500:]), abs=0.1)
        assert found.best_estimator_["clip"].max_norm == 2.0
        assert found.cv_results_["outcome"].tolist() == ["released"] * 4
        assert found.cv_results_["params"][found.best_index_] == found.best_params_

    def test_of_a_regression(self):
        rng = np.random.default_rng(0)
        X = rng.uniform(-1, 1, (N, 2))
        y = rng.poisson(np.exp(1.0 + X[:, 0]))
        pipe = Pipeline([("clip", NormClipper(2.0)), ("model", PoissonRegressor((0, 20)))])
        found = search(pipe, {"model__max_coef_norm": [0.01, 4.0]}, scoring="neg_mean_absolute_error").fit(X, y)
        assert found.best_params_ == {"model__max_coef_norm": 4.0}
        assert (found.predict(X) > 0).all()
        own = search(pipe, {"model__max_coef_norm": [0.01, 4.0]}, scoring=lambda y, p: 1 - abs(y - p) / 5, scores="all")
        assert own.fit(X, y).best_index_ == 1
        assert own.cv_results_["noisy_test_score"].shape == (2,)

    def test_a_list_of_grids(self, data):
        grid = [
            {"model__max_coef_norm": [1e-3]},
            {"model__fit_intercept": [True, False], "model__max_coef_norm": [5.0]},
        ]
        assert len(search(grid=grid).fit(*data).cv_results_["params"]) == 3


class TestBudget:
    def test_total_agrees_with_a_computation_by_hand(self, data):
        found = search(dataset="clinic").fit(*data)
        train, held_out = 2250, 750
        plan = found.summary_.plan
        fits = [
            pipeline(epsilon=fit.epsilon, delta=fit.delta)
            .set_params(**params, diagnostics=None)
            .plan(Domain(n_rows=train, n_features=3))
            .loss.mu
            for fit, params in zip(plan.fits, found.cv_results_["params"])
        ]
        assert [fit.loss.mu for fit in plan.fits] == pytest.approx(fits, rel=1e-9)
        eta = 2 / plan.selection.temperature
        z = 1 / (1 + math.exp(-eta / 2))
        from scipy.stats import norm

        chosen = math.hypot(2 * norm.ppf(z), 1 / (held_out * plan.selection.noise_scale))
        refit = found.best_estimator_.certificate_.mu
        total = math.sqrt(max(math.fsum(mu**2 for mu in fits), chosen**2) + refit**2)
        assert found.summary_.mu == pytest.approx(total, rel=1e-5)
        assert total == pytest.approx(gaussian_mu(2.0, 1e-6), rel=1e-4)
        assert found.summary_.loss.epsilon(1e-6 - plan.allowance) <= 2.0
        assert found.summary_.verify()

    def test_the_plan_is_what_is_run(self, data):
        declared = search().plan(Domain(n_rows=N, n_features=3))
        found = search().fit(*data)
        assert declared == found.summary_.plan
        assert declared.kept
        assert "nothing has been certified" in repr(declared)

    def test_share_is_that_of_the_search(self):
        domain = Domain(n_rows=N, n_features=3)
        for share in (0.2, 0.8):
            plan = search(share=share).plan(domain)
            fits = sum(fit.loss.mu**2 for fit in plan.fits)
            assert fits / plan.loss.mu**2 == pytest.approx(share, rel=1e-3)
            assert plan.selection.loss.mu**2 / plan.loss.mu**2 == pytest.approx(share, rel=1e-3)
        assert search(refit=False).plan(domain).refits == ()

    def test_rows_of_one_person_on_both_sides(self):
        alone = search().plan(Domain(n_rows=N, n_features=3))
        plan = search().plan(Domain(n_rows=N, n_features=3, rows_per_unit=2))
        fits = sum(fit.loss.mu**2 for fit in plan.fits)
        refit = max(fit.loss.mu for fit in plan.refits)
        assert plan.loss.mu == pytest.approx(math.sqrt(fits + plan.selection.loss.mu**2 + refit**2))
        assert plan.loss.mu == pytest.approx(alone.loss.mu, rel=1e-3)
        assert plan.selection.temperature > 2.5 * alone.selection.temperature

    def test_gates_add_their_failures(self):
        plan = search(pipeline(("pca", PCA(1, fit_mode="exact")))).plan(Domain(n_rows=100_000, n_features=3))
        each = plan.fits[0].loss.failure
        assert each > 0
        assert plan.loss.failure == pytest.approx(1 - (1 - each) ** 5, rel=1e-6)
        assert plan.kept

    def test_too_many_candidates_or_too_few_rows(self):
        with pytest.raises((NoRoute, ImpossibleBudget)):
            search(epsilon=1e-9).plan(Domain(n_rows=N, n_features=3))


class TestLedger:
    def test_one_spend_for_everything(self, data):
        ledger = Ledger(epsilon=2.0, delta=1e-6)
        found = search(ledger=ledger, dataset="clinic").fit(*data)
        (entry,) = ledger.entries()
        assert (entry.status, entry.dataset, entry.label) == ("released", "clinic", "search over 4: clip > model")
        assert entry.mu == found.summary_.mu
        assert ledger.epsilon(1e-6, "clinic") == pytest.approx(2.0, rel=1e-3)
        assert found.best_estimator_.ledger is ledger
        found.predict(data[0])
        assert len(ledger) == 1

    def test_an_over_spend_is_refused_before_any_value_is_looked_at(self, data):
        ledger = Ledger(epsilon=1.9, delta=1e-6)
        with pytest.raises(BudgetExceeded):
            search(ledger=ledger).fit(np.full((N, 3), np.nan), np.full(N, "SENTINEL", dtype=object))
        assert len(ledger) == 0

    def test_what_fails_counts_as_spent(self, data):
        ledger = Ledger()
        X = data[0].copy()
        X.iloc[7, 1] = np.nan
        with pytest.raises(InvalidValue):
            search(ledger=ledger).fit(X, data[1])
        assert [entry.status for entry in ledger.entries()] == ["failed"]
        assert ledger.spent().mu == search().plan(Domain(n_rows=N, n_features=3)).loss.mu


class TestGates:
    def test_a_refused_candidate_is_not_chosen(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(20_000, 3))
        y = (X[:, 0] > 0).astype(int)
        stage = ("pca", PCA(1, fit_mode="exact", output="projected"))
        found = search(pipeline(stage), {"pca__fit_mode": ["exact", "noisy"]}, epsilon=3.0).fit(X, y)
        assert found.cv_results_["outcome"].tolist() == ["refused", "released"]
        assert found.best_params_ == {"pca__fit_mode": "noisy"}
        with pytest.raises(PrivacyRefusal, match="no candidate"):
            search(pipeline(stage), {"model__max_grad_norm": [0.5, 1.0]}, epsilon=3.0, ledger=Ledger()).fit(X, y)

    def test_without_them_it_is_conditional(self, data):
        stage = ("pca", PCA(1, fit_mode="exact"))
        found = search(pipeline(stage, gate=None), {"model__max_grad_norm": [0.5, 1.0]}).fit(*data)
        assert found.summary_.status == "CONDITIONAL"
        assert "pca assumes" in found.summary_.reasons[0]
        assert set(found.best_estimator_.certificate_["reasons"]) <= set(found.summary_.reasons)


class TestNoise:
    def test_choices_and_scores_have_the_declared_law(self):
        domain = Domain(n_rows=N, n_features=3)
        selection = search(epsilon=0.5).plan(domain).selection
        sums, noise, draws = np.array([400.0, 390.0, 300.0]), Noise(0), 2000
        runs = [select(sums, selection, noise) for _ in range(draws)]
        weights = np.exp((sums - 400) / selection.temperature)
        counts = np.bincount([chosen for chosen, _ in runs], minlength=3)
        expected = draws * weights / weights.sum()
        assert (np.abs(counts - expected) <= 4.5 * np.sqrt(expected)).all()
        errors = np.array([noisy[0] - sums[chosen] / 750 for chosen, noisy in runs]) / selection.noise_scale
        assert abs(errors.mean()) < 4.5 / math.sqrt(draws)
        assert errors.std() == pytest.approx(1.0, abs=4.5 / math.sqrt(2 * draws))

    def test_all_scores_have_it(self):
        selection = Selection.of_budget(500, Adjacency.replace(), 3, "all", 0.1)
        assert (selection.temperature, selection.scored) == (None, 3)
        sums, noise = np.array([100.0, 200.0, 150.0]), Noise(0)
        noisy = np.array([select(sums, selection, noise)[1] for _ in range(3000)])
        assert ((noisy - sums / 500) / selection.noise_scale).std() == pytest.approx(1.0, abs=0.05)
        chosen, shown = select(sums, selection, noise)
        assert chosen == shown.argmax()

    def test_scores_of_a_search_have_it(self, data, monkeypatch):
        exact = []

        def spy(sums, selection, noise):
            chosen, noisy = select(sums, selection, noise)
            exact.append(sums[chosen] / selection.rows)
            return chosen, noisy

        monkeypatch.setattr(ppdp.pipeline.search.search, "select", spy)
        cheap = {"model__max_iter": [1, 2]}
        X, y = data[0][:600], data[1][:600]
        found = [search(grid=cheap, refit=False, epsilon=1.0, delta=1e-5).fit(X, y) for _ in range(40)]
        scale = found[0].summary_.plan.selection.noise_scale
        errors = (np.array([one.best_score_ for one in found]) - exact) / scale
        assert abs(errors.mean()) < 4.5 / math.sqrt(40)
        assert errors.std() == pytest.approx(1.0, abs=4.5 / math.sqrt(80))

    def test_a_seed_decides_all_of_it_and_is_told(self, data):
        one, same, other = (search(random_state=seed).fit(*data) for seed in (3, 3, 4))
        assert one.best_score_ == same.best_score_ != other.best_score_
        np.testing.assert_array_equal(one.predict(data[0]), same.predict(data[0]))
        assert one.summary_.status == "SEEDED"
        assert search().fit(*data).summary_.status == "UNCONDITIONAL"


class TestSides:
    """A row is for training or for validation, by its position alone."""

    def fits(self, monkeypatch, X, y):
        """Everything that candidates release, in the order of fitting; the last one is that on all rows."""
        seen = []
        fit = Candidate.fit
        monkeypatch.setattr(Candidate, "fit", lambda *a: seen.append(fit(*a)) or seen[-1])
        search(random_state=0).fit(X, y)
        monkeypatch.undo()
        return [pipe.release_["model.theta"] for pipe in seen]

    def test_a_validation_row_is_in_no_fit_but_the_last(self, data, monkeypatch):
        X, y = data
        train, held_out = search()._split(N)
        assert sorted([*train, *held_out]) == list(range(N))
        assert len(held_out) == N // 4
        kept = self.fits(monkeypatch, X, y)
        for row, alike in ((held_out[5], True), (train[5], False)):
            other, labels = X.copy(), y.copy()
            other.iloc[row], labels.iloc[row] = [-2.0, -2.0, 0.0], 1 - y.iloc[row]
            changed = self.fits(monkeypatch, other, labels)
            assert [np.array_equal(a, b) for a, b in zip(kept[:4], changed)] == [alike] * 4

    def test_the_split_depends_on_public_numbers_only(self):
        one, other = search()._split(100), search(split_state=1)._split(100)
        assert not np.array_equal(one[0], other[0])
        np.testing.assert_array_equal(one[0], search()._split(100)[0])


class TestNothingPrivateIsLeft:
    def test_no_exact_score(self, data, monkeypatch):
        exact = []
        monkeypatch.setattr(ppdp.pipeline.search.search, "select", lambda *a: exact.extend(a[0]) or select(*a))
        found = search(scores="all").fit(*data)

        def numbers(value):
            if isinstance(value, dict):
                return [n for inner in value.values() for n in numbers(inner)]
            if isinstance(value, (list, tuple)):
                return [n for inner in value for n in numbers(inner)]
            if isinstance(value, np.ndarray):
                return numbers(value.ravel().tolist())
            return [value] if isinstance(value, float) else []

        kept = numbers({**vars(found), "summary": found.summary_.to_dict()})
        private = {sums / scale for sums in exact for scale in (1, 750)}
        assert len(exact) == 4
        assert not private & set(kept)
        assert not [n for n in kept if any(math.isclose(n, p, rel_tol=1e-12) for p in private)]

    def test_what_is_kept(self, data):
        found = search().fit(*data)
        kept = {name for name in vars(found) if name not in found.get_params(deep=False)}
        assert kept == {
            *("best_estimator_", "certificate_", "best_index_", "best_params_", "best_score_"),
            *("classes_", "cv_results_", "summary_"),
            *("feature_names_in_", "n_features_in_"),
        }
        assert set(found.cv_results_) == {"params", "outcome"}
        again = pickle.loads(pickle.dumps(found))
        np.testing.assert_array_equal(again.predict(data[0]), found.predict(data[0]))

    def test_a_failed_search_leaves_nothing_of_the_last(self, data):
        found = search().fit(*data)
        with pytest.raises(InvalidValue):
            found.fit(data[0] * np.nan, data[1])
        assert not any(hasattr(found, name) for name in ("summary_", "best_estimator_", "best_score_"))


BEST = "of the best one"


class TestCertificate:
    def test_it_carries_the_total_and_is_composed_again(self, data):
        whole = search().fit(*data).certificate_
        assert (whole.epsilon, whole.delta, whole.status) == (2.0, 1e-6, "UNCONDITIONAL")
        assert whole.verify()
        assert len(whole["search"]["fits"]) == 4
        assert Exclusion.OTHER_FITS.value in whole["not_covered"]
        words = " ".join(whole.to_text(full=True).split())
        assert "the whole search: the fits of 4 candidates, the choice among them" in words

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            (("fits", 1, "mu"), 5.0),
            (("refits", BEST, "failure"), 0.3),
            (("refits", BEST, "variation"), 0.0),
            (("refits", BEST, "mu"), 0.01),
            (("selection", "temperature"), 9.0),
            (("selection", "scored"), 0),
            (("selection", "rows"), 700),
            (("best_index",), 9),
            (("outcomes",), ["refused"] * 4),
            (("fits",), []),
        ],
    )
    def test_a_search_that_costs_something_else_does_not_hold(self, fitted_once, path, value):
        found = fitted_once
        content = found.certificate_.to_dict()
        place = content["search"]
        for key in path[:-1]:
            place = place[found.best_index_ if key == BEST else key]
        assert place[path[-1]] != value
        place[path[-1]] = value
        assert not Certificate.sealed(content).verify()

    def test_the_part_says_of_what_and_cannot_pass_for_the_whole(self, data, tmp_path, capsys):
        found = search().fit(*data)
        part = found.best_estimator_.certificate_
        assert part.epsilon < 2.0
        assert part.verify()
        assert str(part).startswith("PART OF A SEARCH over 4 candidates that costs epsilon = 2 at delta = 1e-06 in all")
        assert part["part_of"]["digest"] == found.certificate_.digest
        found.best_estimator_.export(tmp_path / "part.zip")
        found.export(tmp_path / "whole.zip")
        for name, bound, status in [("part", 1.9, 1), ("part", 2, 0), ("whole", 1.9, 1), ("whole", 2, 0)]:
            assert main(["verify", str(tmp_path / f"{name}.zip"), "--max-epsilon", str(bound)]) == status
        for require in ("unconditional", "alone"):
            assert main(["verify", str(tmp_path / "part.zip"), "--require", require]) == 1
            assert main(["verify", str(tmp_path / "whole.zip"), "--require", require]) == 0
        assert "REFUSED: --require alone: PART OF A SEARCH" in capsys.readouterr().out

    def test_what_is_exported_predicts_as_the_search_does(self, data, tmp_path):
        found = search().fit(*data)
        found.export(tmp_path / "model.zip")
        loaded = load(tmp_path / "model.zip")
        assert loaded.certificate_ == found.certificate_
        np.testing.assert_array_equal(loaded.predict(data[0]), found.predict(data[0]))

    def test_it_is_one_fit_of_its_process_and_one_spend(self, data):
        ledger = Ledger()
        assert search().fit(*data).certificate_["issued"]["fit"] == 1
        with ledger:
            inside = search().fit(*data).certificate_["issued"]
        assert len(ledger) == 1
        assert (inside["fit"], inside["ledger"]["position"], inside["ledger"]["account"]) == (None, 1, ledger.account)
