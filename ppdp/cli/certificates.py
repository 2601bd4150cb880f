"""``ppdp verify``, ``ppdp show`` and ``ppdp card``: certificates, alone or in what carries them."""

from __future__ import annotations

import json
import os
from argparse import Namespace
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ppdp.certificate.issued import account_in_words, left_out, not_alone, spent_at_least, unpaid
from ppdp.cli.carriers import carried
from ppdp.cli.errors import one_line, refuse
from ppdp.cli.output import complain, escaped, say
from ppdp.cli.pipeline_file import import_modules
from ppdp.exceptions import CertificateError

if TYPE_CHECKING:
    from ppdp.certificate import Certificate

__all__ = ["card", "held", "show", "verify"]


def verify(options: Namespace) -> int:
    """Recompute a certificate: 0 if it holds and is what was asked for, 1 if not."""
    from ppdp.cli.signatures import asked_signature

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
    unmet = _unmet(certificate, options) if result else []
    if options.json:
        found: dict[str, Any] = {"holds": bool(result), "problems": list(result.problems)}
        if result:  # what does not hold makes no claim that a machine could take for one
            found |= {"unmet": unmet, **_summary(certificate)}
        if result.signer:
            found["signer"] = result.signer
        say(json.dumps(found, indent=2, ensure_ascii=False))
    elif not options.quiet:
        lines = [repr(replace(result, problems=tuple(escaped(problem) for problem in result.problems)))]
        if result:
            lines = [*(escaped(words) for words in left_out(certificate.record)), *lines]
            told = account_in_words(certificate.record)
            lines += [f"issued {escaped(told)}"] if told is not None else []
            lines.append(f"{certificate.status} ({certificate.epsilon:g}, {certificate.delta:g}) {certificate.digest}")
        say("\n".join([*lines, *(f"REFUSED: {reason}" for reason in unmet)]))
    return 0 if result and not unmet else 1


def _unmet(certificate: Certificate, options: Namespace) -> list[str]:
    """What of a certificate that holds is not as it was asked for."""
    record, asked, found = certificate.record, options.require or [], []
    if "unconditional" in asked:
        if certificate.status != "UNCONDITIONAL":
            found.append(f"--require unconditional: the certificate is {certificate.status}.")
        found += [f"--require unconditional: {escaped(words)}" for words in unpaid(record)]
    if "alone" in asked:
        found += [f"--require alone: {escaped(words)}" for words in not_alone(record)]
    known = spent_at_least(record)
    if options.max_epsilon is not None and not known <= options.max_epsilon:
        what = "epsilon is" if known == certificate.epsilon else "with what it is a part of, epsilon is"
        found.append(f"--max-epsilon {options.max_epsilon:g}: {what} {known!r}.")
    return found


def _summary(certificate: Certificate) -> dict[str, Any]:
    return {
        "status": certificate.status,
        "epsilon": certificate.epsilon,
        "delta": certificate.delta,
        "digest": certificate.digest,
        "left_out": left_out(certificate.record),
    }


def show(options: Namespace) -> int:
    """Print a certificate that holds, or write its page: 1 if it does not hold."""
    if options.html is not None and os.path.lexists(options.html):
        refuse(f"{str(options.html)!r} is already there.", place="--html", fix="another name; nothing is replaced.")
    certificate = held(options)
    if options.html is not None:
        from ppdp.certificate.share.files import write_atomically

        write_atomically(options.html, certificate.to_html())
        say(f"written: {options.html}")
    else:
        say(certificate.to_json() if options.json else certificate.to_text())
    return 0


def card(options: Namespace) -> int:
    """Print the section of a model card: 1 if the certificate does not hold."""
    say(held(options).to_model_card())
    return 0


def held(options: Namespace) -> Certificate:
    """A certificate that holds.

    Raises
    ------
    Misuse
        If there is none.
    CertificateError
        If it does not hold.
    """
    import_modules(options.imports)
    certificate = carried(options.path)
    result = certificate.verify()
    if not result:
        problems = " ".join(escaped(problem) for problem in result.problems)
        raise CertificateError(f"{options.path}: {problems}", fix="the certificate as it was issued.")
    return certificate
