"""What ``benchmarks/honesty.py`` says of other libraries follows from what it measured."""

import csv
import importlib
from pathlib import Path

import numpy as np
import pytest

from ppdp.audit import ForeignTarget, attack_output
from ppdp.audit.target import seed_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
RUNS = 2000


def target(release, epsilon=1.0):
    return ForeignTarget("stand-in", release, 0.0, 1.0, epsilon)


def laplace(value, noise):
    return value + np.random.default_rng(seed_of(noise)).laplace()


class TestBenchmark:
    """Its claims can be listed without the libraries, and its page says what its table says."""

    @pytest.fixture
    def load(self, monkeypatch):
        monkeypatch.syspath_prepend(BENCHMARKS)
        return importlib.import_module

    def test_there_is_one_row_for_every_claim(self, load):
        honesty = load("honesty")
        found = [one for library in honesty.LIBRARIES for one in load(f"_claims_{library}").CLAIMS]
        claims = {one.name: one for one in found}
        rows = honesty.table()
        assert [row["claim"] for row in rows] == [one.name for one in found]
        assert len(claims) == len(found)
        for row in rows:
            one = claims[row["claim"]]
            said = one.pair, one.remark, one.runs, one.kind
            assert (row["pair"], row["remark"], int(row["runs"]), row["kind"]) == said

    def test_what_another_adjacency_would_allow_is_said_where_it_decides(self, load):
        """Claims that do not say for which neighbours they hold, exceeded by less than twice."""
        rows = {row["claim"]: row for row in load("honesty").table() if row["library"] == "diffprivlib"}
        for name in ("mechanisms.Bingham(epsilon=2)", "BudgetAccountant after cloning"):
            assert float(rows[name]["epsilon"]) < float(rows[name]["epsilon_low"]) < 2 * float(rows[name]["epsilon"])
            assert "for one row added or removed this pair would allow 2ε" in rows[name]["remark"]

    def test_a_verdict_follows_from_the_numbers_of_its_row(self, load):
        for row in load("honesty").table():
            low, claimed = float(row["epsilon_low"]), float(row["epsilon"])
            refuted = "disclaimed" if row["kind"] == "disclaimed" else "exceeded"
            assert row["verdict"] == (refuted if low > claimed else "not exceeded" if low else "too weak to say")
            assert low <= float(row["most"])

    def test_the_printed_event_gives_the_printed_bound(self, load):
        for row in load("honesty").table():
            if row["verdict"] == "too weak to say":
                assert row["event"] == "nothing"
                continue
            high, low = (float(part.split()[1]) for part in row["event"].split(" against "))
            assert np.log((high - float(row["delta"])) / low) == pytest.approx(float(row["epsilon_low"]), abs=0.02)

    def test_the_page_is_made_of_the_table(self, load):
        honesty = load("honesty")
        page = (BENCHMARKS / "honesty.md").read_text(encoding="utf-8")
        assert page.endswith("".join(honesty.sections(honesty.table())))

    def test_the_naive_claim_has_a_table_of_its_own(self, load):
        honesty = load("honesty")
        *libraries, naive = honesty.sections(honesty.table())
        assert [one for one in libraries if "scikit-learn, then" in one] == []
        assert naive.count("scikit-learn, then") == 4  # two rows, and where each was measured

    def test_a_new_figure_takes_the_place_of_the_old_one(self, load):
        kept = load("honesty").kept
        rows = [{"library": "a", "version": "1", "claim": claim, "runs": 1, "attempts": "?"} for claim in "xz"]
        found = kept(rows, {**rows[0], "runs": 2}, "xyz")
        assert [row["runs"] for row in found] == [2, 1]
        assert [row["claim"] for row in kept(rows, {**rows[0], "claim": "y"}, "xyz")] == ["x", "y", "z"]
        assert [row["version"] for row in kept(rows, {**rows[0], "version": "2"}, "xyz")] == ["1", "1", "2"]

    def test_attempts_are_counted(self, load):
        honesty = load("honesty")
        new = {"library": "a", "version": "1", "claim": "x"}
        once = honesty.kept([], new, "x", before=2)
        assert once[0]["attempts"] == "3"
        assert honesty.kept(once, new, "x")[0]["attempts"] == "4"
        assert [honesty.once_more(attempts) for attempts in ("?", "? + 1", "9")] == ["? + 1", "? + 2", "10"]

    def test_the_event_may_be_the_complement(self, load):
        """Left is always 1, right in four of five runs (seeds are odd): what tells them apart is to be 0."""
        rare = target(lambda data, noise: float(data == 0 or seed_of(noise) % 10 > 1), epsilon=0.1)
        finding = attack_output(rare, runs=RUNS, random_state=0)
        honesty = load("honesty")
        high, low = honesty.event(finding).split(" against ")
        assert finding.violated
        assert float(high.split()[1]) < 0.25
        assert float(low.split()[1]) < float(high.split()[1])

    def test_a_verdict_says_what_was_shown(self, load):
        honesty = load("honesty")
        told = target(lambda data, noise: data, epsilon=0.1)
        exact = attack_output(told, runs=RUNS, confidence=honesty.CONFIDENCE, random_state=0)
        honest = attack_output(target(laplace), runs=RUNS, random_state=0)
        nothing = attack_output(target(lambda data, noise: 0.0), runs=RUNS, random_state=0)
        verdicts = [honesty.verdict(exact, kind) for kind in ("claim", "naive", "disclaimed")]
        assert verdicts == ["exceeded", "exceeded", "disclaimed"]
        assert [honesty.verdict(found, "claim") for found in (honest, nothing)] == ["not exceeded", "too weak to say"]
        assert honesty.event(nothing) == "nothing"
        assert honesty.below(exact.epsilon_low) == honesty.below(honesty.most(RUNS, 0.0))

    def test_bounds_are_rounded_to_the_safe_side(self, load):
        honesty = load("honesty")
        assert [honesty.below(value) for value in (0.99999, 0.25, 2.1499, 0.0)] == ["0.999", "0.250", "2.14", "0"]
        assert [honesty.above(value) for value in (0.0072912, 0.9991, 1.0)] == ["0.00730", "1.00", "1.00"]

    def test_the_two_sides_of_the_quantile_are_drawn_by_different_laws(self, load):
        """The median of 0.3, 0.3, 0.6 and that of 0.3, 0.6, 0.6 are drawn by the same law."""
        places = np.linspace(0.005, 0.995, 100)

        def law(rows, quantile):
            """Of the exponential mechanism with epsilon 1, whose utility is the distance in ranks."""
            weight = np.exp(-0.5 * np.abs(np.searchsorted(np.sort(rows), places) - quantile * len(rows)))
            return weight / weight.sum()

        assert law([0.3, 0.3, 0.6], 0.5) == pytest.approx(law([0.3, 0.6, 0.6], 0.5))
        left, right = (law(rows, 0.0) for rows in load("_claims_diffprivlib").SMALLEST)
        assert np.abs(np.log(left / right)).max() > 0.1

    def test_the_law_of_a_shipped_direction_prefers_its_own_side(self, load):
        ratio = load("_claims").direction_ratio([41, 40, 0], [40, 41, 0], 2.0)
        assert ratio([1, 0, 0]) > 0 > ratio([0, 1, 0])
        assert ratio([0.6, 0.8, 0]) == pytest.approx(-ratio([0.8, 0.6, 0]))


def test_the_table_can_be_read():
    with (BENCHMARKS / "honesty.csv").open(newline="", encoding="utf-8") as file:
        verdicts = {row["verdict"] for row in csv.DictReader(file)}
    assert verdicts == {"exceeded", "disclaimed", "not exceeded", "too weak to say"}
