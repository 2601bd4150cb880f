"""``ppdp record``: a certificate as a draft for the OpenDP Deployments Registry."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from datetime import date
from typing import Any

from ppdp.cli.certificates import held
from ppdp.cli.documents import check_form, read_tables
from ppdp.cli.errors import refuse
from ppdp.cli.output import escaped, say
from ppdp.exceptions import CertificateError, ExportError, InvalidParameter

__all__ = ["ABOUT", "record"]

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


def record(options: Namespace) -> int:
    """Print the record of a certificate: 1 if it does not hold, or may not leave as what it is."""
    about = _days_as_text(read_tables(options.about, "a file of facts", "see `ppdp help record`."))
    check_form(about, options.about, ABOUT)
    certificate = held(options)
    if certificate.status == "CONDITIONAL" and not options.conditional:
        raise CertificateError(
            f"the certificate is CONDITIONAL: {'; '.join(certificate['reasons'])}.",
            fix="--conditional, if whoever reads the record shall rely on that.",
        )
    try:
        made = certificate.to_registry_record(**about, conditional=options.conditional)
    except ExportError as error:
        raise CertificateError(error.message, fix=error.fix) from None
    except InvalidParameter as error:
        refuse(error.message, place=str(options.about), fix=error.fix or "as the registry has it.")
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
    return (text if _printable(text) else plain).rstrip("\n")


def _printable(text: str) -> bool:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    shown = text.encode(encoding, errors="ignore").decode(encoding)
    return shown == text and all(escaped(line) == line for line in text.split("\n"))
