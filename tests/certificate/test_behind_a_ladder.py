"""Certificates of ladders: what stands behind one follows again on every rung, and other ladders are refused."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest
from ladders import GAPS, on_a_ladder, rows

from ppdp import Certificate, Domain, Ladder, Pipeline
from ppdp.certificate.canonical import schema
from ppdp.core.ladder import MOST_RUNGS
from ppdp.exceptions import UnsupportedOrder
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.testing import REGISTRY
from ppdp.transformers import PCA, Deduplicator, GridQuantizer, MeanImputer, MinMaxScaler, NormClipper, StandardScaler
from ppdp.transformers.base import Stage

CENTRED = ("clip", NormClipper()), ("pca", PCA(1, center=True, statistics="exact"))
FILLED = ("box", MinMaxScaler(ranges=(-1, 1))), ("impute", MeanImputer(statistics="exact"))
BEHIND = {
    "eigengap": (CENTRED, Ladder("pca__min_gap", GAPS)),
    "gaps": (FILLED, Ladder("impute__max_missing", (500, 1000, 5000))),
}
MEAN = ("last", GaussianMechanism())
SCALED = ("grid", GridQuantizer()), ("scale", StandardScaler(statistics="exact"))
ACCEPTED = {
    "eigengap": {
        "GridQuantizer",
        "MinMaxScaler",
        "SoftPCA",
        "StandardScaler",
        "GaussianMechanism",
        "LinearSVC",
        "Ridge",
    },
    "gaps": {"GridQuantizer", "MeanImputer", "SoftPCA", "StandardScaler", "GaussianMechanism"},
}


def people(what: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows that pass the middle rung, and targets."""
    rng = np.random.default_rng(1)
    X = rows(0.5).X
    if what == "gaps":
        X = rng.uniform(-1, 1, X.shape)
        X[:600, 0] = np.nan
    return X, rng.integers(1, 3, size=len(X))


@cache
def climbed(what: str, *behind) -> Certificate:
    stages, ladder = BEHIND[what]
    steps = [*stages, *behind] if behind and not isinstance(behind[-1][1], Stage) else [*stages, *behind, MEAN]
    return Pipeline(steps, gate=ladder, domain=Domain(y_range=(1, 2))).fit(*people(what)).certificate_


def offered(what: str, kind) -> bool:
    """Whether a plan puts this class behind a ladder; if it does, its certificate must verify."""
    one = kind.example()
    stage = isinstance(one, Stage)
    chosen = {"statistics": "exact"} if stage else {"noise_scale": None}
    one.set_params(**{name: value for name, value in chosen.items() if name in one.get_params()})
    try:
        certificate = climbed(what, ("later" if stage else "last", one))
    except UnsupportedOrder:
        return False
    assert certificate["gate"]["ladder"]["rung"] == 1
    assert certificate.verify(), certificate.verify()
    return True


class TestBehind:
    @pytest.mark.parametrize("what", BEHIND)
    def test_whatever_a_plan_puts_behind_a_ladder_verifies(self, what):
        """Every registered stage and mechanism: either a typed refusal, or a certificate that holds on every rung."""
        found = {name for name, kind in REGISTRY.items() if offered(what, kind)}
        assert found >= ACCEPTED[what]

    @pytest.mark.parametrize(("gap", "rung"), [(0.9, 0), (0.5, 1), (0.25, 2)])
    def test_from_every_rung_the_others_follow(self, gap, rung):
        """A floor and a cell that are shares of the norm of a row, which the eigengap bounds."""
        steps = [*CENTRED, *SCALED, MEAN]
        one = Pipeline(steps, gate=Ladder("pca__min_gap", GAPS)).fit(rows(gap).X).certificate_
        ladder = one["gate"]["ladder"]
        assert ladder["rung"] == rung
        assert one.verify(), one.verify()
        assert len({own["parameters"]["scale"]["min_std"] for own in ladder["rungs"]}) == len(GAPS)
        assert len({own["parameters"]["grid"]["cell"] for own in ladder["rungs"]}) == len(GAPS)

    def test_only_what_depends_on_the_rung_is_written_for_each(self):
        behind = SCALED[1], ("box", MinMaxScaler(ranges=(-1, 1)))
        for own in climbed("eigengap", *behind)["gate"]["ladder"]["rungs"]:
            assert own["parameters"].keys() == {"pca", "scale"}

    def test_a_bound_that_is_another_one_on_some_rung(self, monkeypatch):
        """A class whose formula depends on the norm of a row: on each rung it is accounted as another stage."""
        ways = NormClipper.ways

        def changing(stage, domain, distance):
            (way,) = ways(stage, domain, distance)
            other = type(way).by("row-wise.identity", domain, distance)
            return (other if domain.row_norm and domain.row_norm < 1.3 else way,)

        monkeypatch.setattr(NormClipper, "ways", changing)
        with pytest.raises(UnsupportedOrder, match="another formula on another rung"):
            on_a_ladder(None, NormClipper(), PCA(1, center=True, statistics="exact"), NormClipper(1.2))


