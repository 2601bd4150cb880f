"""A mechanism with a privacy loss of its own: one class says what it costs, how it is recorded and what a page says."""

import json
import math
from dataclasses import dataclass

import numpy as np
import pytest
from documents import render_page
from pages import Reader

from ppdp import Certificate, Ledger, PrivacyLoss, make_pipeline
from ppdp.bounds import FORMULAS
from ppdp.bounds.queries import present_shape
from ppdp.core.formula import formula
from ppdp.data.histograms import present
from ppdp.exceptions import CertificateError, InvalidParameter
from ppdp.mechanisms.base import Mechanism, QuerySpec
from ppdp.privacy.gaussian import gaussian_epsilon
from ppdp.privacy.losses import KINDS, Part, Pure
from ppdp.privacy.noise.laplace import laplace_release
from ppdp.privacy.renyi import laplace_curve, repeated

FORMULA, RECIPE = "own.whole-count", {"kind": "own-counting", "count": 40, "rows": 1.0, "scale": 20.0}


@dataclass(frozen=True, kw_only=True)
class Counting(Part):
    """Laplace noise on a count of which only so many rows can be others."""

    kind = "own-counting"
    rows: float
    scale: float

    @property
    def pure(self):
        return self.count * self.rows / self.scale

    def curve(self):
        return repeated(laplace_curve(self.rows / self.scale), self.count)

    def words(self):
        return f"{self.times}noise of my own on a count, of which {self.rows:g} can be others"


class OwnCount(Mechanism):
    """Noisy number of rows."""

    def __init__(self, noise_scale=None, random_state=None):
        self.noise_scale = noise_scale
        self.random_state = random_state

    def query_spec(self, domain, mu=None):
        return QuerySpec(FORMULA, {}, 1, *present_shape(domain), kind="privacy")

    def release(self, rows, question, noise, noise_scale):
        exact = np.ceil(present(rows))
        return {"answer": laplace_release(noise, exact, noise_scale, question.bound, whole=True)}

    def read(self, released, domain, question):
        self.count_ = float(released["answer"][0])


@pytest.fixture
def fitted(tmp_path):
    @formula(FORMULA, kind="privacy", page="laplace", law="my own", used_by=("OwnCount",), shape=present_shape)
    def whole_count(domain, distance, *, noise_scale):
        """At most all rows that differ."""
        return PrivacyLoss(parts=(Counting(rows=distance.changed, scale=noise_scale),))

    with Ledger(tmp_path / "account", epsilon=2.0, delta=1e-6) as ledger:
        pipe = make_pipeline(OwnCount(), epsilon=1.0, delta=1e-6).fit(np.zeros((500, 2)))
    yield pipe, ledger
    FORMULAS.pop(FORMULA)


def test_it_is_read_from_its_recipe_and_composed_like_any_other():
    own = Part.from_dict(RECIPE)
    assert own == Counting(rows=1.0, scale=20.0, count=40)
    assert json.loads(json.dumps(own.to_dict())) == RECIPE
    alone = PrivacyLoss(parts=(own,))
    assert alone.epsilon(0.0) == pytest.approx(2.0)
    assert alone.epsilon(1e-6) < 1.6  # by its curve
    assert alone.renyi(8.0) == pytest.approx(40 * laplace_curve(0.05)(8.0))
    together = (alone + PrivacyLoss(0.3) + PrivacyLoss(parts=(Pure(epsilon=0.1),))).epsilon(1e-6)
    assert gaussian_epsilon(0.3, 1e-6) < together < 1.7 + gaussian_epsilon(0.3, 1e-6)
    assert (alone * 2).epsilon(0.0) == pytest.approx(4.0)


def test_it_is_planned_recorded_shown_and_verified(fitted):
    pipe, ledger = fitted
    (part,) = pipe.certificate_["total"]["parts"]
    scale = pipe.certificate_["mechanism"]["noise_scale"]
    assert part == {"kind": "own-counting", "count": 1, "rows": 1, "scale": scale}
    assert 0.99 < 1 / scale <= 1
    assert pipe.certificate_.verify()
    assert Certificate.from_json(pipe.certificate_.to_json()).loss == PrivacyLoss(
        parts=(Counting(rows=1, scale=scale),)
    )
    for shown in (Reader(render_page(pipe.certificate_.to_dict())).text, pipe.certificate_.to_text(full=True)):
        assert "noise of my own on a count, of which 1 can be others" in " ".join(shown.split())
        assert "my own" in shown
        assert "Gaussian noise" not in shown
    (entry,) = Ledger(ledger.path).entries()
    assert json.loads(entry.parts) == [part]
    assert entry.loss.parts == (Counting(rows=1, scale=scale),)
    assert ledger.spent().epsilon(0.0) == pytest.approx(1 / scale)


def test_whoever_does_not_know_it_refuses_it(fitted, monkeypatch):
    """In words as in numbers, where its module was not imported."""
    pipe, ledger = fitted
    monkeypatch.delitem(KINDS, "own-counting")
    monkeypatch.delitem(FORMULAS, FORMULA)
    with pytest.raises(InvalidParameter, match="own-counting"):
        Part.from_dict(RECIPE)
    with pytest.raises(InvalidParameter, match="own-counting"):
        ledger.spent()
    strange = Certificate.from_json(pipe.certificate_.to_json())
    assert not strange.verify()
    assert FORMULA in strange.to_text(full=True)
    with pytest.raises(CertificateError):
        strange.loss  # noqa: B018  # asking is the point


def test_a_name_has_one_meaning():
    with pytest.raises(InvalidParameter, match="'pure' is the name of Pure"):

        class Purer(Part):
            kind = "pure"

    assert type(Part.from_dict({"kind": "pure", "count": 1, "epsilon": 0.1})) is Pure


@pytest.mark.parametrize("wrong", [{"rows": -1.0}, {"scale": math.nan}, {"count": 0}, {"more": 1.0}, {"rows": "one"}])
def test_its_numbers_are_checked_like_any(wrong):
    with pytest.raises(InvalidParameter):
        Part.from_dict(RECIPE | wrong)
