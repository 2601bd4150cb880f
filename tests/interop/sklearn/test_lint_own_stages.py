"""What lint says of ppdp's own stages and mechanisms, alone and in a pipeline."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.experimental import enable_halving_search_cv, enable_iterative_imputer  # noqa: F401
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import ppdp
from ppdp import lint, mechanisms, transformers
from ppdp.testing import examples

# What scikit-learn 1.6 says of itself with a newer SciPy, when its own model is fitted beside ours.
pytestmark = pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")

STAGES = [stage for stage in examples() if hasattr(stage, "fit_modes")]


PUBLIC = np.array([1.0, 2.0])


def inside(*steps, **parameters):
    return ppdp.make_pipeline(transformers.NormClipper(), *steps, mechanisms.GaussianMechanism(), **parameters)


class TestOwn:
    """A stage or mechanism of ppdp promises something inside a ppdp pipeline only."""

    @pytest.mark.parametrize("stage", STAGES, ids=lambda stage: type(stage).__name__)
    def test_what_is_called_none_alone_has_learned_nothing(self, stage):
        X = np.random.default_rng(0).uniform(-1, 1, (60, 3))
        Z = np.vstack([[5.0, -7.0, 9.0], X[1:]])
        if hasattr(stage, "fit_resample"):
            assert lint(stage).severity == "high"
            return
        fitted = [vars(clone(stage).fit(rows, np.arange(60) % 2)) for rows in (X, Z)]
        learned = [name for name in fitted[0] if name.endswith("_") and repr(fitted[0][name]) != repr(fitted[1][name])]
        if lint(stage).severity in ("none", "declared"):
            assert learned == []

    @pytest.mark.parametrize("name", transformers.__all__)
    def test_every_stage_is_known(self, name):
        stage = getattr(transformers, name).example()
        assert "unknown" not in repr(lint(stage))
        assert lint(inside(stage)).severity == ("declared" if name == "Public" else "none")

    @pytest.mark.parametrize(
        ("stage", "severity"),
        [
            (transformers.StandardScaler(), "low"),
            (transformers.PCA(1), "low"),
            (transformers.MinMaxScaler((0, 1)), "none"),
            (transformers.MinMaxScaler((0, 1), quantiles=(0.1, 0.9)), "high"),
            (transformers.Deduplicator(), "high"),
        ],
    )
    def test_alone_it_is_exact(self, stage, severity):
        assert lint(make_pipeline(stage)).severity == severity
        assert lint(inside(stage)).severity == "none"

    @pytest.mark.parametrize(
        ("parameters", "words"),
        [
            ({}, "noise of a size that is not set"),
            ({"noise_scale": 1e-9}, "noise of size 1e-09, which you chose"),
            ({"noise_scale": 1.0, "random_state": 0}, "comes from a seed"),
        ],
    )
    def test_noise_that_nobody_accounts_for(self, parameters, words):
        (found,) = lint(mechanisms.GaussianMechanism(**parameters))
        assert (found.severity, words in found.leaks) == ("high", True)
        assert "ppdp.Pipeline" in found.fix

    def test_a_pipeline_sets_the_noise_itself(self):
        mechanism = mechanisms.GaussianMechanism(noise_scale=1e-9, random_state=0)
        (found,) = lint(ppdp.make_pipeline(mechanism))
        assert (found.severity, "not used here: noise_scale, random_state" in found.leaks) == ("none", True)

    def test_seeds_and_untested_assumptions_are_named(self):
        search = ppdp.PrivateSearchCV(inside(), {"normclipper__max_norm": [1.0]}, random_state=0)
        for seeded in (inside(random_state=0), search):
            assert (lint(seeded).severity, "seed" in lint(seeded).findings[0].leaks) == ("high", True)
        assert lint(search.set_params(random_state=None)).severity == "none"
        assert lint(inside(gate=None)).severity == "declared"

    def test_splits_must_keep_persons_whole(self):
        persons = ppdp.Adjacency.user_level(3)
        for pipe in (inside(adjacency=persons), inside(domain=ppdp.Domain(n_rows=9, adjacency=persons))):
            first = lint(pipe).findings[0]
            assert (first.estimator, first.severity) == ("Pipeline", "declared")
            assert "splits for training and testing keep persons whole" in first.leaks
            assert "GroupKFold" in first.fix
        assert lint(inside(adjacency=ppdp.Adjacency.add_remove())).severity == "none"

    def test_what_is_declared_to_be_public(self):
        public = transformers.Public(StandardScaler(), row_norm=1.0)
        assert [(found.estimator, found.severity) for found in lint(public)] == [("Public", "declared")]
        centring = FunctionTransformer(lambda X: X - X.mean(axis=0))
        assert lint(transformers.Public(centring, lipschitz=1.0, row_norm=1.0)).severity == "high"
        assert lint(inside(transformers.RowMap(lambda X: X - PUBLIC, out_norm=1.0))).severity == "declared"

    def test_a_stage_that_a_user_wrote_rests_on_its_authors_word(self):
        class Mirror(transformers.NormClipper):
            pass

        assert [found.severity for found in lint(inside(Mirror()))] == ["none", "declared", "none"]
        assert lint(Mirror()).severity == "high"

    def test_a_search_of_scikit_learn_around_a_pipeline_is_not_covered(self):
        assert lint(GridSearchCV(inside(), {})).severity == "high"
