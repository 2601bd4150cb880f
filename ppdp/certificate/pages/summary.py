"""Page one: what a privacy reviewer asks first, answered in plain words from the certificate alone."""

from __future__ import annotations

from collections.abc import Iterator
from xml.etree.ElementTree import Element

from ppdp.certificate.issued import UNPROVED
from ppdp.certificate.pages.account import again, day, spent
from ppdp.certificate.pages.glossary import WORDS
from ppdp.certificate.pages.markup import Cell, begun, bound, code, element, items, p, pairs, points, typeset
from ppdp.certificate.pages.meaning import MODELS, rounded_up, status_in_words, what_left
from ppdp.certificate.pages.tradeoff import (
    RARE,
    SURE,
    mostly_right,
    right_alarms,
    right_guesses,
    right_of_two_rows,
    times_in_100,
)
from ppdp.certificate.pages.trust import ASSUMED_UNIT, MOST_FACTS, READ, not_shown, unit_on_trust
from ppdp.certificate.pages.view import View
from ppdp.certificate.record import Record
from ppdp.core.adjacency import UNPROTECTED
from ppdp.core.figures import figure
from ppdp.core.formula import FORMULAS

TITLE = "Privacy certificate"
PROGRAM = (
    "ppdp is a program that adds noise to results, so that little can be learned of any one person; this page says how"
    " little."
)
BREAKS_OFF = {
    "exceptions raised on invalid values": "a faulty entry",
    "that a run stops because a row has no id": "a row without an id",
    "that a run stops because there are more": "too many rows",
}
STOPS = "whether a run stops"
ATTEMPTS = "evaluation on private rows"
IN_SHORT = {
    "that a column holds text": "whether a column holds words or numbers",
    "statistics of the private data": "statistics of these rows made elsewhere",
    "whoever can read the machine's memory": "reading the memory while ppdp runs",
    "the sensitivities of the other fits": "the derivation of the other fits of the search",
}
NOT_SAID = "not said yet"
BEFORE = "nothing in a row came from other people’s rows, as an average or a rank does"
RECORDED = "Nobody’s word, beyond any check: the run{} as recorded; ppdp is unaltered and faultless."
GENERAL = (
    "what the release shows of people in general: it can be applied to anyone, whether in the table or not, and nearly"
    " the same would be learned without that person’s rows"
)
PUBLIC_FACTS = "Public facts"
TRUST = "“Taken on trust”"
VERIFY = "How to verify"
SIGNED = "certificate.json.sig, public.pem"
OPTIONS = " --signature certificate.json.sig --public-key public.pem"
MEMBERSHIP = "whether a named person is in the table"


def first_page(view: View, signer: str | None) -> Element:
    """Status, what it means for one person, and all else that somebody who signs must know."""
    c, whom = view.record, asked(view)
    claim = (view.before, "(ε, δ) = (", bound(c.epsilon), ", ", bound(c.delta), f"){view.after}")
    return element(
        "header",
        element("h1", f"{TITLE}: {c.dataset}" if c.dataset else TITLE),
        p(PROGRAM, class_="program"),
        items(view.beside, class_="beside") if view.beside else None,
        p(element("span", c.status, class_="status"), " ", *claim, class_="claim"),
        p(status_in_words(c, f"all under {TRUST}"), f" ε, δ and other terms: “{WORDS}”.", class_="lede"),
        items(c.reasons, class_="reasons") if c.reasons else None,
        items([f"Warning: {warning}" for warning in view.warnings], class_="warnings") if view.warnings else None,
        pairs(
            ("For one person", _for_one(view)),
            ("Who is protected", (_PROVIDED.get(c.status), *_protected(c))),
            ("Against whom", _against(c)),
            ("Released", _released(view)),
            *([("Altered rows", typeset(begun(f"{view.altered}.")))] if view.altered else []),
            ("Taken on trust", _trusted(view, whom)),
            ("Spent on these people so far", spent(c, whom)),
            ("Again next month?", again(c, whom)),
            ("May it be published?", _publishing(view, signer, whom)),
            ("Not covered", _not_covered(view)),
            ("Made by", _made(view, signer, whom)),
            ("How to check it", _check(c, signer, whom)),
        ),
        class_="first",
    )


