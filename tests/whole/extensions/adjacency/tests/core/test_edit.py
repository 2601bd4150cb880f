"""Rows that are replaced, added or removed: planned, fitted, verified, and shown."""

import json
import math

import numpy as np
import pytest

from ppdp import Adjacency, Certificate, Domain, make_pipeline
from ppdp.cli.main import main
from ppdp.core.adjacency import Edit
from ppdp.exceptions import InvalidParameter
from ppdp.mechanisms import GaussianMechanism
from ppdp.testing.neighbours import World
from ppdp.transformers import MinMaxScaler

STEPS = MinMaxScaler(ranges=(0, 1)), GaussianMechanism("sum")
FILE = """
[[steps]]
name = "scale"
use = "MinMaxScaler"
ranges = [0, 1]
[[steps]]
name = "sum"
use = "GaussianMechanism"
query = "sum"
[domain]
n_rows = 500
adjacency = {edit = 1}
[pipeline]
epsilon = 1.0
delta = 1e-6
"""


def planned(adjacency):
    domain = Domain(n_rows=500, n_features=2, adjacency=adjacency)
    pipe = make_pipeline(*STEPS, epsilon=1.0, delta=1e-6, domain=domain)
    return pipe, pipe.plan(domain).mechanism.noise_scale


def test_it_costs_what_a_replaced_row_costs_and_more_than_an_added_one():
    assert planned(Edit())[1] == planned(Adjacency.user_level(max_rows=1))[1] > planned(Adjacency.add_remove())[1]


def test_a_fit_under_it_verifies_and_says_so():
    certificate = planned(Edit(2))[0].fit(np.full((400, 2), 0.5)).certificate_
    assert certificate.verify()
    read = Certificate.from_json(certificate.to_json())
    assert read.verify()
    assert read.record.neighbours == Edit(2) == Adjacency.from_dict(Edit(2).to_dict())
    assert "replace, add or remove up to 2 rows" in certificate.to_text(full=True)
    assert "replace, add or remove up to 2 rows" in certificate.to_html()
    assert certificate.under(Adjacency.add_remove(2)).epsilon <= 1


def test_the_command_line_knows_it(tmp_path):
    file, data, release = (tmp_path / name for name in ("sum.toml", "data.csv", "release"))
    file.write_text(FILE)
    data.write_text("a,b\n" + "0.5,0.25\n" * 400)
    assert main(["fit", str(data), str(file), "--out", str(release)]) == 0
    assert main(["verify", str(release)]) == 0
    document = json.loads((release / "certificate.json").read_text())
    assert document["entrance"]["domain"]["adjacency"] == {"edit": 1}


def test_steps_between_neighbours_are_counted():
    assert Edit().group_factor(Adjacency.add_remove()) == 2 == Edit(2).group_factor(Edit())
    assert Adjacency.add_remove(2).group_factor(Edit()) == 2
    assert Edit().group_factor(Adjacency.replace()) == math.inf


def test_neighbours_are_drawn():
    domain = Domain(n_rows=6, n_features=2, row_norm=1.0, adjacency=Edit())
    world, rng = World(domain, domain.neighbours), np.random.default_rng(0)
    pairs = [world.drawn(rng) for _ in range(20)]
    assert all(world.allows(pair) for pair in pairs)
    assert {int((left.weight > 0).sum() - (right.weight > 0).sum()) for left, right in pairs} == {-1, 0, 1}


def test_a_key_has_one_meaning():
    with pytest.raises(InvalidParameter, match="'edit' is a key of Edit"):

        class Another(Edit):
            keys = ("edit",)
