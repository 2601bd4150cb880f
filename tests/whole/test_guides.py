"""The guides say what the code says."""

import importlib.util
import re
from itertools import product
from pathlib import Path

import pytest

from ppdp import Domain, exceptions, make_pipeline
from ppdp.exceptions import NoRoute, PpdpError
from ppdp.interop.sklearn.counterparts import COUNTERPARTS
from ppdp.interop.sklearn.known_estimators import KNOWN
from ppdp.mechanisms import GaussianMechanism, LogisticRegression
from ppdp.testing import REGISTRY
from ppdp.transformers import ClusterDeduplicator, ClusterQuantizer, MinMaxScaler, StandardScaler
from ppdp.transformers.base import Stage

ROOT = Path(__file__).parents[2]
GUIDES = sorted(page for page in (ROOT / "docs" / "guides").glob("*.md") if page.stem not in ("index", "review"))


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
    assert noise(StandardScaler(fit_mode="exact"), domain) / noise(None, domain) == pytest.approx(18.5, rel=1e-3)
    assert "by default no data pass it at ε = 1 or 2" in text
    for stage, epsilon in product((ClusterDeduplicator(), ClusterQuantizer()), (1.0, 2.0)):
        with pytest.raises(NoRoute):
            made(stage, LogisticRegression((0, 1)), domain, epsilon)


def made(stage, last, domain, epsilon=1.0):
    return make_pipeline(MinMaxScaler((-1, 1)), *[stage] * (stage is not None), last, epsilon=epsilon, delta=1e-6).plan(
        domain
    )


def noise(stage, domain):
    return made(stage, GaussianMechanism(), domain).mechanism.noise_scale


def test_the_guide_names_every_stage():
    text = cost().GUIDE.read_text("utf-8")
    assert [name for name, kind in REGISTRY.items() if issubclass(kind, Stage) and f"`{name}(" not in text] == []


@pytest.mark.parametrize("guide", GUIDES, ids=lambda page: page.stem)
def test_a_guide_begins_with_whom_it_is_for_and_what_they_have_at_the_end(guide):
    title, first = guide.read_text("utf-8").split("\n\n")[:2]
    words = " ".join(first.split())
    assert title.startswith("# ")
    assert words.startswith("For ")
    assert "At the end you " in words


def test_the_guide_to_what_is_supported_names_every_class_that_is_known():
    """In the table of twins those that are converted, in the other one all others."""
    text = (ROOT / "docs" / "guides" / "supported.md").read_text("utf-8")
    _, converted, refused = text.split("\n## ", 3)[1:]
    named = [
        {
            name
            for line in part.splitlines()
            if line.startswith("| `")
            for name in re.findall(r"`(\w+)`", line.split("|")[1])
        }
        for part in (converted, refused)
    ]
    assert named == [set(COUNTERPARTS), set(KNOWN) - set(COUNTERPARTS)]


def test_the_reference_of_errors_has_every_class_with_its_code():
    rows = re.findall(
        r"^\| `(\w+)` \| (?:`([\w-]+)` \|)?", (ROOT / "docs/reference/errors.md").read_text("utf-8"), flags=re.M
    )
    kinds = [
        kind for kind in vars(exceptions).values() if isinstance(kind, type) and kind.__module__ == exceptions.__name__
    ]
    codes = {kind.__name__: kind.code if issubclass(kind, PpdpError) else "" for kind in kinds}
    assert {name: code for name, code in rows if name in codes} == codes
    assert {name for name, _ in rows} - set(codes) == {"reserved", "released", "refused", "failed"}
