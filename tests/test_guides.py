"""The guides say what the code says."""

import importlib.util
from pathlib import Path

from ppdp.registry import REGISTRY
from ppdp.transformers.base import Stage

ROOT = Path(__file__).parents[1]


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
    assert script.PICTURE.is_file()


def test_the_guide_names_every_stage():
    text = cost().GUIDE.read_text("utf-8")
    assert [name for name, kind in REGISTRY.items() if issubclass(kind, Stage) and f"`{name}(" not in text] == []
