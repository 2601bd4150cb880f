"""Certificates: what is written can be recomputed by anybody, knowing neither data nor pipeline."""

from __future__ import annotations

import ast
import json
from functools import cache
from typing import Any

import numpy as np
import pytest
from sources import MODULES, tree_of
from zoo import BOX, CLIP, MEAN, NAMES, certificate, document, imputer, people, scaler, sealed, zoo

import ppdp
from ppdp import Certificate, Domain, Pipeline
from ppdp.cli.main import main
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.mechanisms import LogisticRegression
from ppdp.privacy.gate import GATE_KINDS
from ppdp.transformers import PCA, Deduplicator, RowMap

OF_NETWORKS = {"lora.fresh-projection", "lora.frozen-a"}  # issued where torch is: tests/mechanisms/lora
OF_MANY_ROWS = {
    f"pca.coarse-{name}" for name in ("rank", "centred-rank", "projected")
}  # tests/transformers/test_pca.py
# Kept for certificates that name them.
ISSUED_NO_MORE = {"diffprivlib.random-forest", "pca.public", "pca.public-map", "projection.random", "soft-pca.public"}


@zoo
def test_every_certificate_verifies(name):
    result = certificate(name).verify()
    assert result
    assert result.problems == ()
    assert repr(result) == "Verification: the derivation holds and the digest matches."


@pytest.mark.parametrize("name", ["nothing known", "medians"])
def test_noise_is_no_more_than_what_it_is_recorded_to_cost(name):
    """Else another adjacency would be computed from noise that nobody added."""
    forged = document(name)
    forged["releases"][0]["noise_scale"] *= 1.001
    result = Certificate.from_json(json.dumps(sealed(forged))).verify()
    assert "costs less than is recorded" in " ".join(result.problems)


def test_what_is_said_of_released_numbers_is_possible():
    made = next(name for name in NAMES if document(name)["mechanism"] is None)
    model = next(name for name in NAMES if "classes" in document(name)["entrance"]["domain"])
    wide = next(name for name in NAMES if any(r["statistic"] == "ranges" for r in document(name)["releases"]))
    for name, field, value in (
        *(("medians", "share_left", 0.2), (made, "single_class", "no"), (made, "no_range", ["a"])),
        *((model, "no_slope", True), (made, "no_slope", True), (model, "unheld", 0.5)),
        *((model, "single_class", "17"), (wide, "no_range", ["another"]), (wide, "no_range", [])),
        *((wide, "others", {"another": 0.5}), (wide, "others", {})),
    ):
        forged = document(name)
        forged["released"][field] = value
        assert f"released.{field}" in " ".join(Certificate.from_json(json.dumps(sealed(forged))).verify().problems)


def test_the_zoo_shows_every_kind():
    documents = [document(name) for name in NAMES]
    assert {d["status"] for d in documents} == {"UNCONDITIONAL", "CONDITIONAL", "SEEDED"}
    assert {d["gate"] and d["gate"]["rule"] for d in documents} == {None, "max", "sum"}
    assert {d["gate"] and d["gate"]["kind"] for d in documents} == {None, *GATE_KINDS}
    assert any(d["gate"] and d["gate"]["ladder"] for d in documents)
    assert {s["way"] for d in documents for s in d["steps"]} == {"public", "noisy", "exact"}
    assert {r["statistic"].partition("@")[0] for d in documents for r in d["releases"]} == set(STATISTICS)
    assert {r["purpose"] for d in documents for r in d["releases"]} == {"fit", "predict"}
    used = {s["formula"] for d in documents for s in d["steps"]} | {
        d["mechanism"]["formula"] for d in documents if d["mechanism"]
    }
    used |= {r["formula"] for d in documents for r in d["releases"]}
    used |= {d["diagnostics"]["formula"] for d in documents if d.get("diagnostics")}
    used |= {c["formula"] for d in documents for s in d["steps"] for c in s["conditions"]}
    assert any("@" in name for name in used)  # of one group of columns
    used = {name.partition("@")[0] for name in used}
    assert used == set(ppdp.bounds.FORMULAS) - ISSUED_NO_MORE - OF_NETWORKS - OF_MANY_ROWS


@zoo
@pytest.mark.repeated("name", keep=34)
def test_the_first_word_says_what_it_is(name):
    assert certificate(name).to_text(full=True).split()[0] == certificate(name).status
    expected = {
        "a direction": "CONDITIONAL",
        "fresh projections": "CONDITIONAL",
        "conditional": "CONDITIONAL",
        "classes read": "CONDITIONAL",
        "seeded": "SEEDED",
    } | dict.fromkeys(("medians", "quantiles", "quantiles without duplicates", "regression, eigenvalue"), "CONDITIONAL")
    trusting = "CONDITIONAL" if name.startswith("diffprivlib") else "UNCONDITIONAL"
    assert certificate(name).status == expected.get(name, trusting)


