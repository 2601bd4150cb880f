"""What every mechanism keeps: it fills its budget, has certificates that verify, and refuses what is impossible."""

import copy
import math
import re
from inspect import signature

import numpy as np
import pytest
from sklearn.base import clone
from zoo import sealed

from ppdp import Adjacency, Distance, Domain, PrivacyLoss, make_pipeline, mechanisms
from ppdp import mechanisms as M
from ppdp.certificate.replay.verify import verify
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms.base import SharedDocstring
from ppdp.mechanisms.query.signs import FLIPS, STEPPED
from ppdp.transformers import Deduplicator, GridDeduplicator, NormClipper

ONE = Adjacency.replace().distance
FAR = Distance(replaced=1, moved=5, radius=0.001)
FACTS = Domain(n_rows=1000, n_features=3, row_norm=2.0, min_present=1000)
TARGETS = (1.0, 9.0)


def votes(X):
    """Each row is for one of two."""
    return np.hstack([X[:, :1] > 0, X[:, :1] <= 0]).astype(float)


COUNTS = ("mean", "sum", "count", "histogram")
QUERIES = {
    **{f"Gaussian {query}": M.GaussianMechanism(query) for query in (*COUNTS, "covariance", "rows")},
    **{f"Laplace {query}": M.LaplaceMechanism(query) for query in COUNTS},
    "quantile": M.ExponentialMechanism(),
    "upper quantile": M.ExponentialMechanism(q=0.9, candidates=[-0.5, 0, 0.5]),
    "utility": M.ExponentialMechanism("utility", candidates=["yes", "no"], utility=votes),
    "sketch": M.GaussianSketch(30),
    **{f"signs {flips}": M.SignMechanism(flips) for flips in FLIPS},
}
SOLVERS = ("newton", "dpgd", "poisson", "fixed-size", "epochs", "hidden", "output")
MODELS = {
    **{f"logistic {solver}": M.LogisticRegression((0, 1), solver=solver) for solver in SOLVERS},
    "softmax": M.LogisticRegression((0, 1, 2)),
    "hinge": M.LinearSVC((0, 1)),
    "squared": M.LinearRegression(TARGETS),
    "ridge": M.Ridge(TARGETS),
    "ridge output": M.Ridge(TARGETS, solver="output"),
    "ridge moments": M.Ridge(TARGETS, solver="moments"),
    **{kind.__name__: kind(TARGETS) for kind in (M.PoissonRegressor, M.TweedieRegressor, M.GammaRegressor)},
}


@pytest.mark.parametrize("name", [*QUERIES, *MODELS])
def test_calibration_fills_the_budget(name):
    """But for a hundredth, at the distance of the plan; and leaves the mechanism as it was."""
    mechanism = {**QUERIES, **MODELS}[name]
    before, budget = repr(mechanism), PrivacyLoss(0.3)
    for distance in (ONE, FAR) if name in MODELS else (ONE, Distance(replaced=1, toggled=1)):
        calibrated = mechanism.calibrate(FACTS, distance, budget)
        spent = calibrated.privacy_map(FACTS, distance).epsilon(1e-6)
        assert 0.99 * budget.epsilon(1e-6) < spent <= budget.epsilon(1e-6) * (1 + 1e-9)
        assert repr(mechanism) == before
        assert repr(clone(calibrated)) == repr(calibrated)
    if name in MODELS:
        assert calibrated.privacy_map(FACTS, ONE).epsilon(1e-6) <= spent
        assert isinstance(calibrated.max_iter, int)
    if isinstance(mechanism, M.SignMechanism):
        assert (calibrated.unit is None) == (mechanism.flips not in STEPPED)


SOFT = [name for name in QUERIES if name.startswith("Laplace")]


@pytest.mark.parametrize("name", [name for name in QUERIES if not name.startswith("signs")])
@pytest.mark.parametrize("stage", [None, Deduplicator(), GridDeduplicator(keep="soft")], ids=["", "dedup", "soft"])
@pytest.mark.repeated("stage")
def test_a_certificate_is_issued_and_verified(name, stage):
    stages = [] if stage is None or (isinstance(stage, GridDeduplicator) and name not in SOFT) else [stage]
    X = np.random.default_rng(0).uniform(-0.5, 0.5, (2000, 2))
    pipe = make_pipeline(NormClipper(), *stages, QUERIES[name], epsilon=2.0, delta=1e-5)
    certificate = pipe.fit(X).certificate_
    assert certificate.status == "UNCONDITIONAL"
    assert certificate.verify()


NO_LENGTH = (0.0, -1.0, math.inf, math.nan, "wide", True)
IMPOSSIBLE = {
    M.GaussianMechanism(): {"query": ("median", None, [])},
    M.LaplaceMechanism(): {"query": ("covariance", "median", None, [])},
    M.ExponentialMechanism(): {
        "q": (-0.1, 1.1, math.nan, "0.5", None),
        "candidates": (1, 0, [], [1], [2, 1], "ten", {3: 5}),
        "query": ("mean", None, []),
    },
    M.SignMechanism(): {"flips": ("exact", None), "unit": NO_LENGTH},
    M.WishartMechanism(20, 0.9995): {"rank": (0, 2.5), "min_cosine": (0.0, 1.0, -0.5), "query": ("sum",)},
    M.GaussianSketch(): {"rank": (0, 2.5), "min_eigenvalue": (0.0, 0.5, -1)},
    M.TweedieRegressor(TARGETS): {"power": (0.5, 2.5, "1", None, np.nan), "fit_intercept": (1, 0, "no", None)},
    M.LogisticRegression((0, 1), solver="poisson"): {"batch_size": (0, -3, 2.5, "many", None, True)},
    M.LogisticRegression((0, 1), solver="newton"): {"max_iter": (0, 1001), "alpha": (-1.0,), "solver": ("newton-cg",)},
    M.Ridge((-1, 1), solver="moments"): {
        "max_iter": (0,),
        "alpha": (-1.0,),
        "max_coef_norm": (0.0,),
        "solver": ("svd",),
    },
}


