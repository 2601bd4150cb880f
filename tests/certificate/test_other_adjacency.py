"""What a run guarantees where neighbours are others: what a plan with that noise is certified for, or a refusal."""

import math
from dataclasses import replace

import numpy as np
import pytest
import zoo
from issue_golden import FIGURES, FOLDER

from ppdp import Adjacency, Domain, PrivateSearchCV, make_pipeline
from ppdp.certificate.document import Certificate
from ppdp.certificate.replay.verify import release_cost
from ppdp.core.distance import Distance
from ppdp.exceptions import CertificateError, InvalidParameter
from ppdp.mechanisms import GaussianMechanism, LaplaceMechanism, LogisticRegression
from ppdp.privacy.noise.laplace import score_allowance
from ppdp.privacy.noise.sampler import lattice_allowance
from ppdp.transformers import Deduplicator, MinMaxScaler, RobustScaler, StandardScaler

pytestmark = pytest.mark.filterwarnings("ignore::ppdp.exceptions.CompositionWarning")

RNG = np.random.default_rng(0)
X, Y, IDS = RNG.random((200, 2)), RNG.integers(2, size=200), np.arange(200) % 50
PERSON, ADDED, REPLACED = Adjacency.user_level(3), Adjacency.add_remove, Adjacency.replace
CHANGED = Adjacency.change(coordinate=0.1)
LAST = {
    "sum": lambda: (GaussianMechanism("sum"),),
    "count": lambda: (Deduplicator(), LaplaceMechanism("count")),
    "rows": lambda: (GaussianMechanism("rows"),),
    "model": lambda: (LogisticRegression(classes=(0, 1), solver="dpgd", max_iter=3),),
    "Newton steps": lambda: (LogisticRegression(classes=(0, 1), solver="newton", max_iter=3),),
}


def pipeline(last, adjacency, **parameters):
    given = {
        "epsilon": 1.0,
        "delta": 1e-6,
        "domain": Domain(n_rows=200, n_features=2),
        "diagnostics": None,
        **parameters,
    }
    return make_pipeline(MinMaxScaler(ranges=(0, 1)), *LAST[last](), adjacency=adjacency, **given)


def certificate(last, adjacency, **parameters):
    pipe = pipeline(last, adjacency, **parameters)
    return pipe.fit(X, Y, groups=IDS if adjacency.bounds_contributions else None).certificate_


def test_choices_cost_their_own_rounding():
    """Beside counts so large that it is no small part: more than that of as many numbers, and all that is proved."""
    steps = MinMaxScaler(ranges=(0, 1)), RobustScaler(fit_mode="noisy"), GaussianMechanism("sum")
    c = make_pipeline(*steps, epsilon=1.0, delta=1e-6).fit(X).certificate_.record
    domain, distance = Domain.from_dict(c.steps[0].domain), Distance.from_dict(c.steps[0].distance)
    coarse = replace(c.releases[0], bound=c.releases[0].noise_scale * 2.0**25)
    s, mu = release_cost(coarse, domain, distance)
    plain = lattice_allowance(coarse.bound, coarse.noise_scale, coarse.size)
    assert mu - s / coarse.noise_scale == pytest.approx(2 * plain)
    proved = math.sqrt(math.pi / 8 * coarse.size) * score_allowance(coarse.bound, coarse.noise_scale)
    assert 1.5 * plain < proved < 2 * plain


@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("run", [PERSON, ADDED(2), REPLACED(2), CHANGED], ids=lambda a: type(a).__name__)
def test_under_its_own_adjacency_a_run_costs_what_it_was_certified_for(last, run):
    found = certificate(last, run)
    again = found.under(run)
    assert again.epsilon == pytest.approx(found.epsilon, rel=1e-3)
    assert again.epsilon <= found.epsilon * (1 + 1e-9)
    assert (again.delta, again.status) == (found.delta, found.status)


@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("asked", [REPLACED(1), REPLACED(4), CHANGED], ids=str)
def test_a_plan_for_the_other_adjacency_with_that_budget_has_that_noise(last, asked):
    found = certificate(last, REPLACED(2))
    budget = found.under(asked).epsilon
    planned = pipeline(last, asked, epsilon=budget).plan().mechanism.noise_scale
    assert planned == pytest.approx(found.record.mechanism.noise_scale, rel=2e-3)


