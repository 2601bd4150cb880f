"""What cannot be attacked is refused by its name, before anything runs."""

import dataclasses
import math
from functools import partial

import numpy as np
import printed_claims as printed
import pytest
from catalogue import TARGETS

from ppdp import Domain, Sensitivity, make_pipeline
from ppdp.audit import (
    Claim,
    ForeignTarget,
    FunctionTarget,
    GateTarget,
    PlanTarget,
    attack_output,
    attack_stability,
    audit,
    worst_pair,
)
from ppdp.audit.external_transforms import placed
from ppdp.audit.output import judged
from ppdp.audit.trials import make_trials
from ppdp.data.rows import Rows
from ppdp.exceptions import InvalidParameter, MissingBound
from ppdp.mechanisms import GaussianMechanism
from ppdp.privacy.loss import PrivacyLoss
from ppdp.transformers import NormClipper

DOMAIN, SMALL = Domain(n_rows=4, n_features=1, row_norm=1.0), Domain(n_rows=12, n_features=2)
PAIR = Rows.of([[1.0], [0.0], [0.0], [0.5]]), Rows.of([[-1.0], [0.0], [0.0], [0.5]])
PIPELINE = make_pipeline(NormClipper(), GaussianMechanism(), epsilon=5.0, delta=1e-6)


def never(side, noise):
    raise AssertionError("it ran")


def claim(claimed, **settings):
    return Claim(**{"transform": np.negative, "domain": DOMAIN, "claimed": claimed, **settings})


TARGET = FunctionTarget("x", never, PrivacyLoss(mu=1.0))
WRONG = [
    (
        partial(claim, {"l2": 1.0}),
        {
            "transform": (3,),
            "domain": ({"n_rows": 4},),
            "distance": (1,),
            "holds": (True,),
            "name": (3,),
            "resolution": (-1,),
            "gaps": (-1,),
            "scales": (3, "a", ("a",), (0.1, math.nan), (0.0,)),
        },
    ),
    (partial(dataclasses.replace, TARGET), {"loss": (1.0,), "delta": (-1, 1.0, "x"), "release": (3,)}),
    (lambda **wrong: dataclasses.replace(TARGETS["search by chance"](), **wrong), {"loss": (1.0,), "delta": (-1,)}),
    (partial(ForeignTarget, "x", never, 0.0, 1.0), {"epsilon": (-1.0, math.inf)}),
    (partial(ForeignTarget, "x", never, 0.0, 1.0, 1.0), {"delta": (2.0,)}),
    (
        partial(attack_output, TARGET),
        {
            "n_jobs": (0, 1.5, True),
            "random_state": ("a", -1),
            "runs": (10**18, 1999, 2.5e3),
            "confidence": ("x", True, 1.0, 0),
        },
    ),
    (partial(make_trials, TARGET), {"slices": (0, 10**15)}),
    (partial(make_trials, TARGET, 1), {"slice_runs": (0,), "random_state": (-1,)}),
    (partial(attack_stability, claim({"l2": 1.0})), {"seed": (-1, "a", 1.5)}),
    (partial(attack_stability, NormClipper(), DOMAIN), {"evaluations": (0,), "distance": (1,)}),
    (partial(worst_pair, PIPELINE.plan(SMALL)), {"seed": (-1, "a", 1.5)}),
    (partial(audit, PIPELINE, SMALL), {"seed": (-1,), "confidence": (1.0,), "runs": (10**12,), "seconds": (0,)}),
]


@pytest.mark.parametrize(
    ("call", "name", "value"),
    [(call, name, value) for call, wrong in WRONG for name, values in wrong.items() for value in values],
)
def test_a_wrong_value_is_named(call, name, value):
    with pytest.raises(InvalidParameter, match=name):
        call(**{name: value})


UNGATED = TARGETS["deduplication"]()
NUMBERS = (-1.0, "0.2", None, [0.1], 10**400, lambda X, Z: None, lambda X, Z: -1.0)
NO_NUMBERS = ({"l2": np.nan}, {"l2": np.array([np.nan])}, Sensitivity(linf=2, l2=np.nan))
CASES = [
    *(
        (lambda bound=bound: claim({"l2": bound}).uses(PAIR), r"the bound of l2 is .*Fix: claim a number")
        for bound in NUMBERS
    ),
    *((lambda claimed=claimed: claim(claimed), "the bound of l2 is") for claimed in NO_NUMBERS),
    *(
        (lambda claimed=claimed: claim(claimed), r"nothing is claimed.*Fix: claim a Distance")
        for claimed in (None, {}, 0.2, lambda domain, distance: 3)
    ),
    (lambda: claim({"l3": 1}), r"unknown quantities: \['l3'\]"),
    (lambda: claim({"l2": 1.0}, domain=DOMAIN.but(min_present=5)), r"min_present .* at most 4, got 5"),
    (lambda: claim({"l2": 1.0}, domain=DOMAIN.but(max_missing=3), gaps=2), "gaps is 2, and .* max_missing = 3"),
    (lambda: placed([[10**400], [0]], None, PAIR[0], "it"), "no table of real numbers"),
    (lambda: worst_pair(PIPELINE), r"a Pipeline is no plan.*pipeline.plan\(domain\)"),
    (lambda: attack_stability([1]), "a list cannot be attacked"),
    (lambda: attack_stability(NormClipper()), "in a domain"),
    (lambda: attack_stability(NormClipper(), {"n_rows": 4}), "domain is of type dict"),
    (
        lambda: attack_stability(Claim(abs, printed.ball(5, 1), {"l2": 1.0}, holds=lambda X: False), evaluations=10),
        "nothing could be attacked: .*: its conditions held",
    ),
    *((lambda wrong=wrong: attack_output(wrong, runs=2000), "is no target") for wrong in (3, None, print)),
    (lambda: attack_output(TARGET, confidence=1.0), r"above 0 and below 1, got 1\.0"),
    (lambda: PlanTarget("x", PIPELINE, *PAIR), "plan must be a Plan"),
    (lambda: GateTarget("x", UNGATED.plan, UNGATED.left, UNGATED.right, fails=True), "gate"),
    (
        lambda: judged(TARGET, make_trials(dataclasses.replace(TARGET, release=lambda side, noise: 0.0), 1)),
        "two slices",
    ),
    (lambda: audit(PIPELINE.plan(SMALL), SMALL), "own domain"),
    (lambda: audit(NormClipper(1.0), SMALL), "cannot be audited"),
]


@pytest.mark.parametrize(("call", "words"), CASES)
def test_the_reason_is_said(call, words):
    with pytest.raises(InvalidParameter, match=words):
        call()


def test_a_claim_of_rows_that_nobody_counted():
    with pytest.raises(MissingBound, match="n_rows"):
        Claim(np.negative, Domain(n_features=1), {"l2": 1.0})
