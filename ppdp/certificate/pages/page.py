"""The page of a certificate that holds: what its templates need to know."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ppdp.certificate.facts import COLUMNS, Origin, PublicFact
from ppdp.certificate.guarantee import privacy_profile
from ppdp.certificate.issuer import UNPROVED
from ppdp.certificate.pages import budget, interpretation
from ppdp.certificate.pages.assumptions import (
    CHOSEN_BLINDLY,
    NOT_MADE_FROM_OTHERS,
    ONE_PERSON_EACH,
    unit_is_declared,
    unit_on_trust,
)
from ppdp.certificate.pages.derivation import is_model, law_of, only_the_last
from ppdp.certificate.pages.drawing import (
    distance_bars,
    power_curve,
)
from ppdp.certificate.pages.glossary import TERMS, WAYS, WORDS, terms_in
from ppdp.certificate.pages.statement import Topic
from ppdp.certificate.pages.statements import (
    LABELS,
    MOST_FACTS,
    TESTED,
    excluded_in_short,
    facts_to_show,
    status_in_words,
    value_in_words,
    what_left,
)
from ppdp.certificate.pages.templating import html_page, render
from ppdp.certificate.pages.typography import minus
from ppdp.certificate.pages.view import View
from ppdp.certificate.record import AlternativeRecord, Record
from ppdp.core.adjacency import UNPROTECTED
from ppdp.core.figures import figure
from ppdp.core.formula import AT, CHOICE, EXACT_LAWS, FORMULAS, GAUSSIAN, Answer, of_group
from ppdp.privacy.gate import GATE_KINDS
from ppdp.privacy.losses import Part

FURTHER = ("contact", "limit_set_by", "review_by", "supersedes", "attachments")  # under "Made by" on page one
LAWFUL = ("legal_basis", "consent", "ethics_approval", "retention")  # beside the last condition of publishing
OTHER_DELTAS = (1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
MOST_LETTERS = 90  # of the name of the data, at the foot of a sheet
MOST_VALUES = 12  # of a list that are shown one by one
SIGNED = " --signature certificate.json.sig --public-key public.pem"
STATUSES: Mapping[str, str] = WORDS["routes"]
RUNGS = ("did not pass", "passed, used", "not needed")
RANGES = "ranges of the columns, as they stand at these steps"


def render_page(view: View, signer: str | None = None) -> str:
    """The page; whatever text the certificate has is shown as text."""
    c, context = view.record, {**view.context, **_context(view, signer)}
    body = render("page.html", context)
    terms = render("terms.html", {"terms": terms_in(re.sub("<[^>]*>", " ", body))})
    main = Markup('<main class="{}">{}{}</main>').format(c.status.lower(), body, terms)
    title = _title(c)
    return html_page(f"{title}: {c.dataset}" if c.dataset else title, main, _foot(c))


def _title(c: Record) -> str:
    pair = f"({c.epsilon:g}, {c.delta:g})" + ("" if c.neighbours.row_level else " (for bounded changes only)")
    return {
        "UNCONDITIONAL": f"UNCONDITIONAL {pair} certificate",
        "CONDITIONAL": f"CONDITIONAL certificate: {pair} if what it assumes holds",
        "SEEDED": "SEEDED certificate: nothing is protected",
    }[c.status]


def _foot(c: Record) -> str:
    """What a single sheet must say: what it is a part of, and that there is an if."""
    data, day = c.dataset or "", _day(c)
    short = data if len(data) <= MOST_LETTERS else f"{data[:MOST_LETTERS]}…"
    status = {
        "UNCONDITIONAL": "Holds if all under “Taken on trust” is true (UNCONDITIONAL)",
        "CONDITIONAL": "CONDITIONAL on what is assumed, and on “Taken on trust”",
        "SEEDED": "SEEDED: nothing is protected",
    }[c.status]
    first = " · ".join(filter(None, (status, f"digest {c.digest[:19]}…", day)))
    return f"{first}\nPrivacy certificate{f': {short}' if short else ''}"


def _day(c: Record) -> str:
    return "" if c.issued is None else c.issued.date[:10]


def _context(view: View, signer: str | None) -> dict[str, Any]:
    c = view.record
    return {
        "signer": signer,
        "options": SIGNED if signer else "",
        "day": _day(c),
        "UNPROTECTED": UNPROTECTED,
        "NOT_MADE_FROM_OTHERS": NOT_MADE_FROM_OTHERS,
        "ONE_PERSON_EACH": ONE_PERSON_EACH,
        "CHOSEN_BLINDLY": CHOSEN_BLINDLY,
        "MOST_MORE": budget.MOST_MORE,
        "GAUSSIAN": GAUSSIAN,
        "CHOICE": CHOICE,
        "lede": TESTED if c.status == "UNCONDITIONAL" else status_in_words(c, "all under “Taken on trust”"),
        "neighbours_on_page": _neighbours(view.texts(Topic.NEIGHBOURS)[0], c),
        "left": what_left(c),
        "ledger": budget.ledger_view(c),
        "rho": interpretation.rho(c),
        "further": _further(view),
        "lawful": "; ".join(f"{LABELS[name]}: {view.stated[name]}" for name in LAWFUL if view.stated[name]),
        "unsaid": ", ".join(LABELS[name] for name in LAWFUL if not view.stated[name]),
        "UNPROVED": UNPROVED,
        **_people(view),
        **_success(c),
        **_released(view),
        **_stages(view),
        **_tables(view),
    }


def _further(view: View) -> str:
    """What is stated and has no other place on page one."""
    ledger = view.record.ledger
    named = {"limit_set_by"} if ledger is not None and ledger.limit is not None else set()
    named |= {"contact"} if view.stated["responsible"] else set()
    told = ((name, view.stated[name]) for name in FURTHER if name not in named)
    return "; ".join(f"{LABELS[name]} {said}" for name, said in told if said)


def _neighbours(words: str, c: Record) -> str:
    """Which datasets are neighbours, with what becomes of too many rows: no run drops one for their number."""
    return f"{words}: with more, the run stops" if c.neighbours.bounds_contributions else words


def _people(view: View) -> dict[str, Any]:
    """Who is protected, and what is not covered."""
    c = view.record
    duplicates = [step for step in c.steps if step.class_.endswith("Deduplicator")]
    two = interpretation.times_in_100(interpretation.right_of_two_rows(c))
    known = two if c.status == "UNCONDITIONAL" and two < 100 else None  # the table between may break what is assumed
    together = f" (two people: right at most {known} times in 100)" if known else ""
    group = f"a family: protected less than one person{together}"
    beyond = group if c.neighbours.row_level else "several changes: protected less than one"
    checklist = "consent, bias, access to rows: annex, checklist"
    named = ["what the other releases named at the top cost"] if view.texts(Topic.BESIDE) else []
    general = "what holds of people in general, and so of anyone"
    measured = c.issued is not None and c.issued.accuracy is not None
    others = ["others, such as people whom accuracy was measured on"] if measured else []
    at_length = (
        "what the release shows of people in general: it can be applied to anyone, whether in the table or not, and"
        " nearly the same would be learned without that person’s rows"
    )
    return {
        "unit_declared": unit_is_declared(c),
        "unit_on_trust": unit_on_trust(c),
        "two": known,
        "duplicates": [f"“{step.name}”" for step in duplicates],
        "close_duplicates": any(step.class_ != "Deduplicator" for step in duplicates),
        "not_covered_in_short": [
            *excluded_in_short(c, " (not this one)"),
            *named,
            beyond,
            *others,
            general,
            checklist,
        ],
        "beyond_at_length": [beyond, at_length, checklist],
    }


def _success(c: Record) -> dict[str, Any]:
    """How often an attacker is right, at most."""
    powers = [(alarm, interpretation.detection_power(c, alarm)) for alarm in interpretation.FALSE_ALARMS]
    alarm, power = powers[0]
    gate, total, rare = c.gate, c.total, any(release.failure for release in c.releases)
    fails = ["the gate passes although a condition fails"] if gate else [] if rare else ["nothing is promised"]
    fails += ["a category is released that only one person's rows hold"] if rare else []
    profile = dict(privacy_profile(c)) | {c.delta: c.epsilon}
    deltas = sorted({*OTHER_DELTAS, c.delta}, reverse=True)
    return {
        "guesses": interpretation.times_in_100(interpretation.right_guesses(c)),
        "by_epsilon": interpretation.times_in_100(interpretation.right_at(c.epsilon, c.delta)),
        "claims": figure(50 * (alarm + power), 3),
        "right_claims": interpretation.times_in_100(interpretation.right_alarms(alarm, power)),
        "sure_times": interpretation.times_in_100(interpretation.SURE),
        "seldom": seldom(interpretation.mostly_right(c)),
        "powers": [(alarm, power, interpretation.right_alarms(alarm, power)) for alarm, power in powers],
        "failing": max(gate.delta if gate else 0.0, total.failure),
        "fails": fails,
        "rare": rare,
        "other_deltas": [(d, profile[d] if math.isfinite(profile[d]) else None) for d in deltas],
        "summary": interpretation.gaussian_summary(c),
        "right_share": interpretation.right_guesses(c),
        "outcome": interpretation.outcome_in_words(c),
        "power_curve": power_curve(c),
    }


def seldom(share: float) -> str:
    """In how many cases something comes at most."""
    if share > 1 / 2:
        return "any number of cases"
    least = interpretation.RARE
    return f"{'less than' if share <= least else 'at most'} 1 of {interpretation.one_of(max(share, least))} cases"


def _released(view: View) -> dict[str, Any]:
    """What left, with its noise."""
    c, m = view.record, view.record.mechanism
    laws = {noise.law for noise in view.noises}
    idealised = any(Part.from_dict(part).idealised for part in c.total.parts)
    names = c.released.names
    known = FORMULAS.get(m.formula) if m is not None else None
    return {
        "gaussian": laws <= {GAUSSIAN},
        "laws": sorted(laws),
        "exact_noise": laws <= {GAUSSIAN, *EXACT_LAWS} and not idealised,
        "some_mu": any(noise.part.mu is not None for noise in view.noises),
        "proofs": sorted({step.page for step in c.steps} | {noise.part.page for noise in view.noises}),
        "released_terms": terms(release.statistic.partition(AT)[0] for release in c.releases),
        "arrays": list(names.items()),
        "matrix": next((shape for shape in names.values() if len(shape) == 2), None),
        "path": any(name.endswith(".path") for name in names),
        "ladder": c.gate.ladder if c.gate is not None else None,
        "gate_scale": GATE_KINDS[c.gate.kind].scale_words if c.gate is not None else "",
        "last_law": law_of(m) if m is not None else "",
        "tells": known.tells if isinstance(known, Answer) else "",
        "hides_iterates": m is not None and only_the_last(m),
        "releases_model": m is not None and is_model(m),
        "releases_rows": isinstance(known, Answer) and known.rows,
    }


def _stages(view: View) -> dict[str, Any]:
    """How far apart neighbouring datasets are; bars that would only repeat each other are left out."""
    c, points = view.record, view.points
    same = len({point.labels for point in points}) == 1
    ways = [(way, words) for way, words in WAYS.items() if any(step.way == way for step in c.steps)]
    return {
        "bars": [] if same else distance_bars(points),
        "toggled": any(point.distance.toggled for point in points),
        "moved": any(point.distance.moved for point in points),
        "stage_terms": [*ways, *terms(word for point in points for word in point.changes)],
    }


def _tables(view: View) -> dict[str, Any]:
    """Facts, settings and routes."""
    c = view.record
    shown = facts_to_show(c)
    places = [(name, kind, parameters) for name, kind, parameters in _places(c) if parameters]
    values = [value for *_, parameters in places for value in parameters.values()]
    long = any(isinstance(value, Sequence) and len(value) > MOST_VALUES for value in values)
    last = c.mechanism or (c.releases[-1] if c.releases else None)
    return {
        "facts": list(_fact_rows(c, shown)),
        "cut_facts": MOST_FACTS if len(shown) < len(c.facts) else None,
        "settings": [
            (name, kind, "; ".join(f"{key} = {_plain(value)}" for key, value in parameters.items()))
            for name, kind, parameters in places
        ],
        "settings_terms": terms(key for *_, parameters in places for key in parameters),
        "long_lists": f", and of a list of more than {MOST_VALUES} values the first three and the last are shown"
        if long
        else "",
        "routes": _routes(c),
        "route_terms": [(status, STATUSES[status]) for status in STATUSES if status in dict(_statuses(c))],
        "route_noise": "Noise σ" if last is None or law_of(last) == GAUSSIAN else "Noise scale",
        "least_noise": _has_least_noise(c),
    }


def _fact_rows(c: Record, shown: Sequence[PublicFact]) -> Iterator[tuple[str, str, str]]:
    """Name, value and origin of every line of the table of facts; ranges that have one origin stand in one line."""
    names = dict(WORDS["facts"])
    if c.neighbours.unbounded:
        names["n_rows"] = (
            "rows kept of all people, at most" if c.neighbours.bounds_contributions else "number of rows, at most"
        )
    origins: dict[tuple[str, str, str], list[str]] = {}
    for fact in shown:
        told = f"{_origin(fact, c)} (what comes out)" if fact.comes_out else _origin(fact, c)
        name = f"range of {fact.column}" if fact.column else names.get(fact.name, fact.name)
        origins.setdefault((name, fact.column, _value(fact, shown, c)), []).append(told)
    lines = [(*line, "; ".join(of_line)) for line, of_line in origins.items()]
    ranges: dict[str, list[str]] = {}
    for _, column, value, origin in lines:
        if column:
            ranges.setdefault(origin, []).append(f"{column} {value}")
    for name, column, value, origin in lines:
        listed = ranges[origin] if column else []
        if not column or len(listed) == 1:
            yield name, value, origin
        elif listed[0] == f"{column} {value}":
            yield RANGES, "; ".join(listed), origin


def _value(fact: PublicFact, shown: Sequence[PublicFact], c: Record) -> str:
    """A value: what is a number with its minus, and missing values with where they may stand."""
    step = fact.source.step
    if fact.name == "gaps" and fact.source.origin is Origin.IMPUTER:
        chosen = any(other.name == COLUMNS and other.source.step == step for other in shown)
        elsewhere = ", outside its columns with 0" if chosen else ""
        return f"any row may have some, in any column; step {step} fills them{elsewhere}"
    if fact.name == "adjacency":
        return _neighbours(fact.value, c)
    if fact.name == "n_rows" and fact.value.isdecimal():
        return figure(int(fact.value))
    words = value_in_words(fact)
    return minus(words) if fact.is_limit else words


def _origin(fact: PublicFact, c: Record) -> str:
    """An origin in the words of page one, and the source that was stated."""
    return f"{_said_by(fact, c)}; source: {fact.stated}" if fact.stated else _said_by(fact, c)


def _said_by(fact: PublicFact, c: Record) -> str:
    source = fact.source
    if fact.name == "adjacency":
        kept = "; the run itself keeps no more rows of a person" if c.neighbours.bounds_contributions else ""
        return f"chosen by the person who ran the fit{kept}"
    if source.origin is Origin.TABLE:
        return "read off the table"
    if source.origin is Origin.MODEL and c.mechanism is not None:
        return f"declared, step {c.mechanism.name!r}{source.note}"
    return source.text


def _places(c: Record) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Whatever has parameters: its name, what it is, and they."""
    domain, tools = c.entrance.domain, {step.name: step.class_ for step in c.steps}
    for i, step in enumerate(c.steps):
        yield step.name, step.class_, _named(step.parameters, domain)
        for release in (release for release in c.releases if release.at == i):
            served = ", ".join(dict.fromkeys(tools[name] for name in release.serves if name in tools))
            kind = f"{served}: the noisy {of_group(release.statistic)}"
            yield ", ".join(release.serves), kind, _named(release.parameters, domain)
        domain = step.domain
    if c.gate is not None and c.gate.ladder:
        for i, rung in enumerate(c.gate.ladder.rungs):
            own = {f"{step}: {key}": value for step, given in rung.parameters.items() for key, value in given.items()}
            yield f"rung {i + 1}", "of the ladder", own
    if c.mechanism is not None:
        parameters = _named(c.mechanism.parameters, domain)
        yield c.mechanism.name, c.mechanism.class_, {**parameters, "answers": c.mechanism.steps}
    for i, parameters in enumerate(c.search.parameters if c.search is not None else ()):
        yield f"candidate {i + 1}", "of the search", parameters


