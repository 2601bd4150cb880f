"""What ppdp makes of a certificate's record, for tests that change its document and do not ask whether it holds."""

from functools import wraps

import numpy as np

from ppdp.certificate import guarantee
from ppdp.certificate.pages import assumptions, derivation, interpretation, page, renderers, statements
from ppdp.certificate.record import Record, read_as
from ppdp.certificate.share import registry_record


def record_of(document):
    return read_as(Record, document)


def view_of(document):
    return statements.view_of(record_of(document))


def of_document(function, made=record_of):
    """The same function of a document, of which its first argument is made."""

    @wraps(function)
    def read(document, *others):
        return function(made(document), *others)

    return read


detection_power = of_document(interpretation.detection_power)
points_of = of_document(derivation.points_of)
privacy_profile = of_document(guarantee.privacy_profile)
registry_sections = of_document(registry_record._known)
render_brief = of_document(renderers.render_brief, view_of)
render_card = of_document(renderers.render_card, view_of)
render_fragment = of_document(renderers.render_fragment, view_of)
render_page = of_document(page.render_page, view_of)
render_text = of_document(renderers.render_text, view_of)


@of_document
def rests_on(record):
    """What a certificate rests on, each point in its words."""
    return [statement.text for statement in assumptions.assumptions(record)]


def missed(record, false_alarm):
    """How often a test misses at least, at this rate of false alarms: of every pair that is promised the best."""
    if not record.total.parts:
        return max(0.0, 1 - interpretation.detection_power(record, false_alarm))
    delta, factor = interpretation._pairs(record)
    lines = 1 - delta - factor * false_alarm, (1 - delta - false_alarm) / factor
    return float(max(0.0, np.max(lines)))
