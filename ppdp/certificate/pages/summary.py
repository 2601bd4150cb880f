"""Page one: what a privacy reviewer asks first, answered in plain words from the certificate alone."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from ppdp.certificate.issued import UNPROVED
from ppdp.certificate.pages.account import again, day, spent
from ppdp.certificate.pages.markup import Cell, bound, code, element, items, p, pairs, typeset
from ppdp.certificate.pages.meaning import MODELS, what_left
from ppdp.certificate.pages.settings import SETTINGS
from ppdp.certificate.pages.tradeoff import right_guesses, right_of_two_rows, times_in_100
from ppdp.certificate.pages.trust import ASSUMED_UNIT, MOST_FACTS, not_shown, unit_on_trust
from ppdp.certificate.pages.view import View
from ppdp.certificate.record import Record
from ppdp.core.adjacency import UNPROTECTED
from ppdp.core.figures import figure
from ppdp.core.formula import FORMULAS

IN_SHORT = {
    "exceptions raised on invalid values": "that a run breaks off on a faulty entry, which can reveal something",
    "evaluation on private rows": "earlier attempts, scores, plots and tuning on these"
    " rows, unless they are charged to a ledger",
    "that a column holds text": "which columns hold text",
    "statistics of the private data": "statistics of these rows made elsewhere",
    "that a run stops because there are more": "that a run breaks off because there are more rows than declared",
    "that a run stops because a row has no id": "that a run breaks off at a row without an id",
    "the sensitivities of the other fits": "the derivation of the other fits of the search",
}
PUBLIC_FACTS = "Public facts"
MEMBERSHIP = "Whether a named person is in the table is hidden to the same degree"


def first_page(view: View, signer: str | None) -> Element:
    """Status, what it means for one person, and all else that somebody who signs must know."""
    c = view.record
    claim = (view.before, "(ε, δ) = (", bound(c.epsilon), ", ", bound(c.delta), f"){view.after}")
    return element(
        "header",
        items(view.beside, class_="beside") if view.beside else None,
        element("h1", element("span", c.status, class_="status"), " ", *claim),
        p(view.meaning, " ", element("b", "See “Taken on trust”."), class_="lede"),
        items(c.reasons, class_="reasons") if c.reasons else None,
        items([f"Warning: {warning}" for warning in c.warnings], class_="warnings") if c.warnings else None,
        pairs(
            ("For one person", _for_one(view)),
            ("Who is protected", (_PROVIDED.get(c.status), _protected(c), _duplicates(c))),
            ("Against whom", _against(c)),
            ("Released", _released(view)),
            ("Taken on trust", _trusted(view)),
            ("Spent on these people so far", spent(c)),
            ("Again next month?", again(c)),
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


_PROVIDED = {
    "CONDITIONAL": "This holds only if what is assumed is true. ",
    "SEEDED": "Nobody, because the noise came from a seed. Secret noise would protect as follows. ",
}


def _protected(c: Record) -> str:
    """People, their rows, and on whose word."""
    neighbours, n = c.neighbours, figure(c.entrance.domain["n_rows"])
    each = "one row each" if neighbours.rows == 1 else f"at most {neighbours.rows} rows each"
    if not neighbours.record_level:
        return f"Only {neighbours.unit}; {UNPROTECTED}."
    if neighbours.cuts:
        kept = "1 row" if neighbours.rows == 1 else f"{neighbours.rows} rows"
        return (
            f"Each person with all of their rows, of which at most {kept} were kept. {MEMBERSHIP}. The exact number of"
            " rows is not public."
        )
    each += " (declared, not checked)"
    if neighbours.hides_number:
        return (
            f"Each person, in the table or not, {each}. {MEMBERSHIP}. Of the number of rows only this is public: at"
            f" most {n}."
        )
    public = f"{MEMBERSHIP}, but the number of rows is public."
    if unit_on_trust(c) == ASSUMED_UNIT:
        return (
            f"Each of the {n} rows in the table. {public} Nobody has confirmed that each row is a different person. A"
            f" person with two rows has weaker protection{_two_rows(c)}."
        )
    if neighbours.single:
        return f"Each of the {n} people in the table, {each}. {public}"
    return f"Each person in the table of {n} rows, {each}. {public}"


def _two_rows(c: Record) -> str:
    """How often an attacker is right about a person with two rows; said only where that is known, and not always."""
    one, two = (times_in_100(right(c)) for right in (right_guesses, right_of_two_rows))
    if c.status != "UNCONDITIONAL" or two >= 100:  # what is assumed need not hold of the table between the two
        return ""
    return f": an attacker is right at most {two} times in 100, not {one}"


def _duplicates(c: Record) -> str | None:
    """What a stage that looks for duplicates does not look for."""
    found = [step for step in c.steps if step.class_.endswith("Deduplicator")]
    if not found or c.neighbours.cuts or not c.neighbours.record_level:
        return None
    names = ", ".join(f"“{step.name}”" for step in found)
    equal = "equal" if all(step.class_ == "Deduplicator" for step in found) else "equal or close"
    if unit_on_trust(c) == ASSUMED_UNIT:
        return f" Removing duplicates ({names}) does not help: the two may differ."
    return f" Removing duplicates ({names}) is no check of that: it looks for {equal} rows, not for people."


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
    left = [typeset(words) for words in what_left(c)]
    return f"Of the table{of_data}: {', '.join(left)}{', ' if left else ''}and this certificate.{purpose}"


def _responsible(view: View) -> str | None:
    return next((words for name, words in view.said if name == "responsible"), None)


def _trusted(view: View) -> Cell:
    """What must be true, on whose word, and where all of it stands."""
    name = _responsible(view)
    who = f"“{name}” is named as responsible" if name else "nobody is named as responsible"
    cut = not_shown(view.record)
    most = f"the first {MOST_FACTS} declared facts" if cut else "every fact"
    rest = "; certificate.json has the others" if cut else ""
    return (
        f"Not checked on these rows. “Declared” means stated by whoever ran the fit, unknown to this page; {who}.",
        items([typeset(words) for words in view.rests_on], class_="rests"),
        f"“{PUBLIC_FACTS}” has {most} with who said it{rest}, “{SETTINGS}” every parameter.",
    )


def _publishing(view: View) -> Cell:
    """What of it may leave, and how a receiver can tell what belongs to it."""
    c = view.record
    if c.status == "SEEDED":
        return "No. Nothing of it is protected."
    yes = "Yes, once “Taken on trust” is confirmed:"
    if c.status == "CONDITIONAL":
        yes = "Only if what is assumed holds, which nothing has tested, and once “Taken on trust” is confirmed:"
    return (
        element("b", yes),
        f" {_file(c)}, if ",
        code("ppdp verify FILE"),
        " says that the derivation holds and prints the digest below; with it certificate.json, this page, and what is"
        f" made of these alone{_made_of_it(c)}. Publish no other file{_other_format(c)}, unless it was made from such a"
        " file alone: it may hold private rows.",
    )


def _is_model(c: Record) -> bool:
    return c.mechanism is not None and c.mechanism.formula.startswith(MODELS)


def _file(c: Record) -> str:
    """What to publish, in the form in which ppdp writes it."""
    export = "the .zip file or folder that ppdp exported"
    if c.mechanism is None:
        return f"the fitted steps, as {export}"
    if _is_model(c):
        return f"the saved model, as {export}"
    if getattr(FORMULAS.get(c.mechanism.formula), "rows", False):
        return f"the released rows, as the .parquet table that ppdp wrote or {export}"
    return f"the noisy answer, as {export} or the .parquet table that it wrote"


def _made_of_it(c: Record) -> str:
    return ", such as predictions for people outside the table" if _is_model(c) else ""


def _other_format(c: Record) -> str:
    return ", not even the same model in another format" if _is_model(c) else ""


def _not_covered(view: View) -> str:
    """What the promise says nothing of."""
    c = view.record
    left_out = "; ".join(
        next((short for start, short in IN_SHORT.items() if words.startswith(start)), words)
        for words, _ in view.not_covered
    )
    unbroken = " This run did not break off." if "that a run breaks off" in left_out else ""
    shows = "The model" if _is_model(c) else "What was released"
    general = (
        f" {shows} may still show what is true of people in general, and so something likely about a person, whether in"
        " the table or not."
    )
    others = " What the other releases named at the top cost is not in it." if view.beside else ""
    return (
        f"The promise does not cover: {left_out}.{unbroken}{general}{others} For consent, bias and access to"
        " the rows see the checklist."
    )


def _made(view: View, signer: str | None) -> Cell:
    c = view.record
    name = _responsible(view)
    who = f"“{name}” ({UNPROVED})" if name else "The certificate does not say who"
    when = "at an unknown time" if c.issued is None else f"on {day(c.issued)}"
    signed = (
        (
            "Signature: the key ",
            element("span", signer, class_="hash"),
            " has signed it, checked when this page was made.",
        )
        if signer
        else ("Signature: none was given when this page was made. Ask for one: without it, the author is unproven.",)
    )
    return (f"{who}, {when}, with ppdp {c.versions['ppdp']}. ", *signed)


def _check(c: Record) -> Cell:
    return (
        f"Ask the issuer for certificate.json. Get the program ppdp, version {c.versions['ppdp']} or newer, from your"
        " own IT, not from the author of this page alone. In its source folder run ",
        code("pip install ."),
        "; then, where certificate.json lies, ",
        code("ppdp verify certificate.json"),
        ". It must print “the derivation holds and the digest matches” and this digest: ",
        element("span", c.digest, class_="hash"),
        ". If the words or the digest differ, refuse. A match proves the arithmetic, not who wrote it, nor that the run"
        " took place as recorded: confirm the digest with the issuer by telephone, or check a signature.",
    )
