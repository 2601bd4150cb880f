"""How a pipeline looks in a notebook: what it spent, and its steps, with links to our own pages."""

from __future__ import annotations

from typing import Any

from sklearn.pipeline import Pipeline
from sklearn.utils import estimator_html_repr

from ppdp.certificate import Certificate
from ppdp.certificate.issued import account_in_words
from ppdp.certificate.pages.markup import bound, element, to_html
from ppdp.core.pages import page_of


def spent_line(certificate: Certificate) -> str:
    """What the fit has spent, and on whose account, in one line."""
    if not certificate.verify():
        return ""
    record = certificate.record
    spent = element("strong", "Spent (", bound(record.epsilon), ", ", bound(record.delta), ").")
    return to_html(element("p", spent, f" {account_in_words(record) or ''}"))


def diagram_of(steps: list[tuple[str, Any]], kind: type) -> str:
    """The steps as scikit-learn draws them; the sign for help opens the page of this kind of pipeline."""
    drawn = Pipeline(steps)
    page = page_of(kind)
    drawn._doc_link_module = "sklearn" if page else ""
    drawn._doc_link_template = page
    return str(estimator_html_repr(drawn))
