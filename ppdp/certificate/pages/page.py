"""The page of a certificate that holds: what its templates need to know."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from markupsafe import Markup

from ppdp.certificate.facts import COLUMNS, Origin, PublicFact
from ppdp.certificate.guarantee import privacy_profile
from ppdp.certificate.pages import assumptions, interpretation, statements
from ppdp.certificate.pages.derivation import answer_of, distance_bars, is_model, law_of, only_the_last
from ppdp.certificate.pages.statement import TERMS, WAYS, WORDS, Topic, minus, terms_in
from ppdp.certificate.pages.statements import View
from ppdp.certificate.pages.templating import html_page, render
from ppdp.certificate.record import AlternativeRecord, Record
from ppdp.core.adjacency import UNPROTECTED
from ppdp.core.figures import figure
from ppdp.core.formula import AT, CHOICE, EXACT_LAWS, GAUSSIAN, of_group
from ppdp.privacy.gate import GATE_KINDS
from ppdp.privacy.losses import Part

MADE = "contact", "limit_set_by", "review_by", "supersedes", "attachments", "attachments_hold", "remarks"
SIGNED = "signed_by", "software"  # which stand beside the signature, if one was checked
LAWFUL = ("legal_basis", "consent", "ethics_approval", "retention")  # beside the last condition of publishing
OTHER_DELTAS = (1e-4, 1e-5, 1e-6, 1e-8, 1e-10)
MOST_LETTERS = 90  # of the name of the data, at the foot of a sheet
MOST_VALUES = 12  # of a list that are shown one by one
STATUSES: Mapping[str, str] = WORDS["routes"]
RUNGS = ("did not pass", "passed, used", "not needed")
FILE = re.compile(r"/(\w(?:[\w.-]*\w)?)(?<!\.sig)(?=[.,;)]*(?:\s|$))")  # at the end of an address; no signature
RANGES = "ranges of the columns, as they stand at these steps"


def render_page(view: View, signer: str | None = None) -> str:
    """The page; whatever text the certificate has is shown as text."""
    c = view.record
    body = render("page.html", {**view.context, **_context(view, signer), **_released(view), **_tables(c)})
    terms = render("terms.html", {"terms": terms_in(re.sub("<[^>]*>", " ", body))})
    main = Markup('<main class="{}">{}{}</main>').format(c.status.lower(), body, terms)
    pair = f"({c.epsilon:g}, {c.delta:g})" + ("" if c.neighbours.row_level else " (for bounded changes only)")
    title, status = (words.format(pair=pair) for words in WORDS["titles"][c.status])
    data = f": {c.dataset}" if c.dataset else ""
    short = data if len(data) <= MOST_LETTERS + 2 else f"{data[: MOST_LETTERS + 2]}…"
    foot = " · ".join(filter(None, (status, f"digest {c.digest[:19]}…", view.day)))
    return html_page(title + data, main, f"{foot}\nPrivacy certificate{short}")  # what a single sheet is a part of


def _context(view: View, signer: str | None) -> dict[str, Any]:
    """What page one needs, and how often an attacker is right."""
    c, stated, ledger = view.record, view.stated, view.record.ledger
    elsewhere = {"contact"} if stated["responsible"] else set()
    elsewhere |= {*SIGNED} if signer else set()
    elsewhere |= {"limit_set_by"} if ledger is not None and ledger.limit is not None else set()
    further = [name for name in (*MADE, *SIGNED) if stated[name] and name not in elsewhere]
    profile = dict(privacy_profile(c)) | {c.delta: c.epsilon}
    deltas = sorted({*OTHER_DELTAS, c.delta}, reverse=True)
    powers = [(alarm, interpretation.detection_power(c, alarm)) for alarm in interpretation.FALSE_ALARMS]
    return {
        "signer": signer,
        "day": view.day,
        "UNPROTECTED": UNPROTECTED,
        "trust": assumptions,
        "tradeoff": interpretation,
        "said": statements,
        "neighbours_on_page": _neighbours(view.texts(Topic.NEIGHBOURS)[0], c),
        "ledger": interpretation.ledger_view(c),
        "listed": (FILE.findall(stated["status_list"]) or ["LIST"])[0],  # as a command takes it
        "further": [f"{statements.LABELS[name]}: {stated[name]}" for name in further],
        "lawful": "; ".join(f"{statements.LABELS[name]}: {stated[name]}" for name in LAWFUL if stated[name]),
        "unsaid": ", ".join(statements.LABELS[name] for name in LAWFUL if not stated[name]),
        "duplicates": [step for step in c.steps if step.class_.endswith("Deduplicator")],
        "surest": seldom(interpretation.surest(c)),
        "seldom": seldom(interpretation.mostly_right(c) / interpretation.SURE),  # true or not
        "powers": [(alarm, power, interpretation.right_alarms(alarm, power)) for alarm, power in powers],
        "other_deltas": [(d, profile[d] if math.isfinite(profile[d]) else None) for d in deltas],
    }


def _neighbours(words: str, c: Record) -> str:
    """Which datasets are neighbours, with what becomes of too many rows: no run drops one for their number."""
    return f"{words}: with more, the run stops" if c.neighbours.bounds_contributions else words


def seldom(share: float) -> str:
    """How often something comes at most, over the noise."""
    often = f"{'less than' if share <= interpretation.RARE else 'at most'} 1 time in"
    many = interpretation.one_of(max(share, interpretation.RARE))
    return "any number of times" if share > 1 / 2 else f"{often} {many}"


def _released(view: View) -> dict[str, Any]:
    """How far apart neighbouring datasets are, and what left, with its noise; no bars that would only repeat others."""
    c, m, points = view.record, view.record.mechanism, view.points
    toggled, moved = (any(getattr(point.distance, way) for point in points) for way in ("toggled", "moved"))
    laws = {noise.law for noise in view.noises}
    idealised = any(Part.from_dict(part).idealised for part in c.total.parts)
    answer = answer_of(m)
    ways = [(way, words) for way, words in WAYS.items() if any(step.way == way for step in c.steps)]
    return {
        "bars": distance_bars(points) if len({point.labels for point in points}) > 1 else [],
        "toggled": toggled,
        "moved": moved,
        "stage_terms": [*ways, *terms(["replaced"] + ["toggled"] * toggled + ["moved"] * moved)],
        "CHOICE": CHOICE,
        "GATE_KINDS": GATE_KINDS,
        "laws": sorted(laws),
        "exact_noise": laws <= {GAUSSIAN, *EXACT_LAWS} and not idealised,
        "proofs": sorted({step.page for step in c.steps} | {noise.part.page for noise in view.noises}),
        "released_terms": terms(release.statistic.partition(AT)[0] for release in c.releases),
        "last_law": law_of(m) if m is not None else "",
        "answer": answer,
        "hides_iterates": only_the_last(m),
        "releases_model": m is not None and is_model(m),
    }


def _tables(c: Record) -> dict[str, Any]:
    """Facts, settings and routes."""
    shown, routes = statements.facts_to_show(c), _routes(c)
    places = [(name, kind, parameters) for name, kind, parameters in _places(c) if parameters]
    values = [value for *_, parameters in places for value in parameters.values()]
    last = c.mechanism or (c.releases[-1] if c.releases else None)
    chosen = [route.noise_scale for route in c.alternatives if route.status == "chosen"]
    priced = [r.noise_scale for r in c.alternatives if r.status != "not offered" and r.noise_scale is not None]
    return {
        "facts": list(_fact_rows(c, shown)),
        "cut_facts": statements.MOST_FACTS if len(shown) < len(c.facts) else None,
        "settings": [
            (name, kind, "; ".join(f"{key} = {_plain(value)}" for key, value in parameters.items()))
            for name, kind, parameters in places
        ],
        "settings_terms": terms(key for *_, parameters in places for key in parameters),
        "MOST_VALUES": MOST_VALUES,
        "long_lists": any(isinstance(value, Sequence) and len(value) > MOST_VALUES for value in values),
        "routes": routes,
        "route_terms": [(status, STATUSES[status]) for status in STATUSES if status in {one for _, one in routes}],
        "route_noise": "Noise σ" if last is None or law_of(last) == GAUSSIAN else "Noise scale",
        "least_noise": c.mechanism is not None and len(priced) > 1 and chosen == [min(priced)],
    }


def _fact_rows(c: Record, shown: Sequence[PublicFact]) -> Iterator[tuple[str, str, str]]:
    """Name, value and origin of every line of the table of facts; ranges that have one origin stand in one line."""
    rows = "rows kept of all people" if c.neighbours.bounds_contributions else "number of rows"
    names = WORDS["facts"] | ({"n_rows": f"{rows}, at most"} if c.neighbours.unbounded else {})
    origins: dict[tuple[str, str, str], list[str]] = {}
    for fact in shown:
        told = f"{_said_by(fact, c)}{f'; source: {fact.stated}' if fact.stated else ''}"
        told += " (what comes out)" if fact.comes_out else ""
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
    words = statements.value_in_words(fact)
    return minus(words) if fact.is_limit else words


def _said_by(fact: PublicFact, c: Record) -> str:
    """An origin in the words of page one."""
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


def _routes(c: Record) -> list[tuple[AlternativeRecord, str]]:
    """Routes with what became of them, those in use first; on a ladder its rungs, the tightest first."""
    if c.gate is not None and c.gate.ladder:
        passed = c.gate.ladder.rung
        return [(route, RUNGS[(i >= passed) + (i > passed)]) for i, route in enumerate(c.alternatives)]
    order = list(STATUSES)
    routes = sorted(c.alternatives, key=lambda route: (order.index(route.status), route.noise_scale or 0.0))
    return [(route, route.status) for route in routes]


def terms(words: Any) -> list[tuple[str, str]]:
    """Those of these words that need an explanation, with it."""
    return [(word, TERMS[word]) for word in dict.fromkeys(words) if word in TERMS]
