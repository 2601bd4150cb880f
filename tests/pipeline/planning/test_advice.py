"""Where no route exists, or where one is of little use, it is said what would help: in epsilon, and in single steps."""

import pickle
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from zoo import ZOO

from ppdp import Domain, Pipeline, make_pipeline
from ppdp import transformers as S
from ppdp.cli.output import one_line
from ppdp.exceptions import ImpossibleBudget, NoiseWarning, NoRoute, PpdpError, UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, LogisticRegression, Ridge
from ppdp.pipeline.fit import plan_of
from ppdp.pipeline.planning.advice import Advice

FEW = Domain(n_rows=60, n_features=10)


def without_route(**parameters):
    return make_pipeline(S.NormClipper(), S.PCA(2), GaussianMechanism(), epsilon=0.1, **parameters)


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
        assert not without_route().set_params(epsilon=clear).plan(FEW).has_warnings
        assert without_route().set_params(epsilon=0.9 * clear).plan(FEW).has_warnings

    def test_both_stand_in_the_message_and_in_no_attribute_that_was_there_before(self):
        error = failing(without_route())
        assert f"The smallest epsilon with a route is {error.advice.least_epsilon:g}" in str(error)
        assert f"from epsilon = {error.advice.clear_epsilon:g}" in str(error)
        assert "smallest epsilon" not in error.message + error.fix

    def test_which_step_to_drop_or_to_replace_with_its_score_and_it_helps(self):
        domain = Domain(n_rows=2000, n_features=5)
        steps = [S.NormClipper(), S.MinMaxScaler(quantiles=(0.05, 0.95), fit_mode="exact"), LogisticRegression((0, 1))]
        advice = make_pipeline(*steps, epsilon=0.5).plan(domain).advice.within(60)
        changes = {change.words: change for change in advice.changes}
        assert set(changes) <= {f"{what} 'minmaxscaler'" for what in ("public ranges for", "StandardScaler for", "no")}
        assert "StandardScaler for 'minmaxscaler'" in changes
        after, before = advice.changes[0].scores
        assert before == 0.5  # no simulated rows pass its gate
        assert f"(score {after:.2g} instead of 0.5 on simulated rows)" in str(advice)
        forecast = make_pipeline(steps[0], S.StandardScaler(), steps[2]).forecast(
            domain, epsilons=[0.5], random_state=7
        )
        assert np.mean([score for _, score in forecast.points]) > 0.7

    def test_an_order_that_no_epsilon_mends(self):
        pipe = make_pipeline(S.NormClipper(), S.StandardScaler(fit_mode="exact"), S.Deduplicator(), GaussianMechanism())
        error = failing(pipe, Domain(n_rows=500, n_features=3), UnsupportedOrder)
        assert error.advice.least_epsilon is None
        assert "No epsilon up to 20" not in str(error)
        assert "fit_mode='auto' for 'standardscaler'" in str(error)

    def test_nothing_helps_a_budget_that_means_nothing(self):
        error = failing(make_pipeline(S.NormClipper(), GaussianMechanism(), delta=0.1), kind=ImpossibleBudget)
        assert error.advice is None

    def test_a_fit_says_it_as_well_and_before_any_cell_is_looked_at(self):
        with pytest.raises(NoRoute, match="The smallest epsilon with a route is"):
            without_route().fit(np.full((60, 10), np.nan))


