"""Where no route exists, or where one is of little use, it is said what would help: in epsilon, and in single steps."""

import pickle
import time

import numpy as np
import pytest

from ppdp import Domain, make_pipeline
from ppdp.cli.output import one_line
from ppdp.exceptions import ImpossibleBudget, NoRoute, PpdpError, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.pipeline.planning.advice import Advice
from ppdp.transformers import PCA, Deduplicator, MinMaxScaler, NormClipper, RobustScaler, StandardScaler

FEW = Domain(n_rows=60, n_features=10)


def without_route(**parameters):
    return make_pipeline(NormClipper(), PCA(2), GaussianMechanism(), epsilon=0.1, **parameters)


def failing(pipe, domain=FEW, kind=NoRoute):
    with pytest.raises(kind) as caught:
        pipe.plan(domain)
    return caught.value


class TestErrors:
    def test_the_smallest_epsilon_with_a_route(self):
        least = failing(without_route()).advice.least_epsilon
        assert without_route().set_params(epsilon=least).plan(FEW).mechanism is not None
        failing(without_route().set_params(epsilon=0.9 * least))

    def test_the_smallest_epsilon_with_a_good_one(self):
        clear = failing(without_route()).advice.clear_epsilon
        assert not without_route().set_params(epsilon=clear).plan(FEW).strained
        assert without_route().set_params(epsilon=0.9 * clear).plan(FEW).strained

    def test_both_stand_in_the_message_and_in_no_attribute_that_was_there_before(self):
        error = failing(without_route())
        assert f"The smallest epsilon with a route is {error.advice.least_epsilon:g}" in str(error)
        assert f"from epsilon = {error.advice.clear_epsilon:g}" in str(error)
        assert "smallest epsilon" not in error.message + error.fix

    def test_which_step_to_drop_or_to_replace_with_its_noise(self):
        pipe = make_pipeline(
            NormClipper(),
            MinMaxScaler(quantiles=(0.05, 0.95), statistics="exact"),
            LogisticRegression((0, 1)),
            epsilon=0.5,
        )
        domain = Domain(n_rows=500, n_features=5)
        changes = {change.words: change for change in pipe.plan(domain).advice.changes}
        assert set(changes) == {"public ranges for 'minmaxscaler'", "no 'minmaxscaler'"}
        told = changes["public ranges for 'minmaxscaler'"]
        ranged = make_pipeline(NormClipper(), MinMaxScaler(ranges=(-9, 9)), LogisticRegression((0, 1)), epsilon=0.5)
        assert told.noise_scale == pytest.approx(ranged.plan(domain).mechanism.noise_scale)
        assert f"noise {told.noise_scale:.3g}" in str(told)

    def test_an_order_that_no_epsilon_mends(self):
        pipe = make_pipeline(NormClipper(), StandardScaler(statistics="exact"), Deduplicator(), GaussianMechanism())
        error = failing(pipe, Domain(n_rows=500, n_features=3), UnsupportedOrder)
        assert error.advice.least_epsilon is None
        assert "No epsilon up to 20" in str(error)
        assert "statistics='auto' for 'standardscaler'" in str(error)

    def test_nothing_helps_a_budget_that_means_nothing(self):
        error = failing(make_pipeline(NormClipper(), GaussianMechanism(), delta=0.1), kind=ImpossibleBudget)
        assert error.advice is None

    def test_a_fit_says_it_as_well_and_before_any_cell_is_looked_at(self):
        with pytest.raises(NoRoute, match="The smallest epsilon with a route is"):
            without_route().fit(np.full((60, 10), np.nan))


class TestPlans:
    def test_a_warning_says_from_which_epsilon_on_there_is_none(self):
        pipe = make_pipeline(NormClipper(), LogisticRegression((0, 1)), epsilon=0.01)
        domain = Domain(n_rows=200, n_features=20)
        plan = pipe.plan(domain)
        clear = plan.advice.clear_epsilon
        assert f"From epsilon = {clear:g}" in repr(plan)
        assert f"From epsilon = {clear:g}" in plan._repr_html_()
        assert not pipe.set_params(epsilon=clear).plan(domain).drowned

    def test_a_stage_that_is_too_dear_is_named(self):
        pipe = make_pipeline(NormClipper(), RobustScaler(), GaussianMechanism(), epsilon=0.5)
        best = pipe.plan(Domain(n_rows=500, n_features=5)).advice.changes[0]
        assert best.words == "no 'robustscaler'"
        assert not best.strained

    def test_a_plan_that_warns_of_nothing_has_none(self):
        plan = make_pipeline(NormClipper(), GaussianMechanism()).plan(Domain(n_rows=5000, n_features=5))
        assert plan.advice is None

    def test_what_warns_of_nothing_comes_first(self):
        pipe = make_pipeline(NormClipper(), StandardScaler(statistics="exact"), GaussianMechanism(), epsilon=0.2)
        changes = pipe.plan(Domain(n_rows=500, n_features=20)).advice.changes
        assert [change.strained for change in changes] == [False, True]
        assert "with the same warning" in str(changes[1])


class TestManners:
    def test_failing_makes_no_plans(self, monkeypatch):
        asked = []
        monkeypatch.setattr(Advice, "_planned", lambda self, **changes: asked.append(changes))
        error = failing(without_route())
        assert not asked
        str(error)
        assert asked

    def test_where_a_plan_takes_long_nothing_is_begun(self):
        advice = failing(without_route()).advice
        slow = Advice(advice.pipe, advice.domain, route=False, pace=10.0)
        begun = time.monotonic()
        assert str(slow).startswith("One plan takes 10 s")
        assert slow.changes == ()
        assert time.monotonic() - begun < 1
        assert slow.within(60).least_epsilon == advice.least_epsilon

    def test_it_speaks_of_the_steps_as_they_were(self):
        pipe = without_route()
        error = failing(pipe)
        pipe.set_params(pca__n_components=9, epsilon=3.0)
        assert str(error) == str(failing(without_route()))

    def test_a_pickled_copy_has_none(self):
        copy = pickle.loads(pickle.dumps(failing(without_route())))
        assert isinstance(copy, PpdpError)
        assert copy.advice is None

    def test_it_knows_no_private_number_of_rows(self):
        from ppdp import Adjacency

        domain = Domain(n_rows=60, adjacency=Adjacency.add_remove())
        with pytest.raises(PpdpError) as caught:
            without_route(domain=domain).fit(np.zeros((37, 10)))
        assert caught.value.advice.domain.n_rows == 60

    def test_it_never_knows_labels_that_were_read(self):
        pipe = make_pipeline(NormClipper(), PCA(2, statistics="exact"), LogisticRegression(), epsilon=0.1, gate=None)
        plan = pipe.plan_for(None, shape=(60, 3), names=None, read_classes=("secret", "word", "third"))
        assert plan.strained
        assert plan.advice is None


def test_what_to_do_stands_before_the_reasons():
    error = pickle.loads(pickle.dumps(failing(without_route())))
    assert error.message == "no route can be certified within the budget."
    assert error.details.startswith("Reasons: ")
    for told in (str(failing(without_route())), one_line(failing(without_route()))):
        assert told.index("Fix: ") < told.index("The smallest epsilon") < told.index("Reasons: ")
