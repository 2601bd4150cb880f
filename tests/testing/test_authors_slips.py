"""Slips of authors of own stages: each is refused with what to write."""

import re

import numpy as np
import pytest

from ppdp import Adjacency, make_pipeline
from ppdp.core.adjacency import KINDS, Replace
from ppdp.core.formula import FORMULAS, formula
from ppdp.exceptions import InvalidParameter, UnknownParameter
from ppdp.mechanisms import GaussianMechanism
from ppdp.transformers import NormClipper
from ppdp.transformers.base import RowWiseTransformer
from ppdp.transformers.fit_mode import FitMode

X = np.random.default_rng(0).normal(size=(1000, 2))
STABILITY = {"kind": "stability", "page": "row-wise", "way": "public"}


def same(domain, distance):
    """Nothing moves."""
    return domain, distance


@pytest.fixture(autouse=True)
def own(monkeypatch):
    """Formulas of these tests are forgotten; "own.map" is that of Other."""
    for name in ("own.map", "own.new"):
        monkeypatch.setitem(FORMULAS, name, None)
        del FORMULAS[name]
    formula("own.map", **STABILITY, gaps=True, used_by=("Other",))(same)


class Other(RowWiseTransformer):
    """What is right."""

    def __init__(self, scale=1):
        self.scale = scale

    def fit_modes(self, domain, distance):
        return (FitMode.by("own.map", domain, distance),)

    def map_rows(self, X, statistics):
        return -X


def test_what_is_right_is_taken_and_may_be_written_again():
    formula("own.map", **STABILITY, gaps=True, used_by=("Other",))(same)
    pipe = make_pipeline(NormClipper(2.0), Other(), GaussianMechanism(), epsilon=1.0, delta=1e-6)
    assert pipe.fit(X).certificate_.verify()


@pytest.mark.parametrize("name", ["row-wise.norm-clip", "own.map"])
def test_a_name_that_is_taken_is_refused(name):
    known = FORMULAS[name]
    with pytest.raises(InvalidParameter, match=r"exists already, in .* Fix: another name"):
        formula(name, **STABILITY)(lambda domain, distance: (domain, distance))
    assert FORMULAS[name] is known


def test_what_is_shipped_is_not_defined_again():
    known = FORMULAS["row-wise.norm-clip"]
    with pytest.raises(InvalidParameter, match="exists already"):
        formula(known.id, **STABILITY)(known.function)


@pytest.mark.parametrize(
    ("facts", "kind", "words"),
    [
        ({"kind": "stabil"}, InvalidParameter, "kind of 'own.new' must be one of 'stability', "),
        ({"way": "pubic"}, InvalidParameter, "way of 'own.new' must be one of 'public', 'noisy', 'exact'"),
        ({"page": 3}, InvalidParameter, "page must be text"),
        ({"used_by": "Other"}, InvalidParameter, "used_by=('Name',), in quotes and with the comma"),
        ({"used": ("Other",)}, UnknownParameter, "did you mean 'used_by'"),
    ],
)
def test_facts_that_are_none_are_refused(facts, kind, words):
    with pytest.raises(kind, match=re.escape(words)):
        formula("own.new", **{**STABILITY, **facts})(same)
    assert "own.new" not in FORMULAS


def test_an_adjacency_of_a_shipped_name_does_not_take_its_key():
    with pytest.raises(InvalidParameter, match="'replace' is a key of Replace"):
        type("Replace", (Replace,), {"keys": ("replace",), "__module__": __name__})
    assert type(Adjacency.replace()) is Replace is KINDS["replace",]


def test_a_group_of_columns_is_no_part_of_a_name():
    with pytest.raises(InvalidParameter, match="without '@'"):
        formula("row-wise.norm-clip@numbers", **STABILITY)(same)
