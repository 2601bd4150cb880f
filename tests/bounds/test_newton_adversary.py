"""Newton steps against an adversary: every answer of every pair, earlier answers being whatever he likes."""

import math
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from adversary import DISTANCES, World, attack, largest_share, named
from effort import found, rounds
from neighbours import ROUNDING, Pair
from sklearn.base import clone
from steering import answers, apart

from ppdp import Distance, Domain, Pipeline
from ppdp import mechanisms as M
from ppdp.bounds.newton import LENGTHS, NORMS, Factors, of_answers, triangle
from ppdp.bounds.newton import answers as number_of_answers
from ppdp.core.formula import lookup
from ppdp.data.rows import Rows
from ppdp.data.summary import symmetric, upper_triangle
from ppdp.mechanisms.base import QuerySpec
from ppdp.mechanisms.learn import newton, whitened
from ppdp.testing.answers import RecordingNoise
from ppdp.transformers.deduplicate.deduplicator import kept

N = 8
DOMAIN = Domain(n_rows=N, n_features=2, row_norm=1.0, max_missing=0)
ONE = Distance(replaced=1)
REWEIGHTED = [
    Distance(reweighted=3, mass=0.7, one_sided=0.5),
    Distance(replaced=1, reweighted=2, mass=2.6, one_sided=1.4),
]
NEWTON = {"solver": "newton", "max_iter": 2}
FULL, CALIBRATED = {"diagonal": False, "calibration": 0.0}, {"diagonal": True, "calibration": 0.1}
CODES, TARGETS = np.array([0.0, 1.0]), np.array([-1.0, 1.0])
MODELS = {
    "logistic": (M.LogisticRegression((0, 1), **NEWTON), CODES),
    "logistic, no intercept": (M.LogisticRegression((0, 1), fit_intercept=False, **NEWTON), CODES),
    "three classes, one of them empty": (M.LogisticRegression((0, 1, 2), **NEWTON), 2 * CODES),
    "three classes, no intercept": (M.LogisticRegression((0, 1, 2), fit_intercept=False, **NEWTON), 2 * CODES),
    "hinge": (M.LinearSVC((0, 1), **NEWTON), CODES),
    "squared": (M.LinearRegression((-1, 1), **NEWTON), TARGETS),
    "ridge, no intercept": (M.Ridge((-1, 1), alpha=3.0, fit_intercept=False, **NEWTON), TARGETS),
    "counts": (M.PoissonRegressor((0, 9), **NEWTON), TARGETS),
    "amounts": (M.GammaRegressor((0, 9), **NEWTON), TARGETS),
    "between, no intercept": (M.TweedieRegressor((0, 9), power=1.5, fit_intercept=False, **NEWTON), TARGETS),
}
each_model = pytest.mark.parametrize(("model", "labels"), MODELS.values(), ids=MODELS)


def question_of(model, domain=DOMAIN, mu=1.0, **form):
    """What the model asks; or in another form than its rule has for these rows."""
    asked = model.query_spec(domain, mu)
    assert asked.formula == "learning.newton"
    if asked.parameters["loss"] == "softmax":
        form.pop("calibration", None)
    parameters = {**asked.parameters, **form}
    return QuerySpec.asked("learning.newton", "mechanism", domain, parameters, number_of_answers(**parameters))


def labelled(pair, labels):
    """With these labels, and one side in another order."""
    left, right = (Rows(rows.X, labels[rows.y.astype(int)], rows.weight) for rows in (pair.left, pair.right))
    order = np.random.default_rng(1).permutation(right.n)
    return Pair(left, Rows(right.X[order], right.y[order], right.weight[order]))


def wild(question, seed):
    """Answers that lead anywhere: moments that are none, coefficients that are long, clips at either end."""
    rng = np.random.default_rng(seed)
    return [10.0 ** rng.integers(-3, 7) * rng.standard_normal(question.size) for _ in range(question.steps)]


