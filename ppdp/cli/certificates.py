"""``ppdp verify``, ``show``, ``card``, ``record`` and ``sign``: certificates, alone or in what carries them."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ppdp.certificate.formats import FORMATS, format_of
from ppdp.certificate.issue_statement import (
    account_in_words,
    composition_notes,
    other_releases,
    spent_at_least,
    uncharged_fits,
)
from ppdp.certificate.issuer import UNPROVED, attachments_beside, issuer_statements, review_is_due
from ppdp.certificate.share.status_list import StatusList
from ppdp.cli.certificate_files import carried, folder_of, unchecked
from ppdp.cli.documents import check_form, read_tables
from ppdp.cli.output import complain, one_line, placed, refuse, refuse_taken, say
from ppdp.cli.pipeline_file import import_modules
from ppdp.exceptions import CertificateError, ExportError, InvalidParameter, SignatureError, escaped

if TYPE_CHECKING:
    from ppdp.certificate import Certificate

_TEXT = {"type": "string", "minLength": 1}
_TOLD = ("name", "description", "intended_use", "region")

ABOUT: dict[str, Any] = {
    "type": "object",
    "properties": {
        **dict.fromkeys((*_TOLD, "product_type"), _TEXT),
        "publication_date": {"type": "string"},
        "curators": {"type": "object", "additionalProperties": {"enum": ["Government", "Industry", "Nonprofit"]}},
        "authors": {"type": "array", "minItems": 1, "items": _TEXT},
        "further": {"type": "object", "additionalProperties": {"type": "object"}},
    },
    "additionalProperties": False,  # first, so that a misspelt key is called so and not missing
    "required": [*_TOLD, "publication_date", "authors", "curators"],
}
"""JSON schema (draft 2020-12) of the file that says what only people know."""


def verify(options: Namespace) -> int:
    """Recompute a certificate: 0 if it holds and is what was asked for, 1 if not."""
    if options.max_epsilon is not None and not options.max_epsilon >= 0:
        refuse(f"must be a number of at least 0, got {options.max_epsilon}.", place="--max-epsilon", fix="as in 1.0.")
    import_modules(options.imports)
    try:
        certificate = carried(options.path)
    except CertificateError as error:
        if options.json:
            say(json.dumps({"holds": False, "problems": [error.message]}, ensure_ascii=False))
        elif not options.quiet:
            complain(f"does not hold: {one_line(error)}")
        return 1
    result = certificate.verify(**asked_signature(options.signature, options.public_key))
    listed, by = (None, "") if options.status is None else _status_list(options.status, options.public_key)
    beside = attachments_beside(certificate.record, folder_of(options.path)) if result else {}
    unmet = [*_unmet(certificate, options), *_outdated(certificate, listed, beside)] if result else []
    strange = [name for name in unchecked(options.path, certificate) if beside.get(name) != "same"]
    if options.json:
        found: dict[str, Any] = {"holds": bool(result), "problems": list(result.problems)}
        if result:  # what does not hold makes no claim that a machine could take for one
            claim = {name: getattr(certificate, name) for name in ("status", "epsilon", "delta", "digest")}
            found |= {"unmet": unmet, **claim, "left_out": other_releases(certificate.record), "unchecked": strange}
            found |= {"attachments": beside} if beside else {}
            found |= {} if listed is None else {"status_list": _SIGNED[by]}
        if result.signer:
            found["signer"] = result.signer
        say(json.dumps(found, indent=2, ensure_ascii=False))
    elif not options.quiet:
        lines = [repr(replace(result, problems=tuple(escaped(problem) for problem in result.problems)))]
        if result:
            lines = [*(escaped(words) for words in other_releases(certificate.record)), *lines]
            told = account_in_words(certificate.record)
            lines += [f"issued {escaped(told)}"] if told is not None else []
            stated = [f"  {name}: {escaped(words)}" for name, words in issuer_statements(certificate.record)]
            lines += [f"{UNPROVED}:", *stated] if stated else []
            lines += ["REVIEW WAS DUE"] if review_is_due(certificate.record) else []
            neighbours = certificate.record.neighbours
            what = "" if neighbours.row_level else f"protects {escaped(neighbours.unit)}; not anything else in it "
            pair = f"({certificate.epsilon:g}, {certificate.delta:g})"
            lines.append(f"{certificate.status} {pair} {what}{certificate.digest}")
            lines += [f"attachment {escaped(name)}: {_BESIDE[word]}" for name, word in beside.items()]
            if listed is not None and not unmet:
                lines.append(f"status: not withdrawn, by the list of {listed.published}, {_SIGNED[by]}")
            if strange:
                lines.append(f"NOT CHECKED, and of no certificate: {', '.join(escaped(name) for name in strange)}")
        say("\n".join([*lines, *(f"REFUSED: {reason}" for reason in unmet)]))
    return 0 if result and not unmet else 1


_BESIDE = {
    "same": "the file beside it is the one",
    "another": "the file beside it is ANOTHER",
    "absent": "not here, so not compared",
}


def _outdated(certificate: Certificate, listed: StatusList | None, beside: Mapping[str, str]) -> list[str]:
    """Why it, or what lies beside it, is not what the issuer stands for."""
    found = [f"attachment {escaped(name)}: {_BESIDE[word]}." for name, word in beside.items() if word == "another"]
    withdrawn = () if listed is None else listed.problems(certificate.record)
    return [*found, *(f"--status: {escaped(words)}" for words in withdrawn)]


_SIGNED = {"": "which is not signed", "unchecked": "whose signature was not checked", "key": "signed with the same key"}


def _status_list(path: Path, public_key: Path | None) -> tuple[StatusList, str]:
    """The list, and what is known of its signature, which lies beside it; one that does not hold is refused."""
    from ppdp.certificate.share.signature import Signature

    signature = path.with_name(f"{path.name}.sig")
    with placed("--status", CertificateError):
        listed = StatusList.load(path)
        if not signature.exists():
            return listed, ""
        if public_key is None:
            return listed, "unchecked"
        Signature.load(signature).check(listed, public_key)
        return listed, "key"


def _unmet(certificate: Certificate, options: Namespace) -> list[str]:
    """What of a certificate that holds is not as it was asked for."""
    record, asked, found = certificate.record, options.require or [], []
    if "unconditional" in asked:
        if certificate.status != "UNCONDITIONAL":
            found.append(f"--require unconditional: the certificate is {certificate.status}.")
        found += [f"--require unconditional: {escaped(words)}" for words in uncharged_fits(record)]
    if "alone" in asked:
        found += [f"--require alone: {escaped(words)}" for words in composition_notes(record)]
    if "record-level" in asked and not record.neighbours.row_level:
        found.append(f"--require record-level: it protects {escaped(record.neighbours.unit)}.")
    known = spent_at_least(record)
    if options.max_epsilon is not None and not known <= options.max_epsilon:
        what = "epsilon is" if known == certificate.epsilon else "with what it is a part of, epsilon is"
        found.append(f"--max-epsilon {options.max_epsilon:g}: {what} {known!r}.")
    return found


def show(options: Namespace) -> int:
    """Print a certificate that holds, or write its page: 1 if it does not hold."""
    asked = ((name, path) for name in ("html", "pdf", "out") if (path := getattr(options, name)) is not None)
    name, target = next(asked, ("", None))
    form = FORMATS.get(name) or (None if target is None else format_of(target))
    if target is not None:
        refuse_taken(target, f"--{name}")
    if target is not None and form is None:
        endings = ", ".join(ending for known in FORMATS.values() for ending in known.endings)
        refuse("has the ending of no form.", place=f"--{name}", fix=f"{endings}; --json prints the document.")
    if target is not None and form is not None and target.suffix.lower() not in form.endings:
        refuse("has the ending of another form.", place=f"--{name}", fix=f"a name that ends in {form.endings[0]}.")
    signed = asked_signature(options.signature, options.public_key)
    if signed and target is None:
        refuse("a signature is named on a page.", place="--signature", fix="--html or --pdf; or `ppdp verify`.")
    certificate = held(options, **signed)
    if target is None or form is None:
        say(certificate.to_json() if options.json else certificate.to_text(full=options.full))
        return 0
    from ppdp.certificate.share.files import write_atomically

    with placed(f"--{name}", ExportError):
        write_atomically(target, form.write(certificate.verify(**signed)))
    say(f"written: {target}")
    return 0


def card(options: Namespace) -> int:
    """Print the section of a model card: 1 if the certificate does not hold."""
    say(held(options).to_model_card())
    return 0


def held(options: Namespace, **signed: Any) -> Certificate:
    """A certificate that holds, and its signature if there is one to check."""
    import_modules(options.imports)
    certificate = carried(options.path)
    result = certificate.verify(**signed)
    if not result:
        problems = " ".join(escaped(problem) for problem in result.problems)
        raise CertificateError(f"{options.path}: {problems}", fix="the certificate as it was issued.")
    return certificate


def record(options: Namespace) -> int:
    """Print the record of a certificate: 1 if it does not hold, or may not leave as what it is."""
    about = _days_as_text(read_tables(options.about, "a file of facts", "see `ppdp help record`."))
    check_form(about, options.about, ABOUT)
    certificate = held(options)
    if certificate.status == "CONDITIONAL" and not options.conditional:
        what = f"the certificate is CONDITIONAL: {'; '.join(certificate['reasons'])}."
        raise CertificateError(what, fix="--conditional, if readers of the record shall rely on that.")
    try:
        with placed(str(options.about), InvalidParameter, fix="as the registry has it."):
            made = certificate.to_registry_record(**about, conditional=options.conditional)
    except ExportError as error:
        raise CertificateError(error.message, fix=error.fix) from None
    say(json.dumps(made, indent=2, ensure_ascii=False) if options.json else _yaml(made))
    return 0


def _days_as_text(value: Any) -> Any:
    """TOML and YAML have days of their own, JSON has none."""
    if isinstance(value, dict):
        return {key: _days_as_text(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_days_as_text(inner) for inner in value]
    return value.isoformat() if isinstance(value, date) else value


def _yaml(made: dict[str, Any]) -> str:
    """The record as the registry takes it; whatever cannot be printed is an escape of YAML."""
    try:
        import yaml
    except ImportError:
        refuse("YAML needs the package PyYAML.", place="record", fix="pip install 'ppdp[yaml]', or --json.")
    text: str = yaml.safe_dump(made, sort_keys=False, allow_unicode=True)
    plain: str = yaml.safe_dump(made, sort_keys=False)
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    shown = text.encode(encoding, errors="ignore").decode(encoding)
    printable = shown == text and all(escaped(line) == line for line in text.split("\n"))
    return (text if printable else plain).rstrip("\n")


def sign(options: Namespace) -> int:
    """Write a signature of a certificate, or of a status list: 1 if it does not hold, or protects nobody."""
    import_modules(options.imports)
    if not options.certificate.name:
        refuse("is no file.", place=repr(str(options.certificate)), fix="a certificate.json as it was issued.")
    target = options.out or options.certificate.with_name(f"{options.certificate.name}.sig")
    refuse_taken(target)
    document = _to_sign(options.certificate)
    result = None if isinstance(document, StatusList) else document.verify()
    if result is not None and not result:
        complain(f"{options.certificate}: {' '.join(result.problems)}")
        return 1
    further = {} if result is None else {"conditional": options.conditional}
    password = None
    if options.password is not None:
        try:
            with options.password.open("rb") as file:
                password = file.readline(10_000).rstrip(b"\r\n")
        except OSError as error:
            fix = "a file whose first line is the password."
            refuse(f"cannot be read: {error.strerror}.", place="--password", fix=fix)
    with placed("--key", InvalidParameter):
        signature = document.sign(options.key, password=password, **further)
    signature.save(target)
    say(f"written: {target}\nsigned with the key {signature.key}")
    return 0


def _to_sign(path: Path) -> Certificate | StatusList:
    from ppdp.certificate import Certificate

    with suppress(CertificateError):
        return StatusList.load(path)
    with placed(str(path), CertificateError, fix="a certificate.json as it was issued."):
        return Certificate.load(path)


def asked_signature(signature: Path | None, public_key: Path | None) -> dict[str, Any]:
    """Signature and key for :meth:`ppdp.Certificate.verify`, once both can be read."""
    from ppdp.certificate.share.signature import Signature, read_public_key

    if signature is None and public_key is None:
        return {}
    if signature is None or public_key is None:
        other = "--public-key" if public_key is None else "--signature"
        refuse("a signature is checked with a public key.", place=other, fix="give both, or neither.")
    with placed("--signature", SignatureError), placed("--public-key", InvalidParameter):
        return {"signature": Signature.load(signature), "public_key": read_public_key(public_key)}