@pytest.mark.parametrize(
    ("mechanism", "wrong"),
    [
        (mechanism, {name: value})
        for mechanism, parameters in IMPOSSIBLE.items()
        for name, values in parameters.items()
        for value in values
    ],
    ids=str,
)
def test_impossible_parameters_are_refused_before_any_row(mechanism, wrong):
    facts = Domain(n_rows=3000, n_features=3)
    with pytest.raises(InvalidParameter, match=next(iter(wrong))) as caught:
        make_pipeline(NormClipper(), clone(mechanism).set_params(**wrong)).plan(facts)
    assert caught.value.stage.lower().startswith(type(mechanism).__name__.lower())


@pytest.mark.parametrize("noise_scale", [0.0, -1.0, math.nan, math.inf, "1", True])
@pytest.mark.parametrize("name", ["Gaussian sum", "quantile", "signs smooth", "logistic dpgd"])
@pytest.mark.repeated("name")
def test_noise_has_a_scale(name, noise_scale):
    mechanism = clone({**QUERIES, **MODELS}[name]).set_params(noise_scale=noise_scale)
    with pytest.raises(InvalidParameter, match="noise_scale"):
        mechanism.privacy_map(FACTS, ONE)


@pytest.fixture(scope="module")
def assuming():
    """Certificates of mechanisms that assume something of the rows."""
    rng = np.random.default_rng(0)
    wide, long = rng.uniform(-0.55, 0.55, (4000, 3)), rng.normal([0.8, *[0] * 19], 0.02, (3000, 20))
    fits = (M.GaussianSketch(300, min_eigenvalue=0.05), wide), (M.WishartMechanism(20, 0.9995), long)
    return {
        type(last).__name__: make_pipeline(NormClipper(), last, epsilon=2.0, delta=1e-6).fit(X).certificate_.to_dict()
        for last, X in fits
    }


FORGED = {
    "without the step": lambda c: c["steps"].pop(),
    "other rank": lambda c: c["mechanism"]["parameters"].update(rank=2),
    "other noise": lambda c: c["mechanism"].update(noise_scale=1.0),
    "without condition": lambda c: c["steps"][-1]["conditions"].clear(),
    "other slack": lambda c: c["total"].update(allowance=1e-18),
    "no mu": lambda c: c["total"].update(mu=0.0),
    "no if": lambda c: c.update(status="UNCONDITIONAL", reasons=["none"]),
}
FORGED_OF = {
    "WishartMechanism": [
        lambda c: c["mechanism"]["parameters"].update(min_cosine=0.99999),
        lambda c: c["steps"][-1]["parameters"].update(min_norm=1e-6),
        lambda c: c["total"]["parts"][0].update(cosine=0.99999),
    ],
    "GaussianSketch": [
        lambda c: c["mechanism"]["parameters"].update(share=0.2),
        lambda c: c["steps"][-1]["parameters"].update(share=0.2),
        lambda c: c["total"]["parts"][0].update(floor=400.0),
    ],
}


@pytest.mark.parametrize("name", FORGED_OF)
def test_forged_assumptions_are_found(assuming, name):
    assert verify(sealed(assuming[name]))
    for forge in (*FORGED.values(), *FORGED_OF[name]):
        content = copy.deepcopy(assuming[name])
        forge(content)
        assert not verify(sealed(content))


@pytest.mark.parametrize("name", mechanisms.__all__)
def test_parameters_are_described_once_and_no_others(name):
    kind = getattr(mechanisms, name)
    (section,) = re.findall(r"\n *Parameters\n *-+\n(.*?)\n\n", kind.__doc__, flags=re.S)
    assert sorted(re.findall(r"^ *(\w+) : ", section, flags=re.M)) == sorted(signature(kind).parameters)
    for title in ("Attributes", "Notes"):
        assert len(re.findall(rf"^ *{title}\n *---", kind.__doc__, flags=re.M)) == 1


def test_what_a_class_says_itself_comes_before_what_its_bases_say():
    class Base(SharedDocstring):
        """A base.

        Parameters
        ----------
        a, b : int
            Of the base.
        c : int
            Of the base, in
            two lines.

        Notes
        -----
        It is
        proved.
        """

    class Own(Base):
        """One of its own.

        Parameters
        ----------
        c : float
            Its own.

        Attributes
        ----------
        d_ : float
            Learned.
        """

    class Silent(Own):
        pass

    parameters = "Parameters\n----------\nc : float\n    Its own.\na, b : int\n    Of the base."
    attributes = "Attributes\n----------\nd_ : float\n    Learned."
    assert Own.__doc__ == "\n\n".join(["One of its own.", parameters, attributes, "Notes\n-----\nIt is\nproved."])
    assert Silent.__doc__ is None
