"""The contract of every registered class, and that its parts are consistent."""

import math

import pytest
from effort import rounds
from growing_tables import FAMILIES, Table
from limits import ENTRIES
from sklearn.base import clone

from ppdp import Adjacency, Domain
from ppdp.testing import REGISTRY, check_stage
from ppdp.testing.stages import DOMAINS
from ppdp.transformers import RobustScaler, StandardScaler
from ppdp.transformers.base import Stage
from ppdp.transformers.scale.standard_scaler import usual_floor

STAGES = [kind for kind in REGISTRY.values() if issubclass(kind, Stage)]
BOX = Domain(n_rows=14, n_features=2, row_norm=math.sqrt(2), entry_bound=1.0, min_present=14, classes=(0, 1))


@pytest.mark.parametrize("domain", DOMAINS, ids=["one column", "ball", "box"])
@pytest.mark.parametrize("kind", STAGES, ids=lambda kind: kind.__name__)
@pytest.mark.repeated("domain")
def test_the_example_keeps_the_contract(kind, domain, monkeypatch):
    """On one of three domains, in an attack on each."""
    monkeypatch.setattr("ppdp.testing.stages.DOMAINS", (domain,))
    assert 0 < check_stage(kind.example(), pairs=rounds(3), climbs=rounds(4)) <= 1 + 1e-9


@pytest.mark.parametrize("kind", STAGES, ids=lambda kind: kind.__name__)
def test_sensitivity_is_the_stability_map_of_one_replaced_row(kind):
    stage = clone(kind.example())
    complete = BOX if stage.fills_gaps else BOX.but(max_missing=0)
    domain, distance = stage.stability_map(complete, Adjacency.replace().distance)
    assert stage.sensitivity(complete).linf == distance.moved
    assert stage.sensitivity(complete).l2 == distance.radius
    assert domain.missing_rows == 0
    assert distance.replaced >= 1


# ---------------- consistency


FEW, MANY, MOST = 4_000, 64_000, 1_000_000
FALLS = 0.7  # at most so much of the error is left by 16 times the rows; noise alone leaves a sixteenth
NONE = 0.01  # an error that need not fall any more


@pytest.mark.parametrize("place", range(len(FAMILIES)))
@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
@pytest.mark.repeated("place")
def test_what_is_released_goes_where_it_should(entry, place):
    name = entry.tables[place % len(entry.tables)]
    late = name in entry.late
    if late and rounds(1) == 1:
        pytest.skip("at length, with a million rows")
    fewer, more = (entry.error(Table(name, n, place)) for n in ((MANY, MOST) if late else (FEW, MANY)))
    assert more <= entry.most
    assert entry.fixed or more <= max(FALLS * fewer, NONE)


def test_every_registered_class_has_an_entry():
    said = {entry.name.partition(",")[0] for entry in ENTRIES}
    own = {name: kind for name, kind in REGISTRY.items() if kind.__module__.startswith("ppdp.")}
    assert said >= {name for name, kind in own.items() if not issubclass(kind, Stage) or hasattr(kind, "fit_mode")}


def test_what_goes_elsewhere_is_said():
    assert all(entry.instead for entry in ENTRIES if entry.fixed and entry.most > 0.1)


def fit_modes(stage, n, moved=0):
    """What is asked of n rows of 4 columns, by way."""
    domain = Domain(n_rows=n, n_features=4, row_norm=2.0, entry_bound=1.0, max_missing=0)
    distance = Adjacency.replace().distance
    if moved:
        distance = distance.widened(n, moved, 1e-3)
    return {way.name: way.parameters for way in stage.fit_modes(domain, distance)}


@pytest.mark.parametrize(("stage", "floor"), [(StandardScaler(), "min_std"), (RobustScaler(), "min_width")], ids=repr)
def test_floors_fall_only_where_statistics_are_released_of_rows_that_stay(stage, floor):
    few, many = fit_modes(stage, 400), fit_modes(stage, 1_000_000)
    assert few["noisy"][floor] == few["exact"][floor] == many["exact"][floor] == 0.25
    assert many["noisy"][floor] < 0.05
    assert fit_modes(stage, 1_000_000, moved=5)["noisy"][floor] == 0.25


def test_a_clip_grows_where_floors_fall():
    few, many = fit_modes(StandardScaler(), 400), fit_modes(StandardScaler(), 1_000_000)
    assert few["noisy"]["clip"] == many["exact"]["clip"] == 4.0
    assert many["noisy"]["clip"] > 12
    assert fit_modes(StandardScaler(clip=3.0), 1_000_000)["noisy"]["clip"] == 3.0
    assert fit_modes(StandardScaler(clip=None), 1_000_000)["noisy"]["min_std"] == 0.25  # whose rows would be long


def test_the_usual_floor_hides_what_noise_hides():
    """Released variances err by a sixth of its square at about epsilon = 1, of entries as of whole rows."""
    domain = Domain(n_rows=200_000, n_features=4, row_norm=2.0, entry_bound=1.0)
    for per_column in (True, False):
        assert usual_floor(domain.but(n_rows=800_000), per_column) == pytest.approx(usual_floor(domain, per_column) / 2)
    assert usual_floor(domain) < usual_floor(domain.but(entry_bound=None))