def use(model, labels, distance, seed):
    settings = []
    for form, noise_scales in (FULL, (0.1, 1e-6)), (CALIBRATED, (0.1, 1e4)):
        question = question_of(model, **form)
        each = np.array(of_answers(DOMAIN, distance, **question.parameters))
        settings += [(question, each, (), 0.1)]
        settings += [(question, each, wild(question, seed + i), scale) for i, scale in enumerate(noise_scales)]

    def ratio(pair):
        pair = labelled(pair, labels)
        return max(float((apart(model, question, pair, *how) / each).max()) for question, each, *how in settings)

    return ratio


@pytest.mark.repeated("model", "labels")
@pytest.mark.parametrize("distance", DISTANCES, ids=named)
@each_model
def test_no_pair_exceeds_the_sensitivity_of_any_answer(model, labels, distance):
    world = World(DOMAIN, distance, labels=True, deleted=True)
    reached, _ = attack(world, use(model, labels, distance, seed=0), draws=3, steps=5)
    assert reached <= ROUNDING


@pytest.mark.repeated("model", "labels")
@pytest.mark.parametrize("distance", REWEIGHTED, ids=named)
@each_model
def test_nor_do_pairs_of_which_weights_differ(model, labels, distance):
    ratio = use(model, labels, distance, seed=5)
    assert largest_share(DOMAIN, distance, lambda pair: ratio(Pair(*pair)), draws=4, steps=6) <= ROUNDING


def test_one_record_replaced_stays_one_behind_a_deduplication():
    """Another copy is kept, so that rows stand in other places; sums know nothing of it."""
    _, distance = lookup("deduplication.whole-record", "stability")(DOMAIN, ONE)
    assert distance.reordered > 0
    model = M.LogisticRegression((0, 1), **NEWTON)
    question, rng, reached = question_of(model), np.random.default_rng(0), 0.0
    each = np.array(of_answers(DOMAIN, distance, **question.parameters))
    assert (each == of_answers(DOMAIN, ONE, **question.parameters)).all()

    def behind(which):
        X, y, weight = records[which], labels[which] * 1.0, np.zeros(N)
        weight[kept(X, y)] = 1.0
        return Rows(X, y, weight).settled()

    for _ in range(rounds(80)):
        records, labels, which = rng.uniform(-0.7, 0.7, (4, 2)), rng.integers(2, size=4), rng.integers(3, size=N)
        pair = Pair(behind(which), behind(np.r_[3, which[1:]]))
        reached = max(reached, found(float((apart(model, question, pair, noise_scale=1e-6) / each).max())))
    assert 0.7 < reached <= ROUNDING


def rows_of(*table, y=None, absent=0):
    X = np.zeros((N, 2))
    X[: len(table)] = table
    y = np.zeros(N) if y is None else np.r_[y, np.zeros(N - len(y))]
    return Rows(X, y, np.r_[np.zeros(absent), np.ones(N - absent)])


def leading(question, theta=(0.0, 0.0)):
    """Answers after which rows of norm 1 are far longer than any clip, seen as they are, with these coefficients."""
    factors = Factors.of(**question.parameters)
    shortest, moments, flat = (np.zeros(question.size) for _ in range(3))
    shortest[0] = factors.norms
    moments[: triangle(3)] = factors.moments * upper_triangle(np.diag([0.4, 0.4, 0.2]))
    flat[0] = factors.lengths
    return [shortest, moments, flat], factors


PLUS, MINUS = rows_of([1.0, 0.0], y=[1.0]), rows_of([1.0, 0.0], y=[0.0])
OTHER, GONE = rows_of([0.0, 1.0], y=[1.0]), rows_of([0.0, 0.0], y=[0.0], absent=1)