class TestPlans:
    def test_a_warning_says_from_which_epsilon_on_there_is_none(self):
        pipe = make_pipeline(S.NormClipper(), LogisticRegression((0, 1)), epsilon=0.01)
        domain = Domain(n_rows=200, n_features=20)
        plan = pipe.plan(domain)
        clear = plan.advice.clear_epsilon
        assert f"From epsilon = {clear:g}" in repr(plan)
        assert f"From epsilon = {clear:g}" in plan._repr_html_()
        assert not pipe.set_params(epsilon=clear).plan(domain).noise_exceeds_signal

    def test_of_an_answer_no_step_is_named_for_without_it_the_units_are_others(self):
        pipe = make_pipeline(S.NormClipper(), S.RobustScaler(), GaussianMechanism(), epsilon=0.5)
        advice = pipe.plan(Domain(n_rows=500, n_features=5)).advice
        assert advice.changes == ()
        assert "robustscaler" not in str(advice)

    @pytest.mark.parametrize(
        ("steps", "domain", "epsilon"),
        [
            ([S.MinMaxScaler((0, 1)), S.MeanImputer(), S.StandardScaler(), Ridge(y_range=(0, 1))], (2257, 30), 0.3),
            ([S.NormClipper(), S.RobustScaler(), GaussianMechanism()], (500, 5), 0.5),
            ([S.NormClipper(), S.StandardScaler(), LogisticRegression((0, 1))], (300, 10), 0.3),
            ([S.MinMaxScaler("private"), GaussianMechanism()], (500, 3), 1.0),
            ([S.CategoryEncoder("private", max_categories=5), GaussianMechanism()], (2000, 2), 0.3),
        ],
        ids=lambda value: repr(value)[:60],
    )
    def test_figures_of_a_warning_are_those_of_plans(self, steps, domain, epsilon):
        """What errs, by how much, and from which epsilon, or number of rows, on it does not."""
        n, d = domain
        pipe = make_pipeline(*steps, epsilon=epsilon, delta=1e-6)
        plan = pipe.plan(Domain(n_rows=n, n_features=d))
        advice = plan.advice.within(60)
        *_, warning = plan.warnings
        assert warning.startswith(f"with {n:,} rows at epsilon = {epsilon:g} ")
        assert "%" in warning
        clear, rows = advice.clear_epsilon, advice.clear_rows
        assert f"From epsilon = {clear:g}" in str(advice)
        assert f"or {rows:,} rows, on there is no such warning" in str(advice)
        assert not clone(pipe).set_params(epsilon=clear).plan(Domain(n_rows=n, n_features=d)).warnings
        assert not clone(pipe).plan(Domain(n_rows=rows, n_features=d)).warnings
        assert clone(pipe).set_params(epsilon=clear * 0.9).plan(Domain(n_rows=n, n_features=d)).warnings

    def test_the_error_of_means_is_what_it_is_said_to_be(self):
        pipe = make_pipeline(S.MinMaxScaler((0, 1)), S.MeanImputer(), Ridge(y_range=(0, 1)), epsilon=0.3)
        plan = pipe.plan(Domain(n_rows=1000, n_features=30))
        assert f"err by {100 * plan.releases[0].noise_scale / 2:.2g} % of a column's range" in " ".join(plan.warnings)

    @pytest.mark.parametrize("load", [load_diabetes, load_breast_cancer], ids=["diabetes", "breast cancer"])
    @pytest.mark.parametrize("epsilon", [0.3, 1.0])
    @pytest.mark.repeated("epsilon")
    def test_whoever_follows_advice_on_real_rows_gains(self, load, epsilon):
        """On these rows without a scaler R2 falls from .3 to .1; the noise alone is less without it."""
        X, y = load(return_X_y=True)
        ranges, model = np.column_stack([X.min(axis=0), X.max(axis=0)]), LogisticRegression((0, 1))
        if load is load_diabetes:
            y, model = (y - 25) / 321, Ridge(y_range=(0, 1))
        pipe = make_pipeline(S.MinMaxScaler(ranges), S.StandardScaler(), model, epsilon=epsilon)
        try:
            advice = pipe.plan(Domain(n_rows=len(X), n_features=X.shape[1])).advice
        except NoRoute as error:
            advice = error.advice
        if advice is None:
            return
        advice = advice.within(60)
        assert "no 'standardscaler'" not in str(advice)
        for changed in ({"epsilon": advice.clear_epsilon}, *({"steps": c.plan.steps} for c in advice.changes)):
            scores = [clone(pipe).set_params(random_state=i, **changed).fit(X, y).score(X, y) for i in range(5)]
            assert np.mean(scores) > (0.1 if load is load_diabetes else 0.75)

    def test_a_plan_that_warns_of_nothing_has_none(self):
        plan = make_pipeline(S.NormClipper(), GaussianMechanism()).plan(Domain(n_rows=5000, n_features=5))
        assert plan.advice is None

    def test_what_gains_most_comes_first(self):
        stage = S.MinMaxScaler(quantiles=(0.05, 0.95), fit_mode="exact")
        pipe = make_pipeline(S.NormClipper(), stage, LogisticRegression((0, 1)), epsilon=0.5)
        gains = [change.gain for change in pipe.plan(Domain(n_rows=4000, n_features=5)).advice.within(60).changes]
        assert gains == sorted(gains, reverse=True)
        assert min(gains) > 0.05


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
        slow = Advice(advice.pipe, advice.domain, route=False, pace=10.0, plan=advice.plan)
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
        pipe = make_pipeline(S.NormClipper(), S.PCA(2, fit_mode="exact"), LogisticRegression(), epsilon=0.1, gate=None)
        plan = plan_of(pipe, None, shape=(60, 3), names=None, read_classes=("secret", "word", "third"))
        assert plan.has_warnings
        assert plan.advice is None


def test_what_to_do_stands_before_the_reasons():
    error = pickle.loads(pickle.dumps(failing(without_route())))
    assert error.message == "no route can be certified within the budget."
    assert error.details.startswith("Reasons: ")
    for told in (str(failing(without_route())), one_line(failing(without_route()))):
        assert told.index("Fix: ") < told.index("The smallest epsilon") < told.index("Reasons: ")


@pytest.mark.parametrize("name", ZOO)
@pytest.mark.repeated("name", keep=8)
def test_it_is_found_for_every_kind(name):
    steps, parameters = ZOO[name]
    declared = parameters.get("domain") or Domain()
    rows = 3000 if declared.n_rows is None else declared.n_rows
    try:
        pipe = Pipeline(steps, **{**parameters, "epsilon": 0.2})
        said = pipe.plan(Domain(n_rows=rows, feature_names=("a", "b", "c"))).warned()
    except NoRoute as error:
        said = [str(error)]
    assert all(said)


class TestWarnings:
    """What would help is looked for where somebody hears it."""

    @pytest.fixture
    def asked(self, monkeypatch):
        found = []
        monkeypatch.setattr(Advice, "__str__", lambda advice: found.append(advice) or "words")
        return found

    def fit(self):
        make_pipeline(S.NormClipper(), GaussianMechanism(), epsilon=0.01).fit(np.zeros((60, 3)))

    @pytest.mark.parametrize("action", ["always", "error"])
    def test_are_told_with_it(self, asked, action):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter(action)
            if action == "error":
                with pytest.raises(NoiseWarning, match="words"):
                    self.fit()
            else:
                self.fit()
                assert [str(one.message).endswith("words") for one in told] == [True]
        assert len(asked) == 1

    @pytest.mark.parametrize("kind", [NoiseWarning, UserWarning, Warning])
    def test_that_are_ignored_take_no_time(self, asked, kind):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("ignore", kind)
            self.fit()
        assert told == asked == []

    def test_that_are_ignored_by_their_words_or_place_are_found_first(self, asked):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.filterwarnings("ignore", message="with")
            self.fit()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="elsewhere", category=NoiseWarning)
            self.fit()
        assert len(asked) == 2
