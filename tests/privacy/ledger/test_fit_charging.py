"""Who pays for a fit: a ledger, or nobody, and then the process counts it and every certificate says so first."""

import multiprocessing
import pickle
import threading
import warnings
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import joblib
import numpy as np
import pytest
from forked import ended, fork, forks
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline as plain_pipeline
from sklearn.preprocessing import StandardScaler

from ppdp import Adjacency, Certificate, Domain, Ledger, Pipeline, PrivateSearchCV
from ppdp.certificate.guarantee import draws_of
from ppdp.cli.main import main
from ppdp.exceptions import BudgetExceeded, CompositionWarning, DomainMismatch, LedgerError, StageFailed
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, LogisticRegression
from ppdp.privacy.gaussian import gaussian_epsilon, gaussian_mu
from ppdp.privacy.ledger import fit_charging as fits
from ppdp.transformers import NormClipper

pytestmark = pytest.mark.filterwarnings("ignore::ppdp.exceptions.CompositionWarning")

X = np.linspace(-1, 1, 400)[:, None]
Y = (X[:, 0] > 0).astype(int)
GRID = {"model__max_grad_norm": [0.5, 1.0]}


@pytest.fixture(autouse=True)
def as_in_a_new_process(monkeypatch):
    monkeypatch.setattr(fits, "_HISTORIES", {})


def model(**parameters):
    last = LogisticRegression(classes=(0, 1), max_iter=5)
    return Pipeline([("clip", NormClipper()), ("model", last)], **{"epsilon": 1.0, "delta": 1e-6, **parameters})


def in_a_worker():
    return model(dataset="built there").fit(X, Y)


def mean(**parameters):
    return Pipeline([("clip", NormClipper()), ("mean", GaussianMechanism())], **parameters)


def raising(kind):
    def stopped(*_, **__):
        raise kind

    return stopped


def issued(fitted):
    return fitted.certificate_["issued"]


