"""A gate that is off by one row is found, of every kind and wherever the row is lost; the gates as they are are not."""

import dataclasses

import pytest
from catalogue import TARGETS

from ppdp.audit import GateTarget
from ppdp.audit.output import judged
from ppdp.audit.trials import make_trials
from ppdp.exceptions import InvalidParameter
from ppdp.privacy.gate import GATE_KINDS, Gate
from ppdp.transformers.impute import column_imputers

KINDS = tuple(GATE_KINDS)
GATES = ("gaussian gate, open", "laplace gate, closed", "eigengap gate, closed")


def attacked(name, runs=60):
    """With so many runs on each dataset in each of ten slices, of which two choose: more where noise has long tails."""
    target = TARGETS[name]()
    return judged(target, make_trials(target, 10, slice_runs=100 if "laplace" in name else runs, random_state=0))


@pytest.mark.parametrize("name", GATES)
@pytest.mark.repeated("name", keep=2)
def test_gates_are_not_refuted(name):
    finding = attacked(name)
    assert not finding.violated
    assert finding.excess <= 0


class TestOffByOne:
    def test_in_the_margin_of_a_stage(self, monkeypatch):
        honest = column_imputers.missing_margin
        monkeypatch.setattr(column_imputers, "missing_margin", lambda *given: honest(*given) + 1)
        assert attacked("gaussian gate, closed").violated

    def test_in_the_gate(self, monkeypatch):
        honest = Gate._tested
        monkeypatch.setattr(Gate, "_tested", lambda self, margin: honest(self, margin + 1))
        assert attacked("discrete-laplace gate, closed").violated

    @pytest.mark.parametrize("kind", KINDS)
    def test_in_the_threshold(self, kind, monkeypatch):
        """The printed one, which forgets that a dataset next to a bad one has margin 1."""
        family = GATE_KINDS[kind]
        honest = family.threshold
        monkeypatch.setattr(family, "threshold", lambda self, delta: honest(self, delta) - 1)
        assert attacked(f"{kind} gate, closed").violated


def test_passing_at_the_threshold_is_found(monkeypatch):
    """At least instead of more than: one row, where noise is whole."""

    def lenient(self, margin, noise, fix):
        return honest(dataclasses.replace(self, threshold=self.threshold - 1e-9), margin, noise, fix)

    honest = Gate.test
    monkeypatch.setattr(Gate, "test", lenient)
    assert attacked("discrete-laplace gate, closed").violated


def test_half_of_the_noise_on_a_margin_is_found(monkeypatch):
    family = GATE_KINDS["gaussian"]
    honest = family.add_noise
    monkeypatch.setattr(
        family, "add_noise", lambda self, noise, margin: honest(family(self.scale / 2, self.n_rows), noise, margin)
    )
    assert attacked("gaussian gate, open").violated


def test_a_plan_without_a_gate_is_refused():
    target = TARGETS["deduplication"]()
    with pytest.raises(InvalidParameter, match="gate"):
        GateTarget("none", target.plan, target.left, target.right, fails=True)
