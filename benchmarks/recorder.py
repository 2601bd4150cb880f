"""dp-recorder's audit of every stage and mechanism: an outsider's tool, with its own neighbours and its own checks.

    git clone https://github.com/ObliviousAI/dp-recorder    # arXiv 2602.17454; not on PyPI
    pip install tqdm seaborn graphviz                       # which it imports
    PYTHONPATH=dp-recorder/src python benchmarks/recorder.py

Re:cord-play records a run on made-up rows and replays it on rows with one replaced by each strategy of the tool: what
is drawn is frozen, noise must be asked for in the same order with the same public parameters, what is released must be
the same, and no input of a noise may be further off than what the plan declares. Writes ``recorder.md``.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from dp_recorder.auditing.audit_primitives import Auditor, audit_spec, ensure_equality
from dp_recorder.auditing.dataset_util import neighbor_replace
from zoo import BOX, CLIP, FEW_GAPS, MEAN, ZOO, imputer, of, people

from ppdp import Pipeline
from ppdp import mechanisms as M
from ppdp import transformers as S
from ppdp.bounds import FORMULAS
from ppdp.core.adjacency import Adjacency, Change
from ppdp.data.noisy_statistics import STATISTICS
from ppdp.exceptions import PpdpError, PrivacyRefusal
from ppdp.pipeline.execute import execute
from ppdp.pipeline.fit import prepare_rows
from ppdp.pipeline.planning.plan import Plan
from ppdp.privacy.noise.sampler import Noise
from ppdp.testing.answers import exact_answers, law_of

LOG = Path(__file__).with_name("recorder.md")
HEAD = """# dp-recorder over every stage and mechanism

Written by `python benchmarks/recorder.py` with dp-recorder 0.1.0 (commit 85d189e): every kind of pipeline of the tests,
and what of the registry none of these has, on 400 rows (3000 where a gate refuses those), one of which is replaced
three times by each of the tool's six strategies (where neighbours differ by a change, one value is changed 18 times;
where by a row, the tool's is removed).
The tool freezes what is drawn, compares order and public parameters of noise and everything that is released, and holds
inputs of noise to the declared sensitivity. Conditions are tested by a gate, shares of altered rows are left out.

