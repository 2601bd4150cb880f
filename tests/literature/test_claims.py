"""Every claim of the literature has the status that its own data decide."""

import ast
import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.distance import cdist

import ppdp
from ppdp.bounds import FORMULAS
from ppdp.exceptions import InvalidParameter
from ppdp.literature import __main__ as program
from ppdp.literature import claim, claims
from ppdp.literature.page import page
from ppdp.literature.preprocessing import iteration, pairs
from ppdp.literature.preprocessing.clusters import quantized
from ppdp.literature.preprocessing.sampled_pipelines import largest_order

ROOT = Path(ppdp.__file__).parents[1]
PAGE = ROOT / "docs" / "errata.md"
every_claim = pytest.mark.parametrize("found", claims(), ids=lambda found: found.id)


@cache
def evidence(name):
    return claim(name).evidence()


class TestStatus:
    @every_claim
    def test_is_what_the_data_say(self, found):
        shown = evidence(found.id)
        assert shown.exceeded == (found.status == "false")
        share = shown.attained / shown.printed if shown.printed else math.inf
        assert (share > 1) if found.status == "false" else (share < 0.97) == (found.status == "loose")
        assert found.status != "holds" or 0.985 < share <= 1 + 1e-9

    @every_claim
    def test_ours_covers_the_same_data(self, found):
        shown = evidence(found.id)
        assert shown.ours is None or shown.attained <= shown.ours * (1 + 1e-9)

    @every_claim
    def test_a_counterexample_is_given_for_what_is_false_only(self, found):
        assert (found.counterexample() is None) == (found.status != "false")

    @every_claim
    def test_printed_is_a_number_of_the_printed_formula(self, found):
        assert found.bound.__doc__
        assert math.isfinite(evidence(found.id).printed)


MOVES = {
    "thm-2-everywhere": 11,  # one row replaced, ten moved
    "table-1-gaussian": 8,
    "table-1-descent-smooth": 10,
    "thm-14-smooth": 10,
    "thm-15-smooth": 1,
    "lemma-4": 10,
    "prop-9-refusal": 10,  # ten rows replaced: they show what the margin is at most
}
"""Claims on moved rows, or whose two datasets are further apart, and by how many rows."""

OTHER_UNITS = {"appendix-f2": 10.0, "prop-3-distance": 100.0, "footnote-5": 34.0}
"""Claims whose rows are in a larger ball, and its radius."""


def datasets(name):
    data = evidence(name).data
    pair = [np.atleast_1d(np.asarray(data[side], float)) for side in ("left", "right") if side in data]
    return [X[:, None] if X.ndim == 1 else X for X in pair]


class TestData:
    @every_claim
    def test_are_neighbouring(self, found):
        pair = datasets(found.id)
        if found.id == "footnote-5":  # a row is added
            assert len(pair[1]) == len(pair[0]) + 1
            assert np.array_equal(pair[1][:-1], pair[0])
        elif pair:
            one, other = pair
            differ = ~((one == other) | (np.isnan(one) & np.isnan(other))).all(axis=1)
            assert differ.sum() == MOVES.get(found.id, 1)

    @every_claim
    def test_are_in_the_unit_ball(self, found):
        for X in datasets(found.id):
            assert np.linalg.norm(np.nan_to_num(X), axis=1).max() <= OTHER_UNITS.get(found.id, 1.0) * (1 + 1e-12)

    @pytest.mark.parametrize(
        "strained",
        [pairs.counted, pairs.quantized_heights, pairs.filled, pairs.rotated, pairs.stretched],
        ids=lambda f: f.__name__,
    )
    def test_statistics_of_pipelines_are_as_theorem_17_assumes(self, strained):
        """1-Lipschitz where there are rows, so extensible to all, with values in an interval of length 1."""
        found = strained()
        points, values = np.vstack(found.points), np.concatenate(found.values)
        both = np.unique(np.column_stack([points, values]), axis=0)
        points, values = both[:, :-1], both[:, -1:]
        assert np.ptp(values) <= 1 + 1e-12
        assert (cdist(values, values) <= cdist(points, points) + 1e-12).all()

    @pytest.mark.parametrize("name", ["thm-15", "thm-15-smooth", "lemma-4"])
    def test_orders_are_allowed_by_theorem_15(self, name):
        data = evidence(name).data
        tau = max(1.0, np.abs(data["left"] - data["right"]).sum())
        n = {"lemma-4": 1000}.get(name, len(data["left"]))
        noise = data["noise"] if name == "lemma-4" else None
        noise = noise or iteration.iteration_noise(rows=n, lipschitz=1.0, epsilon=data["epsilon"])
        alpha = data["alpha"]
        assert tau * math.sqrt(2 * alpha * (alpha - 1)) < noise

    @pytest.mark.parametrize("name", ["table-2-samples-pca", "table-2-samples-standard-scaling"])
    def test_orders_are_allowed_by_table_1(self, name):
        data = evidence(name).data
        assert largest_order(len(data["left"]), data["noise"]) >= 11

    def test_orders_are_allowed_by_theorem_14(self):
        data = evidence("thm-14").data
        assert data["alpha"] <= largest_order(data["n"], 1 / (data["epsilon"] * data["n"]))

    @pytest.mark.parametrize("name", ["table-2-iteration-quantization", "table-2-iteration-mean-imputation"])
    def test_orders_are_allowed_behind_a_stage(self, name):
        """Also at 2 alpha, as c = 2 needs it, and for the whole move that Table 2 charges."""
        data = evidence(name).data
        n, p = len(data["left"]), len(data["left"]) - 1
        tau = p * data["eta"] if "eta" in data else 2 * p
        noise = iteration.iteration_noise(rows=n, lipschitz=1.0, epsilon=data["epsilon"])
        assert max(1.0, tau) * math.sqrt(2 * 22 * 21) < noise

    def test_the_cluster_in_the_pass_stays_where_it_is(self):
        data = evidence("table-2-iteration-quantization").data
        for X in (data["left"], data["right"]):
            assert np.array_equal(quantized(X[:, None], data["eta"])[:, 0], X)

    def test_theorem_8_is_tried_within_its_conditions(self):
        data = evidence("thm-8").data
        assert data["delta"] <= math.exp(-1.05 * data["epsilon"] ** 2 * (1 + (12.2 / data["beta"]) ** 2))


