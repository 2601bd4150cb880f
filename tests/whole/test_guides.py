"""The guides say what the code says."""

import importlib.util
from pathlib import Path

import pytest

from ppdp import Domain, make_pipeline
from ppdp.exceptions import NoRoute
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.testing import REGISTRY
from ppdp.transformers import ClusterDeduplicator, MinMaxScaler, StandardScaler
from ppdp.transformers.base import Stage

ROOT = Path(__file__).parents[2]


def cost():
    """The script that prints the table."""
    spec = importlib.util.spec_from_file_location("cost", ROOT / "benchmarks" / "cost.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_table_of_costs_is_what_the_stages_say():
    script = cost()
    text = script.GUIDE.read_text("utf-8")
    assert text.split(script.BEGIN)[1].split(script.END)[0].strip() == script.table()
    assert text.split(script.MODELS)[1].split(script.MODELS_END)[0].strip() == script.models()
    assert script.PICTURE.is_file()


def test_the_figures_beside_the_table_are_what_the_plans_say():
    text = " ".join(cost().GUIDE.read_text("utf-8").split())
    assert "a price of 9.25 means 18.5 times the noise on a mean" in text
    domain = Domain(n_rows=1000, n_features=5)
    assert noise(StandardScaler(statistics="exact"), domain) / noise(None, domain) == pytest.approx(18.5, rel=1e-3)
    assert "by default no data pass it at ε = 1 or 2" in text
    for epsilon in (1.0, 2.0):
        with pytest.raises(NoRoute):
            made(ClusterDeduplicator(), LogisticRegression((0, 1)), domain, epsilon)


def made(stage, last, domain, epsilon=1.0):
    return make_pipeline(MinMaxScaler((-1, 1)), *[stage] * (stage is not None), last, epsilon=epsilon, delta=1e-6).plan(
        domain
    )


def noise(stage, domain):
    return made(stage, GaussianMechanism(), domain).mechanism.noise_scale


def test_the_guide_names_every_stage():
    text = cost().GUIDE.read_text("utf-8")
    assert [name for name, kind in REGISTRY.items() if issubclass(kind, Stage) and f"`{name}(" not in text] == []