def _for_one(view: View) -> Cell:
    sentence = element("b", begun(f"{view.proviso}{view.guess}."))
    if view.record.status == "SEEDED":
        return (sentence,)
    times = times_in_100(right_guesses(view.record))
    alarm, power = view.powers[0]
    claims, found = times_in_100(right_alarms(alarm, power)), rounded_up(power).removesuffix("\u00a0%")
    more = begun(f"{view.proviso}who suspected it gains at most {times - 50} right guesses in 100. ") + begun(
        f"{view.proviso}at even chances, who claims it only when nearly sure (falsely in {times_in_100(alarm)} of 100"
        f" cases) does so rightly in at most {found} of 100: at most {claims} of 100 claims are right; claims that are"
        f" right more than {times_in_100(SURE)} times in 100 come in {_seldom(mostly_right(view.record))}."
    )
    return sentence, f"{f' {more}' if times < 100 else ''} Is it enough? Your organisation decides."


def _seldom(share: float) -> str:
    """In how many cases something comes at most: one of so many, of which two digits are told, rounded down."""
    many = round(1 / RARE) if share <= RARE else int(1 / share)
    step = 10 ** max(0, len(str(many)) - 2)
    told = f"{many // step * step:_}".replace("_", "\u202f")
    if many < 2:
        return "any number of true cases"
    return f"{'less than' if share <= RARE else 'at most'} 1 of {told} true cases"


_PROVIDED = {
    "CONDITIONAL": "This holds only if what is assumed is true. ",
    "SEEDED": "Nobody, because the noise came from a seed. Secret noise would protect as follows. ",
}


def _protected(c: Record) -> tuple[Element | str, ...]:
    """People, their rows, and on whose word."""
    neighbours, n = c.neighbours, figure(c.entrance.domain["n_rows"])
    table = f"the table “{c.dataset}”" if c.dataset else "the table"
    if not neighbours.record_level:
        return (f"Only {neighbours.unit}; {UNPROTECTED}.",)
    if neighbours.cuts:
        most = "one row of each was" if neighbours.rows == 1 else f"{neighbours.rows} rows of each were"
        return (
            f"Every person in {table} (one id = one person), with all their rows. At most {most} kept, drawn in"
            " secret.",
            points(
                f"Protected alike: what the rows hold, how many a person has, {MEMBERSHIP}.",
                f"The number of rows is not public either, only that at most {n} were kept (with more, a run stops).",
            ),
        )
    each = "one row each" if neighbours.rows == 1 else f"at most {neighbours.rows} rows each"
    each += " (declared, not checked)"
    if neighbours.hides_number:
        return (
            f"Every person, in {table} or not, {each}.",
            points(
                f"Protected alike: what their rows hold, and {MEMBERSHIP}.",
                f"Of the number of rows only this is public: at most {n}.",
            ),
        )
    public = f"Protected alike: what the rows hold, and {MEMBERSHIP}; the number of rows, {n}, is public."
    if unit_on_trust(c) == ASSUMED_UNIT:
        return (
            f"Each of the {n} rows of {table}. Nobody has confirmed that each is a different person.",
            points(public, f"A person with two rows has weaker protection{_two_rows(c)}.{_duplicates(c)}"),
        )
    people = f"Each of the {n} people" if neighbours.single else "Every person"
    return f"{people} in {table}, {each}.", points(f"{public}{_duplicates(c)}")


def _two_rows(c: Record) -> str:
    """How often an attacker is right about a person with two rows; said only where that is known, and not always."""
    two = _two_steps(c)
    return f": an attacker is right at most {two} times in 100, not {times_in_100(right_guesses(c))}" if two else ""


def _two_steps(c: Record) -> int | None:
    """The same as a number, None where it is not known; what is assumed need not hold of the table between the two."""
    two = times_in_100(right_of_two_rows(c))
    return two if c.status == "UNCONDITIONAL" and two < 100 else None