class TestFavourableReadings:
    """Where the paper leaves room, the reading that helps it is false as well."""

    def test_corollary_4(self):
        assert evidence("cor-4").attained > max(2 / (40 - 2), 2 / (40 - 4))  # rows with gaps, gaps

    def test_lemma_4_with_t_for_n(self):
        data = evidence("lemma-4").data
        assert evidence("lemma-4").attained > 2 * data["alpha"] * 0.2**2 / (data["noise"] ** 2 * 10)

    def test_table_3_with_the_ranks_exchanged(self):
        assert evidence("table-3-trimmed").printed > 0

    def test_quantization_whatever_the_centre(self):
        data = evidence("prop-3-distance").data
        moves = {
            float(np.linalg.norm(quantized(data["left"], 100, pick) - quantized(data["right"], 100, pick), axis=1)[1])
            for pick in (min, max)
        }
        assert moves == {172.0}


class TestCollection:
    @every_claim
    def test_says_everything(self, found):
        for text in (found.place, found.subject, found.statement, found.formula, found.erratum, found.paper):
            assert text.strip()
        assert {FORMULAS[name].id for name in found.corrected} == set(found.corrected)
        assert (ROOT / "docs" / "theory" / f"{found.page}.md").is_file()

    def test_covers_the_paper(self):
        places = " ".join(found.place for found in claims())
        theorems = {f"Theorem {number}" for number in (2, 8, 10, 11, 12, 13, 14, 15, 17)}
        propositions = {f"Proposition {number}" for number in (3, 5, 6, 9, 16)}
        others = {"Corollary 4", "Lemma 3", "Lemma 4", "Table 1", "Table 2", "Table 3"}
        assert {place for place in theorems | propositions | others if place not in places} == set()

    def test_ids_are_unique_and_lead_to_their_claims(self):
        names = [found.id for found in claims()]
        assert len(set(names)) == len(names)
        assert [claim(name) for name in names] == list(claims())

    def test_statuses_divide_it(self):
        assert sum(len(claims(status)) for status in ("holds", "loose", "false")) == len(claims())

    def test_an_unknown_id_is_refused_with_a_close_one(self):
        with pytest.raises(InvalidParameter, match="thm-13"):
            claim("thm13")
        with pytest.raises(InvalidParameter, match="lists them"):
            claim("?")

    def test_is_shown_in_short_and_in_full(self):
        found = claim("thm-13")
        assert repr(found) == "<thm-13: Theorem 13, RDP, gradient descent (DP-GD): false>"
        assert "attained 1.5" in found._repr_html_()
        assert "not certified" in claim("lemma-3")._repr_html_()


class TestPage:
    def test_is_what_the_program_writes(self, tmp_path):
        target = tmp_path / "errata.md"
        assert program.main([str(target)]) == 0
        assert target.read_text("utf-8") == PAGE.read_text("utf-8"), "run python -m ppdp.literature docs/errata.md"

    def test_has_a_row_and_a_section_for_every_claim(self):
        text = PAGE.read_text("utf-8")
        for found in claims():
            assert f"](#{found.id}) |" in text
            assert text.count(f'<a id="{found.id}"></a>') == 1

    def test_goes_to_the_terminal_without_a_file(self, capsys):
        assert program.main([]) == 0
        assert capsys.readouterr().out == PAGE.read_text("utf-8")

    def test_anything_else_is_refused(self, capsys):
        assert program.main(["--help"]) == program.main(["a.md", "b.md"]) == 2
        assert "python -m ppdp.literature" in capsys.readouterr().err

    def test_of_nothing_is_its_head(self):
        assert page(()).startswith("# Errata of the literature")


def imported(path):
    text = path.read_text("utf-8")
    for node in ast.walk(ast.parse(text)) if "literature" in text else ():
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))


def test_nothing_that_certifies_knows_the_literature():
    allowed = [ROOT / "ppdp" / part for part in ("literature", "audit")]
    sources = [p for p in (ROOT / "ppdp").rglob("*.py") if not any(p.is_relative_to(part) for part in allowed)]
    assert len(sources) > 100
    for source in sources:
        assert not [name for name in imported(source) if f"{name}.".startswith("ppdp.literature.")], source