def _named(parameters: Mapping[str, Any], domain: Mapping[str, Any]) -> Mapping[str, Any]:
    """The same with the names of columns where their places stand, if columns have names there."""
    names, places = domain.get("feature_names"), parameters.get("columns")
    if not names or not isinstance(places, Sequence) or not all(type(at) is int and at < len(names) for at in places):
        return parameters
    return {**parameters, "columns": [names[at] for at in places]}


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, Sequence):
        shown = [_plain(one) for one in value]
        if len(shown) > MOST_VALUES:
            return f"[{', '.join(shown[:3])}, …, {shown[-1]}] ({len(shown)} values)"
        return f"[{', '.join(shown)}]"
    return minus(figure(value)) if isinstance(value, (int, float)) else "none"


def _statuses(c: Record) -> list[tuple[str, AlternativeRecord]]:
    """Routes with what became of them, those in use first; on a ladder its rungs, the tightest first."""
    if c.gate is not None and c.gate.ladder:
        passed = c.gate.ladder.rung
        return [(RUNGS[(i >= passed) + (i > passed)], route) for i, route in enumerate(c.alternatives)]
    order = list(STATUSES)
    routes = sorted(c.alternatives, key=lambda route: (order.index(route.status), route.noise_scale or 0.0))
    return [(route.status, route) for route in routes]


def _routes(c: Record) -> list[tuple[AlternativeRecord, str]]:
    return [(route, status) for status, route in _statuses(c)]


def _has_least_noise(c: Record) -> bool:
    """Whether the route in use was chosen for the least final noise."""
    chosen = [route.noise_scale for route in c.alternatives if route.status == "chosen"]
    priced = [r.noise_scale for r in c.alternatives if r.status != "not offered" and r.noise_scale is not None]
    return c.mechanism is not None and len(priced) > 1 and chosen == [min(priced)]


def terms(words: Any) -> list[tuple[str, str]]:
    """Those of these words that need an explanation, with it."""
    return [(word, TERMS[word]) for word in dict.fromkeys(words) if word in TERMS]