def _duplicates(c: Record) -> str:
    """What a stage that looks for duplicates does not look for."""
    found = [step for step in c.steps if step.class_.endswith("Deduplicator")]
    if not found:
        return ""
    names = ", ".join(f"“{step.name}”" for step in found)
    equal = "equal" if all(step.class_ == "Deduplicator" for step in found) else "equal or close"
    if unit_on_trust(c) == ASSUMED_UNIT:
        return f" Removing duplicates ({names}) does not help: the two may differ."
    return f" Removing duplicates ({names}) is no check of one row each: it looks for {equal} rows, not for people."


def _against(c: Record) -> str:
    """The attacker; of what protects nobody, that there is none."""
    if c.status == "SEEDED":
        return "Nobody: whoever knows the seed of the noise can take the noise away."
    anyone = "Anyone" if c.status == "UNCONDITIONAL" else "If what is assumed holds: anyone"
    return (
        f"{anyone}, even whoever knows {c.neighbours.phrases.known}, the method, all public facts and everything that"
        " was released. Not against whoever holds the table, or can read the machine's memory while ppdp runs on it."
    )


def _released(view: View) -> str:
    """What left, and for which purpose."""
    left = ", ".join(typeset(words.replace(" for the stage", " for")) for words in what_left(view.record))
    purpose = "".join(f" Purpose: {words} ({UNPROVED})." for name, words in view.said if name == "purpose")
    return f"{begun(left)}{', and this' if left else 'This'} certificate.{purpose}"


def _responsible(view: View) -> str | None:
    return next((words for name, words in view.said if name == "responsible"), None)


def asked(view: View) -> str:
    """Whom a reviewer asks: who is named as responsible, without what stands behind a comma, or whoever issued it."""
    name = _responsible(view)
    return f"“{name.partition(',')[0]}”" if name else "the issuer"


def _trusted(view: View, whom: str) -> Cell:
    """What must be true, on whose word, and where all of it stands."""
    named = "" if _responsible(view) else ", and nobody is named as responsible"
    cut = f" (declared ones beyond the first {MOST_FACTS}: in certificate.json)" if not_shown(view.record) else ""
    return (
        "Nothing proves these points; if one is false, the promise may fail. “Declared”: said by whoever ran the"
        f" fit{named}. Have {whom} confirm every point but “Nobody’s word”, and say where each limit, label and setting"
        " comes from.",
        items(
            [
                *(typeset(words) for words in view.rests_on if not words.startswith(READ)),
                begun(f"{NOT_SAID}: {BEFORE}."),
                RECORDED.format(" is" if view.record.ledger is None else " and the ledger are"),
            ],
            class_="rests",
        ),
        *(f"{typeset(words)} " for words in view.rests_on if words.startswith(READ)),
        f"All facts{cut} and settings stand below.",
    )


def _publishing(view: View, signer: str | None, whom: str) -> Cell:
    """Under which conditions it may leave, and what of it."""
    c = view.record
    if c.status == "SEEDED":
        return "No. Nothing of it is protected."
    newest = "" if c.ledger is None else ", “Spent” on the newest page"
    steps = [
        *(["what is assumed holds, which nothing has tested"] if c.status == "CONDITIONAL" else []),
        f"{whom} confirms in writing what “Taken on trust” asks, and lists what else of these people (score, plot,"
        " table, stopped run) got out, or writes “nothing”; refuse this run if a point is not confirmed, or if these"
        " rows, beyond what “Spent” counts, guided a choice (limit, label, setting, step)",
        "“How to check it” succeeds",
        f"your organisation accepts that list, “Nobody’s word”, “Not covered”, “For one person”{newest}, and the"
        f" accuracy on other people (ask {whom})",
        "it is lawful",
    ]
    listed = "; ".join(f"({letter}) {words}" for letter, words in zip("abcde", steps))
    signed = f", {SIGNED}" if signer else ""
    return points(
        (element("b", "Not yet. Yes when"), f" {listed}."),
        f"Then publish {_file(c)}; certificate.json{signed}; this page, all sheets; anything made of these and no"
        f" private row{_made_of_it(c)}.",
        f"Nothing else: it may tell of private rows.{_other_format(c)}",
    )


def _is_model(c: Record) -> bool:
    return c.mechanism is not None and c.mechanism.formula.startswith(MODELS)


