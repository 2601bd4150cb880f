"""All that every form of a certificate says, as one list: text, notebook, page, card and registry only lay it out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ppdp.certificate.altered import alerts, altered_in_words, predicted_in_words
from ppdp.certificate.facts import Origin, PublicFact, read_fact
from ppdp.certificate.issue_record import OF_THE_ISSUER
from ppdp.certificate.issue_statement import account_in_words, other_releases
from ppdp.certificate.issuer import UNPROVED, issuer_statements
from ppdp.certificate.pages import derivation
from ppdp.certificate.pages.assumptions import assumptions, unit_is_declared
from ppdp.certificate.pages.interpretation import guess_in_words, powers_in_words, rho
from ppdp.certificate.pages.statement import WORDS, Statement, Topic, printable, up
from ppdp.certificate.record import FactRecord, GateRecord, MechanismRecord, Record, ReleaseRecord, read_as, written
from ppdp.certificate.replay.rules import STOPS, Exclusion
from ppdp.core.adjacency import Adjacency
from ppdp.core.formula import GAUSSIAN
from ppdp.exceptions import escaped
from ppdp.privacy.losses import Part

LABELS: Mapping[str, str] = WORDS["stated"]  # what the issuer may state, in words
MOST_FACTS = 50  # declared ranges and constants that are shown; the document has all of them
MOST_LETTERS = 800  # of one value
TESTED = "What the stages need of the rows was checked first, by a noisy test whose cost is included."


def statements_of(c: Record) -> Iterator[Statement]:
    """Everything that is said of a certificate that holds, in the order in which text says it."""
    yield from (Statement(Topic.BESIDE, words) for words in other_releases(c))
    yield Statement(Topic.MEANING, status_in_words(c))
    if (issued := account_in_words(c)) is not None:
        yield Statement(Topic.ISSUED, issued)
    for (name, said), (_, short) in zip(issuer_statements(c), issuer_statements(c, short=True)):
        yield Statement(Topic.STATED, f"{LABELS[name]}: {said} ({UNPROVED})", short=short, name=name)
    yield from (Statement(Topic.REASON, reason) for reason in c.reasons)
    yield from assumptions(c)
    yield from (Statement(Topic.WARNING, words) for words in (*c.warnings, *alerts(c)))
    yield Statement(Topic.USEFULNESS, derivation.expected_error(c), short=derivation.expected_error(c, short=True))
    yield Statement(Topic.LOSERS, derivation.loses_most(c))
    for words in filter(None, (altered_in_words(c), predicted_in_words(c))):
        yield Statement(Topic.ALTERED, words)
    if c.dataset:
        yield Statement(Topic.DATA, c.dataset)
    one_row = c.neighbours == Adjacency.replace()  # of which the document has the words
    yield Statement(Topic.NEIGHBOURS, c.adjacency if one_row else c.neighbours.words)
    assumed = "" if unit_is_declared(c) else "; each person is assumed to have one row, which is not declared"
    yield Statement(Topic.PROTECTED, c.neighbours.unit + assumed)
    test = f"an attacker's test for {c.neighbours.phrases.secret} detects at most {powers_in_words(c)}"
    yield Statement(Topic.PROMISE, f"{reservation(c)}{test}", short=f"{reservation(c)}{guess_in_words(c)}")
    for fact in facts_to_show(c):
        source = f"{fact.source.text}; source: {fact.stated}" if fact.stated else fact.source.text
        yield Statement(Topic.FACT, f"{fact.name} = {value_in_words(fact)} ({source})")
    yield Statement(Topic.TRUST, WORDS["trust"])
    yield from _derivation(c)
    total = f"mu {c.total.mu:.6g} (of Gaussian differential privacy)"
    if (least := rho(c)) is not None:
        total += f", rho {up(least)}, rounded up (of zero-concentrated differential privacy)"
    yield Statement(Topic.TOTAL, total)
    yield from (Statement(Topic.COST, Part.from_dict(part).words()) for part in c.total.parts)
    yield from (Statement(Topic.COVERED, words) for words in _covered(c))
    yield from map(_excluded, c.not_covered)
    yield Statement(Topic.CHECK, WORDS["digest"])
    yield Statement(Topic.DIGEST, c.digest)


def around_the_claim(c: Record) -> tuple[str, str]:
    """What stands before and after the pair in the headline: a promise never stands there without its if."""
    of_what = "" if c.neighbours.row_level else f" of {c.neighbours.unit}, not of anything else in it"
    if c.status == "UNCONDITIONAL":
        return "", f"-differential privacy{of_what}, end to end"
    if c.status == "CONDITIONAL":
        return "if what is assumed below holds, ", f"-differential privacy{of_what}, end to end"
    further = " and if what is assumed below holds" if len(c.reasons) > 1 else ""
    before = f"nothing is protected; without a seed{further} it would be "
    return before, f"-differentially private{of_what}"


def status_in_words(c: Record, rests_on: str = "everything that it rests on") -> str:
    """What the status means."""
    tested = f" {TESTED}" if c.gate and c.status == "UNCONDITIONAL" else ""
    return str(WORDS["meaning"][c.status]).format(rests_on=rests_on) + tested


def reservation(c: Record) -> str:
    """What must precede every promise of this certificate; empty for an unconditional one."""
    if c.status == "UNCONDITIONAL":
        return ""
    assumed = "the assumptions hold"
    if c.status == "SEEDED":
        unpredictable = "no one can predict what the seed draws"
        assumed = f"{unpredictable} and {assumed}" if len(c.reasons) > 1 else unpredictable
    return f"Provided that {assumed}, "


def facts_to_show(c: Record) -> list[PublicFact]:
    """The facts that people are shown; the document has all, in full."""
    facts = [read_fact(fact) for fact in c.facts]
    settings = [fact for fact in facts if fact.source.origin is Origin.SETTING]
    beyond = {id(fact) for fact in settings[MOST_FACTS:]}
    shown = [fact for fact in facts if id(fact) not in beyond]
    if beyond:
        rest = FactRecord(name="further", value=f"{len(beyond)} more that are declared", origin="see the JSON document")
        shown.append(read_fact(rest))
    return shown


def value_in_words(fact: PublicFact) -> str:
    """A value with few digits, and not longer than people read."""
    if len(fact.value) > MOST_LETTERS:
        return f"{fact.value[:MOST_LETTERS]}... (in full in the JSON document)"
    return ", ".join(filter(None, fact.rounded))


def _derivation(c: Record) -> Iterator[Statement]:
    """Every step with its distance and conditions, then everything that left with noise."""
    for step, point in zip(c.steps, derivation.points_of(c)[1:]):
        differ = f"neighbours then differ by {point.distance.describe()}"
        yield Statement(Topic.STAGE, f"{step.title}: {differ}  {_proved(step.formula, step.page)}")
        for condition in step.conditions:
            yield Statement(Topic.TESTED if condition.tested else Topic.ASSUMED, condition.statement)
    yield from map(_noisy, derivation.noises_of(c))


def _proved(formula: str, page: str) -> str:
    """The formula of a figure, and the page that proves it."""
    return f"[{formula}; proof: {page}]"


def _noisy(noise: derivation.NoisyRelease) -> Statement:
    """What left, with its noise."""
    part = noise.part
    cost = "" if part.mu is None else f"mu {part.mu:.6g}"
    if isinstance(part, GateRecord):
        rung = f" at {part.ladder.place}" if part.ladder else ""
        paid = cost or f"{part.kind} noise {part.noise_scale:.4g}"
        passed = f"passed{rung}; {paid}, delta {part.delta:.3g} ({part.rule})"
        return Statement(Topic.GATE, f"{passed}  [proof: {part.page}]")
    law = "Gaussian noise, sigma" if noise.law == GAUSSIAN else f"{noise.law}, scale"
    of_all = "root-mean-square " if noise.times > 1 else ""  # over answers that may differ
    apart = "" if noise.sensitivity is None else f"{of_all}sensitivity {noise.sensitivity:.4g}, "
    scale = f"{apart}{law} {part.noise_scale:.4g}{cost and f', {cost}'}"
    if isinstance(part, MechanismRecord):
        numbers = f"{noise.size} number{'' if noise.size == 1 else 's'}"
        times = "" if noise.times == 1 else f"{noise.times} x "
        return Statement(
            Topic.MECHANISM,
            f"{noise.name} ({noise.note}): {times}{numbers}, {scale}  {_proved(part.formula, part.page)}",
        )
    if isinstance(part, ReleaseRecord) and part.threshold is not None:
        scale += f", above {part.threshold:.4g}, delta {part.failure:.3g}"
    return Statement(Topic.RELEASED, f"{noise.phrase}: {scale}  {_proved(part.formula, part.page)}")


def _covered(c: Record) -> Iterator[str]:
    """What the promise speaks of, one line each."""
    on_a_ladder = c.gate is not None and c.gate.ladder is not None
    applies = {
        "search": c.search is not None,
        "left": True,
        "made": True,
        "cleaning": any(step.way != "public" for step in c.steps),
        "settled": not on_a_ladder,
        "ladder": on_a_ladder,
        "refusal": c.gate is not None,
        "repair": c.invalid == "repair",
    }
    candidates = c.search.selection.candidates if c.search is not None else None
    for name, words in WORDS["covered"].items():
        if applies[name]:
            yield words.format(left=", ".join([*what_left(c), "and the certificate"]), candidates=candidates)


def what_left(c: Record, article: str = "the ") -> list[str]:
    """Everything that left the run but the document itself; where there is little room without its article."""
    served: dict[str, list[str]] = {}
    for release in c.releases:
        served.setdefault(release.statistic, []).extend(f"'{name}'" for name in release.serves)
    words = {"categories": ", words out of private cells"}
    left = [
        f"{article}noisy {derivation.measured(statistic)} for {', '.join(names)}{words.get(statistic, '')}"
        for statistic, names in served.items()
    ]
    left += [f"{article}noisy diagnostics (shares of clipped values and the like)"] if c.diagnostics is not None else []
    left += [f"the gate's answer ({derivation.gate_in_words(c.gate)})"] if c.gate is not None else []
    m = c.mechanism
    if m is None:
        return left
    if not derivation.is_model(m):
        told = _told(c, m)
        last = f"noisy {told} ('{m.name}')" if told else f"noisy answer of the last step '{m.name}'"
        return [*left, article + last]
    path = " and every noisy step of its training" if f"{m.name}.path" in c.released.names else ""
    return [*left, f"the model '{m.name}' ({m.class_}){path}"]


def _told(c: Record, m: MechanismRecord) -> str:
    """What is in the answer of the last step, where its formula says it in words."""
    answer = derivation.answer_of(m)
    if answer is None or answer.told is None:
        return ""
    domain = (c.steps[-1] if c.steps else c.entrance).domain
    names = domain.get("feature_names") or [f"x{i}" for i in range(domain["n_features"])]
    return answer.told([escaped(str(name)) for name in names], **m.parameters)


def _excluded(words: str) -> Statement:
    known = next((one for one in Exclusion if one.value == words), None)
    told = WORDS["excluded"].get(known.name.lower(), {}) if known is not None else {}
    return Statement(Topic.NOT_COVERED, words, short=told.get("short", words), plain=told.get("plain", ""))


def excluded_in_short(c: Record, of_this_run: str = "") -> list[str]:
    """What is not covered, with the reasons for which a run stops as one; in a ledger other attempts are counted."""
    stops = {one.value for one in STOPS}
    why = [_excluded(one.value).short for one in STOPS if one.value in c.not_covered]
    short = [f"what a stopped run tells ({of_this_run or ', '.join(why)})"] if why else []
    for words in (words for words in c.not_covered if words not in stops):
        charged = " (if not in the ledger)" if words == Exclusion.EVALUATION.value and c.ledger else ""
        short.append(f"{_excluded(words).short}{charged}")
    return short


@dataclass(frozen=True, slots=True)
class View:
    """What is said of a certificate that holds."""

    record: Record
    statements: tuple[Statement, ...]
    points: tuple[derivation.Point, ...]
    noises: tuple[derivation.NoisyRelease, ...]

    def texts(self, *topics: Topic, short: bool = False) -> list[str]:
        """What is said on these topics, or that in short."""
        return [one.short if short else one.text for one in self.statements if one.topic in topics]

    def claim(self, pair: str) -> str:
        """The headline without the status."""
        before, after = around_the_claim(self.record)
        return f"{before}{pair}{after}"

    @property
    def day(self) -> str:
        """When it was issued; empty if that is not recorded."""
        return "" if self.record.issued is None else self.record.issued.date[:10]

    @property
    def stated(self) -> dict[str, str]:
        """What the issuer states, by name, in short; empty where nothing is stated."""
        said = {s.name: s.short for s in self.statements if s.topic is Topic.STATED}
        return {name: said.get(name, "") for name in OF_THE_ISSUER}

    @property
    def context(self) -> dict[str, Any]:
        """What every template may use."""
        c = self.record
        return {
            "c": c,
            "Topic": Topic,
            "statements": self.statements,
            "texts": self.texts,
            "neighbours": c.neighbours,
            "phrases": c.neighbours.phrases,
            "claim_around": around_the_claim(c),
            "claim_in_text": self.claim(f"(ε, δ) = ({up(c.epsilon)}, {up(c.delta)})"),
            "reservation": reservation(c),
            "warnings": [f"Warning: {words}" for words in self.texts(Topic.WARNING)],
            "stated": self.stated,
            "responsible": self.stated["responsible"],
            "issued": account_in_words(c, symbols=True),
            "noises": self.noises,
            "stages": list(zip(self.points, [None, *c.steps])),
            "GAUSSIAN": GAUSSIAN,
            "logarithmic": derivation.spreads([point.rows for point in self.points]),
        }


def view_of(record: Record, *, raw: bool = False) -> View:
    """What is said of a certificate that holds; unless ``raw`` without invisible characters, as people read it."""
    c = record if raw else read_as(Record, printable(written(record)))
    return View(c, tuple(statements_of(c)), derivation.points_of(c), tuple(derivation.noises_of(c)))