def _first_two(X: np.ndarray) -> np.ndarray:
    return X[:, :2]


EDGES: dict[str, tuple[list[tuple[str, Any]], dict[str, Any]]] = {
    "a mechanism alone": ([MEAN], {"domain": Domain(row_norm=1.0)}),
    "a bound on entries": ([MEAN], {"domain": Domain(row_norm=2.0, entry_bound=1.0)}),
    "an imputer that promises that nothing is missing": ([BOX, imputer(max_missing=0), MEAN], {}),
    "the same before another stage": ([BOX, imputer(max_missing=0), scaler(), MEAN], {}),
    "no gaps declared, and an imputer": ([BOX, imputer(), MEAN], {"domain": Domain(max_missing=0)}),
    "few gaps declared": ([BOX, imputer(fit_mode="noisy"), MEAN], {"domain": Domain(max_missing=0.1)}),
    "a projection on everything": ([CLIP, ("pca", PCA()), MEAN], {}),
    "public stages that end a pipeline": ([CLIP], {}),
    "duplicates twice": ([CLIP, ("one", Deduplicator()), ("two", Deduplicator(subset=[0])), MEAN], {}),
    "classes of the domain": ([CLIP, ("model", LogisticRegression())], {"domain": Domain(classes=(0, 1))}),
    "shares of the user": ([CLIP, scaler(fit_mode="noisy"), MEAN], {"budget": {"release": 0.5}}),
    "a fraction of the rows": ([BOX, imputer(min_observed=0.9, max_missing=0.5, fit_mode="exact"), MEAN], {}),
    "other columns": ([BOX, imputer(), ("map", RowMap(_first_two, out_ranges={"u": (-1, 1), "v": (0, 2)})), MEAN], {}),
}


@pytest.mark.parametrize("edge", EDGES)
def test_every_certificate_that_is_issued_verifies(edge):
    steps, parameters = EDGES[edge]
    X, y = people()
    one = Pipeline(steps, epsilon=3.0, **parameters).fit(X.fillna(0.0), y).certificate_
    assert one.verify(), one.verify()
    assert Certificate.from_json(one.to_json()).verify()


class TestCommandLine:
    def test_exit_statuses(self, tmp_path, capsys):
        good, bad, garbage = (tmp_path / name for name in ("good.json", "bad.json", "garbage.json"))
        certificate("gated, sum").save(good)
        bad.write_text(good.read_text().replace('"replaced": 1', '"replaced": 2', 1))
        garbage.write_text("{}")
        assert main(["verify", str(good)]) == 0
        assert capsys.readouterr().out.startswith("Verification: the derivation holds")
        assert main(["verify", str(bad)]) == 1
        assert "FAILED" in capsys.readouterr().out
        assert main(["verify", str(garbage)]) == 2
        assert main(["verify", str(tmp_path / "nothing.json")]) == 2
        assert "not a ppdp certificate" in capsys.readouterr().err

    def test_quiet(self, tmp_path, capsys):
        path = tmp_path / "c.json"
        certificate("seeded").save(path)
        assert main(["verify", str(path), "--quiet"]) == 0
        path.write_text(path.read_text().replace('"replaced": 1', '"replaced": 2', 1))
        assert main(["verify", str(path), "--quiet"]) == 1
        assert capsys.readouterr() == ("", "")

    def test_a_forgery_with_a_digest(self, tmp_path):
        path = tmp_path / "c.json"
        forged = document("gated, max")
        forged["epsilon"] = 0.1
        path.write_text(json.dumps(sealed(forged)))
        assert main(["verify", str(path), "--quiet"]) == 1


@cache
def imported(module: str) -> set[str]:
    """Modules of ppdp that a module imports, anywhere in its text but for type checkers; packages by their own text."""
    tree = tree_of(module)
    hints = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in hints:
            continue
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "ppdp":
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in MODULES else node.module)
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names if alias.name.split(".")[0] == "ppdp"}
    return found - {"ppdp"}


def reached(module: str) -> set[str]:
    bounds = {name for name in MODULES if name.startswith("ppdp.bounds.")}
    seen, waiting = set(), {module, *bounds}  # these are imported by their names, which no import statement has
    while waiting:
        one = waiting.pop()
        seen.add(one)
        waiting |= imported(one) - seen
    return seen


def test_verification_knows_neither_planner_nor_pipeline_nor_data():
    known = reached("ppdp.certificate.replay.verify")
    assert "ppdp.bounds.scaling" in known  # the walk is not empty
    stems = "ppdp.pipeline", "ppdp.transformers", "ppdp.mechanisms", "ppdp.data"
    assert [module for module in known if module.startswith(stems)] == []


def test_planning_and_execution_know_nothing_of_certificates():
    for module in ("ppdp.pipeline.planning.plan", "ppdp.pipeline.execute"):
        known = reached(module)
        assert "ppdp.bounds.scaling" in known
        assert [one for one in known if one.startswith("ppdp.certificate")] == []