def every_rung(change):
    def forge(c):
        for rung in c["gate"]["ladder"]["rungs"]:
            change(rung)

    return forge


def rung(i, change):
    return lambda c: change(c["gate"]["ladder"]["rungs"][i])


def turned(c):
    ladder = c["gate"]["ladder"]
    ladder["rungs"].reverse()
    ladder["rung"] = len(ladder["rungs"]) - 1 - ladder["rung"]


FORGERIES = {
    "the loosest first": (turned, "must become looser"),
    "the loosest dropped": (lambda c: c["gate"]["ladder"]["rungs"].pop(), "must become looser"),
    "the tightest asks for less than the next": (rung(0, lambda r: r.update(further=0)), "further away"),
    "a floor that is not tested on a rung": (
        rung(2, lambda r: r["parameters"]["scale"].update(conditional=True)),
        "assumes",
    ),
    "another floor": (rung(2, lambda r: r["parameters"]["scale"].update(min_std=10.0)), "mechanism"),
    "a floor that goes unsaid": (rung(2, lambda r: r["parameters"].pop("scale")), "mechanism"),
    "parameters of a step before it": (
        every_rung(lambda r: r["parameters"].update(clip={"max_norm": 1e-3})),
        "no step",
    ),
    "parameters of nobody": (rung(0, lambda r: r["parameters"].update(nobody={})), "no step"),
    "a threshold that goes unsaid": (rung(0, lambda r: r["parameters"].pop("pca")), "must become looser"),
    "another query on another rung": (
        rung(0, lambda r: r["mechanism"].update(formula="query.count", parameters={})),
        "another mechanism",
    ),
    "a mechanism that is not Gaussian": (
        rung(0, lambda r: r["mechanism"].update(mu=None, formula="laplace.count", parameters={})),
        "another mechanism",
    ),
    "a passed rung with parameters of its own": (
        rung(1, lambda r: r["parameters"]["scale"].update(min_std=10.0)),
        "not that of its rung",
    ),
}


class TestForged:
    @pytest.mark.parametrize("forgery", FORGERIES)
    def test_ladders_that_no_plan_makes(self, forgery):
        forge, words = FORGERIES[forgery]
        content = copy.deepcopy(climbed("eigengap", *SCALED).to_dict())
        forge(content)
        problems = Certificate.sealed(content).verify().problems
        assert any(words in problem for problem in problems), problems

    def test_a_rung_that_its_release_does_not_know(self):
        """Absent rows leave the floor of the means alone, so that one release for prediction serves all rungs."""
        stages = ("box", FILLED[0][1]), ("dedup", Deduplicator()), FILLED[1], ("last", LogisticRegression((1, 2)))
        pipe = Pipeline(stages, gate=Ladder("impute__max_missing", (500, 1000, 5000)))
        content = pipe.fit(*people("gaps")).certificate_.to_dict()
        assert Certificate.sealed(content).verify()
        content["gate"]["ladder"]["rungs"][0]["parameters"]["impute"]["min_observed"] += 1
        problems = Certificate.sealed(content).verify().problems
        assert any("rungs[0]" in problem and "its release has other parameters" in problem for problem in problems)

    def test_too_many_rungs(self):
        content = climbed("eigengap", *SCALED).to_dict()
        ladder = content["gate"]["ladder"]
        ladder["rungs"] = ladder["rungs"][:1] * MOST_RUNGS + ladder["rungs"]
        assert "does not have the form" in str(Certificate.sealed(content).verify())
        assert schema()["$defs"]["ladder"]["properties"]["rungs"]["maxItems"] == MOST_RUNGS

    def test_an_ordinary_one_is_no_forgery(self):
        assert Certificate.sealed(climbed("eigengap", *SCALED).to_dict()).verify()