@pytest.mark.parametrize("last", LAST)
def test_a_run_for_persons_covers_rows_that_come_go_or_change_persons(last):
    found = certificate(last, PERSON)
    row, rows, many = (found.under(ADDED(j)).epsilon for j in (1, 3, 7))
    assert row < rows == many == found.under(PERSON).epsilon
    assert row < found.under(REPLACED()).epsilon < rows < found.under(REPLACED(2)).epsilon
    assert found.under(CHANGED).epsilon <= row
    alone = pipeline(last, Adjacency.user_level(1), epsilon=row).plan().mechanism.noise_scale
    assert alone == pytest.approx(found.record.mechanism.noise_scale, rel=2e-3)


REFUSED = {
    "persons that were not cut": (ADDED(), PERSON, "cut nobody's rows"),
    "persons cut to more": (PERSON, Adjacency.user_level(2), "kept 3 rows"),
    "rows that were not placed": (REPLACED(), ADDED(), "shift others"),
    "persons that were not placed": (REPLACED(), PERSON, "cut nobody's rows"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_run_did_not_do_is_refused_with_the_reason(name):
    run, asked, why = REFUSED[name]
    with pytest.raises(InvalidParameter, match=f"not covered.*{why}"):
        certificate("rows", run).under(asked)


def test_a_gate_covers_no_more_rows_than_it_was_made_for():
    found = zoo.certificate("gated, max")
    assert found.under(REPLACED()).epsilon <= found.epsilon
    with pytest.raises(InvalidParameter, match="more than its gate hides"):
        found.under(REPLACED(2))
    assumed = zoo.certificate("conditional")
    assert assumed.under(REPLACED(2)).epsilon > assumed.under(REPLACED()).epsilon
    assert assumed.under(REPLACED(2)).status == "CONDITIONAL"


def test_raw_keys_ladders_and_searches_were_bounded_for_replaced_rows():
    raw = make_pipeline(
        MinMaxScaler(ranges=(0, 1)),
        StandardScaler(fit_mode="exact"),
        Deduplicator(compare="raw"),
        GaussianMechanism("sum"),
    )
    with pytest.raises(InvalidParameter, match="no bound of a step holds there"):
        raw.fit(X).certificate_.under(CHANGED)
    searched = PrivateSearchCV(pipeline("model", None), {"minmaxscaler__feature_range": [(0, 1), (-1, 1)]}, epsilon=5.0)
    for found in (zoo.certificate("on a ladder"), searched.fit(X, Y).certificate_):
        with pytest.raises(InvalidParameter, match="composed for one adjacency"):
            found.under(REPLACED())


COMPOSED = {FIGURES, "on-a-ladder.json", "scaled-on-a-ladder.json", "a-search.json", "part-of-a-search.json"}
DERIVED = [path for path in sorted(FOLDER.rglob("*.json")) if path.name not in COMPOSED]


@pytest.mark.parametrize("path", DERIVED, ids=lambda path: path.stem)
@pytest.mark.repeated("path", keep=30)
def test_certificates_of_every_kind_cost_what_they_say_under_their_own_adjacency(path):
    """The derivation from the first distance on is that of the certificate, which another piece of code checks."""
    found = Certificate.load(path)
    again = found.under(found.record.neighbours).epsilon
    assert 0.9 * found.epsilon < again <= found.epsilon * (1 + 1e-9)


def test_what_does_not_hold_covers_nothing_and_what_is_asked_is_an_adjacency():
    found = certificate("sum", REPLACED())
    with pytest.raises(InvalidParameter, match="an Adjacency"):
        found.under("replace")
    broken = found.to_dict()
    broken["mechanism"]["noise_scale"] /= 2
    with pytest.raises(CertificateError, match="guarantees nothing"):
        Certificate(broken).under(REPLACED())
    assert math.isfinite(found.under(REPLACED()).epsilon)
    assert "replace one row" in str(found.under(REPLACED()))
