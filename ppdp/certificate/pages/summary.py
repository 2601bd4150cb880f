"""Page one: what a privacy reviewer asks first, answered in plain words from the certificate alone."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from ppdp.certificate.issued import UNPROVED
from ppdp.certificate.pages.markup import Cell, bound, code, element, items, p, pairs, small
from ppdp.certificate.pages.meaning import what_left
from ppdp.certificate.pages.settings import SETTINGS
from ppdp.certificate.pages.trust import ASSUMED_UNIT, MOST_FACTS, not_shown, unit_on_trust
from ppdp.certificate.pages.view import View
from ppdp.certificate.record import Issued, Record
from ppdp.core.adjacency import UNPROTECTED
from ppdp.core.figures import figure

IN_SHORT = {
    "exceptions raised on invalid values": "that a run stopped at an invalid value",
    "evaluation on private rows": "scores, plots and tuning on these rows",
    "that a column holds text": "which columns hold text",
    "statistics of the private data": "statistics of these data that were made elsewhere",
    "that a run stops because there are more": "that a run stopped because there were more rows than declared",
    "that a run stops because a row has no id": "that a run stopped at a row without an id",
    "the sensitivities of the other fits": "the derivation of the other fits of the search",
}
NO_LEDGER = "Unknown: no ledger."
PUBLIC_FACTS = "Public facts"


def first_page(view: View, signer: str | None) -> Element:
    """Status, what it means for one person, and all else that somebody who signs must know."""
    c = view.record
    claim = (view.before, "(ε, δ) = (", bound(c.epsilon), ", ", bound(c.delta), f"){view.after}")
    return element(
        "header",
        items(view.beside, class_="beside") if view.beside else None,
        element("h1", element("span", c.status, class_="status"), " ", *claim),
        p(view.meaning, " ", element("b", "What it rests on is taken on trust, and listed below."), class_="lede"),
        items(c.reasons, class_="reasons") if c.reasons else None,
        items([f"Warning: {warning}" for warning in c.warnings], class_="warnings") if c.warnings else None,
        pairs(
            ("For one person", _for_one(view)),
            ("Who is protected", (_protected(c), _duplicates(c), small(f" Neighbouring datasets: {view.neighbours}."))),
            ("Against whom", _against(c)),
            ("Released", _released(view)),
            ("Taken on trust", _trusted(view)),
            ("Spent on these people so far", _spent(c)),
            ("Again next month?", _again(c)),
            ("May it be published?", _publishing(view)),
            ("Not covered", _not_covered(view)),
            ("Made by", _made(view, signer)),
            ("How to check it", _check(c)),
        ),
        class_="first",
    )


def _for_one(view: View) -> Cell:
    sentence = f"{view.proviso}{view.guess}."
    return element("b", sentence[0].upper() + sentence[1:])


def _protected(c: Record) -> str:
    """People, their rows, and on whose word."""
    neighbours, n = c.neighbours, figure(c.entrance.domain["n_rows"])
    word = "assumed: nobody declared it" if unit_on_trust(c) == ASSUMED_UNIT else "declared, not checked"
    each = "one row each" if neighbours.rows == 1 else f"at most {neighbours.rows} rows each"
    if not neighbours.record_level:
        return f"Only {neighbours.unit}; {UNPROTECTED}."
    if neighbours.cuts:
        kept = "1 row" if neighbours.rows == 1 else f"{neighbours.rows} rows"
        return f"Each person with all of their rows, of which at most {kept} were kept, and how many rows there are."
    if neighbours.hides_number:
        return f"Each person, in the table or not, {each} ({word}), and how many rows there are, at most {n}."
    if neighbours.single:
        return f"Each of the {n} people in the table, {each} ({word})."
    return f"Each person in the table of {n} rows, {each} ({word})."


def _duplicates(c: Record) -> str | None:
    """What a stage that looks for duplicates does not look for."""
    found = [step for step in c.steps if step.class_.endswith("Deduplicator")]
    if not found or c.neighbours.cuts or not c.neighbours.record_level:
        return None
    names = ", ".join(f"“{step.name}”" for step in found)
    equal = "equal" if all(step.class_ == "Deduplicator" for step in found) else "equal or close"
    many = len(found) > 1
    stages, what = (f"stages {names} look", "they compare") if many else (f"stage {names} looks", "it compares")
    return f" The {stages} for rows that are {equal} in what {what}, not for people who have several rows."


def _against(c: Record) -> str:
    """The attacker; of what protects nobody, that there is none."""
    if c.status == "SEEDED":
        return "Nobody: whoever knows the seed of the noise can take the noise away."
    anyone = "Anyone" if c.status == "UNCONDITIONAL" else "If what is assumed holds: anyone"
    return (
        f"{anyone}, even whoever knows {c.neighbours.known}, the method, all public facts and everything that was"
        " released. Not against whoever holds the table or can read the machine's memory during the fit."
    )


def _released(view: View) -> str:
    """What left, of which data and for which purpose."""
    c = view.record
    of_data = f" of the data “{c.dataset}”" if c.dataset else ""
    purpose = "".join(f" Purpose: {words} ({UNPROVED})." for name, words in view.said if name == "purpose")
    left = what_left(c)
    return f"Of the table{of_data}: {', '.join(left)}{', ' if left else ''}and this certificate.{purpose}"


def _responsible(view: View) -> str | None:
    return next((words for name, words in view.said if name == "responsible"), None)


def _trusted(view: View) -> Cell:
    """What must be true, on whose word, and where all of it stands."""
    name = _responsible(view)
    who = f"“{name}” is named as responsible" if name else "the certificate names nobody who answers for it"
    cut = not_shown(view.record)
    most = f"the first {MOST_FACTS} declared facts" if cut else "every fact"
    rest = "; certificate.json has the others" if cut else ""
    return (
        f"Stated by whoever ran the fit; {who}.",
        items(view.rests_on, class_="rests"),
        f"Further down on this page, “{PUBLIC_FACTS}” has {most} with who said it{rest}, and “{SETTINGS}” has all"
        " public parameters of the steps.",
    )


def _spent(c: Record) -> Cell:
    """What all releases about these people come to, as far as a ledger or the process knows."""
    issued = c.issued
    if issued is None:
        return "Unknown: the certificate has an earlier form, which does not say."
    if issued.ledger is None:
        together = issued.together
        known = (
            "This release alone costs what stands in the headline."
            if together is None or together.delta >= 1
            else f"The {issued.fit} fits of its process come to ε = {figure(together.epsilon, upward=True)} at"
            f" δ = {figure(together.delta, upward=True)}."
        )
        return f"{NO_LEDGER} {known} Nothing is known of releases by anybody else."
    ledger, at = issued.ledger, f"δ = {figure(issued.ledger.delta, upward=True)}"
    most = ledger.limit
    limit = f"of at most ε = {figure(most.epsilon)}, both at {at}" if most else f"at {at}, without a limit"
    none = f"No ε covers all of it at {at}:"
    total = none if ledger.epsilon is None else f"In all ε = {figure(ledger.epsilon, upward=True)} {limit}, for"
    releases = "1 release: this one" if ledger.position == 1 else f"{ledger.position} releases, this one included"
    which = "the same release" if ledger.position == 1 else "this release alone, which the total includes"
    told, rule = "", ""
    if ledger.delta != c.delta:
        size, rule = "smaller" if c.delta < ledger.delta else "larger", " (the smaller δ, the larger ε)"
        told = f", told at the {size} δ = {figure(c.delta, upward=True)}"
    return (
        element("b", f"{total} {releases}."),
        f" That is what ledger {ledger.account} counted for “{ledger.dataset}” up to {_day(issued)}. The headline's"
        f" ε = {figure(c.epsilon, upward=True)} is {which}{told}{rule}. Not counted: later releases, and what was not"
        " charged to this ledger.",
    )


def _again(c: Record) -> Cell:
    """Whether the same may be run once more, what that costs, and who refuses it."""
    if c.status == "SEEDED":
        return "No: give it secret noise first (no random_state)."
    ledger = None if c.issued is None else c.issued.ledger
    whole = c if c.part_of is None else c.part_of
    provided = "" if c.status == "UNCONDITIONAL" else " (if what is assumed holds)"
    cost = (
        f" One more like this adds at most ε = {figure(whole.epsilon, upward=True)} and δ ="
        f" {figure(whole.delta, upward=True)} to what these people have spent{provided}."
    )
    if ledger is None:
        refuses = " Nobody counts or refuses it: charge all releases about these people to one ledger with a limit."
    elif ledger.limit is None:
        refuses = " Charge it to the same ledger. That refuses nothing before it has a limit: give it one."
    else:
        refuses = " Charge it to the same ledger, which refuses, before a row is read, what would exceed the limit."
    return element("b", "Yes, as a further release."), f"{cost}{refuses}"


def _publishing(view: View) -> Cell:
    """What of it may leave, and how a receiver can tell what belongs to it."""
    c = view.record
    if c.status == "SEEDED":
        return "No. Nothing of it is protected."
    yes = "As far as this promise goes, yes:"
    if c.status == "CONDITIONAL":
        yes = f"Only if what is assumed holds, which nothing has tested. {yes}"
    return (
        element("b", yes),
        " what was released, in a file that ppdp wrote; certificate.json; this page; and whatever is made of these"
        " without the private rows, such as predictions for other people. A .zip file or a folder (an export), or a"
        " .parquet table that ppdp wrote, belongs to this page if ",
        code("ppdp verify FILE"),
        " says that the derivation holds and prints the digest below. Files of other kinds cannot be checked so.",
    )


def _not_covered(view: View) -> str:
    """What the promise says nothing of."""
    left_out = "; ".join(
        next((short for start, short in IN_SHORT.items() if words.startswith(start)), words)
        for words, _ in view.not_covered
    )
    others = " What the other releases named at the top cost is not in it." if view.beside else ""
    return f"The promise says nothing of this: {left_out}.{others}"


def _made(view: View, signer: str | None) -> Cell:
    c = view.record
    name = _responsible(view)
    who = f"“{name}” ({UNPROVED})" if name else "The certificate does not say who"
    when = "at an unknown time" if c.issued is None else f"on {_day(c.issued)}"
    signed = (
        (
            "Signature: the key ",
            element("span", signer, class_="hash"),
            " has signed it, checked when this page was made.",
        )
        if signer
        else ("Signature: none was checked when this page was made, so who wrote the certificate is unproven.",)
    )
    return (f"{who}, {when}, with ppdp {c.versions['ppdp']}. ", *signed)


def _day(issued: Issued) -> str:
    return issued.date[:10]


def _check(c: Record) -> Cell:
    return (
        "Ask the organisation that issued this page for certificate.json. Ask your own IT, or the IT of that"
        f" organisation, for the source folder of the program ppdp, version {c.versions['ppdp']} or newer; do not take"
        " it from the author of this page alone. In that folder run ",
        code("pip install ."),
        ", then, where certificate.json lies, ",
        code("ppdp verify certificate.json"),
        ". It must print “the derivation holds and the digest matches” and this digest: ",
        element("span", c.digest, class_="hash"),
        ". It does not check names, words and origins of facts.",
    )
