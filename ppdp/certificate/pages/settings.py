"""All public parameters of the steps in one table: what nobody may have chosen by looking at the private rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from xml.etree.ElementTree import Element

from ppdp.certificate.pages.markup import element, explained, h2, minus, p, small, table
from ppdp.certificate.pages.meaning import terms
from ppdp.certificate.record import Record
from ppdp.core.figures import figure

SETTINGS = "Settings of the steps"
MOST = 12  # values of a list that are shown one by one


def settings(c: Record) -> Sequence[Element]:
    """The table, with what its words mean."""
    places = [(name, kind, parameters) for name, kind, parameters in _places(c) if parameters]
    if not places:
        return h2(SETTINGS), p("There are none.")
    lines = [
        ((name, small(kind)), "; ".join(f"{key} = {_plain(value)}" for key, value in parameters.items()))
        for name, kind, parameters in places
    ]
    long = any(isinstance(value, Sequence) and len(value) > MOST for *_, given in places for value in given.values())
    lists = f", and of a list of more than {MOST} values the first three and the last are shown" if long else ""
    section = (
        h2(SETTINGS),
        p(
            "Every public parameter. Numbers are rounded to the nearest with four digits, so that a width can differ in"
            f" its last digit from the ranges above, which are rounded outwards{lists}; certificate.json has all."
        ),
        explained(terms(key for *_, parameters in places for key in parameters)),
        table([("Step", ""), ("Public parameters", "wide")], lines, class_="settings cards"),
    )
    return (element("section", *section, class_="whole"),)


def _places(c: Record) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Whatever has parameters: its name, what it is, and they."""
    domain, tools = c.entrance.domain, {step.name: step.class_ for step in c.steps}
    for i, step in enumerate(c.steps):
        yield step.name, step.class_, _named(step.parameters, domain)
        for release in (release for release in c.releases if release.at == i):
            parameters = _named(release.parameters, domain)
            served = ", ".join(dict.fromkeys(tools[name] for name in release.serves if name in tools))
            yield ", ".join(release.serves), f"{served}: the noisy {release.statistic}", parameters
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
        if len(shown) > MOST:
            return f"[{', '.join(shown[:3])}, …, {shown[-1]}] ({len(shown)} values)"
        return f"[{', '.join(shown)}]"
    return minus(figure(value)) if isinstance(value, (int, float)) else "none"