| pipeline | neighbours | noisy answers | largest share of the declared distance | found |
|---|---|---|---|---|"""
STRATEGIES = (
    "modify_one_attr",
    "copy_random",
    "insert_nan",
    "insert_inf",
    "insert_large_outliers",
    "insert_shifted_outliers",
)
PIPELINES = ZOO | {
    "dates": of(("dates", S.DateEncoder(ranges=(-1, 1))), MEAN),
    "linear regression": of(CLIP, ("model", M.LinearRegression((0, 2)))),
    "positive amounts": of(BOX, imputer(**FEW_GAPS), ("model", M.GammaRegressor((1, 2), max_iter=10))),
}
"""Every kind of pipeline of the tests, and what of the registry none of these has."""
ROWS, CHANGED = (400, 3000), 57  # rows, and the one that changes
TIMES = 3  # each strategy
FREE = 1e300  # declared of an input of which nothing is that could be exceeded
Distance = Callable[[Any, Any], float]
Claim = tuple[float, Distance]


def l2(one: Any, other: Any) -> float:
    return float(np.linalg.norm(np.ravel(one) - np.ravel(other)))


def l1(one: Any, other: Any) -> float:
    return float(np.abs(np.ravel(one) - np.ravel(other)).sum())


METRICS: dict[str | None, Distance] = {
    "laplace": l1,
    "exponential": lambda one, other: float(np.ptp(np.ravel(one) - np.ravel(other))),
}


def planned(plan: Plan) -> dict[tuple[float, float], Claim]:
    """What is declared of inputs of noise, by the scale of the noise and the bound at which it clamps."""
    claims: dict[tuple[float, float], Claim] = {}
    for release in plan.releases:
        statistic, domain = STATISTICS[release.statistic], plan.steps[release.at].domain
        apart = l2 if statistic.listed else statistic.apart
        claims[release.noise_scale, statistic.bound(domain)] = release.sensitivity, apart
    if plan.gate is not None:
        claims[plan.gate.noise_scale, float(plan.gate.n_rows)] = 1.0, l1
    return claims


def trained(plan: Plan) -> Iterator[Claim]:
    """The same of the mechanism, answer by answer."""
    last = plan.mechanism
    if last is None:
        return
    question, law = last.question, law_of(last.question)
    claimed = exact_answers(last, *plan.end).claimed
    if law is None or law == "flips":  # no distance is declared
        claimed = FREE
    elif law == "sampled":  # on a batch whose rows are known
        claimed *= plan.end[0].n / question.parameters["batch_size"]
    each = getattr(FORMULAS.get(question.formula), "each", None)
    parts = [claimed] * question.steps if each is None else each(*plan.end, **question.parameters)
    if "epochs" in question.parameters:  # the root of the mean square over the batches of a pass is declared
        parts = [claimed * np.sqrt(question.steps / question.parameters["epochs"])] * question.steps
    while True:
        yield from ((part, METRICS.get(law, l2)) for part in parts)


class Audited(Noise):
    """Noise that passes through the tool; which rows a batch has is drawn apart, the same on both datasets."""

    def __init__(self, plan: Plan, seed: int = 0) -> None:
        super().__init__(np.random.default_rng([seed, 0]))
        self._source = Noise(np.random.default_rng([seed, 1]))
        self._planned, self._trained = planned(plan), trained(plan)

    def answer(self, law: str, value: Any, noise_scale: float, bound: float, draw: Callable[[Noise], Any]) -> Any:
        claimed, metric = self._planned.get((noise_scale, bound)) or next(self._trained)

        def primitive(data: Any, sensitivity: float, noise_scale: float, bound: float) -> Any:
            return draw(self._source)

        spec = audit_spec(kind=law, input_arg="data", sensitivity_arg="sensitivity", metric_fn=metric)
        return spec(primitive)(np.array(value, float), float(claimed), float(noise_scale), float(bound))


def run(plan: Plan, rows: Any) -> None:
    """One execution, of which everything that is released is compared."""
    released = execute(plan, rows, Audited(plan)).released
    for name, array in sorted(released.items()):
        ensure_equality(**{name: np.asarray(array)})


def neighbours(X: Any, y: Any, strategy: str, adjacency: Adjacency, rng: np.random.Generator) -> list[tuple[Any, Any]]:
    """These rows and the tool's, with another label; where a value is changed, by no more than it may.

    Where one row is added or removed, all rows, the tool's as the last one, and all but that.
    """
    if isinstance(adjacency, Change):
        other = neighbor_replace(X, idx=CHANGED, rng=rng, strategy="modify_one_attr")
        return [(X, y), (X + np.clip(other - X, -adjacency.limit, adjacency.limit), y)]
    labels = y.copy()
    labels[CHANGED] = 1 - y[CHANGED]
    other = neighbor_replace(X, idx=CHANGED, rng=rng, strategy=strategy)
    if adjacency != Adjacency.add_remove():
        return [(X, y), (other, labels)]
    last = np.roll(other, -CHANGED - 1, axis=0), np.roll(labels, -CHANGED - 1)
    return [last, (last[0][:-1], last[1][:-1])]


def audited(name: str, n: int) -> tuple[int, int, float]:
    """Neighbours that were compared, noisy answers, and the largest distance as a share of what is declared."""
    steps, parameters = PIPELINES[name]
    gate = {"gate": parameters["gate"]} if parameters.get("gate") else {}
    kept = {name: value for name, value in parameters.items() if name not in ("gate", "ledger")}
    pipe = Pipeline(steps, epsilon=20.0, **{**kept, **gate, "on_invalid": "repair", "diagnostics": None})
    X, y = (table[:n] for table in people())
    X = X if any(getattr(step, "fills_gaps", False) for _, step in steps) else X.fillna(0.0)
    compared, asked, closest, rng = 0, 0, 0.0, np.random.default_rng(0)
    groups = np.arange(n) // 2 if pipe.neighbours.bounds_contributions else None

    def executed(table: tuple[Any, Any]) -> None:
        rows, labels = table
        run(*prepare_rows(pipe, X.__class__(rows, columns=X.columns), labels, groups, Noise(0)))

    for strategy in STRATEGIES * TIMES:
        one, other = neighbours(X.to_numpy(), y, strategy, pipe.neighbours, rng)
        auditor = Auditor()
        with warnings.catch_warnings(), np.errstate(all="ignore"), auditor:
            warnings.simplefilter("ignore")
            executed(one)
            auditor.set_replay()
            executed(other)
        auditor.validate_records()
        noisy = [entry for entry in auditor.log if entry.kind != "EQ"]
        shares = [
            entry.metric_fn(entry.inputs_d["data"], entry.inputs_dp["data"]) / entry.sensitivity_val
            for entry in noisy
            if 0 < entry.sensitivity_val < FREE
        ]
        compared, asked, closest = compared + 1, len(noisy), max([closest, *shares])
    return compared, asked, closest


def line(name: str) -> str:
    """One line of the log."""
    found = "its gate does not let these rows pass"
    for n in ROWS:
        try:
            return "| {} | {} | {} | {:.3f} | nothing |".format(name, *audited(name, n))
        except PrivacyRefusal:
            continue
        except PpdpError as error:
            found = f"not planned with noise from a seed ({type(error).__name__})"
        except ValueError:
            found = "not comparable: texts are released, and every dataset has others"
        except (AssertionError, RuntimeError, StopIteration) as error:
            found = f"FOUND: {error}"
        break
    return f"| {name} | - | - | - | {found} |"


def main() -> None:
    lines = [HEAD]
    for name in PIPELINES:
        lines.append(line(name))
        print(lines[-1], flush=True)
    LOG.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