@pytest.mark.parametrize("diagonal", [False, True])
@pytest.mark.parametrize("distance", [ONE, Distance(toggled=1)], ids=named)
def test_every_answer_attains_it(distance, diagonal):
    """A bin for another, rows at right angles, and opposite gradients; or a row that comes."""
    model = M.LogisticRegression((0, 1), fit_intercept=False, solver="newton", max_iter=1)
    question = question_of(model, diagonal=diagonal)
    each = of_answers(DOMAIN, distance, **question.parameters)
    given, factors = leading(question)
    right, opposite = (GONE, GONE) if distance.toggled else (OTHER, MINUS)
    norms, moments, _, _ = apart(model, question, Pair(PLUS, right), given, 1e-6)
    if not distance.toggled:  # both have norm 1
        norms, _, _, _ = apart(model, question, Pair(PLUS, rows_of([0.0, 0.0], y=[1.0])), given, 1e-6)
    lengths = apart(model, question, Pair(PLUS, rows_of([1e-3, 0.0], y=[1.0]) if distance.replaced else GONE), given)[2]
    mine, told, _ = answers(model, question, PLUS, given, 1e-6)
    steps = [answers(model, question, rows, told, 1e-6)[0][3] for rows in (right, opposite)]
    turned, reversed_ = (mine[3] - step for step in steps)
    (own, other), size = factors.steps[0], 2
    gradient = np.linalg.norm(reversed_[:size]) / (own * distance.mass / N)
    curvature = np.linalg.norm(turned[size:]) / (other * each[1] / factors.moments)
    reached = [norms / each[0], moments / each[1], lengths / each[2], gradient, curvature]
    assert all(0.99 < found(ratio) <= ROUNDING for ratio in reached), reached


def test_a_gradient_attains_it_where_curvature_is_known():
    model = M.LinearRegression((-1, 1), fit_intercept=False, solver="newton", max_iter=1)
    question = question_of(model)
    pair = Pair(*(Rows(rows.X, 2 * rows.y - 1, rows.weight) for rows in (PLUS, MINUS)))
    step = apart(model, question, pair, leading(question)[0], 1e-6)[-1]
    assert 0.99 < found(step / of_answers(DOMAIN, ONE, **question.parameters)[-1]) <= ROUNDING


def test_all_answers_together_cost_what_the_shares_say():
    question = question_of(M.LogisticRegression((0, 1), **NEWTON), **CALIBRATED)
    p, each = question.parameters, np.array(of_answers(DOMAIN, ONE, **question.parameters))
    squares = each**2 / (each**2).sum()
    assert squares[:3] == pytest.approx(p["shares"])
    assert squares[4] / squares[3] == pytest.approx(p["last"])
    assert squares[5:].sum() == pytest.approx(p["calibration"])
    assert question.sensitivity(DOMAIN, ONE) == pytest.approx(2 / N)  # as of as many gradients at clip 1
    mu = question.loss(question.sensitivity(DOMAIN, ONE), 0.5).mu
    assert mu == pytest.approx(math.sqrt((each**2).sum()) / 0.5, rel=1e-6)


def test_rows_that_moved_are_charged_as_others_and_rows_in_other_places_not_at_all():
    question = question_of(M.LogisticRegression((0, 1), **NEWTON))
    moved, reordered = Distance(moved=1, radius=1e-6), Distance(toggled=1, reordered=2)
    assert question.sensitivity(DOMAIN, moved) == pytest.approx(question.sensitivity(DOMAIN, ONE))
    assert question.sensitivity(DOMAIN, reordered) == question.sensitivity(DOMAIN, Distance(toggled=1))


def begun(model, labels, monkeypatch):
    """The loss, and the whitening and coefficients with which steps begin."""
    caught = []
    with monkeypatch.context() as patch:
        patch.setattr(newton, "NewtonState", lambda *given: caught.extend(given[:3]))
        with pytest.raises(AttributeError):
            answers(model, question_of(model), rows_of([0.5, 0.1], y=labels[:1]))
    return caught


def shares_of(model, labels):
    """Labels as the loss sees them: of counts and amounts, as parts of their unit."""
    return np.array([0.0, 8.0]) if hasattr(model, "power") else labels