class TestCounting:
    def test_the_first_fit_is_silent(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            one = issued(model().fit(X, Y))
        assert (one["fit"], one["together"], one["travels"], one["inside"], one["ledger"]) == (1, None, 0, None, None)

    def test_from_the_second_on_a_warning_says_how_many_and_what_they_come_to(self):
        model().fit(X, Y)
        with pytest.warns(
            CompositionWarning, match=r"fit 2 of this process .*epsilon = 1\.4\d* at delta = 2e-06"
        ) as told:
            fitted = model().fit(X, Y)
        assert told[0].filename == __file__
        assert issued(fitted)["fit"] == 2
        assert str(fitted.certificate_).startswith("FIT 2 OF THIS PROCESS; what the others released is not included")

    def test_the_total_is_exact_for_gaussian_fits_and_a_sum_for_others(self):
        for _ in range(5):
            fitted = mean().fit(X)
        together = issued(fitted)["together"]
        assert together["delta"] == pytest.approx(5e-6)
        assert together["epsilon"] == pytest.approx(gaussian_epsilon(5**0.5 * gaussian_mu(1.0, 1e-6), 5e-6), rel=1e-3)
        laplace = Pipeline([("clip", NormClipper()), ("count", LaplaceMechanism("count"))])
        assert issued(laplace.fit(X))["together"]["epsilon"] == pytest.approx(6.0)

    def test_each_name_is_counted_by_itself_and_look_alikes_are_one_name(self):
        for name in ("one", "two", " one\u200b"):
            fitted = mean(dataset=name).fit(X)
        assert issued(fitted)["fit"] == 2
        assert issued(mean().fit(X))["fit"] == 1

    def test_values_are_never_looked_at(self):
        mean().fit(X)
        assert issued(mean().fit(np.zeros((9000, 3))))["fit"] == 2

    @pytest.mark.parametrize("copied", [clone, lambda pipe: pickle.loads(pickle.dumps(pipe)), lambda pipe: pipe])
    def test_refits_copies_and_clones_count(self, copied):
        pipe = mean().fit(X)
        assert issued(copied(pipe).fit(X))["fit"] == 2

    def test_a_fit_that_its_rows_stop_counts_and_one_that_has_not_begun_does_not(self):
        """Else the number of later fits would tell whether rows had such an error."""
        with pytest.raises(Exception, match="NaN"):
            mean().fit(X * np.nan)
        ids = np.array([None, *range(399)], dtype=object)
        persons = mean(domain=Domain(n_rows=800, adjacency=Adjacency.user_level(2)))
        with pytest.raises(Exception, match="no id"):
            persons.fit(X, groups=ids)
        with pytest.raises(Exception, match="at most"):
            mean(epsilon=1e9).fit(X)
        assert issued(mean().fit(X))["fit"] == 3

    @pytest.mark.parametrize("stops", [ZeroDivisionError, KeyboardInterrupt])
    def test_so_does_one_that_stops_for_any_other_reason(self, stops, monkeypatch):
        with monkeypatch.context() as broken:
            broken.setattr("ppdp.pipeline.fit.slots_assigned", raising(stops))
            with pytest.raises((StageFailed, KeyboardInterrupt)):
                mean().fit(X)
        assert issued(mean().fit(X))["fit"] == 2

    @forks
    def test_a_process_that_is_forked_while_one_is_counted_knows_of_it(self, monkeypatch):
        children, add = [], fits.ComposedFits.__add__

        def known():
            assert fits._HISTORIES["default"].fits

        def forking(one, other):
            children.append(fork(known))
            return add(one, other)

        monkeypatch.setattr(fits.ComposedFits, "__add__", forking)
        mean().fit(X)
        assert [ended(child) for child in children] == [0]

    def test_a_warning_comes_whenever_fits_double_and_is_short(self):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", CompositionWarning)
            for _ in range(5):
                mean(dataset="folds").fit(X)
        assert [len(str(one.message)) < 260 for one in told] == [True] * 2

    def test_where_it_is_an_error_nothing_is_left_open(self):
        mean().fit(X)
        ledger = Ledger(epsilon=9.0, delta=1e-4)
        for _ in range(2):  # an error every time: whoever made it one wants to stop
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with pytest.raises(CompositionWarning):
                    mean(ledger=ledger).fit(X)
        assert [entry.status for entry in ledger.entries()] == ["failed", "failed"]
        assert issued(mean().fit(X))["fit"] == 2


class TestBesideALedger:
    """A total speaks of one account: what the process released beside it is said first."""

    def test_fits_before_the_block_are_not_forgotten_in_it(self, tmp_path):
        for _ in range(5):
            model().fit(X, Y)
        with Ledger(epsilon=3, delta=1e-5) as ledger, pytest.warns(CompositionWarning, match="not paid for all"):
            one = model().fit(X, Y).certificate_
        assert len(ledger) == 1
        assert (one["issued"]["fit"], one["issued"]["ledger"]["position"]) == (6, 1)
        assert one["issued"]["together"]["delta"] == pytest.approx(6e-6)
        assert str(one).startswith("FIT 6 OF THIS PROCESS on the same data, not all of them in the ledger;")
        one.save(tmp_path / "one.json")
        for asked in (["--require", "unconditional"], ["--require", "alone"], ["--max-epsilon", "1"]):
            assert main(["verify", str(tmp_path / "one.json"), *asked]) == 1

    def test_fits_in_the_block_are_not_forgotten_behind_it(self):
        with Ledger():
            for _ in range(3):
                model().fit(X, Y)
        assert issued(model().fit(X, Y))["fit"] == 4

    def test_a_ledger_for_every_fit_adds_nothing_up(self):
        for _ in range(3):
            with Ledger(epsilon=1, delta=1e-5):
                fitted = model(epsilon=0.9).fit(X, Y)
        assert issued(fitted)["fit"] == 3
        assert issued(fitted)["together"]["epsilon"] > 1

    def test_one_ledger_opened_twice_does(self, tmp_path):
        for _ in range(2):
            with Ledger(tmp_path / "spent.db"):
                fitted = model().fit(X, Y)
        assert (issued(fitted)["fit"], issued(fitted)["together"]) == (None, None)

    def test_people_with_more_rows_than_a_fit_was_for_pay_more(self):
        model().fit(X, Y)
        fitted = model(domain=Domain(rows_per_unit=3)).fit(X, Y)
        assert issued(fitted)["together"]["epsilon"] == pytest.approx(4)
        assert issued(fitted)["together"]["delta"] == pytest.approx(1e-6 + 3e-6 * np.exp(2))
        assert issued(model().fit(X, Y))["together"]["epsilon"] < 2

    def test_an_export_says_what_came_after_the_fit(self, tmp_path, capsys):
        first, *_ = [model().fit(X, Y) for _ in range(5)]
        assert issued(first)["together"] is None
        first.export(tmp_path / "best.zip")
        assert main(["verify", str(tmp_path / "best.zip"), "--require", "unconditional"]) == 1
        assert capsys.readouterr().out.startswith("FIT 1 OF THIS PROCESS; what the others released is not included")
        found = PrivateSearchCV(model(), GRID, dataset="searched").fit(X, Y)
        model(dataset="searched").fit(X, Y)
        found.export(tmp_path / "found.zip")
        assert main(["verify", str(tmp_path / "found.zip"), "--require", "alone"]) == 1


def test_fits_against_different_changes_have_no_bound_together():
    found = []
    for change in (Adjacency.change(l1=1.0), Adjacency.change(l2=1.0)):
        with pytest.warns(CompositionWarning) if found else warnings.catch_warnings() as warned:
            mechanism = ("count", LaplaceMechanism("mean"))
            found.append(Pipeline([("clip", NormClipper()), mechanism], epsilon=1.0, delta=0, adjacency=change).fit(X))
    assert "no known bound" in str(warned[0].message)
    assert "together they have no known bound, as" in str(found[1].certificate_).splitlines()[0]


class TestSearchesOfOthers:
    def test_a_grid_search_is_seen_by_whoever_verifies(self, tmp_path, capsys):
        best = GridSearchCV(model(), GRID, cv=5).fit(X, Y).best_estimator_
        assert (issued(best)["fit"], issued(best)["inside"]) == (11, "GridSearchCV")
        best.export(tmp_path / "grid.zip")
        assert main(["verify", str(tmp_path / "grid.zip")]) == 0
        printed = capsys.readouterr().out
        assert printed.startswith(
            "FIT 11 OF THIS PROCESS; what the others released is not included: together they come"
        )
        assert "FITTED INSIDE GridSearchCV; what that chose by private scores" in printed
        for asked in (["--require", "unconditional"], ["--require", "alone"], ["--max-epsilon", "1"]):
            assert main(["verify", str(tmp_path / "grid.zip"), *asked]) == 1

    def test_with_a_total_inside_it_is_unconditional_and_still_not_alone(self, tmp_path):
        with Ledger(epsilon=9, delta=1e-4) as ledger:
            best = GridSearchCV(model(), GRID, cv=2).fit(X, Y).best_estimator_
        assert len(ledger) == 5
        one = issued(best)["ledger"]
        assert one == ledger.position(5, 1e-6)
        assert one["epsilon"] == pytest.approx(ledger.epsilon(1e-4))
        best.certificate_.save(tmp_path / "one.json")
        assert main(["verify", str(tmp_path / "one.json"), "--require", "unconditional"]) == 0
        assert main(["verify", str(tmp_path / "one.json"), "--require", "alone"]) == 1

    def test_scores_calibrators_and_steps_before_it_are_named(self):
        seen = []
        scored = model()
        cross_val_score(scored, X, Y, cv=2, scoring=lambda e, *_: seen.append(issued(e)["inside"]) or 0.0)
        assert seen == ["cross_val_score"] * 2
        calibrated = CalibratedClassifierCV(model(), cv=2).fit(X, Y).calibrated_classifiers_[0].estimator
        assert issued(calibrated)["inside"] == "CalibratedClassifierCV"
        behind = plain_pipeline(StandardScaler(), model()).fit(X, Y)
        assert issued(behind[-1])["inside"] == "Pipeline"

    @pytest.mark.parametrize("refit", [False, True])
    def test_an_over_spend_ends_a_search_and_is_no_score(self, refit):
        search = GridSearchCV(model(), GRID, cv=5, refit=refit)
        with Ledger(epsilon=3, delta=1e-5) as ledger, pytest.raises(BudgetExceeded):
            search.fit(X, Y)
        assert 0 < len(ledger) < 10
        assert not hasattr(search, "cv_results_")
        assert not isinstance(BudgetExceeded("x"), Exception)


class TestOtherProcesses:
    def test_an_unfitted_pipeline_that_travels_counts_as_a_fit_nobody_saw(self, tmp_path):
        pickle.dumps(model())
        one = model().fit(X, Y).certificate_
        assert one["issued"]["travels"] == 1
        assert str(one).startswith("1 COPY OF THE PIPELINE WENT TO OR CAME FROM OTHER PROCESSES")
        one.save(tmp_path / "one.json")
        assert main(["verify", str(tmp_path / "one.json"), "--require", "alone"]) == 1

    def test_copies_in_this_process_do_not_travel(self):
        import copy

        for copied in (copy.copy, copy.deepcopy, clone):
            assert copied(model()).get_params()["epsilon"] == 1.0
        assert issued(model().fit(X, Y))["travels"] == 0

    def test_a_refit_of_what_was_fitted_elsewhere(self):
        loaded = pickle.loads(pickle.dumps(model().fit(X, Y)))
        assert issued(loaded)["travels"] == 0
        assert issued(loaded.fit(X, Y))["travels"] == 1

    def test_workers_are_seen_on_both_sides(self):
        fitted = joblib.Parallel(n_jobs=2)(joblib.delayed(model().fit)(X, Y) for _ in range(2))
        assert all(issued(one)["travels"] for one in fitted)
        assert issued(model().fit(X, Y))["travels"] == 4  # two went, two came back

    @pytest.mark.parametrize("method", ["fork", "a new interpreter"])
    def test_what_a_worker_builds_and_fits_is_not_alone(self, method):
        if method == "a new interpreter":  # those of joblib are there already
            fitted = joblib.Parallel(n_jobs=2)([joblib.delayed(in_a_worker)()])[0]
        elif method not in multiprocessing.get_all_start_methods():
            pytest.skip("no such processes here")
        else:
            with ProcessPoolExecutor(1, multiprocessing.get_context(method)) as workers:
                fitted = workers.submit(in_a_worker).result()
        assert (issued(fitted)["fit"], bool(issued(fitted)["travels"])) == (1, True)
        assert issued(model(dataset="built there").fit(X, Y))["travels"] == 1

    def test_a_search_that_travels_takes_its_own_name_and_the_ledger_along(self, tmp_path):
        pickle.dumps(PrivateSearchCV(model(), GRID, dataset="study"))
        assert [issued(model(dataset=name).fit(X, Y))["travels"] for name in ("study", None)] == [1, 0]
        with Ledger(tmp_path / "spent.db") as ledger:
            sent = pickle.dumps(PrivateSearchCV(model(), GRID, dataset="study"))
        pickle.loads(sent).fit(X, Y)
        assert [entry.dataset for entry in ledger.entries()] == ["study"]

    def test_a_fitted_copy_is_not_fitted_again_beside_the_ledger_of_its_block(self, tmp_path):
        with Ledger(tmp_path / "spent.db") as ledger:
            sent = pickle.dumps(model().fit(X, Y))
            assert pickle.loads(sent).fit(X, Y)
        for copied in (pickle.loads(sent), clone(pickle.loads(sent)), PrivateSearchCV(pickle.loads(sent), GRID)):
            with pytest.raises(LedgerError, match=ledger.account):
                copied.fit(X, Y)
        assert pickle.loads(sent).set_params(ledger=ledger).fit(X, Y).predict(X).size
        assert len(ledger) == 3

    def test_under_a_ledger_in_memory_nothing_travels(self):
        with Ledger(), pytest.raises(LedgerError, match="path"):
            pickle.dumps(model())

    def test_under_a_ledger_in_a_file_workers_charge_it(self, tmp_path):
        with Ledger(tmp_path / "spent.db", epsilon=9, delta=1e-4) as ledger:
            GridSearchCV(model(dataset="workers"), GRID, cv=2, n_jobs=2).fit(X, Y)
        assert [entry.status for entry in ledger.entries()] == ["released"] * 5


class TestBlockOfALedger:
    def test_a_fit_that_is_begun_in_a_search_is_no_part_of_it(self):
        def scoring(label, predicted):
            if len(ledger) and begun:
                begun.pop().fit(X)
            return float(label == predicted)

        ledger, begun = Ledger(), [mean()]
        search = PrivateSearchCV(model(), GRID, scoring=scoring)
        with ledger:
            search.fit(X, Y)
        assert [entry.label.partition(" ")[0] for entry in ledger.entries()] == ["search", "clip"]
        ledger, begun = Ledger(), [mean(ledger=Ledger(), dataset="study")]
        search = PrivateSearchCV(model(), GRID, scoring=scoring, ledger=ledger, dataset="study").fit(X, Y)
        assert issued(search)["together"]["delta"] == pytest.approx(2e-6)

    def test_an_error_of_the_ledger_says_that_it_is_charged(self, monkeypatch):
        with monkeypatch.context() as broken:
            broken.setattr(Ledger, "settle", raising(LedgerError("no file")))
            with pytest.raises(LedgerError) as error:
                mean(ledger=Ledger()).fit(X)
        assert error.value.spent
        assert str(error.value.charged()).count("spent") == 1
        assert issued(mean().fit(X))["fit"] == 2

    def test_it_charges_what_is_inside_and_nothing_else(self):
        with Ledger() as ledger:
            model().fit(X, Y)
            PrivateSearchCV(model(), GRID).fit(X, Y)
        mean().fit(X)
        assert [entry.label.partition(" ")[0] for entry in ledger.entries()] == ["clip", "search"]

    def test_one_fit_is_charged_to_one_account(self):
        with Ledger() as ledger:
            issued(model(ledger=ledger).fit(X, Y))
            with pytest.raises(LedgerError, match="ledger of its own"):
                model(ledger=Ledger()).fit(X, Y)
            with pytest.raises(LedgerError, match="another ledger"), Ledger():
                pass
            with ledger.block("2020"):
                model().fit(X, Y)
        assert [entry.block for entry in ledger.entries()] == ["", "2020"]

    def test_blocks_of_rows_that_threads_open_do_not_mix(self):
        ledger, opened, done = Ledger(), threading.Event(), threading.Event()

        def beside():
            with ledger.block("2021"):
                opened.set()
                done.wait()

        other = threading.Thread(target=beside)
        with ledger.block("2020"):
            other.start()
            opened.wait()
            model().fit(X, Y)
            with ThreadPoolExecutor(1) as threads, pytest.raises(LedgerError, match="several blocks"):
                threads.submit(model().fit, X, Y).result()
            done.set()
            other.join()
            with ThreadPoolExecutor(1) as threads:
                threads.submit(model().fit, X, Y).result()
        assert [entry.block for entry in ledger.entries()] == ["2020"] * 2

    def test_what_is_issued_tells_account_position_total_and_limit(self):
        ledger = Ledger(epsilon=3, delta=1e-5)
        for position in (1, 2):
            one = model(ledger=ledger, dataset="study").fit(X, Y).certificate_
            assert one["issued"]["ledger"] == {
                "account": ledger.account,
                "dataset": "study",
                "position": position,
                "epsilon": pytest.approx(ledger.epsilon(1e-5)),
                "delta": 1e-5,
                "limit": {"epsilon": 3.0, "delta": 1e-5},
                "head": one.record.ledger.head,
                "released": position,
                "composed": {
                    "mu": pytest.approx(one.record.total.mu * position**0.5),
                    "failure": one.record.total.failure,
                    "total_variation": pytest.approx(position * draws_of(one.record)),
                },
            }
            assert ledger.holds(one)
        assert f"entry 2 for 'study' in ledger {ledger.account}" in " ".join(one.to_text(full=True).split())


class TestTheClaim:
    def test_identical_means_the_claim(self):
        one, other = (model(random_state=0).fit(X, Y).certificate_ for _ in range(2))
        assert one == other
        assert one.digest == other.digest
        assert one["issued"]["fit"] != other["issued"]["fit"]
        assert one.to_json() != other.to_json()

    def test_an_earlier_form_says_nothing_of_other_fits(self, capsys):
        path = "tests/certificate/golden/0.1.0/unconditional.json"
        assert Certificate.load(path).verify()
        assert main(["verify", path, "--require", "unconditional"]) == 0
        assert main(["verify", path, "--require", "alone"]) == 1
        assert "does not say how many other fits there were" in capsys.readouterr().out


class TestFactsOfThePlan:
    @pytest.mark.parametrize("fact", [{"rows_per_unit": 2}, {"row_norm": 0.5}, {"entry_bound": 0.5}])
    def test_a_fit_with_other_facts_than_its_plan_is_refused_before_it_spends(self, fact):
        ledger = Ledger()
        pipe = mean(ledger=ledger)
        pipe.plan(Domain(n_rows=400, n_features=1, **fact))
        with pytest.raises(DomainMismatch, match=next(iter(fact))):
            pipe.fit(X)
        assert len(ledger) == 0
        assert pipe.set_params(domain=Domain(**fact)).fit(X).certificate_["facts"]

    def test_what_only_the_pipeline_declares_is_in_the_plan(self):
        pipe = mean(domain=Domain(rows_per_unit=2))
        assert pipe.plan(Domain(n_rows=400, n_features=1)).domain.rows_per_unit == 2
        assert pipe.fit(X).certificate_["rows_per_unit"] == 2

    def test_other_tables_may_be_planned_for(self):
        pipe = mean()
        pipe.plan(Domain(n_rows=10_000, n_features=7))
        assert pipe.fit(X).certificate_.verify()

    def test_a_clone_keeps_what_was_promised(self):
        pipe = model()
        pipe.plan(Domain(n_rows=400, n_features=1, rows_per_unit=2))
        for copied in (clone(pipe), PrivateSearchCV(pipe, GRID)):
            with pytest.raises(DomainMismatch, match="rows_per_unit"):
                copied.fit(X, Y)
        pipe.set_params(domain=Domain(rows_per_unit=2))
        assert PrivateSearchCV(pipe, GRID).fit(X, Y).certificate_["rows_per_unit"] == 2

    def test_so_is_a_search(self):
        search = PrivateSearchCV(model(), GRID)
        search.plan(Domain(n_rows=400, n_features=1, rows_per_unit=2))
        with pytest.raises(DomainMismatch, match="rows_per_unit"):
            search.fit(X, Y)
