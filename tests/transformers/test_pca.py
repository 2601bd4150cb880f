"""PCA and SoftPCA as people use them: outputs, public columns, errors, and inside a pipeline with a certificate."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA as Reference
from sklearn.exceptions import NotFittedError

from ppdp import Adjacency, Certificate, Domain, make_pipeline
from ppdp.bounds import lookup
from ppdp.core.distance import Distance
from ppdp.data.rows import Rows
from ppdp.data.statistics import Moments
from ppdp.exceptions import CertificateError, InvalidParameter
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.transformers import PCA, Deduplicator, MinMaxScaler, NormClipper, SoftPCA, StandardScaler
from ppdp.transformers.project.pca import PublicColumns

ONE = Adjacency.replace().distance

DOMAIN = Domain(n_rows=1000, n_features=6, row_norm=1.0, max_missing=0)
OUTPUTS = "rank", "projected", "aligned"


def rows(n=300, d=6, *, shift=0.5):
    rng = np.random.default_rng(0)
    return rng.standard_normal((n, d)) * np.linspace(2, 0.1, d) + shift


def exact(stage, domain=DOMAIN):
    (way,) = (way for way in stage.fit_modes(domain, ONE) if way.name == "exact")
    return way


def leading(X, k):
    return np.linalg.svd(X, full_matrices=False)[2][:k]


class TestMaps:
    def test_rank_is_the_reconstruction_of_scikit_learn_if_centred(self):
        X = rows()
        reference = Reference(2).fit(X)
        assert PCA(2, with_mean=True).fit_transform(X) == pytest.approx(
            reference.inverse_transform(reference.transform(X)), abs=1e-12
        )

    def test_uncentred_is_the_best_approximation_through_the_origin(self):
        X, V = rows(), leading(rows(), 2)
        assert PCA(2, with_mean=False).fit_transform(X) == pytest.approx(X @ V.T @ V, abs=1e-12)

    @pytest.mark.parametrize("center", [False, True])
    def test_projected_is_the_projection_in_public_columns(self, center):
        X = rows()
        kept = PCA(2, with_mean=center).fit(X)
        G = np.linalg.qr(np.arange(18.0).reshape(6, 3) ** 1.5)[0]
        origin = 0 if kept.mean_ is None else kept.mean_
        out = PCA(2, with_mean=center, output="projected", public_basis=G).fit_transform(X)
        assert out == pytest.approx((kept.transform(X) - origin) @ G, abs=1e-12)

    @pytest.mark.parametrize("center", [False, True])
    @pytest.mark.parametrize("columns", [2, 3])
    def test_aligned_keeps_lengths_and_is_closest_to_the_public_columns(self, center, columns):
        X = rows()
        G = np.linalg.qr(np.arange(6.0 * columns).reshape(6, columns) ** 1.5)[0]
        stage = PCA(2, with_mean=center, output="aligned", public_basis=G).fit(X)
        kept = PCA(2, with_mean=center).fit_transform(X)
        if center:
            kept -= X.mean(axis=0)
        assert np.linalg.norm(stage.transform(X), axis=1) == pytest.approx(np.linalg.norm(kept, axis=1))
        inner = stage.projection_.T @ G  # symmetric and positive: the polar factor
        assert inner == pytest.approx(inner.T, abs=1e-10)
        assert np.linalg.eigvalsh(inner)[0] > -1e-10

    def test_aligned_with_eigenvectors_as_columns_gives_their_coordinates(self):
        X = rows()
        V = leading(X, 2)
        stage = PCA(2, with_mean=False, output="aligned", public_basis=V.T)
        assert stage.fit_transform(X) == pytest.approx(X @ V.T, abs=1e-10)

    @pytest.mark.parametrize("output", ["projected", "aligned"])
    def test_all_components_are_a_public_map(self, output):
        X, G = rows(), PublicColumns.of(0, None, 6, usual=6, least=6, stage=None).matrix
        assert PCA(with_mean=False, output=output).fit_transform(X) == pytest.approx(X @ G, abs=1e-10)
        assert exact(PCA(with_mean=False, output=output)).conditions == ()

    def test_all_components_of_rank_change_nothing(self):
        X = rows()
        assert PCA(with_mean=True).fit_transform(X) == pytest.approx(X)

    @pytest.mark.parametrize(
        "stage",
        [*(PCA(2, with_mean=center, output=output) for center in (False, True) for output in OUTPUTS), SoftPCA()],
        ids=str,
    )
    def test_released_moments_go_through_the_map(self, stage):
        X = rows()
        stage = clone(stage).fit(X)
        carried = stage.carry(Moments.of_matrix(X.mean(axis=0), X.T @ X / len(X)), stage.held())
        Z = stage.transform(X)
        assert carried.mean == pytest.approx(Z.mean(axis=0))
        assert carried.matrix == pytest.approx(Z.T @ Z / len(Z))


class TestPublicColumns:
    def test_a_seed_decides_them_and_no_row_does(self):
        first, second = (PCA(1, output="projected", public_basis=7).fit(rows(shift=s)) for s in (0.0, 3.0))
        matrices = [PublicColumns.of(seed, None, 6, usual=2, least=1, stage=None).matrix for seed in (7, 7, 8)]
        assert np.array_equal(matrices[0], matrices[1])
        assert not np.allclose(matrices[0], matrices[2])
        for fitted in (first, second):
            assert fitted.projection_ == pytest.approx(fitted.components_.T @ fitted.components_ @ matrices[0])

    @pytest.mark.parametrize(
        ("k", "asked", "columns"), [(1, None, 2), (2, None, 4), (4, None, 6), (2, 3, 3), (2, 6, 6)]
    )
    def test_there_are_twice_as_many_as_components_unless_asked_otherwise(self, k, asked, columns):
        out = PCA(k, output="projected", n_columns=asked).fit_transform(rows())
        assert out.shape == (300, columns)

    def test_orthonormal_columns_stay_and_others_become_so(self):
        G = np.eye(6)[:, [3, 0]]
        assert np.array_equal(PublicColumns.of(G, None, 6, usual=2, least=1, stage=None).matrix, G)
        skew = PublicColumns.of([[2.0, 1.0], [0.0, 3.0]], None, 2, usual=2, least=1, stage=None).matrix
        assert skew == pytest.approx(np.eye(2))

    def test_the_usual_threshold_holds_for_random_columns(self):
        """Half of the edge of the spectrum of a random block: rarely missed, and of the right size."""
        rng, reached = np.random.default_rng(0), []
        for seed in range(200):
            columns = PublicColumns.of(seed, None, 50, usual=10, least=5, stage=None)
            block = np.linalg.qr(rng.standard_normal((50, 5)))[0]
            reached.append(np.linalg.svd(block.T @ columns.matrix, compute_uv=False)[-1])
        assert np.mean(np.array(reached) >= columns.usual_alignment(5)) > 0.97
        assert np.median(reached) < 4 * columns.usual_alignment(5)


class TestManners:
    @pytest.mark.parametrize("output", ["projected", "aligned"])
    def test_columns_are_named_after_the_class(self, output):
        frame = pd.DataFrame(rows(), columns=list("abcdef"))
        stage = PCA(2, output=output).set_output(transform="pandas").fit(frame)
        assert list(stage.transform(frame).columns) == ["pca0", "pca1", "pca2", "pca3"]
        assert stage.set_output(transform="polars").transform(frame).columns == ["pca0", "pca1", "pca2", "pca3"]

    def test_unfitted_has_no_names(self):
        with pytest.raises(NotFittedError):
            PCA(2, output="projected").get_feature_names_out()


class TestPlan:
    @pytest.mark.parametrize(
        ("settings", "formula", "conditions"),
        [
            ({"with_mean": False}, "pca.rank", ["pca.gap"]),
            ({}, "pca.centred-rank", ["pca.centred-gap"]),
            ({"output": "projected", "with_mean": False}, "pca.projected", ["pca.gap"]),
            ({"output": "projected"}, "pca.projected", ["pca.centred-gap"]),
            ({"output": "aligned", "with_mean": False}, "pca.aligned", ["pca.gap", "pca.alignment"]),
            ({"output": "aligned"}, "pca.aligned", ["pca.centred-gap", "pca.centred-alignment"]),
            ({"output": "aligned", "n_columns": 6, "with_mean": False}, "pca.projected", ["pca.gap"]),
        ],
    )
    def test_what_each_output_assumes(self, settings, formula, conditions):
        way = exact(PCA(2, **settings))
        assert way.formula == formula
        assert [condition.formula for condition in way.conditions] == conditions
        assert (way.request is not None) == ("output" in settings)

    def test_projected_costs_no_more_than_rank_and_aligned_by_its_threshold(self):
        stage = PCA(2, with_mean=False, public_basis=np.eye(6)[:, :2], min_alignment=0.25)
        rank, projected, aligned = (exact(clone(stage).set_params(output=output)).distance for output in OUTPUTS)
        assert projected.radius == pytest.approx(rank.radius)
        assert projected.total == pytest.approx(rank.total)
        assert aligned.radius == pytest.approx(4 * rank.radius)

    def test_centring_costs_more(self):
        assert exact(PCA(2, with_mean=True)).distance.radius > 2 * exact(PCA(2, with_mean=False)).distance.radius

    @pytest.mark.parametrize(
        ("settings", "norm", "columns"),
        [
            ({"with_mean": True}, np.sqrt(1.9), 6),
            ({"output": "projected", "with_mean": False}, 1.0, 4),
            ({"output": "aligned", "with_mean": True}, 1 + np.sqrt(0.9), 4),
        ],
    )
    def test_the_output_domain(self, settings, norm, columns):
        out = exact(PCA(2, **settings), DOMAIN.but(feature_names=tuple("abcdef"))).domain
        assert (out.row_norm, out.n_features) == (pytest.approx(norm), columns)
        assert (out.feature_names is None) == (columns == 4)


class TestCoarseProducts:
    """One product instead of three, where rows are many and few of them differ."""

    FACTS = Domain(n_rows=2**15, n_features=3, row_norm=np.sqrt(3), entry_bound=1.0, max_missing=0)

    @pytest.mark.parametrize(
        ("settings", "formula"),
        [
            ({"with_mean": False}, "pca.coarse-rank"),
            ({}, "pca.coarse-centred-rank"),
            ({"output": "projected"}, "pca.coarse-projected"),
            ({"output": "aligned"}, "pca.aligned"),
            ({"min_gap": 1e-6, "with_mean": False}, "pca.rank"),
        ],
    )
    def test_public_facts_decide(self, settings, formula):
        assert exact(PCA(1, **settings), self.FACTS).formula == formula

    def test_few_rows_or_many_that_differ_take_fine_products(self):
        fine, coarse = (lookup(f"pca.{name}", "stability") for name in ("rank", "coarse-rank"))
        far = Distance(replaced=1, moved=2**15, radius=1e-4)
        for domain, distance in [
            (self.FACTS.but(n_rows=2**15 - 1), ONE),
            (self.FACTS, far),
            (self.FACTS, far.among(999)),
        ]:
            found = {way.name: way for way in PCA(1, with_mean=False).fit_modes(domain, distance)}["exact"]
            assert found.formula == "pca.rank"
            assert found.distance == fine(domain, distance, **found.parameters)[1]
            with pytest.raises(CertificateError):
                coarse(domain, distance, **found.parameters)

    def test_they_cost_next_to_nothing(self):
        fine, coarse = (
            lookup(f"pca.{name}", "stability")(self.FACTS, ONE, min_gap=0.3)[1] for name in ("rank", "coarse-rank")
        )
        assert fine.radius < coarse.radius < fine.radius * (1 + 1e-6)

    @pytest.mark.parametrize("center", [False, True])
    def test_alone_the_directions_are_those_of_scikit_learn(self, center):
        X = rows(2**15 + 7)  # in two pieces
        expected = np.abs(Reference(2).fit(X).components_ if center else leading(X, 2))
        assert np.abs(PCA(2, with_mean=center).fit(X).components_) == pytest.approx(expected, abs=1e-12)

    @pytest.mark.parametrize("center", [False, True])
    def test_in_a_pipeline_they_are_the_same_but_for_coarse_products(self, center):
        X, stage = rows(2**15), PCA(2, with_mean=center)
        domain = Domain(n_rows=2**15, n_features=6, row_norm=float(np.linalg.norm(X, axis=1).max()), max_missing=0)
        way = exact(stage, domain)
        assert way.formula.startswith("pca.coarse")
        prepared = stage.prepare(Rows.of(X), way, domain)["components"]
        assert np.abs(prepared) == pytest.approx(np.abs(stage.fit(X).components_), abs=1e-9)

    @pytest.mark.parametrize(
        ("settings", "formula"),
        [
            ({"with_mean": False}, "pca.coarse-rank"),
            ({}, "pca.coarse-centred-rank"),
            ({"output": "projected"}, "pca.coarse-projected"),
        ],
    )
    def test_in_a_pipeline_with_a_certificate(self, settings, formula):
        X = np.clip(rows(2**15, 3) / 2, -1, 1)
        steps = MinMaxScaler(ranges=(-1.0, 1.0)), PCA(1, 0.02, fit_mode="exact", **settings), GaussianMechanism()
        certificate = make_pipeline(*steps, epsilon=1.0, random_state=0).fit(X).certificate_
        assert certificate["steps"][1]["formula"] == formula
        assert certificate.verify()
        document = json.loads(certificate.to_json())
        document["steps"][1]["distance"]["radius"] *= 0.9
        assert not Certificate.sealed(document).verify()


class TestPipelines:
    @pytest.mark.parametrize(
        "stage", [PCA(2), PCA(2, output="projected"), SoftPCA()], ids=["rank", "projected", "soft"]
    )
    def test_a_linear_model_behind_it_takes_newton_steps_at_the_price_of_one_row(self, stage):
        facts = Domain(n_rows=20_000, n_features=6, max_missing=0, classes=(0, 1))
        ahead = [MinMaxScaler(ranges=(-1, 1)), Deduplicator(), StandardScaler(), stage]
        behind = make_pipeline(*ahead, LogisticRegression(), epsilon=1.0, delta=1e-6).plan(facts)
        assert behind.mechanism.question.formula == "learning.newton"
        assert behind.steps[-1].way.distance.moved == 0
        assert behind.mechanism.sensitivity == pytest.approx(2 / 20_000, rel=1e-5)

    def data(self, n=20_000):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, 6)) * [1.0, 0.6, 0.02, 0.02, 0.02, 0.02]
        return X / np.maximum(1, np.linalg.norm(X, axis=1))[:, None], (X[:, 0] > 0).astype(int)

    @pytest.mark.parametrize("center", [False, True])
    @pytest.mark.parametrize("output", OUTPUTS)
    @pytest.mark.parametrize("statistics", ["exact", "noisy"])
    @pytest.mark.repeated("center", "statistics", keep=2)
    def test_with_a_classifier(self, output, center, statistics):
        X, y = self.data()
        stage = PCA(2, 0.02, center, output, fit_mode=statistics)
        if output == "aligned":
            stage.set_params(public_basis=np.eye(6)[:, [1, 0]], min_alignment=0.5)
        model = LogisticRegression(classes=(0, 1), max_iter=20)
        pipe = make_pipeline(NormClipper(1.0), stage, model, epsilon=4.0, random_state=0).fit(X, y)
        assert pipe.score(X, y) > 0.8
        assert pipe.certificate_.verify()
        twin = pipe["pca"]
        assert (twin.components_ is None) == (statistics == "exact" and output == "rank")
        released = "pca.matrix" if center else "pca.moment"  # the mean costs, so it is released where it is needed
        assert (released in pipe.release_.arrays) == (twin.components_ is not None)

    @pytest.mark.parametrize("output", OUTPUTS)
    def test_at_the_end_the_map_is_released(self, output):
        X, _ = self.data()
        pipe = make_pipeline(NormClipper(1.0), PCA(2, with_mean=True, output=output), epsilon=4.0, random_state=0).fit(
            X
        )
        twin = pipe["pca"]
        assert pipe.certificate_.status == "SEEDED"
        np.testing.assert_allclose(pipe.transform(X), twin.transform(X), 1e-6, 1e-12)
        assert len(pipe.get_feature_names_out()) == pipe.transform(X).shape[1]

    def test_moments_released_before_it_serve_stages_behind_it(self):
        X, y = self.data()
        stages = PCA(2, output="projected", fit_mode="noisy"), StandardScaler(fit_mode="noisy")
        pipe = make_pipeline(NormClipper(1.0), *stages, LogisticRegression(classes=(0, 1)), epsilon=8.0, random_state=0)
        pipe.fit(X, y)
        assert list(pipe.release_.arrays)[:1] == ["pca.matrix"]
        assert not any("scaler" in name for name in pipe.release_.arrays)
        assert pipe["standardscaler"].mean_.shape == (4,)
        assert pipe.certificate_.verify()

    @pytest.mark.parametrize("share", [0.5, 0.9, 0.99])
    def test_a_share_of_the_variance_tells_the_rank_from_what_was_released(self, share):
        X = rows(50_000)
        pipe = make_pipeline(MinMaxScaler(ranges=(-8, 8)), PCA(share), GaussianMechanism(), epsilon=50.0).fit(X)
        assert len(pipe["pca"].components_) == Reference(share).fit(X).n_components_
        assert pipe.certificate_.verify()
        assert pipe["pca"].transform(X[:5] / 8).shape == (5, 6)


@pytest.mark.parametrize("stage", [PCA(0.9, output="aligned"), PCA(0.9, fit_mode="exact"), PCA(1.0), PCA(True)])
def test_a_share_that_would_be_told_by_exact_rows_is_refused(stage):
    with pytest.raises(InvalidParameter):
        stage.fit_modes(DOMAIN, ONE)


# ---------------- SoftPCA, which assumes nothing


OF_FOUR = Domain(n_rows=1000, n_features=4, row_norm=2.0, max_missing=0)


def of_four(n=300, d=4):
    return np.random.default_rng(0).standard_normal((n, d)) * np.linspace(2, 0.1, d)


def fit_modes(stage, domain=OF_FOUR):
    return {way.name: way for way in stage.fit_modes(domain, Adjacency.replace().distance)}


def test_directions_shrink_by_their_eigenvalue_over_itself_plus_the_ridge():
    X = of_four()
    fitted = SoftPCA(0.01).fit(X)
    ridge = 0.01 * 4 * np.abs(X).max() ** 2  # alone, a row is at most √d times as long as the largest entry
    values, vectors = np.linalg.eigh(X.T @ X / len(X))
    assert fitted.transform(X) @ vectors == pytest.approx(X @ vectors * values / (values + ridge))


def test_it_is_a_gentle_projection():
    """A small ridge leaves the long direction alone and almost removes the short one."""
    X = np.array([[3.0, 0.0], [-3.0, 0.0], [0.0, 0.01], [0.0, -0.01]])
    out = SoftPCA(1e-3).fit_transform(X)
    assert out[0] == pytest.approx([3.0, 0.0], rel=0.01)
    assert abs(out[2, 1]) < 0.005 * 0.01


def test_nothing_is_assumed_and_the_output_is_bounded():
    exact, noisy = fit_modes(SoftPCA(0.25))["exact"], fit_modes(SoftPCA(0.25))["noisy"]
    assert exact.conditions == noisy.conditions == ()
    assert exact.domain == noisy.domain
    assert exact.domain.row_norm == pytest.approx(2.0 / 1.25)
    assert exact.parameters == {"ridge": 1.0}
    assert noisy.distance.one_sided == 1
    assert noisy.distance.radius < 1e-12  # rounding


def test_a_noisy_moment_gives_a_map_within_the_domain():
    wild = np.diag([100.0, -5.0, 0.5, 0.0])
    way = fit_modes(SoftPCA(0.25))["noisy"]
    shrinkage = SoftPCA(0.25).read(Moments.of_matrix(np.zeros(4), wild), way, OF_FOUR)["shrinkage"]
    assert np.linalg.eigvalsh(shrinkage) == pytest.approx([0.0, 0.0, 1 / 3, 0.8])


def test_the_default_ridge_is_a_public_function_of_the_domain():
    assert fit_modes(SoftPCA())["exact"].parameters["ridge"] == pytest.approx(0.25 / 4 * 4.0)


def test_at_the_end_the_map_is_released():
    pipe = make_pipeline(NormClipper(1.0), SoftPCA(0.1), epsilon=4.0, random_state=0).fit(of_four(20_000))
    assert pipe.certificate_.verify()
    assert pipe.transform(of_four()).shape == (300, 4)