@pytest.mark.parametrize(("n", "d"), [(4100, 2), (300, 1), (300, 9), (300, 33), (50, 130)])
@pytest.mark.parametrize("k", [1, 3, 17])
def test_equal_rows_give_the_same_bits_wherever_they_stand(n, d, k):
    """Alone, among some others, in another order and layout, and beside rows that are no numbers."""
    model = M.LogisticRegression(tuple(range(max(k, 2))))
    loss = model._loss(
        replace(question_of(clone(model).set_params(**NEWTON), DOMAIN), parameters={"n_classes": k + (k < 2)})
    )
    rng = np.random.default_rng(n + d + k)
    X, y = (
        rng.uniform(-1, 1, (n, d)) * rng.choice([1.0, 1e-3, 1e-310, 0.0], (n, 1)),
        rng.integers(max(k, 2), size=n) * 1.0,
    )
    matrix, theta = rng.standard_normal((d, d)), rng.standard_normal((k, d + 1))
    whitening = whitened.Whitening(
        rng.uniform(-1, 1, d), matrix, np.ones(d), True, np.zeros(k), np.zeros((k, d)), 0.0, *np.ones((2, d))
    )

    def computed(X, y):
        rows = newton._on_grid(math.sqrt(d), Rows(X, y, np.ones(len(X))))
        Z = newton._whitened(whitening, math.sqrt(d), rows)
        assert Z.X.flags.c_contiguous  # as a private file has rows: sums over blocks hang on it
        of_rows, norms = newton._gradients_of(loss, theta, Z), rows.norms
        line = newton._scored(theta[0, :-1], whitening.norm_bound(math.sqrt(d)), True, Z)
        _, squares = newton._squared(Z.X)
        return [Z.X, Z.weight, squares, line.X, line.norms, *of_rows, loss.curvatures(of_rows[1], y), norms]

    everywhere = computed(X, y)
    with np.errstate(all="ignore"):
        for _ in range(rounds(20)):
            which = rng.permutation(n)[: rng.choice([1, 2, 3, n // 3, n])]
            part = np.array(X[which], order=rng.choice(["C", "F"]))
            beside = np.vstack([rng.choice([0.0, 1e300, np.nan, -1e-310], (rng.integers(4), 1)) * np.ones(d), part])
            found = computed(beside, np.r_[np.zeros(len(beside) - len(part)), y[which]])
            assert all((one[which] == two[len(beside) - len(part) :]).all() for one, two in zip(everywhere, found))


def test_once_nothing_moves_the_rows_are_read_for_the_last_time(monkeypatch):
    rng, read, exact = np.random.default_rng(0), [], newton.mean_of
    X = rng.standard_normal((20_000, 2)) / 4
    y = (X[:, 0] + rng.logistic(size=len(X)) / 4 > 0).astype(float)
    monkeypatch.setattr(newton, "mean_of", lambda *given: read.append(given) or exact(*given))
    question = question_of(
        M.LogisticRegression((0, 1), solver="newton", max_iter=7), Domain(20_000, 2, row_norm=2.0), 3.0
    )
    told = RecordingNoise(0)
    newton_steps = M.LogisticRegression((0, 1), solver="newton", max_iter=7)
    released = newton_steps.release(Rows.of(X, y), question, told, 1e-4)
    assert len(told.asked) == question.steps == 3 + 7 + 2
    assert len(read) <= 3 + 4 + 1
    assert released["theta"] == pytest.approx([4.0, 0.0, 0.0], abs=0.3)


# ---------------------------------------------------------------- what overflows, and what is nearly nothing

SIZES = 10.0 ** np.array([-320, -200, -160, -20, 0, 8, 160, 200, 308])
LONGEST = 1 + 1e-12


def extreme(rng, whitening, theta, scale):
    """A whitening, and coefficients, of these sizes; sometimes with what is no number."""
    d, width = len(whitening.centre), theta.shape[1]
    matrix, theta = (rng.choice(SIZES) * rng.uniform(-1, 1, shape) for shape in ((d, d), (len(theta), width)))
    if rng.random() < scale:
        matrix[rng.integers(d), rng.integers(d)] = rng.choice([np.nan, np.inf, -0.0])
    if rng.random() < scale:
        theta[0, rng.integers(width)] = rng.choice([np.nan, np.inf, -np.inf])
    return replace(whitening, centre=np.zeros(d), matrix=matrix, spread=np.ones(d), target_noise=0.0), theta


@each_model
def test_no_row_counts_more_than_one_whatever_overflows(model, labels, monkeypatch):
    """Whitenings and coefficients that no noise leads to; rows of subnormal norm, and some longer than was declared."""
    loss, whitening, theta = begun(model, labels, monkeypatch)
    rng, longest = np.random.default_rng(0), 0.0
    for _ in range(rounds(300)):
        whitening_, theta_ = extreme(rng, whitening, theta, 0.2)
        X = rng.choice([*SIZES[:5], 1 + 1e-15, 0.0, -0.0], (1, 2)) * rng.choice([-1.0, 1.0], (1, 2))
        rows = Rows(X, rng.choice(shares_of(model, labels), 1), rng.choice([1.0, 0.3, 1e-310, 0.0], 1))
        clip, curvature_clip = rng.choice([0.2, 500.0]), rng.choice([1e-14, 1.0, 1e5])
        with np.errstate(all="ignore"):
            whitened_rows = newton._whitened(whitening_, 1.0, newton._on_grid(1.0, rows))
            (sums,), (diagonal,) = (
                newton._step_sums(loss, whitening.intercept, theta_, clip, curvature_clip, True, form, whitened_rows)
                for form in (False, True)
            )
            norms = partial(newton._norms_of_gradients, loss, theta_)
            (bins,) = newton._histogram(np.arange(4.0), norms, whitened_rows)
        parts = [sums[: theta.size], sums[theta.size :], diagonal[theta.size :], bins]
        for part in parts:
            assert np.isfinite(part).all()
            longest = max(longest, float(np.linalg.norm(part)) / max(rows.weight[0], 1e-300))
        bent_most = [np.linalg.eigvalsh(symmetric(own, theta.shape[1]))[0] for own in np.split(parts[1], len(theta))]
        assert min(*bent_most, *parts[2]) >= -1e-12  # two of them are at most the square root of 2 apart
    assert 0.99 < longest <= LONGEST


@pytest.mark.parametrize("size", [1.0, 1e149, 1e151, 1.3e154])
def test_rows_that_are_seen_too_far_away_are_absent(size):
    """Their squares would be no numbers, nor would sums over all rows."""
    loss = M.LogisticRegression((0, 1))._loss(question_of(M.LogisticRegression((0, 1), **NEWTON)))
    whitening = whitened.Whitening(
        -np.ones(1), np.array([[size]]), np.ones(1), True, *np.zeros((2, 1, 1)), 0.0, *np.ones((2, 1))
    )
    with np.errstate(all="ignore"):
        whitened_rows = newton._whitened(whitening, 1.0, Rows(np.ones((1, 1)), np.ones(1), np.ones(1)))
        for rows in (whitened_rows, newton._scored(np.ones(1), whitening.norm_bound(1.0), True, whitened_rows)):
            (sums,) = newton._step_sums(loss, True, np.zeros((1, 2)), 3.0, 1.0, True, True, rows)
            assert np.linalg.norm(sums[:2]) <= LONGEST
            assert np.linalg.norm(sums[2:]) <= LONGEST


@pytest.mark.repeated("model", "labels", keep=4)
@each_model
def test_a_row_that_overflows_tells_no_more_than_another(model, labels):
    """Coefficients that are led as far as they go, in many steps, and neighbours with rows of any length."""
    question = question_of(clone(model).set_params(max_iter=40))
    each = np.array(of_answers(DOMAIN, ONE, **question.parameters))
    rng = np.random.default_rng(1)
    for _ in range(rounds(2)):
        X = rng.uniform(-0.7, 0.7, (N, 2)) * rng.choice([1.0, 1e-160, 1e-310, 0.0], (N, 1))
        rows = Rows(X, rng.choice(labels, N), np.ones(N))
        other = Rows(np.r_[-X[1:2], X[1:]], np.r_[labels[0], rows.y[1:]], np.ones(N))
        lead = 1e9 * np.ones(question.size)
        for given in ((), [lead] * question.steps, [*leading(question)[0], *[-lead] * 40]):
            ratios = apart(model, question, Pair(rows, other), given, 1e-3) / each
            assert found(float(ratios.max())) <= ROUNDING


@pytest.mark.parametrize("noise_scale", [1e-12, 1e-6, 1.0, 1e6])
@pytest.mark.parametrize(("n", "d"), [(1, 1), (2, 1), (3, 7), (50, 2)])
@pytest.mark.repeated("n", "d", "noise_scale", keep=2)
@each_model
def test_any_shape_and_noise_gives_finite_coefficients(model, labels, n, d, noise_scale):
    domain, rng = Domain(n_rows=n, n_features=d, row_norm=2.0, max_missing=0), np.random.default_rng(n)
    question = question_of(model, domain)
    X = rng.uniform(-1, 1, (n, d)) / math.sqrt(d)
    rows, noise = Rows(X, rng.choice(labels, n), np.ones(n)), RecordingNoise(7)
    released = model.release(rows, question, noise, noise_scale)
    assert len(noise.asked) == question.steps
    assert np.isfinite(released["theta"]).all()


# ---------------------------------------------------------------- certificates


def test_answers_are_as_many_and_as_long_as_their_shape_says():
    three, two = M.LogisticRegression((0, 1, 2), **NEWTON), M.LogisticRegression((0, 1), **NEWTON)
    assert question_of(three, **FULL).size == max(NORMS, LENGTHS, triangle(3 + 3), 3 * (3 + triangle(3)))
    assert question_of(three).size == max(NORMS, LENGTHS, triangle(3 + 3), 3 * (3 + 3))
    assert [question_of(two, **form).steps for form in (FULL, CALIBRATED)] == [3 + 2, 3 + 2 + 2]


def test_what_is_left_to_curvatures_costs_no_more_as_a_gradient():
    """Of every distance: once nothing moves any more, all that is left is spent on the last gradient."""
    for distance in (*DISTANCES, *REWEIGHTED):
        question = question_of(M.LogisticRegression((0, 1), **NEWTON), curvature=0.9)
        both = of_answers(DOMAIN, distance, **question.parameters)[-1]
        own, other = Factors.of(**question.parameters).steps[-1]
        alone = of_answers(DOMAIN, distance, **{**question.parameters, "curvature": 0.0})[-1]
        factor = Factors.of(**{**question.parameters, "curvature": 0.0}).steps[-1][0]
        assert newton.both(own, other) * alone / factor <= both * ROUNDING


def test_many_steps_are_kept_as_their_certificate_says():
    rng = np.random.default_rng(0)
    X, y = rng.uniform(-0.5, 0.5, (200, 2)), rng.integers(2, size=200)
    model = M.LogisticRegression((0, 1), solver="newton", max_iter=130)
    pipe = Pipeline([("model", model)], domain=Domain(row_norm=1.0), epsilon=5.0, delta=1e-4, random_state=0)
    fitted = pipe.fit(X, y)
    assert fitted.certificate_.verify()
    steps, path = (getattr(fitted.named_steps["model"], name) for name in ("path_steps_", "coef_path_"))
    assert len(steps) == len(path) == 100
    assert (path[-1] == fitted.named_steps["model"].coef_).all()


@pytest.mark.parametrize("odd", ["2", "-1", "", "nan", "1e400"])
def test_labels_that_are_none_are_repaired_and_say_nothing(odd):
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.5, 0.5, (40, 2)).astype(object)
    y = np.array([str(label) for label in rng.integers(2, size=40)], dtype=object)
    y[3] = odd
    model = M.LogisticRegression(("0", "1"), **NEWTON)
    pipe = Pipeline([("model", model)], domain=Domain(row_norm=1.0), epsilon=9.0, delta=1e-3, on_invalid="repair")
    fitted = pipe.set_params(random_state=0).fit(X, y)
    assert np.isfinite(fitted.named_steps["model"].coef_).all()
    assert fitted.certificate_.verify()