def _file(c: Record) -> str:
    """What to publish, in the form in which ppdp writes it."""
    export = "the .zip file or folder that ppdp exported"
    if c.mechanism is None:
        return f"the fitted steps, as {export}"
    if _is_model(c):
        return f"the model, as {export}"
    if getattr(FORMULAS.get(c.mechanism.formula), "rows", False):
        return f"the released rows, as the .parquet table that ppdp wrote or {export}"
    return f"the noisy answer, as {export} or the .parquet table that it wrote"


def _made_of_it(c: Record) -> str:
    return ", such as predictions for others" if _is_model(c) else ""


def _other_format(c: Record) -> str:
    return " The model in another format: only if made from the exported one." if _is_model(c) else ""


def _not_covered(view: View) -> Cell:
    """What the promise says nothing of."""
    return points(*_left_out(view), class_="columns")


def _left_out(view: View) -> Iterator[str]:
    """The document's points in short; then what no certificate covers."""
    why, *others = left_out_in_short(view, "if not counted under “Spent”")
    yield f"{why}; this one did not" if why.startswith(STOPS) else why
    yield from others
    if view.beside:
        yield "what the other releases named at the top cost"
    yield from beyond(view.record)


def left_out_in_short(view: View, unless: str) -> Iterator[str]:
    """The document's points in short, those of one kind as one; in a ledger other attempts are, unless they count."""
    c = view.record
    words = [sentence for sentence, _ in view.not_covered]
    why = [short for start, short in BREAKS_OFF.items() if any(one.startswith(start) for one in words)]
    if why:
        yield f"{STOPS} ({', '.join(why)})"
    for one in words:
        if one.startswith(ATTEMPTS):
            paid = "" if c.ledger is None else f", {unless}"
            yield f"other attempts, scores, plots and tuning on these rows{paid}"
        elif not one.startswith(tuple(BREAKS_OFF)):
            yield next((short for start, short in IN_SHORT.items() if one.startswith(start)), one)


def beyond(c: Record, *, at_length: bool = False) -> Iterator[str]:
    """What no certificate covers."""
    if c.neighbours.record_level:
        two = _two_steps(c)
        together = f" (two people: right at most {two} times in 100)" if two else ""
        yield f"a family or group: protected less than one person{together}"
    else:
        yield "several changes: protected less than one"
    yield GENERAL if at_length else "what holds of people in general, and so of anyone"
    yield "consent, bias, access to the rows: see the checklist"


def _made(view: View, signer: str | None, whom: str) -> Cell:
    c, name = view.record, _responsible(view)
    who = f"Responsible: “{name}”" if name else "The certificate does not say who is responsible"
    when = "at an unknown time" if c.issued is None else f"on {day(c.issued)} (UTC)"
    made = (
        f"{who}. Made {when}, with ppdp {c.versions['ppdp']}. Who ran it (the issuer) is not recorded"
        f"{f': ask {whom}' if name else ''}. None of this is proved."
    )
    if signer is None:
        return points(
            made, "No signature was given when this page was made. Ask for one: without it, the author is unproven."
        )
    return points(
        made,
        (
            f"certificate.json is signed (checked); not said by whom: have {whom} read out the key by telephone. ",
            element("span", signer, class_="hash"),
        ),
    )


def _check(c: Record, signer: str | None, whom: str) -> Cell:
    key, same = (", the first one also the key above", "digest and key") if signer else ("", "the digest")
    files = f", {SIGNED}" if signer else ""
    options = OPTIONS if signer else ""
    return (
        f"Give your IT this page, certificate.json{files} and what ppdp exported (FILE). They get ppdp"
        f" {c.versions['ppdp']} from a source they trust (none: refuse), not this page’s author (“{VERIFY}”),"
        " and run:",
        points(
            code(f"ppdp verify certificate.json{options}"),
            code("ppdp verify FILE"),
            (
                f"Both must print “the derivation holds and the digest matches” and this digest{key}; if not, refuse"
                " the release. ",
                element("span", c.digest, class_="hash"),
            ),
            (
                "To check this page, print it again; if a word or figure differs, refuse. ",
                code(f"ppdp show certificate.json{options} --pdf again.pdf"),
            ),
            f"Telephone {whom} (number known from elsewhere), have {same} read out; if different, refuse.",
        ),
    )
