"""What a certificate promises, in plain words and as the power of an attacker's test."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from scipy.special import ndtr, ndtri

from ppdp.certificate.numbers import draws_of, loss_of, privacy_profile
from ppdp.certificate.record import Gate, Mechanism, Record
from ppdp.core.figures import figure

MODELS = ("learning.", "lora.", "diffprivlib.")  # formulas of last steps that predict
FALSE_ALARMS = (0.01, 0.05)
ON_TRUST = (
    "“Declared” means: said by whoever ran the fit, and nothing proves it. Ask of each declared one whether it is true,"
    " and where it comes from, first of the ranges: the promise does not hold if a limit, label or setting was taken"
    " from these rows."
)
DIGEST = (
    "A digest that matches shows that nothing was damaged, not who wrote the document: whoever changes it can compute a"
    " new one. Have whoever is responsible confirm the digest, and the key of the signature if there is one: nobody can"
    " sign without its secret half."
)
PLAINLY = {
    "exceptions raised on invalid values": "In this run an entry that is missing where none was announced, that is"
    " infinite, or a label that was not announced would have stopped the run; whoever learns that it stopped learns"
    " something about the data. A run that is told to repair such entries replaces them by public values, and that is"
    " covered. 'Public facts' tells where missing values were announced.",
    "that a run stops because a row has no id": "In this run a row without an id would have stopped the run, which"
    " tells that there is such a row. A run that is told to repair leaves it out.",
    "that a run stops because there are more": "There were no more rows to use than the declared limit: more would"
    " have stopped the run, which tells so. No row is dropped for it.",
    "evaluation on private rows": "Other attempts, scores, plots and tuning on these rows, and what was chosen by them,"
    " unless they are charged to the same ledger under the same name.",
    "that a column holds text": "Whether a column holds words or numbers counts as known.",
}
FACTS = {
    "adjacency": "which datasets are neighbours",
    "n_rows": "number of rows",
    "n_features": "number of columns",
    "feature_names": "column names",
    "columns": "columns that the step is for",
    "fewest observed entries of a column": "filled rows of a column, at least (a share of the declared number of rows,"
    " or a number)",
    "rows_per_unit": "rows per person",
    "row_norm": "limit on the length of a row",
    "gaps": "missing values",
    "classes": "labels",
    "y_range": "range of the targets",
    "max_weight": "largest weight of a row",
    "entry_bound": "largest entry",
    "min_present": "fewest rows that count",
}
# statistics that are more than their names
SAID = {"squares": "means and squares", "diagonal": "means and squares", "matrix": "means and products"}
RULES = {
    "max": "It stands in front of everything that rests on a condition, so the larger of its δ and that of the releases"
    " counts, not the sum.",
    "sum": "Its δ and that of the releases add.",
}
WAYS = {
    "public": "public parameters only",
    "noisy": "from released statistics",
    "exact": "fitted without noise",
}
TERMS = {
    "means": "of every column (of one that the step is not for: 0 with noise)",
    "label-means": "how many rows of each category have which label; mean labels follow from it",
    "squares": "means of every column and of its squares, from which its spread follows",
    "diagonal": "means of every column and of its squares, from which its spread follows",
    "matrix": "means of every column and of all products of two columns",
    "moment": "means of all products of two columns",
    "complete-matrix": "means of all products of two columns, over the rows without gaps",
    "trimmed-means": "of every column, without its smallest and largest entries",
    "medians": "of every column",
    "quantile-pairs": "a lower and an upper quantile of every column",
    "quantile-triples": "a lower quantile, the median and an upper quantile of every column",
    "lipschitz": "how many times farther apart a map can put two rows; none if no limit was declared",
    "row_norm": "no row is longer than this",
    "entry_bound": "no entry is larger than this",
    "categories": "those of a column that so many rows hold that their noisy weight exceeds a public threshold, with"
    " that weight; nothing leaves of any other",
    "replaced": "the row holds something else, or nothing",
    "toggled": "the row counts in one of the two datasets only",
    "moved": "the row is there in both, with other numbers",
    "widths": "how wide the range of each column is",
    "raw": "whether rows are compared as they came in, before all stages",
    "min_observed": "chosen, no count of the rows: a column that is filled in fewer is taken as filled in so many",
    "block": "rows that are added up at a time",
    "clip": "no row's part in one answer is longer than this",
    "coef_norm": "the coefficients together are no longer than this",
    "shares": "what the first three answers of the training have of what all of it costs, which is mu squared",
    "curvature": "what the curvature has of what a step costs",
    "last": "how many times as much as another step the last one costs",
    "smoothing": "half the width in which the loss is rounded off",
}


def detection_power(content: Record, false_alarm: float) -> float:
    """Most often that an attacker's test can be right, at a given probability of an alarm on the other dataset.

    Notes
    -----
    With f = failure, t = the sampler's total variation, g = delta of a gate under the "max" rule (else 0),

    ``f + (1 - f) Φ(μ + Φ⁻¹((α + t)/(1 - f))) + t + g``;

    where not everything is Gaussian, the least that a pair (epsilon, delta) which the certificate promises allows.
    Source: ``docs/theory/accounting.md``, 7.
    """
    total, loss = content.total, loss_of(content)
    failure, passing = loss.failure, loss.gate
    if failure >= 1:
        return 1.0
    if total.parts:
        promised = [pair for pair in privacy_profile(content) if math.isfinite(pair[1])]
        return min(_power_of_pair(*pair, false_alarm) for pair in promised)
    sampler = draws_of(content)
    level = min(1.0, (false_alarm + sampler) / (1 - failure))
    ideal = failure + (1 - failure) * float(ndtr(total.mu + ndtri(level)))
    return min(1.0, ideal + sampler + passing)


def powers_in_words(content: Record, space: str = "\u00a0") -> str:
    """What is detected at most, at each rate of false alarms."""
    shares = ((rounded_up(detection_power(content, alarm)), figure(100 * alarm)) for alarm in FALSE_ALARMS)
    return " and ".join(f"{power} at {alarms}{space}% false alarms" for power, alarms in shares)


def _power_of_pair(delta: float, epsilon: float, false_alarm: float) -> float:
    """What one pair (epsilon, delta) allows, whichever of the two datasets is tested for."""
    factor = math.exp(min(epsilon, 700.0))
    return max(0.0, min(1.0, factor * false_alarm + delta, 1 - (1 - false_alarm - delta) / factor))


def rounded_up(share: float) -> str:
    """A share as a percentage with two decimals, never rounded down.

    Examples
    --------
    >>> rounded_up(0.018301).split(), rounded_up(1.0).split()
    (['1.84', '%'], ['100.00', '%'])
    """
    return f"{min(math.ceil(share * 10_000), 10_000) / 100:.2f}\u00a0%"


def rounded_down(share: float) -> str:
    """A share as a percentage with two decimals, never rounded up.

    Examples
    --------
    >>> rounded_down(0.98169).split()
    ['98.16', '%']
    """
    return f"{math.floor(share * 10_000) / 100:.2f}\u00a0%"


def status_in_words(content: Record, rests_on: str = "everything that it rests on") -> str:
    """One sentence for the status."""
    if content.status == "SEEDED":
        return "For tests only: do not rely on it."
    if content.status == "CONDITIONAL":
        return f"Holds only if the following is true, which nothing has tested, and if {rests_on} is true."
    tested = " What the stages need of the rows was checked first, by a noisy test whose cost is included."
    gated = tested if content.gate is not None else ""
    return f"Unconditional means: whatever the rows hold, if {rests_on} is true.{gated}"


def covered_in_words(content: Record) -> tuple[str, ...]:
    """What the promise speaks of, one line each."""
    gate, search, left = content.gate, content.search, what_left(content)
    words, settled = [], "settled from the facts on this certificate alone, before the program looked at any row"
    if search is not None:
        count = search.selection.candidates
        tried = f"the fits of {count} candidates, the choice among them, and the last fit on all rows"
        words.append(f"the whole search: {tried}")
    words += [
        f"everything that left this run, taken together: {', '.join(left)}{', ' if left else ''}and the certificate",
        "whatever is made of that without the private rows: a published model, and its predictions for other people",
    ]
    if any(step.way != "public" for step in content.steps):
        words.append("the cleaning: what the stages took from the private rows is part of the cost")
    if gate is not None and gate.ladder:
        settled += ", but for the rung of the ladder, which the noisy test chose; its answer is paid for"
    words.append(f"how each step was computed: {settled}")
    if gate is not None:
        words.append(
            "a refusal: had the gate not passed, the run would have said only that, and it is paid for either way"
        )
    if content.invalid == "repair":
        words.append("invalid values: they are repaired row by row, so that no error tells of them")
    return tuple(words)


def what_left(content: Record) -> list[str]:
    """Everything that left the run but the document itself."""
    gate, mechanism = content.gate, content.mechanism
    left = [
        f"the noisy {SAID.get(release.statistic, release.statistic)} for the stage{'s' * (len(release.serves) > 1)}"
        f" {_quoted(release.serves)}" + (", words out of private cells" if release.statistic == "categories" else "")
        for release in content.releases
    ]
    left += ["the noisy shares of altered rows"] if content.diagnostics is not None else []
    left += [f"the gate's answer ({told(gate)})"] if gate is not None else []
    left += [_answer(mechanism, content.released.names)] if mechanism is not None else []
    return left


def _answer(mechanism: Mechanism, released: Iterable[str]) -> str:
    """What the last step gave."""
    name = _quoted([mechanism.name])
    if not mechanism.formula.startswith(MODELS):
        return f"the noisy answer of the last step {name}"
    path = f"{mechanism.name}.path" in released
    return f"the model {name}{' with all noisy steps of its training' if path else ''}"


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def told(gate: Gate) -> str:
    """What a gate that passed tells."""
    return "which rung passed" if gate.ladder else "one bit: passed"


def reservation(content: Record) -> str:
    """What must precede every promise of this certificate; empty for an unconditional one."""
    if content.status == "UNCONDITIONAL":
        return ""
    assumed = "the assumptions hold"
    if content.status == "SEEDED":
        unpredictable = "nobody can predict the noise"
        assumed = f"{unpredictable} and {assumed}" if len(content.reasons) > 1 else unpredictable
    return f"Provided that {assumed}, "


def slack_in_words(content: Record) -> str:
    """What the power includes beyond ideal noise."""
    gate, total = content.gate, content.total
    listed = any(release.failure for release in content.releases)
    failure = max(gate.delta if gate else 0.0, total.failure)
    chance, error = (figure(p, upward=True) for p in (failure, total.allowance))
    what = "the gate passes although a condition fails" if gate else "" if listed else "nothing is promised"
    fresh = "a category is released that only one person's rows hold" if listed else ""
    what = " or ".join(filter(None, (what, fresh)))
    failing = f"the chance (at most {chance}) that {what} and " if gate or total.failure > 0 else ""
    return f"{failing}a tiny error of the sampler of the noise (δ of at most {error})"


def around_the_claim(c: Record) -> tuple[str, str]:
    """What stands before and after "(ε, δ) = (1, 10⁻⁶)" in the title: a promise never stands there without its if."""
    of_what = "" if c.neighbours.record_level else f" of {c.neighbours.unit}, not of anything else in it"
    if c.status == "UNCONDITIONAL":
        return "", f"-differential privacy{of_what}, end to end"
    if c.status == "CONDITIONAL":
        return "if what is assumed below holds, ", f"-differential privacy{of_what}, end to end"
    further = " and if what is assumed below holds" if len(c.reasons) > 1 else ""
    return f"nothing is protected; with secret noise{further} it would be ", f"-differentially private{of_what}"


def neighbours_in_words(words: str) -> str:
    """Which datasets are neighbours, where it says what became of too many rows: no run drops one for their number."""
    return words.replace("no more than n_rows are kept", "if more rows than the limit are left, the run stops")


def protected_in_words(c: Record) -> str:
    """The unit of privacy, and whether anybody said so."""
    assumed = any(fact.name == "rows_per_unit" and fact.origin == "default" for fact in c.facts)
    return c.neighbours.unit + ("; each person is assumed to have one row, nobody declared it" if assumed else "")


def terms(words: Iterable[str]) -> Sequence[tuple[str, str]]:
    """Those of these words that need an explanation, with it."""
    return [(word, TERMS[word]) for word in dict.fromkeys(words) if word in TERMS]
